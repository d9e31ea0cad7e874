"""The cheapest way to gain a given amount of score from numbers alone: the last part of ``_knapsack``.

A number gains ``slope`` a unit at a cost of (price · distance) to the power 1 or 2. Continuous numbers go any distance
up to ``last``, lattices go first, first + step, ..., last. Without lattices this is a greedy filling. With them, let μ
be the multiplier of the Lagrangian relaxation and L its value; then

    cost(choice) = L + Σ regret(distance) + μ · (gain − rest),   regret = cost − μ·gain − min(cost − μ·gain),

so only distances whose regrets add up to less than (best known − L) can be better, and a depth first search visits
them all. A lattice that is not short has small steps, so there are few.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# These functions run as they are or compiled (``_compiled``); numba types them.

from __future__ import annotations

import numpy as np

__all__ = [
    "CONTINUOUS",
    "FIXED",
    "LATTICE",
    "MAX_NODES",
    "close",
    "cost_of",
    "first_at_least",
    "order_of",
    "picked",
    "put",
    "relaxed",
]

FIXED, CONTINUOUS, LATTICE = 0, 1, 2

_TIE = 1e-9
_MAX_MOVES = 4096  # of one lattice within the regret that is still allowed
MAX_NODES = 200_000  # of the depth first search of ``close``


# NumPy's own argsort, searchsorted, fancy indexing and slices as targets run as fast but take half a minute to compile.


def order_of(values):
    """Places of the values in increasing order; equal ones keep their order (a merge sort)."""
    n = len(values)
    order, other = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for k in range(n):
        order[k] = k
    width = 1
    while width < n:
        for left in range(0, n, 2 * width):
            middle, right = min(left + width, n), min(left + 2 * width, n)
            a, b = left, middle
            for k in range(left, right):
                if a < middle and (b >= right or values[order[a]] <= values[order[b]]):
                    other[k] = order[a]
                    a += 1
                else:
                    other[k] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


def first_at_least(values, begin, end, wanted):
    """First place from ``begin`` on where increasing values reach ``wanted``; ``end`` if none does."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


def picked(values, order, count):
    """Values at the first ``count`` places of an order."""
    chosen = np.empty(count)
    for k in range(count):
        chosen[k] = values[order[k]]
    return chosen


def put(values, at, others):
    """Write other values into ``values``, from place ``at`` on."""
    for k in range(len(others)):
        values[at + k] = others[k]


def relaxed(rest, ratio, gained, spent, count, slope, price, last, numbers):
    """Least sum of squares for a gain of ``rest`` from hull segments (in order of ratio) and numbers, in part."""
    reach = gained[count]
    for j in numbers:
        reach += slope[j] * last[j]
    if reach < rest * (1.0 - 1e-12):
        return np.inf
    low, high = 0.0, 1.0
    for step in range(1200):
        gain = gained[first_at_least(ratio, 0, count, high)]
        for j in numbers:
            gain += slope[j] * min(high * slope[j] / (2.0 * price[j] * price[j]), last[j])
        if gain >= rest * (1.0 - 1e-12) or step == 1199:
            break
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        gain = gained[first_at_least(ratio, 0, count, middle)]
        for j in numbers:
            gain += slope[j] * min(middle * slope[j] / (2.0 * price[j] * price[j]), last[j])
        if gain >= rest:
            high = middle
        else:
            low = middle
        if high - low <= 1e-14 * high:
            break
    # Any multiplier gives a bound: the value of the Lagrangian at this one.
    place = first_at_least(ratio, 0, count, low)
    value = low * rest + spent[place] - low * gained[place]
    for j in numbers:
        d = min(low * slope[j] / (2.0 * price[j] * price[j]), last[j])
        value += price[j] * price[j] * d * d - low * slope[j] * d
    return value


def cost_of(distance, price, power):
    """What a distance costs, to the power."""
    paid = price * distance
    # The square as a product: interpreted and compiled, it is the same to the last bit.
    return paid if power == 1 else paid * paid


