"""The support vector machine whose rejected people are, on average, equally far from a yes in every group."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equirecourse._validation import check_feature_costs
from equirecourse.equalizers._approximation import FourierMap, NystroemMap, fit_fourier, fit_nystroem
from equirecourse.equalizers._base import DEFAULT_SHARES, DEPRECATED, EqualRecourseEstimator
from equirecourse.equalizers._contrasts import Contrasts
from equirecourse.equalizers._distribution import KAPPAS, minimise_distance
from equirecourse.equalizers._kernel_problem import KernelFit, KernelProblem
from equirecourse.equalizers._linear_fit import FeatureFit
from equirecourse.equalizers._problem import FitData
from equirecourse.equalizers._rounds import Rounds
from equirecourse.exceptions import ConvergenceWarning
from equirecourse.solvers import KERNELS, kernel_sums, polynomial

__all__ = ["EqualRecourseSVC"]

Array = NDArray[np.float64]

_VISIBLE_VIOLATION = 1e-5  # in units of the margin
_KERNEL_NUMBERS = 2**22  # of a kernel matrix in a prediction: 32 MB


class EqualRecourseSVC(EqualRecourseEstimator):
    r"""Support vector classifier with equal recourse across groups.

    Solves, in the feature space :math:`\Phi` of a kernel,

    .. math:: \min_{w, b}\ \tfrac12\|w\|^2 + C \sum_i \max(0, 1 - y_i f(x_i)) + \lambda \|u\|, \qquad
              f(x) = w\cdot\Phi(x) + b,

    where :math:`u` is the difference between the groups' mean scores over the people the model rejects; for several
    groups, the vector of all such differences. With :math:`\lambda = \infty`, the default, :math:`u = 0`: rejected
    people are on average equally far from the decision boundary in every group. Who is rejected depends on the model,
    so the problem is solved in rounds, each for the people that the round before rejected.

    Parameters
    ----------
    C : float, default=1.0
        Weight of each person's hinge loss (the paper's ν).
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        As in :class:`sklearn.svm.SVC`. A callable takes two data matrices and returns their kernel matrix.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of "rbf", "poly" and "sigmoid"; "scale" is ``1 / (n_features * X.var())``.
    coef0 : float, default=1.0
        Independent term of "poly" and "sigmoid".
    recourse_penalty : float, default=inf
        λ, the price of a unit of difference. 0 is the ordinary SVM, ``inf`` demands equality.
    kappa : float or None, default=None
        Instead of λ: κ times the distance between the groups' *distributions* of distance is added to the (smoothed)
        hinge loss, as in :class:`EqualRecourseLinear`; in units of the mean loss. A kernel that is not linear is then
        approximated, by "nystroem" unless ``approximation`` says otherwise.
    penalty : {"absolute", "squared"}, default="absolute"
        Shape of the penalty: the paper's λ‖u‖, or ½λ‖u‖², which never reaches zero and changes smoothly with λ.
    difference_bound : float or None, default=None
        ε of the paper's Problem 1: the least balancing at which the mean distances differ by at most ε. Instead of a
        penalty, not besides one.
    feature_costs : array-like of shape (n_features,) or None, default=None
        Diagonal of the paper's C: the balance is taken at Φ(C x). See Notes.
    normalize : {"rejected", "group"}, default="rejected"
        Average over a group's rejected people, or divide by the size of the whole group as the paper's formulas
        print. The latter balances distance × rejection rate.
    intersections : bool, default=True
        With several sensitive features, balance all combinations of their values, or each feature on its own.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the balance, with a warning that names it.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    solver : {"auto", "smo", "ipm", "qp"}, default="auto"
        "smo" takes the balance out of the kernel inside the solver; "ipm" is an interior point for a linear kernel, and
        "qp" the paper's dense quadratic program through CVXOPT, for reference. All find the same optimum. "auto" is
        "ipm" for a linear kernel with few features and "smo" otherwise. "libsvm" is deprecated, and is "auto".
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
    tol : float, default=1e-4
        Tolerance of the solver: largest violation of the optimality conditions, in units of the margin.
    max_iter : int, default=10_000_000
        Most steps of the solver in one round.
    approximation : {"nystroem", "fourier"} or None, default=None
        Few features whose inner products are all but those of the kernel, instead of a kernel matrix: for more people
        than that holds. "nystroem" projects on the images of people drawn at random, for any kernel; "fourier" takes
        cosines at random frequencies, for "rbf". Recourse is equal in the space of those features.
    n_components : int, default=100
        Number of features of the approximation.
    random_state : int, RandomState instance or None, default=None
        The draw of the approximation.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels.
    favorable_label_ : label
        The label that means yes.
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors in the decision function.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_support, n_features)
        The points of the expansion: support vectors of the hinge loss and, because the balance is carried by them,
        the people who were rejected. Empty for a precomputed kernel. With ``approximation="nystroem"`` the people
        drawn; with "fourier" there is no such expansion, and none of ``support_``, ``dual_coef_`` and this.
    support_ : ndarray of shape (n_support,)
        Their rows in the training data.
    intercept_ : ndarray of shape (1,)
        Intercept of the decision function.
    coef_ : ndarray of shape (1, n_features)
        Only for a linear kernel.
    weight_norm_ : float
        ‖w‖. A score divided by it is a distance in feature space, which for a linear kernel is the input space.
    rounds_ : DataFrame
        One row per round. ``kind``: "plain", "rejected" (balances those whom the round before rejected) or "between"
        (two rounds). At the people the round itself rejects: ``gap`` of the mean distances, ``functional_gap`` of the
        mean scores, ``mean_distance``, ``relative_gap`` (gap over mean distance) and ``rejected (group)``, their
        number. ``balance_residual`` is the difference left at the people it balanced and ``stiffness`` the κ it took;
        ``changed`` counts the decisions that differ from the round before. Then ``accuracy``, ``acceptance``, and
        ``chosen``.
    converged_ : bool
        Whether the chosen model balances the very people it rejects.
    multiplier_ : ndarray of shape (n_differences,)
        The multipliers of the differences (the paper's γₙ₊₁).
    objective_ : float
        Value of the objective, at the rejected people that the chosen round balanced.
    dual_gap_ : float
        How far the objective can be from its minimum, relative to its value: the duality gap of the chosen round.
    n_iter_ : int
        Solver steps of the chosen round.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, where X has them.

    See Also
    --------
    EqualRecourseLinear : Any linear learner, at any size.
    recourse_frontier : Accuracy against held-out gap over a path of penalties.

    Notes
    -----
    For a linear kernel and costs ``‖C(x′ − x)‖`` in any norm the cost of recourse is proportional to the score, so
    equal mean scores are equal mean costs whatever the feature costs: leave ``feature_costs`` at None to equalise
    those. The parameter reproduces the paper, which evaluates w·Φ(Cx).

    For other kernels a score divided by ``weight_norm_`` is a distance in feature space, not what a person experiences
    in the input space.

    Examples
    --------
    >>> from equirecourse import EqualRecourseSVC
    >>> from equirecourse.datasets import make_tilted_groups
    >>> toy = make_tilted_groups(random_state=0)
    >>> model = EqualRecourseSVC(kernel="linear")
    >>> model.fit(toy.data, toy.target, sensitive_features=toy.sensitive_features).converged_
    True
    >>> before, after = model.rounds_["gap"].iloc[[0, -1]]
    >>> bool(after < 0.01 * before)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EqualRecourseEstimator._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kappa": [Interval(Real, 0.0, None, closed="left"), None],
        "feature_costs": ["array-like", None],
        "solver": [StrOptions({"auto", "smo", "ipm", "libsvm", "qp"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "approximation": [StrOptions({"nystroem", "fourier"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 1.0,
        recourse_penalty: float = np.inf,
        kappa: float | None = None,
        penalty: str = "absolute",
        difference_bound: float | None = None,
        feature_costs: Any = None,
        normalize: str = "rejected",
        intersections: bool = True,
        min_rejected: int = 5,
        favorable_label: Any = None,
        solver: str = "auto",
        max_rounds: int = 10,
        round_options: dict[str, Any] | None = None,
        memory: Any = DEPRECATED,
        on_cycle: Any = DEPRECATED,
        balance_tol: Any = DEPRECATED,
        tol: float = 1e-4,
        max_iter: int = 10_000_000,
        approximation: str | None = None,
        n_components: int = 100,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.recourse_penalty = recourse_penalty
        self.kappa = kappa
        self.penalty = penalty
        self.difference_bound = difference_bound
        self.feature_costs = feature_costs
        self.normalize = normalize
        self.intersections = intersections
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label
        self.solver = solver
        self.max_rounds = max_rounds
        self.round_options = round_options
        self.memory = memory
        self.on_cycle = on_cycle
        self.balance_tol = balance_tol
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.n_components = n_components
        self.random_state = random_state

    @property
    def _strength(self) -> str:
        return "recourse_penalty" if self.kappa is None else "kappa"

    @property
    def _map(self) -> str | None:
        """The approximation that takes the place of the kernel, None for none."""
        needs_features = self.kappa is not None and self.kernel != "linear"
        return "nystroem" if self.approximation is None and needs_features else self.approximation

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver == "libsvm":
            warnings.warn(
                "solver='libsvm' is deprecated and will be refused from the next release on; solver='auto' finds the "
                "same optimum, and sooner.",
                FutureWarning,
                stacklevel=4,
            )
        if self.kappa is None:
            return
        if self.difference_bound is not None or not np.isinf(self.recourse_penalty) or self.feature_costs is not None:
            raise ValueError(
                "recourse_penalty, difference_bound and feature_costs belong to the paper's method, whose place kappa "
                "takes; set one or the other."
            )
        if self.kernel == "precomputed":
            raise ValueError("kappa needs the features of people, and kernel='precomputed' has none; name the kernel.")

    def penalty_path(
        self, X: Any, y: Any, *, sensitive_features: Any, shares: Any = DEFAULT_SHARES, sample_weight: Any = None
    ) -> Array:
        """Strengths worth comparing: values of κ, or of the paper's squared penalty.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in ``fit``.
        shares : array-like of float
            Of the plain model's difference that squared penalties are to leave.

        Returns
        -------
        ndarray
            Values of ``kappa``, or of ``recourse_penalty``.
        """
        if self.kappa is not None:
            return np.array(KAPPAS)
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        return super().penalty_path(X, y, shares=shares, **given)

    def _run_rounds(self, problem: Any, fit_contrasts: Callable[[Contrasts | None], Any]) -> Rounds:
        if self.kappa is None:
            return super()._run_rounds(problem, fit_contrasts)
        plain = problem.in_features(fit_contrasts(None))
        return minimise_distance(self, problem, plain, self._setting(problem.data))

    def _open(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> KernelProblem:
        self._check_parameters()
        X, y = self._check_training(X, y)
        data = self._check_fit_data(X, y, sensitive_features, sample_weight)
        if self.kernel == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"kernel='precomputed' needs a square matrix, got shape {X.shape}.")
            if self.feature_costs is not None:
                raise ValueError("feature_costs needs features, and kernel='precomputed' has none; leave it at None.")
            data = data.replace(X=data.X[:, data.rows])
        gamma = self._resolve_gamma(data)
        costs = check_feature_costs(self.feature_costs, X.shape[1])
        scaled = None
        if costs is not None:
            scaled = data.X.multiply(costs).tocsr() if sparse.issparse(data.X) else data.X * costs
        kernel = partial(self._kernel_between, gamma=gamma)
        if self._map is None:
            return KernelProblem(self, data, kernel, gamma, scaled, linear=self.kernel == "linear")
        feature_map = self._fit_map(data.X, kernel, gamma)
        features = data.replace(X=feature_map.transform(data.X))
        moved = None if scaled is None else feature_map.transform(scaled)
        return KernelProblem(self, features, linear_kernel, gamma, moved, linear=True, feature_map=feature_map)

    def _fit_map(self, X: Any, kernel: Callable[[Any, Any], Array], gamma: float) -> NystroemMap | FourierMap:
        if self.kernel in ("linear", "precomputed"):
            raise ValueError(
                f"approximation={self.approximation!r} takes the place of a kernel matrix, which "
                f"kernel={self.kernel!r} does not need or already has; leave approximation at None."
            )
        random = check_random_state(self.random_state)
        if self._map == "nystroem":
            return fit_nystroem(X, kernel, self.n_components, random)
        if self.kernel != "rbf":
            raise ValueError(
                f"approximation='fourier' is for kernel='rbf', got kernel={self.kernel!r}; "
                "use approximation='nystroem'."
            )
        return fit_fourier(X, gamma, self.n_components, random)

    def _accepted(self) -> dict[str, Any]:
        """What kind of matrix X may be: sparse features, but a dense kernel."""
        formats = "csr" if self.kernel != "precomputed" else False
        return {"accept_sparse": formats, "accept_large_sparse": False}

    def _resolve_gamma(self, data: FitData) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.kernel not in ("poly", "rbf", "sigmoid"):
            return 1.0  # not used
        if self.gamma == "auto":
            return 1.0 / float(data.X.shape[1])
        # With weights, the variance of the weighted data: a weight of two is a person twice.
        weight = data.sample_weight / data.sample_weight.sum()
        mean = float((weight @ data.X).mean())
        if sparse.issparse(data.X):
            variance = float((weight @ data.X.multiply(data.X)).mean()) - mean**2
        else:  # from the deviations: the difference above loses all digits where the mean is large
            variance = float((weight @ (data.X - mean) ** 2).mean())
        return 1.0 / (data.X.shape[1] * variance) if variance > 0 else 1.0

    def _kernel_between(self, X: Any, Y: Any, *, gamma: float) -> Array:
        """Kernel matrix of two data sets."""
        if self.kernel == "precomputed":
            return np.asarray(X)
        if callable(self.kernel):
            return np.asarray(self.kernel(X, Y), dtype=np.float64)
        if self.kernel == "poly":
            products = X @ Y.T
            products = np.asarray(products.toarray() if sparse.issparse(products) else products)
            return polynomial(products, degree=self.degree, gamma=gamma, coef0=self.coef0)
        parameters = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        gram = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)
        return np.asarray(gram.toarray() if sparse.issparse(gram) else gram)

    def _store(self, problem: KernelProblem, fit: KernelFit | FeatureFit) -> None:
        for name in ("support_", "support_vectors_", "dual_coef_", "coef_", "_sampler", "_feature_coef"):
            self.__dict__.pop(name, None)  # of a fit before this one, with other parameters
        self._gamma, self.weight_norm_ = problem.gamma, fit.norm
        if isinstance(fit, FeatureFit):
            self._store_features(problem, fit)
        else:
            self._store_dual(problem, fit)

    def _store_features(self, problem: KernelProblem, fit: FeatureFit) -> None:
        """Keep a model that is known by the weights of its features; there is no dual solution."""
        if self.kernel == "linear":
            self.coef_ = fit.coef[None, :]
        else:
            self._store_approximate(problem, fit.coef)
        self.intercept_ = np.array([fit.intercept])
        self.multiplier_ = np.empty(0)
        self.objective_ = self.dual_gap_ = float("nan")
        self.n_iter_ = 1

    def _store_dual(self, problem: KernelProblem, fit: KernelFit) -> None:
        data, sign = problem.data, problem.data.sign
        beta, at_balance = sign * fit.solution.beta, np.zeros(len(data.y))
        if fit.contrasts is not None:
            at_balance = sign * fit.contrasts.weights @ fit.solution.multiplier
        if problem.scaled is None:
            coefficients = beta + at_balance
            support = np.flatnonzero(coefficients)
            dual_coef, points = coefficients[support], data.X[support]
        else:
            # The balance sits at C x, not at x: those are expansion points of their own.
            own, moved = np.flatnonzero(beta), np.flatnonzero(at_balance)
            support = np.concatenate([own, moved])
            dual_coef = np.concatenate([beta[own], at_balance[moved]])
            stack = sparse.vstack if sparse.issparse(data.X) else np.vstack
            points = stack([data.X[own], problem.scaled[moved]])
        if problem.feature_map is None:
            self.support_ = data.rows[support]
            self.support_vectors_ = points if self.kernel != "precomputed" else np.empty((0, 0))
            if sparse.issparse(points):
                self.support_vectors_ = points.tocsr()
            self.dual_coef_ = dual_coef[None, :]
        else:
            self._store_approximate(problem, np.asarray(dual_coef @ points))
        self.intercept_ = np.array([sign * fit.solution.intercept])
        self.multiplier_ = fit.solution.multiplier
        self.objective_ = problem.objective(fit)
        gap = self.objective_ - problem.dual_objective(fit)
        self.dual_gap_ = max(gap, 0.0) / self.objective_ if self.objective_ > 0 else 0.0
        self.n_iter_ = max(fit.solution.n_iter, 1)
        if self.kernel == "linear":
            coef = dual_coef @ points
            self.coef_ = np.asarray(coef.toarray() if sparse.issparse(coef) else coef).reshape(1, -1)
        violation, steps = fit.solution.violation, fit.solution.n_iter
        # Rounding errors may keep a tiny tolerance out of reach; that is worth a word only if it shows.
        stalled = problem.solver in ("smo", "ipm") and violation > _VISIBLE_VIOLATION
        if violation > self.tol and (steps >= self.max_iter or stalled):
            warnings.warn(
                f"The solver stopped after {steps:,} steps (max_iter={self.max_iter:,}) with a violation of "
                f"{violation:.2g} against tol={self.tol:g}; scale the features, lower C, or raise max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _store_approximate(self, problem: KernelProblem, coef: Array) -> None:
        """Keep the weights of an approximation's features, as a kernel expansion where they are one."""
        feature_map = problem.feature_map
        if isinstance(feature_map, NystroemMap):
            self.support_ = problem.data.rows[feature_map.rows]
            self.support_vectors_ = feature_map.points
            self.dual_coef_ = (feature_map.projection @ coef)[None, :]
        elif feature_map is not None:
            self._sampler, self._feature_coef = feature_map.sampler, coef

    def decision_function(self, X: Any) -> Array:
        """Signed score of each person; positive means ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            People, or their kernel with the training data for ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        return self._scores(self._check_people(X))

    def _scores(self, X: Any) -> Array:
        if self.kernel == "linear":
            return np.asarray(X @ self.coef_[0] + self.intercept_[0])
        if hasattr(self, "_feature_coef"):
            return np.asarray(self._sampler.transform(X) @ self._feature_coef + self.intercept_[0])
        if self.kernel == "precomputed":
            return np.asarray(X[:, self.support_] @ self.dual_coef_[0] + self.intercept_[0])
        return np.asarray(self._sums_over_support(X) + self.intercept_[0])

    def _is_fitted_to_features(self) -> bool:
        return self._map is None  # else to the features of the approximate kernel

    def _sums_over_support(self, X: Any) -> Array:
        """The kernel expansion, some people at a time: the matrix of all of them need not fit into memory."""
        points, dual_coef = self.support_vectors_, self.dual_coef_[0]
        if self.kernel in KERNELS and not sparse.issparse(X) and not sparse.issparse(points):
            parameters: dict[str, Any] = {"gamma": self._gamma, "degree": self.degree, "coef0": self.coef0}
            return kernel_sums(X, points, dual_coef, kernel=str(self.kernel), **parameters)
        rows = max(1, _KERNEL_NUMBERS // max(points.shape[0], 1))
        sums = np.empty(X.shape[0])
        for start in range(0, X.shape[0], rows):
            at = slice(start, start + rows)
            sums[at] = self._kernel_between(X[at], points, gamma=self._gamma) @ dual_coef
        return sums

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags
