"""What solvers of linear SVMs are asked, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["LinearSolution", "LinearSolver"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearSolution:
    """A solution: coefficients of both forms, scores of everybody, and how exact they are."""

    beta: Array
    coef: Array
    constant: float  # f(x) = coef·x + constant
    scores: Array
    direction: Array  # w̃, with the coefficient of the constant feature where the intercept is penalised
    intercept: float  # the one outside ‖w̃‖
    objective: float
    gap: float  # primal minus dual objective, an upper bound on what the objective could still lose
    violation: float  # of the optimality conditions, in units of the margin
    n_iter: int  # iterations, Newton steps or passes
    turns: int  # how often everybody was looked at anew


class LinearSolver(Protocol):
    """One training set, solved again and again for other balances, each from the last solution."""

    def solve(self, basis: Array | None = None, factors: Array | None = None) -> LinearSolution:
        """Solve for features of whose orthonormal directions ``basis`` (d × k) the ``factors`` are left; None: all."""
