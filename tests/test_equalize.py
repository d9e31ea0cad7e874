"""equalize: chosen on folds, judged on held-out people, with a placebo and the four cheats."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import ActionSet, Equalized, EqualRecourseLinear, equalize
from equirecourse.audit import cheats_in_words

FEW = {"n_boot": 100, "n_permutations": 100, "n_flipsets": 0}


def make_people(n=3000, seed=0, spread=3.0):
    """Two groups of which one is spread out in a column that says little about the outcome."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m"], n)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["income", "debt", "years", "luck"])
    X["debt"] *= np.where(group == "f", 1.0 + spread, 1.0)
    score = X["income"] + X["years"] - 0.4 * X["debt"] + rng.logistic(scale=0.7, size=n)
    return X, np.where(score > 0, "granted", "refused"), pd.Series(group, name="sex")


@pytest.fixture(scope="module")
def found():
    X, y, sex = make_people()
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return X, y, sex, equalize(model, X, y, sensitive_features=sex, favorable_label="granted", budget=0.04, **FEW)


def test_the_gap_of_held_out_people_shrinks_and_the_placebo_s_does_not(found):
    _, _, _, equal = found
    assert isinstance(equal, Equalized)
    assert equal.changed
    row = equal.after.document["comparison"]["attributes"][0]
    before, placebo, after = (row[side]["relative_gap"] for side in ("before", "placebo", "after"))
    assert after < 0.6 * before
    assert placebo > after
    low, _ = row["reduction_interval"]
    assert low > 0
    models = equal.after.document["comparison"]["models"]
    assert models["after"]["accuracy"] > models["before"]["accuracy"] - 0.05
    assert abs(models["after"]["acceptance"] - models["before"]["acceptance"]) < 0.05


def test_the_people_are_split_and_the_model_needs_no_groups(found):
    X, _, _, equal = found
    assert set(equal.training) | set(equal.held_out) == set(range(len(X)))
    assert not set(equal.training) & set(equal.held_out)
    assert set(equal.model.predict(X)) == {"granted", "refused"}
    assert equal.model.favorable_label_ == "granted"


def test_the_frontier_begins_with_the_plain_model_and_holds_the_choice(found):
    _, _, _, equal = found
    table = equal.frontier.table
    assert table["kappa"].iloc[0] == 0
    assert table["transport_gap"].iloc[equal.chosen] < table["transport_gap"].iloc[0]
    assert equal.frontier.criterion == "transport_gap"
    assert equal.after.document["frontier"][equal.chosen]["chosen"]


def test_the_cheats_stand_beside_the_reduction(found):
    _, _, _, equal = found
    cheats = equal.after.document["comparison"]["attributes"][0]["cheats"]
    assert len(cheats_in_words(cheats)) == 4
    assert cheats["warnings"] == []
    assert {row["name"] for row in cheats["selection"]} == {"f", "m"}


def test_the_same_seed_gives_the_same_model(found):
    X, y, sex, equal = found
    model = make_pipeline(StandardScaler(), LogisticRegression())
    again = equalize(model, X, y, sensitive_features=sex, favorable_label="granted", budget=0.04, n_jobs=2, **FEW)
    np.testing.assert_array_equal(again.model.coef_, equal.model.coef_)


def test_where_there_is_no_gap_the_plain_model_is_kept_and_not_called_equalised():
    X, y, _ = make_people(1500, spread=0.0)
    coin = np.random.default_rng(7).choice(["a", "b"], len(y))
    equal = equalize(LogisticRegression(), X, y, sensitive_features=coin, kappas=[3.0], budget=0.0, **FEW)
    if equal.changed:  # chance alone may help on three folds
        assert equal.frontier.table["transport_gap"].iloc[equal.chosen] < equal.frontier.table["transport_gap"].iloc[0]
    else:
        assert equal.reason.startswith("The plain model was kept")
        assert equal.chosen == 0
        plain = equal.before.document["attributes"][0]["gap"]
        assert equal.after.document["attributes"][0]["gap"] == pytest.approx(plain)


def test_the_model_is_fitted_for_the_actions_it_is_judged_by():
    X, y, sex = make_people()
    actions = ActionSet.from_frame(X, immutable=["debt", "luck"])
    model = make_pipeline(StandardScaler(), LogisticRegression())
    equal = equalize(
        model, X, y, sensitive_features=sex, actions=actions, favorable_label="granted", kappas=[10.0], **FEW
    )
    assert [feature.change for feature in equal.model.actions] == [feature.change for feature in actions]
    features = {row["name"]: row["change"] for row in equal.after.document["actions"]["features"]}
    assert features["debt"] == "no"


def test_boosted_trees_and_the_paper_s_method_go_the_same_way():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, sex = make_people(1200)
    booster = lightgbm.LGBMClassifier(n_estimators=20, max_depth=2, n_jobs=1, verbose=-1)
    trees = equalize(booster, X, y, sensitive_features=sex, favorable_label="granted", kappas=[0.3], cv=2, **FEW)
    assert type(trees.model).__name__ == "EqualRecourseBoosting"
    paper = EqualRecourseLinear(LogisticRegression(), objective="paper")
    hard = equalize(paper, X, y, sensitive_features=sex, favorable_label="granted", cv=2, budget=0.05, **FEW)
    assert hard.frontier.table["kappa"].tolist() == [0.0, np.inf]


def test_of_the_boosters_that_the_folds_recommend_the_very_models_are_compared():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, sex = make_people(2500)
    booster = lightgbm.LGBMClassifier(n_estimators=30, max_depth=3, n_jobs=1, verbose=-1)
    equal = equalize(
        booster, X, y, sensitive_features=sex, favorable_label="granted", kappas=[0.3, 1.0], cv=2, budget=0.03, **FEW
    )
    assert equal.changed
    assert equal.model.kappa == equal.frontier.table["kappa"].iloc[equal.chosen]
    assert f"κ = {equal.model.kappa:g} has" in equal.reason
    row = equal.after.document["comparison"]["attributes"][0]
    assert row["after"]["relative_gap"] < 0.6 * row["before"]["relative_gap"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": RandomForestClassifier()}, "got RandomForestClassifier; take boosted trees"),
        ({"estimator": Perceptron()}, "got Perceptron"),
        ({"budget": 2.0}, "budget"),
        ({"cv": 1}, "cv"),
        ({"norm": "l3"}, "l3"),
        ({"kappas": [-1.0]}, "kappas"),
        ({"sensitive_features": ["a"] * 60}, "2|two"),
        ({"y": np.zeros((60, 2))}, "one label per person"),
    ],
    ids=["forest", "perceptron", "budget", "folds", "norm", "kappa", "one group", "labels"],
)
def test_bad_input_gets_one_sentence(change, message):
    X, y, sex = make_people(60)
    given = {"estimator": LogisticRegression(), "X": X, "y": y, "sensitive_features": sex, **change}
    with pytest.raises(ValueError, match=message):
        equalize(given.pop("estimator"), given.pop("X"), given.pop("y"), **given)
