"""The transport gap: Wasserstein's distance between groups, relative to the mean cost."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from equirecourse.metrics import transport_gap


def test_it_is_the_largest_distance_of_two_groups_over_the_mean():
    rng = np.random.default_rng(0)
    costs, groups = rng.exponential(size=300), rng.choice(list("abc"), 300)
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    largest = max(wasserstein_distance(costs[groups == one], costs[groups == other]) for one, other in pairs)
    assert transport_gap(costs, sensitive_features=groups).gap == pytest.approx(largest / costs.mean())


def test_its_scale_does_not_matter_and_chance_makes_the_floor():
    rng = np.random.default_rng(0)
    costs, groups = rng.exponential(size=400), rng.choice(list("ab"), 400)
    one, other = (transport_gap(scale * costs, sensitive_features=groups) for scale in (1.0, 1000.0))
    assert one == pytest.approx(other)
    assert one.gap < 2 * one.noise_floor


def test_people_without_recourse_count_among_the_dearest_of_the_others():
    found = transport_gap([1.0, 2.0, 1.0, np.inf], sensitive_features=list("aabb"))
    assert found == transport_gap([1.0, 2.0, 1.0, 4.0], sensitive_features=list("aabb"))  # four times the median
    # One outlier does not decide for all of them.
    costs, groups = np.r_[np.linspace(1, 2, 300), np.full(50, np.inf)], np.tile(list("ab"), 175)
    first = transport_gap(costs, sensitive_features=groups)
    far = transport_gap(np.r_[1e6, costs], sensitive_features=np.r_[["a"], groups], n_permutations=0)
    assert first.gap < 0.05
    np.testing.assert_allclose(far.gap * (1e6 + costs[:300].sum() + 50 * 6) / 351, 1e6 / 176, rtol=0.01)
    assert np.isnan(transport_gap([np.inf, np.inf], sensitive_features=list("ab")).gap)
    assert np.isnan(transport_gap([1.0, 2.0], sensitive_features=list("aa")).gap)


def test_losing_recourse_does_not_look_like_a_gain():
    rng = np.random.default_rng(0)
    groups = np.tile(["a", "b"], 500)
    costs = rng.uniform(1, 2, 1000)
    dear = np.flatnonzero(groups == "b")[:40]
    costs[dear] = rng.uniform(8, 12, 40)
    before = transport_gap(costs, sensitive_features=groups).gap
    for lost in (20, 35, 40):
        fewer = costs.copy()
        fewer[dear[:lost]] = np.inf
        assert transport_gap(fewer, sensitive_features=groups).gap > 0.5 * before
