"""The weights of the paper's Algorithm 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["point_weights"]

Array = NDArray[np.float64]


def point_weights(distances: Array, rejected: NDArray[np.bool_]) -> Array:
    r"""Weight of each person: :math:`\min_{X^-} d / d(x)` for the rejected (the paper's namd), 1 for the accepted.

    Parameters
    ----------
    distances : ndarray of shape (n_people,)
        Distance of each person to the boundary; those of accepted people are not looked at.
    rejected : ndarray of bool
        Who is rejected.

    Returns
    -------
    ndarray of shape (n_people,)
        Weights between 0 and 1. Somebody on the boundary has weight 1, and with them the smallest distance is the
        smallest positive one; somebody without recourse is infinitely far and has weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.equalizers import point_weights
    >>> point_weights(np.array([0.5, 2.0, 1.0, np.inf]), np.array([True, True, False, True])).tolist()
    [1.0, 0.25, 1.0, 0.0]
    """
    weights = np.ones(len(distances))
    away = rejected & (distances > 0)
    if away.any() and np.isfinite(distances[away]).any():
        weights[away] = distances[away].min() / distances[away]
    return weights
