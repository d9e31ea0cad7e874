"""Engines of one's own: registered, asked first, checked like any other."""

from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from equirecourse import ActionSet, audit, find_recourse, flipsets
from equirecourse.recourse import Answers, Engine, Opaque, _engines, register_engine
from equirecourse.recourse._engines import BUILTIN


class Limits(ClassifierMixin, BaseEstimator):
    """Accepts those who are nowhere below the limits."""

    def __init__(self, limits=(0.0, 0.0)):
        self.limits = limits

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X) >= self.limits).all(axis=1).astype(int)]


def raise_to_limits(problem):
    """Nothing is cheaper than to raise what is too low to its limit, and nothing else."""
    own = np.maximum(problem.start, problem.view.final.limits)
    answers = Answers.nothing(problem)
    reachable = problem.respected(np.arange(len(own)), own)
    answers.own[reachable] = own[reachable]
    answers.found[:] = reachable
    answers.proven[:] = True
    answers.lower[:] = np.where(reachable, problem.costs(np.arange(len(own)), own), np.inf)
    return answers


LIMITS = Engine("limits", can_read=lambda model: isinstance(model, Limits), solve=raise_to_limits)


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    monkeypatch.setattr(_engines, "_registered", {})


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["income", "savings"])
    return Limits().fit(X, [0, 1] * 30), X, ActionSet.from_frame(X, costs="unit", steps=dict.fromkeys(X.columns))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_model_that_was_searched_is_exact_with_an_engine_of_its_own(people, norm):
    model, X, actions = people
    searched = find_recourse(model, X, actions=actions, norm=norm)
    assert searched.method == "search"
    assert not searched.exact[searched.rejected].any()
    register_engine(LIMITS)
    found = find_recourse(model, X, actions=actions, norm=norm)
    missing = np.maximum(-X.to_numpy(), 0.0)
    expected = {"l1": missing.sum(axis=1), "l2": np.hypot(*missing.T), "linf": missing.max(axis=1)}[norm]
    np.testing.assert_allclose(found.costs, expected, atol=1e-12)
    assert (found.method, found.exact.all()) == ("limits", True)
    assert (found.costs <= searched.costs + 1e-9).all()
    by_name = find_recourse(model, X, actions=actions, norm=norm, method="limits")
    np.testing.assert_array_equal(by_name.costs, found.costs)


def test_an_engine_asks_the_cost_what_is_true_of_it(people):
    model, X, actions = people
    told = []

    def solve(problem):
        with pytest.warns(FutureWarning, match=r"ask Problem\.cost"):
            told.append((problem.cost.name, problem.cost.is_largest, problem.aggregate))
        return raise_to_limits(problem)

    register_engine(Engine("curious", can_read=LIMITS.can_read, solve=solve))
    for norm in ("l1", "l2", "max_shift"):
        find_recourse(model, X, actions=actions, norm=norm)
    assert told == [("l1", False, "sum"), ("l2", False, "root"), ("max_shift", True, "max")]


def test_audits_and_flipsets_use_it(people):
    model, X, actions = people
    register_engine(LIMITS)
    groups = np.tile(["a", "b"], 30)
    found = audit(model, X, sensitive_features=groups, actions=actions, n_flipsets=0, n_boot=20, n_permutations=20)
    assert found.recourse.method == "limits"
    person = X[model.predict(X) == 0].head(1)
    assert model.predict(flipsets(model, person, actions=actions)[0].person.to_frame().T)[0] == 1


def test_it_may_read_linear_models_too():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    assert find_recourse(model, X).method == "linear"
    register_engine(Engine("mine", lambda model: isinstance(model, LogisticRegression), BUILTIN[0].solve))
    assert find_recourse(model, X).method == "mine"


def test_what_it_finds_is_checked_with_the_model(people):
    model, X, actions = people

    def nonsense(problem):
        answers = Answers.nothing(problem)
        answers.found[:] = answers.proven[:] = True  # where they are, which the model rejects
        return answers

    register_engine(Engine("nonsense", can_read=LIMITS.can_read, solve=nonsense))
    with pytest.warns(UserWarning, match="is unknown"):
        found = find_recourse(model, X, actions=actions)
    assert set(found.status[found.rejected]) == {"unknown"}


def test_one_that_gives_up_leaves_the_model_to_the_search(people):
    model, X, actions = people

    def opaque(problem):
        raise Opaque("this limit is not a limit")

    register_engine(Engine("limits", can_read=LIMITS.can_read, solve=opaque))
    found = find_recourse(model, X, actions=actions)
    assert found.method == "search"
    assert "because this limit is not a limit" in found.notes[0]
    with pytest.raises(ValueError, match="method='limits' does not fit this model: this limit"):
        find_recourse(model, X, actions=actions, method="limits")


