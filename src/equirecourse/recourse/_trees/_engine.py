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
from equirecourse.recourse._trees._linked import Options, linked_options
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
_SAME = 1.0 - 1e-9  # costs that agree to this are equal
_REFUSALS = 20  # of single points by the model itself, before the search for a person is given up


def solve(problem: Problem, *, always_milp: bool = False) -> Answers:
    """Cheapest accepted action of each person under a model that consists of trees, proven.

    Parameters
    ----------
    problem : Problem
        Whose model's last estimator consists of trees.
    always_milp : bool
        Solve one mixed-integer program per person instead of a search.

    Returns
    -------
    Answers
        With everybody found or proven to have no action, except where time ran out.

    Raises
    ------
    Opaque
        If the trees cannot be read, or what they see cannot be traced back to features one by one.
    """
    view = tree_view(problem.view, problem.table)
    ensemble = read_ensemble(view, problem.table)
    axes = partition(problem, ensemble, view)
    current = ensemble.answers(view.inputs(problem.table))
    if always_milp:
        if has_processes(problem.n_jobs):
            return solve_apart(problem, _program.solve, lambda batch: (ensemble, axes, current[batch]))
        return _program.solve(problem, ensemble, axes, current)
    setting = _Setting.of(problem, ensemble, axes)
    if has_workers_apart(problem.n_jobs):
        bare = replace(setting, problem=problem.sent(np.arange(0)))
        return solve_apart(problem, _solve_batch, lambda batch: (bare, current[batch]), least=_CHUNK)
    answers = Answers.nothing(problem)
    # Compiled code runs without the interpreter's lock: threads share everything and nothing is copied.
    workers = Parallel(n_jobs=problem.n_jobs, require="sharedmem")
    workers(delayed(_solve_chunk)(setting, people, current[people], answers) for people in _chunks(len(current)))
    return answers


def _solve_batch(problem: Problem, setting: _Setting, current: Mask) -> Answers:
    """Answers for some people who were sent to another process, with everything that is the same for everybody."""
    answers = Answers.nothing(problem)
    for people in _chunks(len(current)):
        _solve_chunk(replace(setting, problem=problem), people, current[people], answers)
    return answers


def _chunks(n_people: int) -> list[Ints]:
    return [np.arange(i, min(i + _CHUNK, n_people)) for i in range(0, n_people, _CHUNK)]


@dataclass(frozen=True)
class _Setting:
    """What is the same for everybody.

    The first feature of a group of linked ones stands for all of them: its places are what they can do together. The
    others have one place, to stay.
    """

    problem: Problem
    axes: list[Axis]
    trees: Trees
    ballot: Ballot
    row: NDArray[np.int32]
    n_cells: NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem, ensemble: Ensemble, axes: list[Axis]) -> _Setting:
        leads = {j: group[0] for group in problem.actions.linked_groups for j in group}
        sets = [j for j, axis in enumerate(axes) if leads.get(j, j) == j and (j in leads or not axis.is_ordered)]
        row = np.full(len(axes), -1, dtype=np.int32)
        row[sets] = np.arange(len(sets))
        return cls(
            problem=problem,
            axes=axes,
            trees=_trees(ensemble, axes, leads),
            ballot=_ballot(ensemble),
            row=row,
            n_cells=np.array([1 if j in leads else axis.n_cells for j, axis in enumerate(axes)], dtype=np.int64),
        )


def _trees(ensemble: Ensemble, axes: list[Axis], leads: dict[int, int]) -> Trees:
    n = ensemble.n_questions
    feature, table = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    turn, below = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    sets = [axis for j, axis in enumerate(axes) if j in leads or not axis.is_ordered]
    answers = np.zeros((sum(len(a.questions) for a in sets), max((a.n_cells for a in sets), default=0)), dtype=np.uint8)
    filled = 0
    for j, axis in enumerate(axes):
        feature[axis.questions] = leads.get(j, j)
        if axis.is_ordered and j not in leads:
            turn[axis.questions], below[axis.questions] = axis.turn, axis.left_below
        else:
            rows = np.arange(filled, filled := filled + len(axis.questions))
            table[axis.questions] = rows
            for position, at in enumerate(rows):
                answers[at, : axis.n_cells] = axis.answers(position)
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


def _solve_chunk(setting: _Setting, people: Ints, current: Mask, answers: Answers) -> None:
    problem = setting.problem
    cells = [cells_of(problem, j, axis, people) for j, axis in enumerate(setting.axes)]
    persons = [
        _Person(setting, cells, i, current[i], linked_options(problem, setting.axes, int(people[i])))
        for i in range(len(people))
    ]
    if np.isfinite(problem.time_limit):
        persons[0].compile()
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
        answers.found[i], answers.proven[i], answers.stopped[i] = person.found, person.proven, person.stopped
        answers.lower[i] = np.inf if person.proven and not person.found else person.lower


