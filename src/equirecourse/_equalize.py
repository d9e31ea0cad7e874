"""equalize: split, choose how much equality to ask for, fit, and say what it does to people it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable

from equirecourse._audit import RecourseAudit, audit
from equirecourse._audit._build import infer_actions
from equirecourse._audit._cheats import least_shrunk, median_costs
from equirecourse._validation import as_frame, check_groups, check_jobs, check_number, refuse_masked, shown
from equirecourse.actions import DEFAULT_NORM, ActionSet, check_norm
from equirecourse.equalizers import EqualRecourseBoosting, EqualRecourseLinear, Frontier
from equirecourse.equalizers._distribution import KAPPAS
from equirecourse.equalizers._held_out_folds import quietly
from equirecourse.equalizers._losses import read_loss
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.metrics import RecourseFrame, transport_gap
from equirecourse.metrics._resampling import in_turn, shuffled_groups
from equirecourse.recourse import find_recourse

__all__ = ["Equalized", "equalize"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# Trees follow every gradient as far as their number allows: the largest κ of linear models is not needed.
_KAPPAS_OF_TREES = (1.0, 3.0, 10.0, 30.0)
_BUDGETS = {"linear": 0.01, "boosting": 0.005}
_HELD = 0.03  # by which the acceptance rate may move
_LEAST_COST = 0.6  # of its own median cost, which one group at least has to keep: to bring all closer is not equality
_LOST = 0.01  # by which the share of the rejected who are without recourse may rise
_PEOPLE_A_FOLD = {"linear": 3000, "boosting": 1000}  # rejected people whose costs are found in each fold, for each κ
_SURE = 1.645  # standard deviations of shuffled gaps beyond which a gap is none of them, at a level of 5 %
_GAP_AND_SPREAD = ("transport_gap", "transport_spread")
_FAR = 0.95  # quantile of the distances between accepted people, beyond which nobody is near


@dataclass(frozen=True)
class Equalized:
    """A model with equal recourse, and what speaks for it.

    Attributes
    ----------
    model : fitted classifier
        Predicts without groups. The plain model if nothing within the budget helps.
    changed : bool
        False if the plain model was kept.
    reason : str
        Why, in a sentence.
    frontier : Frontier
        What each κ does to people of the training data who were held out; ``frontier.table`` has a row per κ, or one
        for the plain model where that has no gap to close.
    chosen : int
        The row that was chosen.
    before, placebo, after : RecourseAudit
        Of the plain model, of one that was equalised for shuffled groups, and of ``model``, on the held-out people.
        ``after.document["comparison"]`` sets them side by side, with what each of four cheats would look like.
    training, held_out : ndarray of int
        Rows that the models were fitted to, and rows that they were judged on.
    """

    model: Any
    changed: bool
    reason: str
    frontier: Frontier
    chosen: int
    before: RecourseAudit
    placebo: RecourseAudit
    after: RecourseAudit
    training: Rows
    held_out: Rows

    def __repr__(self) -> str:
        return f"Equalized(changed={self.changed}: {self.reason})"


def equalize(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    actions: ActionSet | None = None,
    norm: str = DEFAULT_NORM,
    favorable_label: Any = None,
    budget: float | None = None,
    kappas: Any = None,
    cv: int = 3,
    test_size: float = 0.3,
    n_jobs: int | None = None,
    random_state: int = 0,
    say: Callable[[str], None] = lambda _: None,
    **audit_options: Any,
) -> Equalized:
    """Fit a model with equal recourse, chosen on held-out folds and judged on held-out people.

    The people are split. On the training people, folds tell whether there is a gap at all, and which κ makes
    the transport gap smallest among those that cost at most ``budget`` of accuracy and hold the acceptance rate; a more
    accurate one that cannot be told from it is taken instead. The plain model, the chosen one, and a placebo (the same
    method for shuffled groups) are then fitted to all training people and audited on the others.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A linear learner (LogisticRegression, LinearSVC, RidgeClassifier, SGDClassifier), an LGBMClassifier or
        XGBClassifier, a pipeline that ends in one, or an :class:`EqualRecourseLinear` or
        :class:`EqualRecourseBoosting` around one. ``EqualRecourseLinear(..., objective="paper")`` compares the plain
        model with hard equality of the means.
    X, y : table and array-like
        People, in the columns that they know, and two labels of any kind.
    sensitive_features : array-like, Series or DataFrame
        The groups; several columns are crossed for the fit and audited one by one.
    actions : ActionSet, optional
        What people can change. By default inferred from ``X`` as in :func:`~equirecourse.audit`. The model is fitted
        for the very costs by which it is then judged.
    norm : str, default="l1"
        How changes add up, as in :func:`~equirecourse.find_recourse`.
    favorable_label : label, optional
        The label that means yes; by default the larger one.
    budget : float, optional
        Accuracy that equality may cost; 0.01 is one point. By default one point for linear learners and half a point
        for boosted trees, which need to give up less.
    kappas : sequence of float, optional
        Values of κ to compare.
    cv : int, default=3
        Number of folds.
    test_size : float, default=0.3
        Share of the people who are held out.
    n_jobs : int, optional
        Folds at a time.
    random_state : int, default=0
        Of everything that is drawn.
    say : callable, optional
        Called with a sentence as each step begins.
    **audit_options
        Of :func:`~equirecourse.audit`, for the three audits.

    Returns
    -------
    Equalized
        The model, whether it was changed, and the audits.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from equirecourse import equalize
    >>> from equirecourse.datasets import load_credit
    >>> credit = load_credit()
    >>> X, y, graduate = credit.data[:6000], credit.target[:6000], credit.sensitive_features["graduate"][:6000]
    >>> model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
    >>> found = equalize(
    ...     model, X, y, sensitive_features=graduate, actions=credit.actions, kappas=[10.0], n_flipsets=0
    ... )
    >>> found.changed, len(found.frontier.table)
    (True, 2)
    """
    if budget is not None:
        check_number(budget, name="budget", low=0.0, high=1.0)
    check_number(cv, name="cv", low=2, integer=True)
    check_norm(norm)
    check_jobs(n_jobs)
    seed = int(check_number(random_state, name="random_state", low=0, integer=True))
    refuse_masked(X, name="X")
    refuse_masked(y, name="y")
    X, y = indexable(X, y)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must hold one label per person, got {shown(y)}.")
    groups = check_groups(sensitive_features, len(y), at_least=2)
    features = as_frame(sensitive_features)
    training, held_out = _split(y, groups.codes, test_size, seed)
    if actions is None:
        actions = infer_actions(_safe_indexing(X, training), set(map(str, features.columns)))
    equalizer = _equalizer(estimator, actions, norm, favorable_label, seed)
    path = _path(equalizer, kappas)
    if budget is None:
        budget = _BUDGETS["boosting" if isinstance(equalizer, EqualRecourseBoosting) else "linear"]
    work = _Work(equalizer, X, y, groups.codes, features, actions, norm, seed)
    splits = [
        (training[fit], training[judge])
        for fit, judge in StratifiedKFold(cv, shuffle=True, random_state=seed).split(
            training, _strata(y[training], groups.codes[training], cv)
        )
    ]

    def judged_on_folds(kappas: list[float]) -> list[list[dict[str, Any]]]:
        with quietly():
            found: list[Any] = Parallel(n_jobs=n_jobs)(delayed(work.fold)(kappas, *split) for split in splits)
        return found

    say(f"Measuring the plain model on {cv} folds of the training people ...")
    folds = judged_on_folds(path[:1])
    strongest = path[-1]
    no_gap = _without_a_gap(folds)
    if no_gap:
        path = path[:1]
    else:
        say(f"Comparing it with {len(path) - 1} others there ...")
        folds = [[*plain, *others] for plain, others in zip(folds, judged_on_folds(path[1:]), strict=True)]
    for fold in folds:
        for row in fold:
            row["least_shrunk"] = least_shrunk(fold[0]["median_costs"], row["median_costs"])
    rows = [_mean_row(kappa, [fold[k] for fold in folds]) for k, kappa in enumerate(path)]
    frontier = Frontier(
        pd.DataFrame(rows),
        tuple({equalizer._strength: kappa} for kappa in path),
        clone(equalizer),
        "input",
        None,
        "transport_gap",
    )
    recommended, reason = ([], no_gap) if no_gap else _pick(frontier.table, folds, budget)
    say("Fitting and auditing: before, placebo, after ...")
    with quietly():
        chosen, plain, fair = work.first_confirmed(path, recommended, training, budget)
        if chosen:
            reason = _why(frontier.table, chosen, budget)
        elif recommended:
            reason = (
                "The plain model was kept: what the folds recommend, fitted to all training people, has no smaller gap "
                "there, or costs more."
            )
        # Where nothing was chosen, the placebo still shows what the method does to groups that mean nothing.
        fake_kappa = path[chosen] if chosen else strongest
        (fake,) = work.fit_path([fake_kappa], training, shuffled_groups(features.iloc[training], seed))
    people, labels, judged = _safe_indexing(X, held_out), y[held_out], features.iloc[held_out]
    settings: dict[str, Any] = {
        "sensitive_features": judged, "actions": actions, "norm": norm, "favorable_label": favorable_label,
        "random_state": seed, "n_jobs": n_jobs, **audit_options,
    }  # fmt: skip
    quiet = {**settings, "n_flipsets": 0}
    before, placebo = (audit(model, people, labels, **quiet) for model in (plain, fake))
    after = audit(fair, people, labels, **settings)
    islands = (_islands(before, plain, people, actions), _islands(after, fair, people, actions))
    kept = None if chosen else reason
    after = after.compared_with(before, placebo=placebo, seed=seed, islands=islands, kept=kept)
    if len(path) > 1:
        after = after.with_frontier(frontier, chosen)
    for section in after.summary["comparison"]["attributes"]:
        for sentence in section["cheats"]["warnings"] if chosen else ():
            warnings.warn(f"{section['name']}: {sentence}", UserWarning, stacklevel=2)
    return Equalized(
        fair if chosen else plain, chosen > 0, reason, frontier, chosen, before, placebo, after, training, held_out
    )


# --- which model -----------------------------------------------------------------------------------------------------


def _equalizer(estimator: Any, actions: ActionSet, norm: str, favorable_label: Any, seed: int) -> Any:
    """The equalizer around a learner or a pipeline, with the action set of the audit."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    common = {"actions": actions, "norm": norm, "favorable_label": favorable_label, "random_state": seed}
    if isinstance(last, EqualRecourseLinear | EqualRecourseBoosting):
        inner = last.estimator
        if isinstance(estimator, Pipeline) and len(estimator) > 1:
            inner = Pipeline([*estimator.steps[:-1], (estimator.steps[-1][0], inner)])
        if last._strength != "kappa":  # the paper's method knows distances only
            common = {"favorable_label": favorable_label}
        return clone(last).set_params(**{"estimator": inner, **common})
    if type(last).__module__.split(".")[0] in ("lightgbm", "xgboost"):
        return EqualRecourseBoosting(estimator, **common)
    if hasattr(last, "get_params") and read_loss(last, np.array([0, 1]), np.ones(2)) is not None:
        return EqualRecourseLinear(estimator, **common)
    raise ValueError(
        f"equalize trains linear learners with a smooth loss (LogisticRegression, LinearSVC, RidgeClassifier, "
        f"SGDClassifier) and boosted trees (LGBMClassifier, XGBClassifier), got {type(last).__name__}; "
        "take boosted trees in place of a forest, and EqualRecourseSVC for kernels."
    )


