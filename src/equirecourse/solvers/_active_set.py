# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""The exact solution of a small dual, from a start where most coefficients are where they belong.

    minimise ½ βᵀ Q β + …   such that Σ β does not change and lower ≤ β ≤ upper

Pair steps come near a solution quickly and take tens of thousands of steps for the last digits. Here the free
coefficients are moved to their common optimum at once, and one coefficient after the other is set free, or held at a
bound that it meets on the way. Only a few dozen of them change sides, and each change costs the square of the number of
free coefficients, because the inverse of their optimality system

    [[Q among the free, 1], [1ᵀ, 0]]

is kept and updated (a bordered inverse, as in Cauwenberghs and Poggio, 2000). The slope of a coefficient is its
gradient plus the intercept; it is zero for the free ones at their optimum.

Benchmark rows: all rounds of polynomial kernels with C = 10 in ``benchmarks/speed.py``. Without this those of eight
heavy-tailed features take up to five times as long, and solving anew at each change takes longer than pair steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._numba import njit

__all__ = ["FreeSet", "WorkingSet"]

Array = NDArray[np.float64]

_FLOATS = {"nnan", "nsz", "contract", "reassoc"}
# Of its own curvature, what the free ones leave a coefficient. With less than the first it would spoil the inverse;
# with less than the second it does nothing that they do not do already, and can go all the way to a bound.
_DEPENDENT, _FLAT = 1e-4, 1e-11
_REFINEMENTS = 5  # corrections in a row, without a change of sides, after which the inverse is no longer one
_DRIFT = 1e-12  # of the sum, from rounding errors, against the largest coefficient
_CHANGES = 3  # most changes of sides, for each coefficient
_PATIENCE = 50  # working sets without half the violation, after which pair steps are as good
_MOST_FREE = 600  # the inverse is to stay near the processor, and costs the square of this with each change


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _total(a):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
    return total


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _add(target, factor, source):
    for i in range(target.shape[0]):
        target[i] += factor * source[i]


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _response(inverse, Q, free, k, j, column, response):
    """How the intercept and the free ones answer when coefficient j moves; return the curvature of that move."""
    column[0] = 1.0
    for a in range(k):
        column[a + 1] = Q[j, free[a]]
    curvature = Q[j, j]
    for a in range(k + 1):
        response[a] = _dot(inverse[a, : k + 1], column[: k + 1])
        curvature -= response[a] * column[a]
    return curvature


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _set_free(inverse, free, place, k, j, response, curvature):
    for a in range(k + 1):
        share = response[a] / curvature
        _add(inverse[a, : k + 1], share, response[: k + 1])
        inverse[a, k + 1] = -share
        inverse[k + 1, a] = -share
    inverse[k + 1, k + 1] = 1.0 / curvature
    free[k] = j
    place[j] = k
    return k + 1


@njit(cache=True, nogil=True)
def _begin_with(inverse, Q, free, place, j):
    """One free coefficient, which cannot move."""
    inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = -Q[j, j], 1.0, 1.0, 0.0
    free[0] = j
    place[j] = 0
    return 1


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _hold(inverse, free, place, k, at, scratch):
    """Take the free coefficient at position ``at`` out; the last one takes its place."""
    row = at + 1
    place[free[at]] = -1
    if row != k:
        for a in range(k + 1):
            inverse[row, a], inverse[k, a] = inverse[k, a], inverse[row, a]
        for a in range(k + 1):
            inverse[a, row], inverse[a, k] = inverse[a, k], inverse[a, row]
        free[at] = free[k - 1]
        place[free[at]] = at
    pivot = inverse[k, k]
    for a in range(k):
        scratch[a] = inverse[k, a]
    for a in range(k):
        _add(inverse[a, :k], -scratch[a] / pivot, scratch[:k])
    return k - 1


