"""What cannot be fitted is refused in one sentence, and leaves the model as it was."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse._validation import check_feature_costs, check_labels
from equirecourse.equalizers import _kernel_problem
from equirecourse.exceptions import SmallGroupWarning

LOGISTIC = EqualRecourseLinear(LogisticRegression())
PAPER = EqualRecourseLinear(LogisticRegression(), objective="paper")
EVERY = pytest.mark.parametrize(
    "model", [EqualRecourseSVC(), LOGISTIC, PAPER], ids=["svc", "linear", "linear of the paper"]
)
OF_THE_PAPER = pytest.mark.parametrize("model", [EqualRecourseSVC(), PAPER], ids=["svc", "linear"])


@pytest.fixture(scope="module")
def people(make_people):
    return make_people(60, seed=0)


@pytest.fixture
def refused(people, quietly):
    """Check that a fit is refused in one sentence, and that a model is after it what it was before."""

    def check(model, *, match, X=None, y=None, fitted_before=True, **arguments):
        arguments = {"sensitive_features": people.group, **arguments}
        X, y = people.X if X is None else X, people.y if y is None else y
        unfitted = clone(model)
        with pytest.raises(ValueError, match=match) as caught:
            unfitted.fit(X, y, **arguments)
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) < 400
        assert not re.search(r"\. [A-Z]", message), message
        assert set(vars(unfitted)) == set(vars(clone(model)))
        with pytest.raises(NotFittedError):
            unfitted.predict(people.X)
        # The same refusal by a model that was fitted before, with parameters that could be fitted.
        usable = quietly(
            EqualRecourseSVC() if isinstance(model, EqualRecourseSVC) else clone(LOGISTIC),
            people.X,
            people.y,
            sensitive_features=people.group,
        )
        before, state = usable.decision_function(people.X), set(vars(usable))
        usable.set_params(**model.get_params(deep=False))
        with pytest.raises(ValueError, match=match):
            usable.fit(X, y, **arguments)
        assert set(vars(usable)) == state
        usable.set_params(kernel="rbf") if isinstance(model, EqualRecourseSVC) else None
        np.testing.assert_array_equal(usable.decision_function(people.X), before)
        return message

    return check


@EVERY
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.array, pd.DataFrame, sparse.csr_array])
def test_features_that_are_not_finite(model, bad, kind, people, quietly):
    X = people.X.copy()
    X[[3, 5], 1] = bad
    X = kind(X) if kind is not pd.DataFrame else pd.DataFrame(X, columns=["income", "debt", "age"])
    name = "'debt'" if kind is pd.DataFrame else "number 1"
    said = rf"^X holds (NaN|infinity \(inf\)) for 2 of 60 people, first in feature {name}; drop those people, or impute"
    unfitted = clone(model)
    with pytest.raises(ValueError, match=said):
        unfitted.fit(X, people.y, sensitive_features=people.group)
    with pytest.raises(NotFittedError):
        unfitted.predict(people.X)
    fitted = quietly(clone(model), people.X, people.y, sensitive_features=people.group)
    with pytest.raises(ValueError, match=r"^X holds (NaN|infinity \(inf\)) for 2 of 60 people"):
        fitted.predict(np.asarray(X.toarray() if sparse.issparse(X) else X))


@EVERY
def test_labels_must_be_two(model, refused, people):
    refused(model, y=np.ones(60), match=r"y has the one class .*1.* and a classifier needs two classes")
    refused(model, y=np.arange(60) % 3, match=r"y has 3 labels \(0, 1, 2\) .* merge the others first")
    refused(model, y=np.arange(60) % 3, sensitive_features=None, match="3 labels")
    refused(
        clone(model).set_params(favorable_label="yes"),
        match=r"favorable_label='yes' is not one of the labels \[-1, 1\] of y; pass one of them",
    )


@EVERY
def test_a_target_of_numbers_is_not_taken_for_labels(model, people):
    # In scikit-learn's words, which are two sentences.
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        clone(model).fit(people.X, people.X[:, 0])


@EVERY
def test_labels_that_do_not_compare(model, refused):
    y = np.array(["a", 1] * 30, dtype=object)
    refused(model, y=y, match="label")
    with pytest.raises(ValueError, match=r"y mixes labels of the kinds int, str, .* use two labels of one kind\."):
        check_labels(y)


@EVERY
def test_nobody_at_all(model, refused, people):
    refused(model, X=np.empty((0, 3)), y=np.empty(0), sensitive_features=[], match="0 sample")
    refused(model, y=np.empty(0), match="inconsistent numbers of samples|y is empty|0 sample")
    with pytest.raises(ValueError, match=r"y is empty and a classifier needs people of two classes; check the target"):
        check_labels(np.array([]))


@EVERY
def test_one_of_the_classes_has_no_weight(model, refused, people):
    refused(model, sample_weight=(people.y > 0).astype(float), match="y has the one class")


@EVERY
def test_lengths_must_agree(model, refused, people):
    refused(model, y=people.y[:-1], match=r"inconsistent numbers of samples: \[60, 59\]")
    refused(
        model,
        sensitive_features=people.group[:-1],
        match=r"sensitive_features has 59 rows for 60 people; pass one row per person",
    )
    refused(model, sample_weight=np.ones(59), match=r"sample_weight.shape == \(59,\), expected \(60,\)")


@EVERY
def test_groups_must_be_known_and_at_least_two(model, refused, people):
    refused(
        model,
        sensitive_features=np.ones(60, dtype=int),
        match=r"sensitive_features has 1 group \(1\) and a comparison needs at least 2; pass a column",
    )
    missing = people.group.astype(object)
    missing[:4] = None
    refused(model, sensitive_features=missing, match="missing for 4 of 60 people; drop them, or give them a group")
    refused(model, sensitive_features="sex", match="one group per person, got the single value 'sex'")
    refused(model, sensitive_features=pd.DataFrame(index=range(60)), match="has no column")
    # One column of two is constant: crossed, that is no obstacle; one by one, it is.
    table = np.column_stack([people.group, np.zeros(60)])
    refused(clone(model).set_params(intersections=False), sensitive_features=table, match="has 1 group")


@EVERY
def test_a_group_whose_members_all_have_weight_zero_is_absent(model, refused, people):
    refused(model, sample_weight=(people.group == 0).astype(float), match="has 1 group")


@EVERY
def test_groups_that_the_plain_model_accepts_have_no_recourse_to_equalise(model, refused, people):
    message = refused(
        model,
        y=np.where(np.arange(60) < 2, -1, 1),
        match="The plain model leaves no two groups to compare: group 0 has 0 rejected people in 30",
    )
    assert "group 1 has 0 rejected people in 30" in message
    assert "at least 5 in each of two groups; lower min_rejected, merge small groups" in message
    accepted = np.where(people.X[:, 0] + people.X[:, 1] > 0, 0, 1)  # nearly everybody of group 0 is accepted
    refused(
        clone(model).set_params(min_rejected=20),
        sensitive_features=np.where(accepted == 0, "yes", "no"),
        match=r"group '\w+' has \d+ rejected people in \d+, and the balance needs at least 20",
    )


@EVERY
@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"recourse_penalty": -1.0}, r"'recourse_penalty' parameter .* in the range \[0.0, inf\]. Got -1.0"),
        ({"recourse_penalty": np.nan}, r"'recourse_penalty' parameter .* Got nan"),
        ({"recourse_penalty": "large"}, r"'recourse_penalty' parameter .* Got 'large'"),
        ({"difference_bound": -0.1}, r"'difference_bound' parameter .* Got -0.1"),
        ({"difference_bound": np.inf}, r"'difference_bound' parameter .* Got inf"),
        (
            {"difference_bound": 0.1, "recourse_penalty": 2.0},
            r"recourse_penalty=2 and difference_bound=0.1 are two ways .*; set one of them",
        ),
        ({"normalize": "sample"}, r"'normalize' parameter .* must be a str among .* Got 'sample'"),
        ({"penalty": "l1"}, r"'penalty' parameter .* Got 'l1'"),
        ({"round_options": {"on_cycle": "panic"}}, r"'on_cycle' parameter .* Got 'panic'"),
        ({"min_rejected": 0}, r"'min_rejected' parameter .* Got 0"),
        ({"max_rounds": -1}, r"'max_rounds' parameter .* Got -1"),
        ({"round_options": {"memory": 0}}, r"'memory' parameter .* Got 0"),
        ({"round_options": {"memroy": 2}}, r"round_options has no 'memroy'; it may hold memory, on_cycle, balance_tol"),
        ({"round_options": {"balance_tol": -1e-3}}, r"'balance_tol' parameter .* Got -0.001"),
    ],
    ids=str,
)
def test_parameters_out_of_range(model, parameters, match, people):
    # scikit-learn words most of these: two sentences, the range and the value.
    broken = clone(model).set_params(**parameters)
    with pytest.raises(ValueError, match=match):
        broken.fit(people.X, people.y, sensitive_features=people.group)
    with pytest.raises(NotFittedError):
        broken.predict(people.X)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"kernel": "laplace"}, r"'kernel' parameter .* Got 'laplace'"),
        ({"solver": "cplex"}, r"'solver' parameter .* Got 'cplex'"),
        ({"C": 0.0}, r"'C' parameter .* Got 0.0"),
        ({"gamma": -1.0}, r"'gamma' parameter .* Got -1.0"),
        ({"tol": 0.0}, r"'tol' parameter .* Got 0.0"),
        ({"max_iter": 0}, r"'max_iter' parameter .* Got 0"),
        ({"feature_costs": 2.0}, r"'feature_costs' parameter .* Got 2.0"),
        ({"feature_costs": [1.0, 0.0, 1.0]}, r"feature_costs must be positive and finite, got 0; leave a feature out"),
        ({"feature_costs": [1.0, -2.0, 1.0]}, r"feature_costs must be positive and finite, got -2; leave"),
        ({"feature_costs": [1.0, np.nan, 1.0]}, r"feature_costs must be positive and finite, got nan; leave"),
        ({"feature_costs": [1.0, 1.0]}, r"feature_costs has shape \(2,\) for 3 features; pass one cost per feature"),
        ({"feature_costs": ["a", "b", "c"]}, r"feature_costs must be numbers, one per feature, got \['a', 'b', 'c'\]"),
        ({"kernel": "precomputed"}, r"kernel='precomputed' needs a square matrix, got shape \(60, 3\)|0 samples .* 3"),
        (
            {"kernel": "linear", "solver": "ipm", "normalize": "group"},
            r"solver='ipm' needs differences in which the intercept cancels, .*; use solver='auto' or 'qp'",
        ),
    ],
    ids=str,
)
def test_parameters_of_the_svm_out_of_range(parameters, match, people, quietly):
    X, y, group = people
    unfitted = EqualRecourseSVC(**parameters)
    with pytest.raises(ValueError, match=match):
        unfitted.fit(X, y, sensitive_features=group)
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
    usable = quietly(EqualRecourseSVC(), X, y, sensitive_features=group)
    before = usable.decision_function(X)
    usable.set_params(**parameters)
    with pytest.raises(ValueError, match=match):
        usable.fit(X, y, sensitive_features=group)
    usable.set_params(**EqualRecourseSVC().get_params())
    np.testing.assert_array_equal(usable.decision_function(X), before)


def test_a_precomputed_kernel_has_no_features_to_price(refused, people):
    refused(
        EqualRecourseSVC(kernel="precomputed", feature_costs=np.ones(60)),
        X=people.X @ people.X.T,
        match="feature_costs needs features, and kernel='precomputed' has none; leave it at None",
    )


def test_feature_costs_of_words_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^feature_costs must be numbers, one per feature, got \['cheap'\]\.$"):
        check_feature_costs(["cheap"], 1)


@EVERY
def test_weights_must_be_weights(model, refused, people):
    negative = np.ones(60)
    negative[7] = -1.0
    refused(model, sample_weight=negative, match="Negative values in data passed to `sample_weight`")
    refused(
        model,
        sample_weight=np.zeros(60),
        match="sample_weight is zero for everybody|Sample weights must contain at least one non-zero|all zero",
    )
    unfitted = clone(model)
    with pytest.raises(ValueError, match="Input sample_weight contains NaN"):
        unfitted.fit(people.X, people.y, sample_weight=np.full(60, np.nan))


def test_a_learner_without_coefficients_is_refused(refused):
    message = refused(
        EqualRecourseLinear(DecisionTreeClassifier()), match="DecisionTreeClassifier has no coef_ after fitting"
    )
    assert "needs a linear learner such as LogisticRegression" in message


def test_a_learner_without_weights_is_refused_if_there_are_weights(refused, people, quietly):
    model = EqualRecourseLinear(LinearDiscriminantAnalysis())
    refused(
        model,
        sample_weight=np.ones(60),
        match="sample_weight was given, but LinearDiscriminantAnalysis does not take sample weights; leave it out",
    )
    quietly(model, people.X, people.y, sensitive_features=people.group)  # and without weights it is fine


def test_a_learner_without_fit_intercept_cannot_tie_its_intercept(refused):
    refused(
        EqualRecourseLinear(LinearDiscriminantAnalysis(), normalize="group"),
        match="needs a learner with fit_intercept, which LinearDiscriminantAnalysis does not have; use normalize",
    )


def test_something_that_is_no_learner_is_refused(refused, people):
    with pytest.raises(ValueError, match="'estimator' parameter of EqualRecourseLinear must be an object implementing"):
        EqualRecourseLinear("logistic").fit(people.X, people.y)
    refused(EqualRecourseLinear(KNeighborsClassifier()), match="KNeighborsClassifier has no coef_ after fitting")


def test_a_kernel_matrix_beyond_the_limit_is_not_computed(refused, people, monkeypatch, quietly):
    usable = quietly(EqualRecourseSVC(), people.X, people.y, sensitive_features=people.group)
    before = usable.decision_function(people.X)
    monkeypatch.setattr(_kernel_problem, "_MOST_GRAM_BYTES", 8 * 60 * 60 - 1)
    with pytest.raises(ValueError, match=r"A kernel matrix of 60 people takes .* GiB, .*; use EqualRecourseLinear"):
        usable.fit(people.X, people.y)
    np.testing.assert_array_equal(usable.decision_function(people.X), before)
    # A linear kernel with few features needs no matrix.
    quietly(EqualRecourseSVC(kernel="linear"), people.X, people.y, sensitive_features=people.group)


def test_a_sparse_kernel_matrix_is_refused(people):
    K = people.X @ people.X.T
    model = EqualRecourseSVC(kernel="precomputed").fit(K, people.y)
    for refuse in (lambda: clone(model).fit(sparse.csr_array(K), people.y), lambda: model.predict(sparse.csr_array(K))):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            refuse()


@OF_THE_PAPER
def test_a_small_group_is_named_and_left_out_of_the_balance(model, make_people, first_round):
    X, y, group = make_people(90, n_groups=2, seed=0)
    rare = group.astype(object)
    rare[:] = np.where(group == 0, "man", "woman")
    rare[:3] = "other"
    fitted = clone(model).set_params(recourse_penalty=1e-9, penalty="squared")
    with pytest.warns(SmallGroupWarning, match=r"group 'other' has \d rejected people in 3: fewer than 5, so left out"):
        fitted.fit(X, y, sensitive_features=rare)
    assert "rejected (other)" in fitted.rounds_
    one = first_round(model, X, y, rare)
    assert one.contrasts.left_out.keys() == {(0, "other")}
    np.testing.assert_array_equal(one.contrasts.weights[rare == "other"], 0.0)
    # The balance among the others is that without the small group, at the same people.
    scores = one.fit().scores
    means = [scores[one.rejected & (rare == g)].mean() for g in ("man", "woman")]
    assert means[0] == pytest.approx(means[1], abs=1e-6)


@OF_THE_PAPER
def test_two_sensitive_features_may_share_a_label(model, make_people, first_round):
    """'yes' of one feature is too small to be balanced, and that is no news about 'yes' of the other."""
    X, y, group = make_people(120, seed=0)
    table = pd.DataFrame(
        {"veteran": np.where(np.arange(120) < 4, "yes", np.where(group == 0, "no", "unknown")), "owner": "no"}
    )
    table.loc[X[:, 1] > 0, "owner"] = "yes"
    model = clone(model).set_params(intersections=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(model).fit(X, y, sensitive_features=table)
    named = [str(w.message) for w in caught if w.category is SmallGroupWarning]
    assert len(named) == 1
    assert re.search(r"^group 'yes' of 'veteran' has \d rejected people in 4: fewer than 5", named[0])
    counts = fitted.rounds_.iloc[0]
    assert counts["rejected (veteran=yes)"] < 5 < counts["rejected (owner=yes)"]
    one = first_round(model, X, y, table)
    distances = -one.plain.fit.scores / one.plain.fit.norm
    gaps = [
        np.ptp([distances[one.rejected & (table[name] == label)].mean() for label in labels])
        for name, labels in (("veteran", ["no", "unknown"]), ("owner", ["no", "yes"]))
    ]
    assert counts["gap"] == pytest.approx(max(gaps))


@OF_THE_PAPER
def test_a_penalty_path_needs_groups(model, people):
    with pytest.raises(ValueError, match="pass them as sensitive_features"):
        model.penalty_path(people.X, people.y, sensitive_features=None)
