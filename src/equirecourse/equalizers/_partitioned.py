"""Logistic regression with equal recourse on data that never sit in memory together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from equirecourse.equalizers._partition_sums import (
    Columns,
    open_partitions,
)
from equirecourse.equalizers._partitioned_fit import PartitionedFit, PartitionedRound
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.exceptions import ConvergenceWarning

__all__ = ["PartitionedEqualRecourse"]

Array = NDArray[np.float64]


class PartitionedEqualRecourse(PlainState, ClassifierMixin, BaseEstimator):
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
    >>> from equirecourse.equalizers import PartitionedEqualRecourse
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
        fit = PartitionedFit(self, open_partitions(partitions), columns)
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

    def _store(self, fit: PartitionedFit, history: list[PartitionedRound], chosen: PartitionedRound) -> None:
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
