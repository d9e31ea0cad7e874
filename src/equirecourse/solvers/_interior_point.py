"""A primal-dual interior point for the dual of a linear SVM with few features.

    minimise ½‖Vᵀγ + q‖² − Σγ    such that    yᵀγ = total,   0 ≤ γ ≤ C

Benchmark row: ``weak_ridge`` of ``benchmarks/scale.py`` (a million people, 10 features, C = 1). Coordinate descent
takes tens of times as long and does not converge.

Notation
--------
V       label × features, n × d; the Hessian V Vᵀ has rank d and is never formed
q       what people whose coefficients are fixed add to the direction, zero without such people
γ, s    the variables and the room above them, s = C − γ
z, w    multipliers of γ ≥ 0 and s ≥ 0, in units of the margin
b       multiplier of yᵀγ = total, the intercept of the SVM; 0 where there is no such equation
D       z/γ + w/s, the diagonal that the barrier adds to the Hessian

One iteration costs O(n d²): the Newton system (V Vᵀ + D) is solved through a d × d one (Woodbury). Mehrotra's predictor
and corrector (Mehrotra, 1992) need some twenty iterations whatever C is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["minimise_linear", "weighted_gram"]

Array = NDArray[np.float64]

_TO_THE_BOUNDARY = 0.995  # share of the way to the nearest bound that a step may take (Mehrotra, 1992)
_UNDONE = 1e3  # a residual so many times the smallest one: rounding errors have taken over
_NO_PROGRESS = 1e-8  # a step this short, of a full one: the same
_NEAR, _REFRESH = 1e-6, 10  # residual from which scores are computed anew in each iteration, and before it in how many
_ROOM = 2.0  # multipliers of a start that somebody told, in mean distances to the margin: any value from 1 to 5 will do
_BLOCK = 2**17  # numbers scaled at a time: 1 MB, which stays in the cache until it is multiplied


def weighted_gram(V: Array, weights: Array) -> Array:
    """Vᵀ diag(weights) V for weights ≥ 0 and V of n × d, without a second copy of V."""
    n, d = V.shape
    rows, gram = max(1, _BLOCK // max(d, 1)), np.zeros((d, d))
    root = np.sqrt(weights)[:, None]
    for start in range(0, n, rows):
        scaled = V[start : start + rows] * root[start : start + rows]
        gram += scaled.T @ scaled
    return gram


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
    beyond: Array | None = None,
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
    beyond : ndarray of shape (n,), optional
        How far beyond the margin a rough model has people: where to start.

    Returns
    -------
    beta : ndarray
        y × γ, exactly at its bound where a multiplier holds it there.
    n_iter : int
        Number of iterations.
    """
    V = np.multiply(y[:, None], X, order="C")
    n, d = V.shape
    q = np.zeros(d) if offset is None else offset
    gamma, z, w = _start(V, y, C, q, beyond)
    best = gamma, z, w
    direction = gamma @ V + q
    scores, b, n_iter, smallest, exact = V @ direction, 0.0, 0, np.inf, True
    while True:
        s = C - gamma
        right = 1.0 - scores - b * y  # of the Newton system without a barrier
        gap = float(gamma @ z + s @ w)
        size = min(1.0, float(C.sum())) + abs(0.5 * float(direction @ direction) - float(gamma.sum()))
        worst = float(np.abs(w - z - right).max()) / (1.0 + float(np.abs(scores).max()))
        residual = max(gap / size, worst)
        if residual <= _NEAR and not exact:  # the scores were carried along, and the last digits count now
            direction = gamma @ V + q
            scores, exact = V @ direction, True
            continue
        # Rounding errors of badly scaled features may undo the last steps: keep the best point.
        if residual < smallest:
            best, smallest = (gamma, z, w), residual
        if residual <= tol or residual > _UNDONE * smallest or n_iter >= max_iter:
            break
        n_iter += 1
        inverse = gamma * s / (z * s + w * gamma)
        step = _newton(V, y, inverse, total - float(y @ gamma), intercept)
        if step is None:
            break
        # The predictor aims at the optimum; what it finds tells how far the corrector may go, and the curvature.
        move, *_ = step(right)
        move_z, move_w = -z * (1.0 + move / gamma), -w * (1.0 - move / s)
        reach = _reach((gamma, move), (s, -move), (z, move_z), (w, move_w))
        after = float((gamma + reach * move) @ (z + reach * move_z) + (s - reach * move) @ (w + reach * move_w))
        target = (after / gap) ** 3 * gap / (2 * n)
        at_lower, at_upper = (target - move * move_z) / gamma, (target + move * move_w) / s
        move, move_b, h, along = step(right + at_lower - at_upper)
        move_z, move_w = at_lower - z * (1.0 + move / gamma), at_upper - w * (1.0 - move / s)
        reach = _reach((gamma, move), (s, -move), (z, move_z), (w, move_w))
        if not reach >= _NO_PROGRESS:
            break
        gamma = np.clip(gamma + reach * move, 1e-300, C * (1.0 - 2.0**-52))
        z, w, b = z + reach * move_z, w + reach * move_w, b + reach * move_b
        # Added up, the scores keep the digits that features on very different scales would cost them.
        direction, scores = direction + reach * h, scores + reach * along
        exact = residual <= _NEAR or n_iter % _REFRESH == 0
        if exact:
            direction = gamma @ V + q
            scores = V @ direction
    gamma, z, w = best
    # Which side of γz = μ is the small one? Near the optimum exactly one of the two is.
    at_bound = (C - gamma) / C < w
    at_zero = (gamma / gamma.max() < z) & ~at_bound
    return y * np.where(at_zero, 0.0, np.where(at_bound, C, gamma)), n_iter


