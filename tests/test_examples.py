"""Every example of the gallery runs from start to end, without a screen and without a warning."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from tests._printed import assert_prints

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
# The benchmark, and words of its tables.
BENCHMARKS = {
    "speed": "ours ÷ SVC",
    "recourse": "HiGHS ÷ ours",
    "surrogates": "Spearman of surrogate",
    "equalizers": "transport gap (floor)",
    "scaling": "one fit after another",
}


def run_python(arguments, folder):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,  # for what hangs; a busy machine takes minutes
        check=False,
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        plt.close("all")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.strip()
    assert list(tmp_path.iterdir()) == []


def test_what_the_examples_import_warns_of_nothing(tmp_path):
    # In a process of its own: here everything has been imported before.
    code = "\n".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    imports = "\n".join(re.findall(r"^(?:import|from) .*$", code, re.MULTILINE))
    run = run_python(["-W", "error", "-c", imports], tmp_path)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "")


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


def test_the_demo_prints_the_table_of_the_readme(tmp_path):
    recipe = re.search(r"^demo:.*\n\t\$\(BIN\)/equirecourse (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    alone = recipe.replace("--jobs 2", "--jobs 1")  # the other core is busy with other tests
    assert alone != recipe
    run = run_python(["-m", "equirecourse.cli", *alone.split()], tmp_path)
    assert run.returncode == 0, run.stderr
    (table,) = re.findall(r"```text\n(graduate  .*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    start = run.stdout.index("graduate  ")
    assert_prints(run.stdout[start : run.stdout.index("\nThe gap fell")], table)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "fair.skops"}


def test_the_benchmarks_run_in_their_small_versions():
    # One process, and one test: two would be given to two processes, each of which runs all of them.
    run = run_python(["-m", "benchmarks", *BENCHMARKS, "--quick"], ROOT)
    assert run.returncode == 0, run.stderr
    assert [name for name, words in BENCHMARKS.items() if words not in run.stdout] == []
