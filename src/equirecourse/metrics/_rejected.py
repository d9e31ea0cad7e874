"""The rejected people's costs, split by group: what every number of this package is computed from.

The costs of a group are kept sorted, so that no number depends on the order in which the people came.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import Groups, check_costs, check_groups, check_mask, check_number
from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning

__all__ = ["RejectedCosts", "mean_cost", "quantile_cost", "split_rejected", "stand_in"]

Costs = NDArray[np.float64]

_SHOWN_GROUPS = 3  # a warning names this many groups and counts the others


@dataclass(frozen=True)
class RejectedCosts:
    """The costs of the rejected people of each group.

    Attributes
    ----------
    groups : Groups
        The groups; position ``k`` of everything below speaks of ``groups.labels[k]``.
    people, rejected, without_recourse : ndarray of int, shape (n_groups,)
        How many people, how many of them rejected, how many of those without recourse.
    costs : tuple of ndarray
        The sorted costs of the rejected. People without recourse are at the end with an infinite cost, or
        have the finite cost that the user chose to stand for them.
    """

    groups: Groups
    people: NDArray[np.intp]
    rejected: NDArray[np.intp]
    without_recourse: NDArray[np.intp]
    costs: tuple[Costs, ...]

    @property
    def averaged(self) -> tuple[Costs, ...]:
        """The finite costs of each group: those its mean is over."""
        return tuple(costs[np.isfinite(costs)] for costs in self.costs)

    @property
    def n_averaged(self) -> NDArray[np.intp]:
        """How many costs the mean of each group is over."""
        return np.array([len(costs) for costs in self.averaged], dtype=np.intp)

    @property
    def pooled(self) -> Costs:
        """The sorted costs of all rejected people."""
        return np.sort(np.concatenate(self.costs))

    @property
    def means(self) -> Costs:
        """The mean cost of each group, NaN where nobody of it was rejected with a finite cost."""
        return np.array([mean_cost(costs) for costs in self.costs])

    def undefined(self) -> list[str]:
        """Say why groups have no mean cost, one sentence for each such group."""
        reasons = []
        for label, people, rejected, averaged in zip(
            self.groups.labels, self.people, self.rejected, self.n_averaged, strict=True
        ):
            if rejected == 0:
                reasons.append(f"group {label!r} has 0 rejected people in {people}; its recourse is undefined")
            elif averaged == 0:
                reasons.append(
                    f"group {label!r} has {rejected} rejected people in {people} and none has recourse; "
                    "its mean cost is undefined (no_recourse_cost gives them one)"
                )
        return reasons

    def left_out(self) -> list[str]:
        """Say whom the means leave out, one sentence for each group that has both kinds of people."""
        return [
            f"{rejected - averaged} of {rejected} rejected people of group {label!r} have no recourse"
            for label, rejected, averaged in zip(self.groups.labels, self.rejected, self.n_averaged, strict=True)
            if 0 < averaged < rejected
        ]

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
    costs: Any, *, sensitive_features: Any, rejected: Any = None, no_recourse_cost: float | None = None
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
    no_recourse_cost : float, optional
        The cost that stands for an infinite one.

    Returns
    -------
    RejectedCosts
        Counts and sorted costs per group.
    """
    values = check_costs(costs)
    mask = values > 0 if rejected is None else check_mask(rejected, len(values), name="rejected")
    groups = check_groups(sensitive_features, len(values), at_least=2)
    infinite = mask & np.isinf(values)
    finite = stand_in(values, no_recourse_cost)
    n_groups = len(groups)
    codes, kept = groups.codes[mask], finite[mask]
    order = np.lexsort((kept, codes))
    ends = np.cumsum(np.bincount(codes, minlength=n_groups))
    return RejectedCosts(
        groups=groups,
        people=np.bincount(groups.codes, minlength=n_groups),
        rejected=np.bincount(codes, minlength=n_groups),
        without_recourse=np.bincount(groups.codes[infinite], minlength=n_groups),
        costs=tuple(np.split(kept[order], ends[:-1])),
    )


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


def _shorten(reasons: list[str]) -> str:
    """Join the first reasons and count the others."""
    more = len(reasons) - _SHOWN_GROUPS
    return "; ".join(reasons[:_SHOWN_GROUPS]) + (f"; and {more} more such group{'s' * (more > 1)}") * (more > 0)
