"""Distances between distributions equal their definitions, computed another way."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning
from equirecourse.metrics import distribution_distances, recourse_gap

INF = float("inf")


def one_row(costs, group, **options):
    table = distribution_distances(costs, sensitive_features=group, **options)
    assert len(table) == 1
    return table.iloc[0]


def distribution_function(costs, at):
    return np.mean(costs[:, None] <= at, axis=0)


def test_one_row_per_pair_of_groups(people):
    costs, group, _ = people
    table = distribution_distances(costs, sensitive_features=group)
    assert list(zip(table["group"], table["other"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert table.columns.tolist() == ["group", "other", "wasserstein", "ks", "ks_p_value", "kl", "js"]
    assert table.notna().all().all()


def test_wasserstein_and_ks_are_area_and_height_between_distribution_functions(people):
    costs, group, rejected = people
    row = distribution_distances(costs, sensitive_features=group, rejected=rejected).iloc[0]
    first, second = (costs[rejected & (group == g)] for g in "ab")
    at = np.sort(np.concatenate([first, second]))
    apart = np.abs(distribution_function(first, at) - distribution_function(second, at))
    assert row["wasserstein"] == pytest.approx(np.sum(apart[:-1] * np.diff(at)))
    assert row["ks"] == pytest.approx(apart.max())


def test_kl_and_js_are_those_of_smoothed_histograms_on_quantile_bins(people):
    costs, group, rejected = people
    keep = rejected & (group != "c")
    row = one_row(costs[keep], group[keep], bins=4)
    cuts = np.quantile(costs[keep], [0.25, 0.5, 0.75])
    edges = [-INF, *cuts, INF]
    shares = []
    for g in "ab":
        mine = costs[keep & (group == g)]
        counts = [1 + sum(low < c <= high for c in mine) for low, high in pairwise(edges)]
        shares.append(np.array(counts) / sum(counts))
    p, q = shares
    assert row["kl"] == pytest.approx(np.sum(p * np.log(p / q)))
    assert row["js"] == pytest.approx(jensenshannon(p, q) ** 2)


def test_people_without_recourse_have_a_bin_of_their_own_and_are_furthest():
    costs, group = [1.0, 2.0, INF, INF, 1.0, 2.0, 1.0, 2.0], list("aaaabbbb")
    with pytest.warns(NoRecourseWarning, match="2 of 4 rejected people of group 'a'"):
        row = one_row(costs, group, bins=2)
    assert row["wasserstein"] == 0.0
    assert row["ks"] == 0.5
    p, q = np.array([2, 2, 3]) / 7, np.array([3, 3, 1]) / 7
    assert row["kl"] == pytest.approx(np.sum(p * np.log(p / q)))
    assert one_row(costs, group, no_recourse_cost=4)["wasserstein"] == pytest.approx(2.5 / 2 + 0.0)


def test_tied_costs_give_fewer_bins_and_no_division_by_zero():
    row = one_row([3.0] * 6, list("aaabbb"), bins=10)
    assert row[["wasserstein", "ks", "kl", "js"]].tolist() == [0, 0, 0, 0]
    assert row["ks_p_value"] == 1.0


def test_a_tie_at_the_largest_cost_leaves_no_empty_bin():
    row = one_row([1.0, 3.0, 3.0, 3.0, 1.0, 1.0, 3.0, 3.0], list("aaaabbbb"), bins=4)  # cuts 1 and 3, of 1, 3 and 3
    p, q = np.array([2, 4]) / 6, np.array([3, 3]) / 6
    assert row["kl"] == pytest.approx(np.sum(p * np.log(p / q)))


def test_a_group_without_rejected_people_has_no_distance():
    with pytest.warns(UndefinedRecourseWarning, match="group 'b'"):
        row = one_row([1.0, 2.0, 0.0], list("aab"))
    assert row[["wasserstein", "ks", "ks_p_value", "kl", "js"]].isna().all()


@pytest.mark.parametrize("bins", [0, 2.5, "many"])
def test_bins_are_counted(bins):
    with pytest.raises(ValueError, match="bins must be a whole number of at least 1"):
        distribution_distances([1.0, 2.0], sensitive_features=[0, 1], bins=bins)


def test_intersections_are_named_by_tuples():
    table = distribution_distances([1.0, 2.0, 3.0], sensitive_features={"sex": list("ffm"), "old": [0, 1, 1]})
    assert table["group"].tolist() == [("f", 0), ("f", 0), ("f", 1)]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(0.01, 100), min_size=2, max_size=12),
    st.lists(st.floats(0.01, 100), min_size=2, max_size=12),
    st.sampled_from([0.25, 2.0, 1024.0]),
)
def test_distances_are_distances(first, second, factor):
    costs, group = np.array(first + second), [0] * len(first) + [1] * len(second)
    row = one_row(costs, group)
    swapped = one_row(costs, [1 - g for g in group])
    scaled = one_row(costs * factor, group)
    for column in ("wasserstein", "ks", "js"):
        assert row[column] == pytest.approx(swapped[column], abs=1e-12)
    assert row["wasserstein"] >= recourse_gap(costs, sensitive_features=group) - 1e-9
    assert scaled["wasserstein"] == pytest.approx(factor * row["wasserstein"])
    assert scaled["ks"] == row["ks"]
    assert 0 <= row["ks"] <= 1
    assert row["kl"] >= -1e-12
    assert -1e-12 <= row["js"] <= np.log(2)
