"""A linear kernel without its matrix, and the duals of ``equirecourse.solvers`` on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from equirecourse.equalizers._projection import Projection
from equirecourse.solvers import Balance, DualSolution, LinearSVM, penalised, stiffness_matrix

__all__ = ["InteriorPointDual", "LinearGram"]

Array = NDArray[np.float64]


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


class InteriorPointDual:
    """The same problems as ``KernelDual``, for a linear kernel and differences without the intercept.

    The features are never copied.

    Parameters
    ----------
    K : LinearGram
        The features.
    y, C : ndarray
        Labels ±1 and the bound of each coefficient.
    tol : float
        Tolerance of the solver.
    max_iter : int
        Limit on its iterations.
    """

    def __init__(self, K: LinearGram, y: Array, C: Array, *, tol: float, max_iter: int) -> None:
        X = K.X.toarray() if sparse.issparse(K.X) else K.X
        self.svm = LinearSVM(X, y.astype(np.float64), C, tol=tol, max_iter=max_iter)
        self._beta, self._inside = np.zeros(len(y)), False

    def solve_penalty(self, balance: Balance, penalty: float) -> DualSolution:
        """Solve with the paper's penalty λ|u| for one direction."""
        solution = penalised(self.solve, balance, penalty, self._beta, self._inside)
        self._inside = bool(abs(solution.multiplier[0]) < penalty)
        return solution

    def solve(
        self, balance: Balance | None = None, *, stiffness: float = np.inf, multiplier: Array | None = None
    ) -> DualSolution:
        """Solve with the penalty ½κ‖u‖² (``inf``: hard equality), or with the multipliers held at given values."""
        t = np.zeros(0 if balance is None else len(balance))
        if balance is None or balance.directions is None or stiffness == 0:
            found = self.svm.solve()
        elif not balance.sums_to_zero:
            raise ValueError(
                "solver='ipm' needs differences in which the intercept cancels, which normalize='group' does not "
                "give; use solver='auto' or 'qp'."
            )
        elif multiplier is not None:
            found, t = self.svm.solve(pull=balance.directions @ multiplier), multiplier
        else:
            projection = Projection.along(balance.directions, balance.sums, stiffness)
            found = self.svm.solve(projection.basis, projection.factors)
            t = -(balance.cross.T @ found.beta) @ stiffness_matrix(balance.inner, stiffness)
        self._beta = found.beta
        gram_beta = found.scores - found.constant
        if balance is not None and len(t):
            gram_beta = gram_beta - balance.cross @ t
        return DualSolution(found.beta, gram_beta, t, found.constant, found.violation, found.n_iter)
