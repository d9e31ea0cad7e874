"""Exact recourse before trees, forests and boosted trees: branch and bound over the cells of the features."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from equirecourse.recourse._apart import has_processes, has_workers_apart, solve_apart
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._trees import _program
from equirecourse.recourse._trees._cells import Cells, cells_of
from equirecourse.recourse._trees._ensembles import Ensemble, can_read, read_ensemble, tree_view
from equirecourse.recourse._trees._greedy import first_guess
from equirecourse.recourse._trees._partition import Axis, partition
from equirecourse.recourse._trees._person import Leaves, Places, Rules, Trees, lay_out, reachable_leaves
from equirecourse.recourse._trees._points import Ballot, Stack
from equirecourse.recourse._trees._search import open_stack, search

__all__ = ["can_read", "solve"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Ints = NDArray[np.intp]

_CHUNK = 128  # people at a time, so that tables of cells stay small
_BOXES = 2000  # looked at between two looks at the clock
_LARGE = 20_000  # nodes from which on it pays to begin with the neighbourhood of a person
_REFUSALS = 20  # of single points by the model itself, before the search for a person is given up


def solve(problem: Problem, *, always_milp: bool = False) -> Answers:
    """Cheapest accepted action of each person under a model that consists of trees, proven.

    Parameters
    ----------
    problem : Problem
        Whose model's last estimator consists of trees.
    always_milp : bool
        Solve one mixed-integer program per person even where the search is as exact; linked numbers need it anyway.

    Returns
    -------
    Answers
        With everybody found or proven to have no action, except where time ran out.

    Raises
    ------
    Opaque
        If the trees cannot be read, or what they see cannot be traced back to features one by one.
    """
    view = tree_view(problem.view)
    ensemble = read_ensemble(view)
    axes = partition(problem, ensemble, view)
    own = ensemble.answers(view.inputs(problem.table))
    if always_milp or problem.actions.links:
        if has_processes(problem.n_jobs):
            return solve_apart(problem, _program.solve, lambda lot: (ensemble, axes, own[lot]))
        return _program.solve(problem, ensemble, axes, own)
    setting = _Setting.of(problem, ensemble, axes)
    if has_workers_apart(problem.n_jobs):
        bare = replace(setting, problem=problem.sent(np.arange(0)))
        return solve_apart(problem, _solve_lot, lambda lot: (bare, own[lot]), least=_CHUNK)
    answers = Answers.nothing(problem)
    # Compiled code runs without the interpreter's lock: threads share everything and nothing is copied.
    workers = Parallel(n_jobs=problem.n_jobs, require="sharedmem")
    workers(delayed(_solve_chunk)(setting, people, own[people], answers) for people in _chunks(len(own)))
    return answers


def _solve_lot(problem: Problem, setting: _Setting, own: Mask) -> Answers:
    """Answers for some people who were sent to another process, with everything that is the same for everybody."""
    answers = Answers.nothing(problem)
    for people in _chunks(len(own)):
        _solve_chunk(replace(setting, problem=problem), people, own[people], answers)
    return answers


def _chunks(n_people: int) -> list[Ints]:
    return [np.arange(i, min(i + _CHUNK, n_people)) for i in range(0, n_people, _CHUNK)]


@dataclass(frozen=True)
class _Setting:
    """What is the same for everybody."""

    problem: Problem
    axes: list[Axis]
    trees: Trees
    ballot: Ballot
    row: NDArray[np.int32]
    n_cells: NDArray[np.int64]
    n_words: int

    @classmethod
    def of(cls, problem: Problem, ensemble: Ensemble, axes: list[Axis]) -> _Setting:
        sets = [j for j, axis in enumerate(axes) if not axis.is_ordered]
        row = np.full(len(axes), -1, dtype=np.int32)
        row[sets] = np.arange(len(sets))
        widest = max((axes[j].n_cells + 3 for j in sets), default=0)
        return cls(
            problem=problem,
            axes=axes,
            trees=_trees(ensemble, axes),
            ballot=_ballot(ensemble),
            row=row,
            n_cells=np.array([axis.n_cells for axis in axes], dtype=np.int64),
            n_words=-(-widest // 64),
        )


def _trees(ensemble: Ensemble, axes: list[Axis]) -> Trees:
    n = ensemble.n_questions
    feature, table = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    turn, below = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    sets = [axis for axis in axes if axis.left is not None]
    answers = np.zeros((sum(len(a.questions) for a in sets), max((a.n_cells for a in sets), default=0)), dtype=np.uint8)
    filled = 0
    for j, axis in enumerate(axes):
        feature[axis.questions] = j
        if axis.left is None:
            turn[axis.questions], below[axis.questions] = axis.turn, axis.left_below
        else:
            rows = np.arange(filled, filled := filled + len(axis.questions))
            table[axis.questions] = rows
            answers[rows, : axis.n_cells] = axis.left
    return Trees(
        base=ensemble.base[1] - ensemble.base[0],
        longest_path=ensemble.longest_path,
        roots=ensemble.roots.astype(np.int64),
        left=ensemble.left.astype(np.int64),
        right=ensemble.right.astype(np.int64),
        question=ensemble.question.astype(np.int64),
        value=ensemble.votes[:, 1] - ensemble.votes[:, 0],
        feature=feature,
        turn=turn,
        left_below=below,
        table=table,
        answers=answers,
    )


def _ballot(ensemble: Ensemble) -> Ballot:
    return Ballot(
        votes=ensemble.votes,
        against=ensemble.base[0],
        favour=ensemble.base[1],
        divisor=ensemble.divisor,
        wins_ties=ensemble.wins_ties,
        single=ensemble.single_sums,
        tolerance=ensemble.rounding,
    )


# --- people --------------------------------------------------------------------------------------------------------


def _solve_chunk(setting: _Setting, people: Ints, own: Mask, answers: Answers) -> None:
    problem = setting.problem
    cells = [cells_of(problem, j, axis, people) for j, axis in enumerate(setting.axes)]
    persons = [_Person(setting, cells, i, own[i]) for i in range(len(people))]
    for person in persons:
        person.run(problem.time_limit)
        problem.tick(1)
    waiting = list(range(len(people)))
    while waiting:
        found = [i for i in waiting if persons[i].found]
        values = np.array([persons[i].values for i in found]).reshape(len(found), len(cells))
        accepted = problem.accepted(people[found], values) if found else np.zeros(0, dtype=bool)
        waiting = [i for i, yes in zip(found, accepted, strict=True) if not yes]
        # The model's own steps may round differently from what was found about them: rule out this very point.
        for i in waiting:
            persons[i].refuse(problem.time_limit)
    for i, person in zip(people, persons, strict=True):
        answers.own[i] = person.values if person.found else problem.start[i]
        answers.found[i], answers.proven[i] = person.found, person.proven
        answers.lower[i] = np.inf if person.proven and not person.found else person.lower


class _Person:
    """The search for one person's cheapest accepted action."""

    def __init__(self, setting: _Setting, cells: list[Cells], i: int, own: Mask) -> None:
        self.setting, self.cells, self.i = setting, cells, i
        self.own = own.astype(np.uint8)
        self.largest = setting.problem.aggregate == "max"
        self.is_root = setting.problem.aggregate == "root"
        costs = [part.costs[i] for part in cells]
        self.cost_begin = np.concatenate([[0], np.cumsum([len(part) for part in costs])]).astype(np.int64)
        self.costs = np.concatenate([*costs, np.zeros(0)])
        if self.is_root:
            self.costs = np.square(self.costs)
        ranks = [
            np.argsort(part, kind="stable") if row >= 0 else np.arange(len(part))
            for part, row in zip(costs, setting.row, strict=True)
        ]
        self.order = np.concatenate([*ranks, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        self.here = np.array([part.here[i] for part in cells], dtype=np.int64)
        self.bans = np.zeros((0, len(cells)), dtype=np.int32)
        self.columns: NDArray[np.int32] | None = None
        self.proven = False
        self.lower = 0.0

    @property
    def found(self) -> bool:
        """Whether there is an accepted action."""
        return self.columns is not None

    @property
    def values(self) -> Array:
        """Where the features move to."""
        assert self.columns is not None
        return np.array([part.values[self.i, c] for part, c in zip(self.cells, self.columns, strict=True)])

    def refuse(self, time_limit: float) -> None:
        """The model said no to the point that was found: look for another."""
        assert self.columns is not None
        self.bans = np.vstack([self.bans, self.columns[None, :]])
        self.columns = None
        self.proven = False
        if len(self.bans) <= _REFUSALS:
            self.run(time_limit)

    def run(self, time_limit: float) -> None:
        """Search until the answer is proven or time is over."""
        deadline = time.monotonic() + time_limit
        setting = self.setting
        cost = np.inf
        for budget in self._budgets():
            places, leaves, rules = self._view(budget)
            x = np.zeros(len(self.cells), dtype=np.int32)
            cost = first_guess(places, leaves, rules, setting.ballot, self.bans, self.largest, budget, x)
            if cost < np.inf:
                self.columns = places.column[places.begin[:-1] + x]
                places, leaves, rules = self._view(cost)  # what costs more is of no use any more
                break
        stack, size, best = open_stack(places, leaves, setting.n_words, 64), 1, cost
        while size > 0 and time.monotonic() < deadline:
            if size + 2 > len(stack.low):
                stack = _roomier(stack)
            size, cost = search(
                places, leaves, rules, setting.ballot, self.bans, self.largest, stack, size, best, x, _BOXES
            )
            if cost < best:
                best = cost
                self.columns = places.column[places.begin[:-1] + x]
        self.proven = size == 0
        self.lower = self._root(best if self.proven else min(best, _least(places, stack, size, self.largest)))

    def _root(self, cost: float) -> float:
        return float(np.sqrt(cost)) if self.is_root else float(cost)

    def _budgets(self) -> list[float]:
        """How dear the first action may be: in large forests, the neighbourhood of a person is seen much sooner."""
        if len(self.setting.trees.left) < _LARGE:
            return [np.inf]
        first = [self.costs[a + 1 : b] for a, b in zip(self.cost_begin[:-1], self.cost_begin[1:], strict=True)]
        nearest = [part.min() for part in first if len(part) and np.isfinite(part.min())]
        if not nearest:
            return [np.inf]
        start = 4.0 * float(np.median(nearest))
        return [start, 16.0 * start, 256.0 * start, np.inf] if start > 0 else [np.inf]

    def _view(self, budget: float) -> tuple[Places, Leaves, Rules]:
        setting = self.setting
        places = lay_out(self.costs, self.order, self.cost_begin, setting.n_cells, setting.row, self.here, budget)
        leaves = reachable_leaves(setting.trees, places, self.own, setting.n_words, budget, self.largest)
        return places, leaves, self._rules(places)

    def _rules(self, places: Places) -> Rules:
        actions = self.setting.problem.actions
        shape = (len(actions.rules), len(places.cost))
        this, that = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        ends: list[list[int]] = [[], []]
        for i, rule in enumerate(actions.rules):
            for side, (condition, table, wanted) in enumerate(((rule.when, this, False), (rule.then, that, True))):
                j = actions.index(condition.feature)
                ends[side].append(j)
                some = slice(places.begin[j], places.begin[j + 1])
                values = self.cells[j].values[self.i]
                holds = condition.holds(actions.features[j], values[0], values[places.column[some]])
                table[i, some] = holds == wanted
        return Rules(np.array(ends[0], dtype=np.int64), np.array(ends[1], dtype=np.int64), this, that)


def _roomier(stack: Stack) -> Stack:
    """The same stack with twice the room."""
    return Stack(*(np.concatenate([part, np.zeros_like(part)]) for part in stack))


def _least(places: Places, stack: Stack, size: int, largest: bool) -> float:
    """Cost of the cheapest point of the boxes that are left."""
    least = np.inf
    for i in range(size):
        parts = []
        for j, home in enumerate(places.home):
            costs: Any = places.cost[places.begin[j] : places.begin[j + 1]]
            if places.row[j] < 0:
                parts.append(costs[min(max(home, stack.low[i, j]), stack.high[i, j])])
            else:
                bits = np.unpackbits(stack.words[i, places.row[j]].view(np.uint8), bitorder="little")
                parts.append(costs[np.flatnonzero(bits[: len(costs)])[0]])
        least = min(least, max(parts, default=0.0) if largest else sum(parts))
    return float(least)
