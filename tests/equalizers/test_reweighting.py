"""Weights for black boxes: those of the paper's Algorithm 2, by hand, and what they do to people held out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from equirecourse import ActionSet, RecourseReweighting, find_recourse
from equirecourse.equalizers import point_weights
from equirecourse.exceptions import UndefinedRecourseWarning


# Some checks have labels that do not follow from the features, and a logistic regression that rejects nobody.
@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.UndefinedRecourseWarning")
@parametrize_with_checks(
    [RecourseReweighting(LogisticRegression()), RecourseReweighting(DecisionTreeClassifier(random_state=0))]
)
def test_scikit_learn_contract_holds_without_exception(estimator, check):
    check(estimator)


def make_gap(n=3000, seed=0):
    """People of two groups of whom one is spread wider along a feature that counts: its rejected are farther away."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    X = rng.normal(size=(n, 3))
    X[:, 0] *= np.where(group == "a", 2.0, 0.8)
    y = np.where(X @ [0.8, 1.0, 0.1] + rng.normal(scale=0.8, size=n) > 0, "yes", "no")
    return pd.DataFrame(X, columns=["x", "y", "z"]), y, group


# --- the paper's weights ----------------------------------------------------------------------------------------------


def test_ten_points_by_hand():
    # The boundary is at 0; people at -1, -2, -4 and so on are that far away.
    X = np.array([[-8.0], [-4.0], [-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0], [4.0], [8.0]])
    distances, rejected = np.abs(X[:, 0]), X[:, 0] < 0
    expected = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(point_weights(distances, rejected), expected)
    y = np.where(rejected, 0, 1)
    actions = ActionSet.free(X, costs="unit")
    model = RecourseReweighting(LogisticRegression(C=1e6), actions=actions).fit(X, y)
    # Symmetric people: the plain boundary is at 0 up to the solver's tolerance.
    np.testing.assert_allclose(model.weights_, expected, rtol=1e-2)
    again = LogisticRegression(C=1e6).fit(X, y, sample_weight=model.weights_)
    np.testing.assert_allclose(model.estimator_.coef_, again.coef_)


@settings(deadline=None)
@given(
    arrays(float, 12, elements=st.one_of(st.floats(0, 1e6), st.just(np.inf), st.just(0.0))),
    arrays(bool, 12),
)
def test_weights_are_between_zero_and_one_and_only_of_the_rejected(distances, rejected):
    weights = point_weights(distances, rejected)
    assert np.isfinite(weights).all()
    assert ((weights >= 0) & (weights <= 1)).all()
    assert (weights[~rejected] == 1).all()
    far = np.flatnonzero(rejected & (distances > 0) & np.isfinite(distances))
    assert all(weights[i] <= weights[j] for i in far for j in far if distances[i] > distances[j])


class Witness(ClassifierMixin, BaseEstimator):
    """A logistic regression that writes down every weight it was given."""

    seen: list = []  # noqa: RUF012 - clones share it

    def fit(self, X, y, sample_weight=None):
        Witness.seen.append(np.ones(len(y)) if sample_weight is None else np.array(sample_weight))
        self.inner_ = LogisticRegression().fit(np.asarray(X), y, sample_weight)
        self.classes_, self.coef_, self.intercept_ = self.inner_.classes_, self.inner_.coef_, self.inner_.intercept_
        return self

    def predict(self, X):
        return self.inner_.predict(np.asarray(X))

    def decision_function(self, X):
        return self.inner_.decision_function(np.asarray(X))


@pytest.mark.parametrize("distance", ["auto", "surrogate"])
def test_no_bad_weight_ever_reaches_the_estimator(distance):
    X, y, group = make_gap(600)
    Witness.seen.clear()
    RecourseReweighting(Witness(), distance=distance).fit(X, y, sensitive_features=group)
    assert len(Witness.seen) == 8  # twice in each of three folds, and for everybody
    for weights in Witness.seen:
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()


LEARNERS = {
    "logistic": LogisticRegression(),
    "balanced": LogisticRegression(class_weight="balanced"),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "ada": AdaBoostClassifier(n_estimators=12, random_state=0),
    "forest": RandomForestClassifier(10, max_depth=4, random_state=0),
}


