"""Input is checked in one place, and every refusal is one sentence that names the value and the way out."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from equirecourse._validation import (
    check_costs,
    check_feature_costs,
    check_generator,
    check_groups,
    check_labels,
    check_mask,
    check_number,
    favorable_index,
)


def one_sentence(message: str) -> bool:
    """One line that ends in a full stop and holds no other (decimals aside)."""
    return "\n" not in message and message.endswith(".") and not re.search(r"\. [A-Z]", message) and len(message) < 300


def refuses(call, *, match):
    with pytest.raises(ValueError, match=match) as caught:
        call()
    assert one_sentence(str(caught.value)), str(caught.value)


SEX = ["f", "m", "f", "m"]
AGE = [1, 1, 2, 2]


@pytest.mark.parametrize(
    "column",
    [
        SEX,
        tuple(SEX),
        np.array(SEX),
        np.array(SEX, dtype=object),
        np.array(SEX)[:, None],
        pd.Series(SEX, index=[9, 8, 7, 6]),
        pd.Series(SEX, dtype="category"),
        pl.Series(SEX),
        pl.Series(SEX, dtype=pl.Categorical),
        {"sex": SEX},
        pd.DataFrame({"sex": SEX}),
        pl.DataFrame({"sex": SEX}),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}.{type(column).__name__}",
)
def test_a_column_of_any_kind_gives_the_same_groups(column):
    groups = check_groups(column, 4)
    assert groups.labels == ("f", "m")
    assert groups.codes.tolist() == [0, 1, 0, 1]
    assert len(groups) == 2
    assert groups.members(1).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "columns",
    [
        {"sex": SEX, "age": AGE},
        pd.DataFrame({"sex": SEX, "age": AGE}),
        pl.DataFrame({"sex": SEX, "age": AGE}),
    ],
    ids=["mapping", "pandas", "polars"],
)
def test_several_columns_are_crossed(columns):
    groups = check_groups(columns, 4)
    assert groups.labels == (("f", 1), ("f", 2), ("m", 1), ("m", 2))
    assert groups.names == ("sex", "age")
    assert isinstance(groups.index, pd.MultiIndex)
    assert [groups.labels[code] for code in groups.codes] == list(zip(SEX, AGE, strict=True))


def test_only_combinations_that_occur_are_groups():
    assert check_groups({"a": [0, 1], "b": [0, 1]}, 2).labels == ((0, 0), (1, 1))


def test_the_name_of_a_column_names_the_index():
    assert check_groups(pd.Series(SEX, name="sex"), 4).index.name == "sex"
    assert check_groups(pl.Series("sex", SEX), 4).index.name == "sex"
    assert check_groups(SEX, 4).index.name == "sensitive_feature"
    assert check_groups(np.array([SEX, SEX]).T, 4).names == ("sensitive_feature_0", "sensitive_feature_1")


def test_values_that_do_not_compare_are_still_groups():
    groups = check_groups(pd.Series([1, "a", 2.5], dtype=object), 3)
    assert set(groups.labels) == {1, "a", 2.5}


def test_two_columns_of_the_same_name_are_two_columns():
    frame = pd.DataFrame([["a", 1], ["b", 2]], columns=["x", "x"])
    assert check_groups(frame, 2).labels == (("a", 1), ("b", 2))


def test_the_callers_frame_is_left_alone():
    frame = pd.DataFrame({0: SEX}, index=[5, 6, 7, 8])
    check_groups(frame, 4)
    assert frame.columns.tolist() == [0]
    assert frame.index.tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (["f", "m"], r"has 2 rows for 4 people"),
        ("f", r"single value 'f'"),
        (None, r"single value None"),
        (np.zeros((4, 1, 1)), r"shape \(4, 1, 1\)"),
        (["f", None, "m", "m"], r"missing for 1 of 4 people"),
        ([1.0, np.nan, 2.0, 2.0], r"missing for 1 of 4 people"),
        (pl.Series(["f", None, None, "m"]), r"missing for 2 of 4 people"),
        (pd.DataFrame(index=range(4)), r"no column"),
        (["f"] * 4, r"1 group \('f'\) and a comparison needs at least 2"),
        (pd.Series([["f"], ["m"], ["f"], ["m"]]), r"one value per cell"),
    ],
)
def test_groups_that_cannot_be_groups_are_refused(groups, match):
    refuses(lambda: check_groups(groups, 4, at_least=2), match=match)


def test_no_people_have_no_groups():
    refuses(lambda: check_groups([], 0, at_least=2), match="0 groups")


@pytest.mark.parametrize(
    ("costs", "match"),
    [
        ([1.0, np.nan], "NaN for 1 of 2 people"),
        ([1.0, -0.5], "not be negative, got -0.5"),
        ([1.0, -np.inf], "not be negative, got -inf"),
        ([[1.0], [2.0]], r"one dimension, one cost per person, got shape \(2, 1\)"),
        (3.0, "one dimension"),
        (["a", "b"], "must be numbers"),
        ([1 + 2j], "must be numbers"),
        (pd.Series([1, None], dtype="Int64"), "NaN for 1 of 2 people"),
        (pl.Series([1.0, None]), "NaN for 1 of 2 people"),
    ],
)
def test_costs_that_cannot_be_costs_are_refused(costs, match):
    refuses(lambda: check_costs(costs), match=match)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_costs_may_be_infinite_and_of_any_kind(kind):
    np.testing.assert_array_equal(check_costs(kind([0.0, 2.0, np.inf])), [0, 2, np.inf])


@pytest.mark.parametrize(
    "mask", [[True, False], [1, 0], [1.0, 0.0], pd.Series([True, False]), pl.Series([True, False])]
)
def test_a_mask_is_boolean_or_zero_and_one(mask):
    checked = check_mask(mask, 2, name="rejected")
    assert checked.dtype == bool
    assert checked.tolist() == [True, False]


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        ([True], r"shape \(1,\) for 2 people"),
        ([-1, 1], "got -1; compare predictions"),
        ([0.5, 1], "got 0.5"),
        ([np.nan, 1], "got nan"),
        ([None, True], "got None"),
        (["yes", "no"], "got 'yes'"),
        (pd.Series([True, None], dtype="boolean"), "got <NA>"),
    ],
)
def test_a_mask_that_is_not_boolean_is_refused(mask, match):
    refuses(lambda: check_mask(mask, 2, name="rejected"), match=match)


@pytest.mark.parametrize("value", [-1, 11, np.nan, np.inf, "3", None, True, [3]])
def test_a_number_outside_its_limits_is_refused(value):
    refuses(
        lambda: check_number(value, name="budget", low=0, high=10),
        match="budget must be a finite number from 0",
    )


@pytest.mark.parametrize("value", [0, 2.5, np.float32(2.5), True])
def test_a_count_is_a_whole_positive_number(value):
    refuses(
        lambda: check_number(value, name="n_boot", low=1, integer=True),
        match="n_boot must be a whole number of at least 1",
    )


def test_numbers_of_numpy_are_numbers():
    assert check_number(np.int64(3), name="n", low=1, integer=True) == 3
    assert check_number(np.float32(0.5), name="x", low=0) == 0.5


def test_a_seed_gives_the_same_generator_twice():
    for seed in (3, np.int64(3), np.random.SeedSequence(3)):
        assert (
            check_generator(seed).integers(1000, size=9).tolist()
            == np.random.default_rng(3).integers(1000, size=9).tolist()
        )
    states = [np.random.RandomState(0) for _ in range(2)]
    first, second = (check_generator(state).random() for state in states)
    assert first == second
    rng = np.random.default_rng(0)
    assert check_generator(rng) is rng


@pytest.mark.parametrize("seed", [-1, "seed", 1.5])
def test_a_bad_seed_is_refused(seed):
    refuses(lambda: check_generator(seed), match="random_state must be")


def test_two_labels_are_needed():
    assert check_labels(np.array(["no", "yes", "no"])).tolist() == ["no", "yes"]
    refuses(lambda: check_labels(np.array([1, 1])), match="one class")
    refuses(lambda: check_labels(np.array([0, 1, 2])), match="3 labels")


def test_the_favourable_label_is_the_larger_one_unless_told():
    classes = np.array(["no", "yes"])
    assert favorable_index(classes, None) == 1
    assert favorable_index(classes, "no") == 0
    refuses(lambda: favorable_index(classes, 1), match="favorable_label=1 is not one of the labels")


def test_feature_costs_are_positive_and_finite():
    assert check_feature_costs(None, 2) is None
    assert check_feature_costs([1, 2], 2).tolist() == [1, 2]
    for bad in ([1.0], [1.0, 0.0], [1.0, np.inf], [np.nan, 1.0]):
        refuses(lambda bad=bad: check_feature_costs(bad, 2), match="feature_costs")
