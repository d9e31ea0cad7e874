"""The rounds over the rejected set: who is rejected decides what is balanced, and the other way round.

The paper's loop takes the people the previous model rejected, balances those, and looks at who is rejected now. It ends
when nobody's decision changes. It need not end: it may come back to a rejected set it has been at, or wander among a
few. Then, for a single difference, the loop goes on *between* two rounds whose gaps have opposite signs, where a gap of
zero must lie.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._validation import Groups
from equirecourse.equalizers._contrasts import Contrasts, build_contrasts, group_means
from equirecourse.exceptions import ConvergenceWarning, SmallGroupWarning, UndefinedRecourseWarning

__all__ = [
    "Round",
    "RoundFit",
    "Rounds",
    "Setting",
    "check_plain",
    "doubted_if_constant",
    "look",
    "run_rounds",
]

Array = NDArray[np.float64]

_MANY_PEOPLE = 100_000  # among whom a few always sit at the boundary, and change sides with the last digits
_VANISHED = 1e-6  # share of the plain model's range of scores below which scores are a constant, but for the solver
_SETTLED = 1e-3  # share of many people whose decisions may still change once the gap is zero


class RoundFit(Protocol):
    """A fitted model as the rounds see it. Scores are positive for accepted people."""

    @property
    def scores(self) -> Array: ...

    @property
    def balance_scores(self) -> Array: ...

    @property
    def norm(self) -> float: ...

    @property
    def differences(self) -> Array: ...

    @property
    def stiffness(self) -> float: ...


@dataclass(frozen=True)
class Round:
    """One round: a model, whom it rejects, and how unequal their distances are."""

    number: int
    kind: str
    fit: RoundFit
    rejected: NDArray[np.bool_]
    built_on: Contrasts | None
    own: Contrasts
    gap: float
    mean_distance: float
    summary: dict[str, Any] = field(repr=False)

    @property
    def imbalance(self) -> float:
        """Norm of the differences at the round's own rejected set, relative to the mean distance; NaN if undefined."""
        if len(self.own) == 0 or not self.mean_distance > 0 or self.fit.norm == 0:
            return np.nan
        return float(np.linalg.norm(self.signed)) / self.mean_distance

    @property
    def signed(self) -> Array:
        """The differences at the round's own rejected set, as distances."""
        return np.asarray(self.own.weights.T @ self.fit.balance_scores / self.fit.norm)


