"""From an approximate solution of a dual to an exact one, and to its intercept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from equirecourse.solvers._smo import violation_of

__all__ = ["intercept_from", "polish"]

Array = NDArray[np.float64]

_POLISH_LIMIT = 500  # free coefficients up to which the optimality system is solved directly


def intercept_from(g: Array, beta: Array, lower: Array, upper: Array) -> float:
    """The intercept from the *free* coefficients, or the midpoint of what the bounded ones allow."""
    free = (beta > lower) & (beta < upper)
    if free.any():
        return -float(g[free].mean())
    fixed = lower == upper  # people of weight zero say nothing about the intercept
    at_lower, at_upper = (beta <= lower) & ~fixed, (beta >= upper) & ~fixed
    low = float((-g[at_lower]).max()) if at_lower.any() else None
    high = float((-g[at_upper]).min()) if at_upper.any() else None
    if low is None or high is None:
        return high if low is None and high is not None else (low or 0.0)
    return (low + high) / 2


def _solve_symmetric(system: Array, right: Array) -> Array:
    """Solve a symmetric system; the least-norm solution, which takes ten times as long, where it is singular.

    Straight through LAPACK: scipy's ``solve`` warns of a singular system, and warnings are no way for threads to talk.
    """
    factor, pivots, failed = linalg.lapack.dsytrf(system, lower=1)
    if failed == 0:
        size = float(np.abs(system).sum(axis=0).max())
        if linalg.lapack.dsycon(factor, pivots, size, lower=1)[0] >= np.finfo(float).eps:
            return np.asarray(linalg.lapack.dsytrs(factor, pivots, right, lower=1)[0])
    return np.asarray(linalg.lstsq(system, right, cond=1e-13, lapack_driver="gelsy", check_finite=False)[0])


def polish(
    block: Callable[[NDArray[np.intp]], Array],
    gradient: Callable[[Array], Array],
    lower: Array,
    upper: Array,
    beta: Array,
    *,
    rounds: int = 1,
) -> tuple[Array, Array, float]:
    """Make an approximate solution exact: an active-set method, from a start that is all but optimal.

    Once a solver has found *which* coefficients are free, one linear system gives those to machine precision; its
    least-norm solution also serves kernels of low rank. A coefficient that would leave its bounds is held there, one
    that should leave its bound is set free, and the system is solved again.

    Parameters
    ----------
    block : callable
        Rows → the kernel matrix among them.
    gradient : callable
        Coefficients → gradient of the dual objective.
    lower, upper, beta : ndarray
        Bounds, and the coefficients so far.
    rounds : int
        Most systems to solve. After pair steps one will do.

    Returns
    -------
    beta, gradient : ndarray
        The best coefficients, and the gradient there.
    violation : float
        Largest violation of the optimality conditions by a pair.
    """
    g = gradient(beta)
    best = beta, g, violation_of(g, beta, lower, upper)
    free = (beta > lower) & (beta < upper)
    for _ in range(rounds):
        rows = np.flatnonzero(free)
        m = len(rows)
        if not 2 <= m <= _POLISH_LIMIT:
            break
        system = np.ones((m + 1, m + 1))
        system[:m, :m] = block(rows)
        system[m, m] = 0.0
        right = np.append(-g[rows], -beta.sum())
        step = _solve_symmetric(system, right)[:m]
        room = np.where(step > 0, upper[rows] - beta[rows], lower[rows] - beta[rows])
        share = np.divide(room, step, out=np.full(m, np.inf), where=step != 0)
        first = int(np.argmin(share))
        beta = beta.copy()
        beta[rows] = np.clip(beta[rows] + min(1.0, share[first]) * step, lower[rows], upper[rows])
        if share[first] <= 1.0:
            beta[rows[first]] = upper[rows[first]] if step[first] > 0 else lower[rows[first]]
            free[rows[first]] = False
            g = gradient(beta)
            continue
        g = gradient(beta)
        violation = violation_of(g, beta, lower, upper)
        if violation < best[2] and abs(beta.sum()) <= 1e-9 * max(1.0, np.abs(beta).max()):
            best = beta, g, violation
        rises, falls = np.flatnonzero(beta < upper), np.flatnonzero(beta > lower)
        worst = [rises[np.argmin(g[rises])], falls[np.argmax(g[falls])]]
        if free[worst].all():
            break
        free[worst] = True
    return best
