"""The people of an audit in memory: what is known of their groups, a row for each, and what the rejected can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._build import LEVELS, Members, is_unknown, outcomes, shares_of
from equirecourse._audit._document import Change, Counts, Details, People, Way, Ways
from equirecourse._flipsets import changes_of, flipsets_of
from equirecourse.actions import ActionSet
from equirecourse.metrics import RecourseFrame
from equirecourse.metrics._resampling import in_turn
from equirecourse.recourse import Recourse, View

__all__ = ["Judged", "choose", "notes_of", "people_table"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """People, what a model says to them, and what a yes costs those who were measured.

    Attributes
    ----------
    view : View
        The model.
    table : DataFrame
        Everybody.
    actions : ActionSet
        What they can change.
    groups : DataFrame
        Their groups as text, a column per attribute.
    accepted : ndarray of bool
        Who has a yes.
    measured : ndarray of int
        Whose recourse was looked for.
    right : ndarray of bool or None
        Whose label the model predicts; None if nobody said what the labels are.
    found : Recourse
        The answer for each of the measured.
    """

    view: View
    table: pd.DataFrame
    actions: ActionSet
    groups: pd.DataFrame
    accepted: Mask
    measured: Index
    right: Mask | None
    found: Recourse

    @cached_property
    def costs(self) -> Array:
        """Of everybody, NaN for those who were not measured."""
        costs = np.full(len(self.table), np.nan)
        costs[self.measured] = self.found.costs
        return costs

    @property
    def costs_of_frames(self) -> dict[str, Any]:
        """What a RecourseFrame asks for, groups aside."""
        looked_for, unknown = np.zeros((2, len(self.table)), dtype=bool)
        looked_for[self.measured], unknown[self.measured] = True, is_unknown(self.found)
        costs = np.where(np.isnan(self.costs), 0.0, self.costs)
        return {"costs": costs, "rejected": ~self.accepted, "measured": looked_for, "unknown": unknown}

    @property
    def counts(self) -> Counts:
        """How many they are."""
        rejected = int((~self.accepted).sum())
        return Counts(
            people=len(self.table), rejected=rejected, measured=len(self.measured), **outcomes(self.found)
        )  # fmt: skip

    @cached_property
    def _shares(self) -> Array:
        """What each feature adds to the cost of each person."""
        shares = np.zeros((len(self.table), len(self.actions)))
        shares[self.measured] = shares_of(self.actions, self.table.iloc[self.measured], self.found)
        return shares

    def members(self, attribute: str, frame: RecourseFrame) -> Members:
        """What is known of the groups of an attribute beside their costs."""
        accuracy, curves, shares = [], [], []
        finite = np.isfinite(self.costs)
        for label in frame.by_group.index:
            members = (self.groups[attribute] == label).to_numpy()
            counted = finite & members
            accuracy.append(float("nan") if self.right is None else float(self.right[members].mean()))
            costs = np.sort(self.costs[counted])
            curves.append(np.quantile(costs, LEVELS) if len(costs) else costs)
            shares.append(self._shares[counted].sum(axis=0) / max(len(costs), 1))
        return Members(accuracy, curves, np.array(shares))

    def details(self, n_flipsets: int, k: int, seed: int, settings: dict[str, Any], *, inferred: bool) -> Details:
        """A row for each person, and what those can do who were measured."""
        ways = self._ways(n_flipsets, k, seed, settings)
        notes, n_rejected, n_measured = list(self.found.notes), int((~self.accepted).sum()), len(self.measured)
        if n_measured < n_rejected:
            notes.append(f"{n_measured:,} of {n_rejected:,} rejected people were measured, drawn at random.")
        notes += notes_of(int(is_unknown(self.found).sum()), "the data" if inferred else None)
        if ways.sample:
            notes.append(
                f"Up to {k} ways to a yes were looked for {len(ways.sample)} people, drawn at random; for the "
                "others the cheapest one is shown."
            )
        return Details(people=people_table(list(self.groups.columns), self._rows()), flipsets=ways, notes=notes)

    def _rows(self) -> list[list[Any]]:
        found, right = self.found, self.right
        place = {int(person): i for i, person in enumerate(self.measured)}
        labels, members = [str(label) for label in self.table.index], self.groups.to_numpy().tolist()
        rows = []
        for i in range(len(self.table)):
            j = place.get(i)
            status = "accepted" if self.accepted[i] else "not measured" if j is None else str(found.status[j])
            cost = 0.0 if self.accepted[i] else float(self.costs[i])
            exact = j is None or bool(found.exact[j])
            rows.append([labels[i], members[i], status, cost, exact, None if right is None else bool(right[i])])
        return rows

    def _ways(self, n_flipsets: int, k: int, seed: int, settings: dict[str, Any]) -> Ways:
        """Several ways for a sample, the cheapest one for the others."""
        found, actions = self.found, self.actions
        has = np.flatnonzero(found.has_action & found.rejected)
        people = self.measured[has]
        before = self.table.iloc[people]
        after = found.counterfactuals.iloc[has].astype(before.dtypes.to_dict())
        changes = changes_of(actions, found.norm, before, after)
        sample = choose(people, self.groups[self.groups.columns[0]], n_flipsets if len(has) else 0, seed)
        by_person = {
            str(person): [
                Way(cost=way.cost, score_before=some.score, score_after=way.score, exact=way.exact,
                    changes=_plain_changes(way.changes))
                for way in some
            ]
            for person, some in zip(
                sample, flipsets_of(self.view, self.table.iloc[sample], actions, k, settings), strict=True
            )
        }  # fmt: skip
        for i, person, some in zip(has, map(str, people), changes, strict=True):
            if person not in by_person:
                way = Way(cost=float(found.costs[i]), exact=bool(found.exact[i]), changes=_plain_changes(some))
                by_person[person] = [way]
        return Ways(sample=sample.tolist(), k=k, by_person=by_person)


def _plain_changes(changes: Any) -> list[Change]:
    return [
        Change(feature=one.feature, from_=one.before, to=one.after, cost=one.cost, sentence=one.sentence)
        for one in changes
    ]


def people_table(attributes: list[str], rows: list[list[Any]]) -> People:
    """The table of people in a document."""
    columns = ["person", "groups", "status", "cost", "exact", "right"]
    return People(attributes=attributes, columns=columns, rows=rows)


def notes_of(n_unknown: int, inferred_from: str | None) -> list[str]:
    """What a reader should know of any audit."""
    notes = []
    if n_unknown:
        notes.append(f"The recourse of {n_unknown:,} people is unknown: time ran out, or a search found nothing.")
    if inferred_from:
        notes.append(
            f"What people can change was inferred from {inferred_from}, which does not say what a person cannot change."
        )
    return notes


def choose(rejected: Index, groups: pd.Series, n: int, seed: int) -> Index:
    """A sample of rejected people, as many of each group as there are."""
    order = in_turn(rejected, len(groups), seed)
    turn = groups.iloc[order].groupby(groups.iloc[order].to_numpy()).cumcount().to_numpy()
    return np.sort(order[np.argsort(turn, kind="stable")[:n]])
