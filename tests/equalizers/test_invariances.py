"""What must not change when people, groups, units or kernels are merely written down in another way."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from equirecourse import EqualRecourseLinear, EqualRecourseSVC

pytestmark = pytest.mark.filterwarnings("ignore:The rounds over the rejected set:sklearn.exceptions.ConvergenceWarning")

few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 10_000)
penalties = st.sampled_from([0.0, 0.3, 3.0, np.inf])

PRECISE = LogisticRegression(tol=1e-9, max_iter=10_000, solver="newton-cholesky")
MODELS = [
    EqualRecourseSVC(kernel="linear", min_rejected=2),
    EqualRecourseSVC(kernel="rbf", min_rejected=2),
    EqualRecourseSVC(kernel="poly", degree=2, min_rejected=2, normalize="group"),
    EqualRecourseSVC(kernel="rbf", min_rejected=2, feature_costs=[1.0, 2.0, 0.5]),
    EqualRecourseLinear(PRECISE, objective="paper", min_rejected=2),
    EqualRecourseLinear(PRECISE, objective="paper", min_rejected=2, normalize="group"),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(repr(model).split()))


def same(one, other, *, tol=2e-3):
    """Scores of two fits are equal up to the solvers' tolerance, which is one of the score."""
    np.testing.assert_allclose(other, one, rtol=tol, atol=tol)


@every_model
@few
@given(seed=seeds, penalty=penalties)
def test_the_order_of_the_people_does_not_matter(model, make_people, first_round, seed, penalty):
    people = make_people(40, seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    model = clone(model).set_params(recourse_penalty=penalty)
    one, other = first_round(model, *people), first_round(model, *people.take(order))
    np.testing.assert_array_equal(other.rejected, one.rejected[order])
    same(one.fit().scores[order], other.fit().scores)


@every_model
@few
@given(seed=seeds, penalty=penalties, names=st.permutations(["zoe", "ann", "mia"]))
def test_neither_the_names_nor_the_order_of_the_groups_matter(model, make_people, first_round, seed, penalty, names):
    X, y, group = make_people(60, n_groups=3, seed=seed)
    model = clone(model).set_params(recourse_penalty=penalty, min_rejected=1)
    one, other = first_round(model, X, y, group), first_round(model, X, y, np.array(names)[group])
    scores = np.random.default_rng(seed).normal(size=60)
    assert np.linalg.norm(other.contrasts.weights.T @ scores) == pytest.approx(
        np.linalg.norm(one.contrasts.weights.T @ scores), rel=1e-10
    )
    same(one.fit().scores, other.fit().scores)


@few
@given(seed=seeds, penalty=penalties, scale=st.sampled_from([0.1, 0.5, 3.0, 20.0]))
def test_another_unit_of_all_features_scales_distances_and_nothing_else(make_people, first_round, seed, penalty, scale):
    """w shrinks by a when x grows by a: ½‖w‖² does by a², and so must the prices of loss and difference."""
    X, y, group = make_people(40, seed=seed)
    one = first_round(
        EqualRecourseSVC(kernel="linear", recourse_penalty=penalty, min_rejected=2, tol=1e-6), X, y, group
    )
    other = first_round(
        EqualRecourseSVC(
            kernel="linear", C=1 / scale**2, recourse_penalty=penalty / scale**2, min_rejected=2, tol=1e-6
        ),
        X * scale,
        y,
        group,
    )
    same(one.fit().scores, other.fit().scores)
    assert other.fit().norm == pytest.approx(one.fit().norm / scale, rel=1e-3)
    assert other.plain.gap == pytest.approx(one.plain.gap * scale, rel=1e-2, abs=1e-4 * scale)


@few
@given(seed=seeds, penalty=penalties, scale=st.sampled_from([0.1, 3.0]), shift=st.sampled_from([0.0, -2.0, 5.0]))
def test_the_scaled_rbf_kernel_knows_neither_unit_nor_origin(make_people, first_round, seed, penalty, scale, shift):
    X, y, group = make_people(40, seed=seed)
    model = EqualRecourseSVC(recourse_penalty=penalty, min_rejected=2)
    same(first_round(model, X, y, group).fit().scores, first_round(model, X * scale + shift, y, group).fit().scores)


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e8])
def test_the_scale_of_the_kernel_is_that_of_scikit_learn_far_from_the_origin_too(offset, make_people):
    X, y, _ = make_people(40)
    model = EqualRecourseSVC().fit(X + offset, y)
    assert model._gamma == pytest.approx(SVC().fit(X + offset, y)._gamma, rel=1e-6)
    thin = EqualRecourseSVC().fit(sparse.csr_array(X), y)
    assert thin._gamma == pytest.approx(SVC().fit(X, y)._gamma, rel=1e-6)


