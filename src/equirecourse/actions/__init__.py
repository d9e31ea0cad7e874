"""What a person can change, and what it costs."""

from equirecourse.actions._action_set import ActionSet, check_actions
from equirecourse.actions._costs import DISTANCES, NORMS, check_norm, total_cost
from equirecourse.actions._feature import Feature, Percentiles
from equirecourse.actions._rules import Condition, Link, Rule

__all__ = [
    "DISTANCES",
    "NORMS",
    "ActionSet",
    "Condition",
    "Feature",
    "Link",
    "Percentiles",
    "Rule",
    "check_actions",
    "check_norm",
    "total_cost",
]
