"""The nearest point of a quadric: against a constrained solver, against brute force, and in closed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, NuSVC

from equirecourse import EqualRecourseSVC
from equirecourse.recourse._kernel._quadric import nearest_on_quadric, quadric_of

few = settings(max_examples=25, deadline=None)


def score(A, b, c, u):
    """uᵀAu + b·u + c of each row."""
    return ((u @ A) * u).sum(axis=1) + (b * u).sum(axis=1) + c


def random_quadric(seed):
    """A matrix of a random kind, and a linear part that often has nothing in the top eigenspace."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    kind = seed % 4
    eigenvalues = {
        0: rng.normal(size=d),
        1: rng.uniform(0.1, 2.0, size=d),
        2: -rng.uniform(0.1, 2.0, size=d),
        3: rng.choice([-1.0, 0.0, 1.0, 1.0, 2.0], size=d),  # repeated and zero ones
    }[kind]
    beta = rng.normal(size=d)
    if kind != 2 and rng.random() < 0.5:
        beta[eigenvalues == eigenvalues.max()] = 0.0
    A = (axes * eigenvalues) @ axes.T
    return 0.5 * (A + A.T), (axes @ beta)[None, :], -rng.uniform(0.1, 3.0, size=1)


def by_slsqp(A, b, c, starts):
    """Cheapest accepted point that SLSQP finds from several starts."""
    best = np.inf
    level = {"type": "ineq", "fun": lambda u: u @ A @ u + b[0] @ u + c[0], "jac": lambda u: 2 * A @ u + b[0]}
    options = {"ftol": 1e-14, "maxiter": 200}
    for start in starts:
        found = minimize(
            lambda u: u @ u, start, jac=lambda u: 2 * u, constraints=level, method="SLSQP", options=options
        )
        if score(A, b, c, found.x[None, :])[0] > -1e-9:
            best = min(best, float(np.sqrt(found.fun)))
    return best


