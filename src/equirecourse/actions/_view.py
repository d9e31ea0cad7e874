"""An action set as a table: for further work, for a terminal, for a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from equirecourse.actions._feature import Feature
from equirecourse.actions._words import in_words, limits_in_words, one_line, quoted

if TYPE_CHECKING:
    from equirecourse.actions._action_set import ActionSet

__all__ = ["as_html", "as_text", "to_frame"]

_ROWS = 60  # features that a view shows before it is cut
_TITLES = ("feature", "kind", "change", "values", "step", "cost")


def to_frame(actions: ActionSet) -> pd.DataFrame:
    """A row per feature, with everything but the percentiles."""
    rows = [
        {
            "feature": feature.name,
            "kind": feature.kind,
            "change": feature.change,
            "low": feature.low if feature.is_number else np.nan,
            "high": feature.high if feature.is_number else np.nan,
            "step": np.nan if feature.step is None else feature.step,
            "labels": None if feature.is_number else feature.labels,
            "allowed": feature.allowed,
            "cost": feature.cost,
        }
        for feature in actions
    ]
    kinds = dict.fromkeys(("feature", "kind", "change", "labels", "allowed"), "object")
    kinds |= dict.fromkeys(("low", "high", "step", "cost"), "float64")
    columns = ["feature", "kind", "change", "low", "high", "step", "labels", "allowed", "cost"]
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def as_text(actions: ActionSet) -> str:
    """Title, aligned table, links and rules."""
    table = [_TITLES, *(_cells(feature) for feature in actions.features[:_ROWS])]
    widths = [max(len(row[k]) for row in table) for k in range(len(_TITLES))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    parts = [_title(actions), "\n".join([*lines, *_left_out(actions)])]
    for title, items in _lists(actions):
        parts.append("\n".join([f"{title}:", *(f"  {item}" for item in items)]))
    return "\n\n".join(parts)


def as_html(actions: ActionSet) -> str:
    """Do the same for a notebook; whatever came with the data is escaped."""

    def row(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join(row(_cells(feature), "td") for feature in actions.features[:_ROWS])
    parts = [
        f"<p>{html.escape(_title(actions))}</p>",
        f"<table>\n<thead>{row(_TITLES, 'th')}</thead>\n<tbody>\n{body}\n</tbody>\n</table>",
        *(f"<p>{html.escape(line)}</p>" for line in _left_out(actions)),
    ]
    for title, items in _lists(actions):
        listed = "".join(f"<li>{html.escape(item)}</li>" for item in items)
        parts.append(f"<p>{html.escape(title)}</p>\n<ul>{listed}</ul>")
    return "<div class='equirecourse-actions'>" + "\n".join(parts) + "</div>"


def _title(actions: ActionSet) -> str:
    n_mutable = sum(feature.mutable for feature in actions)
    return f"ActionSet: {len(actions)} feature{'s' * (len(actions) != 1)}, {n_mutable} can change"


def _left_out(actions: ActionSet) -> list[str]:
    left = len(actions) - _ROWS
    return [f"... and {left} more"] if left > 0 else []


def _lists(actions: ActionSet) -> list[tuple[str, list[str]]]:
    lists = (
        ("links", [one_line(str(link)) for link in actions.links]),
        ("rules", [one_line(str(rule)) for rule in actions.rules]),
    )
    return [(title, items) for title, items in lists if items]


def _cells(feature: Feature) -> tuple[str, ...]:
    step = "" if feature.step is None else in_words(feature.step)
    cells = (feature.name, feature.kind, feature.change, _values(feature), step, f"{feature.cost:.3g}")
    return tuple(one_line(cell) for cell in cells)


def _values(feature: Feature) -> str:
    if feature.is_number:
        return limits_in_words(feature.low, feature.high).removeprefix("from ")
    if feature.allowed is None:
        return quoted(feature.labels, most=50)
    return f"to {quoted(feature.allowed, most=40)} (of {len(feature.labels)})"
