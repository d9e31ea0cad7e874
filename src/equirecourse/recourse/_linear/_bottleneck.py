"""The smallest largest cost (L∞, the largest percentile shift) of a linear score: numbers only, no models.

More budget never hurts, so a bisection over the budget finds the optimum: with a given budget every feature goes as
far as it can. The kinds of moves are those of ``_knapsack``.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# These functions run as they are or compiled (``_compiled``); numba types them.

from __future__ import annotations

import numpy as np

from equirecourse.recourse._linear._knapsack import LIST
from equirecourse.recourse._linear._numbers import CONTINUOUS, LATTICE, order_of

__all__ = ["bottleneck"]


def _bottleneck_gain(budget, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice):
    """Largest gain with a budget; fills in the distance, or the place in the list, that each feature moves to."""
    total = 0.0
    for j in range(len(kind)):
        distance[j] = 0.0
        choice[j] = -1
        if kind[j] == CONTINUOUS:
            distance[j] = min(budget / price[j], last[j])
            total += slope[j] * distance[j]
        elif kind[j] == LATTICE:
            room = min(budget / price[j], last[j])
            if room >= first[j]:
                # A hair of rounding must not cost a whole step.
                distance[j] = first[j] + step[j] * np.floor((room - first[j]) / step[j] + 1e-9)
                total += slope[j] * distance[j]
        elif kind[j] == LIST:
            best = 0.0
            for o in range(begin[j], end[j]):
                if costs[o] <= budget and gains[o] > best:
                    best = gains[o]
                    choice[j] = o
            total += best
    return total


def _bottleneck_one(need, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice):
    """Smallest budget whose gain is enough, infinite if none is; ``distance`` and ``choice`` hold its moves."""
    low, high = 0.0, 1.0
    reached = _bottleneck_gain(
        np.inf, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice
    )
    if not reached >= need:
        return np.inf
    while (
        _bottleneck_gain(high, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice) < need
    ):
        low, high = high, 2.0 * high
        if high > 1e300:
            return np.inf
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high or high - low <= 1e-15 * high:
            break
        if (
            _bottleneck_gain(middle, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice)
            >= need
        ):
            high = middle
        else:
            low = middle
    _bottleneck_gain(high, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice)
    return high


def _keep_the_fewest(need, kind, slope, gains, distance, choice):
    """Of moves that together gain enough, keep the strongest few: the budget says nothing against more, people do."""
    m = len(kind)
    gain = np.zeros(m)
    for j in range(m):
        if choice[j] >= 0:
            gain[j] = gains[choice[j]]
        elif distance[j] > 0.0:
            gain[j] = slope[j] * distance[j]
    order = order_of(-gain)
    total = 0.0
    for place in range(m):
        j = order[place]
        if total >= need:
            distance[j] = 0.0
            choice[j] = -1
        else:
            total += gain[j]


def bottleneck(need, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice):
    """Smallest largest cost for everybody; arrays are (people, features), lists are (people, moves).

    Returns
    -------
    ndarray of float
        The budget each person needs, infinite where no budget is enough. ``distance`` and ``choice`` are filled in.
    """
    budgets = np.empty(len(need))
    for i in range(len(need)):
        budgets[i] = _bottleneck_one(
            need[i], kind[i], slope, price, first[i], last[i], step, begin, end, costs[i], gains[i],
            distance[i], choice[i],
        )  # fmt: skip
        if budgets[i] < np.inf:
            _keep_the_fewest(need[i], kind[i], slope, gains[i], distance[i], choice[i])
    return budgets
