"""Checked training data, and what the rounds ask of a learner on them."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import Groups
from equirecourse.equalizers._contrasts import Contrasts
from equirecourse.equalizers._rounds import RoundFit, Rounds

__all__ = ["FitData", "Problem"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FitData:
    """Checked training data. ``y`` is +1 for the favourable label, whatever the labels are."""

    X: Any
    labels: NDArray[Any]
    y: Array
    sample_weight: Array
    weighted: bool
    partitions: tuple[Groups, ...]
    classes: NDArray[Any]
    sign: float
    rows: NDArray[np.intp]

    def replace(self, **changes: Any) -> FitData:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


class Problem(Protocol):
    """A training set ready to be fitted again and again, for other contrasts and other stiffnesses."""

    model: Any
    data: FitData

    def at_work(self) -> AbstractContextManager[Any]:
        """Where its fits, and what is done between them, are to run."""

    def fit_at(self, contrasts: Contrasts | None, stiffness: float) -> RoundFit: ...

    def fit(self, contrasts: Contrasts | None) -> RoundFit: ...

    def natural_stiffness(self, contrasts: Contrasts) -> float: ...

    def repeats(self, rounds: Rounds) -> bool:
        """Whether rounds under an earlier penalty are known to be those under the model's penalty too."""
