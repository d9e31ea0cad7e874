"""Data that is not in the package, and a cache that is nobody's."""

import os
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def shared_data():
    """The folder named by EQUIRECOURSE_DATA, with the paper's files; without it, the test is skipped."""
    folder = os.environ.get("EQUIRECOURSE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EQUIRECOURSE_DATA does not name a folder with the paper's data")
    return Path(folder)


@pytest.fixture
def read_shared(shared_data):
    """Read one of those files."""

    def read(path):
        if not (shared_data / path).is_file():
            pytest.skip(f"EQUIRECOURSE_DATA has no {path}")
        return pd.read_csv(shared_data / path)

    return read


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, with nothing in the environment that would bypass it."""
    monkeypatch.delenv("EQUIRECOURSE_DATA", raising=False)
    monkeypatch.setenv("EQUIRECOURSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
