"""What a person can change, and what it costs."""

from typing import Any

from equirecourse.actions._action_set import ActionSet, check_actions
from equirecourse.actions._costs import (
    DEFAULT_NORM,
    EUCLIDEAN_NORM,
    L1,
    NORMS,
    Cost,
    Distance,
    check_norm,
    cost_named,
    total_cost,
)
from equirecourse.actions._feature import Feature, Percentiles
from equirecourse.actions._rules import Condition, Link, Rule

__all__ = [
    "DEFAULT_NORM",
    "EUCLIDEAN_NORM",
    "L1",
    "NORMS",
    "ActionSet",
    "Condition",
    "Cost",
    "Distance",
    "Feature",
    "Link",
    "Percentiles",
    "Rule",
    "check_actions",
    "check_norm",
    "cost_named",
    "total_cost",
]


def __getattr__(name: str) -> Any:
    if name == "DISTANCES":
        import warnings

        warnings.warn(
            "equirecourse.actions.DISTANCES goes away in the next release; ask NORMS[norm].is_distance instead.",
            FutureWarning,
            stacklevel=2,
        )
        return tuple(norm for norm, cost in NORMS.items() if cost.is_distance)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
