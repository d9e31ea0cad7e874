"""``import equirecourse`` is light, and its names are what they say whatever was loaded before."""

import importlib
import json
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


BEFORE = [
    "import equirecourse",
    "import equirecourse.audit, equirecourse.flipsets",
    "from equirecourse.audit import read_audit; from equirecourse.flipsets import Flipset",
    "from equirecourse.plotting import FrontierDisplay",
]
FUNCTIONS = ["audit", "flipsets"]
# One fresh process for everything: from one step to the next it forgets our modules and keeps those of others.
CODE = f"""
import json, sys

def loaded(names):
    return [name for name in names if name in sys.modules]

import equirecourse
found = {{"package": loaded({HEAVY!r})}}
equirecourse.EqualRecourseLinear
found["model"] = loaded(["torch", "matplotlib"])
import equirecourse.plotting
found["displays"] = loaded(["torch", "matplotlib"])
for before in {BEFORE!r}:
    for name in {FUNCTIONS!r}:
        for ours in [ours for ours in sys.modules if ours.split(".")[0] == "equirecourse"]:
            del sys.modules[ours]
        names = {{}}
        exec(before, names)
        exec(f"import equirecourse; from equirecourse import {{name}}", names)
        function, home = names[name], names["equirecourse"]
        found[f"{{before}}, {{name}}"] = [type(function).__name__, getattr(home, name) is function, type(home).__name__]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """What a fresh process found after each step."""
    return json.loads(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout)


def test_importing_the_package_loads_nothing_heavy(found):
    assert found["package"] == []


def test_a_model_loads_neither_pytorch_nor_matplotlib(found):
    assert found["model"] == []


def test_displays_load_matplotlib_when_something_is_drawn(found):
    assert found["displays"] == []


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("before", BEFORE)
def test_audit_and_flipsets_are_functions_whatever_was_loaded_before(found, before, name):
    assert found[f"{before}, {name}"] == ["function", True, "module"]


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
