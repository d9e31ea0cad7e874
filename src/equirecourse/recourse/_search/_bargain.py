"""The cheapest choice of one option per feature, if what they add to the score simply adds up: numbers only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Cost

__all__ = ["cheapest_options"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_HALVINGS = 50


def cheapest_options(gains: Array, costs: Array, need: Array, cost: Cost) -> Index:
    """Choose an option of each feature so that gains add up to the need at little cost.

    Where costs add up, the choice is the one of a Lagrange multiplier, the smallest that is enough: not always the
    very cheapest, and never far from it. Where the largest counts, it is the cheapest.

    Parameters
    ----------
    gains, costs : ndarray of shape (n_people, n_features, n_options)
        What each option adds to the score and costs. The first option of each feature costs nothing: staying.
    need : ndarray of shape (n_people,)
        What the gains should add up to.
    cost : Cost
        How costs of features make up the cost.

    Returns
    -------
    ndarray of int, shape (n_people, n_features)
        The option of each feature; the one that gains most where the need is out of reach.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.actions import NORMS
    >>> from equirecourse.recourse._search._bargain import cheapest_options
    >>> gains, costs = np.array([[[0.0, 2.0], [0.0, 2.0]]]), np.array([[[0.0, 1.0], [0.0, 3.0]]])
    >>> cheapest_options(gains, costs, np.array([2.0]), NORMS["l1"])
    array([[1, 0]])
    """
    if cost.is_largest:
        return _within_budget(gains, costs, need)
    price = cost.addends(costs)
    low, high = np.full(len(need), -40.0), np.full(len(need), 40.0)
    # On the scale of the problem, so that multipliers around 1 matter.
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
