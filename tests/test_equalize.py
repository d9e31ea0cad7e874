"""equalize: chosen on folds, judged on held-out people, with a placebo and the four cheats."""

import html

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests._clouds import four_clouds

from equirecourse import ActionSet, Equalized, EqualRecourseLinear, cheats_in_words, equalize, find_recourse
from equirecourse._equalize import _mean_row, _pick, _without_a_gap, _Work
from equirecourse.report import render

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
    assert "kept" not in equal.after.document["comparison"]
    assert 'data-test="kept"' not in render(equal.after.document)


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


def test_the_experienced_gap_of_boosted_trees_is_halved():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, sex = make_people(2000)
    booster = lightgbm.LGBMClassifier(n_estimators=30, max_depth=3, n_jobs=1, verbose=-1)
    equal = equalize(
        booster, X, y, sensitive_features=sex, favorable_label="granted", kappas=[3.0], cv=2, budget=0.03, **FEW
    )
    assert equal.changed
    assert "κ = 3 was chosen" in equal.reason
    row = equal.after.document["comparison"]["attributes"][0]
    assert row["after"]["relative_gap"] < 0.5 * row["before"]["relative_gap"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_outliers_do_not_keep_it_from_an_equal_model(seed):
    # Without them the farther group is brought as close as the nearer one: the mean cost falls, which is no cheat.
    rng = np.random.default_rng(seed)
    (X, y, group), (clean, labels, its_group) = four_clouds(4000, rng, outliers=0.05), four_clouds(3000, rng)
    actions = ActionSet.free(X, costs="unit")
    equal = equalize(LogisticRegression(), X, y, sensitive_features=group, actions=actions, norm="l2", **FEW)
    assert equal.changed
    plain = LogisticRegression().fit(X[equal.training], y[equal.training])
    gaps = []
    for model in (plain, equal.model):
        rejected = model.predict(clean) == 0
        costs, members = find_recourse(model, clean[rejected], actions=actions, norm="l2").costs, its_group[rejected]
        gaps.append(abs(costs[members == 0].mean() - costs[members == 1].mean()) / costs.mean())
    assert gaps[0] > 0.8
    assert gaps[1] < 0.1
    assert (equal.model.predict(clean) != labels).mean() < 0.02


def folds_of(gaps, *, accuracy=None, spread=0.02):
    """Rows of folds with these transport gaps, the plain model's first, and their table."""
    gaps = np.asarray(gaps, dtype=float)
    accuracy = np.full(gaps.shape[1], 0.8) if accuracy is None else np.asarray(accuracy)
    same = {"transport_floor": 0.05, "transport_spread": spread, "acceptance": 0.6, "least_shrunk": 1.0}
    same["without_recourse"] = 0.0
    folds = [
        [{"transport_gap": gap, "accuracy": right, **same} for gap, right in zip(fold, accuracy, strict=True)]
        for fold in gaps
    ]
    return pd.DataFrame([_mean_row(k, [fold[k] for fold in folds]) for k in range(gaps.shape[1])]), folds


def picked(gaps, budget=0.01, **settings):
    table, folds = folds_of(gaps, **settings)
    return _pick(table, folds, budget)


def test_a_gap_that_chance_could_make_is_left_alone():
    gaps = [[0.09, 0.03], [0.06, 0.03], [0.06, 0.03]]
    reason = _without_a_gap(folds_of(gaps, spread=0.05)[1])  # 0.07 against 0.05 + 1.645 × 0.05 / √3
    assert "not beyond what chance alone would make it (up to 0.097)" in reason
    assert _without_a_gap(folds_of(gaps, spread=0.01)[1]) == ""
    assert picked(gaps, spread=0.01)[0] == [1]


def test_where_there_is_no_gap_nothing_else_is_fitted(monkeypatch):
    X, y, _ = make_people(400, spread=0.0)
    coin = np.random.default_rng(1).choice(["u", "v"], len(y))
    asked = []
    fit_path = EqualRecourseLinear.fit_path
    monkeypatch.setattr(
        EqualRecourseLinear,
        "fit_path",
        lambda *args, penalties, **given: asked.append(penalties) or fit_path(*args, penalties=penalties, **given),
    )
    kept = equalize(LogisticRegression(), X, y, sensitive_features=coin, kappas=[3.0], **FEW)
    assert (kept.changed, len(kept.frontier.table), "frontier" in kept.after.document) == (False, 1, False)
    assert kept.after.document["comparison"]["kept"] == kept.reason
    page = render(kept.after.document)
    assert page.count('data-test="kept"') == 1
    assert html.escape(kept.reason, quote=False) in page.replace("&#39;", "'")
    assert '<table data-test="cheats">' not in page
    assert "Reduction of the gap" not in page
    assert "beyond what chance alone would make it" in kept.reason
    assert asked == [[0.0], [0.0], [0.0], [0.0], [3.0]]  # three folds, all training people, and the placebo


def test_a_gain_in_one_fold_alone_is_none():
    rows, reason = picked([[0.3, 0.31], [0.3, 0.31], [0.3, 0.1]])
    assert rows == []
    assert "nothing within 1 point of accuracy" in reason


def test_folds_that_agree_on_next_to_nothing_have_shown_nothing():
    gaps = [[0.180, 0.168], [0.181, 0.169], [0.179, 0.166]]  # less than the gaps of shuffled groups differ
    assert picked(gaps, spread=0.02)[0] == []
    assert picked(gaps, spread=0.002)[0] == [1]


def test_of_those_that_cannot_be_told_apart_the_most_accurate_is_taken():
    gaps = [[0.3, 0.1, 0.11, 0.2], [0.3, 0.12, 0.1, 0.21], [0.3, 0.1, 0.12, 0.2]]
    assert picked(gaps, accuracy=[0.8, 0.791, 0.799, 0.8])[0] == [2, 1, 3]
    assert picked(gaps, accuracy=[0.8, 0.799, 0.795, 0.8])[0] == [1, 2, 3]


def test_what_is_undefined_in_a_fold_or_takes_recourse_away_is_not_recommended():
    gaps = [[0.30, 0.10], [0.32, 0.10], [0.31, np.nan]]
    assert picked(gaps)[0] == []
    for name, value in (("without_recourse", 0.035), ("least_shrunk", 0.5)):
        table, folds = folds_of([[0.30, 0.10]] * 3)
        assert _pick(table, folds, 0.01)[0] == [1]
        table.loc[1, name] = value
        assert _pick(table, folds, 0.01)[0] == []


def test_what_costs_too_much_is_not_recommended():
    gaps = [[0.3, 0.1, 0.01]] * 3
    assert picked(gaps, accuracy=[0.8, 0.795, 0.78])[0] == [1]
    assert picked(gaps, accuracy=[0.8, 0.795, 0.78], budget=0.02)[0] == [2, 1]


@pytest.mark.parametrize(
    ("recommended", "kept"),
    [([2, 1], 1), ([2], 0), ([], 0), ([3, 1], 1)],
    ids=["the next one", "none", "nothing to try", "too dear"],
)
def test_a_recommended_model_has_to_keep_its_word_when_it_is_fitted_to_everybody(recommended, kept):
    gaps = {0.0: 0.3, 1.0: 0.2, 3.0: 0.4, 10.0: 0.1}  # κ = 3 was best on the folds, and is worse here
    accuracies = {0.0: 0.8, 1.0: 0.795, 3.0: 0.8, 10.0: 0.78}  # and κ = 10 costs more than there

    class Work(_Work):
        def fit_path(self, path, rows, groups):
            return path

        def judge(self, model, rows):
            return {"transport_gap": gaps[model], "accuracy": accuracies[model]}

    work = Work(None, None, None, None, pd.DataFrame({"group": ["u", "v"]}), None, "l1", 0)
    chosen, plain, fair = work.first_confirmed([0.0, 1.0, 3.0, 10.0], recommended, np.arange(2), 0.01)
    assert (chosen, plain, fair) == (kept, 0.0, float(kept))


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


@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.NoRecourseWarning")
@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.UndefinedRecourseWarning")
def test_where_nobody_has_recourse_the_reason_says_so():
    X, y, sex = make_people(400)
    frozen = ActionSet.from_frame(X, immutable=list(X.columns))
    kept = equalize(LogisticRegression(), X, y, sensitive_features=sex, actions=frozen, kappas=[3.0], **FEW)
    assert not kept.changed
    assert "(100 % of the rejected have none), so there is no gap to measure" in kept.reason
