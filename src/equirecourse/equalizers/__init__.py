"""Models whose recourse does not depend on the group, and the trade between gap and accuracy."""

from equirecourse.equalizers._boosting import EqualRecourseBoosting
from equirecourse.equalizers._frontier import Frontier, recourse_frontier
from equirecourse.equalizers._linear import EqualRecourseLinear
from equirecourse.equalizers._partitioned import PartitionedEqualRecourse
from equirecourse.equalizers._reweighting import RecourseReweighting, point_weights
from equirecourse.equalizers._svc import EqualRecourseSVC

__all__ = [
    "EqualRecourseBoosting",
    "EqualRecourseLinear",
    "EqualRecourseSVC",
    "Frontier",
    "PartitionedEqualRecourse",
    "RecourseReweighting",
    "point_weights",
    "recourse_frontier",
]
