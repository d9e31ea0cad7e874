"""A polynomial kernel through its monomials: the same inner products, the same model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from equirecourse import EqualRecourseSVC
from equirecourse.equalizers import _kernel_problem
from equirecourse.equalizers._polynomial import monomials, monomials_are_worth_it, polynomial_kernel


@given(
    degree=st.integers(1, 4),
    gamma=st.floats(0.01, 3.0),
    coef0=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    d=st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_inner_products_are_the_kernel(degree, gamma, coef0, d, seed):
    X = np.random.default_rng(seed).normal(size=(7, d))
    parameters = {"degree": degree, "gamma": gamma, "coef0": coef0}
    expected = pairwise.polynomial_kernel(X, **parameters)
    features = monomials(X, **parameters)
    # Terms may cancel, so errors are relative to the sum of their sizes.
    assert (np.abs(features @ features.T - expected) <= 1e-12 * (np.abs(features) @ np.abs(features).T)).all()
    for left in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(polynomial_kernel(left, X, **parameters), expected, rtol=1e-12, atol=1e-12)


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(_kernel_problem, "monomials_are_worth_it", lambda *given: True)


@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_a_plain_model_is_that_of_svc_and_needs_no_kernel_matrix(make_people, always, monkeypatch, coef0, C):
    X, y, _ = make_people(400, seed=2)
    monkeypatch.setattr(_kernel_problem, "gram_matrix", lambda *args, **kwargs: pytest.fail("a kernel matrix"))
    parameters = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": coef0, "C": C}
    ours = EqualRecourseSVC(tol=1e-6, **parameters).fit(X, y)
    theirs = SVC(tol=1e-8, **parameters).fit(X, y)
    # LIBSVM's kernel is in single precision; the duality gap says whose digits to trust.
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3)
    assert ours.dual_gap_ < 1e-9


@pytest.mark.parametrize("settings", [{}, {"recourse_penalty": 3.0}, {"recourse_penalty": 3.0, "penalty": "squared"}])
@pytest.mark.filterwarnings("ignore:The rounds over the rejected set:sklearn.exceptions.ConvergenceWarning")
def test_rounds_that_start_from_it_end_where_pair_steps_end(make_people, always, settings):
    X, y, group = make_people(400, seed=2)
    parameters = {"kernel": "poly", "degree": 2, "C": 5.0, "coef0": 1.0, "tol": 1e-8, **settings}
    ours = EqualRecourseSVC(**parameters).fit(X, y, sensitive_features=group)
    pairs = EqualRecourseSVC(solver="smo", **parameters).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(ours.decision_function(X), pairs.decision_function(X), atol=1e-5)
    assert list(ours.rounds_["changed"]) == list(pairs.rounds_["changed"])


def test_monomials_too_large_for_double_precision_are_left_to_pair_steps(make_people, always):
    X, y, _ = make_people(300, seed=2)
    X = X * np.array([1.0, 1e4, 1e-4])
    parameters = {"kernel": "poly", "degree": 3, "gamma": 1e-6, "coef0": 1.0, "C": 1.0}
    ours = EqualRecourseSVC(**parameters).fit(X, y)
    pairs = EqualRecourseSVC(solver="smo", **parameters).fit(X, y)
    assert ours.objective_ <= pairs.objective_ * (1 + 1e-6)


def test_few_monomials_and_heavy_losses_are_worth_it():
    assert monomials_are_worth_it((4000, 12), 2, 1.0, 40_000.0)
    assert not monomials_are_worth_it((4000, 12), 2, 1.0, 10.0)
    assert not monomials_are_worth_it((1000, 12), 3, 1.0, 10_000.0)
    assert not monomials_are_worth_it((4000, 100), 2, 1.0, 40_000.0)
