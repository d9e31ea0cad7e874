"""What one partition of the data adds to a fit: small sums, whatever the number of its people.

Each function takes a partition and returns a frozen record; records of all partitions are added up. So partitions may
be read one after the other, by several processes, or where they live (joblib's Dask backend).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from equirecourse._validation import as_frame, check_finite, check_groups

__all__ = ["Census", "Columns", "Curvature", "Model", "Standing", "census", "curvature", "open_partitions", "standing"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; all None for partitions that are (X, y, groups) already."""

    target: str | None = None
    sensitive_features: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Model:
    """Coefficients of a score that is positive for ``classes[1]``."""

    coef: Array
    intercept: float


@dataclass(frozen=True)
class Census:
    """Who and what is there."""

    people: int
    names: tuple[str, ...] | None
    n_features: int
    labels: frozenset[Any]
    groups: frozenset[Hashable]
    group_names: tuple[str, ...]


@dataclass(frozen=True)
class Curvature:
    """Logistic loss, its slope and its curvature in (coefficients, intercept)."""

    loss: float
    slope: Array
    hessian: Array

    def __add__(self, other: Curvature) -> Curvature:
        return Curvature(self.loss + other.loss, self.slope + other.slope, self.hessian + other.hessian)


@dataclass(frozen=True)
class Standing:
    """Whom a model rejects: numbers and sums of features by group, and how that differs from another model."""

    rejected: NDArray[np.int64]
    sums: Array  # n_groups × n_features
    right: int
    changed: int
    people: int
    digest: bytes

    def __add__(self, other: Standing) -> Standing:
        return Standing(
            self.rejected + other.rejected,
            self.sums + other.sums,
            self.right + other.right,
            self.changed + other.changed,
            self.people + other.people,
            hashlib.sha256(self.digest + other.digest).digest(),
        )


def open_partitions(partitions: Any) -> Callable[[], Iterator[Any]]:
    """A function that goes through the partitions from the start, whatever they are given as."""
    if isinstance(partitions, str | Path):
        from pyarrow import dataset  # type: ignore[import-untyped]

        partitions = dataset.dataset(partitions)
    if hasattr(partitions, "to_batches") and hasattr(partitions, "get_fragments"):  # a dataset of pyarrow
        return lambda: (batch.to_pandas() for batch in partitions.to_batches() if batch.num_rows)
    if hasattr(partitions, "to_delayed"):  # a frame of Dask
        parts = list(partitions.to_delayed())
        return lambda: iter(parts)
    if callable(partitions):
        return lambda: iter(partitions())
    if iter(partitions) is partitions:
        raise ValueError(
            "partitions is an iterator, which can be read once, and a fit reads it many times; pass a list, a folder "
            "of Parquet files, a Dask DataFrame, or a function that opens it."
        )
    return lambda: iter(partitions)


def _arrays(part: Any, columns: Columns) -> tuple[Any, NDArray[Any], Any]:
    """Features, labels and groups of a partition, loaded if it was only promised."""
    if hasattr(part, "compute"):
        part = part.compute()
    if columns.target is None:
        if not isinstance(part, tuple | list) or len(part) != 3:
            raise ValueError(
                f"A partition must be (X, y, sensitive_features), got {type(part).__name__}; for tables, name the "
                "columns with target= and sensitive_features=."
            )
        return part[0], np.asarray(part[1]), part[2]
    table = part if isinstance(part, pd.DataFrame) else as_frame(part)
    wanted = [columns.target, *columns.sensitive_features, *(columns.features or ())]
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise ValueError(f"A partition has no column {missing[0]!r}; it has {', '.join(map(str, table.columns))}.")
    apart = {columns.target, *columns.sensitive_features}
    features = columns.features or [name for name in table.columns if name not in apart]
    return table[list(features)], table[columns.target].to_numpy(), table[list(columns.sensitive_features)]


def _numbers(X: Any) -> Array:
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"The features of a partition must have two dimensions, got shape {values.shape}.")
    check_finite(values, getattr(X, "columns", None))
    return values


def census(part: Any, columns: Columns) -> Census:
    """Count a partition, and check it."""
    X, y, members = _arrays(part, columns)
    values = _numbers(X)
    if y.shape != (len(values),):
        raise ValueError(f"A partition has {len(values)} people and y of shape {y.shape}; they must be as many.")
    groups = check_groups(members, len(values))
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    labels = frozenset(np.unique(y).tolist())
    return Census(len(values), names, values.shape[1], labels, frozenset(groups.labels), groups.names)


def curvature(part: Any, columns: Columns, model: Model, upper: Any) -> Curvature:
    """The logistic loss of a partition and its derivatives; ``upper`` is the label of a positive score."""
    X, y, _ = _arrays(part, columns)
    values = _numbers(X)
    d = values.shape[1]
    sign = np.where(y == upper, 1.0, -1.0)
    margin = sign * (values @ model.coef + model.intercept)
    wrong = expit(-margin)
    pull, weight = -sign * wrong, wrong * (1.0 - wrong)
    hessian = np.empty((d + 1, d + 1))
    hessian[:d, :d] = (values * weight[:, None]).T @ values
    hessian[:d, d] = hessian[d, :d] = weight @ values
    hessian[d, d] = weight.sum()
    return Curvature(-float(log_expit(margin).sum()), np.append(pull @ values, pull.sum()), hessian)


def standing(
    part: Any,
    columns: Columns,
    model: Model,
    last: Model | None,
    upper: Any,
    favorable_is_upper: bool,
    labels: tuple[Hashable, ...],
) -> Standing:
    """Whom a model rejects among a partition's people."""
    X, y, members = _arrays(part, columns)
    values = _numbers(X)
    groups = check_groups(members, len(values))
    place = {label: k for k, label in enumerate(labels)}
    codes = np.array([place[label] for label in groups.labels], dtype=np.intp)[groups.codes]

    def rejects(one: Model) -> NDArray[np.bool_]:
        predicted_upper = values @ one.coef + one.intercept > 0
        return np.asarray(~predicted_upper if favorable_is_upper else predicted_upper)

    rejected = rejects(model)
    sums = np.zeros((len(labels), values.shape[1]))
    for k in range(len(labels)):
        sums[k] = values[rejected & (codes == k)].sum(axis=0)
    wanted = (y == upper) if favorable_is_upper else (y != upper)
    return Standing(
        rejected=np.bincount(codes[rejected], minlength=len(labels)),
        sums=sums,
        right=int((~rejected == wanted).sum()),
        changed=0 if last is None else int((rejected != rejects(last)).sum()),
        people=len(values),
        digest=hashlib.sha256(np.packbits(rejected).tobytes()).digest(),
    )
