"""From a penalty or a bound to a stiffness: the one-dimensional searches behind λ and ε.

Everything an equalizer can do at a fixed set of rejected people is one family of fits, indexed by the stiffness κ of
the squared penalty ½κ‖u‖²: κ = 0 is the plain model and κ = ∞ has u = 0. The paper's penalty λ‖u‖ has the same optimum
as the squared one at the κ with κ‖u‖ = λ (equal gradients), and the bound of Problem 1 is met from some κ on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import toms748

__all__ = ["BalancedFit", "fit_bound", "fit_penalty"]

_DECADES = 8.0  # how far from its natural scale a stiffness is looked for
_STEP = 1.0  # decades between two looks


class BalancedFit(Protocol):
    """What the searches need to know of a fit."""

    @property
    def differences(self) -> NDArray[np.float64]: ...


Fit = TypeVar("Fit", bound=BalancedFit)


def _search(excess: Callable[[float], float], low: float, high: float, tol: float) -> float:
    """The root of a function of log₁₀ κ that is positive at ``low`` and not at ``high``."""
    return float(toms748(excess, low, high, xtol=tol, rtol=1e-12, maxiter=60))


def fit_penalty(fit_at: Callable[[float], Fit], penalty: float, natural_stiffness: float, *, tol: float = 1e-7) -> Fit:
    """The fit under the penalty λ‖u‖.

    Parameters
    ----------
    fit_at : callable
        Stiffness κ → fit.
    penalty : float
        λ, zero to infinity.
    natural_stiffness : float
        A κ at which the penalty and the rest of the objective are of one size, where the search begins.
    tol : float
        Tolerance of the search in log₁₀ κ.
    """
    if penalty == 0 or np.isinf(penalty):
        return fit_at(0.0 if penalty == 0 else np.inf)
    fits: dict[float, Fit] = {}

    def excess(log_stiffness: float) -> float:
        if log_stiffness not in fits:
            fits[log_stiffness] = fit_at(10.0**log_stiffness)
        multiplier = 10.0**log_stiffness * float(np.linalg.norm(fits[log_stiffness].differences))
        return float(np.log(penalty) - np.log(max(multiplier, 1e-300)))

    # κ‖u(κ)‖ rises with κ, from 0 to the multiplier of hard equality: step outwards until the root is enclosed.
    centre = float(np.log10(natural_stiffness))
    low = high = centre
    while excess(high) > 0:
        if high >= centre + _DECADES:
            return fit_at(np.inf)  # hard equality needs no more than λ
        low, high = high, high + _STEP
    while excess(low) <= 0:
        if low <= centre - _DECADES:
            return fits[low]  # λ is so small that the difference is all but untouched
        low, high = low - _STEP, low
    root = _search(excess, low, high, tol)
    excess(root)
    return fits[root]


def fit_bound(
    fit_at: Callable[[float], Fit],
    size: Callable[[Fit], float],
    bound: float,
    natural_stiffness: float,
    *,
    tol: float = 1e-3,
) -> Fit:
    """The fit with the smallest stiffness found at which ``size(fit) ≤ bound``; the plain one if that satisfies it."""
    plain = fit_at(0.0)
    if size(plain) <= bound:
        return plain
    fits: dict[float, Fit] = {}

    def excess(log_stiffness: float) -> float:
        if log_stiffness not in fits:
            fits[log_stiffness] = fit_at(10.0**log_stiffness)
        return size(fits[log_stiffness]) - bound

    centre = float(np.log10(natural_stiffness))
    low = high = centre
    while excess(high) > 0:
        if high >= centre + _DECADES or bound == 0:
            return fit_at(np.inf)
        low, high = high, high + _STEP
    while excess(low) <= 0:
        if low <= centre - _DECADES:
            return fits[low]
        low, high = low - _STEP, low
    _search(excess, low, high, tol)
    return fits[min(x for x in fits if x >= low and size(fits[x]) <= bound)]
