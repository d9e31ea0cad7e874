"""One training set of a kernel model: its kernel matrix, a dual solver, and fits for any contrasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from equirecourse.equalize._base import FitData
from equirecourse.equalize._contrasts import Contrasts
from equirecourse.equalize._deflated import InteriorPointDual, LibsvmDual, LinearGram
from equirecourse.solvers import Balance, DualSolution, KernelDual, ReferenceDual

if TYPE_CHECKING:
    from equirecourse.equalize._svc import EqualRecourseSVC

__all__ = ["KernelFit", "KernelProblem"]

Array = NDArray[np.float64]

_SEARCH_TOL = 1e-8  # of log₁₀ κ, when λ‖u‖ is found through the squared penalty
_FEW_FEATURES = 300  # up to which an interior point beats pair steps
_FEW_PEOPLE = 1000  # whom the more precise solver serves in no time
_MOST_GRAM_BYTES = 4 * 2**30  # a kernel matrix of about 23,000 people


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
    """One training set: kernel matrix, solver, and fits for any contrasts."""

    def __init__(
        self,
        model: EqualRecourseSVC,
        data: FitData,
        kernel: Callable[[Any, Any], Array],
        gamma: float,
        costs: Array | None,
    ) -> None:
        self.model, self.data, self.kernel, self.gamma = model, data, kernel, gamma
        self.C = model.C * data.sample_weight
        self.scaled: Any = None
        if costs is not None:
            self.scaled = data.X.multiply(costs).tocsr() if sparse.issparse(data.X) else data.X * costs
        self.solver = self._choose_solver()
        n = len(data.y)
        use_features = self.solver in ("ipm", "libsvm") and model.kernel == "linear"
        if not use_features and 8 * n * n > _MOST_GRAM_BYTES:
            raise ValueError(
                f"A kernel matrix of {n:,} people takes {8 * n * n / 2**30:.1f} GiB, more than the limit of "
                f"{_MOST_GRAM_BYTES / 2**30:.0f} GiB; use EqualRecourseLinear, behind sklearn's Nystroem for a kernel."
            )
        gram: Any = LinearGram(data.X) if use_features else np.ascontiguousarray(kernel(data.X, data.X))
        self.K = gram
        self.dual: Any
        if self.solver == "qp":
            # CVXOPT's tolerance is one of the objective, ours one of its slope: decisions need the finer one.
            self.dual = ReferenceDual(gram, data.y, self.C, tol=max(1e-4 * model.tol, 1e-12))
        else:
            duals: dict[str, Any] = {"smo": KernelDual, "ipm": InteriorPointDual, "libsvm": LibsvmDual}
            self.dual = duals[self.solver](gram, data.y, self.C, tol=model.tol, max_iter=model.max_iter)
        self._at_balance: tuple[Any, Any] | None = None
        self._latest: tuple[Contrasts, Balance] | None = None

    def _choose_solver(self) -> str:
        model, (n, n_features) = self.model, self.data.X.shape
        if model.solver == "ipm" and model.kernel != "linear":
            raise ValueError(f"solver='ipm' is for kernel='linear', got kernel={model.kernel!r}; use solver='auto'.")
        if model.solver != "auto":
            return model.solver
        if model.kernel != "linear" or (model.normalize == "group" and self.data.partitions):
            return "smo"
        if n_features <= _FEW_FEATURES:
            return "ipm"
        # Without the kernel matrix, which the pair steps need; but it cannot take λ‖u‖ in one go.
        one_solve = np.isinf(model.recourse_penalty) and model.difference_bound is None
        return "libsvm" if one_solve and n > _FEW_PEOPLE else "smo"

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
        cross = between @ S
        inner = S.T @ (within @ S)
        return Balance(np.asarray(cross), np.asarray((inner + inner.T) / 2), contrasts.sums, directions)

    def fit(self, contrasts: Contrasts | None) -> KernelFit:
        """Fit for the given contrasts, under the model's penalty or bound."""
        model = self.model
        if contrasts is None or len(contrasts) == 0:
            return self.fit_at(None, 0.0)
        if self._penalty_in_one_go(contrasts):
            balance = self._balance(contrasts)
            solution = self.dual.solve_penalty(balance, model.recourse_penalty)
            size = float(np.linalg.norm(solution.differences(balance)))
            stiffness = float(np.linalg.norm(solution.multiplier)) / size if size > 0 else np.inf
            return self._describe(solution, balance, contrasts, stiffness)
        fit: KernelFit = model._fit_under_penalty(self, contrasts, _SEARCH_TOL)
        return fit

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

    def objective(self, fit: KernelFit) -> float:
        """Value of the primal objective."""
        hinge = np.maximum(0.0, 1.0 - self.data.y * fit.scores)
        value = 0.5 * fit.norm**2 + float(self.C @ hinge)
        return value + self.model._penalty_value(fit.differences, fit.stiffness)