@njit(cache=True, nogil=True)
def _set_free_all(inverse, Q, free, place, rows):
    """Build the inverse for those of the rows that do not depend on the ones before."""
    k = 0
    column, response = np.empty(inverse.shape[0]), np.empty(inverse.shape[0])
    for j in rows:
        if k == 0:
            k = _begin_with(inverse, Q, free, place, j)
        else:
            curvature = _response(inverse, Q, free, k, j, column, response)
            if curvature > _DEPENDENT * Q[j, j]:
                k = _set_free(inverse, free, place, k, j, response, curvature)
    return k


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _first_bound(lower, upper, beta, free, k, direction, share, at):
    """How far along a direction, at most ``share`` of it, and the free one whose bound is in the way, or ``at``."""
    for a in range(k):
        i, d = free[a], direction[a + 1]
        if d > 0 and share * d > upper[i] - beta[i]:
            share, at = max((upper[i] - beta[i]) / d, 0.0), a
        elif d < 0 and share * d < lower[i] - beta[i]:
            share, at = max((lower[i] - beta[i]) / d, 0.0), a
    return share, at


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _to_common_optimum(inverse, Q, lower, upper, beta, g, free, place, k, b, missing, direction, scratch):
    """Move the free coefficients to their optimum; hold those that meet a bound. Return how many are left free."""
    before = beta.copy()
    scratch[0] = missing
    for a in range(k):
        scratch[a + 1] = -(g[free[a]] + b)
    for a in range(k):
        direction[a + 1] = _dot(inverse[a + 1, : k + 1], scratch[: k + 1])
    while True:
        share, at = _first_bound(lower, upper, beta, free, k, direction, 1.0, -1)
        for a in range(k):
            beta[free[a]] += share * direction[a + 1]
        if at < 0 or k == 1:
            break
        beta[free[at]] = upper[free[at]] if direction[at + 1] > 0 else lower[free[at]]
        # What is left of the way, without the coefficient that is held now.
        own = direction[at + 1] / inverse[at + 1, at + 1]
        for a in range(1, k + 1):
            direction[a] = (1.0 - share) * (direction[a] - own * inverse[at + 1, a])
        direction[at + 1] = direction[k]
        k = _hold(inverse, free, place, k, at, scratch)
    for i in range(beta.shape[0]):
        if beta[i] != before[i]:
            _add(g, beta[i] - before[i], Q[i])
    return k


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _intercept(g, free, k):
    total = 0.0
    for a in range(k):
        total -= g[free[a]]
    return total / k


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _release(inverse, Q, lower, upper, beta, g, free, place, k, j, tol, column, response):
    """Move coefficient j until its slope is gone, and the free ones with it; return how many are free, and changes."""
    changes = 0
    while True:
        changes += 1
        slope = g[j] + _intercept(g, free, k)
        if abs(slope) <= tol:
            return k, changes
        sign = 1.0 if slope < 0 else -1.0
        curvature = _response(inverse, Q, free, k, j, column, response)
        # −1: to where the slope is zero; −2: to the bound of j itself; else the free one that meets its bound.
        share, at = abs(slope) / curvature if curvature > _FLAT * Q[j, j] else np.inf, -1
        room = upper[j] - beta[j] if sign > 0 else beta[j] - lower[j]
        if room <= share:
            share, at = room, -2
        direction = column  # which has served its purpose
        for a in range(1, k + 1):
            direction[a] = -sign * response[a]
        share, at = _first_bound(lower, upper, beta, free, k, direction, share, at)
        if share == np.inf:
            return -1, changes
        for a in range(k):
            beta[free[a]] += share * direction[a + 1]
            _add(g, share * direction[a + 1], Q[free[a]])
        beta[j] += sign * share
        _add(g, sign * share, Q[j])
        if at == -1:
            # Else it stays where it is, and is released again should its slope come back.
            if curvature > _DEPENDENT * Q[j, j]:
                k = _set_free(inverse, free, place, k, j, response, curvature)
            return k, changes
        if at == -2:
            beta[j] = upper[j] if sign > 0 else lower[j]
            return k, changes
        beta[free[at]] = upper[free[at]] if direction[at + 1] > 0 else lower[free[at]]
        if k == 1:
            place[free[0]] = -1
            return _begin_with(inverse, Q, free, place, j), changes
        k = _hold(inverse, free, place, k, at, column)


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _settle(inverse, Q, lower, upper, beta, g, free, place, k, tol, drift, most):
    """Solve in place; return how many are free (−1: it did not work out) and how many changes that took."""
    m = beta.shape[0]
    column, response = np.empty(inverse.shape[0]), np.empty(inverse.shape[0])
    changes, refinements = 0, 0
    total = _total(beta)
    while changes < most:
        b = _intercept(g, free, k)
        worst, missing = 0.0, total - _total(beta)
        for a in range(k):
            worst = max(worst, abs(g[free[a]] + b))
        if (worst > 0.1 * tol or abs(missing) > drift) and k > 1:
            left = _to_common_optimum(inverse, Q, lower, upper, beta, g, free, place, k, b, missing, response, column)
            refinements = refinements + 1 if left == k else 0
            if refinements > _REFINEMENTS:
                return -1, changes
            changes += k - left
            k = left
            continue
        refinements = 0
        j, steepest = -1, 0.5 * tol
        for i in range(m):
            if place[i] < 0:
                slope = g[i] + b
                if (-slope > steepest and beta[i] < upper[i]) or (slope > steepest and beta[i] > lower[i]):
                    j, steepest = i, abs(slope)
        if j < 0:
            return k, changes
        if k + 3 > inverse.shape[0]:
            return -1, changes
        k, more = _release(inverse, Q, lower, upper, beta, g, free, place, k, j, 0.1 * tol, column, response)
        changes += more
        if k < 0:
            return -1, changes
    return -1, changes


