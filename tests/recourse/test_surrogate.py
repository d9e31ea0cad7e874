"""Local surrogates of everybody at once: equal to one ridge regression per person, and near the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.svm import LinearSVC

from equirecourse import ActionSet, find_recourse
from equirecourse.actions import Feature
from equirecourse.datasets import load_credit, load_german
from equirecourse.recourse import SurrogateRecourse


def one_person(Z, targets, person, width, alpha, n_features, selection):
    """The surrogate of one person, by scikit-learn, feature after feature."""
    distance = np.linalg.norm(Z - person, axis=1)
    weights = np.exp(-(distance**2) / (2 * width**2))
    weights /= weights.max()

    def ridge(columns, alpha):
        return Ridge(alpha=alpha, solver="cholesky").fit(Z[:, columns], targets, sample_weight=weights)

    every = list(range(Z.shape[1]))
    chosen = every
    if selection == "weights":
        chosen = sorted(np.argsort(-np.abs(ridge(every, alpha).coef_), kind="stable")[:n_features].tolist())
    elif selection == "forward":
        chosen = []
        for _ in range(n_features):
            scores = {
                j: ridge([*chosen, j], 1e-10).score(Z[:, [*chosen, j]], targets, sample_weight=weights)
                for j in every
                if j not in chosen
            }
            chosen.append(max(scores, key=scores.get))
        chosen = sorted(chosen)
    last = ridge(chosen, alpha)
    slopes = np.zeros(Z.shape[1])
    slopes[chosen] = last.coef_
    return slopes, float(last.predict(person[None, chosen])[0])


class Wave(ClassifierMixin, BaseEstimator):
    """A black box that counts how often it is asked for probabilities."""

    def fit(self, X, y):
        self.classes_, self.asked = np.array([0, 1]), 0
        self.n_features_in_, self.scale_ = X.shape[1], X.std(axis=0)
        return self

    def predict_proba(self, X):
        self.asked += 1
        X = np.asarray(X) / self.scale_
        score = X[:, 0] + 0.7 * X[:, 1] * X[:, 2] - 0.4 * np.sin(2 * X[:, 3]) - 0.3 * X[:, -1]
        chance = expit(2 * score)
        return np.column_stack([1 - chance, chance])

    def predict(self, X):
        self.asked -= 1
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)


@pytest.mark.parametrize("selection", ["none", "weights", "forward"])
@pytest.mark.parametrize(("d", "n_samples"), [(9, 800), (30, 800), (30, 20), (120, 800), (401, 800), (401, 200)])
def test_the_batch_equals_one_ridge_regression_per_person(d, n_samples, selection):
    if selection == "forward" and d > 30:
        pytest.skip("the loop would take minutes: d²/2 regressions per feature and person")
    rng = np.random.default_rng(d)
    X = rng.normal(size=(60, d)) @ np.diag(rng.uniform(0.5, 20, d)) + rng.normal(size=d)
    scale = X.std(axis=0)
    model = Wave().fit(X, None)
    settings = {"n_samples": n_samples, "selection": selection, "n_features": 6, "alpha": 0.8}
    surrogates = SurrogateRecourse(n_sets=2, n_best=2, random_state=3, **settings).fit(model, X)
    people = X[:4]
    found = surrogates.explain(model, people)
    for number, samples in enumerate(surrogates.sample_sets_):
        Z, targets = (samples - X.mean(axis=0)) / scale, model.predict_proba(samples)[:, 1]
        for i, person in enumerate((people - X.mean(axis=0)) / scale):
            slopes, value = one_person(Z, targets, person, 0.75 * np.sqrt(d), 0.8, 6, selection)
            np.testing.assert_array_equal(found.slopes[number, i] != 0, slopes != 0)
            np.testing.assert_allclose(found.slopes[number, i] * scale, slopes, rtol=0, atol=1e-8)
            assert found.values[number, i] == pytest.approx(value, abs=1e-8)
            distance = abs(value - 0.5) / np.linalg.norm(slopes)
            one = abs(found.values[number, i] - 0.5) / np.linalg.norm(found.slopes[number, i] * scale)
            assert one == pytest.approx(distance, rel=1e-8)


def test_the_black_box_is_asked_once_per_sample_set():
    X = np.random.default_rng(0).normal(size=(300, 6))
    model = Wave().fit(X, None)
    surrogates = SurrogateRecourse(n_sets=4, n_best=3, n_samples=200).fit(model, X)
    assert model.asked == 4
    surrogates.explain(model, X)
    assert model.asked == 7
    assert surrogates.sample_sets_.shape == (3, 200, 6)
    kept = np.sort(surrogates.agreement_)[1:]
    assert (surrogates.explain(model, X).agreement >= kept.min()).all()


def test_chunks_threads_and_seeds_do_not_change_the_answer(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 5))
    model = Wave().fit(X, None)
    expected = SurrogateRecourse(n_samples=300).fit(model, X).find(model, X).costs
    monkeypatch.setattr("equirecourse.recourse._surrogate._surrogates._CHUNK", 300 * 7)
    found = SurrogateRecourse(n_samples=300, n_jobs=2).fit(model, X).find(model, X).costs
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    monkeypatch.setattr("equirecourse.recourse._surrogate._ridge._PAIRS", 10)
    np.testing.assert_allclose(SurrogateRecourse(n_samples=300).fit(model, X).find(model, X).costs, expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["german", "credit"])
def test_distances_of_a_logistic_regression_rank_people_as_the_true_ones_do(name):
    data = load_german(paper=True) if name == "german" else load_credit(paper=True)
    X = data.data.astype(float).head(1000)
    X = (X - X.mean()) / X.std()
    y = np.asarray(data.target)[:1000]
    model = LogisticRegression(class_weight="balanced", max_iter=2000).fit(X, y)
    people = X[model.predict(X) == -1]
    true = find_recourse(model, people, norm="l2").costs
    surrogates = SurrogateRecourse().fit(model, X)
    assert spearmanr(true, surrogates.find(model, people).costs)[0] > 0.98
    # To level 0 instead of 0.5, the mistake that is easy to make, the order turns around.
    found = surrogates.explain(model, people)
    wrong = (np.abs(found.values) / np.linalg.norm(found.slopes, axis=2)).mean(axis=0)
    assert spearmanr(true, wrong)[0] < 0


def test_a_threshold_of_the_model_s_own_is_its_level():
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = np.where(X.sum(axis=1) + np.random.default_rng(1).normal(size=400) > 0, "yes", "no")
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.7, pos_label="yes").fit(X, y)
    found = SurrogateRecourse(n_samples=1000).fit(model, X).explain(model, X)
    assert found.level == pytest.approx(0.7)
    # Seen from the other side the same decisions have the level 0.3.
    other = (
        SurrogateRecourse(n_samples=1000).fit(model, X, favorable_label="no").explain(model, X, favorable_label="no")
    )
    assert other.level == pytest.approx(0.3)
    assert found.agreement.min() > 0.9


def test_find_recourse_estimates_and_says_so():
    data = load_german()
    X = data.data[["month", "credit_amount", "age"]]
    forest = RandomForestClassifier(30, max_depth=3, class_weight="balanced", random_state=0).fit(X, data.target)
    found = find_recourse(forest, X, method="surrogate", actions=ActionSet.free(X))
    rejected = forest.predict(X) == -1
    np.testing.assert_array_equal(found.rejected, rejected)
    assert set(found.status[rejected]) == {"unknown"}
    assert not found.exact[rejected].any()
    assert found.counterfactuals[rejected].isna().to_numpy().all()
    assert found.has_action.tolist() == (~rejected).tolist()
    assert "neither upper nor lower bounds" in found.notes[0]
    assert "estimated" in repr(found)
    frozen = ActionSet.free(X).replace("age", change="no")
    assert (find_recourse(forest, X, method="surrogate", actions=frozen).costs >= found.costs - 1e-12).all()
    forest.fit(X.to_numpy(), data.target)
    assert np.isnan(find_recourse(forest, X.to_numpy(), method="surrogate").counterfactuals[rejected]).all()


def test_a_score_serves_where_there_are_no_probabilities():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = LinearSVC().fit(X, X.sum(axis=1) > 0.3)
    people = X[~model.predict(X)]
    found = SurrogateRecourse(n_samples=1000).fit(model, X).find(model, people)
    np.testing.assert_allclose(found.costs, find_recourse(model, people, norm="l2").costs, rtol=0.02, atol=0.005)


class OnlyLabels:
    """A model that says yes or no and nothing else."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


