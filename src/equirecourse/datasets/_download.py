"""Data that may not be embedded: where it is looked for, how it is downloaded, how it is checked.

A file is taken from the first place that has it:

1. the folder named by the environment variable ``EQUIRECOURSE_DATA``, where its sha256 must be the known one;
2. the cache (``data_home``), where its sha256 must be the one recorded when it was first used;
3. the addresses of the registry, into the cache.

No sha256 is published with the originals. So a download is accepted if its *content* fits known facts (rows,
columns, share of positives), and its sha256 is recorded beside it: what changes later is detected, what was
wrong on the first day in a way that fits the facts is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from equirecourse._unfinished import unfinished
from equirecourse.datasets._registry import REGISTRY, RemoteFile

__all__ = ["clear_data_home", "get_data_home", "read_remote"]

TIMEOUT_SECONDS = 60


def _home(data_home: str | os.PathLike[str] | None) -> Path:
    """Name the cache folder, which need not exist."""
    chosen = data_home if data_home is not None else os.environ.get("EQUIRECOURSE_CACHE") or "~/equirecourse_data"
    return Path(chosen).expanduser()


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder where fetched data is kept, and create it if it does not exist.

    Parameters
    ----------
    data_home : path, default=None
        The folder. None stands for the environment variable ``EQUIRECOURSE_CACHE``, or
        ``~/equirecourse_data``.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> from equirecourse.datasets import get_data_home
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     get_data_home(folder).is_dir()
    True
    """
    home = _home(data_home)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"The data folder {home} cannot be created ({_reason(error)}); name another one with data_home "
            "or the environment variable EQUIRECOURSE_CACHE."
        ) from error
    return home


def clear_data_home(data_home: str | os.PathLike[str] | None = None) -> None:
    """Delete the fetched data. Files that equirecourse does not know stay, and so does their folder.

    Parameters
    ----------
    data_home : path, default=None
        The folder, as in :func:`get_data_home`.

    Examples
    --------
    >>> import tempfile
    >>> from equirecourse.datasets import clear_data_home
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clear_data_home(folder)
    """
    home = _home(data_home)
    for remote in REGISTRY:
        for name in remote.names:
            (home / name).unlink(missing_ok=True)
            _record_path(home / name).unlink(missing_ok=True)
    for partial in home.glob(".partial-*"):
        partial.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty, or not there
        home.rmdir()


def read_remote(
    remote: RemoteFile,
    read: Callable[[Path], pd.DataFrame],
    *,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
) -> pd.DataFrame:
    """Find a file, or download it, check it, and read it.

    Parameters
    ----------
    remote : RemoteFile
        The file.
    read : callable
        Reads the file at a path, and raises ``ValueError`` with half a sentence ("it has 3 rows, not
        7,214") if the content is not what it must be.
    data_home : path or None
        The cache.
    download_if_missing : bool
        Whether the network may be used.

    Returns
    -------
    DataFrame
        What ``read`` returned.
    """
    shared_folder = os.environ.get("EQUIRECOURSE_DATA")
    if shared_folder:
        shared = Path(shared_folder).expanduser() / remote.shared_path
        if shared.is_file():
            return _read_shared(remote, shared, read)
    home = _home(data_home)
    for name in remote.names:
        if (home / name).is_file():
            return _read_cached(home / name, read)
    if not download_if_missing:
        elsewhere = f" nor in the folder EQUIRECOURSE_DATA={shared_folder}" if shared_folder else ""
        raise FileNotFoundError(
            f"{remote.title} is not in {home}{elsewhere}, and download_if_missing is False; {_way_out(remote, home)}."
        )
    return _download(remote, get_data_home(data_home), read)


