"""The plain form of a tree model: arrays of nodes, and how their votes make a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ensemble", "Tree", "join"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tree:
    """One tree; children are −1 at leaves, ``votes`` counts there only.

    Attributes
    ----------
    column : ndarray of int
        The input that a node asks about.
    threshold : ndarray of float
        What it is compared with.
    left, right : ndarray of int
        Where an input goes that is below the threshold or among the categories of the node, and any other.
    missing_left : ndarray of bool
        Whether a missing input goes left.
    votes : ndarray of shape (n_nodes, 2)
        What a leaf adds to the sums against and for the favourable label.
    categories : dict of int to tuple of int
        Nodes that ask "is the input one of these?" instead of comparing it.
    """

    column: Ints
    threshold: Array
    left: Ints
    right: Ints
    missing_left: Mask
    votes: Array
    categories: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Ensemble:
    """All trees of a model, node after node, and the rule by which they decide.

    Each tree adds two votes, against and for the favourable label, to sums that begin at ``base``. The answer is yes
    if the sum for it is larger than the sum against it, or also if they are equal, after both are divided by
    ``divisor``. Models with one score have all of it in the votes for, and zeros against. The sums are made in the
    model's order and precision, so that ties fall as they do there.

    Attributes
    ----------
    roots : ndarray of int, shape (n_trees,)
        The first node of each tree.
    left, right : ndarray of int, shape (n_nodes,)
        Children; −1 at leaves.
    question : ndarray of int, shape (n_nodes,)
        The position of what a node asks among the distinct questions; −1 at leaves.
    votes : ndarray of shape (n_nodes, 2)
        What a leaf adds to the sums.
    column, threshold, missing_left : ndarray of shape (n_questions,)
        The questions: is this input below this threshold, and which way does a missing one go?
    categories : tuple of (tuple of int or None), one per question
        Questions of the kind "is the input, without its decimals, one of these?", which have no threshold.
    base : tuple of two floats
        Where the sums begin.
    divisor : float
        What the sums are divided by.
    wins_ties : bool
        Whether equal sums mean yes.
    below : {"<=", "<"}
        The comparison with thresholds.
    single_inputs : bool
        Whether inputs are rounded to float32 before they are compared.
    single_sums : bool
        Whether sums are made in float32.
    zero_is_missing : bool
        Whether inputs are sparse and what is not in them counts as missing.
    zero_up_to : float
        Inputs of this size or less are taken for zeros.
    """

    roots: Ints
    left: Ints
    right: Ints
    question: Ints
    votes: Array
    column: Ints
    threshold: Array
    missing_left: Mask
    categories: tuple[tuple[int, ...] | None, ...]
    base: tuple[float, float]
    divisor: float
    wins_ties: bool
    below: str
    single_inputs: bool
    single_sums: bool
    zero_is_missing: bool = False
    zero_up_to: float = 0.0

    @property
    def n_questions(self) -> int:
        """Number of distinct questions."""
        return len(self.column)

    @property
    def n_asked(self) -> int:
        """Number of questions that trees ask; the others are about zeros."""
        return int(self.question.max(initial=-1)) + 1

    @property
    def longest_path(self) -> int:
        """Number of nodes from a root to the leaf that is farthest away."""
        length, level = 0, self.roots
        while len(level):
            length += 1
            level = np.concatenate([self.left[level], self.right[level]])
            level = level[level >= 0]
        return length

    @property
    def rounding(self) -> float:
        """How far sums of votes, made in another order, may be from the model's own."""
        fine = self.votes * 2.0**20
        if self.base == (0.0, 0.0) and (fine == np.round(fine)).all() and np.abs(fine).max(initial=0.0) < 2.0**30:
            return 0.0  # whole votes, or halves, quarters, ...: sums are exact, and ties are common
        largest = [np.abs(votes).max() for votes in np.split(self.votes, self.roots[1:])]
        size = len(largest) * (sum(largest) + abs(self.base[1]))
        return float(size) * 4.0 * float(np.finfo(np.float32 if self.single_sums else np.float64).eps)

    def without_zeros(self) -> Ensemble:
        """The same trees before sparse inputs, where a zero is missing.

        Each input gets two questions more, which no tree asks: whether it is below zero, and whether it is above.
        """
        columns = np.unique(self.column)
        n, sides = len(columns), (0.0, np.nextafter(0.0, 1.0)) if self.below == "<" else (-np.nextafter(0.0, 1.0), 0.0)
        return replace(
            self,
            column=np.concatenate([self.column, columns, columns]),
            threshold=np.concatenate([self.threshold, np.repeat(sides, n)]),
            missing_left=np.concatenate([self.missing_left, np.zeros(2 * n, dtype=bool)]),
            categories=(*self.categories, *[None] * (2 * n)),
            zero_is_missing=True,
        )

    def goes_left(self, question: Any, values: Any) -> Mask:
        """Answers to some questions for values of their inputs, element by element."""
        values = np.asarray(values, dtype=np.float64)
        return self.compared(question, np.where(values == 0.0, np.nan, values) if self.zero_is_missing else values)

    def compared(self, question: Any, values: Any) -> Mask:
        """Answers to some questions, a zero being a number like any other: they turn once as a number rises."""
        question, values = np.asarray(question), np.asarray(values, dtype=np.float64)
        if self.zero_up_to > 0.0:
            values = np.where(np.abs(values) <= self.zero_up_to, 0.0, values)
        if self.single_inputs:
            with np.errstate(over="ignore"):
                rounded = values.astype(np.float32).astype(np.float64)
            # What is zero is decided before it is rounded.
            values = np.where(question >= self.n_asked, values, rounded)
        compare = np.less_equal if self.below == "<=" else np.less
        missing = np.isnan(values)
        answers = np.where(missing, self.missing_left[question], compare(values, self.threshold[question]))
        question, values, missing = np.broadcast_arrays(question, values, missing)
        for q in {int(q) for q in np.unique(question)} & self._categorical:
            asked = (question == q) & ~missing
            answers[asked] = np.isin(np.trunc(values[asked]), self.categories[q] or ())
        return np.asarray(answers)

    @property
    def _categorical(self) -> set[int]:
        return {q for q, categories in enumerate(self.categories) if categories is not None}

    def answers(self, inputs: Array) -> Mask:
        """Answers of people to all questions, one row per person."""
        return self.goes_left(np.arange(self.n_questions)[None, :], inputs[:, self.column])

    def leaves(self, inputs: Array) -> Ints:
        """The leaf of each tree that people are in, one row per person."""
        answers = self.answers(inputs)
        people = np.arange(len(inputs))[:, None]
        node = np.tile(self.roots, (len(inputs), 1))
        while (inner := self.left[node] >= 0).any():
            goes_left = answers[people, np.maximum(self.question[node], 0)]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
        return node

    def sums(self, inputs: Array) -> Array:
        """The sums against and for the favourable label, one row per person."""
        kind = np.float32 if self.single_sums else np.float64
        total = np.tile(np.asarray(self.base, dtype=kind), (len(inputs), 1))
        for nodes in self.leaves(inputs).T:  # tree after tree, as the model adds them up
            total += self.votes[nodes].astype(kind)
        return np.asarray(total / kind(self.divisor), dtype=np.float64)

    def scores(self, inputs: Array) -> Array:
        """How far the sum for the favourable label is above the sum against it."""
        sums = self.sums(inputs)
        return np.asarray(sums[:, 1] - sums[:, 0])

    def accepts(self, inputs: Array) -> Mask:
        """Who gets a yes."""
        scores = self.scores(inputs)
        return np.asarray(scores >= 0 if self.wins_ties else scores > 0)


