"""One part of the people of a streamed audit: recourse for the rejected, then nothing but sums."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._build import ask, is_right, is_unknown, outcomes, shares_of
from equirecourse._validation import refuse_missing_groups, shown
from equirecourse.actions import ActionSet
from equirecourse.metrics import CostSummary
from equirecourse.recourse import View

__all__ = ["MOST_GROUPS", "PartSummary", "Question", "summarise"]

MOST_GROUPS = 1000  # of an attribute: more are names of people, and memory would grow with them
_MOST_NOTES = 20
_NOBODY = dict.fromkeys(("with_recourse", "without_recourse", "unknown", "exact"), 0)


@dataclass(frozen=True)
class Question:
    """What is asked about every part.

    Attributes
    ----------
    view : View
        The model.
    actions : ActionSet
        What people can change.
    features : list of str
        Columns that the model sees.
    target : str or None
        Column of the labels.
    attributes : list of str
        Columns of the groups.
    intersections : bool
        Whether their combinations are an attribute as well.
    settings : mapping
        Of ``find_recourse``.
    """

    view: View
    actions: ActionSet
    features: list[str]
    target: str | None
    attributes: list[str]
    intersections: bool
    settings: Mapping[str, Any]

    @property
    def columns(self) -> list[str]:
        """Everything that is read."""
        return list(dict.fromkeys([*self.features, *self.attributes, *([self.target] if self.target else [])]))


@dataclass(frozen=True)
class PartSummary:
    """What is kept of a part: a few thousand numbers, however many people there were.

    Attributes
    ----------
    counts : mapping of str to int
        People, rejected, right, with_recourse, without_recourse, unknown, exact.
    attributes : mapping of str to CostSummary
        Costs by group.
    method : str
        The engine that answered.
    notes : mapping
        What the engine had to say, numbers aside: its words in the first part that said so, and in how many parts.
    """

    counts: Mapping[str, int]
    attributes: Mapping[str, CostSummary]
    method: str | None = None
    notes: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @staticmethod
    def merge(parts: Sequence[PartSummary]) -> PartSummary:
        """The summary of all parts."""
        notes: dict[str, tuple[str, int]] = {}
        for part in parts:
            for key, (words, times) in part.notes.items():
                if key in notes or len(notes) < _MOST_NOTES:
                    notes[key] = (notes.get(key, (words, 0))[0], notes.get(key, (words, 0))[1] + times)
        attributes = {
            name: CostSummary.merge([part.attributes[name] for part in parts]) for name in parts[0].attributes
        }
        for name, summary in attributes.items():
            _check_groups(name, summary.labels)
        return PartSummary(
            counts={name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
            attributes=attributes,
            method=next((part.method for part in parts if part.method is not None), None),
            notes=notes,
        )


def summarise(question: Question, part: pd.DataFrame) -> PartSummary:
    """Find recourse for the rejected of a part, and keep sums alone.

    Parameters
    ----------
    question : Question
        What is asked.
    part : DataFrame
        People, with the columns of the question.

    Returns
    -------
    PartSummary
        That of a part without people is empty, and can be merged all the same.
    """
    table = question.actions.table(part[question.features].reset_index(drop=True))
    n = len(table)
    labels = question.view.labels(table) if n else np.empty(0, dtype=object)
    rejected = np.asarray(labels != question.view.favorable)
    right = None
    if question.target is not None:
        whose = f"The column {question.target!r}"
        right = is_right(labels, part[question.target].to_numpy(), question.view.model.classes_, whose)
    costs, shares = np.zeros(n), np.zeros((n, len(question.actions)))
    unknown = np.zeros(n, dtype=bool)
    found = None
    if rejected.any():
        asked = table.iloc[np.flatnonzero(rejected)]
        found = ask(question.view, asked, question.actions, question.settings)
        costs[rejected], unknown[rejected] = found.costs, is_unknown(found)
        shares[rejected] = shares_of(question.actions, asked, found)
    totals = {"shares": shares, **({} if right is None else {"right": right.astype(float)})}
    return PartSummary(
        counts={
            "people": n,
            "rejected": int(rejected.sum()),
            "right": 0 if right is None else int(right.sum()),
            **(_NOBODY if found is None else outcomes(found)),
        },
        attributes={
            name: CostSummary.of(costs, rejected, codes, names, totals, unknown)
            for name, codes, names in _groups(question, part)
        },
        method=None if found is None else found.method,
        # The same words with other numbers are the same note.
        notes={} if found is None else {re.sub(r"\d+", "#", note): (note, 1) for note in found.notes},
    )


def _groups(question: Question, part: pd.DataFrame) -> list[tuple[str, NDArray[np.intp], list[str]]]:
    """For each attribute its name, each person's group as a number, and the names of the groups."""
    found = []
    for name in question.attributes:
        codes, values = pd.factorize(part[name], use_na_sentinel=True)
        refuse_missing_groups(int((codes < 0).sum()), len(part))
        names = [str(value) for value in values]
        _check_groups(name, names)
        found.append((name, codes.astype(np.intp), names))
    if question.intersections and len(found) > 1:
        keys = pd.DataFrame({name: np.asarray(names, dtype=object)[codes] for name, codes, names in found})
        crossed, rows = pd.factorize(pd.MultiIndex.from_frame(keys))
        names = [", ".join(row) for row in rows]
        name = " × ".join(question.attributes)
        _check_groups(name, names)
        found.append((name, crossed.astype(np.intp), names))
    return found


def _check_groups(name: str, labels: Sequence[str]) -> None:
    if len(labels) > MOST_GROUPS:
        raise ValueError(
            f"The column {name!r} has more than {MOST_GROUPS} groups ({shown(labels[0])}, ...); a streamed audit keeps "
            "a table of costs for each of them. Put them together, or leave the column out."
        )
