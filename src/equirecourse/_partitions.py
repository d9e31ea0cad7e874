"""People who come in parts, to an audit or a fit: Dask frames, folders of Parquet, any iterable of frames."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import narwhals.stable.v1 as nw
import pandas as pd

from equirecourse._validation import shown

__all__ = ["DaskFrame", "Frames", "Parquet", "Source", "Summary", "as_pandas", "chosen", "open_partitions"]

_ROWS = 100_000  # of Parquet that are held at once
_AT_ONCE = 16  # summaries that one task puts together


class Summary(Protocol):
    """What a part of the people is reduced to."""

    @staticmethod
    def merge(parts: Sequence[Any]) -> Any:
        """The summary of all parts."""


Reduce = Callable[[Any, pd.DataFrame], Any]


class Source(Protocol):
    """Partitions that can be looked at and reduced."""

    def first(self) -> pd.DataFrame:
        """The first partition that has people in it."""

    def parts(self) -> Iterator[Any]:
        """All partitions from the start; those of Dask are only promised."""

    def reduce(self, function: Reduce, setting: Any, columns: list[str], n_jobs: int | None) -> tuple[Any, int]:
        """Merge what a function makes of each partition, in their order; and say how many there were."""


def open_partitions(partitions: Any, rows: int = _ROWS, *, again: bool = False) -> Source:
    """Recognise what people came in.

    Parameters
    ----------
    partitions : Dask DataFrame, path, glob, list of paths, pyarrow Dataset, frame or iterable of frames
        The people.
    rows : int
        How many of them to hold at once where that is free to choose.
    again : bool
        Whether they are read several times: an iterator is refused, and a function that opens one is taken.

    Returns
    -------
    Source
        The same people.
    """
    if hasattr(partitions, "to_delayed") and hasattr(partitions, "npartitions"):
        return DaskFrame(partitions)
    if isinstance(partitions, str | os.PathLike):
        return Parquet(_files(partitions), rows)
    if _is_dataset(partitions):
        return Parquet(partitions, rows)
    if _is_frame(partitions):
        partitions = [partitions]
    if again and callable(partitions):
        return Frames(lambda: iter(partitions()))
    if isinstance(partitions, Iterable):
        listed = isinstance(partitions, list | tuple) and len(partitions) > 0
        if listed and all(isinstance(part, str | os.PathLike) for part in partitions):
            absent = [str(part) for part in partitions if not Path(part).exists()]
            if absent:
                raise ValueError(f"There is no file {absent[0]!r}.")
            return Parquet([str(part) for part in partitions], rows)
        if again and iter(partitions) is partitions:
            raise ValueError(
                "partitions is an iterator, which can be read once, and a fit reads it many times; pass a list, a "
                "folder of Parquet files, a Dask DataFrame, or a function that opens it."
            )
        return Frames(lambda: iter(partitions))
    raise ValueError(
        f"partitions must be a Dask DataFrame, a folder or glob of Parquet files, or an iterable of frames, got "
        f"{shown(partitions)}."
    )


@dataclass
class DaskFrame:
    """A Dask DataFrame, reduced wherever its scheduler runs things."""

    frame: Any

    def first(self) -> pd.DataFrame:
        """The first partition that has people in it."""
        for place in range(self.frame.npartitions):
            part = as_pandas(self.frame.get_partition(place).compute())
            if len(part):
                return part
        raise ValueError("partitions has no people in it.")

    def parts(self) -> Iterator[Any]:
        """All partitions, promised."""
        return iter(self.frame.to_delayed())

    def reduce(self, function: Reduce, setting: Any, columns: list[str], n_jobs: int | None) -> tuple[Any, int]:
        """Merge what a function makes of each partition; the scheduler decides how many at a time, not ``n_jobs``.

        Summaries are merged by a tree whose shape the partitions alone decide: who runs what, and what had to be run
        again because a worker was lost, makes no difference.
        """
        del n_jobs
        from dask.delayed import delayed

        # A constant of the graph, not scattered data: the scheduler has it still when the worker that held it is gone.
        shared = delayed(setting, traverse=False)
        parts = [
            delayed(function, pure=False)(shared, part)
            for part in self.frame[columns].to_delayed()
        ]  # fmt: skip
        n = len(parts)
        while len(parts) > 1:
            parts = [delayed(_merged, pure=False)(parts[i : i + _AT_ONCE]) for i in range(0, len(parts), _AT_ONCE)]
        return parts[0].compute(), n


@dataclass
class Frames:
    """Frames of an iterator, each of which is let go of when it has been reduced."""

    parts: Callable[[], Iterator[Any]]

    def first(self) -> pd.DataFrame:
        """The first frame that has people in it."""
        parts = self.parts()
        for part in parts:
            table = as_pandas(part)
            if len(table):
                whole = itertools.chain([table], parts)
                self.parts = lambda: whole  # noqa: B023 - the loop ends here
                return table
        raise ValueError("partitions has no people in it.")

    def reduce(self, function: Reduce, setting: Any, columns: list[str], n_jobs: int | None) -> tuple[Any, int]:
        """Merge what a function makes of each frame; joblib's backend runs it, a few frames ahead."""
        tasks = ((_on_frame, (function, setting, part, columns)) for part in self.parts())
        return _in_order(tasks, n_jobs)


