"""Writing files that are either whole or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from equirecourse._unfinished import unfinished

__all__ = ["check_writable", "write_beside"]


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Refuse places that cannot be written to before any work is done; None is no place.

    Parameters
    ----------
    *paths : path-like or None
        Files to be.

    Raises
    ------
    ValueError
        One sentence that names the folder.
    """
    for path in paths:
        if path is None:
            continue
        folder = Path(path).resolve().parent
        if not folder.is_dir():
            raise ValueError(f"{str(path)!r} cannot be written: there is no folder {str(folder)!r}.")
        if Path(path).is_dir():
            raise ValueError(f"{str(path)!r} cannot be written: it is a folder.")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{str(path)!r} cannot be written: the folder {str(folder)!r} is read-only.")


def write_beside(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write to a new file in the same folder, then give it the name: a break leaves what was there before.

    Parameters
    ----------
    path : path-like
        Where to.
    content : str or bytes
        What.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written to.
    """
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with unfinished(beside):
        with beside.open("xb") as file:
            file.write(data)
        beside.replace(target)
