"""A model as a person meets it: a table of their own columns goes in, a yes or a no comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equirecourse._validation import favorable_index
from equirecourse.actions import ActionSet
from equirecourse.recourse._lookup import ColumnLookup, open_lookup
from equirecourse.recourse._trace import Column, trace

__all__ = ["View", "open_model"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """A fitted model, taken apart into the steps before its last estimator and that estimator.

    Attributes
    ----------
    model : classifier
        The whole of it.
    before : Pipeline or None
        The steps before the last estimator.
    final : classifier
        The last estimator.
    favorable : label
        The label that means yes.
    sign : {1.0, -1.0}
        What the model's own score is multiplied by, so that more is better.
    as_array : bool
        Whether the model wants arrays: it was fitted to one, or knows nothing of its columns and was given one.
    renamed : mapping
        Columns of the caller's frame whose names are no text, by the text that stands for them in a table.
    memory : dict
        What an engine found out about the model and may need again, should it be asked a second time.
    """

    model: Any
    before: Any
    final: Any
    favorable: Any
    sign: float
    as_array: bool
    renamed: Mapping[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def accepts(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Who gets a yes."""
        if len(table) == 0:
            return np.zeros(0, dtype=bool)
        return np.asarray(self.labels(table) == self.favorable)

    def labels(self, table: pd.DataFrame) -> NDArray[Any]:
        """What the model predicts."""
        return np.asarray(self.model.predict(self._dressed(table)))

    def would_accept(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Who gets a yes, as ``accepts`` says, faster where columns of text can be looked up.

        For engines, which ask often. What they find goes through ``accepts`` in the end.
        """
        lookup = self._lookup(table)
        if lookup is None or len(table) == 0:
            return self.accepts(table)
        labels = np.asarray(self.final.predict(lookup.transform(table)))
        return np.asarray(labels == self.final.classes_[int(self.sign > 0)])

    def scores(self, table: pd.DataFrame) -> Array | None:
        """The model's score, more is better: its decision function, else its probability of a yes, else None."""
        if not hasattr(self.model, "decision_function"):
            return self.chances(table)
        lookup = self._lookup(table) if hasattr(self.final, "decision_function") else None
        scores = (
            self.model.decision_function(self._dressed(table))
            if lookup is None
            else self.final.decision_function(lookup.transform(table))
        )
        return self.sign * np.asarray(scores, dtype=np.float64).reshape(len(table))

    def chances(self, table: pd.DataFrame) -> Array | None:
        """The probability of a yes, None if the model has none."""
        if not hasattr(self.model, "predict_proba"):
            return None
        lookup = self._lookup(table) if hasattr(self.final, "predict_proba") else None
        chances = (
            self.model.predict_proba(self._dressed(table))
            if lookup is None
            else self.final.predict_proba(lookup.transform(table))
        )
        return np.asarray(chances, dtype=np.float64)[:, int(self.sign > 0)]

    @property
    def level(self) -> float:
        """The probability of a yes from which on the model says it: 0.5, or a threshold that it was given."""
        if not isinstance(self.model, FixedThresholdClassifier | TunedThresholdClassifierCV):
            return 0.5
        threshold: Any = getattr(self.model, "best_threshold_", getattr(self.model, "threshold", "auto"))
        if threshold == "auto" or self.model.response_method == "decision_function":
            return 0.5
        positive = getattr(self.model, "pos_label", None)
        is_yes = self.sign > 0 if positive is None else positive == self.favorable
        return float(threshold) if is_yes else 1.0 - float(threshold)

    def inputs(self, table: pd.DataFrame) -> Array:
        """What the last estimator sees of these people."""
        lookup = self._lookup(table)
        if lookup is not None:
            return lookup.transform(table)
        seen = self._seen(table)
        return np.asarray(seen.toarray() if sparse.issparse(seen) else seen, dtype=np.float64)

    def leaves_out_zeros(self, table: pd.DataFrame) -> bool:
        """Whether the last estimator gets a sparse matrix, in which zeros are not there."""
        return bool(sparse.issparse(self._seen(table.head(1))))

    def _lookup(self, table: pd.DataFrame) -> ColumnLookup | None:
        """What knows the inputs of the last estimator faster than the steps before it, if anything does."""
        if self.before is None or self.as_array or self.renamed:
            return None
        known = self.memory.get("lookup")
        if known is None or known[0] is not self.before:  # it may have been replaced in a copy of this view
            known = self.before, open_lookup(self.before, table)
            self.memory["lookup"] = known
        lookup: ColumnLookup | None = known[1]
        return lookup

    def _seen(self, table: pd.DataFrame) -> Any:
        people = self._dressed(table)
        return people if self.before is None else self.before.transform(people)

    def columns(self, table: pd.DataFrame) -> list[Column]:
        """Which of the user's columns each input of the last estimator comes from; ``Opaque`` if nobody can tell."""
        columns = [Column(frozenset([name])) for name in table.columns]
        return columns if self.before is None else trace(self.before, columns, list(table.columns))

    def sources(self, table: pd.DataFrame, actions: ActionSet) -> list[tuple[frozenset[int], str]]:
        """For each input of the last estimator, the features it depends on and how ("same" ... "any").

        Columns that no feature speaks of never change, so they are no source.
        """
        place = {name: j for j, feature in enumerate(actions) for name in feature.table_columns}
        return [
            (frozenset(place[name] for name in column.sources if name in place), column.shape)
            for column in self.columns(table)
        ]

    def _dressed(self, table: pd.DataFrame) -> Any:
        if self.as_array:
            return table.to_numpy()
        return table.rename(columns=self.renamed) if self.renamed else table


def open_model(model: Any, favorable_label: Any = None, people: Any = None) -> View:
    """Take a fitted classifier apart; one sentence if it is not one, or not fitted, or has not two labels.

    What is taken apart already is returned as it is: whoever asks several questions about a model opens it once.

    Parameters
    ----------
    model : fitted classifier or View
        With ``predict`` and ``classes_``.
    favorable_label : label, optional
        The label that means yes.
    people : table, optional
        People as the caller holds them. A model that does not say what it was fitted to is asked in the same form:
        an array for an array, else a frame of pandas.

    Returns
    -------
    View
        The model.
    """
    if isinstance(model, View):
        return model
    if not hasattr(model, "predict"):
        raise ValueError(
            f"Recourse needs a fitted classifier with a predict method, and {type(model).__name__} has none."
        )
    inner = _unwrapped(model)
    final = inner[-1] if isinstance(inner, Pipeline) else inner
    before = inner[:-1] if isinstance(inner, Pipeline) and len(inner) > 1 else None
    try:
        classes = np.asarray(model.classes_)
    except AttributeError:
        raise ValueError(
            f"Recourse needs a fitted classifier with two labels, and {type(model).__name__} has no classes_; "
            "fit it first, or give it a classes_ with the two labels that predict returns."
        ) from None
    if classes.ndim != 1 or len(classes) != 2:
        raise ValueError(
            f"Recourse needs a classifier with two labels; {type(model).__name__} has {len(classes)} of them."
        )
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    if favorable_label is None:
        favorable_label = getattr(final, "favorable_label_", None)
    yes = favorable_index(classes, favorable_label)
    return View(
        model=model,
        before=before,
        final=final,
        favorable=classes[yes],
        sign=1.0 if yes == 1 else -1.0,
        as_array=_wants_arrays(model, inner, people),
        renamed=_not_text(people),
    )


def _unwrapped(model: Any) -> Any:
    """The estimator or flat pipeline that decides, out of searches, meta-estimators of ours and nested pipelines."""
    while True:
        if hasattr(model, "best_estimator_"):  # a search keeps its choice there
            model = model.best_estimator_
        elif hasattr(model, "_recourse_model"):  # what decides as the whole does
            model = model._recourse_model
        elif isinstance(model, Pipeline) and (last := _unwrapped(model[-1])) is not model[-1]:
            model = Pipeline([*model.steps[:-1], (model.steps[-1][0], last)])
        elif isinstance(model, Pipeline) and isinstance(model[-1], Pipeline):
            model = Pipeline([*model.steps[:-1], *model[-1].steps])
        else:
            return model


def _wants_arrays(model: Any, inner: Any, people: Any) -> bool:
    """Whether a model is asked with arrays: what it was fitted to decides, and where nobody knows, what was given."""
    if any(hasattr(part, "feature_names_in_") for part in (model, inner)):
        return False
    # scikit-learn counts the columns of whatever it is fitted to; a frame would have left their names as well.
    if any(hasattr(part, "n_features_in_") for part in (model, inner)):
        return True
    return people is not None and not hasattr(people, "columns")


def _not_text(people: Any) -> dict[str, Any]:
    names = people.columns if isinstance(people, pd.DataFrame) else ()
    return {str(name): name for name in names if not isinstance(name, str)}
