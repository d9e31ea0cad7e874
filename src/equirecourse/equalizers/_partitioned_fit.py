"""One fit of logistic regression with equal recourse, partition by partition: readings, Newton steps, rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import linalg

from equirecourse._validation import check_labels, favorable_index
from equirecourse.equalizers._contrasts import differences_between
from equirecourse.equalizers._partition_sums import (
    Census,
    Columns,
    Model,
    Standing,
    census,
    curvature,
    standing,
)
from equirecourse.equalizers._rounds import hardly_anybody, wanders
from equirecourse.exceptions import ConvergenceWarning, SmallGroupWarning

if TYPE_CHECKING:
    from equirecourse.equalizers._partitioned import PartitionedEqualRecourse

__all__ = ["PartitionedFit", "PartitionedRound"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PartitionedRound:
    """A model, and whom it rejects."""

    kind: str
    model: Model
    seen: Standing
    kept: NDArray[np.intp]  # groups with enough rejected people
    directions: Array  # n_features × (n_groups − 1): what the next round takes out
    signed: Array  # the differences between the mean scores, as distances
    distances: Array  # mean distance of each group, NaN without rejected people
    mean_distance: float

    @property
    def imbalance(self) -> float:
        norm = float(np.linalg.norm(self.signed))
        return norm / self.mean_distance if self.mean_distance > 0 and len(self.kept) > 1 else np.nan

    @property
    def gap(self) -> float:
        return float(np.ptp(self.distances[self.kept])) if len(self.kept) > 1 else np.nan


class PartitionedFit:
    """One fit: the partitions, what is known of them, and the rounds."""

    def __init__(self, model: PartitionedEqualRecourse, opened: Callable[[], Iterator[Any]], columns: Columns) -> None:
        self.model, self.opened, self.columns, self.readings = model, opened, columns, 0
        self.known = self._census()
        self.classes = check_labels(np.array(sorted(self.known.labels, key=lambda label: (str(type(label)), label))))
        self.favorable_is_upper = favorable_index(self.classes, model.favorable_label) == 1
        try:
            self.labels = tuple(sorted(self.known.groups))  # type: ignore[type-var]
        except TypeError:
            self.labels = tuple(sorted(self.known.groups, key=repr))
        if len(self.labels) < 2:
            raise ValueError(
                f"All partitions together have the one group {self.labels[0]!r} and a comparison needs at least 2."
            )

    def _read(self, reduce_one: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What each partition adds, in their order."""
        self.readings += 1
        jobs = Parallel(n_jobs=self.model.n_jobs, return_as="generator")
        results: Iterator[Any] = jobs(delayed(reduce_one)(part, self.columns, *arguments) for part in self.opened())
        return results

    def _census(self) -> Census:
        counted = list(self._read(census))
        if not counted:
            raise ValueError("There is no partition to fit to; pass at least one.")
        first = counted[0]
        for place, one in enumerate(counted):
            if one.n_features != first.n_features or one.names != first.names:
                raise ValueError(
                    f"Partition {place} has {one.n_features} features and partition 0 {first.n_features}, or other "
                    "names or another order; make them alike, or name the columns with features=."
                )
        return Census(
            sum(one.people for one in counted),
            first.names,
            first.n_features,
            frozenset().union(*(one.labels for one in counted)),
            frozenset().union(*(one.groups for one in counted)),
            first.group_names,
        )

    def logistic(self, directions: Array | None, start: Model) -> Model:
        """The model whose coefficients are orthogonal to the directions, by Newton's method."""
        d = self.known.n_features
        basis = np.eye(d) if directions is None else linalg.null_space(directions.T)
        k = basis.shape[1]
        into = np.zeros((d + 1, k + 1))
        into[:d, :k], into[d, k] = basis, 1.0
        ridge = np.append(np.ones(k), 0.0)
        at = np.append(basis.T @ start.coef, start.intercept)
        step, before = np.zeros(k + 1), np.inf
        for _ in range(self.model.max_iter):
            here = into @ at
            total = reduce(add, self._read(curvature, Model(here[:d], float(here[d])), self.classes[1]))
            value = 0.5 * float(ridge @ at**2) + self.model.C * total.loss
            if value > before + 1e-12 * abs(before):  # too long a step: go back half of it
                step = step / 2.0
                at = at - step
                continue
            slope = ridge * at + self.model.C * (into.T @ total.slope)
            hessian = np.diag(ridge) + self.model.C * (into.T @ total.hessian @ into)
            hessian[k, k] += 1e-14 * max(1.0, float(hessian[k, k]))
            step, before = -np.asarray(linalg.solve(hessian, slope, assume_a="pos")), value
            at = at + step
            if np.sqrt(max(-float(slope @ step), 0.0)) <= self.model.tol * np.sqrt(1.0 + abs(value)):
                break
        else:
            warnings.warn(
                f"Newton's method stopped after max_iter={self.model.max_iter} steps; scale the features, or raise it.",
                ConvergenceWarning,
                stacklevel=5,
            )
        here = into @ at
        return Model(here[:d], float(here[d]))

    def look(self, kind: str, model: Model, last: PartitionedRound | None) -> PartitionedRound:
        """Describe a model: whom it rejects, and the differences among those."""
        other = None if last is None else last.model
        arguments = (model, other, self.classes[1], self.favorable_is_upper, self.labels)
        seen = reduce(add, self._read(standing, *arguments))
        kept = np.flatnonzero(seen.rejected >= self.model.min_rejected)
        basis = differences_between(len(kept)) if len(kept) > 1 else np.zeros((len(kept), 0))
        means = seen.sums / np.maximum(seen.rejected, 1)[:, None]
        sign = 1.0 if self.favorable_is_upper else -1.0
        norm = float(np.linalg.norm(model.coef)) or np.nan
        distances = np.where(seen.rejected > 0, -sign * (means @ model.coef + model.intercept) / norm, np.nan)
        everybody = int(seen.rejected.sum())
        average = float(np.nansum(distances * seen.rejected)) / everybody if everybody else np.nan
        signed = -basis.T @ distances[kept]
        return PartitionedRound(kind, model, seen, kept, means[kept].T @ basis, signed, distances, average)

    def rounds(self) -> tuple[list[PartitionedRound], PartitionedRound, str, bool]:
        """Fit, look who is rejected, balance those, and again; the history, the chosen round, and how it ended."""
        model, zero = self.model, Model(np.zeros(self.known.n_features), 0.0)
        plain = self.look("plain", self.logistic(None, zero), None)
        if model.max_rounds == 0:
            return [plain], plain, "max_rounds is 0", False
        self._check(plain)
        history, states = [plain], {plain.seen.digest}
        ending = f"max_rounds={model.max_rounds} was reached"
        for _ in range(model.max_rounds):
            last = history[-1]
            current = self.look("rejected", self.logistic(last.directions, last.model), last)
            history.append(current)
            if current.seen.digest == last.seen.digest:
                return history, current, "nobody's decision changed", True
            if current.imbalance <= model.balance_tol and hardly_anybody(current.seen.changed, self.known.people):
                return history, current, "the gap vanished, and hardly anybody's decision changed", True
            if len(current.kept) < len(plain.kept):
                ending = "a group has too few rejected people left"
                break
            if current.seen.digest in states:
                ending = "the rounds came back to an earlier rejected set"
                break
            states.add(current.seen.digest)
            if len(plain.kept) == 2 and wanders([one.seen.changed for one in history]) and self._can_end(history):
                ending = "the rounds did not come nearer to each other"
                break
        chosen = self._best(history)
        if chosen.imbalance > model.balance_tol and len(plain.kept) == 2:
            self._between(history)
            chosen = self._best(history)
        return history, chosen, ending, bool(chosen.imbalance <= model.balance_tol)

    def _check(self, plain: PartitionedRound) -> None:
        needed = self.model.min_rejected
        few = [
            f"group {self.labels[k]!r} has {plain.seen.rejected[k]} rejected people"
            for k in range(len(self.labels))
            if k not in plain.kept
        ]
        if len(plain.kept) < 2:
            raise ValueError(
                f"The plain model leaves no two groups to compare: {'; '.join(few)}, and the balance needs at least "
                f"{needed} in each of two groups; lower min_rejected, or merge small groups."
            )
        if few:
            warnings.warn(
                f"{'; '.join(few)}: fewer than {needed}, so left out of the balance; merge small groups, or lower "
                "min_rejected.",
                SmallGroupWarning,
                stacklevel=4,
            )

    def _best(self, history: list[PartitionedRound]) -> PartitionedRound:
        full = [one for one in history if len(one.kept) == len(history[0].kept) and np.isfinite(one.imbalance)]
        tol = self.model.balance_tol
        return min(full, key=lambda one: (max(one.imbalance, tol), -one.seen.right, one.imbalance))

    def _can_end(self, history: list[PartitionedRound]) -> bool:
        """Whether a gap of zero has been met, or must lie between two rounds."""
        usable = [one for one in history[1:] if len(one.signed) == 1]
        signs = {bool(one.signed[0] > 0) for one in usable}
        return len(signs) == 2 or any(one.imbalance <= self.model.balance_tol for one in usable)

    def _between(self, history: list[PartitionedRound]) -> None:
        """Look for a gap of zero between two rounds of opposite sign, by false position and bisection."""
        built_on = {id(after): before.directions for before, after in pairwise(history)}
        usable = [one for one in history[1:] if len(one.signed) == 1]
        above, below = ([one for one in usable if bool(one.signed[0] > 0) is side] for side in (True, False))
        if not above or not below:
            return
        high, low = min(above, key=lambda one: one.signed[0]), max(below, key=lambda one: one.signed[0])
        for step in range(self.model.max_rounds):
            share = 0.5 if step % 3 == 2 else float(high.signed[0] / (high.signed[0] - low.signed[0]))
            share = min(max(share, 0.02), 0.98)
            mixed = (1 - share) * built_on[id(high)] + share * built_on[id(low)]
            current = self.look("between", self.logistic(mixed, history[-1].model), history[-1])
            built_on[id(current)] = mixed
            history.append(current)
            if len(current.signed) != 1 or current.imbalance <= self.model.balance_tol:
                return
            if current.signed[0] > 0:
                high = current
            else:
                low = current
