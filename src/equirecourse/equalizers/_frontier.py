"""Accuracy against held-out gap: what each degree of equality costs, and the pick within a budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import indexable

from equirecourse._validation import as_frame, check_groups, check_jobs, check_number, refuse_masked, shown
from equirecourse.equalizers._base import DEFAULT_SHARES, EqualRecourseEstimator
from equirecourse.equalizers._distribution import KAPPAS
from equirecourse.equalizers._held_out_folds import (
    check_groups_of_folds,
    fit_fold,
    quietly,
    split_rows,
    summarise,
    warn_of_undefined,
)
from equirecourse.equalizers._svc import EqualRecourseSVC
from equirecourse.metrics._resampling import shuffled_groups

__all__ = ["Frontier", "recourse_frontier"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Frontier:
    """Held-out gap and accuracy for each setting of an equalizer.

    Attributes
    ----------
    table : DataFrame
        One row per setting; the first is the plain model. Columns: the parameters, ``gap``, ``gap_low``, ``gap_high``
        (its interval), ``noise_floor``, ``relative_gap``, ``mean_cost``, ``accuracy``, ``balanced_accuracy``,
        ``auc``, ``acceptance``, ``rejected`` (fewest in a group of a fold) and ``converged``, all means over the
        held-out folds but ``rejected``.
    parameters : tuple of dict
        The parameters of each row, for ``estimator.set_params``.
    estimator : estimator
        The estimator that was varied, unfitted.
    space : {"input", "transformed", "feature"}
        Space in which costs are measured, see :class:`equirecourse.recourse.BoundaryCosts`.
    placebo : Series or None
        The last setting, fitted to groups that were shuffled: the columns of ``table`` for what the method does when
        there is nothing to equalise. None unless it was asked for.
    criterion : str
        The column that the pick makes small: "gap", or "transport_gap" where the table has it.
    """

    table: pd.DataFrame
    parameters: tuple[dict[str, Any], ...]
    estimator: Any
    space: str
    placebo: pd.Series | None = None
    criterion: str = "gap"

    def pick(self, accuracy_budget: float = 0.01) -> int:
        """Row with the smallest held-out gap among those that lose at most ``accuracy_budget`` against the plain model.

        Parameters
        ----------
        accuracy_budget : float, default=0.01
            Largest loss of accuracy, as a share: 0.01 is one point.

        Returns
        -------
        int
            A row of ``table``; 0, the plain model, when nothing within the budget has a smaller gap.
        """
        if not 0 <= accuracy_budget <= 1:
            raise ValueError(f"accuracy_budget must be between 0 and 1, got {accuracy_budget!r}; 0.01 is one point.")
        allowed = self.table[self.table["accuracy"] >= self.table["accuracy"].iloc[0] - accuracy_budget - 1e-12]
        gaps = allowed[self.criterion].dropna()
        return int(gaps.idxmin()) if len(gaps) else 0

    def best_estimator(self, accuracy_budget: float = 0.01) -> Any:
        """The picked setting as an unfitted estimator."""
        return clone(self.estimator).set_params(**self.parameters[self.pick(accuracy_budget)])

    def summary(self, accuracy_budget: float = 0.01) -> str:
        """The pick in one sentence, also when there is none."""
        plain, row = self.table.iloc[0], self.table.iloc[self.pick(accuracy_budget)]
        budget = f"{100 * accuracy_budget:g} point{'s' * (accuracy_budget != 0.01)} of accuracy"
        if row.name == 0:
            return (
                f"No setting within {budget} has a smaller held-out gap than the plain model "
                f"(gap {plain['gap']:.3f}, noise floor {plain['noise_floor']:.3f}, accuracy {plain['accuracy']:.3f})."
            )
        return (
            f"Within {budget} the held-out gap falls from {plain['gap']:.3f} to {row['gap']:.3f} "
            f"(noise floor {row['noise_floor']:.3f}; relative to the mean cost, {plain['relative_gap']:.3f} to "
            f"{row['relative_gap']:.3f}), accuracy goes from {plain['accuracy']:.3f} to {row['accuracy']:.3f} "
            f"and acceptance from {plain['acceptance']:.3f} to {row['acceptance']:.3f}."
        )


def recourse_frontier(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    param_grid: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    n_boot: int = 500,
    n_permutations: int = 500,
    placebo: bool = False,
    random_state: Any = None,
    verbose: int = 0,
) -> Frontier:
    r"""Cross-validate an equalizer over a path of penalties.

    Every person is judged by a model that has not seen them. The gap is taken in each held-out fold, and its mean over
    the folds stands beside the mean of the folds' noise floors. Folds are *not* pooled first: what one fold has too
    much of, the others have too little of, so that the gaps of balanced models cancel in the pool, and it would look
    far below its floor.

    Parameters
    ----------
    estimator : EqualRecourseSVC, EqualRecourseLinear, or a Pipeline that ends in one
        The equalizer.
    X, y : array-like
        Data, and two labels of any kind.
    sensitive_features : array-like, Series or DataFrame
        The groups.
    param_grid : dict or list of dict, optional
        Settings to compare, as in :class:`sklearn.model_selection.ParameterGrid`; the plain model is always the first
        row. By default values of κ; for the paper's objective, a path of squared penalties up to hard equality, placed
        by ``estimator.penalty_path`` where the difference shrinks.
    cv : int, splitter or iterable, default=5
        As in scikit-learn; an integer stratifies by label, in the order of the rows unless a splitter shuffles.
    n_jobs : int, optional
        Number of folds at a time: threads for an EqualRecourseSVC, processes otherwise, unless joblib is told.
    n_boot, n_permutations : int, default=500
        Resamples for the interval, and for noise floor and p-value.
    placebo : bool, default=False
        Also fit the last setting with the groups shuffled among the training people of each fold.
    random_state : int or RandomState, optional
        For the resamples and the placebo.
    verbose : int, default=0
        Progress of the fits, as in joblib.

    Returns
    -------
    Frontier
        The table, and the pick within an accuracy budget.

    Warns
    -----
    UndefinedRecourseWarning
        If a fold has nobody rejected in a group, so that the mean gap of a setting is NaN.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from equirecourse import EqualRecourseLinear, recourse_frontier
    >>> from equirecourse.datasets import load_credit
    >>> credit = load_credit(paper=True)
    >>> model = make_pipeline(StandardScaler(), EqualRecourseLinear(LogisticRegression(class_weight="balanced")))
    >>> frontier = recourse_frontier(
    ...     model,
    ...     credit.data[:5000],
    ...     credit.target[:5000],
    ...     sensitive_features=credit.sensitive_features["education"][:5000] == "graduate school",
    ...     param_grid={"equalrecourselinear__kappa": [3.0]},
    ...     random_state=0,
    ... )
    >>> bool(frontier.table["gap"][1] < frontier.table["gap"][0] / 2)
    True
    """
    check_jobs(n_jobs)
    check_number(int(verbose) if isinstance(verbose, bool) else verbose, name="verbose", low=0, integer=True)
    for name, given in {"X": X, "y": y}.items():
        refuse_masked(given, name=name)
    if np.ndim(y) != 1:
        raise ValueError(f"y must hold one label per person, got {shown(y)}.")
    X, y = indexable(X, y)
    y = np.asarray(y)
    groups = check_groups(sensitive_features, len(y), at_least=2)
    codes = pd.Series(groups.codes)
    sensitive_features = as_frame(sensitive_features)  # whose rows can be taken, whatever came in
    prefix = _equalizer_prefix(estimator)
    plain = _plain_setting(estimator, prefix)
    if param_grid is None:
        settings = _default_path(estimator, prefix, X, y, sensitive_features)
    else:
        settings = list(ParameterGrid(param_grid))
    settings = [plain, *settings]
    splits = split_rows(cv, X, y, stratified=True)
    check_groups_of_folds(splits, groups)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    lots = _share_work(settings, prefix, _last(estimator)._strength)
    jobs = [([settings[k] for k in lot], sensitive_features, *split) for lot in lots for split in splits]
    if placebo:
        shuffled = shuffled_groups(sensitive_features, seed)
        jobs += [([settings[-1]], shuffled, *split) for split in splits]
    # Here too: what threads do to the filters of warnings, they do to those of the whole process.
    with quietly():
        found: Iterable[Any] = Parallel(n_jobs=n_jobs, verbose=verbose, prefer=_preferred(estimator))(
            delayed(fit_fold)(estimator, prefix, lot, X, y, features, train, test)
            for lot, features, train, test in jobs
        )
        fits = list(found)
    by_setting: dict[int, list[dict[str, Any]]] = {}
    for place, lot in enumerate(lots):
        folds = fits[place * len(splits) : (place + 1) * len(splits)]
        by_setting.update({k: [fold[within] for fold in folds] for within, k in enumerate(lot)})
    resamples = {"n_boot": n_boot, "n_permutations": n_permutations, "seed": seed}
    rows = [
        {**_shown(setting, settings, prefix), **summarise(by_setting[k], y, codes, **resamples)}
        for k, setting in enumerate(settings)
    ]
    gaps, folds = [row["gap"] for row in rows], [by_setting[k] for k in range(len(settings))]
    fake = None
    if placebo:
        folds.append([part for (part,) in fits[-len(splits) :]])
        fake = pd.Series(summarise(folds[-1], y, codes, **resamples), name="placebo")
        gaps.append(fake["gap"])
    warn_of_undefined(gaps, folds, groups)
    return Frontier(pd.DataFrame(rows), tuple(settings), clone(estimator), fits[0][0]["space"], fake)


def _equalizer_prefix(estimator: Any) -> str:
    """The prefix of the equalizer's parameters: empty, or ``step__`` in a pipeline."""
    last = _last(estimator)
    if not isinstance(last, EqualRecourseEstimator):
        raise ValueError(
            f"recourse_frontier varies an EqualRecourseSVC or EqualRecourseLinear, or a Pipeline that ends in one; "
            f"got {type(last).__name__}."
        )
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def _last(estimator: Any) -> Any:
    """The equalizer itself."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _plain_setting(estimator: Any, prefix: str) -> dict[str, Any]:
    if _last(estimator)._strength == "kappa":
        return {f"{prefix}kappa": 0.0}
    return {f"{prefix}recourse_penalty": 0.0, f"{prefix}difference_bound": None}


def _default_path(estimator: Any, prefix: str, X: Any, y: Any, sensitive_features: Any) -> list[dict[str, Any]]:
    """Values of κ; or squared penalties that leave less and less of the plain difference, then hard equality."""
    last, seen = _last(estimator), X
    if last._strength == "kappa":
        return [{f"{prefix}kappa": kappa} for kappa in KAPPAS]
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        seen = clone(estimator[:-1]).fit_transform(X, y)
    path = last.penalty_path(seen, y, sensitive_features=sensitive_features, shares=DEFAULT_SHARES)
    # A bound that the estimator came with is not to be had besides a penalty.
    unbound = {} if last.difference_bound is None else {f"{prefix}difference_bound": None}
    soft = [{f"{prefix}recourse_penalty": float(p), f"{prefix}penalty": "squared", **unbound} for p in path]
    return [*soft, {f"{prefix}recourse_penalty": np.inf, **unbound}]


def _share_work(settings: list[dict[str, Any]], prefix: str, strength: str) -> list[list[int]]:
    """Settings that differ in nothing but the penalty, together: one path of fits, which share most of their work.

    The plain model, which is the first, joins a path whose other parameters do not matter to it. Settings are named by
    their place.
    """
    varied, shape, bound = (f"{prefix}{name}" for name in (strength, "penalty", "difference_bound"))
    lots: dict[str, list[int]] = {}
    for k, setting in enumerate(settings[1:], start=1):
        lots.setdefault(repr({name: value for name, value in setting.items() if name != varied}), []).append(k)
    ordered = [sorted(lot, key=lambda k: settings[k].get(varied, np.inf)) for lot in lots.values()]
    for lot in ordered:
        first = settings[lot[0]]
        if set(first) <= {varied, shape, bound} and varied in first and first.get(bound) is None:
            lot.insert(0, 0)
            return ordered
    return [[0], *ordered]


def _preferred(estimator: Any) -> str | None:
    """Threads for kernel models, whose compiled loops let others run and whose matrices are not copied."""
    last = _last(estimator)
    ours = isinstance(last, EqualRecourseSVC) and last.solver in ("auto", "smo") and not callable(last.kernel)
    return "threads" if ours else None


def _shown(setting: dict[str, Any], settings: list[dict[str, Any]], prefix: str) -> dict[str, Any]:
    """The parameters of a row, without the prefix, and only those that any setting but the plain one varies."""
    names = list(dict.fromkeys(name for other in settings[1:] for name in other))
    names = names or list(settings[0])[:1]
    return {name.removeprefix(prefix): setting.get(name, "") for name in names}
