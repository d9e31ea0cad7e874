"""The replication runs, goes on where it stopped, and its summaries say what the runs say."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from equirecourse.replication import replicate
from equirecourse.replication._cells import QUICK, Cell, table1_cells, table2_cells
from equirecourse.replication._markdown import real_gap_sentences, real_gap_table, svm_table
from equirecourse.replication._paper import TABLE_1, TABLE_2
from equirecourse.replication._run import run_cell
from equirecourse.replication._store import Store
from equirecourse.replication._summary import reduction, summarise_real_gaps


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The quick version of everything, once."""
    return replicate("all", folder=tmp_path_factory.mktemp("quick"), quick=True)


def test_every_cell_of_both_tables_is_filled(quick):
    for name, cells in (("table1", table1_cells(QUICK)), ("table2", table2_cells(QUICK))):
        runs = quick.runs[name]
        found = list(runs[["dataset", "model", "protocol", "bound", "run"]].itertuples(index=False, name=None))
        assert found == [(c.dataset, c.model, c.protocol, c.bound, c.run) for c in cells]
    assert {table.title for table in quick.tables} >= {
        "Table 1: recourse-regularised SVMs",
        "Table 2: reweighted black boxes",
        "Where there is a gap",
    }


def test_a_run_says_everything_the_protocol_asks_for(quick):
    columns = set(quick.runs["table1"].columns)
    for side in ("before", "after"):
        for part in ("train", "test"):
            for name in (
                "gap", "functional_gap", "input_gap", "mean_distance", "relative_gap", "noise_floor",
                "rejected_-1", "rejected_1", "acceptance", "accuracy",
            ):  # fmt: skip
                assert f"{side}_{part}_{name}" in columns
    assert {"dataset", "run", "n_train", "n_test", "penalty", "rounds", "converged", "degenerate"} <= columns


