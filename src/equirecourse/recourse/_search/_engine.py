"""The cheapest accepted action that a search finds, for any model that says yes or no.

Nothing is assumed of the model. The search begins at places near accepted people and applies local moves that make the
change cheaper, until none helps. Every answer is accepted by the model and allowed by the action set. It is an upper
bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._search._attempts import Attempts, step_over
from equirecourse.recourse._search._feasible import FeasibleSet
from equirecourse.recourse._search._moves import (
    exchange,
    follow_boundary,
    follow_tangent,
    propose_additive,
    revert,
    shrink,
    tighten,
)
from equirecourse.recourse._search._scores import Scores, measure_scores

__all__ = ["search", "solve"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_PEOPLE = 256  # people in a batch
_POOL = 500  # accepted people who serve as starting points
_ATTEMPTS = 6  # per person
_DRAWS = 64  # random changes per person for whom no accepted change is known
_PATIENCE = 4  # rounds without an improvement after which a person is done
_ROUNDS = 30
_PROPOSALS = 24  # per attempt and round


def solve(problem: Problem) -> Answers:
    """Search for the cheapest accepted action of each person.

    Parameters
    ----------
    problem : Problem
        With any model.

    Returns
    -------
    Answers
        ``found`` where an accepted and allowed change was found; proven only for those who cannot move at all.
    """
    feasible = FeasibleSet(problem)
    return search(problem, feasible, measure_scores(problem, feasible))


def search(
    problem: Problem,
    feasible: FeasibleSet,
    scores: Scores | None,
    *,
    who: Index | None = None,
    hints: tuple[Index, Array] | None = None,
) -> Answers:
    """Search, given what is known of the model's scores.

    Parameters
    ----------
    problem : Problem
        The people.
    feasible : FeasibleSet
        The values that they may move to.
    scores : Scores or None
        The model's scores. The search works without them.
    who : ndarray of int, optional
        The people to search for; by default everybody.
    hints : (ndarray of int, ndarray), optional
        Starting points: their people, and the changes.

    Returns
    -------
    Answers
        For everybody; nothing is found for people outside ``who``.
    """
    answers = Answers.nothing(problem)
    who = np.arange(len(problem.start)) if who is None else who
    stuck = np.asarray(~feasible.movable.any(axis=1))
    answers.proven[stuck], answers.lower[stuck] = True, np.inf
    problem.tick(int(stuck[who].sum()))
    who = who[~stuck[who]]
    if len(who) == 0:
        return answers
    pool = _accepted_pool(problem)
    recent = pool[:0]
    end = time.monotonic()
    for begin in range(0, len(who), _PEOPLE):
        people = who[begin : begin + _PEOPLE]
        # A batch may use the time that earlier ones left.
        end += problem.time_limit * len(people)
        attempts = Attempts(problem, feasible, _clock(end))
        if hints is not None:
            mine = np.isin(hints[0], people)
            attempts.add(hints[0][mine], hints[1][mine])
        _search_for(attempts, scores, np.vstack([pool, recent]), people)
        answers.own[attempts.person], answers.found[attempts.person] = attempts.own, True
        # Results of this batch are starting points of the next.
        recent = problem.actions.carry(feasible.start[attempts.person], attempts.own)[: _POOL // 10]
        problem.tick(len(people))
    found = np.flatnonzero(answers.found)
    own, good = step_over(problem, feasible, found, answers.own[found])
    answers.own[found], answers.found[found] = np.where(good[:, None], own, problem.start[found]), good
    return answers


def _clock(end: float) -> Callable[[], bool]:
    return lambda: time.monotonic() > end


def _accepted_pool(problem: Problem) -> Array:
    """Distinct rows of accepted people, at most ``_POOL``."""
    if len(problem.background) == 0:
        return np.empty((0, len(problem.actions)))
    yes = problem.view.accepts(problem.background[list(problem.table.columns)])
    pool = np.unique(problem.actions.encode(problem.background)[yes], axis=0)
    if len(pool) > _POOL:
        pool = pool[np.random.default_rng(problem.seed).choice(len(pool), _POOL, replace=False)]
    return np.asarray(pool)


def _search_for(attempts: Attempts, scores: Scores | None, pool: Array, people: Index) -> None:
    """Find one accepted change per person, as cheap as possible; people for whom none is found have none."""
    rng = np.random.default_rng([attempts.problem.seed, int(people[0])])
    _initialise(attempts, scores, pool, people, rng)
    if len(attempts) == 0:
        return
    shrink(attempts, 2)
    revert(attempts)
    tighten(attempts, 2)
    if scores is not None and scores.guessed:
        shrink(attempts, 6)
        scores.learn(attempts.person, attempts.own)
    for scale in (0.3, 0.1, 0.03):
        _polish(attempts, scores, scale, 6)
        attempts.keep_cheapest(3)
    places = pool if len(pool) else attempts.own.copy()
    without_gain = np.zeros(len(attempts), dtype=int)
    for _ in range(_ROUNDS):
        active = np.flatnonzero(without_gain < _PATIENCE)
        if len(active) == 0 or attempts.until():
            break
        improved = exchange(attempts, places, rng, _PROPOSALS, active)
        without_gain[active] = np.where(improved[active], 0, without_gain[active] + 1)
    attempts.keep_cheapest(2)
    _polish(attempts, scores, 0.03, 12)
    attempts.keep_cheapest(1)
    for _ in range(2):
        if not (shrink(attempts, 8) | revert(attempts) | tighten(attempts, 8)).any():
            break


def _polish(attempts: Attempts, scores: Scores | None, scale: float, rounds: int) -> None:
    """Move along the boundary, by the model's scores or, without them, by its decisions."""
    smooth = attempts.problem.cost.is_distance
    if scores is not None and (not attempts.feasible.continuous.all() or not smooth or scale > 0.2):
        rows, own = propose_additive(attempts, scores, attempts.person, attempts.own, scale)
        attempts.add(attempts.person[rows], own)
        attempts.keep_cheapest(_ATTEMPTS)
    if scores is not None and smooth and not scores.flat:
        follow_boundary(attempts, scores, rounds * scores.rounds)
    if scores is None or scores.flat:
        shrink(attempts, 4)
        follow_tangent(attempts, scale)


