"""The duals of ``equirecourse.solvers`` through solvers that know nothing of recourse.

They are given a deflated kernel, or projected features for a linear kernel, and solve an ordinary SVM. Any stiffness of
the squared penalty and hard equality can be had this way, as long as the intercept drops out of the differences.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC

from equirecourse.equalizers._projection import Projection
from equirecourse.solvers import (
    Balance,
    DualSolution,
    LinearSVM,
    intercept_from,
    penalised,
    polish,
    stiffness_matrix,
)

__all__ = ["InteriorPointDual", "LibsvmDual", "LinearGram"]

Array = NDArray[np.float64]

_POLISH_ROUNDS = 50  # a few are needed; each is cheap, as a linear kernel leaves few coefficients free
_MOST_ITERATIONS = 100  # of the interior point, which takes some twenty


class LinearGram:
    """X Yᵀ, and X Xᵀ without a Y, as an operator: products without the n × n matrix."""

    def __init__(self, X: Any, Y: Any = None) -> None:
        self.X, self.Y = X, X if Y is None else Y
        self._latest: tuple[Array, Array] | None = None

    def __matmul__(self, other: Array) -> Array:
        # A balance asks for the same product twice, and with a million people that is most of its time.
        if self._latest is None or self._latest[0] is not other:
            self._latest = other, np.asarray(self.X @ (self.Y.T @ other))
        return self._latest[1]

    @property
    def T(self) -> LinearGram:  # noqa: N802 - the name it has for arrays
        """Y Xᵀ."""
        return LinearGram(self.Y, self.X)

    def block(self, rows: NDArray[np.intp]) -> Array:
        """The kernel matrix among some people."""
        product = self.X[rows] @ self.Y[rows].T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)


class DeflatedDual(ABC):
    """The same problems as ``KernelDual``, for differences without the intercept; base of the two below.

    Parameters
    ----------
    K : ndarray or LinearGram
        Kernel matrix, or the features of a linear kernel.
    y, C : ndarray
        Labels ±1 and the bound of each coefficient.
    tol : float
        Tolerance of the solver.
    max_iter : int
        Limit on its iterations.
    """

    name: str

    def __init__(self, K: Array | LinearGram, y: Array, C: Array, *, tol: float, max_iter: int) -> None:
        self.K, self.y, self.C = K, y.astype(np.float64), C
        self.lower, self.upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        self.tol, self.max_iter = tol, max_iter

    @abstractmethod
    def solve(self, balance: Balance | None = None, *, stiffness: float = np.inf) -> DualSolution:
        """Solve with the penalty ½κ‖u‖² (``inf``: hard equality)."""

    def _checked(self, balance: Balance | None, stiffness: float) -> tuple[Balance | None, Array, int]:
        """The balance if there is anything to deflate, the matrix of the deflation, and the number of differences."""
        r = 0 if balance is None else len(balance)
        if balance is None or stiffness == 0:
            return None, np.empty((0, 0)), r
        if not balance.sums_to_zero:
            raise ValueError(
                f"solver={self.name!r} needs differences in which the intercept cancels, which normalize='group' "
                "does not give; use solver='auto' or 'qp'."
            )
        return balance, stiffness_matrix(balance.inner, stiffness), r


class LibsvmDual(DeflatedDual):
    """Through scikit-learn's LIBSVM, for any kernel."""

    name = "libsvm"

    def solve(self, balance: Balance | None = None, *, stiffness: float = np.inf) -> DualSolution:
        """Solve with the penalty ½κ‖u‖² (``inf``: hard equality)."""
        balance, M, r = self._checked(balance, stiffness)
        deflated = self._deflated(balance, M, stiffness)
        beta, n_iter = self._svm(deflated)
        operator = LinearGram(deflated) if isinstance(self.K, LinearGram) else deflated
        # LIBSVM ends near the optimum, for its tolerance and its single precision: finish exactly.
        beta, g, violation = polish(
            lambda rows: operator.block(rows) if isinstance(operator, LinearGram) else operator[np.ix_(rows, rows)],
            lambda coefficients: operator @ coefficients - self.y,
            self.lower,
            self.upper,
            np.clip(beta, self.lower, self.upper),
            rounds=_POLISH_ROUNDS,
        )
        t, gram_beta = np.zeros(r), g + self.y
        if balance is not None:
            t = -(balance.cross.T @ beta) @ M
            gram_beta = gram_beta - balance.cross @ t
        b = intercept_from(g, beta, self.lower, self.upper)
        return DualSolution(beta, gram_beta, t, b, violation, n_iter)

    def _deflated(self, balance: Balance | None, M: Array, stiffness: float) -> Any:
        """The kernel with the directions taken out; as features for a linear kernel."""
        if isinstance(self.K, LinearGram):
            if balance is None or balance.directions is None:
                return self.K.X
            return Projection.along(balance.directions, balance.sums, stiffness).transform(self.K.X)
        return self.K if balance is None else self.K - balance.cross @ M @ balance.cross.T

    def _svm(self, deflated: Any) -> tuple[Array, int]:
        kernel = "linear" if isinstance(self.K, LinearGram) else "precomputed"
        # LIBSVM's kernel is in single precision: below this tolerance it would go on for nothing.
        svc = SVC(C=1.0, tol=max(self.tol, 1e-6), max_iter=self.max_iter, cache_size=1000, kernel=kernel)
        with warnings.catch_warnings():
            # Our own convergence report follows from the number of steps.
            warnings.filterwarnings("ignore", message="Solver terminated early", category=UserWarning)
            svc.fit(deflated, self.y, sample_weight=self.C)
        beta = np.zeros(len(self.y))
        coefficients = svc.dual_coef_  # sparse where the features are
        beta[svc.support_] = np.ravel(coefficients.toarray() if sparse.issparse(coefficients) else coefficients)
        return beta, int(svc.n_iter_[0])


