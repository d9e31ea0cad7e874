"""Kernel machines: exact on a quadric (degree two), a verified descent on any other smooth score."""

from equirecourse.recourse._kernel._engine import can_read, solve

__all__ = ["can_read", "solve"]
