"""Each cheat, done on purpose, is seen; an honest reduction is not called one."""

import numpy as np
import pytest

from equirecourse import cheats_in_words
from equirecourse._audit import _cheats

N = 2000
GROUPS = np.repeat(["a", "b"], N // 2)


def cheats(*arguments):
    """As they stand in the document."""
    return _cheats.cheats(*arguments).to_dict()


def people(seed=0, far=1.5):
    """Costs of which group b has more; a fifth of the people is accepted."""
    rng = np.random.default_rng(seed)
    costs = rng.exponential(size=N) * np.where(GROUPS == "b", far, 1.0)
    costs[rng.random(N) < 0.2] = np.nan
    return costs


def test_an_honest_reduction_is_not_called_a_cheat():
    before = people()
    after = np.where(GROUPS == "b", before / 1.45, before)
    found = cheats(before, after, GROUPS, (0.1, 0.1))
    assert found["warnings"] == []
    assert found["after"]["transport_gap"] < found["before"]["transport_gap"] / 2
    assert len(cheats_in_words(found)) == 4


def test_a_few_people_who_carry_it_are_seen():
    before = people()
    after = before.copy()
    few = np.flatnonzero((GROUPS == "a") & ~np.isnan(after))[:6]
    after[few] += 60.0  # the means are equal now, and nobody else has moved
    found = cheats(before, after, GROUPS, None)
    assert found["carried_by_few"] > 0.5
    assert any("A few people carry it" in sentence for sentence in found["warnings"])


def test_medians_that_move_apart_are_seen():
    before = people()
    after = np.where(GROUPS == "b", 1.35 + 0.0 * before, before)  # neither a tail nor anybody near
    found = cheats(before, after, GROUPS, None)
    assert found["after"]["relative_gap"] < found["before"]["relative_gap"]
    assert any("The medians moved apart" in sentence for sentence in found["warnings"])


def test_everybody_s_cost_shrinking_is_seen():
    before = people()
    found = cheats(before, before / 12.0, GROUPS, None)
    assert found["after"]["relative_gap"] == pytest.approx(found["before"]["relative_gap"])
    assert any("Everybody's cost shrank" in sentence for sentence in found["warnings"])


def shrank(before, after):
    sentences = cheats(before, after, GROUPS, None)["warnings"]
    return any("Everybody's cost shrank" in sentence for sentence in sentences)


def test_a_group_that_comes_closer_is_no_cheat_unless_all_do():
    before = people(far=6.0)
    for divisors, expected in (((1.1, 6.0), False), ((1.1, 12.0), False), ((1.6, 12.0), True)):
        after = before / np.where(GROUPS == "b", divisors[1], divisors[0])
        assert np.nanmean(after) < 0.5 * np.nanmean(before)
        assert shrank(before, after) == expected
    without = np.where((GROUPS == "b") & ~np.isnan(before), np.inf, before)
    assert not shrank(without, before / np.where(GROUPS == "b", 6.0, 1.0))  # b had none, and has some now


def test_recourse_that_is_taken_away_is_seen():
    before = people()
    after = before.copy()
    after[np.flatnonzero(~np.isnan(after))[:50]] = np.inf
    assert any("People lost their recourse" in sentence for sentence in cheats(before, after, GROUPS, None)["warnings"])
    assert not any("lost their recourse" in sentence for sentence in cheats(after, before, GROUPS, None)["warnings"])


def test_islands_and_other_people_who_are_rejected_are_seen():
    before = people()
    after = np.where(GROUPS == "b", before / 1.45, before)
    swapped = after.copy()
    swapped[np.flatnonzero((GROUPS == "b") & ~np.isnan(after))[:200]] = np.nan
    assert any("Islands" in sentence for sentence in cheats(before, after, GROUPS, (0.05, 0.4))["warnings"])
    found = cheats(before, swapped, GROUPS, None)
    assert any("acceptance went up by 10.0 points" in sentence for sentence in found["warnings"])
    assert found["selection"][1]["no_to_yes"] == 200
    assert found["selection"][0]["yes_to_no"] == 0


def test_groups_whose_acceptance_moves_in_opposite_directions_are_seen():
    before = people()
    after = np.where(GROUPS == "b", before / 1.45, before)
    for group, turned in (("a", np.isnan(before)), ("b", ~np.isnan(before))):
        after[np.flatnonzero((group == GROUPS) & turned)[:60]] = 1.0 if group == "a" else np.nan
    (sentence,) = cheats(before, after, GROUPS, None)["warnings"]
    assert sentence == "The groups' acceptance moved: a from 20.5 to 14.5 %, b from 20.3 to 26.3 %."


def test_a_change_of_acceptance_that_may_be_chance_is_none():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [1950, 50])
    before = rng.exponential(size=N)
    after = before.copy()
    before[rng.random(N) < 0.2] = np.nan
    after[np.isnan(before)] = np.nan
    few = np.flatnonzero(groups == "b")
    after[few[np.isnan(before[few])][:3]] = 1.0  # three of fifty: six points
    assert not any("acceptance" in sentence for sentence in cheats(before, after, groups, None)["warnings"])


def test_nobody_rejected_is_undefined_and_not_zero():
    found = cheats(np.full(N, np.nan), np.full(N, np.nan), GROUPS, None)
    assert found["before"]["relative_gap"] is None
    assert found["warnings"] == []
