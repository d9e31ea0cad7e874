"""The searches for a stiffness find the optimum of the penalty or the bound they stand for."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.equalizers._penalty import fit_bound, fit_penalty


@dataclass(frozen=True)
class QuadraticFit:
    """Minimum of ½‖w − a‖² + ½κ‖Zᵀw‖², which is known in closed form."""

    w: np.ndarray
    differences: np.ndarray
    stiffness: float


def quadratic(a, Z):
    def fit_at(stiffness):
        if np.isinf(stiffness):
            w = a - Z @ np.linalg.pinv(Z) @ a
        else:
            w = np.linalg.solve(np.eye(len(a)) + stiffness * Z @ Z.T, a)
        return QuadraticFit(w, Z.T @ w, stiffness)

    return fit_at


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=5), rng.normal(size=(5, 2))


def multiplier_of_equality(a, Z):
    """The smallest λ at which λ‖Zᵀw‖ forces u = 0: the norm of t in a − w = Z t."""
    return np.linalg.norm(np.linalg.lstsq(Z, a, rcond=None)[0])


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("natural", [1e-4, 1.0, 1e4])
def test_below_the_multiplier_of_equality_the_penalty_is_minimised(problem, share, natural):
    a, Z = problem
    penalty = share * multiplier_of_equality(a, Z)
    found = fit_penalty(quadratic(a, Z), penalty, natural)

    def objective(w):
        return 0.5 * ((w - a) ** 2).sum() + penalty * np.linalg.norm(Z.T @ w)

    best = minimize(objective, found.w + 0.01, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found.w, best.x, atol=1e-5)
    assert objective(found.w) <= best.fun + 1e-10
    assert found.stiffness * np.linalg.norm(found.differences) == pytest.approx(penalty, rel=1e-6)


@pytest.mark.parametrize("factor", [1.001, 2.0, 1e6, np.inf])
def test_from_the_multiplier_of_equality_on_the_difference_is_zero(problem, factor):
    a, Z = problem
    found = fit_penalty(quadratic(a, Z), factor * multiplier_of_equality(a, Z), 1.0)
    assert found.stiffness == np.inf
    np.testing.assert_allclose(found.differences, 0.0, atol=1e-12)


def test_a_penalty_of_zero_is_the_plain_fit(problem):
    a, Z = problem
    np.testing.assert_array_equal(fit_penalty(quadratic(a, Z), 0.0, 1.0).w, a)
    np.testing.assert_allclose(fit_penalty(quadratic(a, Z), 1e-14, 1.0).w, a, atol=1e-7)


@pytest.mark.parametrize("share", [0.999, 0.5, 0.01])
def test_a_bound_is_met_with_the_least_stiffness(problem, share):
    a, Z = problem
    fit_at = quadratic(a, Z)
    bound = share * np.linalg.norm(Z.T @ a)
    found = fit_bound(fit_at, lambda fit: np.linalg.norm(fit.differences), bound, 1.0, tol=1e-6)
    size = np.linalg.norm(found.differences)
    assert size <= bound
    assert size == pytest.approx(bound, rel=1e-4)


def test_a_bound_that_holds_already_costs_nothing_and_one_of_zero_is_equality(problem):
    a, Z = problem
    fit_at, size = quadratic(a, Z), lambda fit: np.linalg.norm(fit.differences)
    assert fit_bound(fit_at, size, size(fit_at(0.0)), 1.0).stiffness == 0.0
    assert fit_bound(fit_at, size, 0.0, 1.0).stiffness == np.inf


@pytest.mark.parametrize("normalize", ["rejected", "group"])
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("penalty", [0.3, 1.0])
def test_logistic_regression_minimises_its_loss_plus_the_price_of_the_difference(
    penalty, n_groups, normalize, make_people, first_round
):
    X, y, group = make_people(90, n_groups=n_groups, seed=3)
    learner = LogisticRegression(tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    model = EqualRecourseLinear(learner, objective="paper", recourse_penalty=penalty, normalize=normalize)
    one = first_round(model, X, y, group)
    found, S = one.fit(), one.contrasts.weights
    assert 0 < found.stiffness < np.inf

    def objective(v):
        f = X @ v[:-1] + v[-1]
        return 0.5 * v[:-1] @ v[:-1] + np.logaddexp(0, -y * f).sum() + penalty * np.linalg.norm(S.T @ f)

    v = np.append(found.coef, found.intercept)
    best = minimize(objective, v, method="BFGS", options={"gtol": 1e-8})
    # The search stops at 1e-3 of log κ: learners have tolerances of their own.
    np.testing.assert_allclose(v, best.x, atol=2e-3)
    assert objective(v) <= best.fun + 1e-5 * abs(best.fun)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("penalty", [0.2, 1.0, 5.0])
def test_the_svm_under_a_penalty_is_no_worse_than_anything_near_it(penalty, n_groups, kernel, make_people, first_round):
    """The primal objective, in coordinates of the kernel matrix, has no descent from the solution."""
    X, y, group = make_people(50, n_groups=n_groups, seed=3)
    model = EqualRecourseSVC(kernel=kernel, gamma=0.3, recourse_penalty=penalty, min_rejected=2, tol=1e-8, solver="smo")
    one = first_round(model, X, y, group)
    found, S, K = one.fit(), one.contrasts.weights, one.problem.K

    def objective(coefficients, b):
        f = K @ coefficients + b
        hinge = np.maximum(0, 1 - y * f).sum()
        return 0.5 * coefficients @ K @ coefficients + hinge + penalty * np.linalg.norm(S.T @ f)

    best = found.solution.beta + S @ found.solution.multiplier
    value = objective(best, found.solution.intercept)
    assert value == pytest.approx(one.problem.objective(found), rel=1e-9)
    rng = np.random.default_rng(0)
    # Convexity: no point on a segment is better than a smaller step on it, so near points speak for all.
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(100):
            step = rng.normal(size=50) * (rng.random(50) < 0.2)
            assert objective(best + scale * step, found.solution.intercept + scale * rng.normal()) >= value - 1e-7
    towards = (first_round(clone(model).set_params(recourse_penalty=p), X, y, group) for p in (0.0, np.inf))
    for other in (t.fit() for t in towards):
        aim = other.solution.beta
        if other.contrasts is not None:
            aim = aim + S @ other.solution.multiplier
        for share in (1e-3, 0.1, 1.0):
            mixed = (1 - share) * best + share * aim
            b = (1 - share) * found.solution.intercept + share * other.solution.intercept
            assert objective(mixed, b) >= value - 1e-7


def test_a_penalty_path_leaves_the_shares_it_was_asked_for(make_people, first_round):
    X, y, group = make_people(90, seed=3)
    shares = np.array([0.8, 0.4, 0.1])
    for model in (
        EqualRecourseSVC(kernel="linear"),
        EqualRecourseLinear(LogisticRegression(tol=1e-8), objective="paper"),
    ):
        path = model.penalty_path(X, y, sensitive_features=group, shares=shares)
        assert not hasattr(model, "classes_")
        assert np.all(np.diff(path) > 0)
        one = first_round(clone(model).set_params(penalty="squared"), X, y, group)
        sizes = [np.linalg.norm(one.fit(recourse_penalty=p).differences) for p in (0.0, *path)]
        ratios = np.array(sizes[1:]) / sizes[0]
        assert np.all(ratios <= shares + 1e-9)
        np.testing.assert_allclose(ratios, shares, rtol=0.15)
