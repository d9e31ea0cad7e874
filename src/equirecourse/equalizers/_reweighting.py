"""The paper's Algorithm 2: any classifier that takes weights, fitted once more with less weight on those far away."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from equirecourse._validation import Groups, check_groups, check_labels, favorable_index
from equirecourse.actions import EUCLIDEAN_NORM, NORMS, ActionSet
from equirecourse.equalizers._held_out_folds import split_rows
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.equalizers._weighted import (
    check_people,
    check_takes_weights,
    fit_weighted,
    reseeded,
    take_feature_names,
)
from equirecourse.exceptions import NoRecourseWarning, SmallGroupWarning, UndefinedRecourseWarning
from equirecourse.metrics import RecourseFrame
from equirecourse.recourse import SurrogateRecourse, find_recourse

__all__ = ["RecourseReweighting", "point_weights"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_BACKGROUND = 1000  # people to start searches from, or to learn the spread of the columns from
_PERMUTATIONS = 200  # of the groups, for a noise floor in each fold


def point_weights(distances: Array, rejected: NDArray[np.bool_]) -> Array:
    r"""Weight of each person: :math:`\min_{X^-} d / d(x)` for the rejected (the paper's namd), 1 for the accepted.

    Parameters
    ----------
    distances : ndarray of shape (n_people,)
        Distance of each person to the boundary; those of accepted people are not looked at.
    rejected : ndarray of bool
        Who is rejected.

    Returns
    -------
    ndarray of shape (n_people,)
        Weights between 0 and 1. Somebody on the boundary has weight 1, and with them the smallest distance is the
        smallest positive one; somebody without recourse is infinitely far and has weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.equalizers import point_weights
    >>> point_weights(np.array([0.5, 2.0, 1.0, np.inf]), np.array([True, True, False, True])).tolist()
    [1.0, 0.25, 1.0, 0.0]
    """
    weights = np.ones(len(distances))
    away = rejected & (distances > 0)
    if away.any() and np.isfinite(distances[away]).any():
        weights[away] = distances[away].min() / distances[away]
    return weights


def _fitted_has(name: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        model = self.estimator_ if hasattr(self, "estimator_") else self.estimator
        getattr(model, name)  # raises the right AttributeError
        return True

    return check


class RecourseReweighting(PlainState, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""The paper's Algorithm 2: a classifier, fitted once more with weights that fall with the distance to a yes.

    The classifier is fitted, and the distance :math:`d(x)` of each rejected person to its boundary is measured. Then it
    is fitted again, with weight :math:`\min_{X^-} d / d(x)` on each rejected person and 1 on each accepted one. The
    weights do not depend on the groups.

    Parameters
    ----------
    estimator : classifier
        Anything whose ``fit`` takes ``sample_weight``; pipelines, by their last step.
    distance : {"auto", "surrogate"}, default="auto"
        How distances are measured: by the engine of :func:`~equirecourse.find_recourse` that fits the model, exactly
        for linear models and trees, or by the local surrogates of Algorithm 2, which are much faster for large forests
        and less accurate.
    actions : ActionSet or None, default=None
        What a distance is; by default every column counts by its standard deviation, without limits.
    norm : str, default="l2"
        How the changes of several columns add up, as in :func:`~equirecourse.find_recourse`, whose default is another:
        the distances of the paper's Algorithm 2 are Euclidean.
    cv : int, splitter or iterable, default=3
        Folds in which everything that ``history_`` says is measured; a number is that of stratified folds.
    placebo : bool, default=False
        Also fit once more without the method (with other random numbers, where the classifier draws any), and say in
        ``history_`` what that does to the gap.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    time_limit : float or None, default=None
        Seconds per person for exact distances.
    n_jobs : int or None, default=None
        For distances, as in :func:`~equirecourse.find_recourse`.
    random_state : int, default=0
        Of folds, samples and the placebo.

    Attributes
    ----------
    estimator_ : classifier
        The model that was fitted with weights; predictions need nothing else, and no group.
    weights_ : ndarray of shape (n_samples,)
        The weight of each training person, before ``sample_weight``.
    history_ : DataFrame
        One row per model, on people held out: ``kind`` ("plain", "placebo", "reweighted"), ``gap``, ``noise_floor``,
        ``relative_gap`` (gap over mean distance), ``accuracy``, ``acceptance``, and mean distance and rejected people
        by group; distances are measured as ``distance`` says. Empty without groups.
    classes_, favorable_label_
        The labels, and the one that means yes.

    See Also
    --------
    EqualRecourseLinear : equal recourse for linear learners.
    EqualRecourseBoosting : equal recourse for boosted trees.
    point_weights : the weights alone.

    Notes
    -----
    Less weight on people who are far from a yes is less weight on the rejected. The method often changes mainly whom
    the model accepts: all distances shrink, and the gap with them. Look at ``acceptance`` and ``relative_gap`` in
    ``history_``, and with ``placebo=True`` at what fitting again does by itself.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse import RecourseReweighting
    >>> from equirecourse.datasets import make_tilted_groups
    >>> toy = make_tilted_groups(random_state=0)
    >>> model = RecourseReweighting(LogisticRegression()).fit(
    ...     toy.data, toy.target, sensitive_features=toy.sensitive_features
    ... )
    >>> float(model.weights_.min()) > 0, float(model.weights_.max())
    (True, 1.0)
    >>> print(model.history_[["kind", "gap", "relative_gap", "acceptance"]].round(2).to_string(index=False))
          kind  gap  relative_gap  acceptance
         plain 1.32          0.91         0.5
    reweighted 1.33          0.97         0.5
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "distance": [StrOptions({"auto", "surrogate"})],
        "actions": [ActionSet, None],
        "norm": [StrOptions(set(NORMS))],
        "cv": ["cv_object"],
        "placebo": ["boolean"],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        distance: str = "auto",
        actions: ActionSet | None = None,
        norm: str = EUCLIDEAN_NORM,
        cv: Any = 3,
        placebo: bool = False,
        favorable_label: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.distance = distance
        self.actions = actions
        self.norm = norm
        self.cv = cv
        self.placebo = placebo
        self.favorable_label = favorable_label
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier, weight the people it rejects, and fit it again.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            Whatever the classifier takes.
        y : array-like of shape (n_samples,)
            Two labels of any kind.
        sensitive_features : array-like, Series or DataFrame, optional
            The groups that ``history_`` compares; several columns are crossed. The model does not depend on them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each person.

        Returns
        -------
        self
            The fitted model.
        """
        self._validate_params()
        check_takes_weights(self.estimator)
        X, y = check_people(X, y)
        classes = check_labels(y)
        favorable_label = classes[favorable_index(classes, self.favorable_label)]
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        groups = None if sensitive_features is None else check_groups(sensitive_features, len(y), at_least=2)
        work = _Algorithm(self, X, y, weights, favorable_label)
        everybody = np.arange(len(y))
        plain = work.plain(everybody)
        _check_rejects(work.rejects(plain, everybody), compared=groups is not None)
        history = pd.DataFrame() if groups is None else work.history(groups)
        self.estimator_, self.weights_ = work.reweighted(everybody, plain)
        self.history_ = history
        self.classes_, self.favorable_label_ = classes, favorable_label
        take_feature_names(self, self.estimator_)
        return self

    @property
    def _recourse_model(self) -> Any:
        """What decides: recourse is that of the fitted classifier."""
        check_is_fitted(self)
        return self.estimator_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted label of each person.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @available_if(_fitted_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probability of each label, in the order of ``classes_``.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            People.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_fitted_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Score of each person; positive means ``classes_[1]``.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags.multi_class = False
        return tags


def _check_rejects(rejected: NDArray[np.bool_], *, compared: bool) -> None:
    """Refuse a plain model without recourse to compare, and say so where there is just nobody to weight."""
    if rejected.any() and not rejected.all():
        return
    whom = "everybody" if rejected.all() else "nobody"
    fact = f"The plain model rejects {whom} of {len(rejected)} people"
    way_out = "balance its classes (class_weight='balanced') or give it features that tell."
    if compared or rejected.all():
        raise ValueError(f"{fact}, so that there is no recourse to compare; {way_out}")
    warnings.warn(f"{fact}, so that all weights are 1; {way_out}", UndefinedRecourseWarning, stacklevel=3)


Measure = Callable[[Any, Index], Array]  # from a model and rows of rejected people to distances


@dataclass(frozen=True)
class _Fold:
    """Rows to fit to, rows to judge, the plain model of the former, and how distances are measured."""

    train: Index
    test: Index
    plain: Any
    measure: Measure


@dataclass(frozen=True)
class _Algorithm:
    """Algorithm 2 on any rows of the training people."""

    owner: RecourseReweighting
    X: Any
    y: NDArray[Any]
    weights: Array
    favorable_label: Any

    def plain(self, rows: Index, estimator: Any = None) -> Any:
        """The model without the method; ``estimator`` takes the place of the owner's."""
        # Some learners round differently with weights of one than without weights.
        weights = None if (self.weights[rows] == 1.0).all() else self.weights[rows]
        return self._fit(self.owner.estimator if estimator is None else estimator, rows, weights)

    def reweighted(self, rows: Index, plain: Any, measure: Measure | None = None) -> tuple[Any, Array]:
        """The model that is fitted with weights, and the weights."""
        rejected = self.rejects(plain, rows)
        if not rejected.any():
            return plain, np.ones(len(rows))
        measure = measure or self.measure(rows, plain)
        distances = np.zeros(len(rows))
        distances[rejected] = measure(plain, rows[rejected])
        weights = point_weights(distances, rejected)
        return self._fit(self.owner.estimator, rows, self.weights[rows] * weights), weights

    def _fit(self, estimator: Any, rows: Index, weights: Array | None) -> Any:
        everybody = np.array_equal(rows, np.arange(len(self.y)))
        return fit_weighted(estimator, self.X if everybody else _safe_indexing(self.X, rows), self.y[rows], weights)

    def rejects(self, model: Any, rows: Index) -> NDArray[np.bool_]:
        """Whom a model rejects."""
        return np.asarray(np.asarray(model.predict(_safe_indexing(self.X, rows))) != self.favorable_label)

    def measure(self, rows: Index, plain: Any) -> Measure:
        """How distances are measured, as learnt from the plain model of some people."""
        actions = ActionSet.free(self.X) if self.owner.actions is None else self.owner.actions
        some = np.random.default_rng(self.owner.random_state).permutation(rows)[:_BACKGROUND]
        background = _safe_indexing(self.X, some)
        if self.owner.distance == "auto":
            return partial(self._exact_distances, actions, background)
        surrogates = SurrogateRecourse(n_jobs=self.owner.n_jobs, random_state=self.owner.random_state)
        surrogates.fit(plain, background, favorable_label=self.favorable_label)
        return partial(self._surrogate_distances, actions, surrogates)

    def _exact_distances(self, actions: ActionSet, background: Any, model: Any, rows: Index) -> Array:
        owner = self.owner
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)  # whoever has no recourse is infinitely far
            found = find_recourse(
                model, _safe_indexing(self.X, rows), actions=actions, norm=owner.norm,
                favorable_label=self.favorable_label, background=background, time_limit=owner.time_limit,
                n_jobs=owner.n_jobs, random_state=owner.random_state,
            )  # fmt: skip
        return found.costs

    def _surrogate_distances(self, actions: ActionSet, surrogates: SurrogateRecourse, model: Any, rows: Index) -> Array:
        prices = [actions[name].cost for name in surrogates.columns_]
        people, label = _safe_indexing(self.X, rows), self.favorable_label
        return surrogates.find(model, people, prices=prices, norm=self.owner.norm, favorable_label=label).costs

    # --- people held out ---------------------------------------------------------------------------------------------

    def history(self, groups: Groups) -> pd.DataFrame:
        """A row per model: what it does to people it was not fitted to."""
        folds = []
        for train, test in self._splits(groups):
            plain = self.plain(train)
            folds.append(_Fold(train, test, plain, self.measure(train, plain)))
        rows = [self._judge("plain", folds, [fold.plain for fold in folds], groups)]
        if np.isnan(rows[0]["gap"]):
            counts = {label: rows[0][f"rejected ({label})"] for label in groups.labels}
            few = min(counts, key=lambda label: counts[label])
            raise ValueError(
                f"group {few!r} has {counts[few]} rejected people in {len(folds)} folds, and each fold needs one; use "
                "fewer folds (cv), or leave the group out."
            )
        if self.owner.placebo:
            other = reseeded(self.owner.estimator, self.owner.random_state)
            rows.append(self._judge("placebo", folds, [self.plain(fold.train, other) for fold in folds], groups))
        models = [self.reweighted(fold.train, fold.plain, fold.measure)[0] for fold in folds]
        rows.append(self._judge("reweighted", folds, models, groups))
        return pd.DataFrame(rows)

    def _splits(self, groups: Groups) -> list[tuple[Index, Index]]:
        """Folds with both labels and all groups in each."""
        cv = self.owner.cv
        if isinstance(cv, Integral):
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=self.owner.random_state)
        everybody, strata = np.arange(len(self.y)), 2 * groups.codes + (self.y == self.favorable_label)
        with warnings.catch_warnings():
            # A group with fewer members than folds: what it lacks is said by ``history``.
            warnings.filterwarnings("ignore", message="The least populated class")
            splits = split_rows(cv, everybody, strata, stratified=False)
        return [(everybody[train], everybody[test]) for train, test in splits]  # rows, also where masks were given

    def _judge(self, kind: str, folds: list[_Fold], models: list[Any], groups: Groups) -> dict[str, Any]:
        """Means over the folds.

        Gaps are averaged over folds, never taken of pooled people: each fold has a model and a scale of its own.
        """
        means, floors, right, accepted = [], [], 0, 0
        counts = np.zeros(len(groups), dtype=np.intp)
        for fold, model in zip(folds, models, strict=True):
            rejected = self.rejects(model, fold.test)
            out = fold.test[rejected]
            right += int((rejected == (self.y[fold.test] != self.favorable_label)).sum())
            accepted += len(fold.test) - len(out)
            counts += np.bincount(groups.codes[out], minlength=len(groups))
            costs = fold.measure(model, out) if len(out) else np.zeros(0)
            of_groups, floor = self._by_group(costs, groups.codes[out], len(groups))
            means.append(of_groups)
            floors.append(floor)
        people, distances = sum(len(fold.test) for fold in folds), np.mean(means, axis=0)
        row: dict[str, Any] = {
            "kind": kind,
            "gap": float(np.ptp(distances)),
            "noise_floor": float(np.mean(floors)),
            "relative_gap": float(np.ptp(distances) / np.mean(distances)),
            "accuracy": right / people,
            "acceptance": accepted / people,
        }
        for label, mean, count in zip(groups.labels, distances, counts, strict=True):
            row |= {f"mean distance ({label})": float(mean), f"rejected ({label})": int(count)}
        return row

    def _by_group(self, costs: Array, codes: Index, n_groups: int) -> tuple[Array, float]:
        """Mean of each group and noise floor, NaN if a group has nobody to average."""
        known = np.bincount(codes[np.isfinite(costs)], minlength=n_groups)
        if (known == 0).any():
            return np.full(n_groups, np.nan), float("nan")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            warnings.simplefilter("ignore", SmallGroupWarning)
            frame = RecourseFrame(
                costs=costs, rejected=np.ones(len(costs), dtype=bool), sensitive_features=codes, n_boot=1,
                n_permutations=_PERMUTATIONS, random_state=self.owner.random_state,
            )  # fmt: skip
            return frame.by_group["mean"].to_numpy(dtype=np.float64), frame.noise_floor
