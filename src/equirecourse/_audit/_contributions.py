"""Which features make up what recourse costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions import ActionSet, cost_named

__all__ = ["shares_of_cost"]

Array = NDArray[np.float64]


def shares_of_cost(actions: ActionSet, norm: str, before: pd.DataFrame, after: Any) -> Array:
    """What each feature adds to the cost of each person; the entries of a person sum to their cost."""
    start = actions.encode(before)
    parts = actions.costs(norm, start, actions.own(before, after))
    return cost_named(norm).shares(parts)
