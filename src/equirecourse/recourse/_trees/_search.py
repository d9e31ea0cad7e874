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

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from equirecourse.recourse._trees._person import Leaves, Places, first_bit

__all__ = ["Ballot", "Box", "Stack", "first_guess", "open_stack", "search"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]

_WORTH = 1.0 - 1e-12  # an action counts as cheaper if it is so by more than rounding
_ROUNDS = 4  # of bounds in one box, as long as they drop places
_HALVINGS = 24  # in the search for the knapsack's price
_A_LITTLE = 1e-6  # so that a cut which only one half loses by is better than none


class Box(NamedTuple):
    """Places that are left: ``low`` to ``high`` of ordered features, the bits of ``words`` of sets."""

    low: Ints
    high: Ints
    words: Words


class Stack(NamedTuple):
    """Boxes to be looked at, with the best leaf of each tree in the box that they were cut from."""

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    words: NDArray[np.uint64]
    leaf: NDArray[np.int64]


class Ballot(NamedTuple):
    """How votes decide; see ``Ensemble``. Sums are certain if they are farther than ``tolerance`` from zero."""

    votes: NDArray[np.float64]
    against: float
    favour: float
    divisor: float
    wins_ties: bool
    single: bool
    tolerance: float


# --- points and boxes ----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _clamp(k, low, high):
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
def _first_common(words, r, masks, m):
    """The first place of a set that a mask allows, −1 if there is none."""
    for w in range(words.shape[1]):
        both = words[r, w] & masks[m, w]
        if both != 0:
            return 64 * w + first_bit(both)
    return -1


@njit(cache=True, nogil=True)
def _bit(words, r, k):
    return (words[r, k >> 6] >> np.uint64(k & 63)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def _clear(words, r, k):
    words[r, k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))


@njit(cache=True, nogil=True)
def _cheapest_point(places, box, x):
    """Write the cheapest point of a box; False if a feature has no place left."""
    home, row = places.home, places.row
    for j in range(len(x)):
        x[j] = _clamp(home[j], box.low[j], box.high[j]) if row[j] < 0 else _first_of(box.words, row[j])
        if x[j] < 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _cost(places, x, largest):
    total = 0.0
    for j in range(len(x)):
        c = places.cost[places.begin[j] + x[j]]
        total = max(total, c) if largest else total + c
    return total


@njit(cache=True, nogil=True)
def _leaf_at(row, leaves, x, leaf):
    """The leaf of a point, looked for from a leaf of the same tree on."""
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    while True:
        inside = True
        for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
            j = feature[e]
            k = x[j]
            if not (low[e] <= k <= high[e] if row[j] < 0 else _bit(masks, low[e], k)):
                inside = False
                break
        if inside:
            return leaf
        leaf += 1


@njit(cache=True, nogil=True)
def _broken_rule(places, rules, x):
    """The first rule that a point breaks, −1 if it keeps to all of them."""
    for i in range(len(rules.first)):
        a, b = rules.first[i], rules.second[i]
        if not rules.this[i, places.begin[a] + x[a]] and not rules.that[i, places.begin[b] + x[b]]:
            return i
    return -1


@njit(cache=True, nogil=True)
def _accepts(places, leaves, ballot, x, score):
    """Whether a point is accepted, given its score; if in doubt, by the model's own sums."""
    if abs(score) > ballot.tolerance:
        return score > 0
    against, favour = ballot.against, ballot.favour
    against32, favour32 = np.float32(against), np.float32(favour)
    t = 0
    for i in range(len(leaves.fixed)):
        node = leaves.fixed[i]
        if node < 0:
            node = leaves.node[_leaf_at(places.row, leaves, x, leaves.tree_begin[t])]
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
def _is_banned(places, bans, x):
    """Whether a point, by its columns, is among those that the model refused in person."""
    for i in range(len(bans)):
        same = True
        for j in range(len(x)):
            same &= bans[i, j] == places.column[places.begin[j] + x[j]]
        if same:
            return True
    return False