def test_the_last_one_registered_is_asked_first_and_takes_the_place_of_its_name(people):
    model, X, actions = people
    register_engine(LIMITS)
    register_engine(Engine("newer", LIMITS.can_read, raise_to_limits))
    assert find_recourse(model, X, actions=actions).method == "newer"
    register_engine(Engine("limits", LIMITS.can_read, raise_to_limits))
    assert find_recourse(model, X, actions=actions).method == "limits"
    assert [*_engines._registered] == ["newer", "limits"]


def test_it_reads_nothing_but_its_own_models(people):
    model, X, actions = people
    register_engine(LIMITS)
    y = X.sum(axis=1) > 0
    with pytest.raises(ValueError, match="LogisticRegression is read by 'linear'; use 'auto'"):
        find_recourse(LogisticRegression().fit(X, y), X, actions=actions, method="limits")
    with pytest.raises(ValueError, match="Limits is read by 'limits', which has none"):
        find_recourse(model, X, actions=actions, method="milp")
    assert find_recourse(DecisionTreeClassifier(max_depth=2).fit(X, y), X, actions=actions).method == "trees"
    with pytest.raises(ValueError, match="limits"):  # it is among those that are offered
        find_recourse(model, X, actions=actions, method="limit")


@pytest.mark.parametrize("name", ["linear", "search", "auto", "milp"])
def test_names_that_are_taken_are_refused(name):
    with pytest.raises(ValueError, match=f"which are taken; got '{name}'"):
        register_engine(Engine(name, LIMITS.can_read, raise_to_limits))
    with pytest.raises(TypeError, match="got function"):
        register_engine(raise_to_limits)


@pytest.mark.parametrize("name", [None, 3, ""])
def test_names_that_are_no_names_are_refused(name):
    with pytest.raises(ValueError, match="must be text"):
        register_engine(Engine(name, LIMITS.can_read, raise_to_limits))
    with pytest.raises(TypeError, match="must be functions"):
        register_engine(Engine("limits", None, raise_to_limits))


def test_one_that_fails_over_other_models_is_named_and_passed_over(people):
    _, X, actions = people
    register_engine(Engine("careless", lambda model: len(model.limits) > 0, raise_to_limits))
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    with pytest.warns(UserWarning, match="The engine 'careless' was passed over: its can_read failed for LogisticReg"):
        assert find_recourse(model, X, actions=actions).method == "linear"


def test_it_cannot_change_the_question(people):
    model, X, actions = people

    def nearer(problem):
        answers = raise_to_limits(problem)
        problem.start[:] = answers.own - 1e-9
        problem.table.loc[:] = 1.0
        return answers

    register_engine(LIMITS)
    expected = find_recourse(model, X, actions=actions)
    register_engine(Engine("limits", LIMITS.can_read, nearer))
    np.testing.assert_array_equal(find_recourse(model, X, actions=actions).costs, expected.costs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"found": np.ones(3, dtype=bool)}, "found as an array of True or False of shape"),
        ({"proven": "ints"}, "proven as an array of True or False.*got int64"),
        ({"own": None}, "own as an array of floats.*got NoneType"),
        ({"lower": "missing"}, "lower bound that is missing or negative"),
    ],
)
def test_answers_in_the_wrong_form_are_refused_by_the_name_of_the_engine(people, change, message):
    model, X, actions = people

    def wrong(problem):
        answers = raise_to_limits(problem)
        values = {"ints": answers.proven.astype("int64"), "missing": np.full(len(answers.lower), np.nan)}
        given = {k: values[v] if isinstance(v, str) else v for k, v in change.items()}
        return replace(answers, **given)

    register_engine(Engine("wrong", LIMITS.can_read, wrong))
    with pytest.raises((TypeError, ValueError), match=f"the engine 'wrong' .*{message}"):
        find_recourse(model, X, actions=actions)


def test_packages_name_theirs_as_entry_points(people, monkeypatch):
    model, X, actions = people
    points = [
        EntryPoint("limits", f"{__name__}:LIMITS", "equirecourse.engines"),
        EntryPoint("broken", "no_such_package:ENGINE", "equirecourse.engines"),
    ]
    monkeypatch.setattr(EntryPoint, "load", lambda point: LIMITS if point.name == "limits" else exec("import no_such"))
    monkeypatch.setattr(_engines, "entry_points", lambda group: points)
    monkeypatch.setitem(_engines._state, "entry points loaded", False)
    with pytest.warns(UserWarning, match="The engine 'broken' .no_such_package:ENGINE. was left out: No module named"):
        assert find_recourse(model, X, actions=actions).method == "limits"
    assert find_recourse(model, X, actions=actions).method == "limits"
    monkeypatch.setitem(_engines._state, "entry points loaded", False)
    with pytest.warns(UserWarning, match="broken"):
        register_engine(Engine("mine", LIMITS.can_read, raise_to_limits))  # what the user names comes first
    assert find_recourse(model, X, actions=actions).method == "mine"
