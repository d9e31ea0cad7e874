"""Support vector machines with a kernel, and other models whose score is a smooth formula of their inputs.

A quadratic score has a nearest accepted point in closed form (``_quadric``), as long as nothing but that score limits
what people do: it is the answer where limits, steps and rules happen to allow it, and a lower bound where they do
not. For other kernels, and for the rest of those people, the search goes along the boundary with exact gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Distance
from equirecourse.recourse._kernel._quadric import Quadric, nearest_on_quadric, quadric_of
from equirecourse.recourse._kernel._smooth import (
    InputScore,
    InputSurface,
    KernelScore,
    SeenInputs,
    kernel_score,
    see_inputs,
)
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._search._attempts import step_over
from equirecourse.recourse._search._descent import Surface
from equirecourse.recourse._search._engine import search
from equirecourse.recourse._search._feasible import FeasibleSet
from equirecourse.recourse._search._scores import Scores, measure_scores

__all__ = ["can_read", "solve"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_CHOICES = 256  # combinations of labels of one person that are gone through one by one
_ROWS = 50_000  # combinations at a time
_SURE = 1.0 - 1e-9  # a bound is lowered by this for rounding
_ANGLE = 1e-7  # rounding error of an arccos near its end
_TIGHT = 1.0 + 1e-6  # a cost this close to its lower bound is the lowest


def can_read(final: Any) -> bool:
    """Whether the score of a classifier is one that this engine knows a formula of."""
    return quadric_of(final, 1.0) is not None or kernel_score(final, 1.0) is not None


def solve(problem: Problem) -> Answers:
    """Cheapest accepted action of each person under a model with a smooth score.

    Parameters
    ----------
    problem : Problem
        Whose model's last estimator is a support vector machine, or has a quadratic score.

    Returns
    -------
    Answers
        Proven for quadratic scores and the norm "l2" where nothing else is in the way, and for those who have no
        action; for others the cheapest action that a search found, with a lower bound where one is known.
    """
    feasible = FeasibleSet(problem)
    final, sign = problem.view.final, problem.view.sign
    score: Quadric | KernelScore | None = quadric_of(final, sign) or kernel_score(final, sign)
    seen = see_inputs(problem, feasible)
    if score is None or seen is None:
        return search(problem, feasible, measure_scores(problem, feasible))
    known = _relax(problem, feasible, seen, score)
    everybody = np.arange(len(problem.start))
    over, good = step_over(problem, feasible, known.people, known.own)
    cost = problem.costs(known.people, over)
    proven = good & (cost <= _TIGHT * known.lower[known.people])
    done = known.lower == np.inf
    done[known.people[proven]] = True
    found = search(
        problem, feasible, _ReadScores(problem, feasible, seen, score), who=everybody[~done], hints=(known.people, over)
    )
    answers = replace(found, lower=np.maximum(found.lower, known.lower))
    rows = np.flatnonzero(proven)
    answers.own[known.people[rows]], answers.found[known.people[rows]] = over[rows], True
    problem.tick(int(done.sum()))
    cost = problem.costs(everybody, answers.own)
    answers.proven[:] |= np.where(answers.found, cost <= _TIGHT * answers.lower, answers.lower == np.inf)
    np.minimum(answers.lower, cost, out=answers.lower, where=answers.found)
    return answers


class _ReadScores(Scores):
    """Scores whose gradients are known by formula."""

    rounds = 4

    def __init__(self, problem: Problem, feasible: FeasibleSet, seen: SeenInputs, score: InputScore) -> None:
        super().__init__(problem, feasible)
        self._seen, self._score = seen, score

    def surface(self, people: Index, own: Array, free: Mask) -> Surface:
        """The score around some people whose features stay as in ``own``, except for the free ones."""
        return InputSurface(self.problem, self._seen, self._score, people, own, free)


# --- what is known without limits, steps and rules ---------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """Lower bounds for everybody, and the changes, if any, that would attain them if nothing were in the way."""

    lower: Array
    people: Index
    own: Array


def _relax(problem: Problem, feasible: FeasibleSet, seen: SeenInputs, score: Quadric | KernelScore) -> _Known:
    n = len(problem.start)
    lower = np.zeros(n)
    whose: list[Index] = []
    owns: list[Array] = []
    if isinstance(score, KernelScore) and score.kernel != "rbf":
        return _Known(lower, np.empty(0, dtype=np.intp), problem.start[:0])
    many = _count_choices(feasible)
    few = np.flatnonzero((many <= _CHOICES) & feasible.movable.any(axis=1))
    batches = np.cumsum(many[few]) // _ROWS
    for batch in np.unique(batches):
        people, own = _choices(feasible, few[batches == batch])
        base = problem.actions.costs(problem.norm, feasible.start[people], own)
        inputs = problem.view.inputs(problem.after(people, own))
        moves, mirrored, ways = (
            _on_quadric(problem, seen, score, people, inputs)
            if isinstance(score, Quadric)
            else (None, None, _beyond_sphere(problem, seen, score, people, inputs))
        )
        cost = _at_least(problem, seen, people, base, ways)
        order = np.lexsort((cost, people))
        first = order[np.unique(people[order], return_index=True)[1]]
        lower[people[first]] = np.where(np.isinf(cost[first]), np.inf, _SURE * cost[first])
        if moves is not None and mirrored is not None:
            best = first[np.isfinite(cost[first])]
            chosen = [own[best] + np.nan_to_num(way[best]) for way in (moves, mirrored)]
            better = problem.respected(people[best], chosen[0]) | ~problem.respected(people[best], chosen[1])
            whose.append(people[best])
            owns.append(np.where(better[:, None], chosen[0], chosen[1]))
    if not whose:
        return _Known(lower, np.empty(0, dtype=np.intp), problem.start[:0])
    return _Known(lower, np.concatenate(whose), np.vstack(owns))


def _at_least(problem: Problem, seen: SeenInputs, people: Index, base: Array, ways: Array) -> Array:
    """Least cost of a choice of labels (costs ``base``) and moves of numbers whose L2 cost is at least ``ways``."""
    cost = problem.cost
    if not isinstance(cost, Distance):  # but what cannot be reached cannot be reached
        return np.where(np.isinf(ways), np.inf, 0.0)
    moving = np.ones(len(people))
    for mine, matrix in seen.of(people):
        moving[mine] = max(1, matrix.any(axis=0).sum())
    least = cost.of_length(ways, moving)
    if cost.is_largest:
        return np.asarray(np.maximum(cost.total(base), least))
    return cost.from_sum(cost.addends(base).sum(axis=1) + cost.addends(least))


def _on_quadric(
    problem: Problem, seen: SeenInputs, score: Quadric, people: Index, inputs: Array
) -> tuple[Array, Array, Array]:
    """Moves of numbers to the nearest accepted point, the same mirrored, and their L2 cost."""
    prices = np.array([feature.cost for feature in problem.actions])
    moves, mirrored = np.zeros((2, len(people), len(prices)))
    ways = np.zeros(len(people))
    for mine, matrix in seen.of(people):
        moving = np.flatnonzero(matrix.any(axis=0))
        scaled = matrix[:, moving] / prices[moving]
        slopes = score.gradients(inputs[mine])
        size = np.abs(score.curvature).max(initial=0.0) * np.abs(inputs[mine]).max(initial=0.0)
        size = (size + np.abs(score.slope).max(initial=0.0)) * np.abs(scaled).max(initial=0.0)
        found = nearest_on_quadric(
            scaled.T @ score.curvature @ scaled,
            slopes @ scaled,
            score.values(inputs[mine]),
            noise=64.0 * len(matrix) * np.finfo(float).eps * size,
        )
        at = np.ix_(np.flatnonzero(mine), moving)
        moves[at], mirrored[at] = found.moves / prices[moving], found.mirrored / prices[moving]
        ways[mine] = found.costs
    return moves, mirrored, ways


def _beyond_sphere(problem: Problem, seen: SeenInputs, score: KernelScore, people: Index, inputs: Array) -> Array:
    r"""L2 cost that a yes takes at least under the kernel exp(−γ‖z − z'‖²).

    In its feature space all people are on the unit sphere, and a yes takes an angle of at most arccos(−b/‖w‖) with w.
    The angle between a person and where they go is then at least the difference θ, and k(z, z') = cos of it, so that
    ‖z − z'‖² ≥ −log(cos θ) / γ.
    """
    norm = score.weight_norm()
    values = score.values(inputs)
    if norm <= 0:
        return np.where(values < 0, np.inf, 0.0)
    now = np.arccos(np.clip((values - score.level) / norm, -1.0, 1.0))
    wanted = np.arccos(np.clip(-score.level / norm, -1.0, 1.0))
    turned = np.where(values < 0, np.maximum(now - wanted - _ANGLE, 0.0), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(turned < np.pi / 2, np.sqrt(-np.log(np.cos(turned)) / score.gamma), np.inf)
    if -score.level > norm * (1.0 + 1e-9):
        distance[values < 0] = np.inf
    prices = np.array([feature.cost for feature in problem.actions])
    ways = np.zeros(len(people))
    for mine, matrix in seen.of(people):
        stretch = float(np.linalg.norm(matrix / prices, ord=2)) if matrix.size else 0.0
        ways[mine] = distance[mine] / stretch if stretch > 0 else np.where(distance[mine] > 0, np.inf, 0.0)
    return ways


# --- combinations of labels --------------------------------------------------------------------------------------


def _count_choices(feasible: FeasibleSet) -> Array:
    """How many combinations of labels each person has."""
    return np.asarray(
        np.prod([1.0 + feasible.options(j).sum(axis=1) for j in feasible.of_labels], axis=0)
        * np.ones(len(feasible.start))
    )


def _choices(feasible: FeasibleSet, people: Index) -> tuple[Index, Array]:
    """Every combination of labels of some people: who, and the change that it is."""
    own = feasible.start[people]
    for j in feasible.of_labels:
        options = feasible.options(j)
        codes = feasible.labels(j)
        rows, place = np.nonzero(options[people])
        moved = own[rows]
        moved[:, j] = codes[place]
        people, own = np.concatenate([people, people[rows]]), np.vstack([own, moved])
    return people, own
