"""The cheapest accepted action that a search finds, for any model that says yes or no.

Nothing is assumed of the model. A search begins where accepted people are, as far as a person can go there, and makes
the change cheaper for as long as it finds a way to. What it finds is accepted by the model and allowed; that nothing
cheaper exists is not known.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._search._hunt import Hunt, step_over
from equirecourse.recourse._search._moves import bargain, exchange, revert, shrink, tighten, turn, walk
from equirecourse.recourse._search._room import Room
from equirecourse.recourse._search._scores import Scores, measure_scores

__all__ = ["search", "solve"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_PEOPLE = 256  # searched for at a time
_POOL = 500  # accepted people whose place is considered
_ATTEMPTS = 6  # per person
_DRAWS = 64  # random changes per person where nothing accepted is known
_PATIENCE = 4  # rounds without a cheaper change before a person is left
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
    room = Room(problem)
    return search(problem, room, measure_scores(problem, room))


def search(
    problem: Problem,
    room: Room,
    scores: Scores | None,
    *,
    who: Index | None = None,
    hints: tuple[Index, Array] | None = None,
) -> Answers:
    """Search with what is known of the model.

    Parameters
    ----------
    problem : Problem
        The people.
    room : Room
        Where they can go.
    scores : Scores or None
        The model's scores; gradients make the search better, none are needed.
    who : ndarray of int, optional
        The people to search for; by default everybody.
    hints : (ndarray of int, ndarray), optional
        Changes to begin with: whose they are, and the changes.

    Returns
    -------
    Answers
        For everybody; nothing is found for those who are not searched for.
    """
    answers = Answers.nothing(problem)
    who = np.arange(len(problem.start)) if who is None else who
    stuck = np.asarray(~room.movable.any(axis=1))
    answers.proven[stuck], answers.lower[stuck] = True, np.inf
    problem.tick(int(stuck[who].sum()))
    who = who[~stuck[who]]
    if len(who) == 0:
        return answers
    pool = _accepted_pool(problem)
    lately = pool[:0]
    end = time.monotonic()
    for begin in range(0, len(who), _PEOPLE):
        people = who[begin : begin + _PEOPLE]
        # What one lot of people leaves of its time, the next may use.
        end += problem.time_limit * len(people)
        hunt = Hunt(problem, room, _clock(end))
        if hints is not None:
            mine = np.isin(hints[0], people)
            hunt.begin(hints[0][mine], hints[1][mine])
        _hunt(hunt, scores, np.vstack([pool, lately]), people)
        answers.own[hunt.person], answers.found[hunt.person] = hunt.own, True
        # Where these ended up is where the next may begin.
        lately = problem.actions.carry(room.start[hunt.person], hunt.own)[: _POOL // 10]
        problem.tick(len(people))
    found = np.flatnonzero(answers.found)
    own, good = step_over(problem, room, found, answers.own[found])
    answers.own[found], answers.found[found] = np.where(good[:, None], own, problem.start[found]), good
    return answers


def _clock(end: float) -> Callable[[], bool]:
    return lambda: time.monotonic() > end


def _accepted_pool(problem: Problem) -> Array:
    """Places of accepted people, each once, and not more than are worth looking at."""
    if len(problem.background) == 0:
        return np.empty((0, len(problem.actions)))
    yes = problem.view.accepts(problem.background[list(problem.table.columns)])
    pool = np.unique(problem.actions.encode(problem.background)[yes], axis=0)
    if len(pool) > _POOL:
        pool = pool[np.random.default_rng(problem.seed).choice(len(pool), _POOL, replace=False)]
    return np.asarray(pool)


def _hunt(hunt: Hunt, scores: Scores | None, pool: Array, people: Index) -> None:
    """Leave one accepted change per person, as cheap as it gets, of those for whom any is found."""
    rng = np.random.default_rng([hunt.problem.seed, int(people[0])])
    _begin(hunt, scores, pool, people, rng)
    if len(hunt) == 0:
        return
    shrink(hunt, 2)
    revert(hunt)
    tighten(hunt, 2)
    if scores is not None and scores.guessed:
        shrink(hunt, 6)
        scores.learn(hunt.person, hunt.own)
    for scale in (0.3, 0.1, 0.03):
        _polish(hunt, scores, scale, 6)
        hunt.keep(3)
    places = pool if len(pool) else hunt.own.copy()
    quiet = np.zeros(len(hunt), dtype=int)
    for _ in range(_ROUNDS):
        active = np.flatnonzero(quiet < _PATIENCE)
        if len(active) == 0 or hunt.until():
            break
        improved = exchange(hunt, places, rng, _PROPOSALS, active)
        quiet[active] = np.where(improved[active], 0, quiet[active] + 1)
    hunt.keep(2)
    _polish(hunt, scores, 0.03, 12)
    hunt.keep(1)
    for _ in range(2):
        if not (shrink(hunt, 8) | revert(hunt) | tighten(hunt, 8)).any():
            break


def _polish(hunt: Hunt, scores: Scores | None, scale: float, rounds: int) -> None:
    """What moves along the boundary, in the way that the model's score, or its absence, allows."""
    smooth = hunt.problem.cost.is_distance
    if scores is not None and (not hunt.room.continuous.all() or not smooth or scale > 0.2):
        rows, own = bargain(hunt, scores, hunt.person, hunt.own, scale)
        hunt.begin(hunt.person[rows], own)
        hunt.keep(_ATTEMPTS)
    if scores is not None and smooth and not scores.flat:
        walk(hunt, scores, rounds * scores.rounds)
    if scores is None or scores.flat:
        shrink(hunt, 4)
        turn(hunt, scale)


