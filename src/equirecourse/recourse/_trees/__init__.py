"""Trees and ensembles of them: exact by search over the boxes their thresholds cut, or by a program each."""

from functools import partial

from equirecourse.recourse._engine import Engine
from equirecourse.recourse._trees._engine import can_read, solve

__all__ = ["ENGINE", "can_read", "solve"]

ENGINE = Engine("trees", can_read, solve, partial(solve, always_milp=True))
