"""An audit says what the numbers say: verdicts that hold, numbers that can be recomputed, nobody lost."""

import json
import warnings

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse import (
    ActionSet,
    RecourseFrame,
    audit,
    audit_partitions,
    audit_schema,
    find_recourse,
    read_audit,
    recourse_frontier,
)
from equirecourse._audit._build import holm
from equirecourse.actions import Feature
from equirecourse.equalizers import EqualRecourseLinear
from equirecourse.exceptions import NoRecourseWarning, UndefinedRecourseWarning


def make_people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"income": rng.normal(30, 8, n), "debts": rng.integers(0, 8, n), "age": rng.integers(20, 70, n)})
    X["job"] = pd.Categorical(rng.choice(["clerk", "nurse", "smith"], n))
    score = X.income / 8 - X.debts / 2 + (X.job == "nurse")
    y = np.where(score + rng.normal(size=n) > score.median(), "yes", "no")
    groups = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "region": rng.choice(["north", "south", "west"], n)})
    return X, y, groups


def fitted(X, y, final=None):
    steps = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    return make_pipeline(steps, LogisticRegression() if final is None else final).fit(X, y)


@pytest.fixture(scope="module")
def audited():
    X, y, groups = make_people()
    model = fitted(X, y)
    actions = ActionSet.from_frame(X, immutable=["age"])
    return audit(model, X, y, sensitive_features=groups, actions=actions, n_flipsets=4), model, X, y, groups, actions


def test_the_document_keeps_to_its_schema_and_is_json(audited, tmp_path):
    found, *_ = audited
    jsonschema.Draft202012Validator.check_schema(audit_schema())
    jsonschema.validate(found.document, audit_schema())
    found.to_json(tmp_path / "audit.json")
    assert read_audit(tmp_path / "audit.json") == found.document
    assert json.loads(json.dumps(found.document)) == found.document


def test_every_number_can_be_recomputed(audited):
    found, model, X, y, groups, actions = audited
    recourse = find_recourse(model, X, actions=actions, norm="l1", favorable_label="yes")
    for section in found.document["attributes"]:
        frame = RecourseFrame(
            costs=recourse.costs,
            rejected=recourse.rejected,
            sensitive_features=groups[[section["name"]]],
            random_state=0,
        )
        expected = frame.to_dict()
        for key in ("gap", "interval", "noise_floor", "p_value", "relative_gap", "overall", "difference"):
            assert section[key] == expected[key], key
        right = model.predict(X) == y
        for row, numbers in zip(section["by_group"], expected["by_group"], strict=True):
            assert {key: row[key] for key in numbers} == numbers
            assert row["accuracy"] == pytest.approx(right[groups[section["name"]] == row["name"]].mean())
            members = recourse.rejected & (groups[section["name"]] == row["name"]).to_numpy()
            np.testing.assert_allclose(row["curve"][50], np.median(recourse.costs[members]))
            # What the features add makes up the mean.
            assert sum(row["contributions"].values()) == pytest.approx(row["mean"])
        far, near = (pick(section["by_group"], key=lambda row: row["mean"]) for pick in (max, min))
        total = sum(part["difference"] for part in section["contributions"])
        assert total == pytest.approx(far["mean"] - near["mean"]) == pytest.approx(section["gap"])
    assert found.document["model"]["accuracy"] == pytest.approx((model.predict(X) == y).mean())
    assert found.people["cost"].to_numpy() == pytest.approx(recourse.costs)
    assert found.document["counts"]["rejected"] == recourse.rejected.sum()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "max_shift", "log_shift"])
def test_features_make_up_the_cost_in_every_norm(norm):
    X, y, groups = make_people(200)
    found = audit(fitted(X, y), X, sensitive_features=groups[["sex"]], norm=norm, n_flipsets=0)
    for row in found.document["attributes"][0]["by_group"]:
        assert sum(row["contributions"].values()) == pytest.approx(row["mean"])


