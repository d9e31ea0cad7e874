# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""One compiled pass of coordinate descent; see ``_coordinate_descent`` for the problem and the notation.

Notation
--------
rows        dense rows; or none, and the values, columns and starts of sparse ones
L, s        the low rank beside the features and its signs, as there; c = Lᵀβ
upper       largest α of each person; ridge and curvature as in α²·ridge/2 and in a step −g / curvature
g           slope of the dual objective along one α
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from equirecourse._numba import njit

__all__ = ["as_rows", "pass_over"]

_SMALLEST_STEP = 1e-12  # gradients below which a step is not worth the axpy; LIBLINEAR's
_FLOATS = {"reassoc", "contract", "nsz", "nnan"}  # what LLVM may assume of sums, so that it adds four at once


def as_rows(X: Any) -> tuple[Any, ...]:
    """The first four arguments of ``pass_over``: dense rows; or none, and the three arrays of sparse ones."""
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
    total = 0.0
    for k in range(begin, end):
        total += values[k] * v[columns[k]]
    return total


@njit(nogil=True, cache=True)
def _sparse_add(move, values, columns, begin, end, v):
    for k in range(begin, end):
        v[columns[k]] += move * values[k]


@njit(nogil=True, cache=True)
def pass_over(
    X, values, columns, starts, low_rank, signs, y, upper, ridge, curvature, alpha, v, c, order, inside, highest, lowest
):
    """Move the coefficients of the first ``inside`` of ``order``, each to the optimum along itself, in place.

    People at a bound whose slope holds them there by more than ``highest`` or ``lowest``, the largest violations of the
    pass before, are put behind the others and left out of the next passes.

    Returns
    -------
    inside, highest, lowest
        How many are left, and the largest and smallest projected slope that was met.
    """
    dense = X.shape[0] > 0
    top, bottom = 0.0, 0.0
    k = 0
    while k < inside:
        i = order[k]
        a = alpha[i]
        score = _dot(X, i, v) if dense else _sparse_dot(values, columns, starts[i], starts[i + 1], v)
        for q in range(signs.shape[0]):
            score += signs[q] * low_rank[i, q] * c[q]
        g = y[i] * score - 1.0 + ridge[i] * a
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
        move = y[i] * (alpha[i] - a)
        for q in range(signs.shape[0]):
            c[q] += move * low_rank[i, q]
        if dense:
            _add(move, X, i, v)
        else:
            _sparse_add(move, values, columns, starts[i], starts[i + 1], v)
    return inside, top, bottom
