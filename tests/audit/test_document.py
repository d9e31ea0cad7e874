"""The document is what its dataclasses say: each field is in the schema, and no key is in the document without one."""

import copy
from dataclasses import fields

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from equirecourse import audit, audit_partitions, audit_schema
from equirecourse._audit import _document
from equirecourse._plain import Section, plain

SECTIONS = Section.__subclasses__() + _document.Summary.__subclasses__()
VALIDATOR = jsonschema.Draft202012Validator(audit_schema())


class Frontier:
    names = ("gap", "gap_low", "gap_high", "noise_floor", "relative_gap", "accuracy", "acceptance")
    table = pd.DataFrame({name: [0.5, np.nan] for name in names})


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    y, sex = (X.a + rng.normal(size=120) > 0).astype(int), rng.choice(["f", "m"], 120)
    model = LogisticRegression().fit(X, y)
    few = {"n_boot": 20, "n_permutations": 20}
    before = audit(model, X, y, sensitive_features={"sex": sex}, n_flipsets=1, **few)
    whole = before.compared_with(before, placebo=before, islands=(0.1, 0.1)).with_frontier(Frontier, 1)
    parts = audit_partitions(model, [X.assign(sex=sex)], sensitive_features="sex", **few)
    return whole.document, parts.document


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_every_field_is_a_key_of_the_schema(kind):
    schema = kind.json_schema()
    assert list(schema["properties"]) == [one.name.rstrip("_") for one in fields(kind)]
    optional = {one.name for one in fields(kind) if one.default is None}
    assert set(schema["properties"]) - set(schema["required"]) == optional


def objects(value, schema, path=()):
    """Each kind of object in a document that is a section, once, with its path."""
    if isinstance(value, dict) and "properties" in schema:
        yield path, schema
        for key, item in value.items():
            yield from objects(item, schema["properties"][key], (*path, key))
    elif isinstance(value, dict) and "additionalProperties" in schema and value:
        key = next(iter(value))
        yield from objects(value[key], schema["additionalProperties"], (*path, key))
    elif isinstance(value, list) and value and "items" in schema:
        yield from objects(value[0], schema["items"], (*path, 0))
    elif "anyOf" in schema:
        yield from objects(value, schema["anyOf"][0], path)


def test_the_schema_holds_for_both_kinds_of_audits_and_for_nothing_more_or_less(documents):
    for document in documents:
        VALIDATOR.validate(document)
        for path, schema in objects(document, audit_schema()):
            for key in [*schema["required"], None]:
                other = copy.deepcopy(document)
                place = other
                for step in path:
                    place = place[step]
                if key is None:
                    place["surprise"] = 1
                else:
                    del place[key]
                assert not VALIDATOR.is_valid(other), (path, key)
    whole = [path for path, _ in objects(documents[0], audit_schema())]
    assert ("comparison", "attributes", 0, "cheats", "selection", 0) in whole
    assert ("frontier", 0) in whole
    assert any(path[:2] == ("flipsets", "by_person") and path[-2:] == ("changes", 0) for path in whole)


def test_undefined_and_infinite_numbers_are_plain():
    values = {1: np.float64("nan"), "b": (np.inf, np.int64(3)), "c": np.array([True]), "d": pd.Timestamp("2020-01-01")}
    assert plain(values) == {"1": None, "b": ["inf", 3], "c": [True], "d": "2020-01-01 00:00:00"}
