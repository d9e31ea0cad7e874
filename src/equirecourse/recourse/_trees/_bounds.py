"""What cannot hold a cheaper accepted point: bounds that empty a box of places, or drop places of it.

Notation as in ``_person`` and ``_points``; ``cut`` is the cost from which on nothing is of use.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from equirecourse._numba import njit
from equirecourse.recourse._trees._points import clamp, clear_bit, first_common, has_bit, has_place, leaf_at

__all__ = ["knapsack", "optimism", "propagate", "shares", "trim"]

_HALVINGS = 24  # in the search for the knapsack's price


@njit(cache=True, nogil=True)
def _has_any(places, box, j, allowed):
    """Whether a box has one of the places that are allowed."""
    for k in range(places.begin[j + 1] - places.begin[j]):
        if allowed[places.begin[j] + k] and has_place(places, box, j, k):
            return True
    return False


@njit(cache=True, nogil=True)
def _only(places, box, j, allowed):
    """Drop places that are not allowed (of an ordered feature, from both ends); whether any were."""
    at, r = places.begin[j], places.row[j]
    dropped = False
    if r < 0:
        while box.low[j] <= box.high[j] and not allowed[at + box.low[j]]:
            box.low[j] += 1
            dropped = True
        while box.high[j] >= box.low[j] and not allowed[at + box.high[j]]:
            box.high[j] -= 1
            dropped = True
        return dropped
    for k in range(places.begin[j + 1] - at):
        if not allowed[at + k] and has_bit(box.words, r, k):
            clear_bit(box.words, r, k)
            dropped = True
    return dropped


@njit(cache=True, nogil=True)
def propagate(places, rules, box):
    """Drop places that rules forbid; False if a rule leaves none."""
    changed = len(rules.first) > 0
    while changed:
        changed = False
        for i in range(len(rules.first)):
            a, b = rules.first[i], rules.second[i]
            some_this = _has_any(places, box, a, rules.this[i])
            some_that = _has_any(places, box, b, rules.that[i])
            if not some_this and not some_that:
                return False
            if not some_this:
                changed |= _only(places, box, b, rules.that[i])
            elif not some_that:
                changed |= _only(places, box, a, rules.this[i])
    return True


@njit(cache=True, nogil=True)
def trim(places, box, x, spent, cut, largest):
    """Drop places that cost too much on their own."""
    begin, cost, row = places.begin, places.cost, places.row
    for j in range(len(x)):
        at = begin[j]
        limit = cut if largest else cut - spent + cost[at + x[j]]
        if row[j] < 0:
            while box.low[j] < x[j] and cost[at + box.low[j]] >= limit:
                box.low[j] += 1
            while box.high[j] > x[j] and cost[at + box.high[j]] >= limit:
                box.high[j] -= 1
        else:
            for k in range(begin[j + 1] - at - 1, x[j], -1):  # from the dearest down
                if cost[at + k] < limit:
                    break
                clear_bit(box.words, row[j], k)


@njit(cache=True, nogil=True)
def optimism(places, leaves, box, x, spent, cut, largest, leaf_of):
    """Sum of the best leaves that the box and the budget allow; −inf if a tree has none.

    Returns also the score of the cheapest point, and whether that point is in the best leaf of each tree.
    ``leaf_of`` holds the best leaf of each tree in a larger box, and is moved on.
    """
    begin, cost, home, row = places.begin, places.cost, places.home, places.row
    box_low, box_high, words = box.low, box.high, box.words
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    bound = score = leaves.base
    settled = True
    for t in range(len(leaf_of)):
        leaf = leaf_of[t]
        while leaf < leaves.tree_begin[t + 1]:
            needed = spent
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                j = feature[e]
                k = (
                    clamp(home[j], max(low[e], box_low[j]), min(high[e], box_high[j]))
                    if row[j] < 0
                    else first_common(words, row[j], masks, low[e])
                )
                if k < 0:
                    needed = np.inf
                    break
                if not largest:
                    needed += cost[begin[j] + k] - cost[begin[j] + x[j]]
            if needed < cut:
                break
            leaf += 1
        if leaf == leaves.tree_begin[t + 1]:
            return -np.inf, score, False
        leaf_of[t] = leaf
        bound += leaves.value[leaf]
        at_x = leaf_at(row, leaves, x, leaf, leaves.tree_begin[t + 1])
        if at_x < 0:  # the cheapest point of the box is as dear as the budget
            return -np.inf, score, False
        score += leaves.value[at_x]
        settled &= at_x == leaf
    return bound, score, settled


@njit(cache=True, nogil=True)
def shares(places, leaves, box, x, spent, cut, leaf_of, won, in_tree, touched, needs):
    """What each place could win at most, summed over the trees; ``x`` is a point that ``optimism`` found a leaf for."""
    begin, cost, home, row = places.begin, places.cost, places.home, places.row
    box_low, box_high, words = box.low, box.high, box.words
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    for i in range(len(won)):
        won[i] = 0.0
    for t in range(len(leaf_of)):
        value = leaves.value[leaf_at(row, leaves, x, leaf_of[t], leaves.tree_begin[t + 1])]
        n_touched = 0
        for leaf in range(leaf_of[t], leaves.tree_begin[t + 1]):
            gain = leaves.value[leaf] - value
            if gain <= 0:
                break
            total, away = 0.0, 0
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                j = feature[e]
                k = (
                    clamp(home[j], max(low[e], box_low[j]), min(high[e], box_high[j]))
                    if row[j] < 0
                    else first_common(words, row[j], masks, low[e])
                )
                if k < 0:
                    total = np.inf
                    break
                needs[j] = -1.0 if k == x[j] else cost[begin[j] + k] - cost[begin[j] + x[j]]
                away += k != x[j]
                total += max(needs[j], 0.0)
            if spent + total >= cut:
                continue
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                j = feature[e]
                if needs[j] < 0.0:
                    continue
                share = gain * (needs[j] / total if total > 0.0 else 1.0 / away)
                first, last = 0, begin[j + 1] - begin[j] - 1
                if row[j] < 0:
                    first, last = max(low[e], box_low[j]), min(high[e], box_high[j])
                for k in range(first, last + 1):
                    if row[j] >= 0 and not (has_bit(words, row[j], k) and has_bit(masks, low[e], k)):
                        continue
                    i = begin[j] + k
                    if share <= in_tree[i]:
                        continue  # a share may be zero: a place is noted once, when it first wins something
                    if in_tree[i] == 0.0:
                        touched[n_touched] = i
                        n_touched += 1
                    in_tree[i] = share
        for i in range(n_touched):
            won[touched[i]] += in_tree[touched[i]]
            in_tree[touched[i]] = 0.0


@njit(cache=True, nogil=True)
def knapsack(places, box, x, budget, missing, won):
    """Drop places that the budget cannot pay for; (whether the box may hold an answer, whether a place was dropped).

    For every price λ ≥ 0 of a unit of cost, λ·budget + Σ_j max_k (won − λ·cost) bounds what can be won.
    """
    begin, cost, row = places.begin, places.cost, places.row
    low_price, high_price = 0.0, missing / max(budget, 1e-300)  # beyond that, the budget alone is worth what is missing
    bound, price = np.inf, 0.0
    for _ in range(_HALVINGS):
        trial = 0.5 * (low_price + high_price)
        total, used = trial * budget, 0.0
        for j in range(len(x)):
            here = cost[begin[j] + x[j]]
            first, last = (box.low[j], box.high[j]) if row[j] < 0 else (0, begin[j + 1] - begin[j] - 1)
            best, paid = 0.0, 0.0
            for i in range(begin[j] + first, begin[j] + last + 1):
                if won[i] > 0.0:
                    left = won[i] - trial * (cost[i] - here)
                    if left > best:
                        best, paid = left, cost[i] - here
            total += best
            used += paid
        if total < bound:
            bound, price = total, trial
        if bound < missing:
            return False, False
        if used > budget:
            low_price = trial
        else:
            high_price = trial
    slack = 1e-12 * (abs(bound) + abs(missing))
    dropped = False
    for j in range(len(x)):
        at, r = begin[j], row[j]
        here = cost[at + x[j]]
        first, last = (box.low[j], box.high[j]) if r < 0 else (0, begin[j + 1] - at - 1)
        best = 0.0
        for i in range(at + first, at + last + 1):
            if won[i] > 0.0:
                best = max(best, won[i] - price * (cost[i] - here))
        least = missing - (bound - best) - slack
        if r < 0:
            while first <= last and won[at + first] - price * (cost[at + first] - here) < least:
                first += 1
            while last >= first and won[at + last] - price * (cost[at + last] - here) < least:
                last -= 1
            dropped |= first != box.low[j] or last != box.high[j]
            box.low[j], box.high[j] = first, last
        else:
            for k in range(last + 1):
                if has_bit(box.words, r, k) and won[at + k] - price * (cost[at + k] - here) < least:
                    clear_bit(box.words, r, k)
                    dropped = True
    return True, dropped
