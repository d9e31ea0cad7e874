"""Ways to make an accepted change cheaper; each looks at all attempts at once and asks the model a few times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Distance
from equirecourse.recourse._search._bargain import cheapest_options
from equirecourse.recourse._search._descent import descend
from equirecourse.recourse._search._halfspace import cheapest_in_halfspace
from equirecourse.recourse._search._hunt import Hunt
from equirecourse.recourse._search._scores import Scores

__all__ = ["bargain", "exchange", "revert", "shrink", "tighten", "turn", "walk"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_OPTIONS = 24  # most options of a feature that are priced at once


def shrink(hunt: Hunt, rounds: int) -> Mask:
    """Go back towards the start on a straight line; where only the largest part counts, all parts down to a level."""
    attempt = np.arange(len(hunt))
    start, own = hunt.start, hunt.own.copy()
    parts = hunt.parts(hunt.person, own)
    level = parts.max(axis=1, initial=0.0)

    def path(rows: Index, places: Array) -> Array:
        share = np.broadcast_to(places[:, None], (len(rows), own.shape[1]))
        if hunt.problem.cost.is_largest:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                share = np.fmin(share * level[rows, None] / parts[rows], 1.0)
        return np.where(hunt.room.ordered, start[rows] + share * (own[rows] - start[rows]), own[rows])

    place, found = hunt.pull(hunt.person, path, rounds)
    good = np.isfinite(place)
    return hunt.offer(attempt[good], found[good])


def revert(hunt: Hunt) -> Mask:
    """Give back features, one or several."""
    attempt, feature = np.nonzero(hunt.changed)
    own = hunt.own[attempt]
    own[np.arange(len(attempt)), feature] = hunt.start[attempt, feature]
    good = hunt.allowed(hunt.person[attempt], own)
    attempt, feature = attempt[good], feature[good]
    return hunt.combine(attempt, feature, hunt.start[attempt, feature])


def tighten(hunt: Hunt, rounds: int) -> Mask:
    """Go back with each feature by itself as far as it can, then with several of them."""
    attempt, feature = np.nonzero(hunt.changed & hunt.room.ordered)
    rows_own, home = hunt.own[attempt], hunt.start[attempt, feature]
    now = rows_own[np.arange(len(attempt)), feature]

    def path(rows: Index, places: Array) -> Array:
        own = rows_own[rows]
        own[np.arange(len(rows)), feature[rows]] = home[rows] + places * (now[rows] - home[rows])
        return own

    place, found = hunt.pull(hunt.person[attempt], path, rounds)
    good = place < 1.0
    value = found[good, feature[good]]
    return hunt.combine(attempt[good], feature[good], value)


def exchange(hunt: Hunt, pool: Array, rng: np.random.Generator, count: int, attempts: Index) -> Mask:
    """Give back some of one feature and, at random, change another instead."""
    attempt = np.repeat(attempts, count)
    if hunt.problem.cost.is_largest:
        return _level_out(hunt, pool, rng, attempt)
    n, people, own = len(attempt), hunt.person[attempt], hunt.own[attempt]
    start, room, rows = hunt.room.start[people], hunt.room, np.arange(len(attempt))
    parts = hunt.parts(people, own)
    # The dearer a feature, the likelier it is given back: fully, in part, or by one rung.
    with np.errstate(divide="ignore"):
        given = np.argmax(np.log(parts) + rng.gumbel(size=parts.shape), axis=1)
    kind = rng.integers(3, size=n)
    back = start[rows, given] + rng.random(n) * (own[rows, given] - start[rows, given])
    rung = room.climb(people, given, own[rows, given], np.sign(start[rows, given] - own[rows, given]))
    own[rows, given] = np.select([kind == 0, kind == 1], [start[rows, given], back], rung)
    unordered = ~room.ordered[given]
    own[rows[unordered], given[unordered]] = start[rows[unordered], given[unordered]]
    # Another feature takes a value of an accepted person, goes on, or climbs a rung or two either way.
    chance = np.where(room.movable[people] & (np.arange(own.shape[1]) != given[:, None]), 1.0, -1.0)
    other = np.argmax(chance * rng.random(own.shape), axis=1)
    able = chance[rows, other] > 0
    borrowed = pool[rng.integers(len(pool), size=n), other]
    further = own[rows, other] + rng.exponential(0.5, size=n) * (own[rows, other] - start[rows, other])
    climbed = room.climb(people, other, own[rows, other], rng.choice([-2.0, -1.0, 1.0, 2.0], size=n))
    kind = np.where(room.ordered[other], rng.integers(3, size=n), 0)
    value = np.select([kind == 0, kind == 1], [borrowed, further], climbed)
    own[rows[able], other[able]] = value[able]
    return hunt.offer(attempt, own)


def _level_out(hunt: Hunt, pool: Array, rng: np.random.Generator, attempt: Index) -> Mask:
    """Where only the largest part counts: all parts go down to a level, and others come up to it for nothing."""
    n, people, own = len(attempt), hunt.person[attempt], hunt.own[attempt]
    start, room = hunt.room.start[people], hunt.room
    level = hunt.parts(people, own).max(axis=1) * rng.uniform(0.3, 1.0, size=n)
    taken = rng.random(own.shape) < rng.uniform(0.0, 0.5, size=n)[:, None]
    own = np.where(taken & room.movable[people], pool[rng.integers(len(pool), size=n)], own)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = np.fmin(level[:, None] / hunt.parts(people, own), 1.0)
    return hunt.offer(attempt, np.where(room.ordered, start + share * (own - start), own))


def bargain(
    hunt: Hunt, scores: Scores, people: Index, centre: Array, scale: float, allowed: Mask | None = None
) -> tuple[Index, Array]:
    """Changes that would be cheapest if what each feature adds to the score around ``centre`` simply added up.

    Parameters
    ----------
    hunt : Hunt
        Knows costs.
    scores : Scores
        The model's scores.
    people : ndarray of int, shape (n_rows,)
        Who.
    centre : ndarray of shape (n_rows, n_features)
        The change around which each feature is moved by itself.
    scale : float
        How far, as a share of the range of each feature.
    allowed : ndarray of bool, shape (n_features,), optional
        The features that may change; the others stay at the start. By default all.

    Returns
    -------
    rows : ndarray of int
        The row each proposal is for.
    own : ndarray
        Proposals, not yet tried.
    """
    start = hunt.room.start[people]
    if allowed is not None:
        centre = np.where(allowed, centre, start)
    options = _options(hunt, people, centre, scale)
    if allowed is not None:
        options[:, ~allowed] = start[:, ~allowed, None]
    here = scores.values(people, centre)
    # Options that are the centre itself need no question.
    row, feature, place = np.nonzero((options != centre[:, :, None]) & ~np.isnan(options))
    moved = centre[row]
    moved[np.arange(len(row)), feature] = options[row, feature, place]
    gains = np.zeros(options.shape)
    gains[row, feature, place] = scores.values(people[row], moved) - here[row]
    return _proposals(hunt, people, options, gains, -here, np.abs(here) + np.abs(scores.values(people, start)))


def _proposals(
    hunt: Hunt, people: Index, options: Array, gains: Array, need: Array, size: Array
) -> tuple[Index, Array]:
    start, features = hunt.room.start[people], hunt.problem.actions.features
    costs = np.stack(
        [hunt.problem.cost.of_move(feature, start[:, [j]], options[:, j]) for j, feature in enumerate(features)],
        axis=1,
    )
    proposals = []
    # Gains that do not quite add up: with something to spare, and with something missing.
    for spare in (1e-3, 0.1, 0.35, 1.0, -0.1):
        choice = cheapest_options(gains, costs, need + spare * size, hunt.problem.cost)
        proposals.append(np.take_along_axis(options, choice[:, :, None], axis=2)[:, :, 0])
    return np.tile(np.arange(len(people)), len(proposals)), np.vstack(proposals)


def _options(hunt: Hunt, people: Index, centre: Array, scale: float) -> Array:
    """For each person and feature: staying first, then the centre, then values around it."""
    room = hunt.room
    start, low, high = room.start[people], room.floor[people], room.ceiling[people]
    d = centre.shape[1]
    steps = np.array([1.0, 0.6, 0.35, 0.2, 0.1])
    steps = scale * np.concatenate([steps, -steps])
    longest = max([len(room.labels(j)) for j in range(d) if not room.ordered[j]], default=0)
    m = 2 + max(len(steps), min(longest, _OPTIONS))
    options = np.repeat(centre[:, :, None], m, axis=2)
    options[:, :, 0] = start
    for j in range(d):
        if room.ordered[j]:
            width = (high[:, j] - low[:, j])[:, None]
            options[:, j, 2 : 2 + len(steps)] = np.clip(
                centre[:, [j]] + steps * width, np.minimum(low[:, j], centre[:, j])[:, None],
                np.maximum(high[:, j], centre[:, j])[:, None],
            )  # fmt: skip
        else:
            codes = room.labels(j)[:_OPTIONS]
            options[:, j, 2 : 2 + len(codes)] = codes
    flat = room.snap(np.repeat(people, m), options.transpose(0, 2, 1).reshape(-1, d))
    return flat.reshape(len(people), m, d).transpose(0, 2, 1)


def walk(hunt: Hunt, scores: Scores, rounds: int) -> Mask:
    """Walk along the boundary with the continuous features; labels and rungs stay."""
    cost = hunt.problem.cost
    assert isinstance(cost, Distance)
    free = hunt.room.continuous & hunt.room.movable.any(axis=0)
    rows = np.flatnonzero((hunt.changed & free).any(axis=1))
    if len(rows) == 0:
        return np.zeros(len(hunt), dtype=bool)
    people, own, start = hunt.person[rows], hunt.own[rows], hunt.start[rows]
    low, high = _limits(hunt, people, own, free)
    prices = np.array([feature.cost for feature in hunt.problem.actions])
    moves = np.where(free & hunt.room.movable[people], own - start, 0.0)
    moves = descend(scores.surface(people, own, free), cost, moves, low, high, prices, rounds=rounds, until=hunt.until)
    found = np.where(free & hunt.room.movable[people], start + moves, own)
    # The boundary is met from the yes side, but for rounding; and rules or carried limits may be in the way.
    hairs = [found + hair * (found - start) for hair in (0.0, 1e-9, 1e-7, 1e-5)]
    halfway = [own + share * (found - own) for share in (0.9, 0.5)]
    tries = [np.where(free & hunt.room.movable[people], tried, own) for tried in hairs + halfway]
    return hunt.offer(np.tile(rows, len(tries)), np.vstack(tries))


def _limits(hunt: Hunt, people: Index, own: Array, free: Mask) -> tuple[Array, Array]:
    """Limits of the moves of continuous features; who starts outside of them and stays there, stays."""
    room, start = hunt.room, hunt.room.start[people]
    moves = free & room.movable[people]
    outside = (start < room.low[people]) | (start > room.high[people])
    moves &= ~(outside & (own == start))
    with np.errstate(invalid="ignore"):
        return np.where(moves, room.low[people] - start, 0.0), np.where(moves, room.high[people] - start, 0.0)


def turn(hunt: Hunt, scale: float, rounds: int = 4) -> Mask:
    """The same without scores: feel the boundary from where it crosses rays, then aim at its tangent.

    With w the normal of the boundary and d the change, w·d = 1: if a feature's move by h lets the ray from the start
    cross the boundary at t instead of 1, then w·(t d + h e) = 1, so that the feature's part of w is (1 − t) / h.
    """
    attempts = np.flatnonzero((hunt.changed & hunt.room.ordered).any(axis=1))
    if len(attempts) == 0:
        return np.zeros(len(hunt), dtype=bool)
    people, own = hunt.person[attempts], hunt.own[attempts]
    options = _options(hunt, people, own, scale)
    slopes, gains = _feel(hunt, people, own, hunt.worth[attempts], options, rounds)
    rows, proposals = _proposals(hunt, people, options, gains, np.zeros(len(people)), np.ones(len(people)))
    cost = hunt.problem.cost
    if isinstance(cost, Distance):
        free = hunt.room.continuous & hunt.room.movable[people]
        low, high = _limits(hunt, people, own, free)
        prices = np.array([feature.cost for feature in hunt.problem.actions])
        delta = np.where(free, own - hunt.room.start[people], 0.0)
        normal = np.where(free, slopes, 0.0)
        goal = cheapest_in_halfspace(cost, normal, (normal * delta).sum(axis=1), low, high, prices)
        rows = np.concatenate([rows, np.arange(len(people))])
        proposals = np.vstack([proposals, np.where(free, hunt.room.start[people] + goal, own)])
    # Each proposal is a direction: what counts is where it meets the boundary.
    start = hunt.room.start[people]

    def ray(at: Index, places: Array) -> Array:
        here = start[rows[at]]
        return np.where(hunt.room.ordered, here + places[:, None] * (proposals[at] - here), proposals[at])

    place, found = hunt.pull(people[rows], ray, rounds + 2, end=2.0)
    good = np.isfinite(place)
    return hunt.offer(attempts[rows[good]], found[good])


def _feel(hunt: Hunt, people: Index, own: Array, worth: Array, options: Array, rounds: int) -> tuple[Array, Array]:
    """Slopes of ordered features and gains of all options, in units of the way from the start to the boundary."""
    room, start = hunt.room, hunt.room.start[people]
    ordered = room.ordered & room.movable[people]
    delta = np.where(ordered, own - start, 0.0)
    prices = np.array([feature.cost for feature in hunt.problem.actions])
    reach = np.broadcast_to(0.1 * room.spread, own.shape)
    if hunt.problem.cost.is_distance:
        reach = np.minimum(0.3 * worth[:, None] / prices, room.spread)
    slopes, gains = np.zeros_like(own), np.zeros(options.shape)
    for sign in (1.0, -1.0):
        rows, feature = np.nonzero(ordered & (slopes == 0.0))
        value = own[rows, feature] + sign * reach[rows, feature]
        rung = room.climb(people[rows], feature, own[rows, feature], np.full(len(rows), sign))
        further = room.has_rungs[feature] & (np.abs(rung - own[rows, feature]) > np.abs(value - own[rows, feature]))
        place, found = _crossings(hunt, people, own, delta, rows, feature, np.where(further, rung, value), rounds)
        with np.errstate(invalid="ignore", divide="ignore"):
            straight = start[rows, feature] + place * delta[rows, feature]
            slope = (1.0 - place) / (found[np.arange(len(rows)), feature] - straight)
        slopes[rows, feature] = np.where(np.isfinite(slope), slope, 0.0)
    with np.errstate(invalid="ignore"):
        gains = np.where(ordered[:, :, None], slopes[:, :, None] * (options - own[:, :, None]), 0.0)
    rows, feature, option = np.nonzero(~room.ordered[:, None] & (options != own[:, :, None]) & ~np.isnan(options))
    place, _ = _crossings(hunt, people, own, delta, rows, feature, options[rows, feature, option], rounds)
    gains[rows, feature, option] = 1.0 - np.minimum(place, 2.5)
    return slopes, gains


def _crossings(
    hunt: Hunt, people: Index, own: Array, delta: Array, rows: Index, feature: Index, value: Array, rounds: int
) -> tuple[Array, Array]:
    """Where the ray of an attempt, with one feature moved aside to a value, meets the boundary."""
    aside = value - own[rows, feature]
    base = np.where(delta != 0.0, hunt.room.start[people], own)

    def path(at: Index, places: Array) -> Array:
        wish = base[rows[at]] + places[:, None] * delta[rows[at]]
        wish[np.arange(len(at)), feature[at]] += aside[at]
        return wish

    return hunt.pull(people[rows], path, rounds, end=2.0)
