"""An action set from people: what is inferred, what is said about it, and what the user adds."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import percentileofscore

from equirecourse.actions import ActionSet, Feature, Link, Rule


def only(X, **arguments):
    """The one feature of a table of one column."""
    (feature,) = ActionSet.from_frame(X, **arguments)
    return feature


def people(n=40):
    rng = np.random.default_rng(0)
    housing = pd.Series(np.array(["own", "rent", "free"])[rng.integers(0, 3, n)])
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.gamma(2.0, 1000.0, n),
            "rooms": rng.integers(1, 6, n).astype(float),
            "car": rng.integers(0, 2, n),
            "member": rng.random(n) < 0.5,
            "housing": housing,
            "skill": pd.Categorical(
                np.array(["low", "high"])[rng.integers(0, 2, n)], categories=["low", "middle", "high"], ordered=True
            ),
            "job": pd.Categorical(np.array(["a", "b"])[rng.integers(0, 2, n)], categories=["b", "a", "none"]),
            **{f"region_{name}": (np.arange(n) % 3 == k).astype(int) for k, name in enumerate(["N", "S", "rest_of"])},
        }
    )


# --- what columns are ------------------------------------------------------------------------------------------------


def test_every_column_becomes_what_it_looks_like():
    X = people()
    actions = ActionSet.from_frame(X)
    assert [feature.name for feature in actions] == [*X.columns[:8], "region"]
    kinds = {feature.name: (feature.kind, feature.step, feature.labels) for feature in actions}
    assert kinds == {
        "age": ("number", 1, ()),
        "income": ("number", None, ()),
        "rooms": ("number", 1, ()),
        "car": ("number", 1, ()),
        "member": ("labels", None, (False, True)),
        "housing": ("labels", None, ("free", "own", "rent")),
        "skill": ("ordered", None, ("low", "middle", "high")),
        "job": ("labels", None, ("b", "a", "none")),
        "region": ("one_hot", None, ("N", "S", "rest_of")),
    }
    assert actions["region"].columns == ("region_N", "region_S", "region_rest_of")
    assert (actions["age"].low, actions["age"].high) == (X["age"].min(), X["age"].max())
    assert (actions["car"].low, actions["car"].high) == (0, 1)
    assert all(feature.change == "any" for feature in actions)


def test_costs_are_one_over_the_standard_deviation():
    X = people()
    actions = ActionSet.from_frame(X)
    for name in ("age", "income", "rooms", "car"):
        assert actions[name].cost == pytest.approx(1 / X[name].std())
    assert actions["skill"].cost == pytest.approx(1 / X["skill"].cat.codes.std())
    assert {actions[name].cost for name in ("member", "housing", "job", "region")} == {1.0}
    assert {feature.cost for feature in ActionSet.from_frame(X, costs="unit")} == {1.0}
    mixed = ActionSet.from_frame(X, costs={"age": 3, "region": 2})
    assert (mixed["age"].cost, mixed["region"].cost, mixed["income"].cost) == (3, 2, actions["income"].cost)


@pytest.mark.parametrize("values", [[5, 5, 5], [0.1] * 10, [1e-320, 0], [1e308, -1e308], [7]])
def test_a_cost_that_cannot_be_told_is_one(values):
    assert only(pd.DataFrame({"a": values})).cost == 1.0


def test_the_user_knows_better():
    X = people()
    actions = ActionSet.from_frame(
        X,
        immutable="age",
        increase_only=["income", "skill", "member"],
        decrease_only=("rooms",),
        bounds={"income": (0, None), "rooms": (None, 4)},
        steps={"income": 100, "rooms": None},
        ordered={"housing": ["free", "rent", "own", "castle"], "car": [0, 1]},
        links=[Link("rooms", "income", 10)],
        rules=[Rule("housing == 'own'", "income >= 5")],
    )
    assert [actions[name].change for name in ("age", "income", "skill", "rooms")] == [
        "no",
        "increase",
        "increase",
        "decrease",
    ]
    assert (actions["income"].low, actions["income"].high, actions["income"].step) == (0, np.inf, 100)
    assert (actions["rooms"].low, actions["rooms"].high, actions["rooms"].step) == (-np.inf, 4, None)
    assert (actions["housing"].kind, actions["housing"].labels) == ("ordered", ("free", "rent", "own", "castle"))
    assert (actions["car"].kind, actions["car"].labels) == ("ordered", (0, 1))
    # False and True have an order for whoever asks for one.
    assert (actions["member"].kind, actions["member"].change) == ("ordered", "increase")
    assert len(actions.links) == len(actions.rules) == 1


@pytest.mark.parametrize("one_hot", [None, False])
def test_blocks_are_columns_of_0_and_1_if_nobody_wants_blocks(one_hot):
    actions = ActionSet.from_frame(people(), one_hot=one_hot)
    assert actions["region_N"].kind == "number"
    assert (actions["region_N"].low, actions["region_N"].high, actions["region_N"].step) == (0, 1, 1)


def test_blocks_given_by_name_are_the_only_ones():
    X = people().rename(columns={"region_N": "north", "region_S": "south", "region_rest_of": "else"})
    actions = ActionSet.from_frame(X, one_hot={"where": ["north", "south", "else"]})
    assert actions["where"].labels == ("north", "south", "else")
    assert ActionSet.from_frame(people(), one_hot={"where": ["region_N", "region_S", "region_rest_of"]})[
        "where"
    ].labels == (
        "N",
        "S",
        "rest_of",
    )
    assert "region" not in ActionSet.from_frame(people(), one_hot={})


@pytest.mark.parametrize(
    ("columns", "blocks"),
    [
        ({"a_x": [1, 0], "a_y": [0, 1]}, {"a": ("x", "y")}),
        ({"a=x": [1.0, 0.0], "a=y": [0.0, 1.0]}, {"a": ("x", "y")}),
        ({"a_x": [True, False], "a_y": [False, True]}, {"a": ("x", "y")}),
        ({"a_b=x": [1, 0], "a_b=y": [0, 1]}, {"a_b": ("x", "y")}),
        ({"a_b_x": [1, 0], "a_b_y": [0, 1], "a_c_x": [0, 1], "a_c_y": [1, 0]}, {"a_b": ("x", "y"), "a_c": ("x", "y")}),
        (
            {"job_at_sea": [1, 0, 0], "job_in_town": [0, 1, 0], "job_other": [0, 0, 1]},
            {"job": ("at_sea", "in_town", "other")},
        ),
        ({"a_x": [1, 0], "b": [2, 3], "a_y": [0, 1]}, {"a": ("x", "y")}),
        ({"a": [5, 6], "a_x": [1, 0], "a_y": [0, 1]}, {"a (one-hot)": ("x", "y")}),
        ({"a_x": [1, 0], "a_y": [0, 0]}, {}),  # nobody or somebody has none
        ({"a_x": [1, 1], "a_y": [0, 1]}, {}),  # somebody has two
        ({"a_x": [1, 0], "a_y": [0, 2]}, {}),
        ({"a_x": [1.0, np.nan], "a_y": [0.0, 1.0]}, {}),
        ({"a_x": [1, 1]}, {}),
        ({"_x": [1, 0], "_y": [0, 1]}, {}),
        ({"ax": [1, 0], "ay": [0, 1]}, {}),
    ],
)
def test_blocks_are_found_by_their_prefix(columns, blocks):
    actions = ActionSet.from_frame(pd.DataFrame(columns))
    assert {feature.name: feature.labels for feature in actions if feature.kind == "one_hot"} == blocks


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], "values of the kind date"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "values of the kind Timestamp"),
        ([1 + 2j, 3j], "values of the kind complex"),
        ([[1], [2]], "values of the kind list"),
        (pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"])), "values of the kind Timestamp"),
        ([None, None], "no value"),
        ([np.nan, np.nan], "no value"),
        ([np.inf, np.nan], "no value"),
    ],
)
def test_what_is_neither_number_nor_label_cannot_change(values, what):
    actions = ActionSet.from_frame(pd.DataFrame({"a": values, "b": [1, 2]}))
    assert actions["a"] == Feature("a", kind="labels", change="no")
    assert actions.notes[0] == f"a: {what}; cannot change"
    assert actions.encode(pd.DataFrame({"a": values, "b": [1, 2]}))[:, 0].tolist() == [-1, -1]


def test_missing_values_are_not_counted():
    complete = pd.DataFrame(
        {"n": [1.0, 2.0, 4.0], "l": ["a", "b", "b"], "o": ["x", "y", "y"], "t": [True, False, False]}
    )
    gaps = pd.concat(
        [complete, pd.DataFrame({"n": [np.nan], "l": [None], "o": [None], "t": [None]})], ignore_index=True
    )
    order = {"ordered": {"o": ["x", "y"]}}
    assert ActionSet.from_frame(gaps, **order) == ActionSet.from_frame(complete, **order)
    nullable = gaps.convert_dtypes()
    assert ActionSet.from_frame(nullable, **order) == ActionSet.from_frame(complete, **order)
    assert "missing for 1 of 4 people, and stays so" in ActionSet.from_frame(gaps).notes[0]


def test_infinite_numbers_are_not_counted_either():
    feature = only(pd.DataFrame({"a": [1.0, 3.0, np.inf, -np.inf]}))
    assert (feature.low, feature.high) == (1, 3)


def test_mixed_labels_are_sorted_by_kind():
    assert only(pd.DataFrame({"a": pd.Series([3, "x", 2, "b"], dtype=object)})).labels == (2, 3, "b", "x")


# --- what is said ----------------------------------------------------------------------------------------------------


def test_notes_say_what_was_inferred():
    X = people()
    notes = ActionSet.from_frame(
        X,
        immutable=["age"],
        increase_only=["skill"],
        bounds={"income": (0, None)},
        steps={"rooms": 0.5},
        costs={"rooms": 0.25},
    ).notes
    assert notes == (
        f"age: whole numbers from {X['age'].min()} to {X['age'].max()}, as observed; cannot change",
        f"income: numbers at least 0, as given; a cost of 1 is one standard deviation ({X['income'].std():.4g})",
        "rooms: multiples of 0.5 from 1 to 5, as observed; a change by 1 costs 0.25",
        f"car: 0 or 1; a cost of 1 is one standard deviation ({X['car'].std():.4g})",
        "member: 2 labels without an order; any change costs 1",
        "housing: 3 labels without an order; any change costs 1",
        "skill: 3 labels in order, from 'low' to 'high'; can only rise; a cost of 1 is one standard deviation of the "
        f"place in the order ({X['skill'].cat.codes.std():.4g})",
        "job: 3 labels without an order; any change costs 1",
        "region: 3 columns of which one is 1 ('region_N', 'region_S', 'region_rest_of'); any change costs 1",
    )


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([7] * 5, "a is 7 for everybody; give it bounds if people can change it"),
        (["x"] * 5, "a is 'x' for everybody"),
        (list(range(100, 130)), "a numbers the people like an identifier; leave it out, or make it immutable"),
        (
            [f"id{k}" for k in range(30)],
            "a has 30 different labels among 30 people, like an identifier; leave it out, or make it immutable",
        ),
        (
            [f"text {k % 60}" for k in range(300)],
            "a has 60 different labels among 300 people, like an identifier; leave it out, or make it immutable",
        ),
    ],
)
def test_suspicious_columns_get_a_note(values, note):
    assert ActionSet.from_frame(pd.DataFrame({"a": values})).notes[1:] == (note,)


def test_ordinary_columns_get_no_further_note():
    X = people()
    assert len(ActionSet.from_frame(X).notes) == 9


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"immutable": ["agee"]}, "immutable names 'agee', which is not a feature; did you mean 'age'?"),
        (
            {"increase_only": ["zzz"]},
            "increase_only names 'zzz', which is not a feature; there is 'age', 'income', 'rooms', 'car', "
            "'member', 'housing', 'skill', 'job', 'region'.",
        ),
        (
            {"decrease_only": ["region_N"]},
            "decrease_only names 'region_N', a column of the one-hot block 'region'; name 'region' instead.",
        ),
        ({"immutable": 3}, "immutable must be a list of features, got 3."),
        ({"immutable": {"age": True}}, "immutable must be a list of features, got {'age': True}."),
        (
            {"immutable": ["age"], "increase_only": ["age"]},
            "'age' is both in immutable and in increase_only; keep one of them.",
        ),
        (
            {"increase_only": ["housing"]},
            "increase_only names 'housing', whose labels have no order; give it with ordered={'housing': "
            "[...]}, the lowest label first.",
        ),
        ({"increase_only": ["region"]}, "increase_only names 'region', which is a one-hot block and has no order."),
        ({"bounds": {"incom": (0, 1)}}, "bounds names 'incom', which is not a feature; did you mean 'income'?"),
        ({"bounds": {"income": 3}}, "bounds['income'] must be (low, high), with None for an open side, got 3."),
        ({"bounds": {"income": (5, 1)}}, "Feature 'income': low=5 is above high=1; swap them."),
        ({"bounds": {"income": ("a", 1)}}, "Feature 'income': low must be a number, got 'a'."),
        ({"bounds": {"housing": (0, 1)}}, "bounds names 'housing', which is a column of labels and not a number."),
        ({"bounds": {"region": (0, 1)}}, "bounds names 'region', which is a one-hot block and not a number."),
        ({"bounds": [1]}, "bounds must be a mapping from feature to bounds, got [1]."),
        ({"steps": {"housing": 1}}, "steps names 'housing', which is a column of labels and not a number."),
        ({"steps": {"age": 0}}, "Feature 'age': step must be a positive finite number, got 0."),
        ({"steps": {"age": 1, "aeg": 1}}, "steps names 'aeg', which is not a feature; did you mean 'age'?"),
        ({"ordered": {"houses": []}}, "ordered names 'houses', which is not a feature; did you mean 'housing'?"),
        ({"ordered": {"housing": "own"}}, "ordered['housing'] must be a list of labels, the lowest first, got 'own'."),
        ({"ordered": {"housing": []}}, "Feature 'housing': kind='ordered' needs its labels."),
        (
            {"ordered": {"housing": ["own", "rent"]}},
            "ordered['housing'] leaves out 'free', which 13 of 40 people have; list every label.",
        ),
        ({"ordered": {"region": ["N", "S"]}}, "ordered names 'region', which is a one-hot block and has no order."),
        ({"costs": "mad"}, "costs must be 'std', 'unit' or a mapping from feature to cost, got 'mad'."),
        ({"costs": 3}, "costs must be 'std', 'unit' or a mapping from feature to cost, got 3."),
        ({"costs": {"agee": 1}}, "costs names 'agee', which is not a feature; did you mean 'age'?"),
        (
            {"costs": {"age": -1}},
            "Feature 'age': cost must be a positive finite number, got -1; use change='no' for what cannot be changed.",
        ),
        (
            {"one_hot": "yes"},
            "one_hot must be 'infer', None or a mapping from the name of a block to its columns, got 'yes'.",
        ),
        (
            {"one_hot": True},
            "one_hot must be 'infer', None or a mapping from the name of a block to its columns, got True.",
        ),
        ({"one_hot": {"region": "region_N"}}, "one_hot['region'] must be a list of columns, got 'region_N'."),
        (
            {"one_hot": {"region": ["region_N", "region_W"]}},
            "one_hot['region'] names 'region_W', which is not a column; did you mean 'region_S'?",
        ),
        (
            {"one_hot": {"a": ["region_N", "region_S", "region_rest_of"], "b": ["car", "region_N"]}},
            "one_hot puts 'region_N' into both 'a' and 'b'; keep one of them.",
        ),
        (
            {"one_hot": {"age": ["region_N", "region_S", "region_rest_of"]}},
            "one_hot calls a block 'age', which is the name of a column; use another name.",
        ),
        ({"one_hot": {"a": []}}, "Feature 'a': kind='one_hot' needs its labels."),
        ({"max_percentiles": 1}, "max_percentiles must be a whole number of at least 2, got 1."),
        ({"max_percentiles": 10.5}, "max_percentiles must be a whole number of at least 2, got 10.5."),
        (
            {"links": [Link("age", "wealth", 1)]},
            "The action set has no feature 'wealth'; there is 'age', 'income', 'rooms', 'car', 'member', "
            "'housing', 'skill', 'job', 'region'.",
        ),
    ],
)
def test_what_is_refused_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ActionSet.from_frame(people(), **arguments)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (pd.DataFrame({"a": []}), "X has no people, and an action set is inferred from them; pass at least one row."),
        (np.zeros(3), "X must have two dimensions, one row per person, got shape (3,)."),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            "X has more than one column 'a'; give every column a name of its own.",
        ),
        (
            pd.DataFrame([[1, 2]], columns=[1, "1"]),
            "X has more than one column '1'; give every column a name of its own.",
        ),
    ],
)
def test_tables_that_are_refused(X, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ActionSet.from_frame(X)
    assert str(caught.value) == sentence


def test_a_block_that_is_none_is_refused():
    with pytest.raises(ValueError, match="The one-hot block 'a' must have exactly one 1 among its 2 columns"):
        ActionSet.from_frame(people(), one_hot={"a": ["region_N", "car"]})


# --- where people stand ----------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.integers(2, 12),
)
def test_ranks_are_mid_ranks_among_all_people(values, most):
    percentiles = only(pd.DataFrame({"a": np.array(values, dtype=float)}), max_percentiles=most).percentiles
    assert len(percentiles.values) <= most or len(percentiles.values) == len(set(values)) <= most
    assert set(percentiles.values) <= {float(value) for value in values}
    assert (percentiles.values[0], percentiles.values[-1]) == (min(values), max(values))
    expected = [percentileofscore(values, value, kind="mean") / 100 for value in percentiles.values]
    np.testing.assert_allclose(percentiles.ranks, expected, rtol=1e-12)
    assert (np.diff(percentiles.ranks) > 0).all()
    assert 0 < percentiles.ranks[0] <= percentiles.ranks[-1] < 1


def test_few_values_are_all_kept_and_many_are_spread_evenly():
    few = only(pd.DataFrame({"a": [3, 1, 2, 2]})).percentiles
    assert few.values == (1, 2, 3)
    assert few.ranks == (0.125, 0.5, 0.875)
    many = only(pd.DataFrame({"a": np.random.default_rng(0).normal(size=5000)}), max_percentiles=11).percentiles
    assert len(many.values) == 11
    np.testing.assert_allclose(many.ranks, np.linspace(0, 1, 11), atol=2e-4)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.booleans())
def test_ordered_labels_have_increasing_ranks_also_where_nobody_is(codes, listed):
    labels = [f"level {k}" for k in range(6)]
    values = [labels[code] for code in codes]
    if listed:
        feature = only(pd.DataFrame({"a": pd.Series(values, dtype=object)}), ordered={"a": labels})
    else:
        feature = only(pd.DataFrame({"a": pd.Categorical(values, categories=labels, ordered=True)}))
    ranks = feature.percentiles.ranks
    assert feature.percentiles.values == (0, 1, 2, 3, 4, 5)
    assert (np.diff(ranks) > 0).all()
    assert 0 < min(ranks) <= max(ranks) < 1
    for code in set(codes):
        assert ranks[code] == pytest.approx(percentileofscore(codes, code, kind="mean") / 100)


def test_labels_have_shares_and_nobody_is_half_a_person():
    feature = only(pd.DataFrame({"a": pd.Categorical(["x", "x", "y", "x"], categories=["x", "y", "z"])}))
    assert feature.percentiles.values == (0, 1, 2)
    assert feature.percentiles.ranks == (0.75, 0.25, 0.125)
    block = only(pd.DataFrame({"a_x": [1, 1, 0, 1], "a_y": [0, 0, 1, 0], "a_z": [0, 0, 0, 0]}))
    assert block.percentiles == feature.percentiles


# --- kinds of tables -------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_polars_pandas_and_arrays_say_the_same(data):
    n = data.draw(st.integers(1, 12))
    columns = {
        "x0": data.draw(st.lists(st.floats(-100, 100), min_size=n, max_size=n)),
        "x1": [float(v) for v in data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))],
        "x2": [float(v) for v in data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))],
    }
    frame = pd.DataFrame(columns)
    expected = ActionSet.from_frame(frame)
    assert ActionSet.from_frame(pl.DataFrame(columns)) == expected
    assert ActionSet.from_frame(frame.to_numpy()) == expected
    assert ActionSet.from_frame(frame.to_numpy().astype(object)) == expected
    np.testing.assert_array_equal(expected.encode(frame.to_numpy()), expected.encode(frame))
    np.testing.assert_array_equal(expected.encode(pl.DataFrame(columns)), expected.encode(frame))


def test_words_and_gaps_in_polars_and_arrays_say_the_same():
    columns = {"n": [1, None, 3], "w": ["b", None, "a"], "t": [True, False, None], "f": [0.5, 1.5, None]}
    frame = pd.DataFrame(columns)
    assert ActionSet.from_frame(pl.DataFrame(columns)) == ActionSet.from_frame(frame)
    named = ActionSet.from_frame(np.array([list(row) for row in zip(*columns.values(), strict=True)], dtype=object))
    assert [feature.name for feature in named] == ["x0", "x1", "x2", "x3"]
    for theirs, ours in zip(named, ActionSet.from_frame(frame), strict=True):
        assert (theirs.kind, theirs.labels, theirs.percentiles) == (ours.kind, ours.labels, ours.percentiles)


def test_the_table_is_left_alone():
    X = people()
    before = X.copy(deep=True)
    ActionSet.from_frame(X, immutable=["age"])
    pd.testing.assert_frame_equal(X, before)
