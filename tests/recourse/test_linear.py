"""Linear models: every cost equals that of an optimum found in another way."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from equirecourse import ActionSet, find_recourse
from equirecourse.actions import NORMS, Feature, Link, Percentiles, Rule, total_cost
from equirecourse.recourse import boundary_costs, open_model
from equirecourse.recourse._linear import _form

PLAIN_NORMS = ("l1", "l2", "linf")


def linear_model(coef, intercept, names=None):
    """A logistic regression with the weights given."""
    model = LogisticRegression()
    model.coef_, model.intercept_ = np.array([coef], dtype=float), np.array([intercept], dtype=float)
    model.classes_ = np.array([-1, 1])
    model.n_features_in_ = len(coef)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def brute_force(coef, intercept, actions, person, norm, choices):
    """Least cost over the product of all values that the features can take."""
    start = actions.encode(pd.DataFrame([person]))
    combos = np.array(list(itertools.product(*choices)), dtype=float)
    scores = combos @ coef + intercept
    before = np.repeat(start, len(combos), axis=0)
    costs = total_cost(norm, actions.costs(norm, before, combos))
    allowed = actions.respected(before, combos) & (scores > 0)
    return costs[allowed].min(initial=np.inf)


@st.composite
def small_problems(draw):
    """A person, weights and an action set whose features take few values."""
    number = st.integers(-3, 3)
    features, choices, person = [], [], {}
    for j in range(draw(st.integers(1, 4))):
        name = f"f{j}"
        now = draw(st.sampled_from([-1.0, 0.0, 0.3, 1.0, 2.0]))
        step = draw(st.sampled_from([0.5, 1.0]))
        low, high = sorted([draw(number), draw(number)])
        change = draw(st.sampled_from(["any", "any", "increase", "decrease", "no"]))
        values = np.arange(-8, 9) * step
        ranks = (np.arange(len(values)) + 0.5) / len(values)
        features.append(
            Feature(
                name, change=change, low=low, high=high, step=step, cost=draw(st.sampled_from([0.5, 1.0, 3.0])),
                percentiles=Percentiles(tuple(values), tuple(ranks)),
            )
        )  # fmt: skip
        person[name] = now
        choices.append(sorted({now, *values[(values >= low) & (values <= high)]}))
    weights = st.sampled_from([-2.0, -1.0, -0.3, 0.0, 0.7, 1.0, 1.9])
    coef = np.array([draw(weights) for _ in features])
    intercept = draw(st.sampled_from([-4.1, -2.2, -1.05, -0.35]))
    return ActionSet(features), person, coef, intercept, choices


@settings(max_examples=150, deadline=None)
@given(small_problems(), st.sampled_from(sorted(NORMS)))
def test_lattices_equal_brute_force(problem, norm):
    actions, person, coef, intercept, choices = problem
    model = linear_model(coef, intercept, list(person))
    found = find_recourse(model, pd.DataFrame([person]), actions=actions, norm=norm)
    if found.status[0] == "accepted":
        return
    expected = brute_force(coef, intercept, actions, person, norm, choices)
    np.testing.assert_allclose(found.costs[0], expected, rtol=1e-9)
    assert found.exact[0]
    assert found.status[0] == ("found" if np.isfinite(expected) else "infeasible")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.where(X @ [1.0, -0.5, 0.3, 0.0, 2.0] + rng.normal(size=200) > 0.5, 1, -1)
    return X, y


@pytest.mark.parametrize("norm", PLAIN_NORMS)
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), LinearSVC(), RidgeClassifier(), Perceptron(), SVC(kernel="linear")],
    ids=["logistic", "linearsvc", "ridge", "perceptron", "svc"],
)
def test_without_limits_the_cost_is_the_distance_to_the_boundary(people, model, norm):
    X, y = people
    model.fit(X, y)
    found = find_recourse(model, X, norm=norm)
    np.testing.assert_allclose(found.costs, boundary_costs(model, X, norm=norm).costs, rtol=1e-12)
    assert (model.predict(found.counterfactuals) == 1).all()
    moves = np.abs(found.counterfactuals - X)
    walked = {"l1": moves.sum(axis=1), "l2": np.sqrt((moves**2).sum(axis=1)), "linf": moves.max(axis=1)}[norm]
    np.testing.assert_allclose(walked, found.costs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("norm", PLAIN_NORMS)
def test_the_closed_form_agrees_with_the_general_engine(people, norm):
    X, y = people
    model = LogisticRegression().fit(X, y)
    free = ActionSet([Feature(f"x{j}") for j in range(5)])
    general = find_recourse(model, X, actions=free, norm=norm)
    np.testing.assert_allclose(general.costs, find_recourse(model, X, norm=norm).costs, rtol=1e-9, atol=1e-11)
    assert general.exact.all()


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_limits_equal_a_linear_program(people, norm):
    X, y = people
    model = LogisticRegression().fit(X, y)
    prices = np.array([1.0, 2.0, 0.5, 1.0, 4.0])
    features = [Feature(f"x{j}", low=X[:, j].min(), high=X[:, j].max(), cost=prices[j]) for j in range(5)]
    found = find_recourse(model, X, actions=ActionSet(features), norm=norm)
    coef = model.coef_[0]
    for i in np.flatnonzero(found.rejected)[:40]:
        # δ = up − down, both at least 0; for L∞ a last variable bounds them all.
        up, down = X.max(axis=0) - X[i], X[i] - X.min(axis=0)
        need = -model.decision_function(X[[i]])[0]
        if norm == "l1":
            solved = linprog(
                np.r_[prices, prices], A_ub=[-np.r_[coef, -coef]], b_ub=[-need],
                bounds=[(0, u) for u in np.r_[up, down]],
            )  # fmt: skip
        else:
            rows = np.hstack([np.diag(np.r_[prices, prices]), -np.ones((10, 1))])
            solved = linprog(
                np.r_[np.zeros(10), 1.0], A_ub=np.vstack([rows, -np.r_[coef, -coef, 0.0]]),
                b_ub=np.r_[np.zeros(10), -need], bounds=[*((0, u) for u in np.r_[up, down]), (0, None)],
            )  # fmt: skip
        expected = solved.fun if solved.success else np.inf
        np.testing.assert_allclose(found.costs[i], expected, rtol=1e-6)


def test_limits_equal_a_quadratic_program(people):
    cvxopt = pytest.importorskip("cvxopt")
    cvxopt.solvers.options.update(show_progress=False, abstol=1e-13, reltol=1e-10, feastol=1e-12)
    X, y = people
    model = LogisticRegression().fit(X, y)
    prices = np.array([1.0, 2.0, 0.5, 1.0, 4.0])
    features = [Feature(f"x{j}", low=X[:, j].min(), high=X[:, j].max(), cost=prices[j]) for j in range(5)]
    found = find_recourse(model, X, actions=ActionSet(features), norm="l2")
    coef = model.coef_[0]
    for i in np.flatnonzero(found.rejected)[:30]:
        need = -model.decision_function(X[[i]])[0]
        G = np.vstack([np.eye(5), -np.eye(5), -coef[None]])
        h = np.r_[X.max(axis=0) - X[i], X[i] - X.min(axis=0), -need]
        solved = cvxopt.solvers.qp(*map(cvxopt.matrix, (2 * np.diag(prices**2), np.zeros(5), G, h)))
        np.testing.assert_allclose(found.costs[i], np.sqrt(solved["primal objective"]), rtol=1e-5)


def test_fine_steps_equal_an_integer_program(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    step = 0.01
    features = [Feature(f"x{j}", low=-3, high=3, step=step, cost=1 + 0.1 * j) for j in range(4)]
    features.append(Feature("x4", low=-3, high=3, step=0.5, cost=2.0))
    found = find_recourse(model, X, actions=ActionSet(features), norm="l1")
    assert found.exact.all()
    steps = np.array([step] * 4 + [0.5])
    prices = np.array([1.0, 1.1, 1.2, 1.3, 2.0])
    coef = model.coef_[0]
    for i in np.flatnonzero(found.rejected)[:25]:
        # Places on the lattice, and the costs up and down from the start.
        c = np.r_[np.zeros(5), prices, prices]
        move = np.hstack([np.diag(steps), -np.eye(5), np.eye(5)])  # place·step − up + down = start
        stay_or_lattice = LinearConstraint(move, X[i], X[i])
        score = LinearConstraint(np.r_[coef * steps, np.zeros(10)], -model.intercept_[0], np.inf)
        solved = milp(
            c, constraints=[stay_or_lattice, score], integrality=np.r_[np.ones(5), np.zeros(10)],
            bounds=Bounds(np.r_[-3 / steps, np.zeros(10)], np.r_[3 / steps, np.full(10, np.inf)]),
            options={"mip_rel_gap": 1e-9},
        )  # fmt: skip
        # The program moves everybody onto the lattice; staying off it is allowed to us and can only be cheaper.
        assert found.costs[i] <= solved.fun * (1 + 1e-6)
        assert found.costs[i] >= solved.fun - prices @ steps
        on_lattice = np.round(X[i] / steps) * steps
        again = find_recourse(model, on_lattice[None], actions=ActionSet(features), norm="l1").costs[0]
        solved = milp(
            c, constraints=[LinearConstraint(move, on_lattice, on_lattice), score],
            integrality=np.r_[np.ones(5), np.zeros(10)],
            bounds=Bounds(np.r_[-3 / steps, np.zeros(10)], np.r_[3 / steps, np.full(10, np.inf)]),
            options={"mip_rel_gap": 1e-9},
        )  # fmt: skip
        np.testing.assert_allclose(again, solved.fun, rtol=1e-6, atol=1e-9)


@pytest.fixture(scope="module")
def credit():
    from equirecourse.datasets import load_credit

    data = load_credit()
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(data.data, data.target)
    X = data.data[model.predict(data.data) == -1].head(12)
    return model, X, ActionSet.from_frame(data.data, immutable=["age", "education"])


@pytest.mark.parametrize("norm", ["max_shift", "log_shift"])
def test_percentile_costs_lie_between_two_programs_written_here(credit, norm):
    model, X, actions = credit
    X = X.head(4)
    found = find_recourse(model, X, actions=actions, norm=norm)
    assert (found.lower_bounds >= (0.999 if norm == "max_shift" else 0.3) * found.costs).all()
    slopes = model[-1].coef_[0] / model[0].scale_
    for i in range(len(X)):
        person, need = X.iloc[i], -model.decision_function(X.iloc[[i]])[0]
        moves = []  # (feature, cost of the first value of a stretch, cost of its last one, gain there)
        for j, name in enumerate(X.columns):
            feature = actions[name]
            if feature.change == "no":
                continue
            known, ranks = (np.array(part) for part in (feature.percentiles.values, feature.percentiles.ranks))
            now = np.interp(person[name], known, ranks)
            way = np.sign(slopes[j])
            assert feature.step == 1
            marks = [person[name], *known, *(part for part in (feature.low, feature.high) if np.isfinite(part))]
            marks = np.sort(np.unique(marks) * way)  # on the way from the person
            ends = np.unique(np.concatenate([np.linspace(*pair, 4).round() for pair in itertools.pairwise(marks)]))
            ends = ends[ends > person[name] * way]
            near = np.append(ends[:0] if len(ends) == 0 else person[name] * way + 1, ends[:-1] + 1)[: len(ends)]
            shifts = []
            for after in (np.interp(near * way, known, ranks), np.interp(ends * way, known, ranks)):
                shifts.append(np.abs(after - now) if norm == "max_shift" else np.abs(np.log((1 - after) / (1 - now))))
            moves += [(j, *move) for move in zip(*shifts, np.abs(slopes[j]) * (ends - person[name] * way), strict=True)]
        owners, near, far, gains = np.array(moves).T
        lower, upper = (cheapest_moves(owners, costs, gains, need, norm) for costs in (near, far))
        assert lower * (1 - 1e-6) <= found.costs[i]
        assert found.lower_bounds[i] <= upper * (1 + 1e-6)
        # The program's list is finer than any that is made here before the first division.
        assert found.costs[i] <= upper * (1 + 1e-6 if found.exact[i] else 1.02)
        assert upper <= lower + 0.1 * (1 if norm == "log_shift" else 0.2)


def cheapest_moves(owners, costs, gains, need, norm):
    """At most one move of each owner, enough gain, least sum or least maximum of costs."""
    people = np.unique(owners)
    if norm == "log_shift":
        one_each = np.array([owners == j for j in people], dtype=float)
        return milp(
            costs, constraints=[LinearConstraint(one_each, -np.inf, 1), LinearConstraint(gains, need, np.inf)],
            integrality=np.ones(len(costs)), bounds=Bounds(0, 1), options={"mip_rel_gap": 1e-7},
        ).fun  # fmt: skip
    for largest in np.unique(costs):
        within = costs <= largest
        if sum(gains[within & (owners == j)].max(initial=0) for j in people) >= need:
            return largest
    return np.inf


def test_percentile_norms_go_beyond_and_between_the_values_that_people_have():
    X = pd.DataFrame({"income": [0.0, 10, 20, 30] * 5})
    model = LogisticRegression(C=1e6).fit(X, X.income > 15)
    boundary = -model.intercept_[0] / model.coef_[0, 0]
    free = ActionSet.from_frame(X, steps={"income": None}, bounds={"income": (None, None)})
    found = find_recourse(model, X.head(1), actions=free, norm="max_shift")
    expected = np.interp(boundary, [0, 10, 20, 30], [0.125, 0.375, 0.625, 0.875]) - 0.125
    np.testing.assert_allclose(found.costs, expected, rtol=1e-7)
    assert found.exact.all()
    poor = X[X.income < 15]  # nobody among them has an income that is accepted
    wide = ActionSet.from_frame(poor, bounds={"income": (0, 1000)}, steps={"income": None})
    for judge in (model, DecisionTreeClassifier().fit(X, X.income > 15)):
        for norm, cost in (("max_shift", 0.5), ("log_shift", np.log(3))):
            found = find_recourse(judge, poor.head(1), actions=wide, norm=norm)
            np.testing.assert_allclose(found.costs, cost, rtol=1e-7)
            assert found.exact.all()
        assert (find_recourse(judge, poor.head(1), actions=wide, norm="l1").status == "found").all()


def mixed_people(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(3000, 800, n).round(2),
            "debts": rng.integers(0, 6, n),
            "housing": rng.choice(["own", "rent", "free"], n),
            "age": rng.integers(20, 70, n),
        }
    )
    score = frame.income / 800 - frame.debts + (frame.housing == "own") + rng.normal(size=n)
    return frame, np.where(score > score.median(), "yes", "no")


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_pipelines_are_looked_through(norm):
    X, y = mixed_people()
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["housing"]), remainder=StandardScaler()), LogisticRegression()
    ).fit(X, y)
    actions = ActionSet.from_frame(X, immutable=["age"], decrease_only=["debts"])
    found = find_recourse(model, X, actions=actions, norm=norm, favorable_label="yes")
    assert found.method == "linear"
    assert found.exact.all()
    assert found.notes == ()
    after = found.counterfactuals[found.has_action]
    assert (model.predict(after) == "yes").all()
    assert actions.violations(X[found.has_action], after).empty
    # The same people, taken through the steps by hand: one column per label, no step left but the model.
    by_milp = find_recourse(model, X.head(30), actions=actions, norm=norm, favorable_label="yes", method="milp")
    check_against_a_program(found.costs[:30], by_milp)


def check_against_a_program(costs, by_program):
    """Equal where the program claims to be exact; it knows some values only under percentile norms, and says so."""
    exact = by_program.exact
    assert exact.all() or by_program.norm in ("max_shift", "log_shift")
    np.testing.assert_allclose(costs[exact], by_program.costs[exact], rtol=1e-6, atol=1e-9)
    assert (by_program.costs >= costs * (1 - 1e-9)).all()
    assert (by_program.lower_bounds <= costs * (1 + 1e-9)).all()


def test_a_rotation_of_numbers_is_looked_through(people):
    X, y = people
    model = make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(X, y)
    found = find_recourse(model, X, norm="l2")
    weights = model[0].scale_ ** -1 * (model[1].components_.T @ model[-1].coef_[0])
    expected = np.maximum(-model.decision_function(X), 0) / np.linalg.norm(weights)
    np.testing.assert_allclose(found.costs, expected, rtol=1e-8, atol=1e-12)


def test_a_grid_search_is_its_best_estimator(people):
    X, y = people
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}).fit(X, y)
    np.testing.assert_allclose(find_recourse(search, X).costs, find_recourse(search.best_estimator_, X).costs)


def test_a_link_gains_for_both_and_costs_for_one():
    model = linear_model([1.0, 0.5], -10.0, ["months", "age"])
    X = pd.DataFrame({"months": [2.0], "age": [10.0]})
    features = [Feature("months", change="increase"), Feature("age", change="no")]
    alone = find_recourse(model, X, actions=ActionSet(features), norm="l1")
    linked = find_recourse(model, X, actions=ActionSet(features, links=[Link("months", "age", 0.5)]), norm="l1")
    np.testing.assert_allclose(alone.costs, 3.0, rtol=1e-9)
    np.testing.assert_allclose(linked.costs, 3.0 / 1.25, rtol=1e-9)
    np.testing.assert_allclose(linked.counterfactuals["age"], 10.0 + 0.5 * 2.4, rtol=1e-9)


def test_whoever_starts_outside_may_stay_or_move_inside():
    model = linear_model([1.0, 1.0], -10.0, ["a", "b"])
    X = pd.DataFrame({"a": [1.0], "b": [2.0]})
    for step in (None, 1.0):
        actions = ActionSet([Feature("a", low=4.0, high=5.0, step=step), Feature("b", low=0.0, high=7.0)])
        found = find_recourse(model, X, actions=actions, norm="l1")
        # b alone can gain 5, so a must jump to 4 at least; the rest comes from either.
        np.testing.assert_allclose(found.costs, 7.0, rtol=1e-6)
        assert 4.0 <= found.counterfactuals["a"][0] <= 5.0
        assert "start outside the limits of 'a'" in found.notes[0]


def test_the_smaller_label_may_be_the_favourable_one(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    found = find_recourse(model, X, favorable_label=-1)
    np.testing.assert_array_equal(found.rejected, model.predict(X) == 1)
    assert (model.predict(found.counterfactuals) == -1).all()


def test_a_score_that_does_not_move_is_infeasible():
    model = linear_model([0.0, 0.0], -1.0)
    found = find_recourse(model, np.ones((2, 2)))
    assert found.status.tolist() == ["infeasible", "infeasible"]
    assert np.isinf(found.costs).all()
    assert np.isnan(found.counterfactuals).all()


@settings(max_examples=60, deadline=None)
@given(
    small_problems(),
    st.sampled_from(sorted(NORMS)),
    st.sampled_from(["f0 >= 1", "f0 changes", "f0 decreases", "f0 != 0", "f0 in [1, 2]"]),
    st.sampled_from(["f1 <= 0", "f1 stays", "f1 > 1", "f1 increases", "f1 == 1"]),
    st.booleans(),
)
def test_rules_and_links_equal_brute_force(problem, norm, when, then, linked):
    actions, person, coef, intercept, choices = problem
    if len(coef) < 2:
        return
    links = [Link("f1", "f0", 0.5)] if linked else []
    try:
        actions = ActionSet(actions.features, rules=[Rule(when, then)], links=links)
    except ValueError:  # a rule that can never be kept is refused
        return
    frame = pd.DataFrame([person])
    found = find_recourse(linear_model(coef, intercept, list(person)), frame, actions=actions, norm=norm)
    if found.status[0] == "accepted":
        return
    start = actions.encode(frame)
    combos = np.array(list(itertools.product(*choices)), dtype=float)
    before = np.repeat(start, len(combos), axis=0)
    scores = actions.carry(before, combos) @ coef + intercept
    costs = total_cost(norm, actions.costs(norm, before, combos))
    expected = costs[actions.respected(before, combos) & (scores > 1e-9)].min(initial=np.inf)
    np.testing.assert_allclose(found.costs[0], expected, rtol=1e-6)
    assert found.exact[0]


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_a_missing_number_does_not_stop_the_others(norm):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    y = (X.sum(axis=1) > 0).astype(int)
    X.loc[::4, "a"] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, y)
    actions = ActionSet.from_frame(X, costs="unit")
    # Rules that are never broken: they send everybody through the program, and change nothing.
    always = ActionSet(actions.features, rules=[Rule("b increases", "c >= -9"), Rule("a >= 9", "b >= -9")])
    found = find_recourse(model, X.head(40), actions=actions, norm=norm)
    for other in (
        find_recourse(model, X.head(40), actions=always, norm=norm),
        find_recourse(model, X.head(40), actions=actions, norm=norm, method="milp"),
    ):
        np.testing.assert_array_equal(other.status, found.status)
        check_against_a_program(found.costs, other)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_free_features_are_priced_and_those_that_cannot_change_stay(norm):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)) * [1.0, 10.0, 0.1], columns=list("abc"))
    model = LogisticRegression().fit(X, X.a + X.b / 10 + X.c * 10 > 0.5)
    actions = ActionSet.free(X).replace("b", change="no")
    found = find_recourse(model, X, actions=actions, norm=norm)
    # The same by the knapsack or the program, which know nothing of the formula.
    other = find_recourse(model, X, actions=actions, norm=norm, method="milp")
    np.testing.assert_allclose(found.costs, other.costs, rtol=1e-6)
    assert found.exact.all()
    np.testing.assert_array_equal(found.counterfactuals["b"], X["b"])
    nothing = actions.replace("a", change="no").replace("c", change="no")
    stuck = find_recourse(model, X, actions=nothing, norm=norm)
    assert set(stuck.status) == {"accepted", "infeasible"}
    assert np.isinf(stuck.costs[stuck.rejected]).all()


def test_what_is_known_of_one_person_serves_nobody_else(monkeypatch):
    """A model that is opened once remembers how it reads a person: not another one, nor with other actions."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(size=40), "job": rng.choice(["a", "b", "c"], 40)})
    frame["other"] = rng.normal(size=40)
    target = frame["income"] + (frame["job"] == "a") + frame["other"] > 0.5
    steps = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["income", "other"]))
    model = make_pipeline(steps, LogisticRegression()).fit(frame, target)
    actions = ActionSet.from_frame(frame[["income", "job"]])  # ``other`` never changes, and differs between people
    cheap = actions.replace("income", cost=0.5)
    reads = []
    read = _form._read
    monkeypatch.setattr(_form, "_read", lambda *given: reads.append(1) or read(*given))
    view = open_model(model)
    for these in (actions, cheap, actions):
        alone = find_recourse(model, frame, actions=these, norm="l1")
        rejected = np.flatnonzero(alone.status != "accepted")[:6]
        reads.clear()
        for i in rejected:
            again = find_recourse(view, frame.iloc[[i]], actions=these, norm="l1")
            thrice = find_recourse(view, frame.iloc[[i, i, i]], actions=these, norm="l1")
            np.testing.assert_allclose(np.append(again.costs, thrice.costs), alone.costs[i], rtol=1e-12)
        assert len(reads) == len(rejected)
        both = find_recourse(view, frame.iloc[rejected], actions=these, norm="l1")
        np.testing.assert_allclose(both.costs, alone.costs[rejected], rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", "milp"])
@pytest.mark.parametrize("norm", sorted(NORMS))
def test_nobody_who_can_change_nothing_has_recourse(norm, method):
    X = pd.DataFrame({"c": ["a", "b", "c"] * 10, "d": ["p", "q"] * 15})
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, X.c == "a")
    actions = ActionSet.from_frame(X, immutable=["c", "d"])
    found = find_recourse(model, X, actions=actions, norm=norm, method=method)
    assert (found.status[X.c != "a"] == "infeasible").all()
    assert found.exact.all()


