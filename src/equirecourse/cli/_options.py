"""Options that several commands share."""

from __future__ import annotations

import codecs
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "HtmlOption",
    "JobsOption",
    "JsonOption",
    "Missing",
    "ModelOption",
    "PeopleOptions",
    "SeedOption",
    "TestSizeOption",
    "TrustOption",
    "optional",
    "takes_groups",
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


def optional(name: str, words: str, **more: Any) -> Any:
    """An option whose default is in its words, if it has one."""
    return typer.Option(name, help=words, show_default=False, **more)


@dataclass(frozen=True)
class PeopleOptions:
    """Where people come from, and what they can change."""

    data: Annotated[
        Path | None, optional("--data", "People: a CSV or Parquet file; for audit also a folder of Parquet.")
    ] = None
    target: Annotated[str | None, optional("--target", "Column of the outcome, with two values.")] = None
    group: Annotated[
        list[str] | None,
        optional("--group", "Sensitive column; may be given several times. The model does not see it."),
    ] = None
    dataset: Annotated[
        str | None,
        optional("--dataset", "A data set by name instead; see 'equirecourse datasets'. [default: credit]"),
    ] = None
    favorable: Annotated[
        str | None, optional("--favorable", "Value of the target that means yes. [default: the larger one]")
    ] = None
    actions: Annotated[
        Path | None, optional("--actions", "What people can change: a TOML or YAML file. [default: inferred]")
    ] = None
    immutable: Annotated[
        list[str] | None, optional("--immutable", "Column that nobody can change; may be given several times.")
    ] = None
    ignore: Annotated[
        list[str] | None,
        optional("--ignore", "Column that is no feature, such as a name; may be given several times."),
    ] = None
    missing: Annotated[
        Missing, typer.Option("--missing", help="Missing values: fill them in inside the model, or drop those people.")
    ] = Missing.impute
    sep: Annotated[
        str,
        typer.Option(
            "--sep", callback=_one_character, help="What separates the columns of a CSV: ';', or '\\t' for a tab."
        ),
    ] = ","
    encoding: Annotated[
        str, typer.Option("--encoding", callback=_encoding, help="Of a CSV: utf-8, latin-1, cp1252 and the like.")
    ] = "utf-8"
    na_values: Annotated[
        list[str] | None,
        optional("--na-values", "Text of a CSV that means missing, beside the empty one; may be given several times."),
    ] = None


ModelOption = Annotated[
    Path | None, optional("--model", "A fitted model saved with skops. [default: a logistic regression is fitted]")
]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Load a pickle or joblib file, or unknown types: they can run any code.")
]
HtmlOption = Annotated[Path | None, optional("--html", "Write the report here.")]
JsonOption = Annotated[Path | None, optional("--json", "Write all numbers here.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of everything that is drawn.")]
JobsOption = Annotated[
    int | None, optional("--jobs", "Parallel processes; -1 is one per processor. [default: one]", callback=_jobs)
]
TestSizeOption = Annotated[
    float,
    typer.Option(
        "--test-size", min=0.05, max=0.95, help="Share of the people a model is judged on, and not fitted to."
    ),
]


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer: where it asks for a dataclass of options, there the options themselves."""
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        kind: Any = one.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[one.name] = kind
            parameters += inspect.signature(kind, eval_str=True).parameters.values()
        else:
            parameters.append(one)

    def run(**given: Any) -> None:
        together = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        command(**together, **given)

    run.__doc__ = command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    return run
