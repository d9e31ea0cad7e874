"""The pair solver reaches its tolerance, from any start, with and without leaving people out."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from equirecourse.solvers import Balance, KernelDual, ReferenceDual, intercept_from
from equirecourse.solvers import _polish as polish_module
from equirecourse.solvers import _smo as smo_module
from equirecourse.solvers._smo import minimise_pairs, violation_of


def problem(n, seed=0, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / d)
    S = rng.normal(size=(n, 2)) / n
    S -= S.mean(axis=0)
    return X, y, K, S


def deflation(K, S):
    cross, inner = K @ S, S.T @ K @ S
    return np.ascontiguousarray((cross @ np.linalg.inv(inner)).T), np.ascontiguousarray(cross.T)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
def test_no_pair_violates_optimality_by_more_than_the_tolerance(C, tol):
    _, y, K, S = problem(120)
    A, B = deflation(K, S)
    lower, upper = np.where(y > 0, 0, -C), np.where(y > 0, C, 0)
    beta, n_iter = minimise_pairs(K, A, B, y, lower, upper, np.zeros(120), tol=tol, max_iter=10**6)
    g = (K - A.T @ B) @ beta - y
    assert violation_of(g, beta, lower, upper) <= tol
    assert beta.sum() == pytest.approx(0, abs=1e-9 * C)
    assert (beta >= lower).all()
    assert (beta <= upper).all()
    assert n_iter > 0


def test_the_solution_is_the_minimum_that_a_general_solver_finds():
    _, y, K, S = problem(25)
    A, B = deflation(K, S)
    deflated = K - A.T @ B
    lower, upper = np.where(y > 0, 0.0, -2.0), np.where(y > 0, 2.0, 0.0)
    beta, _ = minimise_pairs(K, A, B, y, lower, upper, np.zeros(25), tol=1e-9, max_iter=10**6)

    def objective(b):
        return 0.5 * b @ deflated @ b - y @ b

    reference = minimize(
        objective,
        np.zeros(25),
        jac=lambda b: deflated @ b - y,
        bounds=list(zip(lower, upper, strict=True)),
        constraints=LinearConstraint(np.ones(25), 0, 0),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert objective(beta) <= reference.fun + 1e-7


def test_a_warm_start_and_a_cold_one_end_at_the_same_scores():
    _, y, K, S = problem(150)
    balance = Balance(K @ S[:, :1], S[:, :1].T @ K @ S[:, :1], np.zeros(1))
    C = np.full(150, 3.0)
    warm = KernelDual(K, y, C, tol=1e-8)
    warm.solve()
    cold = KernelDual(K, y, C, tol=1e-8)
    np.testing.assert_allclose(warm.solve(balance).scores(balance), cold.solve(balance).scores(balance), atol=1e-7)


def test_leaving_people_out_does_not_change_the_solution(monkeypatch):
    _, y, K, S = problem(400)
    A, B = deflation(K, S)
    lower, upper = np.where(y > 0, 0.0, -20.0), np.where(y > 0, 20.0, 0.0)
    found = {}
    for small in (50, 10**9):  # always worth a copy, never worth one
        monkeypatch.setattr(smo_module, "_SMALL", small)
        beta, _ = minimise_pairs(K, A, B, y, lower, upper, np.zeros(400), tol=1e-8, max_iter=10**7)
        found[small] = (K - A.T @ B) @ beta
    np.testing.assert_allclose(found[50], found[10**9], atol=1e-6)


def test_the_limit_on_steps_is_kept_and_the_violation_reported():
    _, y, K, _ = problem(100)
    solution = KernelDual(K, y, np.full(100, 50.0), tol=1e-10, max_iter=7).solve()
    assert solution.n_iter <= 7
    assert solution.violation > 1e-10


def test_polishing_brings_a_loose_solution_to_machine_precision(monkeypatch):
    _, y, K, _ = problem(100)
    C = np.full(100, 1.0)
    polished = KernelDual(K, y, C, tol=1e-4).solve()
    monkeypatch.setattr(polish_module, "_POLISH_LIMIT", 0)
    loose = KernelDual(K, y, C, tol=1e-4).solve()
    assert polished.violation < 1e-10 < loose.violation <= 1e-4


def test_the_intercept_is_the_midpoint_when_no_coefficient_is_free():
    lower, upper = np.array([0.0, -1.0]), np.array([1.0, 0.0])
    beta = np.array([1.0, -1.0])  # both at a bound
    g = np.array([-0.25, 0.75])
    # The first, at its upper bound, wants g + b ≤ 0; the second, at its lower one, g + b ≥ 0.
    b = intercept_from(g, beta, lower, upper)
    assert b == pytest.approx((0.25 - 0.75) / 2)


@pytest.mark.parametrize("stiffness", [0.0, 0.3, 30.0, np.inf])
@pytest.mark.parametrize("zero_sums", [True, False])
def test_any_stiffness_equals_the_quadratic_program(stiffness, zero_sums):
    _, y, K, S = problem(80)
    S = S if zero_sums else np.abs(S)
    balance = Balance(K @ S, S.T @ K @ S, np.zeros(2) if zero_sums else S.sum(axis=0))
    C = np.full(80, 2.0)
    fast = KernelDual(K, y, C, tol=1e-9).solve(balance, stiffness=stiffness)
    slow = ReferenceDual(K, y, C).solve(balance, stiffness=stiffness)
    np.testing.assert_allclose(fast.scores(balance), slow.scores(balance), atol=1e-5)
    np.testing.assert_allclose(fast.multiplier, slow.multiplier, atol=1e-3 * max(1, np.abs(slow.multiplier).max()))
