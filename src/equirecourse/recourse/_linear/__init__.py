"""Linear scores: closed forms, exact knapsacks over the people at once, and a program each where features are tied."""

from equirecourse.recourse._linear._engine import closed_form, solve, step_over
from equirecourse.recourse._linear._form import coefficients, is_linear

__all__ = ["closed_form", "coefficients", "is_linear", "solve", "step_over"]
