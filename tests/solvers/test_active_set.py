"""Working sets solved exactly: the optimum that a quadratic program finds, from any start, for kernels of any rank."""

import numpy as np
import pytest
from cvxopt import matrix, solvers
from hypothesis import given, settings
from hypothesis import strategies as st

from equirecourse.solvers import Balance, KernelDual
from equirecourse.solvers import _active_set as module
from equirecourse.solvers._active_set import FreeSet, WorkingSet
from equirecourse.solvers._pair_steps import move_pairs
from equirecourse.solvers._smo import violation_of


def make(n, rank, seed, C=1.0):
    """A dual of n people whose kernel has a given rank, its linear term, and a feasible start of some sum."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, rank))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    part = WorkingSet(np.arange(n), features @ features.T, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0))
    where = np.clip(rng.normal(0.5, 0.6, n), 0.0, 1.0)  # a good part of them at a bound
    return part, y, part.lower + where * (part.upper - part.lower)


def quadratic_program(part, p, total):
    """The smallest objective, by an interior point."""
    n = len(p)
    bounded = np.isfinite(part.upper) & np.isfinite(part.lower)
    G = np.vstack([np.eye(n)[bounded], -np.eye(n)[bounded]])
    h = np.concatenate([part.upper[bounded], -part.lower[bounded]])
    options = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
    arguments = (part.Q, -p, G, h, np.ones((1, n)), np.array([float(total)]))
    return solvers.qp(*map(matrix, arguments), options=options)["primal objective"]


def objective(part, p, beta):
    return 0.5 * beta @ part.Q @ beta - p @ beta


@settings(deadline=None)
@given(
    n=st.integers(2, 40),
    rank=st.integers(1, 45),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.01, 1.0, 100.0]),
)
def test_it_finds_the_optimum_of_a_quadratic_program(n, rank, seed, C):
    part, p, start = make(n, rank, seed, C)
    tol = 1e-8
    found, _ = FreeSet().solve(part, start, part.Q @ start - p, tol)
    if found is None:  # allowed where there is nothing to move, and then the start is as good as any
        assert violation_of(part.Q @ start - p, start, part.lower, part.upper) <= tol
        return
    assert violation_of(part.Q @ found - p, found, part.lower, part.upper) <= tol
    assert (found >= part.lower).all()
    assert (found <= part.upper).all()
    assert found.sum() == pytest.approx(start.sum(), abs=1e-11 * n * max(C, 1.0))
    best = quadratic_program(part, p, start.sum())
    assert objective(part, p, found) == pytest.approx(best, rel=1e-6, abs=1e-7 * C)


def test_more_are_free_at_the_start_than_the_kernel_has_rank():
    part, p, _ = make(60, 4, seed=1)
    start = (part.lower + part.upper) / 2
    found, changes = FreeSet().solve(part, start, part.Q @ start - p, 1e-9)
    assert changes > 40
    assert ((found > part.lower) & (found < part.upper)).sum() <= 5
    assert violation_of(part.Q @ found - p, found, part.lower, part.upper) <= 1e-9


@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(3))
def test_outliers_and_rounding_do_not_spoil_the_inverse(seed, precision):
    """A polynomial kernel of degree four, with a diagonal from one to some hundred millions, rounded or not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(400, 5))
    p = np.where(X[:, 0] * X[:, 1] + rng.normal(size=400) > 0, 1.0, -1.0)
    Q = ((X @ X.T / 5 + 1.0) ** 4).astype(precision).astype(float)
    part = WorkingSet(np.arange(400), Q, np.where(p > 0, 0.0, -10.0), np.where(p > 0, 10.0, 0.0))
    assert np.diagonal(Q).max() > 1e6 * np.diagonal(Q).min()
    # A few thousand pair steps first, after which the start is near, as it is when this is used.
    start, nothing = np.zeros(400), np.empty((0, 400))
    move_pairs(Q, nothing, nothing, np.diagonal(Q).copy(), part.lower, part.upper, start, -p, 1e-3, 3000)
    before = violation_of(Q @ start - p, start, part.lower, part.upper)
    found, _ = FreeSet().solve(part, start, Q @ start - p, 1e-3)
    assert violation_of(Q @ found - p, found, part.lower, part.upper) <= 1e-3 < before
    assert objective(part, p, found) < objective(part, p, start)


