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

__all__ = ["Arrivals", "Experience"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


class Arrivals(NamedTuple):
    """Rows of people for whom an action was found, and a table of where it takes them."""

    people: Ints
    table: Any


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
    ) -> tuple[Prices, Arrivals]:
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
        arrivals : Arrivals
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
            return Prices(values, counted), Arrivals(asked, _safe_indexing(self.X, asked))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            found = find_recourse(
                model, _safe_indexing(self.X, asked), actions=self.actions, norm=self.norm,
                favorable_label=self.favorable_label, n_jobs=self.n_jobs,
            )  # fmt: skip
        costs = found.costs.copy()
        known = np.isfinite(costs) & (found.status == "found")
        there = _safe_indexing(found.counterfactuals, np.flatnonzero(known))
        if hasattr(there, "astype") and hasattr(self.X, "dtypes"):
            there = there.astype(self.X.dtypes.to_dict())  # rows without an action made room for missing values
        arrivals = Arrivals(asked[known], there)
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
