"""Is a change allowed? Masks for engines, sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse.actions._feature import Feature
from equirecourse.actions._words import in_words, limits_in_words, quoted

if TYPE_CHECKING:
    from equirecourse.actions._action_set import ActionSet

__all__ = ["own_changes", "respected", "starts_outside", "violations", "without_rounding"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Relative rounding error that arithmetic on bounds, steps and links may leave.
_SLACK = 1e-9

_UNLISTED = "cannot change from a label that is not listed"


class Broken(NamedTuple):
    """People who do something that a feature does not allow."""

    people: Mask
    feature: int
    what: str


def respected(actions: ActionSet, start: Array, own: Array) -> Mask:
    """Whether each person's change keeps to the action set."""
    fine = np.ones(len(start), dtype=bool)
    for broken in _checks(actions, start, own):
        fine &= ~broken.people
    return fine


def violations(actions: ActionSet, table: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Everything in ``new`` that people who start at ``table`` cannot do, a sentence each."""
    if len(table) != len(new):
        raise ValueError(f"X has {len(table)} people and X_new has {len(new)}; pass the same people twice.")
    missing = [name for name in table.columns if name not in new.columns]
    if missing:
        raise ValueError(f"X_new has no column {missing[0]!r}; pass the same people with the same columns.")
    start, end = actions.encode(table), actions.encode(new)
    rows: list[tuple[int, int, str]] = []
    for people, j, what in _checks(actions, start, own_changes(actions, start, end)):
        feature = actions.features[j]
        for person in np.flatnonzero(people).tolist():
            before = _told(feature, table, start[person, j], person)
            after = _told(feature, new, end[person, j], person)
            rows.append((person, len(rows), f"{feature.name} {what}, and went from {before} to {after}"))
    for j, feature in enumerate(actions.features):
        if feature.kind in ("ordered", "labels"):
            # Labels that are not listed are one and the same −1 to engines, which never touch them; others may.
            unlisted = (start[:, j] < 0) & (end[:, j] < 0) & _differs(table[feature.name], new[feature.name])
            rows += [
                (person, len(rows), f"{feature.name} {_UNLISTED}, and went from "
                 f"{_told(feature, table, -1.0, person)} to {_told(feature, new, -1.0, person)}")
                for person in np.flatnonzero(unlisted).tolist()
            ]  # fmt: skip
    for name in [name for name in table.columns if name not in set(actions.columns)]:
        rows += [
            (person, len(rows), f"{name} is not in the action set, and changed")
            for person in np.flatnonzero(_differs(table[name], new[name])).tolist()
        ]
    rows.sort()
    people = np.array([person for person, *_ in rows], dtype=np.int64)
    return pd.DataFrame({"person": people, "problem": pd.Series([text for *_, text in rows], dtype=object)})


def own_changes(actions: ActionSet, start: Array, end: Array) -> Array:
    """What people changed themselves: where they ended up, less what links carried along."""
    own = end.copy()
    for link in actions.links:
        source, target = actions.index(link.source), actions.index(link.target)
        move = end[:, source] - start[:, source]
        own[:, target] -= np.where(np.isnan(move), 0.0, link.rate * move)
    return without_rounding(actions, start, own)


def without_rounding(actions: ActionSet, start: Array, own: Array) -> Array:
    """Own changes, without moves of carried numbers that nobody could tell from the rounding of what carries them."""
    if not actions.links:
        return own
    own = own.copy()
    end = actions.carry(start, own)
    for target in {actions.index(link.target) for link in actions.links}:
        size = np.maximum(np.abs(start[:, target]), np.abs(end[:, target]))
        unmoved = np.abs(own[:, target] - start[:, target]) <= _SLACK * np.maximum(1.0, size)
        own[:, target] = np.where(unmoved, start[:, target], own[:, target])
    return own


def starts_outside(actions: ActionSet, table: pd.DataFrame) -> pd.DataFrame:
    """People whose number is outside its limits before anything has changed."""
    start = actions.encode(table)
    carried = {link.target for link in actions.links}
    outside = np.zeros(start.shape, dtype=bool)
    for j, feature in enumerate(actions.features):
        if feature.is_number and (feature.mutable or feature.name in carried):
            outside[:, j] = _outside(feature, start[:, j])
    people, places = np.nonzero(outside)
    features = [actions.features[j] for j in places.tolist()]
    # Every call of find_recourse comes here: whole columns are several times as quick as rows.
    return pd.DataFrame(
        {
            "person": people.astype(np.int64),
            "feature": pd.Series([feature.name for feature in features], dtype=object),
            "value": start[people, places],
            "low": np.array([feature.low for feature in features], dtype=np.float64),
            "high": np.array([feature.high for feature in features], dtype=np.float64),
        }
    )


def _checks(actions: ActionSet, start: Array, own: Array) -> Iterator[Broken]:
    """Each thing that is not allowed, with the people who do it."""
    own = without_rounding(actions, start, own)
    end = actions.carry(start, own)
    moved, ended = _moved(start, own), _moved(start, end)
    for j in np.flatnonzero((moved | ended).any(axis=0)).tolist():  # most features of most people stay
        feature = actions.features[j]
        for people, what in _feature_checks(feature, start[:, j], own[:, j], end[:, j], moved[:, j], ended[:, j]):
            yield Broken(people, j, what)
    for rule in actions.rules:
        places = [actions.index(condition.feature) for condition in (rule.when, rule.then)]
        when, then = (
            condition.holds(actions.features[j], start[:, j], end[:, j])
            for condition, j in zip((rule.when, rule.then), places, strict=True)
        )
        if (when & ~then).any():
            yield Broken(when & ~then, places[1], f"breaks the rule '{rule}'")


def _feature_checks(
    feature: Feature, start: Array, own: Array, end: Array, moved: Mask, ended: Mask
) -> Iterator[tuple[Mask, str]]:
    if not feature.mutable:
        yield moved, "cannot change"
        moved = np.zeros_like(moved)
    if feature.is_number:
        gone = np.isnan(start) != np.isnan(end)
        yield ended & gone & feature.mutable, "cannot go missing or stop being missing"
        moved, ended = moved & ~gone, ended & ~gone
    else:
        unlisted = moved & (start < 0)
        yield unlisted, _UNLISTED
        moved = moved & ~unlisted
    if feature.change == "increase":
        yield moved & ~(own > start), "can only rise"
    if feature.change == "decrease":
        yield moved & ~(own < start), "can only fall"
    if feature.is_number:
        if feature.step is not None:
            places = own / feature.step
            what = "whole number" if feature.step == 1 else f"multiple of {in_words(feature.step)}"
            yield moved & ~_close(places, np.round(places)), f"must be a {what}"
        # Both what the person did and what links made of it.
        outside = (moved & _outside(feature, own)) | (ended & _outside(feature, end))
        yield outside, f"must be {limits_in_words(feature.low, feature.high)}"
    else:
        reachable = np.append(feature.reachable, False)
        known = (own >= 0) & (own < len(feature.labels)) & (own == np.round(own))
        place = np.where(known, own, len(feature.labels)).astype(int)
        labels = feature.labels if feature.allowed is None else feature.allowed
        yield moved & ~reachable[place], f"must be one of {quoted(labels)}"


def _moved(start: Array, end: Array) -> Mask:
    return np.asarray((start != end) & ~(np.isnan(start) & np.isnan(end)))


def _outside(feature: Feature, values: Array) -> Mask:
    below = (values < feature.low) & ~_close(values, np.full_like(values, feature.low))
    above = (values > feature.high) & ~_close(values, np.full_like(values, feature.high))
    return np.asarray(below | above)


def _close(values: Array, wanted: Array) -> Mask:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values - wanted) <= _SLACK * np.maximum(1.0, np.abs(wanted)))


def _told(feature: Feature, table: pd.DataFrame, value: float, person: int) -> str:
    """Show a value of a person as the person knows it."""
    if feature.is_number:
        return "missing" if np.isnan(value) else in_words(value)
    if value >= 0:
        return repr(feature.labels[int(value)])
    label = table[feature.name].iloc[person]
    return "missing" if pd.isna(label) else repr(label)


def _differs(before: pd.Series, after: pd.Series) -> Mask:
    known = before.notna().to_numpy(), after.notna().to_numpy()
    differs = known[0] != known[1]
    both = known[0] & known[1]
    differs[both] = before.astype(object).to_numpy()[both] != after.astype(object).to_numpy()[both]
    return np.asarray(differs, dtype=bool)