@pytest.mark.parametrize("seed", range(16))
def test_no_start_of_a_constrained_solver_finds_a_nearer_point(seed):
    A, b, c = random_quadric(seed)
    found = nearest_on_quadric(A, b, c, noise=1e-14)
    reference = by_slsqp(A, b, c, np.random.default_rng(seed).normal(scale=3.0, size=(6, len(A))))
    if not found.exists[0]:
        assert np.isinf(found.costs[0])
        assert np.isinf(reference)
        return
    for moves in (found.moves, found.mirrored):
        assert abs(score(A, b, c, moves)[0]) < 1e-9 * (1.0 + found.costs[0] ** 2)
        assert np.linalg.norm(moves) == pytest.approx(found.costs[0], rel=1e-9)
    assert found.costs[0] <= reference * (1 + 1e-7)
    assert found.costs[0] == pytest.approx(reference, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_in_the_plane_no_direction_meets_the_boundary_earlier(seed):
    """Along a direction the score is a quadratic of one number, whose first root is known."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2, 2))
    A, b, c = A + A.T, rng.normal(size=(1, 2)), np.array([-rng.uniform(0.1, 2.0)])
    angle = np.linspace(0.0, 2.0 * np.pi, 200_001)
    ways = np.column_stack([np.cos(angle), np.sin(angle)])
    a2, a1 = ((ways @ A) * ways).sum(axis=1), ways @ b[0]
    inside = a1**2 - 4.0 * a2 * c
    with np.errstate(invalid="ignore", divide="ignore"):
        # The first positive root of a2·t² + a1·t + c, written without cancellation.
        root = np.where(inside >= 0, 2.0 * c / (-a1 - np.sqrt(inside)), np.inf)
    root[~(root > 0)] = np.inf
    cost = nearest_on_quadric(A, b, c).costs[0]
    assert cost <= root.min() * (1 + 1e-12)
    assert cost == pytest.approx(root.min(), rel=1e-7)


def test_from_the_centre_of_a_sphere_every_way_is_as_long():
    found = nearest_on_quadric(np.eye(3), np.zeros((1, 3)), np.array([-4.0]))
    assert found.costs == pytest.approx(2.0)
    np.testing.assert_allclose(found.moves, -found.mirrored)


def test_saddle_whose_slope_is_orthogonal_to_the_way_up():
    """u₁² − u₂² + 2u₂ − 3 ≥ 0: at μ = 1, u₂ = 1/2, and u₁² = 3 − 1 + 1/4."""
    found = nearest_on_quadric(np.diag([1.0, -1.0]), np.array([[0.0, 2.0]]), np.array([-3.0]))
    np.testing.assert_allclose(np.abs(found.moves), [[1.5, 0.5]])
    np.testing.assert_allclose(found.mirrored, found.moves * [-1.0, 1.0])


def test_no_part_in_the_top_eigenspace_and_yet_not_the_hard_case():
    """u₁² + 8u₂ − 4 ≥ 0 from the axis of a parabola: its vertex u = (0, 1/2) is nearer than its arms."""
    found = nearest_on_quadric(np.diag([1.0, 0.0]), np.array([[0.0, 8.0]]), np.array([-4.0]))
    np.testing.assert_allclose(found.moves, [[0.0, 0.5]], atol=1e-12)


@pytest.mark.parametrize("slope", [1e-3, 1e-8, 1e-15, 1e-100])
def test_a_vanishing_slope_leads_continuously_to_the_hard_case(slope):
    found = nearest_on_quadric(np.diag([1.0, -1.0]), np.array([[slope, 2.0]]), np.array([-3.0]))
    assert found.moves[0, 0] > 0
    assert found.costs[0] == pytest.approx(np.sqrt(2.5), abs=2 * slope + 1e-14)


def test_a_hill_that_does_not_reach_the_level_has_no_accepted_point():
    A, b = -np.eye(2), np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])  # highest at u₁ = 1, by 1
    found = nearest_on_quadric(A, b, np.array([-0.75, -1.0, -1.25]))
    np.testing.assert_array_equal(found.exists, [True, True, False])
    np.testing.assert_allclose(found.costs, [0.5, 1.0, np.inf])


def test_flat_ground_is_a_half_space():
    b = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1e-15]])
    found = nearest_on_quadric(np.zeros((2, 2)), b, np.array([-10.0, -1.0, -1.0]), noise=1e-14)
    np.testing.assert_allclose(found.moves[0], [1.2, 1.6])
    np.testing.assert_array_equal(found.exists, [True, False, False])


def test_a_ridge_that_falls_to_the_sides_is_climbed_along_its_slope():
    """−u₁² + u₂ ≥ 1: straight along the ridge."""
    found = nearest_on_quadric(np.diag([-1.0, 0.0]), np.array([[0.0, 1.0]]), np.array([-1.0]))
    np.testing.assert_allclose(found.moves, [[0.0, 1.0]], atol=1e-12)


def test_accepted_people_need_no_move():
    found = nearest_on_quadric(np.diag([1.0, -1.0]), np.ones((2, 2)), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(found.moves, 0.0)
    assert found.exists.all()


def test_scores_of_very_different_size_keep_their_digits():
    """A positive eigenvalue that is tiny beside a negative one must not cost digits of the multiplier."""
    A, b, c = np.diag([1e-10, -1.0]), np.array([[0.0, 10.0]]), np.array([-1.0])
    u = 5.0 - np.sqrt(24.0)  # −u² + 10u − 1 = 0
    assert nearest_on_quadric(A, b, c).costs[0] == pytest.approx(u, rel=1e-10)


@few
@given(seed=st.integers(0, 10_000), turn=st.integers(0, 10_000))
def test_turning_the_space_turns_the_answer(seed, turn):
    A, b, c = random_quadric(seed)
    R = np.linalg.qr(np.random.default_rng(turn).normal(size=A.shape))[0]
    one = nearest_on_quadric(A, b, c, noise=1e-13)
    other = nearest_on_quadric(R @ A @ R.T, b @ R.T, c, noise=1e-13)
    np.testing.assert_allclose(other.costs, one.costs, rtol=1e-6)


@few
@given(seed=st.integers(0, 10_000), factor=st.floats(1e-3, 1e3), unit=st.floats(1e-3, 1e3))
def test_another_unit_of_the_score_or_of_the_moves_changes_nothing_else(seed, factor, unit):
    A, b, c = random_quadric(seed)
    one = nearest_on_quadric(A, b, c, noise=1e-14)
    other = nearest_on_quadric(factor * A / unit**2, factor * b / unit, factor * c, noise=1e-14 * factor / unit)
    np.testing.assert_allclose(other.costs, unit * one.costs, rtol=1e-8)


def test_people_are_answered_one_by_one():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A, b, c = A + A.T, rng.normal(size=(30, 4)), -rng.uniform(0.1, 2.0, size=30)
    together = nearest_on_quadric(A, b, c)
    alone = [nearest_on_quadric(A, b[[i]], c[[i]]).costs[0] for i in range(30)]
    np.testing.assert_allclose(together.costs, alone, rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="poly", degree=2, coef0=1.0),
        SVC(kernel="poly", degree=2, gamma=0.3),
        SVC(kernel="poly", degree=1, coef0=0.5),
        SVC(kernel="linear"),
        NuSVC(kernel="poly", degree=2, coef0=0.7, nu=0.3),
        EqualRecourseSVC(kernel="poly", degree=2),
        EqualRecourseSVC(kernel="poly", degree=2, feature_costs=[1.0, 2.0, 0.5]),
        QuadraticDiscriminantAnalysis(),
    ],
    ids=["svc", "svc without constant", "degree 1", "linear", "nu", "equal recourse", "feature costs", "qda"],
)
def test_the_quadric_is_the_score_of_the_model(model, sign, make_people):
    people = make_people(60)
    fitted = model.fit(people.X, people.y)
    quadric = quadric_of(fitted, sign)
    np.testing.assert_allclose(quadric.values(people.X), sign * fitted.decision_function(people.X), atol=1e-9)
    step = 1e-6 * np.eye(3)
    slopes = np.stack([(quadric.values(people.X + h) - quadric.values(people.X - h)) / 2e-6 for h in step], axis=1)
    np.testing.assert_allclose(quadric.gradients(people.X), slopes, atol=1e-6)


def test_gaussian_naive_bayes_is_quadratic_too(make_people):
    people = make_people(60)
    fitted = GaussianNB().fit(people.X, people.y)
    odds = np.diff(fitted.predict_joint_log_proba(people.X), axis=1)[:, 0]
    np.testing.assert_allclose(quadric_of(fitted, 1.0).values(people.X), odds, atol=1e-9)


@pytest.mark.parametrize(
    "model", [SVC(), SVC(kernel="poly", degree=3), LogisticRegression()], ids=["rbf", "degree 3", "logistic"]
)
def test_other_models_have_no_quadric(model, make_people):
    people = make_people(60)
    assert quadric_of(model.fit(people.X, people.y), 1.0) is None
