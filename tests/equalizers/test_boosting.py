"""Boosted trees with the distance between costs in their loss: plain without it, ordinary boosters in the end."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests._clouds import four_clouds

from equirecourse import ActionSet, find_recourse
from equirecourse.actions import Feature
from equirecourse.datasets import load_credit
from equirecourse.equalizers import EqualRecourseBoosting, _boosting_fit, _experience
from equirecourse.equalizers._experience import Experience, Experienced, Paths
from equirecourse.equalizers._objective import Prices
from equirecourse.exceptions import SmallGroupWarning

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

BOOSTERS = {
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=40, max_depth=3, learning_rate=0.1, verbose=-1, n_jobs=1),
    "xgboost": xgboost.XGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.1, n_jobs=1),
}
NATIVE = {"lightgbm": {"boost_from_average": False}, "xgboost": {"base_score": 0.5}}
both = pytest.mark.parametrize("name", BOOSTERS)


def make_gap(n=1500, seed=0, n_groups=2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] *= 0.7 + 1.2 * group / max(n_groups - 1, 1)
    y = np.where(X @ [0.8, 1.0, 0.5, 0.0] + rng.normal(scale=0.8, size=n) > 0, "yes", "no")
    return pd.DataFrame(X, columns=list("abcd")), y, group


def fitted(X, y, group, booster, **settings):
    weights = {"sample_weight": settings.pop("sample_weight")} if "sample_weight" in settings else {}
    booster = BOOSTERS[booster] if isinstance(booster, str) else booster
    return EqualRecourseBoosting(clone(booster), **settings).fit(X, y, sensitive_features=group, **weights)


def chance(model, X):
    """Probability of a yes."""
    return model.predict_proba(X)[:, list(model.classes_).index(model.favorable_label_)]


def relative_gap(model, X, group, actions):
    """Of the mean exact costs of the rejected."""
    found = find_recourse(model, X, actions=actions, norm="l1")
    assert found.exact.all()
    some = found.rejected & np.isfinite(found.costs)
    means = [found.costs[some & (group == label)].mean() for label in np.unique(group)]
    return np.ptp(means) / found.costs[some].mean()


@both
@pytest.mark.parametrize("weighted", [False, True])
def test_without_kappa_it_is_the_library_s_own_log_loss(name, weighted):
    X, y, group = make_gap()
    # Weights whose mean is one, as the ridge of the leaves counts against them; and no bins that depend on them.
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(y)) if weighted else np.ones(len(y))
    weight /= weight.mean()
    booster = clone(BOOSTERS[name]).set_params(**({"tree_method": "exact"} if name == "xgboost" else {}))
    model = fitted(X, y, group, booster, kappa=0, sample_weight=weight)
    native = clone(booster).set_params(**NATIVE[name]).fit(X, (y == "yes").astype(int), sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), native.predict_proba(X), atol=1e-4)
    assert model.rounds_["kind"].tolist() == ["plain"]


@both
def test_stages_of_trees_are_the_trees_of_one_go(name):
    """With a price of inequality that is next to nothing, only the stages are left."""
    X, y, group = make_gap()
    plain, staged = (fitted(X, y, group, name, kappa=kappa) for kappa in (0, 1e-9))
    assert len(staged.rounds_) > 2
    assert staged.rounds_["trees"].iloc[-1] == 40
    np.testing.assert_allclose(staged.predict_proba(X), plain.predict_proba(X), atol=1e-5)


@both
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_distance_between_the_scores_that_people_lack_shrinks(name, n_groups):
    X, y, group = make_gap(3000, n_groups=n_groups)
    plain, equal = EqualRecourseBoosting(BOOSTERS[name]).fit_path(X, y, sensitive_features=group, penalties=[0.0, 3.0])
    assert equal.rounds_["distance"].iloc[-1] < 0.5 * equal.rounds_["distance"].iloc[0]
    assert equal.rounds_["distance"].iloc[0] == plain.rounds_["distance"].item()
    assert abs(equal.rounds_["acceptance"].iloc[-1] - equal.rounds_["acceptance"].iloc[0]) < 0.03
    assert equal.score(X, y) > plain.score(X, y) - 0.05


@both
def test_with_actions_the_gap_of_what_people_experience_shrinks_on_new_people(name):
    credit = load_credit(paper=True)
    rows = np.random.default_rng(0).permutation(len(credit.target))
    train, new = rows[:5000], rows[10_000:13_000]
    X, y, group = credit.data, np.asarray(credit.target), credit.sensitive_features["graduate"].astype(str).to_numpy()
    balanced = clone(BOOSTERS[name]).set_params(scale_pos_weight=(y[train] < 0).sum() / (y[train] > 0).sum())
    actions = ActionSet.from_frame(X.iloc[train])
    gaps, scores = [], []
    for kappa in (0.0, 0.3):
        settings = {"kappa": kappa, "actions": actions, "max_people": 500}
        model = fitted(X.iloc[train], y[train], group[train], balanced, **settings)
        gaps.append(relative_gap(model, X.iloc[new], group[new], actions))
        scores.append(model.score(X.iloc[new], y[new]))
    assert gaps[0] > 0.15
    assert gaps[1] < 0.5 * gaps[0]
    assert scores[1] > scores[0] - 0.03


@pytest.mark.parametrize("favorable", ["yes", "no"])
@pytest.mark.parametrize("with_places", [False, True])
def test_the_pull_is_the_gradient_by_scores_here_and_where_people_pass(favorable, with_places, monkeypatch):
    monkeypatch.setattr(_boosting_fit, "_STRONGEST", np.inf)  # nobody's pull is cut
    monkeypatch.setattr(_boosting_fit, "_LONGEST", np.inf)
    X, y, group = make_gap(300)
    model = EqualRecourseBoosting(BOOSTERS["lightgbm"], favorable_label=favorable)
    problem = model._open(X, y, group, np.random.default_rng(1).uniform(0.5, 2.0, len(y)))
    n, kappa, held, sign = len(y), 3.0, np.array([0.4, 0.3]), problem.sign
    rng = np.random.default_rng(0)
    here = problem.plain().scores + 0.3 * rng.normal(size=n)
    costs = problem.costs.comparing(sign * here)
    weights = problem.weights * n / problem.weights.sum()
    prices = passed = None
    there = np.empty(0)
    if with_places:
        people = np.flatnonzero(sign * here <= 0)[::2]
        owners, exact = np.repeat(np.arange(len(people)), 3), rng.uniform(0.5, 2.0, len(people))
        there = rng.normal(scale=0.5, size=len(owners))
        paths = Paths(people, exact, owners, None, 0.5)
        accepted, lacked = rng.uniform(size=len(owners)) < 0.5, rng.uniform(0.5, 2.0, len(people))
        passed = _boosting_fit.Passed(paths, None, accepted, lacked, costs.unit(sign * here))
        prices = Prices(rng.uniform(0.5, 2.0, n), (rng.uniform(size=n) < 0.7).astype(float))
    at = np.concatenate([here, there])

    def given_lack(lacking):
        """The score that people lack, relative to that before the stage."""
        return lacking[people] / lacked

    def distance(scores):
        """D of costs whose steps are replaced by tangents of soft ones at the point in question."""
        if not with_places:
            return costs.distance(sign * scores, prices).value
        tau = passed.tau
        rejected, lacking = expit(-sign * scores[:n] / tau), tau * np.logaddexp(0, -sign * scores[:n] / tau)
        steps = passed.accepted.astype(float) - (sign * there > 0)
        steps += expit(-sign * scores[n:] / tau) - expit(-sign * there / tau)
        given = prices.values * lacking
        given[people] = exact * (0.5 * (1 + 0.5 * np.bincount(owners, steps)) + 0.5 * given_lack(lacking))
        return costs.of_costs(given, rejected, prices.counted)[0]

    def value(scores):
        drift = costs.drift(sign * scores[:n], held).value
        loss = weights @ (np.logaddexp(0, scores[:n]) - problem.y * scores[:n])
        return loss + kappa * n * (distance(scores) + _boosting_fit.HOLD * drift)

    gradient, curvature = _boosting_fit.BoostingObjective(problem, costs, kappa, prices, held, passed)(None, at)
    assert (curvature > 0).all()
    for i in range(0, len(at), 11):
        step = 1e-4 * (np.arange(len(at)) == i)
        assert gradient[i] == pytest.approx((value(at + step) - value(at - step)) / 2e-4, rel=2e-3, abs=2e-3)


def test_the_pull_is_halved_after_a_tree_that_went_too_far():
    X, y, group = make_gap(300)
    problem = EqualRecourseBoosting(BOOSTERS["lightgbm"])._open(X, y, group, None)
    objective = _boosting_fit.BoostingObjective(problem, problem.costs, 1.0, None, np.full(2, 0.5))
    near = problem.plain().scores
    far = near + 3.0 * group
    cautions = []
    for scores in (near, far, far, near, far):
        objective(None, scores)
        cautions.append(objective.caution)
    np.testing.assert_allclose(cautions, [1.0, 0.5, 0.55, 0.605, 0.3025])


@both
@pytest.mark.parametrize("form", ["frame", "array", "sparse pipeline", "categories"])
def test_places_on_the_way_are_rows_of_whatever_table_the_booster_takes(name, form):
    X, y, group = make_gap(100 if form == "categories" else 600)
    actions, booster = ActionSet.from_frame(X), clone(BOOSTERS[name])
    if form == "categories":
        X["e"] = pd.Categorical(np.where(X["d"] > 0, "high", "low"))
        X["b"] = X["b"].round().astype(int)
        actions = ActionSet.from_frame(X, immutable=["e"])
        booster.set_params(n_estimators=12, learning_rate=0.3)  # these are searched, which takes its time
        booster.set_params(**({"enable_categorical": True} if name == "xgboost" else {}))
    if form == "array":
        X = X.to_numpy()
    if form == "sparse pipeline":
        X["e"] = np.where(X["d"] > 0, "high", "low")
        actions = ActionSet.from_frame(X)
        steps = make_column_transformer((OneHotEncoder(), ["e"]), remainder="passthrough", sparse_threshold=1.0)
        booster = make_pipeline(steps, booster)
    plain, equal = (fitted(X, y, group, booster, kappa=kappa, actions=actions) for kappa in (0, 3.0))
    assert np.ptp(equal.predict_proba(X)[:, 0] - plain.predict_proba(X)[:, 0]) > 0.01
    if form != "categories":
        assert relative_gap(equal, X, group, actions) < 0.6 * relative_gap(plain, X, group, actions)


def test_two_models_are_priced_by_the_same_people_as_far_as_both_reject_them():
    X, y, group = make_gap()
    actions = ActionSet.from_frame(X)
    one, other = (fitted(X, y, group, "lightgbm", kappa=0).set_params(kappa=k) for k in (0.0, 1.0))
    experience = Experience(X, actions, "l1", "yes", 100, 0)
    scores = one.decision_function(X)
    moved = scores + np.where(np.arange(len(y)) % 10 == 0, 5.0, 0.0)  # a tenth is accepted by the other model
    asked = [
        (experience.ask(model, some, np.ones(len(y)), group, 0.25).prices.counted > 0) & (some <= 0)
        for model, some in ((one, scores), (other, moved))
    ]
    both_reject = (scores <= 0) & (moved <= 0)
    assert (asked[0] & asked[1]).sum() >= (asked[0] & both_reject).sum() > 80


def test_places_on_the_way_are_rejected_before_the_boundary_and_accepted_beyond_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    model = LogisticRegression().fit(X, X["a"] + 0.5 * X["b"] > 0.5)
    experience = Experience(X, ActionSet.free(X), "l2", True, 300, 0)
    found = experience.ask(model, model.decision_function(X), np.ones(300), np.zeros(300, dtype=int), 0.25)
    paths = experience.paths(found)
    np.testing.assert_array_equal(np.bincount(paths.owners), _experience._PLACES)
    assert paths.weight * _experience._PLACES == _experience._REACH
    start, end = X.to_numpy()[paths.people], found.counterfactuals.to_numpy()
    way = (end - start)[paths.owners]
    along = ((paths.table.to_numpy() - start[paths.owners]) * way).sum(axis=1) / (way * way).sum(axis=1)
    np.testing.assert_allclose(start[paths.owners] + along[:, None] * way, paths.table, atol=1e-12)  # on the line
    edges = np.linspace(0, _experience._REACH, _experience._PLACES + 1)
    np.testing.assert_array_equal(np.digitize(along, edges) - 1, np.tile(range(_experience._PLACES), len(start)))
    sure = np.abs(along - 1) > 1e-6
    np.testing.assert_array_equal((model.decision_function(paths.table) > 0)[sure], (along > 1)[sure])


def test_places_on_the_way_keep_to_the_action_set_and_to_the_types_of_columns():
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame({
        "whole": rng.integers(2, 16, n), "up": rng.normal(size=n).clip(None, 1), "fixed": rng.normal(size=n),
        "label": pd.Categorical(rng.choice(["x", "y", "z"], n)), "grade": rng.choice(["low", "mid", "high"], n),
    })  # fmt: skip
    actions = ActionSet([
        Feature("whole", low=2, high=15, step=1), Feature("up", change="increase", high=1.0),
        Feature("fixed", change="no"), Feature("label", kind="labels", labels=("x", "y", "z"), allowed=("y",)),
        Feature("grade", kind="ordered", labels=("low", "mid", "high"), change="increase"),
    ])  # fmt: skip
    experience = Experience(X, actions, "l1", 1, n, 0)
    start = actions.encode(X)
    goal = np.column_stack([rng.integers(2, 16, n), np.fmax(start[:, 1], rng.uniform(0, 1, n)), start[:, 2],
                            np.where(rng.uniform(size=n) < 0.5, 1, start[:, 3]), np.full(n, 2.0)])  # fmt: skip
    found = Experienced(Prices(np.ones(n), np.ones(n)), np.arange(n), np.ones(n), actions.decode(X, start, goal))
    paths = experience.paths(found)
    assert (paths.table.dtypes == X.dtypes).all()
    assert len(actions.violations(X.iloc[paths.owners].reset_index(drop=True), paths.table)) == 0
    passed = actions.encode(paths.table)
    assert ((passed != start[paths.owners]) & (passed != goal[paths.owners])).any(axis=0).tolist() == [
        True, True, False, False, True
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 3])
def test_with_actions_the_best_stage_of_the_second_half_is_kept_as_it_was(seed):
    rng = np.random.default_rng(seed)
    X, y, group = four_clouds(800, rng, outliers=0.05)
    model = EqualRecourseBoosting(
        clone(BOOSTERS["lightgbm"]), actions=ActionSet.free(X, costs="unit"), max_people=150, kappa=10.0
    ).fit(X, y, sensitive_features=group)
    table = model.rounds_
    row = table[table["chosen"]].iloc[0]
    assert np.isnan(table["distance"].iloc[0])
    assert row["distance"] == table["distance"].iloc[3:].min()  # here the loss decides nothing
    assert (row["trees"] < 40) == (seed == 0)  # an earlier stage, and the last one
    assert model.estimator_.booster_.num_trees() == row["trees"]
    assert model.score(X, y) == pytest.approx(row["accuracy"])


def test_what_is_said_of_a_model_is_measured_on_the_model_that_is_returned():
    # A constant that is added to scores, so that as many people are accepted as before, was added after the costs were
    # found: between two clouds it can carry the boundary from one end to the other.
    shifts = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y, group = four_clouds(800, rng, outliers=0.05)
        model = EqualRecourseBoosting(clone(BOOSTERS["lightgbm"]), actions=ActionSet.free(X, costs="unit"))
        problem = model._open(X, y, group, None)
        plain = problem.plain()
        chosen, _ = problem.fit(plain, 10.0)
        experienced = problem._experienced(chosen, 0)  # of everybody who is rejected, so the turn does not matter
        again = problem.costs.comparing(plain.scores).distance(chosen.scores, experienced.prices).value
        assert chosen.row["distance"] == pytest.approx(again, rel=1e-9)
        assert chosen.row["acceptance"] == pytest.approx(plain.row["acceptance"], abs=0.01)
        shifts.append(chosen.shift)
    assert any(shift != 0.0 for shift in shifts)


def test_outliers_do_not_keep_trees_from_an_equal_model():
    gaps = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        (X, y, group), (clean, labels, its_group) = four_clouds(3000, rng, outliers=0.05), four_clouds(1000, rng)
        actions = ActionSet.free(X, costs="unit")
        booster = lightgbm.LGBMClassifier(n_estimators=100, max_depth=4, verbose=-1, n_jobs=1)
        model = EqualRecourseBoosting(booster, actions=actions, max_people=500)
        plain, equal = model.fit_path(X, y, sensitive_features=group, penalties=[0.0, 10.0])
        assert relative_gap(plain, clean, its_group, actions) > 0.7
        assert equal.score(clean, labels) > 0.98
        gaps.append(relative_gap(equal, clean, its_group, actions))
    assert np.mean(gaps) < 0.1


@both
def test_a_path_is_a_number_of_fits(name):
    X, y, group = make_gap(800)
    path = EqualRecourseBoosting(BOOSTERS[name]).fit_path(X, y, sensitive_features=group, penalties=[0.0, 0.3, 3.0])
    for model, kappa in zip(path, (0.0, 0.3, 3.0), strict=True):
        assert model.kappa == kappa
        np.testing.assert_array_equal(model.predict_proba(X), fitted(X, y, group, name, kappa=kappa).predict_proba(X))
    assert EqualRecourseBoosting(BOOSTERS[name]).fit_path(X, y, sensitive_features=group, penalties=[]) == []


@both
def test_a_path_is_a_number_of_fits_where_costs_come_in_two_clouds(name):
    # What one fit knows of medians must not decide where the next one finds its own.
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 2, (2, 800))
    centers = np.array([[[0.5, 0.0], [3.5, -2.0]], [[0.0, 3.0], [0.0, 3.0]]])
    X = centers[y, group] + 0.45 * rng.normal(size=(800, 2))
    model = EqualRecourseBoosting(clone(BOOSTERS[name]), actions=ActionSet.free(X, costs="unit"), norm="l2")
    path = model.fit_path(X, y, sensitive_features=group, penalties=[1.0, 3.0, 10.0])
    alone = clone(model).set_params(kappa=10.0).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(path[-1].predict_proba(X), alone.predict_proba(X))


@both
def test_the_table_has_a_row_for_each_stage(name):
    X, y, group = make_gap()
    model = fitted(X, y, group, name, kappa=1.0)
    table, row = model.rounds_, model.rounds_.iloc[-1]
    assert table["kind"].tolist() == ["plain"] + ["distribution"] * 4
    assert table["chosen"].tolist() == [False] * 4 + [True]
    assert table["trees"].iloc[1:].is_monotonic_increasing
    assert row["accuracy"] == pytest.approx(model.score(X, y))
    accepted = model.predict(X) == "yes"
    assert row["acceptance"] == pytest.approx(accepted.mean())
    assert [row["rejected (0)"], row["rejected (1)"]] == [(~accepted & (group == k)).sum() for k in (0, 1)]
    assert row["loss"] == pytest.approx(-np.log(np.where(y == "yes", chance(model, X), 1 - chance(model, X))).mean())
    for column in table:
        assert f"``{column.replace('(0)', '(group)').replace('(1)', '(group)')}``" in EqualRecourseBoosting.__doc__


@both
def test_what_comes_out_is_an_ordinary_booster_with_exact_recourse(name, tmp_path):
    X, y, group = make_gap()
    model = fitted(X, y, group, name)
    found = find_recourse(model, X.head(40), actions=ActionSet.free(X))
    assert found.method == "trees"
    assert found.exact.all()
    assert (model.predict(found.counterfactuals) == "yes").all()
    assert type(model.estimator_) is type(BOOSTERS[name])
    booster = model.estimator_.get_booster() if name == "xgboost" else model.estimator_.booster_
    booster.save_model(str(tmp_path / "model.json"))
    if name == "xgboost":
        again = xgboost.XGBClassifier()
        again.load_model(str(tmp_path / "model.json"))
        again = again.predict_proba(X)[:, 1]
    else:
        again = lightgbm.Booster(model_file=str(tmp_path / "model.json")).predict(X)
    np.testing.assert_allclose(again, model.predict_proba(X)[:, 1], rtol=1e-6)
    np.testing.assert_array_equal(model.estimator_.predict(X) == 1, model.predict(X) == "yes")
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == "yes")


@both
def test_labels_and_the_other_side(name):
    X, y, group = make_gap()
    one = fitted(X, y, group, name, kappa=1.0)
    assert one.classes_.tolist() == ["no", "yes"]
    assert one.favorable_label_ == "yes"
    other = fitted(X, np.where(y == "yes", 0, 1), group, name, kappa=1.0, favorable_label=0)
    assert other.favorable_label_ == 0
    np.testing.assert_array_equal(other.predict(X) == 0, one.predict(X) == "yes")
    np.testing.assert_allclose(chance(other, X), chance(one, X), atol=1e-6)
    turned = fitted(X, y, group, name, kappa=1.0, favorable_label="no")
    assert np.abs(turned.predict_proba(X) - one.predict_proba(X)).max() > 0.01


@both
def test_the_unit_of_weights_does_not_matter(name):
    X, y, group = make_gap()
    one, thrice = (fitted(X, y, group, name, sample_weight=np.full(len(y), weight)) for weight in (1.0, 3.0))
    np.testing.assert_allclose(thrice.predict_proba(X), one.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(("name", "kappa"), [("lightgbm", 0.0), ("xgboost", 0.0), ("xgboost", 0.3), ("xgboost", 3.0)])
def test_a_weight_of_k_is_a_person_k_times(name, kappa):
    """Where nothing but weights counts people: neither leaves nor bins."""
    X, y, group = make_gap(800)
    X, times = (4 * X).round(), np.random.default_rng(0).integers(1, 4, len(y))
    heads = {
        "lightgbm": {"min_child_samples": 1, "min_child_weight": 0, "min_data_in_bin": 1},
        "xgboost": {"min_child_weight": 0, "reg_lambda": 0, "tree_method": "exact"},
    }
    booster, rows = clone(BOOSTERS[name]).set_params(**heads[name]), np.repeat(np.arange(len(y)), times)
    weighted = fitted(X, y, group, booster, kappa=kappa, sample_weight=times)
    repeated = fitted(X.iloc[rows], y[rows], group[rows], booster, kappa=kappa)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "settings", "weights"),
    [
        ("lightgbm", {"class_weight": {0: 1.0, 1: 3.0}}, (1.0, 3.0)),
        ("lightgbm", {"scale_pos_weight": 3.0}, (1.0, 3.0)),
        ("xgboost", {"scale_pos_weight": 3.0}, (1.0, 3.0)),
        ("lightgbm", {"class_weight": "balanced"}, "balanced"),
        ("lightgbm", {"is_unbalance": True}, "balanced"),
    ],
    ids=str,
)
def test_class_weights_are_weights_of_people_in_the_loss(name, settings, weights):
    X, y, group = make_gap()
    keep = (y == "no") | (np.arange(len(y)) % 3 == 0)
    X, y, group = X[keep], y[keep], group[keep]
    if weights == "balanced":
        weights = 1.0, (y == "no").sum() / (y == "yes").sum()
    by_class = fitted(X, y, group, clone(BOOSTERS[name]).set_params(**settings), kappa=0)
    by_person = fitted(X, y, group, name, kappa=0, sample_weight=np.where(y == "yes", weights[1], weights[0]))
    np.testing.assert_allclose(by_class.predict_proba(X), by_person.predict_proba(X), atol=1e-6)
    plain = fitted(X, y, group, name, kappa=0)
    assert (by_class.predict(X) == "yes").mean() > (plain.predict(X) == "yes").mean() + 0.05
    equal = fitted(X, y, group, clone(BOOSTERS[name]).set_params(**settings), kappa=0.3)
    assert abs(equal.rounds_["acceptance"].iloc[-1] - equal.rounds_["acceptance"].iloc[0]) < 0.05


@both
def test_missing_values_are_left_to_the_booster(name):
    X, y, group = make_gap()
    X.iloc[::7, 1] = np.nan
    actions = ActionSet.from_frame(X)
    model = fitted(X, y, group, name, actions=actions, max_people=100)
    assert model.rounds_["kind"].iloc[-1] == "distribution"
    found = find_recourse(model, X.head(60), actions=actions)
    assert found.exact.all()
    assert (model.predict(found.counterfactuals[found.status != "none"]) == "yes").all()


@both
def test_a_pipeline_inside_is_its_steps_by_hand(name):
    X, y, group = make_gap()
    pipeline = Pipeline([("scale", StandardScaler().set_output(transform="pandas")), ("boost", BOOSTERS[name])])
    inside = fitted(X, y, group, pipeline, kappa=1.0)
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(X)
    np.testing.assert_array_equal(
        inside.predict_proba(X), fitted(scaled, y, group, name, kappa=1.0).predict_proba(scaled)
    )
    assert [step for step, _ in inside.estimator_.steps] == ["scale", "boost"]
    assert inside.feature_names_in_.tolist() == list("abcd")


@both
def test_a_pipeline_inside_takes_columns_of_text_and_actions_on_them(name):
    X, y, group = make_gap(800)
    X = X.assign(town=np.random.default_rng(0).choice(["x", "y", "z"], len(y)))
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough")
    actions = ActionSet.from_frame(X, immutable=["town"])
    pipeline = make_pipeline(columns.set_output(transform="pandas"), BOOSTERS[name])
    model = fitted(X, y, group, pipeline, actions=actions, max_people=100)
    found = find_recourse(model, X.head(60), actions=actions)
    assert found.method == "trees"
    assert found.exact.all()
    moved = model.predict(found.counterfactuals[found.status != "none"])
    assert (moved == "yes").all()
    assert (found.counterfactuals["town"] == X["town"].head(60)).all()


@both
def test_the_same_twice_and_another_draw_with_another_seed(name):
    X, y, group = make_gap(1000)
    actions = ActionSet.from_frame(X)
    settings = {"kappa": 1.0, "actions": actions, "max_people": 50}
    one, again, other = (fitted(X, y, group, name, **settings, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.predict_proba(X), again.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


@both
@pytest.mark.parametrize("settings", [{"warm_up": 0.0}, {"warm_up": 0.99}], ids=str)
def test_any_share_of_the_trees_may_warm_up(name, settings):
    X, y, group = make_gap()
    model = fitted(X, y, group, name, kappa=1.0, **settings)
    assert model.rounds_["trees"].iloc[-1] == 40
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, y) > 0.8


@both
def test_one_tree_is_a_booster(name):
    X, y, group = make_gap(500)
    model = fitted(X, y, group, clone(BOOSTERS[name]).set_params(n_estimators=1), kappa=1.0)
    assert model.rounds_["trees"].tolist() == [1, 1]


def test_a_booster_that_does_not_say_how_many_trees_has_a_hundred():
    X, y, group = make_gap(300)
    model = fitted(X, y, group, xgboost.XGBClassifier(max_depth=2, n_jobs=1), kappa=0.3)
    assert model.rounds_["trees"].tolist()[0] == model.rounds_["trees"].tolist()[-1] == 100


def test_each_feature_on_its_own_or_all_combinations():
    X, y, group = make_gap()
    table = pd.DataFrame({"sex": np.where(group == 1, "yes", "no"), "old": np.where(X["d"] > 0, "yes", "no")})
    crossed, single = (fitted(X, y, table, "lightgbm", intersections=way) for way in (True, False))
    assert {"rejected (yes & no)", "rejected (no & no)"} <= set(crossed.rounds_)
    assert {"rejected (sex=yes)", "rejected (sex=no)", "rejected (old=yes)", "rejected (old=no)"} <= set(single.rounds_)


def test_without_groups_it_is_the_plain_booster():
    X, y, group = make_gap(500)
    model = EqualRecourseBoosting(BOOSTERS["lightgbm"], kappa=3.0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), fitted(X, y, group, "lightgbm", kappa=0).predict_proba(X))
    assert model.rounds_["kind"].tolist() == ["plain"]


def test_a_group_with_few_rejected_people_is_left_out_and_named():
    X, y, group = make_gap(600)
    group = np.where(np.arange(600) < 4, 7, group)
    with pytest.warns(SmallGroupWarning, match="group 7 has fewer than min_rejected=5 rejected people"):
        fitted(X, y, group, "lightgbm")


def test_a_price_that_is_too_high_does_not_run_away():
    X, y, group = make_gap()
    model = fitted(X, y, group, "lightgbm", kappa=1e6)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.rounds_["loss"].max() < 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: EqualRecourseBoosting(GradientBoostingClassifier()).fit(X, y), "got GradientBoostingClassifier"),
        (lambda X, y: EqualRecourseBoosting(LogisticRegression()).fit(X, y), "got LogisticRegression"),
        (
            lambda X, y: EqualRecourseBoosting(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y),
            "got LogisticRegression",
        ),
        (lambda X, y: EqualRecourseBoosting(kappa=-1).fit(X, y), "'kappa' parameter"),
        (lambda X, y: EqualRecourseBoosting(kappa=np.nan).fit(X, y), "'kappa' parameter"),
        (lambda X, y: EqualRecourseBoosting(warm_up=1.0).fit(X, y), "'warm_up' parameter"),
        (lambda X, y: EqualRecourseBoosting(actions={}).fit(X, y), "'actions' parameter"),
        (lambda X, y: EqualRecourseBoosting(norm="l7").fit(X, y), "'norm' parameter"),
        (lambda X, y: EqualRecourseBoosting(max_people=0).fit(X, y), "'max_people' parameter"),
        (lambda X, y: EqualRecourseBoosting(favorable_label="maybe").fit(X, y), "'maybe' is not one of the labels"),
        (lambda X, y: EqualRecourseBoosting().fit(X, y[:5]), "300 people and y has 5 labels"),
        (lambda X, y: EqualRecourseBoosting().fit(X, np.arange(300) % 3), "2|two"),
        (lambda X, y: EqualRecourseBoosting().fit(X, y, sensitive_features=np.zeros(300)), "1 group"),
        (lambda X, y: EqualRecourseBoosting().fit(X, y, sensitive_features=np.zeros(7)), "300|7"),
        (lambda X, y: EqualRecourseBoosting().fit(X, y, sample_weight=-np.ones(300)), "Negative values"),
        (lambda X, y: EqualRecourseBoosting().fit(X, y, sample_weight=np.zeros(300)), "at least one non-zero"),
    ],
    ids=[
        "another booster", "no booster", "no booster in a pipeline", "price", "no price", "warm-up", "actions", "norm",
        "people", "label", "lengths", "many labels", "one group", "length of groups", "weights", "no weights",
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call, message):
    X, y, _ = make_gap(300)
    with pytest.raises(ValueError, match=message):
        call(X, y)


def test_a_model_that_failed_is_as_it_was():
    X, y, group = make_gap(300)
    model = fitted(X, y, group, "lightgbm")
    before, state = model.predict_proba(X), set(vars(model))
    with pytest.raises(ValueError, match="1 group"):
        model.fit(X[["a", "b"]], y, sensitive_features=np.zeros(300))
    assert set(vars(model)) == state
    np.testing.assert_array_equal(model.predict_proba(X), before)
