"""Measure, explain and equalise recourse across groups, in any scikit-learn model."""

from equirecourse.equalize import EqualRecourseLinear, EqualRecourseSVC, recourse_frontier
from equirecourse.metrics import RecourseFrame, recourse_gap

__all__ = [
    "EqualRecourseLinear",
    "EqualRecourseSVC",
    "RecourseFrame",
    "recourse_frontier",
    "recourse_gap",
]

__version__ = "0.1.0"
