r"""The paper's quadratic form (QuadForm), solved as printed by CVXOPT: the reference the fast path is tested against.

    minimise ½ μᵀ M μ − Σ γᵢ    over μ = (γ₁ … γ_n, t),    0 ≤ γ ≤ C,  ‖t‖ ≤ λ,  yᵀγ + sumsᵀt = 0

The notation is that of ``_dual.py``; M has the blocks y yᵀ ∘ K, y ∘ cross and inner. With one direction ‖t‖ ≤ λ is
the paper's −λ ≤ γ_{n+1} ≤ λ; with several it is a second-order cone, which CVXOPT's cone solver takes as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from equirecourse.solvers._dual import Balance, DualSolution
from equirecourse.solvers._polish import intercept_from

__all__ = ["ReferenceDual"]

Array = NDArray[np.float64]


def _import_cvxopt() -> Any:
    try:
        import cvxopt
        import cvxopt.solvers
    except ImportError as error:
        raise ImportError(
            "solver='qp' needs CVXOPT, which is not installed; run pip install 'equirecourse[paper]', "
            "or use solver='auto', which finds the same optimum."
        ) from error
    return cvxopt


class ReferenceDual:
    """The same problems as :class:`KernelDual`, as dense quadratic programs without any elimination."""

    def __init__(self, K: Array, y: Array, C: Array, *, tol: float = 1e-12, max_iter: int = 200) -> None:
        self.cvxopt = _import_cvxopt()
        self.K, self.y, self.C = K, y.astype(np.float64), C
        self.lower, self.upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        self.tol, self.max_iter = tol, max_iter

    def solve(self, balance: Balance | None = None, *, stiffness: float = np.inf) -> DualSolution:
        """Solve with the penalty ½κ‖u‖² (``inf``: hard equality)."""
        if balance is None or stiffness == 0:
            r = 0 if balance is None else len(balance)
            solution = self._program(Balance(np.empty((len(self.y), 0)), np.empty((0, 0)), np.empty(0)), 0.0, np.inf)
            return replace(solution, multiplier=np.zeros(r))
        return self._program(balance, 0.0 if np.isinf(stiffness) else 1.0 / stiffness, np.inf)

    def solve_penalty(self, balance: Balance, penalty: float) -> DualSolution:
        """Solve with the paper's penalty λ‖u‖."""
        return self._program(balance, 0.0, penalty)

    def _program(self, balance: Balance, softening: float, bound: float) -> DualSolution:
        matrix, spmatrix = self.cvxopt.matrix, self.cvxopt.spmatrix
        n, r, y = len(self.y), len(balance), self.y
        M = np.empty((n + r, n + r))
        M[:n, :n] = y[:, None] * self.K * y
        M[:n, n:] = y[:, None] * balance.cross
        M[n:, :n] = M[:n, n:].T
        M[n:, n:] = balance.inner + softening * np.eye(r)
        # Rows of G: −γ ≤ 0 and γ ≤ C, then ‖t‖ ≤ λ as two bounds or, for several directions, as the cone (λ, t).
        identity = sparse.eye_array(n + r, format="csr")
        G, h = [-identity[:n], identity[:n]], [np.zeros(n), self.C]
        dims: dict[str, Any] = {"l": 2 * n, "q": [], "s": []}
        if r == 1 and np.isfinite(bound):
            G += [-identity[n:], identity[n:]]
            h += [np.array([bound]), np.array([bound])]
            dims["l"] += 2
        elif r > 1 and np.isfinite(bound):
            G += [sparse.csr_array((1, n + r)), -identity[n:]]
            h += [np.array([bound]), np.zeros(r)]
            dims["q"] = [r + 1]
        G = sparse.vstack(G).tocoo()
        result = self.cvxopt.solvers.coneqp(
            matrix(M),
            matrix(np.concatenate([-np.ones(n), np.zeros(r)])),
            spmatrix(G.data.tolist(), G.row.tolist(), G.col.tolist(), G.shape),
            matrix(np.concatenate(h)),
            dims=dims,
            A=matrix(np.concatenate([y, balance.sums])[None, :]),
            b=matrix(0.0),
            options={
                "show_progress": False,
                "abstol": self.tol,
                "reltol": self.tol,
                "feastol": self.tol,
                "maxiters": self.max_iter,
            },
        )
        mu = np.asarray(result["x"], dtype=np.float64).ravel()
        beta, t = y * np.clip(mu[:n], 0.0, self.C), mu[n:]
        gram_beta = self.K @ beta
        g = gram_beta + balance.cross @ t - y
        # An interior point never reaches a bound: a coefficient this close to one is at it, not free. (The paper
        # averages the intercept over all support vectors, yet only free ones satisfy y f(x) = 1.)
        slack = 1e-5 * self.C
        intercept = intercept_from(g, beta, self.lower + slack, self.upper - slack)
        gap = float(result["relative gap"] or 0.0)
        return DualSolution(beta, gram_beta, t, intercept, gap, int(result["iterations"]))
