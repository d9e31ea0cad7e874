"""Recourse of one group as plain metric functions, in the shape that fairlearn's ``MetricFrame`` slices.

Every function takes ``(y_true, y_pred, *, costs, favorable_label=1, ...)`` and returns one number.
``costs`` has one entry per person and goes through ``sample_params``; anything else through
:func:`functools.partial`.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import check_costs, check_number, shown
from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning
from equirecourse.metrics._rejected import mean_cost, quantile_cost, stand_in

__all__ = [
    "burden_cost",
    "improvability_score",
    "mean_recourse_cost",
    "median_recourse_cost",
    "no_recourse_rate",
    "rejected_count",
    "rejection_weighted_cost",
]

Costs = NDArray[np.float64]
Mask = NDArray[np.bool_]


def mean_recourse_cost(
    y_true: Any, y_pred: Any, *, costs: Any, favorable_label: Any = 1, no_recourse_cost: float | None = None
) -> float:
    r"""Mean cost of recourse over the rejected, :math:`\frac{1}{|G^-|}\sum_{i \in G^-} c_i`.

    Parameters
    ----------
    y_true : array-like of shape (n_people,)
        True labels. Not read, but fairlearn passes them.
    y_pred : array-like of shape (n_people,)
        Predicted labels; a person is rejected if it is not ``favorable_label``.
    costs : array-like of shape (n_people,)
        Cost of recourse, infinite for people without; only the rejected people's is read.
    favorable_label : object
        The label that means yes.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse; otherwise the mean is over the others, with a
        warning.

    Returns
    -------
    float
        The mean; NaN, with a warning, if nobody was rejected.

    Examples
    --------
    >>> from equirecourse.metrics import mean_recourse_cost
    >>> mean_recourse_cost([1, 1, 0, 0], [1, 0, 0, 0], costs=[0.0, 1.0, 2.0, 6.0])
    3.0

    By group, in fairlearn:

    >>> from fairlearn.metrics import MetricFrame
    >>> frame = MetricFrame(
    ...     metrics=mean_recourse_cost, y_true=[1, 1, 0, 0], y_pred=[1, 0, 0, 0],
    ...     sensitive_features=["f", "f", "m", "m"], sample_params={"costs": [0.0, 1.0, 2.0, 6.0]},
    ... )
    >>> float(frame.difference())
    3.0
    """
    rejected, _, values = _check(y_true, y_pred, costs, favorable_label)
    return _mean(values[rejected], no_recourse_cost, "rejected", len(values))


def median_recourse_cost(
    y_true: Any, y_pred: Any, *, costs: Any, favorable_label: Any = 1, no_recourse_cost: float | None = None
) -> float:
    """Median cost of recourse over the rejected, infinite if more than half of them have none.

    Parameters
    ----------
    y_true, y_pred, costs, favorable_label
        As in :func:`mean_recourse_cost`.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse; otherwise they are further away than anybody.

    Returns
    -------
    float
        The median; NaN, with a warning, if nobody was rejected.

    Examples
    --------
    >>> from equirecourse.metrics import median_recourse_cost
    >>> median_recourse_cost([0, 0, 0], [0, 0, 0], costs=[1.0, 2.0, float("inf")])
    2.0
    """
    rejected, _, values = _check(y_true, y_pred, costs, favorable_label)
    if not rejected.any():
        return _undefined(f"0 rejected people in {len(values)}; their median cost is undefined")
    return quantile_cost(stand_in(values[rejected], no_recourse_cost), 0.5)


def rejection_weighted_cost(
    y_true: Any, y_pred: Any, *, costs: Any, favorable_label: Any = 1, no_recourse_cost: float | None = None
) -> float:
    r"""Cost of recourse per person, accepted ones included, :math:`\frac{1}{|G|}\sum_{i \in G^-} c_i`.

    Parameters
    ----------
    y_true, y_pred, costs, favorable_label
        As in :func:`mean_recourse_cost`.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse; otherwise the mean of the others does, with a
        warning.

    Returns
    -------
    float
        The rejection rate times the mean cost; 0 if nobody was rejected.

    Examples
    --------
    >>> from equirecourse.metrics import rejection_weighted_cost
    >>> rejection_weighted_cost([1, 1, 0, 0], [1, 0, 0, 0], costs=[0.0, 1.0, 2.0, 6.0])
    2.25
    """
    rejected, _, values = _check(y_true, y_pred, costs, favorable_label)
    if not rejected.any():
        return 0.0
    return float(rejected.mean()) * _mean(values[rejected], no_recourse_cost, "rejected", len(values))


def burden_cost(
    y_true: Any, y_pred: Any, *, costs: Any, favorable_label: Any = 1, no_recourse_cost: float | None = None
) -> float:
    r"""Mean cost over the people who deserved a yes, 0 for those of them who got it.

    The burden of the classifier's false rejections, :math:`\frac{1}{|\{y=+1\}|}\sum_{y_i=+1,\; h_i=-1} c_i`.

    Parameters
    ----------
    y_true : array-like of shape (n_people,)
        True labels; ``favorable_label`` is a deserved yes.
    y_pred, costs, favorable_label
        As in :func:`mean_recourse_cost`.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse; otherwise the mean is over the others, with a
        warning.

    Returns
    -------
    float
        The burden; NaN, with a warning, if nobody deserved a yes.

    Examples
    --------
    >>> from equirecourse.metrics import burden_cost
    >>> burden_cost([1, 1, 0, 0], [1, 0, 0, 0], costs=[0.0, 1.0, 2.0, 6.0])
    0.5
    """
    rejected, deserving, values = _check(y_true, y_pred, costs, favorable_label)
    return _mean(np.where(rejected, values, 0.0)[deserving], no_recourse_cost, "deserving", len(values))


def improvability_score(y_true: Any, y_pred: Any, *, costs: Any, budget: float, favorable_label: Any = 1) -> float:
    r"""Share of the rejected who can get a yes within a budget, :math:`|\{i \in G^- : c_i \le b\}| / |G^-|`.

    Equal improvability asks that this share be the same in every group.

    Parameters
    ----------
    y_true, y_pred, costs, favorable_label
        As in :func:`mean_recourse_cost`.
    budget : float
        The largest cost a person is taken to afford, finite.

    Returns
    -------
    float
        The share, higher is better; NaN, with a warning, if nobody was rejected.

    Examples
    --------
    >>> from equirecourse.metrics import improvability_score
    >>> improvability_score([1, 1, 0, 0], [1, 0, 0, 0], costs=[0.0, 1.0, 2.0, 6.0], budget=2.0).__round__(3)
    0.667
    """
    rejected, _, values = _check(y_true, y_pred, costs, favorable_label)
    limit = check_number(budget, name="budget", low=0)
    if not rejected.any():
        return _undefined(f"0 rejected people in {len(values)}; their improvability is undefined")
    return float(np.mean(values[rejected] <= limit))


def no_recourse_rate(y_true: Any, y_pred: Any, *, costs: Any, favorable_label: Any = 1) -> float:
    r"""Share of the rejected who have no recourse, :math:`|\{i \in G^- : c_i = \infty\}| / |G^-|`.

    Parameters
    ----------
    y_true, y_pred, costs, favorable_label
        As in :func:`mean_recourse_cost`.

    Returns
    -------
    float
        The share; NaN, with a warning, if nobody was rejected.

    Examples
    --------
    >>> from equirecourse.metrics import no_recourse_rate
    >>> no_recourse_rate([0, 0], [0, 0], costs=[1.0, float("inf")])
    0.5
    """
    rejected, _, values = _check(y_true, y_pred, costs, favorable_label)
    if not rejected.any():
        return _undefined(f"0 rejected people in {len(values)}; the share without recourse is undefined")
    return float(np.mean(np.isinf(values[rejected])))


def rejected_count(y_true: Any, y_pred: Any, *, costs: Any, favorable_label: Any = 1) -> int:
    r"""Count the rejected, :math:`|G^-|`: the number of people that a group's recourse is a statement about.

    Parameters
    ----------
    y_true, y_pred, costs, favorable_label
        As in :func:`mean_recourse_cost`.

    Returns
    -------
    int
        The count.

    Examples
    --------
    >>> from equirecourse.metrics import rejected_count
    >>> rejected_count([1, 1, 0, 0], [1, 0, 0, 0], costs=[0.0, 1.0, 2.0, 6.0])
    3
    """
    rejected, _, _ = _check(y_true, y_pred, costs, favorable_label)
    return int(rejected.sum())


def _check(y_true: Any, y_pred: Any, costs: Any, favorable_label: Any) -> tuple[Mask, Mask, Costs]:
    """Who is rejected, who deserved a yes, and the costs."""
    values = check_costs(costs)
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if not true.shape == predicted.shape == values.shape:
        raise ValueError(
            f"y_true, y_pred and costs must have one entry per person, got shapes {true.shape}, "
            f"{predicted.shape} and {values.shape}."
        )
    if not isinstance(favorable_label, Hashable):
        raise ValueError(f"favorable_label must be one label, the one that means yes, got {shown(favorable_label)}.")
    labels = set(true.tolist()) | set(predicted.tolist())
    # A slice may well hold one label only, and not the favourable one; what it cannot hold is another kind
    # of label.
    strangers = [label for label in labels if isinstance(label, str) != isinstance(favorable_label, str)]
    if strangers or (len(labels) == 2 and favorable_label not in labels):
        known = ", ".join(repr(label) for label in sorted(labels, key=repr)[:4])
        raise ValueError(
            f"favorable_label={favorable_label!r} is not one of the labels {known}; pass the label "
            "that means yes as favorable_label."
        )
    if len(labels) > 2:
        raise ValueError(
            f"y_true and y_pred have {len(labels)} labels and recourse needs two, a favourable one and an "
            "unfavourable one; merge the others first."
        )
    return np.asarray(predicted != favorable_label), np.asarray(true == favorable_label), values


def _mean(costs: Costs, no_recourse_cost: float | None, whom: str, n_people: int) -> float:
    """Average the costs of the people named ``whom``, and warn of those it leaves out."""
    values = stand_in(costs, no_recourse_cost)
    if len(values) == 0:
        return _undefined(f"0 {whom} people in {n_people}; their mean cost is undefined")
    without = int(np.isinf(values).sum())
    if without == len(values):
        return _undefined(
            f"none of the {without} {whom} people has recourse; their mean cost is undefined "
            "(no_recourse_cost gives them one)"
        )
    if without:
        warnings.warn(
            f"{without} of {len(values)} {whom} people have no recourse; the mean is over the others "
            "(no_recourse_cost counts them as well)",
            NoRecourseWarning,
            stacklevel=3,
        )
    return mean_cost(values)


def _undefined(reason: str) -> float:
    """Warn, and return NaN."""
    warnings.warn(reason, UndefinedRecourseWarning, stacklevel=3)
    return float("nan")
