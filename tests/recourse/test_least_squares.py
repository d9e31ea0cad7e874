"""Least squares under linear limits, against another solver."""

import cvxopt
import numpy as np
import pytest

from equirecourse.recourse._milp._action_program import _shortest_residual

cvxopt.solvers.options.update(show_progress=False, abstol=1e-12, reltol=1e-12, feastol=1e-12)


def by_cvxopt(matrix, target, slopes, least):
    n = matrix.shape[1]
    found = cvxopt.solvers.qp(
        cvxopt.matrix(matrix.T @ matrix + 1e-12 * np.eye(n)),
        cvxopt.matrix(-matrix.T @ target),
        cvxopt.matrix(-slopes),
        cvxopt.matrix(-least),
    )
    return np.array(found["x"]).ravel()


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_optimum_of_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(1, 8), rng.integers(1, 6), rng.integers(1, 15)
    matrix, target = rng.normal(size=(m, n)), rng.normal(size=m)
    slopes = rng.normal(size=(k, n))
    least = slopes @ rng.normal(size=n) - np.where(rng.uniform(size=k) < 0.3, 0.0, rng.exponential(size=k))
    found = _shortest_residual(matrix, target, slopes, least)
    assert (slopes @ found >= least - 1e-9).all()
    ours, theirs = (np.linalg.norm(matrix @ x - target) for x in (found, by_cvxopt(matrix, target, slopes, least)))
    assert ours <= theirs + 1e-6


def test_repeated_and_touching_limits_are_no_trouble():
    # Limits that meet in one point, some of them twice, with rounding errors: SLSQP wrote beyond its memory there.
    slopes = np.vstack([np.eye(4), -np.eye(4), np.eye(4), np.ones((1, 4))])
    least = np.concatenate([np.zeros(4), [-1.0, 0.0, 1e-16, -1.0], -1e-16 * np.ones(4), [1.0]])
    found = _shortest_residual(np.diag([1.0, 2.0, 0.0, 0.5]), np.zeros(4), slopes, least)
    np.testing.assert_allclose(found, [0.2, 0.0, 0.0, 0.8], atol=1e-7)


def test_limits_that_contradict_each_other_have_no_answer():
    assert _shortest_residual(np.eye(2), np.zeros(2), np.array([[1.0, 0], [-1.0, 0]]), np.array([1.0, 1.0])) is None
