"""One feature: what is refused, and what a change costs."""

import numpy as np
import pandas as pd
import pytest

from equirecourse.actions import Feature, Percentiles

LABELS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": 3}, "The name of a feature must be text, got 3."),
        (
            {"kind": "numeric"},
            "Feature 'f': kind must be one of 'number', 'ordered', 'labels', 'one_hot', got 'numeric'.",
        ),
        ({"kind": None}, "Feature 'f': kind must be one of 'number', 'ordered', 'labels', 'one_hot', got None."),
        ({"change": "up"}, "Feature 'f': change must be one of 'any', 'increase', 'decrease', 'no', got 'up'."),
        (
            {"cost": 0},
            "Feature 'f': cost must be a positive finite number, got 0; use change='no' for what cannot be changed.",
        ),
        (
            {"cost": "dear"},
            "Feature 'f': cost must be a positive finite number, got 'dear'; use change='no' for what cannot be"
            " changed.",
        ),
        (
            {"cost": True},
            "Feature 'f': cost must be a positive finite number, got True; use change='no' for what cannot be changed.",
        ),
        (
            {"cost": np.inf},
            "Feature 'f': cost must be a positive finite number, got inf; use change='no' for what cannot be changed.",
        ),
        ({"low": "0"}, "Feature 'f': low must be a number, got '0'."),
        ({"high": np.nan}, "Feature 'f': high must be a number, got nan."),
        ({"low": True}, "Feature 'f': low must be a number, got True."),
        ({"low": 3, "high": 1}, "Feature 'f': low=3 is above high=1; swap them."),
        ({"low": np.inf}, "Feature 'f': no number lies between low=inf and high=inf."),
        ({"step": 0}, "Feature 'f': step must be a positive finite number, got 0."),
        ({"step": "1"}, "Feature 'f': step must be a positive finite number, got '1'."),
        (
            {"labels": LABELS},
            "Feature 'f' is a number and has no labels or columns; use kind='ordered' or 'labels' for them.",
        ),
        ({"kind": "labels", "labels": "abc"}, "Feature 'f': labels must be a list, got 'abc'."),
        ({"kind": "labels", "labels": 3}, "Feature 'f': labels must be a list, got 3."),
        ({"kind": "labels", "labels": ([1],)}, "Feature 'f': labels must hold single values, got [1]."),
        (
            {"kind": "labels", "labels": ("a", None)},
            "Feature 'f': None is no label; leave it out, a missing value is never changed.",
        ),
        (
            {"kind": "labels", "labels": ("a", np.nan)},
            "Feature 'f': nan is no label; leave it out, a missing value is never changed.",
        ),
        (
            {"kind": "labels", "labels": ("a", pd.NA)},
            "Feature 'f': <NA> is no label; leave it out, a missing value is never changed.",
        ),
        ({"kind": "labels", "labels": ("a", "b", "a")}, "Feature 'f': 'a' is listed twice in labels ['a', 'b', 'a']."),
        ({"kind": "labels"}, "Feature 'f': kind='labels' needs its labels."),
        (
            {"kind": "labels", "labels": LABELS, "low": 0},
            "Feature 'f' has labels: it takes no low, high or step; list the reachable labels in allowed.",
        ),
        (
            {"kind": "labels", "labels": LABELS, "change": "increase"},
            "Feature 'f': change='increase' needs an order; use kind='ordered' and list labels in order.",
        ),
        (
            {"kind": "labels", "labels": LABELS, "columns": LABELS},
            "Feature 'f': only a one-hot block has columns; use kind='one_hot'.",
        ),
        (
            {"kind": "labels", "labels": LABELS, "allowed": ()},
            "Feature 'f': allowed is empty; use change='no' for what cannot be changed.",
        ),
        (
            {"kind": "labels", "labels": LABELS, "allowed": ("d",)},
            "Feature 'f': 'd' is allowed but is not one of the labels ['a', 'b', 'c'].",
        ),
        ({"kind": "labels", "labels": LABELS, "allowed": "a"}, "Feature 'f': allowed must be a list, got 'a'."),
        (
            {"kind": "one_hot", "columns": ("x", "y"), "labels": LABELS},
            "Feature 'f' has 2 columns for 3 labels; a block has one each.",
        ),
        ({"kind": "one_hot", "columns": (1, 2)}, "Feature 'f': columns must be names, got 1."),
        ({"percentiles": (0, 1)}, "Feature 'f': percentiles must be a Percentiles, got (0, 1)."),
        (
            {"percentiles": Percentiles((0, 1), (0.6, 0.4))},
            "Feature 'f': ranks must rise with the values and stay below 1, got [0.6, 0.4].",
        ),
        (
            {"percentiles": Percentiles((0,), (1,))},
            "Feature 'f': ranks must rise with the values and stay below 1, got [1.0].",
        ),
        (
            {"kind": "labels", "labels": LABELS, "percentiles": Percentiles((0, 1), (0.5, 0.5))},
            "Feature 'f': percentiles of labels have the values 0 to 2, one per label, got [0.0, 1.0].",
        ),
    ],
)
def test_what_a_feature_refuses_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Feature(**{"name": "f", **arguments})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("values", "ranks", "sentence"),
    [
        ((), (), "Percentiles: values must be a list of numbers, got ()."),
        ("ab", (0.5,), "Percentiles: values must be a list of numbers, got 'ab'."),
        ((1, np.nan), (0.2, 0.5), "Percentiles: values must be a list of numbers, got (1, nan)."),
        ((1, 2), (0.5,), "Percentiles: there are 2 values for 1 ranks; give one each."),
        ((2, 1), (0.2, 0.5), "Percentiles: values must increase, got [2.0, 1.0]."),
        ((1, 2), (0.0, 0.5), "Percentiles: ranks must be above 0 and at most 1, got [0.0, 0.5]."),
    ],
)
def test_what_percentiles_refuse_is_one_sentence(values, ranks, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Percentiles(values, ranks)
    assert str(caught.value) == sentence


def test_lists_and_numpy_values_become_plain_ones():
    feature = Feature("f", kind="ordered", labels=np.array([1, 2, 3]), allowed=[np.int64(2)], cost=np.float32(2))
    assert feature.labels == (1, 2, 3)
    assert all(type(label) is int for label in (*feature.labels, *feature.allowed))
    assert type(feature.cost) is float
    assert hash(feature) == hash(Feature("f", kind="ordered", labels=(1, 2, 3), allowed=(2,), cost=2))


def test_a_column_that_cannot_change_needs_no_labels():
    assert Feature("signed_on", kind="labels", change="no").labels == ()


def test_a_block_is_labelled_by_its_columns_unless_told():
    assert Feature("b", kind="one_hot", columns=("b_x", "b_y")).labels == ("b_x", "b_y")


def test_norms_price_numbers_by_distance_and_labels_by_any_change():
    number = Feature("n", cost=0.5)
    ordered = Feature("o", kind="ordered", labels=LABELS, cost=2.0)
    labels = Feature("l", kind="labels", labels=LABELS, cost=3.0)
    for norm in ("l1", "l2", "linf"):
        assert number.move_cost(norm, [1.0, 1.0, np.nan], [5.0, 1.0, np.nan]).tolist() == [2.0, 0.0, 0.0]
        assert ordered.move_cost(norm, [0, 2, 1], [2, 1, 1]).tolist() == [4.0, 2.0, 0.0]
        assert labels.move_cost(norm, [0, 2, 1], [2, 1, 1]).tolist() == [3.0, 3.0, 0.0]


def test_shifts_are_differences_of_ranks_and_rarity_of_labels():
    ranks = Percentiles((0, 10, 20), (0.25, 0.5, 0.75))
    number = Feature("n", percentiles=ranks)
    assert number.move_cost("max_shift", [0.0, 20.0], [15.0, 0.0]).tolist() == [0.375, 0.5]
    np.testing.assert_allclose(number.move_cost("log_shift", [0.0], [20.0]), abs(np.log((1 - 0.75) / (1 - 0.25))))
    labels = Feature("l", kind="labels", labels=LABELS, percentiles=Percentiles((0, 1, 2), (0.7, 0.2, 0.1)))
    np.testing.assert_allclose(labels.move_cost("max_shift", [0, 0, 1], [1, 2, 1]), [0.8, 0.9, 0.0])
    np.testing.assert_allclose(labels.move_cost("log_shift", [0, 0, 1], [1, 2, 1]), [-np.log(0.2), -np.log(0.1), 0.0])


def test_shifts_need_percentiles_only_of_what_moves():
    feature = Feature("f")
    assert feature.move_cost("max_shift", [1.0], [1.0]).tolist() == [0.0]
    with pytest.raises(ValueError, match="norm='log_shift' needs to know where people stand in feature 'f'"):
        feature.move_cost("log_shift", [1.0], [2.0])
