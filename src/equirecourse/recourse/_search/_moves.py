"""Local moves that make accepted changes cheaper. Each treats all attempts at once, with a few calls of the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Distance
from equirecourse.recourse._search._attempts import Attempts
from equirecourse.recourse._search._descent import descend
from equirecourse.recourse._search._halfspace import cheapest_in_halfspace
from equirecourse.recourse._search._multiple_choice import multiple_choice_knapsack
from equirecourse.recourse._search._scores import Scores

__all__ = ["exchange", "follow_boundary", "follow_tangent", "propose_additive", "revert", "shrink", "tighten"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_OPTIONS = 24  # maximum number of options per feature


def shrink(attempts: Attempts, rounds: int) -> Mask:
    """Move back towards the start on a straight line; if the largest part counts, cut all parts at a level instead."""
    attempt = np.arange(len(attempts))
    start, own = attempts.start, attempts.own.copy()
    parts = attempts.parts(attempts.person, own)
    level = parts.max(axis=1, initial=0.0)

    def path(rows: Index, places: Array) -> Array:
        share = np.broadcast_to(places[:, None], (len(rows), own.shape[1]))
        if attempts.problem.cost.is_largest:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                share = np.fmin(share * level[rows, None] / parts[rows], 1.0)
        return np.where(attempts.feasible.ordered, start[rows] + share * (own[rows] - start[rows]), own[rows])

    place, found = attempts.first_accepted(attempts.person, path, rounds)
    good = np.isfinite(place)
    return attempts.offer(attempt[good], found[good])


def revert(attempts: Attempts) -> Mask:
    """Undo the changes of one feature or several."""
    attempt, feature = np.nonzero(attempts.changed)
    own = attempts.own[attempt]
    own[np.arange(len(attempt)), feature] = attempts.start[attempt, feature]
    good = attempts.allowed(attempts.person[attempt], own)
    attempt, feature = attempt[good], feature[good]
    return attempts.combine(attempt, feature, attempts.start[attempt, feature])


def tighten(attempts: Attempts, rounds: int) -> Mask:
    """Move each feature back by itself as far as possible, then several together."""
    attempt, feature = np.nonzero(attempts.changed & attempts.feasible.ordered)
    rows_own, home = attempts.own[attempt], attempts.start[attempt, feature]
    now = rows_own[np.arange(len(attempt)), feature]

    def path(rows: Index, places: Array) -> Array:
        own = rows_own[rows]
        own[np.arange(len(rows)), feature[rows]] = home[rows] + places * (now[rows] - home[rows])
        return own

    place, found = attempts.first_accepted(attempts.person[attempt], path, rounds)
    good = place < 1.0
    value = found[good, feature[good]]
    return attempts.combine(attempt[good], feature[good], value)


def exchange(attempts: Attempts, pool: Array, rng: np.random.Generator, count: int, chosen: Index) -> Mask:
    """Undo part of one feature's change and, at random, change another feature instead."""
    attempt = np.repeat(chosen, count)
    if attempts.problem.cost.is_largest:
        return _exchange_below_level(attempts, pool, rng, attempt)
    n, people, own = len(attempt), attempts.person[attempt], attempts.own[attempt]
    start, feasible, rows = attempts.feasible.start[people], attempts.feasible, np.arange(len(attempt))
    parts = attempts.parts(people, own)
    # Costly features are more likely to be chosen. They move back fully, in part, or by one position.
    with np.errstate(divide="ignore"):
        given = np.argmax(np.log(parts) + rng.gumbel(size=parts.shape), axis=1)
    kind = rng.integers(3, size=n)
    back = start[rows, given] + rng.random(n) * (own[rows, given] - start[rows, given])
    nearer = feasible.move_by_steps(people, given, own[rows, given], np.sign(start[rows, given] - own[rows, given]))
    own[rows, given] = np.select([kind == 0, kind == 1], [start[rows, given], back], nearer)
    unordered = ~feasible.ordered[given]
    own[rows[unordered], given[unordered]] = start[rows[unordered], given[unordered]]
    # The other feature takes the value of an accepted person, moves on, or moves by one or two positions.
    chance = np.where(feasible.movable[people] & (np.arange(own.shape[1]) != given[:, None]), 1.0, -1.0)
    other = np.argmax(chance * rng.random(own.shape), axis=1)
    able = chance[rows, other] > 0
    borrowed = pool[rng.integers(len(pool), size=n), other]
    further = own[rows, other] + rng.exponential(0.5, size=n) * (own[rows, other] - start[rows, other])
    stepped = feasible.move_by_steps(people, other, own[rows, other], rng.choice([-2.0, -1.0, 1.0, 2.0], size=n))
    kind = np.where(feasible.ordered[other], rng.integers(3, size=n), 0)
    value = np.select([kind == 0, kind == 1], [borrowed, further], stepped)
    own[rows[able], other[able]] = value[able]
    return attempts.offer(attempt, own)


