"""What is written down about a model and some people, always the same things."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.exceptions import SmallGroupWarning, UndefinedRecourseWarning
from equirecourse.metrics import RecourseFrame

__all__ = ["describe", "gap_of", "prefixed"]

Array = NDArray[np.float64]


def gap_of(costs: Array, groups: NDArray[Any]) -> float:
    """Largest difference between the mean costs of groups of rejected people; NaN if there are no two groups."""
    means = [costs[groups == group].mean() for group in np.unique(groups)]
    if len(means) < 2 or not np.isfinite(means).all():
        return float("nan")
    return float(max(means) - min(means))


def describe(
    costs: Array,
    rejected: NDArray[np.bool_],
    y: Array,
    groups: NDArray[Any],
    *,
    resamples: int,
    seed: int,
    measured: NDArray[np.intp] | None = None,
) -> dict[str, Any]:
    """Who is rejected, how right that is, and what a yes costs them, by group.

    Parameters
    ----------
    costs : ndarray
        Distance of each measured person.
    rejected, y, groups : ndarray
        Of everybody; ``y`` is ±1.
    resamples : int
        Permutations behind the noise floor, and resamples behind the interval.
    seed : int
        Of those.
    measured : ndarray of int, optional
        Whose distances ``costs`` are; everybody's by default.

    Returns
    -------
    dict
        One number per name. What is undefined is NaN.
    """
    rows = np.arange(len(rejected)) if measured is None else measured
    labels = np.unique(groups)
    row: dict[str, Any] = {f"rejected_{label}": int((rejected & (groups == label)).sum()) for label in labels}
    row["people"] = len(rejected)
    row["acceptance"] = float(1 - rejected.mean())
    row["accuracy"] = float((~rejected == (y > 0)).mean())
    undefined = dict.fromkeys(("gap", "gap_low", "gap_high", "mean_distance", "relative_gap", "noise_floor"), np.nan)
    present = np.unique(groups[rows][rejected[rows]])
    if len(present) < len(labels):
        return row | undefined
    with warnings.catch_warnings():
        for category in (SmallGroupWarning, UndefinedRecourseWarning):
            warnings.simplefilter("ignore", category=category)
        frame = RecourseFrame(
            costs=costs,
            rejected=rejected[rows],
            sensitive_features=groups[rows],
            n_boot=resamples,
            n_permutations=resamples,
            random_state=seed,
        )
        return row | {
            "gap": frame.gap,
            "gap_low": frame.interval.low,
            "gap_high": frame.interval.high,
            "mean_distance": float(frame.overall["mean"]),
            "relative_gap": frame.relative_gap,
            "noise_floor": frame.noise_floor,
        }


def prefixed(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same with ``names`` before each key."""
    return {"_".join((*names, key)): value for key, value in row.items()}
