"""
Equal recourse in the plane
===========================

The first figure of the paper. Two groups are rejected (brown and grey squares and triangles), and one of them is much
farther from the orange region where a yes is. As the penalty λ on the difference grows, the model finds a boundary that
is as accurate and equally far from both.
"""

# %%
# A straight boundary tilts
# -------------------------
# The labels alone do not say how to tilt the line: many lines separate the red people from the others. The plain
# support vector machine takes the widest margin; the recourse-equal one takes the widest margin among the lines
# that are, on average, equally far from both rejected groups.

import numpy as np
import pandas as pd

from equirecourse import EqualRecourseSVC
from equirecourse.datasets import make_ring_groups, make_tilted_groups
from equirecourse.plotting import plot_boundaries


def fit_path(toy, penalties, **kernel):
    """One model per penalty."""
    return [
        EqualRecourseSVC(recourse_penalty=penalty, **kernel).fit(
            toy.data, toy.target, sensitive_features=toy.sensitive_features
        )
        for penalty in penalties
    ]


def table(displays):
    """Mean distance of each group's rejected people, the gap and the accuracy, per penalty."""
    rows = {
        display.penalty: {
            **dict(zip(display.labels, display.means, strict=True)),
            "gap": display.gap,
            "accuracy": display.accuracy,
        }
        for display in displays
    }
    return pd.DataFrame(rows).T.rename_axis("λ").round(3)


tilted = make_tilted_groups(random_state=0)
models = fit_path(tilted, [0, 1, 2, np.inf], kernel="linear")
displays = plot_boundaries(models, tilted.data, tilted.target, sensitive_features=tilted.sensitive_features)
print(table(displays))

# %%
# A curved boundary gets a second margin
# --------------------------------------
# Here the accepted people are a disc, and the rejected groups are rings around it. At λ = 0 the margins (dashed)
# close around the disc alone. With equal recourse there is a second pair around the outer ring, so that both groups
# lie between the two.
#
# Look at the corners of the last panels, too: the far group is now close to a yes *outwards*, where nobody was ever
# seen. Distances of a kernel model are measured in its feature space, and say little about what a person would have
# to do. A straight boundary has no such surprises.

ring = make_ring_groups(random_state=0)
models = fit_path(ring, [0, 10, 30, np.inf], kernel="rbf", gamma=0.1)
displays = plot_boundaries(models, ring.data, ring.target, sensitive_features=ring.sensitive_features)
print(table(displays))
