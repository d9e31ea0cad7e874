"""Boosted trees that are trained for equal recourse: the balance is part of their loss."""

from __future__ import annotations

import copy
import json
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from equirecourse._validation import Groups, check_groups, check_labels, favorable_index
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.equalizers._weighted import check_people, take_feature_names
from equirecourse.exceptions import SmallGroupWarning

__all__ = ["EqualRecourseBoosting"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class EqualRecourseBoosting(PlainState, ClassifierMixin, BaseEstimator):
    r"""Gradient boosting (XGBoost or LightGBM) with equal recourse across groups.

    Minimises the mean log-loss plus :math:`\lambda \|u\|`, where :math:`u_g` is the mean score of the people of group g
    whom the model rejects, less the mean score of all whom it rejects; with :math:`\lambda = \infty`, the default,
    :math:`u = 0` is demanded. Who is rejected is looked up again before each tree. A multiplier per group grows with
    the difference that is left and adds to the gradient that the next tree is fitted to (an augmented Lagrangian).

    A score is a log-odds and not a distance: what is balanced is the mean score of the rejected, as in the paper's SVM.
    How far people have to go is measured afterwards, by :func:`~equirecourse.find_recourse`, which is exact for these
    models.

    Parameters
    ----------
    estimator : XGBClassifier, LGBMClassifier or None, default=None
        The booster and its parameters; its objective is replaced. None is an LGBMClassifier with 100 trees of depth 4.
    recourse_penalty : float, default=inf
        λ, the price of a unit of difference in mean score, in units of the mean loss; 0 is the plain booster.
    rate : float, default=0.2
        How fast the multiplier follows the difference.
    warm_up : float, default=0.1
        Share of the trees that are fitted before the balance begins: at first everybody has the same score.
    normalize : {"rejected", "group"}, default="rejected"
        Average over a group's rejected people, or divide by the size of the whole group, as in
        :class:`EqualRecourseSVC`.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the balance of that tree.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.

    Attributes
    ----------
    estimator_ : XGBClassifier or LGBMClassifier
        The fitted booster, an ordinary one: it can be saved, and explained, without this package.
    rounds_ : DataFrame
        One row per tree: ``difference`` (‖u‖ before it), ``multiplier`` (its norm), ``rejected``, ``loss``.
    multiplier_ : ndarray of shape (n_groups,)
        The last multipliers.
    classes_, favorable_label_
        The labels, and the one that means yes.

    See Also
    --------
    RecourseReweighting : for models that do not let us into their loss.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from equirecourse.datasets import load_credit
    >>> from equirecourse.equalizers import EqualRecourseBoosting
    >>> credit = load_credit(paper=True)
    >>> X, y, sex = credit.data.head(3000), credit.target[:3000], credit.sensitive_features["sex"].head(3000)
    >>> booster = LGBMClassifier(n_estimators=50, max_depth=3, verbose=-1)
    >>> model = EqualRecourseBoosting(booster).fit(X, y, sensitive_features=sex)
    >>> bool(model.rounds_.difference.iloc[-1] < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "recourse_penalty": [Interval(Real, 0.0, None, closed="both")],
        "rate": [Interval(Real, 0.0, None, closed="neither")],
        "warm_up": [Interval(Real, 0.0, 1.0, closed="left")],
        "normalize": [StrOptions({"rejected", "group"})],
        "min_rejected": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        recourse_penalty: float = np.inf,
        rate: float = 0.2,
        warm_up: float = 0.1,
        normalize: str = "rejected",
        min_rejected: int = 5,
        favorable_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.recourse_penalty = recourse_penalty
        self.rate = rate
        self.warm_up = warm_up
        self.normalize = normalize
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the booster.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Whatever the booster takes.
        y : array-like of shape (n_samples,)
            Two labels of any kind.
        sensitive_features : array-like, Series or DataFrame, optional
            The groups; several columns are crossed. Without them this is the plain booster.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each person.

        Returns
        -------
        self
            The fitted model.
        """
        self._validate_params()
        booster = _default_booster() if self.estimator is None else clone(self.estimator)
        library = _library(booster)
        X, y = check_people(X, y)
        n = len(y)
        classes = check_labels(y)
        yes = favorable_index(classes, self.favorable_label)
        weights = np.ones(n)
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        groups = None if sensitive_features is None else check_groups(sensitive_features, n, at_least=2)
        objective = _Objective(
            y=(y == classes[1]).astype(np.float64),
            weights=weights * (n / weights.sum()),
            groups=groups,
            sign=1.0 if yes == 1 else -1.0,
            model=self,
            start=int(self.warm_up * booster.get_params()["n_estimators"]),
        )
        booster.set_params(objective=objective)
        # The labels go in as 0 and 1: the libraries disagree about what other labels they take.
        booster.fit(X, (y == classes[1]).astype(int))
        self.estimator_ = (_plain_xgboost if library == "xgboost" else _plain_lightgbm)(booster)
        self.classes_, self.favorable_label_ = classes, classes[yes]
        self.rounds_, self.multiplier_ = pd.DataFrame(objective.rounds), objective.multiplier
        if objective.small:
            names = ", ".join(repr(groups.labels[k]) for k in sorted(objective.small)) if groups is not None else ""
            warnings.warn(
                f"group {names} had fewer than min_rejected={self.min_rejected} rejected people before some trees, and "
                "was left out of their balance.",
                SmallGroupWarning,
                stacklevel=2,
            )
        take_feature_names(self, booster)
        return self

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


class _Objective:
    """Gradient and curvature of the loss with its balance; remembers the multipliers from tree to tree."""

    def __init__(
        self, *, y: Array, weights: Array, groups: Groups | None, sign: float, model: EqualRecourseBoosting, start: int
    ) -> None:
        self.y, self.weights, self.groups, self.sign, self.start = y, weights, groups, sign, start
        self.penalty, self.rate = model.recourse_penalty, model.rate
        self.by_group, self.min_rejected = model.normalize == "group", model.min_rejected
        self.multiplier = np.zeros(0 if groups is None else len(groups))
        self.rounds: list[dict[str, float]] = []
        self.small: set[int] = set()

    def __deepcopy__(self, memo: Any) -> _Objective:
        return self  # a booster that copies its parameters still has to speak to this one

    def __call__(self, y_true: Any, scores: Any) -> tuple[Array, Array]:  # noqa: ARG002 - the libraries pass labels
        f = np.asarray(scores, dtype=np.float64)
        chance = 1.0 / (1.0 + np.exp(-f))
        gradient, curvature = self.weights * (chance - self.y), self.weights * chance * (1.0 - chance)
        rejected = self.sign * f < 0 if self.sign > 0 else f > 0
        difference = np.zeros(len(self.multiplier))
        if self.groups is not None and self.penalty > 0 and len(self.rounds) >= self.start:
            contrasts = self._contrasts(rejected)
            difference = contrasts.T @ f
            self.multiplier = self._clipped(self.multiplier + self.rate * difference)
            pull = self._clipped(self.multiplier + self.rate * difference)
            # Nobody is pulled harder than by a loss of their own: a multiplier that runs away takes no trees along.
            gradient = gradient + np.clip(len(f) * (contrasts @ pull), -self.weights, self.weights)
        loss = float((self.weights * (np.logaddexp(0.0, f) - self.y * f)).mean())
        self.rounds.append(
            {
                "difference": float(np.linalg.norm(difference)),
                "multiplier": float(np.linalg.norm(self.multiplier)),
                "rejected": int(rejected.sum()),
                "loss": loss,
            }
        )
        return gradient, np.maximum(curvature, 1e-6)

    def _clipped(self, multiplier: Array) -> Array:
        size = float(np.linalg.norm(multiplier))
        return multiplier if size <= self.penalty else multiplier * (self.penalty / size)

    def _contrasts(self, rejected: Mask) -> Array:
        """One column per group: its mean score over the rejected, less that of all rejected, as weights of people."""
        assert self.groups is not None
        k = len(self.groups)
        codes, mass = self.groups.codes, self.weights * rejected
        counts = np.bincount(codes[rejected], minlength=k)
        enough = counts >= self.min_rejected
        self.small |= set(np.flatnonzero(~enough).tolist())
        contrasts = np.zeros((len(codes), k))
        if enough.sum() < 2:
            return contrasts
        used = rejected & enough[codes]
        total = np.bincount(codes, weights=self.weights if self.by_group else mass, minlength=k)
        contrasts[used, codes[used]] = (self.weights / total[codes])[used]
        mean = contrasts.sum(axis=1) / enough.sum()
        contrasts[:, enough] -= mean[:, None]
        return contrasts


def _default_booster() -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise ImportError(
            'EqualRecourseBoosting needs LightGBM or XGBoost; run pip install "equirecourse[boost]".'
        ) from None
    return LGBMClassifier(n_estimators=100, max_depth=4, verbose=-1)


def _library(booster: Any) -> str:
    name = type(booster).__name__
    library = type(booster).__module__.split(".")[0]
    if (library, name) not in (("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")):
        raise ValueError(f"EqualRecourseBoosting trains an XGBClassifier or an LGBMClassifier, got {name}.")
    if library == "xgboost":
        booster.set_params(base_score=0.5)  # even odds: the trees begin at a score of zero
    return library


def _plain_xgboost(booster: Any) -> Any:
    """The same trees under the library's own log-loss, so that probabilities are probabilities."""
    saved = json.loads(bytes(booster.get_booster().save_raw("json")).decode())
    learner = saved["learner"]
    learner["objective"] = {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}
    learner["learner_model_param"]["base_score"] = "5E-1"
    plain = clone(booster).set_params(objective="binary:logistic", base_score=0.5)
    plain.load_model(bytearray(json.dumps(saved).encode()))
    return plain


def _plain_lightgbm(booster: Any) -> Any:
    """The same trees under the library's own log-loss, so that probabilities are probabilities."""
    from lightgbm import Booster

    plain = copy.copy(booster)
    text = booster.booster_.model_to_string()
    plain._Booster = Booster(
        model_str=text.replace("\nfeature_names=", "\nobjective=binary sigmoid:1\nfeature_names=", 1)
    )
    plain.set_params(objective="binary")
    plain._objective = "binary"
    return plain
