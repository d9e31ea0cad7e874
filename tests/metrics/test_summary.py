"""A summary of costs says what the costs say: exactly, or within the error that it states."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equirecourse.exceptions import UndefinedRecourseWarning
from equirecourse.metrics import RELATIVE_ERROR, CostSummary, RecourseFrame, SummaryFrame
from equirecourse.metrics._cells import Cells, cells_of
from equirecourse.metrics._resampling import WeightedCosts, bootstrap_means, permuted_gaps

EXACT = ["people", "rejected", "acceptance", "without_recourse", "mean"]
SKETCHED = ["median", "q10", "q25", "q75", "q90"]


def make_people(n, seed=0, n_groups=2, infinite=0.02):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_groups, size=n)
    rejected = rng.random(n) < 0.5
    costs = np.where(rejected, rng.gamma(2.0, 1.0 + 0.1 * codes), 0.0)
    costs[rejected & (rng.random(n) < infinite)] = np.inf
    return costs, rejected, codes, [f"g{k}" for k in range(n_groups)]


def summarised(costs, rejected, codes, labels, parts=1):
    rows = np.array_split(np.arange(len(costs)), parts)
    return CostSummary.merge([CostSummary.of(costs[i], rejected[i], codes[i], labels) for i in rows])


def small_frame(*people):
    return SummaryFrame(summarised(*people), random_state=0, n_boot=200, n_permutations=200)


def both(n, parts=5, seed=0, n_groups=2, infinite=0.02, **settings):
    costs, rejected, codes, labels = make_people(n, seed, n_groups, infinite)
    groups = np.array(labels)[codes]
    frame = RecourseFrame(costs=costs, rejected=rejected, sensitive_features=groups, random_state=0, **settings)
    summary = summarised(costs, rejected, codes, labels, parts)
    return frame, SummaryFrame(summary, random_state=0, **settings)


@pytest.mark.parametrize("n", [40, 3000])
def test_counts_shares_means_and_gap_are_exact(n):
    people, summary = both(n, n_groups=3)
    for table in ("by_group", "overall"):
        found, expected = getattr(summary, table), getattr(people, table)
        np.testing.assert_allclose(found[EXACT], expected[EXACT], rtol=1e-12)
        np.testing.assert_allclose(found[SKETCHED], expected[SKETCHED], rtol=RELATIVE_ERROR)
    assert summary.gap == pytest.approx(people.gap, rel=1e-10)
    assert summary.relative_gap == pytest.approx(people.relative_gap, rel=1e-10)
    assert list(summary.to_dict()) == list(people.to_dict())


costs_of_any_size = st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), min_size=1, max_size=60)


@given(costs_of_any_size, st.integers(0, 3), st.lists(st.floats(0, 1), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_quantiles_are_within_the_stated_error(costs, n_infinite, levels):
    costs = np.array(costs)
    cells = summarised(costs, np.ones(len(costs), bool), np.zeros(len(costs), int), ["all"]).groups[0]
    together = np.sort(np.concatenate([costs, np.full(n_infinite, np.inf)]))
    place = np.array(levels) * (len(together) - 1)
    # Between the two neighbours of the level, and no further from them than the error.
    below, above = (together[side(place - 0.0).astype(int)] for side in (np.floor, np.ceil))
    found = cells.quantiles(np.array(levels), n_infinite)
    rounding = 1e-9
    # A level a hair from a whole place is that place.
    near = np.round(place).astype(int)
    below = np.minimum(below, together[near])
    assert (found >= below * (1 - RELATIVE_ERROR - rounding)).all()
    assert (found <= np.maximum(above, together[near]) * (1 + RELATIVE_ERROR + rounding)).all()


def test_the_curve_follows_that_of_numpy():
    costs = np.random.default_rng(1).lognormal(sigma=2.0, size=20_000)
    cells = summarised(costs, np.ones(20_000, bool), np.zeros(20_000, int), ["all"]).groups[0]
    levels = np.linspace(0, 1, 501)
    np.testing.assert_allclose(cells.quantiles(levels), np.quantile(costs, levels), rtol=RELATIVE_ERROR + 1e-12)


def test_quantiles_of_equal_costs_are_those_costs():
    costs = np.repeat([0.0, 0.1, 2.0, 7.5], 25)
    cells = summarised(costs, np.ones(100, bool), np.zeros(100, int), ["all"]).groups[0]
    levels = np.array([0.0, 0.3, 0.6, 1.0])
    np.testing.assert_allclose(cells.quantiles(levels), [0.0, 0.1, 2.0, 7.5], rtol=1e-14)


def test_how_people_are_divided_makes_no_difference():
    costs, rejected, codes, labels = make_people(5000, n_groups=3)
    one, many = (small_frame(costs, rejected, codes, labels, parts) for parts in (1, 61))
    order = np.random.default_rng(0).permutation(5000)
    mixed = small_frame(costs[order], rejected[order], codes[order], labels, 7)
    for other in (many, mixed):
        np.testing.assert_allclose(other.by_group, one.by_group, rtol=1e-9)
        assert other.interval == pytest.approx(one.interval, rel=1e-9)
        assert other.noise_floor == pytest.approx(one.noise_floor, rel=1e-9)
        assert other.p_value == one.p_value


def test_names_of_groups_make_no_difference():
    costs, rejected, codes, _ = make_people(2000, n_groups=3)
    frames = [small_frame(costs, rejected, codes, names) for names in (["a", "b", "c"], ["z", "y", "x"])]
    assert frames[0].interval == frames[1].interval
    assert frames[0].noise_floor == frames[1].noise_floor


def test_a_group_that_only_some_parts_know():
    first = CostSummary.of(np.array([1.0, 2.0]), np.ones(2, bool), np.array([0, 1]), ["a", "b"])
    second = CostSummary.of(np.array([4.0, 8.0]), np.ones(2, bool), np.array([0, 1]), ["c", "a"])
    empty = CostSummary.of(np.empty(0), np.empty(0, bool), np.empty(0, int), [])
    merged = CostSummary.merge([first, empty, second])
    assert merged.labels == ("a", "b", "c")
    np.testing.assert_allclose(merged.means, [4.5, 2.0, 4.0])
    assert merged.people.tolist() == [2, 1, 1]


def test_a_group_without_a_mean_is_undefined_and_said_so():
    costs = np.array([1.0, 2.0, np.inf, np.inf])
    summary = CostSummary.of(costs, np.ones(4, bool), np.array([0, 0, 1, 1]), ["a", "b"])
    with pytest.warns(UndefinedRecourseWarning, match="group 'b' has 2 rejected people in 2 and none has recourse"):
        frame = SummaryFrame(summary)
    assert np.isnan([frame.gap, frame.noise_floor, frame.p_value, *frame.interval]).all()
    assert not frame.detectable
    assert frame.by_group.loc["b", "median"] == np.inf
    assert "undefined" in frame.verdict


def test_one_group_is_nothing_to_compare():
    with pytest.raises(ValueError, match="1 group \\('a'\\) in the column 'sex' and a comparison needs at least 2"):
        SummaryFrame(CostSummary.of(np.ones(2), np.ones(2, bool), np.zeros(2, int), ["a"]), name="sex")


# --- inference -------------------------------------------------------------------------------------------------------

REPLICATES = 1500


@pytest.mark.parametrize(("n", "n_groups"), [(60, 2), (4000, 2), (4000, 4)])
def test_interval_floor_and_p_value_agree_with_those_of_the_people(n, n_groups):
    people, summary = both(n, n_groups=n_groups, seed=3, n_boot=REPLICATES, n_permutations=REPLICATES)
    # Standard error of the difference of two means over so many draws, and of two of their quantiles; five of them.
    floor = 5 * np.hypot(people._shuffled.std(), summary._shuffled.std()) / np.sqrt(REPLICATES)
    assert summary.noise_floor == pytest.approx(people.noise_floor, abs=floor)
    p = max(people.p_value, 10 / REPLICATES)
    assert summary.p_value == pytest.approx(people.p_value, abs=5 * np.sqrt(2 * p * (1 - p) / REPLICATES))
    draws = people._draws[:, people._far] - people._draws[:, people._near]
    end = 5 * np.sqrt(2 * 0.025 * 0.975 / REPLICATES) / (stats.norm.pdf(stats.norm.ppf(0.025)) / draws.std())
    assert summary.interval == pytest.approx(people.interval, abs=end)
    assert summary._draws.std(axis=0) == pytest.approx(people._draws.std(axis=0), rel=5 / np.sqrt(2 * REPLICATES))
    assert stats.ks_2samp(people._shuffled, summary._shuffled).pvalue > 1e-4


def test_costs_that_differ_less_than_a_cell_is_wide_keep_their_spread():
    # Everybody in one cell: had the cells no moments of their own, chance would make no gap at all.
    rng = np.random.default_rng(0)
    costs, codes = 10 + 1e-3 * rng.normal(size=3000), np.arange(3000) % 2
    frame = SummaryFrame(CostSummary.of(costs, np.ones(3000, bool), codes, ["a", "b"]), random_state=0)
    assert len(np.unique(cells_of(costs)[0])) <= 2
    expected = 1e-3 * np.sqrt(2 * 2 / 3000 * 2 / np.pi)  # mean of |N(0, 1e-6 (1/1500 + 1/1500))|
    assert frame.noise_floor == pytest.approx(expected, rel=0.1)
    assert not frame.detectable


def test_shuffles_of_a_few_people_are_the_very_permutations():
    costs = np.array([1.0, 2.0, 4.0, 8.0])
    cells = summarised(costs, np.ones(4, bool), np.zeros(4, int), ["all"]).groups[0]
    ones = WeightedCosts(np.array([2]), np.array([0.0]), np.zeros(1))
    gaps = permuted_gaps([ones, ones], 3000, np.random.default_rng(0), cells.clusters())
    values, times = np.unique(gaps.round(9), return_counts=True)
    # {1,2|4,8} 4.5, {1,4|2,8} 2.5, {1,8|2,4} 1.5, each for a third of the shuffles.
    np.testing.assert_allclose(values, [1.5, 2.5, 4.5])
    assert stats.chisquare(times).pvalue > 1e-4


def test_a_billion_people_are_shuffled_by_their_moments():
    n = 2_000_000_000
    pool = WeightedCosts(np.array([n, n]), np.array([1.0, 3.0]), np.zeros(2))
    half = WeightedCosts(np.array([n]), np.array([2.0]), np.zeros(1))
    gaps = permuted_gaps([half, half], 2000, np.random.default_rng(0), pool)
    assert gaps.mean() == pytest.approx(np.sqrt(2 / n * 2 / np.pi), rel=5 * 0.76 / np.sqrt(2000))


def test_clusters_lose_neither_people_nor_moments():
    costs = np.random.default_rng(0).lognormal(sigma=1.5, size=50_000)
    cells = summarised(costs, np.ones(50_000, bool), np.zeros(50_000, int), ["all"], parts=9).groups[0]
    clusters = cells.clusters()
    one = clusters.as_one()
    assert len(clusters.count) < 1000 < len(cells.count)
    assert (len(clusters), len(one)) == (50_000, 50_000)
    assert one.mean[0] == pytest.approx(costs.mean(), rel=1e-12)
    assert one.variance[0] == pytest.approx(costs.var(), rel=1e-9)


def test_a_single_person_has_no_interval():
    one = WeightedCosts(np.array([1]), np.array([1.0]), np.zeros(1))
    assert np.isnan(bootstrap_means([one], 5, np.random.default_rng(0))).all()


def test_groups_that_mean_nothing_are_rarely_called_unequal():
    called = 0
    for seed in range(40):
        costs, rejected, _, labels = make_people(400, seed)
        codes = np.random.default_rng(seed + 1000).integers(2, size=400)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = SummaryFrame(
                CostSummary.of(costs, rejected, codes, labels), random_state=seed, n_boot=199, n_permutations=199
            )
        called += frame.detectable
    assert called <= stats.binom.ppf(0.999, 40, 0.07)


def test_distances_are_close_to_those_of_the_people():
    people, summary = both(20_000, n_groups=3)
    expected, found = people.distances, summary.distances
    assert found[["group", "other"]].equals(expected[["group", "other"]])
    means = people.by_group["mean"].to_numpy()
    np.testing.assert_allclose(found["wasserstein"], expected["wasserstein"], atol=RELATIVE_ERROR * 2 * means.max())
    heaviest = max(float((cells.count / cells.n).max()) for cells in summary.summary.groups)
    np.testing.assert_allclose(found["ks"], expected["ks"], atol=heaviest)
    np.testing.assert_allclose(found[["kl", "js"]], expected[["kl", "js"]], atol=1e-3)


def test_an_empty_summary_has_no_quantile():
    nothing = Cells(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0), np.empty(0))
    assert np.isnan(nothing.quantiles(np.array([0.5]))).all()
    assert np.isnan(nothing.mean)
    assert len(nothing.clusters()) == 0
