"""A model is asked in the form it knows: what it was fitted to, else what the caller holds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse import ActionSet, audit, audit_partitions, find_recourse, flipsets
from equirecourse.recourse import open_model


class Wrapped:
    """A plain Python object with a pipeline inside, as people deploy them; it notes what it is asked with."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.classes_ = pipeline.classes_
        self.seen = []

    def predict(self, X):
        self.seen.append(X)
        return self.pipeline.predict(X)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 120
    return pd.DataFrame(
        {
            "income": rng.normal(30, 8, n),
            "debts": rng.integers(0, 8, n),
            "job": pd.Categorical(rng.choice(["clerk", "nurse"], n)),
            "town": pd.Series(rng.choice(["a", "b"], n), dtype="string"),
        }
    )


@pytest.fixture
def wrapped(people):
    steps = make_column_transformer((OneHotEncoder(), ["job", "town"]), (StandardScaler(), ["income", "debts"]))
    y = (people.income / 8 - people.debts / 2 + (people.job == "nurse") > 2.5).astype(int)
    return Wrapped(make_pipeline(steps, LogisticRegression()).fit(people, y))


def only_frames_of(dtypes, seen):
    assert seen
    for table in seen:
        assert isinstance(table, pd.DataFrame)
        assert table.columns.tolist() == dtypes.index.tolist()
        # A number may have to become a fraction; what the person does not change is of the type it was.
        assert [table[name].dtype for name in ("job", "town")] == [dtypes["job"], dtypes["town"]]


def test_a_plain_object_gets_the_frame_that_was_given(people, wrapped):
    actions = ActionSet.from_frame(people, immutable=["town"])
    found = find_recourse(wrapped, people, actions=actions, norm="l1")
    assert found.has_action.all()
    assert (wrapped.pipeline.predict(found.counterfactuals) == 1).all()
    only_frames_of(people.dtypes, wrapped.seen)
    assert wrapped.seen[0]["debts"].dtype == people["debts"].dtype


def test_every_public_function_hands_frames_over(people, wrapped):
    actions = ActionSet.from_frame(people, immutable=["town"])
    groups = np.where(np.arange(len(people)) % 2, "u", "v")
    settings = {"n_boot": 50, "n_permutations": 50}
    audit(wrapped, people, sensitive_features=groups, actions=actions, max_people=10, n_flipsets=1, **settings)
    audit_partitions(
        wrapped, [people.assign(g=groups)], sensitive_features="g", actions=actions, features=people.columns, **settings
    )
    rejected = people[wrapped.pipeline.predict(people) == 0]
    for person in (rejected.head(1), rejected.iloc[0], rejected.iloc[0].to_dict()):
        assert len(flipsets(wrapped, person, actions=actions, background=people, k=1)) == 1
    assert all(isinstance(table, pd.DataFrame) for table in wrapped.seen)


def test_a_plain_object_gets_an_array_for_an_array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = Wrapped(LogisticRegression().fit(X, X[:, 0] > 0))
    find_recourse(model, X)
    assert all(isinstance(table, np.ndarray) for table in model.seen)


def test_a_plain_object_gets_pandas_for_polars(people, wrapped):
    table = people.astype({"job": str, "town": str})
    find_recourse(wrapped, pl.from_dict(table.to_dict("list")), actions=ActionSet.from_frame(table, immutable=["town"]))
    assert all(isinstance(seen, pd.DataFrame) for seen in wrapped.seen)


def test_names_that_are_no_text_stay_what_they_are():
    class SumOfColumns:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return (X[2020] + X[2021] > 0).to_numpy().astype(int)

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=[2020, 2021])
    found = find_recourse(SumOfColumns(), X)
    assert found.has_action.all()


def test_an_estimator_fitted_to_an_array_gets_arrays():
    # A frame would make scikit-learn warn of names that it was not fitted with, which is an error here.
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.to_numpy(), X.a > 0)
    assert find_recourse(model, X, actions=ActionSet.free(X)).has_action.all()


def test_a_pipeline_that_begins_with_a_transformer_of_one_s_own_gets_the_frame():
    class Ratio(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.fitted_ = True
            return self

        def transform(self, X):
            return np.column_stack([X["a"] / (1 + X["b"] ** 2), X["b"]])

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = make_pipeline(Ratio(), LogisticRegression()).fit(X, X.a > 0)
    assert find_recourse(model, X).has_action.all()


def test_a_plain_object_whose_labels_are_those_of_its_class_is_fitted():
    class Rule:
        classes_ = np.array(["no", "yes"])

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.where(np.asarray(X)[:, 0] > 0, "yes", "no")

    assert open_model(Rule()).favorable == "yes"