def test_slopes_do_not_depend_on_who_else_is_asked_about():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X.a + X.b > 0)
    person = X[model.predict(X) == 0].head(1)
    twins = pd.concat([person, np.nextafter(person, np.inf)])  # a difference that a scaler rounds away
    actions = ActionSet.from_frame(X)
    both, alone = (find_recourse(model, some, actions=actions, norm="l1") for some in (twins, person))
    np.testing.assert_allclose(both.costs, alone.costs[0], rtol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_who_starts_outside_a_limit_may_stay_there_or_jump_inside(norm):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    model.coef_, model.intercept_ = np.array([[-1.1, 1.9]]), np.array([-1.7])
    actions = ActionSet([Feature("x0", high=0.6), Feature("x1", low=0.5, change="increase")])
    found = find_recourse(model, np.array([[1.4, -0.3]]), actions=actions, norm=norm)
    ends = np.array(list(itertools.product([1.4, *np.linspace(-2, 0.6, 261)], [-0.3, *np.linspace(0.5, 3, 251)])))
    moves = np.abs(ends - [1.4, -0.3])[model.predict(ends)]
    best = {"l1": moves.sum(axis=1), "l2": np.sqrt((moves**2).sum(axis=1)), "linf": moves.max(axis=1)}[norm].min()
    assert found.exact.all()
    assert best - 0.02 <= found.costs[0] <= best + 1e-9


def test_a_boundary_on_a_multiple_of_a_step_is_the_models_own_affair():
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[0.4]]), np.array([-0.6])
    assert model.predict([[1.5]])[0] == 1  # by a rounding error
    found = find_recourse(model, [[1.1]], actions=ActionSet([Feature("x0", change="increase", step=0.25)]), norm="l1")
    np.testing.assert_allclose(found.costs, 0.4)
    assert found.exact.all()
