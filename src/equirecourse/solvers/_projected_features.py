"""Features of people, dense or sparse, from which a few directions are taken out without writing them anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["ProjectedFeatures", "by_rows", "squares_of", "violation_of"]

Array = NDArray[np.float64]


class ProjectedFeatures:
    """M = [X A, scaling] with A = I − Q diag(1 − f) Qᵀ: products alone, for X may be sparse and A is dense.

    Without an intercept the scaling is 0, and so is the last entry of whatever M is multiplied with.
    """

    def __init__(self, X: Any, scaling: float, basis: Array | None, factors: Array | None) -> None:
        nothing = basis is None or factors is None
        self.X, self.scaling = X, scaling
        self.basis: Array = np.empty((X.shape[1], 0)) if nothing else np.asarray(basis)
        self.factors: Array = np.empty(0) if nothing else np.asarray(factors)

    def through(self, vector: Array) -> Array:
        """A times a vector, or the columns of a matrix."""
        if self.basis.shape[1] == 0:
            return vector
        return np.asarray(vector - (self.basis * (1.0 - self.factors)) @ (self.basis.T @ vector))

    def times(self, z: Array) -> Array:
        """M z."""
        return np.asarray(self.X @ self.through(z[:-1])) + self.scaling * float(z[-1])

    def transposed(self, beta: Array) -> Array:
        """Mᵀ β."""
        return np.append(self.through(np.asarray(self.X.T @ beta)), self.scaling * float(beta.sum()))

    def between(self, gram: Array, sums: Array, total: float) -> Array:
        """Mᵀ W M from Xᵀ W X, the weighted sums of the features, and the sum of the weights W."""
        matrix = np.empty((len(gram) + 1, len(gram) + 1))
        matrix[:-1, :-1] = self.through(self.through(gram).T)
        matrix[-1, :-1] = matrix[:-1, -1] = self.scaling * self.through(sums)
        matrix[-1, -1] = self.scaling**2 * total
        return matrix

    def of(self, rows: NDArray[np.intp]) -> ProjectedFeatures:
        """The same for some of the people."""
        return ProjectedFeatures(self.X[rows], self.scaling, self.basis, self.factors)


def by_rows(X: Any) -> Any:
    """Features whose rows are contiguous, each entry once."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def squares_of(X: Any) -> Array:
    """‖x‖² of everybody."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def violation_of(gradient: Array, alpha: Array, upper: Array) -> float:
    """The largest minus the smallest entry of the dual's projected gradient, or of zero: LIBLINEAR's measure."""
    falls, rises = gradient[alpha > 0], gradient[alpha < upper]
    return float(falls.max(initial=0.0) - rises.min(initial=0.0))