@dataclass
class Parquet:
    """Parquet files, read where they are reduced: tasks carry the names of row groups, not rows."""

    files: Any
    rows: int

    def _dataset(self) -> Any:
        import pyarrow.dataset  # type: ignore[import-untyped]

        if _is_dataset(self.files):
            return self.files
        return pyarrow.dataset.dataset(self.files, format="parquet", partitioning="hive")

    def _fragments(self) -> Iterator[Any]:
        """Row groups, in the order of the files' names."""
        for fragment in sorted(self._dataset().get_fragments(), key=lambda some: str(getattr(some, "path", ""))):
            yield from fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]

    def first(self) -> pd.DataFrame:
        """The first rows."""
        for part in self.parts():
            return part
        raise ValueError(f"partitions has no people in it: {shown(self.files)}.")

    def parts(self) -> Iterator[pd.DataFrame]:
        """All rows, some at a time."""
        schema = self._dataset().schema
        for fragment in self._fragments():
            yield from _batches(fragment, schema, schema.names, self.rows)

    def reduce(self, function: Reduce, setting: Any, columns: list[str], n_jobs: int | None) -> tuple[Any, int]:
        """Merge what a function makes of each row group; joblib's backend runs it."""
        schema = self._dataset().schema
        tasks = (
            (_on_row_group, (function, setting, fragment, schema, columns, self.rows)) for fragment in self._fragments()
        )
        return _in_order(tasks, n_jobs)


# --- where it is run -------------------------------------------------------------------------------------------------


def _on_frame(function: Reduce, setting: Any, part: Any, columns: list[str]) -> Any:
    return function(setting, chosen(as_pandas(part), columns))


def _on_row_group(function: Reduce, setting: Any, fragment: Any, schema: Any, columns: list[str], rows: int) -> Any:
    """A row group may be of any size: it is reduced a batch at a time as well."""
    total = None
    for part in _batches(fragment, schema, columns, rows):
        found = function(setting, part)
        total = found if total is None else type(found).merge([total, found])
    return total


def _batches(fragment: Any, schema: Any, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
    import pyarrow as pa

    for batch in fragment.to_batches(
        schema=schema, columns=columns, batch_size=rows, batch_readahead=1, fragment_readahead=1, use_threads=False
    ):
        if batch.num_rows:
            yield pa.Table.from_batches([batch]).to_pandas()


def _alone(call: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """One task by itself: partitions are what runs in parallel, and a pipeline inside must not send columns around.

    What is given comes as a tuple, which goes with its task: an array by itself would be left with one worker of a
    cluster, and lost with it.
    """
    from joblib import parallel_config

    with parallel_config("sequential"):
        return call(*given)


def _merged(parts: list[Any]) -> Any:
    return type(parts[0]).merge(parts)


def _in_order(tasks: Iterator[tuple[Callable[..., Any], tuple[Any, ...]]], n_jobs: int | None) -> tuple[Any, int]:
    """Merge results in the order of the tasks, as they come, so that few of them are ever held."""
    from joblib import Parallel, delayed

    total, n = None, 0
    for found in Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_alone)(*task) for task in tasks):
        n += 1
        if found is not None:
            total = found if total is None else type(found).merge([total, found])
    return total, n


# --- what things are -------------------------------------------------------------------------------------------------


def as_pandas(part: Any) -> pd.DataFrame:
    """A partition of any library, or one that was only promised, as a pandas frame with text for column names."""
    if hasattr(part, "compute"):
        part = part.compute()
    if not isinstance(part, pd.DataFrame):
        if not _is_frame(part):
            raise ValueError(f"Each partition must be a frame with named columns, got {shown(type(part).__name__)}.")
        part = part.to_pandas()
    table: pd.DataFrame = part
    if not all(isinstance(name, str) for name in table.columns):
        table = table.set_axis([str(name) for name in table.columns], axis=1)
    return table


def chosen(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Some columns of a partition."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"A partition has no column {missing[0]!r}; it has {shown(list(table.columns))}.")
    return table[columns]


def _is_frame(value: Any) -> bool:
    import pyarrow as pa

    return isinstance(value, pa.Table | pa.RecordBatch) or isinstance(
        nw.from_native(value, pass_through=True, eager_only=True), nw.DataFrame
    )


def _is_dataset(value: Any) -> bool:
    import pyarrow.dataset

    return isinstance(value, pyarrow.dataset.Dataset)


def _files(path: Any) -> Any:
    """A folder as it is, a glob as the files that it matches."""
    text = str(path)
    if Path(text).exists():
        if Path(text).is_dir() and not any(Path(text).rglob("*.parquet")) and not any(Path(text).rglob("*.pq")):
            raise ValueError(f"The folder {text!r} has no Parquet files (*.parquet, *.pq) in it.")
        return text
    found = sorted(glob.glob(text, recursive=True))
    if not found:
        raise ValueError(f"There is no file {text!r}, and nothing that matches it.")
    return found
