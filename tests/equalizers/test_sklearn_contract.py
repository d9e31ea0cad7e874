"""The equalizers are scikit-learn estimators to the letter, for any kind of table and any two labels."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBClassifier

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.equalizers import EqualRecourseBoosting

# A weight of two equals a person twice up to 1e-7 only if the solution is that precise: LIBLINEAR is told to be. SGD
# and the perceptron are not here, because to them the order of the people matters, nor discriminant analysis, which
# takes no weights. A cubic kernel of data around 100 has entries of 1e12, beyond double precision.


@parametrize_with_checks(
    [
        EqualRecourseSVC(),
        EqualRecourseSVC(kernel="linear"),
        EqualRecourseSVC(kernel="linear", solver="smo"),
        EqualRecourseSVC(kernel="poly", degree=2),
        EqualRecourseSVC(kernel="sigmoid", normalize="group", recourse_penalty=1.0, penalty="squared"),
        EqualRecourseLinear(LogisticRegression()),
        EqualRecourseLinear(LinearSVC(tol=1e-10, max_iter=100_000)),
        EqualRecourseLinear(RidgeClassifier()),
        EqualRecourseLinear(LogisticRegression(), objective="paper"),
        EqualRecourseLinear(LinearSVC(tol=1e-10, max_iter=100_000), objective="paper"),
        EqualRecourseLinear(RidgeClassifier(), objective="paper"),
    ]
)
def test_scikit_learn_contract_holds_without_exception(estimator, check):
    check(estimator)


# What we leave to the boosters. Their bins and leaves count people and not weights. LightGBM fits sparse arrays but
# does not predict them, which a fit of ours asks it to; neither knows formats beside csr and csc. XGBoost, which
# declares that it does not validate, has words of its own for people with too few features.
BOOSTERS = {
    "LGBMClassifier": {"check_estimator_sparse_tag": "predicts no sparse arrays"},
    "XGBClassifier": {
        "check_n_features_in_after_fitting": "words of XGBoost",
        "check_estimators_empty_data_messages": "words of XGBoost",
        "check_fit2d_predict1d": "words of XGBoost",
    },
}


def left_to_the_booster(estimator):
    return BOOSTERS[type(estimator.estimator).__name__] | {
        "check_sample_weight_equivalence_on_dense_data": "bins count people",
        "check_sample_weight_equivalence_on_sparse_data": "bins count people",
        "check_estimator_sparse_array": "some formats only",
        "check_estimator_sparse_matrix": "some formats only",
    }


@parametrize_with_checks(
    [
        EqualRecourseBoosting(LGBMClassifier(n_estimators=10, min_child_samples=1, verbose=-1, n_jobs=1)),
        EqualRecourseBoosting(XGBClassifier(n_estimators=10, n_jobs=1)),
    ],
    expected_failed_checks=left_to_the_booster,
)
def test_scikit_learn_contract_holds_for_boosting_but_for_what_is_left_to_the_boosters(estimator, check):
    check(estimator)


MODELS = [
    EqualRecourseSVC(),
    EqualRecourseSVC(kernel="linear"),
    EqualRecourseSVC(kernel="poly", degree=2, normalize="group"),
    EqualRecourseSVC(recourse_penalty=0.5, feature_costs=[1.0, 2.0, 0.5]),
    EqualRecourseLinear(LogisticRegression()),
    EqualRecourseLinear(LogisticRegression(), objective="paper"),
    EqualRecourseLinear(
        LogisticRegression(), objective="paper", recourse_penalty=0.5, penalty="squared", normalize="group"
    ),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)
# One round: the claims here are about tables and labels, not about the end of the rounds.
one_round = pytest.mark.filterwarnings("ignore:The rounds over the rejected set:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def people(make_people):
    return make_people(90, seed=3)


def fitted(model, X, y, group, **parameters):
    return clone(model).set_params(max_rounds=2, **parameters).fit(X, y, sensitive_features=group)


@one_round
@every_model
@pytest.mark.parametrize("roundtrip", ["pickle", "joblib"])
def test_a_stored_model_decides_as_before(model, roundtrip, people):
    X, y, group = people
    before = fitted(model, X, y, group)
    if roundtrip == "pickle":
        after = pickle.loads(pickle.dumps(before))
    else:
        buffer = io.BytesIO()
        joblib.dump(before, buffer)
        buffer.seek(0)
        after = joblib.load(buffer)
    np.testing.assert_array_equal(after.decision_function(X), before.decision_function(X))
    pd.testing.assert_frame_equal(after.rounds_, before.rounds_)


@one_round
@every_model
def test_a_clone_is_unfitted_and_has_the_same_parameters(model, people):
    X, y, group = people
    copy = clone(fitted(model, X, y, group))
    with pytest.raises(NotFittedError):
        copy.predict(X)
    parameters, copied = (
        {k: v for k, v in m.get_params().items() if k != "estimator"} for m in (model.set_params(max_rounds=2), copy)
    )
    assert copied == parameters


def test_parameters_of_the_learner_are_set_through_the_equalizer():
    model = EqualRecourseLinear(LogisticRegression())
    model.set_params(estimator__C=0.1, recourse_penalty=2.0)
    assert model.estimator.C == 0.1
    assert model.get_params()["estimator__C"] == 0.1
    assert model.recourse_penalty == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        model.set_params(nonsense=1)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(EqualRecourseSVC()) == "EqualRecourseSVC()"
    assert repr(EqualRecourseSVC(kernel="linear", recourse_penalty=2.0)) == (
        "EqualRecourseSVC(kernel='linear', recourse_penalty=2.0)"
    )
    assert repr(EqualRecourseLinear(LogisticRegression())) == "EqualRecourseLinear(estimator=LogisticRegression())"


@one_round
@every_model
@pytest.mark.parametrize("kind", ["pandas", "polars", "lists"])
def test_any_kind_of_table_gives_the_same_model(model, kind, people):
    X, y, group = people
    names, sex = ["income", "age", "debt"], np.where(group == 1, "female", "male")
    reference = fitted(model, X, y, sex)
    if kind == "pandas":
        index = np.arange(len(y))[::-1]
        tables = pd.DataFrame(X, columns=names, index=index), pd.Series(y, index=index), pd.Series(sex, index=index)
    elif kind == "polars":
        tables = pl.DataFrame(X, schema=names), pl.Series("y", y), pl.Series("sex", sex)
    else:
        tables = X.tolist(), y.tolist(), sex.tolist()
    other = fitted(model, *tables)
    # Columns of a frame lie otherwise in memory, and sums round otherwise.
    np.testing.assert_allclose(other.decision_function(tables[0]), reference.decision_function(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(other.predict(tables[0]), reference.predict(X))
    if kind == "lists":
        assert not hasattr(other, "feature_names_in_")
    else:
        assert other.feature_names_in_.tolist() == names


@one_round
@every_model
def test_groups_in_a_polars_frame_equal_groups_in_a_pandas_frame(model, people):
    X, y, group = people
    columns = {"sex": np.where(group == 1, "f", "m"), "old": X[:, 1] > 0}
    # Three features have no direction in which four groups are equal: a finite penalty.
    settings = {"min_rejected": 1, "recourse_penalty": 1.0 if getattr(model, "_is_paper", True) else np.inf}
    pandas, polars = (fitted(model, X, y, frame(columns), **settings) for frame in (pd.DataFrame, pl.DataFrame))
    np.testing.assert_array_equal(polars.decision_function(X), pandas.decision_function(X))
    assert "rejected (f & True)" in pandas.rounds_.columns


@one_round
@every_model
def test_features_are_recognised_by_name(model, people):
    X, y, group = people
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fitted(model, frame, y, group)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["a", "b"]])
    if hasattr(model, "predict_proba"):
        model.predict_proba(frame)  # no complaint about names


@one_round
@every_model
def test_another_number_of_features_is_refused(model, people):
    X, y, group = people
    model = fitted(model, X, y, group)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        model.predict(X[:, :2])


@one_round
@every_model
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_people_equal_dense_people(model, container, people):
    X, y, group = people
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    dense, thin = fitted(model, X, y, group), fitted(model, container(X), y, group)
    np.testing.assert_allclose(thin.decision_function(X), dense.decision_function(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(thin.decision_function(container(X)), thin.decision_function(X), rtol=1e-10, atol=1e-10)


@one_round
@every_model
@pytest.mark.parametrize(
    ("no", "yes"),
    [("bad", "good"), (False, True), (0, 1), (1, 2), (-3.0, 7.0)],
    ids=["str", "bool", "01", "12", "float"],
)
def test_the_names_of_the_labels_do_not_matter(model, no, yes, people):
    X, y, group = people
    named = fitted(model, X, np.where(y > 0, yes, no), group)
    plain = fitted(model, X, y, group)
    np.testing.assert_array_equal(named.decision_function(X), plain.decision_function(X))
    assert named.classes_.tolist() == [no, yes]
    assert named.favorable_label_ == yes
    np.testing.assert_array_equal(named.predict(X) == yes, plain.predict(X) == 1)


@one_round
@every_model
def test_a_favourable_label_that_is_the_smaller_one_turns_the_scores_around(model, people):
    X, y, group = people
    model = clone(model)
    if isinstance(model, EqualRecourseLinear):
        model.set_params(estimator__tol=1e-10, estimator__max_iter=10_000)
    plain = fitted(model, X, y, group)
    # 1 is the yes and 2 the no: the larger label is the unfavourable one.
    turned = fitted(model, X, np.where(y > 0, 1, 2), group, favorable_label=1)
    assert turned.favorable_label_ == 1
    np.testing.assert_allclose(turned.decision_function(X), -plain.decision_function(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(turned.predict(X) == 1, plain.predict(X) == 1)
    pd.testing.assert_frame_equal(turned.rounds_, plain.rounds_, rtol=1e-2, atol=1e-2)


def test_the_favourable_label_decides_who_is_balanced(make_people, first_round):
    X, y, group = make_people(90, seed=3)
    one = first_round(EqualRecourseSVC(kernel="linear"), X, y, group)
    other = first_round(EqualRecourseSVC(kernel="linear", favorable_label=-1), X, y, group)
    np.testing.assert_array_equal(one.rejected, ~other.rejected)


@pytest.mark.parametrize("model", [EqualRecourseSVC(), EqualRecourseSVC(kernel="linear")], ids=str)
def test_coefficients_of_features_exist_for_a_linear_kernel_only(model, people):
    X, y, _ = people
    model = clone(model).fit(X, y)
    assert hasattr(model, "coef_") == (model.kernel == "linear")
    model.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_")


@one_round
@every_model
def test_without_groups_there_is_nothing_to_balance(model, people):
    X, y, _ = people
    model = clone(model).fit(X, y)
    assert model.converged_
    assert model.rounds_.empty
    assert model.ending_ == "nothing to balance"


@one_round
def test_the_fitted_learner_speaks_of_the_original_features(people):
    X, y, group = people
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for normalize in ("rejected", "group"):
        model = fitted(
            EqualRecourseLinear(LogisticRegression(), objective="paper", recourse_penalty=1.0),
            frame,
            y,
            group,
            normalize=normalize,
        )
        np.testing.assert_allclose(model.estimator_.decision_function(frame), model.decision_function(frame))
        np.testing.assert_allclose(model.estimator_.predict_proba(frame), model.predict_proba(frame))
        np.testing.assert_array_equal(model.predict(frame), model.classes_[model.predict_proba(frame).argmax(axis=1)])


def test_probabilities_are_there_if_the_learner_has_them():
    assert hasattr(EqualRecourseLinear(LogisticRegression()), "predict_proba")
    assert not hasattr(EqualRecourseLinear(LinearSVC()), "predict_proba")


def test_the_solver_libsvm_is_deprecated_and_finds_what_auto_finds(make_people):
    X, y, group = make_people(100)
    with pytest.warns(FutureWarning, match="solver='libsvm' is deprecated .* solver='auto' finds the same optimum"):
        found = EqualRecourseSVC(solver="libsvm").fit(X, y, sensitive_features=group)
    expected = EqualRecourseSVC().fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("option", [{"memory": 2}, {"on_cycle": "stop"}, {"balance_tol": 0.5}], ids=str)
@pytest.mark.parametrize(
    "model", [EqualRecourseSVC(), EqualRecourseLinear(LinearSVC(), objective="paper")], ids=["s", "l"]
)
@pytest.mark.filterwarnings("ignore:The rounds over the rejected set:sklearn.exceptions.ConvergenceWarning")
def test_options_of_the_rounds_by_their_own_names_are_deprecated(model, option, make_people):
    X, y, group = make_people(100)
    (name,) = option
    with pytest.warns(FutureWarning, match=f"The parameter {name} is deprecated .*; use round_options={{'{name}': "):
        found = clone(model).set_params(**option).fit(X, y, sensitive_features=group)
    expected = clone(model).set_params(round_options=option).fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    pd.testing.assert_frame_equal(found.rounds_, expected.rounds_)
