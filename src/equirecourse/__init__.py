"""Measure, explain and equalise recourse across groups, in any scikit-learn model."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as type checkers know it: the module typing would take longer to load than the rest
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from equirecourse._equalize import Equalized, equalize
    from equirecourse.actions import ActionSet
    from equirecourse.audit import RecourseAudit, audit, audit_partitions
    from equirecourse.equalizers import (
        EqualRecourseBoosting,
        EqualRecourseLinear,
        EqualRecourseSVC,
        RecourseReweighting,
        recourse_frontier,
    )
    from equirecourse.flipsets import flipsets
    from equirecourse.metrics import RecourseFrame, recourse_gap
    from equirecourse.recourse import find_recourse
else:
    ModuleType = type(sys)

__all__ = [
    "ActionSet",
    "EqualRecourseBoosting",
    "EqualRecourseLinear",
    "EqualRecourseSVC",
    "Equalized",
    "RecourseAudit",
    "RecourseFrame",
    "RecourseReweighting",
    "audit",
    "audit_partitions",
    "equalize",
    "find_recourse",
    "flipsets",
    "recourse_frontier",
    "recourse_gap",
]

__version__ = "0.1.0"

# Where each public name lives. A name is loaded when it is first asked for: the compiled solvers and what they stand on
# take seconds, and nobody needs all of them.
_HOMES = {
    "ActionSet": "actions",
    "EqualRecourseBoosting": "equalizers",
    "EqualRecourseLinear": "equalizers",
    "EqualRecourseSVC": "equalizers",
    "Equalized": "_equalize",
    "RecourseAudit": "audit",
    "RecourseFrame": "metrics",
    "RecourseReweighting": "equalizers",
    "audit": "audit",
    "audit_partitions": "audit",
    "equalize": "_equalize",
    "find_recourse": "recourse",
    "flipsets": "flipsets",
    "recourse_frontier": "equalizers",
    "recourse_gap": "metrics",
}


class _Package(ModuleType):
    """The package itself. ``audit`` and ``flipsets`` are functions, whoever loads the parts of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds a part to its package once it is loaded; the function of that name takes precedence.
        if isinstance(value, ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
