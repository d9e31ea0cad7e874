"""The equalizers at work inside scikit-learn: pipelines, searches, any linear learner, kernels by approximation."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.datasets import load_german
from equirecourse.recourse import boundary_costs

pytestmark = pytest.mark.filterwarnings("ignore:The rounds over the rejected set:sklearn.exceptions.ConvergenceWarning")

LEARNERS = [
    LogisticRegression(),
    LogisticRegression(l1_ratio=1.0, solver="liblinear"),
    LogisticRegression(class_weight="balanced", fit_intercept=False),
    LinearSVC(),
    LinearSVC(loss="hinge", max_iter=100_000),
    Perceptron(random_state=0),
    SGDClassifier(random_state=0),
    SGDClassifier(random_state=0, loss="log_loss", penalty="elasticnet", average=True),
    RidgeClassifier(),
    LinearDiscriminantAnalysis(),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: " ".join(repr(learner).split()))


def mean_difference(scores, group, people):
    """Difference between two groups' mean scores over some people, relative to the size of the scores."""
    means = [scores[people & (group == g)].mean() for g in np.unique(group)]
    return abs(means[1] - means[0]) / np.abs(scores).mean()


@pytest.fixture(scope="module")
def people(make_people):
    return make_people(200, n_features=4, seed=1)


@every_learner
def test_any_linear_learner_has_no_difference_at_the_rejected_set_it_was_balanced_on(learner, people, first_round):
    X, y, group = people
    one = first_round(EqualRecourseLinear(learner, objective="paper"), X, y, group)
    plain = mean_difference(one.plain.fit.scores, group, one.rejected)
    balanced = one.fit()
    assert plain > 1e-3
    assert mean_difference(balanced.scores, group, one.rejected) <= 1e-6
    np.testing.assert_allclose(balanced.scores, X @ balanced.coef + balanced.intercept)


@every_learner
@pytest.mark.parametrize(
    "features", [Nystroem(n_components=30, random_state=0), StandardScaler()], ids=["rbf", "linear"]
)
def test_a_converged_model_in_a_pipeline_has_no_difference_among_the_people_it_rejects(learner, features, people):
    X, y, group = people
    model = make_pipeline(clone(features), EqualRecourseLinear(learner, objective="paper"))
    model.fit(X, y, equalrecourselinear__sensitive_features=group)
    equalizer = model[-1]
    rejected = model.predict(X) == -1
    chosen = equalizer.rounds_.query("chosen")
    assert chosen["rejected (0)"].item() + chosen["rejected (1)"].item() == rejected.sum()
    difference = mean_difference(model.decision_function(X), group, rejected)
    assert difference <= (1e-6 if equalizer.ending_ == "nobody's decision changed" else 1.0)
    costs = boundary_costs(model, X)
    means = [costs.costs[rejected & (group == g)].mean() for g in (0, 1)]
    assert abs(means[1] - means[0]) == pytest.approx(chosen["gap"].item(), abs=1e-9 + 1e-6 * max(means))


def test_pipelines_of_every_kind_do_converge_on_this_data(people):
    """So that the claim about converged models above is not empty."""
    X, y, group = people
    endings = []
    for learner in LEARNERS:
        for features in (Nystroem(n_components=30, random_state=0), StandardScaler()):
            model = make_pipeline(features, EqualRecourseLinear(clone(learner), objective="paper"))
            endings.append(model.fit(X, y, equalrecourselinear__sensitive_features=group)[-1].ending_)
    assert endings.count("nobody's decision changed") >= len(endings) // 4


def test_groups_reach_the_last_step_of_a_pipeline_with_and_without_routing(people):
    X, y, group = people
    prefixed = Pipeline([("scale", StandardScaler()), ("svc", EqualRecourseSVC(kernel="linear"))])
    prefixed.fit(X, y, svc__sensitive_features=group)
    with sklearn.config_context(enable_metadata_routing=True):
        svc = EqualRecourseSVC(kernel="linear").set_fit_request(sensitive_features=True)
        routed = Pipeline([("scale", StandardScaler()), ("svc", svc)]).fit(X, y, sensitive_features=group)
    assert not routed[-1].rounds_.empty
    np.testing.assert_array_equal(routed.decision_function(X), prefixed.decision_function(X))


