"""All engines, in the order in which they are asked whether they can read a model."""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points
from typing import Any

from equirecourse.recourse import _kernel, _linear, _search, _trees
from equirecourse.recourse._engine import Engine

__all__ = ["SEARCH", "can_read", "engine_for", "engine_named", "engine_names", "is_builtin", "register_engine"]

SEARCH = _search.ENGINE  # reads anything that predicts
BUILTIN = (_linear.ENGINE, _trees.ENGINE, _kernel.ENGINE, SEARCH)
_RESERVED = ("auto", "milp", "surrogate")  # values of ``method`` that are no engine
_GROUP = "equirecourse.engines"

_registered: dict[str, Engine] = {}
_state = {"entry points loaded": False}


def register_engine(engine: Engine) -> None:
    """Let :func:`~equirecourse.find_recourse` and everything built on it use an engine of your own.

    It is asked before the engines of the package, the last one registered first, in this process only: worker processes
    do not know it. A package that names its engine as an entry point of the group ``equirecourse.engines`` is known in
    every process, also in the workers of a cluster.

    Parameters
    ----------
    engine : Engine
        Takes the place of one with the same name that was registered before.

    Examples
    --------
    >>> from equirecourse.recourse import Answers, Engine, register_engine
    >>> register_engine(Engine("nobody", can_read=lambda model: False, solve=Answers.nothing))
    """
    _load_entry_points()  # so that those named here come after them, and are asked first
    _add(engine)


def _add(engine: Engine) -> None:
    if not isinstance(engine, Engine):
        raise TypeError(f"register_engine takes an equirecourse.recourse.Engine, got {type(engine).__name__}.")
    taken = (*(builtin.name for builtin in BUILTIN), *_RESERVED)
    if not isinstance(engine.name, str) or not engine.name or engine.name in taken:
        raise ValueError(
            f"the name of an engine must be text other than {', '.join(taken)}, which are taken; got {engine.name!r}."
        )
    if not callable(engine.can_read) or not callable(engine.solve):
        raise TypeError(f"can_read and solve of the engine {engine.name!r} must be functions.")
    _registered.pop(engine.name, None)
    _registered[engine.name] = engine


def engine_for(model: Any) -> Engine:
    """The first engine that can read the last estimator of a model."""
    return next(engine for engine in _all() if can_read(engine, model))


def can_read(engine: Engine, model: Any) -> bool:
    """Whether an engine can read the last estimator of a model; one that fails over the question cannot."""
    if is_builtin(engine):
        return engine.can_read(model)
    try:
        return bool(engine.can_read(model))
    except Exception as error:  # whatever somebody else's code does
        warnings.warn(
            f"The engine {engine.name!r} was passed over: its can_read failed for {type(model).__name__} ({error}).",
            UserWarning,
            stacklevel=2,
        )
        return False


def is_builtin(engine: Engine) -> bool:
    """Whether an engine is one of the package."""
    return any(engine is builtin for builtin in BUILTIN)


def engine_named(name: str) -> Engine:
    """The engine of a name that is known to be one."""
    return next(engine for engine in _all() if engine.name == name)


def engine_names() -> tuple[str, ...]:
    """What ``method`` may be, besides the values that are no engine."""
    return tuple(engine.name for engine in _all())


def _all() -> tuple[Engine, ...]:
    _load_entry_points()
    return (*reversed(_registered.values()), *BUILTIN)


def _load_entry_points() -> None:
    """Register the engines of other packages, once; one that cannot be loaded is named, and is no reason to stop."""
    if _state["entry points loaded"]:
        return
    _state["entry points loaded"] = True  # at once: a package may ask for recourse while it is imported
    for point in entry_points(group=_GROUP):
        try:
            _add(point.load())
        except Exception as error:  # whatever the other package does
            warnings.warn(f"The engine {point.name!r} ({point.value}) was left out: {error}", UserWarning, stacklevel=2)
