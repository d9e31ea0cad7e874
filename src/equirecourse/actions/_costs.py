"""How the costs of the features make up the cost of a change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import check_choice

__all__ = ["DISTANCES", "NORMS", "check_norm", "total_cost"]

Array = NDArray[np.float64]

# How the costs of the features add up.
NORMS = {"l1": "sum", "l2": "root", "linf": "max", "max_shift": "max", "log_shift": "sum"}

# Norms that price the distance a feature moves; the others look at how many people it passes on the way.
DISTANCES = ("l1", "l2", "linf")


def total_cost(norm: str, parts: Array) -> Array:
    """Cost of a whole change from the costs of its features (last axis).

    Parameters
    ----------
    norm : {"l1", "l2", "linf", "max_shift", "log_shift"}
        How they add up: the sum, the root of the sum of squares, the largest, the largest, the sum.
    parts : ndarray of shape (..., n_features)
        Cost of each feature's change, see :meth:`ActionSet.costs`.

    Returns
    -------
    ndarray of shape (...)
        One cost per change.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.actions import total_cost
    >>> total_cost("l2", np.array([[3.0, 4.0]])).tolist()
    [5.0]
    """
    check_norm(norm)
    if NORMS[norm] == "root":
        return np.asarray(np.sqrt(np.square(parts).sum(axis=-1)))
    if NORMS[norm] == "sum":
        return np.asarray(parts.sum(axis=-1))
    return np.asarray(parts.max(axis=-1, initial=0.0))


def check_norm(norm: Any) -> None:
    """Refuse a norm that nobody knows."""
    check_choice(norm, NORMS, name="norm")
