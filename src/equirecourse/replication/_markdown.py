"""The tables as text: the paper's number, ours under its protocol, ours under an honest one, and the placebo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equirecourse.replication._paper import TABLE_1, TABLE_2
from equirecourse.replication._summary import reduction, summarise_real_gaps, summarise_tables

__all__ = [
    "Table",
    "black_box_table",
    "evidence_table",
    "markdown",
    "real_gap_sentences",
    "real_gap_table",
    "svm_table",
]

# Which gap a protocol looks at: the surrogates' own, each normalised by its own range, or true distances.
TABLE_2_GAPS = {"printed": "own", "honest": "gap"}


class Table:
    """A table of text: a title, column names, rows, and a note."""

    def __init__(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
        self.title, self.columns, self.rows, self.note = title, list(columns), [list(row) for row in rows], note

    def markdown(self) -> str:
        """As Markdown."""
        lines = [f"## {self.title}", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("|" + "|".join("---" if place < 2 else "--:" for place in range(len(self.columns))) + "|")
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])


def markdown(tables: Sequence[Table]) -> str:
    """All tables."""
    return "\n".join(table.markdown() for table in tables)


def _percent(found: dict[str, Any]) -> str:
    """A reduction with its interval, and how many runs have none."""
    without = f", {found['degenerate']} without" if found["degenerate"] else ""
    if not np.isfinite(found["value"]):
        return f"undefined{without}"
    if not np.isfinite(found["low"]):
        return f"{found['value']:.0f} %{without}"
    return f"{found['value']:.0f} % ({found['low']:.0f} to {found['high']:.0f}{without})"


def _cell(runs: pd.DataFrame, part: str, **choice: Any) -> str:
    return _percent(reduction(runs, part, **choice)) if len(runs) else "not run"


def _pick(runs: pd.DataFrame, **values: Any) -> pd.DataFrame:
    for name, value in values.items():
        runs = runs[runs[name] == value]
    return runs


def _cells_of(runs: pd.DataFrame) -> list[tuple[str, str, str]]:
    pairs = runs[["dataset", "model"]].drop_duplicates().itertuples(index=False, name=None)
    return [(dataset, model, part) for dataset, model in pairs for part in ("train", "test")]


def svm_table(runs: pd.DataFrame) -> Table:
    """Table 1 beside the paper's."""
    columns, settings = ["data set, kernel", "people", "paper"], []
    for protocol in dict.fromkeys(runs["protocol"]):
        for bound in dict.fromkeys(runs["bound"]):
            settings.append((protocol, bound))
            columns += [f"{protocol}, ν = {bound}", "its placebo"]
    rows = []
    for dataset, model, part in _cells_of(runs):
        some = _pick(runs, dataset=dataset, model=model)
        row = [f"{dataset}, {model}", part, f"{TABLE_1[dataset, model][part == 'test']} %"]
        for protocol, bound in settings:
            these = _pick(some, protocol=protocol, bound=bound)
            row += [_cell(these, part), _cell(these, part, after="placebo")]
        rows.append(row)
    note = (
        "Reduction of the mean recourse difference (distance in feature space) over the runs, with a 95 % bootstrap "
        "interval over runs. *without*: runs in which a group had nobody rejected, so that there is no difference; "
        "they are counted and not averaged. Placebo: the same method for groups that were shuffled."
    )
    return Table("Table 1: recourse-regularised SVMs", columns, rows, note)


def black_box_table(runs: pd.DataFrame) -> Table:
    """Table 2 beside the paper's."""
    kinds = [
        ("printed", "own", "printed"),
        ("printed", "mixed", "printed, other yardstick after"),
        ("honest", "gap", "honest, true distances"),
    ]
    kinds = [kind for kind in kinds if kind[0] in set(runs["protocol"])]
    columns = ["data set, classifier", "people", "paper"]
    for _, _, title in kinds:
        columns += [title, "its placebo"]
    rows = []
    for dataset, model, part in _cells_of(runs):
        some = _pick(runs, dataset=dataset, model=model)
        row = [f"{dataset}, {model}", part, f"{TABLE_2[dataset, model][part == 'test']} %"]
        for protocol, gap, _ in kinds:
            these = _pick(some, protocol=protocol)
            row += [_cell(these, part, gap=gap), _cell(these, part, after="placebo", gap=gap)]
        rows.append(row)
    note = (
        "*printed*: differences of surrogate distances, divided by the range of the distances of the rejected, before "
        "and after alike. *other yardstick after*: the same, but divided after refitting by the range of everybody's "
        "distances. *true distances*: exact ones (L2, standard deviations), not normalised. Placebo: fitted once more, "
        "without weights."
    )
    return Table("Table 2: reweighted black boxes", columns, rows, note)


