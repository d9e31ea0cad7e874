"""What it costs a rejected person to get a yes."""

from equirecourse.recourse._boundary import BoundaryCosts, boundary_costs
from equirecourse.recourse._dispatch import find_recourse
from equirecourse.recourse._engine import Engine
from equirecourse.recourse._engines import register_engine
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._result import Recourse
from equirecourse.recourse._surrogate import SurrogateRecourse, Surrogates
from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._view import View, open_model

__all__ = [
    "Answers",
    "BoundaryCosts",
    "Engine",
    "Opaque",
    "Problem",
    "Recourse",
    "SurrogateRecourse",
    "Surrogates",
    "View",
    "boundary_costs",
    "find_recourse",
    "open_model",
    "register_engine",
]
