"""Sequential minimal optimisation for a kernel dual with a low-rank part taken out of the kernel.

    minimise   ½ βᵀ (K − A Bᵀ) β − pᵀ β      over β
    such that  Σ β = 0,   lower ≤ β ≤ upper

Notation
--------
K       kernel matrix, n × n, row-major
A, B    the deflated part, r × n each (``A.T @ B`` is symmetric); r = 0 is a plain SVM
p       linear term, the labels ±1 for an SVM
β       signed dual coefficients, label × γ
g       gradient, (K − A Bᵀ) β − p; at the optimum −g is the intercept on every free coefficient

Each step moves one pair (i up, j down). ``i`` has the smallest gradient among those that may rise; ``j`` promises the
largest decrease of the objective to second order. Taking the low rank out inside the step costs r more
multiply-adds per entry, and no copy of the kernel matrix.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["minimise_pairs", "violation_of"]

Array = NDArray[np.float64]

_STEPS_BETWEEN_LOOKS = 1000
_STEPS_BETWEEN_FRESH_GRADIENTS = 500_000
_SMALL = 200  # people below which leaving some out saves nothing
_WORTH_A_COPY = 0.7  # share of the people above which leaving the others out saves nothing
_SMALLEST_CURVATURE = 1e-12  # a pair of equal points, or a kernel that is not positive semi-definite


@njit(cache=True, nogil=True)
def _row(K, A, B, i, out):  # type: ignore[no-untyped-def]
    """Write row i of K − A Bᵀ into ``out``."""
    n = out.shape[0]
    for k in range(n):
        out[k] = K[i, k]
    for q in range(A.shape[0]):
        a = A[q, i]
        for k in range(n):
            out[k] -= a * B[q, k]


@njit(cache=True, nogil=True)
def _pairs(K, A, B, diagonal, lower, upper, beta, g, tol, max_iter):  # type: ignore[no-untyped-def]
    """Move pairs in place until no pair violates optimality by more than ``tol``; return (steps, violation)."""
    n = beta.shape[0]
    row_i = np.empty(n)
    row_j = np.empty(n)
    violation = np.inf
    for step in range(max_iter):
        i = -1
        g_up = np.inf
        g_down = -np.inf
        for k in range(n):
            if beta[k] < upper[k] and g[k] < g_up:
                g_up = g[k]
                i = k
            if beta[k] > lower[k] and g[k] > g_down:
                g_down = g[k]
        violation = g_down - g_up
        if i < 0 or not violation > tol:
            return step, max(violation, 0.0)

        _row(K, A, B, i, row_i)
        j = -1
        best = -1.0
        for k in range(n):
            if beta[k] > lower[k]:
                difference = g[k] - g_up
                if difference > 0.0:
                    curvature = diagonal[i] + diagonal[k] - 2.0 * row_i[k]
                    if curvature < _SMALLEST_CURVATURE:
                        curvature = _SMALLEST_CURVATURE
                    gain = difference * difference / curvature
                    if gain > best:
                        best = gain
                        j = k
        if j < 0:
            return step, violation

        curvature = diagonal[i] + diagonal[j] - 2.0 * row_i[j]
        if curvature < _SMALLEST_CURVATURE:
            curvature = _SMALLEST_CURVATURE
        move = (g[j] - g[i]) / curvature
        room_up = upper[i] - beta[i]
        room_down = beta[j] - lower[j]
        # Land on a bound exactly: a coefficient one rounding error away from it would count as free.
        if move >= room_up or move >= room_down:
            if room_up <= room_down:
                move = room_up
                beta[j] = lower[j] if room_down == move else beta[j] - move
                beta[i] = upper[i]
            else:
                move = room_down
                beta[i] += move
                beta[j] = lower[j]
        else:
            beta[i] += move
            beta[j] -= move
        _row(K, A, B, j, row_j)
        for k in range(n):
            g[k] += move * (row_i[k] - row_j[k])
    return max_iter, violation


def minimise_pairs(
    K: Array,
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
    beta = beta.copy()
    diagonal = np.diagonal(K) - np.einsum("qi,qi->i", A, B)
    n_iter = 0
    while True:
        # The gradient that the steps update drifts from the true one by rounding: go on from the true one.
        g = K @ beta - A.T @ (B @ beta) - p if beta.any() else -p
        # Below this the gradient is rounding error, and steps would go round in circles.
        rounding = np.finfo(float).eps * np.abs(diagonal).max(initial=0.0) * np.abs(beta).sum()
        if violation_of(g, beta, lower, upper) <= max(tol, rounding) or n_iter >= max_iter:
            return beta, n_iter
        most = min(max_iter - n_iter, _STEPS_BETWEEN_FRESH_GRADIENTS)
        steps = _shrinking(K, A, B, diagonal, lower, upper, beta, g, max(tol, rounding), most)
        n_iter += steps
        if steps == 0:
            return beta, n_iter


def _shrinking(
    K: Array,
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
    """Move pairs in place, on ever smaller copies of the problem; return the number of steps.

    A coefficient at a bound whose gradient lies beyond every one it could be paired with is left out. What remains is
    copied, so that rows stay contiguous, and solved; then the gradient of the others is brought up to date and they
    are looked at again.
    """
    n = len(beta)
    n_iter = 0
    while n_iter < max_iter:
        steps, violation = _pairs(
            K,
            A,
            B,
            diagonal,
            lower,
            upper,
            beta,
            g,
            tol,
            min(max(n, _STEPS_BETWEEN_LOOKS), max_iter - n_iter),
        )
        n_iter += steps
        if violation <= tol or steps == 0:
            break
        rises, falls = beta < upper, beta > lower
        active = np.flatnonzero((rises & (g <= g[falls].max())) | (falls & (g >= g[rises].min())))
        if n <= _SMALL or len(active) > _WORTH_A_COPY * n:
            continue
        before = beta[active]
        part = beta[active]
        part_K = K[np.ix_(active, active)]
        part_A, part_B = np.ascontiguousarray(A[:, active]), np.ascontiguousarray(B[:, active])
        n_iter += _shrinking(
            part_K,
            part_A,
            part_B,
            diagonal[active],
            lower[active],
            upper[active],
            part,
            g[active],
            tol,
            max_iter - n_iter,
        )
        beta[active] = part
        change = part - before
        moved = change != 0
        rows = active[moved]  # K is symmetric: rows are contiguous, columns are not
        g += change[moved] @ K[rows] - A.T @ (B[:, rows] @ change[moved])
    return n_iter


def violation_of(g: Array, beta: Array, lower: Array, upper: Array) -> float:
    """By how much the best pair still violates optimality."""
    rises, falls = beta < upper, beta > lower
    if not rises.any() or not falls.any():
        return 0.0
    return max(float(g[falls].max() - g[rises].min()), 0.0)
