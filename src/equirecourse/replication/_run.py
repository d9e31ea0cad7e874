"""Compute what is missing, in parallel, and say how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed

from equirecourse.replication._black_box import run_black_box
from equirecourse.replication._cells import Cell, Scale
from equirecourse.replication._real_gaps import run_real_gap
from equirecourse.replication._store import Store
from equirecourse.replication._svm import run_svm

__all__ = ["compute", "run_cell"]

_RUNNERS: dict[str, Callable[[Cell, Scale], dict[str, Any]]] = {
    "table1": run_svm,
    "table2": run_black_box,
    "real-gaps": run_real_gap,
}


def run_cell(cell: Cell, scale: Scale) -> dict[str, Any]:
    """Compute one run; the row without the columns of the cell itself."""
    return _RUNNERS[cell.table](cell, scale)


def _run_and_keep(cell: Cell, store: Store) -> None:
    store.write(cell, run_cell(cell, store.scale))


def compute(cells: Sequence[Cell], store: Store, *, n_jobs: int | None, verbose: bool) -> int:
    """Compute the cells that the store does not have; return their number.

    Each finished cell is kept by the process that computed it: whatever stops the work, only cells that were being
    computed at that moment are lost.
    """
    missing = store.missing(cells)
    with _progress(len(missing), len(cells) - len(missing), wanted=verbose) as step:
        done = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(_run_and_keep)(cell, store) for cell in missing
        )
        for _ in done:
            step()
    return len(missing)


@contextmanager
def _progress(total: int, before: int, *, wanted: bool) -> Iterator[Callable[[], None]]:
    """A bar with an estimate on a terminal, a line now and then elsewhere."""
    if not wanted or total == 0:
        yield lambda: None
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("Runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("runs", total=total + before, completed=before)
            yield lambda: bar.advance(task)
        return
    start, done, said = time.monotonic(), 0, 0.0

    def step() -> None:
        nonlocal done, said
        done += 1
        passed = time.monotonic() - start
        if done == total or passed - said >= 10:
            said = passed
            left = passed / done * (total - done)
            print(f"{done + before} of {total + before} runs, about {left / 60:.0f} min left", file=sys.stderr)

    yield step
