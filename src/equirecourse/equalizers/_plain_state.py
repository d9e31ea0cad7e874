"""The state of an estimator in plain values: formats that run no code, such as skops, know no frames."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["PlainState"]

_FRAME, _SERIES = "pandas.DataFrame", "pandas.Series"


class PlainState:
    """Mixin of an estimator whose fitted attributes are frames and series; goes before ``BaseEstimator``."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: _to_plain(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # BaseEstimator has it, and looks at the version of scikit-learn.
        super().__setstate__({name: _from_plain(value) for name, value in state.items()})  # type: ignore[misc]


def _to_plain(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        columns = [_column(value[name]) for name in value.columns]
        return {"kind": _FRAME, "names": list(value.columns), "values": columns, "index": _index(value.index)}
    if isinstance(value, pd.Series):
        return {"kind": _SERIES, "name": value.name, "values": _column(value), "index": _index(value.index)}
    return value


def _from_plain(value: Any) -> Any:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == _FRAME:
        columns = dict(zip(value["names"], value["values"], strict=True))
        return pd.DataFrame(columns, index=_index_again(value["index"]))
    if kind == _SERIES:
        return pd.Series(value["values"], index=_index_again(value["index"]), name=value["name"])
    return value


def _column(column: pd.Series) -> Any:
    """Numbers as an array, which keeps their type; everything else as a list."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return column.to_numpy() if numeric else column.tolist()


def _index(index: pd.Index) -> dict[str, Any]:
    if index.equals(pd.RangeIndex(len(index))):
        return {"names": list(index.names), "length": len(index)}
    levels = [index.get_level_values(place).tolist() for place in range(index.nlevels)]
    return {"names": list(index.names), "levels": levels}


def _index_again(plain: dict[str, Any]) -> pd.Index:
    if "length" in plain:
        return pd.RangeIndex(plain["length"], name=plain["names"][0])
    if len(plain["levels"]) > 1:
        return pd.MultiIndex.from_arrays(plain["levels"], names=plain["names"])
    index: pd.Index = pd.Index(plain["levels"][0], name=plain["names"][0])
    return index
