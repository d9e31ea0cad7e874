"""Several different actions for one person, in words."""

from equirecourse.flipsets._changes import changes_of
from equirecourse.flipsets._flipset import Change, Flipset, Flipsets
from equirecourse.flipsets._search import flipsets, flipsets_of

__all__ = ["Change", "Flipset", "Flipsets", "changes_of", "flipsets", "flipsets_of"]
