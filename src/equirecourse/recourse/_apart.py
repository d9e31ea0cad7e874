"""People divided among workers that share no memory: processes of this machine, or of a cluster that joblib knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from equirecourse.recourse._problem import Answers, Problem

__all__ = ["has_processes", "has_workers_apart", "solve_apart"]

Ints = NDArray[np.intp]

_LOTS = 4  # per worker: enough to even out who is slow, few enough that the model is not sent around for nothing


def has_processes(n_jobs: int | None) -> bool:
    """Whether more than one worker was asked for, of whatever kind."""
    return bool(effective_n_jobs(n_jobs) > 1)


def has_workers_apart(n_jobs: int | None) -> bool:
    """Whether the workers are elsewhere because somebody said so, as in ``joblib.parallel_config("dask")``."""
    backend, _ = get_active_backend(prefer="threads")
    return has_processes(n_jobs) and not getattr(backend, "supports_sharedmem", False)


def solve_apart(
    problem: Problem, solve: Callable[..., Answers], given: Callable[[Ints], tuple[Any, ...]], *, least: int = 8
) -> Answers:
    """Ask workers about some people each, and put their answers together.

    A task carries the people it is about, never the others: their rows are all that grows with their number.

    Parameters
    ----------
    problem : Problem
        Everybody.
    solve : callable
        Called with a problem of some of the people, and with ``given`` for them; a function of a module, with answers
        that do not depend on who else is asked about.
    given : callable
        What else ``solve`` needs about the people at some places.
    least : int, default=8
        How many people it is worth a task to ask about.

    Returns
    -------
    Answers
        For everybody, in their order.
    """
    n = len(problem.table)
    number = max(1, min(_LOTS * effective_n_jobs(problem.n_jobs), -(-n // least)))
    batches = [batch for batch in np.array_split(np.arange(n), number) if len(batch)]
    if len(batches) == 1:
        return solve(problem, *given(batches[0]))
    parts = Parallel(n_jobs=problem.n_jobs, return_as="generator")(
        delayed(_answer)(solve, (problem.sent(batch), *given(batch))) for batch in batches
    )
    answers = Answers.nothing(problem)
    for batch, part in zip(batches, parts, strict=True):
        answers.own[batch], answers.found[batch] = part.own, part.found
        answers.proven[batch], answers.lower[batch], answers.stopped[batch] = part.proven, part.lower, part.stopped
        problem.tick(len(batch))
    return answers


def _answer(solve: Callable[..., Answers], given: tuple[Any, ...]) -> Answers:
    """What a task does. In a tuple, because joblib leaves arrays by themselves with one worker of a cluster alone.

    Should that worker be lost, so would they be; a tuple goes with the task, which can then be given to another.
    """
    with parallel_config("sequential"):
        return solve(*given)