def _read_shared(remote: RemoteFile, path: Path, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    found = _sha256(path)
    if found != remote.shared_sha256:
        raise OSError(
            f"{path} has sha256 {found[:12]}… where {remote.shared_sha256[:12]}… is expected, so it is "
            "damaged or another version; restore it, or unset EQUIRECOURSE_DATA to download the data."
        )
    return _read_or_raise(path, read, f"{path} is not the file it should be", "unset EQUIRECOURSE_DATA to download it")


def _read_cached(path: Path, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    record = _record_path(path)
    found = _sha256(path)
    recorded = record.read_text(encoding="utf-8").split() if record.is_file() else []
    if recorded and recorded[0] != found:
        raise OSError(
            f"{path} has changed since it was first used (sha256 {found[:12]}…, recorded "
            f"{recorded[0][:12]}…); delete it to download it again, or delete {record.name} if you changed "
            "it on purpose."
        )
    frame = _read_or_raise(
        path, read, f"{path} is not the file it should be", "delete it to download it again, or replace it"
    )
    if not recorded:  # put there by hand, or a download that was interrupted before its record was written
        with contextlib.suppress(OSError):  # a cache that only allows reading is still usable
            _write_record(path, found)
    return frame


def _read_or_raise(path: Path, read: Callable[[Path], pd.DataFrame], trouble: str, way_out: str) -> pd.DataFrame:
    try:
        return read(path)
    except Exception as error:  # a damaged file makes a parser fail in any way it can
        raise OSError(f"{trouble}: {_reason(error)}; {way_out}.") from error


def _download(remote: RemoteFile, home: Path, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    """Try each address; keep the first file that passes, and nothing of the others."""
    reasons = []
    for source in remote.sources:
        with _partial(home, source.filename) as partial:
            try:
                _copy(source.url, partial)
                found = _sha256(partial)
                if source.sha256 not in (None, found):
                    raise ValueError(f"its sha256 is {found[:12]}…, not {str(source.sha256)[:12]}…")
                frame = read(partial)
            except Exception as error:  # the network and the parsers fail in many ways: all mean "try the next one"
                reasons.append(f"{source.url}: {_reason(error)}")
                continue
            try:
                # A record left from a file that is gone must not condemn the new one: it goes first.
                _record_path(home / source.filename).unlink(missing_ok=True)
                os.replace(partial, home / source.filename)
                _write_record(home / source.filename, found)
            except OSError as error:
                raise OSError(
                    f"{source.filename} was downloaded but cannot be kept in {home} ({_reason(error)}); "
                    "name another folder with data_home or EQUIRECOURSE_CACHE."
                ) from error
            return frame
    raise OSError(f"{remote.title} could not be downloaded ({'; '.join(reasons)}); {_way_out(remote, home)}.")


@contextlib.contextmanager
def _partial(home: Path, filename: str) -> Iterator[Path]:
    """Lend a temporary file in the cache folder, where renaming it is atomic; at the end it is gone."""
    path = home / f".partial-{secrets.token_hex(4)}-{filename}"
    with unfinished(path):
        try:
            path.touch(exist_ok=False)
        except OSError as error:
            raise OSError(
                f"{filename} cannot be written to {home} ({_reason(error)}); "
                "name another folder with data_home or EQUIRECOURSE_CACHE."
            ) from error
        yield path


def _copy(url: str, path: Path) -> None:
    """Copy an address to a file, and notice if the connection ended early."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, path.open("wb") as file:
        shutil.copyfileobj(response, file)
        announced = response.headers.get("Content-Length")
    received = path.stat().st_size
    if announced is not None and int(announced) != received:
        raise ValueError(f"the download ended after {received} of {announced} bytes")


def _write_record(path: Path, sha256: str) -> None:
    """Record the sha256 beside a file, in the format of ``sha256sum``."""
    with _partial(path.parent, _record_path(path).name) as partial:
        partial.write_text(f"{sha256}  {path.name}\n", encoding="utf-8")
        os.replace(partial, _record_path(path))


def _record_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _way_out(remote: RemoteFile, home: Path) -> str:
    return (
        f"get {remote.by_hand_names[0]} by hand from {remote.by_hand} and put it into {home} (or the folder "
        f"you pass as data_home), or set EQUIRECOURSE_DATA to a folder that holds {remote.shared_path}"
    )


def _reason(error: BaseException) -> str:
    """Word an error so that it can stand inside a sentence."""
    cause = error
    if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError):
        cause = error.reason if isinstance(error.reason, BaseException) else error
    text = str(cause).strip() or type(cause).__name__
    if isinstance(error, KeyError):
        text = f"{text} is missing"
    return text.splitlines()[0].rstrip(".")
