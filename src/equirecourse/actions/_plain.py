"""An action set as plain Python values, small enough to be edited by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from equirecourse._validation import shown
from equirecourse.actions._feature import Feature, Percentiles
from equirecourse.actions._rules import Link, Rule
from equirecourse.actions._words import closest

if TYPE_CHECKING:
    from equirecourse.actions._action_set import ActionSet

__all__ = ["FEATURE_KEYS", "from_dict", "to_dict"]

SECTIONS = ("features", "links", "rules", "percentiles")
FEATURE_KEYS = ("kind", "change", "low", "high", "step", "labels", "allowed", "columns", "cost")


def to_dict(actions: ActionSet) -> dict[str, Any]:
    """Features with what differs from the default; links and rules; percentiles last, because they are long."""
    content: dict[str, Any] = {"features": {feature.name: _feature_values(feature) for feature in actions}}
    if actions.links:
        content["links"] = [
            {"source": link.source, "target": link.target, "rate": _number(link.rate)} for link in actions.links
        ]
    if actions.rules:
        content["rules"] = [{"if": str(rule.when), "then": str(rule.then)} for rule in actions.rules]
    percentiles = {
        feature.name: {key: [_number(value) for value in values] for key, values in _columns_of(feature.percentiles)}
        for feature in actions
        if feature.percentiles is not None
    }
    if percentiles:
        content["percentiles"] = percentiles
    return content


def _feature_values(feature: Feature) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key in dataclasses.fields(Feature):
        value = getattr(feature, key.name)
        if key.name not in FEATURE_KEYS or value == key.default:
            continue
        if key.name == "labels" and value == feature.columns:  # a one-hot block's labels are its columns unless told
            continue
        values[key.name] = list(value) if isinstance(value, tuple) else _number(value)
    return values


def _columns_of(percentiles: Percentiles) -> Iterable[tuple[str, tuple[float, ...]]]:
    return (("values", percentiles.values), ("ranks", percentiles.ranks))


def _number(value: Any) -> Any:
    """Write 4 for 4.0, as people do; every other float is written with all its digits."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def from_dict(content: Mapping[str, Any]) -> tuple[list[Feature], list[Link], list[Rule]]:
    """Features, links and rules; one sentence if something is not as it should be."""
    _check_table(content, "An action set", SECTIONS)
    percentiles = _check_table(content.get("percentiles", {}), "percentiles")
    tables = _check_table(content.get("features", {}), "features")
    if "features" not in content:
        raise ValueError("An action set needs features, one table for each.")
    for name in percentiles:
        if name not in tables:
            raise ValueError(f"percentiles speaks of {name!r}, which is not a feature; {closest(name, tables)}")
    features = []
    for name, given in tables.items():
        values = dict(_check_table(given, f"Feature {name!r}", FEATURE_KEYS))
        if values.get("change") is False:
            values["change"] = "no"  # YAML reads a bare no as false
        if name in percentiles:
            values["percentiles"] = _percentiles(name, percentiles[name])
        features.append(Feature(name, **values))
    links = _items(content, "links", ("source", "target", "rate"), lambda item: Link(**item))
    rules = _items(content, "rules", ("if", "then"), lambda item: Rule(item["if"], item["then"]))
    return features, links, rules


def _percentiles(name: str, given: Any) -> Percentiles:
    values = _check_table(given, f"percentiles of {name!r}", ("values", "ranks"), needed=True)
    try:
        return Percentiles(**values)
    except ValueError as error:
        raise ValueError(f"Feature {name!r}: {error}") from None


def _items(
    content: Mapping[str, Any], section: str, keys: tuple[str, ...], make: Callable[[Mapping[str, Any]], Any]
) -> list[Any]:
    given = content.get(section, [])
    if not isinstance(given, list | tuple):
        raise ValueError(f"{section} must be a list of tables with the keys {_listed(keys)}, got {shown(given)}.")
    made = []
    for place, item in enumerate(given, start=1):
        _check_table(item, f"{section}, number {place}", keys, needed=True)
        try:
            made.append(make(item))
        except ValueError as error:
            raise ValueError(f"{section}, number {place}: {error}") from None
    return made


def _check_table(given: Any, of: str, keys: tuple[str, ...] = (), *, needed: bool = False) -> Mapping[str, Any]:
    """Check that something is a table with text for keys, and with no other keys than the known ones."""
    if not isinstance(given, Mapping):
        keyed = f" with the keys {_listed(keys)}" if keys else " with a name for each entry"
        raise ValueError(f"{of} must be a table{keyed}, got {shown(given)}.")
    for key in given:
        if not isinstance(key, str):
            raise ValueError(f"{of}: the name {key!r} must be text; put it in quotes.")
        if keys and key not in keys:
            near = closest(key, keys)
            hint = f" ({near})" if near.startswith("did you mean") else ""
            raise ValueError(f"{of}: the key {key!r} is unknown{hint}; allowed are {_listed(keys)}.")
    for key in keys if needed else ():
        if key not in given:
            raise ValueError(f"{of}: the key {key!r} is missing; needed are {_listed(keys)}.")
    return given


def _listed(keys: tuple[str, ...]) -> str:
    return ", ".join(keys)
