"""Closed forms: the distance to the boundary of a linear model, and of a kernel model in its feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equirecourse._validation import check_choice, check_feature_costs, favorable_index, refuse_masked
from equirecourse.actions import EUCLIDEAN_NORM, NORMS, Distance

__all__ = ["BoundaryCosts", "boundary_costs", "costs_of_scores"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BoundaryCosts:
    """Costs of recourse by the distance to the decision boundary.

    Attributes
    ----------
    costs : ndarray of shape (n_people,)
        0 for accepted people; infinite where the score does not depend on the features.
    rejected : ndarray of bool, shape (n_people,)
        Who is predicted unfavourable.
    space : {"input", "transformed", "feature"}
        "input": the exact cost in the features. "transformed": the exact cost in the features that a pipeline makes
        of them, such as standard deviations, or a kernel's approximate features. "feature": a distance in the feature
        space of a kernel. Only the first is what a person experiences.
    norm : {"l1", "l2", "linf"}
        The norm of the cost.
    """

    costs: Array
    rejected: NDArray[np.bool_]
    space: str
    norm: str


def boundary_costs(
    model: Any, X: Any, *, norm: str = EUCLIDEAN_NORM, feature_costs: Any = None, favorable_label: Any = None
) -> BoundaryCosts:
    r"""Distance of each rejected person to the decision boundary.

    For a linear score the cheapest accepted point under the cost :math:`\|C(x' - x)\|` is known in closed form,
    :math:`r(x) = |f(x)| / \|C^{-1}w\|_*` with the dual norm: L2 for L2, the maximum for L1, the sum for L∞. For a
    kernel model :math:`|f(x)| / \|w\|` is a distance in feature space. The steps of a pipeline before the model are
    applied first, so that costs are in units of what the model sees (standard deviations, after a StandardScaler).

    Parameters
    ----------
    model : fitted classifier or Pipeline
        With ``coef_``, or a support vector machine.
    X : array-like of shape (n_people, n_features)
        People.
    norm : {"l1", "l2", "linf"}, default="l2"
        Norm of the cost. Not that of :func:`~equirecourse.find_recourse` by default: distances to a boundary are
        Euclidean in the paper, and a kernel's feature space knows no other norm.
    feature_costs : array-like of shape (n_features,), optional
        Cost of a unit of change of each feature the model sees; 1 by default.
    favorable_label : label, optional
        The label that means yes; by default the model's ``favorable_label_`` or else the larger label.

    Returns
    -------
    BoundaryCosts
        Costs, who is rejected, and the space in which costs are measured.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse.recourse import boundary_costs
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1])
    >>> boundary_costs(model, [[0.5], [2.5]]).costs.round(3)
    array([1., 0.])
    """
    cost = _distance_named(norm)
    refuse_masked(X, name="X")
    check_is_fitted(model)
    space = "input"
    if isinstance(model, Pipeline):
        if len(model) > 1:
            X, space = model[:-1].transform(X), "transformed"
        model = model[-1]
    classes = np.asarray(getattr(model, "classes_", []))
    if len(classes) != 2:
        raise ValueError(
            f"Recourse needs a classifier with two labels; {type(model).__name__} has {len(classes)} of them."
        )
    if favorable_label is None:
        favorable_label = getattr(model, "favorable_label_", None)
    sign = 1.0 if favorable_index(classes, favorable_label) == 1 else -1.0
    rejected = np.asarray(model.predict(X)) != classes[1 if sign > 0 else 0]
    scores = np.asarray(model.decision_function(X), dtype=np.float64) if hasattr(model, "decision_function") else None
    if scores is None or not (hasattr(model, "coef_") or hasattr(model, "dual_coef_")):
        raise ValueError(
            f"{type(model).__name__} has no boundary with a known distance; only linear models and support vector "
            "machines have one in closed form."
        )
    costs, measured = costs_of_scores(model, scores, rejected, cost=cost, feature_costs=feature_costs)
    return BoundaryCosts(costs=costs, rejected=rejected, space=space if measured == "input" else measured, norm=norm)


def costs_of_scores(
    model: Any, scores: Array, rejected: NDArray[np.bool_], *, cost: Distance | None = None, feature_costs: Any = None
) -> tuple[Array, str]:
    """Distances of people whose scores are known, and the space they are measured in, as seen by the model itself.

    Without a cost they are Euclidean.
    """
    cost = _distance_named(EUCLIDEAN_NORM) if cost is None else cost
    if hasattr(model, "coef_"):
        space, scale = "input", _dual_norm(_dense_row(model.coef_), cost, feature_costs)
    else:
        if not cost.is_euclidean or feature_costs is not None:
            raise ValueError(
                f"A distance in the feature space of a kernel is Euclidean and has no feature costs, got "
                f"norm={cost.name!r} and feature_costs={feature_costs!r}; leave both at their defaults."
            )
        space, scale = "feature", _kernel_norm(model)
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.where(rejected, np.abs(scores) / scale, 0.0)
    # A score of zero everywhere: no change of the features helps.
    costs[np.isnan(costs)] = np.inf
    return costs, space


def _dense_row(coef: Any) -> Array:
    return np.ravel(coef.toarray() if sparse.issparse(coef) else np.asarray(coef)).astype(np.float64)


def _distance_named(norm: Any) -> Distance:
    distances = {name: cost for name, cost in NORMS.items() if isinstance(cost, Distance)}
    return distances[check_choice(norm, distances, name="norm")]


def _dual_norm(coef: Array, cost: Distance, feature_costs: Any) -> float:
    costs = check_feature_costs(feature_costs, len(coef))
    reach = np.abs(coef) / (1.0 if costs is None else costs)
    return float(cost.dual_norm(reach))


def _kernel_norm(model: Any) -> float:
    """‖w‖ of a kernel expansion; scikit-learn's SVC does not keep it."""
    if hasattr(model, "weight_norm_"):
        return float(model.weight_norm_)
    if callable(model.kernel) or model.kernel == "precomputed":
        raise ValueError(
            f"The norm of a {type(model).__name__} with kernel={model.kernel!r} cannot be computed from its support "
            "vectors; use EqualRecourseSVC without sensitive_features, which keeps it."
        )
    parameters = {"gamma": model._gamma, "degree": model.degree, "coef0": model.coef0}
    gram = pairwise_kernels(model.support_vectors_, metric=model.kernel, filter_params=True, **parameters)
    coef = _dense_row(model.dual_coef_)
    return float(np.sqrt(max(coef @ (gram @ coef), 0.0)))
