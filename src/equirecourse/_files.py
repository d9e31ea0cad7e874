"""Writing files that are either whole or not there."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from equirecourse._unfinished import unfinished

__all__ = ["check_writable", "write_beside"]

AnyPath = str | os.PathLike[str]

_MOST_LINKS = 40  # in a row; what Linux allows


def check_writable(*outputs: AnyPath | None, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Refuse places that cannot be written to before any work is done; None is no place.

    Links are followed. An output is an ordinary file, or none yet: what is written replaces it at once, and a device,
    a pipe or an open stream such as ``/dev/stdout`` cannot be replaced. It is none of the inputs, by any name, and no
    other output.

    Parameters
    ----------
    *outputs : path-like or None
        Files to be.
    inputs : iterable of path-like or None
        Files that are read, folders of them, or patterns such as ``people/*.parquet``.

    Raises
    ------
    ValueError
        One sentence that names the place.
    """
    given = [path for path in outputs if path is not None]
    targets = [_target(path) for path in given]
    read = {_identity(file): file for path in inputs if path is not None for file in _files(path)}
    written: dict[Path | tuple[int, int], AnyPath] = {}
    for path, target in zip(given, targets, strict=True):
        identity = _identity(target) if target.exists() else target
        if identity in read:
            raise ValueError(f"{str(path)!r} cannot be written: it is {str(read[identity])!r}, which is read.")
        if identity in written:
            raise ValueError(f"{str(path)!r} cannot be written: {str(written[identity])!r} is the same file.")
        written[identity] = path


def _target(path: AnyPath) -> Path:
    """The file behind all links, if it can be written."""

    def refuse(reason: str) -> ValueError:
        return ValueError(f"{str(path)!r} cannot be written: {reason}.")

    target = Path(path).absolute()
    for _ in range(_MOST_LINKS):
        # A link there, such as /dev/stdout, may lead to a file, but what is behind it is open already.
        if _folder(target).is_relative_to("/proc"):
            raise refuse("it is an open stream; name a file")
        if not target.is_symlink():
            break
        target = target.parent / target.readlink()
    else:
        raise refuse("its links go round in a circle")
    folder = _folder(target)
    target = folder / target.name
    if not folder.is_dir():
        raise refuse(f"there is no folder {str(folder)!r}")
    if target.is_dir():
        raise refuse("it is a folder")
    if target.exists() and not target.is_file():
        raise refuse("it is a device or a pipe; name a file")
    if not os.access(folder, os.W_OK):
        raise refuse(f"the folder {str(folder)!r} is read-only")
    if target.exists() and not os.access(target, os.W_OK):
        raise refuse("it is read-only")
    return target


def _folder(path: Path) -> Path:
    """Where a file lies in fact; unlike ``resolve``, this takes links that go round in a circle."""
    return Path(os.path.realpath(path.parent))


def _files(path: AnyPath) -> Iterator[Path]:
    """Files that are read if a path is given: itself, those in a folder, those that match a pattern."""
    whole = Path(path)
    for found in [whole] if whole.exists() else map(Path, glob.glob(os.fspath(path), recursive=True)):
        yield from (file for file in (found.rglob("*") if found.is_dir() else [found]) if file.is_file())


def _identity(path: Path) -> tuple[int, int]:
    """What is the same for all names of a file."""
    status = path.stat()
    return status.st_dev, status.st_ino


def write_beside(path: AnyPath, content: str | bytes) -> None:
    """Write to a new file in the same folder, then give it the name: a break leaves what was there before.

    A link stays one, and the file it leads to is written. A file that was there keeps its permissions.

    Parameters
    ----------
    path : path-like
        Where to.
    content : str or bytes
        What.

    Raises
    ------
    ValueError
        If the place cannot be written to, see :func:`check_writable`.
    OSError
        If there is no room.
    """
    target = _target(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with unfinished(beside):
        with beside.open("xb") as file:
            file.write(data)
        if mode is not None:  # a file that was there keeps its permissions
            beside.chmod(mode)
        beside.replace(target)
