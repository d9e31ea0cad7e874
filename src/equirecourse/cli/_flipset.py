"""equirecourse flipset."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer

from equirecourse._files import check_writable, write_beside
from equirecourse._flipsets import flipsets
from equirecourse.cli import _options as options
from equirecourse.cli._audit import fitted_or_loaded
from equirecourse.cli._data import load_people
from equirecourse.cli._show import say, table

__all__ = ["command"]


@options.takes_groups
def command(
    person: Annotated[str, typer.Option("--person", help="The person: a row of the data, counted from 0.")],
    people: options.PeopleOptions,
    model: options.ModelOption = None,
    trust: options.TrustOption = False,
    test_size: options.TestSizeOption = 0.3,
    ways: Annotated[int, typer.Option("--ways", min=1, help="How many ways to a yes, at most.")] = 3,
    json: options.JsonOption = None,
    seed: options.SeedOption = 0,
) -> None:
    """Say what a person can do to get a yes.

    Example: equirecourse flipset --dataset german --person 4
    """
    check_writable(json, inputs=(people.data, model, people.actions))
    given = load_people(people)
    labels = [str(label) for label in given.X.index]
    if person not in labels:
        raise ValueError(f"There is no person {person!r}; rows go from {labels[0]} to {labels[-1]}.")
    row = given.X.iloc[[labels.index(person)]]
    fitted, judged = fitted_or_loaded(given, model, trust, test_size, seed)
    if judged.taken:
        say(judged.taken)
    found = flipsets(
        fitted, row, actions=given.actions, k=ways, favorable_label=judged.favorable, background=given.X,
        time_limit=30.0, random_state=seed,
    )  # fmt: skip
    if found.status == "accepted":
        say(f"Person {person}: the model says yes already.")
    elif len(found) == 0:
        say(f"Person {person}: the model says no, and no allowed change leads to a yes ({found.status}).")
    for place, way in enumerate(found):
        rows = [[change.sentence, f"{change.cost:.3g}"] for change in way.changes]
        table([f"way {place + 1}, cost {way.cost:.3g}, score {found.score:+.3g} to {way.score:+.3g}", "cost"], rows)
        say()
    if json is not None:
        document = {
            "person": person,
            "status": found.status,
            "ways": [
                {"cost": way.cost, "changes": [{"sentence": one.sentence, "cost": one.cost} for one in way.changes]}
                for way in found
            ],
        }
        write_beside(json, json_module.dumps(document, ensure_ascii=False, indent=1))
        say(f"All numbers are in {json}.")
