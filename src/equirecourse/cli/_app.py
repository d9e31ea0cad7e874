"""All commands together, and the one place where errors become a sentence."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from equirecourse.cli._compilation import announce_compilation

__all__ = ["app", "run"]

_STYLE: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}

app = typer.Typer(
    name="equirecourse",
    help="Measure, explain and equalise what a yes costs the people a model rejects.",
    no_args_is_help=True,
    **_STYLE,
)


class LazyCommand(TyperCommand):
    """A command whose module, and what that stands on, is loaded when it runs or is asked for its own help."""

    def load(self) -> Any:
        """Load the command itself."""
        name = str(self.name)
        alone = typer.Typer(**_STYLE)
        alone.command(name)(import_module(f"equirecourse.cli._{name}").command)
        return get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Leave everything to the command itself."""
        command = self.load()
        announce_compilation()
        return command.make_context(info_name, args, parent, **extra)


def _summarise(name: str, summary: str) -> None:
    app.command(name, help=summary, cls=LazyCommand)(lambda: None)


# The first sentence of each command's own help.
_summarise("audit", "Say whether there is a gap between the groups, how sure that is, and who bears it.")
_summarise("equalize", "Fit a model with equal recourse, and say what it does to people it has not seen.")
_summarise("flipset", "Say what a person can do to get a yes.")
_summarise("datasets", "List the data sets, or write one to a file.")
_summarise("replicate", "Compute the paper's tables and figures, under its own protocol and under an honest one.")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"equirecourse {version('equirecourse')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Read the arguments and run the command; bad input is one sentence on standard error and exit code 2."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what matters is printed in words
        os.environ.setdefault("PYTHONWARNINGS", "ignore")  # by the processes of --jobs too
    try:
        app()
    except Exception as error:
        if os.environ.get("EQUIRECOURSE_DEBUG"):
            raise
        known = isinstance(error, ValueError | OSError | ImportError)
        text = " ".join(str(error).split()) or type(error).__name__
        _fail(text if known else f"{type(error).__name__}: {text} (set EQUIRECOURSE_DEBUG=1 to see where)", 2)


def _fail(sentence: str, code: int) -> None:
    print(f"equirecourse: {sentence}", file=sys.stderr)
    raise SystemExit(code)
