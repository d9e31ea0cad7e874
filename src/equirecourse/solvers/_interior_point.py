"""A primal-dual interior point for the dual of a linear SVM with few features.

    minimise ½‖Vγ + q‖² − Σγ    such that    yᵀγ = total,   0 ≤ γ ≤ C

Notation
--------
V       label × features, d × n; the Hessian VᵀV has rank d and is never formed
q       what people whose coefficients are fixed add to the direction, zero without such people
γ, s    the variables and the room above them, s = C − γ
z, w    multipliers of γ ≥ 0 and s ≥ 0, in units of the margin
b       multiplier of yᵀγ = total, the intercept of the SVM; 0 where there is no such equation
D       z/γ + w/s, the diagonal that the barrier adds to the Hessian

h       V times a step of γ, which falls out of solving for the step: Vᵀh is what the step does to the scores

One iteration costs O(n d²): the Newton system (VᵀV + D) is solved through a d × d one (Woodbury). Mehrotra's predictor
and corrector make it some twenty iterations whatever C is. Pair steps, for which few features and a large C are the
hard case, may take millions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from equirecourse.solvers._barrier import begin, correct, finish, move, try_out
from equirecourse.solvers._threads import in_parts, side_by_side

__all__ = ["minimise_linear", "weighted_gram"]

Array = NDArray[np.float64]

_TO_THE_BOUNDARY = 0.995  # share of the way to the nearest bound that a step may take
_UNDONE = 1e3  # a residual so many times the smallest one
_NEAR, _REFRESH = 1e-6, 10  # residual from which scores are computed anew in each iteration, and before it in how many
_ROOM = 2.0  # of the multipliers where somebody told where to start, in mean distances to the margin
_FEW_FEATURES = 20  # up to which loops beat BLAS
_NO_PROGRESS = 1e-8  # a step this short, of a full one, means that rounding errors have taken over
_BLOCK = 2**17  # numbers scaled at a time: 1 MB, so that a block stays in the cache until it is multiplied


def weighted_gram(V: Array, weights: Array) -> Array:
    """V diag(weights) Vᵀ for weights ≥ 0 and V of d × n in either memory order, without a second copy of V."""
    d, n = V.shape
    width = max(1, min(n, _BLOCK // max(d, 1)))
    root, gram = np.sqrt(weights), np.zeros((d, d))
    buffer = np.empty((d, width), order="F" if V.flags.f_contiguous else "C")
    for start in range(0, n, width):
        block = V[:, start : start + width]
        scaled = np.multiply(block, root[start : start + width], out=buffer[:, : block.shape[1]])
        gram += scaled @ scaled.T
    return gram


def _begin_with_gram(V: Array, first: int, *rest: Any) -> tuple[Array, Array, Array, Array]:
    """The first pass, and V D⁻¹ Vᵀ: through loops for few features, through BLAS for many."""
    d, inverse = len(V), rest[5]
    few = d <= _FEW_FEATURES
    gram = np.zeros((d, d) if few else (0, 0))
    compiled: Any = begin
    sums, label_down, right_down = compiled(V, first, *rest, gram)
    return sums, label_down, right_down, gram if few else weighted_gram(V[:, first : first + len(inverse)], inverse)


class _Barrier:
    """One problem, and a Newton step from a point, in passes over people that cores share."""

    def __init__(self, V: Array, y: Array, C: Array, threads: int) -> None:
        self.V, self.y, self.C = V, y, C
        d, n = V.shape
        self.parts, self.threads = in_parts(n, d), threads
        self.inverse, self.right, self.step, self.at_lower, self.at_upper, self.along = np.empty((6, n))

    def _pass(self, compiled: Any, point: Array, more: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        """Run a pass over each part of the people, with what all passes need and what this one needs besides."""

        def one(at: slice) -> Any:
            gamma, z, w, _ = point[:, at]
            common = self.V, at.start, self.y[at], self.C[at], gamma, z, w, self.inverse[at], self.right[at]
            return compiled(*common, *more(at))

        return side_by_side(one, self.parts, self.threads)

    def direction_of(self, gamma: Array) -> Array:
        """Vγ."""
        return np.asarray(sum(side_by_side(lambda at: self.V[:, at] @ gamma[at], self.parts, self.threads)))

    def begin(self, point: Array, direction: Array, exact: bool, b: float) -> _Look:
        """Look at a point, and prepare the steps from it."""
        found = self._pass(_begin_with_gram, point, lambda at: (point[3, at], direction, exact, b))
        sums = np.array([part[0] for part in found])
        label_down, right_down, gram = (sum(part[k] for part in found) for k in (1, 2, 3))
        gap, total, labelled, through, both = sums[:, :5].sum(axis=0)
        worst, highest = sums[:, 5:].max(axis=0)
        return _Look(gap, total, labelled, through, both, worst, highest, label_down, right_down, gram)

    def predict(self, point: Array, h: Array, step_b: float) -> tuple[float, float]:
        """How fast anything falls on the first step, and by how much the gap bends on it."""
        found = self._pass(try_out, point, lambda at: (h, step_b, self.step[at]))
        return max(top for top, _ in found), sum(bent for _, bent in found)

    def correct(self, point: Array, target: float) -> tuple[float, Array]:
        """Aim at ``target`` for every γz and sw, with what the first step told of second order."""
        steps = self.at_lower, self.at_upper
        found = self._pass(correct, point, lambda at: (self.step[at], target, *(step[at] for step in steps)))
        return sum(both for both, _ in found), np.asarray(sum(down for _, down in found))

    def finish(self, point: Array, h: Array, step_b: float) -> float:
        """The second step; return how fast anything falls on it."""
        steps = self.step, self.at_lower, self.at_upper, self.along
        return float(max(self._pass(finish, point, lambda at: (h, step_b, *(step[at] for step in steps)))))

    def move(self, old: Array, new: Array, reach: float) -> None:
        """Take a share of the second step."""
        move(self.C, old, new, reach, self.step, self.at_lower, self.at_upper, self.along)


@dataclass(frozen=True)
class _Look:
    """What one pass over the people says of a point."""

    gap: float
    total: float  # Σγ
    labelled: float  # yᵀγ
    through: float  # yᵀ D⁻¹ y
    both: float  # yᵀ D⁻¹ right
    worst: float  # largest residual of the dual
    highest: float  # largest score
    label_down: Array  # V D⁻¹ y
    right_down: Array  # V D⁻¹ right
    gram: Array  # V D⁻¹ Vᵀ


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
    threads: int = 1,
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
    threads : int
        How many parts of the people are worked on at the same time. The result does not depend on it.
    beyond : ndarray of shape (n,), optional
        How far beyond the margin a rough model has people: where to start.

    Returns
    -------
    beta : ndarray
        y × γ, exactly at its bound where a multiplier holds it there.
    n_iter : int
        Number of iterations.
    """
    V = np.ascontiguousarray((y[:, None] * X).T)
    q = np.zeros(X.shape[1]) if offset is None else offset
    barrier = _Barrier(V, y, C, threads)
    points = [np.empty((4, len(y))) for _ in range(3)]  # this one, the best one, and the next
    point = best = points[0]
    point[:3] = _start(V, y, C, q, beyond)
    direction = barrier.direction_of(point[0]) + q
    b, whole, n_iter, smallest, exact = 0.0, float(C.sum()), 0, np.inf, True
    while True:
        look = barrier.begin(point, direction, exact, b)
        size = min(1.0, whole) + abs(0.5 * float(direction @ direction) - look.total)
        residual = max(look.gap / size, look.worst / (1.0 + look.highest))
        if residual <= _NEAR and not exact:  # the scores were carried along, and the last digits count now
            direction, exact = barrier.direction_of(point[0]) + q, True
            continue
        # Rounding errors of badly scaled features may undo the last steps: keep the best point.
        if residual < smallest:
            best, smallest = point, residual
        if residual <= tol or residual > _UNDONE * smallest or n_iter >= max_iter:
            break
        n_iter += 1
        look.gram.flat[:: len(q) + 1] += 1.0
        factor, failed = linalg.lapack.dpotrf(look.gram, lower=1, overwrite_a=1)
        if failed:  # the barrier spans more than double precision holds: as near as it gets
            break
        h_label, h = linalg.lapack.dpotrs(factor, np.array([look.label_down, look.right_down]).T, lower=1)[0].T
        bend = look.through - float(look.label_down @ h_label)  # what the equation of the intercept adds
        if intercept and not bend > 0:
            break

        def intercept_step(both: float, h: Array, look: _Look = look, bend: float = bend) -> float:
            left = both - float(look.label_down @ h) + look.labelled - total
            return left / bend if intercept else 0.0

        step_b = intercept_step(look.both, h)
        top, bent = barrier.predict(point, h - step_b * h_label, step_b)
        reach = _reach(top)
        after = (1.0 - reach) * look.gap + reach**2 * bent
        both, right_down = barrier.correct(point, (after / look.gap) ** 3 * look.gap / (2 * len(y)))
        h = linalg.lapack.dpotrs(factor, right_down, lower=1)[0]
        step_b = intercept_step(both, h)
        h = h - step_b * h_label
        reach = _reach(barrier.finish(point, h, step_b))
        if not reach >= _NO_PROGRESS:
            break
        following = next(one for one in points if one is not best and one is not point)
        barrier.move(point, following, reach)
        point = following
        b += reach * step_b
        exact = residual <= _NEAR or n_iter % _REFRESH == 0
        direction = barrier.direction_of(point[0]) + q if exact else direction + reach * h
    gamma, z, w, _ = best
    # Which side of γz = μ is the small one? Near the optimum exactly one of the two is.
    at_upper = (C - gamma) / C < w
    at_lower = (gamma / gamma.max() < z) & ~at_upper
    return y * np.where(at_lower, 0.0, np.where(at_upper, C, gamma)), n_iter