def join(
    trees: Sequence[Tree],
    *,
    wins_ties: bool,
    base: float = 0.0,
    divisor: float = 1.0,
    below: str = "<=",
    single_inputs: bool = False,
    single_sums: bool = False,
    zero_up_to: float = 0.0,
) -> Ensemble:
    """Put trees one after another, and number the questions they ask."""
    sizes = np.array([len(tree.left) for tree in trees], dtype=np.intp)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
    shift = np.repeat(roots, sizes)

    def children(parts: list[Ints]) -> Ints:
        joined = np.concatenate(parts).astype(np.intp)
        return np.where(joined >= 0, joined + shift, -1)

    left, right = children([tree.left for tree in trees]), children([tree.right for tree in trees])
    column = np.concatenate([tree.column for tree in trees]).astype(np.intp)
    threshold = np.concatenate([tree.threshold for tree in trees]).astype(np.float64)
    missing_left = np.concatenate([tree.missing_left for tree in trees]).astype(bool)
    categories = {
        int(root) + node: chosen
        for root, tree in zip(roots, trees, strict=True)
        for node, chosen in tree.categories.items()
    }
    known: dict[tuple[Any, ...], int] = {}
    question = np.full(len(left), -1, dtype=np.intp)
    for node in np.flatnonzero(left >= 0):
        chosen = categories.get(int(node))
        level = 0.0 if chosen is not None else float(threshold[node])
        asked = (int(column[node]), level, bool(missing_left[node]), chosen)
        question[node] = known.setdefault(asked, len(known))
    return Ensemble(
        roots=roots,
        left=left,
        right=right,
        question=question,
        votes=np.concatenate([tree.votes for tree in trees]).astype(np.float64),
        column=np.array([asked[0] for asked in known], dtype=np.intp),
        threshold=np.array([asked[1] for asked in known], dtype=np.float64),
        missing_left=np.array([asked[2] for asked in known], dtype=bool),
        categories=tuple(asked[3] for asked in known),
        base=(0.0, base),
        divisor=divisor,
        wins_ties=wins_ties,
        below=below,
        single_inputs=single_inputs,
        single_sums=single_sums,
        zero_up_to=zero_up_to,
    )
