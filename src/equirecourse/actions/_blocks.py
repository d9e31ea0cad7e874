"""One-hot blocks of a table: several columns that are one feature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from equirecourse._validation import shown
from equirecourse.actions._feature import Feature
from equirecourse.actions._table import encode
from equirecourse.actions._words import closest

__all__ = ["find_blocks"]


def find_blocks(table: pd.DataFrame, one_hot: Any) -> list[Feature]:
    """Blocks as features without costs or percentiles; found by their prefix, or as the user names them."""
    if one_hot is None or one_hot is False:
        return []
    if isinstance(one_hot, Mapping):
        return _given_blocks(table, one_hot)
    if not (isinstance(one_hot, str) and one_hot == "infer"):
        raise ValueError(
            f"one_hot must be 'infer', None or a mapping from the name of a block to its columns, got {shown(one_hot)}."
        )
    return _inferred_blocks(table)


def _given_blocks(table: pd.DataFrame, one_hot: Mapping[Any, Any]) -> list[Feature]:
    blocks: list[Feature] = []
    taken: dict[str, str] = {}
    for name, given in one_hot.items():
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise ValueError(f"one_hot[{name!r}] must be a list of columns, got {shown(given)}.")
        columns = [str(column) for column in given]
        for column in columns:
            if column not in table.columns:
                raise ValueError(
                    f"one_hot[{name!r}] names {column!r}, which is not a column; {closest(column, table.columns)}"
                )
            if column in taken:
                raise ValueError(f"one_hot puts {column!r} into both {taken[column]!r} and {name!r}; keep one of them.")
            taken[column] = name
        if str(name) in table.columns and str(name) not in columns:
            raise ValueError(f"one_hot calls a block {name!r}, which is the name of a column; use another name.")
        blocks.append(Feature(str(name), kind="one_hot", columns=tuple(columns), labels=_labels(str(name), columns)))
    encode(table, tuple(blocks))  # says what is wrong with a block that is none
    return blocks


def _labels(name: str, columns: list[str]) -> tuple[str, ...]:
    """What columns are called behind a common prefix; their whole names if they have none."""
    for prefix in (f"{name}_", f"{name}=", *_prefixes(columns[0] if columns else "")):
        if all(column.startswith(prefix) and column != prefix for column in columns):
            return tuple(column.removeprefix(prefix) for column in columns)
    return tuple(columns)


def _inferred_blocks(table: pd.DataFrame) -> list[Feature]:
    flags = {str(name): ones for name, column in table.items() if (ones := _ones(column)) is not None}
    # A prefix ends at the last separator; but labels may hold separators too, so shorter ones are tried next.
    depth = max((len(_prefixes(name)) for name in flags), default=0)
    found: list[Feature] = []
    for level in range(depth):
        groups: dict[str, list[str]] = {}
        for name in flags:
            prefixes = _prefixes(name)
            if level < len(prefixes):
                groups.setdefault(prefixes[level], [])
        for prefix, members in groups.items():
            members += [name for name in flags if name.startswith(prefix) and name != prefix]
            if len(members) < 2 or not (np.sum([flags[name] for name in members], axis=0, dtype=np.int64) == 1).all():
                continue
            labels = tuple(name.removeprefix(prefix) for name in members)
            # A plain column may have the name already.
            name = prefix[:-1] if prefix[:-1] not in table.columns else f"{prefix[:-1]} (one-hot)"
            found.append(Feature(name, kind="one_hot", columns=tuple(members), labels=labels))
            flags = {name: ones for name, ones in flags.items() if name not in members}
    return found


def _prefixes(name: str) -> list[str]:
    """Everything up to a separator, longest first."""
    return [name[: found.end()] for found in reversed(list(re.finditer(r"[_=]", name))) if found.start() > 0]


def _ones(column: pd.Series) -> Any:
    """Where a column of 0 and 1 is 1; None for any other column."""
    dtype: Any = column.dtype
    if pd.api.types.is_bool_dtype(dtype) and not column.hasnans:
        return column.to_numpy(dtype=bool)
    if not (pd.api.types.is_numeric_dtype(dtype) and dtype.kind in "iuf") or column.hasnans:
        return None
    values = column.to_numpy(dtype=np.float64)
    ones = values == 1.0
    return ones if (ones | (values == 0.0)).all() else None
