"""The interior point finds the linear SVM that LIBSVM and LIBLINEAR find, where those converge."""

import warnings

import numpy as np
import pytest
from sklearn.svm import SVC

from equirecourse import EqualRecourseSVC
from equirecourse.equalizers import _kernel_problem
from equirecourse.exceptions import ConvergenceWarning
from equirecourse.solvers import ReferenceDual, minimise_linear


def people(n, d, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] - 0.3 + noise * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d"), [(40, 2), (200, 12), (30, 60)])
def test_the_optimality_conditions_hold(n, d, C):
    X, y = people(n, d)
    beta, n_iter = minimise_linear(X, y, np.full(n, C))
    gamma = y * beta
    assert n_iter < 60
    assert (gamma >= 0).all()
    assert (gamma <= C).all()
    assert beta.sum() == pytest.approx(0, abs=1e-4 * C)
    w = X.T @ beta
    free = (gamma > 0) & (gamma < C)
    b = np.mean(y[free] - X[free] @ w)
    margin = y * (X @ w + b)
    assert (margin[gamma == 0] >= 1 - 1e-4).all()
    assert (margin[gamma == C] <= 1 + 1e-4).all()
    np.testing.assert_allclose(margin[free], 1, atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_it_is_the_svm_of_libsvm(C):
    X, y = people(150, 5)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=150)
    ours = EqualRecourseSVC(kernel="linear", solver="ipm", C=C).fit(X, y, sample_weight=weight)
    theirs = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y, sample_weight=weight)
    # LIBSVM's kernel is in single precision, so its scores are known to some 1e-4 and ours must be the better ones.
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    hinge = np.maximum(0, 1 - y * theirs.decision_function(X))
    assert ours.objective_ <= 0.5 * (theirs.coef_**2).sum() + C * weight @ hinge


def test_separable_people_and_repeated_people_are_no_obstacle():
    X, y = people(60, 3, noise=0.0)
    X, y = np.vstack([X, X, X]), np.tile(y, 3)
    ours = EqualRecourseSVC(kernel="linear", solver="ipm", C=1e3).fit(X, y)
    theirs = SVC(kernel="linear", C=1e3, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    assert (ours.predict(X) == y).all()


def test_features_on_different_scales_are_no_obstacle():
    X, y = people(300, 4)
    scaled = X * [0.1, 1.0, 30.0, 1000.0]
    ours = EqualRecourseSVC(kernel="linear", solver="ipm").fit(scaled, y)
    reference = ReferenceDual(scaled @ scaled.T, y, np.ones(300)).solve()
    hinge = np.maximum(0, 1 - y * reference.scores(None)).sum()
    value = 0.5 * reference.squared_norm(None) + hinge
    assert ours.n_iter_ < 60
    assert ours.objective_ == pytest.approx(value, rel=1e-6)


def test_scales_beyond_double_precision_are_not_passed_over_in_silence():
    X, y = people(300, 4)
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        EqualRecourseSVC(kernel="linear", solver="ipm").fit(X * [1e-3, 1.0, 1e3, 1e6], y)


@pytest.mark.parametrize("draw", range(5))
def test_seven_orders_of_magnitude_between_features_are_solved(draw):
    X, y = people(300, 4)
    X *= 1.0 + 1e-12 * np.random.default_rng(draw).normal(size=X.shape)  # the last digits differ between processors
    model = EqualRecourseSVC(kernel="linear", solver="ipm").fit(X * [1e-3, 1.0, 1e3, 1e4], y)
    assert model.dual_gap_ < 1e-6


@pytest.mark.parametrize("draw", range(5))
def test_eight_orders_of_magnitude_are_solved_or_it_is_said_that_they_are_not(draw):
    # Coefficients of 1e-5 are sums of terms of 1e7 here: rounding alone moves the objective in its sixth digit.
    X, y = people(300, 4)
    X *= 1.0 + 1e-12 * np.random.default_rng(draw).normal(size=X.shape)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        model = EqualRecourseSVC(kernel="linear", solver="ipm").fit(X * [1e-3, 1.0, 1e3, 1e5], y)
    assert said or model.dual_gap_ < 1e-5


def test_it_is_for_a_linear_kernel_only():
    X, y = people(20, 2)
    with pytest.raises(ValueError, match=r"solver='ipm' is for kernel='linear', got kernel='rbf'; use solver='auto'"):
        EqualRecourseSVC(solver="ipm").fit(X, y)


def test_the_limit_on_iterations_is_kept_and_said():
    X, y = people(100, 3)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 steps \(max_iter=2\)"):
        EqualRecourseSVC(kernel="linear", solver="ipm", max_iter=2, tol=1e-12).fit(X, y)


def test_feature_costs_need_no_kernel_matrix(monkeypatch):
    X, y = people(120, 4)
    group = np.arange(120) % 2
    settings = {
        "kernel": "linear",
        "feature_costs": [1.0, 0.5, 2.0, 3.0],
        "max_rounds": 1,
        "round_options": {"balance_tol": 1e9},
    }
    expected = EqualRecourseSVC(solver="smo", tol=1e-8, **settings).fit(X, y, sensitive_features=group)
    monkeypatch.setattr(_kernel_problem, "_MOST_GRAM_BYTES", 0)

    def refuse(*_, **__):
        raise AssertionError("a kernel matrix was computed")

    monkeypatch.setattr(EqualRecourseSVC, "_kernel_between", refuse)
    found = EqualRecourseSVC(solver="ipm", **settings).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(found.rounds_["gap"], expected.rounds_["gap"], atol=1e-5)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
