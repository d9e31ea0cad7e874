"""Contrasts against means computed by hand."""

import itertools

import numpy as np
import pytest

from equirecourse._validation import check_groups
from equirecourse.equalizers._contrasts import Contrasts, build_contrasts, group_means


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    n = 200
    return rng.normal(size=n), rng.integers(0, 4, n), rng.random(n) < 0.6, rng.integers(1, 4, n).astype(float)


def means_by_hand(values, group, rejected, weight, normalize="rejected"):
    means = []
    for g in np.unique(group):
        inside = rejected & (group == g)
        total = weight[inside if normalize == "rejected" else group == g].sum()
        means.append((weight[inside] * values[inside]).sum() / total)
    return np.array(means)


@pytest.mark.parametrize("normalize", ["rejected", "group"])
def test_for_two_groups_the_norm_is_the_difference_of_the_means(people, normalize):
    values, group, rejected, weight = people
    groups = check_groups(group % 2, 200)
    contrasts = build_contrasts([groups], rejected, sample_weight=weight, normalize=normalize)
    means = means_by_hand(values, group % 2, rejected, weight, normalize)
    assert len(contrasts) == 1
    assert (contrasts.weights.T @ values).item() == pytest.approx(means[1] - means[0])


@pytest.mark.parametrize("normalize", ["rejected", "group"])
def test_for_many_groups_the_squared_norm_is_that_of_all_pairs_over_half_their_number(people, normalize):
    values, group, rejected, weight = people
    contrasts = build_contrasts([check_groups(group, 200)], rejected, sample_weight=weight, normalize=normalize)
    means = means_by_hand(values, group, rejected, weight, normalize)
    pairs = sum((a - b) ** 2 for a, b in itertools.combinations(means, 2))
    size = np.linalg.norm(contrasts.weights.T @ values)
    assert size**2 == pytest.approx(2 * pairs / len(means))
    assert size**2 == pytest.approx(2 * ((means - means.mean()) ** 2).sum())
    assert size >= np.ptp(means)  # a bound on the norm bounds every pair


def test_the_differences_vanish_exactly_when_all_means_are_equal(people):
    values, group, rejected, weight = people
    contrasts = build_contrasts([check_groups(group, 200)], rejected, sample_weight=weight)
    means = means_by_hand(values, group, rejected, weight)
    np.testing.assert_allclose(contrasts.weights.T @ (values - means[group]), 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(contrasts.weights) == 3


def test_the_intercept_cancels_in_means_over_the_rejected_only(people):
    _, group, rejected, weight = people
    groups = check_groups(group % 2, 200)
    np.testing.assert_array_equal(build_contrasts([groups], rejected, sample_weight=weight).sums, [0.0])
    rates = means_by_hand(np.ones(200), group % 2, rejected, weight, "group")
    sums = build_contrasts([groups], rejected, sample_weight=weight, normalize="group").sums
    assert sums.item() == pytest.approx(rates[1] - rates[0])
    assert sums.item() != 0.0


def test_accepted_and_weightless_people_have_no_part(people):
    _, group, rejected, weight = people
    weight = np.where(np.arange(200) % 7 == 0, 0.0, weight)
    weights = build_contrasts([check_groups(group, 200)], rejected, sample_weight=weight).weights
    np.testing.assert_array_equal(weights[~rejected | (weight == 0)], 0.0)
    assert np.all(np.any(weights[rejected & (weight > 0)] != 0, axis=1))


def test_a_group_with_too_few_rejected_is_left_out_and_counted():
    group = np.array(["a", "a", "b", "b", "c", "c"])
    rejected = np.array([True, True, True, True, True, False])
    contrasts = build_contrasts([check_groups(group, 6)], rejected, sample_weight=np.ones(6), min_rejected=2)
    assert contrasts.left_out == {(0, "c"): 1}
    assert len(contrasts) == 1
    np.testing.assert_array_equal(contrasts.weights[group == "c"], 0.0)
    none = build_contrasts([check_groups(group, 6)], rejected, sample_weight=np.ones(6), min_rejected=3)
    assert len(none) == 0
    assert set(none.left_out) == {(0, "a"), (0, "b"), (0, "c")}


def test_separate_partitions_stand_side_by_side_and_may_share_labels():
    rejected, ones = np.array([True] * 5 + [False]), np.ones(6)
    first, second = check_groups([0, 0, 0, 0, 0, 1], 6), check_groups([0, 0, 0, 1, 1, 1], 6)
    both = build_contrasts([first, second], rejected, sample_weight=ones, min_rejected=2)
    alone = build_contrasts([second], rejected, sample_weight=ones, min_rejected=2)
    np.testing.assert_array_equal(both.weights, alone.weights)
    assert both.left_out == {(0, 1): 0}


def test_contrasts_mix_along_a_line_and_join_side_by_side():
    one, other = (Contrasts(np.array([[float(k)], [-float(k)]]), {}) for k in (1, 3))
    np.testing.assert_array_equal(one.mixed_with(other, 0.25).weights, [[1.5], [-1.5]])
    np.testing.assert_array_equal(one.joined_with([other]).weights, [[1, 3], [-1, -3]])


@pytest.mark.parametrize("normalize", ["rejected", "group"])
def test_group_means_equal_those_by_hand_and_are_undefined_without_anybody(people, normalize):
    values, group, rejected, weight = people
    rejected = rejected & (group != 2)
    means = group_means(values, check_groups(group, 200), rejected, weight, normalize=normalize)
    others = group != 2
    expected = means_by_hand(values[others], group[others], rejected[others], weight[others], normalize)
    np.testing.assert_allclose(means[[0, 1, 3]], expected)
    assert np.isnan(means[2])
