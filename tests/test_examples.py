"""Every example of the gallery runs from start to end, without a screen and without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests._printed import assert_prints

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def run_python(arguments, folder):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(path, tmp_path):
    run = run_python(["-W", "error", str(path)], tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


def test_the_demo_prints_the_table_of_the_readme(tmp_path):
    recipe = re.search(r"^demo:.*\n\t\$\(BIN\)/equirecourse (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    run = run_python(["-m", "equirecourse.cli", *recipe.split()], tmp_path)
    assert run.returncode == 0, run.stderr
    table, *_ = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    start = run.stdout.index("sex  ")
    assert_prints(run.stdout[start : run.stdout.index("\nThe gap fell")], table)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "fair.skops"}


@pytest.mark.parametrize("name", ["speed", "recourse", "real-gaps", "black-boxes"])
def test_the_benchmark_runs_in_its_small_version(name):
    run = run_python(["-m", "benchmarks", name, "--quick"], ROOT)
    assert run.returncode == 0, run.stderr
    assert any(
        words in run.stdout for words in ("ours ÷ SVC", "HiGHS ÷ ours", "gap of the mark", "Spearman of surrogate")
    )
