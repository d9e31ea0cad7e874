"""A linear score that minimises a learner's loss and the distance between the groups' distributions of cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from equirecourse.equalizers._losses import LinearLoss
from equirecourse.equalizers._objective import HOLD, STAGES, CostObjective, Prices

__all__ = ["FeatureFit", "LinearObjective", "Solution"]

Array = NDArray[np.float64]

_MANY_FEATURES = 500  # beyond which features are scaled one by one
_ON_THE_WAY = 1e-5  # tolerance while decisions are soft: that only has to show the way to the minimum
_STEPS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # of κ, on the way to a larger one


@dataclass(frozen=True)
class Solution:
    """Coefficients and intercept; the scores they give; D there; steps taken, and whether they came to rest."""

    coef: Array
    intercept: float
    scores: Array
    distance: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class FeatureFit:
    """A linear score, with what the rounds ask of a fit."""

    coef: Array
    intercept: float
    scores: Array  # above zero for the favourable label
    norm: float
    differences: Array = field(default_factory=lambda: np.empty(0))
    stiffness: float = 0.0

    @classmethod
    def of_favorable(cls, coef: Array, intercept: float, scores: Array, sign: float) -> FeatureFit:
        """From the coefficients of the favourable label, which ``sign`` makes those of the second label."""
        return cls(sign * coef, sign * intercept, scores, float(np.linalg.norm(coef)))

    @property
    def balance_scores(self) -> Array:
        """The scores that are compared."""
        return self.scores


class LinearObjective:
    """Loss + κ·(D + the drift of the groups' acceptance) over linear scores.

    Parameters
    ----------
    X : {ndarray, sparse matrix, PartitionedFeatures} of shape (n_people, n_features)
        People.
    y : ndarray of shape (n_people,)
        1 for a favourable label, −1 for the other.
    loss : LinearLoss
        What the learner minimises.
    costs : CostObjective
        What the groups should have in common.
    coef, intercept
        Of the plain model: where fits start, and whose acceptance they hold.
    """

    def __init__(self, X: Any, y: Array, loss: LinearLoss, costs: CostObjective, coef: Array, intercept: float) -> None:
        self.X, self.y, self.loss = X, y, loss
        self.total = float(loss.weights.sum())
        self.start = np.append(coef, intercept)
        self.scores = self._scores(self.start)
        self.costs = costs.comparing(self.scores)
        self.rejection = self.costs.rejection(self.scores)
        self._back = self._preconditioner()

    def _scores(self, theta: Array) -> Array:
        return np.asarray(self.X @ theta[:-1] + theta[-1], dtype=np.float64)

    def _preconditioner(self) -> Any:
        """A map from coordinates in which the loss is about as curved in every direction to the coefficients."""
        curved = self.loss.weights * self.loss.of(self.y * self.scores)[2]
        # A loss without curvature somewhere (a hinge) has the shape of the people themselves.
        curved = curved + 1e-3 * (float(curved.mean()) or 1.0)
        p = self.X.shape[1]
        ridge = np.append(np.full(p, self.loss.ridge), self.loss.ridge_of_intercept)
        if p > _MANY_FEATURES and not hasattr(self.X, "gram"):
            squares = self.X.multiply(self.X) if sparse.issparse(self.X) else np.square(self.X)
            diagonal = np.append(np.asarray(curved @ squares).ravel(), curved.sum()) + ridge
            scale = 1.0 / np.sqrt(diagonal / self.total + 1e-12)
            return lambda z: scale * z, lambda gradient: scale * gradient
        inner, border = _gram(self.X, curved)
        border = border * float(self.loss.has_intercept)  # without one nothing may move it, not even with the others
        hessian = np.block([[inner, border[:, None]], [border[None, :], np.array([[curved.sum()]])]])
        hessian = (hessian + np.diag(ridge)) / self.total
        # Columns that say the same twice leave a direction without curvature.
        scale = np.sqrt(np.diag(hessian)) + 1e-150
        correlations = hessian / scale[:, None] / scale[None, :] + 1e-8 * np.eye(p + 1)
        upper = cholesky(correlations)
        return (
            lambda z: solve_triangular(upper, z) / scale,
            lambda gradient: solve_triangular(upper, gradient / scale, trans="T"),
        )

    def value(
        self, theta: Array, kappa: float, costs: CostObjective, held: Array, prices: Prices | None
    ) -> tuple[float, Array]:
        """The objective and its gradient by coefficients and intercept; ``held`` are the shares of rejected to keep."""
        scores = self._scores(theta)
        values, slopes, _ = self.loss.of(self.y * scores)
        by_score = self.loss.weights * slopes * self.y / self.total
        ridge = np.append(np.full(len(theta) - 1, self.loss.ridge), self.loss.ridge_of_intercept) / self.total
        value = float(self.loss.weights @ values) / self.total + 0.5 * float(ridge @ theta**2)
        if kappa > 0.0:
            distance, drift = costs.terms(scores, prices, held)
            value += kappa * (distance.value + HOLD * drift.value)
            by_score += kappa * (distance.gradient + HOLD * drift.gradient)
        by_coef = np.asarray(self.X.T @ by_score).ravel()
        by_intercept = float(by_score.sum()) if self.loss.has_intercept else 0.0
        gradient = np.append(by_coef, by_intercept) + ridge * theta
        if not self.loss.has_intercept:
            gradient[-1] = 0.0
        return value, gradient

    def fit(
        self,
        kappa: float,
        *,
        start: Array | None = None,
        prices: Prices | None = None,
        on_the_way: dict[float, Array] | None = None,
        max_iter: int,
        tol: float,
    ) -> Solution:
        """Minimise, from the plain model or from where another fit ended.

        From the plain model κ rises step by step, while decisions are soft. The minimum that a large κ has next to the
        plain model can be one of other decisions, with a higher loss and a larger distance than where rising values
        lead; it is avoided in this way, not ruled out.

        Parameters
        ----------
        kappa : float
            κ.
        start : ndarray of shape (n_features + 1,), optional
            Coefficients and intercept.
        prices : Prices, optional
            Cost per unit of missing score.
        on_the_way : dict, optional
            Where the steps ended by their κ, for fits from the plain model with the same prices: known ones are not
            taken again, and new ones are added.
        max_iter, tol
            Most steps of L-BFGS, and the relative decrease of the objective that ends them.

        Returns
        -------
        Solution
            The minimum that was found; there may be others.
        """
        theta = self.start if start is None else start
        n_iter, converged = 0, True
        soft, *sharper = STAGES
        known = {} if on_the_way is None or start is not None else on_the_way
        rising = [step for step in _STEPS if step < kappa] if start is None else []
        if kappa > 0.0:
            for step in (*rising, kappa):
                if step not in known:
                    rough = max(tol, _ON_THE_WAY)
                    known[step], steps, settled = self._minimised(theta, step, soft, prices, max_iter, rough)
                    n_iter, converged = n_iter + steps, converged and settled
                theta = known[step]
            for softness in sharper:
                theta, steps, settled = self._minimised(theta, kappa, softness, prices, max_iter, tol)
                n_iter, converged = n_iter + steps, converged and settled
        scores = self._scores(theta)
        distance = self.costs.distance(scores, prices).value
        return Solution(theta[:-1], float(theta[-1]), scores, distance, n_iter, converged)

    def _minimised(
        self, begin: Array, kappa: float, softness: float, prices: Prices | None, max_iter: int, tol: float
    ) -> tuple[Array, int, bool]:
        """The minimum next to a start at one softness, the steps taken, and whether they came to rest."""
        to_theta, to_gradient = self._back
        # What other fits left behind would show in the last digits.
        costs = replace(self.costs, softness=softness, _known={})
        held = costs.rejection(self.scores)

        def at(z: Array) -> tuple[float, Array]:
            value, gradient = self.value(begin + to_theta(z), kappa, costs, held, prices)
            return value, to_gradient(gradient)

        found = minimize(
            at, np.zeros(len(begin)), jac=True, method="L-BFGS-B",
            options={"maxiter": max_iter, "ftol": tol, "gtol": 1e-7, "maxcor": 20},
        )  # fmt: skip
        return begin + to_theta(found.x), int(found.nit), bool(found.status == 0)


def _gram(X: Any, weights: Array) -> tuple[Array, Array]:
    """Products of the features with each other, and their sums, with a weight for each person."""
    if hasattr(X, "gram"):  # people who are never in memory together
        inner, sums = X.gram(weights)
        return inner, sums
    weighted = X.multiply(weights[:, None]).tocsr() if sparse.issparse(X) else X * weights[:, None]
    inner = X.T @ weighted
    return inner.toarray() if sparse.issparse(inner) else inner, np.asarray(weighted.sum(axis=0)).ravel()
