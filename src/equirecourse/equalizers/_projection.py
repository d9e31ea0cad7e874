"""A linear model's balance as a transform of its features.

For a linear score w·x + b the difference is u = Zᵀw + sums·b. Any learner that regularises ½‖w‖² is given the penalty
½κ‖u‖² by shrinking its features along Z; hard equality (κ = ∞) removes those directions altogether, which holds for
learners without any regularisation too. The coefficients are carried back, so that prediction needs no transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Projection"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """x ↦ (I + κZZᵀ)^(−½) (x − shift), with a column for a penalised intercept where the intercept takes part in u.

    Attributes
    ----------
    basis : ndarray, shape (n_features, k)
        Orthonormal directions that are shrunk.
    factors : ndarray, shape (k,)
        What remains of each, 0 to 1.
    shift : ndarray, shape (n_features,), or None
        Set when u holds the intercept. Then b = b′ − w·shift, where u = c b′ for a known c.
    intercept_column : float
        The constant feature that stands for b′ with the penalty ½κc²b′²; 0 for hard equality, where b′ = 0.
    """

    basis: Array
    factors: Array
    shift: Array | None = None
    intercept_column: float = 0.0

    @classmethod
    def along(cls, Z: Array, sums: Array, stiffness: float) -> Projection:
        """The transform for directions Z (n_features × r) whose differences hold ``sums`` times the intercept."""
        if not np.any(sums):
            return cls(*_shrinkage(Z, stiffness))
        # In a basis where only the first direction has a sum, the others are shrunk and that one is shifted away.
        first = sums / np.linalg.norm(sums)
        rotation = np.linalg.qr(np.column_stack([first, np.eye(len(sums))]))[0]
        rotated, c = Z @ rotation, float(sums @ rotation[:, 0])
        basis, factors = _shrinkage(rotated[:, 1:], stiffness)
        column = 0.0 if np.isinf(stiffness) else 1.0 / (np.sqrt(stiffness) * abs(c))
        return cls(basis, factors, rotated[:, 0] / c, column)

    def transform(self, X: Any) -> Any:
        """The features to learn from."""
        if self.shift is None and self.basis.shape[1] == 0:
            return X
        # Taking a dense direction out of sparse rows leaves dense rows.
        dense = X.toarray() if hasattr(X, "toarray") else X
        if self.shift is not None:
            dense = dense - self.shift
        dense = dense - ((dense @ self.basis) * (1.0 - self.factors)) @ self.basis.T
        if self.intercept_column:
            dense = np.column_stack([dense, np.full(len(dense), self.intercept_column)])
        return dense

    def carry_back(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """Coefficients and intercept for the original features."""
        if self.intercept_column:
            coef, intercept = coef[:-1], float(coef[-1]) * self.intercept_column
        coef = coef - self.basis @ ((1.0 - self.factors) * (self.basis.T @ coef))
        if self.shift is not None:
            intercept = intercept - float(coef @ self.shift)
        return coef, float(intercept)


def _shrinkage(Z: Array, stiffness: float) -> tuple[Array, Array]:
    """Orthonormal basis of span(Z), and the factors (1 + κs²)^(−½)."""
    if stiffness == 0 or Z.shape[1] == 0:
        return np.empty((len(Z), 0)), np.empty(0)
    basis, s, _ = np.linalg.svd(Z, full_matrices=False)
    significant = s > 1e-12 * s.max(initial=0.0)
    basis, s = basis[:, significant], s[significant]
    factors = np.zeros(len(s)) if np.isinf(stiffness) else 1.0 / np.sqrt(1.0 + stiffness * s**2)
    return basis, factors
