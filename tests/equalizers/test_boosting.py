"""Boosted trees with the balance in their loss: plain without it, balanced with it, ordinary boosters in the end."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from equirecourse import ActionSet, find_recourse
from equirecourse.equalizers import EqualRecourseBoosting
from equirecourse.exceptions import SmallGroupWarning

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

BOOSTERS = {
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=40, max_depth=3, learning_rate=0.1, verbose=-1, n_jobs=1),
    "xgboost": xgboost.XGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.1, n_jobs=1),
}
both = pytest.mark.parametrize("name", BOOSTERS)


def make_gap(n=3000, seed=0, n_groups=2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] *= 0.7 + 1.2 * group / max(n_groups - 1, 1)
    y = np.where(X @ [0.8, 1.0, 0.5, 0.0] + rng.normal(scale=0.8, size=n) > 0, "yes", "no")
    return pd.DataFrame(X, columns=list("abcd")), y, group


def score_gap(model, X, group):
    """Largest difference between the groups' mean log-odds over the people a model rejects."""
    chance = model.predict_proba(X)[:, list(model.classes_).index("yes")]
    scores, rejected = np.log(chance / (1 - chance)), model.predict(X) == "no"
    return float(np.ptp([scores[rejected & (group == label)].mean() for label in np.unique(group)]))


@both
def test_without_a_penalty_it_is_the_library_s_own_log_loss(name):
    X, y, group = make_gap()
    model = EqualRecourseBoosting(BOOSTERS[name], recourse_penalty=0).fit(X, y, sensitive_features=group)
    settings = {"boost_from_average": False} if name == "lightgbm" else {"base_score": 0.5}
    native = clone(BOOSTERS[name]).set_params(**settings).fit(X, (y == "yes").astype(int))
    np.testing.assert_allclose(model.predict_proba(X), native.predict_proba(X), atol=1e-4)


@both
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_difference_of_mean_scores_goes_away_on_new_people_too(name, n_groups):
    X, y, group = make_gap(6000, n_groups=n_groups)
    train, new = np.arange(3000), np.arange(3000, 6000)
    plain, fair = (
        EqualRecourseBoosting(BOOSTERS[name], recourse_penalty=penalty).fit(
            X.iloc[train], y[train], sensitive_features=group[train]
        )
        for penalty in (0.0, np.inf)
    )
    before, after = (score_gap(model, X.iloc[new], group[new]) for model in (plain, fair))
    assert after < 0.4 * before
    assert fair.score(X.iloc[new], y[new]) > plain.score(X.iloc[new], y[new]) - 0.05
    assert fair.rounds_.difference.iloc[-5:].mean() < 0.1
    assert len(fair.rounds_) == 40
    assert abs(fair.multiplier_.sum()) < 1e-9


def test_a_larger_penalty_leaves_less_of_the_difference():
    X, y, group = make_gap()
    left = [
        score_gap(
            EqualRecourseBoosting(BOOSTERS["lightgbm"], recourse_penalty=penalty).fit(X, y, sensitive_features=group),
            X,
            group,
        )
        for penalty in (0.0, 0.02, np.inf)
    ]
    assert left[0] > left[1] > left[2]


@both
def test_what_comes_out_is_an_ordinary_booster_with_exact_recourse(name, tmp_path):
    X, y, group = make_gap(1500)
    model = EqualRecourseBoosting(BOOSTERS[name]).fit(X, y, sensitive_features=group)
    found = find_recourse(model, X.head(40), actions=ActionSet.free(X))
    assert found.method == "trees"
    assert found.exact.all()
    assert (model.predict(found.counterfactuals) == "yes").all()
    booster = model.estimator_.get_booster() if name == "xgboost" else model.estimator_.booster_
    booster.save_model(str(tmp_path / "model.json"))
    if name == "xgboost":
        again = xgboost.XGBClassifier()
        again.load_model(str(tmp_path / "model.json"))
        chance = again.predict_proba(X)[:, 1]
    else:
        chance = lightgbm.Booster(model_file=str(tmp_path / "model.json")).predict(X)
    np.testing.assert_allclose(chance, model.predict_proba(X)[:, 1], rtol=1e-6)


@both
def test_labels_weights_and_the_other_side(name):
    X, y, group = make_gap(1200)
    one = EqualRecourseBoosting(BOOSTERS[name]).fit(X, y, sensitive_features=group)
    other = EqualRecourseBoosting(BOOSTERS[name], favorable_label=0).fit(
        X, np.where(y == "yes", 0, 1), sensitive_features=group
    )
    assert ((other.predict(X) == 0) == (one.predict(X) == "yes")).mean() > 0.99
    twice = EqualRecourseBoosting(BOOSTERS[name]).fit(
        X, y, sensitive_features=group, sample_weight=np.full(len(y), 3.0)
    )
    np.testing.assert_allclose(twice.predict_proba(X), one.predict_proba(X), atol=1e-6)
    plain = EqualRecourseBoosting(BOOSTERS[name]).fit(X, y)
    assert plain.rounds_.difference.eq(0).all()


def test_a_group_with_few_rejected_people_is_left_out_and_named():
    X, y, group = make_gap(600, n_groups=2)
    group = np.where(np.arange(600) < 4, 7, group)
    with pytest.warns(SmallGroupWarning, match="group 7 had fewer than min_rejected=5 rejected people"):
        EqualRecourseBoosting(BOOSTERS["lightgbm"]).fit(X, y, sensitive_features=group)


def test_a_rate_that_is_too_high_does_not_run_away():
    X, y, group = make_gap(2000)
    model = EqualRecourseBoosting(BOOSTERS["lightgbm"], rate=50.0).fit(X, y, sensitive_features=group)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.rounds_.loss.max() < 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: EqualRecourseBoosting(GradientBoostingClassifier()).fit(X, y), "got GradientBoostingClassifier"),
        (lambda X, y: EqualRecourseBoosting(LogisticRegression()).fit(X, y), "got LogisticRegression"),
        (lambda X, y: EqualRecourseBoosting(recourse_penalty=-1).fit(X, y), "'recourse_penalty' parameter"),
        (lambda X, y: EqualRecourseBoosting().fit(X, y[:5]), "300 people and y has 5 labels"),
        (lambda X, y: EqualRecourseBoosting().fit(X, np.arange(300) % 3), "2|two"),
    ],
    ids=["another booster", "no booster", "penalty", "lengths", "many labels"],
)
def test_bad_input_gets_one_sentence(call, message):
    X, y, _ = make_gap(300)
    with pytest.raises(ValueError, match=message):
        call(X, y)
