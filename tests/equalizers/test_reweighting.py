"""Weights for black boxes: the paper's, by hand; second counts per group, on people held out; and nothing hidden."""

import warnings

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
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from equirecourse import ActionSet, RecourseReweighting, find_recourse
from equirecourse.equalizers import point_weights
from equirecourse.exceptions import PlainModelWarning


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


def held_out_gap(model, X, group):
    found = find_recourse(model, X, actions=ActionSet.free(X))
    means = [found.costs[found.rejected & (group == label)].mean() for label in np.unique(group)]
    return float(np.ptp(means)), float(np.ptp(means) / np.mean(means))


# --- the paper's weights ----------------------------------------------------------------------------------------------


def test_ten_points_by_hand():
    # The boundary is at 0; people at -1, -2, -4 and so on are that far away.
    X = np.array([[-8.0], [-4.0], [-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0], [4.0], [8.0]])
    distances, rejected = np.abs(X[:, 0]), X[:, 0] < 0
    expected = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(point_weights(distances, rejected), expected)
    y = np.where(rejected, 0, 1)
    actions = ActionSet.free(X, costs="unit")
    model = RecourseReweighting(LogisticRegression(C=1e6), strategy="point", actions=actions).fit(X, y)
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


@pytest.mark.parametrize("strategy", ["point", "group"])
@pytest.mark.parametrize("distance", ["auto", "surrogate"])
def test_no_bad_weight_ever_reaches_the_estimator(strategy, distance):
    X, y, group = make_gap(600)
    Witness.seen.clear()
    RecourseReweighting(Witness(), strategy=strategy, distance=distance, max_trials=4).fit(
        X, y, sensitive_features=group
    )
    assert len(Witness.seen) >= 6
    for weights in Witness.seen:
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()


def test_point_weights_do_not_depend_on_the_groups_and_history_does():
    X, y, group = make_gap(800)
    without = RecourseReweighting(LogisticRegression(), strategy="point").fit(X, y)
    having = RecourseReweighting(LogisticRegression(), strategy="point", placebo=True).fit(
        X, y, sensitive_features=group
    )
    np.testing.assert_array_equal(without.weights_, having.weights_)
    assert without.history_.empty
    assert having.history_.kind.tolist() == ["plain", "placebo", "point"]
    assert having.history_.chosen.tolist() == [False, False, True]
    # A logistic regression draws no random numbers: its placebo is itself.
    assert having.history_.gap[0] == pytest.approx(having.history_.gap[1])
    np.testing.assert_array_equal(without.predict(X), having.predict(X))


# --- second counts ----------------------------------------------------------------------------------------------------

