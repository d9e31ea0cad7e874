"""Linear scores: closed forms, exact knapsacks over the people at once, and a program each where features are tied."""

from functools import partial

from equirecourse.recourse._engine import Engine
from equirecourse.recourse._linear._engine import closed_form, solve, step_over
from equirecourse.recourse._linear._form import coefficients, is_linear

__all__ = ["ENGINE", "closed_form", "coefficients", "is_linear", "solve", "step_over"]

ENGINE = Engine("linear", is_linear, solve, partial(solve, always_milp=True), settles_the_boundary=True)
