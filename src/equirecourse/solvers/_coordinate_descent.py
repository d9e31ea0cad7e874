"""The linear SVM with many features, dense or sparse: coordinate descent on the dual, as LIBLINEAR does it.

    minimise ½‖w̃‖² + Σ Cᵢ loss(1 − yᵢ f(xᵢ)),    f(x) = w·x + b,    w = A w̃,    loss(s) = max(0, s) or max(0, s)²

Benchmark rows: ``many_features`` of ``benchmarks/scale.py``. On dense features the learner's own fits take four times
as long over all rounds; sparse ones would have to become dense.

Notation
--------
A       I − Q diag(1 − f) Qᵀ, the projection that takes the balance out of the features: a few directions Q, and the
        factor f that is left of each
α       yβ, the dual coefficients: 0 ≤ α ≤ C for the hinge, 0 ≤ α with a ridge α²/4C for its square
v       Xᵀβ, of the features as they are
L, s    a low rank beside the features, n × r, and its signs: x·A²x′ + scaling² = x·x′ + Σ s L L′; a direction counts
        −(1 − f²) for each person's share in it, and the constant feature of the intercept is one more column
c       Lᵀβ

Projected features are dense where the features are sparse, so they are never made: a step moves one person's α with
their own features and the r numbers of L. Another balance changes L alone: the next solve starts from the last α.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.solvers._coordinate_steps import as_rows, pass_over
from equirecourse.solvers._projected_features import ProjectedFeatures, by_rows, squares_of, violation_of
from equirecourse.solvers._solution import LinearSolution
from equirecourse.solvers._threads import one_blas_thread

__all__ = ["CoordinateDescentSVM"]

Array = NDArray[np.float64]

_FLAT = 1e-12  # a curvature relative to a person's own square that is rounding error: all of it lies along Q
_STRICTER = 0.5  # the passes' own tolerance, when they ended before everybody's gradient was small enough


class CoordinateDescentSVM:
    """One training set, solved again and again for other balances.

    Parameters
    ----------
    X : {ndarray, CSR matrix}, shape (n, d)
        Features.
    y : ndarray, shape (n,)
        Labels ±1.
    C : ndarray, shape (n,)
        Weights of the losses, at least 0.
    loss : {"hinge", "squared_hinge"}
        The loss.
    tol : float
        Largest difference between two entries of the projected gradient, in units of the margin: LIBLINEAR's rule.
    max_iter : int
        Most passes over the people of one solve; one over some of them counts for their share.
    intercept_scaling : float
        The intercept is the coefficient of a constant feature of this value.
    fit_intercept : bool
        Whether there is an intercept at all.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        C: Array,
        *,
        loss: str = "hinge",
        tol: float = 1e-4,
        max_iter: int = 1000,
        intercept_scaling: float = 1.0,
        fit_intercept: bool = True,
    ) -> None:
        self.X, self.y, self.C = by_rows(X), y, C
        self.squared = loss == "squared_hinge"
        self.tol, self.max_iter = tol, max_iter
        self.scaling = float(intercept_scaling) if fit_intercept else 0.0
        if self.squared:
            self.upper = np.where(C > 0, np.inf, 0.0)
            self.ridge = np.divide(0.5, C, out=np.zeros(len(C)), where=C > 0)
        else:
            self.upper, self.ridge = C, np.zeros(len(C))
        self._squares = squares_of(self.X)
        self._alpha = np.zeros(len(y))

    def solve(self, basis: Array | None = None, factors: Array | None = None) -> LinearSolution:
        """Solve for the projection with these orthonormal directions and factors; none is the identity."""
        with one_blas_thread():
            return self._solve(ProjectedFeatures(self.X, self.scaling, basis, factors))

    def _solve(self, features: ProjectedFeatures) -> LinearSolution:
        y, alpha, ridge = self.y, self._alpha, self.ridge
        low_rank, signs = np.asarray(self.X @ features.basis), features.factors**2 - 1.0
        if self.scaling:
            low_rank = np.column_stack([low_rank, np.full(len(y), self.scaling)])
            signs = np.append(signs, 1.0)
        low_rank = np.ascontiguousarray(low_rank)
        squares = self._squares + self.scaling**2
        flat = np.maximum(_FLAT * squares, np.finfo(float).tiny)
        curvature = np.maximum(self._squares + low_rank**2 @ signs, flat) + ridge
        n, random = len(y), np.random.default_rng(0)
        visits, most, turns, inner_tol = 0, self.max_iter * n, 0, self.tol
        while True:
            # What the steps add up drifts by rounding: look at everybody, and go on, from fresh sums.
            v, c = np.asarray(self.X.T @ (y * alpha)), (y * alpha) @ low_rank
            z = np.append(features.through(v), self.scaling * float(y @ alpha))
            scores = features.times(z)
            violation = violation_of(y * scores - 1.0 + ridge * alpha, alpha, self.upper)
            if (violation <= max(self.tol, self._rounding()) and alpha.any()) or visits >= most:
                break
            state: list[Any] = [*as_rows(self.X), low_rank, signs, y, self.upper, ridge, curvature, alpha, v, c]
            visits += self._passes(state, max(inner_tol, self._rounding()), most - visits, random)
            turns += 1
            inner_tol *= _STRICTER
        return self._solution(features, z, scores, violation, -(-visits // n), turns)

    def _passes(self, state: list[Any], tol: float, most: int, random: np.random.Generator) -> int:
        """Passes in random order until one over everybody finds no slope above ``tol``; return the number of visits."""
        n, visits = len(self.y), 0
        order, inside, highest, lowest = np.arange(n), n, np.inf, -np.inf
        while visits < most:
            random.shuffle(order[:inside])
            visits += inside
            inside, top, bottom = pass_over(*state, order, inside, highest, lowest)
            if top - bottom > tol:
                highest, lowest = top if top > 0.0 else np.inf, bottom if bottom < 0.0 else -np.inf
            elif inside == n:
                break
            else:
                inside, highest, lowest = n, np.inf, -np.inf
        return visits

    def _rounding(self) -> float:
        """What of a gradient is rounding error: passes that look for less than that never end."""
        lengths = np.sqrt(self._squares + self.scaling**2)
        return float(np.finfo(float).eps * lengths.max() * (lengths @ self._alpha))

    def _solution(
        self,
        features: ProjectedFeatures,
        z: Array,
        scores: Array,
        violation: float,
        n_iter: int,
        turns: int,
    ) -> LinearSolution:
        slack = np.maximum(0.0, 1.0 - self.y * scores)
        square, alpha = 0.5 * float(z @ z), self._alpha
        dual = float(alpha.sum()) - square - 0.5 * float(self.ridge @ alpha**2)
        primal = square + float(self.C @ (slack**2 if self.squared else slack))
        return LinearSolution(
            self.y * alpha,
            features.through(z[:-1]),
            self.scaling * float(z[-1]),
            scores,
            z if self.scaling else z[:-1],
            0.0,
            primal,
            primal - dual,
            violation,
            n_iter,
            turns,
        )
