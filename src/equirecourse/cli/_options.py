"""Options that several commands share."""

from __future__ import annotations

import codecs
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "ActionsOption",
    "DataOption",
    "DatasetOption",
    "EncodingOption",
    "FavorableOption",
    "GroupOption",
    "HtmlOption",
    "IgnoreOption",
    "ImmutableOption",
    "JobsOption",
    "JsonOption",
    "Missing",
    "MissingOption",
    "ModelOption",
    "NaValuesOption",
    "SeedOption",
    "SepOption",
    "TargetOption",
    "TestSizeOption",
    "TrustOption",
]


class Missing(StrEnum):
    """What to do about missing values."""

    impute = "impute"
    drop = "drop"


def _jobs(jobs: int | None) -> int | None:
    if jobs == 0:
        raise ValueError("--jobs 0 would be nobody at work; give a number of processes, or -1 for one per processor.")
    return jobs


def _one_character(sep: str) -> str:
    found = "\t" if sep == "\\t" else sep
    if len(found) != 1:
        raise ValueError(f"--sep {sep!r} must be one character, such as ';', or '\\t' for a tab.")
    return found


def _encoding(encoding: str) -> str:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(f"--encoding {encoding!r} is unknown to Python; try utf-8, latin-1 or cp1252.") from None
    return encoding


DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="People: a CSV or Parquet file; for audit also a folder of Parquet.", show_default=False
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="A data set by name instead; see 'equirecourse datasets'. [default: credit]",
        show_default=False,
    ),
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="Column of the outcome, with two values.", show_default=False)
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group", help="Sensitive column; may be given several times. The model does not see it.", show_default=False
    ),
]
FavorableOption = Annotated[
    str | None,
    typer.Option(
        "--favorable", help="Value of the target that means yes. [default: the larger one]", show_default=False
    ),
]
ActionsOption = Annotated[
    Path | None,
    typer.Option(
        "--actions", help="What people can change: a TOML or YAML file. [default: inferred]", show_default=False
    ),
]
ImmutableOption = Annotated[
    list[str] | None,
    typer.Option("--immutable", help="Column that nobody can change; may be given several times.", show_default=False),
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="A fitted model saved with skops. [default: a logistic regression is fitted]",
        show_default=False,
    ),
]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Load a pickle or joblib file, or unknown types: they can run any code.")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write the report here.", show_default=False)]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write all numbers here.", show_default=False)]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of everything that is drawn.")]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        callback=_jobs,
        help="Parallel processes; -1 is one per processor. [default: one]",
        show_default=False,
    ),
]
SepOption = Annotated[
    str,
    typer.Option(
        "--sep", callback=_one_character, help="What separates the columns of a CSV: ';', or '\\t' for a tab."
    ),
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", callback=_encoding, help="Of a CSV: utf-8, latin-1, cp1252 and the like.")
]
NaValuesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--na-values",
        help="Text of a CSV that means missing, beside the empty one; may be given several times.",
        show_default=False,
    ),
]
TestSizeOption = Annotated[
    float,
    typer.Option(
        "--test-size", min=0.05, max=0.95, help="Share of the people a model is judged on, and not fitted to."
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", help="Column that is no feature, such as a name; may be given several times.", show_default=False
    ),
]
MissingOption = Annotated[
    Missing, typer.Option("--missing", help="Missing values: fill them in inside the model, or drop those people.")
]
