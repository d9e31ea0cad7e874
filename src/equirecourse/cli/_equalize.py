"""equirecourse equalize."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone

from equirecourse._files import check_writable
from equirecourse.audit import RecourseAudit
from equirecourse.cli import _options as options
from equirecourse.cli._audit import audit_outputs, audit_people, split
from equirecourse.cli._data import CsvFormat, load_people
from equirecourse.cli._models import logistic, save_model
from equirecourse.cli._outputs import Output, write_outputs
from equirecourse.cli._show import say, table
from equirecourse.equalizers import recourse_frontier

__all__ = ["command"]


def command(
    data: options.DataOption = None,
    target: options.TargetOption = None,
    group: options.GroupOption = None,
    dataset: options.DatasetOption = None,
    favorable: options.FavorableOption = None,
    actions: options.ActionsOption = None,
    immutable: options.ImmutableOption = None,
    ignore: options.IgnoreOption = None,
    missing: options.MissingOption = options.Missing.impute,
    sep: options.SepOption = ",",
    encoding: options.EncodingOption = "utf-8",
    na_values: options.NaValuesOption = None,
    test_size: options.TestSizeOption = 0.3,
    budget: Annotated[
        float, typer.Option("--budget", min=0.0, max=1.0, help="Accuracy that equality may cost; 0.01 is one point.")
    ] = 0.01,
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the equalised model here, with skops.", show_default=False)
    ] = None,
    html: options.HtmlOption = None,
    json: options.JsonOption = None,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
) -> None:
    """Fit a model with equal recourse, and say what it does to people it has not seen.

    Example: equirecourse equalize --dataset credit --group sex --html report.html --save fair.skops

    A logistic regression is fitted plain, with equal recourse, and with equal recourse for shuffled groups (the
    placebo), and all three are judged on the same held-out people. How much equality to ask for is chosen on the
    training people.
    """
    check_writable(html, json, save, inputs=(data, actions))
    csv = CsvFormat(sep, encoding, tuple(na_values or ()))
    people = load_people(data, dataset, target, group, favorable, actions, immutable, ignore, missing.value, csv)
    training, judged = split(people, test_size, seed)
    say(f"Fitted to {len(training.y):,} people, judged on {len(judged.y):,} others.")
    for note in people.notes:
        say(note)
    name = people.groups.columns[0]
    if len(people.groups.columns) > 1:
        say(f"The model balances the combinations of {', '.join(map(str, people.groups.columns))}.")
    model = logistic(people.X, people.favorable)
    say("Looking for the best trade between gap and accuracy ...")
    frontier = recourse_frontier(
        model, training.X, training.y, sensitive_features=training.groups, cv=3, n_jobs=jobs, n_boot=100,
        n_permutations=100, random_state=seed,
    )  # fmt: skip
    chosen = frontier.pick(budget)
    fair = frontier.best_estimator(budget)
    shuffled = training.groups.iloc[np.random.default_rng(seed).permutation(len(training.groups))]
    shuffled = shuffled.set_axis(training.groups.index)
    candidates = {
        "before": (clone(model).set_params(model__recourse_penalty=0.0), training.groups),
        "placebo": (clone(fair), shuffled),
        "after": (clone(fair), training.groups),
    }
    audits: dict[str, RecourseAudit] = {}
    for side, (candidate, groups) in candidates.items():
        candidate.fit(training.X, training.y, model__sensitive_features=groups)
        say(f"Auditing: {side} ...")
        audits[side] = audit_people(
            candidate,
            judged,
            max_people=None,
            seed=seed,
            jobs=jobs,
            title=f"Equal recourse: {people.name}, {name}",
            n_flipsets=12 if side == "after" else 0,
        )
    found = audits["after"].compared_with(audits["before"], placebo=audits["placebo"], seed=seed)
    found = found.with_frontier(frontier, chosen)
    say()
    _show(found)
    if chosen == 0:
        say("No setting within the budget has a smaller gap on held-out training people: the plain model was kept.")
    write_outputs(
        Output(save, partial(save_model, candidates["after"][0]), f"The equalised model is in {save}."),
        *audit_outputs(found, html, json),
    )


def _show(found: RecourseAudit) -> None:
    comparison = found.document["comparison"]
    for row in comparison["attributes"]:
        sides = [side for side in ("before", "placebo", "after") if side in row]
        lines: list[list[str]] = []

        def line(label: str, values: list[Any], form: str, lines: list[list[str]] = lines) -> None:
            lines.append([label, *("undefined" if value is None else format(value, form) for value in values)])

        line("gap", [row[side]["gap"] for side in sides], ".3f")
        lines.append(["95 % interval", *(_interval(row[side]["interval"]) for side in sides)])
        line("noise floor", [row[side]["noise_floor"] for side in sides], ".3f")
        line("gap ÷ mean cost", [row[side]["relative_gap"] for side in sides], ".3f")
        for group in row["before"]["rejected"]:
            line(f"rejected, {group}", [row[side]["rejected"][group] for side in sides], ",d")
        line("accuracy", [comparison["models"][side]["accuracy"] for side in sides], ".3f")
        line("acceptance", [comparison["models"][side]["acceptance"] for side in sides], ".3f")
        table([row["name"], *sides], lines)
        low, high = row["reduction_interval"]
        if row["reduction"] is not None and low is not None:
            say(f"The gap fell by {row['reduction']:.3f} (95 % interval {low:.3f} to {high:.3f}).")
        say(f"after: {row['after']['verdict']}")
        say()


def _interval(interval: list[Any]) -> str:
    return "undefined" if None in interval else f"{interval[0]:.3f} to {interval[1]:.3f}"
