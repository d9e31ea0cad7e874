"""Imports point downwards only. The layers of the design, read from the syntax tree."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import equirecourse

PACKAGE = Path(equirecourse.__file__).parent

# What each part of the package may import of the others, besides itself.
_BOTTOM = {"_validation", "exceptions"}
_RECOURSE = {"recourse", "actions", *_BOTTOM}
MAY_IMPORT = {
    "exceptions": set(),
    "_numba": set(),
    "_plain": set(),
    "_validation": {"exceptions"},
    "_partitions": {"_validation"},
    "solvers": {"exceptions", "_numba"},
    "actions": {"_files", *_BOTTOM},  # an action set is written like any other file
    "recourse": {"actions", "_numba", *_BOTTOM},
    "metrics": {"_plain", *_RECOURSE},
    "_flipsets": _RECOURSE,
    "equalizers": {"_partitions", "solvers", "metrics", "_numba", *_RECOURSE},
    "_unfinished": set(),
    "_files": {"_unfinished"},
    "report": set(),  # draws plain documents, and knows nothing of what they are about
    "_audit": {"report", "_plain", "_partitions", "metrics", "_flipsets", "equalizers", "_files", *_RECOURSE},
    "_equalize": {"_audit", "metrics", "equalizers", *_RECOURSE},
    "torch": {"equalizers", "_validation"},
    "datasets": {"actions", "_unfinished", *_BOTTOM},
    "plotting": {"_audit", "metrics", "_flipsets", "equalizers", *_RECOURSE},
    "replication": {
        "_audit",
        "report",
        "_files",
        "metrics",
        "_flipsets",
        "equalizers",
        "_equalize",
        "datasets",
        "plotting",
        *_RECOURSE,
    },
    "cli": {
        "_partitions",
        "report",
        "_unfinished",
        "_files",
        "_audit",
        "metrics",
        "_flipsets",
        "equalizers",
        "_equalize",
        "datasets",
        "plotting",
        "replication",
        *_RECOURSE,
    },
    "__main__": {"cli"},
    "__init__": {"_equalize", "_audit", "metrics", "_flipsets", "equalizers", *_RECOURSE},
}
# What numbers-only code needs of the outside, besides the standard library.
OUTSIDE_OF_SOLVERS = {"numpy", "scipy", "numba", "cvxopt", "threadpoolctl"}


def imports_of(tree, module):
    """Absolute name of everything a module imports, and whether that happens when the module is loaded."""
    package = module.split(".")[:-1]
    for node, at_load in _walk(tree, at_load=True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, at_load
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            # "from equirecourse import metrics" imports equirecourse.metrics as much as the longer form does.
            for alias in node.names:
                yield f"{stem}.{alias.name}", at_load


def _walk(node, *, at_load):
    for child in ast.iter_child_nodes(node):
        yield child, at_load
        inside = at_load and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        # Names for the type checker alone are not loaded, yet they are dependencies all the same.
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inside = False
        yield from _walk(child, at_load=inside)


def violations(source, module):
    """What a module imports against the rules, one sentence each."""
    parts = module.split(".")
    own = parts[1] if len(parts) > 1 else "__init__"
    found = []
    for name, at_load in imports_of(ast.parse(source), module):
        top, _, rest = name.partition(".")
        if top == "matplotlib" and at_load:
            found.append(f"{module} imports {name} when it is loaded")
        if name in {"numba", "numba.njit"} and own != "_numba":
            found.append(f"{module} imports {name}, not njit of equirecourse._numba, which needs no cache")
        if top == "equirecourse":
            target = rest.split(".")[0]
            if target not in MAY_IMPORT:  # a name such as __version__, or a public one from the package itself
                found.append(f"{module} imports {name} through the top of the package")
            elif target != own and target not in MAY_IMPORT[own]:
                found.append(f"{module} imports {name}")
        elif own == "solvers" and top not in OUTSIDE_OF_SOLVERS and top not in sys.stdlib_module_names:
            found.append(f"{module} imports {name}")
    return found


def _modules():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found.append(pytest.param(path, ".".join(parts), id="/".join(parts[1:])))
    return found


@pytest.mark.parametrize(("path", "module"), _modules())
def test_imports_point_downwards(path, module):
    # A package's __init__ is a module of that package, except for the one at the top.
    assert violations(path.read_text(encoding="utf-8"), module) == []


def test_every_part_of_the_package_has_its_place_in_the_layers():
    parts = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert parts - {"py"} <= set(MAY_IMPORT)


def test_the_layers_have_no_cycle():
    order = []
    left = {name: set(below) for name, below in MAY_IMPORT.items()}
    while left:
        free = [name for name, below in left.items() if not below & set(left)]
        assert free, f"a cycle among {sorted(left)}"
        order += free
        left = {name: below for name, below in left.items() if name not in free}
    assert order.index("exceptions") < order.index("recourse") < order.index("equalizers") < order.index("cli")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("equirecourse.metrics._gap", "from equirecourse.equalizers import EqualRecourseSVC"),
        ("equirecourse.metrics._gap", "import equirecourse.equalizers._svc"),
        ("equirecourse.metrics._gap", "from equirecourse import equalize"),
        ("equirecourse.metrics._gap", "from ..equalize import EqualRecourseSVC"),
        ("equirecourse.metrics._gap", "from .. import equalize"),
        ("equirecourse.metrics._gap", "def f():\n    from equirecourse.equalizers import EqualRecourseSVC"),
        ("equirecourse.metrics._gap", "if TYPE_CHECKING:\n    from equirecourse.equalizers import EqualRecourseSVC"),
        ("equirecourse.metrics._gap", "from equirecourse import EqualRecourseSVC"),
        ("equirecourse.recourse._linear", "from equirecourse.metrics import recourse_gap"),
        ("equirecourse._validation", "from equirecourse.recourse import boundary_costs"),
        ("equirecourse.exceptions", "from equirecourse._validation import check_labels"),
        ("equirecourse.solvers._dual", "from sklearn.svm import SVC"),
        ("equirecourse.solvers._dual", "import pandas as pd"),
        ("equirecourse.solvers._dual", "from equirecourse._validation import check_labels"),
        ("equirecourse.equalizers._svc", "from equirecourse.plotting import FrontierDisplay"),
        ("equirecourse.equalizers._svc", "from equirecourse.datasets import load_credit"),
        ("equirecourse.report._html", "from equirecourse.cli import main"),
        ("equirecourse.__init__", "from equirecourse.cli import main"),
        ("equirecourse.solvers._dual", "import numba"),
        ("equirecourse.recourse._trees._search", "from numba import njit"),
        ("equirecourse.plotting._frontier", "import matplotlib.pyplot as plt"),
        ("equirecourse.plotting._frontier", "from matplotlib import pyplot"),
        ("equirecourse.plotting._frontier", "try:\n    import matplotlib\nexcept ImportError:\n    pass"),
        ("equirecourse.plotting._frontier", "class Display:\n    import matplotlib"),
    ],
)
def test_a_planted_violation_is_found(module, source):
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("equirecourse.metrics._gap", "import numpy as np\nfrom equirecourse.metrics._frame import RecourseFrame"),
        ("equirecourse.metrics._gap", "from equirecourse._validation import check_costs"),
        ("equirecourse.metrics.__init__", "from ._gap import recourse_gap"),
        ("equirecourse.equalizers._frontier", "from equirecourse.metrics import RecourseFrame"),
        ("equirecourse.equalizers._svc", "from equirecourse.solvers import KernelDual"),
        (
            "equirecourse.solvers._qp",
            "import os\nfrom numba import types\nfrom scipy import linalg\nfrom equirecourse.exceptions import X",
        ),
        ("equirecourse.plotting._frontier", "def plot():\n    import matplotlib.pyplot as plt"),
        ("equirecourse.plotting._frontier", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        ("equirecourse.__init__", "from equirecourse.equalizers import EqualRecourseSVC"),
        ("equirecourse.cli.audit", "from equirecourse.report import render"),
    ],
)
def test_what_is_allowed_is_not_reported(module, source):
    assert violations(source, module) == []


def test_importing_the_package_loads_neither_matplotlib_nor_the_reference_solver():
    heavy = {"matplotlib", "cvxopt", "polars", "dask", "distributed"}
    code = f"import sys, equirecourse; print(*sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
