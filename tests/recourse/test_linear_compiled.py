"""The knapsacks of a linear score give the same answer interpreted and compiled, to the last bit."""

import numpy as np
import pytest

from equirecourse.recourse._linear import _bottleneck, _compiled, _knapsack
from equirecourse.recourse._linear._knapsack import CONTINUOUS, FIXED, LATTICE, LIST

ENDLESS = 2**62


def knapsacks(power, seed, people=8, features=9):
    """Arguments of ``additive`` without patience and power: people with every kind of feature."""
    rng = np.random.default_rng(seed)
    row = rng.permutation([CONTINUOUS, LATTICE, LATTICE, LIST, LIST, LIST, *rng.integers(0, 4, features - 6)])
    kind = np.where(rng.random((people, features)) < 0.1, FIXED, row)
    slope, price = rng.uniform(0.1, 2.0, features), rng.uniform(0.1, 2.0, features)
    step = np.where(row == LATTICE, rng.choice([0.001, 0.5], features), 0.0)  # of many moves, and of few
    first = np.where(row == LATTICE, step * rng.uniform(0.1, 1.0, (people, features)), 0.0)
    last = first + np.where(
        row == LATTICE, step * rng.integers(0, 400, (people, features)), rng.uniform(0, 3, features)
    )
    ends = np.cumsum(np.where(row == LIST, 5, 0))
    begin = ends - np.where(row == LIST, 5, 0)
    costs = rng.uniform(0.1, 3.0, (people, ends[-1])) ** power
    costs[rng.random(costs.shape) < 0.2] = np.inf
    gains = np.where(np.isinf(costs), 0.0, rng.uniform(0.1, 2.0, costs.shape))
    need = rng.uniform(0.5, 8.0, people)
    moves = (kind, slope, price, first, last, step, begin, ends, costs, gains)
    return need, moves, (np.zeros(kind.shape), np.full(kind.shape, -1))


def assert_same(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_sums_are_the_same_to_the_last_bit(power, seed):
    need, moves, filled = knapsacks(power, seed)
    others = tuple(array.copy() for array in filled)
    some = _knapsack.additive(need, ENDLESS, power, *moves, *filled)
    assert np.isfinite(some[0]).any()
    # The patience that is left says that both took the same steps.
    assert_same((*some, *filled), (*_compiled.compiled()["additive"](need, ENDLESS, power, *moves, *others), *others))


@pytest.mark.parametrize("seed", range(5))
def test_largest_costs_are_the_same_to_the_last_bit(seed):
    need, moves, filled = knapsacks(1, seed)
    others = tuple(array.copy() for array in filled)
    budgets = _bottleneck.bottleneck(need, *moves, *filled)
    assert np.isfinite(budgets).any()
    assert_same((budgets, *filled), (_compiled.compiled()["bottleneck"](need, *moves, *others), *others))


@pytest.fixture
def compiled_for(monkeypatch):
    """For how many people the compiled functions were called; nothing was asked of the interpreter before."""
    functions, people = _compiled.compiled(), []

    def counted(name):
        return lambda need, *others: people.append(len(need)) or functions[name](need, *others)

    monkeypatch.setattr(_compiled, "compiled", lambda: {name: counted(name) for name in ("additive", "bottleneck")})
    monkeypatch.setattr(_compiled, "_steps_left", dict.fromkeys(("additive", "bottleneck"), 10**6))
    return people


@pytest.mark.parametrize(("power", "steps"), [(1, 3000), (2, 30_000)])
def test_who_takes_too_many_steps_is_left_to_the_compiled_search(power, steps, compiled_for):
    need, moves, filled = knapsacks(power, 0)
    others = tuple(array.copy() for array in filled)
    *whole, _ = _knapsack.additive(need, ENDLESS, power, *moves, *filled)
    _compiled._steps_left["additive"] = steps
    some = _compiled.solve_additive(need, power, *moves, *others)
    assert 0 < sum(compiled_for) < len(need)
    assert_same((*whole, *filled), (*some, *others))
    _compiled.solve_additive(need, power, *moves, *others)
    assert compiled_for[1:] == [len(need)]  # from now on everybody


def test_a_few_people_are_served_by_the_interpreter(compiled_for):
    need, moves, filled = knapsacks(1, 0, people=2)
    _compiled.solve_additive(need, 1, *moves, *filled)
    _compiled.solve_bottleneck(need, *moves, *filled)
    assert compiled_for == []


def test_many_people_are_served_by_compiled_functions_at_once(compiled_for):
    need, moves, filled = knapsacks(1, 0, people=1001)
    _compiled.solve_additive(need, 1, *moves, *filled)
    _compiled.solve_bottleneck(need, *moves, *filled)
    assert compiled_for == [1001, 1001]
