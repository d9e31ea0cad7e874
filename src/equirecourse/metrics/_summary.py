"""What is left of the costs of a part of the people: enough for every number of a frame, and summaries add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import check_costs
from equirecourse.metrics._cells import Cells, cells_of

__all__ = ["CostSummary"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CostSummary:
    """Counts, cells of costs and sums, group by group, of some people.

    Counts, sums and sums of squares are exact; single costs are known to :data:`RELATIVE_ERROR`. The size depends on
    the number of groups and on how many decades the costs span, not on the number of people.

    Attributes
    ----------
    labels : tuple of str
        The groups, sorted; position ``k`` of everything else speaks of ``labels[k]``.
    people, rejected : ndarray of int
        How many people, and how many of them rejected.
    without_recourse, unknown : ndarray of int
        How many of the rejected have no recourse, and for how many nothing was found and nothing proven.
    totals : mapping of str to ndarray
        Whatever else is summed, a row per group.
    """

    labels: tuple[str, ...]
    people: Ints
    rejected: Ints
    without_recourse: Ints
    unknown: Ints
    totals: Mapping[str, Array] = field(default_factory=dict)
    # The cells of all groups, sorted by group and key.
    _place: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    _cells: Cells = field(
        default_factory=lambda: Cells(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0), np.empty(0)),
        repr=False,
    )

    @classmethod
    def of(
        cls,
        costs: Array,
        rejected: NDArray[np.bool_],
        codes: NDArray[np.intp],
        labels: Sequence[str],
        totals: Mapping[str, Array] | None = None,
        unknown: NDArray[np.bool_] | None = None,
    ) -> CostSummary:
        """Summarise people.

        Parameters
        ----------
        costs : ndarray of shape (n_people,)
            Cost of recourse, infinite for people without it; only the rejected people's is read.
        rejected : ndarray of bool
            Who was rejected.
        codes : ndarray of int
            Place in ``labels`` of each person's group.
        labels : sequence of str
            Groups, in any order; the same label may occur twice.
        totals : mapping of str to ndarray of shape (n_people, ...), optional
            What else is to be summed.
        unknown : ndarray of bool, optional
            Whose infinite cost says that nothing was found, not that there is nothing; nobody's unless given.

        Returns
        -------
        CostSummary
            Of these people.

        Examples
        --------
        >>> import numpy as np
        >>> from equirecourse.metrics import CostSummary
        >>> costs, rejected = np.array([1.0, 3.0, 0.0, 2.0]), np.array([True, True, False, True])
        >>> halves = [CostSummary.of(costs[i], rejected[i], np.array([0, 1]), ["f", "m"]) for i in ([0, 1], [2, 3])]
        >>> CostSummary.merge(halves).means
        array([1. , 2.5])
        """
        names, place = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
        codes, n = place[codes], len(names)
        values = check_costs(costs[rejected])
        own = codes[rejected]
        finite = np.isfinite(values)
        lost = np.zeros(len(values), dtype=bool) if unknown is None else ~finite & unknown[rejected]
        key, deviation = cells_of(values[finite])
        places, cells = _collect(
            own[finite].astype(np.int64), key, np.ones(len(key), dtype=np.int64), deviation, deviation**2
        )
        return cls(
            labels=tuple(names.tolist()),
            people=np.bincount(codes, minlength=n),
            rejected=np.bincount(own, minlength=n),
            without_recourse=np.bincount(own[~finite & ~lost], minlength=n),
            unknown=np.bincount(own[lost], minlength=n),
            totals={name: _summed(np.asarray(rows, dtype=float), codes, n) for name, rows in (totals or {}).items()},
            _place=places,
            _cells=cells,
        )

    @staticmethod
    def merge(parts: Sequence[CostSummary]) -> CostSummary:
        """The summary of all people of several summaries."""
        labels = sorted({label for part in parts for label in part.labels})
        position = {label: k for k, label in enumerate(labels)}
        places = [np.array([position[label] for label in part.labels], dtype=np.int64) for part in parts]

        def summed(rows: list[NDArray[np.generic]]) -> NDArray[np.generic]:
            total = np.zeros((len(labels), *rows[0].shape[1:]), dtype=rows[0].dtype)
            for place, some in zip(places, rows, strict=True):
                total[place] += some
            return total

        together, cells = _collect(
            np.concatenate([place[part._place] for place, part in zip(places, parts, strict=True)]),
            *(np.concatenate([getattr(part._cells, name) for part in parts])
              for name in ("key", "count", "shift", "square")),
        )  # fmt: skip
        names = ("people", "rejected", "without_recourse", "unknown")
        counts = {name: summed([getattr(part, name) for part in parts]) for name in names}
        totals = {name: summed([part.totals[name] for part in parts]) for name in parts[0].totals}
        return CostSummary(tuple(labels), **counts, totals=totals, _place=together, _cells=cells)  # type: ignore[arg-type]

    @cached_property
    def groups(self) -> tuple[Cells, ...]:
        """The cells of each group's finite costs."""
        cuts = np.searchsorted(self._place, np.arange(1, len(self.labels)))
        parts = zip(*(np.split(part, cuts) for part in _fields(self._cells)), strict=True)
        return tuple(Cells(*some) for some in parts)

    @cached_property
    def pooled(self) -> Cells:
        """The cells of everybody's finite costs."""
        return _collect(np.zeros_like(self._place), *_fields(self._cells))[1]

    @cached_property
    def averaged(self) -> Ints:
        """How many costs the mean of each group is over."""
        return np.array([cells.n for cells in self.groups], dtype=np.int64)

    @cached_property
    def means(self) -> Array:
        """Mean cost of each group, NaN where nobody of it was rejected with a finite cost."""
        return np.array([cells.mean for cells in self.groups])


def _fields(cells: Cells) -> tuple[NDArray[np.int32], Ints, Array, Array]:
    return cells.key, cells.count, cells.shift, cells.square


def _collect(place: Ints, key: NDArray[np.int32], count: Ints, shift: Array, square: Array) -> tuple[Ints, Cells]:
    """Add up what belongs to the same group and cell."""
    both = (place << 32) + (key.astype(np.int64) + 2**31)
    kept, where = np.unique(both, return_inverse=True)
    n = len(kept)
    cells = Cells(
        (kept % 2**32 - 2**31).astype(np.int32),
        # Counts as floats are exact up to 2**53 people.
        _sums(where, count, n).astype(np.int64),
        _sums(where, shift, n),
        _sums(where, square, n),
    )
    return kept >> 32, cells


def _summed(rows: Array, codes: NDArray[np.intp], n: int) -> Array:
    if rows.ndim == 1:
        return _sums(codes, rows, n)
    total = np.empty((n, rows.shape[1]))
    for j, column in enumerate(rows.T):
        total[:, j] = _sums(codes, column, n)
    return total


def _sums(places: NDArray[np.intp], values: NDArray[Any], n: int) -> Array:
    return np.asarray(np.bincount(places, weights=values, minlength=n), dtype=np.float64)
