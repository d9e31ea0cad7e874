"""Resampling by blocks has the distribution of resampling person by person."""

import numpy as np
import pytest
from scipy import stats

from equirecourse.metrics import RecourseFrame, _inference
from equirecourse.metrics._blocks import bootstrap_sums, permuted_sums


def costs_of(kind, n=3000):
    rng = np.random.default_rng(0)
    draws = {"even": rng.uniform(size=n), "heavy": rng.lognormal(sigma=2.0, size=n), "ties": rng.integers(4, size=n)}
    return np.sort(draws[kind].astype(float))


@pytest.mark.parametrize("kind", ["even", "heavy", "ties"])
def test_bootstrap_sums_are_those_of_people_drawn_one_by_one(kind):
    costs = costs_of(kind)
    blocks = bootstrap_sums(costs, 4000, np.random.default_rng(1))
    singly = _inference.bootstrap_means([costs], 4000, np.random.default_rng(2))[:, 0] * len(costs)
    assert blocks.std() == pytest.approx(np.sqrt(len(costs)) * costs.std(), rel=0.05)
    assert stats.ks_2samp(blocks, singly).pvalue > 0.01


@pytest.mark.parametrize("kind", ["even", "heavy", "ties"])
@pytest.mark.parametrize("sizes", [(1000, 2000), (100, 900, 2000)])
def test_permuted_sums_are_those_of_shuffled_labels(kind, sizes):
    costs, sizes = costs_of(kind), np.array(sizes)
    sums = permuted_sums(costs, sizes, 3000, np.random.default_rng(1))
    np.testing.assert_allclose(sums.sum(axis=1), costs.sum(), rtol=1e-9)
    n = len(costs)
    expected = np.sqrt(sizes * (n - sizes) / (n - 1)) * costs.std()
    np.testing.assert_allclose(sums.std(axis=0), expected, rtol=0.06)
    samples = np.split(np.random.default_rng(3).permutation(costs), np.cumsum(sizes)[:-1])
    singly = _inference.permuted_gaps([np.sort(some) for some in samples], 3000, np.random.default_rng(2))
    assert stats.ks_2samp(np.ptp(sums / sizes, axis=1), singly).pvalue > 0.01


def test_a_frame_of_many_people_says_what_one_of_few_does(monkeypatch):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=20_000)
    costs = rng.exponential(size=20_000) * (1 + 0.05 * group)
    frames = []
    for many in (10**9, 1000):
        monkeypatch.setattr(_inference, "MANY", many)
        frame = RecourseFrame(costs=costs, sensitive_features=group, random_state=0)
        frames.append((*frame.interval, frame.noise_floor, *frame.by_group["mean_low"]))
    np.testing.assert_allclose(frames[1], frames[0], rtol=0.1, atol=2e-3)
    again = RecourseFrame(costs=costs, sensitive_features=group, random_state=0)
    assert (*again.interval, again.noise_floor, *again.by_group["mean_low"]) == frames[1]
