"""Conditions, links and rules: their text, their truth, and rules that cannot be kept."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.actions.strategies import conditions, features, names, small_conditions, small_features

from equirecourse.actions import ActionSet, Condition, Feature, Link, Rule


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("age >= 18", Condition("age", ">=", 18)),
        ("age>=18", Condition("age", ">=", 18)),
        ("  age  <  -1.5 ", Condition("age", "<", -1.5)),
        ("housing == 'own'", Condition("housing", "==", "own")),
        ("housing == own", Condition("housing", "==", "own")),
        ("savings == <100 DM", Condition("savings", "==", "<100 DM")),
        ("housing in ['own', 'rent']", Condition("housing", "in", ("own", "rent"))),
        ("housing in('own', 'rent')", Condition("housing", "in", ("own", "rent"))),
        ("flag != True", Condition("flag", "!=", True)),
        ("years in job changes", Condition("years in job", "changes")),
        ("'years in job' <= 3", Condition("years in job", "<=", 3)),
        ('"it\'s" stays', Condition("it's", "stays")),
        ("pattern == '\\d'", Condition("pattern", "==", "\\d")),
    ],
)
def test_conditions_are_read_as_people_write_them(text, condition):
    assert Condition.parse(text) == condition
    assert Condition.parse(condition) is condition


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_text_of_a_condition_says_all_of_it(data):
    condition = data.draw(conditions(data.draw(features(data.draw(names)))))
    assert Condition.parse(str(condition)) == condition


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Condition(3, "==", 1), "A condition speaks of a feature by name, got 3."),
        (
            lambda: Condition("a", "~", 1),
            "A condition on 'a' must use one of ==, !=, <=, >=, <, >, in, changes, stays, increases, decreases,"
            " got '~'.",
        ),
        (lambda: Condition("a", "changes", 1), "'a changes' takes no value, got 1."),
        (lambda: Condition("a", ">="), "'a >=' needs one value to compare with, got None."),
        (lambda: Condition("a", "==", [1, 2]), "'a ==' needs one value to compare with, got [1, 2]."),
        (lambda: Condition("a", "in", "own"), "'a in' needs a list of values such as ['a', 'b'], got 'own'."),
        (lambda: Condition("a", "in", []), "'a in' needs a list of values such as ['a', 'b'], got []."),
        (
            lambda: Condition.parse("housing"),
            'A condition reads like "age >= 18", "housing == \'own\'" or "job changes", got \'housing\'.',
        ),
        (
            lambda: Condition.parse(5),
            'A condition reads like "age >= 18", "housing == \'own\'" or "job changes", got 5.',
        ),
        (
            lambda: Rule("age", "b == 1"),
            'A condition reads like "age >= 18", "housing == \'own\'" or "job changes", got \'age\'.',
        ),
        (lambda: Link("a", "a", 1), "A link carries one feature along with another, got 'a' for both."),
        (lambda: Link("a", 3, 1), "A link joins two features by name, got 3."),
        (lambda: Link("a", "b", "fast"), "The link from 'a' to 'b': rate must be a finite number, got 'fast'."),
        (lambda: Link("a", "b", np.nan), "The link from 'a' to 'b': rate must be a finite number, got nan."),
    ],
)
def test_what_conditions_rules_and_links_refuse_is_one_sentence(make, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert str(caught.value) == sentence


def test_values_of_a_set_have_the_same_order_in_every_run():
    assert Condition("a", "in", {"c", "a", "b"}).value == ("a", "b", "c")


def test_conditions_are_true_of_values_after_the_change():
    number = Feature("n")
    ends = [1.0, 2.0, 3.0, np.nan]
    for text, true in {
        "n == 2": [0, 1, 0, 0],
        "n != 2": [1, 0, 1, 1],
        "n <= 2": [1, 1, 0, 0],
        "n >= 2": [0, 1, 1, 0],
        "n < 2": [1, 0, 0, 0],
        "n > 2": [0, 0, 1, 0],
        "n in [1, 3]": [1, 0, 1, 0],
        "n changes": [1, 0, 1, 0],
        "n stays": [0, 1, 0, 1],
        "n increases": [0, 0, 1, 0],
        "n decreases": [1, 0, 0, 0],
    }.items():
        assert Condition.parse(text).holds(number, [2.0, 2.0, 2.0, np.nan], ends).tolist() == [bool(t) for t in true], (
            text
        )


def test_a_label_that_is_not_listed_is_not_the_lowest():
    ordered = Feature("o", kind="ordered", labels=("a", "b", "c"))
    codes = [-1, 0, 1, 2]
    assert Condition("o", "<=", "b").holds(ordered, codes, codes).tolist() == [False, True, True, False]
    assert Condition("o", "<", "b").holds(ordered, codes, codes).tolist() == [False, True, False, False]
    assert Condition("o", ">=", "b").holds(ordered, codes, codes).tolist() == [False, False, True, True]
    assert Condition("o", "!=", "b").holds(ordered, codes, codes).tolist() == [True, True, False, True]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_between_cuts_nothing_turns(data):
    number = Feature("n")
    condition = data.draw(small_conditions(number))
    start = data.draw(st.floats(-1, 5))
    cuts = sorted(condition.cuts(number, start))
    a, b = sorted(data.draw(st.tuples(st.floats(-2, 6), st.floats(-2, 6))))
    if not any(a < cut <= b for cut in cuts):
        truth = condition.holds(number, [start, start], [a, b])
        assert truth[0] == truth[1]


# --- rules that cannot be kept ---------------------------------------------------------------------------------------

NUMBER, OTHER = Feature("a", low=0, high=10, step=1), Feature("b", low=0, high=100)
HOUSING = Feature("housing", kind="labels", labels=("own", "rent"), allowed=("rent",))


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            [("a == 1", "b == 1"), ("a == 1", "b == 2")],
            "The rules 'if a == 1 then b == 1' and 'if a == 1 then b == 2' contradict each other: 'a == 1' could never "
            "be true; correct or drop one of them.",
        ),
        (
            [("housing == 'own'", "a >= 3"), ("a >= 3", "b >= 5"), ("b > 4", "housing != 'own'"), ("a == 7", "b >= 0")],
            "The rules 'if housing == 'own' then a >= 3', 'if a >= 3 then b >= 5' and 'if b > 4 then housing != 'own'' "
            "contradict each other: 'housing == 'own'' could never be true; correct or drop one of them.",
        ),
        (
            [("a changes", "a stays")],
            "The rule 'if a changes then a stays' can never be kept: no allowed change makes both 'a changes' and "
            "'a stays' true; correct the rule, or what its features are allowed.",
        ),
        (
            [("b changes", "b >= 200")],
            "The rule 'if b changes then b >= 200' can never be kept: no allowed change makes both 'b changes' and "
            "'b >= 200' true; correct the rule, or what its features are allowed.",
        ),
        (
            [("housing changes", "housing == 'own'")],
            "The rule 'if housing changes then housing == 'own'' can never be kept: no allowed change makes both "
            "'housing changes' and 'housing == 'own'' true; correct the rule, or what its features are allowed.",
        ),
        (
            [("a changes", "a in [2.5, 3.5]")],
            "The rule 'if a changes then a in [2.5, 3.5]' can never be kept: no allowed change makes both 'a changes' "
            "and 'a in [2.5, 3.5]' true; correct the rule, or what its features are allowed.",
        ),
    ],
)
def test_contradictory_rules_are_refused_by_name(rules, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ActionSet([NUMBER, OTHER, HOUSING], rules=[Rule(*rule) for rule in rules])
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "rules",
    [
        # Only people who are there already can keep it, and they may stay where they are.
        [("a == 1", "b >= 200")],
        [("a == 1", "housing == 'own'")],
        # What overlaps is forbidden, what remains is not.
        [("a >= 3", "b >= 5"), ("a <= 5", "b <= 2")],
        [("a >= 3", "b >= 5"), ("housing == 'own'", "b <= 2")],
        # A condition that is never true asks for nothing.
        [("b == 200", "b stays")],
    ],
)
def test_rules_that_somebody_can_keep_are_not_refused(rules):
    assert len(ActionSet([NUMBER, OTHER, HOUSING], rules=[Rule(*rule) for rule in rules]).rules) == len(rules)


def test_a_link_may_move_what_cannot_move_by_itself():
    frozen = Feature("age", change="no")
    rule = Rule("a changes", "age increases")
    with pytest.raises(ValueError, match="can never be kept"):
        ActionSet([NUMBER, frozen], rules=[rule])
    assert ActionSet([NUMBER, frozen], links=[Link("a", "age", 1)], rules=[rule]).rules == (rule,)


def test_very_many_combinations_are_not_examined():
    several = [Feature(f"f{k}") for k in range(9)]
    rules = [Rule(f"f{k} == {v}", f"f{k + 1} == {v}") for k in range(8) for v in range(4)]
    contradiction = [Rule("f0 == 9", "f1 == 1"), Rule("f0 == 9", "f1 == 2")]
    assert len(ActionSet(several, rules=[*rules, *contradiction]).rules) == 34
    with pytest.raises(ValueError, match="contradict each other"):
        ActionSet(several[:2], rules=contradiction)


GRID = [twice / 2 for twice in range(-8, 17)]  # beyond every limit and value by more than a step


def possible_moves(feature):
    """Everything that can happen to a feature, tried one by one."""
    if feature.is_number:
        for end in GRID:
            yield end, end
            inside = feature.low <= end <= feature.high and (feature.step is None or (end / feature.step).is_integer())
            for start in GRID:
                right_way = {"any": True, "no": False, "increase": end > start, "decrease": end < start}[feature.change]
                if start != end and inside and right_way:
                    yield start, end
        return
    for start, end in itertools.product(range(len(feature.labels)), repeat=2):
        right_way = {"any": True, "no": False, "increase": end > start, "decrease": end < start}[feature.change]
        if start == end or (feature.reachable[end] and right_way):
            yield start, end


def test_a_step_that_ends_just_past_a_strict_comparison_does_not_keep_the_rule():
    m = Feature("m", low=1.0, step=2.0)  # 2, 4, 6, ...
    with pytest.raises(ValueError, match="can never be kept"):
        ActionSet([m], rules=[Rule("m increases", "m < 2")])
    assert ActionSet([m], rules=[Rule("m increases", "m <= 2")]).rules


def test_limits_at_the_largest_number_overflow_nowhere():
    lowest = Feature("m", low=-np.finfo(float).max, step=1.0)
    assert ActionSet([lowest, Feature("n")], rules=[Rule("m < 0", "n increases")]).rules


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_exactly_the_rules_that_nobody_can_keep_are_refused(data):
    made = [
        data.draw(small_features(name, kind)) for name, kind in [("m", "number"), ("o", "ordered"), ("l", "labels")]
    ]
    chosen = [made[0], data.draw(st.sampled_from(made[1:]))]
    rules = []
    for _ in range(data.draw(st.integers(1, 3))):
        rule = Rule(*(data.draw(small_conditions(data.draw(st.sampled_from(chosen)))) for _ in range(2)))
        rules += [rule] if rule not in rules else []
    worlds = list(itertools.product(*(list(possible_moves(feature)) for feature in chosen)))
    columns = {feature.name: np.array([world[k] for world in worlds]).T for k, feature in enumerate(chosen)}

    def true(condition):
        feature = next(feature for feature in chosen if feature.name == condition.feature)
        return condition.holds(feature, *columns[condition.feature])

    kept = np.logical_and.reduce([~true(rule.when) | true(rule.then) for rule in rules])
    contradictory = any(true(rule.when).any() and not (true(rule.when) & kept).any() for rule in rules)
    if contradictory:
        with pytest.raises(ValueError, match=r"contradict each other|can never be kept"):
            ActionSet(chosen, rules=rules)
    else:
        assert ActionSet(chosen, rules=rules).rules == tuple(rules)
