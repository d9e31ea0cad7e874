"""Recourse under kernel machines: exact where the score is quadratic, at least as good as a solver elsewhere."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC, NuSVC

from equirecourse import EqualRecourseSVC
from equirecourse.actions import ActionSet, Feature, Link, Rule
from equirecourse.recourse import _kernel, _search
from equirecourse.recourse._kernel._quadric import quadric_of
from equirecourse.recourse._kernel._smooth import kernel_score
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._view import open_model

COSTS = {"a": 1.0, "b": 2.0, "c": 0.5}


def make_frame(n=80, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) * [1.0, 2.0, 3.0] + [3.0, -1.0, 0.0], columns=list("abc"))
    z = (frame.to_numpy() - [3.0, -1.0, 0.0]) / [1.0, 2.0, 3.0]
    return frame, np.where(z[:, 0] + z[:, 1] ** 2 - z[:, 2] + 0.3 * rng.normal(size=n) > 1.0, 1, 0)


def make_problem(model, frame, actions=None, norm="l2", limit=None, **options):
    actions = actions or ActionSet([Feature(name, cost=COSTS[name]) for name in frame.columns])
    view = open_model(model)
    return Problem(view, actions, norm, frame[~view.accepts(frame)].head(limit or len(frame)), frame, **options)


def everybody(problem):
    return np.arange(len(problem.start))


def check(problem, answers):
    """Accepted, allowed, not cheaper than the bound; who has nothing stays."""
    people = everybody(problem)
    good = problem.accepted(people, answers.own) & problem.respected(people, answers.own)
    assert good[answers.found].all()
    np.testing.assert_array_equal(answers.own[~answers.found], problem.start[~answers.found])
    cost = problem.costs(people, answers.own)
    assert (answers.lower <= cost)[answers.found].all()
    assert np.isinf(answers.lower[answers.proven & ~answers.found]).all()
    return cost


def by_slsqp(problem, person, norm, n_starts=4):
    """Cheapest point that SLSQP finds from the nearest accepted people, with the formula of the score."""
    scaler, model = problem.view.model
    score = quadric_of(model, 1.0) or kernel_score(model, 1.0)
    prices = np.array([feature.cost for feature in problem.actions])
    start, (low, high) = problem.start[person], problem.reach
    pool = problem.background[problem.view.accepts(problem.background)].to_numpy()
    order = np.argsort((((pool - start) * prices) ** 2).sum(axis=1))[:n_starts]

    def cost(x, smooth=0.0):
        parts = np.sqrt(((x - start) * prices) ** 2 + smooth)
        return parts.sum() if norm == "l1" else np.sqrt((parts**2).sum())

    def inputs(x):
        return (x[None, :] - scaler.mean_) / scaler.scale_

    best = np.inf
    for place in order:
        found = minimize(
            cost, np.clip(pool[place], low[person], high[person]), args=(1e-12,), method="SLSQP",
            bounds=list(zip(low[person], high[person], strict=True)), options={"maxiter": 60, "ftol": 1e-10},
            constraints={
                "type": "ineq",
                "fun": lambda x: score.values(inputs(x))[0],
                "jac": lambda x: score.gradients(inputs(x))[0] / scaler.scale_,
            },
        )  # fmt: skip
        if score.values(inputs(found.x))[0] > -1e-7:
            best = min(best, cost(found.x))
    return best


# --- quadratic scores ------------------------------------------------------------------------------------------------

QUADRATIC = {
    "svc": SVC(kernel="poly", degree=2, coef0=1.0),
    "without constant": SVC(kernel="poly", degree=2),
    "nu": NuSVC(kernel="poly", degree=2, coef0=1.0, nu=0.4),
    "equal recourse": EqualRecourseSVC(kernel="poly", degree=2),
    "qda": QuadraticDiscriminantAnalysis(),
    "naive bayes": GaussianNB(),
}


@pytest.mark.parametrize("name", QUADRATIC)
def test_quadratic_scores_are_answered_for_everybody_with_proof(name):
    frame, y = make_frame()
    model = make_pipeline(StandardScaler(), QUADRATIC[name]).fit(frame, y)
    assert _kernel.can_read(model[-1])
    problem = make_problem(model, frame)
    answers = _kernel.solve(problem)
    cost = check(problem, answers)
    assert answers.found.all()
    assert answers.proven.all()
    # A hair nearer to the start the answer is still no.
    nearer = problem.start + (1 - 1e-6) * (answers.own - problem.start)
    assert not problem.accepted(everybody(problem), nearer).any()
    assert cost.min() > 0


@pytest.mark.parametrize("seed", range(2))
def test_no_start_of_a_constrained_solver_beats_the_secular_equation(seed):
    frame, y = make_frame(seed=seed)
    model = make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2, coef0=1.0)).fit(frame, y)
    problem = make_problem(model, frame, limit=5)
    cost = check(problem, _kernel.solve(problem))
    reference = [by_slsqp(problem, person, "l2") for person in everybody(problem)]
    assert (cost <= np.array(reference) * (1 + 1e-6)).all()
    assert np.median(cost / reference) == pytest.approx(1.0, abs=1e-5)


def test_in_the_plane_the_exact_answer_is_that_of_a_fine_grid():
    frame, y = make_frame()
    frame = frame[["a", "b"]]
    model = SVC(kernel="poly", degree=2, coef0=1.0).fit(frame, y)
    problem = make_problem(model, frame, limit=10)
    cost = check(problem, _kernel.solve(problem))
    first, second = np.meshgrid(np.linspace(-3, 9, 601), np.linspace(-11, 9, 601))
    grid = np.column_stack([first.ravel(), second.ravel()])
    grid = grid[problem.view.accepts(pd.DataFrame(grid, columns=["a", "b"]))]
    for person in everybody(problem):
        nearest = np.sqrt((((grid - problem.start[person]) * [1.0, 2.0]) ** 2).sum(axis=1)).min()
        # The nearest point of a grid is at most half a diagonal of a cell away from the nearest point.
        assert cost[person] <= nearest
        assert nearest <= cost[person] + 0.5 * np.hypot(1.0 * 12 / 600, 2.0 * 20 / 600) * 2


def test_limits_leave_the_exact_answers_within_them_and_lower_bounds_elsewhere():
    frame, y = make_frame()
    model = make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2, coef0=1.0)).fit(frame, y)
    free = _kernel.solve(make_problem(model, frame))
    actions = ActionSet(
        [Feature("a", low=2.0, high=4.0), Feature("b", cost=2.0, change="increase"), Feature("c", cost=0.5)]
    )
    problem = make_problem(model, frame, actions)
    answers = _kernel.solve(problem)
    check(problem, answers)
    assert 0 < answers.proven.mean() < 1
    np.testing.assert_array_equal(answers.proven, problem.respected(everybody(problem), free.own))
    np.testing.assert_allclose(answers.own[answers.proven], free.own[answers.proven], rtol=1e-7)
    assert (answers.lower > 0).all()


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_other_norms_get_a_lower_bound_from_the_euclidean_one(norm):
    frame, y = make_frame()
    model = make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2, coef0=1.0)).fit(frame, y)
    euclidean = make_problem(model, frame, limit=12)
    l2 = euclidean.costs(everybody(euclidean), _kernel.solve(euclidean).own)
    problem = make_problem(model, frame, norm=norm, limit=12)
    answers = _kernel.solve(problem)
    cost = check(problem, answers)
    np.testing.assert_allclose(answers.lower, l2 / (np.sqrt(3) if norm == "linf" else 1.0), rtol=1e-7)
    assert answers.found.all()
    assert (cost <= l2 * (1 + 1e-6) * (np.sqrt(3) if norm == "l1" else 1.0)).all()


def test_an_immutable_feature_may_leave_nothing_to_reach():
    """Accepted people differ less in a than rejected ones do, so that the best a helps only so much."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    frame = pd.DataFrame({"a": rng.normal(size=200) * np.where(y, 0.5, 2.0), "b": rng.normal(size=200) + 2.0 * y})
    model = GaussianNB().fit(frame, y)
    problem = make_problem(model, frame, ActionSet([Feature("a"), Feature("b", change="no")]))
    answers = _kernel.solve(problem)
    check(problem, answers)
    assert answers.proven.all()
    assert 0 < answers.found.mean() < 1
    line = np.linspace(-5, 5, 2001)
    for person in np.flatnonzero(~answers.found):
        own = np.column_stack([line, np.full_like(line, problem.start[person, 1])])
        assert not problem.accepted(np.full(len(line), person), own).any()


