"""A linear model as a sum of what each feature contributes to the score, in the user's own units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from equirecourse.actions import ActionSet
from equirecourse.actions._table import decode
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._view import View

__all__ = ["MARGINS", "ROUNDING", "LinearForm", "coefficients", "is_linear", "nudged", "read_linear_form"]

Array = NDArray[np.float64]

# How far the model's own sum of a score may be from ours, relative to the terms that it adds up.
ROUNDING = 1e-12

# How far beyond the boundary to aim, in units of that: first a hair, then more for those whom rounding still leaves on
# the wrong side.
MARGINS = (1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)


@dataclass(frozen=True)
class LinearForm:
    r"""Score of a changed person: :math:`f(x') = f(x) + \sum_j s_j(x'_j) - s_j(x_j)`.

    Attributes
    ----------
    scores : ndarray of shape (n_people,)
        f(x), more is better.
    slopes : ndarray of shape (n_features,)
        Score per unit of a number; 0 for labels.
    tables : list
        For labels, the contribution of each code; None for numbers.
    at_start : ndarray of shape (n_people, n_features)
        The contribution of the label a person has now; 0 for numbers.
    """

    scores: Array
    slopes: Array
    tables: list[Array | None]
    at_start: Array

    def take(self, people: Any) -> LinearForm:
        """The form for some of the people."""
        return LinearForm(self.scores[people], self.slopes, self.tables, self.at_start[people])

    def rounding(self, start: Array, people: Any) -> Array:
        """How far the model's own sum may be from the score of some people."""
        terms = np.abs(np.nan_to_num(start[people]) * self.slopes).sum(axis=1)
        return np.asarray(ROUNDING * (np.abs(self.scores[people]) + terms + 1e-288))

    def is_close(self, start: Array, people: Any, own: Array) -> NDArray[np.bool_]:
        """Whose score after a change is so close to the boundary that the model's rounding decides."""
        with np.errstate(invalid="ignore"):
            scores = self.scores[people] + np.nan_to_num((own - start[people]) * self.slopes).sum(axis=1)
        for j, table in enumerate(self.tables):
            moved = np.flatnonzero(own[:, j] != start[people, j]) if table is not None else np.zeros(0, dtype=int)
            if table is not None and len(moved):
                scores[moved] += table[own[moved, j].astype(int)] - self.at_start[people, j][moved]
        return np.asarray(np.abs(scores) <= 0.5 * self.rounding(start, people))

    def folded_slopes(self, actions: ActionSet, missing: Any = None) -> Array:
        """Score per unit of each number, with what links carry along: nothing where the carried number is missing.

        Parameters
        ----------
        actions : ActionSet
            What may change.
        missing : ndarray of bool, shape (n_features,), optional
            Which numbers nobody knows; none by default.

        Returns
        -------
        ndarray of shape (n_features,)
            The slopes.
        """
        slopes = self.slopes.copy()
        for link in actions.links:
            source, target = actions.index(link.source), actions.index(link.target)
            if missing is None or not missing[target]:
                slopes[source] += link.rate * self.slopes[target]
        return slopes


def nudged(problem: Problem, slopes: Array, own: Array, by: Array) -> Array:
    """Changes that gain a hair more of the score, along one continuous number each that has room for it.

    Parameters
    ----------
    problem : Problem
        People and what they may change.
    slopes : ndarray of shape (n_features,)
        Score per unit of each number.
    own : ndarray of shape (n_people, n_features)
        Where they move each feature.
    by : ndarray of shape (n_people,)
        The score that is missing.

    Returns
    -------
    ndarray of shape (n_people, n_features)
        Where they move them instead; as before where no number that moved, and none at rest, has room.
    """
    numbers = [j for j, feature in enumerate(problem.actions) if feature.is_number and feature.step is None]
    numbers = [j for j in numbers if slopes[j] != 0.0]
    own = own.copy()
    if not numbers:
        return own
    low, high = (side[:, numbers] for side in problem.reach)
    ends = own[:, numbers] + by[:, None] / slopes[numbers]
    moved = own[:, numbers] != problem.start[:, numbers]
    with np.errstate(invalid="ignore"):
        fits = (ends >= low) & (ends <= high)
    # What moves already rather than what would have to begin to; of those, the steepest.
    worth = np.where(fits, np.abs(slopes[numbers]) * np.where(moved, 1e12, 1.0), -1.0)
    best = worth.argmax(axis=1)
    rows = np.flatnonzero(worth[np.arange(len(own)), best] > 0.0)
    own[rows, np.asarray(numbers)[best[rows]]] = ends[rows, best[rows]]
    return own


def is_linear(final: Any) -> bool:
    """Whether a classifier says yes where a weighted sum of its inputs is above zero."""
    coef = getattr(final, "coef_", None)
    return coef is not None and hasattr(final, "decision_function") and coefficients(final).ndim == 1


