"""One run of Table 1: a recourse-regularised SVM, with its parameters chosen by cross-validation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from equirecourse.actions import EUCLIDEAN_NORM
from equirecourse.equalizers import EqualRecourseSVC
from equirecourse.exceptions import (
    ConvergenceWarning,
    NoRecourseWarning,
    SmallGroupWarning,
    UndefinedRecourseWarning,
)
from equirecourse.metrics._resampling import shuffled_groups
from equirecourse.recourse import boundary_costs, find_recourse
from equirecourse.replication._cells import Cell, Scale
from equirecourse.replication._measure import describe, gap_of, prefixed
from equirecourse.replication._paper import SVM_SAMPLE
from equirecourse.replication._people import People, Split, balanced_weights, draw, seed_of

__all__ = ["run_svm"]

_BUDGET = 0.01  # of accuracy, that equality may cost under the honest protocol
_STEPS_PER_PERSON = (
    300  # of the solver: givemecredit's tails (100 standard deviations) to the fifth power would never end
)
_FEW_COLUMNS = 100  # up to which a search for the nearest accepted input takes less than a second
_EXACT_DEGREE = 2  # up to which the nearest accepted input is known exactly, and quickly


def run_svm(cell: Cell, scale: Scale) -> dict[str, Any]:
    """Compute a run of Table 1; one row."""
    split = draw(
        cell.dataset,
        round(scale.share * SVM_SAMPLE[cell.dataset]),
        cell.run,
        as_printed=cell.protocol == "printed",
    )
    row: dict[str, Any] = {"n_train": len(split.train.y), "n_test": len(split.test.y)}
    with warnings.catch_warnings():
        # Convergence and undefined gaps are columns of the row.
        for category in (ConvergenceWarning, NoRecourseWarning, SmallGroupWarning, UndefinedRecourseWarning):
            warnings.simplefilter("ignore", category=category)
        choose = _choose_as_printed if cell.protocol == "printed" else _choose_honestly
        degree, penalty, folds = choose(cell, scale, split.train)
        row |= {"degree": degree, "penalty": penalty, "folds_without_a_gap": folds}
        models = _fit(cell, scale, split.train, degree, penalty)
        for side, model in models.items():
            seed = seed_of(cell.dataset, cell.run, "judge")
            searched = cell.protocol == "honest" and side != "placebo"
            row |= prefixed(_judge_both(model, split, scale, seed, searched=searched), side)
        after = models["after"]
        row |= {"rounds": max(len(after.rounds_) - 1, 0), "converged": bool(after.converged_), "ending": after.ending_}
    # A gap needs rejected people in both groups, before and after, among those fitted and those held out.
    row["degenerate"] = any(np.isnan(row[f"{side}_{part}_gap"]) for side in ("before", "after") for part in split.parts)
    return row


def _model(cell: Cell, scale: Scale, people: People, degree: int, **settings: Any) -> EqualRecourseSVC:
    n, n_features = people.X.shape
    kernel = {"kernel": "linear"} if cell.model == "linear" else {"kernel": "poly", "degree": degree}
    return EqualRecourseSVC(
        C=10.0 if cell.bound == "10" else 10.0 / n,
        gamma=1.0 / n_features,
        min_rejected=1,
        max_rounds=scale.rounds,
        tol=1e-3,
        max_iter=_STEPS_PER_PERSON * n,
        # As printed, the loop ends with its last round, whatever came before.
        round_options={"on_cycle": "last" if cell.protocol == "printed" else "mix"},
        **kernel,
        **settings,
    )


def _degrees(cell: Cell, scale: Scale) -> tuple[int, ...]:
    return (1,) if cell.model == "linear" else scale.degrees


def _path(cell: Cell, scale: Scale, people: People, degree: int, penalties: tuple[float, ...]) -> list[Any]:
    """Models along the penalties; None for all where the plain one leaves no two groups to compare."""
    try:
        return list(
            _model(cell, scale, people, degree).fit_path(
                people.X,
                people.y,
                sensitive_features=people.groups,
                penalties=penalties,
                sample_weight=balanced_weights(people.y, as_printed=cell.protocol == "printed"),
            )
        )
    except ValueError as error:
        if "no two groups to compare" not in str(error):
            raise
        return [None] * len(penalties)


def _held_out(
    cell: Cell, scale: Scale, people: People, degree: int, penalties: tuple[float, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gap and accuracy of each held-out fold at each penalty, folds × penalties; NaN where there is no gap."""
    printed = cell.protocol == "printed"
    splitter, number = (KFold, scale.folds) if printed else (StratifiedKFold, scale.honest_folds)
    folds = splitter(number, shuffle=True, random_state=seed_of(cell.dataset, cell.run, "folds") % 2**31)
    gaps, accuracies = [], []
    for fit, judge in folds.split(people.X, people.y):
        judged = people.take(judge)
        gaps.append([np.nan] * len(penalties))
        accuracies.append([np.nan] * len(penalties))
        for place, model in enumerate(_path(cell, scale, people.take(fit), degree, penalties)):
            if model is None:
                continue
            found = boundary_costs(model, judged.X)
            accuracies[-1][place] = float((~found.rejected == (judged.y > 0)).mean())
            out = found.rejected
            if len(np.unique(judged.groups[out])) == len(np.unique(people.groups)):
                gaps[-1][place] = gap_of(found.costs[out], judged.groups[out])
    return np.array(gaps), np.array(accuracies)


