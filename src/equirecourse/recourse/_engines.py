"""All engines, in the order in which they are asked whether they can read a model."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from equirecourse.recourse import _kernel, _linear, _search, _trees
from equirecourse.recourse._engine import Engine

__all__ = ["SEARCH", "engine_for", "engine_named", "engine_names", "register_engine"]

SEARCH = _search.ENGINE  # reads anything that predicts
OWN = (_linear.ENGINE, _trees.ENGINE, _kernel.ENGINE, SEARCH)
_RESERVED = ("auto", "milp", "surrogate")  # values of ``method`` that are no engine
_GROUP = "equirecourse.engines"

_registered: dict[str, Engine] = {}


def register_engine(engine: Engine) -> None:
    """Let :func:`~equirecourse.find_recourse` and everything built on it use an engine of your own.

    It is asked before the engines of the package, the last one registered first, in this process only. A package that
    names its engine as an entry point of the group ``equirecourse.engines`` is known in every process, also in the
    workers of a cluster.

    Parameters
    ----------
    engine : Engine
        Takes the place of one with the same name that was registered before.

    Examples
    --------
    >>> from equirecourse.recourse import Answers, Engine, register_engine
    >>> register_engine(Engine("nobody", can_read=lambda model: False, solve=Answers.nothing))
    """
    if not isinstance(engine, Engine):
        raise TypeError(f"register_engine takes an equirecourse.recourse.Engine, got {type(engine).__name__}.")
    taken = (*(own.name for own in OWN), *_RESERVED)
    if engine.name in taken:
        raise ValueError(f"the name {engine.name!r} is taken, as are {', '.join(taken)}; give the engine another one.")
    _registered.pop(engine.name, None)
    _registered[engine.name] = engine


def engine_for(model: Any) -> Engine:
    """The first engine that can read the last estimator of a model."""
    return next(engine for engine in _all() if engine.can_read(model))


def engine_named(name: str) -> Engine:
    """The engine of a name that is known to be one."""
    return next(engine for engine in _all() if engine.name == name)


def engine_names() -> tuple[str, ...]:
    """What ``method`` may be, besides the values that are no engine."""
    return tuple(engine.name for engine in _all())


def _all() -> tuple[Engine, ...]:
    _load_entry_points()
    return (*reversed(_registered.values()), *OWN)


@cache
def _load_entry_points() -> None:
    """Register the engines of other packages; one that cannot be loaded is named, and is no reason to stop."""
    for point in entry_points(group=_GROUP):
        try:
            register_engine(point.load())
        except Exception as error:  # whatever the other package does
            warnings.warn(f"The engine {point.name!r} ({point.value}) was left out: {error}", UserWarning, stacklevel=6)
