"""The duals of ``equirecourse.solvers`` through scikit-learn's LIBSVM.

LIBSVM knows nothing of recourse: it is given a deflated kernel, or projected features for a linear kernel, and solves
an ordinary SVM. Any stiffness of the squared penalty and hard equality can be had this way, as long as the intercept
drops out of the differences.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC

from equirecourse.equalize._projection import Projection
from equirecourse.solvers import Balance, DualSolution, intercept_from, polish, stiffness_matrix

__all__ = ["LibsvmDual", "LinearGram"]

Array = NDArray[np.float64]


class LinearGram:
    """X Xᵀ as an operator: products without the n × n matrix."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def __matmul__(self, other: Array) -> Array:
        return np.asarray(self.X @ (self.X.T @ other))


class LibsvmDual:
    """The same problems as ``KernelDual``, for differences without the intercept.

    Parameters
    ----------
    K : ndarray or LinearGram
        Kernel matrix, or the features of a linear kernel.
    y, C : ndarray
        Labels ±1 and the bound of each coefficient.
    tol : float
        LIBSVM's tolerance, but never below 1e-6: its kernel is in single precision, and it would go on for nothing.
    max_iter : int
        LIBSVM's limit, −1 for none.
    """

    def __init__(self, K: Array | LinearGram, y: Array, C: Array, *, tol: float, max_iter: int = -1) -> None:
        self.K, self.y, self.C = K, y.astype(np.float64), C
        self.lower, self.upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        self.tol, self.max_iter = max(tol, 1e-6), max_iter

    def solve(self, balance: Balance | None = None, *, stiffness: float = np.inf) -> DualSolution:
        """Solve with the penalty ½κ‖u‖² (``inf``: hard equality)."""
        n, r = len(self.y), 0 if balance is None else len(balance)
        if stiffness == 0:
            balance = None
        M = np.empty((0, 0))
        if balance is not None:
            if not balance.sums_to_zero:
                raise ValueError(
                    "solver='libsvm' needs differences in which the intercept cancels, which normalize='group' does "
                    "not give; use solver='auto' or 'qp'."
                )
            M = stiffness_matrix(balance.inner, stiffness)
        svc = SVC(C=1.0, tol=self.tol, max_iter=self.max_iter, cache_size=1000, kernel=self._kernel())
        with warnings.catch_warnings():
            # Our own convergence report follows from the violation below.
            warnings.filterwarnings("ignore", message="Solver terminated early", category=UserWarning)
            deflated = self._deflated(balance, M, stiffness)
            svc.fit(deflated, self.y, sample_weight=self.C)
        beta = np.zeros(n)
        coefficients = svc.dual_coef_  # sparse where the features are
        beta[svc.support_] = np.ravel(coefficients.toarray() if sparse.issparse(coefficients) else coefficients)
        beta = np.clip(beta, self.lower, self.upper)
        # LIBSVM keeps its kernel in single precision: finish in double.
        operator = LinearGram(deflated) if isinstance(self.K, LinearGram) else deflated
        beta, g, violation = polish(
            lambda rows: _block(operator, rows),
            lambda coefficients: operator @ coefficients - self.y,
            self.lower,
            self.upper,
            beta,
        )
        t = np.zeros(r) if balance is None else -(balance.cross.T @ beta) @ M
        return DualSolution(beta, t, intercept_from(g, beta, self.lower, self.upper), violation, int(svc.n_iter_[0]))

    def _kernel(self) -> str:
        return "linear" if isinstance(self.K, LinearGram) else "precomputed"

    def _deflated(self, balance: Balance | None, M: Array, stiffness: float) -> Any:
        """The kernel with the directions taken out; as features for a linear kernel."""
        if isinstance(self.K, LinearGram):
            if balance is None or balance.directions is None:
                return self.K.X
            return Projection.along(balance.directions, balance.sums, stiffness).transform(self.K.X)
        return self.K if balance is None else self.K - balance.cross @ M @ balance.cross.T


def _block(K: Any, rows: NDArray[np.intp]) -> Array:
    """The kernel matrix among some people."""
    if isinstance(K, LinearGram):
        part = K.X[rows]
        product = part @ part.T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)
    return np.asarray(K[np.ix_(rows, rows)])
