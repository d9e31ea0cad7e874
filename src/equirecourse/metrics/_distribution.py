"""Distances between the groups' whole distributions of costs, where a gap compares their means alone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pandas as pd
from scipy import stats

from equirecourse._validation import check_number
from equirecourse.metrics._rejected import RejectedCosts, split_rejected

__all__ = ["distances", "distribution_distances"]

_BINS = 10  # of the histograms that kl and js compare


def distribution_distances(
    costs: Any,
    *,
    sensitive_features: Any,
    rejected: Any = None,
    bins: int = _BINS,
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


def distances(people: RejectedCosts, bins: int = _BINS) -> pd.DataFrame:
    """Compute :func:`distribution_distances` on costs that are split already, without warnings."""
    counts = people.histograms(bins) + 1
    shares = counts / counts.sum(axis=1, keepdims=True)
    rows = []
    for a, b in combinations(range(len(people.groups)), 2):
        row: dict[str, Any] = {"group": people.groups.labels[a], "other": people.groups.labels[b]}
        row |= dict.fromkeys(("wasserstein", "ks", "ks_p_value", "kl", "js"), float("nan"))
        if people.n_averaged[a] and people.n_averaged[b]:
            row["wasserstein"] = people.wasserstein(a, b)
        if people.measured[a] and people.measured[b]:
            row["ks"], row["ks_p_value"] = people.kolmogorov_smirnov(a, b)
            row["kl"] = float(stats.entropy(shares[a], shares[b]))
            middle = (shares[a] + shares[b]) / 2
            row["js"] = float(stats.entropy(shares[a], middle) + stats.entropy(shares[b], middle)) / 2
        rows.append(row)
    return pd.DataFrame(rows)
