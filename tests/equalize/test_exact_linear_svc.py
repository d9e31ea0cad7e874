"""A LinearSVC inside EqualRecourseLinear is the one LIBLINEAR would find if it converged."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from equirecourse import EqualRecourseLinear


def people(n=1200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    X = rng.normal(size=(n, d))
    X[:, 0] -= 0.6 * group
    y = np.where(X @ np.linspace(1.0, 0.2, d) - 0.2 + rng.normal(size=n) * (1 + group) > 0, "yes", "no")
    return X, y, group


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"class_weight": "balanced"}, {"intercept_scaling": 5.0}, {"fit_intercept": False}],
    ids=["plain", "balanced", "scaled", "no-intercept"],
)
def test_it_is_the_model_of_the_learner(loss, settings):
    X, y, group = people()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    learner = LinearSVC(loss=loss, C=0.01, tol=1e-9, max_iter=1_000_000, random_state=0, **settings)
    common = {"max_rounds": 1, "balance_tol": 1e9}
    ours = EqualRecourseLinear(learner, **common).fit(X, y, sensitive_features=group, sample_weight=weight)
    theirs = EqualRecourseLinear(learner, solver="learner", **common)
    theirs.fit(X, y, sensitive_features=group, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.rounds_["gap"], theirs.rounds_["gap"], atol=1e-4)
    assert 0 <= ours.dual_gap_ + 1e-9 <= 1e-6
    assert np.isnan(theirs.dual_gap_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.filterwarnings("ignore:The rounds over the rejected set")
def test_a_soft_penalty_is_that_of_the_learner_too(loss):
    X, y, group = people()
    learner = LinearSVC(loss=loss, C=0.01, tol=1e-9, max_iter=1_000_000, random_state=0)
    common = {"max_rounds": 1, "balance_tol": 1e9, "penalty": "squared", "recourse_penalty": 3.0}
    ours = EqualRecourseLinear(learner, **common).fit(X, y, sensitive_features=group)
    theirs = EqualRecourseLinear(learner, solver="learner", **common).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_the_learner_is_a_fitted_linear_svc():
    X, y, group = people()
    model = EqualRecourseLinear(LinearSVC(loss="hinge")).fit(X, y, sensitive_features=group)
    assert (model.estimator_.predict(X) == model.predict(X)).all()
    assert model.dual_gap_ <= 1e-6 * len(y)


def test_parameters_of_the_learner_are_checked():
    X, y, group = people(n=100)
    with pytest.raises(ValueError, match="'C' parameter of LinearSVC"):
        EqualRecourseLinear(LinearSVC(loss="hinge", C=-1.0)).fit(X, y, sensitive_features=group)
