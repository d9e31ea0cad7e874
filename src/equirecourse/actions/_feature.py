"""One feature: what it is, how it may change, and what a change costs."""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._validation import shown
from equirecourse.actions._costs import cost_named
from equirecourse.actions._words import plain

__all__ = ["CHANGES", "KINDS", "Feature", "Percentiles"]

Array = NDArray[np.float64]

KINDS = ("number", "ordered", "labels", "one_hot")
CHANGES = ("any", "increase", "decrease", "no")


@dataclass(frozen=True)
class Percentiles:
    """Where people stand in a feature: the two percentile costs are differences of these ranks.

    Attributes
    ----------
    values : tuple of float
        Increasing values that people have; codes for labels.
    ranks : tuple of float
        For numbers and ordered labels, the share of people below each value, ties counted by half, so that no rank is
        0 or 1. For labels without an order, the share of people who have each label.

    Examples
    --------
    >>> from equirecourse.actions import Percentiles
    >>> Percentiles(values=(0, 10, 20), ranks=(0.25, 0.5, 0.75)).rank(15).item()
    0.625
    """

    values: tuple[float, ...]
    ranks: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("values", "ranks"):
            try:
                given = np.asarray(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                given = np.empty(0)
            if given.ndim != 1 or len(given) == 0 or not np.isfinite(given).all():
                raise ValueError(f"Percentiles: {name} must be a list of numbers, got {shown(getattr(self, name))}.")
            object.__setattr__(self, name, tuple(given.tolist()))
        if len(self.values) != len(self.ranks):
            raise ValueError(
                f"Percentiles: there are {len(self.values)} values for {len(self.ranks)} ranks; give one each."
            )
        if not all(a < b for a, b in pairwise(self.values)):
            raise ValueError(f"Percentiles: values must increase, got {shown(list(self.values))}.")
        if not all(0 < rank <= 1 for rank in self.ranks):
            raise ValueError(f"Percentiles: ranks must be above 0 and at most 1, got {shown(list(self.ranks))}.")

    def rank(self, value: Any) -> Array:
        """Rank of a value, interpolated between the known ones.

        Parameters
        ----------
        value : float or array
            Numbers, or codes of labels.

        Returns
        -------
        ndarray
            Their ranks; beyond the known values, the first or the last rank.
        """
        return np.asarray(np.interp(value, self.values, self.ranks))


@dataclass(frozen=True)
class Feature:
    """One thing about a person that may or may not change.

    Parameters
    ----------
    name : str
        The column's name; for a one-hot block, a name for the block.
    kind : {"number", "ordered", "labels", "one_hot"}, default="number"
        A number; a column of labels with an order; a column of labels without one; several columns of which exactly
        one is 1 and the others are 0.
    change : {"any", "increase", "decrease", "no"}, default="any"
        The way the feature may move. "no": it is immutable.
    low, high : float
        Limits of a number that was changed. A person who starts outside may stay there, or move inside.
    step : float, optional
        A changed number is a multiple of the step (1: whole numbers). By default any number will do.
    labels : tuple
        The labels, in order for "ordered"; for a one-hot block, one per column. A person whose label is not listed
        keeps it.
    allowed : tuple, optional
        The labels that one may move to; by default all of them.
    columns : tuple of str
        The columns of a one-hot block, one per label.
    cost : float, default=1.0
        What one unit of change costs under the norms "l1", "l2" and "linf": the diagonal of the paper's C. The unit of
        an ordered label is one place in the order, that of other labels is any change.
    percentiles : Percentiles, optional
        Where people stand; the norms "max_shift" and "log_shift" need it.

    Examples
    --------
    >>> from equirecourse.actions import Feature
    >>> Feature("savings", kind="ordered", labels=("none", "some", "many"), change="increase").code("some")
    1
    """

    name: str
    kind: str = "number"
    change: str = "any"
    low: float = -np.inf
    high: float = np.inf
    step: float | None = None
    labels: tuple[Hashable, ...] = ()
    allowed: tuple[Hashable, ...] | None = None
    columns: tuple[str, ...] = ()
    cost: float = 1.0
    percentiles: Percentiles | None = None

    def __post_init__(self) -> None:
        self._check_words()
        self._check_lists()
        self._check_numbers()
        if self.kind == "number":
            if self.labels or self.columns or self.allowed is not None:
                raise ValueError(
                    f"{self._of} is a number and has no labels or columns; use kind='ordered' or 'labels' for them."
                )
        else:
            self._check_labels()
        self._check_percentiles()

    @property
    def _of(self) -> str:
        return f"Feature {self.name!r}"

    def _check_words(self) -> None:
        if not _is(self.name, str):
            raise ValueError(f"The name of a feature must be text, got {shown(self.name)}.")
        for key, known in (("kind", KINDS), ("change", CHANGES)):
            value = getattr(self, key)
            if not (isinstance(value, str) and value in known):
                raise ValueError(f"{self._of}: {key} must be one of {', '.join(map(repr, known))}, got {shown(value)}.")

    def _check_lists(self) -> None:
        for key in ("labels", "allowed", "columns"):
            given: Any = getattr(self, key)
            if given is None and key == "allowed":
                continue
            # A string is a sequence too, of letters, which nobody means.
            if isinstance(given, str) or not hasattr(given, "__iter__"):
                raise ValueError(f"{self._of}: {key} must be a list, got {shown(given)}.")
            items = tuple(plain(item) for item in given)
            for item in items:
                if not isinstance(item, Hashable):
                    raise ValueError(f"{self._of}: {key} must hold single values, got {shown(item)}.")
                if _is_missing(item):
                    raise ValueError(f"{self._of}: {item} is no label; leave it out, a missing value is never changed.")
                if key == "columns" and not isinstance(item, str):
                    raise ValueError(f"{self._of}: columns must be names, got {shown(item)}.")
            twice = [item for place, item in enumerate(items) if item in items[:place]] if _repeats(items) else []
            if twice:
                raise ValueError(f"{self._of}: {twice[0]!r} is listed twice in {key} {shown(list(items))}.")
            object.__setattr__(self, key, items)

    def _check_numbers(self) -> None:
        for key in ("low", "high", "step", "cost"):
            value: Any = getattr(self, key)
            if value is None and key == "step":
                continue
            is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
            if key == "cost" and not (is_number and 0 < value < np.inf):
                raise ValueError(
                    f"{self._of}: cost must be a positive finite number, got {shown(value)}; "
                    "use change='no' for what cannot be changed."
                )
            if key == "step" and not (is_number and 0 < value < np.inf):
                raise ValueError(f"{self._of}: step must be a positive finite number, got {shown(value)}.")
            if not is_number or np.isnan(float(value)):
                raise ValueError(f"{self._of}: {key} must be a number, got {shown(value)}.")
            object.__setattr__(self, key, float(value))
        if self.low > self.high:
            raise ValueError(f"{self._of}: low={self.low:g} is above high={self.high:g}; swap them.")
        if self.low == np.inf or self.high == -np.inf:
            raise ValueError(f"{self._of}: no number lies between low={self.low:g} and high={self.high:g}.")

    def _check_labels(self) -> None:
        if self.low != -np.inf or self.high != np.inf or self.step is not None:
            raise ValueError(
                f"{self._of} has labels: it takes no low, high or step; list the reachable labels in allowed."
            )
        if self.change in ("increase", "decrease") and self.kind != "ordered":
            raise ValueError(
                f"{self._of}: change={self.change!r} needs an order; use kind='ordered' and list labels in order."
            )
        if self.kind == "one_hot" and not self.labels:
            object.__setattr__(self, "labels", self.columns)
        if self.kind != "one_hot" and self.columns:
            raise ValueError(f"{self._of}: only a one-hot block has columns; use kind='one_hot'.")
        if not self.labels and self.change != "no":
            raise ValueError(f"{self._of}: kind={self.kind!r} needs its labels.")
        if self.kind == "one_hot" and len(self.columns) != len(self.labels):
            raise ValueError(
                f"{self._of} has {len(self.columns)} columns for {len(self.labels)} labels; a block has one each."
            )
        if self.allowed == ():
            raise ValueError(f"{self._of}: allowed is empty; use change='no' for what cannot be changed.")
        for label in self.allowed or ():
            if label not in self.labels:
                raise ValueError(
                    f"{self._of}: {label!r} is allowed but is not one of the labels {shown(list(self.labels))}."
                )

    def _check_percentiles(self) -> None:
        if self.percentiles is None:
            return
        if not _is(self.percentiles, Percentiles):
            raise ValueError(f"{self._of}: percentiles must be a Percentiles, got {shown(self.percentiles)}.")
        ranks = self.percentiles.ranks
        if self.has_order and (max(ranks) == 1 or not all(a <= b for a, b in pairwise(ranks))):
            raise ValueError(f"{self._of}: ranks must rise with the values and stay below 1, got {shown(list(ranks))}.")
        if not self.has_order and self.percentiles.values != tuple(range(len(self.labels))):
            raise ValueError(
                f"{self._of}: percentiles of labels have the values 0 to {len(self.labels) - 1}, one per label, "
                f"got {shown(list(self.percentiles.values))}."
            )

    @property
    def mutable(self) -> bool:
        """Whether a person may change the feature."""
        return self.change != "no"

    @property
    def is_free(self) -> bool:
        """Whether it is a number that goes anywhere."""
        endless = self.low == -np.inf and self.high == np.inf
        return self.is_number and endless and self.step is None and self.change == "any"

    @property
    def is_number(self) -> bool:
        """Whether values are numbers, not labels."""
        return self.kind == "number"

    @property
    def has_order(self) -> bool:
        """Whether values can be said to rise and fall."""
        return self.kind in ("number", "ordered")

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns of a table that hold the feature."""
        return self.columns if self.kind == "one_hot" else (self.name,)

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Which labels one may move to, in the order of ``labels``."""
        return np.array([self.allowed is None or label in self.allowed for label in self.labels], dtype=bool)

    def code(self, label: Hashable) -> int:
        """Place of a label in ``labels``.

        Parameters
        ----------
        label : label
            Any value.

        Returns
        -------
        int
            The place; −1 for a label that is not listed.

        Examples
        --------
        >>> from equirecourse.actions import Feature
        >>> Feature("housing", kind="labels", labels=("rent", "own")).code("own")
        1
        """
        return self.labels.index(label) if label in self.labels else -1

    def move_cost(self, norm: str, start: Any, end: Any) -> Array:
        """Cost of moving this feature alone.

        Parameters
        ----------
        norm : {"l1", "l2", "linf", "max_shift", "log_shift"}
            The price list.
        start, end : float or array
            Numbers, or codes of labels, before and after.

        Returns
        -------
        ndarray
            Costs, element by element; 0 where nothing moves.

        Examples
        --------
        >>> from equirecourse.actions import Feature
        >>> Feature("income", cost=0.5).move_cost("l1", [10, 10], [14, 10]).tolist()
        [2.0, 0.0]
        """
        return cost_named(norm).of_move(self, start, end)


def _is(value: Any, kind: type) -> bool:
    """Whether a value has the type it is declared with, which a type checker would not let anybody ask."""
    return isinstance(value, kind)


def _is_missing(item: Any) -> bool:
    return item is None or item is pd.NaT or item is pd.NA or (isinstance(item, float) and not np.isfinite(item))


def _repeats(items: tuple[Hashable, ...]) -> bool:
    return len(set(items)) != len(items)
