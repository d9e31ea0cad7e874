"""Polynomial kernels: their values, the features behind them where they are few, and the plain SVM through those.

``(gamma x·x' + coef0)**degree`` is an inner product of the monomials of x up to that degree, each with a weight. With a
dozen features and degree two these are 91 numbers a person. In them the plain SVM is a linear one, which the interior
point solves whatever C is; pair steps on the kernel matrix need a hundred times as many steps when C and the number of
people are large. Every later solve, for a balance, starts from that one and takes pair steps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import factorial
from sklearn.preprocessing import PolynomialFeatures

from equirecourse.solvers import Balance, DualSolution, KernelDual, LinearSVM

__all__ = ["MonomialDual", "monomials", "monomials_are_worth_it", "polynomial_kernel"]

Array = NDArray[np.float64]

_MOST_ITERATIONS = 100  # of the interior point, which takes some forty
_WORTH_IT = 1.5  # the interior point also saves a kernel matrix, where no balance is asked for


def polynomial_kernel(X: Any, Y: Any, *, degree: int, gamma: float, coef0: float) -> Array:
    """The kernel between two data sets, sparse or not.

    Powers are made by multiplication: numpy raises one number at a time, which would take most of a prediction.
    """
    product = X @ Y.T
    base = np.asarray(product.toarray() if sparse.issparse(product) else product)
    base *= gamma
    base += coef0
    gram = np.ones_like(base) if degree == 0 else base.copy()
    for _ in range(degree - 1):
        gram *= base
    return gram


def monomials(X: Array, *, degree: int, gamma: float, coef0: float) -> Array:
    """Features whose inner products are the polynomial kernel.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Features.
    degree, gamma, coef0 : int, float, float
        Parameters of the kernel, ``gamma`` positive and ``coef0`` not negative.

    Returns
    -------
    ndarray, shape (n, m)
        One column per monomial; without ``coef0`` those of the full degree only.
    """
    expansion = PolynomialFeatures(degree)
    values = expansion.fit_transform(X)
    powers = expansion.powers_
    left = degree - powers.sum(axis=1)
    # The multinomial theorem: how often each product of powers occurs in the expanded kernel.
    times = factorial(degree) / (factorial(powers).prod(axis=1) * factorial(left))
    weights = times * gamma ** (degree - left) * coef0**left
    return np.asarray(values[:, weights > 0] * np.sqrt(weights[weights > 0]))


def monomials_are_worth_it(shape: tuple[int, int], degree: int, coef0: float, weight: float) -> bool:
    """Whether the interior point on monomials beats pair steps on the kernel matrix, for losses of this total weight.

    Both sides are seconds, as measured on credit with 1,000, 4,000 and 10,000 people, degrees 2 and 3, C from 0.001 to
    10 (pair steps from 1). Pair steps grow with the weight of the losses, the interior point with the square of the
    columns.
    """
    n, d = shape
    columns = comb(d + degree - (coef0 == 0), degree)
    pair_steps = 0.065 * (n / 4000) ** 1.4 * (weight / 4000) ** 0.6
    interior_point = n * columns * (1.3e-9 * columns + 3e-7)
    return columns < n / 4 and interior_point < _WORTH_IT * pair_steps


class MonomialDual:
    """The same problems as ``KernelDual``, whose first, plain, solution comes from the monomials.

    Parameters
    ----------
    features : ndarray, shape (n, m)
        Monomials.
    gram : callable
        Returns their kernel matrix, once a balance needs it.
    y, C : ndarray
        Labels ±1 and the bound of each coefficient.
    tol : float
        Largest violation of the optimality conditions.
    max_iter : int
        Largest number of pair steps per solve.
    """

    def __init__(
        self, features: Array, gram: Callable[[], Array], y: Array, C: Array, *, tol: float, max_iter: int
    ) -> None:
        self.features, self.gram, self.y, self.C = features, gram, y, C
        self.tol, self.max_iter = tol, max_iter
        self._plain: DualSolution | None = None
        self._pairs: KernelDual | None = None

    def solve(self, balance: Balance | None = None, **how: Any) -> DualSolution:
        """As ``KernelDual.solve``."""
        if self._plain is None:
            self._plain = self._solve_plain()
            if self._plain.violation > self.tol:  # the monomials span more than double precision holds
                self._plain = self._from_plain().solve()
        if balance is None:
            return self._plain
        return self._from_plain().solve(balance, **how)

    def solve_penalty(self, balance: Balance, penalty: float) -> DualSolution:
        """As ``KernelDual.solve_penalty``."""
        if self._plain is None:
            self.solve()
        return self._from_plain().solve_penalty(balance, penalty)

    def _solve_plain(self) -> DualSolution:
        most = min(self.max_iter, _MOST_ITERATIONS)
        found = LinearSVM(self.features, self.y.astype(np.float64), self.C, tol=self.tol, max_iter=most).solve()
        return DualSolution(
            found.beta, found.scores - found.constant, np.zeros(0), found.constant, found.violation, found.n_iter
        )

    def _from_plain(self) -> KernelDual:
        """Pair steps, which go on from the last solution."""
        if self._pairs is None:
            self._pairs = KernelDual(self.gram(), self.y, self.C, tol=self.tol, max_iter=self.max_iter)
            if self._plain is not None:
                self._pairs.start_from(self._plain)
        return self._pairs