@few
@given(seed=seeds, penalty=penalties)
def test_features_permuted_together_with_their_costs_are_the_same_problem(make_people, first_round, seed, penalty):
    X, y, group = make_people(40, seed=seed)
    costs, order = np.array([1.0, 3.0, 0.2]), np.random.default_rng(seed).permutation(3)
    fits = [
        first_round(
            EqualRecourseSVC(feature_costs=c, recourse_penalty=penalty, min_rejected=2), features, y, group
        ).fit()
        for c, features in ((costs, X), (costs[order], X[:, order]))
    ]
    same(fits[0].scores, fits[1].scores)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@few
@given(seed=seeds, penalty=penalties)
def test_feature_costs_of_one_are_no_feature_costs(kernel, make_people, first_round, seed, penalty):
    X, y, group = make_people(40, seed=seed)
    model = EqualRecourseSVC(kernel=kernel, degree=2, recourse_penalty=penalty, min_rejected=2)
    ones = clone(model).set_params(feature_costs=np.ones(3))
    same(first_round(model, X, y, group).fit().scores, first_round(ones, X, y, group).fit().scores)


@few
@given(seed=seeds, cost=st.sampled_from([0.2, 5.0]))
def test_equal_feature_costs_do_not_change_linear_hard_equality(make_people, first_round, seed, cost):
    """u = w·Cz vanishes with w·z when C is a multiple of the identity."""
    X, y, group = make_people(40, seed=seed)
    model = EqualRecourseSVC(kernel="linear", min_rejected=2)
    priced = clone(model).set_params(feature_costs=np.full(3, cost))
    same(first_round(model, X, y, group).fit().scores, first_round(priced, X, y, group).fit().scores)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("penalty", [0.5, np.inf])
def test_with_feature_costs_the_difference_vanishes_at_the_scaled_points(kernel, penalty, make_people, first_round):
    """The paper balances w·Φ(Cx): the stored model, asked at Cx, must say so."""
    X, y, group = make_people(60, seed=5)
    costs = np.array([1.0, 2.0, 0.5])
    model = EqualRecourseSVC(kernel=kernel, degree=2, feature_costs=costs, recourse_penalty=penalty)
    one = first_round(model, X, y, group)
    fit = one.fit()
    one.model._store(one.problem, fit)
    one.model._store_common(one.problem.data, None)
    at_x, at_cx = one.model.decision_function(X), one.model.decision_function(X * costs)
    np.testing.assert_allclose(at_x, fit.scores, rtol=1e-8, atol=1e-8)
    means = [at_cx[one.rejected & (group == g)].mean() for g in (0, 1)]
    assert means[1] - means[0] == pytest.approx(fit.differences[0], abs=1e-8)
    # Under a small penalty a linear model may stay put: as many margins as unknowns pin it down.
    plain = abs(one.plain.signed[0] * one.plain.fit.norm)
    assert abs(means[1] - means[0]) <= (0 if np.isinf(penalty) else plain) + 1e-8


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@few
@given(seed=seeds, penalty=penalties)
def test_a_constant_added_to_the_kernel_changes_nothing(kernel, make_people, first_round, seed, penalty):
    """The coefficients of the expansion add up to zero, for the balance as for the hinge."""
    X, y, group = make_people(40, seed=seed)
    K = {"linear": X @ X.T, "rbf": rbf_kernel(X, gamma=0.3), "poly": polynomial_kernel(X, degree=2)}[kernel]
    model = EqualRecourseSVC(kernel="precomputed", recourse_penalty=penalty, min_rejected=2)
    one, other = first_round(model, K, y, group).fit(), first_round(model, K + 7.0, y, group).fit()
    same(one.scores, other.scores)
    assert other.norm == pytest.approx(one.norm, rel=1e-3)


