"""The distance between distributions of cost: its formula, its gradient, and who can move it."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from equirecourse._validation import check_groups
from equirecourse.equalizers._objective import (
    BANDWIDTH,
    GRID,
    UPPER,
    CostObjective,
    Prices,
    smoothed_quantile,
    soft_missing,
    unit_of,
)

N = 120


def rounded_step(x):
    """The step by which quantiles are counted."""
    return 0.5 * (1 + x / np.sqrt(1 + x**2))


def by_hand(scores, partitions, weights, prices=None, *, softness, min_rejected=5):
    """D as the docstring of the module has it: no tables, no interpolation."""

    def quantile(values, mass, level):
        def excess(log_s):
            return float(mass @ (rounded_step((1 - values / np.exp(log_s)) / (2 * BANDWIDTH)) - level))

        around = np.log(np.median(values))
        return float(np.exp(brentq(excess, around - 20, around + 20, xtol=1e-13)))

    shares = weights / weights.sum()
    price, counted = (np.ones(len(scores)),) * 2 if prices is None else prices
    tau = softness * quantile(np.abs(scores), shares, 0.5)
    rejected, costs = expit(-scores / tau), price * tau * np.logaddexp(0, -scores / tau)
    mass = shares * counted * rejected
    relative = costs / (quantile(costs, mass, 0.75) / 2)

    def distribution(people):
        steps = expit((GRID - relative[people, None]) / BANDWIDTH)
        return mass[people] @ steps / mass[people].sum()

    total = 0.0
    for codes in partitions:
        groups = [g for g in np.unique(codes) if (rejected * counted)[codes == g].sum() >= min_rejected]
        everybody = distribution(np.isin(codes, groups))
        for g in groups:
            total += float(np.square(distribution(codes == g) - everybody).sum()) * (GRID[1] - GRID[0])
    return total


def people(seed):
    """Scores of two sizes, two sensitive features, weights, and prices with people who are not counted."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-0.3, 1.0, N) * rng.choice([1.0, 2.0], N)
    partitions = rng.integers(0, 3, N), rng.integers(0, 2, N)
    prices = Prices(rng.uniform(0.5, 2.0, N), (rng.random(N) < 0.8).astype(float))
    return scores, partitions, rng.uniform(0.5, 2.0, N), prices


def objective_of(partitions, weights, **settings):
    return CostObjective(tuple(check_groups(codes, len(weights)) for codes in partitions), weights, **settings)


def slopes(function, scores, step=1e-6):
    """Central differences."""
    found = np.empty(len(scores))
    for i in range(len(scores)):
        low, high = scores.copy(), scores.copy()
        low[i] -= step
        high[i] += step
        found[i] = (function(high).value - function(low).value) / (2 * step)
    return found


softnesses = pytest.mark.parametrize("softness", [0.25, 0.1, 0.05])
priced = pytest.mark.parametrize("with_prices", [False, True], ids=["one price", "prices and people not counted"])
seeds = pytest.mark.parametrize("seed", range(3))


@seeds
@softnesses
@priced
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_the_distance_is_the_formula_of_the_docstring(seed, softness, with_prices, n_partitions):
    scores, partitions, weights, prices = people(seed)
    partitions, prices = partitions[:n_partitions], prices if with_prices else None
    found = objective_of(partitions, weights, softness=softness).distance(scores, prices).value
    assert found > 0.005
    assert found == pytest.approx(by_hand(scores, partitions, weights, prices, softness=softness), abs=1e-4)


@seeds
@softnesses
@priced
def test_the_gradient_is_that_of_finite_differences(seed, softness, with_prices):
    scores, partitions, weights, prices = people(seed)
    prices = prices if with_prices else None
    objective = objective_of(partitions, weights, softness=softness)
    gradient = objective.distance(scores, prices).gradient
    np.testing.assert_allclose(
        gradient, slopes(lambda f: objective.distance(f, prices), scores), atol=1e-5 * np.abs(gradient).max()
    )


