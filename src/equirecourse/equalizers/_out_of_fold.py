"""What a way of fitting does to people it has not seen: distances by group, fold by fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from equirecourse._validation import Groups
from equirecourse.actions import ActionSet
from equirecourse.exceptions import NoRecourseWarning, SmallGroupWarning
from equirecourse.metrics import RecourseFrame
from equirecourse.recourse import SurrogateRecourse, find_recourse

__all__ = ["Fold", "Measured", "Meter", "measure"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass
class Fold:
    """One split of the people, and what is remembered between fits of it."""

    train: Index
    test: Index
    surrogates: SurrogateRecourse | None = None


@dataclass(frozen=True)
class Measured:
    """Means over the folds, of people who were held out.

    Attributes
    ----------
    means : ndarray of shape (n_groups,)
        Mean distance of the rejected of each group; NaN if a fold has none.
    floor : float
        The gap that shuffled groups would show.
    accuracy, acceptance : float
        Over all people held out.
    rejected : ndarray of int, shape (n_groups,)
        Rejected people, summed over the folds.
    """

    means: Array
    floor: float
    accuracy: float
    acceptance: float
    rejected: Index

    @property
    def gap(self) -> float:
        """Largest difference between the mean distances of two groups, averaged over folds before."""
        return float(np.ptp(self.means))

    @property
    def relative_gap(self) -> float:
        """The gap over the mean of the groups' mean distances."""
        return float(np.ptp(self.means) / np.mean(self.means))


@dataclass(frozen=True)
class Meter:
    """How distances are measured.

    Attributes
    ----------
    X, y, groups, favorable_label
        People, labels, groups, the label that means yes.
    distance : {"auto", "surrogate"}
        The engine that fits the model, or local surrogates.
    actions : ActionSet
        What counts, and at what price.
    norm : str
        How costs add up.
    max_people : int or None
        Most rejected people of a group that are measured in a fold; None for all.
    time_limit, n_jobs, seed
        As in ``find_recourse``.
    """

    X: Any
    y: NDArray[Any]
    groups: Groups
    favorable_label: Any
    distance: str
    actions: ActionSet
    norm: str
    max_people: int | None
    time_limit: float | None
    n_jobs: int | None
    seed: int

    def costs(self, model: Any, rows: Index, fold: Fold | None = None) -> Array:
        """Distances of some people, who are all rejected."""
        people = _safe_indexing(self.X, rows)
        if self.distance == "auto":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NoRecourseWarning)  # who has no recourse is counted here
                found = find_recourse(
                    model, people, actions=self.actions, norm=self.norm, favorable_label=self.favorable_label,
                    background=self.background(fold), time_limit=self.time_limit, n_jobs=self.n_jobs,
                    random_state=self.seed,
                )  # fmt: skip
            return found.costs
        surrogates = fold.surrogates if fold is not None else None
        if surrogates is None:
            surrogates = SurrogateRecourse(n_jobs=self.n_jobs, random_state=self.seed)
            surrogates.fit(model, self.background(fold), favorable_label=self.favorable_label)
            if fold is not None:  # the same samples before and after
                fold.surrogates = surrogates
        prices = [self.actions[name].cost for name in surrogates.columns_]
        return surrogates.find(model, people, prices=prices, norm=self.norm, favorable_label=self.favorable_label).costs

    def background(self, fold: Fold | None) -> Any:
        """A thousand people to start from, or to learn the spread of the columns from."""
        rows = np.arange(len(self.y)) if fold is None else fold.train
        return _safe_indexing(self.X, np.random.default_rng(self.seed).permutation(rows)[:1000])


def measure(meter: Meter, folds: list[Fold], fit: Callable[[int], Any]) -> Measured:
    """Fit each fold, by its place, and measure the people it left out.

    Gaps are averaged over folds, never taken of pooled people: each fold has a model and a scale of its own.
    """
    means, floors = [], []
    right = accepted = 0
    rejected = np.zeros(len(meter.groups), dtype=np.intp)
    for place, fold in enumerate(folds):
        model = fit(place)
        said = np.asarray(model.predict(_safe_indexing(meter.X, fold.test)))
        no = said != meter.favorable_label
        right += int((said == meter.y[fold.test]).sum())
        accepted += int((~no).sum())
        codes = meter.groups.codes[fold.test]
        rejected += np.bincount(codes[no], minlength=len(meter.groups))
        # The same people whatever the model, as far as it rejects them: candidates are compared on common ground.
        chosen = [fold.test[no & (codes == k)][: meter.max_people] for k in range(len(meter.groups))]
        rows = np.concatenate(chosen)
        costs = meter.costs(model, rows, fold) if len(rows) else np.zeros(0)
        of_groups, floor = _by_group(costs, meter.groups.codes[rows], len(meter.groups), meter.seed)
        means.append(of_groups)
        floors.append(floor)
    n = sum(len(fold.test) for fold in folds)
    return Measured(np.mean(means, axis=0), float(np.mean(floors)), right / n, accepted / n, rejected)


def _by_group(costs: Array, codes: Index, n_groups: int, seed: int) -> tuple[Array, float]:
    """Mean of each group and noise floor, NaN if a group has nobody to average."""
    some = np.bincount(codes[np.isfinite(costs)], minlength=n_groups)
    if (some == 0).any():
        return np.full(n_groups, np.nan), float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)
        warnings.simplefilter("ignore", SmallGroupWarning)
        frame = RecourseFrame(
            costs=costs, rejected=np.ones(len(costs), dtype=bool), sensitive_features=codes, n_boot=1,
            n_permutations=200, random_state=seed,
        )  # fmt: skip
        return frame.by_group["mean"].to_numpy(dtype=np.float64), frame.noise_floor
