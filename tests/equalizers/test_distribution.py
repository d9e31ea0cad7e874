"""Linear learners that minimise the distance between distributions of cost: what they do to people, and what not."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from tests._clouds import four_clouds

from equirecourse import ActionSet, EqualRecourseLinear, find_recourse
from equirecourse._validation import check_groups
from equirecourse.equalizers._objective import CostObjective
from equirecourse.exceptions import ConvergenceWarning, SmallGroupWarning
from equirecourse.recourse import boundary_costs

EXACT = {"tol": 1e-10, "max_iter": 10_000}
LEARNERS = {
    "logistic": LogisticRegression(**EXACT),
    "logistic, no ridge": LogisticRegression(C=np.inf, **EXACT),
    "logistic, no intercept": LogisticRegression(fit_intercept=False, **EXACT),
    "squared hinge": LinearSVC(**EXACT),
    "hinge": LinearSVC(loss="hinge", C=0.1, **EXACT),
    "ridge": RidgeClassifier(),
    "stochastic": SGDClassifier(loss="log_loss", random_state=0, alpha=0.001, average=True),
}
every_learner = pytest.mark.parametrize("name", LEARNERS)


def make_gap(n=1500, seed=0, n_groups=2):
    """The first feature is wider from group to group: so are the distances of the rejected."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] *= 0.7 + 1.2 * group / (n_groups - 1)
    y = np.where(X @ [0.8, 1.0, 0.5, 0.0] + rng.normal(scale=0.8, size=n) > 0, 1, 0)
    return X, y, group


def fitted(X, y, group, learner=LEARNERS["logistic"], **settings):
    weights = {"sample_weight": settings.pop("sample_weight")} if "sample_weight" in settings else {}
    return EqualRecourseLinear(clone(learner), **settings).fit(X, y, sensitive_features=group, **weights)


def distance(model, X, *groups):
    """D at people, of the scores of the favourable label."""
    scores = model.decision_function(X) * (1 if model.favorable_label_ == model.classes_[1] else -1)
    partitions = tuple(check_groups(labels, len(scores)) for labels in groups)
    return CostObjective(partitions, np.ones(len(scores))).distance(scores).value


def relative_gap(costs, rejected, group):
    means = [costs[rejected & (group == label)].mean() for label in np.unique(group)]
    return np.ptp(means) / costs[rejected].mean()


def boundary_gap(model, X, group):
    found = boundary_costs(model, X)
    return relative_gap(found.costs, found.rejected, group)


@every_learner
def test_without_kappa_it_is_the_plain_learner(name):
    X, y, group = make_gap()
    model = fitted(X, y, group, LEARNERS[name], kappa=0.0)
    plain = clone(LEARNERS[name]).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.atleast_2d(plain.coef_), atol=1e-5)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-5)
    assert model.rounds_["kind"].tolist() == ["plain"]
    assert model.converged_


@every_learner
def test_a_larger_kappa_leaves_less_distance_and_less_of_the_gap(name):
    X, y, group = make_gap()
    path = [fitted(X, y, group, LEARNERS[name], kappa=kappa) for kappa in (0.0, 3.0, 30.0)]
    left = [distance(model, X, group) for model in path]
    assert left[0] > left[1] > left[2]
    assert left[2] < 0.1 * left[0]
    gaps = [boundary_gap(model, X, group) for model in path]
    assert gaps[0] > 0.25
    assert gaps[2] < 0.4 * gaps[0]
    assert path[2].rounds_["kind"].tolist() == ["plain", "distribution"]
    assert path[2].rounds_["relative_gap"].iloc[-1] == pytest.approx(gaps[2], rel=1e-6)


def test_the_gap_shrinks_on_new_people_too():
    X, y, group = make_gap(6000)
    train, new = slice(0, 3000), slice(3000, 6000)
    plain, equal = (fitted(X[train], y[train], group[train], kappa=kappa) for kappa in (0.0, 30.0))
    assert boundary_gap(equal, X[new], group[new]) < 0.4 * boundary_gap(plain, X[new], group[new])
    assert distance(equal, X[new], group[new]) < 0.1 * distance(plain, X[new], group[new])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kappa", [1.0, 3.0, 10.0, 30.0, 100.0])
