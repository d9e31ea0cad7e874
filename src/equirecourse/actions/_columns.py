"""One column of people: whether it holds numbers or labels, and where people stand in it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions._feature import Percentiles
from equirecourse.actions._words import plain

__all__ = ["Labels", "Numbers", "Other", "Summary", "read_column", "summary"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """The known numbers of a column; neither missing nor infinite."""

    values: Array


@dataclass(frozen=True)
class Labels:
    """Labels, and how many people have each."""

    labels: tuple[Hashable, ...]
    counts: NDArray[np.intp]
    ordered: bool = False
    is_bool: bool = False

    @property
    def n_known(self) -> int:
        """Number of people who have one."""
        return int(self.counts.sum())

    def shares(self) -> Percentiles:
        """Share of people who have each label; one that nobody has gets half a person, so that no share is 0."""
        shares = np.maximum(self.counts, 0.5) / max(self.n_known, 1)
        return Percentiles(tuple(range(len(self.labels))), tuple(shares))

    def ranks(self) -> Percentiles:
        """Mid-rank of each place in the order.

        Labels that nobody has lie evenly between their neighbours, or between those and the ends 0 and 1: by counting
        alone, several of them in a row would have one rank, and a move between them would cost nothing.
        """
        places = np.arange(len(self.labels))
        seen = self.counts > 0
        middles = (np.cumsum(self.counts) - self.counts / 2)[seen] / max(self.n_known, 1)
        known = np.concatenate([[-1], places[seen], [len(places)]])
        ranks = np.interp(places, known, np.concatenate([[0.0], middles, [1.0]]))
        return Percentiles(tuple(places), tuple(ranks))


@dataclass(frozen=True)
class Other:
    """A column that holds neither numbers nor labels, such as dates; it cannot be changed."""

    what: str


@dataclass(frozen=True)
class Summary:
    """What is to be known of a column of numbers.

    Attributes
    ----------
    low, high : float
        The smallest and the largest.
    n_distinct : int
        How many different ones there are.
    whole : bool
        Whether all are whole.
    spread : float
        The standard deviation; 0 if all are equal, or there is no telling.
    percentiles : Percentiles
        Where people stand.
    """

    low: float
    high: float
    n_distinct: int
    whole: bool
    spread: float
    percentiles: Percentiles


def read_column(column: pd.Series) -> Numbers | Labels | Other:
    """Tell numbers from labels."""
    if column.dtype == object:
        column = column.infer_objects()  # an array of objects may hold nothing but numbers
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        counts = np.bincount(column.cat.codes.to_numpy() + 1, minlength=len(dtype.categories) + 1)[1:]
        labels = tuple(plain(label) for label in dtype.categories)
        return Labels(labels, counts, ordered=bool(dtype.ordered)) if _usable(labels) else Other(_kind(labels[0]))
    known = column[column.notna()] if column.hasnans else column
    if pd.api.types.is_bool_dtype(dtype) or (dtype.kind == "O" and len(known) and all(map(_is_bool, known))):
        true = int(known.astype(bool).sum())
        return Labels((False, True), np.array([len(known) - true, true]), is_bool=True)
    if pd.api.types.is_numeric_dtype(dtype) and dtype.kind in "iuf":
        values = np.asarray(known.to_numpy(dtype=np.float64))
        return Numbers(values[np.isfinite(values)] if dtype.kind == "f" else values)
    objects = [plain(value) for value in known.astype(object)]
    if not objects:
        return Other("no value")
    if not _usable(objects):
        return Other(_kind(next(value for value in objects if not isinstance(value, str | int | float))))
    codes, distinct = pd.factorize(np.array([*objects, None], dtype=object)[:-1])
    counts = np.bincount(codes, minlength=len(distinct))
    order = sorted(range(len(distinct)), key=lambda k: (type(distinct[k]).__name__, distinct[k]))
    return Labels(tuple(distinct[k] for k in order), counts[order])


def summary(values: Array, max_percentiles: int) -> Summary:
    """Summarise numbers, of which there is at least one."""
    ranked = np.sort(values)
    n = len(ranked)
    # Where each different value begins in the ranking, and where the next one does.
    begins = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    n_distinct = len(begins)
    ends = np.append(begins[1:], n)
    if n_distinct > max_percentiles:
        # The values of people evenly spaced in the ranking, among them the first and the last.
        picked = np.round(np.linspace(0, n - 1, max_percentiles)).astype(int)
        kept = np.unique(np.searchsorted(begins, picked, side="right") - 1)
        begins, ends = begins[kept], ends[kept]
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(values.std(ddof=1)) if n_distinct > 1 else 0.0
    return Summary(
        low=float(ranked[0]),
        high=float(ranked[-1]),
        n_distinct=n_distinct,
        whole=bool((ranked == np.round(ranked)).all()),
        spread=spread if np.isfinite(spread) and 0 < 1 / (spread or np.inf) < np.inf else 0.0,
        percentiles=Percentiles(tuple(ranked[begins]), tuple((begins + ends) / (2.0 * n))),
    )


def _usable(labels: Any) -> bool:
    return all(isinstance(label, str | int | float) for label in labels)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _kind(value: Any) -> str:
    return f"values of the kind {type(value).__name__}"
