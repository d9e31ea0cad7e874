"""Several attempts per person at a cheap accepted change, and the ways to try cheaper ones on all of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._problem import Problem
from equirecourse.recourse._search._room import Room
from equirecourse.recourse._search._scores import MAX_ROWS

__all__ = ["Hunt", "step_over"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_SECTIONS = 8  # parts into which a bracket is cut in one call
_BETTER = 1e-12  # relative improvement that is one
# How much farther than to the boundary to go, relative to the way there. A model may decide differently about the very
# same person in the company of others, because sums are then rounded differently: a hair keeps clear of that.
_HAIRS = (1e-9, 0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


class Hunt:
    """Attempts: accepted changes of some people, several per person, which only ever become cheaper.

    Parameters
    ----------
    problem : Problem
        The people.
    room : Room
        Where they can go.
    until : callable
        Whether time is up; from then on nothing is tried any more.

    Attributes
    ----------
    person : ndarray of int, shape (n_attempts,)
        Whose attempt it is.
    own : ndarray of shape (n_attempts, n_features)
        The change.
    worth : ndarray of shape (n_attempts,)
        Its cost, as ``objective`` counts it.
    """

    def __init__(self, problem: Problem, room: Room, until: Callable[[], bool]) -> None:
        self.problem, self.room, self.until = problem, room, until
        self.person = np.empty(0, dtype=np.intp)
        self.own = np.empty((0, problem.start.shape[1]))
        self.worth = np.empty(0)

    def __len__(self) -> int:
        return len(self.person)

    @property
    def start(self) -> Array:
        """Where each attempt's person is."""
        return np.asarray(self.room.start[self.person])

    @property
    def changed(self) -> Mask:
        """Which features each attempt changes."""
        return np.asarray((self.own != self.start) & ~np.isnan(self.start))

    def parts(self, people: Index, own: Array) -> Array:
        """Cost of each feature's change."""
        return self.problem.actions.costs(self.problem.norm, self.room.start[people], own)

    def objective(self, people: Index, own: Array) -> Array:
        """Cost, with a grain of its sum where only the largest part counts: moves beside that part are progress too."""
        parts = self.parts(people, own)
        cost = self.problem.cost.total(parts)
        return cost + 1e-6 * parts.mean(axis=1) if self.problem.cost.is_largest and parts.shape[1] else cost

    def allowed(self, people: Index, own: Array) -> Mask:
        """Who gets a yes after a change that keeps to the action set."""
        good = np.zeros(len(own), dtype=bool)
        for begin in range(0, len(own), MAX_ROWS):
            if self.until():
                break
            rows = np.arange(begin, min(begin + MAX_ROWS, len(own)))
            rows = rows[self.problem.respected(people[rows], own[rows])]
            good[rows] = self.problem.accepted(people[rows], own[rows])
        return good

    # --- attempts ------------------------------------------------------------------------------------------------

    def begin(self, people: Index, own: Array) -> None:
        """Make new attempts of whichever changes lead to a yes."""
        own = self.room.snap(people, own)
        rows, own = self.room.settle(people, own)
        people = people[rows]
        good = self.allowed(people, own)
        self.person = np.concatenate([self.person, people[good]])
        self.own = np.vstack([self.own, own[good]])
        self.worth = np.concatenate([self.worth, self.objective(people[good], own[good])])

    def keep(self, count: int) -> None:
        """Drop all but the cheapest few attempts of each person, and those that have become the same."""
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
        """Replace attempts by the cheapest allowed change offered for each, if it is cheaper; which were replaced."""
        improved = np.zeros(len(self), dtype=bool)
        own = self.room.snap(self.person[attempt], own)
        cheaper = self._cheaper(attempt, own)
        attempt, own = attempt[cheaper], own[cheaper]
        rows, own = self.room.settle(self.person[attempt], own)
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

    def pull(
        self, people: Index, path: Callable[[Index, Array], Array], rounds: int, end: float = 1.0
    ) -> tuple[Array, Array]:
        """How early on their path people get a yes.

        Parameters
        ----------
        people : ndarray of int, shape (n_rows,)
            Whose path it is.
        path : callable
            Takes rows and places, from 0 on, and returns changes.
        rounds : int
            Number of calls of the model; each makes the bracket eight times smaller.
        end : float
            The last place of the path.

        Returns
        -------
        place : ndarray of shape (n_rows,)
            The earliest place found where the change is allowed; infinite if none is.
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
            tried = self.room.snap(people[rows], path(rows, places))
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
        """Offer changes of single features, and the first two, three, ... of an attempt's together, dearest first."""
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
            # Each row takes over what the rows before it of the same attempt change.
            rows = np.flatnonzero(rank >= back)
            together[rows, feature[rows - back]] = value[rows - back]
        return self.offer(np.concatenate([attempt, attempt]), np.vstack([own, together]))


def step_over(problem: Problem, room: Room, people: Index, own: Array) -> tuple[Array, Mask]:
    """Go a hair beyond the boundary, and be accepted there in one call of the model for everybody.

    Parameters
    ----------
    problem : Problem
        The people.
    room : Room
        Where they can go.
    people : ndarray of int
        Who.
    own : ndarray of shape (n_rows, n_features)
        Changes that lead to the boundary.

    Returns
    -------
    own : ndarray
        Changes a hair farther.
    good : ndarray of bool
        Whether they are accepted and allowed.
    """
    start = room.start[people]
    over, good = own.copy(), np.zeros(len(own), dtype=bool)
    for hair in _HAIRS:
        left = np.flatnonzero(~good)
        if len(left) == 0:
            break
        farther = own[left] + hair * (own[left] - start[left])
        over[left] = room.snap(people[left], np.where(room.continuous, farther, own[left]))
        good = problem.respected(people, over) & problem.accepted(people, over)
    return over, good
