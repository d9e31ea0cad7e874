"""Figures: the cost of recourse by group, the frontier of accuracy against gap, boundaries in the plane.

The classes follow scikit-learn's displays: a ``from_...`` method computes and draws, the object keeps the data, and
``plot`` draws it again, on other axes or in another way. Matplotlib is imported when something is drawn.
"""

from equirecourse.plotting._boundary import BoundaryDisplay, plot_boundaries
from equirecourse.plotting._frontier import FrontierDisplay
from equirecourse.plotting._recourse import RecourseDisplay

__all__ = ["BoundaryDisplay", "FrontierDisplay", "RecourseDisplay", "plot_boundaries"]
