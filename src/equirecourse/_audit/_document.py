"""The document of an audit: what it is made of, its schema, and the file that it is written to."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from equirecourse._files import write_beside
from equirecourse._plain import Section
from equirecourse.metrics import State

__all__ = [
    "SCHEMA_VERSION",
    "ActionFeature",
    "Actions",
    "Attribute",
    "Change",
    "Cheats",
    "ComparedAttribute",
    "Comparison",
    "Contribution",
    "Counts",
    "Details",
    "Distance",
    "Document",
    "FrontierRow",
    "Gap",
    "Gaps",
    "Group",
    "Model",
    "People",
    "Selection",
    "Settings",
    "Summary",
    "Way",
    "Ways",
    "audit_schema",
    "read_audit",
    "write_json",
]

SCHEMA_VERSION = 2

Defined = Annotated[float, {"$ref": "#/$defs/defined"}]
Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Model(Section):
    """Who was asked."""

    kind: str
    favorable_label: Any
    accuracy: float
    acceptance: float


@dataclass(frozen=True, kw_only=True)
class Settings(Section):
    """How it was asked; the last two if people came in parts."""

    unit: str
    norm: str
    method: str
    confidence: float
    n_boot: int
    n_permutations: int
    random_state: int
    correction: str = "Holm"
    partitions: int | None = None
    relative_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class Counts(Section):
    """How many people; those measured have recourse, have none, or nobody knows."""

    people: int
    rejected: int
    measured: int
    with_recourse: int
    without_recourse: int
    unknown: int
    exact: int


@dataclass(frozen=True, kw_only=True)
class ActionFeature(Section):
    """What people can change about a feature."""

    name: str
    kind: str
    change: str
    low: float
    high: float
    step: float
    cost: float


@dataclass(frozen=True, kw_only=True)
class Actions(Section):
    """What people can change."""

    features: list[ActionFeature]
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class Group(Section):
    """A group: its row of a RecourseFrame, percentiles of its costs, and what each feature adds to their mean."""

    group: dict[str, Any]
    people: int
    rejected: int
    measured: int
    acceptance: float
    without_recourse: float
    unknown: float
    mean: float
    mean_low: float
    mean_high: float
    median: float
    q10: float
    q25: float
    q75: float
    q90: float
    name: str
    accuracy: float
    curve: list[Defined]
    contributions: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Distance(Section):
    """How far apart the distributions of two groups are."""

    group: Any
    other: Any
    wasserstein: float
    ks: float
    ks_p_value: float
    kl: float
    js: float


@dataclass(frozen=True, kw_only=True)
class Contribution(Section):
    """What a feature adds to the difference between the two groups furthest apart."""

    feature: str
    difference: Defined


@dataclass(frozen=True, kw_only=True)
class Attribute(Section):
    """A sensitive attribute: its RecourseFrame, judged among all comparisons, and what the difference is made of."""

    name: str
    state: State
    verdict: str
    gap: float
    interval: Interval
    noise_floor: float
    p_value: float
    share_p_value: float
    relative_gap: float
    detectable: bool
    confidence: float
    n_boot: int
    n_permutations: int
    no_recourse_cost: float
    sensitive_features: list[str]
    overall: dict[str, float]
    by_group: Annotated[list[Group], {"minItems": 2}]
    difference: dict[str, float]
    ratio: dict[str, float]
    distances: list[Distance]
    gap_in_shares: bool
    p_corrected: float
    share_p_corrected: float
    furthest: str | None
    nearest: str | None
    contributions: list[Contribution]


@dataclass(frozen=True, kw_only=True)
class Gap(Section):
    """The gap of an attribute under one model."""

    gap: float
    interval: Interval
    noise_floor: float
    relative_gap: float
    p_value: float
    state: State
    verdict: str
    rejected: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Gaps(Section):
    """Mean cost, and gaps of means, of capped costs, of medians and of distributions, each relative to its centre."""

    mean_cost: float
    relative_gap: float
    capped_gap: float
    median_gap: float
    transport_gap: float
    transport_floor: float


@dataclass(frozen=True, kw_only=True)
class Selection(Section):
    """Who of a group is rejected under either model."""

    name: str
    acceptance_before: float
    acceptance_after: float
    yes_to_no: int
    no_to_yes: int


@dataclass(frozen=True, kw_only=True)
class Cheats(Section):
    """A before and after from the side of each cheat, with a sentence for each that seems to be at work."""

    before: Gaps
    after: Gaps
    carried_by_few: float
    selection: list[Selection]
    islands_before: float
    islands_after: float
    least_shrunk: float
    without_recourse_before: float
    without_recourse_after: float
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class ComparedAttribute(Section):
    """An attribute under two or three models."""

    name: str
    reduction: float
    reduction_interval: Interval
    before: Gap
    after: Gap
    placebo: Gap | None = None
    cheats: Cheats


@dataclass(frozen=True, kw_only=True)
class Comparison(Section):
    """Two or three models and the same people; a sentence that says why the plain model was kept, if it was."""

    attributes: list[ComparedAttribute]
    models: dict[str, Model]
    kept: str | None = None


@dataclass(frozen=True, kw_only=True)
class FrontierRow(Section):
    """A model that the audited one was chosen among."""

    gap: float
    gap_low: float
    gap_high: float
    noise_floor: float
    relative_gap: float
    accuracy: float
    acceptance: float
    chosen: bool
    plain: bool


@dataclass(frozen=True, kw_only=True)
class Change(Section):
    """A feature that changes."""

    feature: str
    from_: Any
    to: Any
    cost: float
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Way(Section):
    """A way to a yes; scores are those of people in the sample."""

    cost: float
    score_before: float | None = None
    score_after: float | None = None
    exact: bool
    changes: list[Change]


@dataclass(frozen=True, kw_only=True)
class People(Section):
    """A row for each person; groups are a list within it, so that no attribute's name is a column's."""

    attributes: list[str]
    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True, kw_only=True)
class Ways(Section):
    """Ways to a yes by the place of a person: up to ``k`` for the sample, the cheapest one for others."""

    sample: list[int]
    k: int
    by_person: dict[str, list[Way]]


@dataclass(frozen=True, kw_only=True)
class Summary(Section):
    """What an audit says of groups and features: the document without its people."""

    schema: Literal["equirecourse-audit"] = "equirecourse-audit"
    version: Literal[2] = 2
    title: str
    model: Model
    settings: Settings
    counts: Counts
    actions: Actions
    attributes: Annotated[list[Attribute], {"minItems": 1}]
    comparison: Comparison | None = None
    frontier: list[FrontierRow] | None = None


@dataclass(frozen=True, kw_only=True)
class Details(Section):
    """A row per person, and their ways to a yes."""

    people: People
    flipsets: Ways
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class Document(Details, Summary):
    """All of it."""


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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "equirecourse-audit",
        "description": "What a yes costs the people a model rejects, group by group. "
        'Undefined numbers are null, infinite ones "inf".',
        "$defs": {
            "defined": {"type": "number"},
            "number": {"anyOf": [{"type": "number"}, {"type": "null"}, {"const": "inf"}]},
        },
        **Document.json_schema(),
    }