def test_ways_of_people_are_accepted_and_those_in_the_sample_have_several(audited):
    found, model, X, *_ = audited
    ways = found.document["flipsets"]
    assert len(ways["sample"]) == 4
    assert any(len(ways["by_person"][str(i)]) > 1 for i in ways["sample"])
    rejected = np.flatnonzero(model.predict(X) == "no")
    assert {int(i) for i in ways["by_person"]} == set(rejected.tolist())
    for i in rejected[:40]:
        for way in ways["by_person"][str(i)]:
            after = X.iloc[[i]].copy()
            for change in way["changes"]:
                after[change["feature"]] = pd.Series([change["to"]], index=after.index).astype(
                    X[change["feature"]].dtype if change["feature"] == "job" else float
                )
            assert model.predict(after)[0] == "yes"


def test_nothing_is_found_where_there_is_nothing_and_a_planted_gap_is():
    # At a level of 5 % some 285 of 300 are quiet; a hundred seeds alone would be a matter of luck (their spread is ±2).
    # Whole audits of a hundred say what their frames say; of the others only the frame is asked, which is quicker.
    quiet, loud = 0, 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
        y = (X.a + X.b + rng.normal(size=400) > 0).astype(int)
        model = LogisticRegression().fit(X, y)
        actions = ActionSet.free(X)
        n = 200 if seed < 100 else 100
        coin = pd.DataFrame({"group": rng.permutation(np.repeat(["u", "v"], 200))})
        draws = {"n_boot": n, "n_permutations": n}
        costs = find_recourse(model, X, actions=actions, norm="l1")
        frame = RecourseFrame(
            costs=costs.costs, rejected=costs.rejected, sensitive_features=coin, random_state=0, **draws
        )
        sentence = frame.judge(unit="units of cost").sentence
        quiet += sentence.startswith("no detectable gap")
        if seed >= 100:
            continue
        settings = {"actions": actions, "n_flipsets": 0, **draws}
        found = audit(model, X, sensitive_features=coin, **settings)
        assert found.verdicts["group"] == sentence
        # Three floors: the rejected of one group are moved away from the boundary until the means are that far apart.
        means = found.frames["group"].by_group["mean"]
        wanted = 3 * found.document["attributes"][0]["noise_floor"] + means["v"] - means["u"]
        slopes = model.coef_[0]
        reach = np.max(np.abs(slopes) / [feature.cost for feature in actions])  # L1: the best feature pays for a score
        members = (coin.group == "u").to_numpy() & (model.decision_function(X) <= 0)
        moved = X.copy()
        moved.loc[members] -= wanted * reach * slopes / (slopes @ slopes)
        again = audit(model, moved, sensitive_features=coin, **settings)
        loud += again.document["attributes"][0]["state"] == "gap"
    assert quiet >= 0.93 * 300
    assert loud >= 95


def test_p_values_are_corrected_as_p_adjust_of_r_does():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.2, 0.001]), [0.04, 0.09, 0.09, 0.2, 0.005])
    assert np.isnan(holm([0.02, float("nan")])[1])
    assert holm([0.02, float("nan")])[0] == 0.02


def test_before_and_after_of_the_same_people():
    X, y, groups = make_people(1500)
    numbers = X[["income", "debts", "age"]]
    numbers = numbers.assign(income=numbers.income * np.where(groups.sex == "f", 1.6, 1.0))
    learner = make_pipeline(StandardScaler(), EqualRecourseLinear(LogisticRegression(), objective="paper"))
    name = "equalrecourselinear__sensitive_features"
    plain = learner.set_params(equalrecourselinear__recourse_penalty=0.0).fit(numbers, y, **{name: groups.sex})
    before = audit(plain, numbers, y, sensitive_features=groups[["sex"]], n_flipsets=0)
    learner.set_params(equalrecourselinear__recourse_penalty=np.inf).fit(numbers, y, **{name: groups.sex})
    after = audit(learner, numbers, y, sensitive_features=groups[["sex"]], n_flipsets=0)
    both = after.compared_with(before, placebo=before)
    section = both.document["comparison"]["attributes"][0]
    assert section["reduction"] == pytest.approx(section["before"]["gap"] - section["after"]["gap"])
    low, high = section["reduction_interval"]
    assert low <= section["reduction"] <= high
    frontier = recourse_frontier(learner, numbers, y, sensitive_features=groups.sex, cv=2, n_boot=20, n_permutations=20)
    whole = both.with_frontier(frontier, frontier.pick())
    jsonschema.validate(whole.document, audit_schema())
    assert sum(row["chosen"] for row in whole.document["frontier"]) == 1
    other = audit(plain, numbers.head(900), y[:900], sensitive_features=groups[["sex"]].head(900), n_flipsets=0)
    with pytest.raises(ValueError, match="compared for the same people"):
        after.compared_with(other)


