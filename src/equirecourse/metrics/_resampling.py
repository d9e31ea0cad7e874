r"""How sure are we? Bootstrap intervals, permutations of the group labels, and p-values.

A sample holds the finite costs of the rejected people of a group. It is a sorted array, whose people are drawn one by
one, or :class:`WeightedCosts`, people in clusters of about the same cost. From clusters *how many* people a resample
takes of each is drawn exactly: multinomial for a bootstrap, hypergeometric for a shuffle. *Which* ones adds a deviation
whose mean and variance are exact and whose shape is taken to be normal; where all costs of a cluster are the same there
is none. The price does not depend on the number of people, so large arrays are resampled in clusters as well.

Draws are made in blocks of resamples that bound the memory. Groups are visited in an order of their own (size, then
mean), so that neither the order of the people nor the names of the groups changes a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "Interval",
    "Sample",
    "WeightedCosts",
    "bootstrap_means",
    "gap_interval",
    "in_turn",
    "p_value",
    "percentile_interval",
    "permuted_gaps",
    "permuted_sums",
    "reduction_interval",
    "share_p_value",
    "shuffled_groups",
]

Costs = NDArray[np.float64]
Counts = NDArray[np.int64]

MANY = 100_000  # costs beyond which an array is resampled in clusters; tests/metrics/test_resampling.py compares both
_CLUSTERS = 512  # of neighbours among that many costs, besides
_EXTREMES = 128  # costs at each end, clusters of their own: they decide about heavy tails
_AT_A_TIME = 2**20  # numbers drawn at a time: 8 MB, which also is about what a cache holds
_MOST = 10**9  # people from which on NumPy draws no hypergeometric number
_ROUNDING = 1e-12  # two gaps that differ by less than this share of the largest cost are equal


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class WeightedCosts:
    """People in clusters of about the same cost: how many are in each, mean and variance of their costs."""

    count: Counts
    mean: Costs
    variance: Costs

    @classmethod
    def of_sorted(cls, costs: Costs) -> WeightedCosts:
        """Neighbours of many sorted costs put together; their people, means and variances are exact."""
        n = len(costs)
        inner = np.linspace(_EXTREMES, n - _EXTREMES, _CLUSTERS + 1).astype(np.int64)
        starts = np.concatenate([np.arange(_EXTREMES), inner[:-1], np.arange(n - _EXTREMES, n)])
        count = np.diff(np.append(starts, n))
        mean = np.add.reduceat(costs, starts) / count
        return cls(count, mean, np.add.reduceat((costs - np.repeat(mean, count)) ** 2, starts) / count)

    def __len__(self) -> int:
        return int(self.count.sum())

    def as_one(self) -> WeightedCosts:
        """Everybody in one cluster."""
        n, mean = len(self), float(self.count @ self.mean) / len(self)
        variance = float(self.count @ (self.variance + (self.mean - mean) ** 2)) / n
        return WeightedCosts(np.array([n]), np.array([mean]), np.array([variance]))


Sample = Costs | WeightedCosts


# --- bootstrap -------------------------------------------------------------------------------------------------------


def bootstrap_means(samples: Sequence[Sample], n_boot: int, rng: np.random.Generator) -> Costs:
    r"""Bootstrap the mean of each group, of shape (n_boot, n_groups).

    Each row holds one resample: for every group the mean of :math:`|G^-|` costs drawn with replacement from that group,
    so that the sizes of the groups stay what they are (a stratified bootstrap). The means of a group of fewer than two
    people are NaN: one person says nothing about the spread of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._resampling import WeightedCosts, bootstrap_means
    >>> bootstrap_means([np.array([1.0, 1.0]), np.array([3.0])], 2, np.random.default_rng(0))
    array([[ 1., nan],
           [ 1., nan]])
    >>> one = WeightedCosts(np.array([10_000]), np.array([3.0]), np.array([4.0]))
    >>> draws = bootstrap_means([one], 5000, np.random.default_rng(0))
    >>> round(float(draws.std()), 3)  # the root of 4 / 10,000
    0.02
    """
    means = np.full((n_boot, len(samples)), np.nan)
    for k in _own_order(samples):
        sample, n = _clustered(samples[k]), len(samples[k])
        if n < 2:
            continue
        if isinstance(sample, WeightedCosts):
            for block in _blocks(n_boot, len(sample.count)):
                drawn = rng.multinomial(n, sample.count / n, size=len(means[block]))
                inside = np.sqrt(drawn @ sample.variance) * rng.standard_normal(len(drawn))
                means[block, k] = (drawn @ sample.mean + inside) / n
            continue
        for block in _blocks(n_boot, n):
            picks = rng.integers(n, size=(len(means[block]), n), dtype=np.int32 if n < 2**31 else np.int64)
            means[block, k] = sample[picks].mean(axis=1)
    return means


def reduction_interval(
    before: Costs, after: Costs, groups: NDArray[Any], n_boot: int, seed: int
) -> tuple[float, float]:
    """95 % bootstrap interval of the gap before less the gap after, with the same people drawn for both.

    How often a person is drawn is a Poisson number, so that people who are rejected by one of two models only count for
    that one alone.

    Parameters
    ----------
    before, after : ndarray
        Costs under each model; NaN for accepted people, infinite costs are left out.
    groups : ndarray
        Group of each person.
    n_boot, seed : int
        Number of resamples, and their seed.

    Returns
    -------
    low, high : float
        NaN if a group has nobody to average.
    """
    rng = np.random.default_rng(seed)
    labels = np.unique(groups)
    means = np.full((2, n_boot, len(labels)), np.nan)
    for k, label in enumerate(labels):
        sides = [side[groups == label] for side in (before, after)]
        counted = [np.isfinite(side) for side in sides]
        if not all(some.any() for some in counted):
            return float("nan"), float("nan")
        for block in _blocks(n_boot, len(sides[0])):
            drawn = rng.poisson(1.0, size=(len(means[0, block]), len(sides[0])))
            for side, (costs, some) in enumerate(zip(sides, counted, strict=True)):
                with np.errstate(invalid="ignore", divide="ignore"):
                    means[side, block, k] = drawn @ np.where(some, costs, 0.0) / (drawn @ some.astype(float))
    gaps = np.ptp(means, axis=2)
    low, high = np.nanquantile(gaps[0] - gaps[1], [0.025, 0.975])
    return float(low), float(high)


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


# --- permutations ----------------------------------------------------------------------------------------------------


def permuted_gaps(
    samples: Sequence[Sample], n_permutations: int, rng: np.random.Generator, pool: Sample | None = None
) -> Costs:
    """Shuffle the group labels among the rejected and take the gap, largest minus smallest mean, each time.

    What gap would there be if the group had nothing to do with the cost? Their mean is the noise floor. The samples
    must not be empty; ``pool`` holds everybody's costs, and is put together from arrays unless given.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._resampling import permuted_gaps
    >>> permuted_gaps([np.array([1.0]), np.array([3.0])], 3, np.random.default_rng(0))
    array([2., 2., 2.])
    """
    sizes = np.array([len(samples[k]) for k in _own_order(samples)])
    pool = _clustered(np.sort(np.concatenate(list(samples))) if pool is None else pool)
    if isinstance(pool, WeightedCosts):
        return np.asarray(np.ptp(permuted_sums(pool, sizes, n_permutations, rng) / sizes, axis=1))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    gaps = np.empty(n_permutations)
    # One shuffle at a time is faster than Generator.permuted on a block of them, and needs no block.
    for b in range(n_permutations):
        means = np.add.reduceat(rng.permutation(pool), starts) / sizes
        gaps[b] = means.max() - means.min()
    return gaps


def permuted_sums(pool: WeightedCosts, sizes: Counts, n_permutations: int, rng: np.random.Generator) -> Costs:
    """Sums of the groups' costs when the labels are shuffled, of shape (n_permutations, n_groups)."""
    if len(pool) >= _MOST:
        pool = pool.as_one()  # a sum over a billion people is as normal as can be
    sums = np.empty((n_permutations, len(sizes)))
    # s² of a finite population: sampling without replacement from n people has the variance N (n − N) / n × s².
    single = pool.variance * pool.count / np.maximum(pool.count - 1, 1)
    for block in _blocks(n_permutations, len(pool.count)):
        left = np.tile(pool.count, (len(sums[block]), 1))
        owed = np.zeros(left.shape)  # what is left of deviations that add up to 0 in each cluster
        for k, size in enumerate(sizes):
            taken = left if k == len(sizes) - 1 else _taken(left, int(size), rng)
            share = taken / np.maximum(left, 1)
            deviation = owed * share + rng.standard_normal(left.shape) * np.sqrt(single * taken * (1 - share))
            sums[block, k] = taken @ pool.mean + deviation.sum(axis=1)
            left, owed = left - taken, owed - deviation
    return sums


