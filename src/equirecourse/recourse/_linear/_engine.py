"""Linear models: closed forms without limits, a knapsack with them, a MILP where features hang together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions import Cost, Distance
from equirecourse.recourse._apart import has_processes, solve_apart
from equirecourse.recourse._linear import _program
from equirecourse.recourse._linear._compiled import solve_additive, solve_bottleneck
from equirecourse.recourse._linear._form import MARGINS, ROUNDING, LinearForm, coefficients, nudged, read_linear_form
from equirecourse.recourse._linear._knapsack import CONTINUOUS, FIXED, LATTICE, LIST
from equirecourse.recourse._linear._shifts import solve_shifts
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._view import View

__all__ = ["solve"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Bounds that agree to this are equal.
_TIE = 1e-8

# Going a hair farther is not seen in a cost that rises by less than this, relative to it (or a hundredth of it).
_HAIR = 1e-7

# People at a time, so that lists of moves (people × moves) stay small.
_CHUNK = 4096

# People at a time for whom a formula answers: what is put down for them stays in the cache until it is used.
_FAR = 1e8  # of the size of a number, and of its typical change
_FREE_CHUNK = 2**16


def solve(problem: Problem, *, always_milp: bool = False) -> Answers:
    """Cheapest accepted action of each person under a linear model, proven.

    Parameters
    ----------
    problem : Problem
        Whose model's last estimator is linear.
    always_milp : bool
        Solve one mixed-integer program per person even where something faster is as exact.

    Returns
    -------
    Answers
        With everybody found or proven to have no action, except where time ran out.
    """
    if not _can_price(problem.cost):
        raise Opaque(f"linear models have no proofs for norm={problem.norm!r}")
    form = read_linear_form(problem.view, problem.actions, problem.table, problem.start)
    answers = Answers.nothing(problem)
    if not always_milp and _is_free(problem, form):
        for start in range(0, len(problem.start), _FREE_CHUNK):
            _ask(problem, form, np.arange(start, min(start + _FREE_CHUNK, len(problem.start))), _free, answers)
        return _doubting(problem, answers)
    easy = np.zeros(len(problem.start), dtype=bool)
    knapsack = _separable if problem.cost.is_distance else solve_shifts
    for folded, people in () if always_milp else _fold_links(problem, form):
        easy[people] = ~_jumps(problem, folded)[people] if problem.cost.is_distance else True
        _ask(problem, folded, people[easy[people]], knapsack, answers)
    # What the knapsack could not prove, it has at least found: the program may do better where it knows every value.
    hard = np.flatnonzero(~easy | (~answers.proven & (~answers.found | problem.grids_are_whole)))
    if len(hard):
        _merge(problem, answers, _by_program(problem.take(hard), form.take(hard)), hard)
        problem.tick(int((~easy).sum()))
    return _doubting(problem, answers)


def _can_price(cost: Cost) -> bool:
    """Whether the knapsacks and programs of this engine are proofs for a cost."""
    if cost.is_distance:
        return cost.exponent in (1.0, 2.0, np.inf)
    return cost.is_percentile and (cost.is_rank_difference if cost.is_largest else cost.exponent == 1.0)


def _doubting(problem: Problem, answers: Answers) -> Answers:
    """The answers, without a proof for who would have to go so far that the model's own sums are rounding errors."""
    costs = np.array([feature.cost for feature in problem.actions])
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.abs(answers.own - problem.start)
        far = (moved * costs > _FAR) & (moved > _FAR * np.abs(problem.start))
    doubtful = answers.found & far.any(axis=1)
    answers.proven[doubtful], answers.lower[doubtful] = False, 0.0
    return answers


Engine = Callable[[Problem, LinearForm, Array], Answers]


