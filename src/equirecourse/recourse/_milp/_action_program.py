"""One person's possible changes as a mixed-integer program, whatever the model: moves, links, rules and costs.

A number moves within a range (continuously, or by steps) or to listed values; a label to one of its labels. Where a
number ends up, links included, falls into pieces of the line with a switch each, so that rules and trees can speak of
it.

Whole numbers come out of the solver to within its tolerance: they are rounded and fixed, what is continuous is solved
for once more, and everything is then put exactly where the action set wants it. An action that is refused all the same
is ruled out, and the program solved again. The tolerances of the solver only ever let more through, so what it cannot
find is not there; where something continuous is ruled out with an action, that is not certain, and nothing is claimed.
Euclidean costs are bounded from below by tangents until the bound is tight.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space, solve_triangular
from scipy.optimize import lsq_linear

from equirecourse.actions import L1, ActionSet, Condition, Cost
from equirecourse.recourse._milp._highs import Expression, Program, total
from equirecourse.recourse._milp._parts import Choice, Pieces, Range
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._trace import Opaque

__all__ = ["ActionProgram", "Outcome", "solve_programs"]

Array = NDArray[np.float64]

_SMALL = 1e-3  # of the cost that was thought typical: the program is then scaled anew
_HAIR = 1e-6  # by which an action may cost more than one that is known: rounding errors are no reason to miss that one
_GAP = 1e-7  # between the best action and the bound, where costs are not linear
_SIZE = 1e4  # HiGHS is content with an absolute gap of 1e-6: objectives are scaled to about this size
_TANGENTS = (0.1, 0.3, 1.0, 3.0, 10.0)  # to begin with, relative to a typical cost
_PULL = 1e-4  # relative to other forces, on variables that a sum of squares does not hold
_PULLS = 3  # each from where the one before ended, so that nothing of the pull is left
_NOWHERE = 1e-12  # share of a residual below which limits contradict each other
_NOTHING = 1e-100  # length by which a limit is missed that is none
_FEASIBLE = 1e-8  # by which a row may be missed: the model itself judges afterwards
_MANY = 4096  # values, from which on they are not listed
_ROUNDS = 100  # of tangents, or of actions that turn out to be refused
_MARGINS = (
    0.0,
    1e-12,
    1e-10,
    1e-8,
)  # from the borders of pieces, relative to a typical move, until rounding does no harm


@dataclass(frozen=True)
class Outcome:
    """The best action of one person, None if none was found, and a bound on the cost of any.

    ``proven`` says that the bound is tight, or that there is no action; ``stopped``, that time was over.
    """

    own: Array | None
    proven: bool
    lower: float
    stopped: bool = False


Maker = Callable[[Problem, int, float | None], "ActionProgram"]


def solve_programs(problem: Problem, program: Maker, *, listed: bool) -> Answers:
    """Cheapest action of each person, by one program each.

    Parameters
    ----------
    problem : Problem
        People and what they may change.
    program : callable
        Makes the program of a person for a problem, given the cost of an action that is known, or None.
    listed : bool
        Whether the programs know every value that one may move to; under a percentile norm they may know some only.

    Returns
    -------
    Answers
        With everybody found or proven to have no action, except where time ran out, or a percentile norm was tried at
        some values only.
    """
    if not _can_price(problem.cost):
        raise Opaque(f"programs have no proofs for norm={problem.norm!r}")
    answers = Answers.nothing(problem)
    for person in range(len(problem.start)):
        outcome = _solve_one(problem, program, person)
        if not listed:
            if outcome.own is None:  # whether there is an action at all does not depend on what it costs
                outcome = _solve_one(replace(problem, norm=L1.name), program, person)
            nothing = outcome.proven and outcome.own is None
            outcome = replace(outcome, proven=nothing, lower=np.inf if nothing else 0.0)
        if outcome.own is not None:
            answers.own[person], answers.found[person] = outcome.own, True
        answers.proven[person], answers.lower[person] = outcome.proven, outcome.lower
        answers.stopped[person] = outcome.stopped
        problem.tick(1)
    return answers


def _can_price(cost: Cost) -> bool:
    """Whether programs are proofs for a cost: ranges have a price per unit, and tangents bound squares."""
    return (cost.is_distance or cost.is_percentile) and cost.exponent in (1.0, 2.0, np.inf)


def _solve_one(problem: Problem, program: Maker, person: int) -> Outcome:
    deadline = time.monotonic() + problem.time_limit
    asked = program(problem, person, None)
    outcome = asked.solve(deadline)
    if outcome.own is not None:
        cost = float(problem.costs([person], outcome.own[None, :])[0])
        if 0.0 < cost < _SMALL * asked.scale:
            outcome = program(problem, person, cost).solve(deadline)
        elif cost > 0.0 and asked.program.is_delicate:
            again = program(problem, person, cost).solve(deadline)
            outcome = _confirmed(problem, person, outcome, again)
    return outcome


def _confirmed(problem: Problem, person: int, outcome: Outcome, again: Outcome) -> Outcome:
    """The better of two outcomes; the second is of a program in which nothing is farther away than the first's action.

    HiGHS has been seen to prove a wrong optimum where weights of 1e-16 and of 1e5 meet in a row.
    """
    if outcome.own is None or again.own is None:
        return outcome
    costs = problem.costs([person, person], np.stack([outcome.own, again.own]))
    return again if costs[1] < costs[0] else replace(outcome, proven=outcome.proven and again.proven)


class ActionProgram:
    """The program of one person; a model adds its score to it.

    Parameters
    ----------
    problem : Problem
        Of whom and what.
    person : int
        Which of the people.
    lists : list of (values, costs) or None, one per feature
        Features that go to one of some values, the first being their start; other numbers move within their range.
    cuts : list of ndarray, one per feature
        Where a number that moves within a range, or is carried along, has to be told from the rest of the line.
    scale : float
        A cost that is typical of answers.
    known : float, optional
        Cost of an action that is known: nothing dearer is looked for.
    """

    def __init__(
        self,
        problem: Problem,
        person: int,
        lists: list[tuple[Array, Array] | None],
        cuts: list[Array],
        scale: float,
        known: float | None = None,
    ) -> None:
        self.problem, self.person, self.cuts, self.scale = problem, person, cuts, scale
        self.most = np.inf if known is None else known * (1.0 + _HAIR)
        self.start = problem.start[person]
        self.cost = problem.cost
        self.program = Program()
        self.curves: list[tuple[Expression, Expression]] = []
        self.costs: list[Expression] = []
        self.parts: list[Choice | Range | None] = [None] * len(lists)
        self.together: set[int] = set()
        for group in problem.actions.linked_groups:
            self._add_group(group, lists)
        for j, listed in enumerate(lists):
            if j not in self.together:
                self._add_part(j, listed)
        self.moves = [Expression({}) if part is None else part.move for part in self.parts]
        self.carried = self._add_links()
        self.pieces = [self._pieces(j, some) for j, some in enumerate(cuts)]
        for rule in problem.actions.rules:
            self.program.at_least(self.holds(rule.then) - self.holds(rule.when), 0.0)
        self.program.minimise(self._objective() * _SIZE)
        self.choices: list[int] = []  # whole numbers of the program before anything was ruled out

    # --- building ---------------------------------------------------------------------------------------------------

    def _add_part(self, j: int, listed: tuple[Array, Array] | None) -> None:
        """A feature by itself: a list of values, or a range."""
        if listed is not None:
            values, costs = listed
            if len(values) > 1:
                part = Choice(self._switches(len(values)), values, values)
                self.parts[j] = part
                self.costs.append(part.weighted(self.cost.addends(costs / self.scale)))
            return
        feature = self.problem.actions.features[j]
        low, high = (side[self.person, j] for side in self.problem.reach)
        if low > high:
            return
        moving = Range(self.program, feature, self.start[j], low, high, self.scale / feature.cost, self._far(j))
        self.parts[j] = moving
        cost = moving.distance * (feature.cost / self.scale)
        if self.cost.is_euclidean:
            curve = self.program.variable(0.0)
            self.curves.append((curve, cost))
            for at in _TANGENTS:
                _add_tangent(self.program, curve, cost, at)
            cost = curve
        self.costs.append(cost)

    def _switches(self, n: int) -> list[Expression]:
        switches = [self.program.switch() for _ in range(n)]
        self.program.one_of(switches)
        return switches

    def _add_group(self, group: tuple[int, ...], lists: list[tuple[Array, Array] | None]) -> None:
        """Linked features, if they have few values in all: one list of everything that they can do together."""
        options = [self._options(j, lists[j]) for j in group]
        if (
            any(some is None for some in options)
            or np.prod([len(some) for some in options if some is not None]) > _MANY
        ):
            return
        values = np.array(list(itertools.product(*(some for some in options if some is not None))))
        own = np.repeat(self.start[None, :], len(values), axis=0)
        own[:, list(group)] = values
        actions, before = self.problem.actions, np.repeat(self.start[None, :], len(values), axis=0)
        own = own[ActionSet(actions.features, links=actions.links).respected(before, own)]
        before = before[: len(own)]
        ends = actions.carry(before, own)
        parts = actions.costs(self.problem.norm, before, own)[:, list(group)] / self.scale
        costs = parts.max(axis=1) if self.cost.is_largest else self.cost.addends(parts).sum(axis=1)
        switches = self._switches(len(own))
        for j in group:
            self.parts[j] = Choice(switches, own[:, j], ends[:, j])
        self.costs.append(Choice(switches, costs, costs).weighted(costs))
        self.together |= set(group)

    def _options(self, j: int, listed: tuple[Array, Array] | None) -> Array | None:
        """All values of a feature, staying first; None if there are too many to list."""
        feature, start = self.problem.actions.features[j], self.start[j]
        low, high = (side[self.person, j] for side in self.problem.reach)
        if listed is not None or low > high:
            return np.array([start]) if listed is None else listed[0]
        if feature.step is None or not (high - low) / feature.step < _MANY:
            return None
        lattice = np.arange(np.floor(low / feature.step), np.ceil(high / feature.step) + 1) * feature.step
        return np.append(start, lattice[lattice != start])

    def _add_links(self) -> set[int]:
        """Let links carry numbers along; the numbers that are."""
        actions = self.problem.actions
        carried, own_moves = set(), list(self.moves)
        for link in actions.links:
            source, target = actions.index(link.source), actions.index(link.target)
            if target not in self.together and own_moves[source].terms and not np.isnan(self.start[target]):
                self.moves[target] = self.moves[target] + own_moves[source] * link.rate
                carried.add(target)
        return carried

    def _pieces(self, j: int, cuts: Array) -> Pieces | None:
        feature = self.problem.actions.features[j]
        is_carried = j in self.carried
        if not feature.is_number or not self.moves[j].terms or (isinstance(self.parts[j], Choice) and not is_carried):
            return None
        asked = any(condition.feature == feature.name for condition in self._conditions())
        limited = is_carried and (np.isfinite(feature.low) or np.isfinite(feature.high))
        if not (asked or limited or len(cuts)):
            return None
        limits, step = ((feature.low, feature.high), None) if is_carried else ((-np.inf, np.inf), feature.step)
        return Pieces(
            self.program, self.moves[j], self.start[j], cuts, *limits, self._far(j), step, self._smallest_move(j)
        )

    def _movers(self, j: int) -> list[tuple[int, float]]:
        """The features that move a number, itself first, and how far it goes with a unit of each."""
        links = [link for link in self.problem.actions.links if self.problem.actions.index(link.target) == j]
        return [(j, 1.0), *((self.problem.actions.index(link.source), link.rate) for link in links)]

    def _smallest_move(self, j: int) -> float:
        """What can be told from staying: far less than the steps of its only mover, else any move.

        Two movers may go opposite ways and leave as little between them as they like.
        """
        moving = [(self.parts[mover], rate) for mover, rate in self._movers(j) if self.parts[mover] is not None]
        if len(moving) != 1:
            return 0.0
        part, rate = moving[0]
        if isinstance(part, Range):
            return 0.0 if part.is_continuous else 1e-3 * abs(rate) * part.first
        assert part is not None
        distances = np.abs(part.values[1:] - part.values[0])
        return 1e-3 * abs(rate) * float(distances[distances > 0].min(initial=np.inf))

    def _far(self, j: int) -> float:
        """A distance that a number never moves in a cheapest action, itself or by links."""
        movers = self._movers(j)
        needs = [self._need(k) for k in range(len(self.parts))]
        actions = self.problem.actions
        for link in actions.links:  # as far as what it carries along may need
            source, target = actions.index(link.source), actions.index(link.target)
            if link.rate != 0.0:
                needs[source] += self._need(target) / abs(link.rate)
        moved = needs[j] + sum(abs(rate) * needs[mover] for mover, rate in movers[1:])
        affordable = sum(abs(rate) * self.most / actions.features[mover].cost for mover, rate in movers)
        return min(1e3 * moved, affordable)

    def _need(self, j: int) -> float:
        """How far a number is from the last of the places where something depends on it."""
        feature, start = self.problem.actions.features[j], self.start[j]
        if not feature.is_number or np.isnan(start):
            return 0.0
        marks = np.concatenate([self.cuts[j], [side for side in (feature.low, feature.high) if np.isfinite(side)]])
        return self.typical_move(j) + float(np.abs(marks - start).max(initial=0.0))

    def typical_move(self, j: int) -> float:
        """A distance that is typical of moves of a number."""
        return float(self.scale / self.problem.actions.features[j].cost)

    def _conditions(self) -> list[Condition]:
        return [condition for rule in self.problem.actions.rules for condition in (rule.when, rule.then)]

    def holds(self, condition: Condition) -> Expression:
        """1 if a condition holds after the change, else 0."""
        j = self.problem.actions.index(condition.feature)
        feature, part, pieces = self.problem.actions.features[j], self.parts[j], self.pieces[j]
        if pieces is not None:
            return pieces.among(condition.holds(feature, self.start[j], pieces.inside))
        if isinstance(part, Choice):
            return part.among(condition.holds(feature, self.start[j], part.ends))
        return Expression({}, float(condition.holds(feature, self.start[j], self.start[j])))

    def _objective(self) -> Expression:
        if not self.cost.is_largest:
            return total(self.costs)
        largest = self.program.variable(0.0)
        for cost in self.costs:
            self.program.at_least(largest - cost, 0.0)
        return largest

    # --- solving ----------------------------------------------------------------------------------------------------

    def accepts(self, own: Array) -> bool:
        """Whether the model says yes to an action that keeps to the action set."""
        return bool(
            self.problem.respected([self.person], own[None, :])[0]
            and self.problem.accepted([self.person], own[None, :])[0]
        )

    def forbid(self, values: Array, certain: bool) -> tuple[bool, bool]:
        """Rule out the whole numbers that the solver chose.

        Returns
        -------
        possible : bool
            False if there are none.
        certain : bool
            Whether nothing else was ruled out with the refused action, here as given.
        """
        return self._rule_out(values), certain

    def _rule_out(self, values: Array) -> bool:
        """Rule out the whole numbers that the solver chose; False if there are none."""
        differs = []
        for v in self.choices:
            at = float(np.round(values[v]))
            low, high = self.program.limits(v)
            if (low, high) == (0.0, 1.0):
                differs.append(Expression({v: 1.0}) if at == 0.0 else Expression({v: -1.0}, 1.0))
                continue
            for way, room in ((1.0, high - at), (-1.0, at - low)):  # beyond the value, on either side
                if room >= 1:
                    switch = self.program.switch()
                    self.program.at_least(
                        Expression({v: way}) - switch * (1.0 + at - low if way > 0 else 1.0 + high - at),
                        low if way > 0 else -high,
                    )
                    differs.append(switch)
        self.program.at_least(total(differs), 1.0)
        return bool(differs)

    def solve(self, deadline: float) -> Outcome:
        """Find the cheapest action that the model accepts.

        Parameters
        ----------
        deadline : float
            When time is over, by ``time.monotonic``.

        Returns
        -------
        Outcome
            The action, and whether it is proven that none is cheaper.
        """
        self.choices = self.program.wholes
        best, best_cost, lower = None, np.inf, 0.0
        stopped = False
        certain = np.inf  # no bound beyond this counts: something may have been ruled out for nothing
        polished_costs: dict[tuple[int, ...], float] = {}
        for _ in range(_ROUNDS):
            found = self.program.solve(deadline - time.monotonic())
            if found.status == "infeasible":
                lower = max(lower, best_cost)
                break
            lower = max(lower, self._cost_of(found.bound))
            stopped = found.status == "stopped"
            if found.values is None:
                break
            wholes = tuple(np.round(found.values[self.choices]).astype(int).tolist())
            if wholes in polished_costs and self._bound_of(found.values) >= polished_costs[wholes] * (1.0 - _GAP):
                # Their best is known, but others may lie between it and what the solver's tolerances make of it.
                if self._rule_out(found.values):
                    continue
                lower = max(lower, polished_costs[wholes])
                break
            own, polished, is_certain = self._exactly(found.values)
            if own is not None:
                cost = float(self.problem.costs([self.person], own[None, :])[0])
                polished_costs[wholes] = min(cost, polished_costs.get(wholes, np.inf))
                if cost < best_cost:
                    best, best_cost = own, cost
            if lower >= best_cost * (1.0 - _GAP) or stopped:
                break
            if own is None:
                possible, is_certain = self.forbid(found.values, is_certain)
                certain = certain if is_certain else min(certain, lower)
                if not possible:
                    break
            elif not self.curves and not self._rule_out(found.values):
                break
            self._add_tangents(found.values)
            self._add_tangents(polished)
        lower = min(lower, certain, best_cost)
        return Outcome(best, lower >= best_cost * (1.0 - _GAP), lower, stopped)

    def _bound_of(self, values: Array) -> float:
        """A bound on the cost of all actions with the whole numbers that the solver chose."""
        return self._cost_of(self._fixed(values).solve(relaxed=True).bound)

    def _cost_of(self, objective: float) -> float:
        return self.scale * float(self.cost.from_sum(max(objective / _SIZE, 0.0)))

    def _add_tangents(self, values: Array) -> None:
        for curve, cost in self.curves:
            _add_tangent(self.program, curve, cost, cost.at(values))

    def _exactly(self, found: Array) -> tuple[Array | None, Array, bool]:
        """The action that the solver means, to the last bit, and its variables; None if it is refused after all.

        The last part says whether there is then no action at all with the whole numbers that the solver chose.
        """
        can_adapt = any(isinstance(part, Range) and part.is_continuous for part in self.parts)
        for margin in _MARGINS if can_adapt else _MARGINS[:1]:
            values = self._with_wholes_fixed(found, margin)
            if values is None:
                return None, found, margin == 0.0
            for own in self.variants(self._settled(values)):
                if self.accepts(own):
                    return own, values, True
        return None, found, not can_adapt

    def _fixed(self, values: Array) -> Program:
        """The program with the whole numbers as they are."""
        fixed = self.program.copy()
        for variable in fixed.wholes:
            whole = float(np.round(values[variable]))
            fixed.fix(variable, whole, whole)
        return fixed

    def _with_wholes_fixed(self, values: Array, margin: float) -> Array | None:
        """The best continuous variables for the whole ones as they are, a margin away from the borders of pieces."""
        fixed = self._fixed(values)
        for j, pieces in enumerate(self.pieces):
            if pieces is not None and margin > 0:
                first, last = pieces.chosen(values)
                room = min(margin * self.scale / self.problem.actions.features[j].cost, 0.25 * (last - first))
                if first > -np.inf and room > 0:
                    fixed.at_least(pieces.move, first - pieces.start + room)
                if last < np.inf and room > 0:
                    fixed.at_most(pieces.move, last - pieces.start - room)
        found = fixed.solve(relaxed=True)
        return found.values if found.values is None or not self.curves else self._least_squares(fixed, found.values)

    def _least_squares(self, program: Program, values: Array) -> Array:
        """The Euclidean optimum of what is continuous, from a feasible point on."""
        costs = [cost for _, cost in self.curves]
        matrix, constants = program.matrix(costs), np.array([cost.constant for cost in costs])
        curves = [variable for curve, _ in self.curves for variable in curve.terms]
        lows, highs, rows, row_lows, row_highs = program.without(curves)
        free = np.flatnonzero(lows < highs)
        ends = np.vstack([np.eye(len(values)), rows])[:, free]
        reached = np.concatenate([values, rows @ values])
        below, above = np.concatenate([lows, row_lows]) - reached, reached - np.concatenate([highs, row_highs])
        slopes = np.vstack([ends[np.isfinite(below)], -ends[np.isfinite(above)]])
        least = np.concatenate([below[np.isfinite(below)], above[np.isfinite(above)]])
        limits = slopes.any(axis=1)
        step = _shortest_residual(matrix[:, free], -(matrix @ values + constants), slopes[limits], least[limits])
        if step is None or (slopes @ step < least - _FEASIBLE).any():
            return values
        ahead = values.copy()
        ahead[free] = np.clip(values[free] + step, lows[free], highs[free])
        sums = [float(np.square(matrix @ at + constants).sum()) for at in (ahead, values)]
        return ahead if sums[0] <= sums[1] else values

    def variants(self, own: Array) -> Iterator[Array]:
        """Actions that cost the same as the one the solver means, up to rounding: itself, here."""
        yield own

    def _settled(self, values: Array) -> Array:
        """The action; what is continuous is moved by a hair where rounding left it outside its piece."""
        own = np.array(
            [now if part is None else part.read(values) for now, part in zip(self.start, self.parts, strict=True)]
        )
        wanted = [None if pieces is None else pieces.chosen(values) for pieces in self.pieces]
        actions = self.problem.actions
        for _ in range(20):
            end = actions.carry(self.start[None, :], own[None, :])[0]
            off = [
                (j, first if end[j] < first else last)
                for j, piece in enumerate(wanted)
                if piece is not None
                for first, last in (piece,)
                if not first <= end[j] <= last
            ]
            if not off:
                break
            for j, border in off:
                self._nudge(own, j, border - end[j])
        return own

    def _nudge(self, own: Array, j: int, by: float) -> None:
        """Move a number by a hair, itself or through what carries it along."""
        for mover, rate in self._movers(j):
            part = self.parts[mover]
            if not (isinstance(part, Range) and part.is_continuous and rate != 0):
                continue
            moved = own[mover] + by / rate
            if moved == own[mover]:
                moved = np.nextafter(moved, np.inf if by / rate > 0 else -np.inf)
            if part.low <= moved <= part.high:
                own[mover] = moved
                return


def _shortest_residual(matrix: Array, target: Array, slopes: Array, least: Array) -> Array | None:
    """The x with the shortest ‖matrix x − target‖ among those with slopes x ≥ least, or None if it is not found.

    SciPy's own solvers for such constraints write beyond their memory at times (SLSQP in SciPy 1.17), or come close to
    the optimum only (trust-constr).
    """
    found = np.zeros(matrix.shape[1])
    for _ in range(_PULLS):
        step = _nearest_residual(matrix, target - matrix @ found, slopes, least - slopes @ found)
        if step is None:
            return None
        found += step
    return found


def _nearest_residual(matrix: Array, target: Array, slopes: Array, least: Array) -> Array | None:
    """The same, with a weak pull towards zero.

    In coordinates in which the residual is a distance this is a problem of least distance, and that is one of least
    squares with multipliers ≥ 0 (Lawson and Hanson, Solving Least Squares Problems, chapter 23). They say which limits
    are met; with these as equations the answer is exact.
    """
    n = matrix.shape[1]
    lengths = np.linalg.norm(matrix, axis=0)
    pull = _PULL * np.diag(np.where(lengths > 0, lengths, lengths.max(initial=0.0) or 1.0))
    matrix, target = np.vstack([matrix, pull]), np.append(target, np.zeros(n))
    turn, triangle = np.linalg.qr(matrix)
    nearest = turn.T @ target
    with np.errstate(over="ignore", invalid="ignore"):
        sides = solve_triangular(triangle, slopes.T, trans="T").T
        sizes = np.linalg.norm(sides, axis=1)
        short = (least - sides @ nearest) / sizes
    unit = float(np.max(short, initial=0.0))
    if not (np.isfinite(unit) and np.isfinite(sizes).all()):  # weights beyond what a number holds
        return None
    met = np.zeros(len(short), dtype=bool)
    if unit > _NOTHING:
        short = np.maximum(short, -unit / _NOWHERE) / unit  # farther limits are not met
        system, goal = np.vstack([(sides / sizes[:, None]).T, short]), np.append(np.zeros(n), 1.0)
        multipliers = lsq_linear(system, goal, bounds=(0.0, np.inf), method="bvls", tol=1e-15).x
        if not goal[-1] - system[-1] @ multipliers > _NOWHERE:
            return None
        met = multipliers > _NOWHERE * multipliers.max()
    particular = np.linalg.lstsq(slopes[met], least[met], rcond=None)[0] if met.any() else np.zeros(n)
    ways = null_space(slopes[met]) if met.any() else np.eye(n)
    return np.asarray(particular + ways @ np.linalg.lstsq(matrix @ ways, target - matrix @ particular, rcond=None)[0])


def _add_tangent(program: Program, curve: Expression, cost: Expression, at: float) -> None:
    """The square of a cost is above its tangent."""
    program.at_least(curve - cost * (2.0 * at), -at * at)
