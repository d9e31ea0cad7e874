"""What both equalizers share: parameters, checks, the rounds, and predictions by the sign of a score."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import Hidden, Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from equirecourse._validation import (
    Groups,
    check_finite,
    check_groups,
    check_labels,
    favorable_index,
    refuse_masked,
    split_features,
)
from equirecourse.equalizers._contrasts import Contrasts
from equirecourse.equalizers._penalty import fit_bound, fit_penalty
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.equalizers._problem import FitData, Problem
from equirecourse.equalizers._rounds import (
    Round,
    RoundFit,
    Rounds,
    Setting,
    check_plain,
    doubted_if_constant,
    look,
    run_rounds,
)

__all__ = ["DEFAULT_SHARES", "DEPRECATED", "EqualRecourseEstimator"]

Array = NDArray[np.float64]

DEFAULT_SHARES = (0.8, 0.6, 0.4, 0.2, 0.1, 0.05)  # of the plain difference, that penalties worth comparing leave

DEPRECATED = "deprecated"  # default of parameters that will go

_ROUND_OPTIONS: dict[str, list[Any]] = {
    "memory": [Interval(Integral, 1, None, closed="left")],
    "on_cycle": [StrOptions({"mix", "stop", "last"})],
    "balance_tol": [Interval(Real, 0.0, None, closed="left")],
}
_ROUND_DEFAULTS = {"memory": 1, "on_cycle": "mix", "balance_tol": 1e-3}
_AT_BOUNDARY = 1e-5  # of a score: above the rounding errors of single precision, in which large kernels are solved


class EqualRecourseEstimator(PlainState, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the equalizers; not for use by itself."""

    recourse_penalty: float
    penalty: str
    difference_bound: float | None
    normalize: str
    intersections: bool
    min_rejected: int
    favorable_label: Any
    max_rounds: int
    round_options: dict[str, Any] | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "recourse_penalty": [Interval(Real, 0.0, None, closed="both")],
        "penalty": [StrOptions({"absolute", "squared"})],
        "difference_bound": [Interval(Real, 0.0, None, closed="left"), None],
        "normalize": [StrOptions({"rejected", "group"})],
        "intersections": ["boolean"],
        "min_rejected": [Interval(Integral, 1, None, closed="left")],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "round_options": [dict, None],
        **{name: [*allowed, Hidden(StrOptions({DEPRECATED}))] for name, allowed in _ROUND_OPTIONS.items()},
    }

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model. A fit that fails leaves the model as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data (for a precomputed kernel, the kernel matrix).
        y : array-like of shape (n_samples,)
            Two labels of any kind.
        sensitive_features : array-like, Series or DataFrame, optional
            The groups, one row per person; several columns are crossed, or balanced one by one with
            ``intersections=False``. Without them this is the plain model.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each person, in the loss and in the group means.

        Returns
        -------
        self
            The fitted model.
        """
        before = dict(self.__dict__)
        try:
            problem = self._open(X, y, sensitive_features, sample_weight)
            with problem.at_work():
                rounds = self._run_rounds(problem, problem.fit) if problem.data.partitions else None
                self._store(problem, rounds.chosen.fit if rounds is not None else problem.fit(None))
            self._store_common(problem.data, rounds)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def fit_path(
        self, X: Any, y: Any, *, sensitive_features: Any, penalties: Any, sample_weight: Any = None
    ) -> list[Self]:
        """Fit once per penalty, as ``fit`` would, but each from where the one before ended.

        The data are checked once, the plain model and a kernel matrix are made once, and the solver of a kernel model
        starts from the last solution: a path takes a fraction of the time of its fits. What a penalty has made equal is
        as equal under a larger one, and is not fitted again. This model is not fitted.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in ``fit``.
        penalties : array-like of float
            Values of ``recourse_penalty`` (of ``kappa``, where that is the price of inequality); rising ones are the
            quickest.

        Returns
        -------
        list
            Fitted copies of this model, one per penalty.

        Examples
        --------
        >>> from equirecourse import EqualRecourseSVC
        >>> from equirecourse.datasets import make_tilted_groups
        >>> toy = make_tilted_groups(random_state=0)
        >>> path = EqualRecourseSVC(kernel="linear").fit_path(
        ...     toy.data, toy.target, sensitive_features=toy.sensitive_features, penalties=[0.0, 1.0, float("inf")]
        ... )
        >>> gaps = [model.rounds_.query("chosen")["gap"].item() for model in path]
        >>> gaps == sorted(gaps, reverse=True)
        True
        """
        if sensitive_features is None:
            raise ValueError("fit_path follows a difference between groups; pass them as sensitive_features.")
        models = [clone(self).set_params(**{self._strength: penalty}) for penalty in penalties]
        for model in models:
            model._check_parameters()
        if not models:
            return []
        opened = clone(models[0])
        problem = opened._open(X, y, sensitive_features, sample_weight)
        with problem.at_work():
            plain = problem.fit(None)
        rounds: Rounds | None = None
        for model in models:
            # What the checks found out about the data: the number and the names of its features, and steps before.
            model.__dict__.update({k: v for k, v in opened.__dict__.items() if k.endswith("_in_") or k == "steps_"})
            problem.model = model
            with problem.at_work():
                if rounds is None or not problem.repeats(rounds):
                    rounds = model._run_rounds(problem, lambda found: plain if found is None else problem.fit(found))
                model._store(problem, rounds.chosen.fit)
            model._store_common(problem.data, rounds)
        return models

    def penalty_path(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        shares: Any = DEFAULT_SHARES,
        sample_weight: Any = None,
    ) -> Array:
        """Squared penalties that leave given shares of the plain model's difference.

        The scale of a penalty depends on the data, the loss and C. This finds the range that matters: for each share,
        the ``recourse_penalty`` of ``penalty="squared"`` at which that share of the difference remains, for the people
        that the plain model rejects (the first round). The model itself is not fitted.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in ``fit``.
        shares : array-like of float
            Shares between 0 and 1.

        Returns
        -------
        ndarray
            One penalty per share.
        """
        if sensitive_features is None:
            raise ValueError("penalty_path measures a difference between groups; pass them as sensitive_features.")
        model = clone(self)
        problem = model._open(X, y, sensitive_features, sample_weight)
        plain = look(model._setting(problem.data), 0, "plain", problem.fit_at(None, 0.0), None, None)
        check_plain(plain, model._setting(problem.data))
        fit_at = partial(problem.fit_at, plain.own)
        whole = float(np.linalg.norm(fit_at(0.0).differences))
        if whole == 0:
            return np.zeros(len(shares))

        def size(fit: RoundFit) -> float:
            return float(np.linalg.norm(fit.differences)) / whole

        natural = problem.natural_stiffness(plain.own)
        found = {share: fit_bound(fit_at, size, share, natural, tol=0.05).stiffness for share in map(float, shares)}
        # Less of the difference takes more of a penalty; a learner's own tolerance may blur that.
        order = sorted(found, reverse=True)
        rising = dict(zip(order, np.maximum.accumulate([found[share] for share in order]), strict=True))
        return np.array([rising[share] for share in map(float, shares)])

    @property
    def _strength(self) -> str:
        """Name of the parameter that says how much to balance."""
        return "recourse_penalty"

    @abstractmethod
    def _open(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Problem:
        """Check parameters and data, and set up what all fits share."""

    @abstractmethod
    def _store(self, problem: Any, fit: Any) -> None:
        """Set the fitted attributes."""

    def _accepted(self) -> dict[str, Any]:
        """What kinds of X are taken, in the words of ``validate_data``."""
        return {"accept_sparse": "csr"}

    def _check_training(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Features and labels to fit to, as arrays."""
        refuse_masked(X, name="X")
        refuse_masked(y, name="y")
        # Missing values get one sentence of ours, with the feature and the way out, instead of scikit-learn's four.
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False, **self._accepted())
        check_finite(X, getattr(self, "feature_names_in_", None))
        return X, y

    def _check_people(self, X: Any) -> Any:
        """Features of people to judge, as an array."""
        refuse_masked(X, name="X")
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False, **self._accepted())
        check_finite(X, getattr(self, "feature_names_in_", None))
        return X

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.difference_bound is not None and not np.isinf(self.recourse_penalty):
            raise ValueError(
                f"recourse_penalty={self.recourse_penalty:g} and difference_bound={self.difference_bound:g} are two "
                "ways to say how much to balance; set one of them."
            )

        options, name = self.round_options or {}, type(self).__name__
        unknown = [option for option in options if option not in _ROUND_OPTIONS]
        if unknown:
            raise ValueError(f"round_options has no {unknown[0]!r}; it may hold {', '.join(_ROUND_OPTIONS)}.")
        validate_parameter_constraints({key: _ROUND_OPTIONS[key] for key in options}, options, caller_name=name)
        for option in _ROUND_OPTIONS:
            if getattr(self, option) != DEPRECATED:
                warnings.warn(
                    f"The parameter {option} is deprecated and will be gone in the next release; use "
                    f"round_options={{{option!r}: {getattr(self, option)!r}}}.",
                    FutureWarning,
                    stacklevel=4,
                )

    @property
    def _round_options(self) -> dict[str, Any]:
        given = {option: getattr(self, option) for option in _ROUND_OPTIONS}
        deprecated = {option: value for option, value in given.items() if value != DEPRECATED}
        return {**_ROUND_DEFAULTS, **deprecated, **(self.round_options or {})}

    def _check_fit_data(self, X: Any, y: NDArray[Any], sensitive_features: Any, sample_weight: Any) -> FitData:
        """Labels, weights and groups, checked together; people of weight zero are left out, as if they were absent."""
        try:
            check_classification_targets(y)
        except TypeError:  # labels that do not compare, for which scikit-learn has no words
            check_labels(y)
            raise
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        rows = np.flatnonzero(weights > 0)
        if len(rows) == 0:
            raise ValueError(
                "sample_weight is zero for everybody; give at least one person of each class a positive weight."
            )
        classes = check_labels(y[rows])
        favorable = favorable_index(classes, self.favorable_label)
        partitions: tuple[Groups, ...] = ()
        if sensitive_features is not None:
            tables = [sensitive_features] if self.intersections else split_features(sensitive_features)
            partitions = tuple(check_groups(table, X.shape[0], at_least=2, among=rows) for table in tables)
        sign = 1.0 if favorable == 1 else -1.0
        signed = np.where(y[rows] == classes[favorable], 1.0, -1.0)
        weighted = sample_weight is not None
        if len(rows) == len(weights):  # everybody: no copy of what may be most of the memory
            return FitData(X, y, signed, weights, weighted, partitions, classes, sign, rows)
        return FitData(X[rows], y[rows], signed, weights[rows], weighted, partitions, classes, sign, rows)

    def _setting(self, data: FitData) -> Setting:
        return Setting(
            partitions=data.partitions,
            y=data.y,
            sample_weight=data.sample_weight,
            normalize=self.normalize,
            min_rejected=self.min_rejected,
            memory=self._round_options["memory"],
            ties_rejected=data.sign > 0,
        )

    def _run_rounds(self, problem: Problem, fit_contrasts: Callable[[Contrasts | None], RoundFit]) -> Rounds:
        bound, setting, options = self.difference_bound, self._setting(problem.data), self._round_options

        def satisfied(one: Round) -> bool:
            return self.recourse_penalty == 0 or (bound is not None and bound > 0 and one.gap <= bound)

        rounds = run_rounds(
            fit_contrasts,
            setting,
            max_rounds=self.max_rounds,
            on_cycle=options["on_cycle"],
            hard=np.isinf(self.recourse_penalty) and bound is None,
            tol=options["balance_tol"],
            satisfied=satisfied,
        )
        return doubted_if_constant(rounds)

    def _fit_under_penalty(self, problem: Problem, contrasts: Contrasts, tol: float) -> Any:
        """The member of the family of fits over κ that the parameters ask for; ``tol`` is that of log₁₀ κ."""
        fit_at = partial(problem.fit_at, contrasts)
        if self.difference_bound is not None:
            return fit_bound(fit_at, _geometric_size, self.difference_bound, problem.natural_stiffness(contrasts))
        if self.penalty == "squared" or np.isinf(self.recourse_penalty):
            return fit_at(self.recourse_penalty)
        return fit_penalty(fit_at, self.recourse_penalty, problem.natural_stiffness(contrasts), tol=tol)

    def _penalty_value(self, differences: Array, stiffness: float) -> float:
        """What the penalty adds to the objective."""
        size = float(np.linalg.norm(differences))
        if self.difference_bound is not None or self.penalty == "squared":
            return 0.5 * stiffness * size**2 if np.isfinite(stiffness) else 0.0
        return self.recourse_penalty * size if np.isfinite(self.recourse_penalty) else 0.0

    def _store_common(self, data: FitData, rounds: Rounds | None) -> None:
        self.classes_ = data.classes
        self.favorable_label_ = data.classes[1] if data.sign > 0 else data.classes[0]
        if rounds is not None:
            rounds = self._as_predicted(data, rounds)
        self.rounds_ = rounds.frame if rounds is not None else pd.DataFrame()
        self.converged_ = rounds.converged if rounds is not None else True
        self.ending_ = rounds.ending if rounds is not None else "nothing to balance"

    def _as_predicted(self, data: FitData, rounds: Rounds) -> Rounds:
        """The rounds with the chosen one's people at the boundary decided as ``predict`` decides.

        A person on the boundary has a score of zero but for rounding errors, and those of the solver are not those of
        the finished model.
        """
        chosen = rounds.chosen
        near = np.flatnonzero(np.abs(chosen.fit.scores) <= _AT_BOUNDARY)
        rejected = chosen.rejected.copy()
        if len(near) and self._is_fitted_to_features():
            rejected[near] = (self._scores(data.X[near]) > 0) != (data.sign > 0)
        if np.array_equal(rejected, chosen.rejected):
            return rounds
        place = next(i for i, one in enumerate(rounds.history) if one is chosen)
        last = rounds.history[place - 1] if place else None
        again = look(
            self._setting(data), chosen.number, chosen.kind, chosen.fit, chosen.built_on, last, rejected=rejected
        )
        history = (*rounds.history[:place], again, *rounds.history[place + 1 :])
        return replace(rounds, history=history, chosen=again)

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Signed score of people whose features have been checked."""

    def _is_fitted_to_features(self) -> bool:
        """Whether the data of a fit are people as ``predict`` takes them."""
        return True

    @abstractmethod
    def decision_function(self, X: Any) -> Array:
        """Signed score of each person; positive means ``classes_[1]``."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted label of each person.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _geometric_size(fit: RoundFit) -> float:
    """Norm of the differences as a distance; at least the largest difference between two groups."""
    return float(np.linalg.norm(fit.differences)) / fit.norm if fit.norm > 0 else 0.0
