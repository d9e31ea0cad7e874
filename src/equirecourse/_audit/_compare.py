"""Two models and the same people: what changed, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._cheats import cheats

__all__ = ["compare", "reduction_interval"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CHUNK = 4_000_000  # resampled people at a time


def compare(before: dict[str, Any], after: dict[str, Any], costs: tuple[Array, Array], groups: pd.DataFrame,
            placebo: dict[str, Any] | None, n_boot: int, seed: int,
            islands: tuple[float, float] | None = None) -> dict[str, Any]:  # fmt: skip
    """The section of a document that sets two audits side by side.

    Parameters
    ----------
    before, after : dict
        Documents of the same people and attributes.
    costs : two arrays
        Costs of all people under each model, NaN for accepted people.
    groups : DataFrame
        Groups of all people as text, a column per attribute.
    placebo : dict or None
        The document of a model fitted anew without the method.
    n_boot, seed : int
        Of the interval.
    islands : (float, float) or None
        Share of counterfactuals far from any accepted person, before and after.

    Returns
    -------
    dict
        Plain values: one entry per attribute, with what each of four cheats would look like, and the models' accuracy
        and acceptance.
    """
    sides = {"before": before, "after": after, **({} if placebo is None else {"placebo": placebo})}
    attributes = []
    for place, section in enumerate(before["attributes"]):
        name = section["name"]
        interval = reduction_interval(*costs, groups[name].to_numpy(), n_boot, seed)
        attributes.append(
            {
                "name": name,
                "reduction": _difference(section["gap"], after["attributes"][place]["gap"]),
                "reduction_interval": list(interval),
                **{side: _gap(document["attributes"][place]) for side, document in sides.items()},
                "cheats": cheats(*costs, groups[name].to_numpy(), islands),
            }
        )
    return {
        "attributes": attributes,
        "models": {side: dict(document["model"]) for side, document in sides.items()},
    }


def _gap(section: dict[str, Any]) -> dict[str, Any]:
    names = ("gap", "interval", "noise_floor", "relative_gap", "p_value", "state", "verdict")
    rejected = {row["name"]: row["rejected"] for row in section["by_group"]}
    return {**{name: section[name] for name in names}, "rejected": rejected}


def _difference(before: Any, after: Any) -> float:
    return float("nan") if before is None or after is None else float(before) - float(after)


def reduction_interval(
    before: Array, after: Array, groups: NDArray[Any], n_boot: int, seed: int
) -> tuple[float, float]:
    """95 % bootstrap interval of the gap before less the gap after, with the same people drawn for both.

    Parameters
    ----------
    before, after : ndarray
        Costs under each model; NaN for accepted people, infinite costs are left out.
    groups : ndarray
        Group of each person.
    n_boot, seed : int
        Number of resamples, and their seed.

    Returns
    -------
    low, high : float
        NaN if a group has nobody to average.
    """
    rng = np.random.default_rng(seed)
    labels = np.unique(groups)
    means = np.full((2, n_boot, len(labels)), np.nan)
    for k, label in enumerate(labels):
        members = groups == label
        sides = [side[members] for side in (before, after)]
        counted = [np.isfinite(side) for side in sides]
        if not all(some.any() for some in counted):
            return float("nan"), float("nan")
        size = max(1, _CHUNK // int(members.sum()))
        for start in range(0, n_boot, size):
            some = slice(start, min(start + size, n_boot))
            draws = rng.poisson(1.0, size=(some.stop - some.start, int(members.sum())))  # how often each is drawn
            for side in range(2):
                total = draws @ np.where(counted[side], sides[side], 0.0)
                with np.errstate(invalid="ignore", divide="ignore"):
                    means[side, some, k] = total / (draws @ counted[side].astype(float))
    gaps = means.max(axis=2) - means.min(axis=2)
    return tuple(np.nanquantile(gaps[0] - gaps[1], [0.025, 0.975]).tolist())