def _ideal(mu, power, price, slope, first, last, step, is_lattice):
    """Distance that minimises cost − μ·gain over the moves of a number (0 is staying)."""
    linear = last if mu * slope > price else 0.0
    target = linear if power == 1 else min(mu * slope / (2.0 * price * price), last)
    if not is_lattice or target == 0.0:
        return target
    places = np.floor((target - first) / step)
    best, least = 0.0, 0.0
    for k in range(2):
        d = first + step * max(places + k, 0.0)
        if d <= last * (1.0 + 1e-12):
            value = cost_of(d, price, power) - mu * slope * d
            if value < least:
                best, least = d, value
    return best


def _at_multiplier(mu, power, kind, slope, price, first, last, step, distance, least):
    """Best distance of every number at multiplier μ; returns (gain, Σ of the minima)."""
    gain, value = 0.0, 0.0
    for j in range(len(kind)):
        distance[j], least[j] = 0.0, 0.0
        if kind[j] == CONTINUOUS or kind[j] == LATTICE:
            d = _ideal(mu, power, price[j], slope[j], first[j], last[j], step[j], kind[j] == LATTICE)
            distance[j] = d
            least[j] = cost_of(d, price[j], power) - mu * slope[j] * d
            gain += slope[j] * d
            value += least[j]
    return gain, value


def _fill(rest, power, members, slope, price, last, distance):
    """Cheapest way to gain ``rest`` from continuous numbers, given in the order of price; infinite if they cannot."""
    for j in members:
        distance[j] = 0.0
    if rest <= 0.0:
        return 0.0
    reach = 0.0
    for j in members:
        reach += slope[j] * last[j]
    if reach < rest * (1.0 - 1e-13):
        return np.inf
    total = 0.0
    if power == 1:
        for j in members:
            distance[j] = min(max(rest, 0.0) / slope[j], last[j])
            total += price[j] * distance[j]
            rest -= slope[j] * distance[j]
        return total
    # Squares: everybody goes μ·slope / (2·price²) as far as possible; the gain grows with μ.
    low, high = 0.0, 1.0
    for _ in range(1200):
        if _filled(high, members, slope, price, last) >= rest * (1.0 - 1e-13):
            break
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if _filled(middle, members, slope, price, last) >= rest:
            high = middle
        else:
            low = middle
    for j in members:
        distance[j] = min(high * slope[j] / (2.0 * price[j] * price[j]), last[j])
        total += cost_of(distance[j], price[j], power)
    return total


def _filled(mu, members, slope, price, last):
    gain = 0.0
    for j in members:
        gain += slope[j] * min(mu * slope[j] / (2.0 * price[j] * price[j]), last[j])
    return gain


def _one_lattice(rest, power, slope, price, first, last, step):
    """(cost, distance) of the shortest move of a lattice that gains at least ``rest``; infinite if there is none."""
    if rest <= 0.0:
        return 0.0, 0.0
    d = first + step * max(np.ceil((rest / slope - first) / step - 1e-9), 0.0)
    if d > last * (1.0 + 1e-12):
        return np.inf, 0.0
    return cost_of(d, price, power), d


def _moves_within(gap, mu, power, slope, price, first, last, step, least):
    """(first place, number) of the distances first + k·step whose regret is within the gap: a range, by convexity."""
    top = np.floor((last - first) / step + 1e-9)
    if power == 1:
        tilt = price - mu * slope
        room = gap + least
        if tilt > 0.0:
            low, high = -np.inf, room / tilt
        elif tilt < 0.0:
            low, high = room / tilt, np.inf
        else:
            low, high = (-np.inf, np.inf) if room >= 0.0 else (1.0, 0.0)
    else:
        a, b = price * price, mu * slope
        inside = b * b + 4.0 * a * (gap + least)
        if inside < 0.0:
            return 0, 0
        low, high = (b - np.sqrt(inside)) / (2.0 * a), (b + np.sqrt(inside)) / (2.0 * a)
    k_low = max(np.ceil((low - first) / step - 1e-6), 0.0)
    k_high = min(np.floor((high - first) / step + 1e-6), top)
    if k_high < k_low:
        return 0, 0
    return int(k_low), int(min(k_high - k_low + 1.0, 1e9))


