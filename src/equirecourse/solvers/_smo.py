# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
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
copied, without the low rank, into a small matrix that stays in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

__all__ = ["minimise_pairs", "solve_pairs", "times_rows", "violation_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_STEPS_BETWEEN_LOOKS = 1000
_STEPS_BETWEEN_FRESH_GRADIENTS = 500_000
_SMALL = 200  # people below which leaving some out saves nothing
_WORTH_A_COPY = 0.7  # share of the people above which leaving the others out saves nothing
_WORKING, _PER_FREE = 256, 1.5  # size of a working set: at least, and for each free coefficient
_LEFT_OVER = 0.3  # share of the violation at which a working set that leaves violators out is given up
_SMALLEST_CURVATURE = 1e-12  # a pair of equal points, or a kernel that is not positive semi-definite
_BLOCK = 512  # entries whose best is found in one vectorised loop
_FLOATS = {"nnan", "nsz", "contract"}  # what LLVM may assume of floats; infinities occur


@intrinsic
def _larger(typing_context, a, b):  # noqa: ARG001 - numba's signature
    """The larger of two floats, neither of which is NaN, as one instruction: a loop over it is vectorised.

    numba's own ``max`` becomes a comparison and a choice, in which LLVM sees an order that it must keep.
    """

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        double = ir.DoubleType()
        function = builder.module.declare_intrinsic("llvm.maxnum", [double], ir.FunctionType(double, [double, double]))
        return builder.call(function, arguments, fastmath=("nnan", "nsz"))

    return types.float64(types.float64, types.float64), generate


@njit(nogil=True, fastmath=_FLOATS)
def _gains(row, g, fall, diagonal, up, own, gains):
    """Decrease of the objective that a pair of i with each person promises; return the largest."""
    top = 0.0
    for k in range(row.shape[0]):
        difference = _larger(fall[k] + g[k] + up, 0.0)
        curvature = _larger(own + diagonal[k] - 2.0 * row[k], _SMALLEST_CURVATURE)
        gain = difference * difference / curvature
        gains[k] = gain
        top = _larger(top, gain)
    return top


@njit(nogil=True, fastmath=_FLOATS)
def _move_gradient(g, row_i, row_j, move, rise, fall):
    """Bring the gradient up to date; return the best of those who may rise, and of those who may fall."""
    top_up = -np.inf
    top_down = -np.inf
    for k in range(g.shape[0]):
        new = g[k] + move * (row_i[k] - row_j[k])
        g[k] = new
        top_up = _larger(top_up, rise[k] - new)
        top_down = _larger(top_down, fall[k] + new)
    return top_up, top_down


@njit(nogil=True, fastmath=_FLOATS)
def _row(K_i, A, B, i, start, stop, out):
    """Write a part of row i of K − Aᵀ B into ``out``."""
    source = K_i[start:stop]
    for k in range(out.shape[0]):
        out[k] = source[k]
    for q in range(A.shape[0]):
        a = A[q, i]
        b = B[q, start:stop]
        for k in range(out.shape[0]):
            out[k] -= a * b[k]


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _pairs(K, A, B, diagonal, lower, upper, beta, g, tol, max_iter):
    """Move pairs in place until no pair violates optimality by more than ``tol``; return (steps, violation)."""
    n = beta.shape[0]
    row = np.empty(n)
    other = np.empty(min(n, _BLOCK))
    gains = np.empty(n)
    # Added to a gradient, these take those who may not move out of the choice without a branch.
    rise = np.empty(n)
    fall = np.empty(n)
    i = -1
    up = -np.inf  # minus the smallest gradient among those who may rise
    down = -np.inf
    for k in range(n):
        rise[k] = 0.0 if beta[k] < upper[k] else -np.inf
        fall[k] = 0.0 if beta[k] > lower[k] else -np.inf
        if rise[k] - g[k] > up:
            up = rise[k] - g[k]
            i = k
        down = max(down, fall[k] + g[k])
    for step in range(max_iter):
        violation = up + down
        if i < 0 or not violation > tol:
            return step, max(violation, 0.0)

        best = 0.0
        j = -1
        for start in range(0, n, _BLOCK):
            stop = min(start + _BLOCK, n)
            part = row[start:stop]
            _row(K[i], A, B, i, start, stop, part)
            top = _gains(
                part, g[start:stop], fall[start:stop], diagonal[start:stop], up, diagonal[i], gains[start:stop]
            )
            if top > best:
                best = top
                j = start
        if j < 0:
            return step, violation
        while gains[j] != best:
            j += 1

        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row[j], _SMALLEST_CURVATURE)
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
        rise[i] = 0.0 if beta[i] < upper[i] else -np.inf
        fall[i] = 0.0 if beta[i] > lower[i] else -np.inf
        rise[j] = 0.0 if beta[j] < upper[j] else -np.inf
        fall[j] = 0.0 if beta[j] > lower[j] else -np.inf

        # The update of the gradient and the next choice in one pass.
        up = -np.inf
        down = -np.inf
        i = -1
        for start in range(0, n, _BLOCK):
            stop = min(start + _BLOCK, n)
            part = other[: stop - start]
            _row(K[j], A, B, j, start, stop, part)
            top_up, top_down = _move_gradient(
                g[start:stop], row[start:stop], part, move, rise[start:stop], fall[start:stop]
            )
            down = max(down, top_down)
            if top_up > up:
                up = top_up
                i = start
        if i >= 0:
            while rise[i] - g[i] != up:
                i += 1
    return max_iter, up + down


