"""The transport gap: how far the groups' whole distributions of cost are from each other, relative to the mean cost."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from equirecourse._validation import check_groups, check_number

__all__ = ["TransportGap", "transport_gap"]

Costs = NDArray[np.float64]

_DEAREST = 0.99  # quantile of the known costs at which people without recourse are counted,
_FAR = 4.0  # or so many medians, where the equalizers' objective ends


class TransportGap(NamedTuple):
    """The gap, and mean and standard deviation of the gaps of shuffled groups: what chance alone would make."""

    gap: float
    noise_floor: float
    noise_spread: float = float("nan")


def transport_gap(
    costs: Any, *, sensitive_features: Any, n_permutations: int = 20, random_state: int = 0
) -> TransportGap:
    """Largest distance between two groups' distributions of cost, divided by the mean cost of everybody.

    The distance is that of Wasserstein: the cost that has to be moved to make the two distributions equal. It is at
    least the difference of their means, and zero only where the distributions agree.

    Parameters
    ----------
    costs : array-like of shape (n_rejected,)
        Of rejected people. Those without recourse, at infinite cost, count like the dearest hundredth of the others,
        and as four times the median at least: at the largest cost of all, one outlier would decide for all of them, and
        where only cheap ones are left, losing one's recourse would look like a gain.
    sensitive_features : array-like of shape (n_rejected,)
        Their groups.
    n_permutations : int, default=20
        Shuffles for the noise floor.
    random_state : int, default=0
        Of the shuffles.

    Returns
    -------
    TransportGap
        NaN where less than two groups have anybody, or the mean cost is zero.

    Examples
    --------
    >>> from equirecourse.metrics import transport_gap
    >>> float(transport_gap([1.0, 1.0, 3.0, 3.0], sensitive_features=list("aabb")).gap)
    1.0
    """
    check_number(n_permutations, name="n_permutations", low=0, integer=True)
    values = np.asarray(costs, dtype=np.float64)
    groups = check_groups(sensitive_features, len(values))
    known = np.isfinite(values)
    if not known.any():
        return TransportGap(float("nan"), float("nan"))
    dear = np.quantile(values[known], _DEAREST, method="lower")
    values = np.where(known, values, max(dear, _FAR * np.median(values[known])))
    mean = float(values.mean())
    if len(np.unique(groups.codes)) < 2 or not mean > 0.0:
        return TransportGap(float("nan"), float("nan"))
    rng = np.random.default_rng(random_state)
    shuffled = np.array([_largest(values, rng.permutation(groups.codes)) for _ in range(n_permutations)]) / mean
    return TransportGap(
        _largest(values, groups.codes) / mean,
        float(shuffled.mean()) if len(shuffled) else float("nan"),
        float(shuffled.std(ddof=1)) if len(shuffled) > 1 else float("nan"),
    )


def _largest(values: Costs, codes: NDArray[np.intp]) -> float:
    parts = [values[codes == code] for code in np.unique(codes)]
    return max(float(wasserstein_distance(one, other)) for one, other in combinations(parts, 2))
