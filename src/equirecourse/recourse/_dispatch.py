"""find_recourse: choose the engine for a model, ask it, and check every answer with the model itself."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._validation import check_choice, check_finite, check_jobs, check_number, refuse_masked
from equirecourse.actions import DEFAULT_NORM, ActionSet, Distance, check_actions, cost_named
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.recourse import _linear
from equirecourse.recourse._engine import Engine
from equirecourse.recourse._engines import SEARCH, can_read, engine_for, engine_named, engine_names, is_builtin
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._progress import progress_bar
from equirecourse.recourse._result import STATUSES, Recourse
from equirecourse.recourse._surrogate import SurrogateRecourse
from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._view import View, open_model

__all__ = ["find_recourse"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_KNIFE_EDGE = 1e-14  # a score below which it is nothing but the rounding of a sum

ACCEPTED, FOUND, INFEASIBLE, UNKNOWN = range(len(STATUSES))


def find_recourse(
    model: Any,
    X: Any,
    *,
    actions: ActionSet | None = None,
    norm: str = DEFAULT_NORM,
    method: str = "auto",
    favorable_label: Any = None,
    background: Any = None,
    frozen: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: bool = False,
) -> Recourse:
    r"""Find the cheapest change of each rejected person that the model accepts.

    :math:`r(x) = \min \{ \mathrm{cost}(x, x') : h(x') = +1,\ x' \text{ allowed by the action set} \}`. Costs and
    constraints are those of the columns of ``X``, whatever a pipeline makes of them before the model. Every action that
    is returned keeps to the action set and has been accepted by the model itself.

    Parameters
    ----------
    model : fitted classifier
        With two labels: anything that has ``predict`` and ``classes_``, such as a pipeline.
    X : table of shape (n_people, n_columns)
        People: an array, or a frame of pandas or polars.
    actions : ActionSet, optional
        What people can change, and what it costs. By default every column, without limits, at a cost of 1 a unit.
    norm : {"l1", "l2", "linf", "max_shift", "log_shift"}, default="l1"
        How the changes of several features add up: sum, root of the sum of squares, largest; or, in percentiles of the
        people the action set was made from, the largest shift or the sum of log shifts.
    method : {"auto", "linear", "trees", "kernel", "search", "milp", "surrogate"}, default="auto"
        The engine, or one of your own by its name (:func:`~equirecourse.recourse.register_engine`); "auto" takes the
        most exact one for the model. "milp" solves a mixed-integer program per person where others are faster, as an
        independent check; a claim of theirs that the other engine refutes is withdrawn.
        "surrogate" estimates the costs by local linear functions, as the paper's Algorithm 2 does: prices of an action
        set count, and what cannot change; limits do not.
    favorable_label : label, optional
        The label that means yes; by default the model's ``favorable_label_``, or else the larger label.
    background : table, optional
        People among whom a search looks for accepted ones to start from; by default ``X``.
    frozen : array of bool, shape (n_people, n_features), optional
        What each person leaves alone on top of what the action set forbids, by feature in the order of ``actions``.
    time_limit : float, optional
        Seconds per person. When they are over, the status is "unknown" and the best action so far is kept.
    n_jobs : int, optional
        Processes for engines that solve a program per person, as in joblib.
    random_state : int, default=0
        Seed of engines that draw random numbers.
    progress : bool, default=False
        Show how many people are done, if standard error is a terminal.

    Returns
    -------
    Recourse
        Costs, counterfactuals and status, one entry per person, in the order of ``X``.

    Warns
    -----
    NoRecourseWarning
        If the search found nothing for some people, or time ran out, so that their status is "unknown".

    See Also
    --------
    equirecourse.flipsets : several different actions for one person.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from equirecourse import find_recourse
    >>> from equirecourse.datasets import load_german
    >>> german = load_german()
    >>> numbers = german.data[["month", "credit_amount", "age"]]
    >>> forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(numbers, german.target)
    >>> found = find_recourse(forest, numbers.head(20), actions=german.actions.only(numbers.columns))
    >>> set(found.status) <= {"accepted", "found", "infeasible"}
    True
    """
    cost = cost_named(norm)
    check_choice(method, ("auto", *engine_names(), "milp", "surrogate"), name="method")
    check_jobs(n_jobs)
    refuse_masked(X, name="X")
    limit = np.inf if time_limit is None else check_number(time_limit, name="time_limit", low=1e-9)
    seed = int(check_number(random_state, name="random_state", low=0, integer=True))
    view = open_model(model, favorable_label, X)
    is_free = actions is None and frozen is None and method in ("auto", "linear")
    if is_free and isinstance(cost, Distance) and _is_plain(view, X):
        return _closed_form(view, X, cost)
    actions = ActionSet.free(X, costs="unit") if actions is None else check_actions(actions)
    if method == "surrogate":
        return _by_surrogates(view, X, actions, norm, frozen, background, n_jobs, seed)
    table = actions.table(X)
    _check_numbers(table, actions)
    notes = _outside(actions, table)
    rejected = ~view.accepts(table)
    pool = table if background is None else actions.table(background)
    with progress_bar(int(rejected.sum()), progress) as tick:
        held = _frozen(frozen, len(table), actions)
        held = None if held is None else held[rejected]
        problem = Problem(view, actions, norm, table[rejected], pool, limit, seed, n_jobs, tick, held)
        if len(problem.table) == 0:
            name, answers, settled = method, Answers.nothing(problem), True
        else:
            engine, answers, more = _ask(problem, method)
            name, settled = engine.name, engine.settles_the_boundary
            notes += more
    checked = _checked(problem, answers, at_boundary=not settled)
    return _result(problem, checked, X, table, rejected, name, notes)


# --- which engine ----------------------------------------------------------------------------------------------------


def _ask(problem: Problem, method: str) -> tuple[Engine, Answers, tuple[str, ...]]:
    """The engine that answered, its answers, and what there is to say about the choice."""
    final = problem.view.final
    fits = engine_for(final)
    engine = fits if method in ("auto", "milp") else engine_named(method)
    if not can_read(engine, final):
        raise ValueError(
            f"method={method!r} does not fit this model: {type(final).__name__} is read by {fits.name!r}; use 'auto'."
        )
    try:
        return engine, (_by_programs if method == "milp" else _solved)(engine, problem), ()
    except Opaque as reason:
        if method != "auto":
            raise ValueError(
                f"method={method!r} does not fit this model: {reason}; use method='search', or 'auto'."
            ) from None
        told = (f"The costs are upper bounds found by search, because {reason}.",)
        return SEARCH, SEARCH.solve(problem), told


def _solved(engine: Engine, problem: Problem) -> Answers:
    """The answers of an engine; one that is not ours works on a copy, and has to answer in the right form."""
    if is_builtin(engine):
        return engine.solve(problem)
    answers = engine.solve(replace(problem, table=problem.table.copy()))
    n, shape = len(problem.start), problem.start.shape
    forms = {
        "own": (shape, "f"),
        "found": ((n,), "b"),
        "proven": ((n,), "b"),
        "lower": ((n,), "f"),
        "stopped": ((n,), "b"),
    }
    for name, (wanted, kind) in forms.items():
        array = getattr(answers, name, None)
        if not isinstance(array, np.ndarray) or array.shape != wanted or array.dtype.kind != kind:
            got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            kinds = {"f": "floats", "b": "True or False"}
            raise TypeError(
                f"the engine {engine.name!r} must answer with {name} as an array of {kinds[kind]} of shape {wanted}, "
                f"got {got}; begin with Answers.nothing(problem)."
            )
    if not (answers.lower >= 0.0).all():
        raise ValueError(f"the engine {engine.name!r} gave a lower bound that is missing or negative; 0 says nothing.")
    return answers


def _by_programs(engine: Engine, problem: Problem) -> Answers:
    """The programs of an engine; what they claim is withdrawn where the engine itself refutes it."""
    if engine.solve_by_programs is None:
        raise ValueError(
            f"method='milp' is for models that are read by programs, linear ones and trees; "
            f"{type(problem.view.final).__name__} is read by {engine.name!r}, which has none."
        )
    answers = engine.solve_by_programs(problem)
    others = engine.solve(replace(problem, tick=lambda _: None))
    everybody = np.arange(len(problem.start))
    own, other = (np.where(part.found, problem.costs(everybody, part.own), np.inf) for part in (answers, others))
    refuted = other < own * (1.0 - 1e-6)
    answers.proven[refuted] = False
    np.minimum(answers.lower, other, out=answers.lower)
    return answers


# --- the people ------------------------------------------------------------------------------------------------------


def _check_numbers(table: pd.DataFrame, actions: ActionSet) -> None:
    """Refuse infinite numbers; a missing one is left as it is."""
    names = [feature.name for feature in actions if feature.is_number and feature.name in table.columns]
    numeric = [name for name in names if table[name].dtype.kind in "fiub"]
    values = table[numeric].to_numpy(dtype=np.float64)
    check_finite(np.where(np.isnan(values), 0.0, values), numeric)


def _frozen(frozen: Any, n_people: int, actions: ActionSet) -> Mask | None:
    if frozen is None:
        return None
    mask = np.asarray(frozen)
    if mask.dtype != bool or mask.shape != (n_people, len(actions)):
        raise ValueError(
            f"frozen must be True or False for each of {n_people} people and {len(actions)} features, got an array of "
            f"{mask.dtype} of shape {mask.shape}."
        )
    return mask


def _outside(actions: ActionSet, table: pd.DataFrame) -> tuple[str, ...]:
    outside = actions.starts_outside(table)
    if len(outside) == 0:
        return ()
    names = ", ".join(map(repr, dict.fromkeys(outside["feature"])))
    people = outside["person"].nunique()
    return (
        f"{people} of {len(table)} people start outside the limits of {names}; they may stay there, or move inside.",
    )


# --- closed forms ----------------------------------------------------------------------------------------------------


def _is_plain(view: View, X: Any) -> bool:
    """Whether people move freely in the very inputs of a linear model, so that one formula answers for all of them."""
    if view.before is not None or engine_for(view.final) is not _linear.ENGINE:
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "fiu"
    return isinstance(X, pd.DataFrame) and all(dtype.kind in "fiu" for dtype in X.dtypes)


def _closed_form(view: View, X: Any, cost: Distance) -> Recourse:
    scores = np.asarray(view.model.decision_function(X), dtype=np.float64)
    # The larger label wins a score above zero, the smaller one everything else.
    rejected = scores <= 0 if view.sign > 0 else scores > 0
    slopes = view.sign * _linear.coefficients(view.final)
    costs, direction = _linear.closed_form(scores, slopes, np.ones(len(slopes)), cost)
    reachable = bool(slopes.any())
    if reachable:
        costs *= rejected
    codes = rejected.astype(np.int8)
    codes *= FOUND if reachable else INFEASIBLE

    def people() -> Any:
        moved = _linear.step_over(view, X, scores, rejected, direction) if reachable else None
        return _laid_out(X, moved, rejected & (not reachable))

    return Recourse(costs, "linear", np.ones(len(costs), dtype=bool), costs, cost.name, (), codes, people)


# --- surrogates ------------------------------------------------------------------------------------------------------


def _by_surrogates(
    view: View, X: Any, actions: ActionSet, norm: str, frozen: Any, background: Any, n_jobs: int | None, seed: int
) -> Recourse:
    if frozen is not None:
        raise ValueError("method='surrogate' estimates distances and knows no frozen features; use another method.")
    table = actions.table(X)
    price = {feature.name: feature.cost if feature.mutable else np.inf for feature in actions if feature.is_number}
    prices = [price.get(name, np.inf) for name in table.columns]
    if not np.isfinite(prices).any():
        raise ValueError("method='surrogate' needs a column of numbers that can change, and the action set has none.")
    surrogates = SurrogateRecourse(n_jobs=n_jobs, random_state=seed)
    surrogates.fit(view, table if background is None else actions.table(background))
    found = surrogates.find(view, table, prices=prices, norm=norm)
    return found if hasattr(X, "columns") else replace(found, _people=lambda: found.counterfactuals.to_numpy())


# --- the result ------------------------------------------------------------------------------------------------------


def _result(
    problem: Problem, answers: Answers, X: Any, table: pd.DataFrame, rejected: Mask, name: str, notes: tuple[str, ...]
) -> Recourse:
    own, found, proven = answers.own, answers.found, answers.proven
    cost = np.where(found, problem.costs(np.arange(len(own)), own), np.inf)
    lower = np.where(proven, cost, np.minimum(answers.lower, cost))
    status = np.where(found, FOUND, np.where(proven, INFEASIBLE, UNKNOWN))
    status[found & ~proven & answers.stopped] = UNKNOWN

    n = len(table)
    places = np.flatnonzero(rejected)
    costs, bounds, exact = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
    costs[places], bounds[places], exact[places] = cost, lower, proven
    codes = np.full(n, ACCEPTED, dtype=np.int8)
    codes[places] = status
    lost = int((status == UNKNOWN).sum())
    if lost:
        nothing = int((~found & ~proven).sum())
        warnings.warn(
            f"The recourse of {lost} of {len(status)} rejected people is unknown ({nothing} of them without any action "
            "found, at infinite cost); give more time with time_limit, or more people to start from with background.",
            NoRecourseWarning,
            stacklevel=3,
        )

    def people() -> Any:
        after = problem.after(np.arange(len(own)), own)
        both = pd.concat([table[~rejected], after]) if len(after) else table
        order = np.empty(n, dtype=int)
        order[np.concatenate([np.flatnonzero(~rejected), places])] = np.arange(n)
        moved = both.iloc[order] if len(after) else both.copy()
        without = np.zeros(n, dtype=bool)
        without[places] = ~found
        return _laid_out(X, moved, without)

    return Recourse(costs, name, exact, bounds, problem.norm, notes, codes, people)


def _checked(problem: Problem, answers: Answers, *, at_boundary: bool) -> Answers:
    """No engine is trusted: what is shown has been through the model and the action set once more."""
    own, found = answers.own, answers.found.copy()
    who = np.flatnonzero(found)
    found[who] = _accepted(problem, who, own[who], at_boundary=at_boundary) & problem.respected(who, own[who])
    return replace(answers, found=found, proven=answers.proven & (found | ~answers.found))


def _accepted(problem: Problem, who: NDArray[np.intp], own: Array, *, at_boundary: bool) -> Mask:
    """Who gets a yes after their action, whoever else is asked about.

    On the very boundary the length of a table decides how a model rounds: such people are asked about alone, if they
    are refused, and with ``at_boundary`` also if they are accepted.
    """
    after = problem.after(who, own)
    yes = problem.view.accepts(after)
    scores = None
    if at_boundary and len(who) and hasattr(problem.view.model, "decision_function"):
        scores = problem.view.scores(after)
    unsure = ~yes if scores is None else ~yes | (np.abs(scores) <= _KNIFE_EDGE)
    for k in np.flatnonzero(unsure):
        yes[k] = problem.view.accepts(problem.after(who[[k]], own[[k]]))[0]
    return yes


def _laid_out(X: Any, moved: Any, without: Mask) -> Any:
    """People after their action, in the form the user gave them; a row of missing values where there is no action."""
    moved = X if moved is None else moved
    if isinstance(moved, pd.DataFrame):
        if without.any():
            moved = moved.where(pd.Series(~without, index=moved.index), axis=0)
        return moved if hasattr(X, "columns") else moved.to_numpy()
    values = np.array(moved, dtype=np.float64)
    values[without] = np.nan
    return values