def _start(V: Array, y: Array, C: Array, q: Array, beyond: Array | None) -> tuple[Array, Array, Array]:
    """A point well inside: γ, and multipliers for which γz and sw are alike.

    How far beyond the margin a person is tells on which side they may end. Where nobody knows, everybody counts alike,
    the two labels as much as each other, and as much as lowers the objective most. With half of C for everybody the
    first dozen iterations would be spent on a direction that is far too long.
    """
    room = _ROOM
    if beyond is None:
        room = 1.0
        positive = y > 0
        both = min(float(C[positive].sum()), float(C[~positive].sum()))
        ray = C * np.where(
            positive, both / max(float(C[positive].sum()), 1e-300), both / max(float(C[~positive].sum()), 1e-300)
        )
        along = V @ ray
        best = (float(ray.sum()) - float(along @ q)) / max(float(along @ along), 1e-300)
        beyond = (min(max(best, 0.0), 0.5) * along + q) @ V - 1.0
    room = max(room * float(np.abs(beyond).mean()), 1e-300)
    z, w = np.maximum(beyond, 0.0) + room, np.maximum(-beyond, 0.0) + room
    return C * w / (z + w), z, w


def _reach(fastest: float) -> float:
    """The longest share of a step that keeps everything positive, at most 1, where ``fastest`` falls most."""
    return min(1.0, _TO_THE_BOUNDARY / fastest) if fastest > 0 else 1.0
