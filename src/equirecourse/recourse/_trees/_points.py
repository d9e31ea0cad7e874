"""Points, boxes and ballots: what the search over the places of one person is made of.

Notation as in ``_person``; ``x`` is a point, one place per feature.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equirecourse._numba import njit
from equirecourse.recourse._trees._person import first_bit

__all__ = [
    "Ballot", "Box", "Stack", "accepts", "broken_rule", "cheapest_point", "clamp", "clear_bit",
    "cost_of", "first_common", "has_bit", "has_place", "leaf_at", "was_refused",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]


class Box(NamedTuple):
    """Places that are left: ``low`` to ``high`` of ordered features, the bits of ``words`` of sets."""

    low: Ints
    high: Ints
    words: Words


class Stack(NamedTuple):
    """Boxes to be looked at, with the best leaf of each tree in the box that they were cut from."""

    low: Ints
    high: Ints
    words: Words
    leaf: Longs


class Ballot(NamedTuple):
    """How votes decide; see ``Ensemble``. Sums are certain if they are farther than ``tolerance`` from zero."""

    votes: Floats
    against: float
    favour: float
    divisor: float
    wins_ties: bool
    single: bool
    tolerance: float


@njit(cache=True, nogil=True)
def clamp(k, low, high):
    """The place of a range nearest to another, −1 if the range is empty."""
    return -1 if low > high else min(max(k, low), high)


@njit(cache=True, nogil=True)
def _first_of(words, r):
    """The first place of a set, −1 if it is empty."""
    for w in range(words.shape[1]):
        if words[r, w] != 0:
            return 64 * w + first_bit(words[r, w])
    return -1


@njit(cache=True, nogil=True)
def first_common(words, r, masks, m):
    """The first place of a set that a mask allows, −1 if there is none."""
    for w in range(words.shape[1]):
        both = words[r, w] & masks[m, w]
        if both != 0:
            return 64 * w + first_bit(both)
    return -1


@njit(cache=True, nogil=True)
def has_bit(words, r, k):
    return (words[r, k >> 6] >> np.uint64(k & 63)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def clear_bit(words, r, k):
    words[r, k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))


@njit(cache=True, nogil=True)
def cheapest_point(places, box, x):
    """Write the cheapest point of a box; False if a feature has no place left."""
    home, row = places.home, places.row
    for j in range(len(x)):
        x[j] = clamp(home[j], box.low[j], box.high[j]) if row[j] < 0 else _first_of(box.words, row[j])
        if x[j] < 0:
            return False
    return True


@njit(cache=True, nogil=True)
def cost_of(places, x, largest):
    total = 0.0
    for j in range(len(x)):
        c = places.cost[places.begin[j] + x[j]]
        total = max(total, c) if largest else total + c
    return total


@njit(cache=True, nogil=True)
def leaf_at(row, leaves, x, leaf, end):
    """The leaf of a point among the leaves of a tree from ``leaf`` to ``end``; −1 if none of them holds it.

    Leaves that cost as much as the budget were left out, so points that do may have none.
    """
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    while leaf < end:
        inside = True
        for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
            j = feature[e]
            k = x[j]
            if not (low[e] <= k <= high[e] if row[j] < 0 else has_bit(masks, low[e], k)):
                inside = False
                break
        if inside:
            return leaf
        leaf += 1
    return -1


@njit(cache=True, nogil=True)
def broken_rule(places, rules, x):
    """The first rule that a point breaks, −1 if it keeps to all of them."""
    for i in range(len(rules.first)):
        a, b = rules.first[i], rules.second[i]
        if not rules.this[i, places.begin[a] + x[a]] and not rules.that[i, places.begin[b] + x[b]]:
            return i
    return -1


@njit(cache=True, nogil=True)
def accepts(places, leaves, ballot, x, score):
    """Whether a point is accepted, given its score; if in doubt, by the model's own sums."""
    if abs(score) > ballot.tolerance:
        return score > 0
    against, favour = ballot.against, ballot.favour
    against32, favour32 = np.float32(against), np.float32(favour)
    t = 0
    for i in range(len(leaves.fixed)):
        node = leaves.fixed[i]
        if node < 0:
            leaf = leaf_at(places.row, leaves, x, leaves.tree_begin[t], leaves.tree_begin[t + 1])
            if leaf < 0:
                return False
            node = leaves.node[leaf]
            t += 1
        against += ballot.votes[node, 0]
        favour += ballot.votes[node, 1]
        against32 = np.float32(against32 + np.float32(ballot.votes[node, 0]))
        favour32 = np.float32(favour32 + np.float32(ballot.votes[node, 1]))
    if ballot.single:
        against, favour = float(against32), float(favour32)
    against, favour = against / ballot.divisor, favour / ballot.divisor
    return favour >= against if ballot.wins_ties else favour > against


@njit(cache=True, nogil=True)
def was_refused(places, bans, x):
    """Whether a point, by its columns, is among those that the model refused in person."""
    for i in range(len(bans)):
        same = True
        for j in range(len(x)):
            same &= bans[i, j] == places.column[places.begin[j] + x[j]]
        if same:
            return True
    return False


@njit(cache=True, nogil=True)
def has_place(places, box, j, k):
    """Whether a box has a place."""
    return box.low[j] <= k <= box.high[j] if places.row[j] < 0 else has_bit(box.words, places.row[j], k)
