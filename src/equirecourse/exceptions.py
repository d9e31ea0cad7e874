"""The warnings and errors of equirecourse that a user may want to catch.

Invalid input is a plain :class:`ValueError` with one sentence; only what deserves a handler of its own has a class.
"""

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ConvergenceWarning",
    "NoRecourseWarning",
    "SmallGroupWarning",
    "UndefinedRecourseWarning",
]


class NoRecourseWarning(UserWarning):
    """Some rejected people have no recourse at all, and the mean is over the others."""


class UndefinedRecourseWarning(UserWarning):
    """A recourse or a gap that has no value: nobody of a group was rejected, or nobody of it has recourse.

    The number that goes with it is NaN, never 0: a model that rejects nobody has equalised nothing.
    """


class SmallGroupWarning(UserWarning):
    """A group has too few rejected people to be balanced, and was left out of the balance."""
