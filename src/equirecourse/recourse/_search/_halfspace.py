"""The cheapest point of a half-space within a box: numbers only.

Notation
--------
d    a move, g the slopes of the score, c the price of a unit of each feature
     min cost(d)   subject to   g·d ≥ need,   low ≤ d ≤ high
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Distance

__all__ = ["cheapest_in_halfspace"]

Array = NDArray[np.float64]


def cheapest_in_halfspace(cost: Distance, slopes: Array, need: Array, low: Array, high: Array, prices: Array) -> Array:
    """Solve the program above for many people at once.

    The box need not hold the point 0. Where the half-space cannot be reached within the box, the answer is the
    point of the box that comes nearest to it.

    Parameters
    ----------
    cost : Distance
        The norm of the c-weighted moves.
    slopes : ndarray of shape (n_people, n_features)
        g.
    need : ndarray of shape (n_people,)
        Right sides.
    low, high : ndarray of shape (n_people, n_features)
        The box; may be infinite.
    prices : ndarray of shape (n_features,)
        c.

    Returns
    -------
    ndarray of shape (n_people, n_features)
        The moves.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.actions import NORMS
    >>> from equirecourse.recourse._search._halfspace import cheapest_in_halfspace
    >>> free = np.full((1, 2), np.inf)
    >>> cheapest_in_halfspace(NORMS["l2"], np.array([[3.0, 4.0]]), np.array([25.0]), -free, free, np.ones(2))
    array([[3., 4.]])
    """
    base = np.clip(0.0, low, high)
    # The end of each feature's useful range.
    far = np.where(slopes > 0, high, np.where(slopes < 0, low, base))
    # By the optimality conditions, each feature is level · rate, clipped to its range. The gain is piecewise linear in
    # the level, and the level that reaches the target lies between two corners.
    if cost.exponent == 1.0:
        return _by_turns(slopes, need, base, far, prices)
    rate = cost.rates(slopes, prices)
    with np.errstate(divide="ignore", invalid="ignore"):
        begins = np.where(far != base, base / rate, np.inf)
        ends = np.where(far != base, far / rate, np.inf)
    gain = np.where(far != base, slopes * rate, 0.0)
    least = np.abs(prices * base).max(axis=1, initial=0.0) if cost.is_largest else np.zeros(len(need))
    level = _level(begins, ends, gain, need - (slopes * base).sum(axis=1), least)
    with np.errstate(invalid="ignore"):  # a rate of 0 times an infinite level
        wish = np.where(far != base, level[:, None] * rate, base)
    return np.clip(wish, np.minimum(base, far), np.maximum(base, far))


def _by_turns(slopes: Array, need: Array, base: Array, far: Array, prices: Array) -> Array:
    """Sums: move the feature with the largest gain per cost as far as it can, then the next."""
    order = np.argsort(-np.abs(slopes) / prices, axis=1, kind="stable")
    with np.errstate(invalid="ignore"):
        gains = np.where(far != base, slopes * (far - base), 0.0)
    sorted_gains = np.take_along_axis(gains, order, axis=1)
    before = np.cumsum(sorted_gains, axis=1)
    before = np.concatenate([np.zeros((len(need), 1)), before[:, :-1]], axis=1)
    rest = need - (slopes * base).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((rest[:, None] - before) / sorted_gains, 0.0, 1.0)
        # Of an infinite gain, the needed part is a distance, not a share.
        sorted_slopes = np.take_along_axis(slopes, order, axis=1)
        distance = np.where(
            np.isinf(sorted_gains),
            np.maximum(rest[:, None] - before, 0.0) / sorted_slopes,
            np.nan_to_num(share) * np.take_along_axis(np.where(far != base, far - base, 0.0), order, axis=1),
        )
    moves = np.zeros_like(slopes)
    np.put_along_axis(moves, order, np.where(sorted_gains > 0, np.nan_to_num(distance), 0.0), axis=1)
    return base + moves


def _level(begins: Array, ends: Array, gain: Array, need: Array, least: Array) -> Array:
    """Smallest level, from ``least`` on, at which Σ gain · (clip(level, begins, ends) − begins) ≥ need."""
    corners = np.concatenate([begins, ends], axis=1)
    turns = np.concatenate([gain, -gain], axis=1)
    order = np.argsort(corners, axis=1, kind="stable")
    corners = np.take_along_axis(corners, order, axis=1)
    steepness = np.cumsum(np.take_along_axis(turns, order, axis=1), axis=1)
    steepness[steepness < 1e-14 * np.abs(gain).sum(axis=1, keepdims=True)] = 0.0  # what has stopped adds nothing
    with np.errstate(invalid="ignore"):
        widths = np.diff(corners, axis=1)
        pieces = np.where(steepness[:, :-1] > 0, steepness[:, :-1] * np.where(widths > 0, widths, 0.0), 0.0)
    reached = np.concatenate([np.zeros((len(need), 1)), np.cumsum(pieces, axis=1)], axis=1)
    # The last corner before enough is gained; at the very last one nothing more can be.
    at = np.minimum((reached < need[:, None]).sum(axis=1) - 1, corners.shape[1] - 1)
    rows = np.arange(len(need))
    enough = at < 0
    at = np.maximum(at, 0)
    slope = steepness[rows, at]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.where(slope > 0, corners[rows, at] + (need - reached[rows, at]) / slope, np.inf)
    return np.maximum(np.where(enough, 0.0, level), least)
