"""Percentile costs of a linear score: every allowed value counts, not only those that somebody has.

The largest shift: with a given budget each feature goes as far as it can, and a bisection finds the smallest budget
that is enough.

The sum of log shifts: what a move costs is a curve that rises with the distance, with a kink at each value that people
have. Each number gets breakpoints on its way, and two knapsacks over them bracket the cheapest action:

* the *real* one moves to the breakpoints themselves, so what it finds can be done;
* the *optimistic* one pays for the first value behind a breakpoint and gains as much as at the next one, so nothing
  that can be done is cheaper.

Where the two differ, the stretches that the optimistic one uses are divided, until they agree. A lattice of few values
has a breakpoint at each of them, and agrees at once. Many numbers with many values have too many ways to be almost the
best: there the real one and the relaxation of the optimistic one bracket the cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Feature
from equirecourse.recourse._linear._compiled import solve_additive
from equirecourse.recourse._linear._form import LinearForm
from equirecourse.recourse._linear._knapsack import FIXED, LIST
from equirecourse.recourse._problem import Answers, Problem

__all__ = ["solve_shifts"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEW = 200  # values of a lattice that are all breakpoints
_ROUNDS = 60  # of divisions, a halving each: more than a number has digits
_MANY = 500  # breakpoints with which a knapsack takes some 10 ms: it is solved once, and bounded by its relaxation
_TIE = 1e-8  # bounds that agree to this are equal


def solve_shifts(problem: Problem, form: LinearForm, needs: Array) -> Answers:
    """Cheapest action of each person under a percentile norm, for features that move independently.

    Parameters
    ----------
    problem : Problem
        People and what they may change.
    form : LinearForm
        Their score; links are folded into the slopes.
    needs : ndarray of shape (n_people,)
        The gain in score that a yes takes.

    Returns
    -------
    Answers
        Proven for the largest shift, and where the two knapsacks agree; a lower bound for the others.
    """
    return _largest_shift(problem, form, needs) if problem.cost.is_largest else _sum_of_shifts(problem, form, needs)


# --- the largest shift ------------------------------------------------------------------------------------------------


def _largest_shift(problem: Problem, form: LinearForm, needs: Array) -> Answers:
    answers = Answers.nothing(problem)
    gains, _ = _farthest_moves(problem, form, needs, np.full(len(needs), np.inf))
    found = gains.sum(axis=1) >= needs
    low, high = np.zeros(len(needs)), np.ones(len(needs))  # no shift is larger than 1
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        enough = _farthest_moves(problem, form, needs, middle)[0].sum(axis=1) >= needs
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    gains, own = _farthest_moves(problem, form, needs, high)
    # The strongest moves that are enough together: the budget says nothing against more, people do.
    order = np.argsort(-gains, axis=1, kind="stable")
    sorted_gains = np.take_along_axis(gains, order, axis=1)
    spared = np.cumsum(sorted_gains, axis=1) - sorted_gains >= needs[:, None]
    rows, places = np.nonzero(spared | (sorted_gains <= 0.0))
    own[rows, order[rows, places]] = problem.start[rows, order[rows, places]]
    answers.own[found], answers.found[:] = own[found], found
    cost = problem.costs(np.arange(len(needs)), answers.own)
    answers.proven[:] = ~found | (cost <= low * (1.0 + _TIE) + 1e-12)
    answers.lower[:] = np.where(found, np.minimum(low, cost), np.inf)
    return answers


def _farthest_moves(problem: Problem, form: LinearForm, needs: Array, budget: Array) -> tuple[Array, Array]:
    """What each feature gains if it moves as far as the budget allows, but not farther than is of use; and where to."""
    own, gains = problem.start.copy(), np.zeros(problem.start.shape)
    low, high = problem.reach
    for j, feature in enumerate(problem.actions):
        movable, slope = low[:, j] <= high[:, j], float(form.slopes[j])
        if not movable.any() or (feature.is_number and slope == 0.0):
            continue
        if feature.is_number:
            ends = _farthest(feature, problem.start[:, j], low[:, j], high[:, j], slope, needs, budget)
            gain = slope * (ends - problem.start[:, j])
        else:
            codes = np.flatnonzero(feature.reachable)
            table = form.tables[j]
            assert table is not None
            offers = table[codes][None, :] - form.at_start[:, [j]]
            costs = feature.move_cost(problem.norm, problem.start[:, [j]], codes[None, :])
            fits = (costs <= budget[:, None]) & (codes >= low[:, [j]]) & (codes <= high[:, [j]])
            best = np.argmax(np.where(fits, offers, -np.inf), axis=1)
            gain = np.where(fits.any(axis=1), offers[np.arange(len(best)), best], 0.0)
            ends = codes[best].astype(np.float64)
        useful = movable & (gain > 0.0)
        own[useful, j], gains[useful, j] = ends[useful], gain[useful]
    return gains, own


def _farthest(
    feature: Feature, start: Array, low: Array, high: Array, slope: float, needs: Array, budget: Array
) -> Array:
    """The farthest allowed value within a budget, or the first one that gains enough by itself; else the start."""
    assert feature.percentiles is not None
    values, ranks = np.asarray(feature.percentiles.values), np.asarray(feature.percentiles.ranks)
    way = np.sign(slope)
    if way < 0:  # the mirror image
        values, ranks, start, low, high = -values[::-1], 1.0 - ranks[::-1], -start, -high, -low
    limit = np.interp(start, values, ranks) + budget
    place = np.clip(np.searchsorted(ranks, limit, side="right"), 1, len(ranks) - 1) if len(ranks) > 1 else 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (limit - ranks[place - 1]) / (ranks[place] - ranks[place - 1])
        ends = values[place - 1] + share * (values[place] - values[place - 1])
    ends = np.where(limit >= ranks[-1], np.inf, ends)  # beyond what people have, moves cost no more
    enough = start + needs / abs(slope) * (1.0 + 1e-12)
    step = feature.step
    if step is None:
        ends = np.minimum(np.minimum(ends, high), np.maximum(enough, low))
    else:
        within = np.floor(np.minimum(ends, high) / step + 1e-9)
        ends = np.minimum(within, np.maximum(np.ceil(enough / step), np.ceil(low / step - 1e-9))) * step
    # A multiple of a step may miss a limit by rounding, as the action set allows.
    inside = (ends >= low) | (ends >= low - 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(low), low, 0.0))))
    return np.asarray(way * np.where((ends > start) & inside, ends, start))


# --- the sum of log shifts --------------------------------------------------------------------------------------------


def _sum_of_shifts(problem: Problem, form: LinearForm, needs: Array) -> Answers:
    answers = Answers.nothing(problem)
    for person, need in enumerate(needs):
        ways = [_way(problem, form, person, j, float(need)) for j in range(len(problem.actions))]
        cost, lower = np.inf, 0.0
        is_long = sum(len(way.values) for way in ways) > _MANY
        for _ in range(_ROUNDS):
            found, places, _ = _knapsack(float(need), ways, optimistic=False)
            if found < cost:
                cost = found
                answers.own[person] = [
                    problem.start[person, j] if place < 0 else ways[j].values[place] for j, place in enumerate(places)
                ]
            if is_long:
                lower = _relaxation(float(need), ways) if np.isfinite(cost) else np.inf
                break
            _, places, bound = _knapsack(float(need), ways, optimistic=True)
            lower = max(lower, bound)
            if lower >= cost * (1.0 - _TIE) or not _divide(ways, places, float(need)):
                break
        answers.found[person] = np.isfinite(cost)
        answers.proven[person] = lower >= cost * (1.0 - _TIE)
        answers.lower[person] = min(lower, cost)
    return answers


@dataclass
class _Way:
    """The moves of one person's feature, from cheap to dear for numbers.

    ``first`` is the first value that is allowed at all, and ``least`` the cost of the first one behind the breakpoint
    before: what the optimistic knapsack pays.
    """

    feature: Feature
    norm: str
    start: float
    slope: float
    first: float
    values: Array
    costs: Array
    gains: Array
    least: Array

    @classmethod
    def along(cls, feature: Feature, norm: str, start: float, slope: float, first: float, values: Array) -> _Way:
        """Moves of a number to some values on its way."""
        before = np.append(np.nan, values[:-1])
        step = feature.step or 0.0
        behind = np.where(np.isnan(before), first, before + np.sign(slope) * step)
        behind = np.where(np.abs(behind - start) > np.abs(values - start), values, behind)
        return cls(
            feature, norm, start, slope, first, values,
            costs=feature.move_cost(norm, start, values),
            gains=np.abs(slope) * np.abs(values - start),
            least=feature.move_cost(norm, start, behind),
        )  # fmt: skip

    def divided(self, place: int, at: float) -> _Way | None:
        """The same way with one more breakpoint before a place, near a value; None if there is no value between."""
        before = self.values[place - 1] if place > 0 else self.first
        after, way = self.values[place], np.sign(self.slope)
        step = self.feature.step
        inside = at if step is None else np.floor(at / step) * step
        if not way * before < way * inside < way * after:
            inside = 0.5 * (before + after) if step is None else np.floor(0.5 * (before + after) / step) * step
        if not way * before < way * inside < way * after:
            return None
        values = np.insert(self.values, place, inside)
        return _Way.along(self.feature, self.norm, self.start, self.slope, self.first, values)


def _way(problem: Problem, form: LinearForm, person: int, j: int, need: float) -> _Way:
    feature, start = problem.actions.features[j], float(problem.start[person, j])
    low, high = (float(side[person, j]) for side in problem.reach)
    nothing = np.zeros(0)
    slope = float(form.slopes[j])
    if not feature.is_number:
        ends = np.flatnonzero(feature.reachable & (low <= high)).astype(np.float64)
        ends = ends[(ends >= low) & (ends <= high) & (ends != start)]
        table = form.tables[j]
        gains = nothing if table is None or not len(ends) else table[ends.astype(int)] - form.at_start[person, j]
        ends = ends[: len(gains)][gains > 0]
        costs = feature.move_cost(problem.norm, start, ends)
        return _Way(feature, problem.norm, start, 0.0, start, ends, costs, gains[gains > 0], costs)
    if low > high or slope == 0.0:
        return _Way(feature, problem.norm, start, slope, start, nothing, nothing, nothing, nothing)
    first, values = _breakpoints(feature, start, low, high, slope, need)
    return _Way.along(feature, problem.norm, start, slope, first, values)


def _breakpoints(
    feature: Feature, start: float, low: float, high: float, slope: float, need: float
) -> tuple[float, Array]:
    """The first value that one can move to, and breakpoints from there to the last one that may be needed."""
    way = np.sign(slope)
    # Upwards without loss of generality: mirrored numbers are mirrored back.
    start, low, high = (start, low, high) if way > 0 else (-start, -high, -low)
    enough = start + need / abs(slope) * (1.0 + 1e-12)
    assert feature.percentiles is not None
    known = np.sort(way * np.asarray(feature.percentiles.values))
    step = feature.step
    if step is None:
        first, last = max(start, low), min(high, max(enough, low))
        values = np.append(known[(known > first) & (known < last)], last) if last > start else np.zeros(0)
        values = np.append(first, values) if len(values) and first > start and values[0] > first else values
    else:
        begin = max(np.floor(start / step + 1e-9) + 1.0, np.ceil(low / step - 1e-9))
        begin += float(begin * step <= start)
        end = min(np.floor(high / step + 1e-9), max(np.ceil(enough / step), begin))
        first = begin * step
        if end - begin < _FEW:
            places = np.arange(begin, end + 1.0)
        else:
            near = np.floor(known / step)
            places = np.unique(np.concatenate([near, near + 1.0, [begin, end]]))
            places = places[(places >= begin) & (places <= end)]
        values = places * step
    return float(way * first), np.asarray(way * values)


def _knapsack(need: float, ways: list[_Way], *, optimistic: bool) -> tuple[float, Ints, float]:
    """Cost of the best choice, the place that each feature goes to (−1 stays), and a lower bound."""
    sizes = np.array([len(way.values) for way in ways])
    end = np.cumsum(sizes)
    costs = np.concatenate([way.least if optimistic else way.costs for way in ways])[None, :]
    gains = np.concatenate([way.gains for way in ways])[None, :]
    kind = np.where(sizes > 0, LIST, FIXED)[None, :]
    zeros, ones = np.zeros((1, len(ways))), np.ones(len(ways))
    distance, choice = zeros.copy(), np.full((1, len(ways)), -1)
    moves = (kind, ones, ones, zeros, zeros, ones, end - sizes, end, costs, gains, distance, choice)
    best, bound = solve_additive(np.array([need]), 1, *moves)
    return float(best[0]), np.where(choice[0] < 0, -1, choice[0] - (end - sizes)), float(bound[0])


def _relaxation(need: float, ways: list[_Way]) -> float:
    """A lower bound on the optimistic knapsack: the best value of its Lagrangian.

    For every price λ of a unit of gain, λ·need + Σ_j min(0, min_k (cost − λ·gain)) is one.
    """
    ways = [way for way in ways if len(way.values)]
    begin = np.cumsum([0, *(len(way.values) for way in ways[:-1])])
    costs, gains = np.concatenate([way.least for way in ways]), np.concatenate([way.gains for way in ways])
    low, high, best = 0.0, None, 0.0
    price = float(np.max(costs)) / need
    for _ in range(_ROUNDS):
        regrets = np.minimum(np.minimum.reduceat(costs - price * gains, begin), 0.0)
        value = price * need + float(regrets.sum())
        best = max(best, value)
        # The bound is concave in the price: what it gains with a little more of it tells on which side the best one is.
        more = price * (1.0 + 1e-9)
        if more * need + float(np.minimum(np.minimum.reduceat(costs - more * gains, begin), 0.0).sum()) > value:
            low, price = price, 2.0 * price if high is None else 0.5 * (price + high)
        else:
            high, price = price, 0.5 * (low + price)
    return best


def _divide(ways: list[_Way], places: Ints, need: float) -> bool:
    """Divide the stretches that the optimistic knapsack used; False if none can be."""
    chosen = [j for j, place in enumerate(places) if place >= 0]
    gains = sum(float(ways[j].gains[places[j]]) for j in chosen)
    divided = False
    for j in chosen:
        way, place = ways[j], int(places[j])
        if way.least[place] >= way.costs[place]:
            continue
        # As far as is needed if the others go as far as they are thought to: what is nearer will not do, then.
        just_enough = way.start + (way.gains[place] - (gains - need)) / way.slope * (1.0 - 1e-12)
        finer = way.divided(place, just_enough)
        if finer is not None:
            ways[j], divided = finer, True
    return divided
