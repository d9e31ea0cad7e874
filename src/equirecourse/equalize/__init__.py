"""Models whose recourse does not depend on the group, and the trade between gap and accuracy."""

from equirecourse.equalize._boosting import EqualRecourseBoosting
from equirecourse.equalize._frontier import Frontier, recourse_frontier
from equirecourse.equalize._linear import EqualRecourseLinear
from equirecourse.equalize._partitioned import PartitionedEqualRecourse
from equirecourse.equalize._point_weights import point_weights
from equirecourse.equalize._reweighting import RecourseReweighting
from equirecourse.equalize._svc import EqualRecourseSVC

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