def _path(equalizer: Any, kappas: Any) -> list[float]:
    if equalizer._strength != "kappa":
        return [0.0, float("inf")]
    if kappas is None:
        kappas = _KAPPAS_OF_TREES if isinstance(equalizer, EqualRecourseBoosting) else KAPPAS
    values = [float(check_number(kappa, name="kappas", low=0.0)) for kappa in kappas]
    return [0.0, *sorted({kappa for kappa in values if kappa > 0.0})]


# --- people ----------------------------------------------------------------------------------------------------------


def _split(y: NDArray[Any], codes: NDArray[np.intp], test_size: float, seed: int) -> tuple[Rows, Rows]:
    training, held_out = train_test_split(
        np.arange(len(y)), test_size=test_size, random_state=seed, stratify=_strata(y, codes, 2)
    )
    return np.sort(training), np.sort(held_out)


def _strata(y: NDArray[Any], codes: NDArray[np.intp], least: int) -> NDArray[Any]:
    """Label and group, or label alone if a combination has too few people."""
    _, labels = np.unique(y, return_inverse=True)
    both = labels * (codes.max() + 1) + codes
    return both if np.unique(both, return_counts=True)[1].min() >= least else labels


@dataclass(frozen=True)
class _Work:
    """What all folds have in common."""

    equalizer: Any
    X: Any
    y: NDArray[Any]
    codes: NDArray[np.intp]
    features: pd.DataFrame
    actions: ActionSet
    norm: str
    seed: int

    def fit_path(self, path: list[float], rows: Rows, groups: pd.DataFrame) -> list[Any]:
        """The model for each κ, fitted to some people and the groups given for them."""
        fitted: list[Any] = self.equalizer.fit_path(
            _safe_indexing(self.X, rows), self.y[rows], sensitive_features=groups, penalties=path
        )
        return fitted

    def first_confirmed(
        self, path: list[float], rows: list[int], training: Rows, budget: float
    ) -> tuple[int, Any, Any]:
        """The first recommended row whose model, fitted to all training people, has a smaller gap there than the plain.

        Returns that row (0 if there is none), the plain model and the other one. The check is needed because two fits
        to nearly the same people can end in different minima, boosted trees above all, and the folds have judged other
        fits. A linear model must be within the budget there, too; how right trees are about people they were fitted
        to says little.
        """
        groups = self.features.iloc[training]
        for row in rows:
            plain, fair = self.fit_path([0.0, path[row]], training, groups)
            before, after = (self.judge(model, training) for model in (plain, fair))
            loss = 0.0 if isinstance(fair, EqualRecourseBoosting) else before["accuracy"] - after["accuracy"]
            if after["transport_gap"] < before["transport_gap"] and loss <= budget:
                return row, plain, fair
        (plain,) = self.fit_path([0.0], training, groups)
        return 0, plain, plain

    def fold(self, path: list[float], fit: Rows, judge: Rows) -> list[dict[str, Any]]:
        """A row per κ: fitted on one side, judged on the other."""
        with quietly():
            models = self.fit_path(path, fit, self.features.iloc[fit])
            return [self.judge(model, judge) for model in models]

    def judge(self, model: Any, rows: Rows) -> dict[str, Any]:
        """What a model does to some people: gaps, costs, accuracy."""
        people = _safe_indexing(self.X, rows)
        predicted = np.asarray(model.predict(people))
        rejected = predicted != model.favorable_label_
        asked = np.flatnonzero(rejected)
        most = _PEOPLE_A_FOLD["boosting" if isinstance(model, EqualRecourseBoosting) else "linear"]
        if len(asked) > most:
            asked = np.sort(in_turn(asked, len(rows), self.seed)[:most])
        costs, measured = np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
        measured[asked] = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            if len(asked):
                costs[asked] = find_recourse(
                    model, _safe_indexing(people, asked), actions=self.actions, norm=self.norm,
                    favorable_label=model.favorable_label_, random_state=self.seed,
                ).costs  # fmt: skip
            frame = RecourseFrame(
                costs=costs, rejected=rejected, measured=measured, sensitive_features=self.codes[rows],
                n_boot=200, n_permutations=200, random_state=self.seed,
            )  # fmt: skip
        gap = floor = spread = float("nan")
        if len(asked):
            transport = transport_gap(costs[asked], sensitive_features=self.codes[rows][asked], random_state=self.seed)
            gap, floor, spread = transport
        known = asked[np.isfinite(costs[asked])]
        return {
            "gap": frame.gap,
            "gap_low": frame.interval.low,
            "gap_high": frame.interval.high,
            "noise_floor": frame.noise_floor,
            "relative_gap": frame.relative_gap,
            "transport_gap": gap,
            "transport_floor": floor,
            "transport_spread": spread,
            "mean_cost": float(costs[known].mean()) if len(known) else float("nan"),
            "without_recourse": float(np.isinf(costs[asked]).mean()) if len(asked) else float("nan"),
            "accuracy": float((predicted == self.y[rows]).mean()),
            "acceptance": float(1.0 - rejected.mean()),
            "median_costs": median_costs(costs[asked], self.codes[rows][asked]),
        }


