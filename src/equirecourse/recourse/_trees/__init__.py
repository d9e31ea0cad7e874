"""Trees and ensembles of them: exact by search over the boxes their thresholds cut, or by a program each."""

from equirecourse.recourse._trees._engine import can_read, solve

__all__ = ["can_read", "solve"]
