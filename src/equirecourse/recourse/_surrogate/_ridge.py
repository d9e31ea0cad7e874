"""Weighted ridge regressions of the same rows for many people at once, each with weights of their own.

Notation: Z are the rows (standardised samples), t their targets, π the weights of one person; ``gram`` is
Σ π (z − z̄)(z − z̄)ᵀ and ``moment`` is Σ π (z − z̄)(t − t̄), with the person's own weighted means z̄ and t̄. The ridge
regression with an intercept that is not shrunk solves (gram + αI) w = moment. All that a person needs are sums over
rows with their weights: one matrix product for a chunk of people.

With fewer rows than columns the same regression is solved in the rows: w = Σ √π (z − z̄) a, where (√π K √π + α) a =
√π (t − t̄) and K holds the products of centred rows. Those of the rows as they are serve everybody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SELECTIONS", "Fits", "Rows", "fit_ridges"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SELECTIONS = ("weights", "forward", "none")

_PAIRS = 64_000_000  # numbers in the table of products of two columns, from which on it is not made


@dataclass(frozen=True)
class Fits:
    """One linear function per person: ``intercepts + coefficients · z``; zero where a feature was not chosen."""

    coefficients: Array
    intercepts: Array

    def values(self, Z: Array) -> Array:
        """The functions at as many points, each at its own."""
        return np.asarray(self.intercepts + np.einsum("ij,ij->i", self.coefficients, Z))


class Rows:
    """Rows to be regressed on, with what all regressions share."""

    def __init__(self, Z: Array, targets: Array) -> None:
        self.Z, self.targets = Z, targets
        self.squares = np.einsum("ij,ij->i", Z, Z)
        d = Z.shape[1]
        self.are_few = len(Z) < d
        self.products = Z @ Z.T if self.are_few else np.empty((0, 0))
        self.upper = np.triu_indices(d)
        # Everything that is summed with a person's weights: one product serves all sums of all people. The products of
        # pairs of columns are part of it as long as they fit into memory.
        parts = [np.ones((len(Z), 1)), targets[:, None], Z, Z * targets[:, None]]
        self.has_pairs = not self.are_few and len(self.upper[0]) * len(Z) <= _PAIRS
        if self.has_pairs:
            parts.append(Z[:, self.upper[0]] * Z[:, self.upper[1]])
        self.table = np.concatenate(parts, axis=1)

    @property
    def size(self) -> int:
        """Numbers in the largest table of one person."""
        return int(min(len(self.Z), self.Z.shape[1])) ** 2

    def weights(self, people: Array, width: float) -> Array:
        """Exponential kernel of the Euclidean distance; the nearest row of each person has weight 1.

        Without that scale a person far from all rows has no weights to speak of: the ridge alone decides, and the
        distance explodes.
        """
        distance = self.squares - 2.0 * (people @ self.Z.T)  # but for |person|², which is the same for all rows
        distance -= distance.min(axis=1, keepdims=True)
        distance *= -0.5 / width**2
        return np.asarray(np.exp(distance, out=distance))

    def solve_in_rows(self, weights: Array, alpha: float) -> tuple[Array, Array, Array]:
        """Weighted means of the rows and targets, and the coefficients of each person on all columns."""
        shares = weights / weights.sum(axis=1, keepdims=True)
        mean, target, root = shares @ self.Z, shares @ self.targets, np.sqrt(weights)
        to_mean = shares @ self.products
        square = np.einsum("ij,ij->i", to_mean, shares)
        system = self.products - to_mean[:, :, None] - to_mean[:, None, :] + square[:, None, None]
        system *= root[:, :, None] * root[:, None, :]
        a = root * _solve(system, root * (self.targets - target[:, None]), alpha)
        return mean, target, a @ self.Z - a.sum(axis=1, keepdims=True) * mean

    def among(self, weights: Array, mean: Array, target: Array, chosen: Index) -> tuple[Array, Array]:
        """Gram and moment of each person on the columns chosen for that person."""
        Z = self.Z.T[chosen] - np.take_along_axis(mean, chosen, axis=1)[:, :, None]
        weighted = Z * weights[:, None, :]
        moment = np.einsum("ikm,im->ik", weighted, self.targets - target[:, None])
        return weighted @ Z.transpose(0, 2, 1), moment

    def sums(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        """Weighted means of the rows and targets, gram and moment of each person."""
        Z, n, d = self.Z, len(weights), self.Z.shape[1]
        sums = weights @ self.table
        total, mean, target = sums[:, 0], sums[:, 2 : d + 2] / sums[:, :1], sums[:, 1] / sums[:, 0]
        moment = sums[:, d + 2 : 2 * d + 2] - sums[:, 1:2] * mean
        gram = np.empty((n, d, d))
        if self.has_pairs:
            gram[:, self.upper[0], self.upper[1]] = sums[:, 2 * d + 2 :]
            gram[:, self.upper[1], self.upper[0]] = sums[:, 2 * d + 2 :]
        else:
            for i in range(n):
                gram[i] = (Z * weights[i][:, None]).T @ Z
        gram -= total[:, None, None] * mean[:, :, None] * mean[:, None, :]
        return mean, target, gram, moment


def fit_ridges(rows: Rows, people: Array, width: float, alpha: float, n_features: int, selection: str) -> Fits:
    """Fit one weighted ridge regression per person, on the features chosen for that person.

    Parameters
    ----------
    rows : Rows
        Samples and their targets.
    people : ndarray of shape (n_people, n_columns)
        Whose neighbourhoods count, standardised as the samples are.
    width : float
        Of the kernel.
    alpha : float
        Of the ridge.
    n_features : int
        How many features to choose.
    selection : {"weights", "forward", "none"}
        The largest weights of the ridge regression on all features; the features that reduce the weighted sum of
        squares most, one after the other; or all of them.

    Returns
    -------
    Fits
        One function per person.
    """
    n, d = people.shape
    k, weights = min(n_features, d), rows.weights(people, width)
    if rows.are_few and selection != "forward":
        mean, target, coefficients = rows.solve_in_rows(weights, alpha)
        if selection == "weights" and k < d:
            chosen = np.sort(np.argsort(-np.abs(coefficients), axis=1, kind="stable")[:, :k], axis=1)
            coefficients = np.zeros((n, d))
            small, part = rows.among(weights, mean, target, chosen)
            coefficients[np.arange(n)[:, None], chosen] = _solve(small, part, alpha)
        return Fits(coefficients, target - np.einsum("ij,ij->i", coefficients, mean))
    mean, target, gram, moment = rows.sums(weights)
    if selection == "none" or k == d:
        coefficients = _solve(gram, moment, alpha)
    else:
        if selection == "weights":
            chosen = np.argsort(-np.abs(_solve(gram, moment, alpha)), axis=1, kind="stable")[:, :k]
        else:
            chosen = _forward(gram, moment, k)
        chosen = np.sort(chosen, axis=1)
        every = np.arange(n)[:, None]
        small = gram[every[:, :, None], chosen[:, :, None], chosen[:, None, :]]
        coefficients = np.zeros((n, d))
        coefficients[every, chosen] = _solve(small, moment[every, chosen], alpha)
    return Fits(coefficients, target - np.einsum("ij,ij->i", coefficients, mean))


def _solve(gram: Array, moment: Array, alpha: float) -> Array:
    ridged = gram + alpha * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(ridged, moment[:, :, None])[:, :, 0], dtype=np.float64)


def _forward(gram: Array, moment: Array, k: int) -> Index:
    """Least squares, one feature more at a time: the one that explains most of what is left.

    Each step takes the direction of the chosen feature out of all others (a pivoted Cholesky factorisation), after
    which the gain of a feature is (moment left)² ÷ (variance left).
    """
    n, d = moment.shape
    every = np.arange(n)
    variance, left = np.einsum("ijj->ij", gram).copy(), moment.copy()
    smallest = 1e-12 * variance
    factor = np.zeros((n, k, d))
    chosen = np.empty((n, k), dtype=np.intp)
    free = np.ones((n, d), dtype=bool)
    for step in range(k):
        gains = np.where(free & (variance > smallest), left**2 / np.maximum(variance, 1e-300), -1.0)
        gains = np.where(free & (gains < 0), -0.5, gains)  # better a feature that adds nothing than one taken twice
        best = gains.argmax(axis=1)
        chosen[:, step] = best
        free[every, best] = False
        pivot = np.sqrt(np.maximum(variance[every, best], 1e-300))
        row = (gram[every, best] - np.einsum("is,isj->ij", factor[every, :, best], factor)) / pivot[:, None]
        usable = variance[every, best] > smallest[every, best]
        row = np.where(usable[:, None], row, 0.0)
        share = np.where(usable, left[every, best] / pivot, 0.0)
        factor[:, step] = row
        variance -= row**2
        left -= share[:, None] * row
    return chosen
