"""The gap is the largest difference between group means over the rejected, and never 0 for want of people."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning
from equirecourse.metrics import recourse_gap, rejection_weighted_gap

INF = float("inf")


def brute_force_means(costs, group, rejected):
    means = {}
    for name in sorted(set(group)):
        total, count = 0.0, 0
        for cost, member, rejection in zip(costs, group, rejected, strict=True):
            if member == name and rejection:
                total, count = total + cost, count + 1
        means[name] = total / count
    return means


def test_gap_is_the_largest_difference_of_means_over_the_rejected(people):
    costs, group, rejected = people
    means = brute_force_means(costs, group, rejected).values()
    assert recourse_gap(costs, sensitive_features=group, rejected=rejected) == pytest.approx(max(means) - min(means))


def test_gap_to_overall_is_the_largest_distance_from_everybody(people):
    costs, group, rejected = people
    overall = costs[rejected].mean()
    expected = max(abs(mean - overall) for mean in brute_force_means(costs, group, rejected).values())
    gap = recourse_gap(costs, sensitive_features=group, rejected=rejected, method="to_overall")
    assert gap == pytest.approx(expected)


def test_gap_of_two_groups_is_the_paper_definition():
    assert recourse_gap([1.0, 3.0, 7.0, 0.0], sensitive_features=[-1, -1, 1, 1]) == 5.0


def test_without_a_mask_the_rejected_are_those_who_pay(people):
    costs, group, rejected = people
    assert recourse_gap(costs, sensitive_features=group) == recourse_gap(
        costs, sensitive_features=group, rejected=rejected
    )


def test_the_cost_of_accepted_people_is_not_read():
    gap = recourse_gap([1.0, 99.0, 3.0, INF], sensitive_features=list("aabb"), rejected=[1, 0, 1, 0])
    assert gap == 2.0


def test_a_rejected_person_at_cost_zero_counts():
    assert recourse_gap([0.0, 4.0, 5.0], sensitive_features=list("aab"), rejected=[1, 1, 1]) == 3.0


def test_a_group_without_rejected_people_makes_the_gap_nan():
    with pytest.warns(
        UndefinedRecourseWarning, match="group 'm' has 0 rejected people in 2; its recourse is undefined"
    ):
        gap = recourse_gap([1.0, 2.0, 0.0, 0.0], sensitive_features=list("ffmm"))
    assert np.isnan(gap)


def test_a_model_that_accepts_everybody_has_no_gap_of_zero():
    with pytest.warns(UndefinedRecourseWarning, match="group 'f' .* group 'm'"):
        assert np.isnan(recourse_gap([0.0, 0.0], sensitive_features=["f", "m"]))
    with pytest.warns(UndefinedRecourseWarning, match="0 of 2 people are rejected"):
        assert np.isnan(rejection_weighted_gap([0.0, 0.0], sensitive_features=["f", "m"]))


def test_a_group_in_which_nobody_has_recourse_makes_the_gap_nan():
    with pytest.warns(UndefinedRecourseWarning, match="'f' has 2 rejected people in 2 and none has recourse"):
        assert np.isnan(recourse_gap([INF, INF, 1.0], sensitive_features=list("ffm")))


def test_a_warning_names_three_groups_and_counts_the_others():
    with pytest.warns(UndefinedRecourseWarning, match="and 3 more such groups") as caught:
        recourse_gap([1.0] + [0.0] * 6, sensitive_features=range(7))
    assert len(caught) == 1


def test_people_without_recourse_are_left_out_aloud():
    with pytest.warns(NoRecourseWarning, match="1 of 3 rejected people of group 'f' have no recourse"):
        gap = recourse_gap([1.0, 3.0, INF, 5.0], sensitive_features=list("fffm"))
    assert gap == 3.0


def test_a_cost_can_stand_for_people_without_recourse():
    gap = recourse_gap([1.0, 3.0, INF, 5.0], sensitive_features=list("fffm"), no_recourse_cost=11)
    assert gap == 0.0


def test_warnings_point_at_the_caller():
    with pytest.warns(UndefinedRecourseWarning) as caught:
        recourse_gap([1.0, 0.0], sensitive_features=["f", "m"])
    assert caught[0].filename == __file__


def test_rejection_weighted_gap_divides_by_all_members(people):
    costs, group, rejected = people
    values = [costs[(group == g) & rejected].sum() / (group == g).sum() for g in "abc"]
    assert rejection_weighted_gap(costs, sensitive_features=group) == pytest.approx(max(values) - min(values))
    overall = costs[rejected].sum() / len(costs)
    to_overall = rejection_weighted_gap(costs, sensitive_features=group, method="to_overall")
    assert to_overall == pytest.approx(max(abs(value - overall) for value in values))


def test_a_group_that_pays_nothing_pays_nothing_per_member():
    assert rejection_weighted_gap([2.0, 2.0, 0.0, 0.0], sensitive_features=list("ffmm")) == 2.0


def test_people_without_recourse_are_never_free_of_charge():
    with pytest.warns(NoRecourseWarning):
        gap = rejection_weighted_gap([2.0, INF, 0.0, 0.0], sensitive_features=list("ffmm"))
    assert gap == 2.0
    assert rejection_weighted_gap([2.0, INF, 0.0, 0.0], sensitive_features=list("ffmm"), no_recourse_cost=8) == 5.0
    with pytest.warns(UndefinedRecourseWarning, match="none has recourse"):
        assert np.isnan(rejection_weighted_gap([INF, INF, 1.0, 0.0], sensitive_features=list("ffmm")))


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_pandas_polars_numpy_and_lists_agree(kind, people):
    costs, group, rejected = people
    gap = recourse_gap(kind(costs.tolist()), sensitive_features=kind(group.tolist()), rejected=kind(rejected.tolist()))
    assert gap == recourse_gap(costs, sensitive_features=group, rejected=rejected)


@pytest.mark.parametrize("gap", [recourse_gap, rejection_weighted_gap])
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"costs": [1.0, np.nan]}, "costs is NaN for 1 of 2 people"),
        ({"costs": [1.0, -1.0]}, "must not be negative"),
        ({"costs": [1.0]}, "2 rows for 1 people"),
        ({"costs": []}, "2 rows for 0 people"),
        ({"costs": [], "sensitive_features": []}, "0 groups"),
        ({"sensitive_features": ["f", "f"]}, "1 group"),
        ({"rejected": [True]}, "rejected has shape"),
        ({"rejected": [1, -1]}, "True or False"),
        ({"method": "max"}, "'between_groups', 'to_overall', got 'max'"),
        ({"no_recourse_cost": -1}, "no_recourse_cost must be a finite number of at least 0, got -1"),
        ({"no_recourse_cost": INF}, "no_recourse_cost must be a finite number of at least 0, got inf"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(gap, arguments, match):
    arguments = {"costs": [1.0, 2.0], "sensitive_features": ["f", "m"]} | arguments
    with pytest.raises(ValueError, match=match) as caught:
        gap(arguments.pop("costs"), **arguments)
    assert "\n" not in str(caught.value)


@st.composite
def rejected_people(draw):
    """Positive costs of two to four groups, each with at least one person."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    cost = st.floats(0.01, 100, allow_nan=False)
    costs = draw(st.lists(cost, min_size=sum(sizes), max_size=sum(sizes)))
    return np.array(costs), np.repeat(np.arange(len(sizes)), sizes)


