"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "ActionsOption",
    "DataOption",
    "DatasetOption",
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
    "SeedOption",
    "TargetOption",
    "TestSizeOption",
    "TrustOption",
]


class Missing(StrEnum):
    """What to do about missing values."""

    impute = "impute"
    drop = "drop"


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
    int | None, typer.Option("--jobs", help="Parallel processes. [default: one]", show_default=False)
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
