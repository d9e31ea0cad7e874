"""The score of a model after a change, if it has one."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.recourse._problem import Problem
from equirecourse.recourse._search._descent import Surface
from equirecourse.recourse._search._feasible import FeasibleSet
from equirecourse.recourse._view import View

__all__ = ["MAX_ROWS", "Scores", "measure_scores"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

MAX_ROWS = 40_000  # people shown to the model in one call

_SAMPLE = 2000  # people on whom scores and decisions are compared
_FEW = 50  # people on whom gradients are tested


class Scores:
    """The model's score after a change, shifted so that people are accepted from 0 on.

    Parameters
    ----------
    problem : Problem
        The people and the model.
    feasible : FeasibleSet
        The values that they may move to.
    level : float
        The score from which on the model accepts, or an estimate of it.
    guessed : bool
        Whether the level is an estimate, which ``learn`` improves.

    Attributes
    ----------
    flat : bool
        Whether small moves do not change most people's score (trees, neighbours), so that there is no gradient.
    """

    flat = False
    rounds = 1  # factor of the number of descent iterations; larger where gradients are cheap

    def __init__(self, problem: Problem, feasible: FeasibleSet, level: float = 0.0, *, guessed: bool = False) -> None:
        self.problem, self.feasible, self.level, self.guessed = problem, feasible, level, guessed

    def values(self, people: Index, own: Array) -> Array:
        """Scores of some people after a change; people are given by position, with repetitions."""
        values = np.empty(len(own))
        for begin in range(0, len(own), MAX_ROWS):
            rows = slice(begin, begin + MAX_ROWS)
            values[rows] = _straightened(self.problem.view, self.problem.after(people[rows], own[rows]))
        return values - self.level

    def learn(self, people: Index, own: Array) -> None:
        """Improve the estimated level: the lowest score of accepted changes close to the boundary."""
        if self.guessed and len(people):
            self.level += float(self.values(people, own).min())

    def surface(self, people: Index, own: Array, free: Mask) -> Surface:
        """The score as a function of the free features; the others stay as in ``own``."""
        return _Measured(self, people, own, free)


class _Measured:
    """Gradients by finite differences of the model's scores."""

    def __init__(self, scores: Scores, people: Index, own: Array, free: Mask) -> None:
        self._scores, self._people = scores, people
        self._base = np.where(free, scores.feasible.start[people], own)
        self._features = np.flatnonzero(free)
        self._reach = 1e-4 * scores.feasible.spread

    def values(self, rows: Index, moves: Array) -> Array:
        """Scores after moves."""
        return self._scores.values(self._people[rows], self._base[rows] + moves)

    def gradients(self, rows: Index, moves: Array) -> Array:
        """Central differences, in batches of one call of the model."""
        out = np.zeros_like(moves)
        at_once = max(1, MAX_ROWS // max(2 * len(rows), 1))
        for begin in range(0, len(self._features), at_once):
            features = self._features[begin : begin + at_once]
            shifted = np.broadcast_to(moves, (2, len(features), *moves.shape)).copy()
            for k, j in enumerate(features):
                shifted[0, k, :, j] += self._reach[j]
                shifted[1, k, :, j] -= self._reach[j]
            everybody = np.tile(rows, 2 * len(features))
            values = self.values(everybody, shifted.reshape(-1, moves.shape[1])).reshape(2, len(features), len(rows))
            out[:, features] = ((values[0] - values[1]) / (2.0 * self._reach[features, None])).T
        return out


def measure_scores(problem: Problem, feasible: FeasibleSet) -> Scores | None:
    """The model's scores; None if it has none, or if they do not separate accepted from rejected people.

    The level is 0 for most models; a tuned threshold lies between the scores of the rejected and the accepted.
    """
    if not (hasattr(problem.view.model, "decision_function") or hasattr(problem.view.model, "predict_proba")):
        return None
    sample = problem.table.iloc[:_SAMPLE]
    if len(problem.background):
        sample = pd.concat([sample, problem.background[list(problem.table.columns)].iloc[:_SAMPLE]])
    yes, values = problem.view.accepts(sample), _straightened(problem.view, sample)
    highest_no, lowest_yes = values[~yes].max(initial=-np.inf), values[yes].min(initial=np.inf)
    if highest_no > lowest_yes:
        return None
    usual = highest_no <= 0.0 <= lowest_yes
    if not usual and not np.isfinite(lowest_yes):
        return None
    scores = Scores(problem, feasible, 0.0 if usual else lowest_yes, guessed=not usual)
    people = np.arange(min(len(problem.start), _FEW))
    free = feasible.continuous & feasible.movable.any(axis=0)
    slopes = scores.surface(people, feasible.start[people], free).gradients(people, np.zeros((len(people), len(free))))
    scores.flat = bool(free.any() and np.mean(~slopes.any(axis=1)) > 0.5)
    return scores


def _straightened(view: View, table: pd.DataFrame) -> Array:
    """Scores; probabilities as log odds, which follow the features more evenly."""
    scores = view.scores(table)
    assert scores is not None
    if hasattr(view.model, "decision_function"):
        return scores
    scores = np.clip(scores, 1e-15, 1.0 - 1e-15)
    return np.asarray(np.log(scores) - np.log1p(-scores))
