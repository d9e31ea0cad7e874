"""A second count for the rejected of each group, found on people who were held out.

A group-blind model cannot be told to treat groups differently, but it can be taught with other examples. Every rejected
person of group g is counted a second time, with weight |τ_g|: as an example of a yes if τ_g > 0, of a no if τ_g < 0.
For a log-loss this is the Lagrangian of equal recourse: far below the boundary, an example of a yes pulls the score up
with a force that hardly depends on the score, as the multiplier t of the SVM's balance does. Weights on people with
their own labels, which come to mind first, cannot do that: for a logistic model of the credit data, doubling or halving
any cell of group × decision × label moves the gap between women and men by a fifth at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from equirecourse._validation import Groups
from equirecourse.equalizers._out_of_fold import Measured
from equirecourse.equalizers._weighted import fit_weighted, without_class_weights

__all__ = ["GroupLearner", "Trial", "search"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_FIRST_STEP, _FIRST_SHARED = 0.25, 0.1
_FASTER, _SLOWER, _LONGEST = 1.6, 0.5, 1.0
_DRIFT = 0.004  # of the acceptance, that is left alone
_CLOSE = 0.2  # of the noise floor: a gap that is as good as none


@dataclass(frozen=True)
class GroupLearner:
    """Fits with a second count of the rejected."""

    estimator: Any
    X: Any
    y: NDArray[Any]
    weights: Array
    groups: Groups
    labels: tuple[Any, Any]  # no, yes
    n_rounds: int

    def plain(self, rows: Index) -> Any:
        """The model without a second count."""
        return fit_weighted(self.estimator, self.X, self.y[rows], self._given(self.weights[rows]), rows)

    def _given(self, weights: Array) -> Array | None:
        # Some learners round differently with weights of one than without weights: the plain model is the plain model.
        return None if (weights == 1.0).all() else weights

    def fit(self, rows: Index, plain: Any, tau: Array) -> Any:
        """The model with second counts τ, for those whom the plain model rejects, then for those whom that one does."""
        model = plain
        estimator, first = without_class_weights(self.estimator, self.y[rows])
        first = first * self.weights[rows]
        people = _safe_indexing(self.X, rows)
        for _ in range(self.n_rounds if tau.any() else 0):
            again, labels, weights = self._second_count(rows, np.asarray(model.predict(people)) == self.labels[0], tau)
            if len(again) == 0:
                break
            model = fit_weighted(
                estimator, self.X, np.concatenate([self.y[rows], labels]),
                np.concatenate([first, weights]), np.concatenate([rows, again]),
            )  # fmt: skip
        return model

    def _second_count(self, rows: Index, rejected: NDArray[np.bool_], tau: Array) -> tuple[Index, NDArray[Any], Array]:
        again = rows[rejected]
        codes = self.groups.codes[again]
        mass = np.bincount(codes, weights=self.weights[again], minlength=len(tau))
        # Each group pulls with the force of its mean, however many of it are rejected.
        per_person = np.divide(mass.sum() / len(tau), mass, out=np.zeros(len(tau)), where=mass > 0)
        weights = self.weights[again] * (np.abs(tau) * per_person)[codes]
        labels = np.where(tau[codes] > 0, self.labels[1], self.labels[0]).astype(self.y.dtype)
        counts = weights > 0
        return again[counts], labels[counts], weights[counts]


@dataclass(frozen=True)
class Trial:
    """Second counts that were tried, and what they did to people held out."""

    tau: Array
    measured: Measured


def search(
    evaluate: Callable[[Array], Measured], plain: Measured, lowest_accuracy: float, max_trials: int
) -> Iterator[Trial]:
    """Try second counts, each group by the sign of what is wrong with it, until the gap is gone or the trials are.

    A group that is farther than the average is pulled more, a nearer one less, by steps that grow while the sign stays
    and shrink when it turns (resilient propagation: it asks only for signs, which noise disturbs least). These
    contrasts sum to zero. A count that all groups share is steered by the acceptance: who is accepted changes with the
    second counts, and accuracy with it, for nothing. A point that costs too much accuracy all the same is halved back.
    """
    n = len(plain.means)
    contrasts, shared = _Coordinates(n, _FIRST_STEP), _Coordinates(1, _FIRST_SHARED)
    at = plain
    for _ in range(max_trials):
        if np.isnan(at.means).any():
            contrasts.halve()
            shared.halve()
        else:
            missing = plain.acceptance - at.acceptance
            shared.move(np.array([np.sign(missing) if abs(missing) > _DRIFT else 0.0]))
            if at.accuracy < lowest_accuracy and abs(missing) <= _DRIFT:
                contrasts.halve()
            elif at.accuracy >= lowest_accuracy:
                if at.gap < _CLOSE * at.floor:
                    return
                contrasts.keep()
                contrasts.move(np.sign(at.means - at.means.mean()))
        tau = contrasts.place - contrasts.place.mean() + shared.place
        at = evaluate(tau)
        yield Trial(tau, at)


class _Coordinates:
    """Numbers that are moved by signs alone."""

    def __init__(self, n: int, step: float) -> None:
        self.place, self.step, self.before, self.safe = np.zeros(n), np.full(n, step), np.zeros(n), np.zeros(n)

    def move(self, sign: Array) -> None:
        turned = sign * self.before
        self.step = np.minimum(self.step * np.where(turned > 0, _FASTER, np.where(turned < 0, _SLOWER, 1.0)), _LONGEST)
        self.before = sign
        self.place = self.place + self.step * sign

    def keep(self) -> None:
        self.safe = self.place

    def halve(self) -> None:
        self.place, self.step = 0.5 * (self.place + self.safe), self.step * _SLOWER
