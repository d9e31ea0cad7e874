r"""How sure are we, if nobody can be drawn any more? Resampling lumps of people with about the same cost.

The two schemes are those of ``_inference``. A bootstrap resample of :math:`n` people takes a multinomial number of each
lump; a shuffle of the labels gives each group a hypergeometric number of each lump. Both are exact, and so are mean and
variance of what the people of a lump add to a sum; only the shape of that last part is taken to be normal. Where
all costs of a lump are the same there is no such part. The price does not depend on the number of people.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equirecourse.metrics._cells import Lumps

__all__ = ["bootstrap_lumps", "permuted_lumps"]

Array = NDArray[np.float64]

_MOST = 10**9  # people from which on NumPy draws no hypergeometric number


def bootstrap_lumps(samples: Sequence[Lumps], n_boot: int, rng: np.random.Generator) -> Array:
    """Bootstrap the mean of each group; see ``bootstrap_means``, whose scheme this is.

    Parameters
    ----------
    samples : sequence of Lumps
        The costs of each group.
    n_boot : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_boot, n_groups)
        The means, NaN for a group of fewer than two people.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics._cells import Lumps
    >>> from equirecourse.metrics._lumps import bootstrap_lumps
    >>> lumps = Lumps(np.array([10_000]), np.array([3.0]), np.array([4.0]))
    >>> draws = bootstrap_lumps([lumps], 5000, np.random.default_rng(0))
    >>> round(float(draws.std()), 3)  # the root of 4 / 10,000
    0.02
    """
    means = np.full((n_boot, len(samples)), np.nan)
    for k in _own_order(samples):
        lumps = samples[k]
        if lumps.n < 2:
            continue
        drawn = rng.multinomial(lumps.n, lumps.count / lumps.n, size=n_boot)
        inside = np.sqrt(drawn @ lumps.variance) * rng.standard_normal(n_boot)
        means[:, k] = (drawn @ lumps.mean + inside) / lumps.n
    return means


def permuted_lumps(pool: Lumps, samples: Sequence[Lumps], n_permutations: int, rng: np.random.Generator) -> Array:
    """Shuffle the group labels among the rejected and take the gap each time; see ``permuted_gaps``.

    Parameters
    ----------
    pool : Lumps
        The costs of everybody.
    samples : sequence of Lumps
        The costs of each group, none of them empty; they sum up to the pool, and only their sizes are read.
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
    >>> from equirecourse.metrics._cells import Lumps
    >>> from equirecourse.metrics._lumps import permuted_lumps
    >>> one, other = (Lumps(np.array([1]), np.array([cost]), np.zeros(1)) for cost in (1.0, 3.0))
    >>> both = Lumps(np.array([1, 1]), np.array([1.0, 3.0]), np.zeros(2))
    >>> permuted_lumps(both, [one, other], 3, np.random.default_rng(0))
    array([2., 2., 2.])
    """
    if pool.n >= _MOST:
        pool = pool.as_one()  # a sum over a billion people is as normal as can be
    sizes = [samples[k].n for k in _own_order(samples)]
    # Variance of one of a finite number of people, so that drawing all of them leaves no doubt.
    single = pool.variance * pool.count / np.maximum(pool.count - 1, 1)
    left = np.tile(pool.count, (n_permutations, 1))
    owed = np.zeros((n_permutations, len(pool.count)))  # what is left of deviations that add up to 0 in each lump
    highest, lowest = np.full(n_permutations, -np.inf), np.full(n_permutations, np.inf)
    for turn, size in enumerate(sizes):
        taken = left if turn == len(sizes) - 1 else _deal(left, size, rng)
        share = taken / np.maximum(left, 1)
        deviation = owed * share + np.sqrt(single * taken * (1 - share)) * rng.standard_normal(left.shape)
        mean = (taken @ pool.mean + deviation.sum(axis=1)) / size
        np.maximum(highest, mean, out=highest)
        np.minimum(lowest, mean, out=lowest)
        left, owed = left - taken, owed - deviation
    return np.asarray(highest - lowest)


def _deal(left: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many people of each lump a group of a given size gets, if it is drawn from those who are left."""
    if left.shape[1] == 1:
        return np.full_like(left, size)
    taken = np.zeros_like(left)
    others = left.sum(axis=1)
    need = np.full(len(left), size, dtype=np.int64)
    for lump in range(left.shape[1]):
        here = left[:, lump]
        others = others - here
        taken[:, lump] = rng.hypergeometric(here, others, need)
        need -= taken[:, lump]
    return taken


def _own_order(samples: Sequence[Lumps]) -> list[int]:
    """Positions of the groups sorted by size and mean: an order that does not depend on their names."""
    key = [(lumps.n, float(lumps.count @ lumps.mean)) for lumps in samples]
    return sorted(range(len(samples)), key=key.__getitem__)
