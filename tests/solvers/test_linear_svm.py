"""The solvers for many people find the optimum of LIBLINEAR and of everybody at once, and can prove it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from equirecourse.solvers import LinearSVM, SquaredHingeSVM, _linear_svm


def people(n, d, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    return X, np.where(X[:, 0] - 0.3 + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def projection(d, seed=1, left=0.0):
    z = np.random.default_rng(seed).normal(size=(d, 1))
    return z / np.linalg.norm(z), np.array([left])


def matrix_of(basis, factors):
    return np.eye(len(basis)) - (basis * (1 - factors)) @ basis.T


def check(found, X, y, C, shrink, *, intercept=True):
    """The optimality conditions, from nothing but the numbers."""
    gamma = y * found.beta
    A = matrix_of(*shrink) if shrink else np.eye(X.shape[1])
    np.testing.assert_allclose(A @ A @ X.T @ found.beta, found.coef, rtol=1e-6, atol=1e-8 * np.abs(found.coef).max())
    np.testing.assert_allclose(X @ found.coef + found.constant, found.scores, atol=1e-8)
    if intercept:
        assert abs(found.beta.sum()) <= 1e-7 * C.sum()
    assert (gamma >= 0).all()
    assert (gamma <= C).all()
    margin = y * found.scores
    assert (margin[gamma == 0] >= 1 - 1e-4).all()
    assert (margin[gamma == C] <= 1 + 1e-4).all()
    np.testing.assert_allclose(margin[(gamma > 0) & (gamma < C)], 1, atol=1e-4)
    assert abs(found.gap) <= 1e-6 * found.objective


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("left", [None, 0.0, 0.4])
def test_screening_equals_no_screening(d, C, left):
    X, y = people(9000, d)
    weights = C * np.random.default_rng(2).uniform(0.5, 2.0, size=len(y))
    shrink = () if left is None else projection(d, left=left)
    screened = LinearSVM(X, y, weights, tol=1e-6).solve(*shrink)
    at_once = LinearSVM(X, y, weights, tol=1e-6).solve(*shrink, screen=False)
    check(screened, X, y, weights, shrink)
    assert screened.objective == pytest.approx(at_once.objective, rel=1e-9)
    np.testing.assert_allclose(screened.coef, at_once.coef, atol=1e-6)
    assert screened.constant == pytest.approx(at_once.constant, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    log_c=st.floats(-3, 3),
    noise=st.floats(0.0, 3.0),
    shift=st.floats(-2, 2),
)
def test_screening_is_exact_whatever_the_people(seed, d, log_c, noise, shift):
    X, y = people(600, d, seed=seed, noise=noise)
    X = X + shift
    y[:2] = [-1.0, 1.0]
    C = np.full(len(y), 10.0**log_c)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_linear_svm, "_SMALL", 40)
        screened = LinearSVM(X, y, C).solve()
    at_once = LinearSVM(X, y, C).solve(screen=False)
    assert screened.objective <= at_once.objective + 1e-6 * (1 + at_once.objective)
    assert screened.gap >= -1e-6 * (1 + screened.objective)


def test_other_balances_of_the_same_people_start_from_the_last_one(monkeypatch):
    monkeypatch.setattr(_linear_svm, "_SMALL", 100)
    X, y = people(12_000, 4)
    C = np.full(len(y), 0.01)
    svm = LinearSVM(X, y, C)
    for seed in range(4):
        shrink = projection(4, seed=seed)
        again = svm.solve(*shrink)
        check(again, X, y, C, shrink)
        fresh = LinearSVM(X, y, C).solve(*shrink, screen=False)
        assert again.objective == pytest.approx(fresh.objective, rel=1e-9)


@pytest.mark.parametrize("solver", [LinearSVM, SquaredHingeSVM])
@pytest.mark.parametrize(("scaling", "fit_intercept"), [(1.0, True), (3.0, True), (1.0, False)])
@pytest.mark.parametrize("C", [1e-3, 0.1])
def test_it_is_the_model_of_liblinear(solver, C, scaling, fit_intercept):
    X, y = people(5000, 4)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, size=len(y))
    loss = "hinge" if solver is LinearSVM else "squared_hinge"
    theirs = LinearSVC(
        loss=loss, C=C, tol=1e-10, max_iter=1_000_000, intercept_scaling=scaling, fit_intercept=fit_intercept
    ).fit(X, y, sample_weight=weight)
    found = solver(X, y, C * weight, intercept_scaling=scaling, fit_intercept=fit_intercept).solve()
    b = float(np.ravel(theirs.intercept_)[0])
    np.testing.assert_allclose(found.coef, theirs.coef_[0], atol=2e-4)
    assert found.constant == pytest.approx(b, abs=2e-4)
    slack = np.maximum(0, 1 - y * theirs.decision_function(X))
    square = (theirs.coef_**2).sum() + (b / scaling) ** 2
    value = 0.5 * square + C * weight @ (slack if loss == "hinge" else slack**2)
    assert found.objective <= value * (1 + 1e-12)
    assert -1e-9 * value <= found.gap <= 1e-6 * value


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_the_squared_hinge_under_a_projection_is_that_of_projected_features(left):
    X, y = people(30_000, 5)
    shrink = projection(5, left=left)
    C = np.full(len(y), 1e-3)
    ours = SquaredHingeSVM(X, y, C).solve(*shrink)
    A = matrix_of(*shrink)
    projected = SquaredHingeSVM(X @ A, y, C).solve()
    np.testing.assert_allclose(ours.coef, A @ projected.coef, atol=1e-8)
    assert abs(ours.gap) <= 1e-9 * ours.objective
    if left == 0:
        z = np.random.default_rng(1).normal(size=5)
        assert ours.coef @ z == pytest.approx(0, abs=1e-9)


def test_rounding_of_a_large_objective_does_not_shorten_newton_steps():
    X, y = people(50_000, 5)
    svm = SquaredHingeSVM(X, y, np.full(len(y), 100.0))
    basis = projection(5)[0]
    for left in np.geomspace(1.0, 1e-6, 25):  # each a little further than the last
        assert svm.solve(basis, np.array([left])).n_iter < 10
