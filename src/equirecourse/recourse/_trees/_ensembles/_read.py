"""Which reader a model needs, and what its trees see of people."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pandas as pd
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
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


def tree_view(view: View) -> View:
    """The view whose inputs are what the trees see.

    Histogram boosting encodes its categories itself, and moves them to the front.
    """
    encoder: Any = getattr(view.final, "_preprocessor", None)
    if not isinstance(view.final, HistGradientBoostingClassifier) or encoder is None:
        return view
    encoder = copy.copy(encoder)
    # The numbers go through a function that only checks them, which nobody could look through.
    encoder.transformers_ = [
        (name, FunctionTransformer() if isinstance(step, FunctionTransformer) else step, columns)
        for name, step, columns in encoder.transformers_
    ]
    steps = [] if view.before is None else view.before.steps
    return dataclasses.replace(view, before=Pipeline([*steps, ("own encoder", encoder)]))
