"""Any linear learner, made recourse-equal through a transform of its features."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from equirecourse._validation import refuse_masked
from equirecourse.actions import DEFAULT_NORM, NORMS, ActionSet
from equirecourse.equalizers._base import DEFAULT_SHARES, DEPRECATED, EqualRecourseEstimator
from equirecourse.equalizers._contrasts import Contrasts
from equirecourse.equalizers._distribution import KAPPAS, minimise_distance
from equirecourse.equalizers._experience import Experience
from equirecourse.equalizers._liblinear import ExactLinearSVC, can_solve
from equirecourse.equalizers._losses import LinearLoss, read_loss
from equirecourse.equalizers._problem import FitData
from equirecourse.equalizers._projection import Projection
from equirecourse.equalizers._rounds import RoundFit, Rounds
from equirecourse.equalizers._weighted import check_people, take_feature_names
from equirecourse.exceptions import ConvergenceWarning
from equirecourse.solvers import one_blas_thread

__all__ = ["EqualRecourseLinear"]

Array = NDArray[np.float64]

_VISIBLE_VIOLATION = 1e-5  # in units of the margin
_SEARCH_TOL = 1e-3  # of log₁₀ κ: learners stop at tolerances of their own, a finer search would follow their noise


@dataclass(frozen=True)
class _LinearFit:
    """A fitted learner, with coefficients for the original features and what the rounds ask of it."""

    learner: Any
    coef: Array
    intercept: float
    scores: Array
    norm: float
    differences: Array
    stiffness: float
    dual_gap: float = float("nan")

    @property
    def balance_scores(self) -> Array:
        return self.scores


def _learner_has(attribute: str) -> Any:
    def check(self: EqualRecourseLinear) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), attribute)

    return check


class EqualRecourseLinear(EqualRecourseEstimator):
    r"""Linear classifier with equal recourse across groups, around any linear learner.

    Minimises the learner's own loss, with its ridge, plus κ times the distance between the groups' *distributions* of
    cost, over scores :math:`f(x) = w\cdot x + b`. Costs are compared relative to half of their upper quartile, and each
    person counts for one step of a distribution function: nothing is gained by making everybody's cost smaller, and no
    handful of people can carry the equality. A drift of the groups' acceptance is paid for, too. The user guide has
    the formulas ("Equalise a model").

    Without ``actions`` a cost is the distance to the boundary. With them it is what people experience: the exact cost
    of :func:`~equirecourse.find_recourse` under the action set, renewed a few times during the fit.

    ``objective="paper"`` is the method of the paper instead: the penalty :math:`\lambda\|u\|` on the difference
    :math:`u` between the groups' *mean* scores over the rejected people, by default with :math:`\lambda = \infty`, so
    that :math:`u = 0`. Because :math:`u = Z^\top w` is linear in the coefficients, this is the same learner on features
    from which the directions Z were taken out. Equal means can be had by a large weight on a rare category; look at the
    coefficients.

    Prediction needs neither a transform nor the group.

    Parameters
    ----------
    estimator : classifier with ``coef_`` and ``intercept_``, or a Pipeline that ends in one
        LogisticRegression, LinearSVC, RidgeClassifier, SGDClassifier, Perceptron, LinearDiscriminantAnalysis, ... The
        steps of a pipeline before it are fitted first. With ``actions``, give the whole pipeline, so that the action
        set speaks of the columns that people know.
    objective : {"auto", "distribution", "paper"}, default="auto"
        "distribution" as above, for learners that minimise a logistic loss, a hinge (smoothed), a squared hinge or a
        squared error, with a ridge or without. "auto" is that for these learners, and "paper" for the others.
    kappa : float, default=3.0
        κ, in units of the learner's mean loss; 0 is the plain learner. :func:`~equirecourse.equalize` finds one.
    actions : ActionSet, optional
        What people can change, for costs as they experience them.
    norm : str, default="l1"
        How changes add up, as in :func:`~equirecourse.find_recourse`; for ``actions``.
    max_people : int, default=2000
        Most rejected people whose cost is found at a time; for ``actions``.
    random_state : int, default=0
        Of the draw of these people.
    recourse_penalty : float, default=inf
        Of the paper's objective, as are all that follow but ``intersections``, ``min_rejected``, ``favorable_label``
        and ``solver``: λ, in units in which the learner's ridge is ½‖w‖². 0 is the plain learner, ``inf`` demands
        equality, which needs no ridge at all.
    penalty : {"absolute", "squared"}, default="absolute"
        Shape of the penalty: λ‖u‖ as in the paper, which takes several fits per round, or ½λ‖u‖², which takes one.
    difference_bound : float or None, default=None
        ε of the paper's Problem 1: the least balancing at which the mean distances differ by at most ε. Instead of a
        penalty, not besides one.
    normalize : {"rejected", "group"}, default="rejected"
        Average over a group's rejected people, or divide by the size of the whole group as the paper's formulas
        print. The latter needs a learner with the parameter ``fit_intercept``.
    intersections : bool, default=True
        With several sensitive features, balance all combinations of their values, or each feature on its own.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the balance, with a warning that names it.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    max_rounds : int, default=10
        Most rounds over the rejected set after the plain one.
    round_options : dict or None, default=None
        Options of the rounds over the rejected set. ``memory`` (1): number of latest rounds whose differences are all
        balanced; 2 steadies rounds that go back and forth, at some cost in accuracy. ``on_cycle`` ("mix"): under hard
        equality of two groups, look for a gap of zero between two rounds when the rounds do not end by themselves;
        "stop" keeps the best round, and "last" the last one, as the paper's loop does. ``balance_tol`` (1e-3): gap,
        relative to the mean distance, that counts as zero when the rounds do not end by themselves.
    memory, on_cycle, balance_tol : deprecated
        Give them in ``round_options``.
    solver : {"auto", "learner"}, default="auto"
        "learner" calls the learner's own ``fit``. "auto" does so too, except for a LinearSVC with the l2 penalty (and
        ``normalize="rejected"``), whose optimum it finds by itself. On at most 100 dense features (1,000 for the hinge
        with a large C) that is exact: in a fraction of the time, and where LIBLINEAR does not converge. On more, or
        sparse ones, it is coordinate descent or Newton's method to the learner's ``tol`` and ``max_iter``, each round
        from where the one before has ended.

    Attributes
    ----------
    estimator_ : classifier
        The fitted learner; its ``coef_`` and ``intercept_`` belong to the original features.
    coef_ : ndarray of shape (1, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,)
        Intercept.
    weight_norm_ : float
        ‖w‖; a score divided by it is the Euclidean distance to the decision boundary.
    dual_gap_ : float
        Primal minus dual objective, an upper bound on what the learner's objective could still lose; NaN for learners
        that were fitted by themselves.
    classes_ : ndarray of shape (2,)
        The labels.
    favorable_label_ : label
        The label that means yes.
    rounds_ : DataFrame
        One row per round. ``kind``: "plain"; "distribution" (a minimum of the objective, one per renewal of the
        prices); "rejected" (balances those whom the round before rejected) or "between" (two rounds). At the people
        the round itself rejects: ``gap`` of the mean distances, ``functional_gap`` of the mean scores,
        ``mean_distance``, ``relative_gap`` (gap over mean distance) and ``rejected (group)``, their number.
        ``balance_residual`` is the difference left at the people it balanced and ``stiffness`` the κ of the paper's
        squared penalty that it took; ``changed`` counts the decisions that differ from the round before. Then
        ``accuracy``, ``acceptance``, and ``chosen``.
    converged_ : bool
        Whether the chosen model balances the very people it rejects.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, where X has them.

    See Also
    --------
    EqualRecourseSVC : The same in the feature space of a kernel.

    Notes
    -----
    Sparse data stay sparse for a LinearSVC under ``solver="auto"``. For other learners they become dense when a
    direction is taken out of them.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from equirecourse import EqualRecourseLinear
    >>> from equirecourse.datasets import load_credit
    >>> credit = load_credit(paper=True)
    >>> X = StandardScaler().fit_transform(credit.data[:4000])
    >>> sex = credit.sensitive_features["sex"][:4000]
    >>> learner = LogisticRegression(class_weight="balanced")
    >>> model = EqualRecourseLinear(learner, kappa=30.0).fit(X, credit.target[:4000], sensitive_features=sex)
    >>> bool(model.rounds_["relative_gap"].iloc[-1] < model.rounds_["relative_gap"].iloc[0] / 2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "objective": [StrOptions({"auto", "distribution", "paper"})],
        "kappa": [Interval(Real, 0.0, None, closed="left")],
        "actions": [ActionSet, None],
        "norm": [StrOptions(set(NORMS))],
        "max_people": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "learner"})],
        **EqualRecourseEstimator._parameter_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        objective: str = "auto",
        kappa: float = 3.0,
        actions: ActionSet | None = None,
        norm: str = DEFAULT_NORM,
        max_people: int = 2000,
        random_state: int = 0,
        recourse_penalty: float = np.inf,
        penalty: str = "absolute",
        difference_bound: float | None = None,
        normalize: str = "rejected",
        intersections: bool = True,
        min_rejected: int = 5,
        favorable_label: Any = None,
        max_rounds: int = 10,
        round_options: dict[str, Any] | None = None,
        memory: Any = DEPRECATED,
        on_cycle: Any = DEPRECATED,
        balance_tol: Any = DEPRECATED,
        solver: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.kappa = kappa
        self.actions = actions
        self.norm = norm
        self.max_people = max_people
        self.random_state = random_state
        self.recourse_penalty = recourse_penalty
        self.penalty = penalty
        self.difference_bound = difference_bound
        self.normalize = normalize
        self.intersections = intersections
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label
        self.max_rounds = max_rounds
        self.round_options = round_options
        self.memory = memory
        self.on_cycle = on_cycle
        self.balance_tol = balance_tol
        self.solver = solver

    @property
    def _learner(self) -> Any:
        """The linear learner: the estimator, or the last step of a pipeline."""
        return self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator

    @property
    def _is_paper(self) -> bool:
        if self.objective == "auto":
            return read_loss(self._learner, np.array([0, 1]), np.ones(2)) is None
        return self.objective == "paper"

    @property
    def _strength(self) -> str:
        return "recourse_penalty" if self._is_paper else "kappa"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._is_paper:
            if self.actions is not None:
                raise ValueError(
                    "actions are what objective='distribution' takes costs from, and the paper's objective, which is "
                    f"used for {type(self._learner).__name__}, knows distances only; leave actions out."
                )
            return
        if read_loss(self._learner, np.array([0, 1]), np.ones(2)) is None:
            raise ValueError(
                f"objective='distribution' needs a learner with a smooth loss and a ridge, and "
                f"{type(self._learner).__name__} with these parameters has none that is known; use objective='paper'."
            )
        if self.difference_bound is not None or not np.isinf(self.recourse_penalty):
            raise ValueError(
                "recourse_penalty and difference_bound belong to objective='paper'; set that, or use kappa."
            )

    def _check_training(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        if not isinstance(self.estimator, Pipeline) or len(self.estimator) == 1:
            return super()._check_training(X, y)
        X, y = check_people(X, y)
        self.steps_ = clone(self.estimator[:-1])
        seen = check_array(self.steps_.fit_transform(X, y), accept_sparse="csr", dtype=np.float64)
        take_feature_names(self, self.steps_)
        return seen, y

    def _check_people(self, X: Any) -> Any:
        if not hasattr(self, "steps_"):
            return super()._check_people(X)
        refuse_masked(X, name="X")
        return check_array(self.steps_.transform(X), accept_sparse="csr", dtype=np.float64)

    def _open(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> _LinearProblem:
        self.__dict__.pop("steps_", None)
        self._check_parameters()
        people = X
        X, y = self._check_training(X, y)
        data = self._check_fit_data(X, y, sensitive_features, sample_weight)
        learner = type(self._learner).__name__
        if data.weighted and not has_fit_parameter(self._learner, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but {learner} does not take sample weights; "
                "leave it out, or use a learner that does."
            )
        if self.normalize == "group" and "fit_intercept" not in self._learner.get_params():
            raise ValueError(
                "normalize='group' ties the intercept to the coefficients and needs a learner with fit_intercept, "
                f"which {learner} does not have; use normalize='rejected'."
            )
        return _LinearProblem(self, data, people)

    def penalty_path(
        self, X: Any, y: Any, *, sensitive_features: Any, shares: Any = DEFAULT_SHARES, sample_weight: Any = None
    ) -> Array:
        """Strengths worth comparing: values of κ, or of the paper's squared penalty.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in ``fit``.
        shares : array-like of float
            Of the plain model's difference that squared penalties are to leave; κ is in units of the mean loss, and its
            values are the same for all data.

        Returns
        -------
        ndarray
            Values of ``kappa``, or of ``recourse_penalty``.
        """
        if not self._is_paper:
            return np.array(KAPPAS)
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        return super().penalty_path(X, y, shares=shares, **given)

    def _run_rounds(self, problem: Any, fit_contrasts: Callable[[Contrasts | None], RoundFit]) -> Rounds:
        if self._is_paper:
            return super()._run_rounds(problem, fit_contrasts)
        return minimise_distance(self, problem, fit_contrasts(None), self._setting(problem.data))

    def _store(self, problem: _LinearProblem, fit: _LinearFit) -> None:  # noqa: ARG002 - the base class passes it
        self.estimator_ = self._with_coefficients(fit)
        learner = self.estimator_[-1] if hasattr(self, "steps_") else self.estimator_
        self.coef_, self.intercept_ = learner.coef_, learner.intercept_
        self.weight_norm_ = fit.norm
        self.dual_gap_ = fit.dual_gap

    def _with_coefficients(self, fit: _LinearFit) -> Any:
        """The fitted learner, or the whole pipeline, as scikit-learn knows it."""
        learner = copy.copy(fit.learner)
        learner.coef_, learner.intercept_ = fit.coef[None, :], np.array([fit.intercept])
        learner.n_features_in_ = len(fit.coef)
        if hasattr(self, "steps_"):
            return Pipeline([*self.steps_.steps, (self.estimator.steps[-1][0], learner)])
        if hasattr(self, "feature_names_in_"):
            learner.feature_names_in_ = self.feature_names_in_
        return learner

    @property
    def _recourse_model(self) -> Any:
        """What decides, for engines that read pipelines; the model itself is read as it is if it has none."""
        if not hasattr(self, "steps_"):
            raise AttributeError("this model is not around a pipeline")
        return self.estimator_

    def decision_function(self, X: Any) -> Array:
        """Signed score of each person; positive means ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        return self._scores(self._check_people(X))

    def _scores(self, X: Any) -> Array:
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    @available_if(_learner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probability of each label, as the learner derives it from the score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        learner = self.estimator_[-1] if hasattr(self, "steps_") else self.estimator_
        return np.asarray(_without_names(learner).predict_proba(self._check_people(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


class _LinearProblem:
    """One training set, and fits of the learner for any contrasts."""

    def __init__(self, model: EqualRecourseLinear, data: FitData, people: Any = None) -> None:
        self.model, self.data, self.people = model, data, people
        self.exact: ExactLinearSVC | None = None
        # A balance that ties the intercept moves it out of the learner's own penalty: left to the learner.
        if model.solver == "auto" and model.normalize == "rejected" and can_solve(model._learner):
            model._learner._validate_params()
            self.exact = ExactLinearSVC(model._learner, data.X, data.labels, data.sample_weight)

    @cached_property
    def experience(self) -> Experience | None:
        """Where prices come from, if there are actions."""
        model, data = self.model, self.data
        if model.actions is None:
            return None
        everybody = len(data.rows) == _num_samples(self.people)
        return Experience(
            self.people if everybody else _safe_indexing(self.people, data.rows), model.actions, model.norm,
            data.classes[1] if data.sign > 0 else data.classes[0], model.max_people, model.random_state,
        )  # fmt: skip

    @cached_property
    def loss(self) -> LinearLoss:
        """What the learner minimises."""
        loss = read_loss(self.model._learner, self.data.labels, self.data.sample_weight)
        assert loss is not None, "checked with the parameters"
        return loss

    def decider(self, fit: _LinearFit) -> Any:
        """A fit as a model that can be asked."""
        return self.model._with_coefficients(fit)

    def moved(self, plain: _LinearFit, coef: Array, intercept: float, scores: Array) -> _LinearFit:
        """A fit with other coefficients; they and the scores are those of the favourable label."""
        return replace(
            plain, coef=self.data.sign * coef, intercept=self.data.sign * intercept, scores=scores,
            norm=float(np.linalg.norm(coef)), dual_gap=float("nan"),
        )  # fmt: skip

    def natural_stiffness(self, contrasts: Contrasts) -> float:
        """About where the penalty weighs as much as a loss of one unit per person."""
        Z = self.data.X.T @ contrasts.weights
        return len(self.data.y) / max(float((np.asarray(Z) ** 2).sum() + (contrasts.sums**2).sum()), 1e-300)

    def repeats(self, rounds: Rounds) -> bool:  # noqa: ARG002
        """A learner is asked again: nothing is known of how it stops."""
        return False

    def at_work(self) -> AbstractContextManager[Any]:
        """A learner does as it likes; our own solvers have threads of their own, or steps too small for any."""
        return nullcontext() if self.exact is None and self.model._is_paper else one_blas_thread()

    def fit(self, contrasts: Contrasts | None) -> _LinearFit:
        """Fit for the given contrasts, under the model's penalty or bound."""
        if contrasts is None or len(contrasts) == 0:
            return self.fit_at(None, 0.0)
        fit: _LinearFit = self.model._fit_under_penalty(self, contrasts, _SEARCH_TOL)
        return fit

    def fit_at(self, contrasts: Contrasts | None, stiffness: float) -> _LinearFit:
        """Fit under the squared penalty of the given stiffness."""
        data, learner = self.data, clone(self.model._learner)
        if self.exact is not None:
            return self._exactly(self.exact, learner, contrasts, stiffness)
        features, projection = data.X, None
        if contrasts is not None and stiffness > 0:
            projection = Projection.along(np.asarray(data.X.T @ contrasts.weights), contrasts.sums, stiffness)
            features = projection.transform(data.X)
            if projection.shift is not None:
                learner.set_params(fit_intercept=False)
        weights = {"sample_weight": data.sample_weight} if data.weighted else {}
        learner.fit(features, data.labels, **weights)
        coef, intercept = _coefficients(learner)
        if projection is not None:
            coef, intercept = projection.carry_back(coef, intercept)
        scores = data.sign * (np.asarray(data.X @ coef) + intercept)
        differences = np.empty(0) if contrasts is None else contrasts.weights.T @ scores
        return _LinearFit(learner, coef, intercept, scores, float(np.linalg.norm(coef)), differences, stiffness)

    def _exactly(
        self, exact: ExactLinearSVC, learner: Any, contrasts: Contrasts | None, stiffness: float
    ) -> _LinearFit:
        """The same through solvers that leave the features as they are."""
        data, projection = self.data, None
        if contrasts is not None and stiffness > 0:
            projection = Projection.along(np.asarray(data.X.T @ contrasts.weights), contrasts.sums, stiffness)
        found = exact.fit(learner, projection)
        if found.violation > max(learner.tol, _VISIBLE_VIOLATION):
            warnings.warn(
                f"The solver stopped after {found.n_iter} iterations with a violation of {found.violation:.2g} against "
                f"tol={learner.tol:g} of {type(learner).__name__}; scale the features, lower C, raise its max_iter, or "
                "use solver='learner'.",
                ConvergenceWarning,
                stacklevel=2,
            )
        scores = data.sign * found.scores
        differences = np.empty(0) if contrasts is None else contrasts.weights.T @ scores
        norm = float(np.linalg.norm(found.coef))
        return _LinearFit(learner, found.coef, found.constant, scores, norm, differences, stiffness, found.gap)


def _without_names(learner: Any) -> Any:
    """A shallow copy that takes arrays without a complaint about missing feature names, which were checked already."""
    copy = clone(learner)
    copy.__dict__.update({k: v for k, v in learner.__dict__.items() if k != "feature_names_in_"})
    return copy


def _coefficients(learner: Any) -> tuple[Array, float]:
    """Coefficients and intercept of a fitted binary linear learner."""
    coef = getattr(learner, "coef_", None)
    if coef is None:
        raise ValueError(
            f"{type(learner).__name__} has no coef_ after fitting; EqualRecourseLinear needs a linear learner such as "
            "LogisticRegression, LinearSVC or Perceptron."
        )
    coef = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, dtype=np.float64).ravel()
    intercept = float(np.ravel(getattr(learner, "intercept_", 0.0))[0])
    return coef, intercept
