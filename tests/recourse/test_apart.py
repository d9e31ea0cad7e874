"""People who are divided among workers get the answers that they get together."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from equirecourse import ActionSet, find_recourse


@pytest.mark.parametrize("final", [LogisticRegression(), DecisionTreeClassifier(max_depth=3)], ids=["linear", "tree"])
def test_programs_of_people_in_lots_are_those_of_people_together(final):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(size=60), "debts": rng.integers(0, 5, 60)})
    model = final.fit(X, np.where(X.income - X.debts / 3 + rng.normal(size=60) > 0, 1, -1))
    given = {"actions": ActionSet.from_frame(X), "method": "milp", "norm": "l1"}
    expected = find_recourse(model, X, **given)
    assert expected.rejected.sum() > 16  # more than one lot
    with joblib.parallel_config("threading", n_jobs=2):
        found = find_recourse(model, X, **given)
    np.testing.assert_array_equal(found.costs, expected.costs)
    np.testing.assert_array_equal(found.status, expected.status)
    pd.testing.assert_frame_equal(found.counterfactuals, expected.counterfactuals)
