"""Action sets and people as hypothesis draws them."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from equirecourse.actions import ActionSet, Condition, Feature, Link, Percentiles, Rule

NASTY = [
    "a.b",
    'say "hi"',
    "<img src=x>",
    "naïve ☃",
    "it's",
    "times in arrears",
    "a == b",
    "x changes",
    "no",
    " y ",
    "",
]
names = st.one_of(st.sampled_from(NASTY), st.text(max_size=8))
finite = st.floats(allow_nan=False, allow_infinity=False)
label = st.one_of(
    st.text(max_size=6), st.sampled_from(["yes", "no", "1", "null", "2020-01-01"]), st.integers(), finite, st.booleans()
)
label_lists = st.lists(label, min_size=1, max_size=5, unique_by=lambda one: one)


@st.composite
def percentiles(draw, feature):
    """Ranks that fit a feature, or none."""
    if draw(st.booleans()):
        return None
    if feature.kind in ("labels", "one_hot"):
        size = len(feature.labels)
        shares = draw(st.lists(st.floats(1e-9, 1), min_size=size, max_size=size))
        return Percentiles(tuple(range(size)), tuple(shares))
    values = sorted(draw(st.lists(finite, min_size=1, max_size=5, unique=True)))
    ranks = sorted(draw(st.lists(st.floats(1e-9, 1 - 1e-9), min_size=len(values), max_size=len(values))))
    return Percentiles(tuple(values), tuple(ranks))


@st.composite
def features(draw, name):
    """Any feature of that name."""
    kind = draw(st.sampled_from(["number", "ordered", "labels", "one_hot"]))
    ways = ["any", "no", "increase", "decrease"] if kind in ("number", "ordered") else ["any", "no"]
    chosen = {"kind": kind, "change": draw(st.sampled_from(ways)), "cost": draw(st.floats(1e-300, 1e300))}
    if kind == "number":
        low, high = sorted(draw(st.tuples(finite, finite)))
        chosen |= {"low": low} if draw(st.booleans()) else {}
        chosen |= {"high": high} if draw(st.booleans()) else {}
        chosen["step"] = draw(st.none() | st.floats(1e-6, 1e6))
    else:
        labels = draw(label_lists)
        chosen["labels"] = labels
        if draw(st.booleans()):
            chosen["allowed"] = draw(st.lists(st.sampled_from(labels), min_size=1, unique_by=lambda one: one))
        if kind == "one_hot":
            chosen["columns"] = [f"{name}={place}" for place in range(len(labels))]
    feature = Feature(name, **chosen)
    return Feature(name, **chosen, percentiles=draw(percentiles(feature)))


@st.composite
def conditions(draw, feature):
    """Any condition on a feature."""
    ops = ["==", "!=", "in", "changes", "stays"]
    ops += ["<", "<=", ">", ">=", "increases", "decreases"] if feature.has_order else []
    op = draw(st.sampled_from(ops))
    if op in ("changes", "stays", "increases", "decreases"):
        return Condition(feature.name, op)
    value = finite if feature.is_number else st.sampled_from(feature.labels)
    return Condition(feature.name, op, draw(st.lists(value, min_size=1, max_size=3) if op == "in" else value))


@st.composite
def action_sets(draw):
    """Any action set."""
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    made = [draw(features(name)) for name in chosen]
    columns = [column for feature in made for column in feature.table_columns]
    made = made if len(set(columns)) == len(columns) else made[:1]
    numbers = [feature.name for feature in made if feature.is_number]
    links = [Link(numbers[0], target, draw(finite)) for target in numbers[1:] if draw(st.booleans())]
    rules = [
        Rule(draw(conditions(draw(st.sampled_from(made)))), draw(conditions(draw(st.sampled_from(made)))))
        for _ in range(draw(st.integers(0, 2)))
    ]
    try:
        return ActionSet(made, links=links, rules=rules, notes=[f"{chosen[0]}: a note"])
    except ValueError:  # rules that contradict each other, or twice the same
        return ActionSet(made, links=links)


# --- small action sets in which all arithmetic is exact, and people in them ------------------------------------------

halves = st.integers(-6, 14).map(lambda twice: twice / 2)


@st.composite
def small_features(draw, name, kind):
    ways = ["any", "any", "no", "increase", "decrease"] if kind in ("number", "ordered") else ["any", "any", "no"]
    change = draw(st.sampled_from(ways))
    if kind == "number":
        low, high = draw(st.sampled_from([(-np.inf, np.inf), (0, 4), (1, np.inf), (-np.inf, 3), (2, 2)]))
        step = draw(st.sampled_from([None, 1, 0.5, 2]))
        return Feature(name, change=change, low=low, high=high, step=step)
    labels = ("a", "b", "c")
    allowed = draw(st.sampled_from([None, None, ("a",), ("b", "c")]))
    columns = tuple(f"{name}_{label}" for label in labels) if kind == "one_hot" else ()
    return Feature(name, kind=kind, change=change, labels=labels, allowed=allowed, columns=columns)


@st.composite
def small_conditions(draw, feature):
    ops = ["==", "!=", "in", "changes", "stays"]
    ops += ["<", "<=", ">", ">=", "increases", "decreases"] if feature.has_order else []
    op = draw(st.sampled_from(ops))
    if op in ("changes", "stays", "increases", "decreases"):
        return Condition(feature.name, op)
    value = st.integers(0, 4) if feature.is_number else st.sampled_from(feature.labels)
    return Condition(feature.name, op, draw(st.lists(value, min_size=1, max_size=2) if op == "in" else value))


@st.composite
def small_action_sets(draw, *, links=True):
    """Two numbers and three kinds of labels; contradictory rules are left out."""
    kinds = {"m": "number", "n": "number", "o": "ordered", "l": "labels", "h": "one_hot"}
    made = [draw(small_features(name, kind)) for name, kind in kinds.items()]
    linked = [Link("m", "n", draw(st.sampled_from([1, -1, 0.5, 2])))] if links and draw(st.booleans()) else []
    rules = []
    for _ in range(draw(st.integers(0, 2))):
        when, then = (draw(small_conditions(draw(st.sampled_from(made)))) for _ in range(2))
        try:
            ActionSet(made, links=linked, rules=[*rules, Rule(when, then)])
        except ValueError:
            continue
        rules.append(Rule(when, then))
    return ActionSet(made, links=linked, rules=rules)


@st.composite
def people(draw, actions):
    """One person as the value of each feature; None is missing, "?" a label that is not listed."""
    return {
        feature.name: draw(
            (halves | st.none()) if feature.is_number
            else st.sampled_from(feature.labels if feature.kind == "one_hot" else (*feature.labels, "?", None))
        )
        for feature in actions
    }  # fmt: skip


@st.composite
def moves(draw, actions):
    """A person before and after; most features stay."""
    before, new = draw(people(actions)), draw(people(actions))
    return before, {name: new[name] if draw(st.integers(0, 2)) == 0 else value for name, value in before.items()}


def table_of(actions, persons):
    """People as a table."""
    columns = {}
    for feature in actions:
        values = [person[feature.name] for person in persons]
        if feature.is_number:
            columns[feature.name] = [np.nan if value is None else value for value in values]
        elif feature.kind == "one_hot":
            for name, one in zip(feature.columns, feature.labels, strict=True):
                columns[name] = [int(value == one) for value in values]
        else:
            columns[feature.name] = pd.Series(values, dtype=object)
    return pd.DataFrame(columns)
