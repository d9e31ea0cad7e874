# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""The compiled passes of the interior point; see ``_interior_point`` for the problem and the notation.

Each pass goes over the people once, some hundred at a time, and does all that is to be done for them while their
numbers are in the cache. V has a row for each feature, so that every loop runs over people, who are handled four at a
time; few features would leave no room for that. Passes over disjoint people may run side by side: V is that of
everybody, the other arrays are those of the people from ``first`` on.
"""

from __future__ import annotations

import numpy as np

from equirecourse._numba import njit
from equirecourse.solvers._pair_steps import larger

__all__ = ["begin", "correct", "finish", "move", "try_out"]

_BLOCK = 256  # people whose numbers stay in the cache from one loop to the next
_FLOATS = {"nnan", "nsz", "contract", "reassoc"}  # what LLVM may assume of floats; sums may be taken in any order


@njit(nogil=True, fastmath=_FLOATS)
def _scores(V, start, h, out):
    """Vᵀ h of the people from ``start`` on, two features at a time."""
    d, n = V.shape[0], out.shape[0]
    for i in range(n):
        out[i] = 0.0
    for k in range(0, d - d % 2, 2):
        one, two, first, second = V[k, start : start + n], V[k + 1, start : start + n], h[k], h[k + 1]
        for i in range(n):
            out[i] += first * one[i] + second * two[i]
    for k in range(d - d % 2, d):
        one, first = V[k, start : start + n], h[k]
        for i in range(n):
            out[i] += first * one[i]


@njit(nogil=True, fastmath=_FLOATS)
def _dot(one, other):
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@njit(nogil=True, fastmath=_FLOATS)
def _add_products(V, start, factors, total):
    """Add V factors to ``total``, for the people from ``start`` on."""
    n = factors.shape[0]
    for k in range(V.shape[0]):
        total[k] += _dot(V[k, start : start + n], factors)


@njit(nogil=True, fastmath=_FLOATS)
def _add_gram(V, start, weights, scaled, gram):
    """Add the lower triangle of V diag(weights) Vᵀ to ``gram``, for the people from ``start`` on."""
    n = weights.shape[0]
    for k in range(V.shape[0]):
        feature = V[k, start : start + n]
        for i in range(n):
            scaled[i] = feature[i] * weights[i]
        for j in range(k + 1):
            gram[k, j] += _dot(V[j, start : start + n], scaled)


@njit(nogil=True, fastmath=_FLOATS)
def _begin(y, C, gamma, z, w, scores, b, inverse, right, by_label, by_right, sums):
    gap, total, labelled, through, both = 0.0, 0.0, 0.0, 0.0, 0.0
    worst, highest = 0.0, 0.0
    for i in range(y.shape[0]):
        s = C[i] - gamma[i]
        right[i] = 1.0 - scores[i] - y[i] * b
        dual = w[i] - z[i] - right[i]
        inverse[i] = gamma[i] * s / (z[i] * s + w[i] * gamma[i])
        by_label[i] = inverse[i] * y[i]
        by_right[i] = inverse[i] * right[i]
        gap += gamma[i] * z[i] + s * w[i]
        total += gamma[i]
        labelled += y[i] * gamma[i]
        through += inverse[i]
        both += by_label[i] * right[i]
        worst = larger(worst, abs(dual))
        highest = larger(highest, abs(scores[i]))
    sums[0] += gap
    sums[1] += total
    sums[2] += labelled
    sums[3] += through
    sums[4] += both
    sums[5] = larger(sums[5], worst)
    sums[6] = larger(sums[6], highest)


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def begin(V, first, y, C, gamma, z, w, inverse, right, scores, direction, exact, b, gram):
    """What the point is worth, 1/D, the right side of the predictor, and V times y/D and that side over D.

    The scores are computed anew where ``exact``, and a ``gram`` of the right size becomes V D⁻¹ Vᵀ. Of the sums, the
    last two are largest values: residual and score.
    """
    d, n = V.shape[0], y.shape[0]
    label_down, right_down, sums = np.zeros(d), np.zeros(d), np.zeros(7)
    by_label, by_right = np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        at = slice(start, min(start + _BLOCK, n))
        m = at.stop - at.start
        if exact:
            _scores(V, first + start, direction, scores[at])
        _begin(
            y[at], C[at], gamma[at], z[at], w[at], scores[at], b,
            inverse[at], right[at], by_label[:m], by_right[:m], sums,
        )  # fmt: skip
        _add_products(V, first + start, by_label[:m], label_down)
        _add_products(V, first + start, by_right[:m], right_down)
        if gram.shape[0] == d:
            _add_gram(V, first + start, inverse[at], by_label[:m], gram)
    return sums, label_down, right_down


@njit(nogil=True, fastmath=_FLOATS)
def _try_out(y, C, gamma, z, w, inverse, right, step_b, along, step):
    top = -np.inf  # the fastest anything falls, relative to itself
    bent = 0.0
    for i in range(y.shape[0]):
        s = C[i] - gamma[i]
        step[i] = inverse[i] * (right[i] - step_b * y[i] - along[i])
        up, down = step[i] / gamma[i], step[i] / s
        step_z, step_w = -z[i] * (1.0 + up), -w[i] * (1.0 - down)
        bent += step[i] * (step_z - step_w)
        top = larger(top, larger(larger(-up, down), larger(1.0 + up, 1.0 - down)))
    return top, bent


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def try_out(V, first, y, C, gamma, z, w, inverse, right, h, step_b, step):
    """The predictor's step of γ; how fast anything falls on it, and by how much the gap bends."""
    n = y.shape[0]
    along = np.empty(_BLOCK)
    top, bent = -np.inf, 0.0
    for start in range(0, n, _BLOCK):
        at = slice(start, min(start + _BLOCK, n))
        m = at.stop - at.start
        _scores(V, first + start, h, along[:m])
        fast, more = _try_out(
            y[at], C[at], gamma[at], z[at], w[at], inverse[at], right[at], step_b, along[:m], step[at]
        )
        top = larger(top, fast)
        bent += more
    return top, bent


