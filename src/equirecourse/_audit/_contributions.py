"""Which features make up what recourse costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions import NORMS, ActionSet

__all__ = ["shares_of_cost"]

Array = NDArray[np.float64]


def shares_of_cost(actions: ActionSet, norm: str, before: pd.DataFrame, after: Any) -> Array:
    """What each feature adds to the cost of each person; the entries of a person sum to their cost.

    A sum of costs is shared out as it is; a root of squares in proportion to the squares; a largest cost is that of the
    feature that has it.
    """
    start = actions.encode(before)
    parts = actions.costs(norm, start, actions.own(before, after))
    kind = NORMS[norm]
    if kind == "sum":
        return np.asarray(parts)
    if kind == "root":
        total = np.sqrt((parts**2).sum(axis=1, keepdims=True))
        return np.asarray(np.divide(parts**2, total, out=np.zeros_like(parts), where=total > 0))
    largest = parts.argmax(axis=1)
    shares = np.zeros_like(parts)
    rows = np.arange(len(parts))
    shares[rows, largest] = parts[rows, largest]
    return shares