def evidence_table(runs: pd.DataFrame, title: str, gaps: dict[str, str]) -> Table:
    """What stands behind the honest numbers: whether there is a gap at all, and what the method cost."""
    rows = []
    for row in summarise_tables(_pick(runs, protocol="honest"), gaps).to_dict("records"):
        name = f"{row['dataset']}, {row['model']}" + (f", ν = {row['bound']}" if row["bound"] else "")
        rows.append(
            [
                name,
                _change(row, "gap", 3),
                "undefined" if np.isnan(row["before_test_noise_floor"]) else f"{row['before_test_noise_floor']:.3f}",
                _change(row, "relative_gap", 2),
                _change(row, "accuracy", 3),
                _change(row, "acceptance", 2),
                "" if np.isnan(row["converged"]) else f"{row['converged']:.0%}",
                f"{row['degenerate']} of {row['runs']}",
            ]
        )
    columns = ["honest protocol", "held-out gap", "noise floor", "gap ÷ mean distance", "accuracy", "acceptance"]
    columns += ["rounds converged", "degenerate runs"]
    return Table(title, columns, rows, "Means over runs. A gap near its noise floor is what chance alone would show.")


def real_gap_table(runs: pd.DataFrame) -> Table:
    """Every method on every natural group with a gap."""
    rows = []
    for row in summarise_real_gaps(runs).to_dict("records"):
        rows.append(
            [
                f"{row['dataset']}, {row['group']}",
                row["model"],
                *(_short(row[f"{side}_test_gap"]) for side in ("before", "placebo", "after")),
                _short(row["after_test_noise_floor"]),
                _change(row, "relative_gap", 2),
                _change(row, "accuracy", 3),
                _change(row, "acceptance", 2),
                _verdict(row),
            ]
        )
    columns = ["data set, group", "method", "gap before", "placebo", "gap after", "noise floor"]
    columns += ["gap ÷ mean distance", "accuracy", "acceptance", "verdict"]
    note = (
        "Held-out 30 %, means over the splits. Groups: all natural ones whose plain logistic model has a held-out gap "
        "of more than twice its noise floor. Each method is compared with its own plain model. Gaps of *SVM, rbf* are "
        "distances in feature space, those of *boosting* exact ones of a sample of the rejected."
    )
    return Table("Where there is a gap", columns, rows, note)


def _change(row: Any, name: str, digits: int) -> str:
    """A number before and after, on held-out people."""
    before, after = row[f"before_test_{name}"], row[f"after_test_{name}"]
    return " → ".join("undefined" if np.isnan(value) else f"{value:.{digits}f}" for value in (before, after))


def _verdict(row: Any) -> str:
    if np.isnan(row["after_test_gap"]) or np.isnan(row["before_test_gap"]):
        return "undefined"
    if not row["had_gap"]:
        return "its plain model has no gap"
    words = "at its floor" if row["at_floor"] else "within twice its floor" if row["below_twice_floor"] else "gap left"
    if not row["ratio_falls"]:
        words += ", ratio does not fall"
    return words + ("" if row["within_budget"] else f", costs {100 * row['price']:.1f} points")


def real_gap_sentences(runs: pd.DataFrame) -> list[str]:
    """Which method brings the held-out gap to its floor, and at what price: one sentence per group."""
    sentences = []
    for (dataset, group), some in summarise_real_gaps(runs).groupby(["dataset", "group"], sort=False):
        screened = _pick(runs, dataset=dataset, group=group, model="plain")["before_test_gap"]
        found = f" (plain logistic gap {screened.mean():.3f})" if len(screened) else ""
        good = some[some["had_gap"] & some["ratio_falls"] & some["below_twice_floor"]]
        parts = []
        for words, these in (
            ("to its floor by", good[good["at_floor"]]),
            ("to less than twice its floor by", good[~good["at_floor"]]),
        ):
            named = [
                f"{row['model']} ({_short(row['before_test_gap'])} to {_short(row['after_test_gap'])}, floor "
                f"{_short(row['after_test_noise_floor'])}; accuracy {-100 * row['price']:+.1f} points)"
                for row in these.sort_values("price").to_dict("records")
            ]
            parts += [f"{words} {', '.join(named)}"] if named else []
        what = "; ".join(parts) if parts else "not below twice its floor by any method"
        sentences.append(f"{dataset}, {group}{found}: the held-out gap is brought {what}.")
    return sentences


def _short(value: float) -> str:
    """Three decimals, or two digits of what is smaller than that shows."""
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"