def _begin(hunt: Hunt, scores: Scores | None, pool: Array, people: Index, rng: np.random.Generator) -> None:
    """First accepted changes: near accepted people, along the score, by one feature alone, and at random."""
    room = hunt.room
    if len(pool):
        _near_accepted_people(hunt, pool, people)
    if scores is not None:
        numbers = np.array([feature.is_number for feature in hunt.problem.actions], dtype=bool)
        for allowed in {mask.tobytes(): mask for mask in (numbers | True, numbers, room.continuous)}.values():
            rows, own = bargain(hunt, scores, people, room.start[people], 1.0, allowed)
            hunt.begin(people[rows], own)
    _one_alone(hunt, people)
    for widening in (1.0, 4.0, 16.0):
        missing = np.setdiff1d(people, hunt.person)
        if len(missing) == 0:
            break
        _at_random(hunt, missing, widening, rng)
        # What helped others may help those who are still without.
        missing, others = np.setdiff1d(people, hunt.person), hunt.own[:_DRAWS]
        hunt.begin(np.repeat(missing, len(others)), np.tile(others, (len(missing), 1)))
    hunt.keep(_ATTEMPTS)


def _near_accepted_people(hunt: Hunt, pool: Array, people: Index) -> None:
    """Go where the nearest accepted people are; farther and farther away for those who get no yes there."""
    n, k = len(people), len(pool)
    who = np.repeat(people, k)
    wishes = hunt.room.snap(who, np.tile(pool, (n, 1)))
    order = np.argsort(hunt.objective(who, wishes).reshape(n, k), axis=1, kind="stable")
    begin, width = 0, 2 * _ATTEMPTS
    some_labels = bool((~hunt.room.ordered & hunt.room.movable[people]).any())
    while begin < k:
        lacking = np.flatnonzero(~np.isin(people, hunt.person))
        if len(lacking) == 0:
            break
        chosen = order[lacking, begin : begin + width]
        rows = (lacking[:, None] * k + chosen).ravel()
        hunt.begin(who[rows], wishes[rows])
        if some_labels:  # their numbers may do without their labels
            hunt.begin(who[rows], np.where(hunt.room.ordered, wishes[rows], hunt.room.start[who[rows]]))
        begin, width = begin + width, 2 * width


def _one_alone(hunt: Hunt, people: Index) -> None:
    """Move one feature by itself, as far as its range goes, either way; or take another label."""
    room = hunt.room
    rows, feature = np.nonzero(room.movable[people] & room.ordered)
    ends = np.concatenate([room.floor[people[rows], feature], room.ceiling[people[rows], feature]])
    who, feature = np.tile(people[rows], 2), np.tile(feature, 2)

    def path(at: Index, places: Array) -> Array:
        own = room.start[who[at]]
        own[np.arange(len(at)), feature[at]] += places * (ends[at] - own[np.arange(len(at)), feature[at]])
        return own

    place, found = hunt.pull(who, path, 1)
    good = np.isfinite(place)
    hunt.begin(who[good], found[good])
    owns, whose = [room.start[:0]], [people[:0]]
    for j in np.flatnonzero(~room.ordered).tolist():
        rows, option = np.nonzero(room.options(j)[people])
        own = room.start[people[rows]]
        own[:, j] = room.labels(j)[option]
        owns.append(own)
        whose.append(people[rows])
    hunt.begin(np.concatenate(whose), np.vstack(owns))


def _at_random(hunt: Hunt, people: Index, widening: float, rng: np.random.Generator) -> None:
    """Random values of random features, within limits and what people have, or a multiple of that range."""
    room = hunt.room
    who = np.repeat(people, _DRAWS)
    low, high = room.floor[who], room.ceiling[who]
    middle, half = 0.5 * (low + high), 0.5 * widening * (high - low)
    # Ends of the range as often as what lies between: far is where a yes is, if it is not near.
    place = rng.choice([-1.0, 1.0], size=low.shape) * np.where(rng.random(low.shape) < 0.5, 1.0, rng.random(low.shape))
    own = middle + place * half
    for j in np.flatnonzero(~room.ordered):
        codes = room.labels(int(j))
        if len(codes):
            own[:, j] = rng.choice(codes, size=len(who))
    changes = rng.random(own.shape) < rng.random(len(who))[:, None]
    hunt.begin(who, np.where(changes, own, room.start[who]))
