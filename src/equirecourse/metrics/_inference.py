"""How sure are we? Bootstrap intervals and permutations of the group labels.

Everything here takes ``samples``, the finite sorted costs of the rejected people of each group, and draws
from a NumPy generator. Draws are made one resample (or a bounded block of resamples) at a time, so memory
does not grow with the number of resamples times the number of people. For very many people not even one resample is
drawn person by person, see ``_blocks``.

The groups are visited in an order of their own (size, then mean), so that neither the order of the people
nor the names of the groups changes a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equirecourse.metrics._blocks import MANY, bootstrap_sums, permuted_sums

__all__ = [
    "Interval",
    "bootstrap_means",
    "gap_interval",
    "p_value",
    "percentile_interval",
    "permuted_gaps",
    "share_p_value",
]

Costs = NDArray[np.float64]

_BLOCK = 2**20  # numbers drawn at a time: 8 MB, which also is about what a cache holds
_MOST = 10**9  # people from which on NumPy draws no hypergeometric number
_ROUNDING = 1e-12  # two gaps that differ by less than this share of the largest cost are equal


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float


def bootstrap_means(samples: Sequence[Costs], n_boot: int, rng: np.random.Generator) -> Costs:
    r"""Bootstrap the mean of each group, group by group.

    Each row holds one resample: for every group the mean of :math:`|G^-|` costs drawn with replacement from
    that group, so that the sizes of the groups stay what they are (a stratified bootstrap).

    Parameters
    ----------
    samples : sequence of ndarray
        The costs of each group.
    n_boot : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_boot, n_groups)
        The means. NaN for a group of fewer than two people: one person says nothing about the spread of the
        others, and resampling that person would pretend to be certain.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._inference import bootstrap_means
    >>> bootstrap_means([np.array([1.0, 1.0]), np.array([3.0])], 2, np.random.default_rng(0))
    array([[ 1., nan],
           [ 1., nan]])
    """
    means = np.full((n_boot, len(samples)), np.nan)
    for k in _own_order(samples):
        costs, size = samples[k], len(samples[k])
        if size < 2:
            continue
        if size > MANY:
            means[:, k] = bootstrap_sums(costs, n_boot, rng) / size
            continue
        rows = max(1, _BLOCK // size)
        for start in range(0, n_boot, rows):
            block = means[start : start + rows, k]
            picks = rng.integers(size, size=(len(block), size), dtype=np.int32 if size < 2**31 else np.int64)
            block[:] = costs[picks].mean(axis=1)
    return means


def permuted_gaps(samples: Sequence[Costs], n_permutations: int, rng: np.random.Generator) -> Costs:
    """Shuffle the group labels among the rejected and take the gap, largest minus smallest mean, each time.

    What gap would there be if the group had nothing to do with the cost? Their mean is the noise floor.

    Parameters
    ----------
    samples : sequence of ndarray
        The costs of each group, none of them empty.
    n_permutations : int
        Number of shuffles.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_permutations,)
        The gaps of the shuffled groups.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._inference import permuted_gaps
    >>> permuted_gaps([np.array([1.0]), np.array([3.0])], 3, np.random.default_rng(0))
    array([2., 2., 2.])
    """
    sizes = np.array([len(samples[k]) for k in _own_order(samples)])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    pool = np.sort(np.concatenate(list(samples)))
    if len(pool) > MANY:
        sums = permuted_sums(pool, sizes, n_permutations, rng)
        return np.asarray(np.ptp(sums / sizes, axis=1))
    gaps = np.empty(n_permutations)
    # One shuffle at a time is faster than Generator.permuted on a block of them, and needs no block.
    for b in range(n_permutations):
        means = np.add.reduceat(rng.permutation(pool), starts) / sizes
        gaps[b] = means.max() - means.min()
    return gaps


def p_value(gap: float, gaps: Costs, scale: float) -> float:
    r"""Share of shuffles with a gap as large as the observed, :math:`(1 + \#\{b : u_b \ge u\}) / (1 + B)`.

    The observed labels count as one of the shuffles, so the value is never 0 and the test never too eager.
    ``scale`` is the largest cost: gaps that differ by less than rounding errors of that size are equal.
    """
    return float((1 + np.sum(gaps >= gap - _ROUNDING * scale)) / (1 + len(gaps)))


def share_p_value(
    certain: NDArray[np.intp],
    possible: NDArray[np.intp],
    sizes: NDArray[np.intp],
    n_permutations: int,
    rng: np.random.Generator,
) -> float:
    """Permutation p-value of the difference between the groups' shares without recourse.

    Some people's recourse is unknown. They are given to either side so that the shares are as close as they can be:
    what is still different is different whatever they turn out to be. For a yes or no, equal shares mean equal
    spreads, so the test needs no interval beside it.

    Parameters
    ----------
    certain, possible : ndarray of int
        How many of each group have no recourse for certain, and at most.
    sizes : ndarray of int
        How many people each group has.
    n_permutations : int
        Number of shuffles of the group labels.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float
        NaN if everybody has recourse, or a group has nobody; 1 if the shares may be the same.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._inference import share_p_value
    >>> share_p_value(np.array([9, 0]), np.array([9, 0]), np.array([10, 10]), 999, np.random.default_rng(0))
    0.001
    >>> share_p_value(np.array([9, 0]), np.array([9, 9]), np.array([10, 10]), 999, np.random.default_rng(0))
    1.0
    """
    if not certain.any() or not sizes.all():
        return float("nan")
    low, high = float(np.max(certain / sizes)), float(np.min(possible / sizes))
    if low <= high:
        return 1.0
    without = np.clip(np.round((low + high) / 2 * sizes).astype(np.int64), certain, possible)
    scale = 1 + int(sizes.sum()) // _MOST  # of fewer people the p-value is larger, never smaller
    without, sizes = without // scale, np.maximum(sizes // scale, 1)
    drawn = rng.multivariate_hypergeometric(sizes, int(without.sum()), size=n_permutations, method="marginals")
    return p_value(float(np.ptp(without / sizes)), np.ptp(drawn / sizes, axis=1), 1.0)


def percentile_interval(draws: Costs, confidence: float) -> Interval:
    """Interval between the two percentiles that leave ``1 - confidence`` outside, half on each side."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(float(low), float(high))


def gap_interval(draws: Costs, far: int, near: int, confidence: float) -> Interval:
    """Percentile interval of the gap between two groups, from bootstrap means.

    The interval of the *signed* difference ``far - near``, folded at zero: where it straddles zero the gap
    may be nothing at all, so its lower end is 0 and its upper end the larger of the two distances from
    zero. The two groups are those observed to be furthest apart; with more than two groups that choice is
    part of the noise, which the interval does not know about and the permutation test does.
    """
    low, high = percentile_interval(draws[:, far] - draws[:, near], confidence)
    if low <= 0 <= high:
        return Interval(0.0, max(-low, high))
    return Interval(low, high) if low > 0 else Interval(-high, -low)


def _own_order(samples: Sequence[Costs]) -> list[int]:
    """Positions of the groups sorted by size and mean: an order that does not depend on their names."""
    key = [(len(costs), float(costs.mean()) if len(costs) else 0.0) for costs in samples]
    return sorted(range(len(samples)), key=key.__getitem__)
