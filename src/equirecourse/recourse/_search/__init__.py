"""Anything that predicts: a search for cheap accepted rows that asks the model and believes nothing else."""

from equirecourse.recourse._engine import Engine
from equirecourse.recourse._search._engine import search, solve

__all__ = ["ENGINE", "search", "solve"]

ENGINE = Engine("search", lambda _: True, solve)
