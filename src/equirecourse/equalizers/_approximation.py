"""Few features in which inner products are all but those of a kernel, for more people than a kernel matrix holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.kernel_approximation import RBFSampler

__all__ = ["FourierMap", "NystroemMap", "fit_fourier", "fit_nystroem"]

Array = NDArray[np.float64]

_SIGNIFICANT = 1e-10  # an eigenvalue of the landmarks' kernel matrix below this, of the largest, is rounding


@dataclass(frozen=True)
class NystroemMap:
    """Coordinates in the span of some people's images under the kernel, the landmarks.

    Attributes
    ----------
    rows : ndarray of int, shape (n_landmarks,)
        Who they are.
    points : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        Their features.
    projection : ndarray of shape (n_landmarks, n_components)
        A person's coordinates are their kernel with the landmarks times this. The coordinates are orthonormal, so a
        weight w of theirs is the kernel expansion of coefficients ``projection @ w`` and of the same norm.
    kernel : callable
        Two data sets → kernel matrix.
    """

    rows: NDArray[np.intp]
    points: Any
    projection: Array
    kernel: Callable[[Any, Any], Array]

    def transform(self, X: Any) -> Array:
        """The coordinates of people."""
        return np.asarray(self.kernel(X, self.points) @ self.projection)


@dataclass(frozen=True)
class FourierMap:
    """Cosines at random frequencies, whose inner products are on average those of the rbf kernel."""

    sampler: RBFSampler

    def transform(self, X: Any) -> Array:
        """The cosines of people."""
        return np.asarray(self.sampler.transform(X))


def fit_nystroem(
    X: Any, kernel: Callable[[Any, Any], Array], n_components: int, random_state: np.random.RandomState
) -> NystroemMap:
    """Choose landmarks at random, and coordinates in their span."""
    n = X.shape[0]
    rows = np.sort(random_state.permutation(n)[: min(n, n_components)])
    points = X[rows]
    values, vectors = linalg.eigh(kernel(points, points))
    kept = values > _SIGNIFICANT * max(float(values.max(initial=0.0)), 1e-300)
    return NystroemMap(rows, points, vectors[:, kept] / np.sqrt(values[kept]), kernel)


def fit_fourier(X: Any, gamma: float, n_components: int, random_state: np.random.RandomState) -> FourierMap:
    """Draw the frequencies."""
    return FourierMap(RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state).fit(X))
