"""The fast path and the paper's quadratic program find the same optimum, at a fixed set of rejected people."""

import os
from functools import cache

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from equirecourse import EqualRecourseSVC
from equirecourse.datasets import fetch_propublica, load_credit, load_german
from equirecourse.equalizers._contrasts import build_contrasts
from equirecourse.solvers import polish, stiffness_matrix

N = 200
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly2": {"kernel": "poly", "degree": 2, "gamma": "auto"},
    "poly3": {"kernel": "poly", "degree": 3, "gamma": "auto"},
    "poly5": {"kernel": "poly", "degree": 5, "gamma": "auto"},
    "rbf": {"kernel": "rbf", "gamma": "auto"},
}
PENALTIES = (0.2, 1.0, 10.0, 100.0, np.inf)


@cache
def sample(name):
    if name == "propublica":
        if not os.environ.get("EQUIRECOURSE_DATA"):
            pytest.skip("propublica may not be redistributed; set EQUIRECOURSE_DATA to a folder that has it")
        data = fetch_propublica(paper=True)
    else:
        data = (load_german if name == "german" else load_credit)(paper=True)
    rows = np.random.default_rng(0).permutation(len(data.target))[:N]
    X = np.asarray(data.data, dtype=float)[rows]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    y = np.asarray(data.target)[rows] * data.favorable_label
    return X, y, np.asarray(data.sensitive_features["paper"])[rows]


def fits_at_fixed_rejected_set(model, X, y, groups, penalties):
    """Fits for several penalties, for the rejected set the paper's algorithm begins with: everybody with y = −1."""
    problem = model._open(X, y, groups, None)
    data = problem.data
    contrasts = build_contrasts(
        data.partitions, data.y < 0, sample_weight=data.sample_weight, normalize=model.normalize
    )
    found = []
    for penalty in penalties:
        model.set_params(recourse_penalty=penalty)
        fit = problem.fit(contrasts)
        found.append((problem.objective(fit), fit))
    return found


@pytest.mark.parametrize("with_costs", [False, True], ids=["C=I", "C≠I"])
@pytest.mark.parametrize("normalize", ["rejected", "group"])
@pytest.mark.parametrize("C", [10 / N, 1.0, 10.0], ids=["C=10/n", "C=1", "C=10"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dataset", ["german", "credit", "propublica"])
def test_objective_and_decisions_equal_those_of_cvxopt(dataset, kernel, C, normalize, with_costs):
    X, y, groups = sample(dataset)
    costs = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1]) if with_costs else None
    settings = {"C": C, "normalize": normalize, "feature_costs": costs, "tol": 1e-8, **KERNELS[kernel]}
    fast = fits_at_fixed_rejected_set(EqualRecourseSVC(solver="auto", **settings), X, y, groups, PENALTIES)
    slow = fits_at_fixed_rejected_set(EqualRecourseSVC(solver="qp", **settings), X, y, groups, PENALTIES)
    for (value, fit), (reference_value, reference) in zip(fast, slow, strict=True):
        assert value == pytest.approx(reference_value, rel=1e-6)
        np.testing.assert_allclose(fit.scores, reference.scores, atol=1e-4)
        np.testing.assert_allclose(fit.differences, reference.differences, atol=1e-4)
    hard = fast[-1][1]
    assert np.abs(hard.differences).max() <= 1e-6


@pytest.mark.parametrize("C", [10 / N, 1.0, 10.0], ids=["C=10/n", "C=1", "C=10"])
@pytest.mark.parametrize("kernel", ["linear", "poly2", "rbf"])
def test_libsvm_on_the_deflated_kernel_finds_the_same_optimum(kernel, C):
    X, y, groups = sample("german")
    settings = {"C": C, "tol": 1e-8, **KERNELS[kernel]}
    model = EqualRecourseSVC(solver="smo", **settings)
    K = model._open(X, y, groups, None).K
    for value, fit in fits_at_fixed_rejected_set(model, X, y, groups, (1.0, np.inf)):
        balance, t, kappa = fit.balance, fit.solution.multiplier, fit.stiffness
        deflated = K - balance.cross @ stiffness_matrix(balance.inner, kappa) @ balance.cross.T
        beta, g = libsvm(deflated, y, C)
        dual = y @ beta - 0.5 * beta @ deflated @ beta
        # Under λ|u| the objective has κu² for the ½κu² of the squared penalty at the κ with κ|u| = λ.
        assert dual + 0.5 * float(t @ t) / kappa == pytest.approx(value, rel=1e-6)
        free = (np.abs(beta) > 0) & (np.abs(beta) < C)
        np.testing.assert_allclose(g + y - (g[free].mean() if free.any() else 0), fit.scores, atol=1e-4)


def libsvm(K, y, C):
    """LIBSVM's solution for a kernel matrix, with the digits that its single precision leaves out; and the gradient."""
    svc = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    beta = np.zeros(len(y))
    beta[svc.support_] = svc.dual_coef_[0]
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    beta = np.clip(beta, lower, upper)
    beta, g, _ = polish(lambda rows: K[np.ix_(rows, rows)], lambda b: K @ b - y, lower, upper, beta, rounds=50)
    return beta, g


@pytest.mark.parametrize("C", [10 / N, 1.0, 10.0], ids=["C=10/n", "C=1", "C=10"])
def test_an_interior_point_finds_the_same_optimum(C):
    X, y, groups = sample("german")
    settings = {"kernel": "linear", "C": C, "tol": 1e-8}
    found = [
        fits_at_fixed_rejected_set(EqualRecourseSVC(solver=solver, **settings), X, y, groups, (1.0, np.inf))
        for solver in ("smo", "ipm")
    ]
    for (value, fit), (other_value, other_fit) in zip(*found, strict=True):
        assert other_value == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(other_fit.scores, fit.scores, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "solver"),
    [*((kernel, solver) for kernel in KERNELS for solver in ("smo", "qp")), ("linear", "ipm")],
)
def test_without_a_penalty_the_model_is_scikit_learns_svc(kernel, solver):
    X, y, groups = sample("credit")
    weight = compute_sample_weight("balanced", y)
    settings = {"coef0": 1.0, **KERNELS[kernel]}
    ours = EqualRecourseSVC(recourse_penalty=0, solver=solver, tol=1e-8, **settings)
    ours.fit(X, y, sensitive_features=groups, sample_weight=weight)
    theirs = SVC(tol=1e-8, **settings).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("penalty", [0.5, 5.0, np.inf])
def test_several_groups_equal_the_second_order_cone_program(penalty):
    X, y, _ = sample("german")
    groups = np.random.default_rng(2).choice(list("abc"), size=N)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=N)
    found = {}
    for solver in ("smo", "qp"):
        model = EqualRecourseSVC(kernel="poly", degree=2, gamma="auto", solver=solver, tol=1e-8)
        problem = model._open(X, y, groups, weight)
        data = problem.data
        contrasts = build_contrasts(data.partitions, data.y < 0, sample_weight=data.sample_weight)
        assert len(contrasts) == 2
        model.set_params(recourse_penalty=penalty)
        fit = problem.fit(contrasts)
        found[solver] = problem.objective(fit), fit.scores
    assert found["smo"][0] == pytest.approx(found["qp"][0], rel=1e-6)
    np.testing.assert_allclose(found["smo"][1], found["qp"][1], atol=1e-4)
