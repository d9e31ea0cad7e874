"""One sensitive attribute: the frame, its verdict among all comparisons, and what the difference is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.metrics import RecourseFrame

__all__ = ["describe", "holm", "verdict"]

Array = NDArray[np.float64]

_LEVELS = np.linspace(0.0, 1.0, 101)


def holm(p_values: list[float]) -> list[float]:
    """P-values for as many comparisons, by Holm's step-down rule; undefined ones are not counted.

    Examples
    --------
    >>> from equirecourse.audit._attributes import holm
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


def verdict(frame: RecourseFrame, corrected: float, unit: str) -> tuple[bool | None, str]:
    """Whether there is a gap, None if that has no answer, and the sentence that says so."""
    if np.isnan(frame.gap):
        return None, frame.verdict
    level = round(1 - frame.confidence, 12)
    if not (frame.detectable and corrected <= level):
        return False, f"no detectable gap: {frame.gap:.3g} {unit}, noise floor {frame.noise_floor:.3g}"
    means = frame.by_group["mean"]
    low, high = frame.interval
    far, near = (_name(means.index[int(pick(means.to_numpy()))]) for pick in (np.argmax, np.argmin))
    return True, f"gap of {frame.gap:.3g} ± {(high - low) / 2:.2g} {unit}, {far} further from a yes than {near}"


def _name(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def describe(
    name: str,
    frame: RecourseFrame,
    corrected: float,
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
    corrected : float
        P-value for all comparisons of the audit.
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
    is_gap, sentence = verdict(frame, corrected, unit)
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
        "is_gap": is_gap,
        "verdict": sentence,
        "p_corrected": corrected,
        "furthest": labels[far] if is_gap else None,
        "nearest": labels[near] if is_gap else None,
        **{key: value for key, value in section.items() if key != "verdict"},
        "contributions": [
            {"feature": features[j], "difference": float(parts[far, j] - parts[near, j])}
            for j in order
            if parts[:, j].any()
        ],
    }
