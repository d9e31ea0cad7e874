"""Who can just reach a yes is not told that there is none: rounding must not cost anybody their recourse."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from equirecourse import ActionSet, find_recourse
from equirecourse.actions import Feature


def linear(slopes, intercept):
    model = LogisticRegression()
    model.classes_ = np.array([-1, 1])
    model.coef_, model.intercept_ = np.array([slopes]), np.array([intercept])
    model.n_features_in_ = len(slopes)
    return model


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_single_number_that_can_move_far_enough_always_does(norm):
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"income": rng.normal(size=4000), "debts": 0.0})
    slope = 0.3710283
    actions = ActionSet([Feature("income", low=-50.0, high=50.0), Feature("debts", low=0.0, high=9.0, step=1.0)])
    found = find_recourse(linear([slope, -1.1], -2.0), people, actions=actions, norm=norm)
    assert set(found.status) <= {"found", "accepted"}
    needed = (2.0 - slope * people["income"]) / slope
    np.testing.assert_allclose(found.costs, np.maximum(needed, 0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_step_more_where_whole_steps_end_on_the_boundary(norm):
    # A score of exactly 0 is a no, so that somebody at -3 needs four steps of 1.
    people = pd.DataFrame({"steps": np.arange(-40.0, 0.0), "other": 0.0})
    actions = ActionSet([Feature("steps", low=-50.0, high=50.0, step=1.0), Feature("other", change="no")])
    found = find_recourse(linear([1.0, 1.0], 0.0), people, actions=actions, norm=norm)
    assert set(found.status) == {"found"}
    np.testing.assert_allclose(found.costs, 1 - people["steps"])
