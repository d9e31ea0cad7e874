"""One person before a forest, as plain arrays: the places each feature may move to, and the leaves that they reach.

Notation
--------
place       a value a person may move a feature to, one per cell; staying is one too. The places of an *ordered* feature
            are sorted by value, so that each question of a tree cuts them in two and cost rises away from ``home``;
            those of any other feature are a *set*, sorted by cost, so that the first one left is the cheapest.
entry       one feature's condition for reaching a leaf: the places ``low`` to ``high`` of an ordered feature, or a row
            ``low`` of ``masks`` (bits) for a set.
largest     the largest cost of a feature counts; else costs add up (they are squares for the root of a sum of squares).
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equirecourse._numba import njit

__all__ = ["Leaves", "Places", "Rules", "Trees", "first_bit", "lay_out", "reachable_leaves"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]


class Trees(NamedTuple):
    """The trees, the same for everybody; see ``Ensemble``.

    ``longest_path`` counts the nodes from a root to the leaf farthest away. ``feature`` is the feature that a question
    is about, −1 if nobody can change its answer. ``turn`` is the cell of an ordered feature from which on the answer is
    another, ``left_below`` the answer before. ``table`` is the row of ``answers`` (questions × cells) that holds the
    answers about a set.
    """

    base: float
    longest_path: int
    roots: Longs
    left: Longs
    right: Longs
    question: Longs
    value: Floats
    feature: Longs
    turn: Longs
    left_below: Bytes
    table: Longs
    answers: Bytes


class Places(NamedTuple):
    """Where one person may move each feature.

    Places of feature j are at ``begin[j]`` to ``begin[j + 1]``: ``cost``, and ``column`` of the table of cells.
    ``home`` is the place where the person is; ``row`` the row of a set among the sets, −1 for an ordered feature.
    ``rank`` (from ``rank_begin[j]``) counts the places before each cell.
    """

    begin: Longs
    cost: Floats
    column: Ints
    home: Ints
    row: Ints
    rank: Ints
    rank_begin: Longs


class Leaves(NamedTuple):
    """The leaves that a person can reach, tree after tree, the best of each tree first.

    Trees of which only one leaf can be reached are left out: ``fixed`` is that leaf, −1 for the other trees, which come
    in the same order. ``base`` is the sum of the values of the fixed leaves.
    """

    base: float
    fixed: Longs
    tree_begin: Longs
    value: Floats
    node: Longs
    entry_begin: Longs
    feature: Ints
    low: Ints
    high: Ints
    masks: Words


class Rules(NamedTuple):
    """Clauses over places: feature ``first`` is at a place of ``this``, or feature ``second`` at one of ``that``."""

    first: Longs
    second: Longs
    this: Bytes
    that: Bytes


_DE_BRUIJN = 0x03F79D71B4CB0A89
_BITS = np.zeros(64, dtype=np.int64)
for _place in range(64):
    _BITS[((_DE_BRUIJN << _place) & (2**64 - 1)) >> 58] = _place


@njit(cache=True, nogil=True)
def first_bit(word):
    """Position of the lowest 1 of a word that has one, by multiplication with a de Bruijn sequence."""
    alone = word & (~word + np.uint64(1))
    return _BITS[np.int64((alone * np.uint64(0x03F79D71B4CB0A89)) >> np.uint64(58))]


def lay_out(
    costs: Floats, order: Longs, cost_begin: Longs, n_cells: Longs, row: Ints, here: Longs, budget: float
) -> Places:
    """Places that cost less than a budget.

    ``costs`` holds for each feature, from ``cost_begin``: staying, then each cell, then for ordered features the two
    sides of the person within their own cell ``here``. ``order`` sorts the costs of each set.
    """
    begin = np.zeros(len(n_cells) + 1, dtype=np.int64)
    cost, column = np.empty(len(costs)), np.empty(len(costs), dtype=np.int32)
    home = np.zeros(len(n_cells), dtype=np.int32)
    rank_begin = np.concatenate([[0], np.cumsum(n_cells + 1)]).astype(np.int64)
    rank = np.zeros(rank_begin[-1], dtype=np.int32)
    m = _lay_out(costs, order, cost_begin, n_cells, row, here, budget, begin, cost, column, home, rank, rank_begin)
    return Places(begin, cost[:m], column[:m], home, row, rank, rank_begin)


@njit(cache=True, nogil=True)
def _lay_out(costs, order, cost_begin, n_cells, row, here, budget, begin, cost, column, home, rank, rank_begin):
    m = 0
    for j in range(len(n_cells)):
        begin[j] = m
        at, n = cost_begin[j], n_cells[j]
        if row[j] >= 0:
            for i in range(at, cost_begin[j + 1]):
                c = order[i]
                if costs[at + c] < budget or c == 0:
                    cost[m], column[m] = costs[at + c], c
                    m += 1
            continue
        for i in range(n + 2):  # the cells, with three places where the person is
            cell = i if i <= here[j] else max(i - 2, here[j])
            if i <= here[j] or cell > here[j]:
                rank[rank_begin[j] + cell] = m - begin[j]
            c = cell + 1
            if cell == here[j]:
                c = n + 1 if i == here[j] else (0 if i == here[j] + 1 else n + 2)
                if c == 0:
                    home[j] = m - begin[j]
            if costs[at + c] < budget or c == 0:
                cost[m], column[m] = costs[at + c], c
                m += 1
        rank[rank_begin[j] + n] = m - begin[j]
    begin[len(n_cells)] = m
    return m


def reachable_leaves(
    trees: Trees, places: Places, current: Bytes, n_words: int, budget: float, largest: bool
) -> Leaves:
    """Leaves whose cheapest point costs less than a budget, given the person's ``current`` answers to all questions."""
    room = 1024
    n_sets, n_words = max(int(places.row.max(initial=-1)) + 1, 1), max(n_words, 1)
    while True:
        tree, node = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        entry_begin = np.zeros(room + 1, dtype=np.int64)
        feature, low, high = (np.empty(4 * room, dtype=np.int32) for _ in range(3))
        masks = np.zeros((2 * room if places.row.max(initial=-1) >= 0 else 1, n_words), dtype=np.uint64)
        n = _grow(trees, places, current, n_sets, budget, largest, tree, node, entry_begin, feature, low, high, masks)
        if n >= 0:
            break
        room *= 4
    tree, node = tree[:n], node[:n]
    count = np.bincount(tree, minlength=len(trees.roots))
    fixed = np.full(len(trees.roots), -1, dtype=np.int64)
    alone = count[tree] == 1
    fixed[tree[alone]] = node[alone]
    value = trees.value[node]
    kept = np.lexsort((-value, tree))
    kept = kept[~alone[kept]]
    size = np.diff(entry_begin[: n + 1])[kept]
    ends = np.concatenate([[0], np.cumsum(size)])
    entries = np.repeat(entry_begin[kept] - ends[:-1], size) + np.arange(ends[-1])
    return Leaves(
        base=float(trees.base + value[alone].sum()),
        fixed=fixed,
        tree_begin=np.concatenate([[0], np.cumsum(count[count > 1])]).astype(np.int64),
        value=value[kept],
        node=node[kept],
        entry_begin=ends,
        feature=feature[entries],
        low=low[entries],
        high=high[entries],
        masks=masks,
    )


