"""The command line: each command parses, calls the library and prints."""

from __future__ import annotations

from equirecourse.cli._interrupt import end_on_interrupt, ignore_interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line; bad input is one sentence on standard error and exit code 2."""
    end_on_interrupt()  # before anything that takes time is loaded
    try:
        from equirecourse.cli._app import run

        run()
    finally:
        ignore_interrupts()
