"""Measure, explain and equalise recourse across groups, in any scikit-learn model."""

from equirecourse.actions import ActionSet
from equirecourse.audit import RecourseAudit, audit, audit_partitions
from equirecourse.equalize import EqualRecourseLinear, EqualRecourseSVC, RecourseReweighting, recourse_frontier
from equirecourse.flipsets import flipsets
from equirecourse.metrics import RecourseFrame, recourse_gap
from equirecourse.recourse import find_recourse

__all__ = [
    "ActionSet",
    "EqualRecourseLinear",
    "EqualRecourseSVC",
    "RecourseAudit",
    "RecourseFrame",
    "RecourseReweighting",
    "audit",
    "audit_partitions",
    "find_recourse",
    "flipsets",
    "recourse_frontier",
    "recourse_gap",
]

__version__ = "0.1.0"
