"""The costs, by the name that ``norm=`` takes. Add one here; nobody else asks for a name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import check_choice
from equirecourse.actions._costs._cost import Cost
from equirecourse.actions._costs._distances import Distance
from equirecourse.actions._costs._percentiles import LogShift, MaxShift

__all__ = [
    "DEFAULT_NORM",
    "EUCLIDEAN_NORM",
    "L1",
    "NORMS",
    "Cost",
    "Distance",
    "check_norm",
    "cost_named",
    "total_cost",
]

L1 = Distance("l1", 1.0, "sum of all changes")
L2 = Distance("l2", 2.0, "Euclidean distance")
LINF = Distance("linf", np.inf, "largest change")
MAX_SHIFT = MaxShift("max_shift", np.inf, "largest shift in percentiles")
LOG_SHIFT = LogShift("log_shift", 1.0, "sum of log shifts in percentiles")

NORMS: dict[str, Cost] = {cost.name: cost for cost in (L1, L2, LINF, MAX_SHIFT, LOG_SHIFT)}

# Wherever the cost of an action is asked for: recourse, flipsets, audits, equalizers.
DEFAULT_NORM = L1.name

# The paper's geometric distances: the only norm of a kernel's feature space, and that of its Algorithm 2.
EUCLIDEAN_NORM = L2.name


def cost_named(norm: Any) -> Cost:
    """The cost of a name; an unknown name is refused."""
    return NORMS[check_choice(norm, NORMS, name="norm")]


def check_norm(norm: Any) -> None:
    """Refuse a norm that nobody knows."""
    cost_named(norm)


def total_cost(norm: str, parts: NDArray[np.float64]) -> NDArray[np.float64]:
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
    return cost_named(norm).total(parts)
