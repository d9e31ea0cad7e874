"""Writing what a command was asked to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from equirecourse.cli._show import say

__all__ = ["Output", "write_outputs"]


@dataclass(frozen=True)
class Output:
    """A file that a command writes, if a path was given, and what it then says about it."""

    path: Path | None
    write: Callable[[Path], None]
    sentence: str


def write_outputs(*outputs: Output) -> None:
    """Write all files; one that fails does not take the others with it.

    Parameters
    ----------
    *outputs : Output
        What was asked for.

    Raises
    ------
    ValueError
        Names the files that were not written, after all others were.
    """
    failed: list[tuple[Path, Exception]] = []
    for output in outputs:
        if output.path is None:
            continue
        try:
            output.write(output.path)
        except Exception as error:
            failed.append((output.path, error))
        else:
            say(output.sentence)
    if failed:
        reasons = [f"{str(path)!r} was not written: {type(error).__name__}, {error}" for path, error in failed]
        raise ValueError("; ".join(reasons)) from failed[0][1]