def test_the_plain_model_is_what_a_pipeline_without_groups_gives(people):
    X, y, _ = people
    model = make_pipeline(StandardScaler(), EqualRecourseSVC()).fit(X, y)
    plain = make_pipeline(StandardScaler(), SVC(tol=1e-8)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_routes_groups_and_weights_of_the_fold(weighted, people):
    X, y, group = people.take(np.arange(120))
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    splits = list(StratifiedKFold(3).split(X, y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = EqualRecourseLinear(LogisticRegression())
        model.set_fit_request(sensitive_features=True, sample_weight=weighted)
        model.set_score_request(sample_weight=False)
        params = {"sensitive_features": group, **({"sample_weight": weight} if weighted else {})}
        result = cross_validate(model, X, y, cv=splits, params=params, return_estimator=True)
    for (train, test), fitted, score in zip(splits, result["estimator"], result["test_score"], strict=True):
        by_hand = EqualRecourseLinear(LogisticRegression()).fit(
            X[train], y[train], sensitive_features=group[train], sample_weight=weight[train] if weighted else None
        )
        np.testing.assert_array_equal(fitted.coef_, by_hand.coef_)
        assert score == by_hand.score(X[test], y[test])


def test_grid_search_refits_the_best_penalty_with_groups(people):
    X, y, group = people
    with sklearn.config_context(enable_metadata_routing=True):
        model = EqualRecourseSVC(kernel="linear", penalty="squared", max_rounds=2)
        model.set_fit_request(sensitive_features=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model), {"equalrecoursesvc__recourse_penalty": [0.0, np.inf]}, cv=2
        )
        search.fit(X, y, sensitive_features=pd.Series(group))
    assert set(search.best_estimator_[-1].rounds_) >= {"rejected (0)", "rejected (1)"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_groups_that_nobody_asked_for_are_an_error_under_routing(people):
    X, y, group = people
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sensitive_features"),
    ):
        make_pipeline(StandardScaler(), EqualRecourseSVC()).fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("penalty", [0.0, 2.0, np.inf])
def test_a_linear_svm_of_either_class_is_the_same_model(penalty, people, first_round):
    """LIBLINEAR regularises the intercept, less so the larger its column: the two agree in the limit."""
    X, y, group = people
    liblinear = LinearSVC(loss="hinge", intercept_scaling=10.0, tol=1e-6, max_iter=1_000_000, random_state=0)
    kernel = first_round(EqualRecourseSVC(kernel="linear", recourse_penalty=penalty), X, y, group)
    linear = first_round(EqualRecourseLinear(liblinear, objective="paper", recourse_penalty=penalty), X, y, group)
    np.testing.assert_array_equal(linear.rejected, kernel.rejected)
    np.testing.assert_allclose(linear.fit().scores, kernel.fit().scores, atol=0.02)


@pytest.mark.parametrize("penalty", [0.0, 2.0, np.inf])
def test_nystroem_with_everybody_is_the_kernel_model(penalty, people, first_round):
    X, y, group = people.take(np.arange(80))
    features = Nystroem(gamma=0.2, n_components=len(y), random_state=0).fit_transform(X)
    kernel = first_round(EqualRecourseSVC(gamma=0.2, recourse_penalty=penalty), X, y, group).fit()
    approximate = first_round(EqualRecourseSVC(kernel="linear", recourse_penalty=penalty), features, y, group).fit()
    np.testing.assert_allclose(approximate.scores, kernel.scores, atol=1e-3)
    assert approximate.norm == pytest.approx(kernel.norm, rel=1e-3)


def test_on_german_a_kernel_model_leaves_no_difference_among_the_people_it_rejects():
    german = load_german()
    X = StandardScaler().fit_transform(german.data.select_dtypes("number"))
    age = german.sensitive_features["age_group"].to_numpy()
    model = EqualRecourseSVC().fit(X, german.target, sensitive_features=age)
    assert model.converged_
    before, after = model.rounds_["relative_gap"].iloc[0], model.rounds_.query("chosen")["relative_gap"].item()
    assert after <= 1e-6 < 0.1 < before
    rejected = model.predict(X) != german.target.max()
    assert mean_difference(model.decision_function(X), age, rejected) <= 1e-6
