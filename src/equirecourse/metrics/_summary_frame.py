"""SummaryFrame: a RecourseFrame of people who have been summarised, and are not there any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from equirecourse._validation import Groups
from equirecourse.metrics._cells import Cells
from equirecourse.metrics._frame import RecourseFrame
from equirecourse.metrics._rejected import RejectedCosts
from equirecourse.metrics._resampling import Sample
from equirecourse.metrics._summary import CostSummary

__all__ = ["SummaryFrame"]

Array = NDArray[np.float64]


class SummaryFrame(RecourseFrame):
    r"""Cost of recourse by group, from a summary of the people instead of the people.

    Everything that a :class:`RecourseFrame` says, with the same meaning. Counts, shares, means and the gap are exact.
    Quantiles are within ``RELATIVE_ERROR`` (0.1 %) of the interpolated quantile of the costs. The bootstrap and the
    shuffles follow the schemes of :class:`RecourseFrame`, drawing numbers of people with about the same cost instead of
    persons: expectation and variance of every resampled mean are exact. Distances compare cells: ``wasserstein``
    is within 0.1 % of the sum of the two mean costs.

    Parameters
    ----------
    summary : CostSummary
        Of at least two groups.
    name : str
        The sensitive attribute.
    quantiles, n_boot, n_permutations, confidence, random_state
        As in :class:`RecourseFrame`.

    Warns
    -----
    UndefinedRecourseWarning
        If a group has no rejected people, or none with recourse: its mean and the gap are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics import CostSummary, SummaryFrame
    >>> costs, codes = np.tile([0.5, 1.0, 1.5], 100), np.arange(300) // 150
    >>> summary = CostSummary.of(costs * (1 + codes), np.ones(300, dtype=bool), codes, ["f", "m"])
    >>> frame = SummaryFrame(summary, name="sex", random_state=0)
    >>> frame.gap, bool(frame.detectable)
    (1.0, True)
    """

    def __init__(
        self,
        summary: CostSummary,
        *,
        name: str = "sensitive_feature",
        quantiles: Sequence[float] = (0.1, 0.25, 0.75, 0.9),
        n_boot: int = 1000,
        n_permutations: int = 1000,
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self._configure(quantiles, n_boot, n_permutations, confidence, random_state)
        if len(summary.labels) < 2:
            raise ValueError(
                f"sensitive_features has {len(summary.labels)} group{'s' * (len(summary.labels) != 1)} "
                f"({', '.join(map(repr, summary.labels))}) in the column {name!r} and a comparison needs at least 2; "
                "pass a column with several values."
            )
        self.no_recourse_cost = None
        self.summary = summary
        self._people = SummarisedCosts(
            groups=Groups(np.empty(0, dtype=np.intp), summary.labels, (name,)),
            people=summary.people,
            rejected=summary.rejected,
            measured=summary.rejected,
            without_recourse=summary.without_recourse,
            unknown=summary.unknown,
            costs=(),
            summary=summary,
        )
        self._people.warn_undefined()


@dataclass(frozen=True, kw_only=True)
class SummarisedCosts(RejectedCosts):
    """The costs of rejected people of whom a summary is left."""

    summary: CostSummary

    def _cells(self, position: int | None) -> Cells:
        return self.summary.pooled if position is None else self.summary.groups[position]

    @property
    def _infinite(self) -> NDArray[np.intp]:
        return self.without_recourse + self.unknown

    @cached_property
    def averaged(self) -> Sequence[Sample]:
        return [cells.clusters() for cells in self.summary.groups]

    @property
    def everybody(self) -> Sample:
        return self.summary.pooled.clusters()

    @property
    def largest(self) -> float:
        return self.summary.pooled.largest

    def mean(self, position: int | None = None) -> float:
        return self._cells(position).mean

    def quantiles(self, levels: Sequence[float], position: int | None = None) -> list[float]:
        infinite = self._infinite.sum() if position is None else self._infinite[position]
        return list(map(float, self._cells(position).quantiles(np.array(levels), int(infinite))))

    @cached_property
    def _counts(self) -> Array:
        """How many of each group are in each cell of everybody."""
        pool = self.summary.pooled
        counts = np.zeros((len(self.groups), len(pool.key)))
        for row, cells in zip(counts, self.summary.groups, strict=True):
            row[np.searchsorted(pool.key, cells.key)] = cells.count
        return counts

    def wasserstein(self, one: int, other: int) -> float:
        places = self.summary.pooled.means
        return float(stats.wasserstein_distance(places, places, self._counts[one], self._counts[other]))

    def kolmogorov_smirnov(self, one: int, other: int) -> tuple[float, float]:
        n, m = float(self.measured[one]), float(self.measured[other])
        below = [np.append(self._counts[k], self._infinite[k]).cumsum() / self.measured[k] for k in (one, other)]
        statistic = float(np.abs(below[0] - below[1]).max())
        return statistic, float(np.clip(stats.kstwo.sf(statistic, np.round(n * m / (n + m))), 0, 1))

    def histograms(self, bins: int) -> NDArray[Any]:
        pool, infinite = self.summary.pooled, self._infinite[:, None]
        edges = np.unique(np.searchsorted(np.cumsum(pool.count), np.arange(1, bins) / bins * pool.n))
        edges = edges[edges < len(pool.count) - 1] + 1
        counts = np.add.reduceat(self._counts, np.append(0, edges), axis=1) if len(pool.count) else self._counts
        return np.hstack([counts, infinite]) if infinite.any() else counts
