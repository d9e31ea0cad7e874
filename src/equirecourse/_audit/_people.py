"""The people of an audit: a row for each, and what those who were rejected can do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._flipsets import changes_of, flipsets_of
from equirecourse.actions import ActionSet
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.recourse import Recourse, View

__all__ = [
    "cheapest_changes",
    "choose",
    "is_unknown",
    "notes_on_unknown",
    "outcomes",
    "people_table",
    "warn_of_missing",
    "ways_of",
]

Index = NDArray[np.intp]


def is_unknown(found: Recourse) -> NDArray[np.bool_]:
    """For whom no cost was found, and nobody has proven that there is none."""
    return np.asarray(np.isinf(found.costs) & (found.status == "unknown"))


def outcomes(found: Recourse) -> dict[str, int]:
    """How many rejected people have recourse, have none, and nobody knows: together they are all of them."""
    with_recourse = found.rejected & np.isfinite(found.costs)
    return {
        "with_recourse": int(with_recourse.sum()),
        "without_recourse": int((found.status == "infeasible").sum()),
        "unknown": int(is_unknown(found).sum()),
        "exact": int((found.exact & with_recourse).sum()),
    }


def people_table(attributes: list[str], rows: list[list[Any]]) -> dict[str, Any]:
    """The table of people in a document; groups are a list within a row, so that no attribute's name is a column's."""
    columns = ["person", "groups", "status", "cost", "exact", "right"]
    return {"attributes": attributes, "columns": columns, "rows": rows}


def notes_on_unknown(count: int) -> list[str]:
    """Why recourse is unknown, if it is for anybody."""
    if count == 0:
        return []
    return [f"The recourse of {count:,} people is unknown: time ran out, or a search found nothing."]


def warn_of_missing(counts: Mapping[str, int]) -> None:
    """Warn of rejected people who are in no mean."""
    missing = [
        (counts["without_recourse"], "have no recourse"),
        (counts["unknown"], "have a recourse that is unknown"),
    ]
    told = " and ".join(f"{count:,} {words}" for count, words in missing if count)
    if told:
        warnings.warn(
            f"Of {counts['measured']:,} rejected people {told}; mean costs are over the other "
            f"{counts['with_recourse']:,}, and the verdict says what that leaves open.",
            NoRecourseWarning,
            stacklevel=3,
        )


def choose(rejected: Index, groups: pd.Series, n: int, seed: int) -> Index:
    """A sample of rejected people, as many of each group as there are."""
    order = np.random.default_rng(seed).permutation(rejected)
    turn = groups.iloc[order].groupby(groups.iloc[order].to_numpy()).cumcount().to_numpy()
    return np.sort(order[np.argsort(turn, kind="stable")[:n]])


def cheapest_changes(actions: ActionSet, norm: str, before: pd.DataFrame, after: pd.DataFrame) -> list[list[Any]]:
    """What the cheapest action of each person changes."""
    return [[_change(change) for change in some] for some in changes_of(actions, norm, before, after)]


def ways_of(view: View, people: pd.DataFrame, actions: ActionSet, k: int, settings: dict[str, Any]) -> list[list[Any]]:
    """Several ways to a yes for each person."""
    return [
        [
            {
                "cost": way.cost,
                "score_before": found.score,
                "score_after": way.score,
                "exact": way.exact,
                "changes": [_change(change) for change in way.changes],
            }
            for way in found
        ]
        for found in flipsets_of(view, people, actions, k, settings)
    ]


def _change(change: Any) -> dict[str, Any]:
    return {
        "feature": change.feature,
        "from": change.before,
        "to": change.after,
        "cost": change.cost,
        "sentence": change.sentence,
    }
