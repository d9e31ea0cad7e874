"""Which reader a model needs, and what its trees see of people."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._trees._ensembles import _boosters, _scikit
from equirecourse.recourse._trees._ensembles._ensemble import Ensemble
from equirecourse.recourse._view import View

__all__ = ["can_read", "read_ensemble", "tree_view"]

_READERS = (
    (DecisionTreeClassifier, _scikit.single_tree),
    ((RandomForestClassifier, ExtraTreesClassifier), _scikit.forest),
    (GradientBoostingClassifier, _scikit.gradient_boosting),
    (HistGradientBoostingClassifier, _scikit.histogram_boosting),
    (AdaBoostClassifier, _scikit.adaboost),
    (BaggingClassifier, _scikit.bagging),
)
_OTHERS = {
    ("xgboost", "XGBClassifier"): _boosters.xgboost,
    ("xgboost", "XGBRFClassifier"): _boosters.xgboost,
    ("lightgbm", "LGBMClassifier"): _boosters.lightgbm,
}
_CATEGORIES = {_boosters.xgboost: _boosters.xgboost_categories, _boosters.lightgbm: _boosters.lightgbm_categories}


def _reader(model: Any) -> Callable[[Any, bool], Ensemble] | None:
    for kind, reader in _READERS:
        if isinstance(model, kind):
            return reader
    # Other libraries are never imported: a model of theirs brings what is needed along.
    return _OTHERS.get((type(model).__module__.split(".")[0], type(model).__name__))


def can_read(model: Any) -> bool:
    """Whether a classifier is of a kind that consists of trees."""
    return _reader(model) is not None


def read_ensemble(view: View, table: pd.DataFrame) -> Ensemble:
    """The trees of a model's last estimator.

    Parameters
    ----------
    view : View
        The model.
    table : DataFrame
        Some people, in the user's columns: the steps before the trees may make a sparse matrix of them.

    Returns
    -------
    Ensemble
        Its trees, with votes for and against the favourable label.

    Raises
    ------
    Opaque
        If the last estimator does not consist of trees, or of trees that cannot be read.
    """
    reader = _reader(view.final)
    if reader is None:
        raise Opaque(f"{type(view.final).__name__} does not consist of trees")
    ensemble = reader(view.final, view.sign > 0)
    # XGBoost takes what is not in a sparse matrix for missing; the others take it for the zero that it is.
    takes_zeros_for_missing = reader is _boosters.xgboost and view.leaves_out_zeros(table)
    return ensemble.without_zeros() if takes_zeros_for_missing else ensemble


def tree_view(view: View, table: pd.DataFrame) -> View:
    """The view whose inputs are what the trees see.

    Parameters
    ----------
    view : View
        The model.
    table : DataFrame
        Some people, in the user's columns.

    Returns
    -------
    View
        The model itself, or with one more step where it numbers the categories of a frame by itself.

    Raises
    ------
    Opaque
        If it does, and nobody can tell how.
    """
    encoder = _own_encoder(view, table)
    if encoder is None:
        return view
    steps = [] if view.before is None else view.before.steps
    return dataclasses.replace(view, before=Pipeline([*steps, ("own encoder", encoder)]))


def _own_encoder(view: View, table: pd.DataFrame) -> Any:
    if isinstance(view.final, HistGradientBoostingClassifier):
        return _encoder_of_histograms(view.final)
    reader = _reader(view.final)
    if reader not in _CATEGORIES or view.as_array:
        return None
    seen = table if view.before is None else view.before.transform(table.head(1))
    if not isinstance(seen, pd.DataFrame):
        return None
    is_category = [isinstance(dtype, pd.CategoricalDtype) for dtype in seen.dtypes]
    if not any(is_category):
        return None
    if view.before is not None:
        raise Opaque(f"{type(view.final).__name__} after steps that make categories")
    numbered = iter(_CATEGORIES[reader](view.final, is_category))
    return _numbering([next(numbered) if category else None for category in is_category], seen)


def _numbering(categories: Sequence[list[Any] | None], table: pd.DataFrame) -> ColumnTransformer:
    """Columns in their order, those of categories as places in the lists; a category that is not listed is missing."""
    steps = [
        (
            str(place),
            "passthrough"
            if names is None
            else OrdinalEncoder(
                categories=[np.array(names, dtype=object)], handle_unknown="use_encoded_value", unknown_value=np.nan
            ),
            [name],
        )
        for place, (name, names) in enumerate(zip(table.columns, categories, strict=True))
    ]
    return ColumnTransformer(steps).fit(table)


def _encoder_of_histograms(model: Any) -> Any:
    """Histogram boosting has an encoder of its own, which moves the categories to the front."""
    encoder: Any = getattr(model, "_preprocessor", None)
    if encoder is None:
        return None
    encoder = copy.copy(encoder)
    # The numbers go through a function that only checks them, which nobody could look through.
    encoder.transformers_ = [
        (name, FunctionTransformer() if isinstance(step, FunctionTransformer) else step, columns)
        for name, step, columns in encoder.transformers_
    ]
    return encoder
