"""The transform of the features is the squared penalty, and its limit is hard equality."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from equirecourse.equalizers._projection import Projection


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) + 0.5
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=80) > 0.3, 1.0, -1.0)
    S = rng.normal(size=(80, 2)) / 20
    return X, y, S


def direct(X, y, S, stiffness, *, C):
    """Minimise ½‖w‖² + C Σ log(1 + exp(−y f)) + ½κ‖Sᵀf‖² over w and b as it stands."""

    def objective(v):
        f = X @ v[:-1] + v[-1]
        u = S.T @ f
        value = 0.5 * v[:-1] @ v[:-1] + C * np.logaddexp(0, -y * f).sum() + 0.5 * stiffness * u @ u
        slope = -C * y / (1 + np.exp(y * f)) + stiffness * S @ u
        return value, np.append(v[:-1] + X.T @ slope, slope.sum())

    found = minimize(
        objective, np.zeros(X.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
    )
    return found.x[:-1], found.x[-1]


def through_the_transform(X, y, S, stiffness, *, C):
    projection = Projection.along(X.T @ S, np.where(np.abs(S.sum(axis=0)) < 1e-12, 0.0, S.sum(axis=0)), stiffness)
    learner = LogisticRegression(
        C=C, tol=1e-12, max_iter=10_000, solver="newton-cholesky", fit_intercept=projection.shift is None
    )
    learner.fit(projection.transform(X), y)
    return projection.carry_back(learner.coef_[0], float(learner.intercept_[0]))


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("with_intercept", [False, True], ids=["sums of zero", "intercept in u"])
@pytest.mark.parametrize("stiffness", [0.1, 3.0, 100.0])
def test_a_ridge_on_transformed_features_is_the_penalty_on_the_difference(problem, r, with_intercept, stiffness):
    X, y, S = problem
    S = S[:, :r] if with_intercept else S[:, :r] - S[:, :r].mean(axis=0)
    w, b = direct(X, y, S, stiffness, C=0.7)
    coef, intercept = through_the_transform(X, y, S, stiffness, C=0.7)
    np.testing.assert_allclose(coef, w, atol=1e-6)
    assert intercept == pytest.approx(b, abs=1e-6)
    # And the penalty matters in this problem.
    plain, _ = direct(X, y, S, 0.0, C=0.7)
    assert np.abs(plain - w).max() > 1e-4


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("with_intercept", [False, True], ids=["sums of zero", "intercept in u"])
def test_infinite_stiffness_is_equality_and_the_limit_of_large_ones(problem, r, with_intercept):
    X, y, S = problem
    S = S[:, :r] if with_intercept else S[:, :r] - S[:, :r].mean(axis=0)
    coef, intercept = through_the_transform(X, y, S, np.inf, C=0.7)
    np.testing.assert_allclose(S.T @ (X @ coef + intercept), 0.0, atol=1e-12)
    w, b = direct(X, y, S, 1e5, C=0.7)
    np.testing.assert_allclose(coef, w, atol=1e-3)
    assert intercept == pytest.approx(b, abs=1e-3)


@pytest.mark.parametrize("stiffness", [0.5, np.inf])
@pytest.mark.parametrize("sums", [np.zeros(2), np.array([0.3, -0.1])], ids=["sums of zero", "intercept in u"])
def test_scores_of_transformed_people_are_scores_of_people(stiffness, sums):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(10, 4)), rng.normal(size=(4, 2))
    projection = Projection.along(Z, sums, stiffness)
    features = projection.transform(X)
    coef, intercept = rng.normal(size=features.shape[1]), 0.7 if projection.shift is None else 0.0
    w, b = projection.carry_back(coef, intercept)
    np.testing.assert_allclose(features @ coef + intercept, X @ w + b)


def test_the_transform_is_the_inverse_root_of_one_plus_stiffness_zz():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(10, 4)), rng.normal(size=(4, 2))
    values, vectors = np.linalg.eigh(np.eye(4) + 2.5 * Z @ Z.T)
    root = (vectors / np.sqrt(values)) @ vectors.T
    np.testing.assert_allclose(Projection.along(Z, np.zeros(2), 2.5).transform(X), X @ root)


def test_dependent_and_empty_directions_are_no_obstacle():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(10, 4)), rng.normal(size=(4, 1))
    one, twice = (Projection.along(Z, np.zeros(Z.shape[1]), np.inf).transform(X) for Z in (z, np.hstack([z, 3 * z])))
    np.testing.assert_allclose(one, twice, atol=1e-12)
    np.testing.assert_allclose(one @ z, 0.0, atol=1e-12)
    for nothing in (Projection.along(np.zeros((4, 1)), np.zeros(1), np.inf), Projection.along(z, np.zeros(1), 0.0)):
        np.testing.assert_array_equal(nothing.transform(X), X)


def test_sparse_people_become_dense_people():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(10, 4)), rng.normal(size=(4, 1))
    projection = Projection.along(z, np.zeros(1), 1.0)
    np.testing.assert_allclose(projection.transform(sparse.csr_array(X)), projection.transform(X))
