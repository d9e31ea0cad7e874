"""What a yes costs people while a model is fitted: prices from the exact engines, under the action set of the audit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from equirecourse.actions import ActionSet
from equirecourse.equalizers._objective import GRID, Prices, soft_missing
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.recourse import find_recourse

__all__ = ["Experience", "Paths"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

PLACES = 4  # on each path
REACH = 1.5  # a yes may come to lie farther away than it is now


class Paths(NamedTuple):
    """Where people pass on their way to a yes, and a little beyond; a row per place.

    ``owners`` are rows of people; ``costs`` what a yes costs them, of the owners that ``people`` lists.
    """

    people: Ints
    costs: Array
    owners: Ints
    table: Any
    reach: float  # how far the path goes, in units of the way to a yes


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

    def prices(
        self, model: Any, scores: Array, weights: Array, codes: Ints, softness: float
    ) -> tuple[Prices, Paths]:
        """Costs of some of the rejected, as prices of the score that they lack; and where these people would be.

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
        prices : Prices
            One per person.
        arrivals : Paths
            Of those who have an action.
        """
        rejected = np.flatnonzero(scores <= 0.0)
        asked = rejected
        if len(rejected) > self.max_people:
            # The same people as last time, as far as they are still rejected: less noise between two models.
            turn = np.random.default_rng(self.seed).permutation(len(scores))
            asked = np.sort(rejected[np.argsort(turn[rejected])[: self.max_people]])
        values, counted = np.ones(len(scores)), np.ones(len(scores))
        counted[rejected] = 0.0
        if len(asked) == 0:
            return Prices(values, counted), self._paths(asked, np.empty(0), _safe_indexing(self.X, asked))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            found = find_recourse(
                model, _safe_indexing(self.X, asked), actions=self.actions, norm=self.norm,
                favorable_label=self.favorable_label, n_jobs=self.n_jobs,
            )  # fmt: skip
        costs = found.costs.copy()
        known = np.isfinite(costs) & (found.status == "found")
        arrivals = self._paths(
            asked[known], costs[known], _safe_indexing(found.counterfactuals, np.flatnonzero(known))
        )
        if not known.any():
            return Prices(values, counted), arrivals
        most = GRID[-1] * float(np.median(costs[known]))
        costs = np.where(known, np.minimum(costs, most), most)
        prices = costs / soft_missing(scores, weights, softness)[asked]
        values[:] = np.median(prices)
        for group in np.unique(codes[asked]):
            values[codes == group] = np.median(prices[codes[asked] == group])
        values[asked], counted[asked] = prices, 1.0
        return Prices(values, counted), arrivals

    def _paths(self, people: Ints, costs: Array, there: Any) -> Paths:
        """Places on the ways of some people, in turn nearer and farther, and different ones in each turn."""
        here = _safe_indexing(self.X, people)
        owners = np.repeat(people, PLACES)
        if len(people) == 0:
            return Paths(people, costs, owners, here, REACH)
        rng = np.random.default_rng(self.seed)
        table = self.actions.table(here)
        start, own = self.actions.encode(table), self.actions.own(table, self.actions.table(there))
        which = np.repeat(np.arange(len(people)), PLACES)
        along = REACH * (np.tile(np.arange(PLACES), len(people)) + rng.uniform(size=len(which))) / PLACES
        before, after, moved = start[which], own[which], own[which].copy()
        for j, feature in enumerate(self.actions.features):
            if feature.is_number:
                with np.errstate(invalid="ignore"):
                    value = before[:, j] + along * (after[:, j] - before[:, j])
                    low, high = np.fmin(feature.low, after[:, j]), np.fmax(feature.high, after[:, j])
                    inside = np.clip(value, np.fmin(low, before[:, j]), np.fmax(high, before[:, j]))
                moved[:, j] = np.where(before[:, j] == after[:, j], before[:, j], inside)
            elif feature.has_order:
                moved[:, j] = np.rint(before[:, j] + np.minimum(along, 1.0) * (after[:, j] - before[:, j]))
            else:
                moved[:, j] = np.where(along > rng.uniform(size=len(which)), after[:, j], before[:, j])
        passed = self.actions.decode(table.iloc[which].reset_index(drop=True), before, moved)
        if hasattr(self.X, "dtypes"):
            kinds = {name: kind for name, kind in self.X.dtypes.items()}
            for name, kind in kinds.items():
                if getattr(kind, "kind", "") in "iu" and passed[name].dtype != kind:
                    passed[name] = np.rint(passed[name])
            passed = passed.astype(kinds)
        else:
            passed = passed.to_numpy()
        return Paths(people, costs, owners, passed, REACH)
