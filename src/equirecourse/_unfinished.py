"""Files that are being written: whoever ends the process at once removes them first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["remove_unfinished", "unfinished"]

_paths: set[str] = set()


@contextmanager
def unfinished(path: str | os.PathLike[str]) -> Iterator[None]:
    """Note a file before it is made; when the block ends in whatever way, it has its final name or is removed."""
    name = os.fspath(path)
    _paths.add(name)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(name)
        _paths.discard(name)


def remove_unfinished() -> None:
    """Remove what is being written."""
    for name in list(_paths):
        with suppress(OSError):
            os.unlink(name)
