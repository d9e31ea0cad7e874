"""equirecourse datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equirecourse._files import check_writable, write_beside
from equirecourse.cli._data import LOADERS
from equirecourse.cli._outputs import Output, write_outputs
from equirecourse.cli._show import say, table

__all__ = ["command"]


def command(
    name: Annotated[
        str | None, typer.Argument(help="A data set to write; without it, they are listed.", show_default=False)
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write its features, target and groups here.", show_default=False)
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="Sensitive column to write; may be given several times.", show_default=False),
    ] = None,
    actions: Annotated[
        Path | None,
        typer.Option("--actions", help="Write what its people can change here, as TOML or YAML.", show_default=False),
    ] = None,
) -> None:
    """List the data sets, or write one to a file.

    Example: equirecourse datasets german --csv german.csv --actions german.toml
    """
    if name is None:
        table(
            ["name", "groups by default", "where from"],
            [[key, ", ".join(groups), "embedded" if key in ("credit", "german") else "downloaded on first use"]
             for key, (_, groups) in LOADERS.items()],
        )  # fmt: skip
        return
    if name not in LOADERS:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(LOADERS)}.")
    check_writable(csv, actions)
    bunch = LOADERS[name][0]()
    chosen = group or LOADERS[name][1]
    absent = [column for column in chosen if column not in bunch.sensitive_features]
    if absent:
        there = ", ".join(map(str, bunch.sensitive_features.columns))
        raise ValueError(f"The data set {name!r} has no group {absent[0]!r}; it has {there}.")
    if csv is None and actions is None:
        groups = ", ".join(bunch.sensitive_features)
        say(f"{name}: {len(bunch.data):,} people, {bunch.data.shape[1]} features; groups: {groups}")
        say("Write it with --csv FILE, and what people can change with --actions FILE.")
        return
    whole = bunch.data.assign(**{column: bunch.sensitive_features[column] for column in chosen})
    whole[bunch.target.name] = bunch.target
    write_outputs(
        Output(
            csv,
            lambda path: write_beside(path, whole.to_csv(index=False)),
            f"{len(whole):,} people are in {csv}.",
        ),
        Output(actions, bunch.actions.write, f"What they can change is in {actions}."),
    )