def _mean_of_most(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the folds that have a gap, where at least half of them do; infinite elsewhere, so never chosen."""
    enough = np.isfinite(values).mean(axis=0) >= 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.where(enough, np.nanmean(values, axis=0), np.inf)


def _choose_as_printed(cell: Cell, scale: Scale, people: People) -> tuple[int, float, int]:
    """λ and degree with the smallest recourse difference in cross-validation, whatever the accuracy."""
    best, missing = (np.inf, _degrees(cell, scale)[0], scale.penalties[0]), 0
    for degree in _degrees(cell, scale):
        gaps, _ = _held_out(cell, scale, people, degree, scale.penalties)
        missing += int(np.isnan(gaps[:, 0]).sum())
        means = _mean_of_most(gaps)
        place = int(np.argmin(means))
        best = min(best, (float(means[place]), degree, scale.penalties[place]))
    return best[1], best[2], missing


def _choose_honestly(cell: Cell, scale: Scale, people: People) -> tuple[int, float, int]:
    """The degree by the accuracy of the plain model; then λ by the held-out gap within a budget of accuracy."""
    degrees = _degrees(cell, scale)
    plain = {degree: _held_out(cell, scale, people, degree, (0.0,))[1] for degree in degrees} if degrees[1:] else {}
    degree = max(plain, key=lambda each: np.nan_to_num(plain[each]).mean()) if plain else degrees[0]
    penalties = (0.0, *scale.penalties, np.inf)
    gaps, accuracies = _held_out(cell, scale, people, degree, penalties)
    means = _mean_of_most(gaps)
    accuracy = np.where(np.isfinite(means), _mean_of_most(accuracies), -1.0)
    allowed = accuracy >= accuracy[0] - _BUDGET - 1e-12
    place = int(np.argmin(np.where(allowed, means, np.inf))) if np.isfinite(means[0]) else 0
    return degree, penalties[place], int(np.isnan(gaps[:, 0]).sum())


def _fit(cell: Cell, scale: Scale, people: People, degree: int, penalty: float) -> dict[str, Any]:
    """The plain model, the regularised one, and the placebo: the same for groups that were shuffled.

    Where the plain model leaves no two groups to compare there is nothing to regularise, and it stays.
    """
    weights = balanced_weights(people.y, as_printed=cell.protocol == "printed")
    plain = _model(cell, scale, people, degree).fit(people.X, people.y, sample_weight=weights)
    shuffled = replace(people, groups=shuffled_groups(people.groups, seed_of(cell.dataset, cell.run, "placebo")))
    after, placebo = (_path(cell, scale, some, degree, (penalty,))[0] for some in (people, shuffled))
    return {"before": plain, "after": after or plain, "placebo": placebo or plain}


def _judge_both(model: Any, split: Split, scale: Scale, seed: int, *, searched: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for part, people in split.parts.items():
        row |= prefixed(_judge(model, people, scale, seed, searched=searched and part == "test"), part)
    return row


def _judge(model: Any, people: People, scale: Scale, seed: int, *, searched: bool) -> dict[str, Any]:
    found = boundary_costs(model, people.X)
    row = describe(found.costs, found.rejected, people.y, people.groups, resamples=scale.resamples, seed=seed)
    row["functional_gap"] = row["gap"] * model.weight_norm_
    return row | _input_space(model, people, found.rejected, row["gap"], scale, searched=searched)


def _input_space(
    model: Any, people: People, rejected: NDArray[np.bool_], gap: float, scale: Scale, *, searched: bool
) -> dict[str, Any]:
    """The gap between distances to the nearest accepted *input*, which is what a person experiences.

    Exact for linear and quadratic boundaries. Beyond, each person takes a search of their own: then only some people of
    the test set are looked at, under the honest protocol, and the number says how many.
    """
    if model.kernel == "linear":
        return {"input_gap": gap, "input_people": int(rejected.sum())}
    exact = model.degree <= _EXACT_DEGREE
    searched = searched and people.X.shape[1] <= _FEW_COLUMNS
    most = scale.people if exact else scale.searched
    rows = [np.flatnonzero(rejected & (people.groups == group))[:most] for group in np.unique(people.groups)]
    if not (exact or searched) or any(len(some) == 0 for some in rows):
        return {"input_gap": np.nan, "input_people": 0}
    some = np.concatenate(rows)
    costs = find_recourse(model, people.X[some], norm=EUCLIDEAN_NORM, favorable_label=1.0).costs
    finite = np.isfinite(costs)
    return {"input_gap": gap_of(costs[finite], people.groups[some][finite]), "input_people": int(finite.sum())}