@dataclass(frozen=True)
class Rounds:
    """All rounds, the chosen one, and how the loop ended."""

    history: tuple[Round, ...]
    chosen: Round
    converged: bool
    ending: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row per round."""
        # By columns: pandas takes twice as long over a list of rows, and small problems are solved in milliseconds.
        columns: dict[str, list[Any]] = {"kind": [r.kind for r in self.history]}
        columns |= {name: [r.summary[name] for r in self.history] for name in self.history[0].summary}
        columns["chosen"] = [r is self.chosen for r in self.history]
        return pd.DataFrame(columns, index=pd.Index([r.number for r in self.history], name="round"))


@dataclass(frozen=True)
class Setting:
    """What stays the same in all rounds."""

    partitions: Sequence[Groups]
    y: Array
    sample_weight: Array
    normalize: str
    min_rejected: int
    memory: int
    ties_rejected: bool = True  # a score of zero is predicted as the smaller label, favourable or not


def look(
    setting: Setting,
    number: int,
    kind: str,
    fit: RoundFit,
    built_on: Contrasts | None,
    last: Round | None,
    rejected: NDArray[np.bool_] | None = None,
) -> Round:
    """Describe a fit: whom it rejects (by its scores, unless that is known), and the differences among those."""
    if rejected is None:
        rejected = fit.scores <= 0 if setting.ties_rejected else fit.scores < 0
    weight = setting.sample_weight
    norm = fit.norm if fit.norm > 0 else np.nan
    distances = np.where(rejected, -fit.balance_scores / norm, 0.0)
    own = build_contrasts(
        setting.partitions,
        rejected,
        sample_weight=weight,
        normalize=setting.normalize,
        min_rejected=setting.min_rejected,
    )
    gaps = []
    counts: dict[str, int] = {}
    for position, groups in enumerate(setting.partitions):
        means = group_means(distances, groups, rejected, weight, normalize=setting.normalize)
        kept = [m for m, label in zip(means, groups.labels, strict=True) if (position, label) not in own.left_out]
        gaps.append(max(kept) - min(kept) if len(kept) > 1 else np.nan)
        numbers = np.bincount(groups.codes[rejected], minlength=len(groups))
        feature = f"{groups.names[0]}=" if len(setting.partitions) > 1 else ""
        for label, k in zip(groups.labels, numbers, strict=True):
            name = " & ".join(map(str, label)) if isinstance(label, tuple) else str(label)
            counts[f"rejected ({feature}{name})"] = int(k)
    gap = float(max(gaps))  # NaN wins: a gap that is undefined for one feature is undefined
    gap = np.nan if np.isnan(gaps).any() else gap
    mean = float(np.average(distances[rejected], weights=weight[rejected])) if weight[rejected].sum() > 0 else np.nan
    summary = {
        "gap": gap,
        "functional_gap": gap * fit.norm,
        "mean_distance": mean,
        "relative_gap": gap / mean if mean > 0 else np.nan,
        "balance_residual": float(np.linalg.norm(fit.differences)) if built_on is not None else np.nan,
        "stiffness": fit.stiffness if built_on is not None else 0.0,
        "changed": int((rejected != last.rejected).sum()) if last is not None else 0,
        "accuracy": float(np.average(~rejected == (setting.y > 0), weights=weight)),
        "acceptance": float(np.average(~rejected, weights=weight)),
        **counts,
    }
    return Round(number, kind, fit, rejected, built_on, own, gap, mean, summary)


def run_rounds(
    fit_contrasts: Callable[[Contrasts | None], RoundFit],
    setting: Setting,
    *,
    max_rounds: int,
    on_cycle: str,
    hard: bool,
    tol: float,
    satisfied: Callable[[Round], bool],
) -> Rounds:
    """Fit, look who is rejected, balance those, and again.

    Parameters
    ----------
    fit_contrasts : callable
        Contrasts → fit; None → the plain fit.
    setting : Setting
        Groups, labels, weights and options.
    max_rounds : int
        Rounds after the plain one; as many again may be spent on the search between two rounds.
    on_cycle : {"mix", "stop", "last"}
        What to do once the loop has failed to end: search between two rounds, keep the best round, or the last.
    hard : bool
        Whether a difference of zero is what the fits aim at.
    tol : float
        Relative imbalance that counts as zero when the loop has failed to end.
    satisfied : callable
        Whether a round is all that was asked for, even if the next one would differ: a bound that it keeps to.
    """
    plain = look(setting, 0, "plain", fit_contrasts(None), None, None)
    if satisfied(plain):
        if np.isnan(plain.gap):  # nothing was to be balanced, and nothing can be said about the gap either
            warnings.warn(
                f"The gap of the plain model is undefined: {'; '.join(_too_few(plain, setting))}.",
                UndefinedRecourseWarning,
                stacklevel=4,
            )
        return Rounds((plain,), plain, True, "the plain model is all that was asked for")
    check_plain(plain, setting)
    if max_rounds == 0:
        return Rounds((plain,), plain, False, "max_rounds is 0")
    mixes = hard and on_cycle == "mix" and len(plain.own) == 1 and setting.memory == 1
    rules = _Rules(max_rounds, on_cycle, hard, mixes, tol, satisfied)
    history, ending = [plain], None
    while ending is None:
        last = history[-1]
        earlier = [one.own for one in history[-setting.memory : -1]]
        contrasts = last.own.joined_with(earlier) if earlier else last.own
        history.append(look(setting, len(history), "rejected", fit_contrasts(contrasts), contrasts, last))
        ending = _ending_of(history, setting, rules)
    if ending.converged:
        return Rounds(tuple(history), history[-1], True, ending.reason)
    if mixes and _best(history, tol).imbalance > tol:
        _search_between(fit_contrasts, setting, history, max_rounds, tol)
    return _chosen_of(history, ending, rules)


@dataclass(frozen=True)
class _Rules:
    """When the loop ends, and which round it ends with."""

    max_rounds: int
    on_cycle: str
    hard: bool
    mixes: bool  # whether a search between two rounds is possible, and wanted
    tol: float
    satisfied: Callable[[Round], bool]


@dataclass(frozen=True)
class _Ending:
    """Why the loop ends, and the first round and the length of the cycle that it would go round in."""

    reason: str
    converged: bool = False
    first: int = 0
    period: int = 0


def _ending_of(history: Sequence[Round], setting: Setting, rules: _Rules) -> _Ending | None:
    """How the loop ends with the latest round; None if it goes on."""
    plain, last, current = history[0], history[-2], history[-1]
    balanced = [one.number for one in history[:-1] if np.array_equal(one.own.weights, current.own.weights)]
    if balanced and balanced[-1] == last.number:
        return _Ending("nobody's decision changed", converged=True)
    if rules.hard and current.imbalance <= rules.tol and _few_changed(current.summary["changed"], len(setting.y)):
        return _Ending("the gap vanished, and hardly anybody's decision changed", converged=True)
    if len(current.own) < len(plain.own):
        return _Ending("a group has too few rejected people left")
    if balanced and setting.memory == 1:
        reason = "the rounds came back to an earlier rejected set"
        return _Ending(reason, first=balanced[-1] + 1, period=current.number - balanced[-1])
    if rules.mixes and _oscillates([one.summary["changed"] for one in history]) and _can_end(history, rules.tol):
        return _Ending("the rounds did not come nearer to each other")
    return _Ending(f"max_rounds={rules.max_rounds} was reached") if current.number == rules.max_rounds else None


def _chosen_of(history: Sequence[Round], ending: _Ending, rules: _Rules) -> Rounds:
    """The round to keep where the loop has failed to end by itself."""
    everything = tuple(history)
    if rules.on_cycle == "last":
        # The rounds would go round in a circle: the last one is known without running it.
        at = ending.first + (rules.max_rounds - ending.first) % ending.period if ending.period else -1
        _warn_of_no_end(ending.reason, history[at], "the one the loop ends with")
        return Rounds(everything, history[at], False, ending.reason)
    chosen = _best(history, rules.tol)
    if rules.hard and chosen.imbalance <= rules.tol:
        return Rounds(everything, chosen, True, f"the gap vanished in round {chosen.number} ({ending.reason})")
    enough = [one for one in history if rules.satisfied(one)]
    if enough:
        chosen = max(enough, key=lambda one: one.summary["accuracy"])
        return Rounds(everything, chosen, True, f"round {chosen.number} keeps to the bound ({ending.reason})")
    _warn_of_no_end(ending.reason, chosen, "the one with the smallest gap relative to the mean distance")
    return Rounds(everything, chosen, False, ending.reason)


def doubted_if_constant(rounds: Rounds) -> Rounds:
    """The rounds, not converged if the chosen model says the same to everybody: a gap of nobody is no equality."""
    plain, chosen = rounds.history[0].fit, rounds.chosen.fit
    if chosen is plain or np.ptp(chosen.scores) > _VANISHED * np.ptp(plain.scores):
        return rounds
    ending = "no direction is left in which the groups are balanced"
    warnings.warn(
        f"The balanced model is a constant: {ending} ({len(rounds.history[0].own)} differences are to vanish), so it "
        "says the same to everybody. Use a finite recourse_penalty, or more features.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return replace(rounds, converged=False, ending=ending)


def _warn_of_no_end(ending: str, kept: Round, why: str) -> None:
    warnings.warn(
        f"The rounds over the rejected set did not converge ({ending}); round {kept.number} is kept, {why} "
        f"({kept.summary['relative_gap']:.2g} of the mean distance). "
        "rounds_ has them all; a larger max_rounds, round_options={'memory': 2} or a finite "
        "recourse_penalty may help.",
        ConvergenceWarning,
        stacklevel=6,
    )


def _best(history: Sequence[Round], tol: float) -> Round:
    """The round with the smallest imbalance that balances every group the plain model has.

    Imbalances up to ``tol`` are all zero for our purpose: among those, the most accurate round.
    """
    full = [r for r in history if len(r.own) == len(history[0].own) and np.isfinite(r.imbalance)]
    if not full:
        return history[0]
    return min(full, key=lambda r: (max(r.imbalance, tol), -r.summary["accuracy"], r.imbalance))


def _search_between(
    fit_contrasts: Callable[[Contrasts | None], RoundFit],
    setting: Setting,
    history: list[Round],
    budget: int,
    tol: float,
) -> None:
    """Look for a gap of zero between two rounds of opposite sign, by false position safeguarded by bisection.

    The gap is all but continuous along the line between the two rounds' contrasts: each person who changes sides has a
    distance near zero. New rounds are appended to ``history``.
    """
    usable = [r for r in history[1:] if len(r.own) == 1]
    above = [r for r in usable if r.signed[0] > 0]
    below = [r for r in usable if r.signed[0] <= 0]
    if not above or not below:
        return
    high, low = min(above, key=lambda r: r.signed[0]), max(below, key=lambda r: r.signed[0])
    for step in range(budget):
        share = 0.5 if step % 3 == 2 else float(high.signed[0] / (high.signed[0] - low.signed[0]))
        contrasts = _built_on(high).mixed_with(_built_on(low), min(max(share, 0.02), 0.98))
        current = look(setting, len(history), "between", fit_contrasts(contrasts), contrasts, history[-1])
        history.append(current)
        if len(current.own) != 1 or current.imbalance <= tol:
            return
        if current.signed[0] > 0:
            high = current
        else:
            low = current


def _oscillates(changed: Sequence[int]) -> bool:
    """Whether the last round changed as many decisions as the one before: such rounds need not end by themselves."""
    return len(changed) > 2 and changed[-1] >= changed[-2]


def _can_end(history: Sequence[Round], tol: float) -> bool:
    """Whether a gap of zero has been met, or must lie between two rounds."""
    usable = [r for r in history[1:] if len(r.own) == 1]
    signs = {bool(r.signed[0] > 0) for r in usable}
    return len(signs) == 2 or any(r.imbalance <= tol for r in usable)


def _few_changed(changed: int, people: int) -> bool:
    """Whether so few of many people's decisions changed that the rounds are over; of few people's, none may."""
    return people >= _MANY_PEOPLE and changed < _SETTLED * people


def _built_on(one: Round) -> Contrasts:
    if one.built_on is None:
        raise ValueError("the plain round was built on no contrasts.")
    return one.built_on


def _too_few(one: Round, setting: Setting) -> list[str]:
    """Name the groups with too few rejected people, one clause each."""
    clauses = []
    for (position, label), k in one.own.left_out.items():
        groups = setting.partitions[position]
        feature = f" of {groups.names[0]!r}" if len(setting.partitions) > 1 else ""
        people = int(groups.members(groups.labels.index(label)).sum())
        clauses.append(f"group {label!r}{feature} has {k} rejected people in {people}")
    return clauses


def check_plain(plain: Round, setting: Setting) -> None:
    """Refuse to balance what the plain model leaves undefined, and name the groups that are left out."""
    needed = setting.min_rejected
    left_out = _too_few(plain, setting)
    defined = [
        sum((position, label) not in plain.own.left_out for label in groups.labels) >= 2
        for position, groups in enumerate(setting.partitions)
    ]
    if not all(defined):
        raise ValueError(
            f"The plain model leaves no two groups to compare: {'; '.join(left_out)}, and the balance needs at least "
            f"{needed} in each of two groups; lower min_rejected, merge small groups, or use a model that rejects more "
            "people (sample weights, C)."
        )
    if left_out:
        warnings.warn(
            f"{'; '.join(left_out)}: fewer than {needed}, so left out of the balance; "
            "merge small groups, or lower min_rejected.",
            SmallGroupWarning,
            stacklevel=5,
        )
