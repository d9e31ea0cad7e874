"""The rejected people's costs, split by group: what every number of this package is computed from.

The costs of a group are kept sorted, so that no number depends on the order in which the people came.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from equirecourse._validation import Groups, check_costs, check_groups, check_mask, check_number
from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning
from equirecourse.metrics._resampling import Sample

__all__ = ["RejectedCosts", "mean_cost", "quantile_cost", "shares", "split_rejected", "stand_in"]

Costs = NDArray[np.float64]

_COUNTS = ("people", "rejected", "measured", "without_recourse", "unknown")
_EXACT_KS = 10_000  # pairs of people up to which the Kolmogorov-Smirnov p-value is computed exactly
_SHOWN_GROUPS = 3  # a warning names this many groups and counts the others


@dataclass(frozen=True)
class RejectedCosts:
    """The costs of the rejected people of each group.

    Attributes
    ----------
    groups : Groups
        The groups; position ``k`` of everything below speaks of ``groups.labels[k]``.
    people, rejected, measured : ndarray of int, shape (n_groups,)
        How many people, how many of them rejected, and for how many of those recourse was looked for.
    without_recourse, unknown : ndarray of int, shape (n_groups,)
        How many of the measured have none, and for how many nothing was found and nothing proven.
    costs : tuple of ndarray
        The sorted costs of the measured. People without recourse are at the end with an infinite cost, or have the
        finite cost that the user chose to stand for them; so are people whose recourse is unknown.
    """

    groups: Groups
    people: NDArray[np.intp]
    rejected: NDArray[np.intp]
    measured: NDArray[np.intp]
    without_recourse: NDArray[np.intp]
    unknown: NDArray[np.intp]
    costs: tuple[Costs, ...]

    def counts(self, position: int | None = None) -> dict[str, int]:
        """The numbers of people of the group at ``position``, or of all groups."""
        at = slice(None) if position is None else position
        return {name: int(np.sum(getattr(self, name)[at])) for name in _COUNTS}

    @cached_property
    def averaged(self) -> Sequence[Sample]:
        """The finite costs of each group, those its mean is over, as they are resampled."""
        return [_finite(costs) for costs in self.costs]

    @property
    def everybody(self) -> Sample:
        """The finite costs of all rejected people."""
        return _finite(self.pooled)

    @property
    def largest(self) -> float:
        """The largest finite cost."""
        return float(_finite(self.pooled)[-1])

    @cached_property
    def n_averaged(self) -> NDArray[np.intp]:
        """How many costs the mean of each group is over."""
        return np.array([len(costs) for costs in self.averaged], dtype=np.intp)

    @cached_property
    def pooled(self) -> Costs:
        """The sorted costs of all rejected people."""
        return np.sort(np.concatenate(self.costs))

    def _of(self, position: int | None) -> Costs:
        return self.pooled if position is None else self.costs[position]

    def mean(self, position: int | None = None) -> float:
        """The mean cost of a group, or of everybody; NaN where nobody was rejected with a finite cost."""
        return mean_cost(self._of(position))

    def quantiles(self, levels: Sequence[float], position: int | None = None) -> list[float]:
        """Quantiles of the costs of a group, or of everybody; NaN of nobody."""
        return [quantile_cost(self._of(position), level) for level in levels]

    @cached_property
    def means(self) -> Costs:
        """The mean cost of each group, NaN where nobody of it was rejected with a finite cost."""
        return np.array([self.mean(k) for k in range(len(self.groups))])

    def wasserstein(self, one: int, other: int) -> float:
        """Distance between the distributions of the finite costs of two groups."""
        return float(stats.wasserstein_distance(self.averaged[one], self.averaged[other]))

    def kolmogorov_smirnov(self, one: int, other: int) -> tuple[float, float]:
        """The statistic of two groups and its p-value, exact for small groups: its price is the pairs of people."""
        first, second = self.costs[one], self.costs[other]
        method = "exact" if len(first) * len(second) <= _EXACT_KS else "asymp"
        with warnings.catch_warnings():
            # An exact p-value of 1 may be rounded past 1; SciPy then takes the asymptotic one, and says so.
            warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
            test = stats.ks_2samp(first, second, method=method)
        return float(test.statistic), float(test.pvalue)

    def histograms(self, bins: int) -> NDArray[Any]:
        """How many of each group are in each of the common bins, of which the last is for infinite costs if any are."""
        finite = _finite(self.pooled)
        # A bin holds its upper cut, so a cut at the largest cost would leave an empty bin behind it.
        cuts = np.empty(0)
        if len(finite):
            cuts = np.unique(np.quantile(finite, np.linspace(0, 1, bins + 1)[1:-1]))
            cuts = cuts[cuts < finite.max()]
        n_bins = len(cuts) + 1 + (len(finite) < len(self.pooled))
        places = [np.where(np.isinf(costs), n_bins - 1, np.searchsorted(cuts, costs)) for costs in self.costs]
        return np.array([np.bincount(place, minlength=n_bins) for place in places])

    def undefined(self) -> list[str]:
        """Say why groups have no mean cost, one sentence for each such group."""
        reasons = []
        for k in np.flatnonzero(self.n_averaged == 0):
            rejected = self.rejected[k]
            whom = f"group {self.groups.labels[k]!r} has {rejected} rejected people in {self.people[k]}"
            if rejected == 0:
                reasons.append(f"{whom}; its recourse is undefined")
            elif self.measured[k] == 0:
                reasons.append(f"{whom} and none was measured; its recourse is undefined")
            elif self.unknown[k]:
                reasons.append(f"{whom} and recourse was found for none; its mean cost is undefined")
            else:
                reasons.append(
                    f"{whom} and none has recourse; its mean cost is undefined (no_recourse_cost gives them one)"
                )
        return reasons

    @property
    def excluded(self) -> NDArray[np.intp]:
        """How many of each group have no recourse and are in no mean, because no cost stands for them."""
        return np.asarray(self.measured - self.n_averaged - self.unknown)

    def left_out(self) -> list[str]:
        """Say who without recourse is in no mean, one sentence for each group that has a mean."""
        return [
            f"{without} of {measured} rejected people of group {label!r} have no recourse"
            for label, measured, without, averaged in zip(
                self.groups.labels, self.measured, self.excluded, self.n_averaged, strict=True
            )
            if without and averaged
        ]

    def unknown_in_words(self) -> str:
        """Say for how many people, and of which groups, nothing was found and nothing proven; "" if for none."""
        if not self.unknown.any():
            return ""
        parts = [
            f"{count} of {label!r}" for label, count in zip(self.groups.labels, self.unknown, strict=True) if count
        ]
        more = len(parts) - _SHOWN_GROUPS
        named = ", ".join(parts[:_SHOWN_GROUPS]) + f" and {more} more such group{'s' * (more > 1)}" * (more > 0)
        return f"the recourse of {self.unknown.sum()} of {self.measured.sum()} rejected people is unknown ({named})"

    def share_bounds(self) -> tuple[Costs, Costs]:
        """Smallest and largest share without recourse in each group, whatever the unknown are; NaN for nobody."""
        with np.errstate(invalid="ignore"):
            return self.excluded / self.measured, (self.excluded + self.unknown) / self.measured

    def warn_undefined(self, stacklevel: int = 3) -> None:
        """Warn of groups whose recourse has no value."""
        if reasons := self.undefined():
            warnings.warn(_shorten(reasons), UndefinedRecourseWarning, stacklevel=stacklevel)

    def warn_left_out(self, stacklevel: int = 3) -> None:
        """Warn of people without recourse who are not in the means."""
        if reasons := self.left_out():
            message = _shorten(reasons) + "; the mean is over the others (no_recourse_cost counts them as well)"
            warnings.warn(message, NoRecourseWarning, stacklevel=stacklevel)


def split_rejected(
    costs: Any,
    *,
    sensitive_features: Any,
    rejected: Any = None,
    unknown: Any = None,
    measured: Any = None,
    no_recourse_cost: float | None = None,
) -> RejectedCosts:
    """Check the input of a metric and split the rejected people's costs by group.

    Parameters
    ----------
    costs : array-like of shape (n_people,)
        Cost of recourse; only the rejected people's is read.
    sensitive_features : array-like, Series, DataFrame or mapping
        One row per person; at least two groups.
    rejected : array-like of bool, optional
        Who was rejected; those with a positive cost unless given.
    unknown : array-like of bool, optional
        Whose infinite cost says that nothing was found, not that there is nothing; nobody's unless given.
    measured : array-like of bool, optional
        Whose recourse was looked for, if that of a sample was; everybody's unless given.
    no_recourse_cost : float, optional
        The cost that stands for the infinite one of people without recourse.

    Returns
    -------
    RejectedCosts
        Counts and sorted costs per group.
    """
    values = check_costs(costs)
    n = len(values)
    turned_down = values > 0 if rejected is None else check_mask(rejected, n, name="rejected")
    looked_for = turned_down if measured is None else turned_down & check_mask(measured, n, name="measured")
    groups = check_groups(sensitive_features, n, at_least=2)
    infinite = looked_for & np.isinf(values)
    lost = np.zeros(n, dtype=bool) if unknown is None else infinite & check_mask(unknown, n, name="unknown")
    kept = np.where(lost, np.inf, stand_in(values, no_recourse_cost))[looked_for]
    codes = groups.codes[looked_for]
    order = np.lexsort((kept, codes))

    def count(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.bincount(groups.codes[mask], minlength=len(groups))

    sizes = count(looked_for)
    return RejectedCosts(
        groups=groups,
        people=np.bincount(groups.codes, minlength=len(groups)),
        rejected=count(turned_down),
        measured=sizes,
        without_recourse=count(infinite & ~lost),
        unknown=count(lost),
        costs=tuple(np.split(kept[order], np.cumsum(sizes)[:-1])),
    )


def shares(counts: dict[str, int]) -> dict[str, float]:
    """The first columns of a row: counts, and the shares they make."""
    people, rejected, measured = counts["people"], counts["rejected"], counts["measured"]
    return {
        "people": people,
        "rejected": rejected,
        "measured": measured,
        "acceptance": 1 - rejected / people,
        "without_recourse": counts["without_recourse"] / measured if measured else float("nan"),
        "unknown": counts["unknown"] / measured if measured else float("nan"),
    }


def stand_in(costs: Costs, no_recourse_cost: float | None) -> Costs:
    """Put ``no_recourse_cost``, when there is one, in the place of infinite costs."""
    if no_recourse_cost is None:
        return costs
    return np.where(np.isinf(costs), check_number(no_recourse_cost, name="no_recourse_cost", low=0), costs)


def mean_cost(costs: Costs) -> float:
    """Average the finite costs; NaN when there are none."""
    finite = costs[np.isfinite(costs)]
    return float(finite.mean()) if len(finite) else float("nan")


def quantile_cost(costs: Costs, level: float) -> float:
    """Interpolate a quantile of costs that may be infinite; NaN when there are none.

    NumPy subtracts the two neighbours of the level from each other, which makes NaN of infinite ones.
    """
    if len(costs) == 0:
        return float("nan")
    below, above = (float(np.quantile(costs, level, method=side)) for side in ("lower", "higher"))
    if below == above or np.isinf(above):
        return above
    return float(np.quantile(costs, level))


def _finite(costs: Costs) -> Costs:
    """The part of sorted costs that is finite."""
    return costs[: np.searchsorted(costs, np.inf)]


def _shorten(reasons: list[str]) -> str:
    """Join the first reasons and count the others."""
    more = len(reasons) - _SHOWN_GROUPS
    return "; ".join(reasons[:_SHOWN_GROUPS]) + (f"; and {more} more such group{'s' * (more > 1)}") * (more > 0)
