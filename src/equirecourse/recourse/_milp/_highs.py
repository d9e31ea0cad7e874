"""Mixed-integer linear programs: a small builder, and the one place that calls HiGHS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

__all__ = ["Expression", "Program", "Solution", "total"]

Array = NDArray[np.float64]

# What scipy's status numbers mean; everything else is a failure of the solver.
_STATUS = {0: "optimal", 1: "stopped", 2: "infeasible", 3: "unbounded"}

_TINY = 1e-6  # HiGHS' own feasibility tolerance: what a weight below it does, presolve may take for nothing


@dataclass(frozen=True)
class Expression:
    """A weighted sum of variables plus a constant."""

    terms: Mapping[int, float]
    constant: float = 0.0

    def __add__(self, other: Expression | float) -> Expression:
        if not isinstance(other, Expression):
            return Expression(self.terms, self.constant + other)
        terms = dict(self.terms)
        for variable, weight in other.terms.items():
            terms[variable] = terms.get(variable, 0.0) + weight
        return Expression(terms, self.constant + other.constant)

    def __mul__(self, factor: float) -> Expression:
        return Expression({v: factor * weight for v, weight in self.terms.items()}, factor * self.constant)

    def __sub__(self, other: Expression | float) -> Expression:
        return self + other * -1.0

    def at(self, values: Array) -> float:
        """Its value for values of all variables."""
        return self.constant + float(sum(weight * values[v] for v, weight in self.terms.items()))


@dataclass(frozen=True)
class Solution:
    """What the solver says.

    Attributes
    ----------
    status : {"optimal", "stopped", "infeasible", "failed"}
        "stopped": time was over; there may be values all the same. "failed": the solver gave up.
    values : ndarray or None
        The variables of the best point.
    objective : float
        Its objective; infinite without one.
    bound : float
        No point has a smaller objective than this.
    """

    status: str
    values: Array | None
    objective: float
    bound: float


class Program:
    """Minimise a linear function of variables, some of them whole numbers, within rows.

    Examples
    --------
    >>> from equirecourse.recourse._milp._highs import Program
    >>> program = Program()
    >>> apples, pears = program.whole(0, 10), program.variable(0, 10)
    >>> program.at_least(apples * 2.0 + pears, 7.5)
    >>> program.minimise(apples * 3.0 + pears * 2.0)
    >>> round(program.solve().objective, 6)
    12.0
    """

    def __init__(self) -> None:
        self._low: list[float] = []
        self._high: list[float] = []
        self._is_whole: list[int] = []
        self._columns: list[int] = []
        self._weights: list[float] = []
        self._ends: list[int] = [0]
        self._row_low: list[float] = []
        self._row_high: list[float] = []
        self._objective = Expression({})

    def copy(self) -> Program:
        """A program of its own that begins as this one is."""
        other = Program()
        for name, value in vars(self).items():
            setattr(other, name, list(value) if isinstance(value, list) else value)
        return other

    def variable(self, low: float = -np.inf, high: float = np.inf) -> Expression:
        """Add a variable."""
        return self._add(low, high, 0)

    def whole(self, low: float, high: float) -> Expression:
        """Add a variable that is a whole number."""
        return self._add(low, high, 1)

    def switch(self) -> Expression:
        """Add a variable that is 0 or 1."""
        return self._add(0.0, 1.0, 1)

    def _add(self, low: float, high: float, whole: int) -> Expression:
        self._low.append(low)
        self._high.append(high)
        self._is_whole.append(whole)
        return Expression({len(self._low) - 1: 1.0})

    def fix(self, variable: int, low: float, high: float) -> None:
        """Set new limits of a variable, by its position."""
        self._low[variable], self._high[variable] = low, high

    def limits(self, variable: int) -> tuple[float, float]:
        """Limits of a variable, by its position."""
        return self._low[variable], self._high[variable]

    @property
    def wholes(self) -> list[int]:
        """Positions of the variables that are whole numbers."""
        return [v for v, whole in enumerate(self._is_whole) if whole]

    def between(self, expression: Expression, low: float, high: float) -> None:
        """Add a row: the expression is between two numbers."""
        self._columns += expression.terms.keys()
        self._weights += expression.terms.values()
        self._ends.append(len(self._columns))
        self._row_low.append(low - expression.constant)
        self._row_high.append(high - expression.constant)

    def at_least(self, expression: Expression, low: float) -> None:
        """Add a row: the expression is not below a number."""
        self.between(expression, low, np.inf)

    def at_most(self, expression: Expression, high: float) -> None:
        """Add a row: the expression is not above a number."""
        self.between(expression, -np.inf, high)

    def equal(self, expression: Expression, value: float = 0.0) -> None:
        """Add a row: the expression is a number."""
        self.between(expression, value, value)

    def one_of(self, switches: Iterable[Expression]) -> None:
        """Add a row: exactly one of these is 1."""
        self.equal(total(switches), 1.0)

    def matrix(self, expressions: Sequence[Expression]) -> Array:
        """Weights of some expressions, one row each."""
        weights = np.zeros((len(expressions), len(self._low)))
        for row, expression in zip(weights, expressions, strict=True):
            row[list(expression.terms)] = list(expression.terms.values())
        return weights

    def without(self, variables: Iterable[int]) -> tuple[Array, Array, Array, Array, Array]:
        """Limits of the variables, and matrix and limits of the rows in which some variables do not appear."""
        gone = set(variables)
        spans = zip(self._ends[:-1], self._ends[1:], strict=True)
        kept = [row for row, (begin, end) in enumerate(spans) if gone.isdisjoint(self._columns[begin:end])]
        rows = sparse.csr_array((self._weights, self._columns, self._ends), shape=(len(self._row_low), len(self._low)))
        return (
            np.array(self._low), np.array(self._high), rows[kept].toarray(),
            np.array(self._row_low)[kept], np.array(self._row_high)[kept],
        )  # fmt: skip

    @property
    def is_delicate(self) -> bool:
        """Whether there are weights that HiGHS may take for nothing."""
        return any(0.0 < abs(weight) < _TINY for weight in self._weights)

    def minimise(self, expression: Expression) -> None:
        """Set what is minimised."""
        self._objective = expression

    def solve(self, time_limit: float = np.inf, *, relaxed: bool = False) -> Solution:
        """Solve the program.

        Parameters
        ----------
        time_limit : float
            Seconds.
        relaxed : bool
            Let whole numbers be any numbers.

        Returns
        -------
        Solution
            The best point and a bound.
        """
        n, m = len(self._low), len(self._row_low)
        if n == 0:  # nothing to decide, which HiGHS does not take for a question
            holds = all(low <= 0.0 <= high for low, high in zip(self._row_low, self._row_high, strict=True))
            value = self._objective.constant if holds else np.inf
            return Solution("optimal" if holds else "infeasible", np.zeros(0) if holds else None, value, value)
        weights = np.zeros(n)
        for variable, weight in self._objective.terms.items():
            weights[variable] = weight
        rows = sparse.csr_array((self._weights, self._columns, self._ends), shape=(m, n))
        if not (np.isfinite(weights).all() and np.isfinite(rows.data).all()):  # beyond what a number holds
            return Solution("failed", None, np.inf, -np.inf)
        options: dict[str, Any] = {"mip_rel_gap": 0.0}
        if np.isfinite(time_limit):
            options["time_limit"] = max(time_limit, 1e-3)
        # HiGHS' presolve has been seen to lose points of programs with large and small numbers: it is left out where
        # there are such, and what it finds infeasible is solved once more without.
        for presolve in (False,) if self.is_delicate else (True, False):
            found = milp(
                weights,
                integrality=np.zeros(n) if relaxed else np.array(self._is_whole),
                bounds=Bounds(np.array(self._low), np.array(self._high)),
                constraints=LinearConstraint(rows, self._row_low, self._row_high) if m else None,
                options={**options, "presolve": presolve},
            )
            if _STATUS.get(found.status) != "infeasible":
                break
        status = _STATUS.get(found.status, "failed")
        if status == "unbounded":
            raise RuntimeError(f"HiGHS calls a program with {n} variables and {m} rows unbounded: {found.message}")
        if status == "failed":  # a solver that does not know says nothing
            return Solution(status, None, np.inf, -np.inf)
        constant = self._objective.constant
        values = None if found.x is None else np.asarray(found.x, dtype=np.float64)
        objective = np.inf if values is None else float(found.fun) + constant
        if status == "infeasible":
            return Solution(status, None, np.inf, np.inf)
        bound = getattr(found, "mip_dual_bound", None)
        bound = objective if status == "optimal" else -np.inf if bound is None else float(bound) + constant
        return Solution(status, values, objective, bound)


def total(parts: Iterable[Expression]) -> Expression:
    """The sum of many expressions, in one pass."""
    terms: dict[int, float] = {}
    constant = 0.0
    for part in parts:
        constant += part.constant
        for variable, weight in part.terms.items():
            terms[variable] = terms.get(variable, 0.0) + weight
    return Expression(terms, constant)