@njit(cache=True, nogil=True)
def _grow(
    trees, places, current, n_sets, budget, largest, out_tree, out_node, entry_begin, feature, out_low, out_high, masks
):
    """Write reachable leaves and their entries; their number, or −1 if there is no room for them.

    Walks through each tree with the places that the path has left of each feature, and turns back where none is left or
    the cheapest ones cost too much.
    """
    p, n_words, deepest = len(places.home), masks.shape[1], trees.longest_path
    begin, cost, row = places.begin, places.cost, places.row
    low, high, last = np.zeros(p, np.int32), np.empty(p, np.int32), np.empty(p, np.int32)
    words, full = np.zeros((n_sets, n_words), np.uint64), np.zeros((n_sets, n_words), np.uint64)
    for j in range(p):
        last[j] = high[j] = begin[j + 1] - begin[j] - 1
        if row[j] >= 0:
            for k in range(last[j] + 1):
                words[row[j], k >> 6] |= np.uint64(1) << np.uint64(k & 63)
            for w in range(n_words):
                full[row[j], w] = words[row[j], w]
    # The path: nodes, how many of their children were visited, cost so far, and what to restore on the way back.
    path, visited, spent = np.empty(deepest, np.int64), np.empty(deepest, np.int64), np.empty(deepest)
    old_low, old_high = np.empty(deepest, np.int32), np.empty(deepest, np.int32)
    old_words = np.empty((deepest, n_words), np.uint64)
    n_leaf = n_entry = n_mask = 0
    for t in range(len(trees.roots)):
        depth = 0
        path[0], visited[0], spent[0] = trees.roots[t], 0, 0.0
        while depth >= 0:
            here = path[depth]
            if trees.left[here] < 0:
                if n_leaf == len(out_node) or n_entry + p > len(feature) or (n_words and n_mask + n_sets > len(masks)):
                    return -1
                n_entry, n_mask = _write_entries(
                    row, low, high, last, words, full, n_entry, n_mask, feature, out_low, out_high, masks
                )
                out_tree[n_leaf], out_node[n_leaf] = t, here
                n_leaf += 1
                entry_begin[n_leaf] = n_entry
                depth -= 1
                continue
            q = trees.question[here]
            j = trees.feature[q]
            if j >= 0 and last[j] == 0:
                j = -1  # one place only: the person's own answer counts
            if visited[depth] > 0 and j >= 0:
                low[j], high[j] = old_low[depth], old_high[depth]
                if row[j] >= 0:
                    for w in range(n_words):
                        words[row[j], w] = old_words[depth, w]
            if visited[depth] == 2:
                depth -= 1
                continue
            left = visited[depth] == 0
            visited[depth] += 1
            after = spent[depth]
            if j < 0:
                if (current[q] != 0) != left:
                    continue
            else:
                old_low[depth], old_high[depth] = low[j], high[j]
                if row[j] >= 0:
                    for w in range(n_words):
                        old_words[depth, w] = words[row[j], w]
                before, k = _narrow(trees, places, current, q, left, low, high, words)
                if k < 0:
                    continue
                now = cost[begin[j] + k]
                after = max(after, now) if largest else after + now - cost[begin[j] + before]
                if after >= budget:
                    continue
            depth += 1
            path[depth], visited[depth], spent[depth] = trees.left[here] if left else trees.right[here], 0, after
    return n_leaf


