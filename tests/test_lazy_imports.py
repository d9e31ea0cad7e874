"""``import equirecourse`` is light, and its names are what they say whatever was loaded before."""

import importlib
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


@pytest.mark.parametrize("name", ["audit", "flipsets"])
@pytest.mark.parametrize(
    "before",
    [
        "import equirecourse",
        "import equirecourse.audit, equirecourse.flipsets",
        "from equirecourse.audit import read_audit; from equirecourse.flipsets import Flipset",
        "from equirecourse.plotting import FrontierDisplay",
    ],
)
def test_audit_and_flipsets_are_functions_whatever_was_loaded_before(before, name):
    code = (
        f"{before}\nimport equirecourse\nfrom equirecourse import {name}\n"
        f"print(type({name}).__name__, equirecourse.{name} is {name}, type(equirecourse).__name__)"
    )
    assert run(code) == "function True module"


@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("audit", "read_audit", "read_audit"),
        ("audit", "schema", "audit_schema"),
        ("audit", "RecourseAudit", "RecourseAudit"),
        ("flipsets", "Flipset", "Flipset"),
        ("flipsets", "flipsets", "flipsets"),
    ],
)
def test_names_of_the_former_modules_warn_and_are_those_of_the_package(old, name, new):
    with pytest.warns(DeprecationWarning, match=f"{old}.{name} is deprecated .* from equirecourse import {new}"):
        found = getattr(importlib.import_module(f"equirecourse.{old}"), name)
    assert found is getattr(equirecourse, new)


def test_private_names_of_the_former_modules_warn_too():
    with pytest.warns(DeprecationWarning, match="SCHEMA_VERSION is deprecated .* it is private now"):
        from equirecourse.audit import SCHEMA_VERSION
    assert equirecourse.audit_schema()["properties"]["version"]["const"] == SCHEMA_VERSION


def test_every_public_name_is_there_and_listed():
    for name in equirecourse.__all__:
        assert getattr(equirecourse, name).__name__ == name
    assert set(equirecourse.__all__) <= set(dir(equirecourse))
    assert set(equirecourse._HOMES) == set(equirecourse.__all__)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'equalise'"):
        _ = equirecourse.equalise
