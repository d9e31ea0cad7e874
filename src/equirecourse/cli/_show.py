"""Printing: rich tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["on_terminal", "say", "table"]


def on_terminal() -> bool:
    """Whether somebody is looking."""
    return sys.stdout.isatty()


def say(text: str = "") -> None:
    """One line."""
    print(text)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table with its first column to the left and the others to the right."""
    if on_terminal():
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        drawn = Table(title=escape(title) or None, title_justify="left")
        for place, column in enumerate(columns):
            drawn.add_column(escape(column), justify="left" if place == 0 else "right")
        for row in rows:
            drawn.add_row(*(escape(cell) for cell in row))
        Console().print(drawn)
        return
    widths = [max(len(row[place]) for row in [columns, *rows]) for place in range(len(columns))]
    if title:
        print(title)
    for row in [columns, *rows]:
        cells = [cell.ljust(width) if place == 0 else cell.rjust(width)
                 for place, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        print("  ".join(cells).rstrip())
