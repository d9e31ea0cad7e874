"""Several different actions for one person, in words."""

from equirecourse._flipsets._changes import changes_of
from equirecourse._flipsets._flipset import Change, Flipset, Flipsets
from equirecourse._flipsets._search import flipsets, flipsets_of

__all__ = ["Change", "Flipset", "Flipsets", "changes_of", "flipsets", "flipsets_of"]
