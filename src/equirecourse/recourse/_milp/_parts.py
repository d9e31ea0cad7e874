"""Parts of a program for one person.

A feature that goes to one of some values, a number that moves within a range, and the pieces of the line where a number
may end up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Feature
from equirecourse.recourse._milp._highs import Expression, Program, total

__all__ = ["Choice", "Pieces", "Range"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SLACK = 1e-9  # by which a multiple of a step may miss a limit, as the action set allows


class Choice:
    """A feature that goes to one of some values; the first is to stay.

    Parameters
    ----------
    switches : list of Expression
        One per value, of which exactly one is 1; features that move together share them.
    values, ends : ndarray
        The values (numbers or codes) that the feature is moved to, and where it ends up with what links carry along.
    """

    def __init__(self, switches: list[Expression], values: Array, ends: Array) -> None:
        self.switches, self.values, self.ends = switches, values, ends
        self.move = self.weighted(np.nan_to_num(ends - ends[0]))

    def weighted(self, weights: Array) -> Expression:
        """The weight of the value that is chosen."""
        return total(switch * float(weight) for switch, weight in zip(self.switches, weights, strict=True) if weight)

    def among(self, wanted: Mask) -> Expression:
        """1 if the feature ends up at one of the values wanted."""
        return self.weighted(wanted.astype(np.float64))

    def read(self, values: Array) -> float:
        """The value that the solver chose."""
        return float(self.values[int(np.argmax([switch.at(values) for switch in self.switches]))])


class Range:
    """A number that moves up or down, continuously or by steps, perhaps with a gap between staying and moving.

    Parameters
    ----------
    program : Program
        Where the variables are added.
    feature : Feature
        The number.
    start, low, high : float
        Where the person is, and the limits of a changed value.
    unit : float
        A distance that is typical of moves; variables of the program are counted in it.
    far : float
        A distance that it never moves.
    """

    def __init__(
        self, program: Program, feature: Feature, start: float, low: float, high: float, unit: float, far: float
    ) -> None:
        self.feature, self.start, self.low, self.high = feature, start, low, high
        self.size = unit if feature.step is None else feature.step
        self.ways: list[tuple[Expression | None, Expression]] = []
        self.move = self.distance = Expression({})
        self.first = np.inf if feature.step is None else feature.step  # the shortest move of a number with steps
        for sign in (1.0, -1.0):
            gap, room = self._way(sign)
            if room < 0:
                continue
            self.first = min(self.first, gap or np.inf)
            most = min(room / self.size, np.inf if gap == 0 and feature.step is None else far / self.size + 1.0)
            count = program.variable(0, most) if feature.step is None else program.whole(0, np.round(most))
            switch = None
            distance = count * self.size
            if gap > 0:
                switch = program.switch()
                program.at_most(count - switch * most, 0.0)
                distance = distance + switch * gap
            self.ways.append((switch, count))
            self.move, self.distance = self.move + distance * sign, self.distance + distance
        if len(switches := [switch for switch, _ in self.ways if switch is not None]) == 2:
            program.at_most(total(switches), 1.0)

    @property
    def is_continuous(self) -> bool:
        """Whether it moves by any amount."""
        return self.feature.step is None

    def _way(self, sign: float) -> tuple[float, float]:
        """Distance to the first value in a direction, and from there to the last; negative if there is none."""
        nowhere = 0.0, -1.0
        if self.feature.change == ("decrease" if sign > 0 else "increase"):
            return nowhere
        start, low, high = (self.start, self.low, self.high) if sign > 0 else (-self.start, -self.high, -self.low)
        if self.is_continuous:
            first = max(low, start)
            return (first - start, high - first) if high > start else nowhere
        step = self.size
        low, high = (side - way * _SLACK * max(1.0, abs(side)) for side, way in ((low, 1.0), (high, -1.0)))
        first = np.ceil(max(low, start) / step - _SLACK)
        first = first if first * step >= max(low, start) else first + 1
        last = np.floor(high / step)
        last = last if last * step <= high else last - 1
        return float(first * step - start), float((last - first) * step) if last >= first else -1.0

    def read(self, values: Array) -> float:
        """The value that the solver moves to, on the lattice and within the limits to the last bit."""
        is_moved = [(switch or count).at(values) > 1e-9 for switch, count in self.ways]
        if not any(is_moved):
            return self.start
        end = self.start + self.move.at(values)
        if not self.is_continuous:
            return float(np.round(end / self.size) * self.size)
        return float(np.clip(end, self.low, self.high))


class Pieces:
    """Where a number ends up: pieces of the line, of which the person's own value is one, with a switch each.

    Parameters
    ----------
    program : Program
        Where the switches are added.
    move : Expression
        How far the number moves, links included.
    start : float
        Where the person is.
    cuts : ndarray
        The first value of each piece but the first.
    low, high : float
        Limits of the number if it moves.
    far : float
        A distance that it never moves.
    step : float, optional
        It ends up at multiples of this, unless it stays.
    gap : float
        If it moves at all, then at least by this.
    """

    def __init__(
        self,
        program: Program,
        move: Expression,
        start: float,
        cuts: Array,
        low: float,
        high: float,
        far: float,
        step: float | None = None,
        gap: float = 0.0,
    ) -> None:
        above = float(np.nextafter(start, np.inf))
        cuts = np.unique(np.concatenate([cuts, [start, above]]))
        first = np.append(-np.inf, cuts)
        last = np.append(np.nextafter(cuts, -np.inf), np.inf)
        own = first == start
        first, last = np.maximum(first, low), np.minimum(last, high)
        if step is not None:
            first, last = _next_multiple(first, step), -_next_multiple(-last, step)
        first, last = np.where(own, start, first), np.where(own, start, last)
        self.start, self.move = start, move
        self.first, self.last = first[first <= last], last[first <= last]
        self.switches = [program.switch() for _ in self.first]
        program.one_of(self.switches)
        # Pieces may be open on one side; the program needs a number there.
        lows = [max(side - start, -far) if side <= start else max(side - start, gap) for side in self.first]
        highs = [min(side - start, far) if side >= start else min(side - start, -gap) for side in self.last]
        at_least = total(s * float(side) for s, side in zip(self.switches, lows, strict=True))
        at_most = total(s * float(side) for s, side in zip(self.switches, highs, strict=True))
        program.at_least(move - at_least, 0.0)
        program.at_most(move - at_most, 0.0)

    @property
    def inside(self) -> Array:
        """A value of each piece."""
        return np.where(np.isfinite(self.first), self.first, self.last)

    def among(self, wanted: Mask) -> Expression:
        """1 if the number ends up in one of the pieces wanted."""
        return total(switch for switch, yes in zip(self.switches, wanted, strict=True) if yes)

    def chosen(self, values: Array) -> tuple[float, float]:
        """First and last value of the piece that the solver chose."""
        place = int(np.argmax([switch.at(values) for switch in self.switches]))
        return float(self.first[place]), float(self.last[place])


def _next_multiple(values: Array, step: float) -> Array:
    """The first multiple of a step from each value on."""
    places = np.ceil(values / step)
    places = np.where(places * step < values, places + 1, places)
    return np.asarray(np.where((places - 1) * step >= values, places - 1, places) * step)