@njit(cache=True, nogil=True)
def _block_of(K, A, B, rows):
    """K − Aᵀ B among some people, as a matrix of its own."""
    m = rows.shape[0]
    block = np.empty((m, m))
    for a in range(m):
        i = rows[a]
        for b in range(m):
            block[a, b] = K[i, rows[b]]
        for q in range(A.shape[0]):
            factor = A[q, i]
            for b in range(m):
                block[a, b] -= factor * B[q, rows[b]]
    return block


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
    return _sum_of_rows(K, rows, change[rows])


@njit(cache=True, nogil=True)
def _sum_of_rows(K, rows, factors):
    n = K.shape[1]
    total = np.zeros(n)
    m = rows.shape[0]
    # Four rows at a time: a pass over ``total`` for each would cost as much as reading the rows.
    for a in range(0, m - m % 4, 4):
        i, j, k, h = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        for b in range(n):
            total[b] += (
                factors[a] * K[i, b] + factors[a + 1] * K[j, b] + factors[a + 2] * K[k, b] + factors[a + 3] * K[h, b]
            )
    for a in range(m - m % 4, m):
        i = rows[a]
        for b in range(n):
            total[b] += factors[a] * K[i, b]
    return total


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
    brought up to date and the next set is chosen. Sets that leave violators out are not solved to the end.
    """
    n = len(beta)
    # From a start at zero most coefficients have a bound to go to, each by a step of its own: a set would only delay.
    n_iter, first = 0, 0 if beta.any() else n
    while n_iter < max_iter:
        rises, falls = beta < upper, beta > lower
        if not rises.any() or not falls.any():
            break
        low, high = float(g[rises].min()), float(g[falls].max())
        if high - low <= tol:
            break
        free = rises & falls
        excess = np.maximum(np.where(rises, high - g, 0.0), np.where(falls, g - low, 0.0))
        working = np.flatnonzero(free | (excess > 0))
        size, inner_tol = max(_WORKING, int(_PER_FREE * free.sum())), tol
        if len(working) > size:
            excess[free] = np.inf
            working = np.sort(np.argpartition(-excess, size)[:size])
            inner_tol = max(tol, _LEFT_OVER * (high - low))
        if n <= _SMALL or n_iter < first or len(working) > _WORTH_A_COPY * n:
            look = min(max(n, _STEPS_BETWEEN_LOOKS), max_iter - n_iter)
            steps, _ = _pairs(K, A, B, diagonal, lower, upper, beta, g, tol, look)
        else:
            block, nothing = _block_of(K, A, B, working), np.empty((0, len(working)))
            part, change = beta[working], np.zeros(n)
            bounds = lower[working], upper[working]
            most = max_iter - n_iter
            steps, _ = _pairs(block, nothing, nothing, diagonal[working], *bounds, part, g[working], inner_tol, most)
            change[working] = part - beta[working]
            beta[working] = part
            g += times_rows(K, change) - A.T @ (B @ change)
        n_iter += steps
        if steps == 0:
            break
    return n_iter


def violation_of(g: Array, beta: Array, lower: Array, upper: Array) -> float:
    """By how much the best pair still violates optimality."""
    rises, falls = beta < upper, beta > lower
    if not rises.any() or not falls.any():
        return 0.0
    return max(float(g[falls].max() - g[rises].min()), 0.0)
