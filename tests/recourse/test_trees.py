"""Tree ensembles: every cost equals the least over all combinations of cells, for every norm and mixed constraints."""

import numpy as np
import pytest
from tests.recourse._small_worlds import MODELS, best_by_trial, make_world

from equirecourse.actions import NORMS
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
