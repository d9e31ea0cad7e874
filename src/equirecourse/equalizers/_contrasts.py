"""Contrasts: the differences between groups that a recourse-equal model must not have.

A contrast is a column of weights over people. Applied to the scores it gives a difference between the mean scores of
groups of rejected people: the ``u`` of the paper, whose weights are ``g(xᵢ) pᵢ``. Several columns describe several
groups, several sensitive features, or several quantiles of the same two groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import Groups

__all__ = ["Contrasts", "build_contrasts", "differences_between", "group_means"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contrasts:
    """Weights over people, one column per independent difference between groups.

    The columns of a sensitive feature with k groups are √2 times an orthonormal basis of the differences between k
    means. So the norm of the differences is ``|mean₁ − mean₀|`` for two groups, does not depend on the order of the
    groups, and for k groups is √2 times the spread of the k means.

    Attributes
    ----------
    weights : ndarray, shape (n_people, n_contrasts)
        The columns.
    left_out : dict
        Number of rejected people in each group that has too few of them to be balanced. A group is named by the
        position of its partition and its label: two sensitive features may have labels in common.
    """

    weights: Array
    left_out: dict[tuple[int, Hashable], int]

    def __len__(self) -> int:
        return int(self.weights.shape[1])

    @property
    def sums(self) -> Array:
        """The weight of the intercept in each difference."""
        sums = self.weights.sum(axis=0)
        # A group's weights add up to one in exact arithmetic; what rounding leaves is not a weight of the intercept.
        return np.asarray(np.where(np.abs(sums) < 1e-12, 0.0, sums))

    def mixed_with(self, other: Contrasts, share: float) -> Contrasts:
        """A point on the line between two contrasts, ``share`` of the way to ``other``."""
        return Contrasts((1 - share) * self.weights + share * other.weights, self.left_out)

    def joined_with(self, others: Sequence[Contrasts]) -> Contrasts:
        """The columns of several contrasts side by side."""
        return Contrasts(np.hstack([self.weights, *(other.weights for other in others)]), self.left_out)


def differences_between(k: int) -> Array:
    """√2 × an orthonormal basis (k × (k − 1), Helmert) of the vectors that sum to zero."""
    basis = np.zeros((k, k - 1))
    for j in range(1, k):
        basis[:j, j - 1] = -1.0
        basis[j, j - 1] = j
        basis[:, j - 1] /= np.sqrt(j * (j + 1))
    return np.asarray(np.sqrt(2.0) * basis)


def build_contrasts(
    partitions: Sequence[Groups],
    rejected: NDArray[np.bool_],
    *,
    sample_weight: Array,
    normalize: str = "rejected",
    min_rejected: int = 1,
) -> Contrasts:
    """Contrasts between the rejected people of the groups of each partition.

    Parameters
    ----------
    partitions : sequence of Groups
        Each partition is balanced within itself: one for crossed sensitive features, several for separate ones.
    rejected : ndarray of bool
        Who is rejected now.
    sample_weight : ndarray
        Weight of each person in the means.
    normalize : {"rejected", "group"}
        Divide by the weight of the group's rejected people (a mean), or of all its people (as the paper prints).
    min_rejected : int
        Groups with fewer rejected people are left out.

    Returns
    -------
    Contrasts
        No column at all if no partition has two groups with enough rejected people.
    """
    columns: list[Array] = []
    left_out: dict[tuple[int, Hashable], int] = {}
    for position, groups in enumerate(partitions):
        counts = np.bincount(groups.codes[rejected & (sample_weight > 0)], minlength=len(groups))
        enough = counts >= max(min_rejected, 1)
        kept = np.flatnonzero(enough)
        left_out.update({(position, groups.labels[k]): int(counts[k]) for k in np.flatnonzero(~enough)})
        if len(kept) < 2:
            continue
        balanced = np.zeros((len(rejected), len(kept) - 1))
        for k, difference in zip(kept, differences_between(len(kept)), strict=True):
            members = groups.members(int(k))
            people = np.flatnonzero(members & rejected & (sample_weight > 0))
            total = sample_weight[people if normalize == "rejected" else members].sum()
            balanced[people] = (sample_weight[people] / total)[:, None] * difference
        columns.append(balanced)
    if len(columns) == 1:
        return Contrasts(columns[0], left_out)
    return Contrasts(np.hstack(columns) if columns else np.zeros((len(rejected), 0)), left_out)


def group_means(
    values: Array,
    groups: Groups,
    rejected: NDArray[np.bool_],
    sample_weight: Array,
    *,
    normalize: str = "rejected",
) -> Array:
    """Mean of ``values`` over each group's rejected people, NaN for a group without any."""
    counted = np.where(rejected, sample_weight, 0.0)
    totals = np.bincount(groups.codes, weights=counted * values, minlength=len(groups))
    base = counted if normalize == "rejected" else sample_weight
    mass = np.bincount(groups.codes, weights=base, minlength=len(groups))
    anybody = np.bincount(groups.codes, weights=counted, minlength=len(groups)) > 0
    return np.asarray(np.divide(totals, mass, out=np.full(len(groups), np.nan), where=anybody))
