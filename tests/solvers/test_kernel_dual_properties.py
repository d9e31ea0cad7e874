"""The kernel dual on problems drawn at random: its optimum is LIBSVM's on the deflated kernel, from any start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from equirecourse.solvers import Balance, KernelDual, _gram, gram_matrix, kernel_sums, times_rows
from equirecourse.solvers import _smo as smo_module

SETTINGS = settings(max_examples=15, deadline=None)
KERNELS = {"linear": (1, 0.0), "poly 2": (2, 1.0), "poly 3": (3, 0.5), "poly 0": (0, 1.0), "rbf": (3, 0.0)}


@st.composite
def problems(draw):
    """Kernel matrix, labels, bounds and one balance direction whose weights sum to zero."""
    n, d = draw(st.integers(20, 60)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.normal(size=(n, d))
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]  # everybody twice
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    C = draw(st.sampled_from([0.05, 1.0, 20.0])) * rng.uniform(0.5, 2.0, size=n)
    kernel = draw(st.sampled_from(["poly", "rbf"]))
    K = gram_matrix(X, kernel=kernel, gamma=1 / d, degree=draw(st.sampled_from([2, 3])), coef0=1.0)
    weights = rng.uniform(0.1, 1.0, size=n)
    side = rng.permutation(n) < n // 2
    S = np.where(side, weights / weights[side].sum(), -weights / weights[~side].sum())[:, None]
    return K, y, C, Balance(K @ S, S.T @ K @ S, np.zeros(1))


def dual_value(K, y, beta):
    return float(y @ beta - 0.5 * beta @ K @ beta)


def deflated(K, balance, stiffness):
    inner = balance.inner[0, 0] + (0.0 if np.isinf(stiffness) else 1.0 / stiffness)
    return K - balance.cross @ balance.cross.T / inner


@SETTINGS
@given(problems(), st.sampled_from([0.5, 50.0, np.inf]))
def test_the_optimum_is_that_of_libsvm_on_the_deflated_kernel(problem, stiffness):
    K, y, C, balance = problem
    solution = KernelDual(K, y, C, tol=1e-8).solve(balance, stiffness=stiffness)
    reduced = deflated(K, balance, stiffness)
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(reduced, y, sample_weight=C)
    reference = np.zeros(len(y))
    reference[svc.support_] = svc.dual_coef_[0]
    value = dual_value(reduced, y, solution.beta)
    # LIBSVM's kernel is in single precision: its value is at most ours, and all but ours.
    assert value >= dual_value(reduced, y, reference) - 1e-9 * abs(value)
    assert value == pytest.approx(dual_value(reduced, y, reference), rel=1e-4)
    if np.isinf(stiffness):
        assert np.abs(solution.differences(balance)).max() <= 1e-9 * max(1.0, np.abs(solution.scores(balance)).max())


@SETTINGS
@given(problems(), st.sampled_from([1e-3, 0.1, 10.0]))
def test_a_warm_start_ends_where_a_cold_one_does(problem, penalty):
    K, y, C, balance = problem
    warm = KernelDual(K, y, C, tol=1e-8)
    warm.solve()
    warm.solve(balance)
    again, cold = warm.solve_penalty(balance, penalty), KernelDual(K, y, C, tol=1e-8).solve_penalty(balance, penalty)
    scale = max(1.0, float(np.abs(cold.scores(balance)).max()))
    np.testing.assert_allclose(again.gram_beta, K @ again.beta, atol=1e-10 * scale * K.max())
    value, reference = (
        0.5 * s.squared_norm(balance)
        + C @ np.maximum(0.0, 1.0 - y * s.scores(balance))
        + penalty * np.abs(s.differences(balance)).sum()
        for s in (again, cold)
    )
    assert value == pytest.approx(reference, rel=1e-6)


@SETTINGS
@given(problems(), st.floats(1e-4, 10.0))
def test_the_multiplier_keeps_to_the_penalty(problem, penalty):
    K, y, C, balance = problem
    solution = KernelDual(K, y, C, tol=1e-8).solve_penalty(balance, penalty)
    t, u = float(solution.multiplier[0]), float(solution.differences(balance)[0])
    assert abs(t) <= penalty
    # Inside its bounds the multiplier has brought the difference to zero; at one, it works against the difference.
    if abs(t) < penalty:
        assert abs(u) <= 1e-6
    else:
        assert t * u <= 1e-6
    assert abs(solution.beta.sum()) <= 1e-8 * C.max()
    assert (y * solution.beta >= 0).all()
    assert (y * solution.beta <= C).all()


@SETTINGS
@given(problems())
def test_a_kernel_matrix_in_single_precision_moves_the_objective_by_its_rounding_only(problem):
    K, y, C, _ = problem
    double = KernelDual(K, y, C, tol=1e-6).solve()
    single = KernelDual(K.astype(np.float32), y, C, tol=1e-6).solve()
    assert single.beta.dtype == np.float64
    # Rounding K by 2⁻²⁴ of its entries moves the dual value at any β by at most ½ 2⁻²⁴ |β|ᵀ|K||β|.
    error = 2.0**-24 * max(float(np.abs(b) @ np.abs(K) @ np.abs(b)) for b in (double.beta, single.beta))
    value = dual_value(K, y, double.beta)
    assert abs(dual_value(K, y, single.beta) - value) <= error + 1e-5 * C.sum()


@pytest.mark.parametrize("n", [1, 63, 64, 200])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernel_matrix_is_that_of_scikit_learn(kernel, n):
    degree, coef0 = KERNELS[kernel]
    X = 100.0 + np.random.default_rng(0).normal(size=(n, 7)) * np.logspace(-2, 1, 7)
    name = kernel.split()[0]
    found = gram_matrix(X, kernel=name, gamma=0.3, degree=degree, coef0=coef0)
    expected = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.3, degree=degree, coef0=coef0)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    single = gram_matrix(X, kernel=name, gamma=0.3, degree=degree, coef0=coef0, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, found.astype(np.float32))


def test_people_far_apart_have_a_kernel_of_zero_for_all_purposes():
    found = gram_matrix(np.array([[0.0], [1.0], [1e3], [1e100]]), kernel="rbf", gamma=1.0)
    np.testing.assert_array_equal(np.diag(found), 1.0)
    assert found[0, 1] == pytest.approx(np.exp(-1.0), rel=1e-15)
    assert (found[2:, :2] >= 0).all()
    assert found[2:, :2].max() < 1e-300


@pytest.mark.parametrize("n", [0, 1, 70])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_over_the_kernel_are_those_of_scikit_learn(kernel, n, monkeypatch):
    degree, coef0 = KERNELS[kernel]
    rng = np.random.default_rng(0)
    X, Y = (100.0 + rng.normal(size=(rows, 7)) * np.logspace(-2, 1, 7) for rows in (n, 53))
    coefficients, name = rng.normal(size=53), kernel.split()[0]
    monkeypatch.setattr(_gram, "_STRIP_NUMBERS", 160)  # three people at a time
    found = kernel_sums(X, Y, coefficients, kernel=name, gamma=0.3, degree=degree, coef0=coef0)
    expected = np.zeros(0)
    if n:
        K = pairwise_kernels(X, Y, metric=name, filter_params=True, gamma=0.3, degree=degree, coef0=coef0)
        expected = K @ coefficients
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match="kernel must be one of linear, poly, rbf, got 'sigmoid'"):
        gram_matrix(np.eye(2), kernel="sigmoid", gamma=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_through_the_rows_is_the_product(dtype):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(50, 50))
    K = (K + K.T).astype(dtype)
    for moved in (0, 1, 6, 50):
        change = np.where(rng.permutation(50) < moved, rng.normal(size=50), 0.0)
        np.testing.assert_allclose(times_rows(K, change), K.astype(float) @ change, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_working_sets_end_where_one_large_set_does(dtype, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    y = np.where(X[:, 0] + rng.normal(size=500) > 0, 1.0, -1.0)
    K = gram_matrix(X, kernel="poly", gamma=0.5, degree=3, coef0=1.0, dtype=dtype)
    S = np.where(np.arange(500) % 2, 1 / 250, -1 / 250)[:, None]
    balance = Balance(K.astype(float) @ S, S.T @ K.astype(float) @ S, np.zeros(1))
    found = []
    for working in (20, 256, 10**6):
        monkeypatch.setattr(smo_module, "_WORKING", working)
        found.append(KernelDual(K, y, np.full(500, 5.0), tol=1e-6).solve(balance))
    for other in found[1:]:
        np.testing.assert_allclose(other.scores(balance), found[0].scores(balance), atol=1e-4)
    assert all(solution.violation <= 1e-6 for solution in found)
