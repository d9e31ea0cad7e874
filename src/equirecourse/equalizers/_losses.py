"""Losses of linear learners: what they minimise, read from their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from equirecourse.equalizers._objective import softened

__all__ = ["LinearLoss", "hinge", "logistic", "read_loss"]

Array = NDArray[np.float64]

_ROUNDED = 0.1  # of the margin, over which the corner of the hinge is rounded off


def logistic(margins: Array) -> tuple[Array, Array, Array]:
    """Values, slopes and curvatures of the logistic loss."""
    chance, values = softened(margins, 1.0)
    return values, -chance, chance * (1.0 - chance)


def hinge(margins: Array) -> tuple[Array, Array, Array]:
    """Values, slopes and curvatures of the hinge loss, its corner rounded off."""
    lacking = np.maximum(1.0 - margins, 0.0)
    near = lacking < _ROUNDED
    values: Array = np.where(near, 0.5 * lacking**2 / _ROUNDED, lacking - 0.5 * _ROUNDED)
    curved: Array = np.where((lacking > 0.0) & near, 1.0 / _ROUNDED, 0.0)
    return values, -np.minimum(lacking / _ROUNDED, 1.0), curved


def _squared_hinge(margins: Array) -> tuple[Array, Array, Array]:
    lacking = np.maximum(1.0 - margins, 0.0)
    return np.square(lacking), -2.0 * lacking, np.where(lacking > 0.0, 2.0, 0.0)


def _squared(margins: Array) -> tuple[Array, Array, Array]:
    lacking = 1.0 - margins
    return lacking**2, -2.0 * lacking, np.full(len(margins), 2.0)


@dataclass(frozen=True)
class LinearLoss:
    """The objective of a linear learner: a weighted sum of losses, and a ridge.

    Attributes
    ----------
    of : callable
        Values, slopes and curvatures of the loss at margins (label ±1 × score).
    ridge : float
        The learner adds ½ ridge ‖w‖² to the sum of its losses.
    ridge_of_intercept : float
        And ½ of this times the squared intercept.
    has_intercept : bool
        Whether there is one.
    weights : ndarray of shape (n_people,)
        Weight of each person's loss: sample weight × class weight.
    """

    of: Callable[[Array], tuple[Array, Array, Array]]
    ridge: float
    ridge_of_intercept: float
    has_intercept: bool
    weights: Array


def read_loss(learner: Any, y: NDArray[Any], sample_weight: Array) -> LinearLoss | None:
    """The objective of a learner on some people, or None if it is not a smooth loss with a ridge.

    Parameters
    ----------
    learner : classifier
        Not necessarily fitted.
    y : ndarray of shape (n_people,)
        Labels.
    sample_weight : ndarray of shape (n_people,)
        Weights.

    Returns
    -------
    LinearLoss or None
        For LogisticRegression, LinearSVC, RidgeClassifier and SGDClassifier with an l2 penalty or none.
    """
    given = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    weights = sample_weight * _class_weights(learner, given.get("class_weight"), y, sample_weight)
    intercept = bool(given.get("fit_intercept", True))
    if type(learner) is LogisticRegression:
        penalty, l1_ratio = given.get("penalty", "l2"), given.get("l1_ratio")
        if penalty not in ("l2", "deprecated", None) or l1_ratio not in (None, 0, 0.0):
            return None
        ridge = 0.0 if penalty is None else 1.0 / given["C"]
        at_intercept = ridge / given["intercept_scaling"] ** 2 if given["solver"] == "liblinear" else 0.0
        return LinearLoss(logistic, ridge, at_intercept, intercept, weights)
    if type(learner) is LinearSVC and given["penalty"] == "l2":
        loss = hinge if given["loss"] == "hinge" else _squared_hinge
        ridge = 1.0 / given["C"]
        return LinearLoss(loss, ridge, ridge / given["intercept_scaling"] ** 2, intercept, weights)
    if type(learner) is RidgeClassifier and not given["positive"]:
        return LinearLoss(_squared, 2.0 * given["alpha"], 0.0, intercept, weights)
    if type(learner) is SGDClassifier and given["penalty"] in ("l2", None):
        losses = {"log_loss": logistic, "hinge": hinge, "squared_hinge": _squared_hinge, "squared_error": _squared}
        of = losses.get(given["loss"])
        # Its ridge is relative to the loss per person, whatever they weigh; half of a squared error.
        ridge = given["alpha"] * len(weights) if given["penalty"] == "l2" else 0.0
        ridge *= 2.0 if given["loss"] == "squared_error" else 1.0
        return None if of is None else LinearLoss(of, ridge, 0.0, intercept, weights)
    return None


def _class_weights(learner: Any, asked: Any, y: NDArray[Any], sample_weight: Array) -> Array:
    """The factor of each person's class. Labels that a mapping does not know are left to the learner to refuse."""
    classes, codes = np.unique(y, return_inverse=True)
    if asked is None or isinstance(asked, Mapping):
        factors = np.array([1.0 if asked is None else float(asked.get(label, 1.0)) for label in classes.tolist()])
        return factors[codes]
    # Newer versions of scikit-learn count people by their weights in "balanced", in these two.
    counts = isinstance(learner, (LogisticRegression, LinearSVC))
    counts = counts and "sample_weight" in signature(compute_class_weight).parameters
    more = {"sample_weight": sample_weight} if counts else {}
    return np.asarray(compute_class_weight(asked, classes=classes, y=y, **more), dtype=np.float64)[codes]
