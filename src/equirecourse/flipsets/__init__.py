"""Several different actions for one person, in words."""

from equirecourse.flipsets._flipset import Change, Flipset, Flipsets
from equirecourse.flipsets._search import flipsets

__all__ = ["Change", "Flipset", "Flipsets", "flipsets"]
