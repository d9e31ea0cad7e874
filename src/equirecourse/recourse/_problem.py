"""One question to an engine: the rejected people, what they may change, what it costs, and the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions import ActionSet, Cost, cost_named
from equirecourse.recourse._view import View

__all__ = ["Answers", "Problem"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """What an engine found, one entry per person of its problem.

    Attributes
    ----------
    own : ndarray of shape (n_people, n_features)
        The value each person moves each feature to, before links; their start where nothing was found.
    found : ndarray of bool
        Who has an accepted action.
    proven : ndarray of bool
        For whom it is known that none is cheaper (found), or that there is none (not found).
    lower : ndarray of float
        No action of the person costs less than this; 0 if nothing is known, infinite if there is none.
    stopped : ndarray of bool
        Whose search ended because time was over.
    """

    own: Array
    found: Mask
    proven: Mask
    lower: Array
    stopped: Mask

    @classmethod
    def nothing(cls, problem: Problem) -> Answers:
        """Answers to be filled in: nothing found, nothing proven."""
        n = len(problem.start)
        found, proven, stopped = (np.zeros(n, dtype=bool) for _ in range(3))
        return cls(problem.start.copy(), found, proven, np.zeros(n), stopped)


@dataclass(frozen=True)
class Problem:
    """The rejected people and everything an engine needs to find their cheapest accepted action.

    A change is a matrix ``own``: one row per person, one column per feature of the action set, holding numbers, or
    codes of labels (−1 for a label outside the list, NaN for a missing number: these never move).

    Attributes
    ----------
    view : View
        The model.
    actions : ActionSet
        What may change.
    norm : str
        The name of the cost, one of ``NORMS``.
    table : DataFrame
        The people, all of them rejected, in the user's columns.
    background : DataFrame
        People of whom some may be accepted: where a search may start.
    time_limit : float
        Seconds per person; infinite if there is no limit.
    seed : int
        For engines that draw random numbers.
    tick : callable
        Called with a number of people each time that many are done.
    frozen : ndarray of bool, shape (n_people, n_features), or None
        What a person leaves alone although the action set would allow it.
    """

    view: View
    actions: ActionSet
    norm: str
    table: pd.DataFrame
    background: pd.DataFrame
    time_limit: float = np.inf
    seed: int = 0
    n_jobs: int | None = None
    tick: Callable[[int], Any] = field(default=lambda _: None, repr=False)
    frozen: Mask | None = None

    @cached_property
    def start(self) -> Array:
        """Where people are."""
        return self.actions.encode(self.table)

    @cached_property
    def reach(self) -> tuple[Array, Array]:
        """Lowest and highest value a person may move each feature to; low > high where nowhere."""
        low, high = self.actions.reach(self.start)
        if self.frozen is not None:
            low[self.frozen], high[self.frozen] = np.inf, -np.inf
        return low, high

    @property
    def cost(self) -> Cost:
        """How moves are priced, and how prices add up."""
        return cost_named(self.norm)

    @property
    def aggregate(self) -> str:
        """Deprecated: how prices add up, as a word."""
        warnings.warn(
            "Problem.aggregate goes away in the next release; ask Problem.cost, such as problem.cost.is_largest.",
            FutureWarning,
            stacklevel=2,
        )
        return {1.0: "sum", 2.0: "root"}.get(self.cost.exponent, "max")

    @cached_property
    def grids(self) -> list[Array | None]:
        """Values that each number is tried at by programs and searches; None where any number will do."""
        return [self.cost.grid(feature, self.start[:, j]) for j, feature in enumerate(self.actions)]

    @property
    def grids_are_whole(self) -> bool:
        """Whether the grids hold every value that one may move to."""
        return all(
            grid is None or self.cost.grid_is_whole(feature)
            for grid, feature in zip(self.grids, self.actions, strict=True)
        )

    def after(self, people: Any, own: Array) -> pd.DataFrame:
        """Show some people, by position and with repetitions, after a change, in the user's columns."""
        people = np.asarray(people)
        return self.actions.decode(self.table.iloc[people], self.start[people], own)

    def accepted(self, people: Any, own: Array) -> Mask:
        """Whether some people, by position and with repetitions, get a yes after a change."""
        return self.view.would_accept(self.after(people, own))

    def respected(self, people: Any, own: Array) -> Mask:
        """Whether a change of some people keeps to the action set, and to what they leave alone."""
        people = np.asarray(people)
        start = self.start[people]
        keeps = self.actions.respected(start, own)
        if self.frozen is not None:
            keeps &= ~(self.frozen[people] & (own != start) & ~np.isnan(start)).any(axis=1)
        return keeps

    def costs(self, people: Any, own: Array) -> Array:
        """Cost of a change of some people."""
        return self.cost.total(self.actions.costs(self.norm, self.start[np.asarray(people)], own))

    def take(self, people: Any) -> Problem:
        """The same question for some of the people."""
        people = np.asarray(people)
        frozen = None if self.frozen is None else self.frozen[people]
        part = replace(self, table=self.table.iloc[people], frozen=frozen)
        vars(part)["start"] = self.start[people]  # known already, and a table of labels takes long to read
        return part

    def sent(self, people: Any) -> Problem:
        """The same question for some of the people, to be sent to a process that cannot show progress.

        For engines that need nobody else: the background stays here.
        """
        return replace(self.take(people), background=self.background[:0], tick=_ignore_progress)


def _ignore_progress(_: int) -> None:
    """Take no notice of progress in another process."""
