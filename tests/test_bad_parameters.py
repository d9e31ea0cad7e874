"""Whatever is passed to a public function, what comes back is an answer or one sentence."""

import inspect
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import equirecourse
from equirecourse import ActionSet, equalizers, find_recourse, metrics, recourse

WRONG = [
    [], {}, ["l1"], {"a": 1}, "2", None, float("nan"), -1, 1.5, 0, 1e300, object(), np.array([1.0, 2.0]),
    np.datetime64("2020-01-01"), b"x", set(), len,
]  # fmt: skip
# A wish that takes long to grant, and is none of the mistakes this is about.
SLOW = {("n_jobs", "-1")}

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
Y = (X.a + X.b + 0.5 * rng.normal(size=40) > 0).to_numpy().astype(int)
GROUPS = rng.choice(["u", "v"], 40)
MODEL = LogisticRegression().fit(X, Y)
ACTIONS = ActionSet.from_frame(X)
FOUND = find_recourse(MODEL, X)
FEW = {"n_boot": 10, "n_permutations": 20}
COSTS = {"costs": FOUND.costs, "sensitive_features": GROUPS}
SLICED = {"y_true": Y, "y_pred": MODEL.predict(X), "costs": FOUND.costs}
PENALTIES = {"recourse_penalty": [float("inf")]}


def fitted(kind, **given):
    """Make and fit an estimator: parameters of both in one."""
    data = {name: given.pop(name) for name in ("X", "y", "sensitive_features", "sample_weight") if name in given}
    return kind(**given).fit(data.pop("X"), data.pop("y"), **data)


def parameters(function):
    kind = function.args[0] if isinstance(function, partial) else function
    names = list(inspect.signature(kind).parameters)
    return [*names, "X", "y", "sensitive_features", "sample_weight"] if isinstance(function, partial) else names


