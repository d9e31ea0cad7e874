"""A verdict has three states, and people without a known cost are never averaged away."""

import numpy as np
import pytest
from scipy import stats

from equirecourse.metrics import CostSummary, RecourseFrame, State, SummaryFrame
from equirecourse.metrics._resampling import share_p_value

INF = float("inf")
QUICK = {"n_boot": 200, "n_permutations": 199, "random_state": 0}


def frames(costs, group, unknown=None, rejected=None):
    """The same people as they are, and as a summary of two halves of them."""
    costs, group = np.asarray(costs, dtype=float), np.asarray(group)
    unknown = np.zeros(len(costs), bool) if unknown is None else np.asarray(unknown)
    rejected = np.ones(len(costs), bool) if rejected is None else np.asarray(rejected)
    labels, codes = np.unique(group, return_inverse=True)
    halves = [
        CostSummary.of(costs[i], rejected[i], codes[i], labels, unknown=unknown[i])
        for i in (slice(None, None, 2), slice(1, None, 2))
    ]
    return (
        RecourseFrame(costs=costs, sensitive_features={"g": group}, unknown=unknown, rejected=rejected, **QUICK),
        SummaryFrame(CostSummary.merge(halves), name="g", **QUICK),
    )


def far_and_near(n=60, seed=0):
    """Costs of two groups, of which "f" is clearly further away."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.uniform(2, 4, n), rng.uniform(1, 2, n)]), np.repeat(["f", "m"], n)


def test_everybody_known_leaves_two_states():
    costs, group = far_and_near()
    for frame in frames(costs, group):
        assert frame.judge().state is State.GAP
        assert np.isnan(frame.share_p_value)
    for frame in frames(np.tile(costs[:60], 2), group):
        assert frame.judge().state is State.NO_DETECTABLE_GAP


def test_the_absence_of_a_gap_is_never_concluded_about_the_unknown():
    costs, group = far_and_near()
    costs = np.tile(costs[:60], 2)
    costs[7] = INF
    unknown = np.isinf(costs)
    for frame in frames(costs, group, unknown):
        verdict = frame.judge()
        assert verdict.state is State.CANNOT_TELL
        assert verdict.sentence.startswith(
            "cannot tell: the recourse of 1 of 120 rejected people is unknown (1 of 'f'); among the others, no detect"
        )
        assert frame.by_group["unknown"].tolist() == pytest.approx([1 / 60, 0])
        assert frame.by_group["without_recourse"].tolist() == [0, 0]


def test_a_gap_stays_one_if_the_unknown_of_the_further_group_cannot_close_it():
    costs, group = far_and_near()
    costs[0] = INF
    for frame in frames(costs, group, np.isinf(costs)):
        verdict = frame.judge()
        assert verdict.state is State.GAP
        # Were they free of charge, the mean of the further group would be that much smaller.
        mean = frame.by_group.loc["f", "mean"]
        left = frame.interval.low - (mean - mean * 59 / 60)
        assert verdict.sentence.endswith(f"is unknown (1 of 'f'), which leaves a gap of at least {left:.3g}")
    costs[:30] = INF  # half of them: free of charge, they would be nearer than the others
    for frame in frames(costs, group, np.isinf(costs)):
        assert frame.judge().state is State.CANNOT_TELL


def test_one_unknown_person_of_the_nearer_group_may_cost_anything():
    costs, group = far_and_near()
    costs[-1] = INF
    for frame in frames(costs, group, np.isinf(costs)):
        verdict = frame.judge()
        assert verdict.state is State.CANNOT_TELL
        assert "among the others, gap of" in verdict.sentence


def test_a_difference_in_shares_without_recourse_is_a_gap_even_where_means_are_equal():
    costs, group = far_and_near()
    costs = np.tile(costs[:60], 2)
    costs[:20] = INF
    for frame in frames(costs, group):
        verdict = frame.judge()
        assert verdict.state is State.GAP
        assert verdict.in_shares
        assert verdict.sentence.startswith(
            "gap: 33.3 % of the rejected people of group 'f' have no recourse and 0 % of group 'm' (p = 0.005)"
        )


def test_a_group_of_which_nobody_has_recourse_has_a_gap_in_spite_of_no_mean():
    costs = np.concatenate([np.full(20, INF), np.linspace(1, 2, 20)])
    with pytest.warns(UserWarning, match="none has recourse"):
        pair = frames(costs, np.repeat(["f", "m"], 20))
    for frame in pair:
        verdict = frame.judge()
        assert verdict.state is State.GAP
        assert "gap undefined" in verdict.sentence


def test_equal_shares_without_recourse_are_counted_and_no_gap():
    costs, group = far_and_near()
    costs = np.tile(costs[:60], 2)
    costs[[0, 1, 60, 61]] = INF
    for frame in frames(costs, group):
        verdict = frame.judge()
        assert verdict.state is State.NO_DETECTABLE_GAP
        assert frame.share_p_value == 1
        assert verdict.sentence.endswith(
            "; 2 of 60 rejected people of group 'f' have no recourse; "
            "2 of 60 rejected people of group 'm' have no recourse"
        )


def test_the_unknown_may_explain_a_difference_in_shares():
    costs, group = far_and_near()
    costs[:20], costs[60:80] = INF, INF
    unknown = np.zeros(120, bool)
    unknown[60:80] = True  # nobody of "m" is known to be without recourse, and as many may be
    for frame in frames(costs, group, unknown):
        assert frame.share_p_value == 1
        assert frame.judge().state is State.CANNOT_TELL


def test_a_cost_that_stands_for_no_recourse_does_not_stand_for_the_unknown():
    costs, group = [1.0, 2.0, INF, INF, 1.0, 2.0, 3.0, 2.0], list("ffffmmmm")
    unknown = [False, False, True, False, False, False, False, False]
    frame = RecourseFrame(costs=costs, sensitive_features=group, unknown=unknown, no_recourse_cost=6, **QUICK)
    assert frame.by_group.loc["f", "mean"] == 3
    assert frame.by_group.loc["f", ["without_recourse", "unknown"]].tolist() == [0.25, 0.25]
    assert np.isnan(frame.share_p_value)
    assert frame.judge().state is State.CANNOT_TELL


def test_people_who_were_not_measured_count_as_rejected_and_nothing_else():
    costs, group = [1.0, 2.0, 0.0, 0.0, 1.0, 3.0, 0.0, 0.0], list("ffffmmmm")
    rejected = [True, True, True, False] * 2
    measured = [True, True, False, False] * 2
    frame = RecourseFrame(costs=costs, sensitive_features=group, rejected=rejected, measured=measured, **QUICK)
    assert frame.by_group["people"].tolist() == [4, 4]
    assert frame.by_group["rejected"].tolist() == [3, 3]
    assert frame.by_group["measured"].tolist() == [2, 2]
    assert frame.by_group["acceptance"].tolist() == [0.25, 0.25]
    assert frame.by_group["mean"].tolist() == [1.5, 2.0]
    assert frame.to_dict()["overall"]["measured"] == 4
    with pytest.warns(UserWarning, match="group 'm' has 3 rejected people in 4 and none was measured"):
        RecourseFrame(
            costs=costs, sensitive_features=group, rejected=rejected, measured=[True] * 4 + [False] * 4, **QUICK
        )


def test_the_share_test_is_that_of_fisher():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = rng.integers(5, 60, 2)
        without = rng.integers(0, sizes + 1)
        if without.sum() in (0, sizes.sum()):
            continue
        found = share_p_value(without, without, sizes, 20_000, np.random.default_rng(1))
        # Two-sided by the difference of shares: the hypergeometric tables that are at least as far apart.
        table = stats.hypergeom(sizes.sum(), without.sum(), sizes[0])
        x = np.arange(sizes[0] + 1)
        apart = np.abs(x / sizes[0] - (without.sum() - x) / sizes[1])
        expected = table.pmf(x)[apart >= abs(np.subtract(*(without / sizes))) - 1e-12].sum()
        assert found == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / 20_000) + 1e-4)


def test_the_share_test_of_billions_of_people_ends():
    sizes = np.array([3 * 10**9, 10**9])
    equal, unequal = np.array([3 * 10**8, 10**8]), np.array([3 * 10**8, 2 * 10**8])
    assert share_p_value(equal, equal, sizes, 199, np.random.default_rng(0)) == 1
    assert share_p_value(unequal, unequal, sizes, 199, np.random.default_rng(0)) == 1 / 200


def test_shares_that_mean_nothing_are_rarely_called_a_gap():
    called = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        costs = np.where(rng.random(120) < 0.2, INF, rng.uniform(1, 2, 120))
        frame = RecourseFrame(costs=costs, sensitive_features=rng.permutation(120) % 2, **QUICK)
        called += frame.share_p_value <= 0.05
    assert called <= stats.binom.ppf(0.999, 200, 0.05)