@seeds
@softnesses
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_the_drift_is_that_of_its_formula_and_its_gradient_that_of_finite_differences(seed, softness, n_partitions):
    scores, partitions, weights, _ = people(seed)
    partitions = partitions[:n_partitions]
    objective = objective_of(partitions, weights, softness=softness)
    held = objective.rejection(scores + np.random.default_rng(seed).normal(scale=0.3, size=N))
    found = objective.drift(scores, held)
    shares, expected, at = weights / weights.sum(), 0.0, 0
    rejected = expit(-scores / objective.unit(scores))
    for groups in partitions:
        for group in np.unique(groups):
            own = groups == group
            expected += shares[own].sum() * (np.average(rejected[own], weights=shares[own]) - held[at]) ** 2
            at += 1
    assert at == len(held)
    assert found.value == pytest.approx(expected / n_partitions, rel=1e-9)
    assert found.value > 1e-5
    np.testing.assert_allclose(found.gradient, slopes(lambda f: objective.drift(f, held), scores), atol=1e-7)
    assert objective.terms(scores, None, held)[1].value == pytest.approx(found.value, rel=1e-9)


def test_a_drift_is_seen_where_only_the_groups_change_places():
    groups = np.repeat([0, 1], 50)
    scores = np.concatenate([np.linspace(-1, 2, 50), np.linspace(-2, 1, 50)])
    objective = objective_of([groups], np.ones(100), softness=0.01)
    swapped = np.concatenate([scores[50:], scores[:50]])
    assert (swapped > 0).mean() == (scores > 0).mean()
    assert objective.drift(swapped, objective.rejection(scores)).value > 0.1


@seeds
def test_given_costs_are_compared_as_those_of_scores(seed):
    scores, partitions, weights, prices = people(seed)
    objective = objective_of(partitions, weights, softness=0.25)
    tau = objective.unit(scores)
    rejected, costs = expit(-scores / tau), prices.values * tau * np.logaddexp(0, -scores / tau)
    value, by_cost, by_rejected = objective.of_costs(costs, rejected, prices.counted)
    assert value == pytest.approx(objective.distance(scores, prices).value, rel=1e-9)
    for given, slope in ((costs, by_cost), (rejected, by_rejected)):
        for i in range(0, N, 7):
            low, high = ([array.copy() for array in (costs, rejected)] for _ in range(2))
            which = 0 if given is costs else 1
            low[which][i] -= 1e-6
            high[which][i] += 1e-6
            difference = objective.of_costs(*high, prices.counted)[0] - objective.of_costs(*low, prices.counted)[0]
            assert slope[i] == pytest.approx(difference / 2e-6, rel=1e-3, abs=1e-7)


def test_a_sharper_decision_is_nearer_to_the_share_of_the_rejected():
    scores, partitions, weights, _ = people(0)
    own = partitions[0] == 0
    share = weights[own & (scores <= 0)].sum() / weights[own].sum()
    soft, sharp = (
        abs(objective_of(partitions, weights, softness=softness).rejection(scores)[0] - share)
        for softness in (0.25, 0.001)
    )
    assert sharp < 0.005
    assert sharp < soft


@seeds
@priced
def test_nothing_is_gained_by_larger_or_smaller_scores(seed, with_prices):
    scores, partitions, weights, prices = people(seed)
    prices = prices if with_prices else None
    objective = objective_of(partitions, weights)
    value = objective.distance(scores, prices).value
    for factor in (1e-6, 5.0, 1e6):
        assert objective.distance(factor * scores, prices).value == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(objective.rejection(factor * scores), objective.rejection(scores), rtol=1e-9)
    # So the scores themselves are a direction in which nothing happens.
    assert objective.distance(scores, prices).gradient @ scores == pytest.approx(0, abs=1e-12)
    assert objective.drift(scores, objective.rejection(scores + 0.1)).gradient @ scores == pytest.approx(0, abs=1e-12)


def test_neither_the_unit_of_weights_nor_that_of_prices_matters():
    scores, partitions, weights, prices = people(0)
    value = objective_of(partitions, weights).distance(scores, prices).value
    assert objective_of(partitions, 7 * weights).distance(scores, prices).value == pytest.approx(value, rel=1e-9)
    dear = Prices(1000 * prices.values, prices.counted)
    assert objective_of(partitions, weights).distance(scores, dear).value == pytest.approx(value, rel=1e-9)


