"""A LinearSVC inside EqualRecourseLinear is the one LIBLINEAR would find if it converged."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from equirecourse import EqualRecourseLinear
from equirecourse.equalizers._liblinear import ExactLinearSVC, can_solve
from equirecourse.exceptions import ConvergenceWarning
from equirecourse.solvers import CoordinateDescentSVM, LinearSVM, SquaredHingeSVM


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
    common = {"max_rounds": 1, "round_options": {"balance_tol": 1e9}}
    ours = EqualRecourseLinear(learner, objective="paper", **common).fit(
        X, y, sensitive_features=group, sample_weight=weight
    )
    theirs = EqualRecourseLinear(learner, objective="paper", solver="learner", **common)
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
    common = {"max_rounds": 1, "round_options": {"balance_tol": 1e9}, "penalty": "squared", "recourse_penalty": 3.0}
    ours = EqualRecourseLinear(learner, objective="paper", **common).fit(X, y, sensitive_features=group)
    theirs = EqualRecourseLinear(learner, objective="paper", solver="learner", **common).fit(
        X, y, sensitive_features=group
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_the_learner_is_a_fitted_linear_svc():
    X, y, group = people()
    model = EqualRecourseLinear(LinearSVC(loss="hinge"), objective="paper").fit(X, y, sensitive_features=group)
    assert (model.estimator_.predict(X) == model.predict(X)).all()
    assert model.dual_gap_ <= 1e-6 * len(y)


def test_parameters_of_the_learner_are_checked():
    X, y, group = people(n=100)
    with pytest.raises(ValueError, match="'C' parameter of LinearSVC"):
        EqualRecourseLinear(LinearSVC(loss="hinge", C=-1.0), objective="paper").fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dual", ["auto", True])
@pytest.mark.parametrize(
    "settings",
    [{}, {"class_weight": "balanced"}, {"intercept_scaling": 5.0}, {"fit_intercept": False}],
    ids=["plain", "balanced", "scaled", "no-intercept"],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_with_many_features_it_is_the_model_of_the_learner_too(loss, dual, settings, form):
    X, y, group = people(n=400, d=120)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    learner = LinearSVC(loss=loss, dual=dual, C=0.01, tol=1e-9, max_iter=1_000_000, random_state=0, **settings)
    common = {"max_rounds": 1, "round_options": {"balance_tol": 1e9}}
    ours = EqualRecourseLinear(learner, objective="paper", **common).fit(
        form(X), y, sensitive_features=group, sample_weight=weight
    )
    theirs = EqualRecourseLinear(learner, objective="paper", solver="learner", **common)
    theirs.fit(X, y, sensitive_features=group, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.rounds_["gap"], theirs.rounds_["gap"], atol=1e-5)
    assert ours.rounds_["balance_residual"].max() <= 1e-13
    assert abs(ours.dual_gap_) <= 1e-6


@pytest.mark.parametrize("penalty", [{"penalty": "squared", "recourse_penalty": 3.0}, {"recourse_penalty": 0.1}])
@pytest.mark.filterwarnings("ignore:The rounds over the rejected set")
def test_a_soft_penalty_on_sparse_people_is_that_on_dense_ones(penalty):
    X, y, group = people(n=400)
    learner = LinearSVC(loss="hinge", C=0.1, tol=1e-9, max_iter=10_000)
    dense, thin = (
        EqualRecourseLinear(learner, objective="paper", max_rounds=1, **penalty).fit(
            form(X), y, sensitive_features=group
        )
        for form in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sparse_people_stay_sparse(loss, monkeypatch):
    n, d, words = 1000, 200_000, 20  # 1.6 GB as a dense matrix
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=n)
    columns = np.sort(rng.integers(d - 1, size=(n, words)), axis=1)
    columns[:, -1] = d - 1
    values = rng.random((n, words))
    values[:, -1] = rng.normal(size=n) - 0.8 * group
    y = np.where(values[:, -1] + rng.normal(size=n) > -0.4, 1, -1)
    X = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, n * words + 1, words)), shape=(n, d))

    def refuse(*given, **more):
        raise AssertionError("sparse people became dense")

    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_array, name, refuse)
    model = EqualRecourseLinear(LinearSVC(loss=loss), objective="paper").fit(X, y, sensitive_features=group)
    assert model.rounds_.query("chosen")["relative_gap"].item() < 1e-3 < model.rounds_["relative_gap"][0]


@pytest.mark.parametrize(("loss", "form"), [("hinge", np.asarray), ("squared_hinge", sparse.csr_array)])
def test_too_few_passes_are_told(loss, form):
    X, y, group = people(n=400, d=120)
    model = EqualRecourseLinear(
        LinearSVC(loss=loss, max_iter=1), objective="paper", max_rounds=1, round_options={"balance_tol": 1e9}
    )
    with pytest.warns(ConvergenceWarning, match="stopped after .* of LinearSVC; scale the features, lower C, raise"):
        model.fit(form(X), y, sensitive_features=group)


@pytest.mark.parametrize(
    ("form", "n", "d", "settings", "solver"),
    [
        (np.asarray, 300, 100, {"loss": "hinge"}, LinearSVM),
        (np.asarray, 300, 100, {}, SquaredHingeSVM),
        (np.asarray, 300, 101, {"loss": "hinge", "C": 0.1}, CoordinateDescentSVM),
        (np.asarray, 300, 101, {"loss": "hinge", "C": 10.0}, LinearSVM),
        (np.asarray, 150, 101, {"loss": "hinge", "C": 10.0}, CoordinateDescentSVM),
        (sparse.csr_array, 300, 5, {"loss": "hinge"}, CoordinateDescentSVM),
        (np.asarray, 300, 101, {}, SquaredHingeSVM),
        (sparse.csr_array, 300, 5, {}, SquaredHingeSVM),
        (np.asarray, 300, 301, {}, CoordinateDescentSVM),
        (np.asarray, 50, 60, {}, SquaredHingeSVM),
    ],
)
def test_people_features_and_weights_decide_on_the_solver(form, n, d, settings, solver):
    X, y, _ = people(n=n, d=d)
    assert type(ExactLinearSVC(LinearSVC(**settings), form(X), y, np.ones(n)).svm) is solver


def test_a_learner_of_another_kind_is_left_alone():
    class Own(LinearSVC):
        pass

    assert can_solve(LinearSVC())
    for learner in (Own(), LinearSVC(penalty="l1", dual=False), LinearSVC(multi_class="crammer_singer")):
        assert not can_solve(learner)
