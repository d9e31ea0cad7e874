"""Measure, explain and equalise recourse across groups, in any scikit-learn model."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as type checkers know it: the module typing would take longer to load than the rest
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from equirecourse._audit import (
        RecourseAudit,
        StreamedAudit,
        audit,
        audit_partitions,
        audit_schema,
        cheats_in_words,
        read_audit,
    )
    from equirecourse._equalize import Equalized, equalize
    from equirecourse._flipsets import Change, Flipset, Flipsets, changes_of, flipsets
    from equirecourse.actions import ActionSet
    from equirecourse.equalizers import (
        EqualRecourseBoosting,
        EqualRecourseLinear,
        EqualRecourseSVC,
        RecourseReweighting,
        recourse_frontier,
    )
    from equirecourse.metrics import RecourseFrame, recourse_gap
    from equirecourse.recourse import find_recourse
else:
    ModuleType = type(sys)

__all__ = [
    "ActionSet",
    "Change",
    "EqualRecourseBoosting",
    "EqualRecourseLinear",
    "EqualRecourseSVC",
    "Equalized",
    "Flipset",
    "Flipsets",
    "RecourseAudit",
    "RecourseFrame",
    "RecourseReweighting",
    "StreamedAudit",
    "audit",
    "audit_partitions",
    "audit_schema",
    "changes_of",
    "cheats_in_words",
    "equalize",
    "find_recourse",
    "flipsets",
    "read_audit",
    "recourse_frontier",
    "recourse_gap",
]

__version__ = "0.1.0"

# Where each public name lives. A name is loaded when it is first asked for: the compiled solvers and what they stand on
# take seconds, and nobody needs all of them.
_NAMES = {
    "_audit": ("RecourseAudit", "StreamedAudit", "audit", "audit_partitions", "audit_schema", "cheats_in_words",
               "read_audit"),
    "_equalize": ("Equalized", "equalize"),
    "_flipsets": ("Change", "Flipset", "Flipsets", "changes_of", "flipsets"),
    "actions": ("ActionSet",),
    "equalizers": ("EqualRecourseBoosting", "EqualRecourseLinear", "EqualRecourseSVC", "RecourseReweighting",
                   "recourse_frontier"),
    "metrics": ("RecourseFrame", "recourse_gap"),
    "recourse": ("find_recourse",),
}  # fmt: skip
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _deprecated_module(name: str, renamed: dict[str, str]) -> ModuleType:
    """What ``from equirecourse.audit import read_audit`` finds for one more release: the names of ``_audit``."""

    def moved(attribute: str) -> Any:
        if attribute.startswith("__"):  # what Python asks of any module
            raise AttributeError(attribute)
        import warnings
        from importlib import import_module

        new = renamed.get(attribute, attribute)
        value = getattr(import_module(f"{__name__}._{name}"), new)
        where = f"from {__name__} import {new}" if new in _HOMES else "it is private now"
        message = f"{__name__}.{name}.{attribute} is deprecated and goes with the next release; {where}."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return value

    module = ModuleType(f"{__name__}.{name}")
    module.__getattr__ = moved  # type: ignore[method-assign]
    return module


# Known to the import system, never bound to the package: ``equirecourse.audit`` is the function.
sys.modules[f"{__name__}.audit"] = _deprecated_module("audit", {"schema": "audit_schema"})
sys.modules[f"{__name__}.flipsets"] = _deprecated_module("flipsets", {})
