"""Fitting any learner with weights, through pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d, has_fit_parameter

from equirecourse._validation import refuse_masked

__all__ = ["check_people", "check_takes_weights", "fit_weighted", "reseeded", "take_feature_names"]

Array = NDArray[np.float64]


def check_people(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """People whose rows can be picked, whatever kind of table they are, and as many labels."""
    refuse_masked(X, name="X")
    refuse_masked(y, name="y")
    (X,) = indexable(X)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if _num_samples(X) != len(y):
        raise ValueError(f"X has {_num_samples(X)} people and y has {len(y)} labels; they must be as many.")
    return X, y


def take_feature_names(model: Any, fitted: Any) -> None:
    """Let a meta-estimator say what features its fitted estimator knows, and forget those of an earlier fit."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(model, name, getattr(fitted, name))
        elif name in model.__dict__:
            delattr(model, name)


def _weight_name(estimator: Any) -> str | None:
    """Name of the argument of ``fit`` that holds the weights, None if there is none."""
    if isinstance(estimator, Pipeline):
        inner = _weight_name(estimator.steps[-1][1])
        return None if inner is None else f"{estimator.steps[-1][0]}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def check_takes_weights(estimator: Any) -> None:
    """One sentence if a learner cannot be weighted."""
    if not hasattr(estimator, "fit"):
        raise ValueError(f"Reweighting fits a classifier anew, and {type(estimator).__name__} has no fit.")
    if _weight_name(estimator) is None:
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        raise ValueError(
            f"Reweighting needs a classifier whose fit takes sample_weight, and {type(last).__name__} does not; "
            "use one that does, such as LogisticRegression, RandomForestClassifier or HistGradientBoostingClassifier."
        )


def fit_weighted(estimator: Any, X: Any, y: NDArray[Any], weights: Array | None) -> Any:
    """A clone of a learner, fitted with weights; None for a fit without weights."""
    model = clone(estimator)
    if weights is None:
        return model.fit(X, y)
    # Whatever computed them: nothing else may reach a learner.
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"weights must be finite and not negative, got {weights.min():g} to {weights.max():g}.")
    name = _weight_name(estimator)
    assert name is not None, "checked by check_takes_weights"
    return model.fit(X, y, **{name: weights})


def reseeded(estimator: Any, seed: int) -> Any:
    """A clone of a learner with other random numbers, where it draws any: what a refit does without any method."""
    model = clone(estimator)
    seed = int(np.random.SeedSequence((seed, 0xEC)).generate_state(1)[0])  # not one that somebody has chosen
    seeds = {name: seed for name in model.get_params() if name.rpartition("__")[2] == "random_state"}
    return model.set_params(**seeds)
