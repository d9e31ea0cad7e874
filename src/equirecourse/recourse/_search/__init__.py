"""Randomised local search for any model with ``predict``; it proves nothing."""

from equirecourse.recourse._engine import Engine
from equirecourse.recourse._search._engine import search, solve

__all__ = ["ENGINE", "search", "solve"]

ENGINE = Engine("search", lambda _: True, solve)
