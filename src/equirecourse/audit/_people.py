"""The people of an audit: a row for each, and what those who were rejected can do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions import ActionSet
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.flipsets import changes_of, flipsets

__all__ = ["cheapest_changes", "choose", "ways_of"]

Index = NDArray[np.intp]


def choose(rejected: Index, groups: pd.Series, n: int, seed: int) -> Index:
    """A sample of rejected people, as many of each group as there are."""
    order = np.random.default_rng(seed).permutation(rejected)
    turn = groups.iloc[order].groupby(groups.iloc[order].to_numpy()).cumcount().to_numpy()
    return np.sort(order[np.argsort(turn, kind="stable")[:n]])


def cheapest_changes(actions: ActionSet, norm: str, before: pd.DataFrame, after: pd.DataFrame) -> list[list[Any]]:
    """What the cheapest action of each person changes."""
    return [[_change(change) for change in some] for some in changes_of(actions, norm, before, after)]


def ways_of(model: Any, person: pd.DataFrame, actions: ActionSet, k: int, settings: dict[str, Any]) -> list[Any]:
    """Several ways to a yes for one person."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)
        found = flipsets(model, person, actions=actions, k=k, **settings)
    return [
        {
            "cost": way.cost,
            "score_before": found.score,
            "score_after": way.score,
            "exact": way.exact,
            "changes": [_change(change) for change in way.changes],
        }
        for way in found
    ]


def _change(change: Any) -> dict[str, Any]:
    return {
        "feature": change.feature,
        "from": change.before,
        "to": change.after,
        "cost": change.cost,
        "sentence": change.sentence,
    }
