"""The linear SVM with the squared hinge loss: Newton's method on the primal, which is piecewise quadratic.

    minimise ½‖z‖² + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ))²,    f = M z,    M = [X A, scaling]

Benchmark rows: all rounds of ``EqualRecourseLinear(LinearSVC())`` (200,000 people, 10 to 52 features), for which the
learner's own fits take seven to forty times as long, on features that are projected anew in each round.

Notation
--------
A       I − Q diag(1 − f) Qᵀ, the projection that takes the balance out of the features, dense or sparse
z       w̃, and the coefficient of the constant feature; w = A w̃
active  the people inside the margin, who alone have a loss; the Hessian is I + 2 Mᵀ C M over them
β       2 C slack y, the dual coefficients that the slacks make

Projected features are never made: a product is one with X, one with Xᵀ, and a few directions beside them. The step
comes from the Hessian where features are few and dense, and from conjugate gradients where they are not. Once the
active people are the right ones a step is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from equirecourse.solvers._interior_point import weighted_gram
from equirecourse.solvers._projected_features import ProjectedFeatures, by_rows, squares_of, violation_of
from equirecourse.solvers._solution import LinearSolution
from equirecourse.solvers._threads import one_blas_thread

__all__ = ["SquaredHingeSVM"]

Array = NDArray[np.float64]

_FEW_FEATURES = 100  # whose Hessian, d² numbers a person, costs about as much as the products that it saves
_FINER = 1e-3  # of tol: where steps are exact, one more makes the error far smaller than tol, if it is not already
_LOOSEST = 0.1  # residual of a step's equations relative to the gradient; falls with its root (Nocedal, Wright: 7.1)
_MOST_PRODUCTS = 500  # with the Hessian, in one step
_NOISE = 1e-12  # of the objective, which near the optimum hides by how much a step lowers it
_SHORTEST = 2.0**-30  # of a step, in the search along it
_WORTH_A_COPY = 0.7  # share of the people who are active, above which the products are those of everybody


class SquaredHingeSVM:
    """One training set, solved again and again for other balances; parameters as of ``CoordinateDescentSVM``.

    ``max_iter`` is the largest number of Newton steps.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        C: Array,
        *,
        tol: float = 1e-4,
        max_iter: int = 1000,
        intercept_scaling: float = 1.0,
        fit_intercept: bool = True,
    ) -> None:
        self.X, self.y, self.C = by_rows(X), y, C
        self.few = not sparse.issparse(X) and X.shape[1] <= _FEW_FEATURES
        self.tol, self.max_iter = tol, max_iter
        self.scaling = float(intercept_scaling) if fit_intercept else 0.0
        self._upper = np.where(C > 0, np.inf, 0.0)
        self._longest = float(np.sqrt(squares_of(self.X).max(initial=0.0) + self.scaling**2))
        self._z = np.zeros(X.shape[1] + 1)  # without an intercept its coefficient stays 0

    def solve(self, basis: Array | None = None, factors: Array | None = None) -> LinearSolution:
        """Solve for the projection with these orthonormal directions and factors; none is the identity."""
        with one_blas_thread():
            return self._newton(ProjectedFeatures(self.X, self.scaling, basis, factors))

    def _newton(self, everybody: ProjectedFeatures) -> LinearSolution:
        y, C, z = self.y, self.C, self._z
        scores = everybody.times(z)
        value = self._value(z, scores)
        n_iter, first, within = 0, 0.0, not self.few
        while True:
            slack = np.maximum(0.0, 1.0 - y * scores)
            beta = 2.0 * C * slack * y
            gradient = z - everybody.transposed(beta)
            size = float(np.linalg.norm(gradient))
            first = first or size
            # Of the dual at β: what the scores of its own direction, z − gradient, leave undone.
            along = everybody.times(gradient)
            dual_gradient = y * (scores - along) - 1.0 + slack * (beta != 0)
            violation = violation_of(dual_gradient, np.abs(beta), self._upper)
            rounding = np.finfo(float).eps * self._longest * (self._longest * float(np.abs(beta).sum()))
            if violation <= max(self.tol if within else _FINER * self.tol, rounding) or n_iter >= self.max_iter:
                break
            within = within or violation <= self.tol
            step = self._step(everybody, gradient, slack > 0, min(_LOOSEST, np.sqrt(size / first)))
            n_iter += 1
            along, share, slope = everybody.times(step), 1.0, float(gradient @ step)
            while share >= _SHORTEST:
                after = self._value(z + share * step, scores + share * along)
                if after <= value + 1e-4 * share * slope + _NOISE * abs(value):
                    break
                share /= 2.0
            if share < _SHORTEST:  # rounding errors have taken over
                break
            z = z + share * step
            scores = everybody.times(z)  # not by adding up, which drifts
            value = self._value(z, scores)
        self._z = z
        dual_z = z - gradient
        dual = float(np.abs(beta).sum()) - 0.5 * float(dual_z @ dual_z) - 0.5 * float(np.abs(beta) @ slack)
        coef = everybody.through(z[:-1])
        direction = z if self.scaling else z[:-1]
        constant = self.scaling * float(z[-1])
        return LinearSolution(
            beta, coef, constant, scores, direction, 0.0, value, value - dual, violation, n_iter, n_iter
        )

    def _step(self, everybody: ProjectedFeatures, gradient: Array, active: NDArray[np.bool_], residual: float) -> Array:
        features, weights = everybody, np.where(active, 2.0 * self.C, 0.0)
        if self.few:
            hessian = everybody.between(weighted_gram(self.X, weights), weights @ self.X, float(weights.sum()))
            hessian.flat[:: len(hessian) + 1] += 1.0
            return np.asarray(linalg.solve(hessian, -gradient, assume_a="pos", check_finite=False))
        if active.mean() < _WORTH_A_COPY:
            features, weights = everybody.of(np.flatnonzero(active)), weights[active]
        d = len(gradient)
        product = LinearOperator(
            (d, d), lambda vector: vector + features.transposed(weights * features.times(vector)), dtype=np.float64
        )
        return np.asarray(cg(product, -gradient, rtol=residual, maxiter=_MOST_PRODUCTS)[0])

    def _value(self, z: Array, scores: Array) -> float:
        slack = np.maximum(0.0, 1.0 - self.y * scores)
        return 0.5 * float(z @ z) + float(self.C @ slack**2)
