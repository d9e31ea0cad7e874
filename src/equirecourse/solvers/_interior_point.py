"""A primal-dual interior point for the dual of a linear SVM with few features.

    minimise ½‖Vᵀγ‖² − mᵀγ    such that    yᵀγ = 0,   0 ≤ γ ≤ C

Notation
--------
V       label × features, n × d; the Hessian V Vᵀ has rank d and is never formed
m       the margin each person is to have, 1 for an ordinary SVM
γ, s    the variables and the room above them, s = C − γ
z, w    multipliers of γ ≥ 0 and s ≥ 0, in units of the margin
b       multiplier of yᵀγ = 0, the intercept of the SVM
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

__all__ = ["minimise_linear"]

Array = NDArray[np.float64]

_TO_THE_BOUNDARY = 0.995  # share of the way to the nearest bound that a step may take
_UNDONE = 1e3  # a residual so many times the smallest one
_NO_PROGRESS = 1e-8  # a step this short, of a full one, means that rounding errors have taken over


@dataclass
class _Newton:
    """The Newton system at one point, factorised once and solved for predictor and corrector."""

    V: Array
    y: Array
    gamma: Array
    s: Array
    z: Array
    w: Array
    dual: Array
    equality: float

    def __post_init__(self) -> None:
        self.D = self.z / self.gamma + self.w / self.s
        self.VD = self.V / self.D[:, None]
        self.factor = linalg.cho_factor(np.eye(self.V.shape[1]) + self.V.T @ self.VD, check_finite=False)
        self.along_y = self._solve(self.y)

    def _solve(self, right: Array) -> Array:
        scaled = right / self.D
        return np.asarray(scaled - self.VD @ linalg.cho_solve(self.factor, self.V.T @ scaled, check_finite=False))

    def step(self, at_lower: Array, at_upper: Array) -> tuple[Array, Array, Array, float]:
        """Steps of γ, z, w and b that add ``at_lower`` to γz and ``at_upper`` to sw, to first order."""
        step = self._solve(-self.dual + at_lower / self.gamma - at_upper / self.s)
        step_b = float(self.y @ step + self.equality) / float(self.y @ self.along_y)
        step = step - self.along_y * step_b
        return step, (at_lower - self.z * step) / self.gamma, (at_upper + self.w * step) / self.s, step_b


def minimise_linear(
    X: Array, y: Array, C: Array, *, margin: Array | float = 1.0, tol: float = 1e-9, max_iter: int = 100
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
    margin : float or ndarray, shape (n,)
        Label × score up to which a person has a loss.
    tol : float
        Largest gap relative to the objective, and residual of the optimality conditions relative to the scores.
    max_iter : int
        Most iterations.

    Returns
    -------
    beta : ndarray
        y × γ, exactly at its bound where a multiplier holds it there.
    n_iter : int
        Number of iterations.
    """
    V = y[:, None] * X
    gamma, b = 0.5 * C, 0.0
    slope = V @ (V.T @ gamma) - margin
    # Multipliers that satisfy the dual equation from the start, whatever the scale of the features.
    z, w = np.maximum(slope, 0.0) + 1.0, np.maximum(-slope, 0.0) + 1.0
    n_iter, best, smallest = 0, (gamma, z, w), np.inf
    while n_iter < max_iter:
        s = C - gamma
        direction = V.T @ gamma
        scores = V @ direction
        dual, equality = scores - margin + y * b - z + w, float(y @ gamma)
        gap = float(gamma @ z + s @ w)
        size = 1.0 + abs(0.5 * float(direction @ direction) - float((margin * gamma).sum()))
        # Rounding errors of badly scaled features may undo the last steps: keep the best point.
        residual = max(gap / size, float(np.abs(dual).max() / (1.0 + np.abs(scores).max())))
        if residual < smallest:
            best, smallest = (gamma, z, w), residual
        if residual <= tol or residual > _UNDONE * smallest:
            break
        n_iter += 1
        try:
            newton = _Newton(V, y, gamma, s, z, w, dual, equality)
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


def _reach(value: Array, step: Array) -> float:
    """The longest share of the step that keeps ``value`` positive, at most 1."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, _TO_THE_BOUNDARY * float((-value[shrinking] / step[shrinking]).min()))
