# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""Compiled passes over everybody: margins, what they cost, and who is not where its coefficient says."""

from __future__ import annotations

import numpy as np

from equirecourse._numba import njit

__all__ = ["excess_of", "hinge_of"]


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "contract", "reassoc"})
def hinge_of(products, b, y, C, scores, margin):
    """Scores from products with the coefficients, margins from scores; return Σ C max(0, 1 − margin)."""
    total = 0.0
    for i in range(products.shape[0]):
        scores[i] = products[i] + b
        margin[i] = y[i] * scores[i]
        loss = 1.0 - margin[i]
        total += C[i] * (loss if loss > 0.0 else 0.0)
    return total


@njit(cache=True, nogil=True)
def excess_of(beta, C, margin):
    """How far each person is from where its β says: beyond the margin, inside it, or on it."""
    excess = np.empty(beta.shape[0])
    for i in range(beta.shape[0]):
        away = margin[i] - 1.0
        size = abs(beta[i])
        excess[i] = -away if size == 0.0 else (away if size >= C[i] else abs(away))
    return excess