def _give_back(spare, kind, slope, first, step, distance):
    """Shorten distances by what they gain too much."""
    for j in range(len(kind)):
        if kind[j] == FIXED or distance[j] <= 0.0 or spare <= 0.0:
            continue
        back = min(spare / slope[j], distance[j])
        if kind[j] == LATTICE:
            back = step[j] * np.floor(back / step[j] * (1.0 + 1e-12))
            if distance[j] - back < first[j] * (1.0 - 1e-12):
                back = 0.0
        spare -= slope[j] * back
        distance[j] -= back


def _multiplier(rest, power, kind, slope, price, first, last, step, distance, least):
    """The least multiplier at which numbers gain ``rest``: (multiplier, their gain, Σ of the minima)."""
    low, high = 0.0, 1.0
    for _ in range(1200):
        gain, value = _at_multiplier(high, power, kind, slope, price, first, last, step, distance, least)
        if gain >= rest * (1.0 - 1e-13):
            break
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        gain, value = _at_multiplier(middle, power, kind, slope, price, first, last, step, distance, least)
        if gain >= rest:
            high = middle
        else:
            low = middle
    gain, value = _at_multiplier(high, power, kind, slope, price, first, last, step, distance, least)
    return high, gain, value


def _fewest_moves_first(kind, counts, closer):
    """The lattices to be tried out, those with few moves first: their choices cut off the most."""
    levels, fewest = np.empty(len(kind), dtype=np.int64), np.empty(len(kind))
    depth = 0
    for j in range(len(kind)):
        if kind[j] == LATTICE and j != closer:
            levels[depth], fewest[depth] = j, counts[j]
            depth += 1
    by_count = order_of(fewest[:depth])
    found = np.empty(depth, dtype=np.int64)
    for level in range(depth):
        found[level] = levels[by_count[level]]
    return found


def _moves_by_regret(gap, mu, power, levels, counts, slope, price, first, last, step, least):
    """Moves of each level within the gap, those of least regret first: (begin, regret, cost, profit, moved)."""
    size = len(levels)
    for level in range(len(levels)):
        size += counts[levels[level]]
    begin = np.zeros(len(levels) + 1, dtype=np.int64)
    regret, cost, profit, moved = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for level in range(len(levels)):
        j = levels[level]
        at = begin[level]
        to = at
        if -least[j] <= gap:
            regret[to], cost[to], profit[to], moved[to] = -least[j], 0.0, 0.0, 0.0
            to += 1
        k_from, count = _moves_within(gap, mu, power, slope[j], price[j], first[j], last[j], step[j], least[j])
        for k in range(count):
            d = first[j] + step[j] * (k_from + k)
            c = cost_of(d, price[j], power)
            regret[to], cost[to], profit[to], moved[to] = c - mu * slope[j] * d - least[j], c, slope[j] * d, d
            to += 1
        order = order_of(regret[at:to])
        for values in (regret, cost, profit, moved):
            put(values, at, picked(values[at:to], order, to - at))
        begin[level + 1] = to
    return begin, regret, cost, profit, moved


def _most_from(begin, profit, rest_of_numbers):
    """The most that the numbers from each level on can gain."""
    depth = len(begin) - 1
    tail = np.zeros(depth + 1)
    tail[depth] = rest_of_numbers
    for level in range(depth - 1, -1, -1):
        most = 0.0
        for o in range(begin[level], begin[level + 1]):
            most = max(most, profit[o])
        tail[level] = tail[level + 1] + most
    return tail


def _last_part(missing, power, closer, filling, slope, price, first, last, step, distance):
    """Cost of gaining what is missing from continuous numbers, or from the lattice ``closer`` if there are none."""
    if closer < 0:
        return _fill(missing, power, filling, slope, price, last, distance)
    cost, distance[closer] = _one_lattice(
        missing, power, slope[closer], price[closer], first[closer], last[closer], step[closer]
    )
    return cost


