"""What one partition of the data adds to a fit: sums over its people, or a number for each of them.

Each function takes a partition. So partitions may be read one after the other, by several processes, or where they live
(joblib's Dask backend).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from equirecourse._partitions import as_pandas, chosen
from equirecourse._validation import check_finite, check_groups

__all__ = [
    "Census",
    "Columns",
    "Curvature",
    "Model",
    "census",
    "curvature",
    "members",
    "products",
    "weighted_squares",
    "weighted_sum",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


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


def _arrays(part: Any, columns: Columns) -> tuple[Any, NDArray[Any], Any]:
    """Features, labels and groups of a partition, loaded if it was only promised."""
    if columns.target is None:
        part = part.compute() if hasattr(part, "compute") else part
        if not isinstance(part, tuple | list) or len(part) != 3:
            raise ValueError(
                f"A partition must be (X, y, sensitive_features), got {type(part).__name__}; for tables, name the "
                "columns with target= and sensitive_features=."
            )
        return part[0], np.asarray(part[1]), part[2]
    table, groups = as_pandas(part), list(columns.sensitive_features)
    apart = {columns.target, *groups}
    features = list(columns.features or [name for name in table.columns if name not in apart])
    chosen(table, [columns.target, *groups, *features])
    return table[features], table[columns.target].to_numpy(), table[groups]


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


def members(part: Any, columns: Columns, upper: Any, labels: tuple[Hashable, ...]) -> tuple[Mask, NDArray[np.int32]]:
    """Who has the label ``upper``, and the group of each person by its place among ``labels``."""
    X, y, given = _arrays(part, columns)
    groups = check_groups(given, len(X))
    place = {label: k for k, label in enumerate(labels)}
    return np.asarray(y == upper), np.array([place[label] for label in groups.labels], dtype=np.int32)[groups.codes]


def products(part: Any, columns: Columns, coef: Array) -> Array:
    """The features times coefficients, for each person."""
    return _numbers(_arrays(part, columns)[0]) @ coef


def weighted_sum(part: Any, columns: Columns, weights: Array) -> Array:
    """The features, added up with a weight for each person."""
    return weights @ _numbers(_arrays(part, columns)[0])


def weighted_squares(part: Any, columns: Columns, weights: Array) -> tuple[Array, Array]:
    """Products of features with each other, and the features, added up with a weight for each person."""
    values = _numbers(_arrays(part, columns)[0])
    return (values * weights[:, None]).T @ values, weights @ values
