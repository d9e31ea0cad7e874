"""Which of the user's columns each input of a model comes from, through pipelines and column transformers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

__all__ = ["SHAPES", "Column", "Opaque", "column_places", "trace"]

# From the simplest to the most general; a chain of transformations is as general as its most general link.
SHAPES = ("same", "affine", "monotone", "any")

_AFFINE = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
_MONOTONE = (PowerTransformer, QuantileTransformer, Binarizer)
_COLUMN_BY_COLUMN = (OneHotEncoder, OrdinalEncoder, TargetEncoder, KBinsDiscretizer, SplineTransformer)
_MIXING = (PCA, TruncatedSVD)


class Opaque(Exception):  # noqa: N818, it is an answer rather than an error
    """A step that cannot be looked through; the message says which."""


@dataclass(frozen=True)
class Column:
    """One column on its way to the model.

    Attributes
    ----------
    sources : frozenset of str
        The user's columns it depends on.
    shape : {"same", "affine", "monotone", "any"}
        How it depends on each of them.
    """

    sources: frozenset[str]
    shape: str = "same"

    def through(self, shape: str) -> Column:
        """The column after one more transformation."""
        return Column(self.sources, SHAPES[max(SHAPES.index(self.shape), SHAPES.index(shape))])


def trace(step: Any, columns: Sequence[Column], names: Sequence[str] | None) -> list[Column]:
    """Columns that a fitted transformer makes of its input.

    Parameters
    ----------
    step : transformer
        Fitted.
    columns : sequence of Column
        Its input.
    names : sequence of str, optional
        The names of its input, where it is a frame.

    Returns
    -------
    list of Column
        Its output.

    Raises
    ------
    Opaque
        If the transformer cannot be looked through.
    """
    columns = list(columns)
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            columns = trace(inner, columns, names)
            names = None  # a name belongs to the frame the user gave, not to what a step made of it
        return columns
    if isinstance(step, ColumnTransformer):
        return _column_transformer(step, columns, names)
    if isinstance(step, FeatureUnion):
        return [out for _, inner in step.transformer_list if inner != "drop" for out in trace(inner, columns, names)]
    if isinstance(step, FunctionTransformer) and step.func is None:
        return columns
    if isinstance(step, SelectorMixin):
        return [column for column, kept in zip(columns, step.get_support(), strict=True) if kept]
    if isinstance(step, _MIXING):
        everything = frozenset().union(*(column.sources for column in columns))
        shape = max((column.through("affine").shape for column in columns), key=SHAPES.index)
        return [Column(everything, shape)] * len(step.components_)
    shape = _shape(step)
    return [columns[place].through(shape) for place in _origins(step, len(columns))]


def _shape(step: Any) -> str:
    if isinstance(step, _AFFINE):
        return "monotone" if getattr(step, "clip", False) else "affine"
    if isinstance(step, _MONOTONE) or (isinstance(step, KBinsDiscretizer) and step.encode == "ordinal"):
        return "monotone"
    if isinstance(step, SimpleImputer):
        return "any" if step.add_indicator else "same"
    if isinstance(step, _COLUMN_BY_COLUMN):
        return "any"
    raise Opaque(f"{type(step).__name__} cannot be looked through")


def _origins(step: Any, n_columns: int) -> list[int]:
    """For each output of a transformer that works column by column, the input it comes from."""
    bare = copy.copy(step)
    # Names of our own, which cannot be taken for one another; scikit-learn insists on the fitted ones where it has any.
    if hasattr(bare, "feature_names_in_"):
        del bare.feature_names_in_
    names = bare.get_feature_names_out([f"<{j}>" for j in range(n_columns)])
    return [int(name[name.index("<") + 1 : name.index(">")]) for name in names]


def _column_transformer(step: ColumnTransformer, columns: list[Column], names: Sequence[str] | None) -> list[Column]:
    out: list[Column | None] = [None] * sum(
        piece.stop - piece.start for piece in step.output_indices_.values() if piece.stop > piece.start
    )
    for name, inner, chosen in step.transformers_:
        piece = step.output_indices_.get(name)
        if inner == "drop" or piece is None or piece.stop == piece.start:
            continue
        places = column_places(chosen, len(columns), names)
        inner_names = [names[place] for place in places] if names is not None else None
        out[piece] = trace(inner, [columns[place] for place in places], inner_names)
    if any(column is None for column in out):
        raise Opaque("a ColumnTransformer has outputs that no transformer made")
    return [column for column in out if column is not None]


def column_places(chosen: Any, n_columns: int, names: Sequence[str] | None) -> list[int]:
    """Places of the columns that a ColumnTransformer gives to one of its transformers."""
    if isinstance(chosen, str | int | np.integer):
        chosen = [chosen]
    if isinstance(chosen, slice):
        if isinstance(chosen.start, str) or isinstance(chosen.stop, str):
            raise Opaque("a ColumnTransformer that chooses a range of names")
        return list(range(n_columns))[chosen]
    chosen = list(chosen)
    if len(chosen) == n_columns and all(isinstance(item, bool | np.bool_) for item in chosen):
        return [place for place, kept in enumerate(chosen) if kept]
    if chosen and isinstance(chosen[0], str):
        if names is None:
            raise Opaque("a ColumnTransformer that chooses names after another step")
        return [list(names).index(item) for item in chosen]
    return [int(item) % n_columns for item in chosen]
