"""The frontier is a cross-validation that a loop by hand repeats, and its pick keeps to its budget."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import EqualRecourseLinear, EqualRecourseSVC, recourse_frontier
from equirecourse.datasets import load_credit
from equirecourse.equalizers import Frontier, _frontier
from equirecourse.exceptions import ConvergenceWarning, UndefinedRecourseWarning

MODEL = EqualRecourseSVC(kernel="linear", max_rounds=2)
GRID = {"recourse_penalty": [1.0, np.inf]}
FAST = {"cv": 3, "n_boot": 20, "n_permutations": 20, "random_state": 0}


@pytest.fixture(scope="module")
def people(make_people):
    return make_people(150, seed=1)


@pytest.fixture(scope="module")
def frontier(people):
    X, y, group = people
    return recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, **FAST)


def test_every_number_is_that_of_a_loop_over_held_out_folds(people, frontier):
    X, y, group = people
    settings = [
        {"recourse_penalty": 0.0, "difference_bound": None},
        {"recourse_penalty": 1.0},
        {"recourse_penalty": np.inf},
    ]
    assert list(frontier.parameters) == settings
    for setting, (_, row) in zip(settings, frontier.table.iterrows(), strict=True):
        gaps, accuracies, balanced, acceptances, means, fewest, converged = ([] for _ in range(7))
        for train, test in StratifiedKFold(3).split(X, y):
            model = clone(MODEL).set_params(**setting)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", category=ConvergenceWarning)
                model.fit(X[train], y[train], sensitive_features=group[train])
            scores = model.decision_function(X[test])
            rejected, costs = scores <= 0, np.abs(scores) / np.linalg.norm(model.coef_)
            by_group = [costs[rejected & (group[test] == g)] for g in (0, 1)]
            gaps.append(abs(by_group[1].mean() - by_group[0].mean()))
            means.append(costs[rejected].mean())
            accuracies.append(model.score(X[test], y[test]))
            balanced.append(balanced_accuracy_score(y[test], model.predict(X[test])))
            acceptances.append(1 - rejected.mean())
            fewest.append(min(map(len, by_group)))
            converged.append(model.converged_)
        assert row["gap"] == pytest.approx(np.mean(gaps))
        assert row["mean_cost"] == pytest.approx(np.mean(means))
        assert row["accuracy"] == pytest.approx(np.mean(accuracies))
        assert row["balanced_accuracy"] == pytest.approx(np.mean(balanced))
        assert row["acceptance"] == pytest.approx(np.mean(acceptances))
        assert row["rejected"] == min(fewest)
        assert row["converged"] == pytest.approx(np.mean(converged))
        assert row["gap_low"] <= row["gap"] <= row["gap_high"]
        assert row["noise_floor"] > 0


def test_the_same_seed_gives_the_same_table(people, frontier):
    X, y, group = people
    again = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, **FAST)
    pd.testing.assert_frame_equal(again.table, frontier.table)
    other = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, **{**FAST, "random_state": 1})
    assert not other.table["noise_floor"].equals(frontier.table["noise_floor"])
    assert other.table["gap"].equals(frontier.table["gap"])


def test_two_processes_give_the_table_of_one(people, frontier):
    X, y, group = people
    parallel = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, n_jobs=2, **FAST)
    pd.testing.assert_frame_equal(parallel.table, frontier.table)


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "list"])
def test_groups_and_people_of_any_kind_give_the_same_table(kind, people, frontier):
    X, y, group = people
    names = ["a", "b", "c"]
    X, y, group = {
        "mapping": (X, y, {"sex": group}),
        "pandas": (pd.DataFrame(X, columns=names), pd.Series(y), pd.Series(group, index=np.arange(len(y))[::-1])),
        "polars": (pl.DataFrame(X, schema=names), pl.Series(y), pl.Series("sex", group)),
        "list": (X.tolist(), y.tolist(), group.tolist()),
    }[kind]
    other = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, **FAST)
    pd.testing.assert_frame_equal(other.table, frontier.table, rtol=1e-6)


def test_the_default_path_goes_from_the_plain_model_to_hard_equality(people):
    X, y, group = people
    for estimator in (
        MODEL,
        clone(MODEL).set_params(difference_bound=0.1),
        make_pipeline(
            StandardScaler(),
            EqualRecourseLinear(LogisticRegression(solver="newton-cholesky"), objective="paper", max_rounds=1),
        ),
    ):
        table = recourse_frontier(estimator, X, y, sensitive_features=group, **{**FAST, "cv": 2}).table
        penalties = table["recourse_penalty"].to_numpy()
        assert penalties[0] == 0
        assert penalties[-1] == np.inf
        assert np.all(np.diff(penalties[:-1]) > 0)
        assert len(table) == 8
        assert set(table["penalty"][1:7]) == {"squared"}


def test_a_frontier_does_not_depend_on_metadata_routing(people, frontier):
    X, y, group = people
    with sklearn.config_context(enable_metadata_routing=True):
        routed = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, **FAST)
    pd.testing.assert_frame_equal(routed.table, frontier.table)


def test_labels_may_be_words(people, frontier):
    X, y, group = people
    named = recourse_frontier(
        clone(MODEL).set_params(favorable_label="approved"),
        X,
        np.where(y > 0, "approved", "refused"),
        sensitive_features=group,
        param_grid=GRID,
        cv=list(StratifiedKFold(3).split(X, y)),
        n_boot=20,
        n_permutations=20,
        random_state=0,
    )
    pd.testing.assert_frame_equal(named.table, frontier.table, rtol=1e-3)


def made(gaps, accuracies):
    table = pd.DataFrame(
        {
            "gap": gaps,
            "noise_floor": 0.05,
            "relative_gap": np.array(gaps, dtype=float),
            "accuracy": accuracies,
            "acceptance": 0.5,
        }
    )
    parameters = tuple({"recourse_penalty": float(k)} for k in range(len(gaps)))
    return Frontier(table, parameters, EqualRecourseSVC(), "input")


def test_the_pick_is_the_smallest_gap_within_the_budget():
    frontier = made([0.4, 0.3, 0.1, 0.0], [0.80, 0.80, 0.79, 0.70])
    assert frontier.pick(0.0) == 1
    assert frontier.pick() == 2
    assert frontier.pick(0.05) == 2
    assert frontier.pick(0.1) == 3
    assert frontier.best_estimator(0.1).recourse_penalty == 3.0
    assert not hasattr(frontier.best_estimator(), "classes_")


def test_nothing_is_picked_when_nothing_helps():
    assert made([0.1, 0.2, 0.3], [0.8, 0.9, 0.9]).pick() == 0
    assert made([0.1, 0.0], [0.8, 0.5]).pick() == 0
    assert made([np.nan, np.nan], [0.8, 0.8]).pick() == 0
    assert made([0.2, np.nan, 0.1], [0.8, 0.8, 0.8]).pick() == 2


def test_the_summary_states_both_sides_of_the_trade():
    text = made([0.4, 0.1], [0.80, 0.795]).summary()
    assert text == (
        "Within 1 point of accuracy the held-out gap falls from 0.400 to 0.100 (noise floor 0.050; relative to the "
        "mean cost, 0.400 to 0.100), accuracy goes from 0.800 to 0.795 and acceptance from 0.500 to 0.500."
    )
    nothing = made([0.1, 0.2], [0.8, 0.8]).summary(0.02)
    assert nothing.startswith("No setting within 2 points of accuracy has a smaller held-out gap than the plain model")
    assert "gap 0.100, noise floor 0.050, accuracy 0.800" in nothing


@pytest.mark.parametrize("budget", [-0.1, 1.5, np.nan])
def test_a_budget_is_a_share(budget):
    with pytest.raises(ValueError, match=r"accuracy_budget must be between 0 and 1, got .*; 0.01 is one point"):
        made([0.1], [0.8]).pick(budget)


def test_only_an_equalizer_has_a_frontier(people):
    X, y, group = people
    for estimator in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        with pytest.raises(ValueError, match=r"varies an EqualRecourseSVC or .*; got LogisticRegression\."):
            recourse_frontier(estimator, X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="1 group"):
        recourse_frontier(MODEL, X, y, sensitive_features=np.zeros(len(y)))


def test_a_placebo_leaves_the_gap_where_it_is():
    credit = load_credit(paper=True)
    frontier = recourse_frontier(
        make_pipeline(
            StandardScaler(), EqualRecourseLinear(LogisticRegression(class_weight="balanced"), objective="paper")
        ),
        credit.data[:5000],
        credit.target[:5000],
        sensitive_features=credit.sensitive_features["graduate"][:5000],
        param_grid={"equalrecourselinear__recourse_penalty": [np.inf]},
        placebo=True,
        n_boot=20,
        n_permutations=20,
        random_state=0,
    )
    plain, equal = frontier.table["gap"]
    assert equal < 0.5 * plain < frontier.placebo["gap"]
    assert frontier.placebo["gap"] != plain


@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.ConvergenceWarning")
def test_settings_of_any_order_and_kind_keep_their_rows(people):
    """Settings that share their work, twice the same among them, give the rows they would give alone."""
    X, y, group = people
    grid = [
        {"recourse_penalty": [5.0, 0.5, 0.5]},
        {"recourse_penalty": [np.inf], "round_options": [None, {"memory": 2}]},
        {"C": [0.1]},
        {"difference_bound": [0.2]},
    ]
    together = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=grid, **FAST)
    assert together.parameters[1:4] == ({"recourse_penalty": 5.0}, {"recourse_penalty": 0.5}, {"recourse_penalty": 0.5})
    assert len(together.table) == 8
    for setting, (_, row) in zip(together.parameters[1:], together.table.iloc[1:].iterrows(), strict=True):
        one = {name: [value] for name, value in setting.items()}
        alone = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=one, **FAST).table.iloc[1]
        for name in ("gap", "accuracy", "mean_cost", "acceptance"):
            assert row[name] == pytest.approx(alone[name], abs=1e-6), (setting, name)


@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.ConvergenceWarning")
def test_folds_without_rejected_people_are_told_of_once(make_people):
    """Few of a group are rejected, and many folds: one sentence for all folds and settings, with the group's name."""
    X, y, group = make_people(200, seed=3)
    names = np.where((group == 1) & (np.arange(200) % 4 == 1), "few", "many")
    rejects_some = EqualRecourseSVC(kernel="linear", min_rejected=1)
    with pytest.warns(UndefinedRecourseWarning) as caught:
        frontier = recourse_frontier(
            rejects_some,
            X,
            y,
            sensitive_features=names,
            param_grid={"recourse_penalty": [1.0, 2.0]},
            **{**FAST, "cv": 15},
        )
    assert len(caught) == 1
    assert "nobody of group 'few' is rejected in fold" in str(caught[0].message)
    assert "3 of 3 settings" in str(caught[0].message)
    assert "use fewer folds" in str(caught[0].message)
    assert frontier.table["gap"].isna().all()


def test_a_fold_of_one_group_is_refused_before_anything_is_fitted(make_people, monkeypatch):
    X, y, _ = make_people(60)
    names = np.where(np.arange(60) < 4, "few", "many")
    monkeypatch.setattr(EqualRecourseSVC, "fit_path", None)
    with pytest.raises(
        ValueError, match=r"Fold 2 of 5 holds out people of group 'many' only, and a gap needs two"
    ) as told:
        recourse_frontier(MODEL, X, y, sensitive_features=names, param_grid=GRID, **{**FAST, "cv": 5})
    assert "use fewer folds" in str(told.value)


@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.ConvergenceWarning")
def test_a_placebo_without_a_gap_is_told_of_too(make_people, monkeypatch):
    """Shuffled groups may leave a fold without a gap where the groups themselves do not."""
    X, y, group = make_people(120, seed=4)
    tell = []
    monkeypatch.setattr(_frontier, "warn_of_undefined", lambda gaps, folds, groups: tell.append((gaps, len(folds))))
    found = recourse_frontier(MODEL, X, y, sensitive_features=group, param_grid=GRID, placebo=True, **FAST)
    ((gaps, folds),) = tell
    assert gaps == [*found.table["gap"], found.placebo["gap"]]
    assert folds == 4
