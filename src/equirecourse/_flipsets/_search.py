"""The cheapest ways to a yes that differ in what they change."""

from __future__ import annotations

import heapq
import itertools
import warnings
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from equirecourse._flipsets._changes import changes_of
from equirecourse._flipsets._flipset import Flipset, Flipsets
from equirecourse._flipsets._rounding import rounded
from equirecourse._validation import check_number, shown
from equirecourse.actions import DEFAULT_NORM, ActionSet, check_actions, total_cost
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.recourse import Recourse, View, find_recourse, open_model

__all__ = ["flipsets", "flipsets_of"]


def flipsets(
    model: Any,
    x: Any,
    *,
    actions: ActionSet,
    k: int = 5,
    norm: str = DEFAULT_NORM,
    method: str = "auto",
    favorable_label: Any = None,
    background: Any = None,
    time_limit: float | None = None,
    random_state: int = 0,
) -> Flipsets:
    """Find several different ways to a yes for one person.

    A flipset is a set of features and what to change them to. The first one is the cheapest of all; each further one
    is the cheapest that leaves alone at least one feature of each flipset before it. Numbers without a step are rounded
    to something that can be said, away from where they were, and every flipset is checked with the model after that.

    Parameters
    ----------
    model : fitted classifier
        As in :func:`~equirecourse.find_recourse`.
    x : Series, mapping, frame of one row, or array of one row
        The person.
    actions : ActionSet
        What can change, and what it costs.
    k : int, default=5
        How many flipsets, at most.
    norm : str, default="l1"
        As in :func:`~equirecourse.find_recourse`; the sum prefers few changes.
    method, favorable_label, background, time_limit, random_state
        As in :func:`~equirecourse.find_recourse`. The time limit is for each flipset.

    Returns
    -------
    Flipsets
        At most ``k`` flipsets. None if the person is accepted already, or has no recourse: ``status`` says which.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse import flipsets
    >>> from equirecourse.datasets import load_german
    >>> german = load_german()
    >>> X = german.data[["month", "credit_amount", "age"]]
    >>> model = LogisticRegression(max_iter=1000).fit(X, german.target)
    >>> person = X[model.predict(X) == -1].iloc[0]
    >>> for way in flipsets(model, person, actions=german.actions.only(X.columns)):
    ...     print(way)
    Lower month from 48 to 38; Lower credit amount from 5,951 to 5,736.
    Lower month from 48 to 37.
    """
    count = int(check_number(k, name="k", low=1, integer=True))
    check_actions(actions)
    given = _as_rows(x)
    person = _one_row(given, actions)
    settings = {
        "norm": norm, "method": method, "favorable_label": favorable_label, "time_limit": time_limit,
        "random_state": random_state, "background": person if background is None else background,
    }  # fmt: skip
    (found,) = flipsets_of(open_model(model, favorable_label, given), person, actions, count, settings)
    return found


def flipsets_of(
    view: View, people: pd.DataFrame, actions: ActionSet, k: int, settings: dict[str, Any]
) -> list[Flipsets]:
    """Flipsets of several people: what all of them want to know next is one question to the engines."""
    found, asking = {}, {}
    for i in range(len(people)):
        search = _search(view, people.iloc[[i]], actions, k, settings["norm"])
        asking[i] = (search, next(search))
    while asking:
        result = _solve(view, people, actions, {i: frozen for i, (_, frozen) in asking.items()}, settings)
        place = 0
        for i, (search, frozen) in list(asking.items()):
            try:
                asking[i] = (search, search.send((result, place)))
            except StopIteration as end:
                found[i] = end.value
                del asking[i]
            place += len(frozen)
    scores = view.scores(people) if len(people) else None
    known = np.full(len(people), np.nan) if scores is None else scores
    return [replace(found[i], score=float(score)) for i, score in enumerate(known)]


def _search(
    view: View, person: pd.DataFrame, actions: ActionSet, k: int, norm: str
) -> Generator[list[frozenset[str]], tuple[Recourse, int], Flipsets]:
    """Ask for the cheapest actions that leave these or those features alone; answers begin at a place of a result."""
    ways: list[Flipset] = []
    ties = itertools.count()
    nothing = frozenset[str]()
    first, place = yield [nothing]
    status = str(first.status[place])
    queue = [(first.costs[place], next(ties), nothing, first, place)]
    seen = {nothing}
    while queue and len(ways) < k:
        cost, _, frozen, found, i = heapq.heappop(queue)
        if not np.isfinite(cost) or found.status[i] == "accepted":
            continue
        way = _flipset(view, person, actions, found, i, norm)
        changed = frozenset(change.feature for change in way.changes if change.cost > 0)
        known = [set(other.features) for other in ways]
        contained = next((other for other in known if other <= set(way.features)), None)
        if contained is None:
            # A tie goes to the way with fewer changes.
            dearer = [other for other in ways if set(way.features) < set(other.features)]
            ways = [other for other in ways if other not in dearer or other.cost < way.cost * (1.0 - 1e-9)]
            ways.append(way)
        # The next ones leave at least one of these features alone.
        further = [frozen | {name} for name in sorted(changed if contained is None else contained & changed)]
        further = [names for names in further if names not in seen]
        if further:
            seen.update(further)
            found, place = yield further
            for i, names in enumerate(further, start=place):
                heapq.heappush(queue, (found.costs[i], next(ties), names, found, i))
    ways.sort(key=lambda way: way.cost)
    return Flipsets(ways=tuple(ways), status=status, score=float("nan"), norm=norm, notes=first.notes)


def _as_rows(x: Any) -> Any:
    """One person as a table of one row: named values as a frame, others as an array."""
    if isinstance(x, pd.Series):
        return pd.DataFrame({name: [value] for name, value in x.items()}, index=[x.name])
    if isinstance(x, Mapping):
        return pd.DataFrame({name: [value] for name, value in x.items()})
    if isinstance(x, list | tuple | np.ndarray) and np.ndim(x) == 1:
        return np.asarray(x)[None, :]
    return x


def _one_row(x: Any, actions: ActionSet) -> pd.DataFrame:
    table = actions.table(x)
    if len(table) != 1:
        raise ValueError(f"flipsets are for one person, got {len(table)} rows, {shown(x)}; pass one of them.")
    return table


def _solve(
    view: View, people: pd.DataFrame, actions: ActionSet, frozen: dict[int, list[frozenset[str]]],
    settings: dict[str, Any],
) -> Recourse:  # fmt: skip
    """Cheapest actions that leave some features alone: by person, a question for each set of features."""
    mask = np.array([[feature.name in names for feature in actions] for sets in frozen.values() for names in sets])
    rows = np.repeat(list(frozen), [len(sets) for sets in frozen.values()])
    with warnings.catch_warnings():
        # The result says it: a way that was not found is not shown.
        warnings.simplefilter("ignore", NoRecourseWarning)
        return find_recourse(view, people.iloc[rows], actions=actions, frozen=mask, **settings)


def _flipset(view: View, person: pd.DataFrame, actions: ActionSet, found: Recourse, i: int, norm: str) -> Flipset:
    start = actions.encode(person)
    own = rounded(view, person, actions, start, actions.own(person, found.counterfactuals.iloc[[i]]))
    after = actions.decode(person, start, own)
    parts = actions.costs(norm, start, own)[0]
    scores = view.scores(after)
    return Flipset(
        changes=changes_of(actions, norm, person, after)[0],
        cost=float(total_cost(norm, parts)),
        score=float("nan") if scores is None else float(scores[0]),
        exact=bool(found.exact[i]),
        person=after.iloc[0],
    )