def test_files_are_written_and_the_page_needs_no_network(quick):
    names = {path.name for path in quick.folder.iterdir()}
    assert {"table1.parquet", "table2.parquet", "real_gaps.parquet", "replication.md", "replication.html"} <= names
    assert {path.stem for path in (quick.folder / "figures").iterdir()} == set(quick.figures)
    page = (quick.folder / "replication.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("data:image/png;base64,") == len(quick.figures)
    kept = pd.read_parquet(quick.folder / "table1.parquet")
    pd.testing.assert_frame_equal(kept, quick.runs["table1"])


def test_a_finished_run_is_not_computed_again(quick, monkeypatch):
    def fail(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr("equirecourse.replication._run.run_cell", fail)
    before = (quick.folder / "table1.parquet").read_bytes()
    again = replicate("table1", folder=quick.folder, quick=True)
    pd.testing.assert_frame_equal(again.runs["table1"], quick.runs["table1"])
    assert (quick.folder / "table1.parquet").read_bytes() == before


def test_a_killed_run_ends_as_an_undisturbed_one(quick, tmp_path):
    """SIGKILL at some moment after the first runs; then the same command again."""
    code = (
        "from equirecourse.replication import replicate\n"
        f"replicate('table1', folder={str(tmp_path)!r}, quick=True, datasets=['german'])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ)
    try:
        deadline = time.monotonic() + 300
        while len(list(tmp_path.rglob("cells/*/*.parquet"))) < 3 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.poll() is None, "finished before it could be killed"
        process.send_signal(signal.SIGKILL)
    finally:
        process.wait()
    done = len(list(tmp_path.rglob("cells/*/*.parquet")))
    wanted = [cell for cell in table1_cells(QUICK) if cell.dataset == "german"]
    assert 3 <= done < len(wanted)
    assert not (tmp_path / "table1.parquet").exists()
    found = replicate("table1", folder=tmp_path, quick=True, datasets=["german"])
    whole = quick.runs["table1"].query("dataset == 'german'").reset_index(drop=True)
    pd.testing.assert_frame_equal(found.runs["table1"], whole, check_exact=True)


def test_an_unreadable_cell_is_computed_again(tmp_path):
    store = Store(tmp_path, QUICK)
    cell = Cell("table1", "german", "linear", "printed", "10")
    store.write(cell, {"x": 1.0})
    assert store.missing([cell]) == []
    store.path(cell).write_bytes(b"PAR1 half a file")
    assert store.missing([cell]) == [cell]


def test_a_run_depends_on_its_number_alone():
    cell = Cell("table1", "german", "linear", "honest", "10/n", run=1)
    first, second = run_cell(cell, QUICK), run_cell(cell, QUICK)
    other = run_cell(Cell("table1", "german", "linear", "honest", "10/n", run=0), QUICK)
    pd.testing.assert_series_equal(pd.Series(first), pd.Series(second))
    assert first["before_test_accuracy"] != other["before_test_accuracy"]


def test_the_papers_tables_are_as_printed(request):
    """Each number against the paper's source, where it is at hand."""
    paper = next((p for base in request.path.parents if (p := base.parent / "shared" / "paper").is_dir()), None)
    if paper is None:
        pytest.skip("the paper's source is not at hand")
    text = next(paper.glob("*.tex")).read_text()
    for table, kinds in ((TABLE_1, ("linear", "poly")), (TABLE_2, ("random forest", "logistic", "AdaBoost"))):
        for dataset in ("german", "credit", "propublica", "givemecredit"):
            numbers = [number for kind in kinds for number in table[dataset, kind]]
            row = next(
                line
                for line in text.splitlines()
                if line.strip().startswith(f"\\{dataset}") and line.count("\\%") == len(numbers)
            )
            printed = [int("".join(filter(str.isdigit, cell))) for cell in row.split("&")[1:]]
            assert printed == numbers


def test_reduction_is_that_of_the_means_and_counts_what_it_leaves_out():
    runs = pd.DataFrame({"before_test_gap": [1.0, 3.0, np.nan], "after_test_gap": [1.0, 1.0, 0.5]})
    found = reduction(runs, "test")
    assert found["value"] == pytest.approx(50.0)
    assert (found["runs"], found["degenerate"]) == (2, 1)
    assert found["low"] <= found["value"] <= found["high"]
    nothing = reduction(runs.iloc[2:], "test")
    assert np.isnan(nothing["value"])
    assert nothing["degenerate"] == 1


def test_an_undefined_cell_is_said_to_be_undefined():
    runs = pd.DataFrame(
        {"dataset": "german", "model": "linear", "protocol": "printed", "bound": "10", "degenerate": True}, index=[0]
    )
    for side in ("before", "after", "placebo"):
        for part in ("train", "test"):
            runs[f"{side}_{part}_gap"] = np.nan
    row = svm_table(runs).rows[1]
    assert row[:3] == ["german, linear", "test", "0 %"]
    assert row[3] == "undefined, 1 without"


def test_the_verdict_on_a_real_gap_follows_from_its_numbers():
    row = {"dataset": "credit", "group": "sex", "model": "ours", "run": 0}
    for side, gap, accuracy in (("before", 0.2, 0.8), ("placebo", 0.2, 0.8), ("after", 0.01, 0.795)):
        row |= {f"{side}_test_gap": gap, f"{side}_test_noise_floor": 0.02, f"{side}_test_accuracy": accuracy}
        row |= {f"{side}_test_relative_gap": gap, f"{side}_test_acceptance": 0.5}
    table = summarise_real_gaps(pd.DataFrame([row]))
    assert table[["at_floor", "ratio_falls", "within_budget"]].to_numpy().all()
    sentence = real_gap_sentences(pd.DataFrame([row]))[0]
    assert "brought to its floor by ours (0.200 to 0.010, floor 0.020; accuracy -0.5 points)" in sentence
    nothing = {**row, "before_test_gap": 0.03}
    assert "not below twice its floor by any method" in real_gap_sentences(pd.DataFrame([nothing]))[0]
    assert real_gap_table(pd.DataFrame([nothing])).rows[0][-1] == "its plain model has no gap"
    undefined = summarise_real_gaps(pd.DataFrame([row, {**row, "after_test_gap": np.nan}]))
    assert np.isnan(undefined["after_test_gap"]).all()
    assert not undefined["at_floor"].any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"what": "table3"}, "what must be one of"),
        ({"what": "table1", "datasets": ["adult"]}, "data sets are german"),
        ({"what": "table1", "protocols": ["lenient"]}, "'printed' and 'honest'"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        replicate(**arguments, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(ValueError, match="is a file; name a folder"):
        replicate("figure-toy", folder=tmp_path / "out")