def test_equal_groups_are_at_no_distance():
    rng = np.random.default_rng(0)
    scores = np.tile(rng.normal(size=50), 3)
    found = objective_of([np.repeat([0, 1, 2], 50)], np.ones(150)).distance(scores)
    assert found.value < 1e-25
    assert np.abs(found.gradient).max() < 1e-12


def test_people_who_are_not_counted_are_not_compared():
    scores, (groups, _), weights, prices = people(0)
    objective = objective_of([groups], weights)
    other = np.where(prices.counted > 0, groups, (groups + 1) % 3)
    assert objective.distance(scores, prices).value == pytest.approx(
        objective_of([other], weights).distance(scores, prices).value, rel=1e-12
    )
    assert objective.distance(scores).value != pytest.approx(objective_of([other], weights).distance(scores).value)


@pytest.mark.parametrize("place", ["rejected", "accepted"])
def test_one_far_score_moves_the_distance_by_no_more_than_its_share(place):
    groups = np.repeat([0, 1], 100)
    scores = np.concatenate([np.linspace(-2, 1, 100), np.linspace(-3, 1, 100)])
    objective = objective_of([groups], np.ones(200))
    values = []
    for size in (10.0, 1e3, 1e6):
        moved = scores.copy()
        moved[100 if place == "rejected" else 199] = -size if place == "rejected" else size
        values.append(objective.distance(moved).value)
    assert values[0] > 0.02
    assert max(abs(value - values[0]) for value in values) < 1 / 75  # one of the 75 rejected people of the group


def test_a_few_far_people_cannot_carry_the_equality():
    """Two means are equal as soon as a handful of people is far enough away; two distributions are not."""
    rng = np.random.default_rng(0)
    groups, scores = np.repeat([0, 1], 500), -np.abs(rng.normal(size=1000))
    scores[500:] *= 2
    far = scores.copy()
    far[:10] = (scores[500:].sum() - scores[10:500].sum()) / 10
    assert far[:500].mean() == pytest.approx(far[500:].mean())
    objective = objective_of([groups], np.ones(1000))
    assert objective.distance(far).value > 0.8 * objective.distance(scores).value > 0.05


def same_for_nothing(term, n):
    assert term.value == 0.0
    np.testing.assert_array_equal(term.gradient, np.zeros(n))


def test_scores_that_are_all_zero():
    objective = objective_of([np.arange(40) % 2], np.ones(40))
    same_for_nothing(objective.distance(np.zeros(40)), 40)
    np.testing.assert_array_equal(objective.rejection(np.zeros(40)), [0.5, 0.5])
    np.testing.assert_array_equal(objective.drift(np.zeros(40), np.zeros(2)).gradient, np.zeros(40))
    np.testing.assert_array_equal(soft_missing(np.zeros(40), np.ones(40), 0.1), np.zeros(40))


def test_scores_that_are_mostly_zero():
    scores = np.where(np.arange(40) < 12, np.linspace(-2, 1, 40), 0.0)
    objective = objective_of([np.arange(40) % 2], np.ones(40), min_rejected=1)
    for term in objective.terms(scores, None, np.zeros(2)):
        assert np.isfinite(term.value)
        assert np.abs(term.gradient).max() < 1.0


def test_one_group_only():
    same_for_nothing(objective_of([np.zeros(40, dtype=int)], np.ones(40)).distance(np.linspace(-2, 1, 40)), 40)


def test_nobody_is_rejected():
    objective = objective_of([np.arange(40) % 2], np.ones(40))
    same_for_nothing(objective.distance(np.linspace(1, 2, 40)), 40)
    assert (objective.rejection(np.linspace(1, 2, 40)) < 1e-5).all()


def test_nobody_is_counted():
    prices = Prices(np.ones(40), np.zeros(40))
    same_for_nothing(objective_of([np.arange(40) % 2], np.ones(40)).distance(np.linspace(-2, 1, 40), prices), 40)