def _mean_row(kappa: float, folds: list[dict[str, Any]]) -> dict[str, float]:
    names = [name for name in folds[0] if name != "median_costs"]
    return {"kappa": kappa, **{name: float(np.mean([fold[name] for fold in folds])) for name in names}}


def _without_a_gap(folds: list[list[dict[str, Any]]]) -> str:
    """Why there is no gap to close, if the plain model, the first of each fold, has none beyond chance; else empty."""
    plain = _mean_row(0.0, [fold[0] for fold in folds])
    if np.isnan(plain["transport_gap"]):
        return (
            "The plain model was kept: in some fold a group has nobody who is rejected and has recourse "
            f"({100 * plain['without_recourse']:.0f} % of the rejected have none), so there is no gap to measure."
        )
    spread = np.linalg.norm([fold[0]["transport_spread"] for fold in folds]) / len(folds)
    chance = plain["transport_floor"] + _SURE * spread
    if plain["transport_gap"] > chance:
        return ""
    return (
        f"The plain model was kept: its transport gap of {plain['transport_gap']:.3f} on held-out folds is not "
        f"beyond what chance alone would make it (up to {chance:.3f})."
    )


def _pick(table: pd.DataFrame, folds: list[list[dict[str, Any]]], budget: float) -> tuple[list[int], str]:
    """The rows that are recommended, the best first; none, and why, if nothing closes the gap.

    Every model within the budget whose transport gap is smaller than the plain one's, beyond what chance makes of such
    gaps and of their differences between folds. Of those whose gap is within a standard error of the smallest, the most
    accurate is best.
    """
    gaps, spreads = (pd.DataFrame([[row[name] for row in fold] for fold in folds]) for name in _GAP_AND_SPREAD)
    plain = table.iloc[0]
    gains = -gaps.sub(gaps[0], axis=0)
    # Three folds alone can agree by chance.
    errors = np.maximum(gains.sem(), np.sqrt((spreads**2).add(spreads[0] ** 2, axis=0).mean() / len(folds)))
    allowed = table[
        (table["accuracy"] >= plain["accuracy"] - budget - 1e-12)
        & ((table["acceptance"] - plain["acceptance"]).abs() <= _HELD)
        & ~(table["least_shrunk"] < _LEAST_COST)
        & (table["without_recourse"] <= plain["without_recourse"] + _LOST)
        & gaps.notna().all()
        & (gains.mean() > _SURE * errors)
    ].sort_values("transport_gap")
    if len(allowed) == 0:
        return [], f"The plain model was kept: nothing {_within(budget)} has a clearly smaller gap on held-out folds."
    farther = gaps[allowed.index].sub(gaps[allowed.index[0]], axis=0)
    near = farther.mean() <= farther.sem()
    best = allowed["accuracy"][near].idxmax()
    return [int(best), *(int(row) for row in allowed.index if row != best)], ""


