"""What an engine is: a way to find the cheapest accepted actions under one kind of model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from equirecourse.recourse._problem import Answers, Problem

__all__ = ["Engine"]


@dataclass(frozen=True)
class Engine:
    """A way to find the cheapest accepted action of each person under the models that it can read.

    :func:`~equirecourse.find_recourse` asks the first engine that can read the last estimator of a model, and checks
    every action that comes back with the whole model and the action set. What an engine says it has *proven* is taken
    on its word.

    Parameters
    ----------
    name : str
        What ``method=`` and :attr:`Recourse.method` call it.
    can_read : callable
        From the last estimator of a model to whether this engine knows it.
    solve : callable
        From a :class:`Problem` to :class:`Answers`. It may raise :class:`Opaque` with a reason: the model is then
        searched instead, and the reason is told.
    solve_by_programs : callable, optional
        The same by another way that proves as much, for ``method="milp"``: two proofs that check each other.
    settles_the_boundary : bool, default=False
        Whether the engine has asked the model about those who end on its very boundary one by one, as the check at the
        end would do.

    See Also
    --------
    register_engine : add one.

    Examples
    --------
    >>> from equirecourse.recourse import Answers, Engine
    >>> Engine("nobody", can_read=lambda model: False, solve=Answers.nothing).name
    'nobody'
    """

    name: str
    can_read: Callable[[Any], bool]
    solve: Callable[[Problem], Answers]
    solve_by_programs: Callable[[Problem], Answers] | None = None
    settles_the_boundary: bool = False
