"""One run of Table 2: a black box, the weights of Algorithm 2, and a placebo."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from equirecourse.actions import EUCLIDEAN_NORM
from equirecourse.equalizers import point_weights
from equirecourse.exceptions import NoRecourseWarning, SmallGroupWarning, UndefinedRecourseWarning
from equirecourse.recourse import SurrogateRecourse, find_recourse
from equirecourse.replication._cells import Cell, Scale
from equirecourse.replication._measure import describe, gap_of, prefixed
from equirecourse.replication._paper import BLACK_BOX_SAMPLE
from equirecourse.replication._people import People, balanced_weights, draw, seed_of

__all__ = ["make_classifier", "run_black_box"]

Array = NDArray[np.float64]

_SETS, _BEST = 5, 2  # sample sets that are drawn, and kept
_FEATURES = 10  # of a person's surrogate
_MANY_COLUMNS = 100  # past which everything takes long:
_FEW = 15  # an exact search over trees is for so many people of each group,
_FEW_SAMPLES = 0.5  # and a sample set has so much of the usual size


def make_classifier(name: str, seed: int, scale: Scale) -> Any:
    """A black box of Table 2, with the paper's parameters."""
    if name == "random forest":
        return RandomForestClassifier(scale.trees, max_depth=4, random_state=seed)
    if name == "AdaBoost":
        return AdaBoostClassifier(n_estimators=scale.stumps, random_state=seed)
    return LogisticRegression(max_iter=2000)


def run_black_box(cell: Cell, scale: Scale) -> dict[str, Any]:
    """Compute a run of Table 2; one row.

    Gaps are written down in several ways, because the choice decides what the method seems to do:

    ``gap``         true distances: exact, or the best found in the time there is (honest protocol only)
    ``surrogate``   distances to the surrogates' level, not normalised
    ``own``         those, divided by the range among the rejected of the same model and the same people (as printed)
    ``mixed``       before as ``own``, after divided by the range among *everybody*: not the same yardstick
    """
    printed = cell.protocol == "printed"
    split = draw(cell.dataset, round(scale.share * BLACK_BOX_SAMPLE), cell.run, as_printed=printed)
    seed = seed_of(cell.dataset, cell.model, cell.run) % 2**31
    row: dict[str, Any] = {"n_train": len(split.train.y), "n_test": len(split.test.y)}
    with warnings.catch_warnings():
        for category in (NoRecourseWarning, SmallGroupWarning, UndefinedRecourseWarning):
            warnings.simplefilter("ignore", category=category)
        learner, base = make_classifier(cell.model, seed, scale), balanced_weights(split.train.y, as_printed=printed)
        before = clone(learner).fit(split.train.X, split.train.y, base)
        surrogates = SurrogateRecourse(
            n_sets=_SETS,
            n_best=_BEST,
            n_samples=round(scale.samples * (_FEW_SAMPLES if split.train.X.shape[1] > _MANY_COLUMNS else 1.0)),
            selection="weights",
            n_features=_FEATURES,
            random_state=seed,
        ).fit(before, split.train.X[: scale.looked_at])
        rejected = np.asarray(before.predict(split.train.X)) != 1
        distances = np.zeros(len(rejected))
        if rejected.any():
            distances[rejected] = surrogates.explain(before, split.train.X[rejected]).distances()
        weights = point_weights(distances, rejected)
        models = {
            "before": before,
            "after": _fit_weighted(learner, split.train, base * weights),
            # Fitted once more with other random numbers and no weights: what changes here is not the method's doing.
            "placebo": make_classifier(cell.model, seed + 1, scale).fit(split.train.X, split.train.y, base),
        }
        row |= {"agreement": float(surrogates.agreement_.max()), "smallest_weight": float(weights.min())}
        for side, model in models.items():
            for part, people in split.parts.items():
                found = _judge(model, side, people, surrogates, scale, seed, true=not printed)
                row |= prefixed(found, side, part)
        row["weighted"] = int(rejected.sum())
    row["degenerate"] = any(
        np.isnan(row[f"{side}_{part}_surrogate"]) for side in ("before", "after") for part in split.parts
    )
    return row


def _fit_weighted(learner: Any, people: People, weights: Array) -> Any:
    counted = weights > 0  # whoever is infinitely far has no weight, and AdaBoost takes its logarithm
    return clone(learner).fit(people.X[counted], people.y[counted], weights[counted])


def _judge(
    model: Any, side: str, people: People, surrogates: SurrogateRecourse, scale: Scale, seed: int, *, true: bool
) -> dict[str, Any]:
    rejected = np.asarray(model.predict(people.X)) != 1
    most = (
        min(scale.people, _FEW) if people.X.shape[1] > _MANY_COLUMNS and not hasattr(model, "coef_") else scale.people
    )
    parts = [np.flatnonzero(rejected & (people.groups == group))[:most] for group in np.unique(people.groups)]
    measured = np.concatenate(parts) if true and all(len(part) for part in parts) else np.empty(0, dtype=np.intp)
    costs, exact = np.empty(0), np.nan
    if len(measured):
        found = find_recourse(
            model, people.X[measured], norm=EUCLIDEAN_NORM, favorable_label=1.0, time_limit=scale.seconds
        )
        costs, exact = found.costs, float(found.exact.mean())
    row = describe(
        costs, rejected, people.y, people.groups, resamples=scale.resamples, seed=seed, measured=measured
    )  # fmt: skip
    row |= {"measured": len(measured), "exact": exact}
    return row | _surrogate_gaps(model, side, people, rejected, surrogates, scale.looked_at)


def _surrogate_gaps(
    model: Any, side: str, people: People, rejected: NDArray[np.bool_], surrogates: SurrogateRecourse, most: int
) -> dict[str, Any]:
    if len(np.unique(people.groups[rejected])) < len(np.unique(people.groups)):
        return dict.fromkeys(("surrogate", "flat", "own", "mixed", "disagree"), np.nan)
    parts = [np.flatnonzero(rejected & (people.groups == group))[:most] for group in np.unique(people.groups)]
    some = np.concatenate([*parts, np.flatnonzero(~rejected)[:most]])
    found = surrogates.explain(model, people.X[some])
    distances, out = found.distances(), rejected[some]
    finite = np.isfinite(distances)  # the surrogates of people far from all samples may be flat
    gap = gap_of(distances[out & finite], people.groups[some][out & finite])
    own, everybody = float(np.ptp(distances[out & finite])), float(np.ptp(distances[finite]))
    return {
        "surrogate": gap,
        "flat": float(1 - finite[out].mean()),
        "own": gap / own if own > 0 else np.nan,
        "mixed": gap / (own if side == "before" else everybody) if own > 0 else np.nan,
        "disagree": float(found.disagrees[out].mean()),
    }
