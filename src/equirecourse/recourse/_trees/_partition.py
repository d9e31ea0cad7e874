"""What trees and rules can tell apart of each feature, found once for all people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions import ActionSet, Feature
from equirecourse.actions._table import decode
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._trace import Column, Opaque
from equirecourse.recourse._trees._ensembles import Ensemble
from equirecourse.recourse._view import View

__all__ = ["Axis", "partition"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]
Ranks = NDArray[np.int64]

_FAR = 1e30  # beyond any threshold, and far from the end of float32
_NARROW = 1024  # floating-point numbers on either side of a guess
_SECTIONS = 64  # into which a bracket is cut at once, at most
_ROWS = 4000  # of a table that takes the steps before the trees about as long as a table of one row


@dataclass(frozen=True)
class Axis:
    """The cells of one feature: values that no tree and no rule can tell apart.

    Attributes
    ----------
    cuts : ndarray
        Numbers: the first value of each cell but the first, increasing. Labels: empty; each label is a cell.
    n_cells : int
        Number of cells.
    questions : ndarray of int
        The questions of the trees that depend on the feature.
    turn, left_below : ndarray, shape (n_questions,)
        Ordered cells: the cell from which on the answer is another, and whether it is "left" before.
    left : ndarray of bool, shape (n_questions, n_cells), or None
        The answers in each cell, where the cells have no order that all questions follow.
    """

    cuts: Array
    n_cells: int
    questions: Ints
    turn: Ints
    left_below: Mask
    left: Mask | None

    @property
    def is_ordered(self) -> bool:
        """Whether each question cuts the cells in two."""
        return self.left is None

    def answers(self, question: int) -> Mask:
        """Answers to the question at a position, in each cell."""
        if self.left is not None:
            return np.asarray(self.left[question])
        return np.asarray((np.arange(self.n_cells) < self.turn[question]) == self.left_below[question])


def partition(problem: Problem, ensemble: Ensemble, view: View) -> list[Axis]:
    """Find what the trees and rules can tell apart of each feature.

    Parameters
    ----------
    problem : Problem
        People and what they may change.
    ensemble : Ensemble
        The trees.
    view : View
        The model; its inputs are what the trees see.

    Returns
    -------
    list of Axis
        One per feature. A question that is in none of them has the same answer wherever a person moves.

    Raises
    ------
    Opaque
        If an input of the trees mixes features, or a number reaches it in a way that is not monotone.
    """
    owners = _owners(problem, ensemble, view)
    probe = _Probe(problem, ensemble, view)
    known = problem.view.memory.get("partition")
    if known is not None and known.serves(problem, probe):
        return list(known.axes)
    cuts = probe.switches(
        [own if feature.is_number else _NONE for own, feature in zip(owners, problem.actions, strict=True)]
    )
    axes = [
        probe.number_axis(j, owners[j], cuts[j]) if feature.is_number else probe.label_axis(j, owners[j])
        for j, feature in enumerate(problem.actions)
    ]
    problem.view.memory["partition"] = _Known(problem.actions, probe.lowest, probe.highest, axes)
    return axes


@dataclass(frozen=True)
class _Known:
    """A partition, and what it depends on besides the model."""

    actions: ActionSet
    lowest: Array
    highest: Array
    axes: list[Axis]

    def serves(self, problem: Problem, probe: _Probe) -> bool:
        """Whether it holds for another problem of the same model."""
        same = np.array_equal(self.lowest, probe.lowest) and np.array_equal(self.highest, probe.highest)
        return self.actions is problem.actions and same


_NONE = np.zeros(0, dtype=np.intp)


def _owners(problem: Problem, ensemble: Ensemble, view: View) -> list[Ints]:
    """For each feature, the questions whose answers change with it."""
    actions = problem.actions
    carried = {link.target for link in actions.links}
    low, high = actions.reach(problem.start)
    moves = [(low[:, j] <= high[:, j]).any() or feature.name in carried for j, feature in enumerate(actions)]
    place = {name: j for j, feature in enumerate(actions) for name in feature.table_columns}
    categorical = {int(ensemble.column[q]) for q, chosen in enumerate(ensemble.categories) if chosen is not None}
    owner = np.full(len(columns := view.columns(problem.table)), -1)
    for c in np.unique(ensemble.column).tolist():
        changing = {place[name] for name in columns[c].sources if name in place and moves[place[name]]}
        if changing:
            owner[c] = min(changing)
            _check_alone(columns[c], actions.features[owner[c]], c in categorical)
    of_question = owner[ensemble.column]
    return [np.flatnonzero(of_question == j) for j in range(len(actions))]


def _check_alone(column: Column, feature: Feature, categorical: bool) -> None:
    others = sorted(column.sources - set(feature.table_columns))
    if others:
        raise Opaque(f"an input of the trees mixes {feature.name!r} with {others[0]!r}")
    if feature.is_number and (column.shape == "any" or (categorical and column.shape != "same")):
        raise Opaque(f"the number {feature.name!r} reaches the trees in a way that is not monotone")


class _Probe:
    """Asks the model's own steps what the trees see when the features of one person change."""

    def __init__(self, problem: Problem, ensemble: Ensemble, view: View) -> None:
        self.problem, self.ensemble, self.view = problem, ensemble, view
        self.lowest, self.highest = _range(problem)

    def inputs(self, values: Array) -> Array:
        """What the trees see of the first person, changed to each row of values; NaN leaves a feature as it is."""
        first = np.zeros(len(values), dtype=int)
        start = self.problem.start[first]
        # Not through the action set: links would move other features along.
        end = np.where(np.isnan(values), start, values)
        table = decode(self.problem.table.iloc[first], self.problem.actions.features, start, end)
        try:
            with np.errstate(all="ignore"):
                return self.view.inputs(table)
        except (ValueError, TypeError) as error:
            raise Opaque(f"the steps before the trees refuse some values ({error})") from None

    def switches(self, questions: list[Ints]) -> list[Array]:
        """For the questions about each number, the first value with another answer than the lowest; NaN if none has.

        Found among all floating-point numbers through the model's own steps, so that rounding in a scaler or in a cast
        to float32 is not a matter of opinion. One row asks one question about each feature.
        """
        sizes = [len(some) for some in questions]
        columns = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.concatenate([np.arange(size) for size in sizes]) if sizes else _NONE
        asked = np.concatenate([*questions, _NONE]).astype(np.intp)

        def answers(ranks: Ranks) -> Mask:
            values = _unrank(ranks)
            if self.view.before is not None and len(asked):
                values = self._seen(rows, columns, asked, values)
            return self.ensemble.compared(asked, values)

        low, high = _rank(self.lowest[columns]), _rank(self.highest[columns])
        at_low, at_high = answers(np.stack([low, high]))
        turns = (at_low != at_high) & (low < high)
        bracket = low, np.where(turns, high, low)
        if self.view.before is not None and len(asked):
            # Most steps before trees are affine: a guess from two points leaves a narrow bracket, where it is one.
            guess = _rank(self._guess(rows, columns, asked))
            sides = np.clip(np.stack([guess - _NARROW, guess + _NARROW]), *bracket)
            bracket = _narrowed(bracket, sides, answers(sides) == at_low)
        found = np.where(turns, _unrank(_first_turn(answers, at_low, bracket)), np.nan)
        return [found[columns == j] for j in range(len(sizes))]

    def _seen(self, rows: Ints, columns: Ints, asked: Ints, values: Array) -> Array:
        """What the trees see where they ask, for each line of values."""
        changed = np.full((len(values), rows.max(initial=-1) + 1, len(self.lowest)), np.nan)
        changed[:, rows, columns] = values
        seen = self.inputs(changed.reshape(-1, len(self.lowest)))
        return seen.reshape(*changed.shape[:2], -1)[:, rows, self.ensemble.column[asked]]

    def _guess(self, rows: Ints, columns: Ints, asked: Ints) -> Array:
        """Where each answer would turn if what the trees see were an affine function of the number."""
        here = np.nan_to_num(self.problem.start[0, columns])
        there = here + np.maximum(1.0, np.abs(here))
        seen = self._seen(rows, columns, asked, np.stack([here, there]))
        ends = np.repeat(_rank(np.array([[-_FAR], [_FAR]])), len(asked), axis=1)

        def answers(ranks: Ranks) -> Mask:
            return self.ensemble.compared(asked, _unrank(ranks))

        with np.errstate(all="ignore"):
            wanted = _unrank(_first_turn(answers, answers(ends)[0], (ends[0], ends[1])))
            guess = here + (wanted - seen[0]) * ((there - here) / (seen[1] - seen[0]))
        return np.asarray(np.where(np.isfinite(guess), guess, here))

    def number_axis(self, j: int, questions: Ints, found: Array) -> Axis:
        """The cells of a number between its cuts."""
        feature = self.problem.actions.features[j]
        by_category = np.array([self.ensemble.categories[q] is not None for q in questions], dtype=bool)
        more = _category_cuts(self.ensemble, questions[by_category]) + _rule_cuts(self.problem, feature)
        cuts = np.unique(np.concatenate([found[~np.isnan(found) & ~by_category], more]))
        cuts = cuts[(cuts > self.lowest[j]) & (cuts <= self.highest[j])]
        firsts = np.append(self.lowest[j], cuts)
        seen = self._changed(j, firsts) if len(questions) else np.zeros((len(firsts), 0))
        self._check_monotone(j, questions[~by_category], seen)
        if by_category.any() or self.ensemble.zero_is_missing:
            return Axis(cuts, len(firsts), questions, _NONE, _NONE.astype(bool), self._left(questions, seen))
        turn = np.where(np.isnan(found), len(firsts), np.searchsorted(cuts, found, side="left") + 1)
        below = self._left(questions, seen[:1])[:, 0]
        return Axis(cuts, len(firsts), questions, turn.astype(np.intp), below, None)

    def _check_monotone(self, j: int, questions: Ints, seen: Array) -> None:
        if self.view.before is None:
            return
        seen = seen[:, np.unique(self.ensemble.column[questions])]
        steps = np.diff(seen, axis=0)
        noise = 1e-12 * (1.0 + np.abs(seen[1:]))
        if ((steps > noise).any(axis=0) & (steps < -noise).any(axis=0)).any():
            name = self.problem.actions.features[j].name
            raise Opaque(f"the number {name!r} reaches the trees in a way that is not monotone")

    def label_axis(self, j: int, questions: Ints) -> Axis:
        """The cells of a label: each label is one."""
        feature = self.problem.actions.features[j]
        left = np.zeros((len(questions), len(feature.labels)), dtype=bool)
        # A label that nobody may move to is never asked about: a person's own answers come from their own inputs.
        codes = np.flatnonzero(feature.reachable)
        if len(questions) and len(codes):
            left[:, codes] = self._left(questions, self._changed(j, codes.astype(np.float64)))
        return Axis(np.zeros(0), len(feature.labels), questions, _NONE, _NONE.astype(bool), left)

    def _left(self, questions: Ints, seen: Array) -> Mask:
        return self.ensemble.goes_left(questions[:, None], seen[:, self.ensemble.column[questions]].T)

    def _changed(self, j: int, values: Array) -> Array:
        """What the trees see of the first person, with one feature changed to each value."""
        changed = np.full((len(values), len(self.lowest)), np.nan)
        changed[:, j] = values
        return self.inputs(changed)


