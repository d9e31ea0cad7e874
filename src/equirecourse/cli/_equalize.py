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
from equirecourse.cli._data import load_people
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


@options.takes_groups
def command(
    people: options.PeopleOptions,
    test_size: options.TestSizeOption = 0.3,
    kind: Annotated[
        Learner, typer.Option("--learner", help="What is fitted: a logistic regression, boosted trees, a linear SVM.")
    ] = Learner.logistic,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's method: hard equality of the mean distances (no boosting).")
    ] = False,
    budget: Annotated[
        float | None,
        options.optional(
            "--budget",
            "Accuracy that equality may cost; by default 0.01, one point, or half of it for boosted trees.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    save: Annotated[Path | None, options.optional("--save", "Save the chosen model here, with skops.")] = None,
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
    check_writable(html, json, save, inputs=(people.data, people.actions))
    if paper and kind is Learner.boosting:
        raise ValueError("--paper is for linear models; use --learner logistic or svm.")
    given = load_people(people)
    for note in given.notes:
        say(note)
    names = list(map(str, given.groups.columns))
    if len(names) > 1:
        say(f"The model balances the combinations of {', '.join(names)}.")
    model: Any = learner(kind.value, given.X)
    if paper:
        model = EqualRecourseLinear(model, objective="paper")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed below, in the table's words
        found = equalize(
            model, given.X, given.y, sensitive_features=given.groups, actions=given.actions, unit=given.unit,
            favorable_label=given.favorable, budget=budget, test_size=test_size, n_jobs=jobs, random_state=seed,
            say=say, time_limit=10.0, title=f"Equal recourse: {given.name}, {names[0]}",
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
    """The comparison, attribute by attribute."""
    comparison = found.document["comparison"]
    for row in comparison["attributes"]:
        _show_sides(row, comparison["models"])
        _show_reduction(row, changed)
        say()


def _show_sides(row: dict[str, Any], models: dict[str, Any]) -> None:
    """A table with a column for each model."""
    sides = [side for side in ("before", "placebo", "after") if side in row]

    def line(label: str, form: str, values: list[Any]) -> list[str]:
        return [label, *("undefined" if one is None else format(one, form) for one in values)]

    def of(key: str) -> list[Any]:
        return [row[side][key] for side in sides]

    table(
        [row["name"], *sides],
        [
            line("gap", ".3f", of("gap")),
            ["95 % interval", *(_interval(interval) for interval in of("interval"))],
            line("noise floor", ".3f", of("noise_floor")),
            line("gap ÷ mean cost", ".3f", of("relative_gap")),
            *(
                line(f"rejected, {group}", ",d", [rejected[group] for rejected in of("rejected")])
                for group in row["before"]["rejected"]
            ),
            *(line(name, ".3f", [models[side][name] for side in sides]) for name in ("accuracy", "acceptance")),
        ],
    )


def _show_reduction(row: dict[str, Any], changed: bool) -> None:
    """By how much the gap fell, and what each cheat would look like."""
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


def _interval(interval: list[Any]) -> str:
    return "undefined" if None in interval else f"{interval[0]:.3f} to {interval[1]:.3f}"