class InteriorPointDual(DeflatedDual):
    """Through an interior point over the people near the margin, for a linear kernel with few features."""

    name = "ipm"

    def __init__(self, K: LinearGram, y: Array, C: Array, *, tol: float, max_iter: int) -> None:
        super().__init__(K, y, C, tol=tol, max_iter=max_iter)
        X = K.X.toarray() if sparse.issparse(K.X) else K.X
        self._beta, self._inside = np.zeros(len(y)), False
        self.svm = LinearSVM(X, self.y, C, tol=tol, max_iter=min(max_iter, _MOST_ITERATIONS))

    def solve_penalty(self, balance: Balance, penalty: float) -> DualSolution:
        """Solve with the paper's penalty λ|u| for one direction."""
        solution = penalised(self.solve, balance, penalty, self._beta, self._inside)
        self._inside = bool(abs(solution.multiplier[0]) < penalty)
        return solution

    def solve(
        self, balance: Balance | None = None, *, stiffness: float = np.inf, multiplier: Array | None = None
    ) -> DualSolution:
        """Solve with the penalty ½κ‖u‖² (``inf``: hard equality), or with the multipliers held at given values.

        The features are never copied.
        """
        if balance is not None and balance.directions is not None and multiplier is not None:
            found = self.svm.solve(pull=balance.directions @ multiplier)
            self._beta = found.beta
            gram_beta = found.scores - found.constant - balance.cross @ multiplier
            return DualSolution(found.beta, gram_beta, multiplier, found.constant, found.violation, found.n_iter)
        balance, M, r = self._checked(balance, stiffness)
        t, shrink = np.zeros(r), None
        if balance is not None and balance.directions is not None:
            shrink = Projection.along(balance.directions, balance.sums, stiffness).matrix
        found = self.svm.solve(shrink)
        self._beta = found.beta
        gram_beta = found.scores - found.constant
        if balance is not None:
            t = -(balance.cross.T @ found.beta) @ M
            gram_beta -= balance.cross @ t
        return DualSolution(found.beta, gram_beta, t, found.constant, found.violation, found.n_iter)
