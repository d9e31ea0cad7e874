"""Several ways to a yes for one person: valid, different, in order, and in words."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse import ActionSet, find_recourse, flipsets
from equirecourse._flipsets import flipsets_of
from equirecourse.actions import Feature, Link, total_cost
from equirecourse.datasets import load_german
from equirecourse.recourse import open_model


def linear_model(coef, intercept, names):
    model = LogisticRegression()
    model.coef_, model.intercept_ = np.array([coef], dtype=float), np.array([intercept], dtype=float)
    model.classes_, model.n_features_in_ = np.array([-1, 1]), len(coef)
    model.feature_names_in_ = np.array(names, dtype=object)
    return model


@pytest.fixture(scope="module")
def german():
    return load_german()


def german_pipeline(german, final):
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        remainder=StandardScaler(),
    )
    return make_pipeline(steps, final).fit(german.data, german.target)


MODELS = {
    "logistic": LogisticRegression(max_iter=1000),
    "forest": RandomForestClassifier(12, max_depth=3, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_people_who_are_asked_about_together_get_what_each_would_get_alone(german, name):
    model = german_pipeline(german, MODELS[name])
    people = german.data.head(25)  # some are accepted, and some need more questions than others
    settings = {"norm": "l1", "favorable_label": None, "background": people}
    together = flipsets_of(open_model(model), people, german.actions, 3, settings)
    assert {found.status for found in together} == {"accepted", "found"}
    for i, found in enumerate(together):
        alone = flipsets(model, people.iloc[[i]], actions=german.actions, k=3)
        assert [str(way) for way in found] == [str(way) for way in alone]
        assert found.score == pytest.approx(alone.score, rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_german_flipsets_are_accepted_allowed_and_different(german, name):
    model = german_pipeline(german, MODELS[name])
    rejected = german.data[model.predict(german.data) == -1]
    for i in range(2):
        person = rejected.iloc[[i]]
        found = flipsets(model, person, actions=german.actions, k=3)
        assert found.status == "found"
        assert 1 <= len(found) <= 3
        for way in found:
            after = pd.DataFrame([way.person]).astype(german.data.dtypes.to_dict())
            assert (model.predict(after) == 1).all()
            assert german.actions.violations(person, after).empty
            assert way.exact
        for earlier, later in itertools.combinations(found, 2):
            assert not set(earlier.features) <= set(later.features)
        assert [way.cost for way in found] == sorted(way.cost for way in found)


def all_minimal_sets(coef, intercept, actions, person, norm):
    """Brute force: the cheapest change of exactly each set of features, then the sets that contain no cheaper one."""
    start = actions.encode(person)
    values = [sorted({start[0, j], *np.arange(feature.low, feature.high + 1)}) for j, feature in enumerate(actions)]
    combos = np.array(list(itertools.product(*values)))
    costs = total_cost(norm, actions.costs(norm, np.repeat(start, len(combos), axis=0), combos))
    fine = (combos @ coef + intercept > 0) & actions.respected(np.repeat(start, len(combos), axis=0), combos)
    best = {}
    for combo, cost in zip(combos[fine], costs[fine], strict=True):
        key = frozenset(np.flatnonzero(combo != start[0]))
        best[key] = min(best.get(key, np.inf), cost)
    chosen = []
    for key in sorted(best, key=lambda key: (round(best[key], 9), len(key))):
        if not any(other <= key for other, _ in chosen):
            chosen.append((key, best[key]))
    return chosen


@settings(max_examples=40, deadline=None)
@given(
    coef=st.lists(st.sampled_from([-1.7, -0.6, 0.45, 1.0, 2.3]), min_size=2, max_size=4),
    intercept=st.sampled_from([-3.3, -2.05, -1.1]),
    prices=st.lists(st.sampled_from([0.7, 1.0, 1.9, 3.1]), min_size=4, max_size=4),
    norm=st.sampled_from(["l1", "l2"]),
)
def test_the_k_cheapest_equal_brute_force(coef, intercept, prices, norm):
    names = [f"f{j}" for j in range(len(coef))]
    actions = ActionSet([Feature(n, low=-2, high=2, step=1, cost=prices[j]) for j, n in enumerate(names)])
    person = pd.DataFrame([dict.fromkeys(names, 0.0)])
    found = flipsets(linear_model(coef, intercept, names), person, actions=actions, k=3, norm=norm)
    expected = all_minimal_sets(coef, intercept, actions, person, norm)[:3]
    np.testing.assert_allclose([way.cost for way in found], [cost for _, cost in expected], rtol=1e-9)


def test_numbers_are_rounded_to_what_can_be_said_and_stay_valid():
    names = ["income", "debt"]
    model = linear_model([0.001, -0.0007], -2.9, names)
    actions = ActionSet([Feature("income", change="increase"), Feature("debt", low=0.0)])
    person = pd.Series({"income": 2310.55, "debt": 733.21})
    found = flipsets(model, person, actions=actions)
    assert str(found[0]) == "Raise income from 2,310.55 to 3,420."
    way = found[0]
    assert way.person["income"] == pytest.approx(round(way.person["income"], -1))
    assert model.predict(pd.DataFrame([way.person]))[0] == 1
    cheapest = find_recourse(model, pd.DataFrame([person]), actions=actions, norm="l1").costs[0]
    assert cheapest <= way.cost <= 1.03 * cheapest


def test_words_follow_the_kind_of_change():
    frame = pd.DataFrame({"savings": ["<100 DM"], "housing": ["rent"], "month": [48]})
    actions = ActionSet(
        [
            Feature("savings", kind="ordered", labels=("<100 DM", "100-500 DM", ">=500 DM")),
            Feature("housing", kind="labels", labels=("own", "rent")),
            Feature("month", step=1, low=4, high=72),
        ]
    )

    class Yes:
        classes_ = np.array([0, 1])
        feature_names_in_ = np.array(["savings", "housing", "month"])

        def predict(self, X):
            return (
                ((X["savings"] == "100-500 DM") & (X["housing"] == "own") & (X["month"] <= 24)).astype(int).to_numpy()
            )

    found = flipsets(Yes(), frame, actions=actions, k=1, background=pd.DataFrame(
        {"savings": ["100-500 DM"], "housing": ["own"], "month": [20]}))  # fmt: skip
    assert set(found.to_frame()["sentence"]) == {
        "Raise savings from <100 DM to 100-500 DM",
        "Change housing from rent to own",
        "Lower month from 48 to 24",
    }
    assert np.isnan(found.score)
    assert not found[0].exact
    assert "at most" in repr(found)


def test_a_carried_feature_is_told_and_costs_nothing():
    names = ["months_employed", "age"]
    model = linear_model([1.0, 0.1], -30.0, names)
    actions = ActionSet(
        [Feature("months_employed", change="increase", step=1), Feature("age", change="no")],
        links=[Link("months_employed", "age", 1 / 12)],
    )
    found = flipsets(model, {"months_employed": 6.0, "age": 30.0}, actions=actions)
    table = found.to_frame().set_index("feature")
    assert table.loc["age", "cost"] == 0.0
    assert table.loc["age", "sentence"].startswith("Age rises along, from 30 to 31.7")
    assert len(found) == 1


def test_values_of_the_data_are_escaped():
    evil = "<img src=x onerror=alert(1)>"
    actions = ActionSet([Feature(evil, kind="labels", labels=("no", evil))])

    class Model:
        classes_ = np.array([0, 1])
        feature_names_in_ = np.array([evil])

        def predict(self, X):
            return (X[evil] == evil).astype(int).to_numpy()

    html = flipsets(Model(), {evil: "no"}, actions=actions)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_accepted_and_hopeless_people_are_told_so():
    actions = ActionSet([Feature("a", low=0, high=1)])
    model = linear_model([1.0], -5.0, ["a"])
    hopeless = flipsets(model, {"a": 0.5}, actions=actions)
    assert (hopeless.status, len(hopeless)) == ("infeasible", 0)
    assert "no recourse" in repr(hopeless)
    accepted = flipsets(model, {"a": 6.0}, actions=actions)
    assert (accepted.status, len(accepted)) == ("accepted", 0)
    assert "yes already" in accepted._repr_html_()
    assert list(accepted.to_frame().columns)[:4] == ["flipset", "feature", "from", "to"]


def test_any_model_will_do(german):
    X = german.data[["month", "credit_amount"]]
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(25)).fit(X, german.target)
    rejected = X[model.predict(X) == -1]
    found = flipsets(model, rejected.iloc[0], actions=german.actions.only(X.columns), background=X)
    assert found.status == "found"
    assert not found[0].exact


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        ([[1.0], [2.0]], {}, "one person, got 2 rows"),
        ([1.0], {"k": 0}, "k must be a whole number of at least 1"),
        ({"b": 1.0}, {}, "speaks of 'a'"),
    ],
    ids=["two people", "k", "column"],
)
def test_bad_input_gets_one_sentence(x, options, words):
    model = linear_model([1.0], -5.0, ["a"])
    with pytest.raises(ValueError, match=words):
        flipsets(model, x, actions=ActionSet([Feature("a")]), **options)