def test_everybody_may_begin_at_a_bound():
    part, p, _ = make(50, 8, seed=2)
    start = np.zeros(50)
    found, _ = FreeSet().solve(part, start, -p, 1e-9)
    assert violation_of(part.Q @ found - p, found, part.lower, part.upper) <= 1e-9
    assert objective(part, p, found) == pytest.approx(quadratic_program(part, p, 0.0), rel=1e-7)


def test_a_coefficient_without_bounds_takes_part():
    part, p, start = make(30, 6, seed=3)
    lower, upper = part.lower.copy(), part.upper.copy()
    lower[7], upper[7] = -np.inf, np.inf
    part = WorkingSet(part.people, part.Q, lower, upper)
    found, _ = FreeSet().solve(part, start, part.Q @ start - p, 1e-9)
    assert objective(part, p, found) == pytest.approx(quadratic_program(part, p, start.sum()), rel=1e-7)


def test_where_nothing_bounds_the_way_down_it_says_so():
    Q = np.zeros((2, 2))  # no curvature: the objective falls for ever
    part = WorkingSet(np.arange(2), Q, np.full(2, -np.inf), np.full(2, np.inf))
    assert FreeSet().solve(part, np.zeros(2), np.array([-1.0, 1.0]), 1e-9)[0] is None


def test_the_next_working_set_goes_on_from_the_last():
    """Half of the people first, then those that are free with the other half: fewer changes than from the beginning."""
    whole, p, start = make(120, 20, seed=4)
    half = np.arange(60)

    def part_of(rows):
        return WorkingSet(rows, whole.Q[np.ix_(rows, rows)], whole.lower[rows], whole.upper[rows])

    free_set, beta = FreeSet(), start.copy()
    beta[half], _ = free_set.solve(part_of(half), beta[half], (whole.Q @ beta - p)[half], 1e-9)
    assert free_set.trusted
    kept = np.flatnonzero((beta > whole.lower) & (beta < whole.upper))
    rows = np.union1d(kept, np.arange(60, 120))
    g = (whole.Q @ beta - p)[rows]
    continued, _ = free_set.solve(part_of(rows), beta[rows], g, 1e-9)
    anew, _ = FreeSet().solve(part_of(rows), beta[rows], g, 1e-9)
    values = [objective(part_of(rows), p[rows], one) for one in (continued, anew)]
    # The gradient has a share of those outside the set.
    outside = g - (whole.Q[np.ix_(rows, rows)] @ beta[rows] - p[rows])
    values = [value + outside @ one for value, one in zip(values, (continued, anew), strict=True)]
    assert values[0] == pytest.approx(values[1], rel=1e-10)


def test_too_many_free_coefficients_are_left_to_pair_steps(monkeypatch):
    part, p, start = make(40, 40, seed=5)
    monkeypatch.setattr(module, "_MOST_FREE", 3)
    free_set = FreeSet(trusted=True)
    assert free_set.solve(part, start, part.Q @ start - p, 1e-9) == (None, 0)
    assert not free_set.trusted


def test_a_violation_that_stays_ends_it():
    free_set = FreeSet(trusted=True)
    free_set.watch(1.0)
    for _ in range(module._PATIENCE):
        free_set.watch(0.9)
    assert free_set.trusted
    free_set.watch(0.9)
    assert not free_set.trusted


@pytest.mark.parametrize("degree", [2, 3])
def test_a_dual_ends_at_the_same_scores_without_it(degree, monkeypatch):
    """Many free coefficients and a large C, where pair steps are many and the exact solution is asked for."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 6))
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=500) > 0, 1.0, -1.0)
    K = (X @ X.T / 6 + 1.0) ** degree
    S = np.where(y < 0, rng.normal(size=500), 0.0)[:, None]
    S[y < 0] -= S[y < 0].mean()
    balance = Balance(K @ S, S.T @ K @ S, np.zeros(1))
    calls = []
    solve = FreeSet.solve
    monkeypatch.setattr(FreeSet, "solve", lambda *arguments: calls.append(1) or solve(*arguments))
    scores = {}
    for most in (600, 0):
        monkeypatch.setattr(module, "_MOST_FREE", most)
        dual = KernelDual(K, y, np.full(500, 10.0), tol=1e-6)
        dual.solve()
        scores[most] = dual.solve(balance).scores(balance)
    assert calls
    np.testing.assert_allclose(scores[600], scores[0], atol=1e-4)