# --- a first action ------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _single_moves(places, leaves, x, gain):
    """Score of a point, and what it would gain if one feature moved to one place."""
    begin, row = places.begin, places.row
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    for i in range(len(gain)):
        gain[i] = 0.0
    score = leaves.base
    for t in range(len(leaves.tree_begin) - 1):
        value = leaves.value[_leaf_at(row, leaves, x, leaves.tree_begin[t])]
        score += value
        for leaf in range(leaves.tree_begin[t], leaves.tree_begin[t + 1]):
            away = -1
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                k = x[feature[e]]
                if not (low[e] <= k <= high[e] if row[feature[e]] < 0 else _bit(masks, low[e], k)):
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
                    if _bit(masks, low[away], i - begin[j]):
                        gain[i] += more
    return score


@njit(cache=True, nogil=True)
def first_guess(places, leaves, rules, ballot, bans, largest, x):
    """Move ``x`` from home to an accepted point, greedily, then cheapen it; its cost, infinite if it got stuck."""
    p = len(x)
    begin, cost = places.begin, places.cost
    gain = np.empty(len(cost))
    for j in range(p):
        x[j] = places.home[j]
    reached = False
    for _ in range(4 * p + 8):
        score = _single_moves(places, leaves, x, gain)
        if _broken_rule(places, rules, x) < 0 and _accepts(places, leaves, ballot, x, score):
            reached = True
            break
        if score > ballot.tolerance:
            break  # the trees say yes, and a rule says no
        spent = _cost(places, x, largest)
        best, best_j, best_k = 0.0, -1, -1
        for j in range(p):
            here = cost[begin[j] + x[j]]
            for i in range(begin[j], begin[j + 1]):
                if gain[i] > 0.0:
                    more = max(cost[i] - spent, 0.0) if largest else cost[i] - here
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
        best, best_j, best_k = 0.0, -1, -1
        for j in range(p):
            now = x[j]
            for i in range(begin[j], begin[j + 1]):
                saved = cost[begin[j] + now] - cost[i]
                if saved > best and score + gain[i] > ballot.tolerance:
                    x[j] = i - begin[j]
                    if _broken_rule(places, rules, x) < 0:
                        best, best_j, best_k = saved, j, x[j]
                    x[j] = now
        if best_j < 0:
            break
        x[best_j] = best_k
    return np.inf if _is_banned(places, bans, x) else _cost(places, x, largest)


# --- bounds --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _has(places, box, j, k):
    """Whether a box has a place."""
    return box.low[j] <= k <= box.high[j] if places.row[j] < 0 else _bit(box.words, places.row[j], k)


@njit(cache=True, nogil=True)
def _has_any(places, box, j, allowed):
    """Whether a box has one of the places that are allowed."""
    for k in range(places.begin[j + 1] - places.begin[j]):
        if allowed[places.begin[j] + k] and _has(places, box, j, k):
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
        if not allowed[at + k] and _bit(box.words, r, k):
            _clear(box.words, r, k)
            dropped = True
    return dropped


@njit(cache=True, nogil=True)
def _propagate(places, rules, box):
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
def _trim(places, box, x, spent, cut, largest):
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
                _clear(box.words, row[j], k)


@njit(cache=True, nogil=True)
def _optimism(places, leaves, box, x, spent, cut, largest, leaf_of):
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
                    _clamp(home[j], max(low[e], box_low[j]), min(high[e], box_high[j]))
                    if row[j] < 0
                    else _first_common(words, row[j], masks, low[e])
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
        at_x = _leaf_at(row, leaves, x, leaf)
        score += leaves.value[at_x]
        settled &= at_x == leaf
    return bound, score, settled


