"""Whatever the model and the action set: what is shown is allowed, is accepted by the model, and costs what is said.

That nothing cheaper exists is for ``test_search_against_exact`` and the tests of each engine.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from equirecourse import ActionSet, EqualRecourseLinear, EqualRecourseSVC, find_recourse
from equirecourse.actions import NORMS, Link, Rule
from equirecourse.exceptions import NoRecourseWarning

# The last estimator, and the engine that answers for it behind a one-hot encoder and a scaler.
MODELS = {
    "logistic": (LogisticRegression(), "linear"),
    "equal recourse linear": (EqualRecourseLinear(LogisticRegression()), "linear"),
    "svc linear": (SVC(kernel="linear"), "linear"),
    "tree": (DecisionTreeClassifier(max_depth=3, random_state=0), "trees"),
    "forest": (RandomForestClassifier(8, max_depth=3, random_state=0), "trees"),
    "extra trees": (ExtraTreesClassifier(8, max_depth=3, random_state=0), "trees"),
    "boosting": (GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0), "trees"),
    "hist": (HistGradientBoostingClassifier(max_iter=8, max_depth=3, min_samples_leaf=5), "trees"),
    "ada": (AdaBoostClassifier(n_estimators=6, random_state=0), "trees"),
    "svc poly 2": (SVC(kernel="poly", degree=2, coef0=1.0), "kernel"),
    "svc poly 3": (SVC(kernel="poly", degree=3, coef0=1.0), "kernel"),
    "svc rbf": (SVC(), "kernel"),
    "equal recourse svc": (EqualRecourseSVC(), "kernel"),
    "neighbours": (KNeighborsClassifier(7), "search"),
    "naive bayes": (GaussianNB(), "kernel"),
}


def make_frame(seed, n=60):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(3000, 800, n),
            "months": rng.integers(0, 60, n),
            "age": rng.integers(20, 70, n).astype(float),
            "debts": rng.integers(0, 6, n),
            "housing": rng.choice(["own", "rent", "free"], n),
            "savings": pd.Categorical(
                rng.choice(["none", "some", "many"], n), categories=["none", "some", "many"], ordered=True
            ),
        }
    )
    score = frame.income / 800 + frame.months / 30 - frame.debts + (frame.housing == "own") + frame.savings.cat.codes
    return frame, np.where(score + rng.normal(size=n) > score.median(), 1, 0)


@st.composite
def action_sets(draw, frame):
    names = list(frame.columns)
    ways = {"income": 3, "months": 3, "age": 3, "debts": 3, "housing": 2, "savings": 3}
    kinds = {name: draw(st.integers(0, ways[name])) for name in names}
    low = draw(st.sampled_from([0.0, 0.1, 0.3]))
    bounds = {
        name: (float(frame[name].quantile(low)), float(frame[name].quantile(1 - low)))
        for name in ("income", "months", "debts")
    }
    return ActionSet.from_frame(
        frame,
        immutable=[name for name in names if kinds[name] == 1],
        increase_only=[name for name in names if kinds[name] == 2 and name != "housing"],
        decrease_only=[name for name in names if kinds[name] == 3],
        bounds=bounds,
        steps={"income": draw(st.sampled_from([None, 50.0, 0.1])), "age": draw(st.sampled_from([None, 1.0]))},
        costs=draw(st.sampled_from(["std", "unit"])),
        links=draw(st.sampled_from([(), (Link("months", "age", 1 / 12),)])),
        rules=draw(
            st.sampled_from(
                [(), (), (Rule("housing == own", "debts <= 3"),), (Rule("debts decreases", "savings != many"),)]
            )
        ),
    )


def check(found, model, frame, actions, norm):
    rejected = model.predict(frame) != 1
    np.testing.assert_array_equal(found.rejected, rejected)
    assert (found.costs[~rejected] == 0).all()
    after = found.counterfactuals
    has = found.has_action
    assert (model.predict(after[has].astype(frame.dtypes.to_dict())) == 1).all()
    assert actions.violations(frame[has], after[has]).empty
    assert after[~has].isna().to_numpy().all()
    start = actions.encode(frame[has])
    parts = actions.costs(norm, start, actions.own(frame[has], after[has]))
    total = {"l1": parts.sum(1), "l2": np.sqrt((parts**2).sum(1)), "linf": parts.max(1)}
    expected = total[{"max_shift": "linf", "log_shift": "l1"}.get(norm, norm)]
    np.testing.assert_allclose(found.costs[has], expected, rtol=1e-9, atol=1e-9)
    assert (found.lower_bounds <= found.costs * (1 + 1e-9)).all()
    assert (found.lower_bounds[found.exact & has] >= found.costs[found.exact & has] * (1 - 1e-6)).all()
    assert (found.status[~has] != "found").all()
    assert found.exact[found.status == "infeasible"].all()


@pytest.mark.parametrize("name", MODELS)
def test_every_action_is_allowed_and_accepted(name):
    estimator, engine = MODELS[name]

    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data):
        frame, y = make_frame(data.draw(st.integers(0, 3)))
        steps = make_column_transformer((OneHotEncoder(), ["housing", "savings"]), remainder=StandardScaler())
        model = make_pipeline(steps, estimator).fit(frame, y)
        actions = data.draw(action_sets(frame))
        norm = data.draw(st.sampled_from(sorted(NORMS)))
        some = frame[model.predict(frame) == 0].head(2)
        people = pd.concat([some, frame[model.predict(frame) == 1].head(1)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRecourseWarning)
            found = find_recourse(model, people, actions=actions, norm=norm, background=frame)
            assert found.method == engine
            check(found, model, people, actions, norm)
            if engine in ("linear", "trees"):
                assert found.exact.all()

    run()


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("norm", sorted(NORMS))
def test_boosters_of_other_packages(package, norm):
    if package == "xgboost":
        booster = pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, max_depth=2)
    else:
        booster = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=10, max_depth=3, verbose=-1)
    frame, y = make_frame(0, 200)
    numbers = frame[["income", "months", "age", "debts"]]
    model = booster.fit(numbers, y)
    actions = ActionSet.from_frame(numbers, immutable=["age"])
    people = numbers[model.predict(numbers) == 0].head(6)
    found = find_recourse(model, people, actions=actions, norm=norm)
    assert found.method == "trees"
    assert found.exact.all()
    check(found, model, people, actions, norm)


def test_a_step_that_cannot_be_looked_through_falls_back_to_search_and_says_so():
    frame, y = make_frame(0)
    numbers = frame[["income", "months", "debts"]]
    model = make_pipeline(PowerTransformer(), LogisticRegression()).fit(numbers, y)
    found = find_recourse(model, numbers, actions=ActionSet.from_frame(numbers))
    assert found.method == "search"
    assert "upper bounds found by search, because the model sees 'income' through more than" in found.notes[0]
    assert not found.exact[found.rejected].any()
    with pytest.raises(ValueError, match="method='linear' does not fit this model"):
        find_recourse(model, numbers, actions=ActionSet.from_frame(numbers), method="linear")


def test_a_monotone_step_before_trees_is_looked_through():
    frame, y = make_frame(0)
    numbers = frame[["income", "months", "debts"]]
    model = make_pipeline(PowerTransformer(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(numbers, y)
    actions = ActionSet.from_frame(numbers)
    found = find_recourse(model, numbers, actions=actions, norm="l1")
    assert found.method == "trees"
    assert found.exact.all()
    check(found, model, numbers, actions, "l1")