def test_a_group_with_few_rejected_people_is_not_there():
    scores, (groups, _), weights, _ = people(1)
    few = np.where(np.arange(N) < 4, 9, groups)
    scores[:4] = [-5.0, -9.0, -7.0, 3.0]
    left_out = objective_of([few], weights, min_rejected=5)
    term = left_out.distance(scores)
    assert term.value == pytest.approx(by_hand(scores, [few], weights, softness=left_out.softness), abs=1e-4)
    compared = objective_of([few], weights, min_rejected=1).distance(scores)
    assert compared.value > term.value + 0.1


@pytest.mark.parametrize("level", [0.5, UPPER])
def test_a_smoothed_quantile_has_its_share_of_the_weight_below_it(level):
    rng = np.random.default_rng(0)
    costs, weights = rng.exponential(size=2000), rng.uniform(0.5, 2.0, 2000)
    found = smoothed_quantile(costs, weights, level)
    steps = rounded_step((1 - costs / found) / (2 * BANDWIDTH))
    assert weights @ steps == pytest.approx(level * weights.sum(), rel=1e-9)
    assert found == pytest.approx(np.quantile(costs, level), rel=0.15)
    assert smoothed_quantile(np.zeros(5), np.ones(5), level) == 0.0
    assert smoothed_quantile(np.ones(5), np.zeros(5), level) == 0.0


def test_the_unit_of_cost_is_half_of_the_upper_quartile():
    costs, weights = np.random.default_rng(0).exponential(size=2000), np.ones(2000)
    assert unit_of(costs, weights) == smoothed_quantile(costs, weights, 0.75) / 2
    assert unit_of(costs, weights) == pytest.approx(np.median(costs), rel=0.15)


def test_a_gap_among_the_farther_half_is_seen_although_the_nearer_half_is_next_to_a_yes():
    # Trees can bring half of the rejected next to a boundary of its own. Measured in medians everybody else would be
    # beyond the last cost that is told apart, and all alike.
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 500)
    costs = np.where(rng.random(1000) < 0.6, 0.01, np.where(groups == 1, 2.0, 1.0)) * rng.uniform(0.8, 1.2, 1000)
    objective = objective_of([groups], np.ones(1000))
    assert objective.of_costs(costs, np.ones(1000), np.ones(1000))[0] > 0.05


def test_what_people_lack_is_what_the_objective_says_they_lack():
    scores, partitions, weights, _ = people(2)
    lacking = soft_missing(scores, weights, 0.001)
    np.testing.assert_allclose(lacking, np.maximum(-scores, 0.0), atol=1e-3)
    # Prices that undo the scores make every cost equal: no group is then farther away than another.
    prices = Prices(1 / soft_missing(scores, weights, 0.05), np.ones(N))
    assert objective_of(partitions, weights, softness=0.05).distance(scores, prices).value < 1e-12


def test_a_group_that_is_compared_does_not_drop_out_with_its_rejected_people():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 400)
    scores = rng.normal(size=400)
    anytime = CostObjective((check_groups(codes, 400),), np.ones(400))
    objective = anytime.comparing(scores)
    few = np.where(codes == 0, np.abs(scores) + 1.0, scores)
    few[np.flatnonzero(codes == 0)[:3]] = -5.0  # all that is left of the rejected of a group, and far away
    assert anytime.distance(few).value == 0.0
    assert objective.distance(few).value > 0.1
    assert objective.distance(scores).value == anytime.distance(scores).value


@pytest.mark.parametrize("near", [None, 1e-3, 0.3, 1.0, 3.0, 4.0, 30.0, 1e4])
@pytest.mark.parametrize("far", [1.5, 4.0, 16.0, 64.0])
def test_a_quantile_is_found_from_wherever_the_search_begins(near, far):
    # Two clouds of costs: steps of Newton's method that are cut off at a factor of four went back and forth for ever.
    rng = np.random.default_rng(0)
    for share in (0.3, 0.5, 0.7):
        costs = np.where(rng.random(500) < share, 1.0, far) * rng.uniform(0.7, 1.3, 500)
        weights = rng.random(500)
        for level in (0.5, UPPER):
            found = smoothed_quantile(costs, weights, level, near)
            steps = rounded_step((1.0 - costs / found) / (2.0 * BANDWIDTH))
            assert weights @ steps == pytest.approx(level * weights.sum(), rel=1e-6)
