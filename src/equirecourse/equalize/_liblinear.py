"""scikit-learn's LinearSVC through exact solvers, which take it to a million people.

LIBLINEAR's coordinate descent needs ever more passes the larger C × people is, and stops at ``max_iter`` short of the
optimum. With few features the same optimum, intercept penalty included, can be had exactly, with a duality gap to show
for it.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from equirecourse.solvers import LinearSolution, LinearSVM, SquaredHingeSVM

__all__ = ["ExactLinearSVC", "can_solve"]

Array = NDArray[np.float64]

_FEW_FEATURES = 100  # up to which d × d systems keep up with coordinate descent
_MOST_ITERATIONS = 100  # of the interior point, which takes some twenty


def can_solve(learner: Any, X: Any) -> bool:
    """Whether the learner is a LinearSVC with a ridge, on few dense features."""
    if type(learner) is not LinearSVC or sparse.issparse(X) or X.shape[1] > _FEW_FEATURES:
        return False
    return bool(learner.penalty == "l2" and learner.loss in ("hinge", "squared_hinge"))


class ExactLinearSVC:
    """One training set, for fits of a LinearSVC under any projection of its features."""

    def __init__(self, learner: LinearSVC, X: Array, labels: NDArray[Any], sample_weight: Array) -> None:
        self.classes = np.unique(labels)
        y = np.where(labels == self.classes[1], 1.0, -1.0)
        # Newer versions of scikit-learn count people by their weights in "balanced", in LinearSVC too: do as it does.
        weighted = "sample_weight" in signature(compute_class_weight).parameters
        more = {"sample_weight": sample_weight} if weighted else {}
        balance = compute_class_weight(learner.class_weight, classes=self.classes, y=labels, **more)
        C = learner.C * sample_weight * np.where(y > 0, balance[1], balance[0])
        solver = LinearSVM if learner.loss == "hinge" else SquaredHingeSVM
        self.svm = solver(
            X,
            y,
            C,
            tol=learner.tol,
            max_iter=min(learner.max_iter, _MOST_ITERATIONS),
            intercept_scaling=learner.intercept_scaling,
            fit_intercept=learner.fit_intercept,
        )

    def fit(self, learner: LinearSVC, shrink: Array | None) -> LinearSolution:
        """Set the learner's fitted attributes, for the original features."""
        found = self.svm.solve(shrink)
        learner.classes_ = self.classes
        learner.coef_, learner.intercept_ = found.coef[None, :], np.array([found.constant])
        learner.n_iter_ = max(found.n_iter, 1)
        return found

    def expect(self, part: ExactLinearSVC) -> None:
        """Begin the next fit where that of a part of the people has ended."""
        if isinstance(self.svm, LinearSVM) and isinstance(part.svm, LinearSVM):
            self.svm.expect(part.svm)
