"""Each cost is one object, and nobody else asks for its name."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import equirecourse
from equirecourse import actions
from equirecourse.actions import NORMS, ActionSet, Distance, Feature, check_norm, cost_named, total_cost

PACKAGE = Path(equirecourse.__file__).parent
DISTANCES = [*(cost for cost in NORMS.values() if isinstance(cost, Distance)), Distance("l3", 3.0, "another")]
amounts = st.just(0.0) | st.floats(1e-6, 1e6)
tables = arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=amounts)


# --- one place ------------------------------------------------------------------------------------------------------


def names_asked_for(source):
    """Lines that say the name of a norm, or compare a norm with anything but a number."""
    tree = ast.parse(source)
    lines = set()
    allowed = set()
    for node in ast.walk(tree):
        words = {getattr(part, "id", getattr(part, "attr", getattr(part, "value", None))) for part in ast.walk(node)}
        if isinstance(node, ast.Compare | ast.Call) and "penalty" in words:  # scikit-learn's name of a regulariser
            allowed |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NORMS:
            lines |= set() if id(node) in allowed else {node.lineno}
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            names = [getattr(side, "id", getattr(side, "attr", None)) for side in sides]
            numbers = [isinstance(side, ast.Constant) and isinstance(side.value, int | float) for side in sides]
            if "norm" in names and not any(numbers):
                lines.add(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_but_the_costs_knows_a_norm_by_its_name(path):
    if "_costs" not in path.parts:
        assert names_asked_for(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        'x = 1 if norm == "l1" else 2',
        'if problem.norm in ("l2", "linf"): pass',
        'power = {"max_shift": 1}.get(norm, 0)',
        "if norm in DISTANCES: pass",
        'def f(norm="l1"): pass',
        "if self.norm != other: pass",
    ],
)
def test_what_asks_for_a_name_is_noticed(source):
    assert names_asked_for(source) == [1]


@pytest.mark.parametrize("source", ['a = penalty == "l2"', 'b = given.get("penalty", "l2")', "if fit.norm == 0: pass"])
def test_other_things_of_the_same_name_are_left_alone(source):
    assert names_asked_for(source) == []


@pytest.mark.parametrize(
    "ask",
    [
        check_norm,
        cost_named,
        lambda norm: total_cost(norm, np.zeros(1)),
        lambda norm: Feature("a").move_cost(norm, 0.0, 1.0),
        lambda norm: ActionSet([Feature("a")]).costs(norm, np.zeros((1, 1)), np.ones((1, 1))),
    ],
)
@pytest.mark.parametrize("norm", ["L1", "mean", None, ["l1"]])
def test_an_unknown_name_is_refused_in_one_sentence(ask, norm):
    with pytest.raises(ValueError, match="norm must be one of 'l1', 'l2', 'linf', 'max_shift', 'log_shift', got"):
        ask(norm)


def test_the_old_list_of_distances_still_works():
    with pytest.warns(FutureWarning, match="is_distance instead"):
        assert actions.DISTANCES == ("l1", "l2", "linf")
    with pytest.raises(AttributeError, match="has no attribute 'DISTANCE'"):
        actions.DISTANCE  # noqa: B018


# --- what a cost says of itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [*NORMS.values(), DISTANCES[-1]], ids=lambda cost: cost.name)
@given(parts=tables)
def test_totals_come_from_addends_and_shares_sum_to_the_total(cost, parts):
    total = cost.total(parts)
    np.testing.assert_allclose(cost.shares(parts).sum(axis=1), total, rtol=1e-9, atol=1e-9)
    assert (cost.shares(parts) >= 0).all()
    assert (total >= parts.max(axis=1) * (1 - 1e-12)).all()
    if not cost.is_largest:
        np.testing.assert_allclose(cost.from_sum(cost.addends(parts).sum(axis=1)), total, rtol=1e-12)
    np.testing.assert_allclose(cost.from_sum(cost.addends(parts)), parts, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cost", DISTANCES, ids=lambda cost: cost.name)
@given(data=st.data())
def test_the_direction_is_cheapest_and_costs_what_the_dual_norm_says(cost, data):
    size = data.draw(st.integers(1, 5))
    slopes = data.draw(arrays(float, size, elements=st.floats(-5, 5).filter(lambda slope: abs(slope) > 1e-3)))
    prices = data.draw(arrays(float, size, elements=st.floats(0.1, 10)))
    direction = cost.direction(slopes, prices)
    least = 1.0 / cost.dual_norm(np.abs(slopes) / prices)
    assert slopes @ direction == pytest.approx(1.0)
    assert cost.of_moves(direction, prices) == pytest.approx(least)
    other = direction + data.draw(arrays(float, size, elements=st.floats(-1, 1)))
    if slopes @ other > 1e-3:
        assert cost.of_moves(other / (slopes @ other), prices) >= least * (1 - 1e-9)


@pytest.mark.parametrize("cost", DISTANCES[1:], ids=lambda cost: cost.name)
@given(gap=st.floats(-10, 10), rate=st.floats(0.1, 5), price=st.floats(0.1, 5), other=st.floats(0.1, 5))
def test_two_numbers_close_a_gap_in_balance(cost, gap, rate, price, other):
    rate = -rate if gap * 3 % 2 > 1 else rate
    prices = np.array([price, other])
    first = cost.balance(np.array(gap), rate, price, other)
    ways = first + np.array([0.0, -1.0, -1e-3, 1e-3, 1.0])
    costs = cost.of_moves(np.column_stack([ways, gap - rate * ways]), prices)
    assert (costs >= costs[0] - 1e-9).all()


@pytest.mark.parametrize("cost", DISTANCES, ids=lambda cost: cost.name)
@given(move=arrays(float, st.integers(1, 5), elements=st.floats(-5, 5).filter(lambda way: way == 0 or abs(way) > 1e-6)))
def test_a_length_bounds_the_cost_from_below(cost, move):
    least = cost.of_length(np.array(np.linalg.norm(move)), np.array(float(len(move))))
    assert cost.of_moves(move, np.ones(len(move))) >= least * (1 - 1e-9)
