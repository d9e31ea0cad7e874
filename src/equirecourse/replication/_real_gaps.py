"""Where there is a gap: natural groups whose plain held-out gap exceeds twice its floor, and what methods make of it.

All methods see the same splits and the same preparation: features clipped to their central 98 % and standardised, both
as learnt from the training people, and balanced class weights where fewer than 30 % of the outcomes are unfavourable
(next to nobody would be rejected without).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight

from equirecourse.actions import EUCLIDEAN_NORM
from equirecourse.datasets import fetch_givemecredit, fetch_propublica, load_credit, load_german
from equirecourse.equalizers import (
    EqualRecourseBoosting,
    EqualRecourseLinear,
    EqualRecourseSVC,
    RecourseReweighting,
    recourse_frontier,
)
from equirecourse.exceptions import (
    ConvergenceWarning,
    NoRecourseWarning,
    SmallGroupWarning,
    UndefinedRecourseWarning,
)
from equirecourse.metrics._resampling import shuffled_groups
from equirecourse.recourse import boundary_costs, find_recourse
from equirecourse.replication._cells import Cell, Scale
from equirecourse.replication._measure import describe, prefixed
from equirecourse.replication._people import People, Split, seed_of

__all__ = ["METHODS", "NATURAL_GROUPS", "has_gap", "method_cells", "run_real_gap", "screening_cells"]

NATURAL_GROUPS = {
    "german": ("sex", "age_group", "foreign_worker", "personal_status"),
    "credit": ("sex", "education", "graduate", "marriage", "married", "age_group"),
    "propublica": ("race", "african_american", "sex", "age_group"),
    "givemecredit": ("age_group",),
}
_SEEDS = 3
_MOST_PEOPLE = 15_000  # of a data set
_MOST_FOR_KERNEL = 4_000  # training people of a kernel SVM
_RARE = 0.3  # share of unfavourable outcomes below which classes are balanced
_SMALLEST_GROUP = 50  # people; a group with fewer in the sample says nothing, and is left out with its people
_BUDGET = 0.01

Fitted = tuple[Any, Any, Any]  # plain, after, placebo


def screening_cells(scale: Scale) -> list[Cell]:
    """Plain models for every natural group of every data set."""
    return [
        Cell("real-gaps", dataset, "plain", "honest", group=group, run=run)
        for run in range(min(_SEEDS, scale.runs))
        for dataset in scale.datasets
        for group in NATURAL_GROUPS[dataset]
    ]


def has_gap(screened: pd.DataFrame) -> pd.Series:
    """The rule: the plain held-out gap, meant over the splits, exceeds twice its noise floor, meant likewise."""
    means = screened.groupby(["dataset", "group"], sort=False)[["before_test_gap", "before_test_noise_floor"]].mean()
    return means["before_test_gap"] > 2 * means["before_test_noise_floor"]


def method_cells(scale: Scale, screened: pd.DataFrame) -> list[Cell]:
    """Every method for every group that has a gap."""
    found = has_gap(screened)
    return [
        Cell("real-gaps", dataset, method, "honest", group=group, run=run)
        for run in range(min(_SEEDS, scale.runs))
        for dataset, group in found.index[found][: scale.real_gaps]
        for method in METHODS
    ]


@lru_cache(maxsize=4)
def _load(dataset: str) -> tuple[pd.DataFrame, NDArray[np.float64], pd.DataFrame]:
    if dataset == "propublica":  # the paper's 401 columns are mostly the words of charges
        data: Any = fetch_propublica()
        X = data.data.assign(male=(data.sensitive_features["sex"] == "male").astype(float))
    else:
        loaders: dict[str, Any] = {"german": load_german, "credit": load_credit, "givemecredit": fetch_givemecredit}
        data = loaders[dataset](paper=True)
        X = data.data
    return X, np.asarray(data.target, dtype=np.float64), data.sensitive_features


def _split(cell: Cell, scale: Scale) -> Split:
    X, y, features = _load(cell.dataset)
    if cell.dataset == "propublica" and cell.group == "age_group":
        X = X.drop(columns="age")
    groups = features[cell.group].astype(str).to_numpy()
    most = min(len(y), round(scale.share * _MOST_PEOPLE))
    rows = np.random.default_rng(seed_of(cell.dataset, "sample")).permutation(len(y))[:most]
    labels, counts = np.unique(groups[rows], return_counts=True)
    rows = rows[np.isin(groups[rows], labels[counts >= _SMALLEST_GROUP])]
    train, test = train_test_split(rows, test_size=0.3, random_state=cell.run, stratify=y[rows])
    values = X.to_numpy(dtype=np.float64)
    low, high = np.quantile(values[train], [0.01, 0.99], axis=0)
    clipped = np.clip(values, low, high)
    mean, spread = clipped[train].mean(axis=0), clipped[train].std(axis=0)
    scaled = (clipped - mean) / np.where(spread > 0, spread, 1.0)
    people = People(scaled, y, groups)
    return Split(people.take(train), people.take(test))


@dataclass(frozen=True)
class _Job:
    """What a method gets: the training people, the groups to balance, and weights."""

    people: People
    groups: NDArray[Any]
    weights: NDArray[np.float64]
    scale: Scale
    seed: int


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


def _plain_logistic(job: _Job) -> Any:
    return _logistic().fit(job.people.X, job.people.y, sample_weight=job.weights)


def _hard(job: _Job) -> Any:
    model = EqualRecourseLinear(_logistic(), objective="paper")
    return model.fit(job.people.X, job.people.y, sensitive_features=job.groups, sample_weight=job.weights)


def _picked(job: _Job) -> Any:
    """The best of a path of penalties and of remembering two rounds, on held-out folds."""
    balanced = "balanced" if np.ptp(job.weights) > 0 else None
    model = EqualRecourseLinear(LogisticRegression(max_iter=2000, class_weight=balanced), objective="paper")
    path = model.penalty_path(job.people.X, job.people.y, sensitive_features=job.groups, shares=(0.3, 0.1))
    grid = [
        {"recourse_penalty": [float(p) for p in path], "penalty": ["squared"]},
        {"recourse_penalty": [np.inf], "round_options": [{"memory": 1}, {"memory": 2}]},
    ]
    frontier = recourse_frontier(
        model, job.people.X, job.people.y, sensitive_features=job.groups, param_grid=grid, cv=3, n_boot=20,
        n_permutations=50, random_state=job.seed,
    )  # fmt: skip
    return frontier.best_estimator(_BUDGET).fit(job.people.X, job.people.y, sensitive_features=job.groups)


def _svm(kernel: str, penalty: float) -> Callable[[_Job], Any]:
    def fit(job: _Job) -> Any:
        rows = np.arange(len(job.people.y))
        if kernel != "linear":
            rows = np.random.default_rng(job.seed).permutation(rows)[:_MOST_FOR_KERNEL]
        some = job.people.take(rows)
        model = EqualRecourseSVC(kernel=kernel, recourse_penalty=penalty, tol=1e-3)
        return model.fit(some.X, some.y, sensitive_features=job.groups[rows], sample_weight=job.weights[rows])

    return fit


def _point(job: _Job) -> Any:
    model = RecourseReweighting(_logistic(), distance="surrogate", random_state=job.seed)
    model.fit(job.people.X, job.people.y, sample_weight=job.weights)
    if job.groups is job.people.groups:
        return model
    # These weights do not depend on the groups. Their placebo: the same weights for other people.
    weights, rejected = np.array(model.weights_), np.asarray(model.weights_) < 1
    weights[rejected] = np.random.default_rng(job.seed).permutation(weights[rejected])
    return _logistic().fit(job.people.X, job.people.y, sample_weight=job.weights * weights)


def _boosting(**settings: Any) -> Callable[[_Job], Any]:
    def fit(job: _Job) -> Any:
        from lightgbm import LGBMClassifier

        seed, trees = job.seed % 2**31, job.scale.boosted
        booster = LGBMClassifier(n_estimators=trees, max_depth=4, random_state=seed, verbose=-1, n_jobs=1)
        model = EqualRecourseBoosting(booster, **settings)
        return model.fit(job.people.X, job.people.y, sensitive_features=job.groups, sample_weight=job.weights)

    return fit


# Each method: how its plain model is fitted, and how the equal one is.
METHODS: dict[str, tuple[Callable[[_Job], Any], Callable[[_Job], Any]]] = {
    "logistic, hard equality": (_plain_logistic, _hard),
    "logistic, picked": (_plain_logistic, _picked),
    "SVM, linear": (_svm("linear", 0.0), _svm("linear", np.inf)),
    "SVM, rbf": (_svm("rbf", 0.0), _svm("rbf", np.inf)),
    "reweighting, point": (_plain_logistic, _point),
    "boosting": (_boosting(kappa=0.0), _boosting()),
}


def run_real_gap(cell: Cell, scale: Scale) -> dict[str, Any]:
    """One method on one split: the plain model, the equal one and its placebo, on held-out people."""
    split, seed = _split(cell, scale), seed_of(cell.dataset, cell.group, cell.run) % 2**31
    train = split.train
    if len(np.unique(train.groups)) < 2:  # all groups but one are too small to say anything about
        return {"before_test_gap": np.nan, "before_test_noise_floor": np.nan}
    rare = (train.y < 0).mean() < _RARE
    weights = compute_sample_weight("balanced", train.y) if rare else np.ones(len(train.y))
    row: dict[str, Any] = {"n_train": len(train.y), "n_test": len(split.test.y), "balanced": bool(rare)}
    with warnings.catch_warnings():
        for category in (
            ConvergenceWarning,
            NoRecourseWarning,
            SmallGroupWarning,
            UndefinedRecourseWarning,
        ):
            warnings.simplefilter("ignore", category=category)
        jobs = {
            "before": _Job(train, train.groups, weights, scale, seed),
            "after": _Job(train, train.groups, weights, scale, seed),
            "placebo": _Job(train, shuffled_groups(train.groups, seed), weights, scale, seed),
        }
        plain, equal = METHODS.get(cell.model, (_plain_logistic, None))
        for side, job in jobs.items():
            fit = plain if side == "before" else equal
            if fit is not None:
                row |= prefixed(_judge(fit(job), split.test, scale, seed), side, "test")
    return row


def _judge(model: Any, people: People, scale: Scale, seed: int) -> dict[str, Any]:
    inner = getattr(model, "estimator_", model) if isinstance(model, RecourseReweighting) else model
    if hasattr(inner, "coef_") or isinstance(inner, EqualRecourseSVC):
        found = boundary_costs(inner, people.X)
        row = describe(found.costs, found.rejected, people.y, people.groups, resamples=scale.resamples, seed=seed)
        return row | {"measured": int(found.rejected.sum()), "space": found.space}
    rejected = np.asarray(model.predict(people.X)) != 1
    rows = [np.flatnonzero(rejected & (people.groups == group)) for group in np.unique(people.groups)]
    measured = np.concatenate([some[: scale.people] for some in rows])
    costs = find_recourse(model, people.X[measured], norm=EUCLIDEAN_NORM, time_limit=scale.seconds).costs
    row = describe(
        costs, rejected, people.y, people.groups, resamples=scale.resamples, seed=seed, measured=measured
    )  # fmt: skip
    return row | {"measured": len(measured), "space": "input"}
