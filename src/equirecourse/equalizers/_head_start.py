"""Where the rounds begin among many people: with those whom the rounds over one in eight of them end with.

The rounds settle who is rejected, and a part of the people tells that nearly as well as everybody does, in a fraction
of the time. Everybody's own rounds then have little left to do. They end by the same rules as ever, so a part that
misleads costs time and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equirecourse.equalizers._problem import FitData, Problem
from equirecourse.equalizers._rounds import MANY_PEOPLE, Round, RoundFit, Setting, look
from equirecourse.solvers import one_in_eight

__all__ = ["LinearScore", "head_start"]

Array = NDArray[np.float64]

_FEW_CHANGES = 0.002  # share of a part's decisions: what is left to change, everybody's rounds will see


@dataclass(frozen=True)
class LinearScore:
    """What a model of others says of people, as the rounds see a fit."""

    scores: Array
    balance_scores: Array
    norm: float
    differences: Array = field(default_factory=lambda: np.empty(0))
    stiffness: float = np.inf


def head_start(problem: Problem, setting_of: Callable[[FitData], Setting], most: int) -> Round | None:
    """Everybody as the model of a part sees them; None where there is no such part.

    Parameters
    ----------
    problem : Problem
        Everybody.
    setting_of : callable
        What stays the same in all rounds, for some people's data.
    most : int
        Most rounds over a part; none, and there is no head start.
    """
    n, weight = len(problem.data.y), problem.data.sample_weight
    if n < MANY_PEOPLE or most == 0:
        return None
    rows = one_in_eight(n)
    part = problem.part(rows, float(weight.sum() / weight[rows].sum()))
    if part is None or (part.data.y == part.data.y[0]).all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the rounds over everybody say what there is to say
        fit = _settled(part, setting_of, most)
    if fit is None:
        return None
    return look(setting_of(problem.data), 0, "part", problem.carry_over(fit, part), None, None)


def _settled(part: Problem, setting_of: Callable[[FitData], Setting], most: int) -> RoundFit | None:
    """The rounds over a part, until few decisions change; None where there is nothing to balance."""
    setting, last = setting_of(part.data), head_start(part, setting_of, most)
    for number in range(most + 1):
        # The plain model is needed only where nobody has told where to begin.
        contrasts = None if last is None else last.own
        fit = part.fit(contrasts)
        current = look(setting, number, "part", fit, contrasts, last)
        if len(current.own) == 0:
            return None
        if last is not None and current.summary["changed"] <= _FEW_CHANGES * len(part.data.y):
            break
        last = current
    return fit
