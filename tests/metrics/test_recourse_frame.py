"""RecourseFrame shows every group, says how sure it is, and never calls nothing a success."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from equirecourse.exceptions import UndefinedRecourseWarning
from equirecourse.metrics import Interval, RecourseFrame, distribution_distances, recourse_gap

INF = float("inf")
QUICK = {"n_boot": 100, "n_permutations": 100, "random_state": 0}


@pytest.fixture
def frame(people):
    costs, group, rejected = people
    return RecourseFrame(costs=costs, sensitive_features={"group": group}, rejected=rejected, random_state=0)


def test_rows_are_what_they_say(frame, people):
    costs, group, rejected = people
    assert frame.by_group.index.tolist() == ["a", "b", "c"]
    assert frame.by_group.index.name == "group"
    for name, row in frame.by_group.iterrows():
        mine = costs[rejected & (group == name)]
        assert row["people"] == (group == name).sum()
        assert row["rejected"] == len(mine)
        assert row["acceptance"] == pytest.approx(1 - rejected[group == name].mean())
        assert row["without_recourse"] == 0
        assert row["mean"] == pytest.approx(mine.mean())
        assert row["median"] == pytest.approx(np.median(mine))
        assert row[["q10", "q25", "q75", "q90"]].tolist() == pytest.approx(np.quantile(mine, [0.1, 0.25, 0.75, 0.9]))
        assert row["mean_low"] < row["mean"] < row["mean_high"]
        error = mine.std() / math.sqrt(len(mine))
        assert row["mean_high"] - row["mean_low"] == pytest.approx(2 * 1.96 * error, rel=0.2)


def test_overall_is_everybody(frame, people):
    costs, _, rejected = people
    assert frame.overall.index.tolist() == frame.by_group.columns.tolist()
    assert frame.overall["people"] == len(costs)
    assert frame.overall["rejected"] == rejected.sum()
    assert frame.overall["acceptance"] == pytest.approx(1 - rejected.mean())
    assert frame.overall["mean"] == pytest.approx(costs[rejected].mean())
    assert frame.overall["mean_low"] < frame.overall["mean"] < frame.overall["mean_high"]


def test_difference_and_ratio_compare_every_column(frame):
    table, overall = frame.by_group, frame.overall
    difference, ratio = frame.difference(), frame.ratio()
    assert difference.index.tolist() == [
        "acceptance",
        "without_recourse",
        "mean",
        "median",
        "q10",
        "q25",
        "q75",
        "q90",
    ]
    for column in difference.index:
        values = table[column]
        assert difference[column] == pytest.approx(values.max() - values.min())
        assert frame.difference("to_overall")[column] == pytest.approx((values - overall[column]).abs().max())
        if column != "without_recourse":  # 0 to 0 is no ratio
            assert ratio[column] == pytest.approx(values.min() / values.max())
            shares = values / overall[column]
            assert frame.ratio("to_overall")[column] == pytest.approx(np.minimum(shares, 1 / shares).min())
    assert math.isnan(ratio["without_recourse"])
    with pytest.raises(ValueError, match="got 'max'"):
        frame.difference("max")


def test_the_gap_is_recourse_gap(frame, people):
    costs, group, _ = people
    assert frame.gap == recourse_gap(costs, sensitive_features=group) == frame.difference()["mean"]
    assert frame.relative_gap == pytest.approx(frame.gap / frame.overall["mean"])
    assert isinstance(frame.interval, Interval)
    assert frame.interval.low <= frame.gap <= frame.interval.high
    pd.testing.assert_frame_equal(frame.distances, distribution_distances(costs, sensitive_features=group))


def test_a_clear_gap_is_detected_and_names_who_is_further():
    costs = np.concatenate([np.linspace(2, 4, 50), np.linspace(1, 2, 50)])
    frame = RecourseFrame(costs=costs, sensitive_features=["f"] * 50 + ["m"] * 50, random_state=0)
    assert frame.detectable
    assert frame.p_value == 1 / 1001
    assert frame.gap > frame.noise_floor
    assert frame.verdict.startswith("gap of 1.5 (95 % interval 1.")
    assert frame.verdict.endswith("p = 0.001): 'f' further from a yes than 'm'")


def test_noise_is_called_no_detectable_gap():
    costs = np.random.default_rng(0).random(60)
    frame = RecourseFrame(costs=costs, sensitive_features=np.arange(60) % 2, random_state=0)
    assert not frame.detectable
    assert frame.verdict.startswith("no detectable gap: ")
    assert "noise floor" in frame.verdict


def test_detectable_means_floor_and_p_value_and_interval():
    seen = set()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        frame = RecourseFrame(
            costs=np.concatenate([rng.gamma(1.0, 2.0, 12), rng.gamma(2.0, 1.0, 60)]),
            sensitive_features=np.repeat([0, 1], [12, 60]),
            confidence=0.3,  # lax, so that each of the three conditions is at times the one that fails
            **QUICK,
        )
        conditions = (frame.gap > frame.noise_floor, frame.p_value <= 0.7, frame.interval.low > 0)
        assert frame.detectable == all(conditions)
        seen.add(conditions)
    assert {(True, True, True), (False, True, True)} <= seen


def test_a_small_group_of_wide_spread_is_not_mistaken_for_a_gap():
    small, detected = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        frame = RecourseFrame(
            costs=np.concatenate([rng.normal(30, 5, 15), rng.normal(30, 1, 300)]),
            sensitive_features=np.repeat([0, 1], [15, 300]),
            n_boot=300,
            n_permutations=100,
            random_state=seed,
        )
        small += frame.p_value <= 0.05
        detected += frame.detectable
    assert small > 30  # shuffling alone is fooled: equal means, unequal spread
    assert detected <= 15


def test_a_group_without_rejected_people_is_shown_and_undefined():
    with pytest.warns(UndefinedRecourseWarning, match="group 'm' has 0 rejected people in 2"):
        frame = RecourseFrame(costs=[1.0, 2.0, 0.0, 0.0], sensitive_features=list("ffmm"), **QUICK)
    assert frame.by_group.loc["m", ["people", "rejected", "acceptance"]].tolist() == [2, 0, 1]
    assert frame.by_group.loc["m", ["without_recourse", "mean", "mean_low", "mean_high", "median"]].isna().all()
    assert frame.by_group.loc["f", "mean"] == 1.5
    for value in (frame.gap, *frame.interval, frame.noise_floor, frame.p_value, frame.relative_gap):
        assert math.isnan(value)
    assert not frame.detectable
    assert frame.difference()[["mean", "median"]].isna().all()
    assert frame.verdict == "gap undefined: group 'm' has 0 rejected people in 2; its recourse is undefined"
    assert "gap undefined" in repr(frame)
    assert frame.to_dict()["gap"] is None


def test_a_model_that_accepts_everybody_has_equalised_nothing():
    with pytest.warns(UndefinedRecourseWarning):
        frame = RecourseFrame(costs=[0.0] * 4, sensitive_features=list("ffmm"), **QUICK)
    assert math.isnan(frame.gap)
    assert frame.overall["acceptance"] == 1
    assert math.isnan(frame.overall["mean"])
    json.dumps(frame.to_dict(), allow_nan=False)


def test_people_without_recourse_are_counted_and_infinitely_far():
    costs, group = [1.0, 2.0, 3.0, INF, 2.0, 2.0, 2.0, 2.0], list("ffffmmmm")
    frame = RecourseFrame(costs=costs, sensitive_features=group, **QUICK)
    female = frame.by_group.loc["f"]
    assert female[["people", "rejected", "without_recourse", "mean", "median"]].tolist() == [
        4,
        4,
        0.25,
        2,
        2.5,
    ]
    assert female["q90"] == INF
    assert frame.gap == 0
    assert frame.verdict.endswith("; 1 of 4 rejected people of group 'f' have no recourse")
    assert frame.difference()["without_recourse"] == 0.25
    assert frame.difference()["q90"] == INF
    json.dumps(frame.to_dict(), allow_nan=False)
    assert frame.to_dict()["by_group"][0]["q90"] == "inf"


def test_a_cost_can_stand_for_people_without_recourse():
    costs, group = [1.0, 2.0, 3.0, INF, 2.0, 2.0, 2.0, 2.0], list("ffffmmmm")
    frame = RecourseFrame(costs=costs, sensitive_features=group, no_recourse_cost=6, **QUICK)
    assert frame.by_group.loc["f", ["without_recourse", "mean", "q90"]].tolist() == pytest.approx([0.25, 3, 5.1])
    assert frame.gap == 1


def test_nobody_with_recourse_is_undefined_and_shown():
    with pytest.warns(UndefinedRecourseWarning, match="none has recourse"):
        frame = RecourseFrame(costs=[INF, INF, 1.0, 2.0], sensitive_features=list("ffmm"), **QUICK)
    assert frame.by_group.loc["f", ["without_recourse", "median"]].tolist() == [1, INF]
    assert math.isnan(frame.gap)


def test_one_rejected_person_has_a_mean_and_no_interval():
    frame = RecourseFrame(costs=[1.0, 2.0, 4.0, 0.0], sensitive_features=list("ffmm"), **QUICK)
    assert frame.by_group.loc["m", "mean"] == 4.0
    assert frame.by_group.loc["m", ["mean_low", "mean_high"]].isna().all()
    assert frame.gap == 2.5
    assert math.isnan(frame.interval.low)
    assert 0 < frame.p_value <= 1
    assert not frame.detectable
    assert "no 95 % interval" in frame.verdict


def test_one_rejected_person_is_no_evidence_against_a_thousand():
    costs = np.append(np.random.default_rng(0).random(1000), 50.0)
    frame = RecourseFrame(costs=costs, sensitive_features=[0] * 1000 + [1], **QUICK)
    assert frame.p_value <= 0.05
    assert not frame.detectable


def test_a_relative_gap_needs_a_mean_cost():
    frame = RecourseFrame(costs=[0.0] * 4, rejected=[True] * 4, sensitive_features=list("ffmm"), **QUICK)
    assert frame.gap == 0
    assert math.isnan(frame.relative_gap)


def test_accepted_people_are_not_counted_as_without_recourse():
    frame = RecourseFrame(costs=[1.0, INF, 2.0, 3.0], rejected=[1, 0, 1, 1], sensitive_features=list("ffmm"), **QUICK)
    assert frame.by_group["without_recourse"].tolist() == [0, 0]
    assert frame.overall["without_recourse"] == 0


def test_the_same_seed_gives_the_same_numbers_in_any_order_of_asking(people):
    costs, group, _ = people
    first, second = (
        RecourseFrame(costs=costs, sensitive_features=group, random_state=np.random.default_rng(3)) for _ in range(2)
    )
    numbers = (first.p_value, first.noise_floor, first.interval)
    interval = second.interval
    pd.testing.assert_frame_equal(second.by_group, first.by_group)
    assert numbers == (second.p_value, second.noise_floor, interval)
    other = RecourseFrame(costs=costs, sensitive_features=group, random_state=4)
    assert other.interval != first.interval
    assert other.gap == first.gap


def test_a_frame_that_is_handed_out_can_be_changed_without_harm(frame):
    table, overall = frame.by_group, frame.overall
    table["mean"] = 0
    overall["mean"] = 0
    assert (frame.by_group["mean"] > 0).all()
    assert frame.overall["mean"] > 0


@pytest.mark.parametrize("kind", [pd, pl], ids=["pandas", "polars"])
def test_several_columns_are_intersections_from_pandas_and_polars(kind, people):
    costs, group, _ = people
    old = np.arange(len(costs)) % 2 == 0
    columns = kind.DataFrame({"group": group.tolist(), "old": old.tolist()})
    frame = RecourseFrame(costs=kind.Series(costs.tolist()), sensitive_features=columns, **QUICK)
    assert frame.by_group.index.names == ["group", "old"]
    assert len(frame.by_group) == 6
    mine = costs[(group == "b") & ~old]
    assert frame.by_group.loc[("b", False), "mean"] == pytest.approx(mine[mine > 0].mean())
    assert "overall" in repr(frame)
    assert "overall" in frame._repr_html_()
    assert frame.to_dict()["by_group"][3]["group"] == {"group": "b", "old": True}
    json.dumps(frame.to_dict(), allow_nan=False)


def test_names_from_the_data_are_escaped():
    nasty = "<img src=x onerror=alert(1)>"
    costs = np.concatenate([np.linspace(5, 6, 20), np.linspace(1, 2, 20)])
    for column in ([nasty] * 20 + ["m"] * 20, [0] * 20 + [1] * 20):
        frame = RecourseFrame(costs=costs, sensitive_features={nasty: column}, **QUICK)
        assert frame.detectable
        html = frame._repr_html_()
        assert "<img" not in html
        assert "&lt;img" in html
    crossed = RecourseFrame(costs=costs, sensitive_features={nasty: [nasty] * 40, "x": [0] * 20 + [1] * 20}, **QUICK)
    assert "<img" not in crossed._repr_html_()


def test_the_repr_is_the_verdict_and_the_table(frame):
    text = repr(frame)
    assert text.startswith(frame.verdict)
    for word in ("group", "people", "rejected", "mean_low", "overall"):
        assert word in text


def test_to_dict_holds_every_number_as_a_plain_value(frame):
    values = json.loads(json.dumps(frame.to_dict(), allow_nan=False))
    assert values == frame.to_dict()
    assert values["gap"] == frame.gap
    assert values["interval"] == list(frame.interval)
    assert values["overall"]["people"] == 300
    assert isinstance(values["overall"]["people"], int)
    assert [row["group"] for row in values["by_group"]] == [{"group": g} for g in "abc"]
    assert values["by_group"][1]["mean"] == frame.by_group["mean"].iloc[1]
    assert values["ratio"]["without_recourse"] is None
    assert values["verdict"] == frame.verdict


@pytest.mark.parametrize("dates", [pd.to_datetime(["2020-01-01", "2021-01-01"]), [0.5, 1.5], [True, False]])
def test_groups_of_any_type_are_json(dates):
    frame = RecourseFrame(costs=[1.0, 2.0, 3.0, 4.0], sensitive_features=np.repeat(np.array(dates), 2), **QUICK)
    json.dumps(frame.to_dict(), allow_nan=False)
    assert "overall" in repr(frame)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"costs": [1.0, np.nan]}, "costs is NaN"),
        ({"costs": [1.0, -2.0]}, "must not be negative"),
        ({"costs": [1.0]}, "2 rows for 1 people"),
        ({"costs": [], "sensitive_features": []}, "0 groups"),
        ({"sensitive_features": ["f", "f"]}, "1 group"),
        ({"rejected": [True]}, "rejected has shape"),
        ({"no_recourse_cost": -1}, "no_recourse_cost must be"),
        ({"quantiles": [1.5]}, "quantiles must be a finite number from 0 to 1, got 1.5"),
        ({"n_boot": 0}, "n_boot must be a whole number of at least 1, got 0"),
        ({"n_permutations": 2.5}, "n_permutations must be a whole number"),
        ({"n_permutations": 18}, "use at least 19"),
        ({"n_permutations": 98, "confidence": 0.99}, "use at least 99"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"confidence": 95}, "confidence must be a finite number from 0 to 1, got 95"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options, match):
    with pytest.raises(ValueError, match=match) as caught:
        RecourseFrame(**{"costs": [1.0, 2.0], "sensitive_features": ["f", "m"]} | options)
    assert "\n" not in str(caught.value)


def test_the_smallest_number_of_shuffles_that_can_detect_is_accepted():
    costs = np.concatenate([np.linspace(5, 6, 20), np.linspace(1, 2, 20)])
    group = [0] * 20 + [1] * 20
    for n, confidence in [(19, 0.95), (99, 0.99), (9, 0.9)]:
        frame = RecourseFrame(
            costs=costs, sensitive_features=group, n_permutations=n, confidence=confidence, random_state=0
        )
        assert frame.detectable


def test_many_groups_are_all_shown():
    costs = np.arange(1.0, 201.0)
    frame = RecourseFrame(costs=costs, sensitive_features=np.arange(200) % 40, **QUICK)
    assert len(frame.by_group) == 40
    assert len(frame.distances) == 40 * 39 / 2
