r"""Costs in narrow cells: what is kept of a hundred million of them, in a few thousand numbers that add up.

A cell holds the costs of :math:`(\gamma^{k-1}, \gamma^k]` with :math:`\gamma = (1 + \alpha) / (1 - \alpha)`, a bucket
of DDSketch (Masson, Rim and Lee, 2019). Its middle :math:`m` is within :math:`\alpha` of each of its costs, relatively
and with certainty. Besides their number a cell keeps :math:`\sum (c/m - 1)` and :math:`\sum (c/m - 1)^2`: means and
variances stay exact, and so do the first two moments of whatever is resampled from cells.

Why no library's sketch: KLL of Apache DataSketches draws random bits that cannot be seeded, so that no result could be
repeated; ``ddsketch`` takes one value at a time (2 µs each) and keeps no moments; a t-digest states no error.
Cells are counts: they do not depend on how people were divided, nor on the order in which the parts came.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equirecourse.metrics._resampling import WeightedCosts

__all__ = ["RELATIVE_ERROR", "Cells", "cells_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

RELATIVE_ERROR = 0.001
_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_LOG = np.log(_GAMMA)
_ZERO = np.iinfo(np.int32).min  # the cell of costs of 0, which have no logarithm
_SAME = 1e-12  # relative spread of a cell from which on its costs are not all the same
_CLUSTERS = 256  # shares of the people that clusters of cells are cut at, besides
_WIDTH = 48  # cells, whose ends are 10 % apart: no cluster is wider


@dataclass(frozen=True)
class Cells:
    """The cells of one group of finite costs, in the order of the costs.

    Attributes
    ----------
    key : ndarray of int
        Which cell; only those that hold somebody are kept.
    count : ndarray of int
        How many costs it holds.
    shift, square : ndarray
        Sum of the relative deviations from the middle of the cell, and of their squares.
    """

    key: NDArray[np.int32]
    count: Ints
    shift: Array
    square: Array

    @property
    def n(self) -> int:
        """How many costs there are."""
        return int(self.count.sum())

    @cached_property
    def middle(self) -> Array:
        """A value within ``RELATIVE_ERROR`` of every cost of the cell."""
        with np.errstate(over="ignore"):
            middle = np.exp(_LOG * self.key.astype(np.float64)) * (2 / (1 + _GAMMA))
        return np.where(self.key == _ZERO, 0.0, np.minimum(middle, np.finfo(np.float64).max))

    @cached_property
    def means(self) -> Array:
        """Mean of the costs of each cell."""
        return np.asarray(self.middle * (1 + self.shift / self.count))

    @cached_property
    def _spread(self) -> Array:
        """Variance of the costs of each cell, relative to the square of its middle; 0 where all are the same."""
        relative = self.square / self.count - (self.shift / self.count) ** 2
        return np.where(relative > _SAME**2, relative, 0.0)

    @property
    def variances(self) -> Array:
        """Variance of the costs of each cell (of the population that they are)."""
        with np.errstate(over="ignore"):
            return np.asarray(self._spread * self.middle**2)

    @property
    def mean(self) -> float:
        """Mean of all costs, NaN if there are none."""
        return float(self.count @ self.means) / self.n if len(self.count) else float("nan")

    @property
    def largest(self) -> float:
        """The largest cost, as far as cells know it."""
        return float(self._values[-1]) if len(self.count) else float("nan")

    @cached_property
    def _values(self) -> Array:
        """What stands for a cost of the cell; the cost itself where all of them are the same."""
        return np.where(self._spread > 0, self.middle, self.means)

    def ordered(self, places: NDArray[np.intp]) -> Array:
        """The costs at some places of their order, from 0; infinite past the last one."""
        ends = np.cumsum(self.count)
        found = np.append(self._values, np.inf)
        return np.asarray(found[np.searchsorted(ends, places, side="right")])

    def quantiles(self, levels: Array, n_infinite: int = 0) -> Array:
        """Interpolated quantiles, with some infinite costs at the end; each within ``RELATIVE_ERROR``, NaN of nobody.

        Two neighbours of the order that are each as close as that have everything between them as close.
        """
        n = self.n + n_infinite
        if n == 0:
            return np.full(len(levels), np.nan)
        # Where NumPy looks: a level of 0.9 of 11 costs is the tenth, in spite of rounding.
        place = np.asarray(levels) * (n - 1)
        place = np.where(np.abs(place - np.round(place)) < 1e-9 * n, np.round(place), place)
        low = np.floor(place).astype(np.intp)
        below, above = self.ordered(low), self.ordered(np.minimum(low + 1, n - 1))
        part = place - low
        with np.errstate(invalid="ignore"):
            between = below + part * (above - below)
        return np.where(part == 0, below, np.where(np.isinf(above), above, between))

    def clusters(self) -> WeightedCosts:
        """Neighbouring cells put together, a few hundred in all: their people, means and variances are exact."""
        before = np.cumsum(self.count) - self.count
        share = (before * _CLUSTERS) // max(self.n, 1)
        block = self.key.astype(np.int64) // _WIDTH
        fresh = np.ones(len(self.key), dtype=bool)
        fresh[1:] = (np.diff(share) > 0) | (np.diff(block) > 0)
        starts = np.flatnonzero(fresh)
        if len(starts) == 0:
            return WeightedCosts(self.count, self.means, self.variances)
        count = np.add.reduceat(self.count, starts)
        mean = np.add.reduceat(self.count * self.means, starts) / count
        apart = self.means - np.repeat(mean, np.diff(np.append(starts, len(self.key))))
        variance = np.add.reduceat(self.count * (self.variances + apart**2), starts) / count
        return WeightedCosts(count, mean, variance)


def cells_of(costs: Array) -> tuple[NDArray[np.int32], Array]:
    """The cell of each finite cost, and its relative deviation from the middle of that cell."""
    positive = costs > 0
    key = np.full(len(costs), _ZERO, dtype=np.int32)
    key[positive] = np.ceil(np.log(costs[positive]) / _LOG)
    middle = Cells(key, np.empty(0, np.int64), np.empty(0), np.empty(0)).middle
    return key, np.divide(costs - middle, middle, out=np.zeros(len(costs)), where=positive)
