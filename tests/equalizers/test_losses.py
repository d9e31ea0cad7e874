"""What linear learners minimise, read from their parameters: its minimum is the learner that scikit-learn fits."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from equirecourse.equalizers._losses import read_loss

EXACT = {"tol": 1e-9, "max_iter": 100_000}
# Slow steps that are averaged: the minimum, as near as stochastic gradients come to it.
SLOW = {
    "alpha": 0.05, "tol": None, "max_iter": 30_000, "learning_rate": "invscaling", "eta0": 0.02, "average": 100_000,
    "random_state": 0,
}  # fmt: skip
LEARNERS = {
    "logistic": LogisticRegression(**EXACT),
    "strong ridge": LogisticRegression(C=0.01, **EXACT),
    "no ridge": LogisticRegression(C=np.inf, **EXACT),
    "no intercept": LogisticRegression(fit_intercept=False, **EXACT),
    "liblinear": LogisticRegression(solver="liblinear", intercept_scaling=2.0, **EXACT),
    "squared hinge": LinearSVC(C=0.3, **EXACT),
    "squared hinge, primal": LinearSVC(C=0.3, dual=False, intercept_scaling=3.0, **EXACT),
    "squared hinge, no intercept": LinearSVC(C=0.3, fit_intercept=False, **EXACT),
    "ridge": RidgeClassifier(alpha=3.0),
    "ridge, no intercept": RidgeClassifier(alpha=3.0, fit_intercept=False),
}
CLASS_WEIGHTS = {"no class weights": None, "balanced": "balanced", "by label": {"no": 0.5, "yes": 3.0}}


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X @ [1.0, -0.5, 0.2, 0.0] + 0.5 + rng.normal(size=n) > 0, "yes", "no")
    # Weights that go with the label: classes that are balanced by heads are not balanced by weight.
    return X, y, rng.uniform(0.2, 3.0, n) * np.where(y == "yes", 2.0, 1.0)


def objective_of(loss, X, signs):
    def value(theta):
        values, by_margin, _ = loss.of(signs * (X @ theta[:-1] + theta[-1]))
        ridge = np.append(np.full(X.shape[1], loss.ridge), loss.ridge_of_intercept)
        by_score = loss.weights * by_margin * signs
        by_intercept = by_score.sum() + ridge[-1] * theta[-1] if loss.has_intercept else 0.0
        gradient = np.append(X.T @ by_score + ridge[:-1] * theta[:-1], by_intercept)
        return loss.weights @ values + 0.5 * ridge @ theta**2, gradient

    return value


def minimum(loss, X, y):
    value = objective_of(loss, X, np.where(y == "yes", 1.0, -1.0))
    found = minimize(value, np.zeros(X.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000})
    return found.x


def fitted(learner, X, y, weight):
    learner = clone(learner).fit(X, y, sample_weight=weight)
    return np.append(np.ravel(learner.coef_), learner.intercept_)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("class_weight", CLASS_WEIGHTS.values(), ids=CLASS_WEIGHTS)
@pytest.mark.parametrize("weighted", [False, True], ids=["no weights", "weights"])
def test_the_minimum_is_the_fitted_learner(name, class_weight, weighted):
    X, y, weight = people()
    weight = weight if weighted else np.ones(len(y))
    learner = clone(LEARNERS[name]).set_params(class_weight=class_weight)
    np.testing.assert_allclose(minimum(read_loss(learner, y, weight), X, y), fitted(learner, X, y, weight), atol=1e-3)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "squared_error"])
@pytest.mark.parametrize("class_weight", [None, {"no": 0.5, "yes": 1.5}], ids=["no class weights", "by label"])
def test_the_minimum_is_about_where_stochastic_gradients_go(loss, class_weight):
    X, y, weight = people()
    learner = SGDClassifier(loss=loss, class_weight=class_weight, **SLOW)
    np.testing.assert_allclose(
        minimum(read_loss(learner, y, weight / 2), X, y), fitted(learner, X, y, weight / 2), atol=0.02
    )
    assert read_loss(clone(learner).set_params(penalty=None), y, weight).ridge == 0.0


def test_the_corner_of_the_hinge_is_rounded_and_nothing_else():
    X, y, weight = people()
    learner = LinearSVC(loss="hinge", C=0.05, tol=1e-9, max_iter=1_000_000)
    signs, loss = np.where(y == "yes", 1.0, -1.0), read_loss(learner, y, weight)
    margins = np.linspace(-2, 3, 101)
    values, _, _ = loss.of(margins)
    lacking = np.maximum(1 - margins, 0)
    assert np.all((values <= lacking) & (values >= lacking - 0.05 - 1e-12))

    def true_objective(theta):
        hinge = np.maximum(1 - signs * (X @ theta[:-1] + theta[-1]), 0)
        return weight @ hinge + 0.5 * 20 * theta @ theta

    ours, theirs = minimum(loss, X, y), fitted(learner, X, y, weight)
    assert true_objective(ours) <= 1.005 * true_objective(theirs)


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(), LinearSVC(), LinearSVC(loss="hinge"), RidgeClassifier(), SGDClassifier(loss="log_loss"),
        SGDClassifier(), SGDClassifier(loss="squared_error"),
    ],
    ids=str,
)  # fmt: skip
def test_slopes_and_curvatures_are_derivatives(learner):
    _, y, weight = people()
    of = read_loss(learner, y, weight).of
    margins = np.linspace(-3.0, 3.0, 61) + 0.0123  # on no corner
    step = 1e-5
    (below, down, _), (above, up, _), (_, slope, curvature) = of(margins - step), of(margins + step), of(margins)
    np.testing.assert_allclose(slope, (above - below) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(curvature, (up - down) / (2 * step), atol=1e-6)


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(l1_ratio=1.0, solver="liblinear"),
        LogisticRegression(l1_ratio=0.5, solver="saga"),
        LogisticRegressionCV(),
        LinearSVC(penalty="l1", dual=False),
        RidgeClassifier(positive=True),
        SGDClassifier(penalty="l1"),
        SGDClassifier(penalty="elasticnet"),
        SGDClassifier(loss="modified_huber"),
        Perceptron(),
        LinearDiscriminantAnalysis(),
        SVC(kernel="linear"),
        make_pipeline(StandardScaler(), LogisticRegression()),
        object(),
    ],
    ids=lambda learner: "object" if type(learner) is object else " ".join(repr(learner).split()),
)
def test_a_learner_with_another_loss_or_penalty_has_none_that_is_known(learner):
    _, y, weight = people()
    assert read_loss(learner, y, weight) is None


def test_a_subclass_may_minimise_something_else():
    class Other(LogisticRegression):
        pass

    _, y, weight = people()
    assert read_loss(Other(), y, weight) is None


def test_labels_that_a_mapping_of_class_weights_does_not_know_are_the_learners_to_refuse():
    learner = LogisticRegression(class_weight={"no": 1.0, "yes": 2.0})
    np.testing.assert_array_equal(read_loss(learner, np.array([0, 1]), np.ones(2)).weights, [1.0, 1.0])
