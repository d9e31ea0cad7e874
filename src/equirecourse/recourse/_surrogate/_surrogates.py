"""Sample sets that a black box labels once, and the local surrogates of everybody that come of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from equirecourse._validation import check_choice, check_finite, check_generator, check_jobs, check_number, shown
from equirecourse.actions import EUCLIDEAN_NORM, NORMS, Distance
from equirecourse.recourse._result import STATUSES, Recourse
from equirecourse.recourse._surrogate._ridge import SELECTIONS, Rows, fit_ridges
from equirecourse.recourse._view import View, open_model

__all__ = ["SurrogateRecourse", "Surrogates"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CHUNK = 1_000_000  # numbers in the largest table of one chunk of people: what a cache holds


@dataclass(frozen=True)
class Surrogates:
    """Local linear functions that stand for a model near each person, one per person and sample set.

    Attributes
    ----------
    slopes : ndarray of shape (n_sets, n_people, n_columns)
        What a unit of each column adds to the probability of a yes (or to the score), in the columns' own units.
    values : ndarray of shape (n_sets, n_people)
        The functions at the person.
    level : float
        Where the model decides: the functions' boundary.
    accepted : ndarray of bool, shape (n_people,)
        What the model itself says of the person.
    """

    slopes: Array
    values: Array
    level: float
    accepted: Mask

    @property
    def agreement(self) -> Array:
        """Share of the people whose surrogate says the same as the model, per sample set."""
        return np.asarray(((self.values >= self.level) == self.accepted).mean(axis=1))

    @property
    def disagrees(self) -> Mask:
        """Rejected people of whom the mean of their surrogates would say yes."""
        return np.asarray(~self.accepted & (self.values.mean(axis=0) >= self.level))

    def distances(self, prices: Any = 1.0, norm: str = EUCLIDEAN_NORM) -> Array:
        """Distance of each person to the level of their surrogate, averaged over the sample sets.

        Parameters
        ----------
        prices : float or array-like of shape (n_columns,), default=1.0
            What a unit of each column costs; infinite for one that cannot change.
        norm : {"l1", "l2", "linf"}, default="l2"
            How the costs of several columns add up. The paper's Algorithm 2, which this is part of, is Euclidean.

        Returns
        -------
        ndarray of shape (n_people,)
            Distances, whichever side of the level a person is on; infinite where a surrogate is flat.
        """
        cost = NORMS.get(norm)
        if not isinstance(cost, Distance):
            *names, last = [repr(known.name) for known in NORMS.values() if known.is_distance]
            raise ValueError(f"Surrogates measure in {', '.join(names)} or {last}, got norm={norm!r}.")
        reach = np.abs(self.slopes) / np.asarray(prices, dtype=np.float64)
        scale = cost.dual_norm(reach, axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(scale > 0, np.abs(self.values - self.level) / scale, np.inf).mean(axis=0))


class SurrogateRecourse:
    """Distances to the boundary of any model by local linear surrogates (the paper's Algorithm 2).

    Sets of samples are drawn from a normal distribution around the mean of the data. The model labels each set once;
    for every person a ridge regression on the samples, weighted by their closeness to the person, stands for the model,
    and the person's distance is that to the level of the regression at which the model decides. All people are done at
    once, by matrix products. The same sample sets serve before and after a model is fitted anew.

    These are estimates: nothing says that the model accepts at that distance, or not before. Where an engine of
    :func:`~equirecourse.find_recourse` fits the model, it knows better.

    Parameters
    ----------
    n_sets : int, default=5
        How many sample sets are drawn.
    n_best : int, default=2
        How many of them are kept: those whose surrogates agree with the model about most people.
    n_samples : int, default=5000
        Samples in a set.
    selection : {"none", "weights", "forward"}, default="none"
        How each person's features are chosen: all of them, those with the largest weights in a regression on all
        (the paper's way), or one by one by what they explain. Features that are left out stand at the samples' mean,
        not at the person's own value: with ten of many, distances no longer rank people as the true ones do.
    n_features : int, default=10
        How many features are chosen.
    kernel_width : float or None, default=None
        Width of the exponential kernel on standardised columns; None is 0.75 · √(number of columns).
    alpha : float, default=1.0
        Penalty of the ridge regressions.
    n_jobs : int or None, default=None
        Threads over chunks of people, as in joblib.
    random_state : int or Generator, default=0
        Of the samples.

    Attributes
    ----------
    sample_sets_ : ndarray of shape (n_best, n_samples, n_columns)
        The sets that were kept, in the columns' own units.
    agreement_ : ndarray of shape (n_sets,)
        Share of people about whom model and surrogates agreed, for each set drawn.
    mean_, scale_ : ndarray of shape (n_columns,)
        Mean and standard deviation of the columns.

    See Also
    --------
    equirecourse.RecourseReweighting : the weights that Algorithm 2 makes of these distances.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from equirecourse.datasets import load_german
    >>> from equirecourse.recourse import SurrogateRecourse
    >>> german = load_german()
    >>> X = german.data[["month", "credit_amount", "age"]]
    >>> forest = RandomForestClassifier(max_depth=4, class_weight="balanced", random_state=0).fit(X, german.target)
    >>> surrogates = SurrogateRecourse(n_samples=1000).fit(forest, X)
    >>> found = surrogates.find(forest, X)
    >>> found.method, bool((found.costs[found.rejected] > 0).all())
    ('surrogate', True)
    """

    def __init__(
        self,
        *,
        n_sets: int = 5,
        n_best: int = 2,
        n_samples: int = 5000,
        selection: str = "none",
        n_features: int = 10,
        kernel_width: float | None = None,
        alpha: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_sets = int(check_number(n_sets, name="n_sets", low=1, integer=True))
        self.n_best = int(check_number(n_best, name="n_best", low=1, high=self.n_sets, integer=True))
        self.n_samples = int(check_number(n_samples, name="n_samples", low=2, integer=True))
        self.selection = check_choice(selection, SELECTIONS, name="selection")
        self.n_features = int(check_number(n_features, name="n_features", low=1, integer=True))
        self.kernel_width = None
        if kernel_width is not None:
            self.kernel_width = check_number(kernel_width, name="kernel_width", low=1e-300)
        self.alpha = check_number(alpha, name="alpha", low=1e-300)
        self.n_jobs = check_jobs(n_jobs)
        self.random_state = random_state

    def fit(self, model: Any, X: Any, *, favorable_label: Any = None) -> Self:
        """Draw sample sets and keep those on which surrogates resemble the model most.

        Parameters
        ----------
        model : fitted classifier
            With ``predict_proba`` or ``decision_function``.
        X : table of shape (n_people, n_columns)
            People; columns of numbers.
        favorable_label : label, optional
            The label that means yes, as in :func:`~equirecourse.find_recourse`.

        Returns
        -------
        self
            With sample sets.
        """
        view = open_model(model, favorable_label, X)
        table = _numbers(X)
        values = table.to_numpy(dtype=np.float64)
        self.columns_ = list(table.columns)
        self.mean_, self.scale_ = values.mean(axis=0), values.std(axis=0)
        width = self.kernel_width
        self.kernel_width_ = 0.75 * np.sqrt(values.shape[1]) if width is None else width
        rng = check_generator(self.random_state)
        draws = rng.standard_normal((self.n_sets, self.n_samples, values.shape[1]))
        sets = self.mean_ + self.scale_ * draws
        self.agreement_ = self._surrogates(view, table, sets).agreement
        best = np.sort(np.argsort(-self.agreement_, kind="stable")[: self.n_best])
        self.sample_sets_ = sets[best]
        return self

    def explain(self, model: Any, X: Any, *, favorable_label: Any = None) -> Surrogates:
        """Fit the surrogates of some people; the model is asked once per sample set.

        Parameters
        ----------
        model : fitted classifier
            The one of ``fit``, or one that was fitted anew.
        X : table of shape (n_people, n_columns)
            People.
        favorable_label : label, optional
            The label that means yes.

        Returns
        -------
        Surrogates
            Slopes and values.
        """
        return self._surrogates(open_model(model, favorable_label, X), self._table(X), self.sample_sets_)

    def find(
        self, model: Any, X: Any, *, prices: Any = 1.0, norm: str = EUCLIDEAN_NORM, favorable_label: Any = None
    ) -> Recourse:
        """Estimate the cost of recourse of each person.

        Parameters
        ----------
        model : fitted classifier
            The one of ``fit``, or one that was fitted anew.
        X : table of shape (n_people, n_columns)
            People.
        prices : float or array-like of shape (n_columns,), default=1.0
            What a unit of each column costs; ``1 / scale_`` measures in standard deviations.
        norm : {"l1", "l2", "linf"}, default="l2"
            How the costs of several columns add up. The paper's Algorithm 2, which this is part of, is Euclidean.
        favorable_label : label, optional
            The label that means yes.

        Returns
        -------
        Recourse
            Costs that are estimates: nobody's is exact, and there are no counterfactuals.
        """
        table = self._table(X)
        found = self._surrogates(open_model(model, favorable_label, X), table, self.sample_sets_)
        costs = np.where(found.accepted, 0.0, found.distances(prices, norm))
        codes = np.where(found.accepted, STATUSES.index("accepted"), STATUSES.index("unknown")).astype(np.int8)

        def people() -> Any:
            rows = table.astype(np.float64).where(pd.Series(found.accepted, index=table.index), axis=0)
            return rows if hasattr(X, "columns") else rows.to_numpy()

        return Recourse(
            costs, "surrogate", found.accepted.copy(), np.zeros(len(costs)), norm, _notes(found), codes, people
        )

    def _table(self, X: Any) -> pd.DataFrame:
        if not hasattr(self, "sample_sets_"):
            raise ValueError("SurrogateRecourse has no sample sets yet; call fit first.")
        table = _numbers(X)
        if list(table.columns) != self.columns_:
            raise ValueError(
                f"The sample sets have the columns {shown(self.columns_)}, and the people {shown(list(table.columns))}."
            )
        return table

    def _surrogates(self, view: View, table: pd.DataFrame, sets: Array) -> Surrogates:
        spread = np.where(self.scale_ > 0, self.scale_, 1.0)
        Z = (table.to_numpy(dtype=np.float64) - self.mean_) / spread
        slopes, values = np.empty((len(sets), *Z.shape)), np.empty((len(sets), len(Z)))
        level = 0.0
        for number, samples in enumerate(sets):
            targets, level = _labels(view, pd.DataFrame(samples, columns=table.columns))
            rows = Rows((samples - self.mean_) / spread, targets)
            size = max(1, _CHUNK // max(self.n_samples, rows.size))
            parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(fit_ridges)(
                    rows, Z[i : i + size], self.kernel_width_, self.alpha, self.n_features, self.selection
                )
                for i in range(0, len(Z), size)
            )
            for part, i in zip(parts, range(0, len(Z), size), strict=True):
                slopes[number, i : i + size] = part.coefficients / spread
                values[number, i : i + size] = part.values(Z[i : i + size])
        return Surrogates(slopes, values, level, view.accepts(table))


def _numbers(X: Any) -> pd.DataFrame:
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    if hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame):  # polars
        table = X.to_pandas()
    table = table.rename(columns=lambda name: name if isinstance(name, str) else f"x{name}")
    for name, dtype in table.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise ValueError(
                f"Surrogates are linear in columns of numbers, and {name!r} holds {dtype}; encode it in a step of its "
                "own before, or use an engine that understands labels (method='auto')."
            )
    check_finite(table.to_numpy(dtype=np.float64), list(table.columns))
    return table


def _labels(view: View, samples: pd.DataFrame) -> tuple[Array, float]:
    """What the model says of samples, more is better, and the level at which it decides."""
    targets = view.chances(samples)
    if targets is None:
        targets, level = view.scores(samples), 0.0
        if targets is None:
            raise ValueError(
                f"Surrogates need a model with predict_proba or decision_function; {type(view.final).__name__} has "
                "neither. Use method='search', which asks for nothing but predict."
            )
    else:
        level = view.level
    if np.ptp(targets) == 0:
        raise ValueError(
            f"The model gives all {len(targets)} samples of a set the same value {targets[0]:g}, so that its "
            "surrogates are flat; fit it on data with both outcomes, or draw more samples (n_samples)."
        )
    return targets, level


def _notes(found: Surrogates) -> tuple[str, ...]:
    rejected = int((~found.accepted).sum())
    wrong = int(found.disagrees.sum())
    share = f" ({wrong / rejected:.0%})" if rejected else ""
    return (
        "The costs are estimates by local surrogates, neither upper nor lower bounds; no action was looked for.",
        f"The surrogate of {wrong} of {rejected} rejected people{share} says yes where the model says no.",
    )
