"""Models whose recourse does not depend on the group, and the trade between gap and accuracy."""

from equirecourse.equalize._frontier import Frontier, recourse_frontier
from equirecourse.equalize._linear import EqualRecourseLinear
from equirecourse.equalize._svc import EqualRecourseSVC

__all__ = ["EqualRecourseLinear", "EqualRecourseSVC", "Frontier", "recourse_frontier"]
