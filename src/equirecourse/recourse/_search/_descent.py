"""Constrained descent along a smooth boundary, for many people at once. Numbers only.

Each iteration linearises the score at an accepted point and moves to the cheapest point of the half-space within a
trust region (``cheapest_in_halfspace``). If the score is negative there, a line search returns the last accepted point
on the way. The cost is convex along the way, so that this point is cheaper too: every iterate is accepted and cheaper
than the one before.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Distance
from equirecourse.recourse._search._halfspace import cheapest_in_halfspace

__all__ = ["Surface", "descend"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_ENOUGH = 1e-10  # relative decrease of the cost at which to stop
_CLOSE = 2e-3  # tolerance of the line search, relative to the step


class Surface(Protocol):
    """A score as a function of moves, one row per person; accepted points are not negative."""

    def values(self, rows: Index, moves: Array) -> Array:
        """Scores after moves."""

    def gradients(self, rows: Index, moves: Array) -> Array:
        """Gradients of the scores with respect to the moves."""


def descend(
    surface: Surface,
    cost: Distance,
    moves: Array,
    low: Array,
    high: Array,
    prices: Array,
    *,
    rounds: int,
    until: Any = None,
) -> Array:
    """Make accepted moves cheaper.

    Parameters
    ----------
    surface : Surface
        The score.
    cost : Distance
        What moves cost, with ``prices``.
    moves : ndarray of shape (n_rows, n_features)
        First iterates. A row whose score is negative is left as it is.
    low, high : ndarray of shape (n_rows, n_features)
        Limits of the moves; equal where a feature stays.
    prices : ndarray of shape (n_features,)
        Cost of a unit.
    rounds : int
        Maximum number of iterations.
    until : callable, optional
        Called before each iteration; true stops.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Accepted moves, none costlier than before.
    """
    moves = moves.copy()
    current_cost = cost.of_moves(moves, prices)
    value = surface.values(np.arange(len(moves)), moves)
    radius = 0.5 * current_cost
    active = np.flatnonzero((value >= 0) & (current_cost > 0))
    for _ in range(rounds):
        if len(active) == 0 or (until is not None and until()):
            break
        at = moves[active]
        slopes = surface.gradients(active, at)
        need = (slopes * at).sum(axis=1) - value[active]
        way = radius[active, None] / prices
        near_low, near_high = np.maximum(low[active], at - way), np.minimum(high[active], at + way)
        goal = cheapest_in_halfspace(cost, slopes, need, near_low, near_high, prices)
        goal_cost = cost.of_moves(goal, prices)
        worth = (goal_cost < current_cost[active] * (1.0 - _ENOUGH)) & (slopes != 0.0).any(axis=1)
        active, at, goal, goal_cost = active[worth], at[worth], goal[worth], goal_cost[worth]
        if len(active) == 0:
            break
        found, found_value = _last_accepted(surface, active, at, value[active], goal)
        found_cost = cost.of_moves(found, prices)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = (current_cost[active] - found_cost) / (current_cost[active] - goal_cost)
        better = found_cost < current_cost[active]
        rows = active[better]
        moves[rows], current_cost[rows], value[rows] = found[better], found_cost[better], found_value[better]
        radius[active] *= np.where(kept > 0.8, 2.0, np.where(kept < 0.4, 0.35, 1.0))
        active = active[radius[active] > _ENOUGH * current_cost[active]]
    return moves


def _last_accepted(
    surface: Surface, rows: Index, inside: Array, inside_value: Array, goal: Array, halvings: int = 7
) -> tuple[Array, Array]:
    """Line search: the farthest accepted point found between an accepted point and a goal, and its score."""
    goal_value = surface.values(rows, goal)
    # Places between the accepted point (0) and the goal (1).
    good, bad = np.where(goal_value >= 0, 1.0, 0.0), np.ones(len(rows))
    good_value, bad_value = np.where(goal_value >= 0, goal_value, inside_value), goal_value.copy()
    weight = np.ones(len(rows))
    open_ = np.flatnonzero(goal_value < 0)
    for _ in range(halvings):
        if len(open_) == 0:
            break
        # Regula falsi with the Illinois modification, so that the accepted end converges as well.
        up, down = good_value[open_] * weight[open_], bad_value[open_]
        share = np.clip(up / np.maximum(up - down, 1e-300), 0.01, 0.99)
        # Slightly short of the estimated crossing: only an accepted point is of use.
        place = good[open_] + (0.999 * share) * (bad[open_] - good[open_])
        tried = surface.values(rows[open_], inside[open_] + place[:, None] * (goal[open_] - inside[open_]))
        yes = tried >= 0
        at = open_[yes]
        good[at], good_value[at], weight[at] = place[yes], tried[yes], 1.0
        at = open_[~yes]
        bad[at], bad_value[at] = place[~yes], tried[~yes]
        weight[at] *= 0.5
        # The next iteration begins here, so that a rough line search is enough.
        left = good_value[open_] / np.maximum(good_value[open_] - bad_value[open_], 1e-300)
        open_ = open_[(left > _CLOSE) & (bad[open_] - good[open_] > _CLOSE)]
    return inside + good[:, None] * (goal - inside), good_value
