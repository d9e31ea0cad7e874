"""The linear SVM with the squared hinge loss: Newton's method on the primal, which is piecewise quadratic.

    minimise ½‖w̃‖² + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ))²,    f(x) = w·x + b,    w = A w̃

Notation
--------
A       symmetric d × d: the identity, or the projection that takes the balance out of the features
active  the people inside the margin, who alone have a loss; the Hessian is that of their quadratic

Once the active people are the right ones a Newton step is exact. Some ten steps, of one pass over everybody each and
O(d²) work per active person; the start is the model of an eighth of the people.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from equirecourse.solvers._interior_point import weighted_gram
from equirecourse.solvers._linear_svm import LinearSolution

__all__ = ["SquaredHingeSVM"]

Array = NDArray[np.float64]

_SMALL = 20_000  # people for whom a start from fewer of them is not worth it
_PART = 8
_SHORTEST = 2.0**-30  # of a Newton step, in the search along it


class SquaredHingeSVM:
    """One training set, solved again and again for other balances; parameters as of ``LinearSVM``."""

    def __init__(
        self,
        X: Array,
        y: Array,
        C: Array,
        *,
        tol: float = 1e-4,
        max_iter: int = 100,
        intercept_scaling: float = 0.0,
        fit_intercept: bool = True,
    ) -> None:
        self.X, self.y, self.C = X, y, C
        self.tol, self.max_iter = tol, max_iter
        self.fit_intercept = fit_intercept
        self.scaling = float(intercept_scaling) if fit_intercept else 0.0
        self._last: tuple[Array, float] | None = None

    def solve(self, shrink: Array | None = None) -> LinearSolution:
        """Solve for the projection A = ``shrink``; None is the identity."""
        n, d = self.X.shape
        if self._last is None and n > _SMALL:
            rows = np.sort(np.random.default_rng(0).permutation(n)[: n // _PART])
            C = self.C[rows]
            part = SquaredHingeSVM(
                self.X[rows],
                self.y[rows],
                C * (self.C.sum() / C.sum()),
                intercept_scaling=self.scaling,
                fit_intercept=self.fit_intercept,
            )
            found = part.solve(shrink)
            self._last = found.direction[:d], found.constant
        w, b = (np.zeros(d), 0.0) if self._last is None else self._last
        solution = self._newton(w, b, shrink)
        self._last = solution.direction[:d], solution.constant
        return solution

    def _newton(self, w: Array, b: float, shrink: Array | None) -> LinearSolution:
        """Steps in (w̃, b); the penalty of the intercept is ½(b / scaling)²."""
        X, y, C = self.X, self.y, self.C
        d = X.shape[1]
        ridge = 1.0 / self.scaling**2 if self.scaling else 0.0
        scores = self._scores(w, b, shrink)
        value = self._value(w, b, ridge, scores)
        n_iter, violation = 0, np.inf
        while True:
            slack = np.maximum(0.0, 1.0 - y * scores)
            pull = 2.0 * C * slack * y  # β, the dual coefficients
            total = float(pull.sum())
            gradient = np.append(w - self._through(shrink, pull @ X), ridge * b - total)
            if not self.fit_intercept:
                gradient[d] = 0.0
            if n_iter >= self.max_iter:
                break
            step, violation = self._step(gradient, slack > 0, shrink, ridge, scores)
            if violation <= 1e-3 * self.tol:
                break
            n_iter += 1
            along = self._scores(step[:d], float(step[d]), shrink)
            share = 1.0
            while True:
                trial = scores + share * along
                after = self._value(w + share * step[:d], b + share * float(step[d]), ridge, trial)
                if after <= value + 1e-4 * share * float(gradient @ step) or share < _SHORTEST:
                    break
                share /= 2.0
            if share < _SHORTEST:  # rounding errors have taken over
                break
            w, b, scores, value = w + share * step[:d], b + share * float(step[d]), trial, after
        beta = pull
        dual_w = w - gradient[:d]
        penalised = float(beta.sum()) * self.scaling
        square = float(dual_w @ dual_w) + penalised**2
        dual = float(np.abs(beta).sum()) - 0.5 * square - float((beta**2 / C).sum()) / 4.0
        coef = w if shrink is None else shrink @ w
        direction = np.append(w, b / self.scaling) if self.scaling else w
        free = 0.0 if self.scaling else b
        return LinearSolution(beta, coef, b, scores, direction, free, value, value - dual, violation, n_iter, n_iter)

    def _step(
        self, gradient: Array, active: NDArray[np.bool_], shrink: Array | None, ridge: float, scores: Array
    ) -> tuple[Array, float]:
        """The Newton step, and the largest change of a score that it means, relative to the scores."""
        X, d = self.X, self.X.shape[1]
        weights = np.where(active, 2.0 * self.C, 0.0)
        hessian = np.zeros((d + 1, d + 1))
        gram, cross = weighted_gram(X.T, weights), weights @ X
        hessian[:d, :d] = gram if shrink is None else shrink @ gram @ shrink
        hessian[:d, :d].flat[:: d + 1] += 1.0
        hessian[:d, d] = hessian[d, :d] = self._through(shrink, cross)
        hessian[d, d] = ridge + float(weights.sum()) if self.fit_intercept else 1.0
        if not self.fit_intercept:
            hessian[:d, d] = hessian[d, :d] = 0.0
        hessian[d, d] += 1e-12 * max(1.0, float(hessian[d, d]))  # nobody inside the margin: b may be anything
        step = -np.asarray(linalg.solve(hessian, gradient, assume_a="pos", check_finite=False))
        # gᵀH⁻¹g is twice what the objective can still lose; per unit of loss it is the square of a score.
        loss = float(np.sqrt(max(-float(gradient @ step), 0.0) / max(float(self.C.sum()), 1e-300)))
        return step, loss / (1.0 + float(np.sqrt(np.mean(scores**2))))

    def _through(self, shrink: Array | None, vector: Array) -> Array:
        return vector if shrink is None else shrink @ vector

    def _scores(self, w: Array, b: float, shrink: Array | None) -> Array:
        return np.asarray(self.X @ self._through(shrink, w) + b)

    def _value(self, w: Array, b: float, ridge: float, scores: Array) -> float:
        slack = np.maximum(0.0, 1.0 - self.y * scores)
        return 0.5 * float(w @ w) + 0.5 * ridge * b**2 + float(self.C @ slack**2)
