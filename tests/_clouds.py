"""People in four clouds, of whom some of one group are far away."""

import numpy as np


def four_clouds(n, rng, outliers=0.0):
    """The accepted of both groups around (0, 3), the rejected around (½, 0) and (3½, −2)."""
    group, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    centers = np.array([[[0.5, 0.0], [3.5, -2.0]], [[0.0, 3.0], [0.0, 3.0]]])
    X = centers[y, group] + 0.45 * rng.normal(size=(n, 2))
    cloud = np.flatnonzero((group == 1) & (y == 0))
    far = rng.choice(cloud, round(outliers * len(cloud)), replace=False)
    X[far] = np.array([30.0, -30.0]) + rng.normal(size=(len(far), 2))
    return X, y, group
