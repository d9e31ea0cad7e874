"""scikit-learn's LinearSVC through solvers of our own, which take it to a million people and keep sparse people sparse.

LIBLINEAR's coordinate descent needs ever more passes the larger C × people is, and stops at ``max_iter`` short of the
optimum. With few features the same optimum, intercept penalty included, can be had exactly, with a duality gap to show
for it. With many features, or sparse ones, it is coordinate descent, or Newton's method for the squared hinge; but such
as take a balance out of the features without writing them anew, and start from the round before.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from equirecourse.equalizers._projection import Projection
from equirecourse.solvers import CoordinateDescentSVM, LinearSolution, LinearSVM, SquaredHingeSVM, TruncatedNewtonSVM

__all__ = ["ExactLinearSVC", "can_solve"]

Array = NDArray[np.float64]

_FEW_FEATURES = 100  # up to which d × d systems keep up with coordinate descent
_SOME_FEATURES = 1000  # up to which they do where that has a long way to go
_LONG_WAY = 100.0  # C‖x‖²: about how many of its steps a coefficient takes from 0 to C
_MOST_ITERATIONS = 100  # of the interior point, which takes some twenty


def can_solve(learner: Any) -> bool:
    """Whether the learner is a LinearSVC with a ridge."""
    if type(learner) is not LinearSVC:
        return False
    return bool(learner.penalty == "l2" and learner.loss in ("hinge", "squared_hinge") and learner.multi_class == "ovr")


def _by_small_systems(learner: LinearSVC, X: Any, C: Array) -> bool:
    """Whether d × d systems are the quickest way: for few dense features, and for some where descent hardly arrives."""
    n, d = X.shape
    if sparse.issparse(X):
        return False
    if d <= _FEW_FEATURES:
        return True
    # Newton's method for the squared hinge, and a dual of few people, have no long way.
    if learner.loss != "hinge" or d > _SOME_FEATURES or n < 2 * d:
        return False
    return bool(C @ np.einsum("ij,ij->i", X, X) > _LONG_WAY * n)


def _in_the_dual(learner: LinearSVC, X: Any) -> bool:
    """Where LinearSVC would look for its optimum: the same for both, but sooner found in one or the other."""
    if learner.loss == "hinge":
        return True
    return bool(X.shape[0] < X.shape[1] if learner.dual == "auto" else learner.dual)


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
        common = {
            "tol": learner.tol,
            "intercept_scaling": learner.intercept_scaling,
            "fit_intercept": learner.fit_intercept,
        }
        self.svm: LinearSVM | SquaredHingeSVM | CoordinateDescentSVM | TruncatedNewtonSVM
        if _by_small_systems(learner, X, C):
            few = LinearSVM if learner.loss == "hinge" else SquaredHingeSVM
            self.svm = few(X, y, C, max_iter=min(learner.max_iter, _MOST_ITERATIONS), **common)
        elif _in_the_dual(learner, X):
            self.svm = CoordinateDescentSVM(X, y, C, loss=learner.loss, max_iter=learner.max_iter, **common)
        else:
            self.svm = TruncatedNewtonSVM(X, y, C, max_iter=learner.max_iter, **common)

    def fit(self, learner: LinearSVC, projection: Projection | None) -> LinearSolution:
        """Set the learner's fitted attributes, for the original features."""
        if projection is None:
            found = self.svm.solve()
        elif isinstance(self.svm, LinearSVM | SquaredHingeSVM):
            found = self.svm.solve(projection.matrix)
        else:
            found = self.svm.solve(projection.basis, projection.factors)
        learner.classes_ = self.classes
        learner.coef_, learner.intercept_ = found.coef[None, :], np.array([found.constant])
        learner.n_iter_ = max(found.n_iter, 1)
        return found

    def expect(self, part: ExactLinearSVC) -> None:
        """Begin the next fit where that of a part of the people has ended."""
        if isinstance(self.svm, LinearSVM) and isinstance(part.svm, LinearSVM):
            self.svm.expect(part.svm)
