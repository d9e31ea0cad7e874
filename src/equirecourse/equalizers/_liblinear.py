"""scikit-learn's LinearSVC through solvers of our own, which take it to a million people and keep sparse people sparse.

LIBLINEAR's coordinate descent needs ever more passes the larger C × people is, and stops at ``max_iter`` short of the
optimum; and in each round it needs the features anew, without the directions of the balance. The solvers here find the
same optimum, intercept penalty included, with a duality gap to show for it, and leave the features as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from equirecourse.equalizers._projection import Projection
from equirecourse.solvers import CoordinateDescentSVM, LinearSolution, LinearSolver, LinearSVM, SquaredHingeSVM

__all__ = ["ExactLinearSVC", "can_solve"]

Array = NDArray[np.float64]

# From a table of solvers by shape and C, on four kinds of people ("Routes" in benchmarks/RESULTS.md).
_FEW_FEATURES = 100  # up to which d × d systems keep up with coordinate descent
_SOME_FEATURES = 1000  # up to which they do where that has a long way to go
_LONG_WAY = 100.0  # C‖x‖²: about how many of its steps a coefficient takes from 0 to C


def can_solve(learner: Any) -> bool:
    """Whether the learner is a LinearSVC with a ridge."""
    if type(learner) is not LinearSVC:
        return False
    return bool(learner.penalty == "l2" and learner.loss in ("hinge", "squared_hinge") and learner.multi_class == "ovr")


def _solver_for(loss: str, X: Any, C: Array) -> Callable[..., LinearSolver]:
    """The quickest solver of a loss for these people."""
    n, d = X.shape
    dense = not sparse.issparse(X)
    if dense and d <= _FEW_FEATURES:
        return LinearSVM if loss == "hinge" else SquaredHingeSVM
    if loss == "squared_hinge":
        return SquaredHingeSVM if n >= d else partial(CoordinateDescentSVM, loss=loss)
    if dense and d <= _SOME_FEATURES and n >= 2 * d and C @ np.einsum("ij,ij->i", X, X) > _LONG_WAY * n:
        return LinearSVM
    return CoordinateDescentSVM


class ExactLinearSVC:
    """One training set, for fits of a LinearSVC under any projection of its features."""

    def __init__(self, learner: LinearSVC, X: Any, labels: NDArray[Any], sample_weight: Array) -> None:
        self.classes = np.unique(labels)
        y = np.where(labels == self.classes[1], 1.0, -1.0)
        # Newer versions of scikit-learn count people by their weights in "balanced", in LinearSVC too: do as it does.
        weighted = "sample_weight" in signature(compute_class_weight).parameters
        more = {"sample_weight": sample_weight} if weighted else {}
        balance = compute_class_weight(learner.class_weight, classes=self.classes, y=labels, **more)
        C = learner.C * sample_weight * np.where(y > 0, balance[1], balance[0])
        self.svm: LinearSolver = _solver_for(learner.loss, X, C)(
            X,
            y,
            C,
            tol=learner.tol,
            max_iter=learner.max_iter,
            intercept_scaling=learner.intercept_scaling,
            fit_intercept=learner.fit_intercept,
        )

    def fit(self, learner: LinearSVC, projection: Projection | None) -> LinearSolution:
        """Set the learner's fitted attributes, for the original features."""
        directions = () if projection is None else (projection.basis, projection.factors)
        found = self.svm.solve(*directions)
        learner.classes_ = self.classes
        learner.coef_, learner.intercept_ = found.coef[None, :], np.array([found.constant])
        learner.n_iter_ = max(found.n_iter, 1)
        return found