def test_people_without_recourse_are_counted_and_shown():
    X, y, groups = make_people(400)
    actions = ActionSet([Feature("income", change="no"), Feature("debts", change="no"), Feature("age", change="no")])
    numbers = X[["income", "debts", "age"]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y)
    rejected = int((model.predict(numbers) == "no").sum())
    with (
        pytest.warns(UndefinedRecourseWarning),
        pytest.warns(NoRecourseWarning, match=f"Of {rejected} rejected people {rejected} have no recourse"),
    ):
        found = audit(model, numbers, y, sensitive_features=groups[["sex"]], actions=actions)
    assert found.document["counts"]["without_recourse"] == found.document["counts"]["rejected"] > 0
    assert found.document["attributes"][0]["state"] == "cannot tell"
    assert "undefined" in found.verdicts["sex"]
    assert (found.people.status == "infeasible").sum() == found.document["counts"]["rejected"]
    jsonschema.validate(found.document, audit_schema())
    found.document["notes"].append("a report of nobody's recourse can be drawn")
    assert found._repr_html_()


# --- people without a known cost -------------------------------------------------------------------------------------


def counts_agree(found):
    """Every count of the document is the sum of those of its groups, and the parts of a whole make it up."""
    counts = found.document["counts"]
    assert counts["measured"] == counts["with_recourse"] + counts["without_recourse"] + counts["unknown"]
    assert counts["exact"] <= counts["with_recourse"]
    for section in found.document["attributes"]:
        rows = section["by_group"]
        for name in ("people", "rejected", "measured"):
            assert sum(row[name] for row in rows) == counts[name] == section["overall"][name]
        for name in ("without_recourse", "unknown"):
            assert sum(row[name] * row["measured"] for row in rows if row["measured"]) == pytest.approx(counts[name])


class Stubborn:
    """Accepts who has much of "a"; nobody can read it, and from some places a search finds no way."""

    classes_ = np.array([0, 1])

    def __init__(self, locked):
        self.locked = locked

    def predict(self, X):
        table = pd.DataFrame(X)
        return ((table["a"] > 1.0) & ~(self.locked & (table["key"] > 0.5))).to_numpy().astype(int)