def _newton(
    V: Array, y: Array, inverse: Array, missing: float, intercept: bool
) -> Callable[[Array], tuple[Array, float, Array, Array]] | None:
    """Right side → step of γ, of b, of Vᵀγ and of the scores, for one barrier.

    None where the barrier spans more than double precision holds.
    """
    gram = weighted_gram(V, inverse)
    gram.flat[:: len(gram) + 1] += 1.0
    factor, failed = linalg.lapack.dpotrf(gram, lower=1, overwrite_a=1)
    if failed:
        return None
    by_label = inverse * y
    label_down = by_label @ V
    label_h = linalg.lapack.dpotrs(factor, label_down, lower=1)[0]
    bend = float(inverse.sum()) - float(label_down @ label_h)  # what the equation of the intercept adds
    if intercept and not bend > 0:
        return None

    def step(right: Array) -> tuple[Array, float, Array, Array]:
        h = linalg.lapack.dpotrs(factor, (inverse * right) @ V, lower=1)[0]
        move_b = (float(by_label @ right) - float(label_down @ h) - missing) / bend if intercept else 0.0
        h = h - move_b * label_h
        along = V @ h
        return inverse * (right - move_b * y - along), move_b, h, along

    return step


def _start(V: Array, y: Array, C: Array, q: Array, beyond: Array | None) -> tuple[Array, Array, Array]:
    """A point well inside: γ, and multipliers for which γz and sw are alike.

    How far beyond the margin a person is tells on which side they may end. Where nobody knows, everybody counts alike,
    the two labels as much as each other, and as much as lowers the objective most. With half of C for everybody the
    first dozen iterations would be spent on a direction that is far too long.
    """
    room = _ROOM
    if beyond is None:
        room = 1.0
        sums = float(C[y > 0].sum()), float(C[y <= 0].sum())
        ray = C * min(sums) / np.maximum(np.where(y > 0, *sums), 1e-300)
        along = ray @ V
        best = (float(ray.sum()) - float(along @ q)) / max(float(along @ along), 1e-300)
        beyond = V @ (min(max(best, 0.0), 0.5) * along + q) - 1.0
    room = max(room * float(np.abs(beyond).mean()), 1e-300)
    z, w = np.maximum(beyond, 0.0) + room, np.maximum(-beyond, 0.0) + room
    return C * w / (z + w), z, w


def _reach(*pairs: tuple[Array, Array]) -> float:
    """The longest share of a step that keeps everything positive, at most 1."""
    fastest = max(float((-move / value).max()) for value, move in pairs)
    return min(1.0, _TO_THE_BOUNDARY / fastest) if fastest > 0 else 1.0
