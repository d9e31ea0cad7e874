"""An action set from people: what their columns say, and what the user adds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from equirecourse._validation import check_number, shown
from equirecourse.actions._blocks import find_blocks
from equirecourse.actions._columns import Labels, Numbers, Other, read_column, summary
from equirecourse.actions._feature import Feature
from equirecourse.actions._table import as_table, encode
from equirecourse.actions._words import closest, in_words, limits_in_words, plain, quoted

__all__ = ["infer"]

_CHANGES = {"immutable": "no", "increase_only": "increase", "decrease_only": "decrease"}
_IN_WORDS = {"no": "cannot change", "increase": "can only rise", "decrease": "can only fall"}

# More labels than this look like an identifier, or a text.
_MANY = 50


@dataclass(frozen=True)
class Wishes:
    """What the user says of features, by name."""

    change: dict[str, str]
    bounds: dict[str, Any]
    steps: dict[str, Any]
    ordered: dict[str, Any]
    costs: dict[str, float]
    unit_costs: bool
    max_percentiles: int


def infer(
    X: Any,
    *,
    directions: Mapping[str, Any],
    bounds: Any,
    steps: Any,
    ordered: Any,
    one_hot: Any,
    costs: Any,
    max_percentiles: Any,
) -> tuple[list[Feature], list[str]]:
    """Features and notes; see :meth:`ActionSet.from_frame`."""
    table = as_table(X)
    if len(table) == 0:
        raise ValueError("X has no people, and an action set is inferred from them; pass at least one row.")
    check_number(max_percentiles, name="max_percentiles", low=2, integer=True)
    blocks = find_blocks(table, one_hot)
    block_of = {column: block for block in blocks for column in block.columns}
    # One name per feature, a block's at the place of its first column.
    names = list(dict.fromkeys(block_of[name].name if name in block_of else name for name in table.columns))
    if not isinstance(costs, Mapping) and not (isinstance(costs, str) and costs in ("std", "unit")):
        raise ValueError(f"costs must be 'std', 'unit' or a mapping from feature to cost, got {shown(costs)}.")
    wishes = Wishes(
        change=_directions(directions, names, block_of),
        bounds=_by_name(bounds, "bounds", names, block_of),
        steps=_by_name(steps, "steps", names, block_of),
        ordered=_by_name(ordered, "ordered", names, block_of),
        costs={} if isinstance(costs, str) else _by_name(costs, "costs", names, block_of),
        unit_costs=costs == "unit" if isinstance(costs, str) else False,
        max_percentiles=int(max_percentiles),
    )
    by_name = {block.name: block for block in blocks}
    features: list[Feature] = []
    notes: list[str] = []
    for name in names:
        said: list[str] = []
        strange: list[str] = []
        if name in by_name:
            features.append(_block(table, by_name[name], wishes, said))
        else:
            features.append(_column(table[name], wishes, said, strange))
        notes += [f"{name}: {'; '.join(said)}", *strange]
    return features, notes


# --- what the user says --------------------------------------------------------------------------------------------


def _check_name(given: Any, argument: str, names: list[str], block_of: Mapping[str, Feature]) -> str:
    name = str(given)
    if name in names:
        return name
    if name in block_of:
        block = block_of[name].name
        raise ValueError(f"{argument} names {name!r}, a column of the one-hot block {block!r}; name {block!r} instead.")
    raise ValueError(f"{argument} names {name!r}, which is not a feature; {closest(name, names)}")


def _directions(directions: Mapping[str, Any], names: list[str], block_of: Mapping[str, Feature]) -> dict[str, str]:
    change: dict[str, str] = {}
    said_by: dict[str, str] = {}
    for argument, given in directions.items():
        if not isinstance(given, Iterable) or isinstance(given, Mapping):
            raise ValueError(f"{argument} must be a list of features, got {shown(given)}.")
        for name in [given] if isinstance(given, str) else given:
            name = _check_name(name, argument, names, block_of)
            if said_by.setdefault(name, argument) != argument:
                raise ValueError(f"{name!r} is both in {said_by[name]} and in {argument}; keep one of them.")
            change[name] = _CHANGES[argument]
    return change


def _by_name(given: Any, argument: str, names: list[str], block_of: Mapping[str, Feature]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"{argument} must be a mapping from feature to {argument}, got {shown(given)}.")
    return {_check_name(name, argument, names, block_of): value for name, value in given.items()}


def _limits(name: str, wishes: Wishes, low: float, high: float) -> tuple[float, float, str]:
    if name not in wishes.bounds:
        return low, high, "as observed"
    given = wishes.bounds[name]
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"bounds[{name!r}] must be (low, high), with None for an open side, got {shown(given)}.")
    return -np.inf if given[0] is None else given[0], np.inf if given[1] is None else given[1], "as given"


def _refuse_numbers_wishes(name: str, kind: str, wishes: Wishes) -> None:
    for argument in ("bounds", "steps"):
        if name in getattr(wishes, argument):
            raise ValueError(f"{argument} names {name!r}, which is {kind} and not a number.")


# --- what columns say ----------------------------------------------------------------------------------------------


def _column(column: pd.Series, wishes: Wishes, said: list[str], strange: list[str]) -> Feature:
    name = str(column.name)
    what = _ordered_as_given(column, wishes) if name in wishes.ordered else read_column(column)
    missing = int(column.isna().sum())
    if isinstance(what, Numbers) and len(what.values) == 0:
        what = Other("no value")
    if isinstance(what, Other):
        _refuse_numbers_wishes(name, f"a column of {what.what}", wishes)
        said.append(f"{what.what}; cannot change")
        return Feature(name, kind="labels", change="no")
    if isinstance(what, Numbers):
        feature = _number(name, what, wishes, said, strange, len(column))
    else:
        feature = _labels(name, what, wishes, said, strange)
    if missing:
        said.append(f"missing for {missing} of {len(column)} people, and stays so")
    return feature


def _number(name: str, what: Numbers, wishes: Wishes, said: list[str], strange: list[str], n_people: int) -> Feature:
    seen = summary(what.values, wishes.max_percentiles)
    low, high, whence = _limits(name, wishes, seen.low, seen.high)
    feature = Feature(
        name,
        change=wishes.change.get(name, "any"),
        low=low,
        high=high,
        step=wishes.steps.get(name, 1.0 if seen.whole else None),
        percentiles=seen.percentiles,
    )
    if feature.step is None:
        kind = "numbers"
    else:
        kind = "whole numbers" if feature.step == 1 else f"multiples of {in_words(feature.step)}"
    limits = limits_in_words(feature.low, feature.high)
    if (feature.low, feature.high, feature.step) == (0.0, 1.0, 1.0):
        said.append("0 or 1")
    else:
        said.append(f"{kind}, {limits}, {whence}" if limits == "any number" else f"{kind} {limits}, {whence}")
    if seen.low == seen.high:
        strange.append(f"{name} is {in_words(seen.low)} for everybody; give it bounds if people can change it")
    elif seen.whole and seen.n_distinct == n_people > 20 and seen.high - seen.low == n_people - 1:
        strange.append(f"{name} numbers the people like an identifier; leave it out, or make it immutable")
    return _priced(feature, seen.spread, "", wishes, said)


def _ordered_as_given(column: pd.Series, wishes: Wishes) -> Labels:
    name, given = str(column.name), wishes.ordered[str(column.name)]
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ValueError(f"ordered[{name!r}] must be a list of labels, the lowest first, got {shown(given)}.")
    labels = tuple(plain(label) for label in given)
    codes = encode(column.to_frame(), (Feature(name, kind="ordered", labels=labels),))[:, 0]
    unlisted = column[(codes < 0) & column.notna().to_numpy()]
    if len(unlisted):
        first = plain(unlisted.iloc[0])
        n_first = int((unlisted == first).sum())
        raise ValueError(
            f"ordered[{name!r}] leaves out {first!r}, which {n_first} of {len(column)} people have; list every label."
        )
    return Labels(labels, np.bincount(codes[codes >= 0].astype(int), minlength=len(labels)), ordered=True)


def _labels(name: str, what: Labels, wishes: Wishes, said: list[str], strange: list[str]) -> Feature:
    change = wishes.change.get(name, "any")
    # False and True are labels as any, but whoever says that they can only rise knows which is higher.
    ordered = what.ordered or (what.is_bool and change in ("increase", "decrease"))
    _refuse_numbers_wishes(name, "a column of labels", wishes)
    if change in ("increase", "decrease") and not ordered:
        argument = next(key for key, value in _CHANGES.items() if value == change)
        raise ValueError(
            f"{argument} names {name!r}, whose labels have no order; give it with ordered={{{name!r}: [...]}}, the "
            "lowest label first."
        )
    feature = Feature(
        name,
        kind="ordered" if ordered else "labels",
        change=change,
        labels=what.labels,
        percentiles=what.ranks() if ordered else what.shares(),
    )
    n_labels = len(what.labels)
    if not ordered:
        said.append(f"{n_labels} label{'s' * (n_labels != 1)} without an order")
    else:
        said.append(f"{n_labels} labels in order, from {what.labels[0]!r} to {what.labels[-1]!r}")
    if int((what.counts > 0).sum()) == 1 and what.n_known > 1:
        strange.append(f"{name} is {what.labels[int(what.counts.argmax())]!r} for everybody")
    elif n_labels > _MANY or (n_labels > 20 and n_labels > what.n_known / 2):
        strange.append(
            f"{name} has {n_labels} different labels among {what.n_known} people, like an identifier; leave it out, "
            "or make it immutable"
        )
    places = np.repeat(np.arange(n_labels), what.counts)
    spread = float(places.std(ddof=1)) if ordered and len(places) > 1 else 0.0
    return _priced(feature, spread, " of the place in the order", wishes, said)


def _block(table: pd.DataFrame, block: Feature, wishes: Wishes, said: list[str]) -> Feature:
    _refuse_numbers_wishes(block.name, "a one-hot block", wishes)
    if block.name in wishes.ordered:
        raise ValueError(f"ordered names {block.name!r}, which is a one-hot block and has no order.")
    change = wishes.change.get(block.name, "any")
    if change in ("increase", "decrease"):
        argument = next(key for key, value in _CHANGES.items() if value == change)
        raise ValueError(f"{argument} names {block.name!r}, which is a one-hot block and has no order.")
    codes = encode(table, (block,))[:, 0].astype(int)
    counted = Labels(block.labels, np.bincount(codes, minlength=len(block.labels)))
    said.append(f"{len(block.columns)} columns of which one is 1 ({quoted(block.columns, most=50)})")
    feature = dataclasses.replace(block, change=change, percentiles=counted.shares())
    return _priced(feature, 0.0, "", wishes, said)


def _priced(feature: Feature, spread: float, of: str, wishes: Wishes, said: list[str]) -> Feature:
    """Give the feature its cost, and say how it may change and what that costs."""
    if feature.change != "any":
        said.append(_IN_WORDS[feature.change])
    by_spread = feature.name not in wishes.costs and not wishes.unit_costs and spread > 0
    priced = dataclasses.replace(feature, cost=wishes.costs.get(feature.name, 1.0 / spread if by_spread else 1.0))
    if feature.change != "no":
        if by_spread:
            said.append(f"a cost of 1 is one standard deviation{of} ({spread:.4g})")
        else:
            whole = priced.cost == round(priced.cost)
            cost = in_words(priced.cost) if whole else f"{priced.cost:.4g}"
            said.append(f"{'a change by 1' if feature.has_order else 'any change'} costs {cost}")
    return priced
