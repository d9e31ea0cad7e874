"""What a cost is: the price of each feature's move, and how prices make up the cost of a whole change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equirecourse.actions._feature import Feature

__all__ = ["Cost"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cost(ABC):
    r"""A way to price a change: the p-norm of the prices of its features' moves.

    The cost of a change is :math:`(\sum_j c_j^p)^{1/p}`. A subclass says what the move of one feature costs,
    :math:`c_j`. That price must not fall as the feature moves farther in one direction: engines rely on it. They learn
    what else is true of a cost from its attributes, and do not ask for its name.

    Parameters
    ----------
    name : str
        What ``norm=`` calls it.
    exponent : float
        p: 1 for a sum, 2 for the root of the sum of squares, infinite for the largest.
    description : str
        The same in words, for labels of figures.

    Attributes
    ----------
    is_distance : bool
        Whether a number pays its own price per unit (:attr:`Feature.cost`), wherever it starts. Such a cost is a
        :class:`Distance`.
    is_percentile : bool
        Whether a move is priced by the ranks that it leads from and to (:attr:`Feature.percentiles`).
    is_rank_difference : bool
        Whether the price of an ordered feature is the difference of the two ranks itself.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.actions import NORMS
    >>> NORMS["linf"].is_largest, NORMS["linf"].is_distance
    (True, True)
    >>> NORMS["l2"].total(np.array([[3.0, 4.0]])).tolist()
    [5.0]
    """

    name: str
    exponent: float
    description: str

    is_distance: ClassVar[bool] = False
    is_percentile: ClassVar[bool] = False
    is_rank_difference: ClassVar[bool] = False

    # --- prices of single features --------------------------------------------------------------------------------

    def of_move(self, feature: Feature, start: Any, end: Any) -> Array:
        """Price of moving one feature, element by element.

        Parameters
        ----------
        feature : Feature
            What moves.
        start, end : float or array
            Numbers, or codes of labels, before and after.

        Returns
        -------
        ndarray
            Prices; 0 where nothing moves.
        """
        start, end = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        moved = (start != end) & ~(np.isnan(start) & np.isnan(end))
        # What does not move costs nothing, whether or not anybody knows where people stand in it.
        return np.where(moved, self._price(feature, start, end), 0.0) if moved.any() else np.zeros(moved.shape)

    @abstractmethod
    def _price(self, feature: Feature, start: Array, end: Array) -> Array:
        """Price of moves; whatever comes out where nothing moves is not used."""

    def grid(self, feature: Feature, start: Array) -> Array | None:  # noqa: ARG002
        """Values at which searches and programs try a number, given where people are; None if any number will do."""
        return None

    def grid_is_whole(self, feature: Feature) -> bool:  # noqa: ARG002
        """Whether a grid, if there is one, holds every value that the feature may take."""
        return True

    # --- prices together ------------------------------------------------------------------------------------------

    @property
    def is_largest(self) -> bool:
        """Whether only the largest price counts; else prices add up, after :meth:`addends`."""
        return self.exponent == np.inf

    @property
    def is_euclidean(self) -> bool:
        """Whether it is the (weighted) length of the move."""
        return self.is_distance and self.exponent == 2.0

    def addends(self, parts: Any) -> Array:
        """What of each price adds up: its p-th power; the price itself for the largest."""
        if self.exponent == 1.0 or self.is_largest:
            return np.asarray(parts)
        return np.asarray(np.square(parts) if self.exponent == 2.0 else np.power(parts, self.exponent))

    def from_sum(self, addends: Any) -> Array:
        """The cost whose addends have a given sum; the inverse of :meth:`addends`."""
        if self.exponent == 1.0 or self.is_largest:
            return np.asarray(addends)
        return np.asarray(np.sqrt(addends) if self.exponent == 2.0 else np.power(addends, 1.0 / self.exponent))

    def total(self, parts: Array) -> Array:
        """Cost of a change from the prices of its features (last axis)."""
        if self.is_largest:
            return np.asarray(parts.max(axis=-1, initial=0.0))
        return self.from_sum(self.addends(parts).sum(axis=-1))

    def shares(self, parts: Array) -> Array:
        """What each feature adds to the cost; the shares of a row sum to its cost.

        A sum is shared out as it is, a p-norm in proportion to the addends, a largest price belongs to the (first)
        feature that has it.
        """
        if self.is_largest:
            shares = np.zeros_like(parts)
            rows, largest = np.arange(len(parts)), parts.argmax(axis=1)
            shares[rows, largest] = parts[rows, largest]
            return shares
        addends = self.addends(parts)
        if self.exponent == 1.0:
            return addends
        rest = self.total(parts)[:, None] ** (self.exponent - 1.0)
        return np.asarray(np.divide(addends, rest, out=np.zeros_like(addends), where=rest > 0))
