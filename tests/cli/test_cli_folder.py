"""equirecourse audit on a folder of Parquet: the numbers of the file, a part at a time."""

import sys

import numpy as np
import pandas as pd
import pytest

from equirecourse import ActionSet, read_audit
from equirecourse.actions import Feature
from equirecourse.cli import main
from equirecourse.cli._models import learner, save_model


def run(*arguments, code=0):
    """Run a command as the shell would, in this process."""
    old, sys.argv = sys.argv, ["equirecourse", *map(str, arguments)]
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = old
    assert (ended.value.code or 0) == code


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """People in a file and in a folder, with text and gaps; and a model."""
    place = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    n = 400
    people = pd.DataFrame({"income": rng.normal(3000, 700, n), "debts": rng.normal(3, 1, n)})
    people["housing"] = rng.choice(["rent", "own", "free"], n)
    people["sex"] = rng.choice(["female", "male"], n)
    score = people.income / 700 - people.debts / 2 + (people.housing == "own") + rng.normal(size=n)
    people["decision"] = np.where(score > score.median(), "granted", "refused")
    people.loc[rng.random(n) < 0.1, "income"] = np.nan
    people.loc[rng.random(n) < 0.05, "housing"] = None
    people.to_parquet(place / "people.parquet")
    (place / "folder").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(n), 3)):
        people.iloc[rows].to_parquet(place / "folder" / f"{i}.parquet")
    X = people.drop(columns=["decision", "sex"]).astype({"housing": "category"})
    save_model(learner("logistic", X).fit(X, people["decision"]), place / "fair.skops")
    return place


def columns(data):
    return ["--data", data, "--target", "decision", "--favorable", "granted", "--group", "sex"]


@pytest.mark.parametrize("data", ["folder", "folder/*.parquet"])
def test_a_folder_says_what_the_file_says(places, tmp_path, capsys, data):
    numbers = [Feature("income", low=0.0, high=9000.0, cost=0.001), Feature("debts", low=0.0, high=9.0)]
    ActionSet(numbers).write(tmp_path / "actions.toml")
    given = ["--model", places / "fair.skops", "--actions", tmp_path / "actions.toml"]
    run("audit", *columns(places / "people.parquet"), *given, "--json", tmp_path / "file.json")
    run("audit", *columns(places / data), *given, "--json", tmp_path / "folder.json")
    assert "a part at a time" in "".join(capsys.readouterr())
    expected, found = (read_audit(tmp_path / name) for name in ("file.json", "folder.json"))
    assert found["counts"] == expected["counts"]
    assert found["model"] == pytest.approx(expected["model"])
    assert found["attributes"][0]["gap"] == pytest.approx(expected["attributes"][0]["gap"], rel=1e-9)
    assert found["settings"]["partitions"] == 3


def test_without_actions_they_are_inferred(places, tmp_path):
    given = ["--model", places / "fair.skops", "--immutable", "housing", "--html", tmp_path / "report.html"]
    run("audit", *columns(places / "folder"), *given)
    assert "nobody was kept" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ([], "nothing is fitted to it; give --model"),
        (["--model", "fair.skops", "--max-people", "9"], "measures everybody"),
        (["--model", "fair.skops", "--immutable", "wage"], "--immutable 'wage' is not a column"),
        (["--model", "fair.skops", "--favorable", "perhaps"], "--favorable 'perhaps' is not a label of the model"),
        (["--model", "fair.skops", "--group", "gender"], "no column 'gender'"),
    ],
)
def test_one_sentence_per_mistake(places, capsys, monkeypatch, change, sentence):
    monkeypatch.chdir(places)
    run("audit", *columns("folder"), *change, code=2)
    error = capsys.readouterr().err
    assert sentence in " ".join(error.split())
    assert "Traceback" not in error
