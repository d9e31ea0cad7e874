"""Kernel models of many people: approximations of the kernel, single precision, limits of memory, and the gap."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from equirecourse import EqualRecourseSVC, find_recourse
from equirecourse.equalizers import _kernel_problem, _memory
from equirecourse.exceptions import ConvergenceWarning

ANY_ENDING = pytest.mark.filterwarnings("ignore:The rounds over the rejected set:sklearn.exceptions.ConvergenceWarning")
APPROXIMATIONS = ["nystroem", "fourier"]


@parametrize_with_checks(
    [
        EqualRecourseSVC(approximation="nystroem", random_state=0),
        EqualRecourseSVC(approximation="fourier", random_state=0),
    ]
)
def test_scikit_learn_contract_holds_for_approximations(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def people(make_people):
    return make_people(300, seed=1)


@ANY_ENDING
@pytest.mark.parametrize("costs", [None, [1.0, 0.5, 2.0]], ids=["C=I", "C≠I"])
@pytest.mark.parametrize("kernel", [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2}], ids=["rbf", "poly"])
def test_with_everybody_as_a_landmark_nystroem_is_the_kernel_itself(people, kernel, costs):
    X, y, group = (part[:120] for part in people)
    settings = {"feature_costs": costs, "max_rounds": 1, "round_options": {"on_cycle": "stop"}, "tol": 1e-8, **kernel}
    exact = EqualRecourseSVC(**settings).fit(X, y, sensitive_features=group)
    approximate = EqualRecourseSVC(approximation="nystroem", n_components=120, random_state=0, **settings)
    approximate.fit(X, y, sensitive_features=group)
    if costs is None:  # at C x the balance leaves the span of the landmarks
        np.testing.assert_allclose(approximate.decision_function(X), exact.decision_function(X), atol=1e-3)
        assert approximate.weight_norm_ == pytest.approx(exact.weight_norm_, rel=1e-3)
        assert approximate.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    assert approximate.rounds_["balance_residual"].iloc[-1] <= 1e-6


@ANY_ENDING
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_recourse_is_equal_in_the_space_of_the_approximation(people, approximation):
    X, y, group = people
    model = EqualRecourseSVC(approximation=approximation, n_components=40, random_state=0)
    model.fit(X, y, sensitive_features=group)
    chosen = model.rounds_[model.rounds_["chosen"]].iloc[0]
    assert chosen["balance_residual"] <= 1e-6
    assert chosen["relative_gap"] < 0.1 * model.rounds_["relative_gap"].iloc[0]
    # What the model says outside of fit is what the rounds saw.
    scores = model.decision_function(X)
    rejected = scores <= 0
    means = [-scores[rejected & (group == g)].mean() / model.weight_norm_ for g in np.unique(group)]
    assert abs(means[0] - means[1]) == pytest.approx(chosen["gap"], abs=1e-6)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), scores)


@ANY_ENDING
@pytest.mark.parametrize(("approximation", "method"), [("nystroem", "kernel"), ("fourier", "search")])
def test_recourse_is_found_and_accepted(people, approximation, method):
    X, y, group = people
    model = EqualRecourseSVC(approximation=approximation, n_components=40, random_state=0)
    model.fit(X, y, sensitive_features=group)
    refused = X[model.decision_function(X) < 0][:8]
    found = find_recourse(model, refused)
    assert found.method == method
    assert (model.predict(np.asarray(found.counterfactuals)) == model.favorable_label_).all()


def test_a_nystroem_model_is_the_kernel_expansion_it_says_it_is(people):
    X, y, _ = people
    model = EqualRecourseSVC(approximation="nystroem", n_components=30, random_state=0).fit(X, y)
    assert model.support_vectors_.shape == (30, X.shape[1])
    np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
    K = rbf_kernel(model.support_vectors_, gamma=model._gamma)
    a = model.dual_coef_[0]
    assert np.sqrt(a @ K @ a) == pytest.approx(model.weight_norm_, rel=1e-6)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_draw_is_that_of_the_random_state(people, approximation):
    X, y, _ = people
    fits = [
        EqualRecourseSVC(approximation=approximation, n_components=20, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    ]
    scores = [model.decision_function(X) for model in fits]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 1e-6


def test_sparse_features_give_the_same_approximation(people):
    X, y, _ = people
    model = EqualRecourseSVC(approximation="nystroem", n_components=20, random_state=0)
    dense = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.fit(sparse.csr_array(X), y).decision_function(X), dense, atol=1e-6)


def test_a_second_fit_leaves_nothing_of_the_first(people):
    X, y, _ = people
    model = EqualRecourseSVC(approximation="fourier", random_state=0).fit(X, y)
    assert not hasattr(model, "dual_coef_")
    model.set_params(approximation=None).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), EqualRecourseSVC().fit(X, y).decision_function(X))
    model.set_params(kernel="linear").fit(X, y)
    model.set_params(kernel="rbf", approximation="fourier").fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"approximation": "fourier", "kernel": "poly"}, "approximation='fourier' is for kernel='rbf', got kernel='po"),
        (
            {"approximation": "nystroem", "kernel": "linear"},
            "kernel='linear' does not need .* leave approximation at N",
        ),
    ],
)
def test_an_approximation_that_does_not_fit_the_kernel_is_refused(people, parameters, sentence):
    X, y, _ = people
    with pytest.raises(ValueError, match=sentence):
        EqualRecourseSVC(**parameters).fit(X, y)


def test_many_people_have_a_kernel_matrix_in_single_precision(people, monkeypatch):
    X, y, group = people
    settings = {"max_rounds": 1, "round_options": {"on_cycle": "stop", "balance_tol": 1e9}, "tol": 1e-5}
    double = EqualRecourseSVC(**settings).fit(X, y, sensitive_features=group)
    monkeypatch.setattr(_kernel_problem, "_DOUBLE_PRECISION", 10)
    single = EqualRecourseSVC(**settings).fit(X, y, sensitive_features=group)
    assert EqualRecourseSVC()._open(X, y, None, None).K.dtype == np.float32
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-4)
    assert single.rounds_["balance_residual"].iloc[-1] <= 1e-6


def test_a_kernel_matrix_that_does_not_fit_is_refused_with_a_way_out(people, monkeypatch):
    X, y, _ = people
    monkeypatch.setattr(_kernel_problem, "available_bytes", lambda: 8 * 300 * 300)
    with pytest.raises(ValueError, match=r"300 people takes 0\.0 GiB, .*; use EqualRecourseLinear, or approximation="):
        EqualRecourseSVC().fit(X, y)
    EqualRecourseSVC(approximation="nystroem", n_components=10, random_state=0).fit(X, y)  # the way out


def test_memory_is_what_the_machine_or_its_container_leaves(tmp_path, monkeypatch):
    assert 2**20 < _memory.available_bytes() < 2**50
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  100 kB\nMemAvailable:   64 kB\n")
    monkeypatch.setattr(_memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(_memory, "_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(_memory, "_USED", tmp_path / "used")
    assert _memory.available_bytes() == 64 * 1024
    (tmp_path / "limit").write_text("max\n")
    (tmp_path / "used").write_text("5000\n")
    assert _memory.available_bytes() == 64 * 1024
    (tmp_path / "limit").write_text("6000\n")
    assert _memory.available_bytes() == 1000
    monkeypatch.setattr(_memory, "_MEMINFO", tmp_path / "nowhere")
    (tmp_path / "limit").write_text("max\n")
    assert 2**20 < _memory.available_bytes() < 2**50


@ANY_ENDING
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"recourse_penalty": 0.5},
        {"recourse_penalty": 0.5, "penalty": "squared"},
        {"difference_bound": 0.05},
        {"normalize": "group"},
        {"kernel": "linear"},
        {"approximation": "nystroem", "random_state": 0},
    ],
    ids=str,
)
def test_the_duality_gap_is_small_and_shrinks_with_the_tolerance(people, parameters):
    X, y, group = people
    fine = EqualRecourseSVC(tol=1e-8, max_rounds=1, round_options={"on_cycle": "stop"}, **parameters).fit(
        X, y, sensitive_features=group
    )
    assert 0 <= fine.dual_gap_ <= 1e-6


def test_the_duality_gap_tells_a_solver_that_was_stopped(people):
    X, y, _ = people
    with pytest.warns(ConvergenceWarning, match="stopped after 20 steps"):
        stopped = EqualRecourseSVC(max_iter=20, C=10).fit(X, y)
    finished = EqualRecourseSVC(C=10, tol=1e-8).fit(X, y)
    assert stopped.dual_gap_ > 0.01
    # The gap bounds the distance of the objective from its minimum, which LIBSVM finds too.
    assert stopped.objective_ * (1 - stopped.dual_gap_) <= finished.objective_ <= stopped.objective_
    theirs = SVC(C=10, tol=1e-6).fit(X, y)
    a = theirs.dual_coef_[0]
    value = np.abs(a).sum() - 0.5 * a @ rbf_kernel(theirs.support_vectors_, gamma=theirs._gamma) @ a
    assert finished.objective_ == pytest.approx(value, rel=1e-5)


@ANY_ENDING
@pytest.mark.parametrize(
    "settings",
    [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}, {"approximation": "nystroem"}],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_the_kernel_matrix_is_given_back_at_once(people, settings, monkeypatch):
    """Without waiting for the garbage collector: a path of fits would hold several matrices at a time."""
    made = []
    begin = _kernel_problem.KernelProblem.__init__

    def note(self, *given, **named):
        begin(self, *given, **named)
        made.append(weakref.ref(self))

    monkeypatch.setattr(_kernel_problem.KernelProblem, "__init__", note)
    X, y, group = people
    gc.disable()
    try:
        EqualRecourseSVC(random_state=0, **settings).fit(X, y, sensitive_features=group)
        assert made
        assert all(problem() is None for problem in made)
    finally:
        gc.enable()