@njit(cache=True, nogil=True)
def _write_entries(row, low, high, last, words, full, n_entry, n_mask, feature, out_low, out_high, masks):
    """Write the conditions for reaching a leaf, one per feature that does not have all of its places left."""
    n_words = words.shape[1]
    for j in range(len(row)):
        r = row[j]
        if r >= 0:
            whole = True
            for w in range(n_words):
                whole &= words[r, w] == full[r, w]
            if not whole:
                for w in range(n_words):
                    masks[n_mask, w] = words[r, w]
                feature[n_entry], out_low[n_entry], out_high[n_entry] = j, n_mask, 0
                n_mask += 1
                n_entry += 1
        elif low[j] > 0 or high[j] < last[j]:
            feature[n_entry], out_low[n_entry], out_high[n_entry] = j, low[j], high[j]
            n_entry += 1
    return n_entry, n_mask


@njit(cache=True, nogil=True)
def _narrow(trees, places, current, q, left, low, high, words):
    """Keep the places with one answer to a question; the cheapest place before and after, −1 where none is left."""
    j = trees.feature[q]
    r = places.row[j]
    if r >= 0:
        before = _first(words, r)
        _keep_side(trees, places, current, q, left, words)
        return before, _first(words, r)
    home = places.home[j]
    before = min(max(home, low[j]), high[j])
    border = places.rank[places.rank_begin[j] + trees.turn[q]]
    if left == (trees.left_below[q] != 0):
        high[j] = min(high[j], border - 1)
    else:
        low[j] = max(low[j], border)
    return before, min(max(home, low[j]), high[j]) if low[j] <= high[j] else -1


@njit(cache=True, nogil=True)
def _keep_side(trees, places, current, q, left, words):
    """Keep the places of a set from which a question is answered in one way."""
    j = trees.feature[q]
    r = places.row[j]
    n_cells = places.rank_begin[j + 1] - places.rank_begin[j] - 1
    for k in range(places.begin[j + 1] - places.begin[j]):
        c = places.column[places.begin[j] + k]
        # Staying, and the two sides of a number in the person's own cell, are answered as the person is.
        answer = current[q] if c == 0 or c > n_cells else trees.answers[trees.table[q], c - 1]
        if (answer != 0) != left:
            words[r, k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))


@njit(cache=True, nogil=True)
def _first(words, r):
    for w in range(words.shape[1]):
        if words[r, w] != 0:
            return 64 * w + first_bit(words[r, w])
    return -1
