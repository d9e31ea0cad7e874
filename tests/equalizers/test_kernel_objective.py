"""EqualRecourseSVC with kappa: the distance between distributions, in the features of a kernel."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from equirecourse import EqualRecourseSVC, recourse_frontier
from equirecourse._validation import check_groups
from equirecourse.equalizers._linear_fit import LinearObjective
from equirecourse.equalizers._losses import LinearLoss, hinge
from equirecourse.equalizers._objective import CostObjective
from equirecourse.metrics import transport_gap


def make_rings(n=3000, seed=0):
    """A yes in the middle; the people of one group live farther out, in a direction that says little."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 2] *= 1.0 + 1.5 * group
    y = np.where(np.square(X[:, :2]).sum(axis=1) + 0.8 * np.abs(X[:, 2]) + 0.5 * rng.normal(size=n) < 2.2, "yes", "no")
    return X, y, group


def gap_of(model, X, group):
    """Transport gap of the distances of the rejected."""
    scores = model.decision_function(X)
    rejected = scores <= 0
    return transport_gap(-scores[rejected] / model.weight_norm_, sensitive_features=group[rejected]).gap


@pytest.mark.parametrize(("approximation", "share"), [(None, 0.5), ("fourier", 0.7)])
def test_the_distributions_of_new_people_come_together(approximation, share):
    X, y, group = make_rings()
    new, labels, groups = make_rings(seed=1)
    model = EqualRecourseSVC(kappa=0.0, gamma=0.3, random_state=0, approximation=approximation)
    plain, equal = model.fit_path(X, y, sensitive_features=group, penalties=[0.0, 30.0])
    assert gap_of(plain, new, groups) > 0.12
    assert gap_of(equal, new, groups) < share * gap_of(plain, new, groups)
    assert equal.score(new, labels) > plain.score(new, labels) - 0.01
    assert abs((equal.predict(new) == "yes").mean() - (plain.predict(new) == "yes").mean()) < 0.02
    assert equal.rounds_["kind"].tolist() == ["plain", "distribution"]


def test_the_plain_model_is_that_of_the_approximation():
    X, y, group = make_rings(600)
    given = {"gamma": 0.3, "random_state": 3, "n_components": 40}
    plain = EqualRecourseSVC(kappa=0.0, **given).fit(X, y, sensitive_features=group)
    same = EqualRecourseSVC(recourse_penalty=0.0, approximation="nystroem", **given).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(plain.decision_function(X), same.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(plain.support_, same.support_)


def test_a_linear_kernel_minimises_the_objective_in_its_own_features():
    X, y, group = make_rings(800)
    X = np.column_stack([np.square(X), X[:, 2]])
    model = EqualRecourseSVC(kernel="linear", C=0.5, kappa=3.0).fit(X, y, sensitive_features=group)
    loss = LinearLoss(hinge, 1.0 / 0.5, 0.0, True, np.ones(len(y)))
    costs = CostObjective((check_groups(group, len(y)),), np.ones(len(y)), 5)
    plain = EqualRecourseSVC(kernel="linear", C=0.5, recourse_penalty=0.0).fit(X, y, sensitive_features=group)
    signs = np.where(y == "yes", 1.0, -1.0)
    objective = LinearObjective(X, signs, loss, costs, plain.coef_[0], float(plain.intercept_[0]))
    by_hand = objective.fit(3.0, max_iter=300, tol=1e-9)

    def value(coef, intercept):
        return objective.value(np.append(coef, intercept), 3.0, costs, objective.rejection, None)[0]

    best = value(by_hand.coef, by_hand.intercept)
    assert value(model.coef_[0], model.intercept_[0]) == pytest.approx(best, rel=1e-3)
    assert value(plain.coef_[0], plain.intercept_[0]) > 1.1 * best


def test_with_every_person_a_landmark_the_features_are_those_of_the_kernel():
    X, y, group = make_rings(150)
    model = EqualRecourseSVC(kappa=1.0, gamma=0.3, n_components=150, random_state=0).fit(X, y, sensitive_features=group)
    theirs = Nystroem(gamma=0.3, n_components=150, random_state=0).fit_transform(X)
    np.testing.assert_allclose(theirs @ theirs.T, rbf_kernel(X, gamma=0.3), atol=1e-5)
    scores = rbf_kernel(X, model.support_vectors_, gamma=0.3) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    weights = model.dual_coef_[0]
    norm = np.sqrt(weights @ rbf_kernel(model.support_vectors_, gamma=0.3) @ weights)
    assert model.weight_norm_ == pytest.approx(norm, rel=1e-5)


def test_a_frontier_goes_along_kappa():
    X, y, group = make_rings(900)
    found = recourse_frontier(
        EqualRecourseSVC(kappa=1.0, gamma=0.3, n_components=30, random_state=0), X, y,
        sensitive_features=group, param_grid={"kappa": [10.0]}, cv=2,
    )  # fmt: skip
    assert found.table["kappa"].tolist() == [0.0, 10.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recourse_penalty": 1.0}, "belong to the paper's method"),
        ({"difference_bound": 0.1}, "belong to the paper's method"),
        ({"feature_costs": [1.0, 2.0, 3.0]}, "belong to the paper's method"),
        ({"kernel": "precomputed"}, "has none; name the kernel"),
        ({"kappa": -1.0}, "kappa"),
    ],
    ids=str,
)
def test_what_does_not_go_together_gets_one_sentence(settings, message):
    X, y, group = make_rings(200)
    model = clone(EqualRecourseSVC(kappa=1.0)).set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=group)
