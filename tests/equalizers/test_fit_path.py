"""A path of penalties is a number of fits that share their work."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.datasets import load_german, make_tilted_groups
from equirecourse.equalizers._deflated import InteriorPointDual
from equirecourse.exceptions import ConvergenceWarning
from equirecourse.solvers import KernelDual

PENALTIES = [0.0, 0.05, 1.0, 20.0, np.inf]


@pytest.fixture(scope="module")
def people():
    data = load_german(paper=True)
    X = StandardScaler().fit_transform(data.data.to_numpy(dtype=float)[:400, :12])
    return X, np.asarray(data.target)[:400], np.asarray(data.sensitive_features["sex"])[:400]


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("solver", ["auto", "smo"])
@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.ConvergenceWarning")
def test_a_path_ends_where_its_fits_end(people, kernel, solver):
    X, y, groups = people
    model = EqualRecourseSVC(C=1.0, kernel=kernel, degree=2, solver=solver, min_rejected=1, tol=1e-7)
    path = model.fit_path(X, y, sensitive_features=groups, penalties=PENALTIES)
    assert not hasattr(model, "classes_")
    for penalty, found in zip(PENALTIES, path, strict=True):
        alone = EqualRecourseSVC(**{**model.get_params(), "recourse_penalty": penalty})
        alone.fit(X, y, sensitive_features=groups)
        assert found.recourse_penalty == penalty
        assert found.n_features_in_ == alone.n_features_in_
        np.testing.assert_allclose(found.decision_function(X), alone.decision_function(X), atol=1e-4)
        assert found.objective_ == pytest.approx(alone.objective_, rel=1e-6)


@pytest.mark.parametrize("solver", ["smo", "ipm"])
@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.ConvergenceWarning")
def test_equality_once_reached_is_not_solved_again(people, solver, monkeypatch):
    """A penalty that enforces equality does so at any larger value, with the same model."""
    X, y, groups = people
    dual = KernelDual if solver == "smo" else InteriorPointDual
    solves = []
    solve = dual.solve_penalty
    monkeypatch.setattr(dual, "solve_penalty", lambda *given: solves.append(given[2]) or solve(*given))
    model = EqualRecourseSVC(
        kernel="linear", solver=solver, min_rejected=1, round_options={"on_cycle": "last"}, tol=1e-7
    )
    small, large, larger = model.fit_path(X, y, sensitive_features=groups, penalties=[1e-3, 1e4, 1e5])
    assert 1e-3 in solves
    assert 1e4 in solves
    assert 1e5 not in solves
    assert abs(small.multiplier_[0]) == pytest.approx(1e-3)
    np.testing.assert_array_equal(large.decision_function(X), larger.decision_function(X))
    pd.testing.assert_frame_equal(large.rounds_, larger.rounds_)
    assert len(small.rounds_) > 1


def test_a_path_of_a_linear_learner(people):
    X, y, groups = people
    model = EqualRecourseLinear(
        LogisticRegression(tol=1e-10, class_weight="balanced"), objective="paper", penalty="squared"
    )
    path = model.fit_path(X, y, sensitive_features=groups, penalties=[0.0, 3.0])
    for found in path:
        alone = EqualRecourseLinear(**{**model.get_params(deep=False), "recourse_penalty": found.recourse_penalty})
        alone.fit(X, y, sensitive_features=groups)
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("penalty", [0.05, 1.0, 20.0])
@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.ConvergenceWarning")
def test_the_interior_point_takes_the_penalty_as_it_is(people, penalty):
    """Two ways to λ|u|: the interior point with its multiplier at the bound, and the dense program of CVXOPT."""
    X, y, groups = people
    settings = {"C": 1.0, "kernel": "linear", "recourse_penalty": penalty, "max_rounds": 1, "min_rejected": 1}
    ours = EqualRecourseSVC(solver="ipm", round_options={"on_cycle": "last"}, tol=1e-7, **settings).fit(
        X, y, sensitive_features=groups
    )
    theirs = EqualRecourseSVC(solver="qp", round_options={"on_cycle": "last"}, tol=1e-7, **settings).fit(
        X, y, sensitive_features=groups
    )
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-7)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.multiplier_, theirs.multiplier_, atol=1e-4)


def test_the_papers_loop_keeps_its_last_round(people):
    """The round after ten, had all of them been run: rounds that circle are not run again."""
    X, y, groups = people
    settings = {"C": 0.03, "kernel": "linear", "recourse_penalty": 0.2, "min_rejected": 1, "tol": 1e-7}
    with pytest.warns(ConvergenceWarning, match="the loop ends with"):
        short = EqualRecourseSVC(round_options={"on_cycle": "last"}, **settings).fit(X, y, sensitive_features=groups)
    assert short.ending_ == "the rounds came back to an earlier rejected set"
    # The loop by hand, one round at a time.
    rejected = EqualRecourseSVC(**{**settings, "recourse_penalty": 0.0}).fit(X, y).predict(X) == -1
    for _ in range(10):
        last = one_round(X, y, groups, rejected, settings)
        rejected = last <= 0
    np.testing.assert_allclose(short.decision_function(X), last, atol=1e-4)


def one_round(X, y, groups, rejected, settings):
    """Scores of the SVM that balances the given rejected people, by CVXOPT."""
    from equirecourse.solvers import Balance, ReferenceDual

    weights = np.zeros((len(y), 1))
    first, second = np.unique(groups)
    weights[rejected & (groups == second), 0] = 1 / (rejected & (groups == second)).sum()
    weights[rejected & (groups == first), 0] = -1 / (rejected & (groups == first)).sum()
    K = X @ X.T
    balance = Balance(K @ weights, weights.T @ K @ weights, np.zeros(1))
    dual = ReferenceDual(K, y.astype(float), np.full(len(y), settings["C"]))
    return dual.solve_penalty(balance, settings["recourse_penalty"]).scores(balance)


def test_a_path_needs_groups_and_sane_penalties():
    toy = make_tilted_groups(random_state=0)
    model = EqualRecourseSVC(kernel="linear")
    with pytest.raises(ValueError, match="pass them as sensitive_features"):
        model.fit_path(toy.data, toy.target, sensitive_features=None, penalties=[1.0])
    with pytest.raises(ValueError, match="recourse_penalty"):
        model.fit_path(toy.data, toy.target, sensitive_features=toy.sensitive_features, penalties=[1.0, -1.0])
    assert model.fit_path(toy.data, toy.target, sensitive_features=toy.sensitive_features, penalties=[]) == []
