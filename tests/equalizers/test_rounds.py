"""The rounds over the rejected set: how they end, which one is kept, and what they report."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse._validation import check_groups
from equirecourse.equalizers._rounds import Setting, run_rounds
from equirecourse.exceptions import ConvergenceWarning, UndefinedRecourseWarning

COLUMNS = [
    "kind",
    "gap",
    "functional_gap",
    "mean_distance",
    "relative_gap",
    "balance_residual",
    "stiffness",
    "changed",
    "accuracy",
    "acceptance",
    "rejected (0)",
    "rejected (1)",
    "chosen",
]


@dataclass(frozen=True)
class Scores:
    """A fit that is nothing but its scores."""

    scores: np.ndarray
    norm: float = 2.0
    stiffness: float = np.inf

    @property
    def balance_scores(self):
        return self.scores

    @property
    def differences(self):
        return np.zeros(1)


GROUP = np.array([0, 0, 0, 1, 1, 1])
Y = np.array([-1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
# Three models: whom they reject differs, and so does the gap among those.
FIRST = np.array([-1.0, -1.0, 1.0, -2.0, -2.0, 1.0])  # rejects 0 1 3 4, gap 1.0
SECOND = np.array([-1.0, -1.0, -1.0, -1.2, -1.2, 1.0])  # rejects 0 1 2 3 4, gap 0.2
THIRD = np.array([-1.0, -1.0, 1.0, -0.5, -0.5, -0.5])  # rejects 0 1 3 4 5, gap −0.5


def run(models, *, max_rounds=10, on_cycle="stop", hard=True, tol=1e-3, satisfied=lambda plain: False, **changes):
    """Rounds of a loop that goes through the given scores, whatever the contrasts."""
    queue = iter(models)
    given = []

    def fit_contrasts(contrasts):
        given.append(contrasts)
        return Scores(next(queue))

    setting = Setting(
        partitions=(check_groups(GROUP, 6),),
        y=Y,
        sample_weight=np.ones(6),
        **{"normalize": "rejected", "min_rejected": 1, "memory": 1, **changes},
    )
    rounds = run_rounds(
        fit_contrasts, setting, max_rounds=max_rounds, on_cycle=on_cycle, hard=hard, tol=tol, satisfied=satisfied
    )
    return rounds, given


def test_rounds_end_when_nobodys_decision_changes():
    rounds, given = run([FIRST, SECOND, SECOND * 2])
    assert rounds.converged
    assert rounds.ending == "nobody's decision changed"
    assert rounds.chosen.number == 2
    assert given[0] is None
    # Each round balances those whom the round before rejected.
    np.testing.assert_array_equal(np.any(given[1].weights != 0, axis=1), FIRST <= 0)
    np.testing.assert_array_equal(np.any(given[2].weights != 0, axis=1), SECOND <= 0)


def test_rounds_that_come_back_keep_the_smallest_relative_gap_and_say_so():
    with pytest.warns(ConvergenceWarning, match=r"came back to an earlier rejected set\); round 1 is kept.*0\.19"):
        rounds, _ = run([FIRST, SECOND, THIRD, FIRST])
    assert not rounds.converged
    assert len(rounds.history) == 4
    assert rounds.chosen.number == 1
    # Relative to the mean distance (1.08 / 2 for the second model), not absolute.
    assert rounds.chosen.summary["relative_gap"] == pytest.approx(0.2 / np.mean([1, 1, 1, 1.2, 1.2]))


def test_rounds_that_come_no_nearer_are_searched_between_at_once():
    balanced = np.array([-1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
    rounds, given = run([FIRST, SECOND, THIRD, balanced], on_cycle="mix")
    assert [one.summary["changed"] for one in rounds.history] == [0, 1, 2, 1]
    assert rounds.converged
    assert (rounds.chosen.number, rounds.chosen.kind) == (3, "between")
    assert "did not come nearer" in rounds.ending
    # On the line between the two rounds, nearer to the one with the smaller gap.
    share = 0.2 / (0.2 + 0.5)
    np.testing.assert_allclose(given[3].weights, (1 - share) * given[1].weights + share * given[2].weights)


def test_rounds_that_come_no_nearer_end_if_one_of_them_has_no_gap():
    balanced = np.array([-1.0, -1.0, -1.0, -1.0, -1.0, 1.0])
    rounds, given = run([FIRST, balanced, FIRST * [1, 1, 1, 1, -1, -1]], on_cycle="mix")
    assert len(given) == 3
    assert rounds.converged
    assert rounds.chosen.number == 1


def test_a_round_that_shrinks_all_distances_gains_nothing_by_it():
    """The gap of the third model is the smallest only because all of its distances are."""
    with pytest.warns(ConvergenceWarning, match="round 1 is kept"):
        rounds, _ = run([FIRST, SECOND, THIRD / 100, FIRST])
    assert rounds.history[2].gap < rounds.history[1].gap


def test_rounds_stop_at_their_limit():
    with pytest.warns(ConvergenceWarning, match=r"max_rounds=2 was reached"):
        rounds, given = run([FIRST, SECOND, THIRD], max_rounds=2)
    assert len(given) == 3
    assert not rounds.converged
    rounds, given = run([FIRST], max_rounds=0)
    assert (len(given), rounds.ending, rounds.converged) == (1, "max_rounds is 0", False)


def test_a_plain_model_that_satisfies_is_kept():
    rounds, given = run([FIRST], satisfied=lambda plain: plain.gap <= 0.5)
    assert len(given) == 1
    assert rounds.converged
    assert rounds.chosen.gap == pytest.approx(0.5)  # 1.0 in scores, over a norm of 2


def test_a_gap_below_the_tolerance_counts_as_zero_under_hard_equality_only():
    rounds, _ = run([FIRST, SECOND, THIRD, FIRST], tol=0.2)
    assert rounds.converged
    assert rounds.ending.startswith("the gap vanished in round 1")
    with pytest.warns(ConvergenceWarning):
        soft, _ = run([FIRST, SECOND, THIRD, FIRST], tol=0.2, hard=False)
    assert not soft.converged


def test_a_model_that_no_longer_rejects_a_group_is_never_kept():
    nobody = np.array([-1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.warns(ConvergenceWarning, match=r"a group has too few rejected people left\); round 1 is kept"):
        rounds, _ = run([FIRST, SECOND, nobody])
    assert np.isnan(rounds.history[2].gap)
    assert np.isnan(rounds.history[2].imbalance)


def test_memory_balances_the_people_of_several_rounds():
    with pytest.warns(ConvergenceWarning):
        _, given = run([FIRST, SECOND, THIRD, FIRST], memory=2, max_rounds=3)
    assert [len(contrasts) for contrasts in given[1:]] == [1, 2, 2]


def test_between_two_rounds_of_opposite_sign_lies_a_gap_of_zero(make_people):
    X, y, group = make_people(100, seed=1)
    with pytest.warns(ConvergenceWarning, match="came back to an earlier rejected set"):
        stopped = EqualRecourseSVC(round_options={"on_cycle": "stop"}).fit(X, y, sensitive_features=group)
    mixed = EqualRecourseSVC().fit(X, y, sensitive_features=group)
    assert mixed.converged_
    chosen = mixed.rounds_.query("chosen").iloc[0]
    assert chosen["kind"] == "between"
    assert chosen["relative_gap"] <= 1e-3 < stopped.rounds_.query("chosen")["relative_gap"].item()
    # The rounds before are the same ones.
    shared = mixed.rounds_.iloc[: len(stopped.rounds_)]
    assert shared["gap"].tolist() == stopped.rounds_["gap"].tolist()
    # And the claim is one about the model that is returned.
    distances = -mixed.decision_function(X) / mixed.weight_norm_
    means = [distances[(distances >= 0) & (group == g)].mean() for g in (0, 1)]
    assert abs(means[1] - means[0]) == pytest.approx(chosen["gap"], abs=1e-9)


def test_the_kept_round_has_the_smallest_relative_gap_when_none_converges(make_people):
    X, y, group = make_people(100, seed=7)
    for on_cycle in ("stop", "mix"):
        model = EqualRecourseSVC(round_options={"on_cycle": on_cycle})
        with pytest.warns(
            ConvergenceWarning,
            match="rounds_ has them all; a larger max_rounds, round_options={'memory': 2} or a finite",
        ):
            model.fit(X, y, sensitive_features=group)
        assert not model.converged_
        assert model.rounds_["chosen"].sum() == 1
        assert model.rounds_["relative_gap"].idxmin() == model.rounds_["chosen"].idxmax()


@pytest.mark.parametrize(
    "model",
    [
        EqualRecourseSVC(),
        EqualRecourseLinear(LogisticRegression()),
        EqualRecourseLinear(LogisticRegression(), objective="paper"),
    ],
    ids=["svc", "linear", "linear of the paper"],
)
def test_the_table_of_rounds_says_what_the_models_do(model, make_people, quietly):
    X, y, group = make_people(100, seed=3)
    model = quietly(model, X, y, sensitive_features=group)
    table = model.rounds_
    assert table.columns.tolist() == COLUMNS
    assert table.index.tolist() == list(range(len(table)))
    assert table.index.name == "round"
    assert table["kind"].tolist()[0] == "plain"
    row, scores = table.query("chosen").iloc[0], model.decision_function(X)
    rejected, distances = scores <= 0, -scores / model.weight_norm_
    means = [distances[rejected & (group == g)].mean() for g in (0, 1)]
    assert row["gap"] == pytest.approx(abs(means[1] - means[0]), abs=1e-12)
    assert row["functional_gap"] == pytest.approx(row["gap"] * model.weight_norm_)
    assert row["mean_distance"] == pytest.approx(distances[rejected].mean())
    assert row["relative_gap"] == pytest.approx(row["gap"] / row["mean_distance"])
    assert row["accuracy"] == pytest.approx(model.score(X, y))
    assert row["acceptance"] == pytest.approx(1 - rejected.mean())
    assert [row["rejected (0)"], row["rejected (1)"]] == [(rejected & (group == g)).sum() for g in (0, 1)]


@pytest.mark.parametrize("model", [EqualRecourseSVC, EqualRecourseLinear])
def test_every_column_of_the_rounds_is_documented(model):
    for column in COLUMNS:
        assert f"``{column.replace('(0)', '(group)').replace('(1)', '(group)')}``" in model.__doc__


def test_the_first_row_is_the_plain_model(make_people, quietly):
    X, y, group = make_people(100, seed=3)
    row = quietly(EqualRecourseSVC(), X, y, sensitive_features=group).rounds_.iloc[0]
    plain = SVC(tol=1e-8).fit(X, y)
    assert row["accuracy"] == plain.score(X, y)
    assert row["acceptance"] == np.mean(plain.predict(X) == 1)
    assert row["stiffness"] == 0
    assert np.isnan(row["balance_residual"])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_hard_equality_leaves_no_difference_at_a_converged_rounds_rejected_set(kernel, make_people, quietly):
    converged = 0
    for seed in range(6):
        X, y, group = make_people(100, seed=seed)
        model = quietly(EqualRecourseSVC(kernel=kernel, degree=2), X, y, sensitive_features=group)
        if model.ending_ != "nobody's decision changed":
            continue
        converged += 1
        scores = model.decision_function(X)
        means = [scores[(scores <= 0) & (group == g)].mean() for g in (0, 1)]
        assert abs(means[1] - means[0]) < 1e-8
    assert converged >= 2


def test_a_bound_that_the_plain_model_satisfies_needs_no_round(make_people):
    X, y, group = make_people(100, seed=3)
    plain = EqualRecourseSVC(recourse_penalty=0.0).fit(X, y, sensitive_features=group)
    bound = plain.rounds_["gap"].item() * 1.01
    model = EqualRecourseSVC(difference_bound=bound).fit(X, y, sensitive_features=group)
    assert len(model.rounds_) == 1
    assert model.ending_ == "the plain model is all that was asked for"
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_a_converged_bound_holds_among_the_people_that_are_rejected(make_people, quietly):
    converged = 0
    for seed in range(6):
        X, y, group = make_people(100, seed=seed)
        plain = EqualRecourseSVC(recourse_penalty=0.0).fit(X, y, sensitive_features=group)
        bound = plain.rounds_["gap"].item() / 2
        model = quietly(EqualRecourseSVC(difference_bound=bound), X, y, sensitive_features=group)
        if model.converged_:
            converged += 1
            assert model.rounds_.query("chosen")["gap"].item() <= bound + 1e-9
    assert converged >= 2


def test_a_solver_that_runs_out_of_steps_says_so(make_people):
    X, y, _ = make_people(100, seed=3)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 3 steps \(max_iter=3\) .* violation of .*; scale"):
        EqualRecourseSVC(max_iter=3).fit(X, y)


def test_without_a_penalty_few_rejected_people_are_no_obstacle_and_an_undefined_gap_is_nan(make_people):
    X, y, _ = make_people(60, seed=3)
    accepted = np.flatnonzero(EqualRecourseSVC().fit(X, y).predict(X) > 0)
    group = np.where(np.arange(60) == accepted[0], "one accepted person", "others")
    with pytest.warns(UndefinedRecourseWarning, match="group 'one accepted person' has 0 rejected people in 1"):
        model = EqualRecourseSVC(recourse_penalty=0.0).fit(X, y, sensitive_features=group)
    assert np.isnan(model.rounds_["gap"].item())
    np.testing.assert_array_equal(model.predict(X), EqualRecourseSVC().fit(X, y).predict(X))


def test_a_bound_is_kept_by_a_round_even_if_the_rounds_never_end(make_people, quietly):
    kept = 0
    for seed in range(8):
        X, y, group = make_people(100, seed=seed)
        plain = EqualRecourseSVC(recourse_penalty=0.0).fit(X, y, sensitive_features=group).rounds_["gap"].item()
        model = quietly(EqualRecourseSVC(difference_bound=plain / 3), X, y, sensitive_features=group)
        within = model.rounds_["gap"] <= plain / 3
        assert model.converged_ or not within.any()
        if model.ending_.startswith("round"):
            kept += 1
            assert model.rounds_.loc[model.rounds_["chosen"], "gap"].item() <= plain / 3
    assert kept > 0


def people_in_a_plane(seed, whole=True):
    """Two features, of whole numbers if many are to lie on the very boundary."""
    rng = np.random.default_rng(seed)
    group = np.arange(80) % 2
    X = rng.integers(-3, 4, size=(80, 2)).astype(float) if whole else rng.normal(size=(80, 2))
    X[:, 0] -= 0.6 * group
    score = X.sum(axis=1) + 0.7 * rng.normal(size=80)
    return X, np.where(score > np.median(score), 1, -1), group


@pytest.mark.parametrize(
    "model",
    [EqualRecourseSVC(kernel="linear"), EqualRecourseLinear(LogisticRegression(), objective="paper")],
    ids=["svc", "linear"],
)
def test_a_constant_has_not_converged_and_says_the_way_out(model):
    # Four groups are three differences, and two features have no direction without all of them.
    X, y, _ = people_in_a_plane(24)
    group = np.arange(len(y)) % 4
    model = clone(model).set_params(min_rejected=1)
    with pytest.warns(ConvergenceWarning, match=r"is a constant: .*a finite recourse_penalty, or more features"):
        model.fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
    assert not model.converged_
    assert model.ending_ == "no direction is left in which the groups are balanced"


@pytest.mark.parametrize("favorable", [1, -1])
def test_the_rounds_and_predict_agree_about_people_on_the_boundary(quietly, favorable):
    for seed in range(25):
        X, y, group = people_in_a_plane(seed)
        model = EqualRecourseSVC(kernel="linear", min_rejected=1, favorable_label=favorable, max_rounds=5)
        try:
            quietly(model, X, y, sensitive_features=group)
        except ValueError:  # too few rejected people: another claim
            continue
        accepted = model.predict(X) == favorable
        row = model.rounds_.query("chosen").iloc[0]
        assert row["acceptance"] == pytest.approx(accepted.mean())
        assert [row["rejected (0)"], row["rejected (1)"]] == [int((~accepted)[group == k].sum()) for k in (0, 1)]
        assert row["accuracy"] == pytest.approx((model.predict(X) == y).mean())
