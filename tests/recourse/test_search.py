"""The search: allowed, accepted, repeatable, and not far from what exact methods and brute force find."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from equirecourse.actions import NORMS, ActionSet, Feature, Link, Rule
from equirecourse.recourse import _search
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._search._feasible import FeasibleSet
from equirecourse.recourse._search._halfspace import cheapest_in_halfspace
from equirecourse.recourse._search._multiple_choice import multiple_choice_knapsack
from equirecourse.recourse._search._scores import measure_scores
from equirecourse.recourse._view import open_model

few = settings(max_examples=25, deadline=None)


class OnlyYesOrNo:
    """A model that says nothing but its decision, and counts how often it is asked."""

    def __init__(self, model):
        self.model, self.classes_, self.calls, self.rows = model, model.classes_, 0, 0
        self.feature_names_in_ = model.feature_names_in_

    def predict(self, X):
        self.calls, self.rows = self.calls + 1, self.rows + len(X)
        return self.model.predict(X)


def make_numbers(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])
    return X, np.where(X.to_numpy() @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0.3, 1, 0)


def make_mixed(n=90, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(3.0, 1.0, n),
            "months": rng.integers(0, 60, n),
            "debts": rng.integers(0, 6, n),
            "age": rng.integers(20, 70, n).astype(float),
            "housing": rng.choice(["own", "rent", "free"], n),
            "savings": rng.choice(["none", "some", "many"], n),
        }
    )
    rank = frame["savings"].map({"none": 0, "some": 1, "many": 2})
    score = frame["income"] + frame["months"] / 30 - frame["debts"] + (frame["housing"] == "own") + rank
    if missing:
        frame.loc[rng.random(n) < 0.3, "income"] = np.nan
    return frame, np.where(score + 0.5 * rng.normal(size=n) > score.median(), 1, 0)


def fit_mixed(model, frame, y):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    steps = make_column_transformer((OneHotEncoder(), ["housing", "savings"]), remainder=numbers)
    return make_pipeline(steps, model).fit(frame, y)


def make_problem(model, frame, actions, norm="l2", limit=None, background=None, **options):
    view = open_model(model)
    people = frame[~view.accepts(frame)].head(limit or len(frame))
    return Problem(view, actions, norm, people, frame if background is None else background, **options)


def everybody(problem):
    return np.arange(len(problem.start))


def check(problem, answers):
    people = everybody(problem)
    good = problem.accepted(people, answers.own) & problem.respected(people, answers.own)
    assert good[answers.found].all()
    np.testing.assert_array_equal(answers.own[~answers.found], problem.start[~answers.found])
    assert not answers.proven[answers.found].any()
    np.testing.assert_array_equal(answers.lower, np.where(answers.proven, np.inf, 0.0))
    for j, grid in enumerate(problem.grids):
        moved = (answers.own[:, j] != problem.start[:, j]) & ~np.isnan(problem.start[:, j])
        assert grid is None or np.isin(answers.own[moved, j], grid).all()
    return problem.costs(people, answers.own)


# --- how good --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("scores", [True, False], ids=["with scores", "yes or no"])
def test_on_a_linear_model_the_search_finds_the_closed_form(scores, norm):
    X, y = make_numbers()
    linear = LogisticRegression().fit(X, y)
    prices = np.array([1.0, 3.0, 0.4, 1.5])
    actions = ActionSet([Feature(name, cost=price) for name, price in zip(X, prices, strict=True)])
    problem = make_problem(linear if scores else OnlyYesOrNo(linear), X, actions, norm, limit=25)
    cost = check(problem, _search.solve(problem))
    reach = np.abs(linear.coef_[0]) / prices
    dual = {"l1": reach.max(), "l2": np.linalg.norm(reach), "linf": reach.sum()}[norm]
    ratio = cost / (-linear.decision_function(problem.table) / dual)
    assert (ratio >= 1 - 1e-9).all()
    assert ratio.max() < 1 + 1e-4


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_on_a_forest_the_search_is_close_to_trying_every_cell(norm):
    X, y = make_numbers(d=3, n=100)
    forest = RandomForestClassifier(6, max_depth=3, random_state=0).fit(X, y)
    nodes = np.concatenate([np.column_stack([tree.tree_.feature, tree.tree_.threshold]) for tree in forest.estimators_])
    cuts = [np.unique(nodes[nodes[:, 0] == j, 1]) for j in range(3)]
    edges = [np.concatenate([[-np.inf], cut, [np.inf]]) for cut in cuts]
    middles = [np.concatenate([[cut[0] - 1], 0.5 * (cut[1:] + cut[:-1]), [cut[-1] + 1]]) for cut in cuts]
    places = np.array(list(itertools.product(*(range(len(middle)) for middle in middles))))
    cells = np.column_stack([middle[places[:, j]] for j, middle in enumerate(middles)])
    places = places[forest.predict(pd.DataFrame(cells, columns=X.columns)) == 1]
    low, high = (np.column_stack([edge[places[:, j] + k] for j, edge in enumerate(edges)]) for k in (0, 1))
    problem = make_problem(forest, X, ActionSet([Feature(name) for name in X]), norm, limit=25)
    cost = check(problem, _search.solve(problem))
    best = []
    for start in problem.start:
        away = np.maximum(0.0, np.maximum(low - start, start - high))
        best.append(NORMS[norm].of_moves(away, np.ones(3)).min())
    ratio = cost / best
    assert (ratio >= 1 - 1e-5).all()  # trees round to single precision
    assert np.median(ratio) < 1 + 1e-5
    assert ratio.mean() < 1.05


@pytest.mark.parametrize("norm", sorted(NORMS))
@pytest.mark.parametrize("scores", [True, False], ids=["with scores", "yes or no"])
def test_with_steps_and_labels_the_search_is_close_to_trying_everything(scores, norm):
    frame, y = make_mixed()
    model = fit_mixed(LogisticRegression(), frame, y)
    actions = ActionSet.from_frame(
        frame,
        immutable=["age", "income"],
        increase_only=["months"],
        ordered={"savings": ["none", "some", "many"]},
        steps={"months": 6.0},
        bounds={"months": (0, 60)},
    )
    asked = model if scores else OnlyYesOrNo(model)
    problem = make_problem(asked, frame, actions, norm, limit=12)
    cost = check(problem, _search.solve(problem))
    feasible = FeasibleSet(problem)
    values = [[np.nan], np.arange(0, 61, 6), np.arange(6), [np.nan], np.arange(3), np.arange(3)]
    for j, grid in enumerate(problem.grids):
        values[j] = values[j] if grid is None else grid
    choices = np.array(list(itertools.product(*values)))
    people = np.repeat(everybody(problem), len(choices))
    own = np.tile(choices, (len(cost), 1))
    own = feasible.snap(people, np.where(np.isnan(own), problem.start[people], own))
    every = np.where(problem.accepted(people, own), problem.costs(people, own), np.inf)
    best = every.reshape(len(cost), -1).min(axis=1)
    assert (cost >= best * (1 - 1e-9)).all()
    assert np.median(cost / best) < 1 + 1e-6
    assert (cost / best).mean() < 1.1


# --- allowed, accepted, repeatable -----------------------------------------------------------------------------------


@st.composite
def action_sets(draw, frame):
    ways = {name: draw(st.sampled_from(["any", "any", "no", "increase", "decrease"])) for name in frame.columns}
    if ways["housing"] in ("increase", "decrease"):
        ways["housing"] = "any"
    share = draw(st.sampled_from([0.0, 0.2]))
    rules = st.sampled_from(
        [
            (),
            (Rule("housing changes", "debts <= 3"),),
            (Rule("income increases", "months increases"), Rule("savings == many", "housing in ['own', 'rent']")),
        ]
    )
    options = {
        "immutable": [name for name, way in ways.items() if way == "no"],
        "increase_only": [name for name, way in ways.items() if way == "increase"],
        "decrease_only": [name for name, way in ways.items() if way == "decrease"],
        "ordered": {"savings": ["none", "some", "many"]},
        "steps": {"income": draw(st.sampled_from([None, 0.25])), "months": draw(st.sampled_from([None, 1.0, 5.0]))},
        "bounds": {name: tuple(frame[name].quantile([share, 1 - share])) for name in ("income", "months", "debts")},
        "links": draw(st.sampled_from([(), (Link("months", "age", 1 / 12),), (Link("months", "debts", -0.1),)])),
    }
    try:
        return ActionSet.from_frame(frame, **options, rules=draw(rules))
    except ValueError:  # a rule that nobody could keep
        return ActionSet.from_frame(frame, **options)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_the_action_set_the_search_keeps_to_it(data):
    frame, y = make_mixed(seed=data.draw(st.integers(0, 2)), missing=data.draw(st.booleans()))
    kind = data.draw(st.sampled_from(["logistic", "tree", "yes or no"]))
    model = DecisionTreeClassifier(max_depth=4, random_state=0) if kind == "tree" else LogisticRegression()
    model = fit_mixed(model, frame, y)
    actions = data.draw(action_sets(frame))
    norm = data.draw(st.sampled_from(sorted(NORMS)))
    problem = make_problem(OnlyYesOrNo(model) if kind == "yes or no" else model, frame, actions, norm, limit=4)
    answers = _search.solve(problem)
    check(problem, answers)
    np.testing.assert_array_equal(np.isnan(answers.own), np.isnan(problem.start))


@pytest.mark.parametrize("scores", [True, False], ids=["with scores", "yes or no"])
def test_the_same_seed_gives_the_same_answers(scores):
    X, y = make_numbers()
    model = LogisticRegression().fit(X, y)
    asked = model if scores else OnlyYesOrNo(model)
    actions = ActionSet(
        [Feature("x0", step=0.1), Feature("x1", change="increase"), Feature("x2"), Feature("x3", step=1)]
    )
    one, two = (_search.solve(make_problem(asked, X, actions, limit=8, seed=3)) for _ in range(2))
    np.testing.assert_array_equal(one.own, two.own)


def test_who_cannot_move_at_all_has_certainly_no_action():
    X, y = make_numbers()
    model = LogisticRegression().fit(X, y)
    high = float(X["x0"].quantile(0.3))
    actions = ActionSet(
        [Feature("x0", change="increase", high=high, step=0.1), *(Feature(f"x{j}", change="no") for j in (1, 2, 3))]
    )
    problem = make_problem(model, X, actions)
    answers = _search.solve(problem)
    check(problem, answers)
    # Who starts above the limit could only fall; who is within a step of it has nowhere to go.
    stuck = np.floor(high / 0.1 + 1e-9) * 0.1 <= problem.start[:, 0]
    assert 0 < stuck.mean() < 1
    np.testing.assert_array_equal(answers.proven, stuck)
    assert not answers.found[stuck].any()


@pytest.mark.parametrize("scores", [True, False], ids=["with scores", "yes or no"])
@pytest.mark.parametrize("background", ["rejected", "nobody"])
def test_where_nobody_is_known_to_be_accepted_the_search_draws_its_own(scores, background):
    X, y = make_numbers()
    linear = LogisticRegression().fit(X, y)
    rejected = X[linear.predict(X) == 0]
    known = rejected if background == "rejected" else rejected.iloc[:0]
    actions = ActionSet([Feature(name) for name in X])
    problem = make_problem(linear if scores else OnlyYesOrNo(linear), X, actions, limit=10, background=known)
    answers = _search.solve(problem)
    cost = check(problem, answers)
    assert answers.found.all()
    assert (cost / (-linear.decision_function(problem.table) / np.linalg.norm(linear.coef_)) < 1.001).all()


def test_nobody_found_is_neither_found_nor_proven():
    X, y = make_numbers()
    model = LogisticRegression().fit(X, y)
    tight = ActionSet([Feature(name, low=-1e-3, high=1e-3) for name in X])
    problem = make_problem(model, X - 100.0 * np.sign(model.coef_[0]), tight, limit=5)
    far = Problem(problem.view, ActionSet([Feature("x0", low=-1.0, high=1.0)]), "l2", problem.table, X)
    answers = _search.solve(far)
    check(far, answers)
    assert not answers.found.any()
    assert not answers.proven.any()


def test_a_carried_number_stays_within_its_limits():
    X, y = make_numbers()
    model = LogisticRegression().fit(X, y)
    sign = float(np.sign(model.coef_[0, 0]))
    actions = ActionSet(
        [Feature("x0"), Feature("x1", low=-0.5, high=0.5, change="no"), Feature("x2", low=-1.0, high=1.0)],
        links=[Link("x0", "x1", 0.5 * sign), Link("x0", "x2", 0.3)],
    )
    within = X[X["x1"].abs() < 0.4]
    problem = make_problem(model, within, actions, background=X)
    answers = _search.solve(problem)
    check(problem, answers)
    assert answers.found.any()
    end = actions.carry(problem.start, answers.own)
    assert (np.abs(end[answers.found, 1]) <= 0.5 + 1e-9).all()


def test_a_rule_is_followed_or_avoided_together():
    """To own costs debts: who moves to an own home has to have fewer of them as well."""
    frame, y = make_mixed()
    frame["debts"] += 3
    model = fit_mixed(LogisticRegression(), frame, np.where(frame["housing"] == "own", y, 0))
    rule = Rule("housing == own", "debts <= 4")
    actions = ActionSet.from_frame(frame, immutable=["income", "months", "age", "savings"], rules=[rule])
    problem = make_problem(model, frame, actions)
    answers = _search.solve(problem)
    check(problem, answers)
    moved = answers.found & (answers.own[:, 4] != problem.start[:, 4])
    assert moved.any()
    assert (answers.own[moved, 2] <= 4).all()


def test_an_unlisted_label_and_a_missing_number_stay():
    frame, y = make_mixed(missing=True)
    model = fit_mixed(LogisticRegression(), frame, y)
    housing = Feature("housing", kind="labels", labels=("own", "rent"))
    problem = make_problem(model, frame, ActionSet([Feature("income"), Feature("debts", step=1), housing]))
    answers = _search.solve(problem)
    check(problem, answers)
    unlisted, missing = problem.start[:, 2] < 0, np.isnan(problem.start[:, 0])
    assert unlisted.any()
    assert missing.any()
    assert (answers.own[unlisted, 2] == -1).all()
    assert np.isnan(answers.own[missing, 0]).all()


def test_time_is_kept_and_people_are_counted():
    X, y = make_numbers()
    model = OnlyYesOrNo(LogisticRegression().fit(X, y))
    ticks = []
    problem = make_problem(model, X, ActionSet([Feature(name) for name in X]), time_limit=1e-6, tick=ticks.append)
    begun = time.monotonic()
    check(problem, _search.solve(problem))
    assert time.monotonic() - begun < 2.0
    assert sum(ticks) == len(problem.start)


def test_the_model_is_asked_a_modest_number_of_times():
    X, y = make_numbers()
    model = OnlyYesOrNo(LogisticRegression().fit(X, y))
    problem = make_problem(model, X, ActionSet([Feature(name) for name in X]))
    model.calls = 0
    _search.solve(problem)
    assert model.calls < 200


def test_a_network_is_searched_by_its_probabilities():
    X, y = make_numbers(d=2)
    network = MLPClassifier((8,), solver="lbfgs", alpha=1.0, max_iter=1000, random_state=0).fit(X, y)
    problem = make_problem(network, X, ActionSet([Feature(name) for name in X]), limit=15)
    cost = check(problem, _search.solve(problem))
    angles = np.linspace(0, 2 * np.pi, 361)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for share in (0.5, 0.9, 0.99, 0.999):
        people = np.repeat(everybody(problem), len(circle))
        ring = problem.start[people] + share * cost[people, None] * np.tile(circle, (len(cost), 1))
        assert not problem.accepted(people, ring).any()


def test_a_tuned_threshold_is_found_between_the_scores():
    X, y = make_numbers()
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.8, response_method="predict_proba").fit(X, y)
    problem = make_problem(model, X, ActionSet([Feature(name) for name in X]))
    scores = measure_scores(problem, FeasibleSet(problem))
    assert scores.guessed
    cost = check(problem, _search.solve(problem))
    linear = model.estimator_
    far = (np.log(4.0) - linear.decision_function(problem.table)) / np.linalg.norm(linear.coef_)
    np.testing.assert_allclose(cost, far, rtol=1e-3)


# --- the pieces ------------------------------------------------------------------------------------------------------


@few
@given(seed=st.integers(0, 100_000), norm=st.sampled_from(["l1", "l2", "linf"]), holds_zero=st.booleans())
def test_the_cheapest_point_of_a_half_space_in_a_box_is_that_of_a_program(seed, norm, holds_zero):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    slopes, prices, need = rng.normal(size=d), rng.uniform(0.3, 3.0, size=d), 3.0 * rng.normal()
    slopes[rng.random(d) < 0.15] = 0.0
    ends = 2.0 * rng.normal(size=(2, d))
    low, high = ends.min(axis=0), ends.max(axis=0)
    low[rng.random(d) < 0.3], high[rng.random(d) < 0.3] = -np.inf, np.inf
    if holds_zero:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    moves = cheapest_in_halfspace(NORMS[norm], slopes[None], np.array([need]), low[None], high[None], prices)[0]
    assert (moves >= low).all()
    assert (moves <= high).all()
    most = linprog(-slopes, bounds=np.column_stack([low, high]))
    if most.status == 0 and -most.fun < need:
        assert slopes @ moves == pytest.approx(-most.fun, abs=1e-9)
        return
    assert slopes @ moves >= need - 1e-9 * (1 + abs(need))
    # A bound t per feature (L1) or for all (L∞) turns the cost into a linear one.
    n_bounds = d if norm == "l1" else 1
    bound = np.eye(d) if norm == "l1" else np.ones((d, 1))
    if norm != "l2":
        rows = np.vstack([np.hstack([s * np.diag(prices), -bound]) for s in (1, -1)])
        rows = np.vstack([rows, np.concatenate([-slopes, np.zeros(n_bounds)])])
        limits = np.vstack([np.column_stack([low, high]), np.tile([0, np.inf], (n_bounds, 1))])
        price = np.concatenate([np.zeros(d), np.ones(n_bounds)])
        best = linprog(price, A_ub=rows, b_ub=np.append(np.zeros(2 * d), -need), bounds=limits).fun
    else:
        found = minimize(
            lambda u: ((prices * u) ** 2).sum(), moves, jac=lambda u: 2 * prices**2 * u, method="SLSQP",
            bounds=np.column_stack([low, high]), options={"ftol": 1e-14},
            constraints={"type": "ineq", "fun": lambda u: slopes @ u - need, "jac": lambda u: slopes},
        )  # fmt: skip
        best = np.sqrt(found.fun)
    assert NORMS[norm].of_moves(moves[None], prices)[0] == pytest.approx(best, rel=1e-6, abs=1e-7)


@few
@given(seed=st.integers(0, 100_000), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_options_that_add_up_are_chosen_well(seed, norm):
    rng = np.random.default_rng(seed)
    d, m = 4, 5
    costs = np.sort(rng.uniform(0.1, 2.0, size=(1, d, m)), axis=2)
    gains = rng.normal(size=(1, d, m))
    costs[:, :, 0] = gains[:, :, 0] = 0.0
    need = np.array([rng.uniform(0.1, 3.0)])
    choice = multiple_choice_knapsack(gains, costs, need, NORMS[norm])[0]
    every = np.array(list(itertools.product(range(m), repeat=d)))
    gained = gains[0, np.arange(d), every].sum(axis=1)
    parts = costs[0, np.arange(d), every]
    total = {"l1": parts.sum(1), "l2": np.sqrt((parts**2).sum(1)), "linf": parts.max(1)}[norm]
    enough = gained >= need[0]
    mine = (every == choice).all(axis=1)
    if not enough.any():
        assert gained[mine][0] == pytest.approx(gained.max())
        return
    assert enough[mine][0]
    if norm == "linf":
        assert total[mine][0] == pytest.approx(total[enough].min())
    else:
        # A multiplier finds the cheapest way to gain as much as its choice does.
        assert total[mine][0] == pytest.approx(total[gained >= gained[mine][0] - 1e-12].min())


@few
@given(seed=st.integers(0, 100_000))
def test_the_nearest_allowed_value_is_allowed_and_a_second_look_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    frame, _ = make_mixed(n=12, seed=seed % 7, missing=True)
    actions = ActionSet(
        [
            Feature("income", low=float(rng.normal(2.0)), high=5.0, change=str(rng.choice(["any", "increase"]))),
            Feature("months", step=float(rng.choice([0.1, 1.0, 7.0])), low=3.0, high=float(rng.choice([40.0, np.inf]))),
            Feature("debts", step=2.0, change="decrease"),
            Feature("age", change="no"),
            Feature("housing", kind="labels", labels=("own", "rent"), allowed=("own",)),
            Feature("savings", kind="ordered", labels=("none", "some", "many"), allowed=("none", "many")),
        ]
    )
    model = LogisticRegression().fit(frame[["months"]], np.arange(12) % 2)
    problem = Problem(open_model(model), actions, "l2", frame, frame)
    feasible = FeasibleSet(problem)
    people = rng.integers(12, size=60)
    wishes = problem.start[people] + rng.normal(size=(60, 6)) * [1.0, 20.0, 3.0, 5.0, 0.0, 0.0]
    wishes[:, 4:] = rng.integers(0, 3, size=(60, 2))
    own = feasible.snap(people, wishes)
    assert problem.respected(people, own).all()
    np.testing.assert_array_equal(feasible.snap(people, own), own)
    np.testing.assert_array_equal(own[~feasible.movable[people]], problem.start[people][~feasible.movable[people]])
