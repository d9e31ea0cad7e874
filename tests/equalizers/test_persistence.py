"""Fitted equalizers and results survive files and copies: pickle, joblib, deepcopy, and skops, which runs no code."""

import copy
import io as streams
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from skops import io
from xgboost import XGBClassifier

from equirecourse import ActionSet
from equirecourse.datasets import make_tilted_groups
from equirecourse.equalizers import (
    EqualRecourseBoosting,
    EqualRecourseLinear,
    EqualRecourseSVC,
    PartitionedEqualRecourse,
    RecourseReweighting,
    recourse_frontier,
)


def through_joblib(thing):
    buffer = streams.BytesIO()
    joblib.dump(thing, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


def through_skops(thing):
    content = io.dumps(thing)
    return io.loads(content, trusted=io.get_untrusted_types(data=content))


WAYS = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "joblib": through_joblib,
    "deepcopy": copy.deepcopy,
    "skops": through_skops,
}
MODELS = {
    "linear": lambda: EqualRecourseLinear(LogisticRegression()),
    "linear of the paper": lambda: EqualRecourseLinear(LogisticRegression(), objective="paper", recourse_penalty=1.0),
    "svc": lambda: EqualRecourseSVC(),
    "lightgbm": lambda: EqualRecourseBoosting(LGBMClassifier(n_estimators=20, verbose=-1)),
    "xgboost": lambda: EqualRecourseBoosting(XGBClassifier(n_estimators=20)),
    "reweighting": lambda: RecourseReweighting(LogisticRegression(), actions=ActionSet.free(people().data)),
    "reweighted forest": lambda: RecourseReweighting(
        RandomForestClassifier(5, max_depth=3, random_state=0), distance="surrogate"
    ),
    "partitioned": lambda: PartitionedEqualRecourse(),
}


def people():
    return make_tilted_groups(random_state=0)


@pytest.fixture(scope="module")
def fitted():
    """Each model once, on two columns of groups, so that an index has two levels."""
    toy = people()
    groups = pd.DataFrame({"group": np.asarray(toy.sensitive_features).ravel()})
    groups["half"] = np.arange(len(groups)) % 2
    models = {}

    def fit(name):
        if name not in models:
            models[name] = MODELS[name]().fit(toy.data, toy.target, sensitive_features=groups)
        return models[name], toy.data

    return fit


def same(one, other):
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
    elif isinstance(one, pd.Series):
        pd.testing.assert_series_equal(one, other)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_fitted_model_predicts_the_same_after_a_round_trip(name, way, fitted):
    model, X = fitted(name)
    again = WAYS[way](model)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            same(getattr(model, method)(X), getattr(again, method)(X))
    for attribute in ("rounds_", "history_", "weights_", "multiplier_", "classes_"):
        if hasattr(model, attribute):
            same(getattr(model, attribute), getattr(again, attribute))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["linear", "lightgbm", "reweighting"])
def test_unfitted_model_survives(name, way):
    model = MODELS[name]()
    assert repr(WAYS[way](model)) == repr(model)


def test_frontier_survives():
    toy = people()
    frontier = recourse_frontier(
        EqualRecourseLinear(LogisticRegression(), objective="paper"), toy.data, toy.target,
        sensitive_features=toy.sensitive_features, cv=2, n_boot=10, n_permutations=20, random_state=0,
    )  # fmt: skip
    for way in ("pickle", "joblib", "deepcopy"):
        assert repr(WAYS[way](frontier)) == repr(frontier)
