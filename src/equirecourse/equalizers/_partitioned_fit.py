"""Logistic regression on partitions: one reading of the features for each product with them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import linalg

from equirecourse._partitions import Source
from equirecourse._validation import Groups, check_labels, favorable_index
from equirecourse.equalizers._linear_fit import FeatureFit
from equirecourse.equalizers._losses import LinearLoss, logistic
from equirecourse.equalizers._partition_sums import (
    Census,
    Columns,
    Model,
    census,
    curvature,
    members,
    products,
    weighted_squares,
    weighted_sum,
)
from equirecourse.equalizers._problem import FitData
from equirecourse.equalizers._rounds import Setting
from equirecourse.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from equirecourse.equalizers._partitioned import PartitionedEqualRecourse

__all__ = ["PartitionedProblem"]

Array = NDArray[np.float64]


class PartitionedFeatures:
    """A matrix of people by features that is never put together: what a linear fit asks of one.

    Parameters
    ----------
    source : Source
        The partitions.
    columns : Columns
        Which of their columns are what.
    n_jobs : int or None
        Partitions at a time.
    """

    def __init__(self, source: Source, columns: Columns, n_jobs: int | None) -> None:
        self.source, self.columns, self.n_jobs, self.readings = source, columns, n_jobs, 0
        self.sizes: list[int] = []  # of the partitions, once they have been counted
        self.n_features = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of people and of features."""
        return sum(self.sizes), self.n_features

    def read(self, function: Callable[..., Any], *arguments: Any, each: Array | None = None) -> Iterator[Any]:
        """What a function says of each partition, in their order; ``each`` is cut up among their people."""
        self.readings += 1
        parts: Iterable[tuple[Any, ...]] = ((part,) for part in self.source.parts())
        if each is not None:
            pieces = np.split(each, np.cumsum(self.sizes)[:-1])
            parts = zip(self.source.parts(), pieces, strict=True)
        jobs = Parallel(n_jobs=self.n_jobs, return_as="generator")
        results: Iterator[Any] = jobs(
            delayed(function)(part, self.columns, *arguments, *piece) for part, *piece in parts
        )
        return results

    def __matmul__(self, coef: Array) -> Array:
        return np.concatenate(list(self.read(products, coef)))

    @property
    def T(self) -> _Transposed:  # noqa: N802 - as matrices call it
        """Features by people."""
        return _Transposed(self)

    def gram(self, weights: Array) -> tuple[Array, Array]:
        """Products of the features with each other, and their sums, with a weight for each person."""
        inner, sums = zip(*self.read(weighted_squares, each=weights), strict=True)
        return np.sum(inner, axis=0), np.sum(sums, axis=0)


@dataclass(frozen=True)
class _Transposed:
    features: PartitionedFeatures

    def __matmul__(self, weights: Array) -> Array:
        return np.asarray(np.sum(list(self.features.read(weighted_sum, each=weights)), axis=0))


class PartitionedProblem:
    """The people of all partitions, of whom a few numbers each are kept, and fits of them."""

    experience = None  # costs are distances

    def __init__(self, model: PartitionedEqualRecourse, source: Source, columns: Columns) -> None:
        self.model = model
        self.features = PartitionedFeatures(source, columns, model.n_jobs)
        self.known = self._census()
        classes = check_labels(np.array(sorted(self.known.labels, key=lambda label: (str(type(label)), label))))
        sign = 1.0 if favorable_index(classes, model.favorable_label) == 1 else -1.0
        try:
            labels = tuple(sorted(self.known.groups))  # type: ignore[type-var]
        except TypeError:
            labels = tuple(sorted(self.known.groups, key=repr))
        if len(labels) < 2:
            raise ValueError(
                f"All partitions together have the one group {labels[0]!r} and a comparison needs at least 2."
            )
        read = self.features.read(members, classes[1], labels)
        upper, codes = (np.concatenate(parts) for parts in zip(*read, strict=True))
        everybody = np.ones(len(upper))
        groups = Groups(codes.astype(np.intp), labels, self.known.group_names)
        self.data = FitData(
            X=self.features, labels=upper, y=np.where(upper, sign, -sign), sample_weight=everybody, weighted=False,
            partitions=(groups,), classes=classes, sign=sign, rows=np.arange(len(upper)),
        )  # fmt: skip
        self.loss = LinearLoss(logistic, 1.0 / model.C, 0.0, True, everybody)

    def _census(self) -> Census:
        counted = list(self.features.read(census))
        if not counted:
            raise ValueError("There is no partition to fit to; pass at least one.")
        first = counted[0]
        for place, one in enumerate(counted):
            if one.n_features != first.n_features or one.names != first.names:
                raise ValueError(
                    f"Partition {place} has {one.n_features} features and partition 0 {first.n_features}, or other "
                    "names or another order; make them alike, or name the columns with features=."
                )
        self.features.sizes, self.features.n_features = [one.people for one in counted], first.n_features
        return Census(
            sum(one.people for one in counted),
            first.names,
            first.n_features,
            frozenset().union(*(one.labels for one in counted)),
            frozenset().union(*(one.groups for one in counted)),
            first.group_names,
        )

    @property
    def setting(self) -> Setting:
        """What stays the same in all rounds."""
        data = self.data
        return Setting(
            data.partitions, data.y, data.sample_weight, "rejected", self.model.min_rejected, 1, data.sign > 0
        )

    def plain(self) -> FeatureFit:
        """Logistic regression by Newton's method, one reading a step."""
        d, C = self.known.n_features, self.model.C
        ridge = np.append(np.ones(d), 0.0)
        at, step, before = np.zeros(d + 1), np.zeros(d + 1), np.inf
        for _ in range(self.model.max_iter):
            read = self.features.read(curvature, Model(at[:d], float(at[d])), self.data.classes[1])
            total = reduce(add, read)
            value = 0.5 * float(ridge @ at**2) + C * total.loss
            if value > before + 1e-12 * abs(before):  # too long a step: go back half of it
                step = step / 2.0
                at = at - step
                continue
            slope = ridge * at + C * total.slope
            hessian = np.diag(ridge) + C * total.hessian
            hessian[d, d] += 1e-14 * max(1.0, float(hessian[d, d]))
            step, before = -np.asarray(linalg.solve(hessian, slope, assume_a="pos")), value
            at = at + step
            if np.sqrt(max(-float(slope @ step), 0.0)) <= self.model.tol * np.sqrt(1.0 + abs(value)):
                break
        else:
            warnings.warn(
                f"Newton's method stopped after max_iter={self.model.max_iter} steps; scale the features, or raise it.",
                ConvergenceWarning,
                stacklevel=4,
            )
        scores = self.data.sign * (self.features @ at[:d] + at[d])
        return FeatureFit(at[:d], float(at[d]), scores, float(np.linalg.norm(at[:d])))

    def moved(self, _: Any, coef: Array, intercept: float, scores: Array) -> FeatureFit:
        """A fit with other coefficients; they and the scores are those of the favourable label."""
        return FeatureFit.of_favorable(coef, intercept, scores, self.data.sign)