@settings(max_examples=10, deadline=None)
@given(units=st.lists(st.sampled_from([0.01, 0.5, 1.0, 20.0]), min_size=3, max_size=3), seed=st.integers(0, 3))
def test_a_feature_in_another_unit_with_its_cost_in_that_unit_changes_nothing(units, seed):
    frame, y = make_frame(seed=seed)
    model = make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2, coef0=1.0))
    one = make_problem(model.fit(frame, y), frame)
    cost = one.costs(everybody(one), _kernel.solve(one).own)
    scaled = frame * units
    actions = ActionSet([Feature(name, cost=COSTS[name] / unit) for name, unit in zip("abc", units, strict=True)])
    other = make_problem(model.fit(scaled, y), scaled, actions)
    np.testing.assert_allclose(other.costs(everybody(other), _kernel.solve(other).own), cost, rtol=1e-5)


def test_a_link_is_part_of_the_exact_answer():
    """b carries c along, which costs nothing: as if b alone moved the model in both of its inputs."""
    frame, y = make_frame()
    model = SVC(kernel="poly", degree=2, coef0=1.0).fit(frame, y)
    actions = ActionSet([Feature("a"), Feature("b"), Feature("c", change="no")], links=[Link("b", "c", -2.0)])
    problem = make_problem(model, frame, actions, limit=8)
    answers = _kernel.solve(problem)
    cost = check(problem, answers)
    assert answers.proven.all()
    angles = np.linspace(0, 2 * np.pi, 721)
    for person in np.flatnonzero(answers.found):
        ring = problem.start[person] + 0.999 * cost[person] * np.column_stack(
            [np.cos(angles), np.sin(angles), 0 * angles]
        )
        assert not problem.accepted(np.full(len(ring), person), ring).any()