@njit(nogil=True, fastmath=_FLOATS)
def _correct(y, C, gamma, z, w, inverse, right, step, target, at_lower, at_upper, by_right):
    both = 0.0
    for i in range(y.shape[0]):
        s = C[i] - gamma[i]
        step_z, step_w = -z[i] * (1.0 + step[i] / gamma[i]), -w[i] * (1.0 - step[i] / s)
        more, less = (target - step[i] * step_z) / gamma[i], (target + step[i] * step_w) / s
        at_lower[i], at_upper[i] = more - z[i], less - w[i]
        right[i] += more - less
        by_right[i] = inverse[i] * right[i]
        both += by_right[i] * y[i]
    return both


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def correct(V, first, y, C, gamma, z, w, inverse, right, step, target, at_lower, at_upper):
    """Make the right side that of the corrector; what γz and sw are to gain, over γ and s; and the products again."""
    d, n = V.shape[0], y.shape[0]
    right_down, both = np.zeros(d), 0.0
    by_right = np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        at = slice(start, min(start + _BLOCK, n))
        m = at.stop - at.start
        both += _correct(
            y[at], C[at], gamma[at], z[at], w[at], inverse[at], right[at], step[at], target,
            at_lower[at], at_upper[at], by_right[:m],
        )  # fmt: skip
        _add_products(V, first + start, by_right[:m], right_down)
    return both, right_down


@njit(nogil=True, fastmath=_FLOATS)
def _finish(y, C, gamma, z, w, inverse, right, step_b, along, step, at_lower, at_upper):
    top = -np.inf
    for i in range(y.shape[0]):
        s = C[i] - gamma[i]
        step[i] = inverse[i] * (right[i] - step_b * y[i] - along[i])
        up, down = step[i] / gamma[i], step[i] / s
        at_lower[i] -= z[i] * up
        at_upper[i] += w[i] * down
        top = larger(top, larger(larger(-up, down), larger(-at_lower[i] / z[i], -at_upper[i] / w[i])))
    return top


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def finish(V, first, y, C, gamma, z, w, inverse, right, h, step_b, step, at_lower, at_upper, along):
    """The steps of γ, z and w, the latter two in place of what they are to gain; and how fast anything falls."""
    n = y.shape[0]
    top = -np.inf
    for start in range(0, n, _BLOCK):
        at = slice(start, min(start + _BLOCK, n))
        _scores(V, first + start, h, along[at])
        fast = _finish(
            y[at], C[at], gamma[at], z[at], w[at], inverse[at], right[at], step_b, along[at], step[at],
            at_lower[at], at_upper[at],
        )  # fmt: skip
        top = larger(top, fast)
    return top


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def move(C, old, new, reach, step, step_z, step_w, along):
    """Write the point that is ``reach`` steps from ``old`` into ``new``; rows are γ, z, w and the scores."""
    for i in range(C.shape[0]):
        value = old[0, i] + reach * step[i]
        value = value if value > 1e-300 else 1e-300
        most = C[i] * (1.0 - 2.0**-52)
        new[0, i] = value if value < most else most
        new[1, i] = old[1, i] + reach * step_z[i]
        new[2, i] = old[2, i] + reach * step_w[i]
        new[3, i] = old[3, i] + reach * along[i]
