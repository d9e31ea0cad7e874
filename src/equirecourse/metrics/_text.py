"""A RecourseFrame in words, as a table and as a dictionary."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from equirecourse.metrics._rejected import RejectedCosts

if TYPE_CHECKING:
    from equirecourse.metrics._frame import RecourseFrame

__all__ = ["as_html", "as_text", "means_in_words", "values"]

_WHOLE = ("people", "rejected", "measured")  # columns of whole numbers
_ROWS = 60  # groups that a printed table shows before it is cut in the middle


def means_in_words(frame: RecourseFrame, people: RejectedCosts, detectable: bool, unit: str | None) -> str:
    """Compare the groups' mean costs in words; with a unit shortly, else with everything that is known of the gap."""
    if reasons := people.undefined():
        more = f" (and {len(reasons) - 1} more such groups)" if len(reasons) > 1 else ""
        return f"gap undefined: {reasons[0]}{more}"
    (low, high), level = frame.interval, f"{100 * frame.confidence:g} %"
    far, near = (people.groups.labels[int(pick(people.means))] for pick in (np.argmax, np.argmin))
    if unit is not None:
        if detectable:
            return f"gap of {frame.gap:.3g} ± {(high - low) / 2:.2g} {unit}, {far} further from a yes than {near}"
        return f"no detectable gap: {frame.gap:.3g} {unit}, noise floor {frame.noise_floor:.3g}"
    sure = f"no {level} interval" if math.isnan(low) else f"{level} interval {low:.3g} to {high:.3g}"
    sure += f", noise floor {frame.noise_floor:.3g}, p = {frame.p_value:.2g}"
    if detectable:
        return f"gap of {frame.gap:.3g} ({sure}): {far!r} further from a yes than {near!r}"
    return f"no detectable gap: {frame.gap:.3g} ({sure})"


def as_text(frame: RecourseFrame) -> str:
    """Verdict and table, for a terminal."""
    table = _table(frame).to_string(max_rows=_ROWS, float_format=_number, na_rep="nan")
    return f"{frame.verdict}\n\n{table}"


def as_html(frame: RecourseFrame) -> str:
    """Verdict and table, for a notebook; every value that came with the data is escaped."""
    table = _table(frame).to_html(max_rows=_ROWS, float_format=_number, na_rep="nan", escape=True, border=0)
    return f"<div class='equirecourse-frame'><p>{html.escape(frame.verdict)}</p>\n{table}</div>"


def values(frame: RecourseFrame, people: RejectedCosts) -> dict[str, Any]:
    """Put everything a frame knows into one dictionary."""
    names = people.groups.names
    labels = [label if isinstance(label, tuple) and len(names) > 1 else (label,) for label in people.groups.labels]
    counts = {name: count for name, count in people.counts().items() if name in _WHOLE}
    judged = frame.judge()
    rows = frame.by_group.to_dict(orient="records")
    return {
        "state": judged.state,
        "verdict": judged.sentence,
        "gap": frame.gap,
        "interval": frame.interval,
        "noise_floor": frame.noise_floor,
        "p_value": frame.p_value,
        "share_p_value": frame.share_p_value,
        "relative_gap": frame.relative_gap,
        "detectable": frame.detectable,
        "confidence": frame.confidence,
        "n_boot": frame.n_boot,
        "n_permutations": frame.n_permutations,
        "no_recourse_cost": frame.no_recourse_cost,
        "sensitive_features": list(names),
        "overall": frame.overall.astype(object).to_dict() | counts,
        "by_group": [
            {"group": dict(zip(names, label, strict=True)), **row} for label, row in zip(labels, rows, strict=True)
        ],
        "difference": frame.difference().to_dict(),
        "ratio": frame.ratio().to_dict(),
        "distances": frame.distances.to_dict(orient="records"),
    }


def _table(frame: RecourseFrame) -> pd.DataFrame:
    """Put everybody in a last row under the groups."""
    by_group = frame.by_group
    everybody = frame.overall.to_frame().T.astype(dict.fromkeys(_WHOLE, int))
    name: Any = "overall"
    if isinstance(by_group.index, pd.MultiIndex):
        name = pd.MultiIndex.from_tuples([("overall", *[""] * (by_group.index.nlevels - 1))])
        everybody.index = name
    else:
        everybody.index = pd.Index([name])
    table = pd.concat([by_group, everybody])
    table.index.names = by_group.index.names
    return table


def _number(value: float) -> str:
    return f"{value:.3g}"
