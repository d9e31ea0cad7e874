"""The action set: people in and out of it, and what they may do."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.actions.strategies import moves, people, small_action_sets, table_of

from equirecourse.actions import NORMS, ActionSet, Feature, Link, Percentiles, Rule, total_cost

AGE, INCOME = Feature("age", change="no"), Feature("income", low=0, high=100)
HOUSING = Feature("housing", kind="labels", labels=("rent", "own"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"features": AGE},
            "features must be a list of Feature, got Feature(name='age', kind='number', change='no', low=-inf,....",
        ),
        ({"features": ["age"]}, "features must be a list of Feature, and holds 'age'."),
        ({"features": None}, "features must be a list of Feature, got None."),
        (
            {"links": Link("age", "income", 1)},
            "links must be a list of Link, got Link(source='age', target='income', rate=1.0).",
        ),
        ({"links": [("age", "income", 1)]}, "links must be a list of Link, and holds ('age', 'income', 1)."),
        ({"rules": ["if a then b"]}, "rules must be a list of Rule, and holds 'if a then b'."),
        ({"notes": "one note"}, "notes must be a list of str, got 'one note'."),
        ({"features": [AGE, AGE]}, "The action set speaks of 'age' more than once; keep one of them."),
        (
            {"features": [AGE, Feature("b", kind="one_hot", columns=("age", "c"))]},
            "The action set speaks of 'age' more than once; keep one of them.",
        ),
        ({"links": [Link("age", "incom", 1)]}, "The action set has no feature 'incom'; did you mean 'income'?"),
        ({"links": [Link("age", "housing", 1)]}, "A link joins two numbers, and 'housing' has labels."),
        (
            {"features": [AGE, INCOME, Feature("c")], "links": [Link("age", "income", 1), Link("income", "c", 1)]},
            "'income' carries 'c' along and is carried along itself; link the first feature of the chain with "
            "each of the others instead.",
        ),
        (
            {"links": [Link("age", "income", 1), Link("age", "income", 2)]},
            "'age' is linked with 'income' twice; add up the two rates.",
        ),
        (
            {"rules": [Rule("wealth >= 1", "age >= 1")]},
            "The action set has no feature 'wealth'; there is 'age', 'income', 'housing'.",
        ),
        (
            {"rules": [Rule("age >= 1", "age >= 1")] * 2},
            "The rule 'if age >= 1 then age >= 1' is listed twice; keep one of them.",
        ),
        (
            {"rules": [Rule("housing >= 'own'", "age >= 1")]},
            "The condition 'housing >= 'own'' needs an order, and 'housing' has none; use == or in.",
        ),
        (
            {"rules": [Rule("housing increases", "age >= 1")]},
            "The condition 'housing increases' needs an order, and 'housing' has none; use == or in.",
        ),
        (
            {"rules": [Rule("housing == 'free'", "age >= 1")]},
            "The condition 'housing == 'free'' names 'free', which is not one of the labels ['rent', 'own'] of "
            "'housing'.",
        ),
        (
            {"rules": [Rule("age >= 1", "income == 'high'")]},
            "The condition 'income == 'high'' compares a number with 'high'; write a number instead.",
        ),
    ],
)
def test_what_an_action_set_refuses_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ActionSet(**{"features": [AGE, INCOME, HOUSING], **arguments})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda a: a["agee"], "The action set has no feature 'agee'; did you mean 'age'?"),
        (lambda a: a["zzz"], "The action set has no feature 'zzz'; there is 'age', 'income', 'housing'."),
        (lambda a: a[3], "The action set has no feature 3; there is 'age', 'income', 'housing'."),
        (lambda a: a.replace("age", chnge="no"), "A feature has no 'chnge'; did you mean 'change'?"),
        (
            lambda a: a.costs("l3", np.zeros((1, 3)), np.zeros((1, 3))),
            "norm must be one of 'l1', 'l2', 'linf', 'max_shift', 'log_shift', got 'l3'.",
        ),
        (
            lambda a: total_cost("euclid", np.zeros((1, 3))),
            "norm must be one of 'l1', 'l2', 'linf', 'max_shift', 'log_shift', got 'euclid'.",
        ),
        (
            lambda a: a.encode(pd.DataFrame({"age": [1], "Income": [1]})),
            "The action set speaks of 'income', which is not among the columns ['age', 'Income']; check its spelling.",
        ),
        (
            lambda a: a.encode(pd.DataFrame({"age": [1], "income": ["much"], "housing": ["own"]})),
            "Feature 'income' is a number in the action set and holds 'much'; give it kind='labels' or 'ordered'.",
        ),
        (lambda a: a.encode(np.zeros(3)), "X must have two dimensions, one row per person, got shape (3,)."),
        (
            lambda a: a.encode(pd.DataFrame([[1, 2]], columns=["age", "age"])),
            "X has more than one column 'age'; give every column a name of its own.",
        ),
        (
            lambda a: a.violations(np.zeros((1, 3)), np.zeros((2, 3))),
            "X has 1 people and X_new has 2; pass the same people twice.",
        ),
        (
            lambda a: a.violations(
                pd.DataFrame({"age": [1], "income": [1], "housing": ["own"], "x": [1]}), np.zeros((1, 3))
            ),
            "X_new has no column 'x'; pass the same people with the same columns.",
        ),
    ],
)
def test_what_an_action_set_cannot_answer_is_one_sentence(ask, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ask(ActionSet([AGE, INCOME, HOUSING]))
    assert str(caught.value) == sentence


def test_a_block_that_is_none_is_refused():
    actions = ActionSet([Feature("b", kind="one_hot", columns=("x", "y"))])
    with pytest.raises(
        ValueError, match="must have exactly one 1 among its 2 columns, and 1 of 2 people have not, first row 1"
    ):
        actions.encode(pd.DataFrame({"x": [1, 1], "y": [0, 1]}))
    with pytest.raises(ValueError, match="must hold 0 and 1, and one of its columns holds text"):
        actions.encode(pd.DataFrame({"x": ["a"], "y": [0]}))


def test_it_is_a_collection_of_features():
    actions = ActionSet([AGE, INCOME])
    assert len(actions) == 2
    assert list(actions) == [AGE, INCOME]
    assert actions["income"] is INCOME
    assert "age" in actions
    assert AGE in actions
    assert "wealth" not in actions
    assert hash(actions) == hash(ActionSet([AGE, INCOME], notes=["other"]))
    assert actions == ActionSet((AGE, INCOME), notes=["other"])


def test_replace_leaves_the_original_alone():
    actions = ActionSet([AGE, INCOME], notes=["age: a note", "income: numbers"])
    changed = actions.replace("income", change="increase", low=5)
    assert (changed["income"].change, changed["income"].low, actions["income"].change) == ("increase", 5, "any")
    assert changed.notes == ("age: a note", "income: numbers; set by hand: change, low")
    assert actions.notes[1] == "income: numbers"


# --- people ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_decoding_what_was_encoded_gives_the_change_and_nothing_else(data):
    actions = data.draw(small_action_sets())
    persons = [data.draw(people(actions)) for _ in range(3)]
    table = table_of(actions, persons)
    start = actions.encode(table)
    assert actions.decode(table, start, start).equals(table)
    own = start.copy()
    for j, feature in enumerate(actions):
        for i in range(3):
            if not (np.isnan(start[i, j]) or (start[i, j] < 0 and not feature.is_number)) and data.draw(st.booleans()):
                values = st.integers(-6, 14).map(lambda v: v / 2) if feature.is_number else st.integers(0, 2)
                own[i, j] = data.draw(values)
    after = actions.decode(table, start, own)
    end = actions.carry(start, own)
    np.testing.assert_array_equal(actions.encode(after), end)
    for j, feature in enumerate(actions):
        stays = (start[:, j] == end[:, j]) | np.isnan(start[:, j])
        for name in feature.table_columns:
            assert after.loc[stays, name].astype(object).equals(table.loc[stays, name].astype(object))


def test_arrays_have_their_columns_in_the_order_of_the_features():
    actions = ActionSet([Feature("a"), Feature("b", kind="one_hot", columns=("b_x", "b_y"))])
    people = np.array([[3.0, 0.0, 1.0]])
    assert actions.encode(people).tolist() == [[3.0, 1.0]]
    assert actions.encode(sparse.csr_array(people)).tolist() == [[3.0, 1.0]]


def test_columns_of_an_array_are_known_by_place_also_around_a_block():
    people = np.array([[1.0, 7.5, 0.0], [0.0, 8.5, 1.0]])
    actions = ActionSet.from_frame(people, one_hot={"b": ["x0", "x2"]})
    assert actions.columns == ["x0", "x2", "x1"]
    assert actions.encode(people).tolist() == [[0.0, 7.5], [1.0, 8.5]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "float64", "Int64", "object", "bool"])
def test_changed_numbers_survive_every_kind_of_column(dtype):
    table = pd.DataFrame({"n": pd.Series([1, 0], dtype=dtype)})
    actions = ActionSet([Feature("n")])
    start = actions.encode(table)
    for value in (200.0, -3.0, 2.5):
        after = actions.decode(table, start, np.array([[value], [0.0]]))
        assert after["n"].astype(float).tolist() == [value, 0.0]
    if dtype in ("int8", "int64"):
        assert actions.decode(table, start, np.array([[7.0], [0.0]]))["n"].dtype == dtype


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_changed_labels_survive_every_kind_of_column(dtype):
    table = pd.DataFrame({"housing": pd.Series(["rent", "rent", "free", None], dtype=dtype)})
    actions = ActionSet([HOUSING])
    start = actions.encode(table)
    assert start[:, 0].tolist() == [0, 0, -1, -1]
    own = np.array([[1.0], [0.0], [-1.0], [-1.0]])
    after = actions.decode(table, start, own)["housing"]
    assert after.iloc[:3].tolist() == ["own", "rent", "free"]
    assert pd.isna(after.iloc[3])
    assert after.dtype == ("category" if dtype == "category" else table["housing"].dtype)


def test_labels_that_a_column_could_not_hold_so_far_make_it_a_column_of_objects():
    table = pd.DataFrame({"n": [1, 2]})
    actions = ActionSet([Feature("n", kind="labels", labels=(1, 2, "many"))])
    after = actions.decode(table, actions.encode(table), np.array([[2.0], [1.0]]))
    assert after["n"].tolist() == ["many", 2]


def test_truth_values_are_labels_and_stay_truth_values():
    table = pd.DataFrame({"flag": [False, True]})
    actions = ActionSet.from_frame(table)
    assert actions["flag"].labels == (False, True)
    after = actions.decode(table, actions.encode(table), np.array([[1.0], [1.0]]))
    assert after["flag"].dtype == bool
    assert after["flag"].tolist() == [True, True]


def test_people_may_be_repeated():
    table = pd.DataFrame({"age": [30, 40], "income": [5.0, 6.0], "housing": ["own", "rent"]}, index=["p", "q"])
    actions = ActionSet([AGE, INCOME, HOUSING])
    twice = table.iloc[[0, 0, 1]]
    start = actions.encode(twice)
    own = start.copy()
    own[:, 1] = [7, 8, 9]
    after = actions.decode(twice, start, own)
    assert after["income"].tolist() == [7, 8, 9]
    assert list(after.index) == ["p", "p", "q"]


def test_reach_is_limits_and_direction():
    actions = ActionSet(
        [
            Feature("up", change="increase", low=0, high=10),
            Feature("down", change="decrease", low=0, high=10),
            Feature("free"),
            AGE,
            Feature("o", kind="ordered", labels=("a", "b", "c"), change="increase"),
            Feature("l", kind="labels", labels=("a", "b", "c")),
        ]
    )
    start = np.array([[4.0, 4.0, 4.0, 4.0, 1.0, 1.0], [12.0, -1.0, np.nan, 4.0, -1.0, -1.0]])
    low, high = actions.reach(start)
    inf = np.inf
    assert low.tolist() == [[4, 0, -inf, inf, 1, 0], [12, 0, inf, inf, inf, inf]]
    assert high.tolist() == [[10, 4, inf, -inf, 2, 2], [10, -1, -inf, -inf, -inf, -inf]]


@pytest.mark.parametrize("norm", NORMS)
def test_costs_add_up_as_the_norm_says(norm):
    ranks = Percentiles((0, 10), (0.2, 0.8))
    actions = ActionSet([Feature("a", cost=2, percentiles=ranks), Feature("b", percentiles=ranks)])
    parts = actions.costs(norm, np.array([[0.0, 0.0]]), np.array([[10.0, 5.0]]))
    expected = {
        "l1": 2 * 10 + 5,
        "l2": np.hypot(20, 5),
        "linf": 20,
        "max_shift": 0.6,
        "log_shift": np.log(0.8 / 0.2) + np.log(0.8 / 0.5),
    }
    np.testing.assert_allclose(total_cost(norm, parts), [expected[norm]])
    assert total_cost(norm, np.zeros((2, 0))).tolist() == [0.0, 0.0]
    assert ActionSet([]).costs(norm, np.zeros((2, 0)), np.zeros((2, 0))).shape == (2, 0)


# --- is a change allowed? --------------------------------------------------------------------------------------------


def allowed(actions, before, after):
    """The definition, for one person, in values and not in codes."""
    own = dict(after)
    for link in actions.links:
        if None not in (before[link.source], after[link.source], own[link.target]):
            own[link.target] -= link.rate * (after[link.source] - before[link.source])
    for feature in actions:
        was, wants, ends = before[feature.name], own[feature.name], after[feature.name]
        if feature.is_number and not _number_may_move(feature, was, wants, ends):
            return False
        if not feature.is_number and not _label_may_move(feature, was, wants):
            return False
    return all(
        not _true(actions, rule.when, before, after) or _true(actions, rule.then, before, after)
        for rule in actions.rules
    )


def _number_may_move(feature, was, wants, ends):
    if was is None or ends is None:
        return was is None and ends is None
    inside = [feature.low <= value <= feature.high for value in (wants, ends)]
    if wants != was:
        right_way = {"any": True, "no": False, "increase": wants > was, "decrease": wants < was}[feature.change]
        if not right_way or not inside[0] or (feature.step and wants % feature.step != 0):
            return False
    return ends == was or inside[1]


def _label_may_move(feature, was, wants):
    if was == wants:
        return True
    if was not in feature.labels or wants not in feature.labels:
        return False
    if feature.allowed is not None and wants not in feature.allowed:
        return False
    rise = feature.labels.index(wants) - feature.labels.index(was)
    return {"any": True, "no": False, "increase": rise > 0, "decrease": rise < 0}[feature.change]


def _true(actions, condition, before, after):
    was, now = before[condition.feature], after[condition.feature]
    labels = actions[condition.feature].labels
    if condition.op in ("changes", "stays"):
        return (was != now) == (condition.op == "changes")
    if condition.op == "!=":
        return now != condition.value
    if now is None or now == "?":
        return False
    if condition.op in ("==", "in"):
        return now in (condition.value if condition.op == "in" else [condition.value])
    rank = (lambda value: labels.index(value)) if labels else (lambda value: value)
    if condition.op in ("increases", "decreases"):
        if was is None or was == "?":
            return False
        return rank(now) > rank(was) if condition.op == "increases" else rank(now) < rank(was)
    a, b = rank(now), rank(condition.value)
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[condition.op]


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_a_change_has_violations_exactly_if_it_is_not_allowed(data):
    actions = data.draw(small_action_sets())
    changes = [data.draw(moves(actions)) for _ in range(4)]
    before, after = (table_of(actions, side) for side in zip(*changes, strict=True))
    told = actions.violations(before, after)
    fine = [allowed(actions, *change) for change in changes]
    assert [person not in set(told["person"]) for person in range(4)] == fine, told["problem"].tolist()
    start, end = actions.encode(before), actions.encode(after)
    own = end.copy()
    for link in actions.links:
        moved = np.nan_to_num(end[:, 0] - start[:, 0])
        own[:, 1] -= link.rate * moved
    # A label that is not listed and goes missing, or the reverse, is the same −1 in the matrix.
    visible = [
        not any(was != now and {was, now} <= {"?", None} for was, now in zip(a.values(), b.values(), strict=True))
        for a, b in changes
    ]
    assert actions.respected(start, own)[visible].tolist() == np.array(fine)[visible].tolist()


@pytest.mark.parametrize(
    ("feature", "before", "after", "problem"),
    [
        (Feature("f", change="no"), 30, 20.5, "f cannot change, and went from 30 to 20.5"),
        (Feature("f", change="increase"), 1234567, 1234566, "f can only rise, and went from 1234567 to 1234566"),
        (Feature("f", change="decrease"), 1, 2, "f can only fall, and went from 1 to 2"),
        (Feature("f", step=1), 1, 2.5, "f must be a whole number, and went from 1 to 2.5"),
        (Feature("f", step=0.5), 1, 2.25, "f must be a multiple of 0.5, and went from 1 to 2.25"),
        (Feature("f", low=0, high=3), 1, 4, "f must be from 0 to 3, and went from 1 to 4"),
        (Feature("f", low=0), 1, -4, "f must be at least 0, and went from 1 to -4"),
        (Feature("f", high=0), -1, 4, "f must be at most 0, and went from -1 to 4"),
        (Feature("f", low=0), 1, np.nan, "f cannot go missing or stop being missing, and went from 1 to missing"),
        (Feature("f", low=0), np.nan, 1, "f cannot go missing or stop being missing, and went from missing to 1"),
        (
            Feature("f", kind="labels", labels=("own", "rent"), change="no"),
            "own",
            "rent",
            "f cannot change, and went from 'own' to 'rent'",
        ),
        (
            Feature("f", kind="ordered", labels=("no", "yes"), change="increase"),
            "yes",
            "no",
            "f can only rise, and went from 'yes' to 'no'",
        ),
        (
            Feature("f", kind="labels", labels=("own", "rent"), allowed=("own",)),
            "own",
            "rent",
            "f must be one of 'own', and went from 'own' to 'rent'",
        ),
        (
            Feature("f", kind="labels", labels=("own", "rent")),
            "own",
            "tent",
            "f must be one of 'own', 'rent', and went from 'own' to 'tent'",
        ),
        (
            Feature("f", kind="labels", labels=("own", "rent")),
            "own",
            None,
            "f must be one of 'own', 'rent', and went from 'own' to missing",
        ),
        (
            Feature("f", kind="labels", labels=("own", "rent")),
            "tent",
            "own",
            "f cannot change from a label that is not listed, and went from 'tent' to 'own'",
        ),
        (
            Feature("f", kind="labels", labels=("own", "rent")),
            "tent",
            "barn",
            "f cannot change from a label that is not listed, and went from 'tent' to 'barn'",
        ),
        (
            Feature("f", kind="labels", labels=(False, True), change="no"),
            False,
            True,
            "f cannot change, and went from False to True",
        ),
    ],
)
def test_violations_are_told_in_the_words_of_the_data_once(feature, before, after, problem):
    told = ActionSet([feature]).violations(pd.DataFrame({"f": [before]}), pd.DataFrame({"f": [after]}))
    assert told["problem"].tolist() == [problem]
    assert told["person"].tolist() == [0]


def test_blocks_rules_and_foreign_columns_are_told_too():
    block = Feature("b", kind="one_hot", columns=("b_x", "b_y"), labels=("x", "y"))
    actions = ActionSet([INCOME, block], rules=[Rule("b == 'y'", "income >= 50")])
    before = pd.DataFrame({"income": [10, 10], "b_x": [1, 1], "b_y": [0, 0], "other": ["p", None]})
    after = pd.DataFrame({"income": [20, 10], "b_x": [0, 1], "b_y": [1, 0], "other": ["q", None]})
    assert actions.violations(before, after).to_numpy().tolist() == [
        [0, "income breaks the rule 'if b == 'y' then income >= 50', and went from 10 to 20"],
        [0, "other is not in the action set, and changed"],
    ]
    assert actions.violations(before, before).empty


def test_no_violations_is_an_empty_frame_of_the_same_shape():
    told = ActionSet([INCOME]).violations(pd.DataFrame({"income": [1]}), pd.DataFrame({"income": [2]}))
    assert told.shape == (0, 2)
    assert told["person"].dtype == np.int64


def test_a_carried_number_that_is_moved_back_is_where_it_was():
    # And not in the last digit next to it, on the other side of a limit or of a threshold.
    actions = ActionSet([Feature("a", low=0.0), Feature("b")], links=[Link("b", "a", 1 / 3)])
    start, own = np.array([[0.0, 4.0]]), np.array([[0.5, np.nextafter(2.5, 0.0)]])
    assert own[0, 0] + (own[0, 1] - 4.0) / 3 < 0.0
    assert actions.carry(start, own)[0, 0] == 0.0
    assert actions.carry(start, np.array([[0.5, 2.5 - 1e-9]]))[0, 0] < 0.0


def test_links_carry_what_cannot_be_changed_directly():
    job = Feature("months_in_job", change="increase", step=1)
    age = Feature("age", change="no", high=65)
    actions = ActionSet([job, age], links=[Link("months_in_job", "age", 1 / 12)])
    before = pd.DataFrame({"months_in_job": [3, 3, 3], "age": [30.1, 30.1, 64.9]})
    start = actions.encode(before)
    own = start + np.array([[7.0, 0.0], [0.0, 0.0], [7.0, 0.0]])
    after = actions.decode(before, start, own)
    np.testing.assert_allclose(after["age"], [30.1 + 7 / 12, 30.1, 64.9 + 7 / 12])
    assert actions.respected(start, own).tolist() == [True, True, False]
    told = actions.violations(before, after)
    assert told["person"].tolist() == [2]
    assert told["problem"].item().startswith("age must be at most 65, and went from 64.9 to 65.48")
    assert actions.violations(before, before.assign(age=[31, 30.1, 64.9]))["problem"].tolist() == [
        "age cannot change, and went from 30.1 to 31"
    ]
    assert actions.costs("l1", start, own)[:, 1].tolist() == [0, 0, 0]


def test_whoever_starts_outside_may_stay_or_move_inside():
    actions = ActionSet(
        [INCOME, AGE, Feature("years", change="no", high=40), HOUSING], links=[Link("income", "years", 1)]
    )
    X = pd.DataFrame({"income": [-5, 50, 101.0], "age": [1, 2, 3], "years": [41, 40, np.nan], "housing": ["own"] * 3})
    outside = actions.starts_outside(X)
    assert outside.to_dict("records") == [
        {"person": 0, "feature": "income", "value": -5.0, "low": 0.0, "high": 100.0},
        {"person": 0, "feature": "years", "value": 41.0, "low": -np.inf, "high": 40.0},
        {"person": 2, "feature": "income", "value": 101.0, "low": 0.0, "high": 100.0},
    ]
    alone = ActionSet([INCOME])
    assert alone.violations([[-5.0], [101.0], [101.0]], [[-5.0], [100.0], [101.5]])["person"].tolist() == [2]
    assert alone.starts_outside([[5.0]]).shape == (0, 5)


def test_rounding_errors_are_not_outside():
    actions = ActionSet([Feature("f", low=0, high=0.3, step=0.1)])
    assert actions.starts_outside([[0.1 + 0.2]]).empty
    assert actions.violations([[0.0]], [[0.1 + 0.2]]).empty