@settings(deadline=None)
@given(rejected_people(), st.randoms(use_true_random=False))
def test_the_order_of_the_people_does_not_matter(sample, random):
    costs, group = sample
    order = np.array(random.sample(range(len(costs)), len(costs)))
    assert recourse_gap(costs, sensitive_features=group) == recourse_gap(costs[order], sensitive_features=group[order])


@settings(deadline=None)
@given(rejected_people())
def test_the_names_of_the_groups_do_not_matter(sample):
    costs, group = sample
    names = np.array(["z", "y", "x", "w"])
    assert recourse_gap(costs, sensitive_features=group) == recourse_gap(costs, sensitive_features=names[group])


@settings(deadline=None)
@given(rejected_people(), st.floats(1e-3, 1e3))
def test_scaling_every_cost_scales_the_gap(sample, factor):
    costs, group = sample
    for gap in (recourse_gap, rejection_weighted_gap):
        scaled = gap(costs * factor, sensitive_features=group)
        assert scaled == pytest.approx(factor * gap(costs, sensitive_features=group), rel=1e-9, abs=1e-9 * factor)


@settings(deadline=None)
@given(rejected_people())
def test_accepted_people_do_not_change_the_gap(sample):
    costs, group = sample
    more = recourse_gap(np.append(costs, [0.0, 0.0]), sensitive_features=np.append(group, [0, 1]))
    assert more == recourse_gap(costs, sensitive_features=group)


@settings(deadline=None)
@given(rejected_people())
def test_no_group_is_further_from_everybody_than_from_the_furthest_group(sample):
    costs, group = sample
    to_overall = recourse_gap(costs, sensitive_features=group, method="to_overall")
    assert to_overall <= recourse_gap(costs, sensitive_features=group) + 1e-9
