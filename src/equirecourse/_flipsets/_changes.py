"""What differs between people before and after an action, change by change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._flipsets._flipset import Change
from equirecourse._flipsets._words import sentence
from equirecourse.actions import ActionSet

__all__ = ["changes_of"]


def changes_of(actions: ActionSet, norm: str, before: Any, after: Any) -> list[tuple[Change, ...]]:
    """List the changes of each person, the dearest first.

    Parameters
    ----------
    actions : ActionSet
        What could change, and what it costs.
    norm : str
        As in :func:`~equirecourse.find_recourse`.
    before, after : table of shape (n_people, n_columns)
        The same people.

    Returns
    -------
    list of tuple of Change
        One entry per person.

    Examples
    --------
    >>> from equirecourse.actions import ActionSet, Feature
    >>> from equirecourse._flipsets import changes_of
    >>> actions = ActionSet([Feature("income", cost=0.1), Feature("debts")])
    >>> [change.sentence for change in changes_of(actions, "l1", [[10, 3]], [[25, 2]])[0]]
    ['Raise income from 10 to 25', 'Lower debts from 3 to 2']
    """
    before, after = actions.table(before), actions.table(after)
    start = actions.encode(before)
    own = actions.own(before, after)
    parts, ends = actions.costs(norm, start, own), actions.carry(start, own)
    moved = (ends != start) & ~np.isnan(ends)
    sides = ((_values(actions, before, moved), start), (_values(actions, after, moved), ends))
    found = []
    for i in range(len(start)):
        changes = []
        for j in np.flatnonzero(moved[i]):
            feature = actions.features[j]
            old, new = (
                feature.labels[int(codes[i, j])] if feature.kind == "one_hot" else values[feature.name][i]
                for values, codes in sides
            )
            carried = bool(own[i, j] == start[i, j])
            words = sentence(feature, old, new, carried=carried)
            changes.append(Change(feature.name, old, new, float(parts[i, j]), words))
        found.append(tuple(sorted(changes, key=lambda change: -change.cost)))
    return found


def _values(actions: ActionSet, table: pd.DataFrame, moved: NDArray[np.bool_]) -> dict[str, list[Any]]:
    """The columns that change for anybody, as plain values: a table gives them one by one a hundred times slower."""
    some = (actions.features[j] for j in np.flatnonzero(moved.any(axis=0)))
    return {feature.name: table[feature.name].tolist() for feature in some if feature.kind != "one_hot"}
