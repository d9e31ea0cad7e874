"""How a RecourseReweighting looks for weights: everything is measured on people who were held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from equirecourse.equalizers._group_weights import GroupLearner, Trial, search
from equirecourse.equalizers._held_out_folds import split_rows
from equirecourse.equalizers._out_of_fold import Fold, Measured, Meter, measure
from equirecourse.equalizers._point_weights import point_weights
from equirecourse.equalizers._weighted import fit_weighted, reseeded
from equirecourse.exceptions import PlainModelWarning

__all__ = ["Reweighting"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_LOOKS, _MORE = 3, 4  # trials that are looked at again, and how many times the people
_SLACK = 0.01  # of accuracy on training people, which is not quite what the budget is about


class Parameters(Protocol):
    """Those parameters of a RecourseReweighting that matter here."""

    estimator: Any
    accuracy_budget: float
    cv: Any
    max_trials: int
    placebo: bool
    random_state: int


Candidate = tuple[tuple[Measured, Measured], Array, int]


def _improvements(candidates: list[Candidate], lowest: float) -> list[Candidate]:
    """Those with less of a gap, absolutely and relative to the mean distance, and accuracy enough; best first."""
    better = [
        candidate
        for candidate in candidates
        if candidate[0][1].accuracy >= lowest
        and candidate[0][1].gap < candidate[0][0].gap
        and candidate[0][1].relative_gap < candidate[0][0].relative_gap
    ]
    return sorted(better, key=lambda candidate: candidate[0][1].relative_gap)


class Reweighting:
    """One fit of a ``RecourseReweighting``: folds, what is measured in them, and the choice."""

    def __init__(self, owner: Parameters, learner: GroupLearner, meter: Meter, plain: Any) -> None:
        self.owner, self.learner, self.meter, self.plain = owner, learner, meter, plain
        self.everybody = np.arange(len(learner.y))
        self.folds: list[Fold] = []
        self.models: list[Any] = []
        if len(learner.groups) > 1:
            self._split()

    def _split(self) -> None:
        """Folds with both labels and all groups in each, and the plain model of each."""
        learner, owner = self.learner, self.owner
        strata = 2 * learner.groups.codes + (learner.y == learner.labels[1])
        folds = owner.cv
        if isinstance(folds, int):
            folds = StratifiedKFold(folds, shuffle=True, random_state=owner.random_state)
        with warnings.catch_warnings():
            # A group with fewer members than folds: what it lacks is said below, in our words.
            warnings.filterwarnings("ignore", message="The least populated class")
            splits = split_rows(folds, self.everybody, strata, stratified=False)
        rng = np.random.default_rng(owner.random_state)
        self.folds = [Fold(train, rng.permutation(test)) for train, test in splits]
        self.models = [learner.plain(fold.train) for fold in self.folds]

    def _measure(self, fit: Callable[[int], Any], meter: Meter | None = None) -> Measured:
        return measure(meter or self.meter, self.folds, fit)

    def _measure_plain(self) -> Measured:
        measured = self._measure(lambda place: self.models[place])
        if np.isnan(measured.means).any():
            labels, counts = self.learner.groups.labels, measured.rejected
            few = int(np.argmin(counts))
            raise ValueError(
                f"group {labels[few]!r} has {counts[few]} rejected people in {len(self.folds)} folds, and each fold "
                "needs one; use fewer folds (cv), or leave the group out."
            )
        return measured

    def _placebo(self) -> list[tuple[str, Measured, Array]]:
        if not self.owner.placebo:
            return []
        again = reseeded(self.owner.estimator, self.owner.random_state)
        learner = replace(self.learner, estimator=again)
        measured = self._measure(lambda place: learner.plain(self.folds[place].train))
        return [("placebo", measured, np.zeros(len(learner.groups)))]

    # --- the paper's weights -----------------------------------------------------------------------------------------

    def point(self) -> tuple[pd.DataFrame, Any, Array, str]:
        """Algorithm 2: one weight per rejected person, one more fit."""
        rows = []
        if self.folds:
            none = np.zeros(len(self.learner.groups))
            rows = [("plain", self._measure_plain(), none), *self._placebo()]
            folds = [
                self._pointed(fold.train, model, fold)[0] for fold, model in zip(self.folds, self.models, strict=True)
            ]
            rows.append(("point", self._measure(lambda place: folds[place]), none))
        model, weights = self._pointed(self.everybody, self.plain, None)
        history = self._history(rows, len(rows) - 1).drop(columns=self._count_names(), errors="ignore")
        return history, model, weights, "the weights of the paper's Algorithm 2"

    def _pointed(self, rows: Index, plain: Any, fold: Fold | None) -> tuple[Any, Array]:
        learner = self.learner
        rejected = np.asarray(plain.predict(_safe_indexing(learner.X, rows))) == learner.labels[0]
        distances = np.zeros(len(rows))
        if rejected.any():
            distances[rejected] = self.meter.costs(plain, rows[rejected], fold)
        weights = point_weights(distances, rejected)
        model = fit_weighted(learner.estimator, learner.X, learner.y[rows], learner.weights[rows] * weights, rows)
        return model, weights

    # --- weights of groups -------------------------------------------------------------------------------------------

    def group(self) -> tuple[pd.DataFrame, Any, pd.Series, str]:
        """Second counts by a search on people held out."""
        owner, learner, index = self.owner, self.learner, self.learner.groups.index
        plain = self._measure_plain()
        zero = np.zeros(len(index))
        rows: list[tuple[str, Measured, Array]] = [("plain", plain, zero), *self._placebo()]
        lowest = plain.accuracy - owner.accuracy_budget
        trials: list[Trial] = []
        if plain.gap > plain.floor:
            trials = list(search(self._try, plain, lowest, owner.max_trials))
        rows += [("trial", trial.measured, trial.tau) for trial in trials]
        for seen, tau, place in self._best(plain, trials, lowest, rows):
            model = learner.fit(self.everybody, self.plain, tau)
            if not self._holds(model):
                continue  # a learner may do to all people what it did not do to the folds
            old, found = seen
            ending = (
                f"on people held out the gap fell from {old.gap:.3g} to {found.gap:.3g} (relative to the mean "
                f"distance, from {old.relative_gap:.3g} to {found.relative_gap:.3g}), and accuracy from "
                f"{old.accuracy:.3f} to {found.accuracy:.3f}"
            )
            return self._history(rows, place), model, pd.Series(tau, index), ending
        why = f"the gap of {plain.gap:.3g} is not above its noise floor of {plain.floor:.3g}"
        if trials:
            why = f"none of {len(trials)} weights made it smaller within {owner.accuracy_budget:g} of accuracy"
        warnings.warn(f"The plain model was kept: on people held out, {why}.", PlainModelWarning, stacklevel=4)
        return self._history(rows, 0), self.plain, pd.Series(zero, index), f"the plain model was kept: {why}"

    def _best(
        self, plain: Measured, trials: list[Trial], lowest: float, rows: list[tuple[str, Measured, Array]]
    ) -> list[Candidate]:
        """Trials that make gap and ratio smaller, the best first: (plain and trial as measured, counts, row).

        The best of many noisy numbers is partly luck. Where only some people were measured, the first few are looked at
        again, with more people, and the luck is gone; these rows are added.
        """
        first = len(rows) - len(trials)
        found = [((plain, trial.measured), trial.tau, first + place) for place, trial in enumerate(trials)]
        found = _improvements(found, lowest)
        if self.meter.max_people is None or not found:
            return found
        meter = self._closer
        again = self._measure(lambda place: self.models[place], meter)
        second: list[Candidate] = []
        for _, tau, _ in found[:_LOOKS]:
            seen = self._try(tau, meter)
            rows.append(("second look", seen, tau))
            second.append(((again, seen), tau, len(rows) - 1))
        return _improvements(second, lowest)

    def _holds(self, model: Any) -> bool:
        """Whether a model does to the people it was fitted to what its like did to people held out."""
        plain, after = self._on_everybody(self.plain), self._on_everybody(model)
        cheap = after.accuracy >= plain.accuracy - self.owner.accuracy_budget - _SLACK
        return cheap and after.gap < plain.gap and after.relative_gap < plain.relative_gap

    def _on_everybody(self, model: Any) -> Measured:
        order = np.random.default_rng(self.owner.random_state).permutation(self.everybody)
        return measure(self._closer, [Fold(self.everybody, order)], lambda _: model)

    @property
    def _closer(self) -> Meter:
        """The same measure with more people."""
        most = self.meter.max_people
        return self.meter if most is None else replace(self.meter, max_people=_MORE * most)

    def _try(self, tau: Array, meter: Meter | None = None) -> Measured:
        return self._measure(lambda place: self.learner.fit(self.folds[place].train, self.models[place], tau), meter)

    def _count_names(self) -> list[str]:
        return [f"second count ({label})" for label in self.learner.groups.labels]

    def _history(self, rows: list[tuple[str, Measured, Array]], chosen: int) -> pd.DataFrame:
        labels = self.learner.groups.labels
        table = []
        for place, (kind, measured, tau) in enumerate(rows):
            row: dict[str, Any] = {
                "kind": kind,
                "gap": measured.gap,
                "noise_floor": measured.floor,
                "relative_gap": measured.relative_gap,
                "accuracy": measured.accuracy,
                "acceptance": measured.acceptance,
            }
            for k, label in enumerate(labels):
                row[f"mean distance ({label})"] = measured.means[k]
                row[f"rejected ({label})"] = int(measured.rejected[k])
            row.update(zip(self._count_names(), tau, strict=True))
            row["chosen"] = place == chosen
            table.append(row)
        return pd.DataFrame(table)
