"""One training set of a kernel model: its kernel matrix, a dual solver, and fits for any contrasts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from equirecourse.equalizers._approximation import FourierMap, NystroemMap
from equirecourse.equalizers._contrasts import Contrasts
from equirecourse.equalizers._deflated import InteriorPointDual, LinearGram
from equirecourse.equalizers._linear_fit import FeatureFit
from equirecourse.equalizers._losses import LinearLoss, hinge
from equirecourse.equalizers._memory import available_bytes
from equirecourse.equalizers._problem import FitData
from equirecourse.equalizers._rounds import Rounds
from equirecourse.solvers import (
    KERNELS,
    Balance,
    DualSolution,
    KernelDual,
    ReferenceDual,
    gram_matrix,
    one_blas_thread,
    times_rows,
)

if TYPE_CHECKING:
    from equirecourse.equalizers._svc import EqualRecourseSVC

__all__ = ["KernelFit", "KernelProblem"]

Array = NDArray[np.float64]

_SEARCH_TOL = 1e-8  # of log₁₀ κ, when λ‖u‖ is found through the squared penalty
_FEW_FEATURES = 300  # up to which an interior point beats pair steps
_DOUBLE_PRECISION = 8_000  # people up to whom the kernel matrix is kept in double precision
_MOST_GRAM_BYTES: int | None = None  # None: most of what the machine has free
_SHARE_OF_MEMORY = 0.8
_INSIDE = 0.999  # share of a penalty below which a multiplier has not met its bound
_MOST_KEPT = 50  # solutions of equality, each of a few numbers a person


@dataclass(frozen=True)
class KernelFit:
    """A dual solution with what the rounds ask of it."""

    solution: DualSolution
    balance: Balance | None
    contrasts: Contrasts | None
    scores: Array
    balance_scores: Array
    norm: float
    differences: Array
    stiffness: float


class KernelProblem:
    """One training set: kernel matrix, solver, and fits for any contrasts.

    Parameters
    ----------
    model : EqualRecourseSVC
        Its parameters.
    data : FitData
        People. Features of an approximation take the place of their own, and the kernel is then linear.
    kernel : callable
        Two data sets → kernel matrix.
    gamma : float
        Parameter of the kernel.
    scaled : {ndarray, sparse matrix} or None
        C x, where the balance is taken, if not at x.
    linear : bool
        Whether the kernel is linear.
    feature_map : NystroemMap, FourierMap or None
        The approximation.
    """

    def __init__(
        self,
        model: EqualRecourseSVC,
        data: FitData,
        kernel: Callable[[Any, Any], Array],
        gamma: float,
        scaled: Any,
        *,
        linear: bool,
        feature_map: NystroemMap | FourierMap | None = None,
    ) -> None:
        self.model, self.data, self.kernel, self.gamma = model, data, kernel, gamma
        self.C = model.C * data.sample_weight
        self.scaled, self.linear, self.feature_map = scaled, linear, feature_map
        self.solver = self._choose_solver()
        self.dual: Any
        if self.solver == "qp":
            # CVXOPT's tolerance is one of the objective, ours one of its slope: decisions need the finer one.
            self.dual = ReferenceDual(self.K, data.y, self.C, tol=max(1e-4 * model.tol, 1e-12))
        else:
            dual: Any = InteriorPointDual if self.solver == "ipm" else KernelDual
            self.dual = dual(self.K, data.y, self.C, tol=model.tol, max_iter=model.max_iter)
        self._at_balance: tuple[Any, Any] | None = None
        self._latest: tuple[Contrasts, Balance] | None = None
        self._equal: dict[bytes, KernelFit] = {}

    experience = None  # costs are distances in the space of the features

    @property
    def loss(self) -> LinearLoss:
        """What the plain model minimises, where its features are at hand."""
        return LinearLoss(hinge, 1.0 / self.model.C, 0.0, True, self.data.sample_weight)

    def in_features(self, fit: KernelFit) -> FeatureFit:
        """A fit without contrasts, by the weights of the features."""
        coef = np.asarray(fit.solution.beta @ self.data.X).ravel()
        return FeatureFit.of_favorable(coef, fit.solution.intercept, fit.scores, self.data.sign)

    def moved(self, _: FeatureFit, coef: Array, intercept: float, scores: Array) -> FeatureFit:
        """A fit with other weights; they and the scores are those of the favourable label."""
        return FeatureFit.of_favorable(coef, intercept, scores, self.data.sign)

    def _choose_solver(self) -> str:
        model = self.model
        if model.solver == "ipm" and not self.linear:
            raise ValueError(f"solver='ipm' is for kernel='linear', got kernel={model.kernel!r}; use solver='auto'.")
        if model.solver not in ("auto", "libsvm"):
            return model.solver
        if not self.linear or (model.normalize == "group" and self.data.partitions):
            return "smo"
        return "ipm" if self.data.X.shape[1] <= _FEW_FEATURES or self.feature_map is not None else "smo"

    @cached_property
    def K(self) -> Any:  # noqa: N802 - its name in the mathematics
        """The kernel matrix, or an operator in its place; made when somebody needs it."""
        if self.solver == "ipm":
            return LinearGram(self.data.X)
        return self._gram()

    def _gram(self) -> Any:
        """The kernel matrix, in single precision where there are many people and the solver takes it."""
        X, model = self.data.X, self.model
        n = len(self.data.y)
        by_strips = model.kernel in KERNELS and model.approximation is None and not sparse.issparse(X)
        single = by_strips and self.solver == "smo" and n > _DOUBLE_PRECISION
        self._check_memory(n, 4 if single else 8)
        if by_strips:
            parameters: dict[str, Any] = {"gamma": self.gamma, "degree": model.degree, "coef0": model.coef0}
            return gram_matrix(X, kernel=str(model.kernel), dtype=np.float32 if single else np.float64, **parameters)
        return np.ascontiguousarray(self.kernel(X, X))

    def _check_memory(self, n: int, itemsize: int) -> None:
        """Refuse a problem whose matrices do not fit, before any of them is begun."""
        copies = 4 if self.solver == "qp" else 1  # CVXOPT makes its own
        copies += self.solver == "smo" and self.model.normalize == "group" and bool(self.data.partitions)
        needed = n * n * (itemsize * copies + (16 if self.scaled is not None else 0))
        limit = _MOST_GRAM_BYTES if _MOST_GRAM_BYTES is not None else int(_SHARE_OF_MEMORY * available_bytes())
        if needed > limit:
            raise ValueError(
                f"A kernel matrix of {n:,} people takes {needed / 2**30:.1f} GiB, more than the "
                f"{limit / 2**30:.1f} GiB that may be used; use EqualRecourseLinear, or approximation='nystroem' for a "
                "kernel."
            )

    def _products(self) -> tuple[Any, Any]:
        """⟨Φ(x), Φ(Cx)⟩ and ⟨Φ(Cx), Φ(Cx)⟩; both are K when all costs are one."""
        if self.scaled is None:
            return self.K, self.K
        if self._at_balance is None:
            product = LinearGram if isinstance(self.K, LinearGram) else self.kernel
            self._at_balance = product(self.data.X, self.scaled), product(self.scaled, self.scaled)
        return self._at_balance

    def _balance(self, contrasts: Contrasts) -> Balance:
        """Inner products of the contrasts; those of the latest are kept, for the searches over κ."""
        if self._latest is None or self._latest[0] is not contrasts:
            self._latest = contrasts, self._compute_balance(contrasts)
        return self._latest[1]

    def _compute_balance(self, contrasts: Contrasts) -> Balance:
        between, within = self._products()
        S = contrasts.weights
        directions = None
        if isinstance(self.K, LinearGram):
            points = self.data.X if self.scaled is None else self.scaled
            directions = np.asarray(points.T @ S)
        if self.scaled is None and not isinstance(self.K, LinearGram):
            # A symmetric matrix: the rows of those who are rejected will do, in either precision.
            cross = np.column_stack([times_rows(self.K, weights) for weights in S.T])
        else:
            cross = between @ S
        inner = S.T @ (cross if self.scaled is None else within @ S)
        return Balance(np.asarray(cross), np.asarray((inner + inner.T) / 2), contrasts.sums, directions)

    def at_work(self) -> AbstractContextManager[Any]:
        """Everything here is ours, and has threads of its own."""
        return one_blas_thread()

    def fit(self, contrasts: Contrasts | None) -> KernelFit:
        """Fit for the given contrasts, under the model's penalty or bound."""
        model = self.model
        if contrasts is None or len(contrasts) == 0:
            return self.fit_at(None, 0.0)
        if self._penalty_in_one_go(contrasts):
            return self._fit_in_one_go(contrasts, model.recourse_penalty)
        fit: KernelFit = model._fit_under_penalty(self, contrasts, _SEARCH_TOL)
        return fit

    def _fit_in_one_go(self, contrasts: Contrasts, penalty: float) -> KernelFit:
        """Fit under λ‖u‖.

        Equality, once reached, is the solution for every larger λ too. On a path of penalties the rounds come back to
        the same rejected people again and again, so those solutions are kept.
        """
        key = contrasts.weights.tobytes()
        known = self._equal.get(key)
        if known is not None and np.linalg.norm(known.solution.multiplier) <= penalty:
            return known
        balance = self._balance(contrasts)
        solution = self.dual.solve_penalty(balance, penalty)
        size, pull = (float(np.linalg.norm(v)) for v in (solution.differences(balance), solution.multiplier))
        fit = self._describe(solution, balance, contrasts, pull / size if size > 0 else np.inf)
        # Clearly inside its bounds: CVXOPT's interior point ends a little short of one.
        if pull < _INSIDE * penalty and len(self._equal) < _MOST_KEPT:
            self._equal[key] = fit
        return fit

    def repeats(self, rounds: Rounds) -> bool:
        """Whether rounds under an earlier penalty are those under the model's: equality each time, as it is here."""
        penalty, later = self.model.recourse_penalty, rounds.history[1:]
        equal = {id(fit) for fit in self._equal.values() if np.linalg.norm(fit.solution.multiplier) <= penalty}
        return len(later) > 0 and bool(np.isfinite(penalty)) and all(id(one.fit) in equal for one in later)

    def _penalty_in_one_go(self, contrasts: Contrasts) -> bool:
        """Whether the solver takes λ‖u‖ as it is, without a search for the stiffness."""
        model = self.model
        wanted = model.difference_bound is None and model.penalty == "absolute" and 0 < model.recourse_penalty < np.inf
        return wanted and (self.solver == "qp" or (self.solver in ("smo", "ipm") and len(contrasts) == 1))

    def fit_at(self, contrasts: Contrasts | None, stiffness: float) -> KernelFit:
        """Fit under the squared penalty of the given stiffness."""
        if contrasts is None:
            return self._describe(self.dual.solve(), None, None, 0.0)
        balance = self._balance(contrasts)
        return self._describe(self.dual.solve(balance, stiffness=stiffness), balance, contrasts, stiffness)

    def natural_stiffness(self, contrasts: Contrasts) -> float:
        """Where the penalty of a unit of ‖w‖ along the directions weighs as much as ½‖w‖²."""
        return 1.0 / max(float(np.trace(self._balance(contrasts).inner)), 1e-300)

    def _describe(
        self, solution: DualSolution, balance: Balance | None, contrasts: Contrasts | None, stiffness: float
    ) -> KernelFit:
        scores = solution.scores(balance)
        balance_scores = scores
        if self.scaled is not None:
            between, within = self._products()
            balance_scores = between.T @ solution.beta + solution.intercept
            if contrasts is not None:
                balance_scores = balance_scores + within @ (contrasts.weights @ solution.multiplier)
        norm = float(np.sqrt(solution.squared_norm(balance)))
        differences = solution.differences(balance) if balance is not None else np.empty(0)
        return KernelFit(solution, balance, contrasts, scores, np.asarray(balance_scores), norm, differences, stiffness)

    def dual_objective(self, fit: KernelFit) -> float:
        """Value of the dual objective, which no value of the primal one is below."""
        t = fit.solution.multiplier
        value = float(self.data.y @ fit.solution.beta) - 0.5 * fit.norm**2
        squared = self.model.difference_bound is not None or self.model.penalty == "squared"
        if squared and 0 < fit.stiffness < np.inf:
            value -= 0.5 * float(t @ t) / fit.stiffness
        return value

    def objective(self, fit: KernelFit) -> float:
        """Value of the primal objective."""
        hinge = np.maximum(0.0, 1.0 - self.data.y * fit.scores)
        value = 0.5 * fit.norm**2 + float(self.C @ hinge)
        return value + self.model._penalty_value(fit.differences, fit.stiffness)
