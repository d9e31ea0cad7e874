"""equirecourse equalize."""

from __future__ import annotations

import copy
import warnings
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from equirecourse._audit import RecourseAudit, cheats_in_words
from equirecourse._equalize import equalize
from equirecourse._files import check_writable
from equirecourse.cli import _options as options
from equirecourse.cli._audit import audit_outputs
from equirecourse.cli._data import CsvFormat, load_people
from equirecourse.cli._models import learner, save_model
from equirecourse.cli._outputs import Output, write_outputs
from equirecourse.cli._show import say, table
from equirecourse.equalizers import EqualRecourseLinear

__all__ = ["command"]


class Learner(StrEnum):
    """What --learner takes."""

    logistic = "logistic"
    boosting = "boosting"
    svm = "svm"


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
    kind: Annotated[
        Learner, typer.Option("--learner", help="What is fitted: a logistic regression, boosted trees, a linear SVM.")
    ] = Learner.logistic,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's method: hard equality of the mean distances (no boosting).")
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=0.0,
            max=1.0,
            help="Accuracy that equality may cost; by default 0.01, one point, or half of it for boosted trees.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the chosen model here, with skops.", show_default=False)
    ] = None,
    html: options.HtmlOption = None,
    json: options.JsonOption = None,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
) -> None:
    """Fit a model with equal recourse, and say what it does to people it has not seen.

    Example: equirecourse equalize --dataset credit --group graduate --html report.html --save fair.skops

    The learner is fitted plain, with equal recourse, and with equal recourse for shuffled groups (the placebo), and all
    three are judged on the same held-out people, by what people can change. How much equality to ask for is chosen on
    the training people; if nothing within the budget helps, the plain model is kept.
    """
    check_writable(html, json, save, inputs=(data, actions))
    if paper and kind is Learner.boosting:
        raise ValueError("--paper is for linear models; use --learner logistic or svm.")
    csv = CsvFormat(sep, encoding, tuple(na_values or ()))
    people = load_people(data, dataset, target, group, favorable, actions, immutable, ignore, missing.value, csv)
    for note in people.notes:
        say(note)
    names = list(map(str, people.groups.columns))
    if len(names) > 1:
        say(f"The model balances the combinations of {', '.join(names)}.")
    model: Any = learner(kind.value, people.X)
    if paper:
        model = EqualRecourseLinear(model, objective="paper")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed below, in the table's words
        found = equalize(
            model, people.X, people.y, sensitive_features=people.groups, actions=people.actions, unit=people.unit,
            favorable_label=people.favorable, budget=budget, test_size=test_size, n_jobs=jobs, random_state=seed,
            say=say, time_limit=10.0, title=f"Equal recourse: {people.name}, {names[0]}",
        )  # fmt: skip
    say(f"Fitted to {len(found.training):,} people, judged on {len(found.held_out):,} others.")
    say()
    _show(found.after, found.changed)
    say(found.reason)
    what = "equalised" if found.changed else "plain"
    write_outputs(
        Output(save, partial(save_model, without_actions(found.model)), f"The {what} model is in {save}."),
        *audit_outputs(found.after, html, json),
    )


def without_actions(model: Any) -> Any:
    """A model without the action set that it was fitted for, which is no part of how it decides."""
    stripped = copy.copy(model)
    stripped.actions = None
    return stripped


def _show(found: RecourseAudit, changed: bool) -> None:
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
        if changed and row["reduction"] is not None and low is not None:
            fact = "The gap fell by" if low > 0.0 else "It is not beyond doubt that the gap fell: reduction of"
            say(f"{fact} {row['reduction']:.3f} (95 % interval {low:.3f} to {high:.3f}).")
        say(f"after: {row['after']['verdict']}")
        if changed:
            say("Could it be good for a bad reason?")
            for words in cheats_in_words(row["cheats"]):
                say(f"  {words}")
            for sentence in row["cheats"]["warnings"]:
                say(f"  WARNING: {sentence}")
        say()


def _interval(interval: list[Any]) -> str:
    return "undefined" if None in interval else f"{interval[0]:.3f} to {interval[1]:.3f}"
