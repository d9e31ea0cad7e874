"""SummaryFrame: a RecourseFrame of people who have been summarised, and are not there any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from equirecourse._validation import Groups
from equirecourse.metrics._cells import Cells, Lumps
from equirecourse.metrics._frame import RecourseFrame
from equirecourse.metrics._inference import p_value
from equirecourse.metrics._lumps import bootstrap_lumps, permuted_lumps
from equirecourse.metrics._rejected import RejectedCosts, shares
from equirecourse.metrics._summary import CostSummary

__all__ = ["SummaryFrame"]

Array = NDArray[np.float64]

_BINS = 10  # of the histograms that kl and js compare, as in distribution_distances


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
        self._people = _Summarised(
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

    def _row(self, cells: Cells, counts: dict[str, int]) -> dict[str, float]:
        levels = np.array([0.5, *self.quantiles])
        names = ["median", *(f"q{100 * level:g}" for level in self.quantiles)]
        values = cells.quantiles(levels, counts["without_recourse"] + counts["unknown"])
        return {**shares(counts), "mean": cells.mean, **dict(zip(names, values.tolist(), strict=True))}

    @cached_property
    def _points(self) -> pd.DataFrame:
        rows = [self._row(cells, self._people.counts(k)) for k, cells in enumerate(self.summary.groups)]
        return pd.DataFrame(rows, index=self._people.groups.index)

    @cached_property
    def _overall_points(self) -> pd.Series[float]:
        return pd.Series(self._row(self.summary.pooled, self._people.counts()), dtype=float)

    @cached_property
    def _lumps(self) -> list[Lumps]:
        return [cells.lumps() for cells in self.summary.groups]

    @cached_property
    def _draws(self) -> Array:
        return bootstrap_lumps(self._lumps, self.n_boot, np.random.default_rng(self._seeds[0]))

    @cached_property
    def _overall_draws(self) -> Array:
        return bootstrap_lumps([self.summary.pooled.lumps()], self.n_boot, np.random.default_rng(self._seeds[2]))

    @cached_property
    def _shuffled(self) -> Array:
        rng = np.random.default_rng(self._seeds[1])
        return permuted_lumps(self.summary.pooled.lumps(), self._lumps, self.n_permutations, rng)

    @cached_property
    def p_value(self) -> float:
        """Chance of a gap at least as large if the group had nothing to do with the cost."""
        if np.isnan(self.gap):
            return float("nan")
        return p_value(self.gap, self._shuffled, self.summary.pooled.largest)

    @cached_property
    def distances(self) -> pd.DataFrame:
        """Distances between the groups' whole distributions, see :func:`distribution_distances`."""
        summary, pool = self.summary, self.summary.pooled
        counts = np.array([_spread(cells, pool) for cells in summary.groups])
        infinite = (summary.without_recourse + summary.unknown).astype(float)[:, None]
        # Histograms are cut at quantiles of everybody; people without recourse have a bin of their own.
        edges = np.unique(np.searchsorted(np.cumsum(pool.count), np.arange(1, _BINS) / _BINS * pool.n))
        edges = edges[edges < len(pool.count) - 1] + 1
        bins = np.add.reduceat(counts, np.append(0, edges), axis=1) if len(pool.count) else np.empty((len(counts), 0))
        bins = np.hstack([bins, infinite]) if infinite.any() else bins
        parts = (bins + 1) / (bins + 1).sum(axis=1, keepdims=True)
        below = np.hstack([counts, infinite]).cumsum(axis=1) / np.maximum(summary.rejected, 1)[:, None]
        rows = []
        for a, b in combinations(range(len(summary.labels)), 2):
            row: dict[str, Any] = {"group": summary.labels[a], "other": summary.labels[b]}
            row |= dict.fromkeys(("wasserstein", "ks", "ks_p_value", "kl", "js"), float("nan"))
            if summary.averaged[a] and summary.averaged[b]:
                places = pool.means
                row["wasserstein"] = float(stats.wasserstein_distance(places, places, counts[a], counts[b]))
            if summary.rejected[a] and summary.rejected[b]:
                row["ks"] = float(np.abs(below[a] - below[b]).max())
                n, m = float(summary.rejected[a]), float(summary.rejected[b])
                row["ks_p_value"] = float(np.clip(stats.kstwo.sf(row["ks"], np.round(n * m / (n + m))), 0, 1))
                row["kl"] = float(stats.entropy(parts[a], parts[b]))
                middle = (parts[a] + parts[b]) / 2
                row["js"] = float(stats.entropy(parts[a], middle) + stats.entropy(parts[b], middle)) / 2
            rows.append(row)
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Summarised(RejectedCosts):
    """The counts of a summary, with the sentences about people who are missing from a mean."""

    summary: CostSummary = field(kw_only=False, default=None)  # type: ignore[assignment]

    @property
    def n_averaged(self) -> NDArray[np.intp]:
        return self.summary.averaged.astype(np.intp)

    @property
    def means(self) -> Array:
        return self.summary.means


def _spread(cells: Cells, pool: Cells) -> Array:
    """Counts of a group in the cells of everybody."""
    counts = np.zeros(len(pool.key))
    counts[np.searchsorted(pool.key, cells.key)] = cells.count
    return counts
