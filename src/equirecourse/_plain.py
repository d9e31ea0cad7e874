"""Plain values: what any JSON writer takes, and documents whose parts are dataclasses, with their schema."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator
from dataclasses import Field, fields
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

__all__ = ["Section", "plain"]


def plain(value: Any) -> Any:
    """A value that any JSON writer takes: undefined numbers are None, infinite ones the string "inf"."""
    if value is None or type(value) in (str, int, bool):  # most are: a report holds many words for each person
        return value
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


class Section:
    """A part of a document. Its subclasses are frozen dataclasses, and their fields are its keys.

    A field that is None by default is left out of the document while it is None. A name that Python keeps to itself
    ends in an underscore, which its key does not have.
    """

    @classmethod
    def _keys(cls) -> Iterator[tuple[str, Field[Any]]]:
        return ((one.name.rstrip("_"), one) for one in fields(cls))  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, key by key."""
        values = ((key, getattr(self, one.name), one.default) for key, one in self._keys())
        return {key: plain(value) for key, value, default in values if value is not None or default is not None}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of this part; numbers refer to the definition ``number``, which may be undefined."""
        kinds = get_type_hints(cls, include_extras=True)
        return {
            "type": "object",
            "required": [key for key, one in cls._keys() if one.default is not None],
            "additionalProperties": False,
            "properties": {key: _schema_of(kinds[one.name]) for key, one in cls._keys()},
        }


def _schema_of(kind: Any) -> dict[str, Any]:
    """The schema of a type; what an ``Annotated`` one adds takes precedence."""
    arguments = get_args(kind)
    match get_origin(kind):
        case origin if origin is Annotated:
            return {**_schema_of(arguments[0]), **arguments[1]}
        case origin if origin is Literal:
            return {"const": arguments[0]}
        case origin if origin in (Union, types.UnionType):
            (some,) = (one for one in arguments if one is not type(None))
            return {"anyOf": [_schema_of(some), {"type": "null"}]}
        case origin if origin is list:
            return {"type": "array", "items": _schema_of(arguments[0])}
        case origin if origin is tuple:
            n = len(arguments)
            return {"type": "array", "items": _schema_of(arguments[0]), "minItems": n, "maxItems": n}
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    if kind is Any:
        return {}
    if issubclass(kind, Section):
        return dict(kind.json_schema())
    if issubclass(kind, StrEnum):
        return {"enum": [one.value for one in kind]}
    if kind is float:
        return {"$ref": "#/$defs/number"}
    if kind is int:  # all of them are counts, or seeds
        return {"type": "integer", "minimum": 0}
    return {"type": {str: "string", bool: "boolean"}[kind]}
