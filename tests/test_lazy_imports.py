"""``import equirecourse`` is light, and its names are what they say whatever was loaded before."""

import subprocess
import sys

import pytest

import equirecourse

HEAVY = [
    "matplotlib.pyplot",
    "altair",
    "typer",
    "rich",
    "pyarrow.dataset",
    "numba",
    "sklearn",
    "pandas",
    "dask",
    "jinja2",
]


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    assert run(f"import sys, equirecourse; print([m for m in {HEAVY!r} if m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    "before",
    [
        "import equirecourse",
        "import equirecourse.audit, equirecourse.flipsets",
        "from equirecourse.audit import read_audit; from equirecourse.flipsets import Flipset",
        "from equirecourse.plotting import FrontierDisplay",
    ],
)
def test_audit_and_flipsets_are_functions_whatever_was_loaded_before(before):
    code = (
        f"{before}\nimport equirecourse\nfrom equirecourse import audit, flipsets\n"
        "print(type(audit).__name__, type(flipsets).__name__, equirecourse.audit is audit, "
        "equirecourse.flipsets is flipsets)"
    )
    assert run(code) == "function function True True"


def test_every_public_name_is_there_and_listed():
    for name in equirecourse.__all__:
        assert getattr(equirecourse, name).__name__ == name
    assert set(equirecourse.__all__) <= set(dir(equirecourse))
    assert set(equirecourse._HOMES) == set(equirecourse.__all__)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'equalise'"):
        _ = equirecourse.equalise
