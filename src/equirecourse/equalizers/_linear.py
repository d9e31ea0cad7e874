"""Any linear learner, made recourse-equal through a transform of its features."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from equirecourse.equalizers._base import EqualRecourseEstimator
from equirecourse.equalizers._contrasts import Contrasts
from equirecourse.equalizers._head_start import LinearScore
from equirecourse.equalizers._liblinear import ExactLinearSVC, can_solve
from equirecourse.equalizers._problem import FitData
from equirecourse.equalizers._projection import Projection
from equirecourse.equalizers._rounds import Rounds
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

    The learner minimises its own loss over scores :math:`f(x) = w\cdot x + b`, under the penalty
    :math:`\lambda\|u\|` on the difference :math:`u` between the groups' mean scores over the rejected people.
    With :math:`\lambda = \infty`, the default, :math:`u = 0`. Because :math:`u = Z^\top w` is linear in the
    coefficients, this is the same learner on features from which the directions Z were taken out, and the coefficients
    are carried back: prediction needs neither a transform nor the group.

    The cost of recourse of a linear model is :math:`|f(x)|` divided by a norm of w that is the same for everybody.
    Equal mean scores are therefore equal mean costs, in the Euclidean norm as in any other, with any feature costs.

    Parameters
    ----------
    estimator : classifier with ``coef_`` and ``intercept_``
        LogisticRegression, LinearSVC, Perceptron, SGDClassifier, RidgeClassifier, LinearDiscriminantAnalysis, ...
        Behind :class:`sklearn.kernel_approximation.Nystroem` it serves any kernel.
    recourse_penalty : float, default=inf
        λ, in units in which the learner's ridge is ½‖w‖². 0 is the plain learner, ``inf`` demands equality, which needs
        no ridge at all.
    penalty : {"absolute", "squared"}, default="absolute"
        Shape of the penalty: λ‖u‖ as in the paper, which takes several fits per round, or ½λ‖u‖², which takes one.
    difference_bound : float or None, default=None
        ε of the paper's Problem 1: the least balancing at which the mean distances differ by at most ε. Instead of a
        penalty, not besides one.
    normalize : {"rejected", "group"}, default="rejected"
        Average over a group's rejected people, or divide by the size of the whole group as the paper's formulas
        print. The latter needs a learner with the parameter ``fit_intercept``.
    match : {"mean", "distribution"}, default="mean"
        Equalise the mean distance, or the mean within each of ``n_bins`` quantile bins of the distances.
    n_bins : int, default=3
        Number of bins for ``match="distribution"``.
    intersections : bool, default=True
        With several sensitive features, balance all combinations of their values, or each feature on its own.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the balance, with a warning that names it.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    max_rounds : int, default=10
        Most rounds over the rejected set after the plain one.
    memory : int, default=1
        Number of latest rounds whose differences are all balanced.
    on_cycle : {"mix", "stop", "last"}, default="mix"
        Under hard equality of two groups, look for a gap of zero between two rounds when the rounds do not end by
        themselves; "stop" keeps the best round, and "last" the last one, as the paper's loop does.
    balance_tol : float, default=1e-3
        Gap, relative to the mean distance, that counts as zero when the rounds do not end by themselves.
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
        One row per round. ``kind``: "plain", "rejected" (balances those whom the round before rejected) or "between"
        (two rounds). At the people the round itself rejects: ``gap`` of the mean distances, ``functional_gap`` of the
        mean scores, ``mean_distance``, ``relative_gap`` (gap over mean distance) and ``rejected (group)``, their
        number. ``balance_residual`` is the difference left at the people it balanced and ``stiffness`` the κ it took;
        ``changed`` counts the decisions that differ from the round before. Then ``accuracy``, ``acceptance``, and
        ``chosen``.
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
    >>> model = EqualRecourseLinear(learner).fit(X, credit.target[:4000], sensitive_features=sex)
    >>> bool(model.rounds_.query("chosen")["relative_gap"].item() < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "solver": [StrOptions({"auto", "learner"})],
        **EqualRecourseEstimator._parameter_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        recourse_penalty: float = np.inf,
        penalty: str = "absolute",
        difference_bound: float | None = None,
        normalize: str = "rejected",
        match: str = "mean",
        n_bins: int = 3,
        intersections: bool = True,
        min_rejected: int = 5,
        favorable_label: Any = None,
        max_rounds: int = 10,
        memory: int = 1,
        on_cycle: str = "mix",
        balance_tol: float = 1e-3,
        solver: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.recourse_penalty = recourse_penalty
        self.penalty = penalty
        self.difference_bound = difference_bound
        self.normalize = normalize
        self.match = match
        self.n_bins = n_bins
        self.intersections = intersections
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label
        self.max_rounds = max_rounds
        self.memory = memory
        self.on_cycle = on_cycle
        self.balance_tol = balance_tol
        self.solver = solver

    def _open(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> _LinearProblem:
        self._check_parameters()
        X, y = self._check_training(X, y)
        data = self._check_fit_data(X, y, sensitive_features, sample_weight)
        learner = type(self.estimator).__name__
        if data.weighted and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but {learner} does not take sample weights; "
                "leave it out, or use a learner that does."
            )
        if self.normalize == "group" and "fit_intercept" not in self.estimator.get_params():
            raise ValueError(
                "normalize='group' ties the intercept to the coefficients and needs a learner with fit_intercept, "
                f"which {learner} does not have; use normalize='rejected'."
            )
        return _LinearProblem(self, data)

    def _store(self, problem: _LinearProblem, fit: _LinearFit) -> None:  # noqa: ARG002 - the base class passes it
        learner = fit.learner
        learner.coef_, learner.intercept_ = fit.coef[None, :], np.array([fit.intercept])
        learner.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            learner.feature_names_in_ = self.feature_names_in_
        self.estimator_ = learner
        self.coef_, self.intercept_ = learner.coef_, learner.intercept_
        self.weight_norm_ = fit.norm
        self.dual_gap_ = fit.dual_gap

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
        X = self._check_people(X)
        return np.asarray(_without_names(self.estimator_).predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


class _LinearProblem:
    """One training set, and fits of the learner for any contrasts."""

    def __init__(self, model: EqualRecourseLinear, data: FitData) -> None:
        self.model, self.data = model, data
        self.exact: ExactLinearSVC | None = None
        # A balance that ties the intercept moves it out of the learner's own penalty: left to the learner.
        if model.solver == "auto" and model.normalize == "rejected" and can_solve(model.estimator):
            model.estimator._validate_params()
            self.exact = ExactLinearSVC(model.estimator, data.X, data.labels, data.sample_weight)

    def natural_stiffness(self, contrasts: Contrasts) -> float:
        """About where the penalty weighs as much as a loss of one unit per person."""
        Z = self.data.X.T @ contrasts.weights
        return len(self.data.y) / max(float((np.asarray(Z) ** 2).sum() + (contrasts.sums**2).sum()), 1e-300)

    def repeats(self, rounds: Rounds) -> bool:  # noqa: ARG002
        """A learner is asked again: nothing is known of how it stops."""
        return False

    def part(self, rows: NDArray[np.intp], weight: float) -> _LinearProblem | None:
        """The same problem for some of the people, each counted ``weight`` times, where that saves exact solves.

        A logistic regression has none: it is to be the model that ``PartitionedEqualRecourse`` finds.
        """
        if self.exact is None:
            return None
        return _LinearProblem(self.model, self.data.part(rows, weight))

    def carry_over(self, fit: _LinearFit, part: _LinearProblem) -> LinearScore:
        """What a fit of a part says of everybody."""
        if self.exact is not None and part.exact is not None:
            self.exact.expect(part.exact)
        scores = self.data.sign * (np.asarray(self.data.X @ fit.coef) + fit.intercept)
        return LinearScore(scores, scores, fit.norm)

    def at_work(self) -> AbstractContextManager[Any]:
        """A learner does as it likes; our own solvers have threads of their own."""
        return one_blas_thread() if self.exact is not None else nullcontext()

    def fit(self, contrasts: Contrasts | None) -> _LinearFit:
        """Fit for the given contrasts, under the model's penalty or bound."""
        if contrasts is None or len(contrasts) == 0:
            return self.fit_at(None, 0.0)
        fit: _LinearFit = self.model._fit_under_penalty(self, contrasts, _SEARCH_TOL)
        return fit

    def fit_at(self, contrasts: Contrasts | None, stiffness: float) -> _LinearFit:
        """Fit under the squared penalty of the given stiffness."""
        data, learner = self.data, clone(self.model.estimator)
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