def _ask(problem: Problem, form: LinearForm, people: NDArray[np.intp], engine: Engine, answers: Answers) -> None:
    """Put an engine's answers for some people into ``answers``.

    The engine aims a hair short of the boundary, because the model's own sum may be rounded up: no accepted action is
    cheaper than what it finds there. What the model refuses goes a hair farther, along a number that can; if none can,
    the engine aims beyond the boundary, and the two costs tell whether that is proven to be the best.
    """
    asked, rounding = problem.take(people), form.rounding(problem.start, people)
    needs = -form.scores[people] - rounding
    aimed = engine(asked, form.take(people), np.where(needs > 0.0, needs, rounding))
    # Who is on the boundary but for rounding has nothing to gain, as far as anybody can tell from outside the model.
    there = needs <= 0.0
    aimed.own[there], aimed.found[there], aimed.proven[there], aimed.lower[there] = asked.start[there], True, True, 0.0
    own, yes = aimed.own, np.zeros(len(people), dtype=bool)
    least = np.where(aimed.found, problem.costs(people, own), np.inf)
    close = form.is_close(problem.start, people, own)
    for margin in (0.0, *MARGINS):
        left = np.flatnonzero(aimed.found & ~yes)
        farther = nudged(asked, form.slopes, own, (1.0 + margin) * rounding)[left] if margin else own[left]
        # Whoever can go a hair farther does so at once: on the boundary itself a model may say this or that.
        if margin == 0.0:
            farther[close[left]] = nudged(asked, form.slopes, own, 2.0 * rounding)[left[close[left]]]
        accepted = _accepted(problem, form, people[left], farther)
        own[left[accepted]], yes[left[accepted]] = farther[accepted], True
    proven, lower = aimed.proven & (yes | ~aimed.found), aimed.lower.copy()
    for margin in MARGINS:
        left = np.flatnonzero(aimed.found & ~yes)
        if len(left) == 0:
            break
        beyond = engine(asked.take(left), form.take(people[left]), -form.scores[people[left]] + margin * rounding[left])
        accepted = beyond.found.copy()
        accepted[beyond.found] = _accepted(problem, form, people[left[beyond.found]], beyond.own[beyond.found])
        own[left[accepted]], yes[left[accepted]] = beyond.own[accepted], True
        if not beyond.found.any():
            break
    cost = problem.costs(people, own)
    if not problem.cost.is_distance:  # where percentiles rise steeply, a hair is not for nothing
        proven &= ~yes | (cost <= least * (1.0 + _HAIR) + _HAIR * 1e-2)
    proven |= yes & (lower >= cost * (1.0 - _TIE))
    answers.own[people] = np.where(yes[:, None], own, problem.start[people])
    answers.found[people], answers.proven[people], answers.lower[people] = yes, proven, lower
    answers.stopped[people] = aimed.stopped
    problem.tick(len(people))


def _accepted(problem: Problem, form: LinearForm, people: NDArray[np.intp], own: Array) -> Mask:
    """Whether the model says yes to some people after a change.

    Sums of products are rounded differently in tables of different lengths: where that decides, the person is asked
    about alone, so that the answer does not depend on who else is there.
    """
    yes = problem.accepted(people, own) if len(people) else np.zeros(0, dtype=bool)
    for k in np.flatnonzero(form.is_close(problem.start, people, own)):
        yes[k] = problem.accepted(people[[k]], own[[k]])[0]
    return yes


def _merge(problem: Problem, answers: Answers, second: Answers, people: NDArray[np.intp]) -> None:
    """Take the better of two answers for some people; the second ones are about them alone."""
    for k, i in enumerate(people):
        found = (answers.found[i], answers.own[[i]]), (second.found[k], second.own[[k]])
        costs = [float(problem.costs([i], own)[0]) if yes else np.inf for yes, own in found]
        if costs[1] < costs[0]:
            answers.own[i], answers.found[i] = second.own[k], True
        answers.lower[i] = max(answers.lower[i], second.lower[k])
        answers.stopped[i] = second.stopped[k]
        answers.proven[i] = second.proven[k] or answers.lower[i] >= min(costs) * (1.0 - _TIE)


def _is_free(problem: Problem, form: LinearForm) -> bool:
    """Whether nothing limits what people do to numbers, and labels stay: then a formula answers."""
    actions = problem.actions
    if not problem.cost.is_distance or actions.rules or actions.links or problem.frozen is not None:
        return False
    moves = [
        feature
        for j, feature in enumerate(actions)
        if feature.mutable and (form.slopes[j] or form.tables[j] is not None)
    ]
    return not np.isnan(problem.start).any() and all(feature.is_free for feature in moves)


def _free(problem: Problem, form: LinearForm, needs: Array) -> Answers:
    slopes = np.array(
        [slope if feature.mutable else 0.0 for slope, feature in zip(form.slopes, problem.actions, strict=True)]
    )
    prices = np.array([feature.cost for feature in problem.actions])
    assert isinstance(problem.cost, Distance)
    costs, direction = closed_form(-needs, slopes, prices, problem.cost)
    answers = Answers.nothing(problem)
    answers.found[:] = np.isfinite(costs)
    answers.own[answers.found] += needs[answers.found, None] * direction
    answers.proven[:] = True
    answers.lower[:] = costs
    return answers