def constant():
    return DummyClassifier(strategy="prior").fit(np.zeros((4, 2)), [0, 1, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: SurrogateRecourse().fit(constant(), X), "all 5000 samples of a set the same value 0.75"),
        (
            lambda X, y: SurrogateRecourse().fit(OnlyLabels(), X),
            "need a model with predict_proba or decision_function; OnlyLabels has neither",
        ),
        (lambda X, y: SurrogateRecourse(selection="lasso"), "selection must be one of 'weights', 'forward', 'none'"),
        (lambda X, y: SurrogateRecourse(n_sets=2, n_best=3), "n_best"),
        (lambda X, y: SurrogateRecourse().find(constant(), X), "has no sample sets yet; call fit first"),
        (
            lambda X, y: find_recourse(
                LogisticRegression().fit(X, y), X, method="surrogate", actions=ActionSet.free(X), norm="max_shift"
            ),
            "'l1', 'l2' or 'linf', got norm='max_shift'",
        ),
        (
            lambda X, y: find_recourse(
                LogisticRegression().fit(X, y), X, method="surrogate",
                actions=ActionSet([Feature("x0", change="no"), Feature("x1", change="no")]),
            ),
            "needs a column of numbers that can change",
        ),
    ],
    ids=["constant", "no scores", "selection", "n_best", "unfitted", "norm", "nothing moves"],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call, message):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=message):
        call(X, (X[:, 0] > 0).astype(int))


def test_text_is_refused_with_the_way_out():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "job": list("abab")})
    model = LogisticRegression().fit(frame[["age"]], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"'job' holds .*; encode it in a step of its own before"):
        SurrogateRecourse().fit(model, frame)
