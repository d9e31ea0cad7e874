"""Fits that minimise the distance between distributions of cost, with prices that are renewed as the model moves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.equalizers._linear_fit import LinearObjective
from equirecourse.equalizers._objective import CostObjective, Prices
from equirecourse.equalizers._rounds import Round, Rounds, Setting, check_plain, look
from equirecourse.exceptions import ConvergenceWarning, UndefinedRecourseWarning

__all__ = ["KAPPAS", "minimise_distance"]

Array = NDArray[np.float64]

KAPPAS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # from hardly any effect to hardly anything but equality, on whatever data
_RENEWALS = 3  # of prices: they change with the model, and settle within a few
_MAX_ITER = 1000  # of L-BFGS, in each of the stages
# Relative decrease of the objective. At 1e-8 rounding errors, and so the machine, decided where a fit with renewed
# prices ended: weights of people that differed by 1e-12 moved the transport gap of the demo with κ = 30 by .013.
_TOL = 1e-11
_GIVEN_UP = 0.1  # accuracy on training people, beyond whose loss a model is no longer one of the outcome


def minimise_distance(model: Any, problem: Any, plain_fit: Any, setting: Setting) -> Rounds:
    """The plain model, and one fit per renewal of the prices, as rounds.

    Chosen is the round with the smallest objective at its own prices, which may be the plain one; without prices, the
    last.

    Parameters
    ----------
    model : EqualRecourseLinear
        With its parameters.
    problem : the problem of that model
        Its data and its learner.
    plain_fit : fit
        Of the plain learner.
    setting : Setting
        Groups and labels, for the description of the rounds.

    Returns
    -------
    Rounds
        Converged if the last fit came to rest.
    """
    plain = look(setting, 0, "plain", plain_fit, None, None)
    if model.kappa == 0.0:
        if np.isnan(plain.gap):
            warnings.warn(
                "The gap of the plain model is undefined: a group has too few rejected people.",
                UndefinedRecourseWarning,
                stacklevel=4,
            )
        return Rounds((plain,), plain, True, "the plain model is all that was asked for")
    check_plain(plain, setting)
    beginning = _beginning(model, problem, plain_fit)
    objective, prices = beginning.objective, beginning.prices
    costs = objective.costs
    history: list[Round] = [plain]
    theta = objective.start
    experience, converged = problem.experience, True
    values: list[float] = []
    for number in range(1 if experience is None else _RENEWALS + 1):
        if experience is not None:
            # What the last model really costs people: prices that were found for another model may have led it astray.
            own = _prices(problem, history[-1].fit, costs) if number else prices
            values.append(objective.value(theta, model.kappa, costs, objective.rejection, own)[0])
            if number == _RENEWALS:
                break
            # The plain model's prices are left behind; those of later models are averaged.
            prices = prices.mixed(own, 1.0 / number) if number > 1 and prices and own else own
        found = objective.fit(
            model.kappa, start=theta if number else None, prices=prices, on_the_way=beginning.on_the_way,
            max_iter=_MAX_ITER, tol=_TOL,
        )  # fmt: skip
        theta, converged = np.append(found.coef, found.intercept), converged and found.converged
        fit = problem.moved(plain_fit, found.coef, found.intercept, found.scores)
        history.append(look(setting, number + 1, "distribution", fit, None, history[-1]))
    chosen = history[int(np.argmin(values))] if values else history[-1]
    if not converged:
        warnings.warn(
            f"The fit did not come to rest within {_MAX_ITER} steps; scale the features, or lower kappa.",
            ConvergenceWarning,
            stacklevel=4,
        )
    before, after = (one.summary["accuracy"] for one in (plain, chosen))
    if after < before - _GIVEN_UP:
        warnings.warn(
            f"kappa={model.kappa:g} has all but given up on the labels: the accuracy on the training people went from "
            f"{before:.3f} to {after:.3f}. Lower it, or let equirecourse.equalize choose one.",
            ConvergenceWarning,
            stacklevel=4,
        )
    ending = "the objective came to rest" if converged else "the steps of the optimiser were used up"
    return Rounds(tuple(history), chosen, converged, ending)


@dataclass(frozen=True)
class _Beginning:
    """What fits for all values of κ have in common: the plain model, its prices, and the way to small values of κ."""

    plain: Any
    objective: LinearObjective
    prices: Prices | None
    on_the_way: dict[float, Array]


def _beginning(model: Any, problem: Any, plain: Any) -> _Beginning:
    """Made once for each problem: the fits of a path share it."""
    known: _Beginning | None = getattr(problem, "beginning", None)
    if known is not None and known.plain is plain:
        return known
    data = problem.data
    objective = LinearObjective(
        data.X, data.y, problem.loss, CostObjective(data.partitions, data.sample_weight, model.min_rejected),
        data.sign * plain.coef, data.sign * plain.intercept,
    )  # fmt: skip
    prices = None if problem.experience is None else _prices(problem, plain, objective.costs)
    beginning = _Beginning(plain, objective, prices, {})
    problem.beginning = beginning
    return beginning


def _prices(problem: Any, fit: Any, costs: CostObjective) -> Prices:
    """What a unit of missing score costs people under a fit."""
    data = problem.data
    codes, decider = data.partitions[0].codes, problem.decider(fit)
    prices: Prices = problem.experience.ask(decider, fit.scores, data.sample_weight, codes, costs.softness).prices
    return prices
