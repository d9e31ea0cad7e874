"""An audit as plain values: written, read, and described by a schema."""

from __future__ import annotations

import json
import math
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from equirecourse._files import write_beside

__all__ = ["SCHEMA_VERSION", "audit_schema", "from_plain", "plain", "read_audit", "write_json"]

SCHEMA_VERSION = 2


def plain(value: Any) -> Any:
    """A value that any JSON writer takes: undefined numbers are None, infinite ones the string "inf"."""
    if value is None or type(value) in (str, int, bool):  # most are: a report holds many words for each person
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def from_plain(value: Any) -> float:
    """A number that :func:`plain` has written."""
    return float("nan") if value is None else float(value)


def write_json(document: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a document beside its place and move it there, so that no half of it is ever seen."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    write_beside(path, text)


def read_audit(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the document of an audit.

    Parameters
    ----------
    path : path-like
        A file that ``RecourseAudit.to_json`` wrote.

    Returns
    -------
    dict
        The document; ``equirecourse.report.render`` draws it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from equirecourse import read_audit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "audit.json"
    >>> _ = path.write_text('{"schema": "equirecourse-audit", "version": 2}')
    >>> read_audit(path)["version"]
    2
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{str(path)!r} is not the JSON of an audit: {error}.") from None
    if not isinstance(document, dict) or document.get("schema") != "equirecourse-audit":
        raise ValueError(f"{str(path)!r} is not the JSON of an audit: its schema is not 'equirecourse-audit'.")
    if document.get("version") != SCHEMA_VERSION:
        raise ValueError(
            f"{str(path)!r} has version {document.get('version')!r} of the schema, and this package reads "
            f"{SCHEMA_VERSION}; audit again."
        )
    return document


def audit_schema() -> dict[str, Any]:
    """The JSON Schema of the document.

    Returns
    -------
    dict
        As in https://json-schema.org, draft 2020-12.

    Examples
    --------
    >>> from equirecourse import audit_schema
    >>> audit_schema()["properties"]["version"]
    {'const': 2}
    """
    text = (resources.files("equirecourse._audit") / "schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
