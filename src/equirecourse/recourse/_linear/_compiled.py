"""The knapsacks of a linear score, interpreted for little work and compiled for much.

numba takes longer to compile these functions, and even to load what it compiled before, than the interpreter takes to
serve a few hundred people. Both run the same source and give the same numbers to the last bit, so an answer does not
depend on which of them found it.
"""

# mypy: disable-error-code="no-untyped-call"
# The knapsacks have no types of their own.

from __future__ import annotations

from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._linear import _bottleneck, _knapsack, _numbers

__all__ = ["compiled", "solve_additive", "solve_bottleneck"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

# Steps that the interpreter takes before numba takes over, one or two seconds in all: about what numba needs to load
# what it compiled before (german credit, one core). From then on, and once many people come together,
# everybody is served by the compiled function.
_STEPS = 200_000
_MANY_PEOPLE = 1000
_BOTTLENECK = 200  # steps that a person takes in ``bottleneck``
_ENDLESS = 2**62

_steps_left = {"additive": _STEPS, "bottleneck": _STEPS}


def _is_interpreted(name: str, people: int) -> bool:
    if people > _MANY_PEOPLE:
        _steps_left[name] = 0
    return _steps_left[name] > 0


def solve_additive(
    need: Array, power: int, kind: Places, slope: Array, price: Array, first: Array, last: Array, step: Array,
    begin: Places, end: Places, costs: Array, gains: Array, distance: Array, choice: Places,
) -> tuple[Array, Array]:  # fmt: skip
    """``_knapsack.additive``, for as many steps as it takes."""
    best, bound = np.full(len(need), np.inf), np.full(len(need), -np.inf)
    if _is_interpreted("additive", len(need)):
        with np.errstate(all="ignore"):  # as compiled functions do
            best, bound, _steps_left["additive"] = _knapsack.additive(
                need, _steps_left["additive"], power, kind, slope, price, first, last, step, begin, end, costs, gains,
                distance, choice,
            )  # fmt: skip
    left = np.flatnonzero(bound == -np.inf)
    if len(left):
        moved, chosen = distance[left], choice[left]
        best[left], bound[left], _ = compiled()["additive"](
            need[left], _ENDLESS, power, kind[left], slope, price, first[left], last[left], step, begin, end,
            costs[left], gains[left], moved, chosen,
        )  # fmt: skip
        distance[left], choice[left] = moved, chosen
    return best, bound


def solve_bottleneck(need: Array, *arrays: NDArray[Any]) -> Array:
    """``_bottleneck.bottleneck``."""
    if _is_interpreted("bottleneck", len(need)):
        _steps_left["bottleneck"] -= _BOTTLENECK * len(need)
        with np.errstate(all="ignore"):
            budgets: Array = _bottleneck.bottleneck(need, *arrays)
    else:
        budgets = compiled()["bottleneck"](need, *arrays)
    return budgets


@cache
def compiled() -> dict[str, Any]:
    """Compile the functions of the knapsacks, by name; numba does so when one of them is first called."""
    from equirecourse._numba import njit

    modules: list[ModuleType] = [_numbers, _knapsack, _bottleneck]
    # A copy of each function looks up the others in a copy of its module's names, where they are compiled as well.
    names = {module.__name__: dict(vars(module)) for module in modules}
    functions: dict[str, Any] = {}
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                copy = FunctionType(value.__code__, names[module.__name__], name)
                functions[name] = njit(cache=True, nogil=True, error_model="numpy")(copy)
    for known in names.values():
        known.update({name: function for name, function in functions.items() if name in known})
    return functions