def _range(problem: Problem) -> tuple[Array, Array]:
    """Lowest and highest value that anybody has or can reach, by feature, whatever they leave alone."""
    low, high = problem.actions.reach(problem.start)
    movable = low <= high
    lowest = np.fmin.reduce(np.vstack([problem.start, np.where(movable, low, np.nan)]), axis=0, initial=np.inf)
    highest = np.fmax.reduce(np.vstack([problem.start, np.where(movable, high, np.nan)]), axis=0, initial=-np.inf)
    for link in problem.actions.links:  # carried along, a number may go anywhere within its limits
        j = problem.actions.index(link.target)
        feature = problem.actions.features[j]
        lowest[j], highest[j] = min(lowest[j], feature.low), max(highest[j], feature.high)
    return np.clip(lowest, -_FAR, _FAR), np.clip(highest, -_FAR, _FAR)


def _category_cuts(ensemble: Ensemble, questions: Ints) -> list[float]:
    """Numbers that a tree takes for categories, by leaving out their decimals, change where a whole number begins."""
    cuts = []
    for q in questions:
        for category in ensemble.categories[q] or ():
            cuts += [float(category) if category > 0 else float(np.nextafter(-1.0, 0.0)), category + 1.0]
    return cuts


def _rule_cuts(problem: Problem, feature: Feature) -> list[float]:
    conditions = [condition for rule in problem.actions.rules for condition in (rule.when, rule.then)]
    # Conditions that look at the start have no cuts here: the start is a place of its own, and so are its two sides.
    return [
        cut
        for condition in conditions
        if condition.feature == feature.name and condition.value is not None
        for cut in condition.cuts(feature, 0.0)
    ]


