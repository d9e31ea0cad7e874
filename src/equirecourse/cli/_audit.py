"""equirecourse audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.model_selection import train_test_split

from equirecourse._audit import RecourseAudit, audit
from equirecourse._files import check_writable
from equirecourse.cli import _options as options
from equirecourse.cli._data import CsvFormat, People, load_people
from equirecourse.cli._models import learner, load_model
from equirecourse.cli._outputs import Output, write_outputs
from equirecourse.cli._show import say, table
from equirecourse.cli._stream import audit_folder, is_folder

__all__ = ["audit_outputs", "audit_people", "command", "show", "split"]


def command(
    data: options.DataOption = None,
    target: options.TargetOption = None,
    group: options.GroupOption = None,
    dataset: options.DatasetOption = None,
    favorable: options.FavorableOption = None,
    model: options.ModelOption = None,
    trust: options.TrustOption = False,
    actions: options.ActionsOption = None,
    immutable: options.ImmutableOption = None,
    ignore: options.IgnoreOption = None,
    missing: options.MissingOption = options.Missing.impute,
    sep: options.SepOption = ",",
    encoding: options.EncodingOption = "utf-8",
    na_values: options.NaValuesOption = None,
    test_size: options.TestSizeOption = 0.3,
    max_people: Annotated[
        int | None,
        typer.Option("--max-people", min=1, help="Most rejected people to measure. [default: all]", show_default=False),
    ] = None,
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above", min=0.0, help="Exit with 1 if a gap is larger, 3 if nobody can tell.", show_default=False
        ),
    ] = None,
    html: options.HtmlOption = None,
    json: options.JsonOption = None,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
) -> None:
    """Say whether there is a gap between the groups, how sure that is, and who bears it.

    Example: equirecourse audit --dataset german --group sex --html report.html

    Without --model a logistic regression is fitted to some of the people and judged on the others. A folder or a glob
    of Parquet files is read a part at a time, and needs a model. Exit codes: 0 done, 1 a gap above --fail-above, 2 bad
    usage or data, 3 nobody can tell whether there is a gap above --fail-above.
    """
    check_writable(html, json, inputs=(data, model, actions))
    if data is not None and is_folder(data):
        if model is None:
            raise ValueError(
                f"--data {str(data)!r} is read a part at a time, so nothing is fitted to it; give --model."
            )
        if max_people is not None:
            raise ValueError("--max-people draws from people in memory; --data with a folder measures everybody.")
        say(f"The model {model.name}, judged on the people in {data}, a part at a time.")
        found: RecourseAudit = audit_folder(
            load_model(model, trust), data, target=target, group=group, favorable=favorable, actions=actions,
            immutable=immutable, ignore=ignore, seed=seed, jobs=jobs,
        )  # fmt: skip
        _tell((), found, html, json, fail_above)
        return
    csv = CsvFormat(sep, encoding, tuple(na_values or ()))
    people = load_people(data, dataset, target, group, favorable, actions, immutable, ignore, missing.value, csv)
    if model is None:
        training, judged = split(people, test_size, seed)
        fitted = learner("logistic", people.X).fit(training.X, training.y)
        say(f"A logistic regression, fitted to {len(training.y):,} people and judged on {len(judged.y):,} others.")
    else:
        fitted, judged = load_model(model, trust), people
        say(f"The model {model.name}, judged on {len(judged.y):,} people.")
    found = audit_people(
        fitted, judged, max_people=max_people, seed=seed, jobs=jobs, title=f"Recourse audit: {people.name}"
    )
    _tell(people.notes, found, html, json, fail_above)


def _tell(
    notes: Sequence[str], found: RecourseAudit, html: Path | None, json: Path | None, fail_above: float | None
) -> None:
    """Print and write what was found."""
    show(notes, found)
    write_outputs(*audit_outputs(found, html, json))
    if fail_above is None:
        return
    if found.largest_gap > fail_above:
        infinite = np.isinf(found.largest_gap)
        gap = "A difference in who has recourse at all" if infinite else f"A gap of {found.largest_gap:.3g}"
        say(f"{gap} is above {fail_above:g}.")
        raise typer.Exit(1)
    if found.cannot_tell:
        say(f"Nobody can tell whether the gap of {', '.join(found.cannot_tell)} is above {fail_above:g}.")
        raise typer.Exit(3)


def split(people: People, test_size: float, seed: int) -> tuple[People, People]:
    """People to fit to, and people to judge."""
    strata = people.y if np.unique(people.y, return_counts=True)[1].min() > 1 else None
    training, judged = train_test_split(
        np.arange(len(people.y)), test_size=test_size, random_state=seed, stratify=strata
    )
    return people.take(np.sort(training)), people.take(np.sort(judged))


def audit_people(
    model: Any, people: People, *, max_people: int | None, seed: int, jobs: int | None, title: str, n_flipsets: int = 12
) -> RecourseAudit:
    """Audit a model, with a progress bar if somebody is looking."""
    return audit(
        model, people.X, people.y, sensitive_features=people.groups, actions=people.actions,
        unit=people.unit, favorable_label=people.favorable,
        max_people=max_people, time_limit=10.0, n_jobs=jobs, random_state=seed, progress=True, title=title,
        n_flipsets=n_flipsets,
    )  # fmt: skip


def show(notes: Sequence[str], found: RecourseAudit) -> None:
    """Verdicts and groups, after what there is to say about the reading."""
    for note in notes:
        say(note)
    say()
    for name, verdict in found.verdicts.items():
        say(f"{name}: {verdict}")
    say()
    rows = []
    for section in found.document["attributes"]:
        for row in section["by_group"]:
            rows.append([
                f"{section['name']} = {row['name']}", f"{row['people']:,}", f"{row['rejected']:,}",
                _percent(row["without_recourse"]), _percent(row["unknown"]), _number(row["mean"]),
                _number(row["median"]), _percent(row["accuracy"]),
            ])  # fmt: skip
    table(["group", "people", "rejected", "no way to a yes", "unknown", "mean cost", "median", "accuracy"], rows)
    for note in found.document["notes"]:
        say(note)


def audit_outputs(found: RecourseAudit, html: Path | None, json: Path | None) -> list[Output]:
    """The files of an audit."""
    return [
        Output(html, found.to_html, f"The report is in {html}."),
        Output(json, found.to_json, f"All numbers are in {json}."),
    ]


def _number(value: Any) -> str:
    return "undefined" if value is None else f"{float(value):.3g}"


def _percent(value: Any) -> str:
    return "" if value is None else f"{100 * value:.1f} %"
