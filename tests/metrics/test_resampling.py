"""The bootstrap and the permutations agree with SciPy's, and with the truth on simulated people."""

import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equirecourse.metrics import RecourseFrame, _resampling
from equirecourse.metrics._resampling import (
    WeightedCosts,
    bootstrap_means,
    gap_interval,
    p_value,
    percentile_interval,
    permuted_gaps,
    permuted_sums,
    reduction_interval,
    shuffled_groups,
)

NAN = float("nan")


def spread(*samples, axis=-1):
    means = np.array([np.mean(sample, axis=axis) for sample in samples])
    return means.max(axis=0) - means.min(axis=0)


SMALL = [
    [np.array([0.3, 1.1, 2.0, 2.4]), np.array([1.9, 2.6, 3.3, 4.1, 5.0])],
    [np.array([0.3, 1.1, 2.0]), np.array([1.9, 2.6]), np.array([0.2, 4.1, 5.0])],
]


@pytest.mark.parametrize("samples", SMALL, ids=["two groups", "three groups"])
def test_permutations_agree_with_scipys_exhaustive_test(samples):
    exact = stats.permutation_test(samples, spread, n_resamples=np.inf, alternative="greater", vectorized=True)
    n = 20_000
    gaps = permuted_gaps(samples, n, np.random.default_rng(0))
    floor = exact.null_distribution.mean()
    assert gaps.mean() == pytest.approx(floor, abs=4 * exact.null_distribution.std() / np.sqrt(n))
    observed = spread(*samples)
    p = p_value(observed, gaps, 5.0)
    assert p == pytest.approx(exact.pvalue, abs=4 * np.sqrt(exact.pvalue * (1 - exact.pvalue) / n) + 1 / n)


def test_permuted_gaps_are_gaps_of_the_same_people():
    samples = SMALL[1]
    every = stats.permutation_test(samples, spread, n_resamples=np.inf, vectorized=True).null_distribution
    gaps = permuted_gaps(samples, 500, np.random.default_rng(0))
    assert all(np.isclose(every, gap).any() for gap in gaps)


def test_bootstrap_agrees_with_scipys():
    rng = np.random.default_rng(1)
    first, second = rng.exponential(1.0, 80), rng.exponential(1.5, 50)
    means = bootstrap_means([first, second], 20_000, rng)
    ours = percentile_interval(means[:, 0] - means[:, 1], 0.9)
    theirs = stats.bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=20_000,
        confidence_level=0.9,
        method="percentile",
        rng=np.random.default_rng(2),
    )
    spread_of_means = theirs.standard_error
    np.testing.assert_allclose(ours, theirs.confidence_interval, atol=0.08 * spread_of_means)
    assert np.std(means[:, 0] - means[:, 1]) == pytest.approx(spread_of_means, rel=0.04)


def test_bootstrap_means_have_the_moments_of_a_mean():
    costs = np.random.default_rng(3).gamma(2.0, size=200)
    means = bootstrap_means([costs], 20_000, np.random.default_rng(0))[:, 0]
    assert means.mean() == pytest.approx(costs.mean(), abs=4 * means.std() / np.sqrt(20_000))
    assert means.std() == pytest.approx(costs.std() / np.sqrt(200), rel=0.03)


def test_one_person_has_no_interval():
    means = bootstrap_means([np.array([1.0]), np.array([]), np.array([1.0, 2.0])], 5, np.random.default_rng(0))
    assert np.isnan(means[:, :2]).all()
    assert np.isfinite(means[:, 2]).all()


@pytest.mark.parametrize(
    ("differences", "expected"),
    [([1.0, 3.0], (1, 3)), ([-1.0, 3.0], (0, 3)), ([-3.0, 1.0], (0, 3)), ([-3.0, -1.0], (1, 3))],
)
def test_an_interval_that_straddles_zero_starts_at_zero(differences, expected):
    draws = np.column_stack([np.linspace(*differences, 1001), np.zeros(1001)])
    assert gap_interval(draws, 0, 1, 0.9999999) == pytest.approx(expected, abs=1e-3)


def test_the_p_value_counts_the_observed_labels_as_a_shuffle():
    assert p_value(2.0, np.array([1.0, 2.0, 3.0]), 3.0) == 3 / 4
    assert p_value(9.0, np.array([1.0, 2.0, 3.0]), 3.0) == 1 / 4


