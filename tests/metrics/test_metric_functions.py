"""The plain functions say what their formulas say, and fairlearn's MetricFrame can slice them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame

from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning
from equirecourse.metrics import (
    RecourseFrame,
    burden_cost,
    improvability_score,
    mean_recourse_cost,
    median_recourse_cost,
    no_recourse_rate,
    recourse_gap,
    rejected_count,
    rejection_weighted_cost,
    rejection_weighted_gap,
)

INF = float("inf")
improvability = partial(improvability_score, budget=1.0)
EVERY = [
    mean_recourse_cost,
    median_recourse_cost,
    rejection_weighted_cost,
    burden_cost,
    improvability,
    no_recourse_rate,
    rejected_count,
]


@pytest.fixture
def decisions(people):
    costs, group, rejected = people
    y_true = np.random.default_rng(1).integers(2, size=len(costs))
    return y_true, np.where(rejected, 0, 1), costs, group


def test_functions_are_their_formulas(decisions):
    y_true, y_pred, costs, _ = decisions
    rejected = [c for c, h in zip(costs, y_pred, strict=True) if h == 0]
    deserving = [c * (h == 0) for c, h, y in zip(costs, y_pred, y_true, strict=True) if y == 1]
    n = len(costs)
    assert mean_recourse_cost(y_true, y_pred, costs=costs) == pytest.approx(sum(rejected) / len(rejected))
    assert median_recourse_cost(y_true, y_pred, costs=costs) == pytest.approx(np.median(rejected))
    assert rejection_weighted_cost(y_true, y_pred, costs=costs) == pytest.approx(sum(rejected) / n)
    assert burden_cost(y_true, y_pred, costs=costs) == pytest.approx(sum(deserving) / len(deserving))
    within = sum(c <= 1.0 for c in rejected) / len(rejected)
    assert improvability(y_true, y_pred, costs=costs) == pytest.approx(within)
    assert no_recourse_rate(y_true, y_pred, costs=costs) == 0.0
    assert rejected_count(y_true, y_pred, costs=costs) == len(rejected)


def test_fairlearns_metric_frame_gives_the_rows_of_recourse_frame(decisions):
    y_true, y_pred, costs, group = decisions
    costs = costs.copy()
    costs[np.flatnonzero(y_pred == 0)[:9]] = INF
    metrics = {
        "mean": mean_recourse_cost,
        "median": median_recourse_cost,
        "without_recourse": no_recourse_rate,
        "rejected": rejected_count,
    }
    with pytest.warns(NoRecourseWarning):
        theirs = MetricFrame(
            metrics=metrics,
            y_true=y_true,
            y_pred=y_pred,
            sensitive_features=pd.Series(group, name="group"),
            sample_params={name: {"costs": costs} for name in metrics},
        )
    ours = RecourseFrame(costs=costs, rejected=y_pred == 0, sensitive_features=pd.Series(group, name="group"))
    columns = list(metrics)
    assert np.isposinf(costs).any()
    pd.testing.assert_frame_equal(
        theirs.by_group[columns].astype(float),
        ours.by_group[columns].astype(float),
        check_index_type=False,
        check_column_type=False,
    )
    np.testing.assert_allclose(theirs.overall[columns].astype(float), ours.overall[columns])
    compared = ["mean", "median", "without_recourse"]
    for method in ("between_groups", "to_overall"):
        np.testing.assert_allclose(
            theirs.difference(method=method)[compared].astype(float), ours.difference(method)[compared]
        )
        np.testing.assert_allclose(theirs.ratio(method=method)[compared].astype(float), ours.ratio(method)[compared])


def test_the_difference_of_sliced_functions_is_the_gap(decisions):
    y_true, y_pred, costs, group = decisions
    for function, gap in [
        (mean_recourse_cost, recourse_gap),
        (rejection_weighted_cost, rejection_weighted_gap),
    ]:
        frame = MetricFrame(
            metrics=function,
            y_true=y_true,
            y_pred=y_pred,
            sensitive_features=group,
            sample_params={"costs": costs},
        )
        for method in ("between_groups", "to_overall"):
            assert frame.difference(method=method) == pytest.approx(gap(costs, sensitive_features=group, method=method))


def test_labels_of_any_two_values(decisions):
    y_true, y_pred, costs, _ = decisions
    names = np.array(["refused", "granted"])
    for function in EVERY:
        expected = function(y_true, y_pred, costs=costs)
        assert function(names[y_true], names[y_pred], costs=costs, favorable_label="granted") == expected
        assert function(2 * y_true - 1, 2 * y_pred - 1, costs=costs) == expected
        assert function(1 - y_true, 1 - y_pred, costs=costs, favorable_label=0) == expected
        assert function(y_true == 1, y_pred == 1, costs=costs, favorable_label=True) == expected


@pytest.mark.parametrize("function", EVERY)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "options", "match"),
    [
        (["a", "b"], ["a", "b"], {}, "favorable_label=1 is not one of the labels 'a', 'b'; pass"),
        (["a", "a"], ["a", "a"], {}, "favorable_label=1 is not one of the labels 'a'; pass"),
        ([0, 1], [0, 1], {"favorable_label": "yes"}, "favorable_label='yes' is not one of the labels 0, 1"),
        ([0, 2], [0, 2], {}, "favorable_label=1 is not one of the labels 0, 2"),
        ([0, 1], [2, 1], {}, "3 labels"),
        ([0, 1, 1], [0, 1], {}, r"got shapes \(3,\), \(2,\) and \(2,\)"),
        ([0, 1], [0], {}, "one entry per person"),
        ([[0, 1]], [[0, 1]], {}, "one entry per person"),
        ([0, 1], [0, 1], {"costs": [1.0, np.nan]}, "NaN for 1 of 2"),
        ([0, 1], [0, 1], {"costs": [1.0, -1.0]}, "must not be negative"),
        ([0, 1], [0, 1], {"costs": [1.0]}, "one entry per person"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(function, y_true, y_pred, options, match):
    with pytest.raises(ValueError, match=match) as caught:
        function(y_true, y_pred, **{"costs": [1.0, 0.0]} | options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("budget", [-1, np.inf, np.nan, None])
def test_a_budget_is_finite(budget):
    with pytest.raises(ValueError, match="budget must be a finite number of at least 0"):
        improvability_score([0], [0], costs=[1.0], budget=budget)


@pytest.mark.parametrize("function", [mean_recourse_cost, median_recourse_cost, improvability, no_recourse_rate])
@pytest.mark.parametrize("n", [0, 3])
def test_nobody_rejected_is_nan_and_never_zero(function, n):
    with pytest.warns(UndefinedRecourseWarning, match=f"0 rejected people in {n}"):
        assert np.isnan(function([1] * n, [1] * n, costs=[0.0] * n))


def test_nobody_deserving_is_nan_and_never_zero():
    with pytest.warns(UndefinedRecourseWarning, match="0 deserving people in 2"):
        assert np.isnan(burden_cost([0, 0], [0, 0], costs=[1.0, 1.0]))


def test_nobody_rejected_costs_nothing_per_person():
    assert rejection_weighted_cost([1, 1], [1, 1], costs=[0.0, 0.0]) == 0.0
    assert rejected_count([1, 1], [1, 1], costs=[0.0, 0.0]) == 0


def test_people_without_recourse_are_left_out_of_means_aloud():
    costs = [2.0, INF, 4.0, 0.0]
    y_true, y_pred = [1, 1, 0, 1], [0, 0, 0, 1]
    with pytest.warns(NoRecourseWarning, match="1 of 3 rejected people have no recourse"):
        assert mean_recourse_cost(y_true, y_pred, costs=costs) == 3.0
    with pytest.warns(NoRecourseWarning, match="1 of 3 rejected people"):
        assert rejection_weighted_cost(y_true, y_pred, costs=costs) == pytest.approx(0.75 * 3.0)
    with pytest.warns(NoRecourseWarning, match="1 of 3 deserving people"):
        assert burden_cost(y_true, y_pred, costs=costs) == 1.0
    with pytest.warns(UndefinedRecourseWarning, match="none of the 1 rejected people has recourse"):
        assert np.isnan(mean_recourse_cost([0], [0], costs=[INF]))


def test_people_without_recourse_count_in_shares_and_medians():
    costs = [2.0, INF, INF, 0.0]
    y_pred = [0, 0, 0, 1]
    assert no_recourse_rate(y_pred, y_pred, costs=costs) == pytest.approx(2 / 3)
    assert improvability_score(y_pred, y_pred, costs=costs, budget=1e300) == pytest.approx(1 / 3)
    assert median_recourse_cost(y_pred, y_pred, costs=costs) == INF
    assert median_recourse_cost(y_pred, y_pred, costs=costs, no_recourse_cost=9) == 9.0
    assert mean_recourse_cost(y_pred, y_pred, costs=costs, no_recourse_cost=8) == 6.0
    assert rejection_weighted_cost(y_pred, y_pred, costs=costs, no_recourse_cost=8) == 4.5
    assert burden_cost([1, 1, 0, 1], y_pred, costs=costs, no_recourse_cost=4) == 2.0


def test_the_costs_of_accepted_people_are_not_read():
    y_true, y_pred, costs = [1, 1, 0], [0, 1, 1], [3.0, 50.0, INF]
    assert burden_cost(y_true, y_pred, costs=costs) == 1.5
    assert mean_recourse_cost(y_true, y_pred, costs=costs) == 3.0
    assert no_recourse_rate(y_true, y_pred, costs=costs) == 0.0


def test_a_budget_that_is_just_enough_is_enough():
    assert improvability_score([0, 0], [0, 0], costs=[1.0, 2.0], budget=1.0) == 0.5


def test_a_score_never_falls_with_a_larger_budget(decisions):
    y_true, y_pred, costs, _ = decisions
    scores = [improvability_score(y_true, y_pred, costs=costs, budget=b) for b in np.linspace(0, 9, 30)]
    assert scores == sorted(scores)


def test_warnings_point_at_the_caller():
    with pytest.warns(UndefinedRecourseWarning) as caught:
        median_recourse_cost([1], [1], costs=[0.0])
    assert caught[0].filename == __file__
