"""What a ColumnTransformer makes of people, with the columns of labels looked up.

scikit-learn checks every column of labels anew each time, which takes milliseconds for a handful of rows, and an engine
asks hundreds of times. Here a label goes through the fitted transformer of its column when it is first met, and is
looked up from then on. Numbers go through their transformers every time. Nothing that a transformer does is written
down again, so that what comes out is equal to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from equirecourse.recourse._trace import Column, Opaque, column_places, trace

__all__ = ["ColumnLookup", "open_lookup"]

Array = NDArray[np.float64]


@dataclass
class _Values:
    """The labels of a column that have been met, and what its transformer makes of each."""

    outputs: NDArray[np.intp]  # which outputs of the transformer come from this column
    known: dict[Any, int] = field(default_factory=dict)
    rows: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class _Block:
    """One transformer: its columns, where its outputs go, and the values of each column if they are labels."""

    transformer: Any
    columns: list[str]
    place: slice
    values: list[_Values] | None


@dataclass(frozen=True)
class ColumnLookup:
    """A fitted ColumnTransformer that remembers what becomes of labels."""

    blocks: tuple[_Block, ...]
    n_outputs: int

    def transform(self, table: pd.DataFrame) -> Array:
        """What the ColumnTransformer makes of a table, as floating-point numbers."""
        out = np.empty((len(table), self.n_outputs))
        for block in self.blocks:
            part = out[:, block.place]
            if block.values is None:
                part[:] = _transformed(block.transformer, _chosen(table, block.columns))
            else:
                self._look_up(block, block.values, table, part)
        return out

    @staticmethod
    def _look_up(block: _Block, values: list[_Values], table: pd.DataFrame, part: Array) -> None:
        coded = [_codes(table[name]) for name in block.columns]
        unknown: set[int] = set()
        for one, (codes, labels) in zip(values, coded, strict=True):
            new = [place for place, label in enumerate(labels) if label not in one.known]
            if new:
                met, first = np.unique(codes, return_index=True)
                unknown.update(first[np.isin(met, new)].tolist())
        if unknown:  # these rows show every value that is new
            rows = sorted(unknown)
            made = _transformed(block.transformer, _chosen(table, block.columns).iloc[rows])
            for one, (codes, labels) in zip(values, coded, strict=True):
                for row, line in zip(rows, made, strict=True):
                    label = labels[codes[row]]
                    if label not in one.known:
                        one.known[label] = len(one.rows)
                        one.rows.append(line[one.outputs])
        for one, (codes, labels) in zip(values, coded, strict=True):
            of_label = np.array([one.known.get(label, -1) for label in labels], dtype=np.intp)
            part[:, one.outputs] = np.array(one.rows)[of_label[codes]]


_MISSING = object()  # NaN is not equal to itself


def _codes(column: pd.Series) -> tuple[NDArray[np.intp], list[Any]]:
    """Places of values in a list of different ones, the missing value last."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, labels = column.cat.codes.to_numpy().astype(np.intp), column.cat.categories.tolist()
    else:
        codes, uniques = pd.factorize(column)
        labels = uniques.tolist()
    return np.where(codes < 0, len(labels), codes), [*labels, _MISSING]


def _chosen(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """``table[names]``, which makes an index of the names first: for a few people that takes most of the time."""
    places: list[Any] = [table.columns.get_loc(name) for name in names]
    return table.take(places, axis=1)


def _transformed(transformer: Any, table: pd.DataFrame) -> Array:
    same = isinstance(transformer, str) or (isinstance(transformer, FunctionTransformer) and transformer.func is None)
    made: Any = table if same else transformer.transform(table)
    return np.asarray(made.toarray() if sparse.issparse(made) else made, dtype=np.float64)


def open_lookup(before: Any, table: pd.DataFrame) -> ColumnLookup | None:
    """A lookup in place of the steps before a model.

    Parameters
    ----------
    before : fitted transformer
        The steps.
    table : DataFrame
        Some people, for the types of their columns.

    Returns
    -------
    ColumnLookup or None
        None if the steps are not one ColumnTransformer of dense output, or if one of its transformers of labels does
        not work column by column.
    """
    while isinstance(before, Pipeline) and len(before) == 1:
        before = before[0]
    if type(before) is not ColumnTransformer or before.sparse_output_ or before.transformer_weights is not None:
        return None
    if get_config()["transform_output"] != "default" or hasattr(before, "_sklearn_output_config"):
        return None
    names = [str(name) for name in table.columns]
    blocks = []
    try:
        for name, transformer, chosen in before.transformers_:
            place = before.output_indices_.get(name)
            if place is None or place.start == place.stop:  # such as what is dropped
                continue
            if isinstance(chosen, str):  # it wants a column, not a table
                return None
            columns = [names[k] for k in column_places(chosen, len(names), names)]
            labels = all(_is_text(table[name]) or _is_code(table[name], transformer) for name in columns)
            values = _values(transformer, columns) if labels else None
            blocks.append(_Block(transformer, columns, place, values))
    except Opaque:
        return None
    return ColumnLookup(tuple(blocks), max(block.place.stop for block in blocks))


def _values(transformer: Any, columns: list[str]) -> list[_Values]:
    """An empty store for each column; ``Opaque`` if an output depends on several of them."""
    made = trace(transformer, [Column(frozenset([name])) for name in columns], columns)
    if any(len(column.sources) != 1 for column in made):
        raise Opaque("an output that depends on several columns")
    return [
        _Values(np.array([k for k, column in enumerate(made) if name in column.sources], dtype=np.intp))
        for name in columns
    ]


def _is_code(column: pd.Series, transformer: Any) -> bool:
    """Whether a column holds whole numbers that its transformer takes for labels."""
    return column.dtype.kind in "iu" and isinstance(transformer, OneHotEncoder | OrdinalEncoder)


def _is_text(column: pd.Series) -> bool:
    """Whether a column holds text; objects, which may hide missing values of several kinds, are not looked up."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return all(isinstance(value, str) for value in column.cat.categories)
    return isinstance(column.dtype, pd.StringDtype)
