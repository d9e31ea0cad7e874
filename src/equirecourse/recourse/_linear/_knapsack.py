"""The smallest sum of costs (L1, L2, total log shift) of a linear score: numbers only, no models.

Every person has a ``need``, the gain in score that a yes takes. Every feature offers moves, each with a cost and a
gain:

* continuous (kind 1): any distance in [0, last], at ``price`` a unit, for ``slope`` of gain a unit;
* lattice (kind 2): the distances first, first + step, ..., last;
* list (kind 3): a finite list of moves.

Costs of numbers are (price · distance) to the power 1 or 2; those of lists are given to that power. This is a
multiple-choice knapsack. It is solved by dynamic programming over the features with lists (and short lattices): a state
is a (gain, cost) that some moves of the features so far achieve. A state is dropped if another one gains as much for
less, or if its cost plus what the remaining features need at least (their relaxation, a convex function of the gain
that is still missing) is no better than the best known answer. A first pass with few states finds that answer; a second
one proves it. Numbers close what the lists leave open (``_numbers``).

The search counts its steps, and gives up on a person when they exceed its ``patience``: run by the interpreter it is
good for small problems, and large ones are left to the compiled functions.

After Pisinger (1995), "A minimal algorithm for the multiple-choice knapsack problem".
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# These functions run as they are or compiled (``_compiled``); numba types them.

from __future__ import annotations

import numpy as np

from equirecourse.recourse._linear._numbers import (
    CONTINUOUS,
    FIXED,
    LATTICE,
    MAX_NODES,
    close,
    cost_of,
    first_at_least,
    order_of,
    picked,
    put,
    relaxed,
)

__all__ = ["CONTINUOUS", "FIXED", "LATTICE", "LIST", "additive"]

LIST = 3

# A state whose bound is this close (relative) to the best known cost is dropped: it could not be told apart.
_TIE = 1e-9
_SHORT = 200  # a lattice with at most so many moves is a list
_FEW, _MANY = 64, 60_000  # states of the two passes
# What the parts of a search take, in steps: the lists of a person; a state with a move where costs are squares
# (a bisection in ``relaxed``); one call of ``close``. The interpreter takes 1 to 10 µs a step (german, credit and
# givemecredit under L1, L2 and log shifts).
_OPENING, _RELAXING, _CLOSING = 50, 10, 500


def _undominated(cost, gain, tag, need):
    """Sort moves by cost and keep those that gain more than all cheaper ones, up to the first that is enough."""
    order = order_of(cost)
    kept = 0
    most = 0.0
    for place in range(len(order)):
        o = order[place]
        if gain[o] > most and cost[o] < np.inf:
            order[kept] = o
            kept += 1
            most = gain[o]
            if most >= need:
                break
    gains = picked(gain, order, kept)
    if kept > 0:
        gains[kept - 1] = min(gains[kept - 1], need)
    return picked(cost, order, kept), gains, picked(tag, order, kept)


def _hull(cost, gain, ratio, length, filled):
    """Append the segments of the lower convex hull of moves (from staying put) to ``ratio`` and ``length``."""
    at, at_cost, at_gain = -1, 0.0, 0.0
    while at < len(cost) - 1:
        best, steepest = -1, np.inf
        for o in range(at + 1, len(cost)):
            r = (cost[o] - at_cost) / (gain[o] - at_gain)
            if r <= steepest:
                best, steepest = o, r
        ratio[filled] = steepest
        length[filled] = gain[best] - at_gain
        filled += 1
        at, at_cost, at_gain = best, cost[best], gain[best]
    return filled


def _least(rest, power, ratio, gained, spent, count, slope, price, last, numbers):
    """Least cost of a gain of ``rest`` if moves could be taken in part: hull segments in order, and numbers."""
    if rest <= 0.0:
        return 0.0
    if power == 1 or len(numbers) == 0:
        # With power 1 the numbers are segments like the others.
        if rest > gained[count] * (1.0 + 1e-12):
            return np.inf
        place = first_at_least(gained, 0, count + 1, rest) - 1
        place = min(max(place, 0), count - 1)
        return spent[place] + ratio[place] * (rest - gained[place])
    return relaxed(rest, ratio, gained, spent, count, slope, price, last, numbers)


def _remaining(level, ratio, length, owner, ratios, gained, spent):
    """Segments of the features after a level, and what they gain and cost up to each of them; returns their number."""
    count = 0
    for o in range(len(ratio)):
        if owner[o] > level or owner[o] < 0:
            ratios[count] = ratio[o]
            gained[count + 1] = gained[count] + length[o]
            spent[count + 1] = spent[count] + ratio[o] * length[o]
            count += 1
    return count


def _longer(values):
    longer = np.empty(2 * len(values))
    for k in range(len(values)):
        longer[k] = values[k]
    return longer


def _expand(
    is_last, answer, need, power, costs, gains, begin, end, state_gain, state_cost, ratios, gained, spent, count, slope,
    price, last, numbers,
):  # fmt: skip
    """Every state with every move of one feature that may still lead to a better answer.

    Returns
    -------
    ndarray of shape (5, filled)
        Gain, cost, bound, state and move (−1 stays) of the new states.
    """
    capacity = 1024
    new_gain, new_cost, new_bound = np.empty(capacity), np.empty(capacity), np.empty(capacity)
    parent, move = np.empty(capacity), np.empty(capacity)
    filled = 0
    for state in range(len(state_gain)):
        from_move = begin - 1
        if is_last and state_gain[state] < need:
            # Only the cheapest move that is enough matters; moves are in the order of cost and of gain.
            from_move = first_at_least(gains, begin, end, (need - state_gain[state]) * (1.0 - 1e-13))
        for o in range(from_move, end):
            g, c = state_gain[state], state_cost[state]
            if o >= begin:
                g += gains[o]
                c += costs[o]
            if c >= answer * (1.0 - _TIE):
                break
            bound = c + _least(need - g, power, ratios, gained, spent, count, slope, price, last, numbers)
            if is_last or bound < answer * (1.0 - _TIE):
                if filled == capacity:
                    capacity *= 2
                    new_gain, new_cost, new_bound = _longer(new_gain), _longer(new_cost), _longer(new_bound)
                    parent, move = _longer(parent), _longer(move)
                new_gain[filled], new_cost[filled], new_bound[filled] = min(g, need), c, bound
                parent[filled], move[filled] = state, (o - begin if o >= begin else -1)
                filled += 1
            if is_last or g >= need:
                break
    new = np.empty((5, filled))
    for k in range(filled):
        new[0, k], new[1, k], new[2, k], new[3, k], new[4, k] = (
            new_gain[k],
            new_cost[k],
            new_bound[k],
            parent[k],
            move[k],
        )
    return new


def _thin(new, limit):
    """Places of the undominated states, at most ``limit`` of the best bounds, and the best bound that was dropped."""
    order = order_of(new[1])
    kept = 0
    most = -1.0
    for place in range(len(order)):
        o = order[place]
        if new[0, o] > most:
            order[kept] = o
            kept += 1
            most = new[0, o]
    order = order[:kept]
    if kept <= limit:
        return order, np.inf
    by_bound = order_of(picked(new[2], order, kept))
    best = np.empty(limit, dtype=np.int64)
    for k in range(limit):
        best[k] = order[by_bound[k]]
    return best, new[2, order[by_bound[limit]]]


def _search(
    limit, patience, answer, need, power, sizes, costs, gains, ratio, length, owner, slope, price, first, last, step,
    kind, numbers, picks, distance,
):  # fmt: skip
    """One pass of the dynamic programme with at most ``limit`` states after each feature.

    Returns
    -------
    (cost, bound, steps)
        The best cost found, ``answer`` if nothing better was; a bound on what was dropped unexplored, −∞ if the search
        gave up; how many steps it took. ``picks``, the move of each list (−1 stays), and ``distance`` are filled in if
        something better was found.
    """
    steps = 0
    step_size = _RELAXING if power == 2 and len(numbers) > 0 else 1
    depth = len(sizes) - 1
    dropped = np.inf
    state_gain, state_cost, node = np.zeros(1), np.zeros(1), np.zeros(1)
    # Every state that was kept is a node that remembers where it came from.
    node_parent, node_move = np.full(1024, -1.0), np.full(1024, -1.0)
    n_nodes = 1
    ratios, gained, spent = np.zeros(len(ratio) + 1), np.zeros(len(ratio) + 1), np.zeros(len(ratio) + 1)
    count = _remaining(depth - 1, ratio, length, owner, ratios, gained, spent)
    for level in range(depth):
        steps += step_size * len(state_gain) * (1 + sizes[level + 1] - sizes[level])
        if steps > patience:
            return answer, -np.inf, steps
        count = _remaining(level, ratio, length, owner, ratios, gained, spent)
        is_last = level == depth - 1 and len(numbers) == 0
        new = _expand(
            is_last, answer, need, power, costs, gains, sizes[level], sizes[level + 1], state_gain, state_cost,
            ratios, gained, spent, count, slope, price, last, numbers,
        )  # fmt: skip
        kept, bound = _thin(new, limit)
        dropped = min(dropped, bound)
        while n_nodes + len(kept) > len(node_parent):
            node_parent, node_move = _longer(node_parent), _longer(node_move)
        for k in range(len(kept)):
            node_parent[n_nodes + k] = node[int(new[3, kept[k]])]
            node_move[n_nodes + k] = new[4, kept[k]]
        state_gain, state_cost = picked(new[0], kept, len(kept)), picked(new[1], kept, len(kept))
        node = np.arange(n_nodes, n_nodes + len(kept)).astype(np.float64)
        n_nodes += len(kept)
    # The most promising states first: what they find cuts off the others.
    bounds = np.empty(len(state_gain))
    for state in range(len(state_gain)):
        bounds[state] = state_cost[state] + _least(
            need - state_gain[state], power, ratios, gained, spent, count, slope, price, last, numbers
        )
    chosen = -1
    here = np.zeros(len(kind))
    order = order_of(bounds)
    for place in range(len(order)):
        state = order[place]
        if bounds[state] >= answer * (1.0 - _TIE):
            break
        steps += _CLOSING
        if steps > patience:
            return answer, -np.inf, steps
        extra, low, sure = close(
            need * (1.0 - 1e-13) - state_gain[state] if len(numbers) == 0 else need - state_gain[state],
            answer - state_cost[state], min(patience, MAX_NODES), power, kind, slope, price, first, last, step, here,
        )  # fmt: skip
        if not sure:
            if patience < MAX_NODES:
                return answer, -np.inf, patience
            dropped = min(dropped, state_cost[state] + low)
        if state_cost[state] + extra < answer:
            answer = state_cost[state] + extra
            chosen = state
            for j in range(len(here)):
                distance[j] = here[j]
    if chosen >= 0:
        at = int(node[chosen])
        for level in range(depth - 1, -1, -1):
            picks[level] = int(node_move[at])
            at = int(node_parent[at])
    return answer, dropped, steps


# Its steps as functions of their own, compiled by numba, took 2.4 times as long (credit, l2): they stay in one place.
def _additive_one(  # noqa: PLR0912
    need, patience, power, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice
):
    """Cheapest action of one person: (cost, lower bound, steps). ``distance`` and ``choice`` hold its moves."""
    m = len(kind)
    last = last.copy()
    kind = kind.copy()
    lists = np.empty(m, dtype=np.int64)
    is_lattice = np.zeros(m, dtype=np.bool_)
    depth = 0
    room = 0
    for j in range(m):
        if kind[j] == CONTINUOUS or kind[j] == LATTICE:
            # Nobody needs more than the whole need of one feature: this makes every range finite. A hair more, because
            # slope · (need / slope) may be rounded to less than the need, which then seems out of reach.
            enough = need / slope[j] * (1.0 + 1e-12)
            if kind[j] == LATTICE:
                enough = first[j] + step[j] * max(np.ceil((enough - first[j]) / step[j] + 1e-9), 0.0)
            last[j] = min(last[j], enough)
        if kind[j] == LATTICE and (last[j] - first[j]) / step[j] < _SHORT:
            is_lattice[j] = True
            lists[depth] = j
            depth += 1
            room += _SHORT + 2
        elif kind[j] == LIST:
            lists[depth] = j
            depth += 1
            room += end[j] - begin[j]
    lists = lists[:depth]
    # The undominated moves of each list, the features with few of them first.
    all_costs, all_gains, tags = np.empty(room), np.empty(room), np.empty(room)
    sizes = np.zeros(depth + 1, dtype=np.int64)
    places = np.empty(len(costs))
    for o in range(len(costs)):
        places[o] = o
    for place in range(depth):
        j = lists[place]
        if is_lattice[j]:
            moves = int(np.floor((last[j] - first[j]) / step[j] + 1e-9)) + 1
            tag, cost, gain = np.empty(moves), np.empty(moves), np.empty(moves)
            for k in range(moves):
                tag[k] = first[j] + step[j] * k
                cost[k] = cost_of(tag[k], price[j], power)
                gain[k] = slope[j] * tag[k]
            c, g, t = _undominated(cost, gain, tag, need)
            kind[j] = FIXED
        else:
            c, g, t = _undominated(costs[begin[j] : end[j]], gains[begin[j] : end[j]], places[begin[j] : end[j]], need)
        at = sizes[place]
        sizes[place + 1] = at + len(c)
        put(all_costs, at, c)
        put(all_gains, at, g)
        put(tags, at, t)
    for j in range(m):
        if kind[j] == LIST:
            kind[j] = FIXED
    counts = np.empty(depth)
    for place in range(depth):
        counts[place] = sizes[place + 1] - sizes[place]
    order = order_of(counts)
    some_costs, some_gains, some_tags = np.empty(sizes[depth]), np.empty(sizes[depth]), np.empty(sizes[depth])
    new_sizes = np.zeros(depth + 1, dtype=np.int64)
    for place in range(depth):
        old = order[place]
        at = new_sizes[place]
        new_sizes[place + 1] = at + sizes[old + 1] - sizes[old]
        put(some_costs, at, all_costs[sizes[old] : sizes[old + 1]])
        put(some_gains, at, all_gains[sizes[old] : sizes[old + 1]])
        put(some_tags, at, tags[sizes[old] : sizes[old + 1]])
    unsorted = lists.copy()
    n_numbers = 0
    for place in range(depth):
        lists[place] = unsorted[order[place]]
    sizes = new_sizes
    numbers = np.empty(m, dtype=np.int64)
    for j in range(m):
        if kind[j] != FIXED:
            numbers[n_numbers] = j
            n_numbers += 1
    numbers = numbers[:n_numbers]

    # The relaxation: segments of the hulls (and numbers, if their cost is linear), cheapest gain first.
    n_segments = sizes[depth] + len(numbers)
    ratio, length = np.empty(n_segments), np.empty(n_segments)
    owner = np.full(n_segments, -1)
    filled = 0
    reach = 0.0
    for place in range(depth):
        at, to = sizes[place], sizes[place + 1]
        before = filled
        filled = _hull(some_costs[at:to], some_gains[at:to], ratio, length, filled)
        owner[before:filled] = place
        if to > at:
            reach += some_gains[to - 1]
    for number in range(n_numbers):
        j = numbers[number]
        reach += slope[j] * last[j]
        if power == 1:
            ratio[filled], length[filled] = price[j] / slope[j], slope[j] * last[j]
            filled += 1
    distance[:] = 0.0
    choice[:] = -1
    if reach < need:
        return np.inf, np.inf, _OPENING
    by_ratio = order_of(ratio[:filled])
    ratio, length = picked(ratio, by_ratio, filled), picked(length, by_ratio, filled)
    owners = np.empty(filled, dtype=np.int64)
    for k in range(filled):
        owners[k] = owner[by_ratio[k]]

    answer = np.inf
    bound = 0.0
    steps = _OPENING
    picks = np.full(depth, -1)
    for limit in (_FEW, _MANY):
        cost, dropped, taken = _search(
            limit, patience - steps, answer, need, power, sizes, some_costs, some_gains, ratio, length, owners, slope,
            price, first, last, step, kind, numbers, picks, distance,
        )  # fmt: skip
        steps += taken
        if dropped == -np.inf:
            return np.inf, -np.inf, steps
        if cost < answer:
            answer = cost
            choice[:] = -1
            for place in range(depth):
                if is_lattice[lists[place]]:
                    distance[lists[place]] = 0.0
                if picks[place] >= 0:
                    tag = some_tags[sizes[place] + picks[place]]
                    if is_lattice[lists[place]]:
                        distance[lists[place]] = tag
                    else:
                        choice[lists[place]] = int(tag)
        bound = min(answer, dropped)
        if dropped >= answer * (1.0 - _TIE):
            break
    return answer, bound, steps


def additive(need, patience, power, kind, slope, price, first, last, step, begin, end, costs, gains, distance, choice):
    """Smallest sum of costs for everybody; arrays are (people, features), lists are (people, moves).

    Returns
    -------
    (best, bound, patience) : arrays of float, int
        The sum found, infinite where nothing is enough; no sum is below ``bound``, which equals ``best`` where the
        search was complete, and is −∞ for those with whom ``patience`` (steps, for all people together) was at its end.
        ``distance`` and ``choice`` are filled in. What is left of the patience.
    """
    best = np.empty(len(need))
    bound = np.empty(len(need))
    for i in range(len(need)):
        best[i], bound[i], steps = _additive_one(
            need[i], patience, power, kind[i], slope, price, first[i], last[i], step, begin, end, costs[i], gains[i],
            distance[i], choice[i],
        )  # fmt: skip
        patience -= steps
    return best, bound, patience
