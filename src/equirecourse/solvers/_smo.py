"""Sequential minimal optimisation for a kernel dual with a low-rank part taken out of the kernel.

    minimise   ½ βᵀ (K − Aᵀ B) β − pᵀ β      over β
    such that  Σ β = 0,   lower ≤ β ≤ upper

Notation
--------
K       kernel matrix, n × n, row-major, in double or single precision
A, B    the deflated part, r × n each (``A.T @ B`` is symmetric); r = 0 is a plain SVM
p       linear term, the labels ±1 for an SVM
β       signed dual coefficients, label × γ
g       gradient, (K − Aᵀ B) β − p; at the optimum −g is the intercept on every free coefficient

Each step moves one pair (i up, j down). ``i`` has the smallest gradient among those that may rise; ``j`` promises the
largest decrease of the objective to second order. Taking the low rank out inside the step costs r more
multiply-adds per entry, and no copy of the kernel matrix. Once most coefficients have settled at a bound the others are
copied, without the low rank, into a small matrix that stays in the processor's cache, and solved exactly where pair
steps take too long.

Benchmark rows: the plain fits and rounds of ``benchmarks/speed.py``; without working sets those of polynomial kernels
take up to fourteen times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.solvers._active_set import FreeSet, WorkingSet
from equirecourse.solvers._pair_steps import block_of, move_pairs, sum_of_rows

__all__ = ["minimise_pairs", "solve_pairs", "times_rows", "violation_of"]

Array = NDArray[np.float64]

# How working sets are chosen decides how long a solve takes, never what it finds.
_STEPS_BETWEEN_LOOKS = 1000  # LIBSVM's number of steps between two attempts to shrink
_FEW_STEPS, _FEW_FREE = 512, 250  # of a warm start: steps among everybody first, unless no more than these are free
_STEPS_BETWEEN_FRESH_GRADIENTS = 500_000  # each adds a rounding error of some 1e-16: far below any tolerance in all
_SMALL = 200  # people below which leaving some out saves nothing
_WORTH_A_COPY = 0.7  # share of the people above which leaving the others out saves nothing
_WORKING, _PER_FREE = 128, 1.3  # size of a working set: at least, and for each free coefficient
_PER_EXACT = 3.0  # the same where the set is solved exactly: more changes at a time, and fewer sets
_STEPS_EACH, _STEPS_A_CUBE = 4, 0.2  # pair steps that take as long as an exact solution: by size, by free coefficients
_LEFT_OVER = 0.3  # share of the violation at which a working set that leaves violators out is given up


def minimise_pairs(
    K: Any,
    A: Array,
    B: Array,
    p: Array,
    lower: Array,
    upper: Array,
    beta: Array,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Array, int]:
    """Solve the problem above from a feasible ``beta``.

    Returns
    -------
    beta : ndarray
        The solution. No pair violates optimality by more than ``tol``, unless ``max_iter`` was reached or the kernel
        is so large that rounding errors exceed ``tol``.
    n_iter : int
        Number of pair steps.
    """
    beta, n_iter, _ = solve_pairs(K, A, B, p, lower, upper, beta, times_rows(K, beta), tol=tol, max_iter=max_iter)
    return beta, n_iter


def solve_pairs(
    K: Any,
    A: Array,
    B: Array,
    p: Array,
    lower: Array,
    upper: Array,
    beta: Array,
    gram_beta: Array,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Array, int, Array]:
    """The same from a ``beta`` whose product K β is known, and with that of the solution."""
    beta = beta.copy()
    diagonal = np.diagonal(K).astype(np.float64) - np.einsum("qi,qi->i", A, B)
    scale = float(np.abs(diagonal).max(initial=0.0))
    n_iter = 0
    while True:
        # The gradient that the steps update drifts from the true one by rounding: go on from the true one.
        g = gram_beta - A.T @ (B @ beta) - p
        # Below this the gradient is rounding error, and steps would go round in circles.
        rounding = np.finfo(float).eps * scale * float(np.abs(beta).sum())
        if violation_of(g, beta, lower, upper) <= max(tol, rounding) or n_iter >= max_iter:
            return beta, n_iter, gram_beta
        most = min(max_iter - n_iter, _STEPS_BETWEEN_FRESH_GRADIENTS)
        before = beta.copy()
        steps = _descend(K, A, B, diagonal, lower, upper, beta, g, max(tol, rounding), most)
        n_iter += steps
        if steps == 0:
            return beta, n_iter, gram_beta
        gram_beta = gram_beta + times_rows(K, beta - before)


def times_rows(K: Any, change: Array) -> Array:
    """K times a vector, through the rows where that is not zero: K is symmetric, and rows are contiguous."""
    rows = np.flatnonzero(change)
    if len(rows) == 0:
        return np.zeros(len(change))
    if K.dtype == np.float64 and len(rows) > 0.7 * len(change):
        return np.asarray(K @ change)
    return np.asarray(sum_of_rows(K, rows, change[rows]))


def _descend(
    K: Any,
    A: Array,
    B: Array,
    diagonal: Array,
    lower: Array,
    upper: Array,
    beta: Array,
    g: Array,
    tol: float,
    max_iter: int,
) -> int:
    """Move pairs in place, at first of everybody, then of small working sets; return the number of steps.

    A working set holds every free coefficient and those at a bound that violate optimality most. Its part of the kernel
    matrix is copied, so that a step reads a few kilobytes that stay in the cache; then the gradient of everybody is
    brought up to date and the next set is chosen. By pair steps a set that leaves violators out is not solved to the
    end; once a set was solved exactly, so are those that follow, for which the free coefficients are known.
    """
    n = len(beta)
    # From a start at zero most coefficients have a bound to go to, each by a step of its own: a set would only delay.
    # From another solution few steps are needed as a rule, and a set takes as long as a hundred; but not if so few are
    # free that solving for all of them is quicker than steps.
    warm = bool(beta.any())
    free_set = FreeSet(trusted=warm and int(((beta > lower) & (beta < upper)).sum()) <= _FEW_FREE)
    n_iter, first = 0, max(n, _STEPS_BETWEEN_LOOKS)
    if warm:
        first = 0 if free_set.trusted else _FEW_STEPS
    while n_iter < max_iter:
        rises, falls = beta < upper, beta > lower
        if not rises.any() or not falls.any():
            break
        low, high = float(g[rises].min()), float(g[falls].max())
        if high - low <= tol:
            break
        free_set.watch(high - low)
        free = rises & falls
        excess = np.maximum(np.where(rises, high - g, 0.0), np.where(falls, g - low, 0.0))
        working = np.flatnonzero(free | (excess > 0))
        size = max(_WORKING, int((_PER_EXACT if free_set.trusted else _PER_FREE) * free.sum()))
        inner_tol = tol
        if len(working) > size:
            excess[free] = np.inf
            working = np.sort(np.argpartition(-excess, size)[:size])
            inner_tol = max(tol, _LEFT_OVER * (high - low))
        if n <= _SMALL or n_iter < first or len(working) > _WORTH_A_COPY * n:
            look = min(first if n_iter < first else max(n, _STEPS_BETWEEN_LOOKS), max_iter - n_iter)
            steps, _ = move_pairs(K, A, B, diagonal, lower, upper, beta, g, tol, look)
        else:
            part = WorkingSet(working, block_of(K, A, B, working), lower[working], upper[working])
            moved, steps = _solve_set(part, beta[working], g[working], free_set, tol, inner_tol, max_iter - n_iter)
            change = np.zeros(n)
            change[working] = moved - beta[working]
            beta[working] = moved
            g += times_rows(K, change) - A.T @ (B @ change)
        n_iter += steps
        if steps == 0:
            break
    return n_iter


def _solve_set(
    part: WorkingSet, beta: Array, g: Array, free_set: FreeSet, tol: float, inner_tol: float, max_iter: int
) -> tuple[Array, int]:
    """Solve a working set by pair steps, and exactly where those take longer than that would; return β and steps."""
    steps = 0
    if free_set.trusted:
        exact, steps = free_set.solve(part, beta, g, tol)
        if exact is not None:
            return exact, steps
    m, nothing, diagonal = len(beta), np.empty((0, len(beta))), np.diagonal(part.Q).copy()

    def move(most: int) -> tuple[int, float]:
        made, left = move_pairs(part.Q, nothing, nothing, diagonal, part.lower, part.upper, beta, g, inner_tol, most)
        return int(made), float(left)

    n_free = int(((beta > part.lower) & (beta < part.upper)).sum())
    made, left = move(min(max(_STEPS_EACH * m, int(_STEPS_A_CUBE * n_free**3 / m)), max_iter))
    steps += made
    if left > inner_tol and 0 < made < max_iter:
        exact, changes = free_set.solve(part, beta, g, tol)
        steps += changes
        if exact is not None:
            return exact, steps
        steps += move(max(max_iter - steps, 0))[0]
    return beta, steps


def violation_of(g: Array, beta: Array, lower: Array, upper: Array) -> float:
    """By how much the best pair still violates optimality."""
    rises, falls = beta < upper, beta > lower
    if not rises.any() or not falls.any():
        return 0.0
    return max(float(g[falls].max() - g[rises].min()), 0.0)
