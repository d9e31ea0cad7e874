"""Logistic regression with equal recourse on data that never sit in memory together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from numbers import Integral, Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from equirecourse._validation import check_labels, favorable_index
from equirecourse.equalize._contrasts import differences_between
from equirecourse.equalize._partition_sums import (
    Census,
    Columns,
    Model,
    Standing,
    census,
    curvature,
    open_partitions,
    standing,
)
from equirecourse.equalize._rounds import hardly_anybody, wanders
from equirecourse.exceptions import ConvergenceWarning, SmallGroupWarning

__all__ = ["PartitionedEqualRecourse"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Round:
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


class PartitionedEqualRecourse(ClassifierMixin, BaseEstimator):
    r"""Logistic regression with equal recourse across groups, fitted partition by partition.

    The model of ``EqualRecourseLinear(LogisticRegression(C=C))``: :math:`\min \tfrac12\|w\|^2 + C \sum_i
    \log(1 + e^{-y_i f(x_i)})` such that the rejected people of all groups have the same mean score, in rounds over who
    is rejected. Each step is one reading of the partitions, of which only sums are kept (numbers of rejected people,
    means by group, and the features × features matrix of Newton's method), so that memory holds one partition at a time
    per process.

    Parameters
    ----------
    C : float, default=1.0
        Weight of each person's loss.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the balance, with a warning that names it.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    max_rounds : int, default=10
        Most rounds over the rejected set after the plain one; as many again may be spent between two rounds, when the
        rounds of two groups do not end by themselves. 0 is the plain model.
    balance_tol : float, default=1e-3
        Gap, relative to the mean distance, that counts as zero when the rounds do not end by themselves.
    tol : float, default=1e-8
        Largest Newton decrement, relative to the root of the objective.
    max_iter : int, default=100
        Most Newton steps in one round.
    n_jobs : int, optional
        Partitions that are read at the same time, as in joblib, whose Dask backend reads them on a cluster.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,)
        Intercept.
    weight_norm_ : float
        ‖w‖; a score divided by it is the Euclidean distance to the decision boundary.
    classes_ : ndarray of shape (2,)
        The labels.
    favorable_label_ : label
        The label that means yes.
    rounds_ : DataFrame
        One row per round: ``kind``, ``gap`` of the mean distances of the people it rejects itself, ``mean_distance``,
        ``relative_gap``, ``changed`` decisions, ``accuracy``, ``acceptance``, ``rejected (group)`` and ``chosen``.
    converged_ : bool
        Whether the chosen model balances the very people it rejects.
    n_readings_ : int
        How often the partitions were read.
    n_people_ : int
        Number of people in all partitions.

    See Also
    --------
    EqualRecourseLinear : Any linear learner, in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.datasets import make_tilted_groups
    >>> from equirecourse.equalize import PartitionedEqualRecourse
    >>> toy = make_tilted_groups(random_state=0)
    >>> X, y, group = np.asarray(toy.data), np.asarray(toy.target), np.asarray(toy.sensitive_features)
    >>> parts = [(X[i::3], y[i::3], group[i::3]) for i in range(3)]
    >>> model = PartitionedEqualRecourse().fit_partitions(parts)
    >>> bool(model.rounds_.query("chosen")["relative_gap"].item() < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "min_rejected": [Interval(Integral, 1, None, closed="left")],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "balance_tol": [Interval(Real, 0.0, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        min_rejected: int = 5,
        favorable_label: Any = None,
        max_rounds: int = 10,
        balance_tol: float = 1e-3,
        tol: float = 1e-8,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label
        self.max_rounds = max_rounds
        self.balance_tol = balance_tol
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:
        """Fit the model to data that fit in memory: one partition.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Two labels of any kind.
        sensitive_features : array-like, Series or DataFrame
            The groups, one row per person; several columns are crossed.

        Returns
        -------
        self
            The fitted model.
        """
        return self.fit_partitions([(X, y, sensitive_features)])

    def fit_partitions(
        self,
        partitions: Any,
        *,
        target: str | None = None,
        sensitive_features: str | Sequence[str] = (),
        features: Sequence[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        partitions : iterable, callable, path, pyarrow Dataset or Dask DataFrame
            Anything that can be gone through several times: a list, a function that returns an iterator, a folder of
            Parquet files. A partition is a tuple ``(X, y, sensitive_features)``, or a table whose columns are named:
        target : str, optional
            Column of the labels, for partitions that are tables.
        sensitive_features : str or sequence of str
            Columns of the groups; several are crossed.
        features : sequence of str, optional
            Columns of the features; by default all others.

        Returns
        -------
        self
            The fitted model.
        """
        self._validate_params()
        own = (sensitive_features,) if isinstance(sensitive_features, str) else tuple(sensitive_features)
        if target is not None and not own:
            raise ValueError("target names the column of the labels; name those of the groups in sensitive_features.")
        columns = Columns(target, own, None if features is None else tuple(features))
        fit = _Fit(self, open_partitions(partitions), columns)
        history, chosen, ending, converged = fit.rounds()
        self._store(fit, history, chosen)
        self.ending_, self.converged_ = ending, converged
        if not converged and self.max_rounds:
            warnings.warn(
                f"The rounds did not end by themselves ({ending}): the chosen model has a gap of "
                f"{chosen.imbalance:.2g} of the mean distance, against balance_tol="
                f"{self.balance_tol:g}; raise max_rounds.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _store(self, fit: _Fit, history: list[_Round], chosen: _Round) -> None:
        self.classes_ = fit.classes
        self.favorable_label_ = fit.classes[int(fit.favorable_is_upper)]
        self.coef_, self.intercept_ = chosen.model.coef[None, :], np.array([chosen.model.intercept])
        self.weight_norm_ = float(np.linalg.norm(chosen.model.coef))
        self.n_features_in_ = fit.known.n_features
        if fit.known.names is not None:
            self.feature_names_in_ = np.array(fit.known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_people_, self.n_readings_ = fit.known.people, fit.readings
        rows = [
            {
                "kind": one.kind,
                "gap": one.gap,
                "mean_distance": one.mean_distance,
                "relative_gap": one.gap / one.mean_distance if one.mean_distance > 0 else np.nan,
                "changed": one.seen.changed,
                "accuracy": one.seen.right / one.seen.people,
                "acceptance": 1 - int(one.seen.rejected.sum()) / one.seen.people,
                **{
                    f"rejected ({' & '.join(map(str, label)) if isinstance(label, tuple) else label})": int(k)
                    for label, k in zip(fit.labels, one.seen.rejected, strict=True)
                },
                "chosen": one is chosen,
            }
            for one in history
        ]
        self.rounds_ = pd.DataFrame(rows).rename_axis("round")

    def decision_function(self, X: Any) -> Array:
        """Signed score of each person; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted label of each person.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])

    def predict_proba(self, X: Any) -> Array:
        """Probability of each label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            People.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])


class _Fit:
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

    def look(self, kind: str, model: Model, last: _Round | None) -> _Round:
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
        return _Round(kind, model, seen, kept, means[kept].T @ basis, signed, distances, average)

    def rounds(self) -> tuple[list[_Round], _Round, str, bool]:
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

    def _check(self, plain: _Round) -> None:
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

    def _best(self, history: list[_Round]) -> _Round:
        full = [one for one in history if len(one.kept) == len(history[0].kept) and np.isfinite(one.imbalance)]
        tol = self.model.balance_tol
        return min(full, key=lambda one: (max(one.imbalance, tol), -one.seen.right, one.imbalance))

    def _can_end(self, history: list[_Round]) -> bool:
        """Whether a gap of zero has been met, or must lie between two rounds."""
        usable = [one for one in history[1:] if len(one.signed) == 1]
        signs = {bool(one.signed[0] > 0) for one in usable}
        return len(signs) == 2 or any(one.imbalance <= self.model.balance_tol for one in usable)

    def _between(self, history: list[_Round]) -> None:
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
