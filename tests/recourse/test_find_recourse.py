"""The door: what goes in, what comes out, and one sentence for what cannot."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from equirecourse import ActionSet, find_recourse
from equirecourse.actions import Feature
from equirecourse.exceptions import NoRecourseWarning


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    return frame, np.where(frame.sum(axis=1) > 0, "yes", "no")


def test_frames_arrays_and_polars_agree(people):
    X, y = people
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    bare = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X.to_numpy(), y)
    some = X.head(20)
    found = find_recourse(forest, some)
    assert isinstance(found.counterfactuals, pd.DataFrame)
    by_polars = find_recourse(forest, pl.DataFrame(some.to_dict("list")))
    by_array = find_recourse(bare, some.to_numpy())
    assert isinstance(by_array.counterfactuals, np.ndarray)
    for other in (by_polars, by_array):
        np.testing.assert_allclose(other.costs, found.costs, rtol=1e-12)
        np.testing.assert_allclose(other.counterfactuals, found.counterfactuals, rtol=1e-12)


def test_the_index_of_a_frame_is_kept_even_if_it_repeats(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    some = X.head(6).set_axis([7, 7, 3, 3, 1, 0], axis=0)
    for actions in (None, ActionSet.from_frame(X)):
        found = find_recourse(model, some, actions=actions)
        assert found.counterfactuals.index.tolist() == [7, 7, 3, 3, 1, 0]
        np.testing.assert_array_equal(found.counterfactuals[~found.rejected], some[~found.rejected])


def test_columns_outside_the_action_set_never_change(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    found = find_recourse(model, X, actions=ActionSet([Feature("b")]))
    pd.testing.assert_frame_equal(found.counterfactuals[["a", "c"]], X[["a", "c"]])
    assert (model.predict(found.counterfactuals) == "yes").all()


def test_nobody_and_only_accepted_people(people):
    X, y = people
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    accepted = X[model.predict(X) == "yes"]
    found = find_recourse(model, accepted)
    assert (found.costs == 0).all()
    pd.testing.assert_frame_equal(found.counterfactuals, accepted)
    assert "nobody" not in repr(found)
    for model_ in (model, LogisticRegression().fit(X, y)):
        empty = find_recourse(model_, X.head(0), actions=ActionSet.from_frame(X))
        assert len(empty.costs) == len(empty.counterfactuals) == 0
        assert "nobody" in repr(empty)


def test_infeasible_people_stay_with_infinite_cost_and_a_row_of_missing_values(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    actions = ActionSet([Feature("a", low=0, high=0.5)])
    found = find_recourse(model, X, actions=actions)
    hopeless = found.status == "infeasible"
    assert hopeless.any()
    assert len(found.costs) == len(X)
    assert np.isinf(found.costs[hopeless]).all()
    assert found.counterfactuals[hopeless].isna().to_numpy().all()
    assert found.counterfactuals[~hopeless].notna().to_numpy().all()
    assert found.to_frame()["status"].tolist() == found.status.tolist()


def test_missing_numbers_stay_missing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    y = (X.sum(axis=1) > 0).astype(int)
    X.loc[::5, "a"] = np.nan
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    found = find_recourse(model, X, actions=ActionSet.from_frame(X))
    after = found.counterfactuals[found.has_action]
    np.testing.assert_array_equal(after["a"].isna(), X[found.has_action]["a"].isna())
    assert (model.predict(after) == 1).all()


def test_a_search_that_finds_nothing_warns_and_counts(people):
    class No:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    with pytest.warns(NoRecourseWarning, match="recourse of 4 of 4 rejected people is unknown"):
        found = find_recourse(No(), people[0].head(4), time_limit=0.05)
    assert set(found.status) == {"unknown"}
    assert np.isinf(found.costs).all()
    assert (found.lower_bounds == 0).all()


def test_the_same_seed_finds_the_same(people):
    X, y = people
    model = KNeighborsClassifier(5).fit(X, y)
    first, second = (find_recourse(model, X.head(10), random_state=3, background=X) for _ in range(2))
    np.testing.assert_array_equal(first.costs, second.costs)


class NoPredict:
    def decision_function(self, X):
        return X


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (None, {"norm": "l3"}, "norm must be one of 'l1', 'l2'"),
        (None, {"method": "magic"}, "method must be one of 'auto'"),
        (None, {"time_limit": -1}, "time_limit must be a finite number"),
        (None, {"random_state": "a"}, "random_state must be a whole number"),
        (None, {"favorable_label": "maybe"}, "favorable_label='maybe' is not one of the labels"),
        (None, {"actions": ActionSet([Feature("z")])}, "speaks of 'z', which is not among the columns"),
        (None, {"method": "trees"}, "method='trees' does not fit this model"),
        (None, {"method": "kernel"}, "method='kernel' does not fit this model"),
        (NoPredict(), {}, "with a predict method, and NoPredict has none"),
        (LinearRegression(), {}, "LinearRegression has no classes_"),
        (LogisticRegression(), {}, "has no classes_; fit it first"),
    ],
    ids=["norm", "method", "time", "seed", "label", "name", "trees", "kernel", "predict", "regression", "unfitted"],
)
def test_bad_input_gets_one_sentence(people, model, options, words):
    X, y = people
    model = LogisticRegression().fit(X, y) if model is None else model
    with pytest.raises(ValueError, match=words) as caught:
        find_recourse(model, X, **options)
    assert str(caught.value).count("\n") == 0


def test_infinite_numbers_and_three_labels_are_refused(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    bad = X.assign(b=np.inf)
    with pytest.raises(ValueError, match="infinity \\(inf\\) for 120 of 120 people, first in feature 'b'"):
        find_recourse(model, bad, actions=ActionSet.from_frame(X))
    three = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="has 3 of them"):
        find_recourse(three, X)


def test_a_block_that_is_not_one_hot_is_refused(people):
    frame = pd.DataFrame({"h_own": [1, 1], "h_rent": [0, 1]})
    model = LogisticRegression().fit(pd.DataFrame({"h_own": [1, 0], "h_rent": [0, 1]}), [0, 1])
    actions = ActionSet([Feature("h", kind="one_hot", columns=("h_own", "h_rent"))])
    with pytest.raises(ValueError, match="one-hot block 'h' must have exactly one 1"):
        find_recourse(model, frame, actions=actions)
