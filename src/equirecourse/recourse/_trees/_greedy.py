"""A first accepted action of one person, so that the search has a cost to beat."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from equirecourse._numba import njit
from equirecourse.recourse._trees._points import accepts, broken_rule, cost_of, has_bit, leaf_at, was_refused

__all__ = ["first_guess"]


@njit(cache=True, nogil=True)
def _single_moves(places, leaves, x, gain):
    """Score of a point, and what it would gain if one feature moved to one place; −inf if the budget excludes it."""
    begin, row = places.begin, places.row
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    for i in range(len(gain)):
        gain[i] = 0.0
    score = leaves.base
    for t in range(len(leaves.tree_begin) - 1):
        at_x = leaf_at(row, leaves, x, leaves.tree_begin[t], leaves.tree_begin[t + 1])
        if at_x < 0:
            return -np.inf
        value = leaves.value[at_x]
        score += value
        for leaf in range(leaves.tree_begin[t], leaves.tree_begin[t + 1]):
            away = -1
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                k = x[feature[e]]
                if not (low[e] <= k <= high[e] if row[feature[e]] < 0 else has_bit(masks, low[e], k)):
                    away = e if away == -1 else -2
                    if away == -2:
                        break
            if away < 0:
                continue
            more = leaves.value[leaf] - value
            j = feature[away]
            if row[j] < 0:
                for i in range(begin[j] + low[away], begin[j] + high[away] + 1):
                    gain[i] += more
            else:
                for i in range(begin[j], begin[j + 1]):
                    if has_bit(masks, low[away], i - begin[j]):
                        gain[i] += more
    return score


@njit(cache=True, nogil=True)
def first_guess(places, leaves, rules, ballot, bans, largest, budget, x):
    """Move ``x`` from home to an accepted point, greedily, then cheapen it; its cost, infinite if it got stuck.

    It stays below the budget that the leaves were kept for: beyond it, a point may be in a leaf that was left out.
    """
    p = len(x)
    begin, cost = places.begin, places.cost
    gain = np.empty(len(cost))
    for j in range(p):
        x[j] = places.home[j]
    reached = False
    for _ in range(4 * p + 8):
        score = _single_moves(places, leaves, x, gain)
        if score == -np.inf:
            break
        if broken_rule(places, rules, x) < 0 and accepts(places, leaves, ballot, x, score):
            reached = True
            break
        if score > ballot.tolerance:
            break  # the trees say yes, and a rule says no
        spent = cost_of(places, x, largest)
        best, best_j, best_k = 0.0, -1, -1
        for j in range(p):
            here = cost[begin[j] + x[j]]
            for i in range(begin[j], begin[j + 1]):
                more = max(cost[i] - spent, 0.0) if largest else cost[i] - here
                if gain[i] > 0.0 and spent + more < budget:
                    # What is gained beyond zero is worth nothing.
                    worth = min(gain[i], ballot.tolerance - score) / max(more, 1e-12)
                    if worth > best:
                        best, best_j, best_k = worth, j, i - begin[j]
        if best_j < 0:
            break
        x[best_j] = best_k
    if not reached:
        return np.inf
    while True:
        score = _single_moves(places, leaves, x, gain)
        if score == -np.inf:
            return np.inf
        best, best_j, best_k = 0.0, -1, -1
        for j in range(p):
            now = x[j]
            for i in range(begin[j], begin[j + 1]):
                saved = cost[begin[j] + now] - cost[i]
                if saved > best and score + gain[i] > ballot.tolerance:
                    x[j] = i - begin[j]
                    if broken_rule(places, rules, x) < 0:
                        best, best_j, best_k = saved, j, x[j]
                    x[j] = now
        if best_j < 0:
            break
        x[best_j] = best_k
    return np.inf if was_refused(places, bans, x) else cost_of(places, x, largest)
