"""Action sets in dictionaries and files: they come back as they went, and bad ones are refused in one sentence."""

import json
import os
import stat
import tomllib
from datetime import date

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from tests.actions.strategies import action_sets

from equirecourse.actions import ActionSet, Feature, Link, Percentiles, Rule

SUFFIXES = ["toml", "yaml", "yml"]
NASTY = [
    "a.b",
    'say "hi"',
    "<img src=x>",
    "naïve ☃",
    "it's",
    "times in arrears",
    "a\nb\x00\x85\u2028",
    "no",
    "",
    "é" * 200,
]


def small():
    return ActionSet(
        [
            Feature("age", change="no", low=18, step=1),
            Feature("months", change="increase", low=0, high=0.1 + 0.2, cost=1 / 3),
            Feature("housing", kind="labels", labels=("own", "rent", "no"), allowed=("own",)),
            Feature("b", kind="one_hot", columns=("b_x", "b_y"), labels=("x", "y")),
        ],
        links=[Link("months", "age", 1 / 12)],
        rules=[Rule("housing == 'own'", "months in [1, 2.5]")],
        notes=["age: a note\nin two lines", "months is 3 for everybody", "something else"],
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(actions=action_sets())
@example(actions=small())
@example(actions=ActionSet([Feature("\x85", kind="labels", labels=("\x85", " \u2028 ", "\ufeff", "\r"))]))
def test_what_is_written_is_what_is_read(actions, tmp_path):
    assert ActionSet.from_dict(actions.to_dict()) == actions
    for suffix in ("toml", "yaml"):
        actions.write(tmp_path / f"actions.{suffix}")
        back = ActionSet.read(tmp_path / f"actions.{suffix}")
        assert back == actions
        for ours, theirs in zip(actions, back, strict=True):
            # Equal is not enough: True == 1.
            assert [type(label) for label in ours.labels] == [type(label) for label in theirs.labels]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_of_every_kind_survive(suffix, tmp_path):
    made = [
        Feature(name, kind="labels", labels=(name, "x", True, 2, 2.5), percentiles=Percentiles(range(5), [0.2] * 5))
        for name in NASTY
    ]
    actions = ActionSet(
        made,
        rules=[Rule(f"{name!r} == {name!r}", f"{name!r} stays") for name in NASTY],
        notes=[f"{n}: n" for n in NASTY],
    )
    actions.write(tmp_path / f"a.{suffix}")
    assert ActionSet.read(tmp_path / f"a.{suffix}") == actions


def test_the_dictionary_is_small_and_plain():
    content = small().to_dict()
    assert content == {
        "features": {
            "age": {"change": "no", "low": 18, "step": 1},
            "months": {"change": "increase", "low": 0, "high": 0.1 + 0.2, "cost": 1 / 3},
            "housing": {"kind": "labels", "labels": ["own", "rent", "no"], "allowed": ["own"]},
            "b": {"kind": "one_hot", "labels": ["x", "y"], "columns": ["b_x", "b_y"]},
        },
        "links": [{"source": "months", "target": "age", "rate": 1 / 12}],
        "rules": [{"if": "housing == 'own'", "then": "months in [1, 2.5]"}],
    }
    assert ActionSet.from_dict(json.loads(json.dumps(content))) == small()
    assert type(content["features"]["age"]["low"]) is int


def test_the_toml_file_explains_itself(tmp_path):
    path = tmp_path / "actions.toml"
    actions = small().replace("age", percentiles=Percentiles((1, 2), (0.25, 0.75)))
    actions.write(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# What a person can change, and what it costs")
    body = text[text.index("\n\n") + 2 :]
    assert (
        body
        == """\
# age: a note in two lines; set by hand: percentiles
[features.age]
change = "no"
low = 18
step = 1

# months is 3 for everybody
[features.months]
change = "increase"
low = 0
high = 0.30000000000000004
cost = 0.3333333333333333

[features.housing]
kind = "labels"
labels = ["own", "rent", "no"]
allowed = ["own"]

[features.b]
kind = "one_hot"
labels = ["x", "y"]
columns = ["b_x", "b_y"]

# When the source moves by 1, the target moves along by the rate, at no cost.
[[links]]
source = "months"
target = "age"
rate = 0.08333333333333333

# If the first condition holds after the change, so must the second.
[[rules]]
if = "housing == 'own'"
then = "months in [1, 2.5]"

# Where people stand, counted from data: the costs max_shift and log_shift need it. Not for editing.
[percentiles.age]
values = [1, 2]
ranks = [0.25, 0.75]
"""
    )
    assert tomllib.loads(text) == actions.to_dict()


def test_the_yaml_file_explains_itself(tmp_path):
    path = tmp_path / "actions.yaml"
    small().write(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# What a person can change, and what it costs")
    assert "YAML reads a bare yes or no as true or false" in text
    assert "  housing:\n    kind: labels\n    labels: [own, rent, 'no']\n    allowed: [own]\n" in text
    assert "links:\n- source: months\n  target: age\n" in text
    assert yaml.safe_load(text) == small().to_dict()


def test_a_set_from_data_comes_back_from_every_file(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=500), "w": rng.choice(["yes", "no"], 500), "t": rng.random(500) < 0.5})
    actions = ActionSet.from_frame(X, immutable=["w"])
    for suffix in SUFFIXES:
        actions.write(str(tmp_path / f"a.{suffix}"))
        assert ActionSet.read(str(tmp_path / f"a.{suffix}")) == actions
    assert "# w: 2 labels without an order; cannot change\n[features.w]\n" in (tmp_path / "a.toml").read_text()


def test_files_as_people_edit_them_are_read(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufefffeatures:\r\n  age:\r\n    change: no\r\n  income: {}\r\n".encode())
    assert ActionSet.read(path) == ActionSet([Feature("age", change="no"), Feature("income")])
    path = tmp_path / "a.TOML"
    path.write_bytes("\ufeff[features.age]\r\nchange = 'no'\r\n[features]\r\nincome = {}\r\n".encode())
    assert ActionSet.read(path) == ActionSet([Feature("age", change="no"), Feature("income")])


def test_an_old_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.toml"
    small().write(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no room"):
            ActionSet([Feature("x")]).write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    ActionSet([Feature("x")]).write(path)
    assert ActionSet.read(path) == ActionSet([Feature("x")])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_others_may_read_the_file_as_any_other(tmp_path):
    small().write(tmp_path / "a.toml")
    (tmp_path / "plain").write_text("x")
    assert stat.S_IMODE((tmp_path / "a.toml").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_labels_that_files_do_not_keep_are_refused(tmp_path):
    actions = ActionSet([Feature("signed", kind="labels", labels=(date(2020, 1, 1),))])
    with pytest.raises(
        ValueError, match=r"^Feature 'signed': a file holds labels that are text, numbers or true and false, got"
    ):
        actions.write(tmp_path / "a.toml")
    assert list(tmp_path.iterdir()) == []


DATE = (
    "Feature 'day': a file holds labels that are text, numbers or true and false, got datetime.date(2020, 1, 1); "
    "put it in quotes."
)
KEYS = "kind, change, low, high, step, labels, allowed, columns, cost"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([], "An action set must be a table with the keys features, links, rules, percentiles, got []."),
        ({}, "An action set needs features, one table for each."),
        (
            {"feature": {}},
            "An action set: the key 'feature' is unknown (did you mean 'features'?); allowed are features, links, "
            "rules, percentiles.",
        ),
        ({"features": ["age"]}, "features must be a table with a name for each entry, got ['age']."),
        ({"features": {"age": "no"}}, f"Feature 'age' must be a table with the keys {KEYS}, got 'no'."),
        ({"features": {3: {}}}, "features: the name 3 must be text; put it in quotes."),
        (
            {"features": {"age": {"hihg": 3}}},
            f"Feature 'age': the key 'hihg' is unknown (did you mean 'high'?); allowed are {KEYS}.",
        ),
        ({"features": {"age": {"zzz": 3}}}, f"Feature 'age': the key 'zzz' is unknown; allowed are {KEYS}."),
        ({"features": {"age": {True: 3}}}, "Feature 'age': the name True must be text; put it in quotes."),
        ({"features": {"age": {"low": "a"}}}, "Feature 'age': low must be a number, got 'a'."),
        ({"features": {"age": {"low": 3, "high": 1}}}, "Feature 'age': low=3 is above high=1; swap them."),
        (
            {"features": {"age": {"change": True}}},
            "Feature 'age': change must be one of 'any', 'increase', 'decrease', 'no', got True.",
        ),
        ({"features": {"age": {"kind": "labels", "labels": "ab"}}}, "Feature 'age': labels must be a list, got 'ab'."),
        (
            {"features": {"age": {}}, "percentiles": {"ag": {}}},
            "percentiles speaks of 'ag', which is not a feature; did you mean 'age'?",
        ),
        (
            {"features": {"age": {}}, "percentiles": []},
            "percentiles must be a table with a name for each entry, got [].",
        ),
        (
            {"features": {"age": {}}, "percentiles": {"age": {"values": [1]}}},
            "percentiles of 'age': the key 'ranks' is missing; needed are values, ranks.",
        ),
        (
            {"features": {"age": {}}, "percentiles": {"age": {"values": [1], "ranks": ["x"]}}},
            "Feature 'age': Percentiles: ranks must be a list of numbers, got ['x'].",
        ),
        (
            {"features": {"age": {}}, "links": {"a": 1}},
            "links must be a list of tables with the keys source, target, rate, got {'a': 1}.",
        ),
        (
            {"features": {"age": {}}, "links": [3]},
            "links, number 1 must be a table with the keys source, target, rate, got 3.",
        ),
        (
            {"features": {"age": {}}, "links": [{"source": "age", "target": "b"}]},
            "links, number 1: the key 'rate' is missing; needed are source, target, rate.",
        ),
        (
            {"features": {"age": {}}, "links": [{"source": "age", "target": "b", "rate": "x"}]},
            "links, number 1: The link from 'age' to 'b': rate must be a finite number, got 'x'.",
        ),
        (
            {"features": {"age": {}}, "links": [{"source": "age", "target": "b", "rate": 1}]},
            "The action set has no feature 'b'; there is 'age'.",
        ),
        (
            {"features": {"age": {}}, "rules": [{"if": "age > 1", "than": "age > 2"}]},
            "rules, number 1: the key 'than' is unknown (did you mean 'then'?); allowed are if, then.",
        ),
        (
            {"features": {"age": {}}, "rules": [{"if": "age > 1", "then": "age"}]},
            'rules, number 1: A condition reads like "age >= 18", "housing == \'own\'" or "job changes", got \'age\'.',
        ),
        (
            {"features": {"age": {}}, "rules": [{"if": "age > 1", "then": 3}]},
            'rules, number 1: A condition reads like "age >= 18", "housing == \'own\'" or "job changes", got 3.',
        ),
    ],
)
def test_bad_content_is_refused_in_one_sentence(content, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ActionSet.from_dict(content)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "a.toml",
            "[features.age]\nhihg = 3\n",
            f"Feature 'age': the key 'hihg' is unknown (did you mean 'high'?); allowed are {KEYS}.",
        ),
        (
            "a.yml",
            "features:\n  age:\n    hihg: 3\n",
            f"Feature 'age': the key 'hihg' is unknown (did you mean 'high'?); allowed are {KEYS}.",
        ),
        ("a.toml", "", "An action set needs features, one table for each."),
        ("a.yaml", "", "An action set needs features, one table for each."),
        (
            "a.yaml",
            "[1, 2]",
            "An action set must be a table with the keys features, links, rules, percentiles, got [1, 2].",
        ),
        ("a.yaml", "features:\n  no: {}\n", "features: the name False must be text; put it in quotes."),
        (
            "a.yaml",
            "features:\n  day: {kind: labels, labels: [2020-01-01]}\n",
            DATE,
        ),
        (
            "a.toml",
            "[features.day]\nkind = 'labels'\nlabels = [2020-01-01]\n",
            DATE,
        ),
    ],
)
def test_a_bad_file_is_named(name, text, sentence, tmp_path):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ActionSet.read(path)
    assert str(caught.value) == f"{path}: {sentence}"


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.toml", b"[features.age\n", "a.toml: the file is not TOML: .*line 1"),
        ("a.toml", b"[features.age]\n[features.age]\n", "a.toml: the file is not TOML: .*twice"),
        ("a.yaml", b"features: [1\n", "a.yaml: the file is not YAML: .*line"),
        ("a.yaml", b"features:\n  age: {}\n  age: {}\n", "a.yaml: the file is not YAML: 'age' is given twice .*line 3"),
        ("a.yaml", b"features: !!python/object:os.system {}\n", "a.yaml: the file is not YAML: could not determine"),
        ("a.yaml", b"? [1]\n: 2\n", "a.yaml: the file is not YAML: .*unhashable"),
        ("a.toml", b"\xff\xfe", "a.toml: the file is not UTF-8 text; save it as UTF-8."),
        ("a.json", b"{}", "An action set is kept in a file that ends in .toml, .yaml or .yml, got '.*a.json'"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(name, content, match, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=match) as caught:
        ActionSet.read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*none.toml' to read an action set from."):
        ActionSet.read(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"ends in .toml, .yaml or .yml"):
        small().write(tmp_path / "actions.txt")
