"""One way to a yes, and several of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from equirecourse._flipsets._words import show

__all__ = ["Change", "Flipset", "Flipsets"]


@dataclass(frozen=True)
class Change:
    """One feature that changes.

    Attributes
    ----------
    feature : str
        Its name.
    before, after : number or label
        Its values, as they stand in the table.
    cost : float
        What this change costs by itself; 0 for a feature that is carried along by a link.
    sentence : str
        The change in words.
    """

    feature: str
    before: Any
    after: Any
    cost: float
    sentence: str


@dataclass(frozen=True)
class Flipset:
    """One way to a yes.

    Attributes
    ----------
    changes : tuple of Change
        What to do, the dearest change first.
    cost : float
        What all of it costs.
    score : float
        The model's score afterwards, NaN if it has none.
    exact : bool
        Whether it is proven to be the cheapest way that leaves the features alone that it leaves alone.
    person : Series
        The person afterwards: this row was accepted by the model.
    """

    changes: tuple[Change, ...]
    cost: float
    score: float
    exact: bool
    person: pd.Series

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that change."""
        return tuple(change.feature for change in self.changes)

    def __str__(self) -> str:
        return "; ".join(change.sentence for change in self.changes) + "."


@dataclass(frozen=True)
class Flipsets:
    """Ways to a yes for one person, the cheapest first; each leaves alone something that each one before it changes.

    Attributes
    ----------
    ways : tuple of Flipset
        The flipsets.
    status : {"accepted", "found", "infeasible", "unknown"}
        As in :class:`~equirecourse.recourse.Recourse`.
    score : float
        The model's score before, NaN if it has none.
    norm : str
        How costs are measured.
    notes : tuple of str
        What a reader should know.

    See Also
    --------
    equirecourse.flipsets : the function that makes them.
    """

    ways: tuple[Flipset, ...]
    status: str
    score: float
    norm: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ways)

    def __iter__(self) -> Iterator[Flipset]:
        return iter(self.ways)

    def __getitem__(self, place: int) -> Flipset:
        return self.ways[place]

    def to_frame(self) -> pd.DataFrame:
        """One row per change: flipset, feature, from, to, cost, total cost, score before and after, sentence."""
        rows = [
            {
                "flipset": number,
                "feature": change.feature,
                "from": change.before,
                "to": change.after,
                "cost": change.cost,
                "total_cost": way.cost,
                "score_before": self.score,
                "score_after": way.score,
                "sentence": change.sentence,
            }
            for number, way in enumerate(self.ways, start=1)
            for change in way.changes
        ]
        columns = ["flipset", "feature", "from", "to", "cost", "total_cost", "score_before", "score_after", "sentence"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def verdict(self) -> str:
        """What there is to say in one sentence."""
        if self.status == "accepted":
            return "The model says yes already: nothing needs to change."
        if self.status == "infeasible":
            return "No allowed change leads to a yes: this person has no recourse."
        if not self.ways:
            return "No change that leads to a yes was found; it is not known whether there is one."
        return f"{len(self.ways)} way{'s' * (len(self.ways) > 1)} to a yes, the cheapest first."

    def __repr__(self) -> str:
        lines = [self.verdict]
        for number, way in enumerate(self.ways, start=1):
            scores = "" if np.isnan(way.score) else f", score {self.score:+.3g} → {way.score:+.3g}"
            lines.append(f"{number}. cost {way.cost:.3g}{'' if way.exact else ' at most'}{scores}")
            lines += [f"   {change.sentence}" for change in way.changes]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        rows = []
        for number, way in enumerate(self.ways, start=1):
            for place, change in enumerate(way.changes):
                shared = ""
                if place == 0:
                    span = f' rowspan="{len(way.changes)}"'
                    after = "" if np.isnan(way.score) else f"{self.score:+.3g} → {way.score:+.3g}"
                    shared = f"<td{span}>{number}</td><td{span}>{way.cost:.3g}</td><td{span}>{after}</td>"
                cells = (change.feature, show(change.before), show(change.after), f"{change.cost:.3g}", change.sentence)
                rows.append(f"<tr>{shared}" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        heads = ("way", "total cost", "score", "feature", "from", "to", "cost", "in words")
        table = (
            f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.verdict)}</p>{table if rows else ''}{notes}"