@every_model
@few
@given(seed=seeds, penalty=penalties)
def test_a_person_of_weight_two_is_a_person_twice(model, make_people, first_round, seed, penalty):
    X, y, group = make_people(40, seed=seed)
    weight = np.random.default_rng(seed).integers(1, 3, 40)
    rows = np.repeat(np.arange(40), weight)
    model = clone(model).set_params(recourse_penalty=penalty, min_rejected=1)
    weighted = first_round(model, X, y, group, sample_weight=weight)
    repeated = first_round(model, X[rows], y[rows], group[rows])
    np.testing.assert_array_equal(weighted.rejected[rows], repeated.rejected)
    same(weighted.fit().scores[rows], repeated.fit().scores)
    for name in ("gap", "mean_distance", "accuracy", "acceptance"):
        assert weighted.plain.summary[name] == pytest.approx(repeated.plain.summary[name], rel=1e-2, abs=1e-3)


@every_model
@few
@given(seed=seeds, penalty=penalties)
def test_a_person_of_weight_zero_is_absent(model, make_people, quietly, seed, penalty):
    X, y, group = make_people(50, seed=seed)
    weight = (np.random.default_rng(seed).random(50) < 0.8).astype(float)
    here = weight > 0
    group = np.where(here, group, 99)  # nobody who counts is of this group
    model = clone(model).set_params(recourse_penalty=penalty, max_rounds=2, min_rejected=1)
    weighted = quietly(clone(model), X, y, sensitive_features=group, sample_weight=weight)
    # Ones, not None, because a learner may take a path of its own without weights.
    absent = quietly(
        clone(model), X[here], y[here], sensitive_features=group[here], sample_weight=np.ones(int(here.sum()))
    )
    np.testing.assert_allclose(weighted.decision_function(X), absent.decision_function(X), rtol=1e-9, atol=1e-9)
    assert weighted.rounds_.columns.tolist() == absent.rounds_.columns.tolist()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@few
@given(seed=seeds)
def test_without_a_penalty_it_is_the_svm_of_scikit_learn(kernel, make_people, seed):
    X, y, group = make_people(50, seed=seed)
    gamma = 0.02 if kernel == "sigmoid" else "scale"
    model = EqualRecourseSVC(kernel=kernel, degree=2, gamma=gamma, coef0=0.5, recourse_penalty=0.0)
    model.fit(X, y, sensitive_features=group)
    reference = SVC(kernel=kernel, degree=2, gamma=gamma, coef0=0.5, tol=1e-9).fit(X, y)
    assert model.converged_
    same(reference.decision_function(X), model.decision_function(X))


@every_model
@few
@given(seed=seeds)
def test_a_large_penalty_is_hard_equality(model, make_people, first_round, seed):
    X, y, group = make_people(40, seed=seed)
    hard = first_round(clone(model).set_params(recourse_penalty=np.inf), X, y, group).fit()
    large = first_round(clone(model).set_params(recourse_penalty=1e4), X, y, group).fit()
    assert np.linalg.norm(hard.differences) <= 1e-6 * np.abs(hard.scores).mean()
    same(hard.scores, large.scores)


@every_model
@pytest.mark.parametrize("shape", ["absolute", "squared"])
@few
@given(seed=seeds)
def test_the_difference_falls_as_its_price_rises(model, shape, make_people, first_round, seed):
    X, y, group = make_people(40, n_groups=2, seed=seed)
    one = first_round(clone(model).set_params(penalty=shape), X, y, group)
    sizes = [np.linalg.norm(one.fit(recourse_penalty=p).differences) for p in (0.0, 0.1, 1.0, 10.0, np.inf)]
    assert np.all(np.diff(sizes) <= 1e-3 * (1 + sizes[0]))
    assert sizes[-1] <= 1e-6 * (1 + sizes[0])


@every_model
@few
@given(seed=seeds, share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.5]))
def test_a_bound_on_the_difference_is_kept_at_the_balanced_set(model, make_people, first_round, seed, share):
    X, y, group = make_people(40, seed=seed)
    plain = first_round(model, X, y, group).plain
    size = np.linalg.norm(plain.signed)
    bounded = first_round(clone(model).set_params(difference_bound=share * size), X, y, group).fit()
    gap = np.linalg.norm(bounded.differences) / bounded.norm
    assert gap <= share * size + 1e-7
    if share >= 1:
        same(plain.fit.scores, bounded.scores)
    else:  # and it is the least balancing: the bound is used up
        assert gap >= 0.95 * share * size - 1e-7


