"""Boosted trees that are trained for equal recourse: the distance between the groups' costs is part of their loss."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from equirecourse._validation import Groups, check_groups, check_labels, favorable_index, split_features
from equirecourse.actions import DEFAULT_NORM, NORMS, ActionSet
from equirecourse.equalizers._boosting_fit import (
    SOFTNESS,
    BoostingProblem,
    default_booster,
    library_of,
    loss_weights,
    neutral,
)
from equirecourse.equalizers._experience import Experience
from equirecourse.equalizers._objective import CostObjective
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.equalizers._weighted import check_people, take_feature_names
from equirecourse.solvers import one_blas_thread

__all__ = ["EqualRecourseBoosting"]

Array = NDArray[np.float64]


class EqualRecourseBoosting(PlainState, ClassifierMixin, BaseEstimator):
    r"""Gradient boosting (LightGBM or XGBoost) with equal recourse across groups.

    Minimises the mean log-loss plus κ times the distance between the groups' distributions of cost, as
    :class:`EqualRecourseLinear` does: its derivative by each score is added to the gradient that the next tree is
    fitted to. A first share of the trees is fitted to the loss alone. In the end a constant is added to all scores, so
    that as many training people are accepted as by the plain booster. What comes out is an ordinary booster.

    A score is a log-odds and not a cost. With ``actions``, costs are what people experience: the exact cost of
    :func:`~equirecourse.find_recourse` for a sample of the rejected, renewed whenever about 1 / ``learning_rate`` trees
    have been added. Places on their ways to a yes are rows without a label, so that trees move the boundary and not
    only the scores of people. Of the stages in the second half, the one with the smallest
    objective is kept. Without ``actions`` the score that people lack stands for their cost: it can be a poor stand-in.

    Parameters
    ----------
    estimator : LGBMClassifier, XGBClassifier, a Pipeline that ends in one, or None, default=None
        The booster and its parameters; its objective is replaced. None is an LGBMClassifier with 100 trees of depth 4.
    kappa : float, default=1
        κ, in units of the mean loss; 0 is the plain booster. :func:`~equirecourse.equalize` finds one.
    actions : ActionSet, optional
        What people can change, for costs as they experience them.
    norm : str, default="l1"
        How changes add up, as in :func:`~equirecourse.find_recourse`; for ``actions``.
    max_people : int, default=2000
        Most rejected people whose cost is found at a time, others each time; for ``actions``.
    warm_up : float, default=0.25
        Share of the trees that are fitted to the loss alone.
    intersections : bool, default=True
        With several sensitive features, compare all combinations of their values, or each feature on its own.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the comparison, with a warning that names it.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    random_state : int, default=0
        Of the draw of people whose cost is found.
    n_jobs : int, optional
        Processes that find costs.

    Attributes
    ----------
    estimator_ : LGBMClassifier, XGBClassifier or Pipeline
        The fitted booster, an ordinary one: it can be saved, and explained, without this package.
    rounds_ : DataFrame
        One row for the plain booster and one per stage of trees: ``kind``, ``trees``, ``distance`` (D; with
        ``actions`` at the exact costs after the stage, and missing for the plain booster), ``loss``, ``accuracy``,
        ``acceptance``, ``rejected (group)``, and ``chosen``: the last, with ``actions`` one of the second half.
    classes_, favorable_label_
        The labels, and the one that means yes.

    See Also
    --------
    EqualRecourseLinear : the same objective for linear learners.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from equirecourse.datasets import load_credit
    >>> from equirecourse.equalizers import EqualRecourseBoosting
    >>> credit = load_credit(paper=True)
    >>> X, y, sex = credit.data.head(3000), credit.target[:3000], credit.sensitive_features["sex"].head(3000)
    >>> booster = LGBMClassifier(n_estimators=50, max_depth=3, class_weight="balanced", verbose=-1)
    >>> model = EqualRecourseBoosting(booster).fit(X, y, sensitive_features=sex)
    >>> bool(model.rounds_.distance.iloc[-1] < model.rounds_.distance.iloc[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "kappa": [Interval(Real, 0.0, None, closed="left")],
        "actions": [ActionSet, None],
        "norm": [StrOptions(set(NORMS))],
        "max_people": [Interval(Integral, 1, None, closed="left")],
        "warm_up": [Interval(Real, 0.0, 1.0, closed="left")],
        "intersections": ["boolean"],
        "min_rejected": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
    }
    _strength = "kappa"

    def __init__(
        self,
        estimator: Any = None,
        *,
        kappa: float = 1.0,
        actions: ActionSet | None = None,
        norm: str = DEFAULT_NORM,
        max_people: int = 2000,
        warm_up: float = 0.25,
        intersections: bool = True,
        min_rejected: int = 5,
        favorable_label: Any = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.kappa = kappa
        self.actions = actions
        self.norm = norm
        self.max_people = max_people
        self.warm_up = warm_up
        self.intersections = intersections
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the booster. A fit that fails leaves the model as it was.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Whatever the booster, or the pipeline, takes.
        y : array-like of shape (n_samples,)
            Two labels of any kind.
        sensitive_features : array-like, Series or DataFrame, optional
            The groups; several columns are crossed, or compared one by one with ``intersections=False``. Without them
            this is the plain booster.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each person.

        Returns
        -------
        self
            The fitted model.
        """
        (fitted,) = self.fit_path(
            X, y, sensitive_features=sensitive_features, penalties=[self.kappa], sample_weight=sample_weight
        )
        self.__dict__.update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
        take_feature_names(self, fitted)
        return self

    def fit_path(
        self, X: Any, y: Any, *, sensitive_features: Any, penalties: Any, sample_weight: Any = None
    ) -> list[Self]:
        """Fit once per κ, as ``fit`` would; the steps before the booster and the plain booster are fitted once.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in ``fit``.
        penalties : array-like of float
            Values of ``kappa``.

        Returns
        -------
        list
            Fitted copies of this model, one per value.
        """
        models = [clone(self).set_params(kappa=kappa) for kappa in penalties]
        if not models:
            return []
        for model in models:
            model._validate_params()
        problem = self._open(X, y, sensitive_features, sample_weight)
        with one_blas_thread():  # the objective's sums are too small for more
            plain = problem.plain()
            for model in models:
                problem.store(model, *problem.fit(plain, float(model.kappa)))
        return models

    def _open(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> BoostingProblem:
        whole = default_booster() if self.estimator is None else clone(self.estimator)
        steps, booster = (whole[:-1], whole[-1]) if isinstance(whole, Pipeline) else (None, whole)
        library = library_of(booster)
        X, y = check_people(X, y)
        classes = check_labels(y)
        yes = favorable_index(classes, self.favorable_label)
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        partitions: tuple[Groups, ...] = ()
        if sensitive_features is not None:
            tables = [sensitive_features] if self.intersections else split_features(sensitive_features)
            partitions = tuple(check_groups(table, len(y), at_least=2) for table in tables)
        seen = X
        if steps is not None and len(steps):
            seen = steps.fit_transform(X, y)
        upper = y == classes[1]
        experience = None
        if self.actions is not None:
            experience = Experience(
                X, self.actions, self.norm, classes[yes], self.max_people, self.random_state, self.n_jobs
            )
        return BoostingProblem(
            booster=neutral(booster, library, len(upper)),
            library=library,
            step=None if not isinstance(whole, Pipeline) else whole.steps[-1][0],
            steps=steps if steps is not None and len(steps) else None,
            X=seen,
            y=upper.astype(np.float64),
            people=weights,
            weights=loss_weights(booster, upper, weights),
            costs=CostObjective(partitions, weights, self.min_rejected, SOFTNESS) if partitions else None,
            classes=classes,
            sign=1.0 if yes == 1 else -1.0,
            warm_up=self.warm_up,
            experience=experience,
        )

    @property
    def _recourse_model(self) -> Any:
        """What decides: recourse is that of the fitted booster."""
        check_is_fitted(self)
        return self.estimator_

    def predict_proba(self, X: Any) -> Array:
        """Probability of each label, in the order of ``classes_``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of ``classes_[1]``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            Above zero for the second label.
        """
        chance = np.clip(self.predict_proba(X)[:, 1], 1e-300, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chance) - np.log1p(-np.minimum(chance, 1.0 - 1e-16)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted label of each person.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[np.asarray(self.estimator_.predict(X)).astype(int)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags
