"""The command line as a person and as a machine would use it: five commands, one sentence per mistake."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from equirecourse import EqualRecourseLinear, read_audit
from equirecourse.cli import main
from equirecourse.cli._app import app
from equirecourse.cli._models import save_model


def run(*arguments, code=0):
    """Run a command as the shell would, in this process."""
    old, sys.argv = sys.argv, ["equirecourse", *map(str, arguments)]
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = old
    assert (ended.value.code or 0) == code
    return ended


@pytest.fixture
def own_csv(tmp_path):
    """A CSV as people have it: text, gaps, a name, and labels in words."""
    rng = np.random.default_rng(0)
    n = 500
    frame = pd.DataFrame(
        {
            "customer": [f"c{i}" for i in range(n)],
            "income": rng.normal(3000, 700, n).round(),
            "debts": rng.integers(0, 6, n),
            "housing": rng.choice(["rent", "own", "free"], n),
            "sex": rng.choice(["female", "male"], n),
            "decision": "",
        }
    )
    score = frame.income / 700 - frame.debts / 2 + (frame.housing == "own") + rng.normal(size=n)
    frame["decision"] = np.where(score > score.median(), "granted", "refused")
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    frame.loc[rng.random(n) < 0.05, "housing"] = None
    path = tmp_path / "own.csv"
    frame.to_csv(path, index=False)
    return path


def options(path):
    return ["--data", path, "--target", "decision", "--favorable", "granted", "--group", "sex", "--ignore", "customer"]


def test_five_commands_from_a_csv_to_a_flipset(own_csv, tmp_path, capsys):
    html, numbers, fair = tmp_path / "report.html", tmp_path / "audit.json", tmp_path / "fair.skops"
    run("audit", *options(own_csv), "--html", html, "--json", numbers)
    out = capsys.readouterr().out
    assert "people have missing values, which the model fills in (--missing impute)" in out
    assert re.search(r"sex: (no detectable gap|gap of)", out)
    assert html.read_text().startswith("<!doctype html>")
    document = read_audit(numbers)
    assert document["counts"]["people"] == 150
    assert {feature["name"] for feature in document["actions"]["features"]} == {"income", "debts", "housing"}
    run("equalize", *options(own_csv), "--html", tmp_path / "equal.html", "--save", fair)
    out = capsys.readouterr().out
    assert re.search(r"sex\s+before\s+placebo\s+after", out)
    assert fair.exists()
    run("audit", *options(own_csv), "--model", fair)
    assert "The model fair.skops, judged on 500 people." in capsys.readouterr().out
    rejected = next(row[0] for row in document["people"]["rows"] if row[2] == "found")
    run("flipset", *options(own_csv), "--person", rejected, "--json", tmp_path / "ways.json")
    assert "way 1, cost" in capsys.readouterr().out
    assert json.loads((tmp_path / "ways.json").read_text())["status"] == "found"


def test_a_model_that_knows_its_yes_is_asked_for_that(own_csv, tmp_path, capsys):
    # Without --favorable the larger label is taken, and people were told how to be refused.
    people = pd.read_csv(own_csv).dropna().reset_index(drop=True)
    people.to_csv(own_csv, index=False)
    X, fair = people[["income", "debts"]], tmp_path / "fair.skops"
    learner = make_pipeline(StandardScaler(), LogisticRegression())
    model = EqualRecourseLinear(learner, favorable_label="granted").fit(
        X, people["decision"], sensitive_features=people["sex"]
    )
    save_model(model, fair)
    rest = ["--data", own_csv, "--target", "decision", "--group", "sex", "--ignore", "customer", "--ignore", "housing"]
    person = next(row for row in people.index if people["income"][row] < 2500 and people["debts"][row] > 3)
    sentence = "granted is a yes, as the model has it; say otherwise with --favorable."
    run("flipset", *rest, "--model", fair, "--person", person)
    out = capsys.readouterr().out
    assert sentence in out
    assert "Raise income" in out
    assert "Lower income" not in out
    run("audit", *rest, "--model", fair)
    assert sentence in capsys.readouterr().out
    run("flipset", *rest, "--model", fair, "--person", person, "--favorable", "refused")
    out = capsys.readouterr().out
    assert "the model says yes already" in out
    assert "say otherwise" not in out
    run("flipset", *rest, "--person", person)  # fitted here: the model has no yes of its own
    assert "decision = refused is taken for a yes; say otherwise with --favorable." in capsys.readouterr().out


@pytest.mark.parametrize("learner", [["--learner", "svm"], ["--paper"]])
def test_every_learner_is_fitted_judged_and_saved(own_csv, tmp_path, capsys, learner):
    run("equalize", *options(own_csv), *learner, "--save", tmp_path / "model.skops")
    out = capsys.readouterr().out
    assert "Fitted to 350 people, judged on 150 others." in out
    kept = "The plain model was kept" in out
    assert kept != ("Could it be good for a bad reason?" in out)
    assert not (kept and "gap fell" in out)
    assert f"The {'plain' if kept else 'equalised'} model is in" in out
    run("audit", *options(own_csv), "--model", tmp_path / "model.skops", "--max-people", 20)


def test_the_paper_s_method_is_for_linear_models(own_csv, capsys):
    run("equalize", *options(own_csv), "--paper", "--learner", "boosting", code=2)
    assert "--paper is for linear models" in capsys.readouterr().err


def test_a_column_of_names_is_noticed(own_csv, capsys):
    run("audit", *options(own_csv)[:-2], "--max-people", 20)
    assert "'customer' has 500 different values in 500 rows, like a name" in capsys.readouterr().out


def test_dropping_people_says_how_many(own_csv, capsys):
    run("audit", *options(own_csv), "--missing", "drop")
    gone = int(pd.read_csv(own_csv)[["income", "debts", "housing"]].isna().any(axis=1).sum())
    assert f"{gone} of 500 people with missing values were dropped (--missing drop)." in capsys.readouterr().out


def test_parquet_and_an_action_set_from_a_file(own_csv, tmp_path, capsys):
    frame = pd.read_csv(own_csv).dropna()
    frame.to_parquet(tmp_path / "own.parquet")
    rules = tmp_path / "rules.toml"
    from equirecourse import ActionSet

    ActionSet.from_frame(frame[["income", "debts", "housing"]], immutable=["housing"]).write(rules)
    run("audit", *options(tmp_path / "own.parquet"), "--actions", rules, "--json", tmp_path / "a.json")
    document = read_audit(tmp_path / "a.json")
    changed = {c["feature"] for ways in document["flipsets"]["by_person"].values() for w in ways for c in w["changes"]}
    assert changed <= {"income", "debts"}
    assert "units of cost" in capsys.readouterr().out


def test_a_gap_above_the_limit_ends_with_one(capsys, tmp_path):
    rng = np.random.default_rng(0)
    group = np.where(rng.random(3000) < 0.5, "a", "b")
    frame = pd.DataFrame({"x": rng.normal(size=3000) * np.where(group == "a", 2.5, 0.8), "z": rng.normal(size=3000)})
    frame["y"] = (frame.x + frame.z + rng.normal(size=3000) > 0).astype(int)
    frame["g"] = group
    frame.to_csv(tmp_path / "gap.csv", index=False)
    arguments = ["audit", "--data", tmp_path / "gap.csv", "--target", "y", "--group", "g"]
    run(*arguments, "--fail-above", 0.1, code=1)
    assert "is above 0.1" in capsys.readouterr().out
    run(*arguments, "--fail-above", 100)


def test_the_embedded_data_need_no_options_and_every_example_in_a_help_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in ("audit", "flipset", "datasets"):
        text = " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())
        example = re.search(
            rf"Example: equirecourse ({command} .*?)(?= Without| Options:| Arguments:| A logistic)", text
        )[1]
        run(*example.split())
    assert "equirecourse equalize --dataset credit" in " ".join(
        CliRunner().invoke(app, ["equalize", "--help"]).output.split()
    )
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "german.csv", "german.toml"}
    run("datasets")
    assert "givemecredit" in capsys.readouterr().out


MISTAKES = {
    "no file": (lambda p: ["audit", "--data", "x.csv", "--target", "y", "--group", "g"], "There is no file 'x.csv'"),
    "no target": (lambda p: ["audit", "--data", p], "--data needs --target COLUMN and at least one --group COLUMN"),
    "absent column": (
        lambda p: ["audit", "--data", p, "--target", "decison", "--group", "sex"],
        "own.csv has no column 'decison' (--target); did you mean 'decision'?",
    ),
    "absent group": (lambda p: ["audit", *options(p), "--group", "race"], "no column 'race' (--group)"),
    "many values": (lambda p: ["audit", "--data", p, "--target", "debts", "--group", "sex"], "'debts' has 6 values"),
    "favorable": (lambda p: ["audit", *options(p), "--favorable", "perhaps"], "--favorable 'perhaps' is not a value"),
    "target is group": (lambda p: ["audit", *options(p), "--target", "sex"], "cannot be a group as well"),
    "ignore": (lambda p: ["audit", *options(p), "--ignore", "incom"], "not a feature; did you mean 'income'?"),
    "immutable": (lambda p: ["audit", *options(p), "--immutable", "incom"], "--immutable 'incom' is not a column"),
    "two sources": (lambda p: ["audit", *options(p), "--dataset", "german"], "two sources of people"),
    "data set": (lambda p: ["audit", "--dataset", "iris"], "There is no data set 'iris'; there are credit, german"),
    "group of a data set": (lambda p: ["audit", "--dataset", "german", "--group", "hair"], "has no group 'hair'"),
    "model": (lambda p: ["audit", *options(p), "--model", p], "own.csv is not a model saved with skops"),
    "no model": (lambda p: ["audit", *options(p), "--model", "m.skops"], "There is no file 'm.skops'"),
    "actions": (lambda p: ["audit", *options(p), "--actions", "a.toml"], "There is no file 'a.toml'"),
    "nowhere to write": (lambda p: ["audit", *options(p), "--html", "/nowhere/r.html"], "no folder '/nowhere'"),
    "a folder": (lambda p: ["equalize", *options(p), "--save", p.parent], "cannot be written: it is a folder"),
    "person": (lambda p: ["flipset", *options(p), "--person", "9999"], "no person '9999'; rows go from 0 to 499"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(name, own_csv, capsys, monkeypatch):
    monkeypatch.chdir(own_csv.parent)
    arguments, message = MISTAKES[name]
    before = sorted(own_csv.parent.iterdir())
    run(*arguments(own_csv), code=2)
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("equirecourse: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert sorted(own_csv.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,b,y,g\n1,2,0,u\n3,"4,1,v\n', "bad.csv cannot be read as CSV"),
        ("a,y,g\n", "bad.csv has no rows"),
        ("", "bad.csv cannot be read as CSV"),
        ("a,y,g\n1,0,u\n2,0,v\n3,0,u\n", "The target 'y' has 1 values"),
        ("y,g\n0,u\n1,v\n0,u\n1,v\n", "no columns besides target and groups"),
        ("a,y,g\n" + "".join(f"{i},{i % 2},u\n" for i in range(30)), "The group 'g' has one value only, 'u'"),
        ("a,y,g\n0,1,v\n" + "".join(f"{i},{i % 2},u\n" for i in range(30)), "has a single member with the value 'v'"),
    ],
    ids=["malformed", "no rows", "empty", "constant target", "no features", "one group", "one member"],
)
def test_a_bad_file_is_one_sentence(tmp_path, capsys, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    run("audit", "--data", path, "--target", "y", "--group", "g", "--html", tmp_path / "r.html", code=2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["bad.csv"]


class Evil:
    """A pickle that would write a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_nothing_is_unpickled_without_consent(own_csv, tmp_path, capsys):
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Evil(tmp_path / "harm")))
    run("audit", *options(own_csv), "--model", tmp_path / "evil.pkl", code=2)
    assert "is a pickle, which can run any code; load it with --trust" in capsys.readouterr().err
    assert not (tmp_path / "harm").exists()
    frame = pd.read_csv(own_csv).dropna()
    model = LogisticRegression(max_iter=1000).fit(frame[["income", "debts"]], frame["decision"])
    (tmp_path / "good.pkl").write_bytes(pickle.dumps(model))
    arguments = [*options(own_csv), "--missing", "drop", "--ignore", "housing"]
    run("audit", *arguments, "--model", tmp_path / "good.pkl", "--trust")


def test_an_interrupt_leaves_no_file(tmp_path):
    target = tmp_path / "report.html"
    process = subprocess.Popen(
        [sys.executable, "-m", "equirecourse.cli", "audit", "--html", str(target)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout.readline()  # it has begun
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_gets_plain_text():
    done = subprocess.run(
        [sys.executable, "-m", "equirecourse.cli", "datasets"], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stdout
    assert not set("┏━┃│") & set(done.stdout)
    assert done.stdout.splitlines()[0].split()[0] == "name"


# --- a gate that is never passed by ignorance ------------------------------------------------------------------------


@pytest.fixture
def searched(tmp_path):
    """People, and a model that only a search can ask; it proves nothing of those whom "b" alone does not help."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=48), "b": rng.normal(size=48), "sex": rng.choice(["f", "m"], 48)})
    table["decision"] = (table.a > 0).astype(int)
    table.to_csv(tmp_path / "people.csv", index=False)
    model = KNeighborsClassifier(5).fit(table[["a", "b"]], table["decision"])
    joblib.dump(model, tmp_path / "model.joblib")
    return [
        "--data", tmp_path / "people.csv", "--target", "decision", "--group", "sex",
        "--model", tmp_path / "model.joblib", "--trust",
    ]  # fmt: skip


def test_fail_above_says_that_nobody_can_tell(searched, capsys):
    locked = [*searched, "--immutable", "a"]
    run("audit", *locked)  # without a limit an audit only tells
    out = capsys.readouterr().out
    unknown = r"sex: cannot tell: the recourse of \d+ of \d+ rejected people is unknown \(\d+ of 'f', \d+ of 'm'\)"
    assert re.search(unknown, out)
    run("audit", *locked, "--fail-above", 5, code=3)
    assert "Nobody can tell whether the gap of sex is above 5." in capsys.readouterr().out


def test_fail_above_passes_where_everybody_is_known(searched):
    run("audit", *searched, "--fail-above", 5)


# --- tables as people have them --------------------------------------------------------------------------------------


def own_options(path, *more):
    return ["audit", "--data", path, "--target", "decision", "--group", "sex", "--ignore", "customer", *more]


def test_a_csv_of_another_country_is_read_as_the_options_say(own_csv, tmp_path, capsys):
    table = pd.read_csv(own_csv).replace({"free": "möbliert"})
    table["debts"] = table["debts"].astype(object)
    table.loc[:4, "debts"] = "k.A."
    foreign = tmp_path / "foreign.csv"
    table.to_csv(foreign, index=False, sep=";", encoding="latin-1")
    written = ["--sep", ";", "--encoding", "latin-1", "--na-values", "k.A."]
    run(*own_options(foreign, *written, "--json", tmp_path / "audit.json"))
    features = {feature["name"]: feature for feature in read_audit(tmp_path / "audit.json")["actions"]["features"]}
    assert features["debts"]["kind"] == "number"
    capsys.readouterr()
    run(*own_options(foreign), code=2)
    assert "foreign.csv is not written in utf-8" in (said := capsys.readouterr().err)
    assert "--encoding, such as latin-1 or cp1252" in said
    run(*own_options(foreign, "--encoding", "latin-1"), code=2)
    assert "separated by ';', so read it with --sep ';'." in capsys.readouterr().err


def test_a_tab_is_written_as_shells_can(own_csv, tmp_path):
    pd.read_csv(own_csv).to_csv(tmp_path / "tabs.tsv", index=False, sep="\t")
    run(*own_options(tmp_path / "tabs.tsv", "--sep", "\\t"))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--jobs", "0"], "--jobs 0 would be nobody at work"),
        (["--sep", ";;"], "--sep ';;' must be one character"),
        (["--encoding", "martian"], "--encoding 'martian' is unknown to Python"),
        (["--group", "sex"], "--group 'sex' is given twice; once is enough."),
    ],
)
def test_options_that_make_no_sense_get_one_sentence(own_csv, capsys, more, sentence):
    run(*own_options(own_csv, *more), code=2)
    assert sentence in capsys.readouterr().err


def test_two_columns_of_one_name_are_refused(own_csv, tmp_path, capsys):
    lines = own_csv.read_text().splitlines()
    double = tmp_path / "double.csv"
    double.write_text("\n".join([lines[0].replace("debts", "income"), *lines[1:]]) + "\n")
    run(*own_options(double), code=2)
    assert (
        "double.csv has more than one column 'income'; give every column a name of its own" in capsys.readouterr().err
    )


def test_a_column_of_dates_is_named(own_csv, tmp_path, capsys):
    table = pd.read_csv(own_csv)
    table["since"] = pd.Timestamp("2020-01-01")
    table.to_parquet(tmp_path / "dates.parquet")
    run(*own_options(tmp_path / "dates.parquet"), code=2)
    assert "The column 'since' holds datetime64" in (said := capsys.readouterr().err)
    assert "make numbers or text of it, or leave it out" in said
    run(*own_options(tmp_path / "dates.parquet", "--ignore", "since"))
