"""The feasible set of each person: rounding to allowed values of each feature, and repair of links and rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import Condition
from equirecourse.recourse._problem import Problem

__all__ = ["FeasibleSet"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Two values that differ by less, relative to their size, are the same value but for rounding.
_SAME = 1e-9


class FeasibleSet:
    """The values that a person may move each feature to.

    A feature is *continuous* (a number that may take any value within limits), *discrete* (a number with a step or on a
    grid, or an ordered label, whose allowed values have positions), or a label without order.

    Parameters
    ----------
    problem : Problem
        The people and what they may change.

    Attributes
    ----------
    movable : ndarray of bool, shape (n_people, n_features)
        Whether the person may move the feature to another value.
    continuous, is_discrete, ordered : ndarray of bool, shape (n_features,)
        The kind of the feature; an ordered feature is continuous or discrete.
    floor, ceiling : ndarray of shape (n_people, n_features)
        Finite limits: those of the action set, or else somewhat beyond the observed values.
    spread : ndarray of shape (n_features,)
        The range of the observed values.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.start = problem.start
        features = problem.actions.features
        self.low, self.high = problem.reach
        self.ordered = np.array([feature.has_order for feature in features], dtype=bool)
        self._step = np.array([feature.step or np.nan for feature in features])
        self._lists = [
            np.flatnonzero(feature.reachable).astype(np.float64) if not feature.is_number else grid
            for feature, grid in zip(features, problem.grids, strict=True)
        ]
        listed = np.array([values is not None for values in self._lists], dtype=bool)
        self.is_discrete = self.ordered & (listed | ~np.isnan(self._step))
        self.continuous = self.ordered & ~self.is_discrete
        self._first = np.zeros_like(self.start)
        self._last = np.full_like(self.start, -1.0)
        self.movable = np.zeros(self.start.shape, dtype=bool)
        for j in range(len(features)):
            self._read_feature(j)
        self._measure_spread()

    def _read_feature(self, j: int) -> None:
        now, low, high = self.start[:, j], self.low[:, j], self.high[:, j]
        open_ = low <= high
        if self.continuous[j]:
            self.movable[:, j] = open_ & ((low < now) | (high > now))
            return
        values = self._lists[j]
        if not self.ordered[j]:
            assert values is not None
            self.movable[:, j] = open_ & (values[None, :] != now[:, None]).any(axis=1)
            return
        if values is not None:
            first, last = np.searchsorted(values, low, "left"), np.searchsorted(values, high, "right") - 1
        else:
            with np.errstate(invalid="ignore"):
                first, last = np.ceil(low / self._step[j] - _SAME), np.floor(high / self._step[j] + _SAME)
        first, last = np.where(open_, first, 0.0), np.where(open_, last, -1.0)
        self._first[:, j], self._last[:, j] = first, last
        alone = first == last
        at = self._value(j, np.where(alone & np.isfinite(first), first, 0.0))
        self.movable[:, j] = (first < last) | (alone & ~_close(at, now))

    def _measure_spread(self) -> None:
        problem, n = self.problem, len(self.start)
        seen = (
            np.vstack([self.start, problem.actions.encode(problem.background)])
            if len(problem.background)
            else self.start
        )
        with np.errstate(invalid="ignore"):
            bottom = np.fmin.reduce(seen, axis=0, initial=np.inf)
            top = np.fmax.reduce(seen, axis=0, initial=-np.inf)
        known = top >= bottom
        bottom, top = np.where(known, bottom, 0.0), np.where(known, top, 0.0)
        width = top - bottom
        flat = width <= 0
        self.spread = np.where(flat, np.maximum(1.0, np.abs(top)), width)
        # Without limits, allow moves beyond the observed values.
        pad = np.fmax(0.5 * self.spread, self._step)
        bottom, top = bottom - pad, top + pad
        low, high = np.broadcast_to(bottom, (n, len(bottom))), np.broadcast_to(top, (n, len(top)))
        low, high = np.maximum(low, self.low), np.minimum(high, self.high)
        # All allowed values may lie beyond the observed ones: then use the nearest limit and one range more.
        beyond = low > high
        low, high = (
            np.where(beyond & (self.low > top), self.low, low),
            np.where(beyond & (self.high < bottom), self.high, high),
        )
        low = np.where(beyond & (self.high < bottom), np.maximum(self.low, self.high - self.spread), low)
        high = np.where(beyond & (self.low > top), np.minimum(self.high, self.low + self.spread), high)
        self.floor = np.where(self.movable, low, self.start)
        self.ceiling = np.where(self.movable, high, self.start)

    # --- positions of discrete values ----------------------------------------------------------------------------

    def _value(self, j: int, position: Array) -> Array:
        values = self._lists[j]
        if values is None:
            return np.asarray(position * self._step[j])
        if len(values) == 0:
            return np.full(len(position), np.nan)
        return np.asarray(values[np.clip(position, 0, len(values) - 1).astype(int)])

    def _position(self, j: int, value: Array) -> Array:
        values = self._lists[j]
        if values is None:
            return np.asarray(value / self._step[j])
        return np.asarray(np.interp(value, values, np.arange(len(values)))) if len(values) else np.zeros(len(value))

    def move_by_steps(self, people: Index, feature: Index, value: Array, steps: Array) -> Array:
        """Move a discrete feature by a number of positions, a continuous one by as many 64ths of its spread."""
        out = value + steps * self.spread[feature] / 64.0
        for j in np.unique(feature[self.is_discrete[feature]]):
            rows = feature == j
            at = self._position(int(j), value[rows])
            # From between two positions, the first step leads to the next of them.
            at = np.where(steps[rows] > 0, np.floor(at + _SAME), np.ceil(at - _SAME))
            position = np.clip(at + steps[rows], self._first[people[rows], j], self._last[people[rows], j])
            out[rows] = self._value(int(j), np.nan_to_num(position))
        return out

    def labels(self, j: int) -> Array:
        """Codes of the reachable labels of a feature."""
        values = self._lists[j]
        assert values is not None
        return values

    @property
    def of_labels(self) -> list[int]:
        """Places of the features of labels, ordered or not."""
        return [j for j, feature in enumerate(self.problem.actions) if not feature.is_number]

    def options(self, j: int) -> Mask:
        """Which of ``labels(j)`` each person may move to, one row per person."""
        codes = self.labels(j)
        within = (codes >= self.low[:, [j]]) & (codes <= self.high[:, [j]])
        return np.asarray(within & (codes != self.start[:, [j]]))

    # --- rounding and repair -------------------------------------------------------------------------------------

    def snap(self, people: Index, own: Array) -> Array:
        """Round to the nearest allowed values; to the start where a feature cannot move.

        Limits of linked numbers, and rules, are left to ``repair``.
        """
        out = own.copy()
        for j in range(own.shape[1]):
            now, wish = self.start[people, j], own[:, j]
            moves = self.movable[people, j] & (wish != now) & ~np.isnan(wish)
            if not moves.any():
                out[:, j] = now
                continue
            if self.continuous[j]:
                value = np.clip(wish, self.low[people, j], self.high[people, j])
            elif self.ordered[j]:
                wish = np.where(moves, wish, 0.0)
                position = np.clip(np.round(self._position(j, wish)), self._first[people, j], self._last[people, j])
                value = self._value(j, np.where(moves, position, 0.0))
                stays = (np.abs(wish - now) <= np.abs(wish - value)) | _close(value, now)
                value = np.where(stays, now, value)
            else:
                value = np.where(np.isin(wish, self.labels(j)), wish, now)
            out[:, j] = np.where(moves, value, now)
        return out

    def repair(self, people: Index, own: Array) -> tuple[Index, Array]:
        """Repair rounded changes by links and rules, and keep what the action set allows; one row may give several.

        Returns
        -------
        rows : ndarray of int
            The row that each repaired change comes from.
        own : ndarray
            The repaired changes.
        """
        actions = self.problem.actions
        rows = np.arange(len(own))
        if actions.links:
            own = self._within_carried_limits(people, own)
        if actions.rules:
            rows, own = self._by_the_rules(people, own)
        if len(rows) == 0:
            return rows, own
        keeps = self.problem.respected(people[rows], own)
        return rows[keeps], own[keeps]

    def _within_carried_limits(self, people: Index, own: Array) -> Array:
        """Move a linked number back within its limits: its own change first, or else that of its sources."""
        actions, start = self.problem.actions, self.start[people]
        for name in dict.fromkeys(link.target for link in actions.links):
            target, feature = actions.index(name), actions[name]
            end = actions.carry(start, own)[:, target]
            with np.errstate(invalid="ignore"):
                excess = end - np.clip(end, feature.low, feature.high)
                outside = (excess != 0) & (end != start[:, target]) & ~np.isnan(excess)
            if not outside.any():
                continue
            own = own.copy()
            if feature.mutable:
                own[outside, target] -= excess[outside]
            sources = [actions.index(link.source) for link in actions.links if link.target == name]
            carried = end - own[:, target] - np.where(feature.mutable & outside, excess, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.clip(1.0 - excess / carried, 0.0, 1.0)
            if not feature.mutable:
                for source in sources:
                    back = start[:, source] + share * (own[:, source] - start[:, source])
                    own[:, source] = np.where(outside & np.isfinite(share), back, own[:, source])
            own = np.where(outside[:, None], self.snap(people, own), own)
        return own

    def _by_the_rules(self, people: Index, own: Array) -> tuple[Index, Array]:
        """Repair each broken rule in both ways: make its conclusion true, or its condition false."""
        rows = np.arange(len(own))
        # Repairing one rule may break another. Two passes are a heuristic; what is still broken is dropped later.
        for rule in self.problem.actions.rules * 2:
            broken = self._holds(rule.when, people[rows], own) & ~self._holds(rule.then, people[rows], own)
            if broken.any():
                who = people[rows[broken]]
                followed = self._enforce(rule.then, True, who, own[broken])
                avoided = self._enforce(rule.when, False, who, own[broken])
                own = np.vstack([own[~broken], followed, avoided])
                rows = np.concatenate([rows[~broken], rows[broken], rows[broken]])
        return rows, own

    def _holds(self, condition: Condition, people: Index, own: Array) -> Mask:
        actions, start = self.problem.actions, self.start[people]
        j = actions.index(condition.feature)
        return condition.holds(actions.features[j], start[:, j], actions.carry(start, own)[:, j])

    def _enforce(self, condition: Condition, wanted: bool, people: Index, own: Array) -> Array:
        """Move one feature to the nearest value at which a condition is true (or false, as wanted)."""
        actions, start = self.problem.actions, self.start[people]
        j = actions.index(condition.feature)
        feature = actions.features[j]
        carried = actions.carry(start, own)[:, j] - own[:, j]
        now = start[:, j]
        if not feature.is_number:
            values = [np.full(len(own), code) for code in self.labels(j)]
        else:
            cuts = (
                [] if condition.op in ("changes", "stays", "increases", "decreases") else condition.cuts(feature, 0.0)
            )
            around = [np.full(len(own), value) for value in cuts] or [now, np.nextafter(now, np.inf)]
            values = [value - carried for at in around for value in (at, np.nextafter(at, -np.inf))]
            if self.is_discrete[j]:
                column = np.full(len(own), j)
                values += [
                    self.move_by_steps(people, column, value, np.full(len(own), steps))
                    for value in list(values)
                    for steps in (-1.0, 1.0)
                ]
        best, distance = own.copy(), np.full(len(own), np.inf)
        for value in [now, *values]:
            tried = own.copy()
            tried[:, j] = value
            tried = self.snap(people, tried)
            away = np.abs(tried[:, j] - own[:, j])
            better = (self._holds(condition, people, tried) == wanted) & (away < distance)
            best[better], distance[better] = tried[better], away[better]
        return best


def _close(value: Any, wanted: Any) -> Mask:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(value - wanted) <= _SAME * np.maximum(1.0, np.abs(wanted)))
