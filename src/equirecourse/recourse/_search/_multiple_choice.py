"""Multiple-choice knapsack: one option per feature, gains that add up, least cost. Numbers only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Cost

__all__ = ["multiple_choice_knapsack"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_HALVINGS = 50


def multiple_choice_knapsack(gains: Array, costs: Array, need: Array, cost: Cost) -> Index:
    """Choose one option per feature so that the gains reach a target at low cost.

    If costs add up, this solves the Lagrangian relaxation: the smallest multiplier whose choice reaches the target.
    That choice is not always optimal, but no choice with at least its gain is cheaper. If the largest cost counts, the
    choice is optimal.

    Parameters
    ----------
    gains, costs : ndarray of shape (n_people, n_features, n_options)
        Gain and cost of each option. The first option of each feature is to stay, at no cost.
    need : ndarray of shape (n_people,)
        The target.
    cost : Cost
        How the costs of features add up.

    Returns
    -------
    ndarray of int, shape (n_people, n_features)
        The option of each feature; the one with the largest gain where the target is out of reach.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.actions import NORMS
    >>> from equirecourse.recourse._search._multiple_choice import multiple_choice_knapsack
    >>> gains, costs = np.array([[[0.0, 2.0], [0.0, 2.0]]]), np.array([[[0.0, 1.0], [0.0, 3.0]]])
    >>> multiple_choice_knapsack(gains, costs, np.array([2.0]), NORMS["l1"])
    array([[1, 0]])
    """
    if cost.is_largest:
        return _within_budget(gains, costs, need)
    price = cost.addends(costs)
    low, high = np.full(len(need), -40.0), np.full(len(need), 40.0)
    # Scale the multipliers, so that those around 1 matter.
    largest = np.abs(gains).max(axis=(1, 2), initial=0.0)
    unit = price.max(axis=(1, 2), initial=0.0) / np.where(largest > 0, largest, 1.0)

    def choose(log_multiplier: Array) -> Index:
        multiplier = unit * np.exp(log_multiplier)
        return np.asarray(np.argmax(multiplier[:, None, None] * gains - price, axis=2))

    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = _total(gains, choose(middle)) >= need
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return choose(high)


def _within_budget(gains: Array, costs: Array, need: Array) -> Index:
    low, high = np.zeros(len(need)), costs.max(axis=(1, 2), initial=0.0)

    def choose(budget: Array) -> Index:
        return np.asarray(np.argmax(np.where(costs <= budget[:, None, None], gains, -np.inf), axis=2))

    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = _total(gains, choose(middle)) >= need
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return choose(high)


def _total(gains: Array, choice: Index) -> Array:
    return np.asarray(np.take_along_axis(gains, choice[:, :, None], axis=2)[:, :, 0].sum(axis=1))