def _initialise(
    attempts: Attempts, scores: Scores | None, pool: Array, people: Index, rng: np.random.Generator
) -> None:
    """Starting points: near accepted people, by an additive model of the score, by single features, and at random."""
    feasible = attempts.feasible
    if len(pool):
        _near_accepted_people(attempts, pool, people)
    if scores is not None:
        numbers = np.array([feature.is_number for feature in attempts.problem.actions], dtype=bool)
        for allowed in {mask.tobytes(): mask for mask in (numbers | True, numbers, feasible.continuous)}.values():
            rows, own = propose_additive(attempts, scores, people, feasible.start[people], 1.0, allowed)
            attempts.add(people[rows], own)
    _single_features(attempts, people)
    for widening in (1.0, 4.0, 16.0):
        missing = np.setdiff1d(people, attempts.person)
        if len(missing) == 0:
            break
        _random_changes(attempts, missing, widening, rng)
        # Try what was accepted for others.
        missing, others = np.setdiff1d(people, attempts.person), attempts.own[:_DRAWS]
        attempts.add(np.repeat(missing, len(others)), np.tile(others, (len(missing), 1)))
    attempts.keep_cheapest(_ATTEMPTS)


def _near_accepted_people(attempts: Attempts, pool: Array, people: Index) -> None:
    """Try the nearest accepted people, then more and more distant ones while nothing is accepted."""
    n, k = len(people), len(pool)
    who = np.repeat(people, k)
    wishes = attempts.feasible.snap(who, np.tile(pool, (n, 1)))
    order = np.argsort(attempts.objective(who, wishes).reshape(n, k), axis=1, kind="stable")
    begin, width = 0, 2 * _ATTEMPTS
    some_labels = bool((~attempts.feasible.ordered & attempts.feasible.movable[people]).any())
    while begin < k:
        lacking = np.flatnonzero(~np.isin(people, attempts.person))
        if len(lacking) == 0:
            break
        chosen = order[lacking, begin : begin + width]
        rows = (lacking[:, None] * k + chosen).ravel()
        attempts.add(who[rows], wishes[rows])
        if some_labels:  # try their numbers with the labels unchanged
            attempts.add(
                who[rows], np.where(attempts.feasible.ordered, wishes[rows], attempts.feasible.start[who[rows]])
            )
        begin, width = begin + width, 2 * width


def _single_features(attempts: Attempts, people: Index) -> None:
    """Move single features along their ranges, in both directions; try each other label."""
    feasible = attempts.feasible
    rows, feature = np.nonzero(feasible.movable[people] & feasible.ordered)
    ends = np.concatenate([feasible.floor[people[rows], feature], feasible.ceiling[people[rows], feature]])
    who, feature = np.tile(people[rows], 2), np.tile(feature, 2)

    def path(at: Index, places: Array) -> Array:
        own = feasible.start[who[at]]
        own[np.arange(len(at)), feature[at]] += places * (ends[at] - own[np.arange(len(at)), feature[at]])
        return own

    place, found = attempts.first_accepted(who, path, 1)
    good = np.isfinite(place)
    attempts.add(who[good], found[good])
    owns, whose = [feasible.start[:0]], [people[:0]]
    for j in np.flatnonzero(~feasible.ordered).tolist():
        rows, option = np.nonzero(feasible.options(j)[people])
        own = feasible.start[people[rows]]
        own[:, j] = feasible.labels(j)[option]
        owns.append(own)
        whose.append(people[rows])
    attempts.add(np.concatenate(whose), np.vstack(owns))


def _random_changes(attempts: Attempts, people: Index, widening: float, rng: np.random.Generator) -> None:
    """Random values of random features, within the observed range or a multiple of it."""
    feasible = attempts.feasible
    who = np.repeat(people, _DRAWS)
    low, high = feasible.floor[who], feasible.ceiling[who]
    middle, half = 0.5 * (low + high), 0.5 * widening * (high - low)
    # The ends of the range are drawn as often as its inside: accepted points may be far away.
    place = rng.choice([-1.0, 1.0], size=low.shape) * np.where(rng.random(low.shape) < 0.5, 1.0, rng.random(low.shape))
    own = middle + place * half
    for j in np.flatnonzero(~feasible.ordered):
        codes = feasible.labels(int(j))
        if len(codes):
            own[:, j] = rng.choice(codes, size=len(who))
    changes = rng.random(own.shape) < rng.random(len(who))[:, None]
    attempts.add(who, np.where(changes, own, feasible.start[who]))
