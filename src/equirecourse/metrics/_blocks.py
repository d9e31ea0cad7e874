"""Resampling hundreds of thousands of costs without touching each of them in each resample.

The sorted costs are cut into blocks of neighbours; the most extreme costs, which decide about heavy tails, are blocks
of one. *How many* a resample takes from each block is drawn exactly: multinomial for a bootstrap, hypergeometric for a
shuffle. *Which* ones of a block adds a spread that is a tiny share of the whole, because neighbours differ by little;
it is drawn from the normal distribution with the very mean and variance of such a sample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MANY", "bootstrap_sums", "permuted_sums"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

MANY = 100_000  # costs beyond which blocks are used
_BLOCKS = 512
_EXTREMES = 128  # costs at each end that are blocks of their own
_AT_A_TIME = 2**20  # numbers drawn at a time


def _blocks(costs: Array) -> tuple[Counts, Array, Array]:
    """Sizes, means and variances of the blocks of sorted costs."""
    n = len(costs)
    inner = np.linspace(_EXTREMES, n - _EXTREMES, _BLOCKS + 1).astype(np.int64)
    starts = np.concatenate([np.arange(_EXTREMES), inner[:-1], np.arange(n - _EXTREMES, n)])
    sizes = np.diff(np.append(starts, n))
    means = np.add.reduceat(costs, starts) / sizes
    variances = np.add.reduceat((costs - np.repeat(means, sizes)) ** 2, starts) / sizes
    return sizes, means, variances


def bootstrap_sums(costs: Array, n_boot: int, rng: np.random.Generator) -> Array:
    """Sums of ``len(costs)`` costs drawn with replacement from sorted ones, ``n_boot`` times.

    Parameters
    ----------
    costs : ndarray
        Sorted costs.
    n_boot : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_boot,)
        The sums.
    """
    sizes, means, variances = _blocks(costs)
    sums = np.empty(n_boot)
    rows = max(1, _AT_A_TIME // len(sizes))
    for start in range(0, n_boot, rows):
        block = sums[start : start + rows]
        counts = rng.multinomial(len(costs), sizes / len(costs), size=len(block))
        block[:] = counts @ means + np.sqrt(counts @ variances) * rng.standard_normal(len(block))
    return sums


def permuted_sums(pool: Array, sizes: Counts, n_permutations: int, rng: np.random.Generator) -> Array:
    """Sums of the groups' costs when the labels are shuffled, ``n_permutations`` times.

    Parameters
    ----------
    pool : ndarray
        Sorted costs of everybody.
    sizes : ndarray of int
        Number of people of each group.
    n_permutations : int
        Number of shuffles.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_permutations, n_groups)
        The sums.
    """
    blocks, means, variances = _blocks(pool)
    sums = np.empty((n_permutations, len(sizes)))
    rows = max(1, _AT_A_TIME // len(blocks))
    # s² of a finite population: sampling without replacement from n people has the variance N (n − N) / n × s².
    spread = variances * blocks / np.maximum(blocks - 1, 1)
    for start in range(0, n_permutations, rows):
        part = sums[start : start + rows]
        left = np.tile(blocks, (len(part), 1))
        surplus = np.zeros(left.shape)  # what is left of a block, above its number times its mean
        for k, size in enumerate(sizes):
            taken = left if k == len(sizes) - 1 else _taken(left, int(size), rng)
            share = np.divide(taken, left, out=np.zeros(left.shape), where=left > 0)
            noise = rng.standard_normal(left.shape) * np.sqrt(spread * taken * (1.0 - share))
            above = surplus * share + noise
            part[:, k] = taken @ means + above.sum(axis=1)
            left, surplus = left - taken, surplus - above
    return sums


def _taken(left: Counts, size: int, rng: np.random.Generator) -> Counts:
    """How many of each block are among ``size`` people drawn without replacement, for each row of ``left``."""
    taken = np.zeros_like(left)
    wanted = np.full(len(left), size)
    after = left.sum(axis=1)
    for j in range(left.shape[1]):
        after = after - left[:, j]
        taken[:, j] = rng.hypergeometric(left[:, j], after, wanted)
        wanted = wanted - taken[:, j]
    return taken
