"""People as a table of columns and as a matrix of numbers and codes, and the way back."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from equirecourse._validation import refuse_masked, shown
from equirecourse.actions._feature import Feature

__all__ = ["as_table", "decode", "encode"]

Array = NDArray[np.float64]


def as_table(X: Any, columns: list[str] | None = None) -> pd.DataFrame:
    """Any table of people as a pandas frame; an array's columns get the names given, else x0, x1, ..."""
    if isinstance(X, pd.DataFrame):
        table = X
        if not all(isinstance(name, str) for name in X.columns):
            table = X.set_axis([str(name) for name in X.columns], axis=1)
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise ValueError(f"X has more than one column {twice!r}; give every column a name of its own.")
        return table
    native = nw.from_native(X, pass_through=True)
    if isinstance(native, nw.DataFrame):
        # Through lists, because to_pandas() on a polars frame needs pyarrow, which is not a dependency.
        return pd.DataFrame({name: native[name].to_list() for name in native.columns})
    refuse_masked(X, name="X")
    values = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"X must have two dimensions, one row per person, got shape {values.shape}.")
    names = [f"x{j}" for j in range(values.shape[1])]
    # An action set made from an array knows its columns by place, even if a one-hot block changed their order.
    if columns is not None and len(columns) == len(names) and set(columns) != set(names):
        names = columns
    return pd.DataFrame(values, columns=names)


def encode(table: pd.DataFrame, features: tuple[Feature, ...]) -> Array:
    """One row per person, one column per feature: numbers as they are, labels as their place in the list.

    A label that is not listed is −1; a missing number is NaN.
    """
    missing = [name for feature in features for name in feature.table_columns if name not in table.columns]
    if missing:
        raise ValueError(
            f"The action set speaks of {missing[0]!r}, which is not among the columns "
            f"{shown(list(table.columns))}; check its spelling."
        )
    values = np.empty((len(table), len(features)))
    for j, feature in enumerate(features):
        if feature.kind == "one_hot":
            values[:, j] = _block_codes(table, feature)
        elif feature.is_number:
            values[:, j] = _numbers(table[feature.name], feature)
        else:
            values[:, j] = _label_codes(table[feature.name], feature)
    return values


@lru_cache(maxsize=1000)
def _index_of(labels: tuple[Hashable, ...]) -> pd.Index:
    """The labels as an index, which remembers their places; flipsets read one person again and again."""
    return pd.Index(list(labels), dtype=object)


def _label_codes(column: pd.Series, feature: Feature) -> Array:
    labels = _index_of(feature.labels)
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Once per category, not once per person; the last place is for the missing, whose code is −1.
        of_category = labels.get_indexer(pd.Index(column.cat.categories, dtype=object))
        return np.asarray(np.append(of_category, -1)[column.cat.codes.to_numpy()], dtype=np.float64)
    values = column.astype(object).to_numpy()
    if not all(isinstance(value, Hashable) for value in values):  # such as lists, which are nobody's label
        values = np.array([value if isinstance(value, Hashable) else None for value in values], dtype=object)
    return np.asarray(labels.get_indexer(pd.Index(values, dtype=object)), dtype=np.float64)


def _numbers(column: pd.Series, feature: Feature) -> Array:
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        strange = next((v for v in column if not isinstance(v, int | float | np.number)), column.dtype)
        raise ValueError(
            f"Feature {feature.name!r} is a number in the action set and holds {strange!r}; "
            "give it kind='labels' or 'ordered'."
        ) from None


def _block_codes(table: pd.DataFrame, feature: Feature) -> Array:
    try:
        block = table[list(feature.columns)].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(
            f"The one-hot block {feature.name!r} must hold 0 and 1, and one of its columns holds text; "
            "use kind='labels' for a column of labels."
        ) from None
    is_one_hot = np.isin(block, (0.0, 1.0)).all(axis=1) & (block.sum(axis=1) == 1.0)
    if not is_one_hot.all():
        bad = int(np.flatnonzero(~is_one_hot)[0])
        raise ValueError(
            f"The one-hot block {feature.name!r} must have exactly one 1 among its {len(feature.columns)} columns, and "
            f"{int((~is_one_hot).sum())} of {len(table)} people have not, first row {bad}: {block[bad].tolist()}; "
            "encode it again without dropping a level, or list its columns as numbers."
        )
    return np.asarray(block.argmax(axis=1), dtype=np.float64)


def decode(table: pd.DataFrame, features: tuple[Feature, ...], start: Array, end: Array) -> pd.DataFrame:
    """The table with the features moved from ``start`` to ``end``; what has not moved is left exactly as it was."""
    columns: dict[str, Any] = {}
    moved = (start != end) & ~(np.isnan(start) & np.isnan(end))
    for j in np.flatnonzero(moved.any(axis=0)):
        feature, rows, codes = features[j], moved[:, j], end[:, j]
        if feature.is_number:
            columns[feature.name] = _moved_numbers(table[feature.name], rows, codes)
        elif feature.kind == "one_hot":
            for place, name in enumerate(feature.columns):
                old = table[name].to_numpy()
                columns[name] = np.where(rows, (codes == place).astype(old.dtype), old)
        else:
            columns[feature.name] = _moved_labels(table[feature.name], feature, rows, codes)
    if not columns:
        return table.copy()
    # Rebuilt column by column: assigning floats into a frame of integers is an error in current pandas.
    return pd.DataFrame({name: columns.get(name, table[name]) for name in table.columns}, index=table.index)


def _moved_numbers(column: pd.Series, rows: NDArray[np.bool_], end: Array) -> NDArray[Any]:
    old = column.to_numpy()
    new = np.where(rows, end, np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan)))
    if old.dtype.kind in "iub" and np.array_equal(new, np.round(new)):
        kind = np.dtype(np.int64) if old.dtype.kind == "b" else old.dtype
        # 200 does not fit into eight bits: it would come out as −56.
        if len(new) == 0 or (np.iinfo(kind).min <= new.min() and new.max() <= np.iinfo(kind).max):
            return new.astype(kind)
    return new


def _moved_labels(column: pd.Series, feature: Feature, rows: NDArray[np.bool_], codes: Array) -> Any:
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = column.dtype.categories
        places = pd.Index(known, dtype=object).get_indexer(_index_of(feature.labels))
        extra = np.flatnonzero(places < 0)
        places[extra] = len(known) + np.arange(len(extra))
        kept = column.cat.codes.to_numpy().astype(np.intp)
        kept[rows] = places[codes[rows].astype(int)]
        categories: Any = [*known, *(feature.labels[place] for place in extra)] if len(extra) else known
        return pd.Categorical.from_codes(kept, categories=categories, ordered=bool(column.dtype.ordered))
    labels = np.empty(len(feature.labels), dtype=object)
    labels[:] = feature.labels
    new = column.astype(object).to_numpy(copy=True)
    new[rows] = labels[codes[rows].astype(int)]
    # A column with its type, because a frame would make a column of text of bare objects, and NaN of None.
    try:
        return pd.Series(new, index=column.index, dtype=cast(Any, column.dtype))
    except (TypeError, ValueError):  # labels that the column could not hold so far
        return pd.Series(new, index=column.index, dtype=object)