def _taken(left: Counts, size: int, rng: np.random.Generator) -> Counts:
    """How many of each cluster are among ``size`` people drawn without replacement, for each row of ``left``."""
    if left.shape[1] == 1:
        return np.full_like(left, size)
    taken = np.zeros_like(left)
    wanted = np.full(len(left), size)
    others = left.sum(axis=1)
    for j in range(left.shape[1]):
        others = others - left[:, j]
        taken[:, j] = rng.hypergeometric(left[:, j], others, wanted)
        wanted = wanted - taken[:, j]
    return taken


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
    >>> from equirecourse.metrics._resampling import share_p_value
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


def shuffled_groups(groups: Any, seed: int) -> Any:
    """The groups of a placebo: those that people have, dealt out among them anew.

    Examples
    --------
    >>> from equirecourse.metrics._resampling import shuffled_groups
    >>> sorted(shuffled_groups(["f", "f", "m"], 0).tolist())
    ['f', 'f', 'm']
    """
    rows = np.random.default_rng(seed).permutation(len(groups))
    if isinstance(groups, pd.DataFrame | pd.Series):
        return groups.iloc[rows].set_axis(groups.index)
    return np.asarray(groups)[rows]


def in_turn(rows: NDArray[np.intp], n_people: int, seed: int) -> NDArray[np.intp]:
    """Some people in random order, of which one takes as many as one can afford.

    Everybody has a place in the order, whether they are among the rows or not. A model that rejects one person more is
    judged by the same people as before and that one, not by others.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._resampling import in_turn
    >>> in_turn(np.array([1, 3, 4]), 6, seed=0), in_turn(np.array([1, 2, 3, 4]), 6, seed=0)
    (array([4, 1, 3]), array([4, 1, 3, 2]))
    """
    turn = np.random.default_rng(seed).permutation(n_people)
    return np.asarray(rows[np.argsort(turn[rows])])


# --- samples ---------------------------------------------------------------------------------------------------------


def _blocks(n_resamples: int, width: int) -> Iterator[slice]:
    """Slices of the resamples that are drawn at a time, if each of them takes ``width`` numbers."""
    rows = max(1, _AT_A_TIME // width)
    return (slice(start, start + rows) for start in range(0, n_resamples, rows))


def _clustered(sample: Sample) -> Sample:
    """A sample in clusters if it is large."""
    return sample if isinstance(sample, WeightedCosts) or len(sample) <= MANY else WeightedCosts.of_sorted(sample)


def _own_order(samples: Sequence[Sample]) -> list[int]:
    """Positions of the groups sorted by size and mean: an order that does not depend on their names."""

    def mean(sample: Sample) -> float:
        total = sample.count @ sample.mean if isinstance(sample, WeightedCosts) else sample.sum()
        return float(total) / max(len(sample), 1)

    key = [(len(sample), mean(sample)) for sample in samples]
    return sorted(range(len(samples)), key=key.__getitem__)
