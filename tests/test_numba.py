"""Compiled functions need no folder to be cached in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import equirecourse
from equirecourse._numba import njit


@pytest.fixture
def nowhere(tmp_path):
    """Variables for a process in which neither the package nor the user has a folder to cache in, whoever runs it."""
    library = tmp_path / "library"
    shutil.copytree(
        Path(equirecourse.__file__).parent, library / "equirecourse", ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in [path.parent for path in library.rglob("__init__.py")]:
        (folder / "__pycache__").touch()  # a file: no folder of that name can be made, not even by root
    kept = {name: value for name, value in os.environ.items() if name not in {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}}
    return {**kept, "PYTHONPATH": str(library), "HOME": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize("first", ["", "import numba; "], ids=["ours first", "numba first"])
def test_compiled_functions_run_where_nothing_can_be_cached(nowhere, tmp_path, first):
    code = (
        f"{first}from equirecourse import find_recourse, EqualRecourseSVC\n"
        "import equirecourse, numpy as np\n"
        "from equirecourse.equalizers._objective import _median_by_score\n"
        "slopes = _median_by_score(np.ones(2), np.ones(2), 1.0, 0.3)\n"
        "print(equirecourse.__file__, _median_by_score.stats.cache_path, *slopes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=nowhere, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    library = tmp_path / "library" / "equirecourse" / "__init__.py"
    assert (done.stdout.strip(), done.stderr) == (f"{library} None 0.5 0.5", "")


def test_the_command_line_runs_where_nothing_can_be_cached(nowhere, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "equirecourse.cli", "datasets"],
        env=nowhere, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "german" in done.stdout


def half(x):
    return x / 2


def test_a_function_is_cached_where_that_is_possible(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    compiled = njit(cache=True)(half)
    assert Path(compiled.stats.cache_path).is_relative_to(tmp_path)
    assert njit()(half).stats.cache_path is None


def test_without_a_home_no_folder_is_made_where_the_process_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does for a user whom the system lacks
    monkeypatch.chdir(tmp_path)
    assert njit(cache=True)(half).stats.cache_path is None
    assert list(tmp_path.iterdir()) == []
