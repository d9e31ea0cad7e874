"""What it costs a rejected person to get a yes."""

from equirecourse.recourse._boundary import BoundaryCosts, boundary_costs

__all__ = ["BoundaryCosts", "boundary_costs"]
