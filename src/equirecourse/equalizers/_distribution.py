"""Fits that minimise the distance between distributions of cost, with prices that are renewed as the model moves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.equalizers._linear_fit import LinearObjective, Solution
from equirecourse.equalizers._objective import CostObjective, Prices
from equirecourse.equalizers._rounds import Round, Rounds, Setting, check_plain, look
from equirecourse.exceptions import ConvergenceWarning, UndefinedRecourseWarning

__all__ = ["KAPPAS", "minimise_distance"]

Array = NDArray[np.float64]

KAPPAS = (1.0, 3.0, 10.0, 30.0, 100.0)  # from hardly any effect to hardly anything but equality, on whatever data
_RENEWALS = 3  # of prices: they change with the model, and settle within a few
_MAX_ITER = 300  # of L-BFGS, in each of the stages
_TOL = 1e-8  # relative decrease of the objective
_GENTLE = 10.0  # κ by way of which a larger one is reached if it is not reached at once
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
    data = problem.data
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
    objective = LinearObjective(
        data.X, data.y, problem.loss, CostObjective(data.partitions, data.sample_weight, model.min_rejected),
        data.sign * plain_fit.coef, data.sign * plain_fit.intercept,
    )  # fmt: skip
    costs = objective.costs
    history: list[Round] = [plain]
    theta = objective.start
    experience, prices, converged = problem.experience, None, True
    values: list[float] = []
    for number in range(1 if experience is None else _RENEWALS + 1):
        if experience is not None:
            # What the last model really costs people: prices that were found for another model may have led it astray.
            last, codes = history[-1].fit, data.partitions[0].codes
            prices, _ = experience.prices(problem.decider(last), last.scores, data.sample_weight, codes, costs.softness)
            values.append(objective.value(theta, model.kappa, costs, objective.rejection, prices)[0])
            if number == _RENEWALS:
                break
        found = _fitted(objective, model.kappa, theta, prices, plain.summary["accuracy"])
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


def _fitted(objective: LinearObjective, kappa: float, start: Array, prices: Prices | None, accuracy: float) -> Solution:
    """The minimum next to the start; where it has given up on the labels, that by way of a smaller κ, if it has not."""

    def fit(kappa: float, start: Array) -> Solution:
        return objective.fit(kappa, start=start, prices=prices, max_iter=_MAX_ITER, tol=_TOL)

    def has_given_up(found: Solution) -> bool:
        right = (found.scores > 0.0) == (objective.y > 0.0)
        return bool(np.average(right, weights=objective.costs.weights) < accuracy - _GIVEN_UP)

    found = fit(kappa, start)
    if kappa > _GENTLE and has_given_up(found):
        on_the_way = fit(_GENTLE, start)
        gently = fit(kappa, np.append(on_the_way.coef, on_the_way.intercept))
        return found if has_given_up(gently) else gently
    return found