def stubborn_people(n=300, seed=0):
    """Some have a key that they cannot give away: the model never accepts them, and no search can prove that."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(0, 2, n), "key": (rng.random(n) < 0.2).astype(float)})
    return X, pd.DataFrame({"sex": rng.choice(["f", "m"], n)})


KEPT = ActionSet([Feature("a"), Feature("key", change="no")])
FEW = {"n_flipsets": 0, "n_boot": 100, "n_permutations": 100, "actions": KEPT}


def test_no_verdict_where_recourse_is_unknown():
    X, groups = stubborn_people()
    with pytest.warns(NoRecourseWarning, match=r"Of \d+ rejected people \d+ have a recourse that is unknown"):
        found = audit(Stubborn(True), X, sensitive_features=groups, **FEW)
    counts = found.document["counts"]
    assert counts["unknown"] == (X["key"] > 0.5).sum()
    assert counts["without_recourse"] == 0
    counts_agree(found)
    section = found.document["attributes"][0]
    assert section["state"] == "cannot tell"
    by_sex = [f"{((X.key > 0.5) & (groups.sex == sex)).sum()} of '{sex}'" for sex in "fm"]
    assert found.verdicts["sex"].startswith(
        f"cannot tell: the recourse of {counts['unknown']} of {counts['rejected']} rejected people is unknown "
        f"({by_sex[0]}, {by_sex[1]}); among the others, no detectable gap: "
    )
    assert found.cannot_tell == ["sex"]
    assert found.largest_gap == 0
    jsonschema.validate(found.document, audit_schema())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = audit(Stubborn(False), X, sensitive_features=groups, **FEW)
    assert known.cannot_tell == []
    assert known.document["attributes"][0]["state"] == "no detectable gap"
    counts_agree(known)


def test_a_person_who_ran_out_of_time_with_an_action_has_recourse_of_a_bounded_cost():
    X, y, groups = make_people(120)
    model = fitted(X, y, RandomForestClassifier(40, max_depth=6, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)
        found = audit(model, X, sensitive_features=groups[["sex"]], time_limit=1e-9, n_flipsets=0, n_boot=50)
    recourse = found.recourse
    assert (recourse.status == "unknown").any()
    counts = found.document["counts"]
    assert counts["unknown"] == (recourse.rejected & np.isinf(recourse.costs)).sum()
    assert counts["exact"] < counts["measured"]
    counts_agree(found)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_difference_in_who_has_recourse_at_all_is_a_gap(streamed):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=600), "b": rng.normal(size=600)})
    sex = rng.choice(["f", "m"], 600)
    # Half of the women cannot reach the limit of "a", whatever they do; everybody else is as far away as anybody.
    X["b"] = np.where((sex == "f") & (rng.random(600) < 0.5), -100.0, X["b"])
    model = LogisticRegression().fit(X[["a", "b"]].clip(-3, 3), (X.a + X.b.clip(-3, 3) > 0).astype(int))
    actions = ActionSet([Feature("a", low=-10.0, high=10.0), Feature("b", change="no")])
    settings = {"actions": actions, "n_boot": 200, "n_permutations": 200}
    ask, people, groups = (audit_partitions, [X.assign(sex=sex)], "sex") if streamed else (audit, X, {"sex": sex})
    with pytest.warns(NoRecourseWarning, match="have no recourse; mean costs are over the other"):
        found = ask(model, people, sensitive_features=groups, **settings)
    section = found.document["attributes"][0]
    assert section["state"] == "gap"
    assert section["gap_in_shares"]
    assert "of the rejected people of group 'f' have no recourse and 0 % of group 'm' (p = 0.01)" in section["verdict"]
    assert found.largest_gap == np.inf
    counts_agree(found)


def test_the_streamed_verdict_counts_the_unknown_as_the_other_does():
    X, groups = stubborn_people()
    whole = X.assign(sex=groups["sex"])
    with pytest.warns(NoRecourseWarning):
        one = audit(Stubborn(True), X, sensitive_features=groups, **FEW)
    settings = {name: value for name, value in FEW.items() if name != "n_flipsets"}
    with pytest.warns(NoRecourseWarning):
        other = audit_partitions(
            Stubborn(True), [whole[:150], whole[150:]], sensitive_features="sex", background=X, **settings
        )
    counts_agree(other)
    assert other.document["counts"] == one.document["counts"]
    assert other.verdicts["sex"].split("; ")[0] == one.verdicts["sex"].split("; ")[0]
    assert other.cannot_tell == ["sex"]


def test_a_sample_of_the_rejected_says_that_it_is_one():
    X, y, groups = make_people(400)
    forest = fitted(X, y, RandomForestClassifier(10, max_depth=3, random_state=0))
    found = audit(forest, X, y, sensitive_features=groups, max_people=30, n_flipsets=1)
    assert found.document["counts"]["measured"] == 30 < found.document["counts"]["rejected"]
    assert any("30 of" in note and "drawn at random" in note for note in found.document["notes"])
    assert (found.people.status == "not measured").any()
    counts_agree(found)
    accepted = forest.predict(X) == "yes"
    for row in found.document["attributes"][0]["by_group"]:  # the accepted are not sampled, so neither is their share
        assert row["acceptance"] == pytest.approx(accepted[groups.sex == row["name"]].mean())


def test_attributes_by_themselves_and_crossed():
    X, y, groups = make_people(500)
    found = audit(fitted(X, y), X, y, sensitive_features=groups, intersections=True, n_flipsets=0)
    assert list(found.verdicts) == ["sex", "region", "sex × region"]
    assert len(found.document["attributes"][2]["by_group"]) == 6
    assert all(s["p_corrected"] >= s["p_value"] for s in found.document["attributes"])


def test_text_and_notebook_escape_what_came_with_the_data():
    X, y, groups = make_people(300)
    evil = "<img src=x onerror=alert(1)>"
    found = audit(fitted(X, y), X, y, sensitive_features=groups[["sex"]].rename(columns={"sex": evil}), n_flipsets=0)
    assert evil not in found._repr_html_()
    assert "&lt;img" in found._repr_html_()
    assert evil in repr(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["yes", "no"]}, "X has 300 people and y the shape"),
        ({"y": ["maybe"] * 300}, "y has the label 'maybe', which the model does not know"),
        ({"sensitive_features": ["a", "b"]}, "X has 300 people and sensitive_features 2"),
        ({"sensitive_features": ["a"] * 300}, "at least 2|one group|two"),
        ({"sensitive_features": [None] * 9 + ["a", "b", "c"] * 97}, "missing for 9 of 300 people; drop them, or give"),
        ({"sensitive_features": pd.DataFrame([["a", "b"]] * 300, columns=["s", "s"])}, "more than one column 's'"),
        ({"sensitive_features": pd.DataFrame(index=range(300))}, "sensitive_features has no column"),
        ({"max_people": 0}, "max_people"),
        ({"random_state": -1}, "random_state"),
    ],
    ids=["y", "labels", "groups", "one group", "no group", "same name", "no column", "max_people", "seed"],
)
def test_bad_input_gets_one_sentence(change, message):
    X, y, groups = make_people(300)
    arguments = {"y": y, "sensitive_features": groups[["sex"]], **change}
    with pytest.raises(ValueError, match=message):
        audit(fitted(X, y), X, arguments.pop("y"), **arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not the JSON of an audit"),
        ('{"schema": "other"}', "its schema is not 'equirecourse-audit'"),
        ('{"schema": "equirecourse-audit", "version": 99}', "has version 99 of the schema"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "audit.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_audit(path)


@pytest.mark.parametrize("case", ["array", "accepts all", "polars", "search", "surrogate", "same index"])
def test_any_table_and_any_model_gives_a_document_and_a_page(case, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])
    y = (X.a > 0).astype(int)
    groups = pd.DataFrame({"g": rng.choice(["u", "v"], 100)}, dtype=object)
    model, settings = LogisticRegression(), {"n_flipsets": 1}
    if case == "array":
        X = X.to_numpy()
    elif case == "accepts all":
        model = DummyClassifier(strategy="constant", constant=1)
    elif case == "search":
        model = KNeighborsClassifier(9)
    elif case == "surrogate":
        settings |= {"method": "surrogate", "norm": "l2", "n_flipsets": 0}
    elif case == "same index":
        X = X.set_axis(["somebody"] * 100)
    model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRecourseWarning)
        found = audit(model, pl.from_pandas(X) if case == "polars" else X, y, sensitive_features=groups, **settings)
    jsonschema.validate(found.document, audit_schema())
    found.to_html(tmp_path / "report.html")
    assert len(found.people) == 100
    assert (found.document["attributes"][0]["state"] == "cannot tell") == (case == "accepts all")
    assert found.document["counts"]["unknown"] == 0


def test_many_groups_are_all_in_the_table_and_the_largest_in_the_charts(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1200, 2)), columns=["a", "b"])
    groups = pd.DataFrame({"village": [f"v{i % 60}" for i in range(1200)]})
    model = LogisticRegression().fit(X, X.a > 0)
    settings = {"n_flipsets": 0, "n_boot": 100, "n_permutations": 100, "actions": ActionSet.free(X)}
    found = audit(model, X, sensitive_features=groups, **settings)
    found.to_html(tmp_path / "report.html")
    assert len(found.document["attributes"][0]["by_group"]) == 60
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(f">v{i}</th>" in page for i in range(60))