def test_as_many_people_are_accepted_as_before(seed, kappa):
    X, y, group = make_gap(seed=seed)
    rounds = fitted(X, y, group, kappa=kappa).rounds_
    assert abs(rounds["acceptance"].iloc[-1] - rounds["acceptance"].iloc[0]) < 0.03


def test_a_path_is_a_number_of_fits():
    X, y, group = make_gap()
    path = EqualRecourseLinear(LEARNERS["logistic"]).fit_path(
        X, y, sensitive_features=group, penalties=[0.0, 3.0, 30.0]
    )
    for model, kappa in zip(path, (0.0, 3.0, 30.0), strict=True):
        assert model.kappa == kappa
        np.testing.assert_array_equal(model.coef_, fitted(X, y, group, kappa=kappa).coef_)
    kappas = EqualRecourseLinear(LogisticRegression()).penalty_path(X, y, sensitive_features=group)
    assert np.all(np.diff(kappas) > 0)


@every_learner
def test_the_same_twice(name):
    X, y, group = make_gap(600)
    one, other = (fitted(X, y, group, LEARNERS[name], kappa=10.0) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


def test_without_an_intercept_there_is_none():
    X, y, group = make_gap()
    model = fitted(X, y, group, LEARNERS["logistic, no intercept"], kappa=10.0)
    assert model.intercept_.item() == 0.0


def test_a_pipeline_inside_is_its_steps_by_hand():
    X, y, group = make_gap()
    X = X * [1.0, 100.0, 0.01, 1.0] + [5.0, 0.0, 0.0, -3.0]
    pipeline = Pipeline([("scale", StandardScaler()), ("learn", LogisticRegression(**EXACT))])
    inside = fitted(X, y, group, pipeline, kappa=10.0)
    scaler = StandardScaler().fit(X)
    by_hand = fitted(scaler.transform(X), y, group, kappa=10.0)
    np.testing.assert_allclose(inside.coef_, by_hand.coef_, atol=1e-10)
    np.testing.assert_allclose(inside.decision_function(X), by_hand.decision_function(scaler.transform(X)), atol=1e-10)
    np.testing.assert_allclose(inside.predict_proba(X), by_hand.predict_proba(scaler.transform(X)), atol=1e-10)
    np.testing.assert_array_equal(inside.estimator_.predict(X), inside.predict(X))
    assert [name for name, _ in inside.estimator_.steps] == ["scale", "learn"]
    assert inside.n_features_in_ == 4


def test_a_pipeline_inside_takes_columns_of_text():
    X, y, group = make_gap()
    table = pd.DataFrame(X, columns=list("abcd")).assign(town=np.random.default_rng(0).choice(["x", "y", "z"], len(y)))
    columns = make_column_transformer((StandardScaler(), list("abcd")), (OneHotEncoder(), ["town"]))
    model = fitted(table, y, group, make_pipeline(columns, LogisticRegression()), kappa=10.0)
    assert model.coef_.shape == (1, 7)
    assert model.feature_names_in_.tolist() == [*"abcd", "town"]
    assert model.rounds_["relative_gap"].iloc[-1] < 0.5 * model.rounds_["relative_gap"].iloc[0]
    found = find_recourse(model, table.head(50), actions=ActionSet.from_frame(table, immutable=["town"]))
    assert found.exact.all()
    assert (model.predict(found.counterfactuals) == 1).all()


@pytest.mark.parametrize("name", ["logistic", "squared hinge", "ridge"])
def test_sparse_people_equal_dense_people(name):
    X, y, group = make_gap(800)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    dense, thin = (fitted(form(X), y, group, LEARNERS[name], kappa=10.0) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(thin.intercept_, dense.intercept_, rtol=1e-3, atol=1e-3)


def test_many_sparse_features():
    """Beyond five hundred features each is scaled by itself."""
    X, y, group = make_gap(500)
    rare = sparse.random_array((500, 600), density=0.02, rng=np.random.default_rng(0))
    wide = sparse.hstack([sparse.csr_array(X), rare], format="csr")
    model = fitted(wide, y, group, LogisticRegression(max_iter=1000), kappa=10.0)
    dense = fitted(wide.toarray(), y, group, LogisticRegression(max_iter=1000), kappa=10.0)
    assert model.rounds_["relative_gap"].iloc[-1] < 0.5 * model.rounds_["relative_gap"].iloc[0]
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-3)


@pytest.mark.parametrize("name", ["logistic", "logistic, no ridge", "squared hinge", "hinge", "ridge"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_weight_of_k_is_a_person_k_times(name, class_weight):
    X, y, group = make_gap(600)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    learner = clone(LEARNERS[name]).set_params(class_weight=None if name == "ridge" else class_weight)
    weighted = fitted(X, y, group, learner, kappa=10.0, sample_weight=times)
    repeated = fitted(*(np.repeat(values, times, axis=0) for values in (X, y, group)), learner, kappa=10.0)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-3, atol=1e-3)


def test_a_person_of_weight_zero_is_absent():
    X, y, group = make_gap(600)
    weight = (np.arange(600) >= 100).astype(float)
    absent = fitted(X[100:], y[100:], group[100:], kappa=10.0, sample_weight=weight[100:])
    np.testing.assert_array_equal(fitted(X, y, group, kappa=10.0, sample_weight=weight).coef_, absent.coef_)


@pytest.mark.parametrize("name", ["logistic", "squared hinge", "ridge"])
def test_the_favourable_label_on_either_side_is_a_mirror(name):
    X, y, group = make_gap()
    one = fitted(X, y, group, LEARNERS[name], kappa=10.0)
    other = fitted(X, 1 - y, group, LEARNERS[name], kappa=10.0, favorable_label=0)
    assert other.favorable_label_ == 0
    np.testing.assert_allclose(other.coef_, -one.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.intercept_, -one.intercept_, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(other.predict(X) == 0, one.predict(X) == 1)


def test_the_favourable_label_decides_whose_costs_are_compared():
    X, y, group = make_gap()
    X[:, 0] = np.where(y == 1, X[:, 0] / (0.7 + 1.2 * group), X[:, 0])  # the accepted are alike
    upper, lower = (fitted(X, y, group, kappa=30.0, favorable_label=label) for label in (1, 0))
    assert upper.rounds_["relative_gap"].iloc[0] > 2 * lower.rounds_["relative_gap"].iloc[0]
    assert np.abs(upper.coef_ - lower.coef_).max() > 0.1


def test_labels_may_be_words():
    X, y, group = make_gap()
    number = fitted(X, y, group, kappa=10.0)
    words = np.where(y == 1, "granted", "denied")
    named = fitted(
        X, words, group, LogisticRegression(class_weight={"denied": 1.0, "granted": 1.0}, **EXACT), kappa=10.0
    )
    np.testing.assert_allclose(named.coef_, number.coef_, atol=1e-6)
    assert named.classes_.tolist() == ["denied", "granted"]
    assert set(named.predict(X)) == {"denied", "granted"}
    turned = fitted(X, words, group, kappa=10.0, favorable_label="denied")
    assert turned.favorable_label_ == "denied"


@pytest.mark.parametrize("n_groups", [3, 5])
def test_several_groups_are_brought_together(n_groups):
    X, y, group = make_gap(3000, n_groups=n_groups)
    names = np.array(["ann", "bea", "cleo", "dora", "eve"])[group]
    plain, equal = (fitted(X, y, names, kappa=kappa) for kappa in (0.0, 30.0))
    assert distance(equal, X, names) < 0.15 * distance(plain, X, names)
    assert boundary_gap(equal, X, names) < 0.5 * boundary_gap(plain, X, names)


def test_each_feature_on_its_own_or_all_combinations():
    X, y, group = make_gap(3000)
    other = np.random.default_rng(1).integers(0, 2, len(y))
    X[:, 1] *= 0.7 + 0.8 * other
    table = pd.DataFrame({"sex": np.where(group == 1, "f", "m"), "old": other == 1})
    plain = fitted(X, y, table, kappa=0.0)
    with pytest.warns(ConvergenceWarning, match="given up on the labels"):  # a high price, to see what it does
        crossed, single = (fitted(X, y, table, kappa=30.0, intersections=both) for both in (True, False))
    assert {"rejected (f & True)", "rejected (m & False)"} <= set(crossed.rounds_)
    assert {"rejected (sex=f)", "rejected (old=True)"} <= set(single.rounds_)
    cells = table["sex"] + table["old"].astype(str)
    assert distance(crossed, X, cells) < 0.3 * distance(plain, X, cells)
    for name in table:
        assert distance(single, X, table[name]) < 0.3 * distance(plain, X, table[name])


def test_a_small_group_is_named_and_left_out():
    X, y, group = make_gap(600)
    names = np.where(np.arange(600) < 4, "few", np.where(group == 1, "wide", "narrow"))
    with pytest.warns(SmallGroupWarning, match=r"group 'few' has \d rejected people in 4: fewer than 5, so left out"):
        model = fitted(X, y, names, kappa=10.0)
    assert "rejected (few)" in model.rounds_
    rest = names != "few"
    assert distance(model, X[rest], names[rest]) < 0.1 * distance(fitted(X, y, group, kappa=0.0), X[rest], names[rest])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_with_actions_the_gap_of_what_people_experience_shrinks_on_new_people(norm):
    X, y, group = make_gap(4000)
    table = pd.DataFrame(X, columns=list("abcd"))
    train, new = slice(0, 2000), slice(2000, 4000)
    actions = ActionSet.from_frame(table[train], immutable=["b"])
    gaps = []
    for kappa in (0.0, 30.0):
        pipeline = make_pipeline(StandardScaler(), LogisticRegression())
        model = fitted(table[train], y[train], group[train], pipeline, kappa=kappa, actions=actions, norm=norm)
        found = find_recourse(model, table[new], actions=actions, norm=norm)
        rejected = found.rejected & np.isfinite(found.costs)
        assert rejected.sum() > 0.99 * found.rejected.sum()
        gaps.append(relative_gap(found.costs, rejected, group[new]))
    assert gaps[0] > 0.3
    assert gaps[1] < 0.5 * gaps[0]
    assert model.rounds_["kind"].iloc[1:].eq("distribution").all()
    assert len(model.rounds_) > 2  # prices were renewed


def test_with_actions_the_draw_of_people_is_that_of_the_seed():
    X, y, group = make_gap(1200)
    table = pd.DataFrame(X, columns=list("abcd"))
    actions = ActionSet.from_frame(table, immutable=["b"])
    settings = {"kappa": 10.0, "actions": actions, "max_people": 150}
    one, again, other = (fitted(table, y, group, **settings, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.coef_, again.coef_)
    assert not np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whose", [0, 1])
@pytest.mark.parametrize("scaled", [False, True])
def test_no_rare_category_carries_the_equality(seed, whose, scaled):
    """Ten people in five thousand: the means of two groups could be made equal by a large weight on them."""
    X, y, group = make_gap(5000, seed=seed)
    rare = np.zeros(len(y))
    rare[np.random.default_rng(seed).choice(np.flatnonzero(group == whose), 10, replace=False)] = 1.0
    X = np.column_stack([X, rare])
    X = StandardScaler().fit_transform(X) if scaled else X
    weights = fitted(X, y, group).coef_[0] * X.std(axis=0)
    assert abs(weights[-1]) <= 0.1 * np.linalg.norm(weights)


def with_outliers(seed):
    """People of whom a twentieth of a group is far away, and new ones without such."""
    rng = np.random.default_rng(seed)
    return four_clouds(2000, rng, outliers=0.05), four_clouds(4000, rng)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kappa", [3.0, 10.0])
def test_outliers_in_a_group_do_not_carry_the_equality(seed, kappa):
    (X, y, group), (clean, labels, its_group) = with_outliers(seed)
    plain, equal = (fitted(X, y, group, kappa=value) for value in (0.0, kappa))
    assert boundary_gap(plain, clean, its_group) > 0.8
    assert boundary_gap(equal, clean, its_group) <= 0.10
    assert equal.score(clean, labels) > plain.score(clean, labels) - 0.02
    paper = fitted(X, y, group, objective="paper")
    assert boundary_gap(paper, clean, its_group) > 0.3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kappa", [100.0, 1000.0])
def test_a_large_kappa_does_not_lose_sight_of_the_labels(seed, kappa):
    (X, y, group), (clean, labels, its_group) = with_outliers(seed)
    model = fitted(X, y, group, kappa=kappa)
    assert model.score(clean, labels) > 0.98
    assert boundary_gap(model, clean, its_group) <= 0.15


def test_what_is_not_for_this_objective_is_refused_in_one_sentence():
    X, y, group = make_gap(200)
    actions = ActionSet.free(X)
    for settings, message in (
        ({"recourse_penalty": 1.0}, "belong to objective='paper'; set that, or use kappa"),
        ({"difference_bound": 0.1}, "belong to objective='paper'; set that, or use kappa"),
        ({"kappa": -1.0}, "'kappa' parameter"),
        ({"kappa": np.nan}, "'kappa' parameter"),
        ({"objective": "means"}, "'objective' parameter"),
        ({"actions": [1]}, "'actions' parameter"),
        ({"norm": "l7"}, "'norm' parameter"),
        ({"objective": "paper", "actions": actions}, "LogisticRegression, knows distances only; leave actions out"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(X, y, group, **settings)
    for learner in (Perceptron(), LogisticRegression(l1_ratio=1.0, solver="liblinear")):
        with pytest.raises(ValueError, match="needs a learner with a smooth loss and a ridge"):
            fitted(X, y, group, learner, objective="distribution")
        assert EqualRecourseLinear(learner)._strength == "recourse_penalty"


def test_a_model_that_failed_is_as_it_was():
    X, y, group = make_gap(300)
    model = fitted(X, y, group, make_pipeline(StandardScaler(), LogisticRegression()), kappa=10.0)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="1 group"):
        model.fit(X[:, :2], y, sensitive_features=np.zeros(300))
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_a_model_that_gives_up_on_the_labels_says_so():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) + np.array([3.0, 0.0]) * group[:, None]
    y = (X[:, 0] + 0.3 * rng.normal(size=600) > 1.5).astype(int)
    with pytest.warns(ConvergenceWarning, match="kappa=1000 has all but given up on the labels"):
        EqualRecourseLinear(LogisticRegression(), kappa=1000.0).fit(X, y, sensitive_features=group)


def test_equality_is_not_reached_by_leaving_hardly_anybody_of_a_group_rejected():
    """A group with less than min_rejected people would not be compared any more."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) + np.array([3.0, 0.0]) * group[:, None]
    y = (X[:, 0] + 0.3 * rng.normal(size=600) > 1.5).astype(int)
    for kappa in (30.0, 300.0, 3000.0):
        with pytest.warns(ConvergenceWarning, match="given up on the labels"):
            model = EqualRecourseLinear(LogisticRegression(), kappa=kappa).fit(X, y, sensitive_features=group)
        before, after = model.rounds_[["rejected (0)", "rejected (1)"]].to_numpy()
        assert before.min() == 16
        assert after.min() >= 16
        assert after.sum() == pytest.approx(before.sum(), rel=0.05)
