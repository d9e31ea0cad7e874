"""Kernel machines: exact on a quadric (degree two), a verified descent on any other smooth score."""

from equirecourse.recourse._engine import Engine
from equirecourse.recourse._kernel._engine import can_read, solve

__all__ = ["ENGINE", "can_read", "solve"]

ENGINE = Engine("kernel", can_read, solve)
