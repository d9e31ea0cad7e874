"""Labels that are looked up come out as their transformers would have them, to the last bit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

from equirecourse import ActionSet, find_recourse
from equirecourse.recourse._lookup import open_lookup

TOWNS = ["Ada", "Bonn", "Cork", "Dole", "Ede"]


def make_table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, n),
            "debts": rng.integers(0, 8, n),
            "town": pd.Series(rng.choice(TOWNS, n, p=[0.4, 0.3, 0.2, 0.09, 0.01]), dtype="str"),
            "job": pd.Categorical(rng.choice(["clerk", "nurse", "smith"], n)),
            "code": rng.integers(1, 5, n),
        }
    )


def with_gaps(table):
    table = table.copy()
    table.loc[::7, "income"] = np.nan
    table.loc[::5, "town"] = None
    table.loc[::9, "job"] = None
    return table


def one_hot(**options):
    return OneHotEncoder(sparse_output=False, **options)


NUMBERS, TEXT = ["income", "debts"], ["town", "job"]
TRANSFORMERS = {
    "one-hot": make_column_transformer((one_hot(), TEXT), (StandardScaler(), NUMBERS)),
    "rest": make_column_transformer((one_hot(), TEXT), remainder="passthrough"),
    "codes": make_column_transformer((StandardScaler(), NUMBERS), (one_hot(), ["code", "town"])),
    "dropped": make_column_transformer((one_hot(drop="first"), TEXT), ("drop", ["code"]), ("passthrough", NUMBERS)),
    "infrequent": make_column_transformer(
        (one_hot(min_frequency=15, handle_unknown="infrequent_if_exist"), TEXT), (StandardScaler(), NUMBERS)
    ),
    "ordinal": make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), TEXT), ("passthrough", NUMBERS)
    ),
    "means": make_column_transformer((TargetEncoder(), TEXT), ("passthrough", NUMBERS)),
    "numbers": make_column_transformer((StandardScaler(), [0]), ("passthrough", [1])),
    "mask": make_column_transformer((one_hot(), [False, False, True, True, False]), (StandardScaler(), slice(0, 2))),
    "filled": make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot(handle_unknown="ignore")), TEXT),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), NUMBERS),
    ),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_all_is_as_the_column_transformer_says_whenever_a_label_is_first_met(name):
    table = make_table()
    table = with_gaps(table) if name == "filled" else table
    steps = TRANSFORMERS[name].fit(table, np.arange(len(table)) % 2)
    lookup = open_lookup(make_pipeline(steps), table)
    for rows in (slice(0, 1), slice(0, 3), slice(0, 200), slice(50, 60)):
        np.testing.assert_array_equal(lookup.transform(table[rows]), steps.transform(table[rows]).astype(float))


def test_labels_nobody_had_are_what_the_encoder_makes_of_them():
    table = make_table()
    steps = make_column_transformer((one_hot(handle_unknown="ignore"), TEXT), ("passthrough", NUMBERS)).fit(table)
    lookup = open_lookup(steps, table)
    lookup.transform(table)
    strange = table.head(4).assign(town=["Ada", "Nowhere", "Nowhere", None], job=pd.Categorical(["monk"] * 4))
    np.testing.assert_array_equal(lookup.transform(strange), steps.transform(strange))


def test_a_label_that_the_encoder_refuses_is_refused():
    table = make_table()
    steps = make_column_transformer((one_hot(), TEXT), ("passthrough", NUMBERS)).fit(table)
    lookup = open_lookup(steps, table)
    lookup.transform(table)
    with pytest.raises(ValueError, match="Nowhere"):
        lookup.transform(table.head(2).assign(town="Nowhere"))


@pytest.mark.parametrize(
    "steps",
    [
        make_column_transformer((OneHotEncoder(), TEXT), sparse_threshold=1.0),
        make_column_transformer((one_hot(), TEXT)).set_output(transform="pandas"),
        make_column_transformer((CountVectorizer(), "town"), (StandardScaler(), NUMBERS), sparse_threshold=0.0),
        make_pipeline(make_column_transformer((one_hot(), TEXT)), StandardScaler()),
        StandardScaler(),
    ],
    ids=["sparse", "frames", "one column", "more steps", "no columns"],
)
def test_what_cannot_be_looked_up_is_left_to_the_steps(steps):
    table = make_table()
    people = table[NUMBERS] if isinstance(steps, StandardScaler) else table
    assert open_lookup(steps.fit(people), people) is None


@pytest.mark.parametrize("learner", [LogisticRegression(), RandomForestClassifier(5, max_depth=3, random_state=0)])
def test_answers_are_those_without_it(learner, monkeypatch):
    table = make_table()
    score = table.income - 3.0 * table.debts + 4.0 * (table.town == "Bonn") + 3.0 * (table.job == "nurse")
    steps = make_column_transformer((one_hot(handle_unknown="ignore"), TEXT), (StandardScaler(), NUMBERS))
    model = make_pipeline(steps, learner).fit(table, score > score.median())
    actions = ActionSet.from_frame(table)
    found = find_recourse(model, table, actions=actions)
    monkeypatch.setattr("equirecourse.recourse._view.open_lookup", lambda *_: None)
    again = find_recourse(model, table, actions=actions)
    np.testing.assert_array_equal(found.costs, again.costs)
    np.testing.assert_array_equal(found.status, again.status)
    pd.testing.assert_frame_equal(found.counterfactuals, again.counterfactuals)
