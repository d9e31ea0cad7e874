"""equirecourse replicate."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from equirecourse.cli import _options as options
from equirecourse.cli._show import say, table
from equirecourse.replication import replicate

__all__ = ["command"]


class Part(StrEnum):
    """What to replicate."""

    table1 = "table1"
    table2 = "table2"
    figure_toy = "figure-toy"
    figures = "figures"
    real_gaps = "real-gaps"
    all = "all"


class Protocol(StrEnum):
    """How."""

    printed = "printed"
    honest = "honest"


def command(
    part: Annotated[Part, typer.Argument(help="What to compute.")] = Part.all,
    out: Annotated[Path, typer.Option("--out", help="Folder for runs, tables and figures.")] = Path("replication"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, in a minute or two: to see that it works, not to be quoted.")
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", help="One of the paper's data sets; may be given several times.", show_default=False),
    ] = None,
    protocol: Annotated[
        list[Protocol] | None,
        typer.Option("--protocol", help="As printed, or honest. [default: both]", show_default=False),
    ] = None,
    jobs: options.JobsOption = None,
) -> None:
    """Compute the paper's tables and figures, under its own protocol and under an honest one.

    Example: equirecourse replicate table1 --dataset german --protocol printed --jobs 2

    Finished runs are kept in the folder: a command that was stopped goes on where it stopped.
    """
    found = replicate(
        part.value,
        folder=out,
        quick=quick,
        datasets=dataset or None,
        protocols=[one.value for one in protocol] if protocol else None,
        n_jobs=jobs,
        verbose=True,
    )
    for one in found.tables:
        table(one.columns, one.rows, title=one.title)
        if one.note:
            say(one.note.replace("*", ""))
        say()
    for sentence in found.sentences:
        say(sentence)
    files = sorted(path for path in out.rglob("*") if path.is_file() and "cells" not in path.parts)
    say(f"Written to {out}: {', '.join(str(path.relative_to(out)) for path in files)}.")