def _exchange_below_level(attempts: Attempts, pool: Array, rng: np.random.Generator, attempt: Index) -> Mask:
    """If the largest part counts: cut all parts at a level, below which other features may move at no cost."""
    n, people, own = len(attempt), attempts.person[attempt], attempts.own[attempt]
    start, feasible = attempts.feasible.start[people], attempts.feasible
    level = attempts.parts(people, own).max(axis=1) * rng.uniform(0.3, 1.0, size=n)
    taken = rng.random(own.shape) < rng.uniform(0.0, 0.5, size=n)[:, None]
    own = np.where(taken & feasible.movable[people], pool[rng.integers(len(pool), size=n)], own)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = np.fmin(level[:, None] / attempts.parts(people, own), 1.0)
    return attempts.offer(attempt, np.where(feasible.ordered, start + share * (own - start), own))


def propose_additive(
    attempts: Attempts, scores: Scores, people: Index, centre: Array, scale: float, allowed: Mask | None = None
) -> tuple[Index, Array]:
    """Propose the cheapest changes under an additive model of the score around ``centre``.

    Parameters
    ----------
    attempts : Attempts
        The state of the search.
    scores : Scores
        The model's scores.
    people : ndarray of int, shape (n_rows,)
        The person of each row.
    centre : ndarray of shape (n_rows, n_features)
        The change around which single features are moved.
    scale : float
        Length of the moves, as a share of each feature's range.
    allowed : ndarray of bool, shape (n_features,), optional
        The features that may change; the others stay at the start. By default all.

    Returns
    -------
    rows : ndarray of int
        The row of each proposal.
    own : ndarray
        Proposals, which the model has not seen.
    """
    start = attempts.feasible.start[people]
    if allowed is not None:
        centre = np.where(allowed, centre, start)
    options = _options(attempts, people, centre, scale)
    if allowed is not None:
        options[:, ~allowed] = start[:, ~allowed, None]
    here = scores.values(people, centre)
    # The centre itself need not be asked about again.
    row, feature, place = np.nonzero((options != centre[:, :, None]) & ~np.isnan(options))
    moved = centre[row]
    moved[np.arange(len(row)), feature] = options[row, feature, place]
    gains = np.zeros(options.shape)
    gains[row, feature, place] = scores.values(people[row], moved) - here[row]
    return _proposals(attempts, people, options, gains, -here, np.abs(here) + np.abs(scores.values(people, start)))


def _proposals(
    attempts: Attempts, people: Index, options: Array, gains: Array, need: Array, size: Array
) -> tuple[Index, Array]:
    start, features = attempts.feasible.start[people], attempts.problem.actions.features
    costs = np.stack(
        [attempts.problem.cost.of_move(feature, start[:, [j]], options[:, j]) for j, feature in enumerate(features)],
        axis=1,
    )
    proposals = []
    # Gains are not exactly additive: try several margins, one of them negative.
    for spare in (1e-3, 0.1, 0.35, 1.0, -0.1):
        choice = multiple_choice_knapsack(gains, costs, need + spare * size, attempts.problem.cost)
        proposals.append(np.take_along_axis(options, choice[:, :, None], axis=2)[:, :, 0])
    return np.tile(np.arange(len(people)), len(proposals)), np.vstack(proposals)