def _why(table: pd.DataFrame, chosen: int, budget: float) -> str:
    before, after = table.iloc[0], table.iloc[chosen]
    return (
        f"κ = {after['kappa']:g} was chosen {_within(budget)}: transport gap {before['transport_gap']:.3f} → "
        f"{after['transport_gap']:.3f} (chance alone {after['transport_floor']:.3f}) on held-out folds."
    )


def _within(budget: float) -> str:
    return f"within {100 * budget:g} point{'s' * (budget != 0.01)} of accuracy and at the same acceptance"


# --- islands ---------------------------------------------------------------------------------------------------------


def _islands(found: RecourseAudit, model: Any, people: Any, actions: ActionSet) -> float:
    """Share of the counterfactuals that are farther from any accepted person than accepted people are from another."""
    accepted = np.asarray(model.predict(people)) == model.favorable_label_
    after = found.recourse.counterfactuals
    has = found.recourse.has_action & found.recourse.rejected
    real = actions.encode(actions.table(people))[accepted]
    if len(real) < 3 or not has.any():
        return float("nan")
    moved = actions.encode(actions.table(after[has]))
    spread = np.nanstd(real, axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    real, moved = (np.nan_to_num(values / scale) for values in (real, moved))
    tree = NearestNeighbors(n_neighbors=2).fit(real)
    limit = np.quantile(tree.kneighbors(real)[0][:, 1], _FAR)
    return float((tree.kneighbors(moved, n_neighbors=1)[0][:, 0] > limit).mean())
