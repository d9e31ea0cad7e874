"""Files that commands write: refused before the work where they would do harm, and none lost for another's sake."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pytest

from equirecourse import RecourseAudit
from equirecourse.actions import ActionSet
from equirecourse.cli import main
from equirecourse.cli._outputs import Output, write_outputs


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A folder with people, what they can change, and a model that is none: nobody gets as far as to load it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(size=80).round(2), "sex": ["f", "m"] * 40})
    frame["granted"] = (frame.income + rng.normal(size=80) / 2 > 0).astype(int)
    frame.to_csv(tmp_path / "people.csv", index=False)
    ActionSet.from_frame(frame[["income"]]).write(tmp_path / "actions.toml")
    (tmp_path / "model.skops").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["equirecourse", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


DATA = ["--data", "people.csv", "--target", "granted", "--group", "sex"]
REFUSED = {
    "people": (["audit", *DATA, "--json", "people.csv"], "'people.csv' cannot be written: it is 'people.csv'"),
    "actions": (["audit", *DATA, "--actions", "actions.toml", "--html", "actions.toml"], "'actions.toml', which"),
    "model": (["audit", *DATA, "--model", "model.skops", "--html", "model.skops"], "'model.skops', which is read"),
    "flipset": (["flipset", *DATA, "--person", "1", "--json", "./people.csv"], "'people.csv', which is read"),
    "equalize": (["equalize", *DATA, "--save", "people.csv"], "'people.csv', which is read"),
    "twice": (["equalize", *DATA, "--html", "a", "--json", "a"], "'a' cannot be written: 'a' is the same file"),
    "device": (["audit", *DATA, "--json", os.devnull], "it is a device or a pipe; name a file"),
    "datasets": (["datasets", "german", "--csv", "g.toml", "--actions", "g.toml"], "is the same file"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_harmful_output_is_refused_before_the_work(name, people, monkeypatch, capsys):
    arguments, words = REFUSED[name]
    before = {path: path.read_bytes() for path in people.iterdir()}
    assert run(monkeypatch, *arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert {path: path.read_bytes() for path in people.iterdir()} == before


def test_numbers_are_written_though_the_report_fails(people, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no template")

    monkeypatch.setattr(RecourseAudit, "to_html", fail)
    assert run(monkeypatch, "audit", *DATA, "--html", "report.html", "--json", "audit.json") == 2
    assert "'report.html' was not written: RuntimeError, no template" in capsys.readouterr().err
    assert json.loads((people / "audit.json").read_text(encoding="utf-8"))["schema"] == "equirecourse-audit"
    assert not (people / "report.html").exists()


def test_each_output_is_written_and_all_failures_are_told(tmp_path, capsys):
    def fail(path):
        raise OSError("no room")

    names = ["a", "b", "c"]
    outputs = [
        Output(tmp_path / name, fail if name != "b" else lambda path: path.write_text("x"), name) for name in names
    ]
    with pytest.raises(ValueError, match=r"a' was not written: OSError, no room; .*c' was not written"):
        write_outputs(*outputs, Output(None, fail, "not asked for"))
    assert capsys.readouterr().out == "b\n"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_missing_extra_is_found_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    for part in ("all", "real-gaps"):
        assert run(monkeypatch, "replicate", part, "--quick", "--out", str(tmp_path / "out")) == 2
        assert 'run pip install "equirecourse[boost]"' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