def _options(attempts: Attempts, people: Index, centre: Array, scale: float) -> Array:
    """Options per person and feature: to stay, then the centre, then values around it."""
    feasible = attempts.feasible
    start, low, high = feasible.start[people], feasible.floor[people], feasible.ceiling[people]
    d = centre.shape[1]
    steps = np.array([1.0, 0.6, 0.35, 0.2, 0.1])
    steps = scale * np.concatenate([steps, -steps])
    longest = max([len(feasible.labels(j)) for j in range(d) if not feasible.ordered[j]], default=0)
    m = 2 + max(len(steps), min(longest, _OPTIONS))
    options = np.repeat(centre[:, :, None], m, axis=2)
    options[:, :, 0] = start
    for j in range(d):
        if feasible.ordered[j]:
            width = (high[:, j] - low[:, j])[:, None]
            options[:, j, 2 : 2 + len(steps)] = np.clip(
                centre[:, [j]] + steps * width, np.minimum(low[:, j], centre[:, j])[:, None],
                np.maximum(high[:, j], centre[:, j])[:, None],
            )  # fmt: skip
        else:
            codes = feasible.labels(j)[:_OPTIONS]
            options[:, j, 2 : 2 + len(codes)] = codes
    flat = feasible.snap(np.repeat(people, m), options.transpose(0, 2, 1).reshape(-1, d))
    return flat.reshape(len(people), m, d).transpose(0, 2, 1)


def follow_boundary(attempts: Attempts, scores: Scores, rounds: int) -> Mask:
    """Descend along the boundary in the continuous features; the others stay."""
    cost = attempts.problem.cost
    assert isinstance(cost, Distance)
    free = attempts.feasible.continuous & attempts.feasible.movable.any(axis=0)
    rows = np.flatnonzero((attempts.changed & free).any(axis=1))
    if len(rows) == 0:
        return np.zeros(len(attempts), dtype=bool)
    people, own, start = attempts.person[rows], attempts.own[rows], attempts.start[rows]
    low, high = _limits(attempts, people, own, free)
    prices = np.array([feature.cost for feature in attempts.problem.actions])
    moves = np.where(free & attempts.feasible.movable[people], own - start, 0.0)
    moves = descend(
        scores.surface(people, own, free), cost, moves, low, high, prices, rounds=rounds, until=attempts.until
    )
    found = np.where(free & attempts.feasible.movable[people], start + moves, own)
    # Rounding errors, rules or limits of linked numbers may make the result unacceptable: try points nearby.
    overshoots = [found + overshoot * (found - start) for overshoot in (0.0, 1e-9, 1e-7, 1e-5)]
    halfway = [own + share * (found - own) for share in (0.9, 0.5)]
    tries = [np.where(free & attempts.feasible.movable[people], tried, own) for tried in overshoots + halfway]
    return attempts.offer(np.tile(rows, len(tries)), np.vstack(tries))


def _limits(attempts: Attempts, people: Index, own: Array, free: Mask) -> tuple[Array, Array]:
    """Limits of the moves of continuous features; people who start outside the limits and stay there do not move."""
    feasible, start = attempts.feasible, attempts.feasible.start[people]
    moves = free & feasible.movable[people]
    outside = (start < feasible.low[people]) | (start > feasible.high[people])
    moves &= ~(outside & (own == start))
    with np.errstate(invalid="ignore"):
        return np.where(moves, feasible.low[people] - start, 0.0), np.where(moves, feasible.high[people] - start, 0.0)


