"""One sensitive attribute: the frame, its verdict among all comparisons, and what the difference is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.metrics import RecourseFrame, State

__all__ = ["corrected_p_values", "describe", "extremes", "holm", "judged"]

Array = NDArray[np.float64]

_LEVELS = np.linspace(0.0, 1.0, 101)


def holm(p_values: list[float]) -> list[float]:
    """P-values for as many comparisons, by Holm's step-down rule; undefined ones are not counted.

    Examples
    --------
    >>> from equirecourse._audit._attributes import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = [(p, place) for place, p in enumerate(p_values) if not np.isnan(p)]
    corrected = [float("nan")] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        corrected[place] = round(highest, 12)
    return corrected


def corrected_p_values(frames: Mapping[str, RecourseFrame]) -> list[tuple[float, float]]:
    """For each attribute the p-values of its means and of its shares without recourse, for all tests of the audit."""
    frames_of = list(frames.values())
    corrected = holm([frame.p_value for frame in frames_of] + [frame.share_p_value for frame in frames_of])
    return list(zip(corrected[: len(frames_of)], corrected[len(frames_of) :], strict=True))


def judged(frame: RecourseFrame, corrected: tuple[float, float], unit: str) -> dict[str, Any]:
    """What the document says first of an attribute."""
    p_value, share_p_value = corrected
    found = frame.judge(p_value=p_value, share_p_value=share_p_value, unit=unit)
    return {
        "state": found.state.value,
        "verdict": found.sentence,
        "gap_in_shares": found.in_shares,
        "p_corrected": p_value,
        "share_p_corrected": share_p_value,
    }


def extremes(headline: Mapping[str, Any], far: str, near: str) -> dict[str, str | None]:
    """The two groups whose mean costs are furthest apart, where the means make the gap."""
    in_means = headline["state"] == State.GAP and not headline["gap_in_shares"]
    return {"furthest": far if in_means else None, "nearest": near if in_means else None}


def _name(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def describe(
    name: str,
    frame: RecourseFrame,
    corrected: tuple[float, float],
    unit: str,
    groups: pd.Series,
    costs: Array,
    shares: Array,
    features: list[str],
    right: NDArray[np.bool_] | None,
) -> dict[str, Any]:
    """Everything about one attribute.

    Parameters
    ----------
    name : str
        The attribute.
    frame : RecourseFrame
        Costs by group.
    corrected : two floats
        P-values of means and shares for all comparisons of the audit.
    unit : str
        What costs are counted in.
    groups : Series
        Group of each person, as text.
    costs : ndarray
        Cost of each person; NaN for accepted people, and for those who were not measured.
    shares : ndarray of shape (n_people, n_features)
        What each feature adds to the cost.
    features : list of str
        Their names.
    right : ndarray of bool or None
        Whose label the model predicts; None if nobody said what the labels are.

    Returns
    -------
    dict
        Plain values.
    """
    headline = judged(frame, corrected, unit)
    section = frame.to_dict()
    labels = [_name(label) for label in frame.by_group.index]
    finite = np.isfinite(costs)
    counted = [finite & (groups == label).to_numpy() for label in labels]
    parts = np.array([shares[some].sum(axis=0) / max(int(some.sum()), 1) for some in counted])
    means = frame.by_group["mean"].to_numpy()
    far, near = (int(pick(means)) if not np.isnan(means).any() else 0 for pick in (np.argmax, np.argmin))
    order = np.argsort(-np.abs(parts[far] - parts[near]), kind="stable")
    for place, (row, label) in enumerate(zip(section["by_group"], labels, strict=True)):
        members = (groups == label).to_numpy()
        row["name"] = label
        row["accuracy"] = None if right is None else float(right[members].mean())
        own = np.sort(costs[finite & members])
        row["curve"] = np.quantile(own, _LEVELS).tolist() if len(own) else []
        row["contributions"] = {features[j]: float(parts[place, j]) for j in order}
    return {
        "name": name,
        **section,
        **headline,
        **extremes(headline, labels[far], labels[near]),
        "contributions": [
            {"feature": features[j], "difference": float(parts[far, j] - parts[near, j])}
            for j in order
            if parts[:, j].any()
        ],
    }
