# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, attr-defined"
"""The compiled loops of the pair solver; see ``_smo`` for the problem.

Each loop goes over a few arrays in order, without a branch, so that several numbers are handled at once. Benchmark
rows: all of ``benchmarks/speed.py``; with numba's own ``max`` for ``larger`` a step takes about twice as long.

Notation
--------
K, A, B     as in ``_smo``; ``row`` and ``other`` are rows i and j of K − Aᵀ B
g           gradient; i has the smallest one among those who may rise, up is minus that, down the largest of the others
rise, fall  0 for those who may move that way and −∞ for the others: added to a gradient, they save a branch
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from equirecourse._numba import njit

__all__ = ["block_of", "larger", "move_pairs", "sum_of_rows"]

_SMALLEST_CURVATURE = 1e-12  # a pair of equal points, or a kernel that is not positive semi-definite
_BLOCK = 512  # entries whose best is found in one vectorised loop
_FLOATS = {"nnan", "nsz", "contract"}  # what LLVM may assume of floats; infinities occur


def _emit_larger(typing_context, a, b):  # noqa: ARG001 - numba's signature
    """The larger of two floats, neither of which is NaN, as one instruction: a loop over it is vectorised.

    numba's own ``max`` becomes a comparison and a choice, in which LLVM sees an order that it must keep.
    """

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        double = arguments[0].type
        of_two = cgutils.ir.FunctionType(double, [double, double])
        function = builder.module.declare_intrinsic("llvm.maxnum", [double], of_two)
        return builder.call(function, arguments, fastmath=("nnan", "nsz"))

    return types.float64(types.float64, types.float64), generate


larger: Any = intrinsic(_emit_larger)


@njit(nogil=True, fastmath=_FLOATS)
def _gains(row, g, fall, diagonal, up, own, gains):
    """Decrease of the objective that a pair of i with each person promises; return the largest."""
    top = 0.0
    for k in range(row.shape[0]):
        difference = larger(fall[k] + g[k] + up, 0.0)
        curvature = larger(own + diagonal[k] - 2.0 * row[k], _SMALLEST_CURVATURE)
        gain = difference * difference / curvature
        gains[k] = gain
        top = larger(top, gain)
    return top


@njit(nogil=True, fastmath=_FLOATS)
def _move_gradient(g, row_i, row_j, move, rise, fall):
    """Bring the gradient up to date; return the best of those who may rise, and of those who may fall."""
    top_up = -np.inf
    top_down = -np.inf
    for k in range(g.shape[0]):
        new = g[k] + move * (row_i[k] - row_j[k])
        g[k] = new
        top_up = larger(top_up, rise[k] - new)
        top_down = larger(top_down, fall[k] + new)
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


@njit(nogil=True, fastmath=_FLOATS)
def _first_choice(beta, g, lower, upper, rise, fall):
    """Fill ``rise`` and ``fall``; who should rise most, by how much, and how much the best of the others may fall."""
    i, up, down = -1, -np.inf, -np.inf
    for k in range(beta.shape[0]):
        rise[k] = 0.0 if beta[k] < upper[k] else -np.inf
        fall[k] = 0.0 if beta[k] > lower[k] else -np.inf
        if rise[k] - g[k] > up:
            up = rise[k] - g[k]
            i = k
        down = max(down, fall[k] + g[k])
    return i, up, down


@njit(nogil=True, fastmath=_FLOATS)
def _second_choice(K, A, B, diagonal, g, fall, i, up, row, gains):
    """Write row i into ``row``; who promises the largest decrease together with i, −1 for nobody."""
    n = g.shape[0]
    best, j = 0.0, -1
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        part = row[start:stop]
        _row(K[i], A, B, i, start, stop, part)
        top = _gains(part, g[start:stop], fall[start:stop], diagonal[start:stop], up, diagonal[i], gains[start:stop])
        if top > best:
            best = top
            j = start
    if j >= 0:
        while gains[j] != best:
            j += 1
    return j


@njit(nogil=True, fastmath=_FLOATS)
def _move_pair(beta, lower, upper, i, j, move):
    """Move i up and j down, as far as their bounds let them; return how far.

    Whoever meets a bound lands on it exactly: one rounding error away from it a coefficient would count as free.
    """
    room_up = upper[i] - beta[i]
    room_down = beta[j] - lower[j]
    if move < room_up and move < room_down:
        beta[i] += move
        beta[j] -= move
    elif room_up <= room_down:
        move = room_up
        beta[j] = lower[j] if room_down == move else beta[j] - move
        beta[i] = upper[i]
    else:
        move = room_down
        beta[i] += move
        beta[j] = lower[j]
    return move


@njit(nogil=True, fastmath=_FLOATS)
def _next_choice(K, A, B, g, row, j, move, rise, fall, other):
    """Update the gradient, and make the next first choice in the same pass."""
    n = g.shape[0]
    i, up, down = -1, -np.inf, -np.inf
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
    return i, up, down


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def move_pairs(K, A, B, diagonal, lower, upper, beta, g, tol, max_iter):
    """Move pairs in place until no pair violates optimality by more than ``tol``; return (steps, violation)."""
    n = beta.shape[0]
    row, gains, rise, fall = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    other = np.empty(min(n, _BLOCK))
    i, up, down = _first_choice(beta, g, lower, upper, rise, fall)
    for step in range(max_iter):
        violation = up + down
        if i < 0 or not violation > tol:
            return step, max(violation, 0.0)
        j = _second_choice(K, A, B, diagonal, g, fall, i, up, row, gains)
        if j < 0:
            return step, violation
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row[j], _SMALLEST_CURVATURE)
        move = _move_pair(beta, lower, upper, i, j, (g[j] - g[i]) / curvature)
        for moved in (i, j):
            rise[moved] = 0.0 if beta[moved] < upper[moved] else -np.inf
            fall[moved] = 0.0 if beta[moved] > lower[moved] else -np.inf
        i, up, down = _next_choice(K, A, B, g, row, j, move, rise, fall, other)
    return max_iter, up + down


@njit(cache=True, nogil=True)
def block_of(K, A, B, rows):
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


@njit(cache=True, nogil=True)
def sum_of_rows(K, rows, factors):
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
