"""What find_recourse returns can be copied and kept."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from equirecourse import ActionSet, RecourseFrame, audit, find_recourse, flipsets

WAYS = {"pickle": lambda thing: pickle.loads(pickle.dumps(thing)), "copy": copy.copy, "deepcopy": copy.deepcopy}
X = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] * 5, "debts": [3, 2, 1, 0, 1, 0] * 5})
Y = [0, 0, 0, 1, 1, 1] * 5
GROUPS = pd.Series((["a", "b"] * 15), name="group")


@pytest.mark.parametrize("asked", [False, True], ids=["before counterfactuals are asked for", "after"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(max_depth=2)])
@pytest.mark.parametrize("as_frame", [True, False])
def test_recourse_survives(as_frame, model, way, asked):
    people = X if as_frame else X.to_numpy()
    found = find_recourse(model.fit(people, Y), people)
    if asked:
        assert found.counterfactuals is not None
    again = WAYS[way](found)
    assert repr(again) == repr(found)
    np.testing.assert_array_equal(again.status, found.status)
    assert type(again.counterfactuals) is type(found.counterfactuals)
    np.testing.assert_array_equal(again.counterfactuals, found.counterfactuals)
    np.testing.assert_array_equal(replace(again, notes=()).counterfactuals, found.counterfactuals)


def test_pickled_recourse_does_not_hold_the_model():
    model = LogisticRegression().fit(X, Y)
    assert b"LogisticRegression" not in pickle.dumps(find_recourse(model, X))


RESULTS = {
    "audit": lambda model: audit(model, X, Y, sensitive_features=GROUPS, n_flipsets=1, random_state=0),
    "frame": lambda model: RecourseFrame(
        costs=find_recourse(model, X).costs, sensitive_features=GROUPS, random_state=0
    ),
    "flipsets": lambda model: flipsets(model, X.head(1), actions=ActionSet.from_frame(X)),
    "actions": lambda _: ActionSet.from_frame(X, immutable=["debts"]),
}


@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.SmallGroupWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RESULTS)
def test_results_survive(name, way):
    result = RESULTS[name](LogisticRegression().fit(X, Y))
    assert repr(WAYS[way](result)) == repr(result)
