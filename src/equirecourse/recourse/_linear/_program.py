"""Linear models whose features hang together, by links, rules or a gap below their limits: one program per person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._linear._form import MARGINS, LinearForm, nudged
from equirecourse.recourse._milp import ActionProgram, Choice, Outcome, solve_programs, total
from equirecourse.recourse._problem import Answers, Problem

__all__ = ["solve"]

Array = NDArray[np.float64]

# Score that a number gains at a typical cost, relative to the score that a person lacks: below it, coefficients are the
# rounding errors of a fit, and as coefficients of a program they would drown all others.
_NEGLIGIBLE = 1e-13
_LEAST = 1e-6  # of the score that is gained at a typical cost: what is lacking may be next to nothing


def solve(problem: Problem, form: LinearForm) -> Answers:
    """Cheapest accepted action of each person, by one program each.

    Parameters
    ----------
    problem : Problem
        People and what they may change.
    form : LinearForm
        The score of these people.

    Returns
    -------
    Answers
        With everybody found or proven to have no action, except where time ran out.
    """
    return solve_programs(
        problem,
        lambda asked, person, known: LinearProgram(asked, form, person, known),
        listed=problem.grids_are_whole,
    )


def _typical_cost(problem: Problem, form: LinearForm, person: int) -> float:
    """What the score would cost if numbers moved freely, or by their first step; something of the kind for labels."""
    need = max(abs(form.scores[person]), float(form.rounding(problem.start, [person])[0]))
    costs: list[float] = []
    for j, feature in enumerate(problem.actions):
        low, high = (float(side[person, j]) for side in problem.reach)
        if low > high:
            continue
        if not feature.is_number or problem.grids[j] is not None:
            _, listed = _listed(problem, person, j)
            costs += listed[listed > 0].tolist()
        elif form.slopes[j]:
            start = float(problem.start[person, j])
            jump = max(low - start, start - high, feature.step or 0.0)
            costs.append(float(max(need / abs(form.slopes[j]), jump) * feature.cost))
    return float(min(costs, default=1.0)) or 1.0


def _listed(problem: Problem, person: int, j: int) -> tuple[Array, Array]:
    """Values that a feature can go to, staying first, and their costs."""
    feature, start = problem.actions.features[j], problem.start[person, j]
    low, high = (side[person, j] for side in problem.reach)
    grid = problem.grids[j] if feature.is_number else np.flatnonzero(feature.reachable).astype(np.float64)
    assert grid is not None
    ends = grid[(grid >= low) & (grid <= high) & (grid != start)]
    values = np.append(start, ends)
    return values, np.append(0.0, feature.move_cost(problem.norm, np.full(len(ends), start), ends))


class LinearProgram(ActionProgram):
    """The program of one person before a linear model."""

    def __init__(self, problem: Problem, form: LinearForm, person: int, known: float | None) -> None:
        scale = _typical_cost(problem, form, person) if known is None else known
        lists: list[tuple[Array, Array] | None] = []
        for j, feature in enumerate(problem.actions):
            is_range = feature.is_number and problem.grids[j] is None
            lists.append(None if is_range else _listed(problem, person, j))
        self.form = form
        self.slopes = form.folded_slopes(problem.actions, np.isnan(problem.start[person]))
        self.rounding = float(form.rounding(problem.start, [person])[0])
        typical = np.abs(form.slopes) * scale / np.array([feature.cost for feature in problem.actions])
        self.negligible = typical < _NEGLIGIBLE * max(abs(float(form.scores[person])), self.rounding)
        super().__init__(problem, person, lists, [_cuts(problem, j) for j in range(len(lists))], scale, known)
        score = [self.moves[j] * float(form.slopes[j]) for j in np.flatnonzero(~self.negligible)]
        for j, table in enumerate(form.tables):
            part = self.parts[j]
            if table is not None and isinstance(part, Choice):
                gains = np.append(0.0, table[part.values[1:].astype(int)] - form.at_start[person, j])
                score.append(part.weighted(gains))
        # A hair short of the boundary, because the model's own sum may be rounded up.
        lacking = float(form.scores[person]) + self.rounding
        size = max(abs(lacking), 1e3 * self.rounding, _LEAST * float(typical.max(initial=0.0)))
        self.program.at_least((total(score) + lacking) * (1.0 / size), 0.0)

    def typical_move(self, j: int) -> float:
        """The distance at which a number makes up for the whole score by itself, if that is farther than is typical."""
        slope = 0.0 if self.negligible[j] else abs(float(self.form.slopes[j]))
        alone = abs(float(self.form.scores[self.person])) / slope if slope > 0.0 else 0.0
        return max(super().typical_move(j), alone)

    def solve(self, deadline: float) -> Outcome:
        """Find the cheapest action that the model accepts; without one, nothing is claimed of what was neglected."""
        outcome = super().solve(deadline)
        if outcome.own is None and self.form.slopes[self.negligible].any():
            return replace(outcome, proven=False, lower=0.0)
        return outcome

    def variants(self, own: Array) -> Iterator[Array]:
        """The action, and the same a hair farther along a continuous number."""
        yield own
        alone = self.problem.take([self.person])
        for margin in MARGINS:
            yield nudged(alone, self.slopes, own[None, :], np.array([(1.0 + margin) * self.rounding]))[0]


def _cuts(problem: Problem, j: int) -> Array:
    feature = problem.actions.features[j]
    conditions = [condition for rule in problem.actions.rules for condition in (rule.when, rule.then)]
    cuts = [
        cut
        for condition in conditions
        if condition.feature == feature.name and condition.value is not None and feature.is_number
        for cut in condition.cuts(feature, 0.0)
    ]
    return np.unique(np.array(cuts, dtype=np.float64))