@pytest.mark.parametrize("distance", ["auto", "surrogate"])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_model_is_the_learner_with_weights_that_follow_from_distances(name, distance):
    X, y, _ = make_gap(600)
    given = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    step = "logisticregression__sample_weight" if name == "pipeline" else "sample_weight"
    model = RecourseReweighting(LEARNERS[name], distance=distance).fit(X, y, sample_weight=given)
    plain = clone(LEARNERS[name]).fit(X, y, **{step: given})
    rejected = plain.predict(X) == "no"
    if distance == "auto":
        found = find_recourse(plain, X, actions=ActionSet.free(X), norm="l2")
        np.testing.assert_allclose(model.weights_, point_weights(found.costs, rejected), rtol=1e-6)
    assert (model.weights_[~rejected] == 1).all()
    assert (model.weights_[rejected] < 1).any()
    again = clone(LEARNERS[name]).fit(X, y, **{step: given * model.weights_})
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X))


def test_the_weights_do_not_depend_on_the_groups_and_history_does():
    X, y, group = make_gap(800)
    without = RecourseReweighting(LogisticRegression()).fit(X, y)
    having = RecourseReweighting(LogisticRegression(), placebo=True).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(without.weights_, having.weights_)
    assert without.history_.empty
    assert having.history_.kind.tolist() == ["plain", "placebo", "reweighted"]
    # A logistic regression draws no random numbers: its placebo is itself.
    assert having.history_.gap[0] == pytest.approx(having.history_.gap[1])
    np.testing.assert_array_equal(without.predict(X), having.predict(X))


def test_history_is_that_of_a_loop_over_held_out_folds():
    X, y, group = make_gap(900)
    folds = [(np.arange(900) % 3 != k, np.arange(900) % 3 == k) for k in range(3)]
    model = RecourseReweighting(LogisticRegression(), cv=folds, actions=ActionSet.free(X))
    model.fit(X, y, sensitive_features=group)
    rows = [tuple(np.flatnonzero(part) for part in fold) for fold in folds]
    same = clone(model).set_params(cv=rows).fit(X, y, sensitive_features=group)
    pd.testing.assert_frame_equal(model.history_, same.history_)
    means, right, rejected = {"a": [], "b": []}, 0, 0
    for train, test in folds:
        inner = RecourseReweighting(LogisticRegression(), actions=ActionSet.free(X)).fit(X[train], y[train])
        found = find_recourse(inner, X[test], actions=ActionSet.free(X), norm="l2")
        for label in means:
            means[label].append(found.costs[found.rejected & (group[test] == label)].mean())
        right, rejected = right + (inner.predict(X[test]) == y[test]).sum(), rejected + found.rejected.sum()
    row = model.history_.set_index("kind").loc["reweighted"]
    far, near = np.mean(means["a"]), np.mean(means["b"])
    assert row["mean distance (a)"] == pytest.approx(far)
    assert row["gap"] == pytest.approx(far - near)
    assert row["relative_gap"] == pytest.approx((far - near) / np.mean([far, near]))
    assert row["accuracy"] == pytest.approx(right / 900)
    assert row["acceptance"] == pytest.approx(1 - rejected / 900)
    assert row["rejected (a)"] + row["rejected (b)"] == rejected


def test_a_model_that_rejects_nobody_is_kept_and_says_so():
    X, y, _ = make_gap(300)
    y = np.where(np.arange(300) < 9, "no", "yes")
    with pytest.warns(UndefinedRecourseWarning, match="rejects nobody of 300 people, so that all weights are 1"):
        model = RecourseReweighting(LogisticRegression(C=1e-9)).fit(X, y)
    assert (model.weights_ == 1).all()
    assert (model.predict(X) == "yes").all()


def test_labels_groups_and_frames_of_any_kind():
    X, y, group = make_gap(1200)
    reference = RecourseReweighting(LogisticRegression()).fit(X, y, sensitive_features=group)
    flipped = RecourseReweighting(LogisticRegression(), favorable_label=0).fit(
        X.to_numpy(), (y == "no").astype(int), sensitive_features=pd.Series(group).map({"a": 5, "b": 1})
    )
    np.testing.assert_array_equal(flipped.predict(X.to_numpy()) == 0, reference.predict(X) == "yes")
    assert flipped.favorable_label_ == 0
    crossed = RecourseReweighting(LogisticRegression()).fit(
        X, y, sensitive_features=pd.DataFrame({"g": group, "h": np.arange(1200) % 2})
    )
    assert sum(name.startswith("mean distance") for name in crossed.history_) == 4


