"""Two models and the same people: what changed, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._cheats import cheats
from equirecourse.metrics._resampling import reduction_interval

__all__ = ["compare"]

Array = NDArray[np.float64]


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