def coefficients(final: Any) -> Array:
    """Weights of a linear classifier, one per input, towards its second class."""
    coef = final.coef_
    values = np.asarray(coef.toarray() if sparse.issparse(coef) else coef, dtype=np.float64)
    return values[0] if values.ndim == 2 and len(values) == 1 else values


@dataclass(frozen=True)
class _Known:
    """The form of one person, about whom more is asked as a rule, and what it depends on besides the model."""

    actions: ActionSet
    person: pd.DataFrame
    form: LinearForm

    def serves(self, actions: ActionSet, table: pd.DataFrame) -> bool:
        """Whether a table has nobody but this person, however often."""
        return actions is self.actions and table.equals(self.person.iloc[np.zeros(len(table), dtype=int)])


def read_linear_form(view: View, actions: ActionSet, table: pd.DataFrame, start: Array) -> LinearForm:
    """Find out what each feature contributes, by moving one after the other through the steps before the model.

    Raises
    ------
    Opaque
        If a number reaches the model by something else than a shift and a scale.
    """
    known = view.memory.get("linear form")
    if known is not None and known.serves(actions, table):
        form: LinearForm = known.form.take(np.zeros(len(table), dtype=int))
        return form
    form = _read(view, actions, table, start)
    if len(table) == 1:
        view.memory["linear form"] = _Known(actions, table, form)
    return form


def _read(view: View, actions: ActionSet, table: pd.DataFrame, start: Array) -> LinearForm:
    weights = view.sign * coefficients(view.final)
    sources = view.sources(table, actions)
    if len(sources) != len(weights):
        raise Opaque(f"the steps before {type(view.final).__name__} make {len(weights)} columns of unknown origin")
    inputs_of: list[list[int]] = [[] for _ in actions]
    for place, (features, shape) in enumerate(sources):
        for j in features:
            number = actions.features[j].is_number
            if (number and shape not in ("same", "affine")) or (len(features) > 1 and shape not in ("same", "affine")):
                what = " and ".join(sorted(repr(actions.features[k].name) for k in features))
                raise Opaque(f"the model sees {what} through more than a shift and a scale")
            inputs_of[j].append(place)
    probes = {j: _probe_values(actions, start, j) for j, columns in enumerate(inputs_of) if columns}
    scores = view.scores(table)
    assert scores is not None
    seen = view.inputs(table)
    slopes = np.zeros(len(actions))
    tables: list[Array | None] = [None if feature.is_number else np.zeros(len(feature.labels)) for feature in actions]
    at_start = np.zeros_like(start)
    answers = _probe(view, actions, table, start, probes)
    for j, columns in enumerate(inputs_of):
        if not columns:
            continue
        contributions = answers[j][:, columns] @ weights[columns]
        if not actions.features[j].is_number:
            at_start[:, j] = seen[:, columns] @ weights[columns]
            if len(contributions):
                tables[j] = contributions
        elif all(sources[place][1] == "same" for place in columns):
            slopes[j] = weights[columns].sum()
        else:
            slopes[j] = (contributions[1] - contributions[0]) / (probes[j][1] - probes[j][0])
    return LinearForm(scores, slopes, tables, at_start)


def _probe_values(actions: ActionSet, start: Array, j: int) -> Array:
    """Values of a feature that tell what it contributes: two of a number, all reachable ones of labels."""
    feature = actions.features[j]
    if feature.is_number:
        return np.array(_two_values(start[:, j]))
    return np.arange(len(feature.labels) if feature.mutable else 0, dtype=np.float64)


def _two_values(column: Array) -> tuple[float, float]:
    """Two values far apart, so that the difference of what the model sees of them is not rounded away."""
    known = column[~np.isnan(column)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    # As far apart as the numbers are large: people may differ by a rounding error only.
    return low, low + (max(high - low, abs(low), abs(high)) or 1.0)


def _probe(
    view: View, actions: ActionSet, table: pd.DataFrame, start: Array, probes: dict[int, Array]
) -> dict[int, Array]:
    """What the model sees of the first person with one feature set to each of its values, all in one go."""
    moving = np.repeat(np.array(list(probes), dtype=int), [len(values) for values in probes.values()])
    people = np.zeros(len(moving), dtype=int)
    before = start[people]
    after = before.copy()
    after[np.arange(len(moving)), moving] = np.concatenate([*probes.values(), np.zeros(0)])
    # Without links, which would move other features along: a probe moves one alone.
    seen = (
        view.inputs(decode(table.iloc[people], actions.features, before, after))
        if len(moving)
        else view.inputs(table)[:0]
    )
    return {j: seen[moving == j] for j in probes}