def test_combinations_of_labels_are_gone_through():
    """With a combination of labels held fixed, the problem is one of numbers alone; the best of them is the answer."""
    frame, y = make_frame()
    rng = np.random.default_rng(1)
    frame["job"], frame["size"] = rng.choice(["x", "y", "z"], len(frame)), rng.choice(["s", "m", "l"], len(frame))
    steps = make_column_transformer((StandardScaler(), list("abc")), (OneHotEncoder(), ["job", "size"]))
    model = make_pipeline(steps, SVC(kernel="poly", degree=2, coef0=1.0)).fit(
        frame, np.where(frame["job"] == "y", 1, y)
    )
    numbers = [Feature(name) for name in "abc"]
    labels = [
        Feature("job", kind="labels", labels=("x", "y", "z"), cost=0.3),
        Feature("size", kind="ordered", labels=("s", "m", "l"), cost=0.1, change="increase"),
    ]
    problem = make_problem(model, frame, ActionSet([*numbers, *labels]), limit=10)
    answers = _kernel.solve(problem)
    cost = check(problem, answers)
    assert answers.proven.all()
    best = np.full(len(cost), np.inf)
    fixed = ActionSet(numbers)
    for job in range(3):
        for size in range(3):
            own = problem.start.copy()
            own[:, 3], own[:, 4] = job, np.maximum(size, own[:, 4])
            moved = problem.after(everybody(problem), own)
            yes = problem.view.accepts(moved)
            held = Problem(problem.view, fixed, "l2", moved, frame)
            way = held.costs(everybody(held), _kernel.solve(held).own)
            base = problem.costs(everybody(problem), own)
            best = np.minimum(best, np.where(yes, base, np.hypot(base, way)))
    np.testing.assert_allclose(cost, best, rtol=1e-6)
    assert (answers.own[:, 3:] != problem.start[:, 3:]).any()


# --- other kernels ---------------------------------------------------------------------------------------------------

