"""What a yes costs people while a model is fitted: prices from the exact engines, under the action set of the audit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from equirecourse.actions import ActionSet
from equirecourse.equalizers._objective import GRID, Prices, soft_missing, unit_of
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.metrics._resampling import in_turn
from equirecourse.recourse import find_recourse

__all__ = ["Experience", "Experienced", "Paths"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

_PLACES = 4  # on the way of each person; with eight of them gaps were no smaller (four clouds, propublica, credit)
_REACH = 1.5  # in units of the way to a yes: a yes may come to lie farther away than it is now


class Experienced(NamedTuple):
    """What a yes costs people under a model.

    Attributes
    ----------
    prices : Prices
        One per person.
    people : ndarray of int
        Rows of those for whom an action was found.
    costs : ndarray
        Of these people.
    counterfactuals : table
        Where their actions take them.
    """

    prices: Prices
    people: Ints
    costs: Array
    counterfactuals: Any


class Paths(NamedTuple):
    """Places on the ways of people to their counterfactuals, and a little beyond; as many for each person.

    Attributes
    ----------
    people : ndarray of int
        Rows of the people.
    costs : ndarray
        What a yes costs each of them.
    owners : ndarray of int
        Whose way each place is on, by position in ``people``.
    table : table
        The places.
    weight : float
        Length of the way that a place stands for, in units of the way to the counterfactual.
    """

    people: Ints
    costs: Array
    owners: Ints
    table: Any
    weight: float


@dataclass(frozen=True)
class Experience:
    """What people can change and how costs are measured, for the prices of a fit.

    Attributes
    ----------
    X : table
        The training people, in the columns of the action set.
    actions : ActionSet
        What may change.
    norm : str
        How changes add up.
    favorable_label : label
        The label that means yes.
    max_people : int
        Most rejected people who are asked about at a time, drawn at random.
    seed : int
        Of the draw.
    n_jobs : int or None
        As in :func:`~equirecourse.find_recourse`.
    """

    X: Any
    actions: ActionSet
    norm: str
    favorable_label: Any
    max_people: int
    seed: int
    n_jobs: int | None = None

    def ask(self, model: Any, scores: Array, weights: Array, codes: Ints, softness: float) -> Experienced:
        """Costs of some of the rejected, as prices of the score that they lack.

        A person without recourse, or whose cost is far beyond the others', has the largest cost that is told apart.
        Other rejected people are not looked at; accepted ones have the median price of their group's.

        Parameters
        ----------
        model : fitted classifier
            The model as it is now.
        scores : ndarray of shape (n_people,)
            Its scores; above zero is a yes.
        weights : ndarray of shape (n_people,)
            Of people.
        codes : ndarray of shape (n_people,)
            Groups.
        softness : float
            Of the objective, as in :class:`CostObjective`.

        Returns
        -------
        Experienced
            Prices of all, and the actions of those who have one.
        """
        rejected = np.flatnonzero(scores <= 0.0)
        asked = rejected
        if len(rejected) > self.max_people:
            asked = np.sort(in_turn(rejected, len(scores), self.seed)[: self.max_people])
        values, counted = np.ones(len(scores)), np.ones(len(scores))
        counted[rejected] = 0.0
        if len(asked) == 0:
            return Experienced(Prices(values, counted), asked, np.empty(0), _safe_indexing(self.X, asked))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            found = find_recourse(
                model, _safe_indexing(self.X, asked), actions=self.actions, norm=self.norm,
                favorable_label=self.favorable_label, n_jobs=self.n_jobs,
            )  # fmt: skip
        costs = found.costs.copy()
        known = np.isfinite(costs) & (found.status == "found")
        there = _safe_indexing(found.counterfactuals, np.flatnonzero(known))
        if known.any():
            most = GRID[-1] * unit_of(costs[known], weights[asked[known]])
            costs = np.where(known, np.minimum(costs, most), most)
            prices = costs / soft_missing(scores, weights, softness)[asked]
            values[:] = np.median(prices)
            for group in np.unique(codes[asked]):
                values[codes == group] = np.median(prices[codes[asked] == group])
            values[asked], counted[asked] = prices, 1.0
        return Experienced(Prices(values, counted), asked[known], costs[known], there)

    def paths(self, experienced: Experienced) -> Paths:
        """Places that people pass if they do what they would have to do step by step, drawn at random.

        Numbers and ordered labels move in proportion, and number go on beyond the counterfactual as far as the action
        set lets them; a label changes at a random point of the way.

        Parameters
        ----------
        experienced : Experienced
            People and their actions.

        Returns
        -------
        Paths
            The places, in the columns and kinds of the training people.
        """
        people, rng = experienced.people, np.random.default_rng(self.seed)
        owners = np.repeat(np.arange(len(people)), _PLACES)
        # One place in each part of equal length.
        along = _REACH * (np.tile(np.arange(_PLACES), len(people)) + rng.uniform(size=len(owners))) / _PLACES
        here = self.actions.table(_safe_indexing(self.X, people))
        start, own = self.actions.encode(here), self.actions.own(here, experienced.counterfactuals)
        start, own = start[owners], own[owners]
        moves = (start != own) & np.isfinite(start)
        passed = np.where(moves, start, own)
        for j, feature in enumerate(self.actions.features):
            some = np.flatnonzero(moves[:, j])
            if feature.is_number:
                ahead = start[some, j] + along[some] * (own[some, j] - start[some, j])
                # A person may start outside the limits, and be on the way inside.
                low, high = (np.clip(start[some, j], None, feature.low), np.clip(start[some, j], feature.high, None))
                passed[some, j] = np.clip(ahead, low, high)
            elif feature.has_order:
                part = np.minimum(along[some], 1.0)
                passed[some, j] = np.rint(start[some, j] + part * (own[some, j] - start[some, j]))
            else:
                changed = along[some] > rng.uniform(size=len(some))
                passed[some, j] = np.where(changed, own[some, j], start[some, j])
        places = self.actions.decode(here.iloc[owners].reset_index(drop=True), start, passed)
        return Paths(people, experienced.costs, owners, self._in_kind(places), _REACH / _PLACES)

    def _in_kind(self, table: pd.DataFrame) -> Any:
        """A table with the columns of the training people, in their types."""
        if not isinstance(self.X, pd.DataFrame):
            return table.to_numpy()
        whole = [name for name, kind in self.X.dtypes.items() if kind.kind in "iu" and table[name].dtype != kind]
        return table.assign(**{str(name): table[name].round() for name in whole}).astype(self.X.dtypes.to_dict())
