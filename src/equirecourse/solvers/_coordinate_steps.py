# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""The compiled loops of coordinate descent; see ``_coordinate_descent`` for the problem and the notation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from equirecourse._numba import njit

__all__ = ["as_rows", "descend"]

_SMALLEST_STEP = 1e-12  # gradients below which a step is not worth the axpy
_FLOATS = {"reassoc", "contract", "nsz", "nnan"}  # what LLVM may assume of sums, so that it adds four at once


def as_rows(X: Any) -> tuple[Any, ...]:
    """The first four arguments of ``descend``: dense rows; or none, and the three arrays of sparse ones."""
    if sparse.issparse(X):
        # Without a sign: numba asks of every signed index whether it counts from the end.
        return np.empty((0, 0)), X.data, X.indices.view(f"u{X.indices.itemsize}"), X.indptr
    return X, np.empty(0), np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int32)


@njit(nogil=True, cache=True, fastmath=_FLOATS)
def _dot(X, i, v):
    total = 0.0
    for k in range(v.shape[0]):
        total += X[i, k] * v[k]
    return total


@njit(nogil=True, cache=True, fastmath=_FLOATS)
def _add(move, X, i, v):
    for k in range(v.shape[0]):
        v[k] += move * X[i, k]


@njit(nogil=True, cache=True)
def _sparse_dot(values, columns, begin, end, v):
    """Four sums at a time by hand: what a compiler makes of scattered numbers, gathers, is slower."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    paired = end - (end - begin) % 4
    for k in range(begin, paired, 4):
        a += values[k] * v[columns[k]]
        b += values[k + 1] * v[columns[k + 1]]
        c += values[k + 2] * v[columns[k + 2]]
        d += values[k + 3] * v[columns[k + 3]]
    for k in range(paired, end):
        a += values[k] * v[columns[k]]
    return (a + b) + (c + d)


@njit(nogil=True, cache=True)
def _random_below(generator, bound):
    """A number of 0 ... bound − 1 (xorshift; bound is far below 2³²)."""
    state = generator[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    generator[0] = state
    return np.int64(((state >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@njit(nogil=True, cache=True)
def descend(
    X,
    values,
    columns,
    starts,
    low_rank,
    signs,
    y,
    upper,
    ridge,
    curvature,
    alpha,
    v,
    c,
    tol,
    passes,
    order,
    active,
    limits,
    generator,
):
    """Passes in random order, in place, until one over everybody found no step longer than ``tol``.

    People at a bound whose gradient holds them there, by more than anybody violated optimality in the pass before, are
    left out of the next ones: the first ``active[0]`` of ``order`` are in, and ``limits`` are the last violations.

    Returns
    -------
    visits : int
        How many coefficients were looked at.
    gain : float
        Decrease of the dual objective.
    done : bool
        Whether the passes ended before ``passes`` of them.
    """
    n = y.shape[0]
    dense = X.shape[0] > 0
    visits, gain = 0, 0.0
    for _ in range(passes):
        inside = active[0]
        highest, lowest = limits[0], limits[1]
        visits += inside
        for k in range(inside - 1):
            other = k + _random_below(generator, inside - k)
            order[k], order[other] = order[other], order[k]
        top, bottom = 0.0, 0.0
        k = 0
        while k < inside:
            i = order[k]
            label, a = y[i], alpha[i]
            score = _dot(X, i, v) if dense else _sparse_dot(values, columns, starts[i], starts[i + 1], v)
            for q in range(signs.shape[0]):
                score += signs[q] * low_rank[i, q] * c[q]
            g = label * score - 1.0 + ridge[i] * a
            if (a == 0.0 and g > highest) or (a == upper[i] and g < lowest):
                inside -= 1
                order[k], order[inside] = order[inside], order[k]
                continue
            k += 1
            if (a == 0.0 and g > 0.0) or (a == upper[i] and g < 0.0):
                continue
            top, bottom = max(top, g), min(bottom, g)
            if abs(g) <= _SMALLEST_STEP:
                continue
            alpha[i] = min(max(a - g / curvature[i], 0.0), upper[i])
            change = alpha[i] - a
            gain -= change * (g + 0.5 * curvature[i] * change)
            move = label * change
            for q in range(signs.shape[0]):
                c[q] += move * low_rank[i, q]
            if dense:
                _add(move, X, i, v)
            else:
                for e in range(starts[i], starts[i + 1]):
                    v[columns[e]] += move * values[e]
        if top - bottom <= tol:
            if inside == n:
                return visits, gain, True
            active[0], limits[0], limits[1] = n, np.inf, -np.inf
            continue
        active[0] = inside
        limits[0] = top if top > 0.0 else np.inf
        limits[1] = bottom if bottom < 0.0 else -np.inf
    return visits, gain, False