SMOOTH = {
    "rbf": SVC(C=2.0),
    "poly 3": SVC(kernel="poly", degree=3, coef0=1.0),
    "sigmoid": SVC(kernel="sigmoid", gamma=0.1),
    "equal recourse rbf": EqualRecourseSVC(),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_gradient_is_the_slope_of_the_decision_function(name):
    frame, y = make_frame()
    X = StandardScaler().fit_transform(frame)
    model = SMOOTH[name].fit(X, y)
    score = kernel_score(model, -1.0)
    np.testing.assert_allclose(score.values(X), -model.decision_function(X), atol=1e-9)
    slopes = [-(model.decision_function(X + h) - model.decision_function(X - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(score.gradients(X), np.stack(slopes, axis=1), atol=1e-6)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("name", ["rbf", "poly 3", "sigmoid"])
def test_a_walk_along_the_boundary_is_as_good_as_a_constrained_solver(name, norm):
    frame, y = make_frame(seed=1)
    model = make_pipeline(StandardScaler(), SMOOTH[name]).fit(frame, y)
    inside = frame[(frame["a"] > 1.0) & (frame["a"] < 5.0)]  # the solver knows no "stay where you are outside"
    actions = ActionSet([Feature("a", low=1.0, high=5.0), Feature("b", cost=2.0), Feature("c", cost=0.5)])
    view = open_model(model)
    problem = Problem(view, actions, norm, inside[~view.accepts(inside)].head(4), frame)
    answers = _kernel.solve(problem)
    cost = check(problem, answers)
    assert answers.found.all()
    assert not answers.proven.any()
    reference = np.array([by_slsqp(problem, person, norm) for person in everybody(problem)])
    assert (cost <= reference * (1 + 1e-3)).all()


def test_the_sphere_of_a_gaussian_kernel_bounds_the_cost_from_below():
    frame, y = make_frame()
    frame = frame[["a", "b"]]
    model = SVC(gamma=0.3).fit(frame, y)
    problem = make_problem(model, frame, limit=15)
    answers = _kernel.solve(problem)
    cost = check(problem, answers)
    assert (answers.lower > 0.05 * cost).all()
    # Nothing on a fine set of rings within the bound is accepted.
    angles = np.linspace(0, 2 * np.pi, 181)
    for share in np.linspace(0.1, 1.0, 10):
        for person in everybody(problem):
            ring = share * answers.lower[person] * np.column_stack([np.cos(angles), np.sin(angles) / 2.0])
            assert not problem.accepted(np.full(len(ring), person), problem.start[person] + ring).any()


def test_a_gaussian_kernel_that_says_yes_to_nobody_is_infeasible_for_certain():
    frame, y = make_frame()
    model = SVC().fit(frame, y)
    model._intercept_ = model.intercept_ = model.intercept_ - 1e3
    problem = make_problem(model, frame, limit=5)
    answers = _kernel.solve(problem)
    assert not answers.found.any()
    assert answers.proven.all()
    assert np.isinf(answers.lower).all()


def test_a_kernel_of_ones_own_is_searched_by_its_scores():
    def laplace(X, Y):
        return np.exp(-0.3 * np.abs(np.asarray(X)[:, None, :] - np.asarray(Y)[None, :, :]).sum(axis=2))

    frame, y = make_frame()
    model = SVC(kernel=laplace).fit(frame.to_numpy(), y)
    assert not _kernel.can_read(model)
    problem = make_problem(model, frame, limit=5)
    answers = _kernel.solve(problem)
    check(problem, answers)
    assert answers.found.all()
    assert not answers.proven.any()


def test_a_step_that_is_not_affine_is_searched_through_without_a_bound():
    frame, y = make_frame()
    model = make_pipeline(PowerTransformer(), SVC(kernel="poly", degree=2, coef0=1.0)).fit(frame, y)
    problem = make_problem(model, frame, limit=5)
    answers = _kernel.solve(problem)
    check(problem, answers)
    assert answers.found.all()
    assert (answers.lower == 0).all()


def test_a_missing_number_stays_missing_and_the_answer_is_exact_around_it():
    frame, y = make_frame()
    frame.loc[frame.index % 3 == 0, "b"] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), SVC(kernel="poly", degree=2, coef0=1.0)).fit(frame, y)
    problem = make_problem(model, frame)
    answers = _kernel.solve(problem)
    people = everybody(problem)
    assert (problem.accepted(people, answers.own) & problem.respected(people, answers.own))[answers.found].all()
    assert answers.proven.all()
    np.testing.assert_array_equal(np.isnan(answers.own), np.isnan(problem.start))


def test_steps_rules_and_percentiles_are_kept_to():
    frame, y = make_frame()
    model = make_pipeline(StandardScaler(), SVC()).fit(frame, y)
    inferred = ActionSet.from_frame(frame, steps={"a": 0.5}, rules=[Rule("c changes", "a increases")])
    for norm in ("l1", "max_shift", "log_shift"):
        problem = make_problem(model, frame, inferred, norm=norm, limit=6)
        answers = _kernel.solve(problem)
        check(problem, answers)
        assert answers.found.all()


def test_the_engine_is_at_least_as_good_as_the_search_and_repeats_itself():
    frame, y = make_frame(seed=2)
    model = make_pipeline(StandardScaler(), SVC()).fit(frame, y)
    problem = make_problem(model, frame, limit=10)
    one, two = _kernel.solve(problem), _kernel.solve(make_problem(model, frame, limit=10))
    np.testing.assert_array_equal(one.own, two.own)
    found = _search.solve(problem)
    cost, other = check(problem, one), check(problem, found)
    assert (cost <= other * (1 + 1e-3)).all()
    assert (one.lower <= other).all()
