"""The search knows nothing of the engines: it must never find what an exact engine says does not exist."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.recourse.test_every_engine import action_sets, make_frame

from equirecourse import find_recourse
from equirecourse.actions import NORMS
from equirecourse.exceptions import NoRecourseWarning

FINAL = {
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(8, max_depth=3, random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=8, max_depth=3, min_samples_leaf=5),
}


def fitted(name, frame, y):
    impute = SimpleImputer() if name != "hist" else "passthrough"
    steps = make_column_transformer(
        (OneHotEncoder(), ["housing", "savings"]), remainder=make_pipeline(StandardScaler(), impute)
    )
    return make_pipeline(steps, FINAL[name]).fit(frame, y)


def with_gaps(frame, seed):
    frame = frame.astype({"months": float})
    gone = np.random.default_rng(seed).random(len(frame)) < 0.3
    return frame.assign(months=frame.months.mask(gone), income=frame.income.mask(gone[::-1]))


@pytest.mark.parametrize("name", FINAL)
def test_the_search_finds_nothing_below_an_exact_answer(name):
    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data):
        seed = data.draw(st.integers(0, 50))
        whole, y = make_frame(seed)
        actions = data.draw(action_sets(whole))
        frame = with_gaps(whole, seed)
        model = fitted(name, frame, y)
        norm = data.draw(st.sampled_from(sorted(NORMS)))
        people = frame[model.predict(frame) == 0].head(2)
        settings_ = {"actions": actions, "norm": norm, "background": frame}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            exact = find_recourse(model, people, **settings_)
            search = find_recourse(model, people, method="search", **settings_)
        assert exact.exact.all()
        # An infeasible person costs infinity: whoever the search finds an action for must have one.
        assert (search.costs >= exact.costs * (1 - 1e-9) - 1e-9).all()

    run()


@pytest.mark.parametrize("name", [*FINAL, "search"])
def test_what_a_person_leaves_alone_is_as_if_the_action_set_forbade_it(name):
    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data):
        frame, y = make_frame(data.draw(st.integers(0, 3)))
        actions = data.draw(action_sets(frame))
        model = fitted("forest" if name == "search" else name, frame, y)
        people = frame[model.predict(frame) == 0].head(2)
        frozen = np.array(data.draw(st.lists(st.booleans(), min_size=len(actions), max_size=len(actions))))
        forbidding = actions
        for feature, is_frozen in zip(actions, frozen, strict=True):
            forbidding = forbidding.replace(feature.name, change="no") if is_frozen else forbidding
        norm = data.draw(st.sampled_from(["l1", "l2", "max_shift"]))
        ways = {"norm": norm, "background": frame, "method": "search" if name == "search" else "auto"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            found = find_recourse(model, people, actions=actions, frozen=np.tile(frozen, (len(people), 1)), **ways)
            expected = find_recourse(model, people, actions=forbidding, **ways)
        after, start = (
            actions.own(people[found.has_action], found.counterfactuals[found.has_action]),
            actions.encode(people[found.has_action]),
        )
        np.testing.assert_array_equal(after[:, frozen], start[:, frozen])
        if name != "search":
            np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-6)

    run()


def test_people_may_leave_different_things_alone():
    frame, y = make_frame(0)
    numbers = frame[["income", "months", "debts"]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y)
    person = numbers[model.predict(numbers) == 0].iloc[[0, 0, 0]]
    frozen = np.array([[False, False, False], [True, False, False], [True, True, True]])
    found = find_recourse(model, person, frozen=frozen, norm="l1")
    assert found.status.tolist() == ["found", "found", "infeasible"]
    assert found.costs[0] <= found.costs[1] < found.costs[2] == np.inf


@pytest.mark.parametrize("frozen", [[[True, False]], np.zeros((1, 3)), np.zeros((2, 3), dtype=bool)])
def test_a_mask_of_another_shape_or_type_is_refused(frozen):
    frame, y = make_frame(0)
    numbers = frame[["income", "months", "debts"]]
    model = LogisticRegression(max_iter=1000).fit(numbers, y)
    with pytest.raises(ValueError, match="frozen must be True or False for each of 1 people and 3 features"):
        find_recourse(model, numbers.head(1), frozen=frozen)
