"""The recourse gap: how far apart the groups' mean costs are."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import check_choice
from equirecourse.exceptions import UndefinedRecourseWarning
from equirecourse.metrics._rejected import mean_cost, split_rejected

__all__ = [
    "Method",
    "check_method",
    "largest_difference",
    "recourse_gap",
    "rejection_weighted_gap",
    "smallest_ratio",
]

Method = Literal["between_groups", "to_overall"]


def recourse_gap(
    costs: Any,
    *,
    sensitive_features: Any,
    rejected: Any = None,
    method: Method = "between_groups",
    no_recourse_cost: float | None = None,
) -> float:
    r"""Largest difference between the groups' mean cost of recourse among the rejected.

    With :math:`r(G^-) = \frac{1}{|G^-|}\sum_{i \in G^-} c_i` the mean cost over the rejected people
    :math:`G^-` of a group, the gap is :math:`\max_G r(G^-) - \min_G r(G^-)`; for two groups
    :math:`|r(G_1^-) - r(G_0^-)|`. With ``method="to_overall"`` it is :math:`\max_G |r(G^-) - r|`, where
    :math:`r` is the mean over all rejected people.

    Parameters
    ----------
    costs : array-like of shape (n_people,)
        What it costs each person to be accepted: 0 or anything for accepted people, whose cost is not read,
        infinite for people without recourse.
    sensitive_features : array-like, Series, DataFrame or mapping of columns
        Group of each person. Several columns are crossed.
    rejected : array-like of bool of shape (n_people,), optional
        Who was predicted unfavourable; people with a positive cost unless given.
    method : {"between_groups", "to_overall"}
        Compare the groups with each other, or each of them with everybody.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse. Without it the means are over the others, and a
        :class:`~equirecourse.exceptions.NoRecourseWarning` says how many were left out.

    Returns
    -------
    float
        The gap. NaN, with an :class:`~equirecourse.exceptions.UndefinedRecourseWarning`, if a group has no
        rejected people or none with recourse: a comparison with nobody is not equality.

    See Also
    --------
    RecourseFrame : The same gap with its interval, noise floor and p-value.

    Examples
    --------
    >>> from equirecourse.metrics import recourse_gap
    >>> costs = [0.0, 2.0, 4.0, 0.0, 1.0, 1.0]
    >>> recourse_gap(costs, sensitive_features=["f", "f", "f", "m", "m", "m"])
    2.0
    """
    check_method(method)
    people = split_rejected(
        costs, sensitive_features=sensitive_features, rejected=rejected, no_recourse_cost=no_recourse_cost
    )
    people.warn_left_out()
    people.warn_undefined()
    return largest_difference(people.means, mean_cost(people.pooled), method)


def rejection_weighted_gap(
    costs: Any,
    *,
    sensitive_features: Any,
    rejected: Any = None,
    method: Method = "between_groups",
    no_recourse_cost: float | None = None,
) -> float:
    r"""Largest difference between the groups' cost of recourse per *member*, rejected or not.

    The formulas of the paper divide by :math:`|G|`: a group's value is
    :math:`\frac{1}{|G|}\sum_{i \in G^-} c_i = \frac{|G^-|}{|G|}\, r(G^-)`, its rejection rate times its mean
    cost. It mixes who is rejected with how far the rejected are from a yes; :func:`recourse_gap` is about the
    second alone.

    Parameters
    ----------
    costs, sensitive_features, rejected, method
        As in :func:`recourse_gap`.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse. Without it the mean of the others of their
        group does (they are part of the rejection rate, and never free of charge).

    Returns
    -------
    float
        The gap. A group of which nobody was rejected has the value 0, for that is what its members pay; if
        nobody at all was rejected the gap is NaN, with a warning.

    Examples
    --------
    >>> from equirecourse.metrics import rejection_weighted_gap
    >>> costs = [0.0, 2.0, 4.0, 0.0, 0.0, 3.0]
    >>> rejection_weighted_gap(costs, sensitive_features=["f", "f", "f", "m", "m", "m"])
    1.0
    """
    check_method(method)
    people = split_rejected(
        costs, sensitive_features=sensitive_features, rejected=rejected, no_recourse_cost=no_recourse_cost
    )
    if not people.rejected.any():
        message = f"0 of {people.people.sum()} people are rejected; the rejection-weighted gap is undefined"
        warnings.warn(message, UndefinedRecourseWarning, stacklevel=2)
        return float("nan")
    people.warn_left_out()
    means = np.where(people.rejected == 0, 0.0, people.means)
    if np.isnan(means).any():
        people.warn_undefined()
    per_member = people.rejected / people.people * means
    overall = float(np.average(per_member, weights=people.people))
    return largest_difference(per_member, overall, method)


def largest_difference(values: NDArray[np.float64], overall: float, method: Method) -> float:
    """Compare groups by difference; NaN if one of them has no value, or two are infinite."""
    with np.errstate(invalid="ignore"):
        if method == "to_overall":
            return float(np.max(np.abs(values - overall)))
        return float(np.max(values) - np.min(values))


def smallest_ratio(values: NDArray[np.float64], overall: float, method: Method) -> float:
    """Compare groups by ratio, at most 1 (which is equality); NaN if one has no value, or for 0 to 0."""
    other = np.full_like(values, overall) if method == "to_overall" else np.full_like(values, np.max(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.min(np.minimum(values, other) / np.maximum(values, other)))


def check_method(method: str) -> None:
    """Refuse a method of comparison that does not exist."""
    check_choice(method, ("between_groups", "to_overall"), name="method")