LEARNERS = {
    "logistic": LogisticRegression(),
    "balanced": LogisticRegression(class_weight="balanced"),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "ada": AdaBoostClassifier(n_estimators=12, random_state=0),
    "forest": RandomForestClassifier(10, max_depth=4, random_state=0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_second_counts_close_a_planted_gap_of_new_people(name):
    X, y, group = make_gap(6000)
    X, X_new, y, y_new, group, group_new = train_test_split(X, y, group, test_size=0.5, random_state=0)
    plain = clone(LEARNERS[name]).fit(X, y)
    model = RecourseReweighting(LEARNERS[name], accuracy_budget=0.04, max_people=20, max_trials=6)
    model.fit(X, y, sensitive_features=group)
    (before, before_ratio), (after, after_ratio) = (held_out_gap(one, X_new, group_new) for one in (plain, model))
    # Closing this gap takes weight from the feature that counts: trees find less of it within the budget.
    share = 0.85 if name in ("ada", "forest") else 0.6
    assert after < share * before
    assert after_ratio < share * before_ratio
    assert model.score(X_new, y_new) > plain.score(X_new, y_new) - 0.06
    chosen = model.history_.query("chosen").iloc[0]
    # Where only some people were measured, the best trials were looked at again with more of them.
    assert chosen.kind == "second look"
    assert chosen.accuracy >= model.history_.accuracy[0] - 0.04
    assert model.ending_.startswith("on people held out the gap fell from")
    assert model.weights_.index.tolist() == ["a", "b"]


def test_many_groups_are_brought_together():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 6000)
    X = rng.normal(size=(6000, 3))
    X[:, 0] *= 0.6 + 0.5 * group
    y = (X @ [0.8, 1.0, 0.1] + rng.normal(scale=0.8, size=6000) > 0).astype(int)
    model = RecourseReweighting(LogisticRegression(), max_trials=20, accuracy_budget=0.05)
    model.fit(X, y, sensitive_features=group)
    history = model.history_
    chosen = history[history.chosen].iloc[0]
    assert chosen.gap < 0.4 * history.gap[0]
    assert len(model.weights_) == 4


def test_without_a_gap_the_plain_model_is_kept_and_says_so():
    X, y, _ = make_gap(1500)
    coin = np.random.default_rng(5).integers(0, 2, 1500)
    with pytest.warns(PlainModelWarning, match="The plain model was kept"):
        model = RecourseReweighting(LogisticRegression()).fit(X, y, sensitive_features=coin)
    assert model.history_.kind.tolist()[0] == "plain"
    assert model.history_.chosen[0]
    assert (model.weights_ == 0).all()
    np.testing.assert_array_equal(model.predict(X), LogisticRegression().fit(X, y).predict(X))


def test_a_budget_that_nothing_fits_keeps_the_plain_model():
    X, y, group = make_gap(1500)

    class Proud(LogisticRegression):
        """Right about everybody as long as nobody is counted twice."""

        def fit(self, X, y, sample_weight=None):
            self.twice_ = len(X) > len(np.unique(np.asarray(X), axis=0))
            return super().fit(X, y, sample_weight)

        def predict(self, X):
            said = super().predict(X)
            return np.where(np.arange(len(X)) % 3 == 0, "no", said) if self.twice_ else said

    with pytest.warns(PlainModelWarning, match="none of 3 weights made it smaller within 0 of accuracy"):
        RecourseReweighting(Proud(), accuracy_budget=0.0, max_trials=3).fit(X, y, sensitive_features=group)


def test_class_weights_are_those_of_the_people_not_of_their_second_counts():
    X, y, group = make_gap(3000)
    y = np.where((y == "yes") | (np.random.default_rng(0).random(3000) < 0.5), "yes", "no")  # few are "no"
    model = RecourseReweighting(LogisticRegression(class_weight="balanced")).fit(X, y, sensitive_features=group)
    acceptance = model.history_.acceptance
    assert abs(acceptance[model.history_.chosen].iloc[0] - acceptance[0]) < 0.03


def test_labels_groups_and_frames_of_any_kind():
    X, y, group = make_gap(1200)
    reference = RecourseReweighting(LogisticRegression()).fit(X, y, sensitive_features=group)
    flipped = RecourseReweighting(LogisticRegression(), favorable_label=0).fit(
        X.to_numpy(), (y == "no").astype(int), sensitive_features=pd.Series(group).map({"a": 5, "b": 1})
    )
    np.testing.assert_array_equal(flipped.predict(X.to_numpy()) == 0, reference.predict(X) == "yes")
    assert flipped.favorable_label_ == 0
    crossed = RecourseReweighting(LogisticRegression(), max_trials=2).fit(
        X, y, sensitive_features=pd.DataFrame({"g": group, "h": np.arange(1200) % 2})
    )
    assert crossed.weights_.index.names == ["g", "h"]


def test_columns_of_text_through_a_pipeline():
    X, y, group = make_gap(1500)
    X = X.assign(job=np.where(X.z > 0, "clerk", "nurse"))
    steps = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    learner = make_pipeline(steps, HistGradientBoostingClassifier(max_iter=8, max_depth=3, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainModelWarning)
        model = RecourseReweighting(learner, max_trials=1, max_people=5).fit(X, y, sensitive_features=group)
    assert set(model.predict(X)) == {"yes", "no"}
    assert find_recourse(model, X.head(5), actions=ActionSet.free(X)).method == "trees"


def test_recourse_looks_through_it_and_it_works_in_a_search():
    X, y, group = make_gap(900)
    model = RecourseReweighting(LogisticRegression(), max_trials=2).fit(X, y, sensitive_features=group)
    inner = find_recourse(model.estimator_, X, favorable_label="yes")
    np.testing.assert_allclose(find_recourse(model, X).costs, inner.costs)
    pipe = make_pipeline(StandardScaler(), RecourseReweighting(LogisticRegression(), max_trials=2))
    pipe.fit(X, y, recoursereweighting__sensitive_features=group)
    assert find_recourse(pipe, X, actions=ActionSet.free(X)).method == "linear"
    quick = RecourseReweighting(LogisticRegression(), max_trials=2, accuracy_budget=0.1)
    search = GridSearchCV(quick, {"estimator__C": [0.1, 1.0]}, cv=2)
    search.fit(X, y, sensitive_features=group)
    assert find_recourse(search, X).method == "linear"


def test_the_same_seed_gives_the_same_model():
    X, y, group = make_gap(900)
    one, two = (
        RecourseReweighting(RandomForestClassifier(6, max_depth=3, random_state=1), max_trials=3, max_people=15).fit(
            X, y, sensitive_features=group
        )
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(one.history_, two.history_)


def test_a_placebo_draws_other_numbers():
    X, y, group = make_gap(900)
    forest = RandomForestClassifier(10, max_depth=3, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainModelWarning)
        model = RecourseReweighting(forest, max_trials=1, placebo=True, max_people=30).fit(
            X, y, sensitive_features=group
        )
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
            lambda X, y, g: RecourseReweighting(LogisticRegression(C=1e-9), strategy="point").fit(
                X, np.where(np.arange(len(y)) < 9, "yes", "no")
            ),
            "The plain model rejects everybody of 300 people",
        ),
        (lambda X, y, g: RecourseReweighting(LogisticRegression(), strategy="both").fit(X, y), "'strategy' parameter"),
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
    ids=["no weights", "no weights inside", "nobody", "everybody", "strategy", "lengths", "small group", "one group"],
)
def test_bad_input_gets_one_sentence(call, message):
    X, y, group = make_gap(300)
    with pytest.raises(ValueError, match=message):
        call(X, y, group)


def test_nothing_works_before_fit():
    with pytest.raises(NotFittedError):
        RecourseReweighting(LogisticRegression()).predict([[1.0]])
    assert not hasattr(RecourseReweighting(Witness()), "predict_proba")
