"""Where to cut a box of places in two, so that both halves lose."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from equirecourse._numba import njit
from equirecourse.recourse._trees._points import clamp, first_common, has_bit, has_place

__all__ = ["any_cut", "contradiction", "other_point"]

_A_LITTLE = 1e-6  # so that a cut which only one half loses by is better than none


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
                    clamp(home[j], max(low[e], box_low[j]), min(high[e], box_high[j]))
                    if row[j] < 0
                    else first_common(words, row[j], masks, low[e])
                )
                if k < 0:
                    possible = False
                    break
            if possible:
                stakes[t] = leaves.value[leaf_of[t]] - leaves.value[leaf]
                break


@njit(cache=True, nogil=True)
def contradiction(places, leaves, box, leaf_of, from_below, from_above, stakes):
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
def any_cut(places, leaves, leaf_of, x):
    """A cut between the cheapest point and the best leaf of some tree."""
    feature, low, high = leaves.feature, leaves.low, leaves.high
    for t in range(len(leaf_of)):
        for e in range(leaves.entry_begin[leaf_of[t]], leaves.entry_begin[leaf_of[t] + 1]):
            j = feature[e]
            if places.row[j] >= 0:
                if not has_bit(leaves.masks, low[e], x[j]):
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
        possible = k != x[j] and allowed[at + k] and has_place(places, box, j, k)
        if possible and (best < 0 or places.cost[at + k] < places.cost[at + best]):
            best = k
    return best


@njit(cache=True, nogil=True)
def other_point(places, rules, box, x, broken, anything):
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