DATA = {"X": X, "y": Y, "sensitive_features": GROUPS}
CALLS = {
    "find_recourse": (find_recourse, {"model": MODEL, "X": X, "actions": ACTIONS}),
    "find_recourse in closed form": (find_recourse, {"model": MODEL, "X": X}),
    "flipsets": (
        equirecourse.flipsets, {"model": MODEL, "x": X[MODEL.predict(X) == 0].head(1), "actions": ACTIONS, "k": 1}
    ),
    "audit": (equirecourse.audit, {"model": MODEL, **DATA, "actions": ACTIONS, "n_flipsets": 0, **FEW}),
    "audit_partitions": (
        equirecourse.audit_partitions,
        {"model": MODEL, "partitions": [X.assign(g=GROUPS, y=Y)], "sensitive_features": "g", "target": "y",
         "features": ["a", "b"], "actions": ACTIONS, **FEW},
    ),
    "recourse_frontier": (
        equirecourse.recourse_frontier,
        {"estimator": equalizers.EqualRecourseLinear(LogisticRegression(), objective="paper", min_rejected=1), **DATA,
         "param_grid": PENALTIES, "cv": 2, **FEW},
    ),
    "ActionSet.from_frame": (ActionSet.from_frame, {"X": X}),
    "ActionSet.free": (ActionSet.free, {"X": X}),
    "boundary_costs": (recourse.boundary_costs, {"model": MODEL, "X": X}),
    "SurrogateRecourse": (recourse.SurrogateRecourse, {}),
    "RecourseFrame": (metrics.RecourseFrame, {**COSTS, "rejected": FOUND.rejected, **FEW}),
    "recourse_gap": (metrics.recourse_gap, COSTS),
    "rejection_weighted_gap": (metrics.rejection_weighted_gap, COSTS),
    "distribution_distances": (metrics.distribution_distances, COSTS),
    "mean_recourse_cost": (metrics.mean_recourse_cost, SLICED),
    "median_recourse_cost": (metrics.median_recourse_cost, SLICED),
    "rejection_weighted_cost": (metrics.rejection_weighted_cost, SLICED),
    "burden_cost": (metrics.burden_cost, SLICED),
    "improvability_score": (metrics.improvability_score, {**SLICED, "budget": 1.0}),
    "no_recourse_rate": (metrics.no_recourse_rate, SLICED),
    "rejected_count": (metrics.rejected_count, SLICED),
    "EqualRecourseLinear": (
        partial(fitted, equalizers.EqualRecourseLinear), {"estimator": LogisticRegression(), **DATA}
    ),
    "EqualRecourseSVC": (partial(fitted, equalizers.EqualRecourseSVC), DATA),
    "RecourseReweighting": (
        partial(fitted, equalizers.RecourseReweighting),
        {"estimator": LogisticRegression(), "cv": 2, **DATA},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_value_gets_an_answer_or_one_sentence(name):
    function, given = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(**given)
        for parameter in parameters(function):
            for value in WRONG:
                if (parameter, repr(value)) in SLOW:
                    continue
                try:
                    function(**{**given, parameter: value})
                except (ValueError, TypeError) as error:
                    said = str(error)
                    # What is no table at all is left to scikit-learn, which says so in several lines.
                    assert "\n" not in said or parameter in ("X", "estimator"), (parameter, value, said)
                    assert "NoneType" not in said or value is None, (parameter, value, said)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("find_recourse", {"actions": {}}, "actions must be an ActionSet, got {}; make one with ActionSet.from_frame"),
        ("flipsets", {"actions": None}, "actions must be an ActionSet, got None"),
        ("audit", {"actions": "x"}, "actions must be an ActionSet, got 'x'"),
        ("audit_partitions", {"actions": []}, r"actions must be an ActionSet, got \[\]"),
        ("find_recourse", {"norm": ["l1"]}, r"norm must be one of 'l1', .* got \['l1'\]"),
        ("audit", {"norm": {}}, "norm must be one of 'l1'"),
        ("boundary_costs", {"norm": ["l1"]}, "norm must be one of 'l1', 'l2', 'linf'"),
        ("find_recourse", {"method": ["auto"]}, "method must be one of 'auto'"),
        ("find_recourse in closed form", {"n_jobs": "2"}, "n_jobs must be None or a whole number other than 0"),
        ("audit_partitions", {"n_jobs": 0}, "n_jobs must be None or a whole number other than 0"),
        ("recourse_frontier", {"n_jobs": 1.5}, "n_jobs must be None or a whole number other than 0"),
        ("recourse_frontier", {"cv": []}, r"cv must be a number of folds, a splitter or pairs .* got \[\]"),
        ("RecourseReweighting", {"cv": []}, "cv must be a number of folds"),
        ("audit", {"n_flipsets": -1}, "n_flipsets must be a whole number of at least 0"),
        ("audit_partitions", {"sensitive_features": 3}, "sensitive_features must be the name of a column or a list"),
        ("audit_partitions", {"target": ["y"]}, "target must be the name of a column"),
        ("audit_partitions", {"partitions": ["nowhere.parquet"]}, "There is no file 'nowhere.parquet'"),
        ("RecourseFrame", {"quantiles": 0.5}, "quantiles must be a list of levels from 0 to 1, got 0.5"),
        ("burden_cost", {"favorable_label": [1]}, "favorable_label must be one label"),
        ("ActionSet.from_frame", {"links": None}, "links must be a list of Link, got None"),
    ],
)
def test_the_sentence_names_the_value_and_the_way_out(name, change, sentence):
    function, given = CALLS[name]
    with pytest.raises(ValueError, match=sentence):
        function(**{**given, **change})


HIDDEN = np.ma.masked_array(X.to_numpy(), mask=np.eye(40, 2, dtype=bool))


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("find_recourse", "X", HIDDEN),
        ("find_recourse in closed form", "X", HIDDEN),
        ("find_recourse", "background", HIDDEN),
        ("audit", "X", HIDDEN),
        ("boundary_costs", "X", HIDDEN),
        ("recourse_frontier", "X", HIDDEN),
        ("ActionSet.free", "X", HIDDEN),
        ("RecourseFrame", "costs", np.ma.masked_less(FOUND.costs, 0.1)),
        ("RecourseFrame", "rejected", np.ma.masked_array(FOUND.rejected, mask=np.arange(40) < 2)),
        ("RecourseFrame", "sensitive_features", np.ma.masked_array(GROUPS, mask=np.arange(40) < 2)),
        ("EqualRecourseLinear", "X", HIDDEN),
        ("EqualRecourseSVC", "y", np.ma.masked_array(Y, mask=np.arange(40) < 2)),
        ("RecourseReweighting", "X", HIDDEN),
        ("RecourseReweighting", "y", np.ma.masked_array(Y, mask=np.arange(40) < 2)),
    ],
)
def test_what_a_masked_array_hides_is_never_read(name, parameter, value):
    function, given = CALLS[name]
    with pytest.raises(ValueError, match=r"is a masked array with \d+ masked entr(y|ies); drop them, or fill them in"):
        function(**{**given, parameter: value})


def test_a_masked_array_that_hides_nothing_is_an_array():
    plain = find_recourse(MODEL, X.to_numpy(), actions=ACTIONS)
    open_one = find_recourse(MODEL, np.ma.masked_array(X.to_numpy()), actions=ACTIONS)
    np.testing.assert_array_equal(plain.costs, open_one.costs)
