"""The cheapest point that a forest accepts: branch and bound over boxes of places.

A box holds some places of each feature. Three bounds throw boxes away:

* its cheapest point costs as much as the best action known;
* even if every tree went to its best leaf (among those that the box and the budget still allow), the score would stay
  below zero;
* (costs that add up) the score that each feature could win, tree by tree, is at most a sum of one term per feature: a
  leaf that needs moves of several features is shared out among them by what they cost. The best use of a budget is then
  a knapsack with one choice per feature, and its relaxation has a closed dual. The same dual drops single places.

A box that is left is cut in two where the best leaves of the trees contradict each other most: both halves lose.
The depth-first order needs little memory. Sums decide with a tolerance; within it, the votes are added up again in the
model's own order and precision.

Notation as in ``_person``; ``x`` is the cheapest point of a box, ``cut`` the cost from which on nothing is of use.
Inner loops unpack the named tuples, and tell ordered features from sets in one line each: handing tuples of arrays to a
function per entry costs ten times the work itself.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from equirecourse._numba import njit
from equirecourse.recourse._trees._bounds import knapsack, optimism, propagate, shares, trim
from equirecourse.recourse._trees._cuts import any_cut, contradiction, other_point
from equirecourse.recourse._trees._person import Leaves, Places
from equirecourse.recourse._trees._points import (
    Box,
    Stack,
    accepts,
    broken_rule,
    cheapest_point,
    cost_of,
    has_bit,
    was_refused,
)

__all__ = ["open_stack", "search"]

_WORTH = 1.0 - 1e-12  # an action counts as cheaper if it is so by more than rounding
_ROUNDS = 4  # of bounds in one box, as long as they drop places


def open_stack(places: Places, leaves: Leaves, n_words: int, room: int) -> Stack:
    """A stack that holds the box of all places."""
    p, n_sets = len(places.home), int(places.row.max(initial=-1)) + 1
    stack = Stack(
        np.zeros((room, p), dtype=np.int32),
        np.zeros((room, p), dtype=np.int32),
        np.zeros((room, max(n_sets, 1), max(n_words, 1)), dtype=np.uint64),
        np.zeros((room, len(leaves.tree_begin) - 1), dtype=np.int64),
    )
    size = np.diff(places.begin)
    stack.high[0] = size - 1
    for j in np.flatnonzero(places.row >= 0):
        bits = np.zeros(64 * stack.words.shape[2], dtype=np.uint8)
        bits[: size[j]] = 1
        stack.words[0, places.row[j]] = np.packbits(bits, bitorder="little").view(np.uint64)
    stack.leaf[0] = leaves.tree_begin[:-1]
    return stack


@njit(cache=True, nogil=True)
def search(places, leaves, rules, ballot, bans, largest, stack, size, best, best_x, max_boxes):
    """Look at boxes until none is left, the stack is full, or enough were seen.

    Returns
    -------
    size : int
        Boxes left on the stack.
    best : float
        Cost of the best point, which is in ``best_x``.
    """
    p, room = len(places.home), len(stack.low)
    n_trees, n_places = len(leaves.tree_begin) - 1, len(places.cost)
    box = Box(np.empty(p, np.int32), np.empty(p, np.int32), np.empty(stack.words.shape[1:], np.uint64))
    x, leaf_of = np.empty(p, np.int32), np.empty(n_trees, np.int64)
    won, in_tree, touched = np.zeros(n_places), np.zeros(n_places), np.empty(n_places, np.int64)
    needs, stakes = np.empty(p), np.empty(n_trees)
    anything = np.ones(n_places, np.uint8)
    seen = 0
    while size > 0 and size + 2 <= room and seen < max_boxes:
        size -= 1
        seen += 1
        _pop(stack, size, box, leaf_of)
        cut = best * _WORTH
        alive = propagate(places, rules, box)
        broken, is_banned, settled = -1, False, False
        rounds = 0
        while alive:
            alive = cheapest_point(places, box, x)
            spent = cost_of(places, x, largest) if alive else np.inf
            if spent >= cut:
                alive = False
                break
            trim(places, box, x, spent, cut, largest)
            bound, score, settled = optimism(places, leaves, box, x, spent, cut, largest, leaf_of)
            if bound < -ballot.tolerance:
                alive = False
                break
            broken = broken_rule(places, rules, x)
            is_banned = was_refused(places, bans, x)
            if broken < 0 and not is_banned:
                if accepts(places, leaves, ballot, x, score):
                    best = spent
                    for j in range(p):
                        best_x[j] = x[j]
                    alive = False
                    break
                if settled:  # the cheapest point has the best score of the box, and that is not enough
                    alive = False
                    break
            missing = -score - ballot.tolerance
            rounds += 1
            if largest or best == np.inf or missing <= 0.0 or rounds == _ROUNDS:
                break
            shares(places, leaves, box, x, spent, cut, leaf_of, won, in_tree, touched, needs)
            alive, dropped = knapsack(places, box, x, cut - spent, missing, won)
            if not dropped:
                break
        if not alive:
            continue
        is_place, side = settled, 0.0
        if settled:
            j, at = other_point(places, rules, box, x, broken, anything)
        else:
            j, at, side = contradiction(places, leaves, box, leaf_of, won, in_tree, stakes)
            for i in range(n_places):
                in_tree[i] = 0.0
            if j < 0:
                j, at = any_cut(places, leaves, leaf_of, x)
        if j < 0 or at < 0:
            continue
        if is_place and places.row[j] < 0 and at < x[j]:
            at += 1  # the lower half ends with the place
        # Depth first: the half on top of the stack is looked at next. With an action at hand that is the cheap half,
        # which drops out sooner; without one it is the half that keeps the better score.
        upper_next = side > 0.0
        if best < np.inf:
            upper_next = _in_upper(places, leaves, j, at, x[j], is_place)
        for upper in (not upper_next, upper_next):
            _push(places, leaves, stack, size, box, leaf_of, j, at, is_place, upper)
            size += 1
    return size, best


@njit(cache=True, nogil=True)
def _pop(stack, size, box, leaf_of):
    for j in range(len(box.low)):
        box.low[j], box.high[j] = stack.low[size, j], stack.high[size, j]
    for r in range(box.words.shape[0]):
        for w in range(box.words.shape[1]):
            box.words[r, w] = stack.words[size, r, w]
    for t in range(len(leaf_of)):
        leaf_of[t] = stack.leaf[size, t]


@njit(cache=True, nogil=True)
def _in_upper(places, leaves, j, at, k, is_place):
    """Whether a place is in the upper half of a cut, or among the places of its mask."""
    if places.row[j] < 0:
        return k >= at
    return k == at if is_place else has_bit(leaves.masks, at, k)


@njit(cache=True, nogil=True)
def _push(places, leaves, stack, size, box, leaf_of, j, at, is_place, upper):
    """Put one half of a box on the stack."""
    for i in range(len(box.low)):
        stack.low[size, i], stack.high[size, i] = box.low[i], box.high[i]
    for r in range(box.words.shape[0]):
        for w in range(box.words.shape[1]):
            stack.words[size, r, w] = box.words[r, w]
    for t in range(len(leaf_of)):
        stack.leaf[size, t] = leaf_of[t]
    r = places.row[j]
    if r < 0:
        if upper:
            stack.low[size, j] = at
        else:
            stack.high[size, j] = at - 1
        return
    for w in range(box.words.shape[1]):
        mask = leaves.masks[at, w]
        if is_place:
            mask = np.uint64(1) << np.uint64(at & 63) if w == at >> 6 else np.uint64(0)
        stack.words[size, r, w] &= mask if upper else ~mask
