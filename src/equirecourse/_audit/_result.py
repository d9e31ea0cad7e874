"""What an audit found: verdicts, tables and people, to be printed, compared and written."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._compare import compare
from equirecourse._audit._document import Details, FrontierRow, Summary, write_json
from equirecourse._files import write_beside
from equirecourse.metrics import RecourseFrame, State
from equirecourse.recourse import Recourse
from equirecourse.report import render

__all__ = ["RecourseAudit"]

Array = NDArray[np.float64]

# Keys of a group's section that hold no number.
_WORDS = ("group", "name", "curve", "contributions")
_N_BOOT = 1000  # resamples of a reduction


@dataclass(frozen=True)
class RecourseAudit:
    """What a model's recourse is like, group by group.

    Attributes
    ----------
    sections : Summary
        What the audit says of groups and features.
    frames : mapping of str to RecourseFrame
        The numbers behind each attribute.
    recourse : Recourse
        The answer for each person who was measured.
    """

    sections: Summary = field(repr=False)
    frames: Mapping[str, RecourseFrame]
    recourse: Recourse
    _costs: Array = field(repr=False)
    _groups: pd.DataFrame = field(repr=False)
    _details: Callable[[], Details] = field(repr=False)  # a row per person, and their ways to a yes

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the audit says of groups and features, in plain values: the document without its people."""
        return self.sections.to_dict()

    @cached_property
    def document(self) -> dict[str, Any]:
        """Everything in plain values, see :func:`~equirecourse.audit_schema`; the report is drawn from it alone.

        A row per person, and what each of them can do. For very many people that is put together when it is first
        asked for, which takes far longer than the audit.
        """
        return {**self.sections.to_dict(), **self._details().to_dict()}

    def __getstate__(self) -> dict[str, Any]:
        # What puts the rows together holds the model and all people; a copy has the rows.
        return vars(self) | {"_details": partial(replace, self._details())}

    @property
    def verdicts(self) -> dict[str, str]:
        """One sentence per attribute."""
        return {section.name: section.verdict for section in self.sections.attributes}

    @property
    def largest_gap(self) -> float:
        """The largest gap of all attributes whose verdict is a gap, 0 if there is none.

        Infinite if the groups of an attribute differ in the share of the rejected who have no recourse at all: no cost
        makes up for that.
        """
        gaps = [section for section in self.sections.attributes if section.state is State.GAP]
        return max((float("inf") if section.gap_in_shares else section.gap for section in gaps), default=0.0)

    @property
    def cannot_tell(self) -> list[str]:
        """Attributes of which nobody can tell whether there is a gap, or how large it is at most."""
        unknown = self.sections.counts.unknown > 0
        return [section.name for section in self.sections.attributes if unknown or section.state is State.CANNOT_TELL]

    @property
    def by_group(self) -> pd.DataFrame:
        """A row per attribute and group: people, rejected, without_recourse, unknown, mean, quantiles, accuracy."""
        rows = [
            {"attribute": section.name, "group": row.name}
            | {key: value for key, value in vars(row).items() if key not in _WORDS}
            for section in self.sections.attributes
            for row in section.by_group
        ]
        return pd.DataFrame(rows).set_index(["attribute", "group"])

    @property
    def people(self) -> pd.DataFrame:
        """A row per person: the group of each attribute ("group_sex", ...), status, cost, exact, right."""
        table = self.document["people"]
        frame = pd.DataFrame(table["rows"], columns=table["columns"]).set_index("person")
        frame["cost"] = [float("nan") if cost is None else float(cost) for cost in frame["cost"]]
        names = [f"group_{name}" for name in table["attributes"]]
        groups = pd.DataFrame(frame.pop("groups").tolist(), columns=names, index=frame.index)
        return pd.concat([groups, frame], axis=1)

    def compared_with(
        self,
        before: RecourseAudit,
        *,
        placebo: RecourseAudit | None = None,
        seed: int = 0,
        islands: tuple[float, float] | None = None,
        kept: str | None = None,
    ) -> RecourseAudit:
        """The same audit with a section that sets it beside that of another model of the same people.

        Parameters
        ----------
        before : RecourseAudit
            Of the model that this one replaces.
        placebo : RecourseAudit, optional
            Of a model that was fitted anew without the method.
        seed : int, default=0
            Of the bootstrap interval of the reduction.
        islands : (float, float), optional
            Share of counterfactuals that are far from any accepted person, before and after.
        kept : str, optional
            Why the plain model was kept, where both audits are of the same one.

        Returns
        -------
        RecourseAudit
            With ``document["comparison"]``.
        """
        for other in (before, placebo):
            if other is not None and not self._groups.equals(other._groups):
                raise ValueError("Audits are compared for the same people and attributes in the same order.")
        comparison = compare(
            before.sections, self.sections, (before._costs, self._costs), self._groups,
            None if placebo is None else placebo.sections, _N_BOOT, seed, islands,
        )  # fmt: skip
        return replace(self, sections=replace(self.sections, comparison=replace(comparison, kept=kept)))

    def with_frontier(self, frontier: Any, chosen: int) -> RecourseAudit:
        """The same audit with the trade between accuracy and gap that its model was chosen from.

        Parameters
        ----------
        frontier : Frontier
            Of :func:`~equirecourse.recourse_frontier`.
        chosen : int
            The row that was chosen.

        Returns
        -------
        RecourseAudit
            With ``document["frontier"]``.
        """
        names = ("gap", "gap_low", "gap_high", "noise_floor", "relative_gap", "accuracy", "acceptance")
        rows = [
            FrontierRow(**{name: row[name] for name in names}, chosen=place == chosen, plain=place == 0)
            for place, (_, row) in enumerate(frontier.table.iterrows())
        ]
        return replace(self, sections=replace(self.sections, frontier=rows))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the document.

        Parameters
        ----------
        path : path-like
            Where to.
        """
        write_json(self.document, path)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report: one file that needs nothing else, not even a network.

        Parameters
        ----------
        path : path-like
            Where to.
        """
        write_beside(path, render(self.document))

    def __repr__(self) -> str:
        sentences = [f"{name}: {verdict}" for name, verdict in self.verdicts.items()]
        return "\n".join([*sentences, "", self._table().to_string(float_format=lambda value: f"{value:.3g}")])

    def _table(self) -> pd.DataFrame:
        columns = ["people", "rejected", "acceptance", "without_recourse", "unknown", "mean", "median", "accuracy"]
        return self.by_group[columns].dropna(axis=1, how="all")

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><b>{html.escape(name)}</b>: {html.escape(verdict)}</li>" for name, verdict in self.verdicts.items()
        )
        table = self._table().to_html(float_format=lambda value: f"{value:.3g}", border=0, escape=True)
        return f"<div class='equirecourse-audit'><ul>{items}</ul>{table}</div>"