def test_equal_costs_are_no_gap_in_spite_of_rounding():
    frame = RecourseFrame(costs=np.full(13, 0.1), sensitive_features=[0] * 10 + [1] * 3, random_state=0)
    assert frame.p_value == 1.0
    assert not frame.detectable


def simulate(seed, shift, size=(60, 40)):
    rng = np.random.default_rng(seed)
    costs = np.concatenate([rng.gamma(2.0, 1.0, size[0]) + shift, rng.gamma(2.0, 1.0, size[1])])
    return costs, np.repeat([0, 1], size)


def test_p_values_are_uniform_when_the_group_does_not_matter():
    p_values = []
    for seed in range(300):
        costs, group = simulate(seed, 0.0)
        frame = RecourseFrame(costs=costs, sensitive_features=group, n_permutations=199, random_state=seed)
        p_values.append(frame.p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001
    assert np.mean(np.array(p_values) <= 0.05) < 0.09


def test_intervals_hold_the_true_gap_as_often_as_they_say():
    hits = 0
    for seed in range(200):
        costs, group = simulate(seed, 1.0)
        frame = RecourseFrame(costs=costs, sensitive_features=group, n_boot=400, random_state=seed)
        hits += frame.interval.low <= 1.0 <= frame.interval.high
    assert 0.90 <= hits / 200 <= 0.99


def test_the_noise_floor_is_the_gap_of_groups_that_do_not_matter():
    frames = []
    for seed in range(200):
        costs, group = simulate(seed, 0.0)
        frames.append(RecourseFrame(costs=costs, sensitive_features=group, n_permutations=99, random_state=seed))
    gaps, floors = [frame.gap for frame in frames], [frame.noise_floor for frame in frames]
    assert np.mean(floors) == pytest.approx(np.mean(gaps), rel=0.15)
    # Two normal means: E|d| = sqrt(2/pi) sd(d), where a gamma(2, 1) cost has variance 2.
    assert np.mean(floors) == pytest.approx(np.sqrt(2 / np.pi * 2 * (1 / 60 + 1 / 40)), rel=0.03)


@st.composite
def samples(draw):
    sizes = draw(st.lists(st.integers(2, 6), min_size=2, max_size=3))
    costs = draw(
        st.lists(st.integers(1, 10_000), min_size=sum(sizes), max_size=sum(sizes), unique=True)
    )  # no two groups alike
    return np.array(costs) / 64, np.repeat(np.arange(len(sizes)), sizes)


def numbers(costs, group, **options):
    frame = RecourseFrame(
        costs=costs, sensitive_features=group, n_boot=50, n_permutations=50, random_state=5, **options
    )
    return np.array([frame.gap, *frame.interval, frame.noise_floor]), frame.p_value


@settings(max_examples=40, deadline=None)
@given(samples(), st.randoms(use_true_random=False))
def test_neither_the_order_of_people_nor_group_names_change_a_number(sample, random):
    costs, group = sample
    order = np.array(random.sample(range(len(costs)), len(costs)))
    before, p_before = numbers(costs, group)
    after, p_after = numbers(costs[order], np.array(["z", "y", "x"])[group][order])
    np.testing.assert_array_equal(after, before)
    assert p_after == p_before


@settings(max_examples=40, deadline=None)
@given(samples(), st.floats(1e-3, 1e3))
def test_scaling_costs_scales_gap_interval_and_floor_and_leaves_the_p_value(sample, factor):
    costs, group = sample
    before, p_before = numbers(costs, group)
    after, p_after = numbers(costs * factor, group)
    np.testing.assert_allclose(after, factor * before, rtol=1e-9, atol=1e-9 * factor)
    assert p_after == p_before


@settings(max_examples=40, deadline=None)
@given(samples())
def test_the_interval_is_made_of_possible_gaps(sample):
    (gap, low, high, floor), p = numbers(*sample)
    assert 0 <= low <= high <= np.ptp(sample[0])
    assert 0 <= floor <= np.ptp(sample[0])
    assert 1 / 51 <= p <= 1
    assert gap >= 0


def test_ten_thousand_people_and_a_thousand_resamples_are_quick_and_small():
    rng = np.random.default_rng(0)
    split = [np.sort(rng.random(4_000)), np.sort(rng.random(6_000))]
    start = time.perf_counter()
    bootstrap_means(split, 1000, rng)
    permuted_gaps(split, 1000, rng)
    assert time.perf_counter() - start < 5  # 0.25 s alone on one core; the machine may be busy
    tracemalloc.start()
    bootstrap_means(split, 1000, rng)
    permuted_gaps(split, 50, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_the_interval_of_a_reduction_covers_it():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 400)
    truth, inside = 0.5 - 0.1, 0
    for seed in range(60):
        before = rng.exponential(1.0, 800) + np.where(groups == "a", 0.5, 0.0)
        after = rng.exponential(1.0, 800) + np.where(groups == "a", 0.1, 0.0)
        low, high = reduction_interval(before, after, groups, 300, seed)
        inside += low <= truth <= high
    assert inside >= 50
    assert np.isnan(reduction_interval(np.full(800, np.nan), before, groups, 10, 0)).all()


def test_the_interval_of_a_reduction_does_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    sides, groups = rng.exponential(size=(2, 60)), np.repeat(["a", "b"], 30)
    whole = reduction_interval(*sides, groups, 500, 1)
    monkeypatch.setattr(_resampling, "_AT_A_TIME", 100)
    assert reduction_interval(*sides, groups, 500, 1) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.DataFrame])
