"""Linked numbers, moved together: what they can do is listed, and then searched like the labels of one feature.

A group of features that links join reaches a *joint cell*: one cell for each of them, where it ends up. Of all own
moves that reach a joint cell only the cheapest matters. It is among finitely many candidates:

* a number that is carried along but carries nothing moves to the near end of each of its cells, less what the links do;
* one source is *free*: given all other moves, its moves that keep a joint cell are an interval, and a convex cost has
  its minimum at one end of it, where nothing moves, or where two costs balance; a lattice, next to such a value;
* what is left (more sources, and lattices that are carried along) is enumerated.

Each candidate is moved, carried along, priced and checked by the action set itself, so that no rounding is assumed.
What could not be listed is bounded: no action that uses it costs less than ``missing``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import ActionSet, Distance, Feature
from equirecourse.actions._changes import without_rounding
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._trees._cells import asks_for_moves
from equirecourse.recourse._trees._partition import Axis

__all__ = ["Options", "linked_options"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

_LEAST = 1.000001e-9  # move of a carried number, relative to its size: a hair more than what counts as rounding
_MANY = 200_000  # candidates for one person: half a second
# Rounding puts a value that was computed to lie on a border on either side of it: a few nearby values are tried too.
_NEARBY = np.array([0.0, 4e-16, -4e-16, 1e-14, -1e-14, 1e-12, -1e-12])


@dataclass(frozen=True)
class Options:
    """What one person can do with a group of linked features; to stay comes first.

    Attributes
    ----------
    features : tuple of int
        The group.
    own, ends : ndarray of shape (n_options, n_features)
        Where the person moves each feature, and where it ends up.
    cells : ndarray of int, shape (n_options, n_features)
        The cells of the features' axes there; −1 where the person is now.
    costs : ndarray of shape (n_options,)
        What it costs; each option is the cheapest that is known for its joint cell.
    missing : float
        No action with a move that is not listed costs less; infinite if the options are known to be the cheapest.
    complete : bool
        Whether every joint cell that can be reached is listed, at whatever cost.
    """

    features: tuple[int, ...]
    own: Array
    ends: Array
    cells: Ints
    costs: Array
    missing: float
    complete: bool


def linked_options(problem: Problem, axes: list[Axis], person: int) -> list[Options]:
    """What a person can do with each group of linked features.

    Parameters
    ----------
    problem : Problem
        Whose action set has links.
    axes : list of Axis
        The cells of each feature.
    person : int
        The person's position.

    Returns
    -------
    list of Options
        One per group.
    """
    return [_Group(problem, axes, group, person).options() for group in problem.actions.linked_groups]


class _Number(NamedTuple):
    """One feature of a group, for one person."""

    feature: Feature
    start: float
    low: float  # of its own moves; low > high if it has none
    high: float
    cuts: Array  # first values of its cells but the first, with what rules can tell apart

    @property
    def moves(self) -> bool:
        return self.low <= self.high

    @property
    def marks(self) -> Array:
        """Each cut and the value before it, the limits of where it may end up, the start and the smallest moves."""
        limits = [side for side in (self.feature.low, self.feature.high) if np.isfinite(side)]
        hair = 1.000001e-9 * max(1.0, abs(self.start))  # what a carried number has to move to be told from rounding
        return np.concatenate(
            [self.cuts, np.nextafter(self.cuts, -np.inf), limits, self.start + hair * np.arange(-1, 2)]
        )

    @property
    def need(self) -> float:
        """How far it is to the last mark, and two steps more."""
        span = float(np.abs(self.marks - self.start).max(initial=0.0))
        return span + 2.0 * (self.feature.step or 0.0)


class _Group:
    """The candidates of one group of linked features, for one person."""

    def __init__(self, problem: Problem, axes: list[Axis], group: tuple[int, ...], person: int) -> None:
        self.problem, self.axes, self.group, self.person = problem, axes, group, person
        self.start = problem.start[person]
        self.numbers = {j: self._number(j) for j in group}
        actions = problem.actions
        self.rates: dict[tuple[int, int], float] = {}  # (source, target) → rate, of sources that move
        for link in actions.links:
            source, target = actions.index(link.source), actions.index(link.target)
            known = not np.isnan(self.start[target])
            if source in self.numbers and self.numbers[source].moves and link.rate != 0.0 and known:
                self.rates[source, target] = link.rate
        self.missing, self.complete = np.inf, True
        self.cut_short: list[int] = []  # lattices that go on beyond what was enumerated

    def _number(self, j: int) -> _Number:
        feature, start = self.problem.actions.features[j], float(self.start[j])
        low, high = (float(side[self.person, j]) for side in self.problem.reach)
        ends = [start, *((low, high) if low <= high else ())]
        if any(link.target == feature.name for link in self.problem.actions.links):
            ends += [feature.low, feature.high]
        # What lies beyond is there for the sake of other people.
        cuts = self.axes[j].cuts
        cuts = cuts[(cuts > min(ends)) & (cuts <= max(ends))]
        if asks_for_moves(self.problem, feature.name) and not np.isnan(start):
            cuts = np.unique(np.concatenate([cuts, [start, np.nextafter(start, np.inf)]]))
        return _Number(feature, start, low, high, cuts)

    def options(self) -> Options:
        """The cheapest candidate of each joint cell."""
        own = self.start[None, :]
        free, listed, carried = self._roles()
        later = [len(self._critical(own, free)[0])] if free is not None else []
        later += [len(self._near_ends(own, j)[0]) for j in carried]
        for j in listed:
            own = self._enumerated(own, j, int(np.prod(later)))
        if free is not None:
            own = self._expanded(own, free, self._critical(own, free))
        for j in carried:
            own = self._expanded(own, j, self._near_ends(own, j))
        return self._cheapest(own, free)

    def _roles(self) -> tuple[int | None, list[int], list[int]]:
        """The free source, the features whose values are enumerated, and those that are only carried along."""
        sources = [j for j in self.group if any(source == j for source, _ in self.rates)]
        carried = [j for j in self.group if self.numbers[j].moves and j not in sources]
        # A continuous source is never enumerated if that can be helped, nor is the one with the most values.
        free = max(sources, key=self._size, default=None)
        pulled = {target for _, target in self.rates}
        lattices = [j for j in carried if j in pulled and self.numbers[j].feature.step is not None]
        listed = [j for j in sources if j != free] + lattices
        if free is not None and not self._is_simple(free, [j for j in carried if j not in listed]):
            self.missing = 0.0
        return free, listed, [j for j in carried if j not in listed]

    def _size(self, j: int) -> float:
        number = self.numbers[j]
        return np.inf if number.feature.step is None else (number.high - number.low) / number.feature.step

    def _is_simple(self, free: int, carried: list[int]) -> bool:
        """Whether the best move of the free source is sure to be among its critical values."""
        balanced = [j for j in carried if (free, j) in self.rates]
        cost = self.problem.cost
        # A sum of distances is least at a corner; of the others one balance of two numbers is known in closed form.
        most = (len(self.group) if cost.exponent == 1.0 else 1) if cost.is_distance else 0
        return len(balanced) <= most

    def _enumerated(self, own: Array, j: int, later: int) -> Array:
        """Every value of a feature, as far as it may be of use, and as the number of later candidates allows."""
        number = self.numbers[j]
        step, start = number.feature.step, number.start
        if step is None:  # a second continuous source: some values, and no claim
            self.missing, self.complete = 0.0, False
            values = number.marks[(number.marks >= number.low) & (number.marks <= number.high)]
            return self._expanded(own, j, np.tile(values, (len(own), 1)))
        reach, room = self._reach(j), max(_MANY / (2.0 * len(own) * later), 1.0) * step
        sides = start - min(reach, room), start + min(reach, room)
        low, high = max(number.low, sides[0]), min(number.high, sides[1])
        for side, limit in zip(sides, (number.low, number.high), strict=True):
            if abs(limit - start) > abs(side - start):
                self.missing = min(self.missing, float(number.feature.move_cost(self.problem.norm, start, side)))
                self.complete &= room > reach
                self.cut_short.append(j)
        places = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1.0)
        return self._expanded(own, j, np.tile(places * step, (len(own), 1)))

    def _reach(self, j: int) -> float:
        """How far a feature may have to go for its own marks, for those of what it carries, and against its sources."""
        far = 2.0 * self.numbers[j].need
        for (source, target), rate in self.rates.items():
            if target == j:
                far += abs(rate) * self.numbers[source].need
            if source == j:
                others = [(s, r) for (s, t), r in self.rates.items() if t == target and s != j]
                far += (self.numbers[target].need + sum(abs(r) * self.numbers[s].need for s, r in others)) / abs(rate)
        return far

    def _carried(self, own: Array, j: int) -> Array:
        """How far links take a feature."""
        ends = self.problem.actions.carry(np.broadcast_to(self.start, own.shape), own)
        return np.asarray(ends[:, j] - own[:, j])

    def _critical(self, own: Array, j: int) -> Array:
        """Values of the free source where a joint cell begins or ends, or where its cost balances another."""
        number = self.numbers[j]
        aims = [np.tile(number.marks, (len(own), 1))]
        aims += [np.full((len(own), 1), side) for side in (number.low, number.high) if np.isfinite(side)]
        for (source, target), rate in self.rates.items():
            if source != j:
                continue
            other = self.numbers[target]
            by_others = self._carried(own, target)
            here = other.marks[None, :] - by_others[:, None]  # where the target and this source are to take it
            sides = [side for side in (other.low, other.high) if np.isfinite(side)] if other.moves else []
            for base in (own[:, target], *(np.full(len(own), side) for side in sides)):
                aims.append(number.start + (here - base[:, None]) / rate)
            cost = self.problem.cost
            if other.moves and isinstance(cost, Distance) and cost.exponent > 1.0:
                move = cost.balance(here - other.start, rate, number.feature.cost, other.feature.cost)
                aims.append(number.start + move)
        return _around(np.concatenate(aims, axis=1), number)

    def _near_ends(self, own: Array, j: int) -> Array:
        """Values of a feature at the near end of each of its cells, less what links do to it, and its least moves.

        What is even less, the action set takes for a rounding error of the links.
        """
        number, carried = self.numbers[j], self._carried(own, j)
        least = _LEAST * np.maximum(1.0, np.maximum(abs(number.start), np.abs(number.start + carried)))
        ends = _around(number.marks[None, :] - carried[:, None], number)
        if number.feature.step is not None:  # its moves are whole steps
            return ends
        return np.column_stack([ends, number.start - least, number.start + least])

    def _expanded(self, own: Array, j: int, values: Array) -> Array:
        """All rows, with the feature where it was and at each value of its row that it may be moved to."""
        number = self.numbers[j]
        fits = (values >= number.low - _slack(number.low)) & (values <= number.high + _slack(number.high))
        values = np.concatenate([own[:, [j]], np.where(fits, values, own[:, [j]])], axis=1)
        values.sort(axis=1)
        is_new = np.concatenate([np.ones((len(own), 1), dtype=bool), values[:, 1:] != values[:, :-1]], axis=1)
        more = np.repeat(own, is_new.sum(axis=1), axis=0)
        more[:, j] = values[is_new]
        return more

    def _cheapest(self, own: Array, free: int | None) -> Options:
        actions, group = self.problem.actions, list(self.group)
        before = np.broadcast_to(self.start, own.shape)
        own = without_rounding(actions, before, own)
        own = own[ActionSet(actions.features, links=actions.links).respected(before, own)]
        before = before[: len(own)]
        ends = actions.carry(before, own)[:, group]
        parts = actions.costs(self.problem.norm, before, own)[:, group]
        costs = self.problem.cost.total(parts)
        place = np.column_stack([_cells(self.numbers[j].cuts, ends[:, k]) for k, j in enumerate(group)])
        stays = (own[:, group] == self.start[group]) | np.isnan(self.start[group])
        order = np.lexsort((~stays.all(axis=1), costs))
        _, first = np.unique(place[order], axis=0, return_index=True)
        kept = order[np.sort(first)]  # from cheap to dear: to stay comes first
        if self.cut_short and not self._is_covered(place[kept], free):
            self.complete = False
        cells = np.column_stack([_cells(self.axes[j].cuts, ends[kept][:, k]) for k, j in enumerate(group)])
        home = [_cells(self.axes[j].cuts, self.start[[j]])[0] for j in group]
        return Options(
            features=self.group,
            own=own[kept][:, group],
            ends=ends[kept],
            cells=np.where(cells == home, -1, cells),
            costs=costs[kept],
            missing=self.missing,
            complete=self.complete,
        )

    def _is_covered(self, place: Ints, free: int | None) -> bool:
        """Whether farther moves of the lattices that were not enumerated to their ends reach no other joint cell.

        They are of use only against moves of the free source far beyond all its marks, and what it carries along and
        cannot move itself is then beyond all its own. If every combination of the other targets' cells is listed with
        those, there is none left to reach.
        """
        if free is None or any(source != free for source, _ in self.rates):
            return False
        movable = [t for _, t in self.rates if self.numbers[t].moves]
        wanted = int(np.prod([len(self.numbers[t].cuts) + 1 for t in movable]))
        for way, limit in ((-1.0, self.numbers[free].low), (1.0, self.numbers[free].high)):
            if np.isfinite(limit):
                continue
            far = place[:, self.group.index(free)] == self._last_cell(free, way)
            for (_, target), rate in self.rates.items():
                if target not in movable:
                    far &= place[:, self.group.index(target)] == self._last_cell(target, way * rate)
            if len(np.unique(place[far][:, [self.group.index(t) for t in movable]], axis=0)) < wanted:
                return False
        return True

    def _last_cell(self, j: int, way: float) -> int:
        return len(self.numbers[j].cuts) if way > 0 else 0


def _cells(cuts: Array, values: Array) -> Ints:
    """The cell of each value; a missing one is in none."""
    return np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="right"))


def _around(values: Array, number: _Number) -> Array:
    """Values of a number and some next to them, within its limits: the nearest of a lattice, else by rounding error."""
    step = number.feature.step
    if step is not None:
        places = np.floor(values / step)
        return np.concatenate([(places + more) * step for more in (-1.0, 0.0, 1.0, 2.0)], axis=1)
    size = np.maximum(np.abs(values), abs(number.start))
    near = values[:, :, None] + size[:, :, None] * _NEARBY
    return np.asarray(np.clip(near.reshape(len(values), -1), number.low, number.high))


def _slack(limit: float) -> float:
    return 1e-9 * max(1.0, abs(limit)) if np.isfinite(limit) else 0.0
