"""Numbers that can be said: 2,840 rather than 2837.4162."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions import ActionSet
from equirecourse.recourse import View

__all__ = ["rounded"]

Array = NDArray[np.float64]

# The most that rounding may add to a change, coarse first; what fails the model's check is tried finer.
_SHARES = (0.02, 0.002, 0.0002)


def rounded(view: View, person: pd.DataFrame, actions: ActionSet, start: Array, own: Array) -> Array:
    """Round numbers without a step away from where they were, as long as the model still says yes.

    Parameters
    ----------
    view : View
        The model.
    person : DataFrame
        One row.
    actions : ActionSet
        What may change.
    start, own : ndarray of shape (1, n_features)
        Where the person is, and where an accepted action takes them.

    Returns
    -------
    ndarray of shape (1, n_features)
        An accepted action with rounder numbers, or the one given.
    """
    for share in _SHARES:
        aim = own.copy()
        for j, feature in enumerate(actions):
            move = own[0, j] - start[0, j]
            if feature.is_number and feature.step is None and move != 0 and np.isfinite(move):
                aim[0, j] = _outwards(own[0, j], move, share)
                if not feature.low <= aim[0, j] <= feature.high:
                    aim[0, j] = own[0, j]
        if actions.respected(start, aim).all() and view.accepts(actions.decode(person, start, aim)).all():
            return aim
    return own


def _outwards(value: float, move: float, share: float) -> float:
    """Next multiple of a power of ten beyond the value, at most a share of the move away."""
    places = -int(np.floor(np.log10(abs(move) * share)))
    unit = 10.0**-places
    ends = np.ceil(value / unit) if move > 0 else np.floor(value / unit)
    # As a decimal, so that it prints as one.
    return float(round(float(ends * unit), places))