@njit(cache=True, nogil=True)
def _shares(places, leaves, box, x, spent, cut, leaf_of, won, in_tree, touched, needs):
    """What each place could win at most, summed over the trees."""
    begin, cost, home, row = places.begin, places.cost, places.home, places.row
    box_low, box_high, words = box.low, box.high, box.words
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    for i in range(len(won)):
        won[i] = 0.0
    for t in range(len(leaf_of)):
        value = leaves.value[_leaf_at(row, leaves, x, leaf_of[t])]
        n_touched = 0
        for leaf in range(leaf_of[t], leaves.tree_begin[t + 1]):
            gain = leaves.value[leaf] - value
            if gain <= 0:
                break
            total, away = 0.0, 0
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                j = feature[e]
                k = (
                    _clamp(home[j], max(low[e], box_low[j]), min(high[e], box_high[j]))
                    if row[j] < 0
                    else _first_common(words, row[j], masks, low[e])
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
                    if row[j] >= 0 and not (_bit(words, row[j], k) and _bit(masks, low[e], k)):
                        continue
                    i = begin[j] + k
                    if in_tree[i] == 0.0:
                        touched[n_touched] = i
                        n_touched += 1
                    in_tree[i] = max(in_tree[i], share)
        for i in range(n_touched):
            won[touched[i]] += in_tree[touched[i]]
            in_tree[touched[i]] = 0.0


@njit(cache=True, nogil=True)
def _knapsack(places, box, x, budget, missing, won):
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
                if _bit(box.words, r, k) and won[at + k] - price * (cost[at + k] - here) < least:
                    _clear(box.words, r, k)
                    dropped = True
    return True, dropped


# --- where to cut a box --------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _stakes(places, leaves, box, leaf_of, stakes):
    """What each tree loses without its best leaf: the distance to the next one that the box allows, 0 if none."""
    home, row = places.home, places.row
    box_low, box_high, words = box.low, box.high, box.words
    entry_begin, feature, low, high, masks = leaves.entry_begin, leaves.feature, leaves.low, leaves.high, leaves.masks
    for t in range(len(leaf_of)):
        stakes[t] = 0.0
        for leaf in range(leaf_of[t] + 1, leaves.tree_begin[t + 1]):
            possible = True
            for e in range(entry_begin[leaf], entry_begin[leaf + 1]):
                j = feature[e]
                k = (
                    _clamp(home[j], max(low[e], box_low[j]), min(high[e], box_high[j]))
                    if row[j] < 0
                    else _first_common(words, row[j], masks, low[e])
                )
                if k < 0:
                    possible = False
                    break
            if possible:
                stakes[t] = leaves.value[leaf_of[t]] - leaves.value[leaf]
                break


@njit(cache=True, nogil=True)
def _contradiction(places, leaves, box, leaf_of, from_below, from_above, stakes):
    """Feature and cut where the best leaves contradict each other most: both halves should lose as much as possible.

    The cut is the first place of the upper half of an ordered feature, or a row of ``masks`` for a set. The third
    number is positive if the upper half, or the places of the mask, lose less.
    """
    begin, row = places.begin, places.row
    entry_begin, feature, low, high = leaves.entry_begin, leaves.feature, leaves.low, leaves.high
    for i in range(len(from_below)):
        from_below[i] = from_above[i] = 0.0
    _stakes(places, leaves, box, leaf_of, stakes)
    best, best_j, best_cut, side = 0.0, -1, -1, 0.0
    for t in range(len(leaf_of)):
        if stakes[t] <= 0.0:
            continue
        for e in range(entry_begin[leaf_of[t]], entry_begin[leaf_of[t] + 1]):
            j = feature[e]
            if row[j] >= 0:
                inside, outside = _set_losses(places, leaves, box, leaf_of, stakes, e)
                worth = (inside + _A_LITTLE) * (outside + _A_LITTLE)
                if worth > best and _divides(box.words, row[j], leaves.masks, low[e]):
                    best, best_j, best_cut, side = worth, j, low[e], outside - inside
                continue
            if low[e] > box.low[j]:
                from_below[begin[j] + low[e]] += stakes[t]  # a half that ends below this place loses the leaf
            if high[e] < box.high[j]:
                from_above[begin[j] + high[e] + 1] += stakes[t]  # a half that begins here loses it
    for j in range(len(row)):
        if row[j] >= 0:
            continue
        below, above = 0.0, 0.0
        for i in range(begin[j] + box.low[j] + 1, begin[j] + box.high[j] + 1):
            below += from_below[i]
        for i in range(begin[j] + box.low[j] + 1, begin[j] + box.high[j] + 1):
            above += from_above[i]
            if from_below[i] > 0.0 or from_above[i] > 0.0:
                worth = (below + _A_LITTLE) * (above + _A_LITTLE)
                if worth > best:
                    best, best_j, best_cut, side = worth, j, i - begin[j], below - above
            below -= from_below[i]
    return best_j, best_cut, side


@njit(cache=True, nogil=True)
def _divides(words, r, masks, m):
    """Whether a mask leaves something of a set on both sides."""
    inside = outside = False
    for w in range(words.shape[1]):
        inside |= words[r, w] & masks[m, w] != 0
        outside |= words[r, w] & ~masks[m, w] != 0
    return inside and outside


@njit(cache=True, nogil=True)
def _set_losses(places, leaves, box, leaf_of, stakes, entry):
    """What is at stake in the two halves of a set, with and without the places of an entry."""
    entry_begin, feature, low, masks, words = leaves.entry_begin, leaves.feature, leaves.low, leaves.masks, box.words
    r = places.row[feature[entry]]
    inside = outside = 0.0
    for t in range(len(leaf_of)):
        if stakes[t] <= 0.0:
            continue
        for e in range(entry_begin[leaf_of[t]], entry_begin[leaf_of[t] + 1]):
            if feature[e] != feature[entry]:
                continue
            with_it = without_it = False
            for w in range(words.shape[1]):
                both = words[r, w] & masks[low[e], w]
                with_it |= both & masks[low[entry], w] != 0
                without_it |= both & ~masks[low[entry], w] != 0
            inside += 0.0 if with_it else stakes[t]
            outside += 0.0 if without_it else stakes[t]
    return inside, outside


@njit(cache=True, nogil=True)
def _any_cut(places, leaves, leaf_of, x):
    """A cut between the cheapest point and the best leaf of some tree."""
    feature, low, high = leaves.feature, leaves.low, leaves.high
    for t in range(len(leaf_of)):
        for e in range(leaves.entry_begin[leaf_of[t]], leaves.entry_begin[leaf_of[t] + 1]):
            j = feature[e]
            if places.row[j] >= 0:
                if not _bit(leaves.masks, low[e], x[j]):
                    return j, low[e]
            elif x[j] < low[e]:
                return j, low[e]
            elif x[j] > high[e]:
                return j, high[e] + 1
    return -1, -1


@njit(cache=True, nogil=True)
def _other_place(places, box, x, j, allowed):
    """The cheapest place of a feature that is allowed and not the cheapest point's; −1 if there is none."""
    at = places.begin[j]
    best = -1
    for k in range(places.begin[j + 1] - at):
        possible = k != x[j] and allowed[at + k] and _has(places, box, j, k)
        if possible and (best < 0 or places.cost[at + k] < places.cost[at + best]):
            best = k
    return best


@njit(cache=True, nogil=True)
def _other_point(places, rules, box, x, broken, anything):
    """A feature and place of it that mend a broken rule; without one, any other place at all."""
    if broken >= 0:
        k = _other_place(places, box, x, rules.first[broken], rules.this[broken])
        if k >= 0:
            return rules.first[broken], k
        return rules.second[broken], _other_place(places, box, x, rules.second[broken], rules.that[broken])
    for j in range(len(x)):
        k = _other_place(places, box, x, j, anything)
        if k >= 0:
            return j, k
    return -1, -1


# --- the search ----------------------------------------------------------------------------------------------------


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
        alive = _propagate(places, rules, box)
        broken, is_banned, settled = -1, False, False
        rounds = 0
        while alive:
            alive = _cheapest_point(places, box, x)
            spent = _cost(places, x, largest) if alive else np.inf
            if spent >= cut:
                alive = False
                break
            _trim(places, box, x, spent, cut, largest)
            bound, score, settled = _optimism(places, leaves, box, x, spent, cut, largest, leaf_of)
            if bound < -ballot.tolerance:
                alive = False
                break
            broken = _broken_rule(places, rules, x)
            is_banned = _is_banned(places, bans, x)
            if broken < 0 and not is_banned:
                if _accepts(places, leaves, ballot, x, score):
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
            _shares(places, leaves, box, x, spent, cut, leaf_of, won, in_tree, touched, needs)
            alive, dropped = _knapsack(places, box, x, cut - spent, missing, won)
            if not dropped:
                break
        if not alive:
            continue
        is_place, side = settled, 0.0
        if settled:
            j, at = _other_point(places, rules, box, x, broken, anything)
        else:
            j, at, side = _contradiction(places, leaves, box, leaf_of, won, in_tree, stakes)
            for i in range(n_places):
                in_tree[i] = 0.0
            if j < 0:
                j, at = _any_cut(places, leaves, leaf_of, x)
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
    return k == at if is_place else _bit(leaves.masks, at, k)


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
