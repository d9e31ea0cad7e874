"""Where each person may move a feature: the cheapest value of each cell, and its cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._problem import Problem
from equirecourse.recourse._trees._partition import Axis

__all__ = ["Cells", "asks_for_moves", "cells_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

_SLACK = 1e-9  # a multiple of a step may miss a limit by rounding, as the action set allows


@dataclass(frozen=True)
class Cells:
    """Where some people may move one feature: the first column is to stay, the others are cells.

    Attributes
    ----------
    values : ndarray of shape (n_people, n_columns)
        The cheapest value of the cell; NaN if one cannot move there.
    costs : ndarray of shape (n_people, n_columns)
        What it costs to move the feature there; infinite if one cannot.
    here : ndarray of int, shape (n_people,)
        The cell a person is in; meaningless for a missing number or label.
    """

    values: Array
    costs: Array
    here: Ints


def cells_of(problem: Problem, j: int, axis: Axis, people: Ints) -> Cells:
    """Where some people may move a feature, and at what cost.

    Parameters
    ----------
    problem : Problem
        What they may change.
    j : int
        The feature.
    axis : Axis
        Its cells.
    people : ndarray of int
        Their positions.

    Returns
    -------
    Cells
        Staying comes first; then one column per cell, without the value for the cell where the person is; for numbers
        then two more, the values just below and just above the person's in their own cell, for rules that ask whether
        the number moved.
    """
    feature = problem.actions.features[j]
    start = problem.start[people, j]
    low, high = problem.reach[0][people, j], problem.reach[1][people, j]
    if feature.is_number:
        here = np.searchsorted(axis.cuts, start, side="right")
        values = _numbers(problem, j, axis, start, low, high, here)
    else:
        here = start.astype(np.intp)
        codes = np.arange(axis.n_cells)
        fits = feature.reachable & (codes >= low[:, None]) & (codes <= high[:, None]) & (codes != start[:, None])
        values = np.where(fits, codes, np.nan)
    values = np.concatenate([start[:, None], values], axis=1)
    possible = ~np.isnan(values)
    possible[:, 0] = True
    costs = feature.move_cost(problem.norm, start[:, None], np.where(possible, values, start[:, None]))
    return Cells(values, np.where(possible, costs, np.inf), here)


def _numbers(problem: Problem, j: int, axis: Axis, start: Array, low: Array, high: Array, here: Ints) -> Array:
    """The value of each cell that is nearest to the start, NaN where there is none.

    It is the cheapest under every norm: no cost falls on the way farther from the start.
    """
    feature = problem.actions.features[j]
    cells, n = np.arange(axis.n_cells), len(start)
    if feature.step is not None:
        low, high = low - _slack(low), high + _slack(high)
    first, last = np.append(-np.inf, axis.cuts), np.append(np.nextafter(axis.cuts, -np.inf), np.inf)
    # Two more for those who stay in their cell but not at their value.
    below, above = np.nextafter(start, -np.inf), np.nextafter(start, np.inf)
    firsts = np.column_stack([np.tile(first, (n, 1)), first[here], above])
    lasts = np.column_stack([np.tile(last, (n, 1)), below, last[here]])
    upwards = np.column_stack([cells > here[:, None], np.tile([False, True], (n, 1))])
    allowed = np.column_stack([cells != here[:, None], np.full((n, 2), asks_for_moves(problem, feature.name))])
    if feature.change in ("increase", "decrease"):
        allowed &= upwards == (feature.change == "increase")
    values = np.where(
        upwards,
        _snap(np.maximum(firsts, low[:, None]), feature.step, upwards=True),
        _snap(np.minimum(lasts, high[:, None]), feature.step, upwards=False),
    )
    with np.errstate(invalid="ignore"):
        allowed &= (values >= firsts) & (values <= lasts) & (values >= low[:, None]) & (values <= high[:, None])
    return np.where(allowed & ((low <= high) & ~np.isnan(start))[:, None], values, np.nan)


def _slack(limit: Array) -> Array:
    return np.where(np.isfinite(limit), _SLACK * np.maximum(1.0, np.abs(limit)), 0.0)


def asks_for_moves(problem: Problem, name: str) -> bool:
    """Whether a rule asks if a feature moved, not where it is."""
    conditions = [condition for rule in problem.actions.rules for condition in (rule.when, rule.then)]
    return any(condition.feature == name and condition.value is None for condition in conditions)


def _snap(values: Array, step: float | None, *, upwards: bool) -> Array:
    """The first value that one can move to, from these values on, in one direction."""
    if step is None:
        return values
    sign = 1.0 if upwards else -1.0
    places = np.ceil(sign * values / step)
    # The quotient is rounded: correct by one where the multiple falls on the wrong side, or the one before would do.
    places = np.where(places * step < sign * values, places + 1, places)
    places = np.where((places - 1) * step >= sign * values, places - 1, places)
    return np.asarray(sign * places * step)