def _by_program(problem: Problem, form: LinearForm) -> Answers:
    silent = replace(problem, tick=lambda _: None)  # whoever asks says when these people are done
    if has_processes(problem.n_jobs):
        return solve_apart(silent, _program.solve, lambda batch: (form.take(batch),))
    return _program.solve(silent, form)


def _fold_links(problem: Problem, form: LinearForm) -> Iterator[tuple[LinearForm, NDArray[np.intp]]]:
    """Forms in which features move independently, and the people of each; nobody if features do not.

    A number that carries another along gains what both do, as long as nothing else depends on where the other ends. A
    missing number is not carried along, so that people who lack different numbers have different forms.
    """
    actions = problem.actions
    if actions.rules:
        return
    if any(np.isfinite(actions[link.target].low) or np.isfinite(actions[link.target].high) for link in actions.links):
        return
    carried = np.isin(np.arange(len(actions)), [actions.index(link.target) for link in actions.links])
    missing = np.isnan(problem.start) & carried
    patterns, which = np.unique(missing, axis=0, return_inverse=True) if carried.any() else (missing[:1], 0)
    for place, pattern in enumerate(patterns):
        people = np.flatnonzero(np.broadcast_to(np.ravel(which) == place, len(missing)))
        yield replace(form, slopes=form.folded_slopes(actions, pattern)), people


def _jumps(problem: Problem, form: LinearForm) -> Mask:
    """Who starts outside the limits of a number that can take any value: staying or jumping inside is not a range.

    A lattice takes the jump as its first step.
    """
    low, high = problem.reach
    jumps = np.zeros(len(low), dtype=bool)
    for j, feature in enumerate(problem.actions):
        if feature.is_number and feature.step is None and form.slopes[j] != 0.0:
            now = problem.start[:, j]
            jumps |= (low[:, j] <= high[:, j]) & ((now < low[:, j]) | (now > high[:, j]))
    return jumps


@dataclass(frozen=True)
class _Moves:
    """What the features of some people offer, in the arrays of ``_knapsack``."""

    kind: NDArray[np.int64]
    slope: Array
    price: Array
    first: Array
    last: Array
    step: Array
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    costs: Array
    gains: Array
    values: Array


def _separable(problem: Problem, form: LinearForm, needs: Array) -> Answers:
    answers = Answers.nothing(problem)
    cost, power = problem.cost, 1 if problem.cost.is_largest else int(problem.cost.exponent)
    for begin in range(0, len(needs), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        moves = _moves(problem, form, rows)
        distance = np.zeros(moves.kind.shape)
        choice = np.full(moves.kind.shape, -1)
        arrays = (moves.kind, moves.slope, moves.price, moves.first, moves.last, moves.step, moves.begin, moves.end,
                  moves.costs, moves.gains, distance, choice)  # fmt: skip
        if cost.is_largest:
            best = solve_bottleneck(needs[rows], *arrays)
            bound = best
        else:
            best, bound = solve_additive(needs[rows], power, *arrays)
        proven = bound >= best * (1.0 - _TIE)
        proven[np.isinf(best)] = True
        bound = cost.from_sum(bound)
        answers.own[rows] = _landing(problem.start[rows], form, moves, distance, choice)
        answers.found[rows] = np.isfinite(best)
        answers.proven[rows] = proven
        answers.lower[rows] = np.where(proven & np.isfinite(best), 0.0, bound)
    known = answers.found & answers.proven
    answers.lower[known] = problem.costs(np.flatnonzero(known), answers.own[known])
    return answers


def _landing(start: Array, form: LinearForm, moves: _Moves, distance: Array, choice: NDArray[np.int64]) -> Array:
    """Where people end up: on the lattice to the last bit, where there is one."""
    own = start.copy()
    for j in range(own.shape[1]):
        way = np.sign(form.slopes[j])
        walked = distance[:, j] > 0
        ends = start[:, j] + way * distance[:, j]
        if moves.step[j] > 0:
            ends = np.round(ends / moves.step[j]) * moves.step[j]
        own[walked, j] = ends[walked]
        chosen = np.flatnonzero(choice[:, j] >= 0)
        own[chosen, j] = moves.values[choice[chosen, j]]
    return own


def _moves(problem: Problem, form: LinearForm, rows: slice) -> _Moves:
    start = problem.start[rows]
    low, high = (limits[rows] for limits in problem.reach)
    n, p = start.shape
    kind = np.full((n, p), FIXED)
    price, step = np.ones(p), np.zeros(p)
    first, last = np.zeros((n, p)), np.zeros((n, p))
    begin, end = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.int64)
    costs: list[Array] = []
    gains: list[Array] = []
    values: list[Array] = []
    filled = 0
    for j, feature in enumerate(problem.actions):
        movable = low[:, j] <= high[:, j]
        if not movable.any() or (feature.is_number and form.slopes[j] == 0.0):
            continue
        if feature.is_number:
            price[j] = feature.cost
            step[j] = feature.step or 0.0
            first[:, j], last[:, j] = _distances(start[:, j], low[:, j], high[:, j], form.slopes[j] > 0, feature.step)
            kind[:, j] = np.where(
                movable & (last[:, j] >= first[:, j]) & (last[:, j] > 0), LATTICE if step[j] else CONTINUOUS, FIXED
            )
            continue
        ends = np.flatnonzero(feature.reachable).astype(float)
        cost = problem.cost.addends(problem.cost.of_move(feature, start[:, [j]], ends[None, :]))
        table = form.tables[j]
        assert table is not None
        gain = table[ends.astype(int)][None, :] - form.at_start[rows, j][:, None]
        allowed = (ends[None, :] >= low[:, [j]]) & (ends[None, :] <= high[:, [j]]) & (gain > 0)
        kind[:, j] = np.where(allowed.any(axis=1), LIST, FIXED)
        begin[j], filled = filled, filled + len(ends)
        end[j] = filled
        costs.append(np.where(allowed, cost, np.inf))
        gains.append(np.where(allowed, gain, 0.0))
        values.append(ends)
    return _Moves(
        kind=kind,
        slope=np.abs(form.slopes),
        price=price,
        first=first,
        last=last,
        step=step,
        begin=begin,
        end=end,
        costs=np.concatenate(costs, axis=1) if costs else np.zeros((n, 0)),
        gains=np.concatenate(gains, axis=1) if gains else np.zeros((n, 0)),
        values=np.concatenate(values) if values else np.zeros(0),
    )


