"""A primal-dual interior point for the dual of a linear SVM with few features.

    minimise ½‖Vᵀγ + q‖² − Σγ    such that    yᵀγ = total,   0 ≤ γ ≤ C

Notation
--------
V       label × features, n × d; the Hessian V Vᵀ has rank d and is never formed
q       what people whose coefficients are fixed add to the direction, zero without such people
γ, s    the variables and the room above them, s = C − γ
z, w    multipliers of γ ≥ 0 and s ≥ 0, in units of the margin
b       multiplier of yᵀγ = total, the intercept of the SVM; 0 where there is no such equation
D       z/γ + w/s, the diagonal that the barrier adds to the Hessian

One iteration costs O(n d²): the Newton system (V Vᵀ + D) is solved through a d × d one (Woodbury). Mehrotra's predictor
and corrector make it some twenty iterations whatever C is. Pair steps, for which few features and a large C are the
hard case, may take millions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["minimise_linear", "weighted_gram"]

Array = NDArray[np.float64]

_TO_THE_BOUNDARY = 0.995  # share of the way to the nearest bound that a step may take
_UNDONE = 1e3  # a residual so many times the smallest one
_NO_PROGRESS = 1e-8  # a step this short, of a full one, means that rounding errors have taken over
_BLOCK = 2**17  # numbers scaled at a time: 1 MB, so that a block stays in the cache until it is multiplied


def weighted_gram(X: Array, weights: Array) -> Array:
    """Xᵀ diag(weights) X for weights ≥ 0, without a second copy of X."""
    n, d = X.shape
    rows = max(1, min(n, _BLOCK // max(d, 1)))
    root, gram, buffer = np.sqrt(weights), np.zeros((d, d)), np.empty((rows, d))
    for start in range(0, n, rows):
        block = X[start : start + rows]
        scaled = np.multiply(block, root[start : start + rows, None], out=buffer[: len(block)])
        gram += scaled.T @ scaled
    return gram


@dataclass
class _Newton:
    """The Newton system at one point, factorised once and solved for predictor and corrector."""

    V: Array
    y: Array | None  # None without an intercept, whose equation the steps would keep
    gamma: Array
    s: Array
    z: Array
    w: Array
    dual: Array
    equality: float

    def __post_init__(self) -> None:
        self.inverse = 1.0 / (self.z / self.gamma + self.w / self.s)
        gram = weighted_gram(self.V, self.inverse)
        gram.flat[:: len(gram) + 1] += 1.0
        self.factor = linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
        if self.y is not None:
            self.along_y = self._solve(self.y)

    def _solve(self, right: Array) -> Array:
        scaled = right * self.inverse
        inside = self.V @ linalg.cho_solve(self.factor, self.V.T @ scaled, check_finite=False)
        inside *= self.inverse
        return np.asarray(np.subtract(scaled, inside, out=scaled))

    def step(self, at_lower: Array, at_upper: Array) -> tuple[Array, Array, Array, float]:
        """Steps of γ, z, w and b that add ``at_lower`` to γz and ``at_upper`` to sw, to first order."""
        step, step_b = self._solve(at_lower / self.gamma - at_upper / self.s - self.dual), 0.0
        if self.y is not None:
            step_b = float(self.y @ step + self.equality) / float(self.y @ self.along_y)
            step -= self.along_y * step_b
        return step, (at_lower - self.z * step) / self.gamma, (at_upper + self.w * step) / self.s, step_b


def minimise_linear(
    X: Array,
    y: Array,
    C: Array,
    *,
    tol: float = 1e-9,
    max_iter: int = 100,
    offset: Array | None = None,
    total: float = 0.0,
    intercept: bool = True,
) -> tuple[Array, int]:
    """Solve the problem above.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Features.
    y : ndarray, shape (n,)
        Labels ±1.
    C : ndarray, shape (n,)
        Positive upper bounds.
    tol : float
        Largest gap relative to the objective, and residual of the optimality conditions relative to the scores.
    max_iter : int
        Most iterations.
    offset : ndarray of shape (d,), optional
        q, the share of fixed people in the direction.
    total : float
        What yᵀγ must be.
    intercept : bool
        Whether the score has an intercept, and so the problem its equation.

    Returns
    -------
    beta : ndarray
        y × γ, exactly at its bound where a multiplier holds it there.
    n_iter : int
        Number of iterations.
    """
    V = y[:, None] * X
    q = np.zeros(X.shape[1]) if offset is None else offset
    gamma, z, w = _start(V, y, C, q)
    b, whole = 0.0, float(C.sum())
    n_iter, best, smallest = 0, (gamma, z, w), np.inf
    while n_iter < max_iter:
        s = C - gamma
        direction = V.T @ gamma + q
        scores = V @ direction
        dual, equality = scores - 1.0 + y * b - z + w, float(y @ gamma) - total
        gap = float(gamma @ z + s @ w)
        size = min(1.0, whole) + abs(0.5 * float(direction @ direction) - float(gamma.sum()))
        # Rounding errors of badly scaled features may undo the last steps: keep the best point.
        residual = max(gap / size, float(np.abs(dual).max() / (1.0 + np.abs(scores).max())))
        if residual < smallest:
            best, smallest = (gamma, z, w), residual
        if residual <= tol or residual > _UNDONE * smallest:
            break
        n_iter += 1
        try:
            newton = _Newton(V, y if intercept else None, gamma, s, z, w, dual, equality)
        except linalg.LinAlgError:  # the barrier spans more than double precision holds: as near as it gets
            break
        step, step_z, step_w, _ = newton.step(-gamma * z, -s * w)
        reach = min(_reach(gamma, step), _reach(s, -step), _reach(z, step_z), _reach(w, step_w))
        after = (gamma + reach * step) @ (z + reach * step_z) + (s - reach * step) @ (w + reach * step_w)
        target = (after / gap) ** 3 * gap / (2 * len(y))
        step, step_z, step_w, step_b = newton.step(target - gamma * z - step * step_z, target - s * w + step * step_w)
        reach = min(_reach(gamma, step), _reach(s, -step), _reach(z, step_z), _reach(w, step_w))
        if reach < _NO_PROGRESS:
            break
        gamma, z, w, b = gamma + reach * step, z + reach * step_z, w + reach * step_w, b + reach * step_b
        gamma = np.clip(gamma, 1e-300, np.nextafter(C, 0))
    gamma, z, w = best
    # Which side of γz = μ is the small one? Near the optimum exactly one of the two is.
    at_upper = (C - gamma) / C < w
    at_lower = (gamma / gamma.max() < z) & ~at_upper
    return y * np.where(at_lower, 0.0, np.where(at_upper, C, gamma)), n_iter


def _start(V: Array, y: Array, C: Array, q: Array) -> tuple[Array, Array, Array]:
    """A point well inside: γ, and multipliers for which γz and sw are alike.

    Everybody counts alike, the two labels as much as each other, and as much as lowers the objective most. What that
    says of a person tells on which side they may end. With half of C for everybody the first dozen iterations would be
    spent on a direction that is far too long.
    """
    positive = y > 0
    both = min(float(C[positive].sum()), float(C[~positive].sum()))
    ray = C * np.where(
        positive, both / max(float(C[positive].sum()), 1e-300), both / max(float(C[~positive].sum()), 1e-300)
    )
    along = V.T @ ray
    best = (float(ray.sum()) - float(along @ q)) / max(float(along @ along), 1e-300)
    slope = V @ (min(max(best, 0.0), 0.5) * along + q) - 1.0
    typical = float(np.abs(slope).mean())
    z, w = np.maximum(slope, 0.0) + typical, np.maximum(-slope, 0.0) + typical
    return C * w / (z + w), z, w


def _reach(value: Array, step: Array) -> float:
    """The longest share of the step that keeps ``value`` positive, at most 1."""
    fastest = float((step / value).min())
    return min(1.0, _TO_THE_BOUNDARY / -fastest) if fastest < 0 else 1.0
