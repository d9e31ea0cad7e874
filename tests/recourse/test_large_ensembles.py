"""Large ensembles take another path through the compiled search: the neighbourhood of a person first, by budgets.

Whatever a person cannot change is decided by thousands of nodes all the same; what can change here has few enough
values for trying them all. All of it runs with ``NUMBA_BOUNDSCHECK=1`` as well, which needs a ``NUMBA_CACHE_DIR`` of
its own.
"""

import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse import ActionSet, find_recourse, flipsets
from equirecourse.actions import NORMS, Rule, total_cost
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.recourse._trees._engine import _LARGE

LABELS = ("c0", "c1", "c2")
NUMBERS = ("x0", "x1", "x2", "x3")


def make_people(n=1200):
    """Labels with many levels and coarse numbers; half of the yes and no is chance, so that trees grow deep."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({name: rng.choice([f"v{k}" for k in range(6 + 5 * j)], n) for j, name in enumerate(LABELS)})
    for name in NUMBERS:
        people[name] = rng.normal(size=n).round(1)
    people["x3"] = rng.integers(0, 12, n).astype(float)
    score = people[["x0", "x1", "x2"]].sum(axis=1) + 0.3 * people["x3"] + people["c0"].isin(["v1", "v3"])
    return people, (score + rng.normal(scale=1.5, size=n) > 2.5).astype(int)


MODELS = {
    "forest": RandomForestClassifier(50, random_state=0),
    "shallow forest": RandomForestClassifier(120, max_depth=8, random_state=0),
    "extra trees": ExtraTreesClassifier(30, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=60, max_depth=9, random_state=0),
}


def n_nodes(final):
    return sum(tree.tree_.node_count for tree in np.ravel(final.estimators_))


@pytest.fixture(scope="module", params=MODELS)
def large(request):
    """A fitted pipeline of more than 20,000 nodes, its people, and some who are rejected."""
    people, target = make_people()
    steps = make_column_transformer((OneHotEncoder(), list(LABELS)), remainder=StandardScaler())
    model = make_pipeline(steps, MODELS[request.param]).fit(people, target)
    assert n_nodes(model[-1]) >= _LARGE
    fresh = people.sample(300, random_state=1).assign(x0=lambda some: some.x0 - 0.7)
    return model, people, fresh[model.predict(fresh) == 0].head(3)


def few_values(people, **changes):
    """An action set in which a label and two numbers can change, to few values."""
    return ActionSet.from_frame(
        people,
        immutable=["c1", "c2", "x1", "x2"],
        bounds={"x0": (-2.0, 2.0)},
        steps={"x0": 0.5},
        **changes,
    )


def cheapest(model, actions, norm, people):
    """Least cost of each person over all combinations of values; infinite if no combination is accepted."""
    best = []
    start = actions.encode(people)
    for person in range(len(people)):
        lists = [[now] for now in start[person]]
        for j, feature in enumerate(actions):
            if feature.mutable and feature.is_number:
                values = np.arange(np.ceil(feature.low / feature.step), np.floor(feature.high / feature.step) + 1)
                lists[j] += (values * feature.step).tolist()
            elif feature.mutable:
                lists[j] += range(len(feature.labels))
        own = np.array(list(itertools.product(*lists)))
        before = np.repeat(start[[person]], len(own), axis=0)
        own = own[actions.respected(before, own)]
        before = before[: len(own)]
        costs = total_cost(norm, actions.costs(norm, before, own))
        after = actions.decode(people.iloc[np.full(len(own), person)], before, own)
        yes = model.predict(after) == 1
        best.append(costs[yes].min() if yes.any() else np.inf)
    return np.array(best)


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_large_ensembles_equal_trying_everything(large, norm):
    model, people, rejected = large
    # Every multiple of a step that is allowed is somebody's value, so that percentiles are known there.
    people = pd.concat([people, people.head(9).assign(x0=np.linspace(-2.0, 2.0, 9))])
    actions = few_values(people, increase_only=["x3"])
    found = find_recourse(model, rejected, actions=actions, norm=norm)
    assert found.exact.all()
    np.testing.assert_allclose(found.costs, cheapest(model, actions, norm, rejected), rtol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_rules_in_large_ensembles_equal_trying_everything(large, norm):
    model, people, rejected = large
    rules = [Rule("x0 increases", "x3 decreases"), Rule("c0 in ['v1', 'v3']", "x0 >= 0.5")]
    actions = few_values(people, rules=rules)
    found = find_recourse(model, rejected, actions=actions, norm=norm)
    assert found.exact.all()
    np.testing.assert_allclose(found.costs, cheapest(model, actions, norm, rejected), rtol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_what_moves_freely_costs_no_more_than_what_moves_in_steps(large, norm):
    model, people, rejected = large
    steps = few_values(people)
    free = ActionSet.from_frame(people, immutable=["c1", "c2"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)
        found = find_recourse(model, rejected, actions=free, norm=norm, time_limit=0.5)
    bound = cheapest(model, steps, norm, rejected)
    assert (found.lower_bounds <= bound * (1 + 1e-6)).all()
    has = found.has_action
    assert (model.predict(found.counterfactuals[has]) == 1).all()
    assert free.violations(rejected[has], found.counterfactuals[has]).empty
    assert (found.costs[found.exact] <= bound[found.exact] * (1 + 1e-6)).all()


def test_somebody_for_whom_only_dear_actions_are_left(large):
    model, people, rejected = large
    actions = few_values(people).replace("x3", cost=50.0).replace("c0", cost=100.0)
    for feature in ("x0", "x3"):
        one = actions.replace(feature, change="no")
        found = find_recourse(model, rejected, actions=one, norm="l1")
        assert found.exact.all()
        np.testing.assert_allclose(found.costs, cheapest(model, one, "l1", rejected), rtol=1e-9)


def test_several_ways_in_a_large_forest(large):
    model, people, rejected = large
    actions = few_values(people, increase_only=["x3"])
    bound = cheapest(model, actions, "l1", rejected.head(1))[0]
    ways = flipsets(model, rejected.iloc[0], actions=actions, norm="l1", k=3)
    assert (len(ways) == 0) == np.isinf(bound)
    if len(ways):
        np.testing.assert_allclose(min(way.cost for way in ways), bound, rtol=1e-9)


class Contrary(RandomForestClassifier):
    """A forest that says no, whatever its trees say, to anybody below a whole number of ``x0``."""

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] % 1 == 0, super().predict(X), 0)


def test_points_that_the_model_itself_refuses_are_passed_over():
    people, target = make_people()
    numbers = people[list(NUMBERS)]
    model = Contrary(60, random_state=0).fit(numbers, target)
    assert n_nodes(model) >= _LARGE
    actions = ActionSet.from_frame(
        numbers, immutable=["x1", "x2"], steps={"x0": 0.5}, bounds={"x0": (-2.0, 2.0), "x3": (0, 5)}
    )
    rejected = numbers[model.predict(numbers) == 0].head(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)  # it may give up, and must say so
        found = find_recourse(model, rejected, actions=actions, norm="l1")
    bound = cheapest(model, actions, "l1", rejected)
    np.testing.assert_allclose(found.costs[found.exact], bound[found.exact], rtol=1e-9)
    assert (found.costs >= bound * (1 - 1e-9)).all()


def test_no_index_leaves_its_array():
    """Compiled code reads past the end of an array without a word; NumPy says so where nothing is compiled."""
    few = "test_points_that_the_model_itself_refuses or (only_dear_actions and not shallow and forest)"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", few, __file__]
    run = subprocess.run(command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
    assert "2 passed" in run.stdout
