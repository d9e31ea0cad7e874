"""Scores with known gradients, as functions of the numbers that people change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from equirecourse.recourse._kernel._quadric import dense
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._search._feasible import FeasibleSet
from equirecourse.recourse._trace import Opaque

__all__ = ["InputScore", "InputSurface", "KernelScore", "SeenInputs", "kernel_score", "see_inputs"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

# A departure from a straight line larger than this, relative to the size of the inputs, is not rounding.
_STRAIGHT = 1e-7


class InputScore(Protocol):
    """A score of a model's inputs with a gradient."""

    def values(self, inputs: Array) -> Array:
        """Score of each row."""

    def gradients(self, inputs: Array) -> Array:
        """Gradient of the score at each row."""


@dataclass(frozen=True)
class KernelScore:
    """f(z) = Σ aᵢ k(sᵢ, z) + b, more is better, for the kernels of scikit-learn's SVC.

    Attributes
    ----------
    kernel : {"rbf", "poly", "sigmoid"}
        The kernel.
    points : ndarray of shape (n_support, n_inputs)
        s.
    weights : ndarray of shape (n_support,)
        a.
    level : float
        b.
    gamma, shift, degree : float
        Parameters of the kernel.
    """

    kernel: str
    points: Array
    weights: Array
    level: float
    gamma: float
    shift: float
    degree: int

    def _gram(self, inputs: Array) -> Array:
        parameters = {"gamma": self.gamma, "coef0": self.shift, "degree": self.degree}
        return np.asarray(pairwise_kernels(inputs, self.points, metric=self.kernel, filter_params=True, **parameters))

    def values(self, inputs: Array) -> Array:
        """Score of each row."""
        return np.asarray(self._gram(inputs) @ self.weights + self.level)

    def gradients(self, inputs: Array) -> Array:
        """Gradient of the score at each row."""
        if self.kernel == "rbf":
            pull = self._gram(inputs) * self.weights
            return np.asarray(2.0 * self.gamma * (pull @ self.points - pull.sum(axis=1)[:, None] * inputs))
        if self.kernel == "poly":
            inner = self.gamma * (inputs @ self.points.T) + self.shift
            steep = self.degree * inner ** (self.degree - 1) if self.degree else np.zeros_like(inner)
        else:
            steep = 1.0 - self._gram(inputs) ** 2
        return np.asarray(self.gamma * ((steep * self.weights) @ self.points))

    def weight_norm(self) -> float:
        """‖w‖ in the feature space of the kernel."""
        return float(np.sqrt(max(float(self.weights @ (self._gram(self.points) @ self.weights)), 0.0)))


def kernel_score(model: Any, sign: float) -> KernelScore | None:
    """Read the score of a support vector machine, times ``sign``; None for another model or a kernel of one's own."""
    kernel = getattr(model, "kernel", None)
    if (
        kernel not in ("rbf", "poly", "sigmoid")
        or not hasattr(model, "support_vectors_")
        or not hasattr(model, "_gamma")
    ):
        return None
    return KernelScore(
        kernel,
        dense(model.support_vectors_),
        sign * np.ravel(dense(model.dual_coef_)),
        sign * float(np.ravel(model.intercept_)[0]),
        float(model._gamma),
        float(model.coef0),
        int(model.degree),
    )


@dataclass(frozen=True)
class SeenInputs:
    """How a model's inputs follow the numbers that people change: a shift by M times their moves.

    Attributes
    ----------
    maps : list of ndarray of shape (n_inputs, n_features)
        The different M: people in whom something is missing have others.
    which : ndarray of int, shape (n_people,)
        Which of them is a person's.
    """

    maps: list[Array]
    which: Index

    def of(self, people: Index) -> Iterator[tuple[Mask, Array]]:
        """Each M that some of these people have, and who of them."""
        for kind, matrix in enumerate(self.maps):
            mine = self.which[people] == kind
            if mine.any():
                yield mine, matrix


def see_inputs(problem: Problem, feasible: FeasibleSet) -> SeenInputs | None:
    """Find M by moving each number far; None if a number reaches the model by more than a shift and a scale.

    Links are part of M: what a number carries along reaches the model too.
    """
    numbers = np.array([feature.is_number for feature in problem.actions], dtype=bool)
    try:
        sources = problem.view.sources(problem.table, problem.actions)
    except Opaque:
        return None
    if any(shape not in ("same", "affine") and any(numbers[j] for j in features) for features, shape in sources):
        return None
    kinds, first, which = np.unique(
        np.hstack([feasible.movable & numbers, np.isnan(problem.start)]), axis=0, return_index=True, return_inverse=True
    )
    maps = []
    for kind, person in zip(kinds, first, strict=True):
        moving = np.flatnonzero(kind[: len(numbers)])
        own = np.repeat(problem.start[[person]], 2 * len(moving) + 1, axis=0)
        far = np.maximum(feasible.spread, np.abs(np.nan_to_num(problem.start[person])))
        for k, j in enumerate(moving):
            own[2 * k, j] += far[j]
            own[2 * k + 1, j] -= far[j]
        inputs = problem.view.inputs(problem.after(np.full(len(own), person), own))
        up, down, here = inputs[0:-1:2], inputs[1:-1:2], inputs[-1]
        size = np.abs(inputs).max(initial=1.0)
        if np.any(np.abs(up + down - 2.0 * here) > _STRAIGHT * size):
            return None
        matrix = np.zeros((inputs.shape[1], len(numbers)))
        matrix[:, moving] = ((up - down) / (2.0 * far[moving, None])).T
        maps.append(matrix)
    return SeenInputs(maps, np.asarray(which).reshape(-1))


class InputSurface:
    """The score of moves of the free features through an affine look at a model's inputs; others are as in ``own``."""

    def __init__(
        self, problem: Problem, seen: SeenInputs, score: InputScore, people: Index, own: Array, free: Mask
    ) -> None:
        self._score, self._seen, self._people = score, seen, people
        self._base = problem.view.inputs(problem.after(people, np.where(free, problem.start[people], own)))
        self._free = free

    def values(self, rows: Index, moves: Array) -> Array:
        """Scores after moves."""
        return self._score.values(self._inputs(rows, moves))

    def gradients(self, rows: Index, moves: Array) -> Array:
        """Gradients with respect to the moves."""
        slopes = self._score.gradients(self._inputs(rows, moves))
        out = np.zeros_like(moves)
        for mine, matrix in self._seen.of(self._people[rows]):
            out[mine] = slopes[mine] @ matrix
        return np.where(self._free, out, 0.0)

    def _inputs(self, rows: Index, moves: Array) -> Array:
        inputs = self._base[rows]
        for mine, matrix in self._seen.of(self._people[rows]):
            inputs[mine] += moves[mine] @ matrix.T
        return inputs
