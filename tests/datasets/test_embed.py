"""The script that makes the embedded files, run backwards and forwards."""

import importlib.util
import io
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equirecourse.datasets import _credit
from equirecourse.datasets._bunch import embedded


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[2] / "tools" / "embed_datasets.py"
    if not path.is_file():
        pytest.skip("tools/embed_datasets.py is not part of an installed package")
    spec = importlib.util.spec_from_file_location("embed_datasets", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_german_survives_the_script(script):
    source = embedded("german.data.xz")
    assert lzma.decompress(script.german(source)) == source


def test_credit_survives_the_script(script):
    raw = _credit._raw()
    raw.insert(0, "ID", np.arange(1, len(raw) + 1))
    again = lzma.decompress(script.credit(raw.to_csv(index=False).encode()))
    assert again == embedded("credit.npy.xz")


def test_the_script_refuses_what_it_does_not_know(script, tmp_path):
    (tmp_path / "german.data").write_text("A11 6\n")
    with pytest.raises(SystemExit, match="has sha256"):
        script.read_source(tmp_path / "german.data", script.GERMAN_SHA256)
    with pytest.raises(SystemExit, match=r"1,000 lines of 21 codes"):
        script.german(b"A11 6\n")
    with pytest.raises(SystemExit, match=r"30,000 rows"):
        script.credit(pd.DataFrame({"ID": [1]}).to_csv(index=False).encode())


def test_embedded_array_needs_no_pickle():
    values = np.load(io.BytesIO(embedded("credit.npy.xz")), allow_pickle=False)
    assert values.dtype == np.dtype("<i4")
    assert values.shape == (30000, 24)
