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
from equirecourse.cli._data import People, load_people
from equirecourse.cli._models import learner, load_model
from equirecourse.cli._outputs import Output, write_outputs
from equirecourse.cli._show import say, table
from equirecourse.cli._stream import audit_folder, is_folder

__all__ = ["audit_outputs", "command", "fitted_or_loaded", "show"]


@options.takes_groups
def command(
    people: options.PeopleOptions,
    model: options.ModelOption = None,
    trust: options.TrustOption = False,
    test_size: options.TestSizeOption = 0.3,
    max_people: Annotated[
        int | None, options.optional("--max-people", "Most rejected people to measure. [default: all]", min=1)
    ] = None,
    fail_above: Annotated[
        float | None,
        options.optional("--fail-above", "Exit with 1 if a gap is larger, 3 if nobody can tell.", min=0.0),
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
    check_writable(html, json, inputs=(people.data, model, people.actions))
    notes: Sequence[str] = ()
    if is_folder(people.data):
        found = _of_folder(people, model, trust, max_people, seed, jobs)
    else:
        given = load_people(people)
        fitted, judged = fitted_or_loaded(given, model, trust, test_size, seed)
        notes = judged.notes
        if model is None:
            n = len(given.y) - len(judged.y)
            say(f"A logistic regression, fitted to {n:,} people and judged on {len(judged.y):,} others.")
        else:
            say(f"The model {model.name}, judged on {len(judged.y):,} people.")
        found = audit(
            fitted, judged.X, judged.y, sensitive_features=judged.groups, actions=judged.actions, unit=judged.unit,
            favorable_label=judged.favorable, max_people=max_people, time_limit=10.0, n_jobs=jobs, random_state=seed,
            progress=True, title=f"Recourse audit: {given.name}",
        )  # fmt: skip
    show(notes, found)
    write_outputs(*audit_outputs(found, html, json))
    _exit_above(found, fail_above)


def _of_folder(
    people: options.PeopleOptions, model: Path | None, trust: bool, max_people: int | None, seed: int, jobs: int | None
) -> RecourseAudit:
    """The audit of people who are read a part at a time."""
    if model is None:
        raise ValueError(
            f"--data {str(people.data)!r} is read a part at a time, so nothing is fitted to it; give --model."
        )
    if max_people is not None:
        raise ValueError("--max-people draws from people in memory; --data with a folder measures everybody.")
    say(f"The model {model.name}, judged on the people in {people.data}, a part at a time.")
    return audit_folder(load_model(model, trust), people, seed=seed, jobs=jobs)


def fitted_or_loaded(
    people: People, model: Path | None, trust: bool, test_size: float, seed: int
) -> tuple[Any, People]:
    """A model and people to judge: the given one and everybody, or one that is fitted here and people held out."""
    if model is not None:
        loaded = load_model(model, trust)
        return loaded, people.as_known_to(loaded)
    strata = people.y if np.unique(people.y, return_counts=True)[1].min() > 1 else None
    training, judged = train_test_split(
        np.arange(len(people.y)), test_size=test_size, random_state=seed, stratify=strata
    )
    seen = people.take(np.sort(training))
    return learner("logistic", people.X).fit(seen.X, seen.y), people.take(np.sort(judged))


def _exit_above(found: RecourseAudit, fail_above: float | None) -> None:
    """End with the exit code of --fail-above."""
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
