"""Logistic regression with equal recourse on data that never sit in memory together."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from equirecourse._partitions import open_partitions
from equirecourse.equalizers._distribution import minimise_distance
from equirecourse.equalizers._partition_sums import Columns
from equirecourse.equalizers._partitioned_fit import PartitionedProblem
from equirecourse.equalizers._plain_state import PlainState
from equirecourse.equalizers._rounds import Rounds
from equirecourse.solvers import one_blas_thread

__all__ = ["PartitionedEqualRecourse"]

Array = NDArray[np.float64]


class PartitionedEqualRecourse(PlainState, ClassifierMixin, BaseEstimator):
    r"""Logistic regression with equal recourse across groups, fitted partition by partition.

    The model of ``EqualRecourseLinear(LogisticRegression(C=C), kappa=kappa)``: its loss plus κ times the distance
    between the groups' distributions of distance to the boundary. Features are read partition by partition, once for
    each product with them, so that memory holds one partition at a time per process, and a few numbers for each person:
    their score, label, group and derivative.

    Parameters
    ----------
    C : float, default=1.0
        Weight of each person's loss.
    kappa : float, default=3.0
        κ, in units of the mean loss; 0 is the plain model.
    min_rejected : int, default=5
        A group with fewer rejected people is left out of the balance, with a warning that names it.
    favorable_label : label or None, default=None
        The label that means yes; by default the larger one.
    tol : float, default=1e-8
        Largest Newton decrement of the plain model, relative to the root of the objective.
    max_iter : int, default=100
        Most Newton steps of the plain model.
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
        One row for the plain model and one for the equal one: ``kind``, ``gap`` of the mean distances of the rejected,
        ``mean_distance``, ``relative_gap``, ``changed`` decisions, ``accuracy``, ``acceptance``, ``rejected (group)``
        and ``chosen``.
    converged_ : bool
        Whether the optimiser came to rest.
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
    >>> bool(model.rounds_["relative_gap"].iloc[-1] < 0.5 * model.rounds_["relative_gap"].iloc[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "kappa": [Interval(Real, 0.0, None, closed="left")],
        "min_rejected": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kappa: float = 3.0,
        min_rejected: int = 5,
        favorable_label: Any = None,
        tol: float = 1e-8,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kappa = kappa
        self.min_rejected = min_rejected
        self.favorable_label = favorable_label
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
        problem = PartitionedProblem(self, open_partitions(partitions, again=True), columns)
        with one_blas_thread():
            rounds = minimise_distance(self, problem, problem.plain(), problem.setting)
        self._store(problem, rounds)
        return self

    def _store(self, problem: PartitionedProblem, rounds: Rounds) -> None:
        chosen: Any = rounds.chosen.fit
        self.classes_ = problem.data.classes
        self.favorable_label_ = self.classes_[int(problem.data.sign > 0)]
        self.coef_, self.intercept_ = chosen.coef[None, :], np.array([chosen.intercept])
        self.weight_norm_ = chosen.norm
        self.n_features_in_ = problem.known.n_features
        if problem.known.names is not None:
            self.feature_names_in_ = np.array(problem.known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_people_, self.n_readings_ = problem.known.people, problem.features.readings
        self.rounds_, self.ending_, self.converged_ = rounds.frame, rounds.ending, rounds.converged

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
