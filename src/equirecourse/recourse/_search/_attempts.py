"""The state of a search: several accepted changes per person, and the operations that replace them by cheaper ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._problem import Problem
from equirecourse.recourse._search._feasible import FeasibleSet
from equirecourse.recourse._search._scores import MAX_ROWS

__all__ = ["Attempts", "step_over"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_SECTIONS = 8  # points of a bracket that are tried in one call of the model
_BETTER = 1e-12  # least relative decrease of the cost that counts as an improvement
# Distances beyond the boundary, relative to the length of the move. A model may decide differently about the same
# person in a table of another length, because sums are then rounded differently; a small overshoot avoids that.
_OVERSHOOTS = (1e-9, 0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


class Attempts:
    """Accepted changes of some people, several per person. A change is only ever replaced by a cheaper one.

    Parameters
    ----------
    problem : Problem
        The people.
    feasible : FeasibleSet
        The values that they may move to.
    until : callable
        Whether time is over. From then on the model is not asked any more.

    Attributes
    ----------
    person : ndarray of int, shape (n_attempts,)
        The person that each attempt belongs to.
    own : ndarray of shape (n_attempts, n_features)
        The change.
    worth : ndarray of shape (n_attempts,)
        The value of ``objective``.
    """

    def __init__(self, problem: Problem, feasible: FeasibleSet, until: Callable[[], bool]) -> None:
        self.problem, self.feasible, self.until = problem, feasible, until
        self.person = np.empty(0, dtype=np.intp)
        self.own = np.empty((0, problem.start.shape[1]))
        self.worth = np.empty(0)

    def __len__(self) -> int:
        return len(self.person)

    @property
    def start(self) -> Array:
        """The start of each attempt's person."""
        return np.asarray(self.feasible.start[self.person])

    @property
    def changed(self) -> Mask:
        """Which features each attempt changes."""
        return np.asarray((self.own != self.start) & ~np.isnan(self.start))

    def parts(self, people: Index, own: Array) -> Array:
        """Cost of each feature's change."""
        return self.problem.actions.costs(self.problem.norm, self.feasible.start[people], own)

    def objective(self, people: Index, own: Array) -> Array:
        """The cost; where the largest part counts, plus a little of the mean, so that smaller parts are reduced too."""
        parts = self.parts(people, own)
        cost = self.problem.cost.total(parts)
        return cost + 1e-6 * parts.mean(axis=1) if self.problem.cost.is_largest and parts.shape[1] else cost

    def allowed(self, people: Index, own: Array) -> Mask:
        """Which changes keep to the action set and are accepted by the model."""
        good = np.zeros(len(own), dtype=bool)
        for begin in range(0, len(own), MAX_ROWS):
            if self.until():
                break
            rows = np.arange(begin, min(begin + MAX_ROWS, len(own)))
            rows = rows[self.problem.respected(people[rows], own[rows])]
            good[rows] = self.problem.accepted(people[rows], own[rows])
        return good

    # --- attempts ------------------------------------------------------------------------------------------------

    def add(self, people: Index, own: Array) -> None:
        """Add those changes that are allowed and accepted, after rounding and repair."""
        own = self.feasible.snap(people, own)
        rows, own = self.feasible.repair(people, own)
        people = people[rows]
        good = self.allowed(people, own)
        self.person = np.concatenate([self.person, people[good]])
        self.own = np.vstack([self.own, own[good]])
        self.worth = np.concatenate([self.worth, self.objective(people[good], own[good])])

    def keep_cheapest(self, count: int) -> None:
        """Keep the ``count`` cheapest attempts of each person; of equal ones, keep one."""
        order = np.lexsort((self.worth, self.person))
        person, own, worth = self.person[order], self.own[order], self.worth[order]
        if len(order):
            same = (person[1:] == person[:-1]) & (worth[1:] <= worth[:-1] * (1.0 + 1e-9))
            fresh = np.concatenate([[True], ~same])
            person, own, worth = person[fresh], own[fresh], worth[fresh]
        first = np.searchsorted(person, person, "left")
        kept = np.arange(len(person)) - first < count
        self.person, self.own, self.worth = person[kept], own[kept], worth[kept]

    def offer(self, attempt: Index, own: Array) -> Mask:
        """Replace each attempt by its cheapest accepted proposal, if that is cheaper; return which were replaced."""
        improved = np.zeros(len(self), dtype=bool)
        own = self.feasible.snap(self.person[attempt], own)
        cheaper = self._cheaper(attempt, own)
        attempt, own = attempt[cheaper], own[cheaper]
        rows, own = self.feasible.repair(self.person[attempt], own)
        attempt = attempt[rows]
        cheaper = self._cheaper(attempt, own)  # repairs may have made it dearer
        attempt, own = attempt[cheaper], own[cheaper]
        if len(attempt) == 0:
            return improved
        good = self.allowed(self.person[attempt], own)
        attempt, own = attempt[good], own[good]
        worth = self.objective(self.person[attempt], own)
        order = np.lexsort((worth, attempt))
        attempt, own, worth = attempt[order], own[order], worth[order]
        first = np.unique(attempt, return_index=True)[1]
        attempt = attempt[first]
        self.own[attempt], self.worth[attempt] = own[first], worth[first]
        improved[attempt] = True
        return improved

    def _cheaper(self, attempt: Index, own: Array) -> Mask:
        return np.asarray(self.objective(self.person[attempt], own) < self.worth[attempt] * (1.0 - _BETTER))

    # --- brackets ------------------------------------------------------------------------------------------------

    def first_accepted(
        self, people: Index, path: Callable[[Index, Array], Array], rounds: int, end: float = 1.0
    ) -> tuple[Array, Array]:
        """Search the paths of some people for their first accepted point.

        Parameters
        ----------
        people : ndarray of int, shape (n_rows,)
            The person of each path.
        path : callable
            From rows and places (0 is the beginning) to changes.
        rounds : int
            Number of calls of the model; each divides the bracket by eight.
        end : float
            The last place of the path.

        Returns
        -------
        place : ndarray of shape (n_rows,)
            The earliest accepted place that was found; infinite if there is none.
        own : ndarray
            The change there.
        """
        low, high = np.zeros(len(people)), np.full(len(people), np.inf)
        own = np.full((len(people), self.own.shape[1]), np.nan)
        top = np.full(len(people), end)
        cuts = np.arange(1, _SECTIONS + 1) / _SECTIONS
        open_ = np.arange(len(people))
        for _ in range(rounds):
            if len(open_) == 0:
                break
            rows = np.repeat(open_, _SECTIONS)
            places = (low[open_, None] + (top - low)[open_, None] * cuts).ravel()
            tried = self.feasible.snap(people[rows], path(rows, places))
            good = self.allowed(people[rows], tried).reshape(-1, _SECTIONS)
            first = np.where(good.any(axis=1), good.argmax(axis=1), -1)
            hit = first >= 0
            at, k = open_[hit], first[hit]
            grid = places.reshape(-1, _SECTIONS)[hit]
            high[at] = top[at] = grid[np.arange(len(at)), k]
            own[at] = tried.reshape(len(open_), _SECTIONS, -1)[hit, k]
            low[at] = np.where(k > 0, grid[np.arange(len(at)), np.maximum(k - 1, 0)], low[at])
            open_ = at
        return high, own

    def combine(self, attempt: Index, feature: Index, value: Array) -> Mask:
        """Propose changes of single features, and their combinations: the two that save most, the three, and so on."""
        if len(attempt) == 0:
            return np.zeros(len(self), dtype=bool)
        own = self.own[attempt]
        own[np.arange(len(attempt)), feature] = value
        saved = self.worth[attempt] - self.objective(self.person[attempt], own)
        order = np.lexsort((-saved, attempt))
        attempt, feature, value, own = attempt[order], feature[order], value[order], own[order]
        together = self.own[attempt]
        rank = np.arange(len(attempt)) - np.searchsorted(attempt, attempt, "left")
        for back in range(int(rank.max(initial=0)) + 1):
            # Each row takes over the changes of the rows before it that belong to the same attempt.
            rows = np.flatnonzero(rank >= back)
            together[rows, feature[rows - back]] = value[rows - back]
        return self.offer(np.concatenate([attempt, attempt]), np.vstack([own, together]))


def step_over(problem: Problem, feasible: FeasibleSet, people: Index, own: Array) -> tuple[Array, Mask]:
    """Move slightly beyond the boundary, until one call of the model accepts everybody together.

    Parameters
    ----------
    problem : Problem
        The people.
    feasible : FeasibleSet
        The values that they may move to.
    people : ndarray of int, shape (n_rows,)
        The person of each change.
    own : ndarray of shape (n_rows, n_features)
        Changes that lead to the boundary.

    Returns
    -------
    own : ndarray
        Changes slightly beyond.
    good : ndarray of bool
        Whether they are accepted and allowed.
    """
    start = feasible.start[people]
    over, good = own.copy(), np.zeros(len(own), dtype=bool)
    for overshoot in _OVERSHOOTS:
        left = np.flatnonzero(~good)
        if len(left) == 0:
            break
        farther = own[left] + overshoot * (own[left] - start[left])
        over[left] = feasible.snap(people[left], np.where(feasible.continuous, farther, own[left]))
        good = problem.respected(people, over) & problem.accepted(people, over)
    return over, good
