"""The solvers for many features find the optimum of LIBLINEAR and of the solvers for few, and can prove it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import LinearSVC

from equirecourse.solvers import CoordinateDescentSVM, LinearSVM, SquaredHingeSVM

SOLVERS = {
    "hinge": ("hinge", lambda *people, **more: CoordinateDescentSVM(*people, loss="hinge", **more)),
    "squared": ("squared_hinge", lambda *people, **more: CoordinateDescentSVM(*people, loss="squared_hinge", **more)),
    "newton": ("squared_hinge", SquaredHingeSVM),
}
EXACTLY = {"tol": 1e-9, "max_iter": 100_000}
every_solver = pytest.mark.parametrize(("loss", "solver"), SOLVERS.values(), ids=SOLVERS.keys())


def people(n=300, d=20, seed=0, noise=1.0, density=0.5):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < density, rng.normal(size=(n, d)), 0.0)
    y = np.where(X @ rng.normal(size=d) - 0.3 + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    return X, y


def directions(d, factors, seed=1):
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, len(factors))))[0]
    return basis, np.asarray(factors), np.eye(d) - (basis * (1 - np.asarray(factors))) @ basis.T


@every_solver
@pytest.mark.parametrize(("scaling", "fit_intercept"), [(1.0, True), (3.0, True), (1.0, False)])
@pytest.mark.parametrize("factors", [(), (0.0,), (0.4, 0.0)], ids=["plain", "hard", "soft"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix], ids=["dense", "array", "matrix"])
def test_it_is_the_model_of_liblinear_on_projected_features(loss, solver, scaling, fit_intercept, factors, form):
    X, y = people()
    C = 0.1 * np.random.default_rng(3).uniform(0.2, 2.0, size=len(y))
    basis, factors, A = directions(X.shape[1], factors)
    same = {"intercept_scaling": scaling, "fit_intercept": fit_intercept}
    theirs = LinearSVC(loss=loss, tol=1e-10, max_iter=1_000_000, random_state=0, **same)
    theirs.fit(X @ A, y, sample_weight=C)
    found = solver(form(X), y, C, **same, **EXACTLY).solve(basis, factors)
    np.testing.assert_allclose(found.coef, A @ theirs.coef_[0], atol=1e-6)
    assert found.constant == pytest.approx(float(np.ravel(theirs.intercept_)[0]), abs=1e-6)
    np.testing.assert_allclose(found.scores, X @ found.coef + found.constant, atol=1e-12)
    assert abs(found.gap) <= 1e-8 * found.objective
    assert found.violation <= 1e-9
    assert np.abs(basis[:, factors == 0].T @ found.coef).max(initial=0.0) <= 1e-15 * len(y)


@every_solver
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_it_is_the_model_of_the_solvers_for_few_features(loss, solver, C):
    X, y = people(n=500, d=12)
    weights = np.full(len(y), C)
    basis, factors, _ = directions(12, [0.0, 0.3])
    few = LinearSVM if loss == "hinge" else SquaredHingeSVM
    exact = few(X, y, weights, tol=1e-9, intercept_scaling=1.0).solve(basis, factors)
    found = solver(X, y, weights, **EXACTLY).solve(basis, factors)
    assert found.objective == pytest.approx(exact.objective, rel=1e-9)
    np.testing.assert_allclose(found.coef, exact.coef, atol=1e-6)
    np.testing.assert_allclose(found.direction, exact.direction, atol=1e-6)
    assert found.intercept == exact.intercept == 0


@every_solver
def test_another_balance_of_the_same_people_starts_from_the_last_one(loss, solver):
    X, y = people(n=400, d=60)
    C = np.full(len(y), 0.1)
    svm = solver(X, y, C, **EXACTLY)
    svm.solve()
    for seed in range(3):
        basis, factors, _ = directions(60, [0.0], seed=seed)
        again, fresh = svm.solve(basis, factors), solver(X, y, C, **EXACTLY).solve(basis, factors)
        np.testing.assert_allclose(again.coef, fresh.coef, atol=1e-7)
        assert again.objective == pytest.approx(fresh.objective, rel=1e-9)
    n_iter = svm.solve(basis, factors).n_iter
    assert n_iter == 0  # nothing has changed


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    d=st.integers(1, 80),
    log_c=st.floats(-3, 2),
    density=st.floats(0.0, 1.0),
    left=st.sampled_from([None, 0.0, 0.5]),
    name=st.sampled_from(sorted(SOLVERS)),
)
def test_the_optimality_conditions_hold_whoever_the_people_are(seed, n, d, log_c, density, left, name):
    X, y = people(n=n, d=d, seed=seed, density=density)
    C = np.full(n, 10.0**log_c)
    loss, solver = SOLVERS[name]
    basis, factors, A = directions(d, [] if left is None else [left], seed=seed)
    found = solver(sparse.csr_array(X), y, C, tol=1e-6, max_iter=100_000).solve(basis, factors)
    alpha, margin = y * found.beta, y * found.scores
    assert (alpha >= 0).all()
    if loss == "hinge":
        assert (alpha <= C).all()
        assert (margin[alpha == 0] >= 1 - 2e-6).all()
        assert (margin[alpha == C] <= 1 + 2e-6).all()
        np.testing.assert_allclose(margin[(alpha > 0) & (alpha < C)], 1, atol=2e-6)
    else:
        np.testing.assert_allclose(np.maximum(0, 1 - margin), alpha / (2 * C), atol=2e-6)
    np.testing.assert_allclose(found.coef, A @ A @ X.T @ found.beta, atol=1e-5)
    assert -1e-9 * (1 + found.objective) <= found.gap <= 1e-4 * (1 + found.objective)


@every_solver
def test_an_entry_that_is_written_in_two_parts_is_their_sum(loss, solver):
    X, y = people(n=80, d=10)
    whole = sparse.csr_array(X)
    data, indices = np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2)
    parts = sparse.csr_array((data, indices, 2 * whole.indptr), shape=X.shape)
    C = np.full(len(y), 0.1)
    found, dense = (solver(form, y, C, **EXACTLY).solve() for form in (parts, X))
    np.testing.assert_allclose(found.coef, dense.coef, atol=1e-8)
    assert parts.nnz == 2 * whole.nnz  # the caller's matrix is as it was


@every_solver
def test_large_sparse_indices_and_columns_first_are_taken(loss, solver):
    X, y = people(n=80, d=10)
    C = np.full(len(y), 0.1)
    large = sparse.csr_matrix(X)
    large.indices, large.indptr = large.indices.astype(np.int64), large.indptr.astype(np.int64)
    expected = solver(X, y, C, **EXACTLY).solve().coef
    for form in (large, np.asfortranarray(X)):
        np.testing.assert_allclose(solver(form, y, C, **EXACTLY).solve().coef, expected, atol=1e-8)


@every_solver
def test_people_of_no_weight_have_no_say(loss, solver):
    X, y = people(n=200, d=10)
    C = np.where(np.arange(200) < 120, 0.1, 0.0)
    found = solver(X, y, C, **EXACTLY).solve()
    fewer = solver(X[:120], y[:120], C[:120], **EXACTLY).solve()
    np.testing.assert_allclose(found.coef, fewer.coef, atol=1e-7)
    assert (found.beta[120:] == 0).all()
    assert found.violation <= 1e-9


@every_solver
def test_too_few_iterations_are_told_by_the_violation(loss, solver):
    X, y = people(n=400, d=60)
    found = solver(X, y, np.full(len(y), 10.0), max_iter=1).solve()
    assert found.violation > 1e-2
    assert found.gap > 0


def test_the_same_people_have_the_same_model_every_time():
    X, y = people(n=400, d=60)
    first, second = (CoordinateDescentSVM(X, y, np.full(len(y), 0.1)).solve() for _ in range(2))
    assert (first.beta == second.beta).all()