def _total_cost(distance, price, power):
    total = 0.0
    for j in range(len(distance)):
        total += cost_of(distance[j], price[j], power)
    return total


def close(rest, budget, max_nodes, power, kind, slope, price, first, last, step, distance):
    """Cheapest distances that gain at least ``rest``.

    Returns
    -------
    (cost, bound, sure)
        The cost, infinite if there is none or only dearer ones than ``budget``; a lower bound; whether the search was
        complete. ``distance`` is filled in.
    """
    m = len(kind)
    distance[:] = 0.0
    if rest <= 0.0:
        return 0.0, 0.0, True
    n_continuous, n_lattices = 0, 0
    ratio = np.full(m, np.inf)
    reach, reach_of_continuous = 0.0, 0.0
    for j in range(m):
        if kind[j] != FIXED:
            reach += slope[j] * last[j]
        if kind[j] == CONTINUOUS:
            n_continuous += 1
            ratio[j] = price[j] / slope[j]
            reach_of_continuous += slope[j] * last[j]
        elif kind[j] == LATTICE:
            n_lattices += 1
    filling = order_of(ratio)[:n_continuous]
    if reach < rest * (1.0 - 1e-13):
        return np.inf, np.inf, True
    if n_lattices == 0:
        cost = _fill(rest, power, filling, slope, price, last, distance)
        return cost, cost, True

    least = np.zeros(m)
    mu, gain, value = _multiplier(rest, power, kind, slope, price, first, last, step, distance, least)
    bound = max(mu * rest + value, 0.0)
    if bound >= budget:
        return np.inf, bound, True
    # At this multiplier the gain is enough; without what is too much it is a good first answer.
    _give_back(gain - rest, kind, slope, first, step, distance)
    best = _total_cost(distance, price, power)

    gap = (best - bound) + 1e-12 * best
    counts = np.zeros(m, dtype=np.int64)
    closer = -1  # without continuous numbers, the lattice with the most moves gains what is missing in the end
    for j in range(m):
        if kind[j] == LATTICE:
            counts[j] = _moves_within(gap, mu, power, slope[j], price[j], first[j], last[j], step[j], least[j])[1]
            if n_continuous == 0 and (closer < 0 or counts[j] > counts[closer]):
                closer = j
    levels = _fewest_moves_first(kind, counts, closer)
    depth = len(levels)
    if depth > 0 and counts[levels[depth - 1]] > _MAX_MOVES:
        return best, bound, best <= bound * (1.0 + _TIE)
    begin, regret, cost, profit, moved = _moves_by_regret(
        gap, mu, power, levels, counts, slope, price, first, last, step, least
    )
    tail = _most_from(begin, profit, slope[closer] * last[closer] if closer >= 0 else reach_of_continuous)

    here = np.zeros(m)
    place = begin[:-1].copy()
    regrets, spent, gained = np.zeros(depth + 1), np.zeros(depth + 1), np.zeros(depth + 1)
    level, nodes = 0, 0
    while level >= 0:
        nodes += 1
        if nodes > max_nodes:
            return best, bound, False
        if level == depth:
            missing = rest - gained[depth]
            extra = _last_part(missing, power, closer, filling, slope, price, first, last, step, here)
            if spent[depth] + extra < best:
                best = spent[depth] + extra
                for back in range(depth):
                    here[levels[back]] = moved[place[back] - 1]
                put(distance, 0, here)
            level -= 1
            continue
        o = place[level]
        if o >= begin[level + 1] or bound + regrets[level] + regret[o] >= min(best, budget) * (1.0 - _TIE):
            place[level] = begin[level]
            level -= 1
            continue
        place[level] += 1
        if gained[level] + profit[o] + tail[level + 1] < rest * (1.0 - 1e-12):
            continue
        regrets[level + 1] = regrets[level] + regret[o]
        spent[level + 1] = spent[level] + cost[o]
        gained[level + 1] = gained[level] + profit[o]
        level += 1
    return best, best, True