def follow_tangent(attempts: Attempts, scale: float, rounds: int = 4) -> Mask:
    """Move along the boundary without scores: estimate its tangent from crossings with rays.

    With w the normal of the boundary and d the change, w·d = 1: if a feature's move by h lets the ray from the start
    cross the boundary at t instead of 1, then w·(t d + h e) = 1, so that the feature's part of w is (1 − t) / h.
    """
    chosen = np.flatnonzero((attempts.changed & attempts.feasible.ordered).any(axis=1))
    if len(chosen) == 0:
        return np.zeros(len(attempts), dtype=bool)
    people, own = attempts.person[chosen], attempts.own[chosen]
    options = _options(attempts, people, own, scale)
    slopes, gains = _measure_slopes(attempts, people, own, attempts.worth[chosen], options, rounds)
    rows, proposals = _proposals(attempts, people, options, gains, np.zeros(len(people)), np.ones(len(people)))
    cost = attempts.problem.cost
    if isinstance(cost, Distance):
        free = attempts.feasible.continuous & attempts.feasible.movable[people]
        low, high = _limits(attempts, people, own, free)
        prices = np.array([feature.cost for feature in attempts.problem.actions])
        delta = np.where(free, own - attempts.feasible.start[people], 0.0)
        normal = np.where(free, slopes, 0.0)
        goal = cheapest_in_halfspace(cost, normal, (normal * delta).sum(axis=1), low, high, prices)
        rows = np.concatenate([rows, np.arange(len(people))])
        proposals = np.vstack([proposals, np.where(free, attempts.feasible.start[people] + goal, own)])
    # Each proposal is a direction: search for the point where it crosses the boundary.
    start = attempts.feasible.start[people]

    def ray(at: Index, places: Array) -> Array:
        here = start[rows[at]]
        return np.where(attempts.feasible.ordered, here + places[:, None] * (proposals[at] - here), proposals[at])

    place, found = attempts.first_accepted(people[rows], ray, rounds + 2, end=2.0)
    good = np.isfinite(place)
    return attempts.offer(chosen[rows[good]], found[good])


def _measure_slopes(
    attempts: Attempts, people: Index, own: Array, worth: Array, options: Array, rounds: int
) -> tuple[Array, Array]:
    """Slopes of ordered features and gains of all options; the gain from the start to the boundary is 1."""
    feasible, start = attempts.feasible, attempts.feasible.start[people]
    ordered = feasible.ordered & feasible.movable[people]
    delta = np.where(ordered, own - start, 0.0)
    prices = np.array([feature.cost for feature in attempts.problem.actions])
    reach = np.broadcast_to(0.1 * feasible.spread, own.shape)
    if attempts.problem.cost.is_distance:
        reach = np.minimum(0.3 * worth[:, None] / prices, feasible.spread)
    slopes, gains = np.zeros_like(own), np.zeros(options.shape)
    for sign in (1.0, -1.0):
        rows, feature = np.nonzero(ordered & (slopes == 0.0))
        value = own[rows, feature] + sign * reach[rows, feature]
        stepped = feasible.move_by_steps(people[rows], feature, own[rows, feature], np.full(len(rows), sign))
        further = feasible.is_discrete[feature] & (
            np.abs(stepped - own[rows, feature]) > np.abs(value - own[rows, feature])
        )
        place, found = _crossings(
            attempts, people, own, delta, rows, feature, np.where(further, stepped, value), rounds
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            straight = start[rows, feature] + place * delta[rows, feature]
            slope = (1.0 - place) / (found[np.arange(len(rows)), feature] - straight)
        slopes[rows, feature] = np.where(np.isfinite(slope), slope, 0.0)
    with np.errstate(invalid="ignore"):
        gains = np.where(ordered[:, :, None], slopes[:, :, None] * (options - own[:, :, None]), 0.0)
    rows, feature, option = np.nonzero(~feasible.ordered[:, None] & (options != own[:, :, None]) & ~np.isnan(options))
    place, _ = _crossings(attempts, people, own, delta, rows, feature, options[rows, feature, option], rounds)
    gains[rows, feature, option] = 1.0 - np.minimum(place, 2.5)
    return slopes, gains


def _crossings(
    attempts: Attempts, people: Index, own: Array, delta: Array, rows: Index, feature: Index, value: Array, rounds: int
) -> tuple[Array, Array]:
    """Where the ray of an attempt crosses the boundary after one feature is moved to a value."""
    aside = value - own[rows, feature]
    base = np.where(delta != 0.0, attempts.feasible.start[people], own)

    def path(at: Index, places: Array) -> Array:
        wish = base[rows[at]] + places[:, None] * delta[rows[at]]
        wish[np.arange(len(at)), feature[at]] += aside[at]
        return wish

    return attempts.first_accepted(people[rows], path, rounds, end=2.0)
