"""All commands together, and the one place where errors become a sentence."""

from __future__ import annotations

import os
import sys
import warnings

import typer

from equirecourse.cli import _audit, _datasets, _equalize, _flipset, _replicate

__all__ = ["app", "main"]

app = typer.Typer(
    name="equirecourse",
    help="Measure, explain and equalise what a yes costs the people a model rejects.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("audit")(_audit.command)
app.command("equalize")(_equalize.command)
app.command("flipset")(_flipset.command)
app.command("datasets")(_datasets.command)
app.command("replicate")(_replicate.command)


def main() -> None:
    """Run the command line; bad input is one sentence on standard error and exit code 2."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what matters is printed in words
    try:
        app()
    except KeyboardInterrupt:
        _fail("stopped; what was finished is kept, and no file is half-written.", 130)
    except Exception as error:
        if os.environ.get("EQUIRECOURSE_DEBUG"):
            raise
        known = isinstance(error, ValueError | OSError | ImportError)
        text = " ".join(str(error).split()) or type(error).__name__
        _fail(text if known else f"{type(error).__name__}: {text} (set EQUIRECOURSE_DEBUG=1 to see where)", 2)


def _fail(sentence: str, code: int) -> None:
    print(f"equirecourse: {sentence}", file=sys.stderr)
    raise SystemExit(code)
