"""What every loader returns, and how the embedded files are read."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from equirecourse.actions import ActionSet

__all__ = ["embedded", "make_bunch", "plus_minus", "two_groups"]


def embedded(name: str) -> bytes:
    """Read and decompress a file embedded in the package."""
    return lzma.decompress((resources.files("equirecourse.datasets") / "data" / name).read_bytes())


def plus_minus(condition: pd.Series | NDArray[Any]) -> NDArray[np.int64]:
    """+1 where the condition holds, −1 elsewhere."""
    return np.where(np.asarray(condition, dtype=bool), 1, -1).astype(np.int64)


def two_groups(condition: pd.Series | NDArray[Any], inside: str, outside: str) -> NDArray[np.object_]:
    """One of two words per person."""
    return np.where(np.asarray(condition, dtype=bool), inside, outside).astype(object)


def make_bunch(
    *,
    features: pd.DataFrame,
    target: NDArray[np.int64],
    target_name: str,
    target_names: tuple[str, str],
    sensitive_features: pd.DataFrame,
    favorable_label: int,
    actions: Callable[[pd.DataFrame], ActionSet],
    descr: str,
    return_X_y: bool,
    as_frame: bool,
) -> Bunch | tuple[Any, Any]:
    """Arrange a data set in scikit-learn's way.

    Parameters
    ----------
    features, target, sensitive_features : DataFrame, ndarray, DataFrame
        One row per person, in the same order.
    target_name : str
        The name of the target's column.
    target_names : tuple of two str
        What the labels −1 and +1 mean, in that order.
    favorable_label : int
        The label a person hopes for.
    actions : callable
        Makes the action set of the features.
    descr : str
        The description of the data set.
    return_X_y, as_frame : bool
        As in scikit-learn's loaders.

    Returns
    -------
    Bunch or tuple
        The data set, or ``(data, target)`` if ``return_X_y``.
    """
    data: Any = features
    labels: Any = pd.Series(target, name=target_name)
    frame = pd.concat([features, labels], axis=1) if as_frame else None
    if not as_frame:
        data, labels = features.to_numpy(), target
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        frame=frame,
        sensitive_features=sensitive_features,
        feature_names=list(features.columns),
        target_names=list(target_names),
        favorable_label=favorable_label,
        actions=actions(features),
        DESCR=descr,
    )
