"""Costs that price how many people a move passes on the way: the two costs of Ustun, Spangher and Liu (2019)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions._costs._cost import Cost

if TYPE_CHECKING:
    from equirecourse.actions._feature import Feature, Percentiles

__all__ = ["LogShift", "MaxShift"]

Array = NDArray[np.float64]

_FEW = 1000  # values of a number that are all listed
_BEYOND = np.array([1.0, 10.0, 100.0])  # how far beyond everybody to look, in steps, or in ranges of what people have


class _Shift(Cost):
    """A price for the way from one rank to another; without an order, the rarer the new label, the dearer."""

    is_percentile = True

    @abstractmethod
    def _between(self, before: Array, after: Array) -> Array:
        """Price of a way between two ranks."""

    @abstractmethod
    def _of_share(self, share: Array) -> Array:
        """Price of a label without an order, by the share of people who have it."""

    def _price(self, feature: Feature, start: Array, end: Array) -> Array:
        known = self._percentiles(feature)
        if feature.has_order:
            return self._between(known.rank(start), known.rank(end))
        return self._of_share(np.asarray(known.ranks)[np.clip(end, 0, None).astype(int)])

    def _percentiles(self, feature: Feature) -> Percentiles:
        if feature.percentiles is None:
            raise ValueError(
                f"norm={self.name!r} needs to know where people stand in feature {feature.name!r}; make the action set "
                "with ActionSet.from_frame, which counts them."
            )
        return feature.percentiles

    def grid(self, feature: Feature, start: Array) -> Array | None:
        """All values of a number if there are few; else those that people have, its limits, or some beyond everybody's.

        Beyond the last value that people have, a move costs no more.
        """
        if not feature.is_number or not feature.mutable:
            return None
        known, step, low, high = self._percentiles(feature), feature.step, feature.low, feature.high
        if step is not None and self.grid_is_whole(feature):
            return np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1.0) * step
        values = np.append(known.values, [side for side in (low, high) if np.isfinite(side)])
        seen = np.concatenate([values, start[~np.isnan(start)]])
        beyond = (step or float(np.ptp(seen)) or 1.0) * _BEYOND
        values = np.concatenate([values, seen.max() + beyond, seen.min() - beyond])
        if step is not None:
            values = np.unique(np.concatenate([np.floor(values / step), np.ceil(values / step)])) * step
        return np.unique(values[(values >= low) & (values <= high)])

    def grid_is_whole(self, feature: Feature) -> bool:
        """Whether the number has few values, so that they are all listed."""
        return feature.step is not None and (feature.high - feature.low) / feature.step < _FEW


class MaxShift(_Shift):
    """The difference of ranks; 1 minus its share for a label without an order."""

    is_rank_difference = True

    def _between(self, before: Array, after: Array) -> Array:
        return np.asarray(np.abs(after - before))

    def _of_share(self, share: Array) -> Array:
        return np.asarray(1.0 - share)


class LogShift(_Shift):
    """The difference of log(1 − rank), so that ranks near the top are dear; −log of an unordered label's share."""

    def _between(self, before: Array, after: Array) -> Array:
        return np.asarray(np.abs(np.log1p(-before) - np.log1p(-after)))

    def _of_share(self, share: Array) -> Array:
        return np.asarray(-np.log(share))