@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
def test_a_precomputed_or_callable_kernel_is_the_named_one(penalty, make_people, quietly):
    X, y, group = make_people(60, seed=2)
    model = EqualRecourseSVC(gamma=0.3, recourse_penalty=penalty, max_rounds=2)
    named = quietly(clone(model), X, y, sensitive_features=group)
    made = quietly(
        clone(model).set_params(kernel=lambda a, b: rbf_kernel(a, b, gamma=0.3)), X, y, sensitive_features=group
    )
    matrix = quietly(
        clone(model).set_params(kernel="precomputed"), rbf_kernel(X, gamma=0.3), y, sensitive_features=group
    )
    new = make_people(10, seed=9).X
    np.testing.assert_allclose(made.decision_function(new), named.decision_function(new), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        matrix.decision_function(rbf_kernel(new, X, gamma=0.3)), named.decision_function(new), rtol=1e-8, atol=1e-8
    )


def test_a_precomputed_kernel_with_absent_people_asks_for_all_columns(make_people, quietly):
    X, y, group = make_people(60, seed=2)
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    K = rbf_kernel(X, gamma=0.3)
    matrix = quietly(EqualRecourseSVC(kernel="precomputed"), K, y, sensitive_features=group, sample_weight=weight)
    named = quietly(EqualRecourseSVC(gamma=0.3), X, y, sensitive_features=group, sample_weight=weight)
    np.testing.assert_allclose(matrix.decision_function(K), named.decision_function(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"recourse_penalty": 1.0},
        {"recourse_penalty": 1.0, "penalty": "squared"},
        {"difference_bound": 0.02},
        {"feature_costs": [1.0, 2.0, 0.5]},
    ],
    ids=str,
)
def test_all_solvers_find_the_same_model(kernel, setting, make_people, first_round):
    X, y, group = make_people(80, seed=4)
    fits = {
        solver: first_round(EqualRecourseSVC(kernel=kernel, degree=2, solver=solver, **setting), X, y, group).fit()
        for solver in ("smo", "qp")
    }
    same(fits["qp"].scores, fits["smo"].scores)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("model", [MODELS[0], MODELS[1], MODELS[4]], ids=["linear", "rbf", "logistic"])
def test_among_many_groups_every_pair_has_equal_means(n_groups, model, make_people, first_round):
    X, y, group = make_people(60 * n_groups, n_features=6, n_groups=n_groups, seed=1)
    model = clone(model).set_params(min_rejected=1)
    one = first_round(model, X, y, group)
    assert len(one.contrasts) == n_groups - 1
    before, after = (
        [scores[one.rejected & (group == g)].mean() for g in range(n_groups)]
        for scores in (one.plain.fit.scores, one.fit().scores)
    )
    assert np.ptp(after) <= 1e-6 < np.ptp(before)


def test_separate_features_have_equal_means_each_and_crossed_ones_in_every_cell(make_people, first_round):
    X, y, sex = make_people(200, n_features=5, seed=1)
    old = X[:, 1] > 0.2
    table = np.column_stack([sex, old])
    model = EqualRecourseSVC(kernel="linear")
    crossed = first_round(model, X, y, table)
    separate = first_round(clone(model).set_params(intersections=False), X, y, table)
    assert (len(crossed.contrasts), len(separate.contrasts)) == (3, 2)
    np.testing.assert_array_equal(crossed.rejected, separate.rejected)

    def spread(scores, codes):
        return np.ptp([scores[crossed.rejected & (codes == c)].mean() for c in np.unique(codes)])

    cells = 2 * sex + old
    for codes in (sex, old):
        assert spread(separate.fit().scores, codes) <= 1e-6 < spread(separate.plain.fit.scores, codes)
    assert spread(crossed.fit().scores, cells) <= 1e-6
    assert spread(separate.fit().scores, cells) > 1e-3


def test_a_model_does_not_know_the_group_of_whom_it_judges(make_people, quietly):
    X, y, group = make_people(80, seed=1)
    model = quietly(EqualRecourseSVC(), X, y, sensitive_features=group)
    one, other = model.decision_function(X[:5]), model.decision_function(np.vstack([X[:5], X[:5]]))
    np.testing.assert_allclose(np.tile(one, 2), other)
