"""Distances between the groups' whole distributions of costs, where a gap compares their means alone."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from equirecourse._validation import check_number
from equirecourse.metrics._rejected import RejectedCosts, split_rejected

__all__ = ["distances", "distribution_distances"]

Costs = NDArray[np.float64]

_EXACT_KS = 10_000  # pairs of people up to which the Kolmogorov-Smirnov p-value is computed exactly


def distribution_distances(
    costs: Any,
    *,
    sensitive_features: Any,
    rejected: Any = None,
    bins: int = 10,
    no_recourse_cost: float | None = None,
) -> pd.DataFrame:
    r"""Distances between the distributions of costs of the rejected, for every pair of groups.

    Two groups can have the same mean cost and still differ: half of one may be a step away and the other
    half out of reach. With :math:`F` and :math:`H` the distribution functions of two groups' costs,

    * ``wasserstein`` is :math:`\int |F - H|`, in the units of the cost, and at least the difference of the
      means;
    * ``ks`` is :math:`\max |F - H|`, and ``ks_p_value`` its p-value (Kolmogorov-Smirnov; with tied costs it
      errs on the side of caution);
    * ``kl`` is :math:`\sum_b p_b \log(p_b / q_b)` in nats, of the row's ``group`` from its ``other``, and
      ``js`` the Jensen-Shannon divergence, its symmetric sibling, between 0 and :math:`\log 2`.

    Parameters
    ----------
    costs, sensitive_features, rejected
        As in :func:`recourse_gap`.
    bins : int
        ``kl`` and ``js`` compare histograms with this many bins, cut at equally spaced quantiles of the
        pooled finite costs of all rejected people (fewer bins where costs are tied). People without
        recourse, if there are any, have a bin of their own. One is added to every count, so that an empty
        bin does not make ``kl`` infinite.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse. Without it ``wasserstein`` is over the
        others, with a warning; ``ks`` places them further away than anybody.

    Returns
    -------
    DataFrame
        One row per pair, with the columns ``group``, ``other``, ``wasserstein``, ``ks``, ``ks_p_value``,
        ``kl`` and ``js``; NaN, with a warning, where a group has no rejected people.

    Examples
    --------
    >>> from equirecourse.metrics import distribution_distances
    >>> costs, groups = [1.0, 1.0, 5.0, 5.0, 3.0, 3.0, 3.0, 3.0], ["f"] * 4 + ["m"] * 4
    >>> distribution_distances(costs, sensitive_features=groups)[["group", "other", "wasserstein", "ks"]]
      group other  wasserstein   ks
    0     f     m          2.0  0.5
    """
    check_number(bins, name="bins", low=1, integer=True)
    people = split_rejected(
        costs, sensitive_features=sensitive_features, rejected=rejected, no_recourse_cost=no_recourse_cost
    )
    people.warn_left_out()
    people.warn_undefined()
    return distances(people, bins)


def distances(people: RejectedCosts, bins: int = 10) -> pd.DataFrame:
    """Compute :func:`distribution_distances` on costs that are split already, without warnings."""
    averaged = people.averaged
    histograms = _histograms(people.costs, bins)
    rows = []
    for a, b in combinations(range(len(people.groups)), 2):
        row: dict[str, Any] = {"group": people.groups.labels[a], "other": people.groups.labels[b]}
        row |= dict.fromkeys(("wasserstein", "ks", "ks_p_value", "kl", "js"), float("nan"))
        if len(averaged[a]) and len(averaged[b]):
            row["wasserstein"] = float(stats.wasserstein_distance(averaged[a], averaged[b]))
        first, second = people.costs[a], people.costs[b]
        if len(first) and len(second):
            row["ks"], row["ks_p_value"] = _kolmogorov_smirnov(first, second)
            row["kl"] = float(stats.entropy(histograms[a], histograms[b]))
            middle = (histograms[a] + histograms[b]) / 2
            row["js"] = float(stats.entropy(histograms[a], middle) + stats.entropy(histograms[b], middle)) / 2
        rows.append(row)
    return pd.DataFrame(rows)


def _kolmogorov_smirnov(first: Costs, second: Costs) -> tuple[float, float]:
    """Compute the statistic and its p-value, exact for small groups: its price is the pairs of people."""
    method = "exact" if len(first) * len(second) <= _EXACT_KS else "asymp"
    with warnings.catch_warnings():
        # An exact p-value of 1 may be rounded past 1; SciPy then takes the asymptotic one, and says so.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        test = stats.ks_2samp(first, second, method=method)
    return float(test.statistic), float(test.pvalue)


def _histograms(samples: tuple[Costs, ...], bins: int) -> list[Costs]:
    """Share of each group in the common bins, after one has been added to every count."""
    pool = np.concatenate(samples)
    finite = pool[np.isfinite(pool)]
    # A bin holds its upper cut, so a cut at the largest cost would leave an empty bin behind it.
    cuts = np.empty(0)
    if len(finite):
        cuts = np.unique(np.quantile(finite, np.linspace(0, 1, bins + 1)[1:-1]))
        cuts = cuts[cuts < finite.max()]
    n_bins = len(cuts) + 2
    counts = [
        np.bincount(np.where(np.isinf(costs), n_bins - 1, np.searchsorted(cuts, costs)), minlength=n_bins)
        for costs in samples
    ]
    used = n_bins if np.isinf(pool).any() else n_bins - 1
    return [(count[:used] + 1) / (count[:used] + 1).sum() for count in counts]
