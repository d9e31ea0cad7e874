"""Equal recourse for black boxes: anything that takes weights is fitted anew with other ones."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from equirecourse._validation import Groups, check_groups, check_labels, favorable_index
from equirecourse.actions import NORMS, ActionSet
from equirecourse.equalizers._group_weights import GroupLearner
from equirecourse.equalizers._out_of_fold import Meter
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.equalizers._reweighting_fit import Reweighting
from equirecourse.equalizers._weighted import check_people, check_takes_weights, take_feature_names
from equirecourse.recourse import find_recourse

__all__ = ["RecourseReweighting"]

Array = NDArray[np.float64]

_MANY = 200  # people of a group, where each takes an engine some work


def _fitted_has(name: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        model = self.estimator_ if hasattr(self, "estimator_") else self.estimator
        getattr(model, name)  # raises the right AttributeError
        return True

    return check


class RecourseReweighting(PlainState, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Any classifier that takes weights, fitted anew so that recourse costs the groups the same.

    Two strategies. ``"group"`` counts the rejected people of each group a second time, as examples of a yes where the
    group is farther than the others and of a no where it is nearer; how much is found by a search on the gaps of
    people who were held out, within a budget of accuracy. The best point is kept, and the plain model if none is
    better. ``"point"`` is the paper's Algorithm 2: the weight of a rejected person is the smallest distance of all
    rejected people over their own, and the classifier is fitted once more. It does not look at the groups.

    Parameters
    ----------
    estimator : classifier
        Anything whose ``fit`` takes ``sample_weight``; pipelines, by their last step.
    strategy : {"group", "point"}, default="group"
        See above.
    distance : {"auto", "surrogate"}, default="auto"
        How distances are measured: by the engine of :func:`~equirecourse.find_recourse` that fits the model, or by the
        local surrogates of Algorithm 2, which are much faster for large forests and less true.
    actions : ActionSet or None, default=None
        What a distance is; by default every column counts by its standard deviation, without limits.
    norm : str, default="l2"
        How the changes of several columns add up, as in :func:`~equirecourse.find_recourse`.
    accuracy_budget : float, default=0.01
        How much accuracy "group" may cost, on people held out.
    cv : int, splitter or iterable, default=3
        Folds in which everything that ``history_`` says is measured; a number is that of stratified folds.
    max_trials : int, default=12
        Points that the search of "group" tries.
    n_rounds : int, default=2
        Fits for one point: who is rejected changes with the model.
    max_people : int or None, default=None
        Most rejected people of each group that are measured in a fold; None is 200, or all if a formula measures them.
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
        The fitted model; predictions need nothing else, and no group.
    weights_ : ndarray or Series
        "point": the weight of each training person. "group": the second count of each group; zeros if the plain model
        was kept.
    history_ : DataFrame
        One row per model that was looked at, on people held out: ``kind`` ("plain", "placebo", "point", "trial",
        "second look" with more people), ``gap``, ``noise_floor``, ``relative_gap`` (gap over mean distance),
        ``accuracy``, ``acceptance``, mean distance and rejected people by group, and ``chosen``. Empty without groups.
    ending_ : str
        One sentence on what was kept, and why.
    classes_, favorable_label_
        The labels, and the one that means yes.

    See Also
    --------
    EqualRecourseBoosting : the balance inside the loss of boosted trees.
    EqualRecourseLinear : exact balance for linear learners.

    Notes
    -----
    "point" is faithful to the paper, and seldom closes a gap: it pulls the boundary towards all who are far, whatever
    their group. ``placebo=True`` shows what of its effect is refitting alone.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse import RecourseReweighting
    >>> from equirecourse.datasets import make_tilted_groups
    >>> toy = make_tilted_groups(random_state=0)
    >>> model = RecourseReweighting(LogisticRegression()).fit(
    ...     toy.data, toy.target, sensitive_features=toy.sensitive_features
    ... )
    >>> history = model.history_.set_index("kind")
    >>> float(model.history_.query("chosen").gap.iloc[0]) < float(history.gap["plain"])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "strategy": [StrOptions({"group", "point"})],
        "distance": [StrOptions({"auto", "surrogate"})],
        "actions": [ActionSet, None],
        "norm": [StrOptions(set(NORMS))],
        "accuracy_budget": [Interval(Real, 0.0, 1.0, closed="both")],
        "cv": ["cv_object"],
        "max_trials": [Interval(Integral, 1, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "max_people": [Interval(Integral, 2, None, closed="left"), None],
        "placebo": ["boolean"],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        strategy: str = "group",
        distance: str = "auto",
        actions: ActionSet | None = None,
        norm: str = "l2",
        accuracy_budget: float = 0.01,
        cv: Any = 3,
        max_trials: int = 12,
        n_rounds: int = 2,
        max_people: int | None = None,
        placebo: bool = False,
        favorable_label: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.distance = distance
        self.actions = actions
        self.norm = norm
        self.accuracy_budget = accuracy_budget
        self.cv = cv
        self.max_trials = max_trials
        self.n_rounds = n_rounds
        self.max_people = max_people
        self.placebo = placebo
        self.favorable_label = favorable_label
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier, look for weights, and fit it with them.

        Parameters
        ----------
        X : table of shape (n_samples, n_columns)
            Whatever the classifier takes.
        y : array-like of shape (n_samples,)
            Two labels of any kind.
        sensitive_features : array-like, Series or DataFrame, optional
            The groups; several columns are crossed. Without them "group" is the plain classifier.
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
        n = len(y)
        classes = check_labels(y)
        yes = favorable_index(classes, self.favorable_label)
        labels = (classes[1 - yes], classes[yes])
        weights = np.ones(n)
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        groups = None if sensitive_features is None else check_groups(sensitive_features, n, at_least=2)
        everybody = np.arange(n)
        learner = GroupLearner(self.estimator, X, y, weights, groups or _nobody(n), labels, self.n_rounds)
        plain = learner.plain(everybody)
        counts: Any = np.ones(n)
        history, estimator, ending = pd.DataFrame(), plain, "no groups were given: the plain model"
        if groups is not None or self.strategy == "point":
            rejected = _check_rejects(plain, X, labels)
            meter = self._meter(plain, rejected, X, y, groups or _nobody(n), labels[1])
            work = Reweighting(self, learner, meter, plain)
            history, estimator, counts, ending = work.point() if self.strategy == "point" else work.group()
        self.classes_, self.favorable_label_ = classes, labels[1]
        self.estimator_, self.weights_, self.history_, self.ending_ = estimator, counts, history, ending
        take_feature_names(self, estimator)
        return self

    def _meter(
        self, plain: Any, rejected: NDArray[np.bool_], X: Any, y: NDArray[Any], groups: Groups, favorable_label: Any
    ) -> Meter:
        actions = ActionSet.free(X) if self.actions is None else self.actions
        most = self.max_people
        if most is None and self.distance == "auto":
            person = _safe_indexing(X, np.flatnonzero(rejected)[:1])
            one = find_recourse(
                plain, person, actions=actions, norm=self.norm, favorable_label=favorable_label, time_limit=1
            )
            most = None if one.method == "linear" else _MANY
        return Meter(
            X, y, groups, favorable_label, self.distance, actions, self.norm, most, self.time_limit, self.n_jobs,
            self.random_state,
        )  # fmt: skip

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


def _nobody(n: int) -> Groups:
    """One group of everybody."""
    return Groups(np.zeros(n, dtype=np.intp), ("everybody",), ("group",))


def _check_rejects(model: Any, X: Any, labels: tuple[Any, Any]) -> NDArray[np.bool_]:
    rejected = np.asarray(model.predict(X)) == labels[0]
    if rejected.all() or not rejected.any():
        whom = "everybody" if rejected.all() else "nobody"
        raise ValueError(
            f"The plain model rejects {whom} of {len(rejected)} people, so that there is no recourse to compare; "
            "balance its classes (class_weight='balanced') or give it features that tell."
        )
    return np.asarray(rejected)
