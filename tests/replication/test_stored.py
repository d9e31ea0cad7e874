"""The tables in the documentation are those of the runs kept beside them, and the runs can be computed again."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equirecourse.replication._cells import FULL, Cell, table1_cells, table2_cells
from equirecourse.replication._markdown import black_box_table, real_gap_table, svm_table
from equirecourse.replication._run import run_cell

FOLDER = Path(__file__).parents[2] / "docs" / "replication"


@pytest.fixture(scope="module")
def stored():
    names = {"table1": "table1", "table2": "table2", "real-gaps": "real_gaps"}
    return {key: pd.read_parquet(FOLDER / f"{name}.parquet") for key, name in names.items()}


@pytest.mark.parametrize(
    "cell",
    [
        Cell("table1", "german", "linear", "printed", "10/n", run=3),
        Cell("table2", "german", "logistic", "honest", run=4),
    ],
    ids=["table1", "table2"],
)
def test_a_cell_computed_again_is_the_stored_one(stored, cell):
    runs = stored[cell.table]
    for name, value in cell.columns().items():
        runs = runs[runs[name] == value]
    assert len(runs) == 1
    before = runs.iloc[0]
    for name, value in run_cell(cell, FULL).items():
        if isinstance(value, float):
            assert value == pytest.approx(before[name], rel=1e-6, abs=1e-9, nan_ok=True), name
        else:
            assert value == before[name], name


def test_all_cells_of_both_tables_are_there_ten_times(stored):
    for name, cells in (("table1", table1_cells(FULL)), ("table2", table2_cells(FULL))):
        found = stored[name][["dataset", "model", "protocol", "bound", "run"]].itertuples(index=False, name=None)
        assert list(found) == [(c.dataset, c.model, c.protocol, c.bound, c.run) for c in cells]
    assert set(stored["table1"].groupby(["dataset", "model", "protocol", "bound"]).size()) == {10}
    assert set(stored["table2"].groupby(["dataset", "model", "protocol", "bound"]).size()) == {10}


def test_the_text_of_the_tables_follows_from_the_runs(stored):
    text = (FOLDER / "replication.md").read_text(encoding="utf-8")
    makers = {"table1": svm_table, "table2": black_box_table, "real-gaps": real_gap_table}
    for name, make in makers.items():
        for row in make(stored[name]).rows:
            assert "| " + " | ".join(row) + " |" in text


def test_degenerate_runs_are_those_without_a_difference(stored):
    for name, gap in (("table1", "gap"), ("table2", "surrogate")):
        runs = stored[name]
        gaps = [f"{side}_{part}_{gap}" for side in ("before", "after") for part in ("train", "test")]
        np.testing.assert_array_equal(runs["degenerate"], runs[gaps].isna().any(axis=1))


def test_the_folder_holds_what_the_page_shows():
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\((figures/[^)]+)\)", page)
    assert shown
    for name in shown:
        assert (FOLDER / name).is_file()