@dataclass(frozen=True)
class WorkingSet:
    """A dual among some people: who they are, in order, their part of the kernel matrix, and their bounds."""

    people: NDArray[np.intp]
    Q: Array
    lower: Array
    upper: Array


class FreeSet:
    """The free coefficients of a dual and the inverse of their system, kept from one working set to the next.

    Parameters
    ----------
    trusted : bool
        Whether the start is thought to be near enough for this to be quicker than anything else. From then on that
        depends on how the last working set went.
    """

    def __init__(self, *, trusted: bool = False) -> None:
        self.trusted = trusted
        self._violation, self._idle = np.inf, 0
        self._people: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._inverse: Any = np.empty((0, 0))

    def watch(self, violation: float) -> None:
        """Take note of the violation among everybody that the last set left; where it stays, solve no more of them."""
        if violation < 0.5 * self._violation:
            self._violation, self._idle = violation, 0
        elif self.trusted:
            self._idle += 1
            self.trusted = self._idle <= _PATIENCE

    def solve(self, part: WorkingSet, beta: Array, g: Array, tol: float) -> tuple[Array | None, int]:
        """Solve among a working set.

        Parameters
        ----------
        part : WorkingSet
            The dual.
        beta, g : ndarray
            Coefficients within their bounds, and the gradient there.
        tol : float
            Largest violation by a pair.

        Returns
        -------
        beta : ndarray or None
            The solution, or None where it did not work out, for rounding errors or too many changes, or is not new.
        changes : int
            How many coefficients were set free or held at a bound.
        """
        if self._idle > _PATIENCE:
            return None, 0
        m = len(part.people)
        free, place = np.empty(m + 1, dtype=np.int64), np.full(m, -1)
        k = self._carry_over(part.people, free, place)
        if k == 0:
            k = self._begin(part, beta, free, place)
        self.trusted, self._people = False, np.empty(0, dtype=np.intp)
        if not 0 < k <= _MOST_FREE:
            return None, 0
        moved = beta.copy()
        drift = _DRIFT * max(1.0, float(np.abs(beta).max(initial=0.0)))
        start = moved, g.copy(), free, place, k
        limits = tol, drift, _CHANGES * m
        k, changes = _settle(self._inverse, part.Q, part.lower, part.upper, *start, *limits)
        if k < 0 or not np.isfinite(moved).all() or (moved == beta).all():
            return None, int(changes)
        self.trusted, self._people = True, part.people[free[:k]]
        return moved, max(int(changes), 1)

    def _carry_over(self, people: NDArray[np.intp], free: Any, place: Any) -> int:
        """Find the free ones of before in this working set; their number, and room for all of the set."""
        k, m = len(self._people), len(people)
        if k:
            at = np.searchsorted(people, self._people)
            if at.max() == m or (people[at] != self._people).any():
                k = 0
            else:
                free[:k], place[at] = at, np.arange(k)
        if len(self._inverse) < m + 2:
            grown = np.empty((m + 2, m + 2))
            if k:
                grown[: k + 1, : k + 1] = self._inverse[: k + 1, : k + 1]
            self._inverse = grown
        return k

    def _begin(self, part: WorkingSet, beta: Array, free: Any, place: Any) -> int:
        rows = np.flatnonzero((beta > part.lower) & (beta < part.upper))
        if len(rows) > _MOST_FREE:
            return 0
        if len(rows) == 0:  # anybody who can move
            rows = np.flatnonzero(part.lower < part.upper)[:1]
        return int(_set_free_all(self._inverse, part.Q, free, place, rows))