class _Person:
    """The search for one person's cheapest accepted action."""

    def __init__(self, setting: _Setting, cells: list[Cells], i: int, current: Mask, linked: list[Options]) -> None:
        self.setting, self.cells, self.i, self.linked = setting, cells, i, linked
        self.current = current.astype(np.uint8)
        self.cost = setting.problem.cost
        self.largest = self.cost.is_largest
        costs = [part.costs[i] for part in cells]
        self.n_cells, self.trees = setting.n_cells.copy(), setting.trees
        for options in linked:
            for j in options.features:
                costs[j] = np.array([0.0, np.inf, np.inf, np.inf])  # to stay, in the only cell there is
            lead = options.features[0]
            costs[lead], self.n_cells[lead] = options.costs, len(options.costs) - 1
        if linked:
            self.trees = self.trees._replace(answers=self._answers())
        self.n_words = -(-max((len(costs[j]) for j in np.flatnonzero(setting.row >= 0)), default=0) // 64)
        self.cost_begin = np.concatenate([[0], np.cumsum([len(part) for part in costs])]).astype(np.int64)
        self.costs = np.concatenate([*costs, np.zeros(0)])
        self.costs = self.cost.addends(self.costs)
        ranks = [
            np.argsort(part, kind="stable") if row >= 0 else np.arange(len(part))
            for part, row in zip(costs, setting.row, strict=True)
        ]
        self.order = np.concatenate([*ranks, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        self.here = np.array([part.here[i] for part in cells], dtype=np.int64)
        self.here[[j for options in linked for j in options.features]] = 0
        self.bans = np.zeros((0, len(cells)), dtype=np.int32)
        self.columns: NDArray[np.int32] | None = None
        self.proven = self.stopped = False
        self.lower = 0.0
        self.doubt = np.inf  # the cost of the cheapest point that the model refused: others of its cells may do

    def _answers(self) -> NDArray[np.uint8]:
        """Answers to the questions about sets, in the cells of labels and with the options of linked features."""
        trees, widest = self.setting.trees, max(len(options.costs) - 1 for options in self.linked)
        answers = np.zeros((len(trees.answers), max(trees.answers.shape[1], widest)), dtype=np.uint8)
        answers[:, : trees.answers.shape[1]] = trees.answers
        for options in self.linked:
            for place, j in enumerate(options.features):
                cells, questions = options.cells[1:, place], self.setting.axes[j].questions
                rows = trees.table[questions]
                # Where the person is, the answer is the person's own.
                answers[rows, : len(cells)] = np.where(
                    cells < 0, self.current[questions][:, None], trees.answers[rows][:, np.maximum(cells, 0)]
                )
        return answers

    @property
    def found(self) -> bool:
        """Whether there is an accepted action."""
        return self.columns is not None

    @property
    def values(self) -> Array:
        """Where the features move to."""
        assert self.columns is not None
        linked = {j for options in self.linked for j in options.features}
        values = np.array(
            [
                np.nan if j in linked else part.values[self.i, c]
                for j, (part, c) in enumerate(zip(self.cells, self.columns, strict=True))
            ]
        )
        for options in self.linked:
            values[list(options.features)] = options.own[self.columns[options.features[0]]]
        return values

    def refuse(self, time_limit: float) -> None:
        """The model said no to the point that was found: look for another."""
        assert self.columns is not None
        self.doubt = min(self.doubt, self.lower)
        self.bans = np.vstack([self.bans, self.columns[None, :]])
        self.columns = None
        self.proven = False
        if len(self.bans) <= _REFUSALS:
            self.run(time_limit)

    def compile(self) -> None:
        """Call what the search is made of once, without work: compiling is not part of anybody's time."""
        setting, x = self.setting, np.zeros(len(self.cells), dtype=np.int32)
        places, leaves, rules = self._view(np.inf)
        first_guess(places, leaves, rules, setting.ballot, self.bans, self.largest, 0.0, x)
        stack = open_stack(places, leaves, self.n_words, 1)
        search(places, leaves, rules, setting.ballot, self.bans, self.largest, stack, 0, np.inf, x, 0)

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
        stack, size, best = open_stack(places, leaves, self.n_words, 64), 1, cost
        while size > 0 and time.monotonic() < deadline:
            if size + 2 > len(stack.low):
                stack = _roomier(stack)
            size, cost = search(
                places, leaves, rules, setting.ballot, self.bans, self.largest, stack, size, best, x, _BOXES
            )
            if cost < best:
                best = cost
                self.columns = places.column[places.begin[:-1] + x]
        self.stopped = size > 0
        least = best if size == 0 else min(best, _least(places, stack, size, self.largest))
        self.lower = float(self.cost.from_sum(least))
        missing = min((options.missing for options in self.linked), default=np.inf)
        missing = min(missing, self.doubt)
        if self.found:
            self.proven = size == 0 and self.lower * _SAME <= missing
        else:
            self.proven = size == 0 and self.doubt == np.inf and all(options.complete for options in self.linked)
        if not self.proven:
            self.lower = min(self.lower, missing)

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
        places = lay_out(self.costs, self.order, self.cost_begin, self.n_cells, setting.row, self.here, budget)
        leaves = reachable_leaves(self.trees, places, self.current, self.n_words, budget, self.largest)
        return places, leaves, self._rules(places)

    def _ends(self, j: int) -> tuple[int, Array]:
        """The feature that stands for a feature in the search, and where the feature ends up, by column of that."""
        for options in self.linked:
            if j in options.features:
                return options.features[0], options.ends[:, options.features.index(j)]
        return j, self.cells[j].values[self.i]

    def _rules(self, places: Places) -> Rules:
        actions = self.setting.problem.actions
        shape = (len(actions.rules), len(places.cost))
        this, that = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        ends: list[list[int]] = [[], []]
        for i, rule in enumerate(actions.rules):
            for side, (condition, table, wanted) in enumerate(((rule.when, this, False), (rule.then, that, True))):
                j = actions.index(condition.feature)
                lead, values = self._ends(j)
                ends[side].append(lead)
                some = slice(places.begin[lead], places.begin[lead + 1])
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