def test_a_placebo_deals_the_same_groups_to_other_people(kind):
    groups = kind(list("aaabbbbbcc"))
    found = shuffled_groups(groups, 3)
    assert np.array_equal(np.asarray(found).ravel(), np.random.default_rng(3).permutation(list("aaabbbbbcc")))
    if kind in (pd.Series, pd.DataFrame):
        assert found.index.equals(groups.index)


# --- clusters --------------------------------------------------------------------------------------------------------


def costs_of(kind, n=3000):
    rng = np.random.default_rng(0)
    draws = {"even": rng.uniform(size=n), "heavy": rng.lognormal(sigma=2.0, size=n), "ties": rng.integers(4, size=n)}
    return np.sort(draws[kind].astype(float))


@pytest.mark.parametrize("kind", ["even", "heavy", "ties"])
def test_bootstrap_sums_of_clusters_are_those_of_people_drawn_one_by_one(kind):
    costs = costs_of(kind)
    clusters = bootstrap_means([WeightedCosts.of_sorted(costs)], 4000, np.random.default_rng(1))[:, 0] * len(costs)
    singly = bootstrap_means([costs], 4000, np.random.default_rng(2))[:, 0] * len(costs)
    assert clusters.std() == pytest.approx(np.sqrt(len(costs)) * costs.std(), rel=0.05)
    assert stats.ks_2samp(clusters, singly).pvalue > 0.01


@pytest.mark.parametrize("kind", ["even", "heavy", "ties"])
@pytest.mark.parametrize("sizes", [(1000, 2000), (100, 900, 2000)])
def test_permuted_sums_of_clusters_are_those_of_shuffled_labels(kind, sizes):
    costs, sizes = costs_of(kind), np.array(sizes)
    sums = permuted_sums(WeightedCosts.of_sorted(costs), sizes, 3000, np.random.default_rng(1))
    np.testing.assert_allclose(sums.sum(axis=1), costs.sum(), rtol=1e-9)
    n = len(costs)
    expected = np.sqrt(sizes * (n - sizes) / (n - 1)) * costs.std()
    np.testing.assert_allclose(sums.std(axis=0), expected, rtol=0.06)
    samples = np.split(np.random.default_rng(3).permutation(costs), np.cumsum(sizes)[:-1])
    singly = permuted_gaps([np.sort(some) for some in samples], 3000, np.random.default_rng(2))
    assert stats.ks_2samp(np.ptp(sums / sizes, axis=1), singly).pvalue > 0.01


def test_a_frame_of_many_people_says_what_one_of_few_does(monkeypatch):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=20_000)
    costs = rng.exponential(size=20_000) * (1 + 0.05 * group)
    frames = []
    for many in (10**9, 1000):
        monkeypatch.setattr(_resampling, "MANY", many)
        frame = RecourseFrame(costs=costs, sensitive_features=group, random_state=0)
        frames.append((*frame.interval, frame.noise_floor, *frame.by_group["mean_low"]))
    np.testing.assert_allclose(frames[1], frames[0], rtol=0.1, atol=2e-3)
    again = RecourseFrame(costs=costs, sensitive_features=group, random_state=0)
    assert (*again.interval, again.noise_floor, *again.by_group["mean_low"]) == frames[1]
