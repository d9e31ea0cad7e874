"""Rules that cannot be kept together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from equirecourse.actions._feature import Feature
from equirecourse.actions._rules import MOVES, Condition, Link, Rule

__all__ = ["check_rules"]

# Combinations beyond which rules that hang together are not examined.
_MOST = 100_000

Mask = NDArray[np.bool_]


def check_rules(features: dict[str, Feature], links: Sequence[Link], rules: Sequence[Rule]) -> None:
    """Refuse rules one of whose conditions could hold, but never together with all the rules.

    What a person does not change may have any value, also one outside the limits, so a rule that only people who are
    already there can keep is no contradiction. Links make a feature move in whatever way, which errs on the side of
    letting rules pass.
    """
    carried = {link.target for link in links}
    for part in _parts(rules):
        conditions: dict[str, list[Condition]] = {}
        for rule in part:
            for condition in (rule.when, rule.then):
                of_feature = conditions.setdefault(condition.feature, [])
                if condition not in of_feature:
                    of_feature.append(condition)
        patterns = {
            name: _patterns(features[name], of_feature, name in carried) for name, of_feature in conditions.items()
        }
        sizes = [len(pattern) for pattern in patterns.values()]
        if np.prod([float(size) for size in sizes]) > _MOST:
            continue
        places = dict(zip(patterns, np.indices(sizes).reshape(len(sizes), -1), strict=True))
        true = {
            condition: patterns[name][places[name], k]
            for name, of_feature in conditions.items()
            for k, condition in enumerate(of_feature)
        }
        _refuse_contradictions(part, true)


def _refuse_contradictions(rules: list[Rule], true: dict[Condition, Mask]) -> None:
    kept = {rule: ~true[rule.when] | true[rule.then] for rule in rules}

    def possible(condition: Condition, among: list[Rule]) -> bool:
        return bool(np.logical_and.reduce([true[condition], *(kept[rule] for rule in among)]).any())

    for rule in rules:
        if not possible(rule.when, []) or possible(rule.when, rules):
            continue
        guilty = list(rules)
        for other in rules:  # leave out what the contradiction does not need
            fewer = [one for one in guilty if one != other]
            if not possible(rule.when, fewer):
                guilty = fewer
        if len(guilty) == 1:
            raise ValueError(
                f"The rule '{guilty[0]}' can never be kept: no allowed change makes both '{guilty[0].when}' and "
                f"'{guilty[0].then}' true; correct the rule, or what its features are allowed."
            )
        names = ", ".join(f"'{one}'" for one in guilty[:-1]) + f" and '{guilty[-1]}'"
        raise ValueError(
            f"The rules {names} contradict each other: '{rule.when}' could never be true; correct or drop one of them."
        )


def _parts(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Rules that hang together because they share features."""
    left = list(rules)
    while left:
        part, names = [left.pop(0)], set[str]()
        for rule in part:  # grows while it is read
            names |= {rule.when.feature, rule.then.feature}
            part += [other for other in left if names & {other.when.feature, other.then.feature}]
            left = [other for other in left if other not in part]
        yield part


def _patterns(feature: Feature, conditions: list[Condition], carried: bool) -> Mask:
    """Every way in which the conditions on one feature can be true and false together, one row each."""
    starts, ends = np.array(list(_moves(feature, conditions, carried))).T
    rows = np.stack([condition.holds(feature, starts, ends) for condition in conditions], axis=1)
    return np.unique(rows, axis=0)


def _moves(feature: Feature, conditions: list[Condition], carried: bool) -> Iterator[tuple[float, float]]:
    """Starts and ends that stand for all that can happen to one feature."""
    up = feature.change in ("any", "increase")
    down = feature.change in ("any", "decrease")
    if feature.is_number:
        for low, high in _pieces(feature, conditions):
            somewhere = low if np.isfinite(low) else high if np.isfinite(high) else 0.0
            yield somewhere, somewhere
            own, along = _reaches(feature, low, high, feature.step), carried and _reaches(feature, low, high, None)
            if (own and up) or along:
                yield -np.inf, somewhere
            if (own and down) or along:
                yield np.inf, somewhere
        return
    last = len(feature.labels) - 1
    for code, reachable in enumerate(feature.reachable):
        yield float(code), float(code)
        if reachable and up and code > 0:
            yield code - 1.0, float(code)
        if reachable and down and code < last:
            yield code + 1.0, float(code)
    if last < 0:
        yield -1.0, -1.0


def _pieces(feature: Feature, conditions: list[Condition]) -> Iterator[tuple[float, float]]:
    """Intervals on each of which no comparison turns; each begins at a cut."""
    comparisons = [condition for condition in conditions if condition.op not in MOVES]
    cuts = sorted({cut for condition in comparisons for cut in condition.cuts(feature, np.nan)})
    for low, after in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True):
        yield low, math.nextafter(after, -math.inf) if np.isfinite(after) else after


def _reaches(feature: Feature, low: float, high: float, step: float | None) -> bool:
    """Whether a changed value may lie in [low, high], a piece on which comparisons do not turn.

    Comparisons are exact, so the piece is; the feature's own limits hold up to rounding errors, as they do elsewhere.
    """
    inside = max(low, feature.low), min(high, feature.high)
    if inside[0] > inside[1] or step is None or not np.isfinite(inside[0] / step):
        return inside[0] <= inside[1]
    first = np.ceil(inside[0] / step - 1e-9)
    values = np.array([first, first + 1.0]) * step  # the first may be a rounding error below the piece
    slack = 1e-9 * np.maximum(1.0, np.abs(values))
    with np.errstate(over="ignore"):  # a limit next to the largest number there is
        allowed = (values >= feature.low - slack) & (values <= feature.high + slack)
    return bool((allowed & (values >= low) & (values <= high)).any())
