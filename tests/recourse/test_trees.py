"""Tree ensembles: every cost equals the least over all combinations of cells, for every norm and mixed constraints."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.recourse._small_worlds import MODELS, best_by_trial, make_world

from equirecourse import ActionSet, find_recourse
from equirecourse.actions import NORMS, Feature, Link, Rule
from equirecourse.recourse import _trees


def check(problem):
    answers = _trees.solve(problem)
    assert answers.proven.all()
    everybody = np.arange(len(problem.start))
    who = np.flatnonzero(answers.found)
    assert problem.accepted(who, answers.own[who]).all()
    assert problem.respected(who, answers.own[who]).all()
    costs = np.where(answers.found, problem.costs(everybody, answers.own), np.inf)
    for person in everybody:
        np.testing.assert_allclose(costs[person], best_by_trial(problem, person), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("norm", sorted(NORMS))
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_steps_limits_labels_and_rules_equal_trying_everything(kind, norm):
    problem = make_world(kind, norm, sorted(NORMS).index(norm))
    if problem is not None:
        check(problem)


@pytest.mark.parametrize("norm", sorted(NORMS))
@pytest.mark.parametrize("kind", ["tree", "forest", "gradient boosting", "histogram boosting", "adaboost"])
def test_the_program_agrees_with_the_search(kind, norm):
    problem = make_world(kind, norm, 1)
    found, by_program = _trees.solve(problem), _trees.solve(problem, always_milp=True)
    np.testing.assert_array_equal(found.found, by_program.found)
    who = np.flatnonzero(found.found)
    np.testing.assert_allclose(
        problem.costs(who, found.own[who]), problem.costs(who, by_program.own[who]), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("links", ["steps", "carried"])
@pytest.mark.parametrize("kind", ["tree", "forest", "gradient boosting"])
def test_with_links_every_action_is_allowed_and_accepted(kind, links):
    for seed, norm in enumerate(sorted(NORMS)):
        problem = make_world(kind, norm, seed, links=links)
        if problem is None:
            continue
        answers = _trees.solve(problem)
        who = np.flatnonzero(answers.found)
        assert problem.accepted(who, answers.own[who]).all()
        assert problem.respected(who, answers.own[who]).all()
        assert answers.proven.all()


# --- numbers that links carry along ----------------------------------------------------------------------------------


def linked_people(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"num": rng.normal(size=100), "int": rng.integers(0, 9, 100).astype(float)})
    return X, ((X["int"] - 4) * rng.choice([-1, 1]) + 2 * X.num + rng.normal(size=100) > 0).astype(int)


@pytest.mark.parametrize("rules", [[], [Rule("num increases", "int increases")]], ids=["link", "link and rule"])
@pytest.mark.parametrize("kind", ["xgboost", "histogram boosting", "forest"])
def test_with_links_no_move_of_one_number_beats_what_is_called_exact(kind, rules):
    actions = ActionSet(
        [Feature("num", change="increase", step=0.1), Feature("int", step=1)],
        links=[Link("num", "int", 0.5)],
        rules=rules,
    )
    for seed in range(3):
        X, y = linked_people(seed)
        model = {
            "xgboost": pytest.importorskip("xgboost").XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1),
            "histogram boosting": HistGradientBoostingClassifier(max_iter=8, max_depth=3, min_samples_leaf=5),
            "forest": RandomForestClassifier(7, max_depth=3, random_state=0),
        }[kind].fit(X, y)
        people = X[model.predict(X) == 0].head(12)
        found = find_recourse(model, people, actions=actions, norm="l1")
        assert found.exact.all()
        for value in range(9):
            moved = people.assign(int=float(value))
            fine = (model.predict(moved) == 1) & actions.respected(actions.encode(people), actions.encode(moved))
            cost = np.abs(people["int"].to_numpy() - value)
            assert (found.costs[fine] <= cost[fine] + 1e-9).all()
        alone = [find_recourse(model, people.iloc[[i]], actions=actions, norm="l1").costs[0] for i in range(3)]
        np.testing.assert_allclose(alone, found.costs[:3], rtol=1e-9)


def test_a_link_onto_a_missing_number_carries_it_nowhere():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 5, 200).astype(float), "b": rng.normal(size=200)})
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5).fit(X, X.a > 2)
    actions = ActionSet.from_frame(X, bounds={"a": (0, 4)}, links=[Link("a", "b", 1.0)])
    person = pd.DataFrame({"a": [1.0], "b": [np.nan]})
    assert model.predict(person)[0] == 0
    for norm in NORMS:
        found = find_recourse(model, person, actions=actions, norm=norm)
        assert found.counterfactuals["a"].item() == 3
        assert found.counterfactuals["b"].isna().all()
        assert found.exact.all()
        by_program = find_recourse(model, person, actions=actions, norm=norm, method="milp")
        np.testing.assert_allclose(by_program.costs, found.costs, rtol=1e-6)


# --- sparse inputs, long paths, time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scaler", ["passthrough", StandardScaler()], ids=["as they are", "scaled"])
def test_xgboost_before_sparse_inputs_equals_trying_everything(scaler):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"label": rng.choice(list("abcdef"), 400), "z": rng.integers(-2, 3, 400).astype(float)})
    y = (X.z + 2 * X.label.isin(["a", "e"]) + rng.normal(size=400) > 1.5).astype(int)
    encoder = make_column_transformer((OneHotEncoder(), ["label"]), (scaler, ["z"]), sparse_threshold=1.0)
    model = make_pipeline(encoder, xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1)).fit(X, y)
    assert sparse.issparse(model[0].transform(X))
    actions = ActionSet.from_frame(X, bounds={"z": (-2, 2)})
    people = X[model.predict(X) == 0].head(40)
    found = find_recourse(model, people, actions=actions, norm="l1")
    assert found.method == "trees"
    assert found.exact.all()
    everything = pd.DataFrame(itertools.product("abcdef", np.arange(-2.0, 3.0)), columns=["label", "z"])
    yes = everything[model.predict(everything) == 1]
    for i, (_, person) in enumerate(people.iterrows()):
        costs = (yes.label != person.label) * actions["label"].cost + (yes.z - person.z).abs() * actions["z"].cost
        np.testing.assert_allclose(found.costs[i], costs.min(), rtol=1e-9)


def test_a_path_of_more_than_a_thousand_questions():
    values = np.arange(1500.0)
    X = pd.DataFrame({"a": values, "b": 0.0})
    # Labels alternate, and weights grow: each question cuts off the last value.
    y, weights = (values % 2 == 0).astype(int), 1.02**values
    tree = DecisionTreeClassifier(random_state=0).fit(X, y, sample_weight=weights / weights.sum())
    assert tree.get_depth() > 1024
    people = X[tree.predict(X) == 0].iloc[[0, 700, -1]]
    found = find_recourse(tree, people, actions=ActionSet([Feature("a", step=1)]), norm="l1")
    np.testing.assert_allclose(found.costs, 1.0)


def test_compiling_is_not_part_of_a_time_limit(monkeypatch):
    from equirecourse.recourse._trees import _engine

    def slow_at_first(function):
        first = [True]

        def called(*args):
            if first.pop() if first else False:
                time.sleep(0.4)
            return function(*args)

        return called

    for name in ("first_guess", "search", "lay_out", "reachable_leaves"):
        monkeypatch.setattr(_engine, name, slow_at_first(getattr(_engine, name)))
    X, y = linked_people(0)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    found = find_recourse(model, X[model.predict(X) == 0].head(3), time_limit=0.3)
    assert (found.status == "found").all()
    assert found.exact.all()