def _first_turn(answers: Callable[[Ranks], Mask], at_low: Mask, bracket: tuple[Ranks, Ranks]) -> Ranks:
    """The first rank of each bracket with another answer than at its low end; the high end is one.

    Few brackets are cut into many sections at once: a call of the model's steps costs more than some more rows.
    """
    sections = int(np.clip(_ROWS // max(1, len(at_low)), 2, _SECTIONS))
    while ((low := bracket[0]) + 1 < (high := bracket[1])).any():
        width = (high - low).astype(np.uint64)  # may be more than an int64 holds, and wraps around to what it is
        part, rest = np.divmod(width, np.uint64(sections))
        steps = np.arange(1, sections, dtype=np.uint64)[:, None]
        points = low + (part * steps + rest * steps // np.uint64(sections)).astype(np.int64)
        bracket = _narrowed(bracket, points, answers(points) == at_low)
    return bracket[1]


def _narrowed(bracket: tuple[Ranks, Ranks], points: Ranks, same: Mask) -> tuple[Ranks, Ranks]:
    """Where in each bracket the answer turns first, given some points inside, in order, and where it is the same."""
    ends = np.vstack([bracket[0], points, bracket[1]])
    first = same.argmin(axis=0) + 1
    first = np.where(same.all(axis=0), len(ends) - 1, first)[None, :]
    low, high = np.take_along_axis(ends, first - 1, axis=0), np.take_along_axis(ends, first, axis=0)
    return low[0], high[0]


def _rank(values: Array) -> Ranks:
    """Position of a number among all floating-point numbers; both zeros are at 0."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _unrank(ranks: Ranks) -> Array:
    bits = np.where(ranks >= 0, ranks, np.int64(-(2**63)) - ranks)
    return np.ascontiguousarray(bits).view(np.float64)
