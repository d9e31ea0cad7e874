"""Trees as a mixed-integer program per person: an independent check of the search.

Each tree sends one unit from its root to its leaves. What goes below the left child of a node is at most 1 if the
question of the node is answered by left, else 0. With the answers given, only one leaf is left for the unit, so that
leaves need no whole numbers of their own, and one row per child is tighter than one per leaf.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._milp import ActionProgram, Choice, Expression, solve_programs, total
from equirecourse.recourse._problem import Answers, Problem
from equirecourse.recourse._trees._cells import cells_of
from equirecourse.recourse._trees._ensembles import Ensemble, tree_view
from equirecourse.recourse._trees._partition import Axis

__all__ = ["solve"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def solve(problem: Problem, ensemble: Ensemble, axes: list[Axis], current: Mask) -> Answers:
    """Cheapest accepted action of each person, by one program each.

    Parameters
    ----------
    problem : Problem
        People and what they may change.
    ensemble : Ensemble
        The trees.
    axes : list of Axis
        The cells of each feature.
    current : ndarray of bool, shape (n_people, n_questions)
        People's answers to the questions of the trees, as they are now.

    Returns
    -------
    Answers
        With everybody found or proven to have no action, except where time ran out.
    """
    return solve_programs(
        problem,
        lambda asked, person, known: TreeProgram(asked, ensemble, axes, current[person], person, known),
        listed=not problem.actions.links or problem.grids_are_whole,
    )


class TreeProgram(ActionProgram):
    """The program of one person before a model of trees."""

    def __init__(
        self,
        problem: Problem,
        ensemble: Ensemble,
        axes: list[Axis],
        current: Mask,
        person: int,
        known: float | None,
    ) -> None:
        cells = [cells_of(problem, j, axis, np.array([person])) for j, axis in enumerate(axes)]
        scale = known
        if scale is None:
            dear = np.concatenate([part.costs[0, np.isfinite(part.costs[0])] for part in cells])
            dear = dear[dear > 1e-9 * dear.max(initial=0.0)]  # a hair to either side of the start is no typical move
            scale = float(np.median(dear)) if len(dear) else 1.0
        linked = {problem.actions.index(name) for link in problem.actions.links for name in (link.source, link.target)}
        lists: list[tuple[Array, Array] | None] = []
        columns: list[NDArray[np.intp]] = []
        for j, part in enumerate(cells):
            possible = np.flatnonzero(np.isfinite(part.costs[0]))
            columns.append(possible)
            values, costs = part.values[0, possible], part.costs[0, possible]
            if j in linked:
                grid = problem.grids[j]
                low, high = (side[person, j] for side in problem.reach)
                ends = np.zeros(0) if grid is None else grid[(grid >= low) & (grid <= high) & (grid != values[0])]
                values = np.append(values[0], ends)
                costs = problem.actions.features[j].move_cost(problem.norm, values[0], values)
            lists.append(None if j in linked and problem.grids[j] is None else (values, costs))
        cuts = [axis.cuts if j in linked else np.zeros(0) for j, axis in enumerate(axes)]
        super().__init__(problem, person, lists, cuts, scale, known)
        self.ensemble = ensemble
        self.lefts: dict[int, Expression] = {q: Expression({}, float(left)) for q, left in enumerate(current)}
        for j, axis in enumerate(axes):
            self._ask(j, axis, current, columns[j], j in linked)
        self._add_trees()

    def _ask(self, j: int, axis: Axis, current: Mask, columns: NDArray[np.intp], is_linked: bool) -> None:
        """Make the answer to each question about a feature an expression: 1 is left."""
        part, pieces = self.parts[j], self.pieces[j]
        if part is None and pieces is None:
            return
        if is_linked and pieces is None and not isinstance(part, Choice):
            return  # wherever it moves, the answers are those of now
        if is_linked:
            ends = pieces.inside if pieces is not None else part.ends  # type: ignore[union-attr]
            stays = (ends == self.start[j]) | np.isnan(ends)  # a missing number is carried nowhere
            places = np.where(stays, -1, np.searchsorted(axis.cuts, ends, side="right"))
        else:
            places = np.where((columns == 0) | (columns > axis.n_cells), -1, columns - 1)
        among = pieces.among if pieces is not None else part.among  # type: ignore[union-attr]
        for position, q in enumerate(axis.questions.tolist()):
            # Where the person is, or next to it in the same cell, the answer is the person's own.
            self.lefts[q] = among(np.where(places < 0, current[q], axis.answers(position)[places]))

    def _add_trees(self) -> None:
        model = self.ensemble
        values = model.votes[:, 1] - model.votes[:, 0]
        self.leaves: list[dict[int, int]] = []  # for each tree with a choice, variable → node
        score = [Expression({}, model.base[1] - model.base[0])]
        for root in model.roots.tolist():
            leaves: dict[int, int] = {}
            below = self._below(root, leaves)
            if len(leaves) == 1:
                score.append(Expression({}, float(values[next(iter(leaves.values()))])))
                continue
            self.program.equal(below, 1.0)
            score.append(Expression({variable: float(values[node]) for variable, node in leaves.items()}))
            self.leaves.append(leaves)
        if self.leaves:
            self._ask_for_a_yes(total(score), values)
        else:  # nothing that the person can do makes a difference to a model that says no
            self.program.at_least(Expression({}), 1.0)

    def _below(self, node: int, leaves: dict[int, int]) -> Expression:
        """What arrives at the leaves below a node."""
        model = self.ensemble
        if model.left[node] < 0:
            leaf = self.program.variable(0.0, 1.0)
            leaves[next(iter(leaf.terms))] = node
            return leaf
        left = self.lefts[int(model.question[node])]
        parts = []
        for child, allowed in ((model.left[node], left), (model.right[node], left * -1.0 + 1.0)):
            if not allowed.terms and allowed.constant < 0.5:
                continue
            part = self._below(int(child), leaves)
            if allowed.terms:
                self.program.at_most(part - allowed, 0.0)
            parts.append(part)
        return total(parts)

    def _ask_for_a_yes(self, score: Expression, values: Array) -> None:
        least = 0.0
        if self.ensemble.rounding == 0.0:
            # Votes are whole multiples of something: half of that is on the safe side of a tie.
            votes = np.unique(np.abs(np.append(values, 1.0 if not len(values) else values[0])))
            unit = float(np.gcd.reduce(np.round(votes * 2.0**20).astype(np.int64))) / 2.0**20
            least = -0.5 * unit if self.ensemble.wins_ties else 0.5 * unit
        largest = float(np.abs(values).max(initial=0.0)) or 1.0
        self.program.at_least(score * (1.0 / largest), least / largest)

    def forbid(self, values: Array, certain: bool) -> tuple[bool, bool]:
        """Rule out the leaves that the solver chose if it is them that the model refuses, else the very action."""
        own = self._settled(values)
        chosen = [max(leaves, key=lambda variable: float(values[variable])) for leaves in self.leaves]
        nodes = {leaves[variable] for leaves, variable in zip(self.leaves, chosen, strict=True)}
        # The solver's tolerance may have put the action on the wrong side of a threshold, or of a rule: then others in
        # these leaves may be accepted.
        allowed = self.problem.respected([self.person], own[None, :])[0]
        if not self.leaves or not allowed or not nodes <= self._leaves_of(own):
            return super().forbid(values, certain)
        self.program.at_most(Expression(dict.fromkeys(chosen, 1.0)), len(chosen) - 1.0)
        return True, True

    def _leaves_of(self, own: Array) -> set[int]:
        """The leaves in which the model sees the person after an action."""
        table = self.problem.after([self.person], own[None, :])
        return set(self.ensemble.leaves(tree_view(self.problem.view, table).inputs(table))[0].tolist())