def _distances(start: Array, low: Array, high: Array, upwards: bool, step: float | None) -> tuple[Array, Array]:
    """(first, last) distance that one can go in the useful direction; on the lattice if there is a step."""
    with np.errstate(invalid="ignore"):
        if step is None:
            return np.zeros_like(start), np.maximum((high - start) if upwards else (start - low), 0.0)
        if not upwards:  # the mirror image
            return _distances(-start, -high, -low, True, step)
        # A hair of rounding must not cost a step: 0.3/0.1 is 2.9999999999999996.
        above = np.floor(start / step + 1e-9) + 1.0
        above = np.where(above * step <= start, above + 1.0, above)
        begin = np.maximum(above, np.ceil(low / step - 1e-9))
        return begin * step - start, np.floor(high / step + 1e-9) * step - start


def closed_form(scores: Array, slopes: Array, prices: Array, cost: Distance) -> tuple[Array, Array]:
    r"""Cost of reaching a score of zero when nothing limits a move, and the direction of the cheapest move.

    Returns
    -------
    costs : ndarray of shape (n_people,)
        :math:`|f| / \|s / c\|_*` with the dual norm; infinite where the score cannot be moved.
    direction : ndarray of shape (n_features,)
        The cheapest move that raises the score by one.
    """
    reach = np.abs(slopes) / prices
    if not reach.any():
        return np.where(scores > 0, 0.0, np.inf), np.zeros_like(slopes)
    costs: Any = np.abs(scores)
    costs /= float(cost.dual_norm(reach))
    return costs, cost.direction(slopes, prices)


def step_over(view: View, X: Any, scores: Array, rejected: Mask, direction: Array) -> Any:
    """People after the cheapest move across the boundary, a hair beyond it; each was accepted by the model."""
    frame = X if isinstance(X, pd.DataFrame) else None
    values = np.array(X, dtype=np.float64)
    left = np.flatnonzero(rejected)
    missing = np.abs(scores)
    rounding = ROUNDING * (missing + np.abs(values) @ np.abs(coefficients(view.final)) + 1e-288)
    for margin in MARGINS:
        aim = values[left] + (missing[left] + margin * rounding[left])[:, None] * direction
        people = aim if frame is None else pd.DataFrame(aim, columns=frame.columns)
        yes = np.asarray(view.model.predict(people)) == view.favorable if len(left) else np.zeros(0, dtype=bool)
        values[left[yes]] = aim[yes]
        left = left[~yes]
    return values if frame is None else pd.DataFrame(values, columns=frame.columns, index=frame.index)
