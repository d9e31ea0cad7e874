"""Closed forms of the cost of recourse against an optimiser, and against the model itself."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.recourse import boundary_costs

COSTS = np.array([1.0, 3.0, 0.4])
NORMS = ["l1", "l2", "linf"]


@pytest.fixture(scope="module")
def people(make_people):
    return make_people(60, seed=0)


@pytest.fixture(scope="module")
def logistic(people):
    return LogisticRegression().fit(people.X, people.y)


def cheapest(w, score, costs, norm):
    """The cheapest change d with w·d = −score, by linear programming or by a constrained solver; no closed form."""
    d = len(w)
    if norm == "l2":
        found = minimize(
            lambda v: ((costs * v) ** 2).sum(),
            np.zeros(d),
            constraints={"type": "eq", "fun": lambda v: w @ v + score},
            options={"ftol": 1e-14},
        )
        return np.sqrt(found.fun)
    if norm == "l1":
        # d = p − q with p, q ≥ 0.
        return linprog(np.concatenate([costs, costs]), A_eq=[np.concatenate([w, -w])], b_eq=[-score]).fun
    # Minimise the bound t on every |costs · d|.
    rows = np.vstack([np.column_stack([s * np.diag(costs), -np.ones(d)]) for s in (1, -1)])
    objective = np.append(np.zeros(d), 1.0)
    bounds = [(None, None)] * d + [(0, None)]
    return linprog(
        objective, A_ub=rows, b_ub=np.zeros(2 * d), A_eq=[np.append(w, 0.0)], b_eq=[-score], bounds=bounds
    ).fun


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("costs", [None, COSTS], ids=["unit costs", "feature costs"])
def test_the_closed_form_is_the_optimum_of_the_program(norm, costs, people, logistic):
    found = boundary_costs(logistic, people.X, norm=norm, feature_costs=costs)
    scores, w = logistic.decision_function(people.X), logistic.coef_[0]
    np.testing.assert_array_equal(found.rejected, scores <= 0)
    np.testing.assert_array_equal(found.costs[~found.rejected], 0.0)
    for k in np.flatnonzero(found.rejected)[:10]:
        price = np.ones(3) if costs is None else costs
        assert found.costs[k] == pytest.approx(cheapest(w, scores[k], price, norm), rel=1e-5)
    assert (found.space, found.norm) == ("input", norm)


@pytest.mark.parametrize("norm", NORMS)
def test_the_cost_is_attained_at_a_point_on_the_boundary(norm, people, logistic):
    """Moving by that cost in the best direction gets to a score of zero; one per cent more is accepted, less is not."""
    found = boundary_costs(logistic, people.X, norm=norm, feature_costs=COSTS)
    w = logistic.coef_[0]
    reach = np.abs(w) / COSTS
    unit = {
        "l1": np.where(reach == reach.max(), np.sign(w) / COSTS, 0.0),
        "l2": w / COSTS**2 / np.linalg.norm(w / COSTS),
        "linf": np.sign(w) / COSTS,
    }[norm]
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    assert np.linalg.norm(COSTS * unit, ord=order) == pytest.approx(1.0)
    X, costs = people.X[found.rejected], found.costs[found.rejected, None]
    np.testing.assert_allclose(logistic.decision_function(X + costs * unit), 0.0, atol=1e-10)
    assert np.all(logistic.predict(X + 1.01 * costs * unit) == 1)
    assert np.all(logistic.predict(X + 0.99 * costs * unit) == -1)


@pytest.mark.parametrize("norm", NORMS)
def test_a_feature_in_another_unit_with_its_cost_in_that_unit_changes_nothing(norm, people, logistic):
    """x → a·x, w → w/a and c → c/a describe one and the same choice."""
    scale = np.array([0.01, 5.0, 1.0])
    other = LogisticRegression().fit(people.X * scale, people.y)
    other.coef_, other.intercept_ = logistic.coef_ / scale, logistic.intercept_
    np.testing.assert_allclose(
        boundary_costs(other, people.X * scale, norm=norm, feature_costs=COSTS / scale).costs,
        boundary_costs(logistic, people.X, norm=norm, feature_costs=COSTS).costs,
    )


def test_dearer_features_never_make_recourse_cheaper_and_norms_are_ordered(people, logistic):
    costs = {norm: boundary_costs(logistic, people.X, norm=norm).costs for norm in NORMS}
    assert np.all(costs["linf"] <= costs["l2"] + 1e-12)
    assert np.all(costs["l2"] <= costs["l1"] + 1e-12)
    for norm in NORMS:
        dear = boundary_costs(logistic, people.X, norm=norm, feature_costs=[2.0, 1.0, 1.0]).costs
        assert np.all(dear >= costs[norm])
        doubled = boundary_costs(logistic, people.X, norm=norm, feature_costs=[2.0, 2.0, 2.0]).costs
        np.testing.assert_allclose(doubled, 2 * costs[norm])


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LinearSVC(),
        Perceptron(),
        RidgeClassifier(),
        LinearDiscriminantAnalysis(),
        SVC(kernel="linear"),
    ],
    ids=str,
)
def test_any_model_with_coefficients_is_measured_in_input_space(model, people):
    model.fit(people.X, people.y)
    found = boundary_costs(model, people.X)
    expected = np.maximum(-model.decision_function(people.X), 0.0) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(found.costs, expected)
    assert found.space == "input"


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_the_norm_of_scikit_learns_svm_is_that_of_ours(kernel, people):
    settings = {"kernel": kernel, "degree": 2, "gamma": 0.1, "coef0": 0.5}
    theirs = SVC(tol=1e-9, **settings).fit(people.X, people.y)
    ours = EqualRecourseSVC(**settings).fit(people.X, people.y)
    costs = [boundary_costs(model, people.X) for model in (theirs, ours)]
    np.testing.assert_allclose(costs[0].costs, costs[1].costs, atol=1e-3)
    assert {c.space for c in costs} == {"feature"}


def test_a_distance_in_feature_space_is_that_of_the_images(people):
    """For the quadratic kernel the feature space has coordinates, and the distance is one between points."""
    X = people.X[:, :2]
    model = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, tol=1e-9).fit(X, people.y)
    a, b = X.T
    images = np.column_stack([np.ones(60), np.sqrt(2) * a, np.sqrt(2) * b, a**2, b**2, np.sqrt(2) * a * b])
    w = model.dual_coef_[0] @ images[model.support_]
    expected = np.maximum(-(images @ w + model.intercept_), 0.0) / np.linalg.norm(w)
    np.testing.assert_allclose(boundary_costs(model, X).costs, expected, atol=1e-8)


@pytest.mark.parametrize("model", [SVC(), EqualRecourseSVC()], ids=["sklearn", "ours"])
def test_sparse_people_cost_what_dense_people_cost(model, people):
    X = np.where(np.abs(people.X) > 0.4, people.X, 0.0)
    dense = boundary_costs(model.fit(X, people.y), X).costs
    thin = boundary_costs(model.fit(sparse.csr_matrix(X), people.y), sparse.csr_matrix(X)).costs
    np.testing.assert_allclose(thin, dense, atol=1e-3)


def test_the_steps_of_a_pipeline_come_first(people):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(people.X * [1, 10, 100], people.y)
    scaled = pipeline[0].transform(people.X * [1, 10, 100])
    np.testing.assert_array_equal(
        boundary_costs(pipeline, people.X * [1, 10, 100], feature_costs=COSTS).costs,
        boundary_costs(pipeline[-1], scaled, feature_costs=COSTS).costs,
    )
    alone = make_pipeline(LogisticRegression()).fit(people.X, people.y)
    np.testing.assert_array_equal(boundary_costs(alone, people.X).costs, boundary_costs(alone[-1], people.X).costs)


def test_who_is_rejected_depends_on_the_favourable_label(people, logistic, quietly):
    default = boundary_costs(logistic, people.X)
    turned = boundary_costs(logistic, people.X, favorable_label=-1)
    np.testing.assert_array_equal(turned.rejected, ~default.rejected)
    distances = np.abs(logistic.decision_function(people.X)) / np.linalg.norm(logistic.coef_)
    np.testing.assert_allclose(default.costs + turned.costs, distances)
    # An equalizer knows its own.
    model = quietly(
        EqualRecourseLinear(LogisticRegression(), favorable_label=-1),
        people.X,
        people.y,
        sensitive_features=people.group,
    )
    np.testing.assert_array_equal(boundary_costs(model, people.X).rejected, model.predict(people.X) == 1)


def test_a_model_that_looks_at_nothing_leaves_no_recourse(people, logistic):
    constant = LogisticRegression().fit(people.X, people.y)
    constant.coef_ = np.zeros((1, 3))
    constant.intercept_ = np.array([-1.0])
    found = boundary_costs(constant, people.X)
    assert found.rejected.all()
    assert np.isinf(found.costs).all()
    constant.intercept_ = np.array([1.0])
    np.testing.assert_array_equal(boundary_costs(constant, people.X).costs, 0.0)
    constant.intercept_ = np.array([0.0])  # on the boundary, which no change of the features moves
    assert np.isinf(boundary_costs(constant, people.X).costs).all()


@pytest.mark.parametrize(
    ("model", "arguments", "match"),
    [
        (LogisticRegression(), {"norm": "l3"}, r"norm must be one of 'l1', 'l2', 'linf', got 'l3'"),
        (LogisticRegression(), {"feature_costs": [1.0]}, r"shape \(1,\) for 3 features"),
        (LogisticRegression(), {"feature_costs": [1.0, 0.0, 1.0]}, "must be positive and finite, got 0"),
        (LogisticRegression(), {"favorable_label": 7}, r"favorable_label=7 is not one of the labels \[-1, 1\]"),
        (SVC(), {"norm": "l1"}, "feature space of a kernel is Euclidean .* got norm='l1'"),
        (SVC(), {"feature_costs": COSTS.tolist()}, r"has no feature costs, .* feature_costs=\[1.0, 3.0, 0.4\]"),
        (SVC(kernel=lambda a, b: a @ b.T), {}, "cannot be computed from its support vectors; use EqualRecourseSVC"),
        (DecisionTreeClassifier(), {}, "DecisionTreeClassifier has no boundary with a known distance"),
        (GaussianNB(), {}, "GaussianNB has no boundary with a known distance"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_has_no_closed_form_is_refused(model, arguments, match, people):
    with pytest.raises(ValueError, match=match) as caught:
        boundary_costs(model.fit(people.X, people.y), people.X, **arguments)
    assert "\n" not in str(caught.value)


def test_more_than_two_labels_and_unfitted_models_are_refused(people):
    three = LogisticRegression().fit(people.X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="needs a classifier with two labels; LogisticRegression has 3 of them"):
        boundary_costs(three, people.X)
    with pytest.raises(NotFittedError):
        boundary_costs(LogisticRegression(), people.X)
