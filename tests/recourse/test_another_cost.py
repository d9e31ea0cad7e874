"""A cost that no engine was written for: those that can prove something do, the others leave it to the search."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from tests.recourse import _brute_force
from tests.recourse._brute_force import check, moved
from tests.recourse._fuzz_worlds import KINDS, WORLDS_PER_MODEL, make_world

from equirecourse import find_recourse
from equirecourse.actions import NORMS, ActionSet, Cost, Distance, Feature, Rule

cost_of, total_of = _brute_force.cost_of, _brute_force.total_of


@dataclass(frozen=True)
class Count(Cost):
    """How many features change."""

    def _price(self, feature, start, end):
        return np.ones(np.broadcast(start, end).shape)


COSTS = {"l3": Distance("l3", 3.0, "cube root of the cubes"), "count": Count("count", 1.0, "number of changes")}


@pytest.fixture(params=COSTS)
def norm(request, monkeypatch):
    """One more norm, known to the package and, by a definition of its own, to the brute force."""

    def price(feature, norm, start, end):
        if norm == "count":
            return moved(start, end).astype(float)
        return cost_of(feature, "l1" if norm == "l3" else norm, start, end)

    def total(norm, parts):
        return np.cbrt((parts**3).sum(axis=-1)) if norm == "l3" else total_of("l1" if norm == "count" else norm, parts)

    monkeypatch.setitem(NORMS, request.param, COSTS[request.param])
    monkeypatch.setattr(_brute_force, "cost_of", price)
    monkeypatch.setattr(_brute_force, "total_of", total)
    return request.param


# A world of each kind of model.
SEEDS = {name: place * WORLDS_PER_MODEL for place, name in enumerate(KINDS)}


@pytest.mark.parametrize("engine", ["trees", "linear", "kernel", "search"])
def test_brute_force_refutes_nothing_and_trees_prove_what_they_prove_otherwise(engine, norm):
    worlds = [make_world(SEEDS[name]) for name, kind in KINDS.items() if kind.engine == engine]
    failures = [failure for world in worlds for failure in check(replace(world, norm=norm, extra="nothing"))]
    assert not failures, "\n".join(map(str, failures))


def test_without_limits_a_linear_model_has_a_closed_form_for_any_distance(norm):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LogisticRegression().fit(X, X @ [1.0, 2.0, -0.5] > 0.4)
    found = find_recourse(model, X, norm=norm)
    if norm == "count":
        assert (found.method, set(found.costs)) == ("search", {0.0, 1.0})
        return
    reach = (np.abs(model.coef_) ** 1.5).sum() ** (2 / 3)
    assert found.exact.all()
    np.testing.assert_allclose(found.costs, np.maximum(-model.decision_function(X), 0.0) / reach)


def test_engines_without_a_proof_say_so(norm):
    X = np.random.default_rng(0).normal(size=(60, 2))
    actions = ActionSet([Feature("x0", low=-5, high=5), Feature("x1", step=0.1)], rules=[Rule("x0 > 1", "x1 > 0")])
    linear = LogisticRegression().fit(X, X.sum(axis=1) > 0.4)
    found = find_recourse(linear, X[:5], actions=actions, norm=norm, background=X)
    assert found.method == "search"
    assert f"because linear models have no proofs for norm='{norm}'." in found.notes[-1]
    with pytest.raises(ValueError, match=f"method='milp' does not fit this model: .*norm='{norm}'"):
        find_recourse(linear, X[:5], actions=actions, norm=norm, method="milp")
    quadratic = SVC(kernel="poly", degree=2, coef0=1.0).fit(X, (X**2).sum(axis=1) > 1)
    bounded = find_recourse(quadratic, X[:5], norm=norm)
    assert (bounded.lower_bounds <= bounded.costs * (1 + 1e-9)).all()
    assert bounded.lower_bounds.any() == (norm == "l3")
