"""Among many people the rounds begin with what a part of them says; where they end is the same kind of place."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.equalizers import _head_start, _rounds
from equirecourse.equalizers._rounds import look
from equirecourse.solvers import _linear_svm, one_in_eight

MODELS = {
    "hinge": EqualRecourseLinear(LinearSVC(loss="hinge", C=0.01), objective="paper"),
    "squared hinge": EqualRecourseLinear(LinearSVC(C=0.01), objective="paper"),
    "svm": EqualRecourseSVC(kernel="linear", C=0.01),
    "svm with costs": EqualRecourseSVC(kernel="linear", C=0.01, feature_costs=[1.0, 0.5, 2.0]),
    "nystroem": EqualRecourseSVC(approximation="nystroem", n_components=20, random_state=0),
}


@pytest.fixture(scope="module")
def crowd(make_people):
    return make_people(8000, seed=3)


@pytest.fixture
def begun(monkeypatch):
    """Everything from 2,000 people on is a crowd; a list of the guesses that were made."""
    monkeypatch.setattr(_rounds, "MANY_PEOPLE", 2000)
    monkeypatch.setattr(_head_start, "MANY_PEOPLE", 2000)
    guesses, original = [], _head_start.head_start

    def noted(*given):
        guesses.append(original(*given))
        return guesses[-1]

    monkeypatch.setattr("equirecourse.equalizers._base.head_start", noted)
    return guesses


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_the_rounds_end_with_no_gap_as_ever(crowd, begun, model):
    X, y, group = crowd
    model.fit(X, y, sensitive_features=group)
    assert len(begun) == 1
    assert model.rounds_.query("chosen")["relative_gap"].item() <= model.balance_tol < model.rounds_["relative_gap"][0]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_the_model_of_a_part_says_of_everybody_what_it_says_of_the_part(crowd, model):
    X, y, group = crowd
    problem = clone(model)._open(X, y, group, None)
    rows = one_in_eight(len(y))
    part = problem.part(rows, 8.0)
    plain = part.fit(None)
    seen = look(model._setting(part.data), 0, "plain", plain, None, None)
    for fit in (plain, part.fit(seen.own)):
        carried = problem.carry_over(fit, part)
        np.testing.assert_allclose(carried.scores[rows], fit.scores, atol=1e-9)
        np.testing.assert_allclose(carried.balance_scores[rows], fit.balance_scores, atol=1e-9)
        assert carried.norm == fit.norm
    # Whoever counts for eight weighs as much as eight people: the part's problem is that of eight copies of it.
    np.testing.assert_allclose(part.data.sample_weight.sum(), len(y))


def test_the_solver_begins_where_the_part_ended(crowd, begun, monkeypatch):
    X, y, group = crowd
    monkeypatch.setattr(_linear_svm, "_SMALL", 500)
    model, expected = clone(MODELS["hinge"]), []
    original = _linear_svm.LinearSVM.expect
    monkeypatch.setattr(
        _linear_svm.LinearSVM, "expect", lambda self, part: (original(self, part), expected.append(self._expected))
    )
    model.fit(X, y, sensitive_features=group)
    assert expected[0] is not None
    # However it began, this is the optimum.
    assert model.dual_gap_ <= 1e-6


def test_the_first_round_is_that_of_somebody_who_knew_the_guess(crowd, begun):
    X, y, group = crowd
    model = EqualRecourseLinear(LinearSVC(loss="hinge", C=0.01), objective="paper", max_rounds=1, on_cycle="stop")
    with pytest.warns(match="max_rounds=1"):
        model.fit(X, y, sensitive_features=group)
    (guess,) = begun
    scores = model.decision_function(X)
    differences = guess.own.weights.T @ scores
    assert abs(differences[0]) < 1e-8 * np.abs(scores).max()


@pytest.mark.parametrize(
    ("learner", "spoil"),
    [
        (LogisticRegression(), lambda y, group: (y, group)),
        (LinearSVC(loss="hinge"), lambda y, group: (y, np.where(np.arange(len(y)) < 3, "few", group.astype(str)))),
    ],
    ids=["not an exact solver", "a group that is hardly there"],
)
def test_a_part_that_cannot_tell_is_no_obstacle(crowd, begun, learner, spoil):
    X, y, group = crowd
    y, group = spoil(y, group)
    model = EqualRecourseLinear(learner, objective="paper", min_rejected=1)
    with np.errstate(all="ignore"):
        model.fit(X, y, sensitive_features=group)
    assert len(begun) == 1
    assert len(model.rounds_) > 1


def test_the_papers_loop_begins_with_the_plain_model(crowd, begun):
    X, y, group = crowd
    model = EqualRecourseLinear(LinearSVC(loss="hinge", C=0.01), objective="paper", on_cycle="last", max_rounds=1)
    with pytest.warns(match="max_rounds=1"):
        model.fit(X, y, sensitive_features=group)
    assert begun == [None]
