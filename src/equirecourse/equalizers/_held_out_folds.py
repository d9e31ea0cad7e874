"""Folds of a frontier: fitted on one side, judged on the other, and summed up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from equirecourse._validation import Groups, shown
from equirecourse.exceptions import ConvergenceWarning, SmallGroupWarning, UndefinedRecourseWarning
from equirecourse.metrics import RecourseFrame
from equirecourse.recourse._boundary import costs_of_scores

__all__ = ["check_groups_of_folds", "fit_fold", "quietly", "split_rows", "summarise", "warn_of_undefined"]

Array = NDArray[np.float64]


def split_rows(
    cv: Any, X: Any, y: NDArray[Any], *, stratified: bool
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to fit to and rows to judge, one pair per fold."""
    wanted = f"cv must be a number of folds, a splitter or pairs of training and held-out rows, got {shown(cv)}."
    try:
        splits = [
            (np.asarray(train), np.asarray(test)) for train, test in check_cv(cv, y, classifier=stratified).split(X, y)
        ]
    except TypeError:  # pairs that are no pairs
        raise ValueError(wanted) from None
    if not splits or any(rows.ndim != 1 or rows.dtype.kind not in "iub" for split in splits for rows in split):
        raise ValueError(wanted)
    return splits


def check_groups_of_folds(splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]], groups: Groups) -> None:
    """Refuse folds that have no two groups to compare, before anything is fitted."""
    for fold, (_, test) in enumerate(splits, start=1):
        present = np.unique(groups.codes[test])
        if len(present) < 2:
            who = f"people of group {groups.labels[present[0]]!r} only" if len(present) else "nobody"
            raise ValueError(
                f"Fold {fold} of {len(splits)} holds out {who}, and a gap needs two groups; use fewer folds, or splits "
                "that stratify by group."
            )


def fit_fold(
    estimator: Any,
    prefix: str,
    lot: list[dict[str, Any]],
    X: Any,
    y: NDArray[Any],
    sensitive_features: Any,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> list[dict[str, Any]]:
    """Fit on one side of a split, once per setting of the lot, and judge the other; ``prefix`` is the equalizer's."""
    # The last one: the plain model, which may be the first, does not say what the others have in common.
    model = clone(estimator).set_params(**{**lot[0], **lot[-1]})
    steps, last = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    seen, held_out = _safe_indexing(X, train), _safe_indexing(X, test)
    if steps is not None and len(steps):
        seen, held_out = steps.fit_transform(seen, y[train]), steps.transform(held_out)
    penalties = [setting.get(f"{prefix}{last._strength}", getattr(last, last._strength)) for setting in lot]
    with quietly(), config_context(enable_metadata_routing=False):
        groups = _safe_indexing(sensitive_features, train)
        fitted = last.fit_path(seen, y[train], sensitive_features=groups, penalties=penalties)
    return [_judge(one, held_out, test, transformed=steps is not None and len(steps) > 0) for one in fitted]


@contextmanager
def quietly() -> Iterator[None]:
    """The table reports convergence, and the held-out people tell whether there is a gap."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, SmallGroupWarning, UndefinedRecourseWarning):
            warnings.simplefilter("ignore", category=category)
        yield


def _judge(model: Any, held_out: Any, test: NDArray[np.intp], *, transformed: bool) -> dict[str, Any]:
    # What predict says, and boundary_costs, with one look at the people: a kernel takes its time.
    scores = model.decision_function(held_out)
    predicted = model.classes_[(scores > 0).astype(int)]
    rejected = predicted != model.favorable_label_
    costs, space = costs_of_scores(model, scores, rejected)
    return {
        "test": test,
        "costs": costs,
        "rejected": rejected,
        "predicted": predicted,
        "scores": scores,
        "converged": model.converged_,
        "space": "transformed" if transformed and space == "input" else space,
    }


def summarise(
    parts: list[dict[str, Any]], y: NDArray[Any], codes: pd.Series, n_boot: int, n_permutations: int, seed: int
) -> dict[str, Any]:
    """Gap, accuracy and acceptance in each held-out fold, and their means."""
    folds = []
    for part in parts:
        test, right = part["test"], part["predicted"] == y[part["test"]]
        with quietly():  # a warning for each fold of each setting would be dozens; there is one for all of them
            frame = RecourseFrame(
                costs=part["costs"],
                rejected=part["rejected"],
                sensitive_features=codes.iloc[test],
                n_boot=n_boot,
                n_permutations=n_permutations,
                random_state=seed,
            )
        groups = codes.to_numpy()[test]
        present = np.unique(groups)
        costs = part["costs"][part["rejected"] & np.isfinite(part["costs"])]
        folds.append(
            {
                "gap": frame.gap,
                "gap_low": frame.interval.low,
                "gap_high": frame.interval.high,
                "noise_floor": frame.noise_floor,
                "relative_gap": frame.relative_gap,
                "mean_cost": float(costs.mean()) if len(costs) else np.nan,
                "accuracy": float(right.mean()),
                "balanced_accuracy": float(np.mean([right[y[test] == label].mean() for label in np.unique(y)])),
                "auc": _auc(y[test], part["scores"]),
                "acceptance": float(1 - part["rejected"].mean()),
                "rejected": int(np.bincount(groups[part["rejected"]], minlength=groups.max() + 1)[present].min()),
                "converged": float(part["converged"]),
            }
        )
    table = pd.DataFrame(folds)
    # A fold without rejected people in a group has no gap, and then there is no mean over the folds either.
    means = {str(name): float(table[name].mean(skipna=False)) for name in table}
    return {**means, "rejected": int(table["rejected"].min())}


def warn_of_undefined(gaps: list[float], folds: list[list[dict[str, Any]]], groups: Groups) -> None:
    """Say once for which settings there is no gap, and where somebody is missing for it."""
    undefined = [k for k, gap in enumerate(gaps) if np.isnan(gap)]
    if not undefined:
        return
    empty = [
        f": nobody of group {groups.labels[code]!r} is rejected in fold {number}"
        for k in undefined
        for number, part in enumerate(folds[k], start=1)
        for code in np.setdiff1d(groups.codes[part["test"]], groups.codes[part["test"]][part["rejected"]])
    ]
    warnings.warn(
        f"The gap is undefined for {len(undefined)} of {len(gaps)} settings{empty[0] if empty else ''}"
        f"{', and so on' if len(empty) > 1 else ''}; use fewer folds, or a model that rejects more people.",
        UndefinedRecourseWarning,
        stacklevel=3,
    )


def _auc(y: NDArray[Any], scores: Array) -> float:
    """Share of pairs of a person with either label whom the scores order rightly; NaN without such a pair.

    scikit-learn's checks and curve take fifteen times as long, for each fold and setting.
    """
    upper = y == np.unique(y)[-1]
    pairs = float(upper.sum()) * float((~upper).sum())
    if pairs == 0:
        return np.nan
    ranks = rankdata(scores)
    return float((ranks[upper].sum() - upper.sum() * (upper.sum() + 1) / 2) / pairs)