def test_columns_of_text_through_a_pipeline():
    X, y, group = make_gap(600)
    X = X.assign(job=np.where(X.z > 0, "clerk", "nurse"))
    steps = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    learner = make_pipeline(steps, HistGradientBoostingClassifier(max_iter=8, max_depth=3, random_state=0))
    model = RecourseReweighting(learner).fit(X, y, sensitive_features=group)
    assert set(model.predict(X)) == {"yes", "no"}
    assert find_recourse(model, X.head(50), actions=ActionSet.free(X)).method == "trees"


def test_recourse_looks_through_it_and_it_works_in_a_search():
    X, y, group = make_gap(900)
    model = RecourseReweighting(LogisticRegression()).fit(X, y, sensitive_features=group)
    inner = find_recourse(model.estimator_, X, favorable_label="yes")
    np.testing.assert_allclose(find_recourse(model, X).costs, inner.costs)
    pipe = make_pipeline(StandardScaler(), RecourseReweighting(LogisticRegression()))
    pipe.fit(X, y, recoursereweighting__sensitive_features=group)
    assert find_recourse(pipe, X, actions=ActionSet.free(X)).method == "linear"
    search = GridSearchCV(RecourseReweighting(LogisticRegression()), {"estimator__C": [0.1, 1.0]}, cv=2)
    search.fit(X, y, sensitive_features=group)
    assert find_recourse(search, X).method == "linear"


def test_the_same_seed_gives_the_same_model():
    X, y, group = make_gap(600)
    forest = RandomForestClassifier(6, max_depth=3, random_state=1)
    one, two = (RecourseReweighting(forest, distance="surrogate").fit(X, y, sensitive_features=group) for _ in range(2))
    pd.testing.assert_frame_equal(one.history_, two.history_)
    np.testing.assert_array_equal(one.weights_, two.weights_)


def test_a_placebo_draws_other_numbers():
    X, y, group = make_gap(600)
    forest = RandomForestClassifier(10, max_depth=3, random_state=1)
    model = RecourseReweighting(forest, placebo=True).fit(X, y, sensitive_features=group)
    history = model.history_.set_index("kind")
    assert history.gap["placebo"] != history.gap["plain"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda X, y, g: RecourseReweighting(KNeighborsClassifier()).fit(X, y, sensitive_features=g),
            "needs a classifier whose fit takes sample_weight, and KNeighborsClassifier does not",
        ),
        (
            lambda X, y, g: RecourseReweighting(make_pipeline(StandardScaler(), KNeighborsClassifier())).fit(X, y),
            "KNeighborsClassifier does not",
        ),
        (
            lambda X, y, g: RecourseReweighting(LogisticRegression(C=1e-9)).fit(
                X, np.where(np.arange(len(y)) < 9, "no", "yes"), sensitive_features=g
            ),
            "The plain model rejects nobody of 300 people",
        ),
        (
            lambda X, y, g: RecourseReweighting(LogisticRegression(C=1e-9)).fit(
                X, np.where(np.arange(len(y)) < 9, "yes", "no")
            ),
            "The plain model rejects everybody of 300 people",
        ),
        (lambda X, y, g: RecourseReweighting(LogisticRegression(), distance="both").fit(X, y), "'distance' parameter"),
        (
            lambda X, y, g: RecourseReweighting(LogisticRegression()).fit(X, y[:10]),
            "X has 300 people and y has 10 labels",
        ),
        (
            lambda X, y, g: RecourseReweighting(LogisticRegression()).fit(
                X, y, sensitive_features=np.where(np.arange(300) < 3, "few", "many")
            ),
            r"group 'few' has \d rejected people in 3 folds, and each fold needs one; use fewer folds",
        ),
        (
            lambda X, y, g: RecourseReweighting(LogisticRegression()).fit(X, y, sensitive_features=["one"] * 300),
            "at least 2|two groups|one group",
        ),
    ],
    ids=["no weights", "no weights inside", "nobody", "everybody", "distance", "lengths", "small group", "one group"],
)
def test_bad_input_gets_one_sentence(call, message):
    X, y, group = make_gap(300)
    with pytest.raises(ValueError, match=message):
        call(X, y, group)


def test_nothing_works_before_fit():
    with pytest.raises(NotFittedError):
        RecourseReweighting(LogisticRegression()).predict([[1.0]])
    assert not hasattr(RecourseReweighting(Witness()), "predict_proba")
