"""Costs that price the distance a feature moves: p-norms with a price per unit, and what is known of them in general.

Notation
--------
d_j, c_j    move of feature j, its price per unit
g_j         slope of a linear score
p, q        exponents of the norm and of its dual, 1/p + 1/q = 1

Among all moves that raise the score by a given amount, the cheapest has, for p > 1,
d_j proportional to sign(g_j) |g_j|^(1/(p−1)) / c_j^q; for p = 1 the feature with the largest |g_j| / c_j moves alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions._costs._cost import Cost

if TYPE_CHECKING:
    from equirecourse.actions._feature import Feature

__all__ = ["Distance"]

Array = NDArray[np.float64]


class Distance(Cost):
    """The p-norm of the distances that features move, each times its price per unit; p from 1 to infinity.

    The distance of an ordered label is counted in places, that of another label is 1.
    """

    is_distance = True

    def _price(self, feature: Feature, start: Array, end: Array) -> Array:
        distance = np.abs(end - start) if feature.has_order else np.ones(np.broadcast(start, end).shape)
        return np.asarray(feature.cost * distance)

    def of_moves(self, moves: Array, prices: Array) -> Array:
        """Cost of moves of numbers (last axis) with given prices per unit."""
        return self.total(np.abs(moves) * prices)

    @property
    def dual_exponent(self) -> float:
        """The exponent q with 1/p + 1/q = 1."""
        if self.exponent == 1.0:
            return np.inf
        return 1.0 if self.is_largest else self.exponent / (self.exponent - 1.0)

    @property
    def _bend(self) -> float:
        """1 / (p − 1)."""
        return 0.0 if self.is_largest else 1.0 / (self.exponent - 1.0)

    def dual_norm(self, reach: Array, axis: int | None = None) -> Any:
        """Most that a linear score rises per unit of cost, from what each feature raises it per unit of its price."""
        found: Any = np.linalg.norm(reach, ord=self.dual_exponent, axis=axis)
        return found

    def rates(self, slopes: Array, prices: Array) -> Array:
        """Moves of the features in the proportions of the cheapest one; only for exponents above 1."""
        rates: Array = np.sign(slopes) * np.abs(slopes) ** self._bend / prices**self.dual_exponent
        return rates

    def direction(self, slopes: Array, prices: Array) -> Array:
        """The cheapest move without limits that raises a linear score by one."""
        reach = np.abs(slopes) / prices
        if self.exponent == 1.0:
            direction = np.zeros_like(slopes)
            direction[reach.argmax()] = 1.0 / slopes[reach.argmax()]
            return direction
        return np.asarray(self.rates(slopes, prices) / float(self.dual_norm(reach)) ** self.dual_exponent)

    def balance(self, gap: Array, rate: float, price: float, other: float) -> Array:
        """The first number's part in the cheapest way for two numbers to close a gap; only for exponents above 1.

        Each unit of the first closes ``rate`` of the gap at ``price``, each unit of the second one at ``other``.
        """
        q, size = self.dual_exponent, abs(rate)
        share = gap * size**self._bend * other**q / (price**q + (size * other) ** q)
        return np.asarray(share * np.sign(rate))

    def of_length(self, length: Array, n_features: Array) -> Array:
        """Least cost of a move of some features whose Euclidean cost is known."""
        if self.exponent <= 2.0:
            return length
        return np.asarray(length / np.sqrt(n_features) ** (1.0 - 2.0 / self.exponent))
