"""audit: recourse by group, whose it is, and what it is made of."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._files import write_beside
from equirecourse._validation import as_frame, check_groups, check_number, shown
from equirecourse.actions import ActionSet
from equirecourse.audit._attributes import describe, holm
from equirecourse.audit._compare import compare
from equirecourse.audit._contributions import shares_of_cost
from equirecourse.audit._document import SCHEMA_VERSION, from_plain, plain, write_json
from equirecourse.audit._people import cheapest_changes, choose, ways_of
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.metrics import RecourseFrame
from equirecourse.recourse import Recourse, find_recourse, open_model
from equirecourse.report import render

__all__ = ["RecourseAudit", "audit"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RecourseAudit:
    """What a model's recourse is like, group by group.

    Attributes
    ----------
    document : dict
        Everything in plain values, see :func:`~equirecourse.audit.schema`. The report is drawn from it alone.
    frames : mapping of str to RecourseFrame
        The numbers behind each attribute.
    recourse : Recourse
        The answer for each person who was measured.
    """

    document: dict[str, Any]
    frames: Mapping[str, RecourseFrame]
    recourse: Recourse
    _costs: Array = field(repr=False)
    _groups: pd.DataFrame = field(repr=False)

    @property
    def verdicts(self) -> dict[str, str]:
        """One sentence per attribute."""
        return {section["name"]: section["verdict"] for section in self.document["attributes"]}

    @property
    def largest_gap(self) -> float:
        """The largest detectable gap of all attributes, 0 if there is none."""
        return max((section["gap"] for section in self.document["attributes"] if section["is_gap"]), default=0.0)

    @property
    def by_group(self) -> pd.DataFrame:
        """A row per attribute and group: people, rejected, without_recourse, mean, quantiles, accuracy."""
        rows = []
        for section in self.document["attributes"]:
            for row in section["by_group"]:
                numbers = {key: _as_number(value) for key, value in row.items() if key not in _WORDS}
                rows.append({"attribute": section["name"], "group": row["name"], **numbers})
        return pd.DataFrame(rows).set_index(["attribute", "group"])

    @property
    def people(self) -> pd.DataFrame:
        """A row per person: groups, decision, status, cost."""
        table = self.document["people"]
        frame = pd.DataFrame(table["rows"], columns=table["columns"])
        frame["cost"] = [float("nan") if cost is None else float(cost) for cost in frame["cost"]]
        return frame.set_index("person")

    def compared_with(
        self, before: RecourseAudit, *, placebo: RecourseAudit | None = None, seed: int = 0
    ) -> RecourseAudit:
        """The same audit with a section that sets it beside that of another model of the same people.

        Parameters
        ----------
        before : RecourseAudit
            Of the model that this one replaces.
        placebo : RecourseAudit, optional
            Of a model that was fitted anew without the method.
        seed : int, default=0
            Of the bootstrap interval of the reduction.

        Returns
        -------
        RecourseAudit
            With ``document["comparison"]``.
        """
        for other in (before, placebo):
            if other is not None and not self._groups.equals(other._groups):
                raise ValueError("Audits are compared for the same people and attributes in the same order.")
        section = compare(
            before.document, self.document, (before._costs, self._costs), self._groups,
            None if placebo is None else placebo.document, 1000, seed,
        )  # fmt: skip
        return replace(self, document={**self.document, "comparison": plain(section)})

    def with_frontier(self, frontier: Any, chosen: int) -> RecourseAudit:
        """The same audit with the trade between accuracy and gap that its model was chosen from.

        Parameters
        ----------
        frontier : Frontier
            Of :func:`~equirecourse.recourse_frontier`.
        chosen : int
            The row that was chosen.

        Returns
        -------
        RecourseAudit
            With ``document["frontier"]``.
        """
        names = ("gap", "gap_low", "gap_high", "noise_floor", "relative_gap", "accuracy", "acceptance")
        rows = [{name: row[name] for name in names} for _, row in frontier.table.iterrows()]
        for place, row in enumerate(rows):
            row["chosen"] = place == chosen
            row["plain"] = place == 0
        return replace(self, document={**self.document, "frontier": plain(rows)})

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the document.

        Parameters
        ----------
        path : path-like
            Where to.
        """
        write_json(self.document, path)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report: one file that needs nothing else, not even a network.

        Parameters
        ----------
        path : path-like
            Where to.
        """
        write_beside(path, render(self.document))

    def __repr__(self) -> str:
        sentences = [f"{name}: {verdict}" for name, verdict in self.verdicts.items()]
        return "\n".join([*sentences, "", self._table().to_string(float_format=lambda value: f"{value:.3g}")])

    def _table(self) -> pd.DataFrame:
        columns = ["people", "rejected", "acceptance", "without_recourse", "mean", "median", "accuracy"]
        return self.by_group[columns].dropna(axis=1, how="all")

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><b>{html.escape(name)}</b>: {html.escape(verdict)}</li>" for name, verdict in self.verdicts.items()
        )
        table = self._table().to_html(float_format=lambda value: f"{value:.3g}", border=0, escape=True)
        return f"<div class='equirecourse-audit'><ul>{items}</ul>{table}</div>"


def audit(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    actions: ActionSet | None = None,
    norm: str = "l1",
    method: str = "auto",
    unit: str | None = None,
    favorable_label: Any = None,
    background: Any = None,
    intersections: bool = False,
    max_people: int | None = None,
    n_flipsets: int = 12,
    k: int = 3,
    confidence: float = 0.95,
    n_boot: int = 1000,
    n_permutations: int = 1000,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: bool = False,
    title: str | None = None,
) -> RecourseAudit:
    """Audit what a yes costs the people whom a model rejects, group by group.

    Parameters
    ----------
    model : fitted classifier
        As in :func:`~equirecourse.find_recourse`.
    X : table of shape (n_people, n_columns)
        People the model has not been fitted to, if the audit is to say something about new ones.
    y : array-like of shape (n_people,), optional
        Their labels, for the model's accuracy.
    sensitive_features : array-like, Series, DataFrame or mapping
        The attributes, one column each; each is audited by itself.
    actions : ActionSet, optional
        What people can change, and what it costs; by default inferred from ``X``, with columns that are attributes
        themselves left alone.
    norm, method, favorable_label, background, time_limit, n_jobs, progress
        As in :func:`~equirecourse.find_recourse`.
    unit : str, optional
        What costs are counted in, for the verdict; "standard deviations" by default if ``actions`` was inferred.
    intersections : bool, default=False
        Audit the combinations of the attributes as well.
    max_people : int, optional
        Measure at most so many of the rejected, drawn at random, as many of each group of the first attribute as there
        are. By default all of them.
    n_flipsets, k : int
        For how many people, drawn at random, flipsets are found, and how many for each.
    confidence, n_boot, n_permutations
        As in :class:`~equirecourse.RecourseFrame`.
    random_state : int, default=0
        Of everything that is drawn.
    title : str, optional
        What the report is called.

    Returns
    -------
    RecourseAudit
        Verdicts, tables, people; ``to_html`` and ``to_json`` write it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from equirecourse import audit
    >>> from equirecourse.datasets import load_credit
    >>> credit = load_credit(paper=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    >>> _ = model.fit(credit.data[:5000], credit.target[:5000])
    >>> found = audit(
    ...     model, credit.data[5000:7000], credit.target[5000:7000], n_flipsets=2,
    ...     sensitive_features=credit.sensitive_features[["sex"]][5000:7000],
    ... )
    >>> list(found.verdicts)
    ['sex']
    """  # fmt: skip
    seed = int(check_number(random_state, name="random_state", low=0, integer=True))
    view = open_model(model, favorable_label)
    groups = _attributes(sensitive_features, intersections)
    inferred = actions is None
    if actions is None:
        names = set(groups.columns)
        columns = [str(name) for name in getattr(X, "columns", [])]
        actions = ActionSet.from_frame(X, immutable=[name for name in columns if name in names])
    table = actions.table(X)
    if len(groups) != len(table):
        raise ValueError(f"X has {len(table)} people and sensitive_features {len(groups)}; they must be as many.")
    for name in groups.columns:
        check_groups(groups[name], len(groups), at_least=2)
    accepted = view.accepts(table)
    rejected = np.flatnonzero(~accepted)
    measured = rejected
    if max_people is not None:
        most = int(check_number(max_people, name="max_people", low=1, integer=True))
        measured = choose(rejected, groups[groups.columns[0]], most, seed)
    unit = unit or ("standard deviations" if inferred else "units of cost")
    right = None if y is None else _right(view, table, y)
    settings = {"norm": norm, "method": method, "favorable_label": favorable_label, "time_limit": time_limit,
                "background": table if background is None else background, "random_state": seed}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)  # they are counted, in numbers that everybody sees
        found = find_recourse(view, table.iloc[measured], actions=actions, n_jobs=n_jobs, progress=progress, **settings)
    costs = np.full(len(table), np.nan)
    costs[measured] = found.costs
    shares = np.zeros((len(table), len(actions)))
    has = found.has_action
    after = found.counterfactuals
    if has.any():
        before = table.iloc[measured[has]]
        shares[measured[has]] = shares_of_cost(actions, norm, before, after[has].astype(before.dtypes.to_dict()))
    counted = np.concatenate([np.flatnonzero(accepted), measured])
    counted.sort()
    frames = _frames(costs, accepted, counted, groups, confidence, n_boot, n_permutations, seed)
    corrected = holm([frame.p_value for frame in frames.values()])
    features = [feature.name for feature in actions]
    sections = [
        describe(name, frame, p, unit, groups[name], costs, shares, features, right)
        for (name, frame), p in zip(frames.items(), corrected, strict=True)
    ]
    rows, ways = _people(view, table, actions, accepted, measured, found, groups, right, n_flipsets, k, seed, settings)
    document = {
        "schema": "equirecourse-audit",
        "version": SCHEMA_VERSION,
        "title": title or "Recourse audit",
        "model": {
            "kind": type(view.final).__name__,
            "favorable_label": plain(view.favorable),
            "accuracy": None if right is None else float(right.mean()),
            "acceptance": float(accepted.mean()),
        },
        "settings": {
            "unit": unit, "norm": norm, "method": found.method, "confidence": confidence, "n_boot": n_boot,
            "n_permutations": n_permutations, "random_state": seed, "correction": "Holm",
        },
        "counts": {
            "people": len(table), "rejected": len(rejected), "measured": len(measured),
            "without_recourse": int((found.status == "infeasible").sum()),
            "unknown": int((found.status == "unknown").sum()), "exact": int((found.exact & found.rejected).sum()),
        },
        "actions": {"features": [_feature(feature) for feature in actions], "notes": list(actions.notes)},
        "attributes": sections,
        "people": rows,
        "flipsets": ways,
        "notes": _notes(found, len(rejected), len(measured), ways, inferred),
    }  # fmt: skip
    return RecourseAudit(plain(document), frames, found, costs, groups)


def _attributes(sensitive_features: Any, intersections: bool) -> pd.DataFrame:
    """Groups as text, a column per attribute; missing ones are a group of their own name."""
    frame = as_frame(sensitive_features)
    groups = pd.DataFrame({str(name): frame[name].astype(object).where(frame[name].notna(), "missing").astype(str)
                           for name in frame.columns}).reset_index(drop=True)  # fmt: skip
    if intersections and len(groups.columns) > 1:
        groups[" × ".join(groups.columns)] = groups.agg(", ".join, axis=1)
    return groups


def _right(view: Any, table: pd.DataFrame, y: Any) -> NDArray[np.bool_]:
    labels = np.asarray(y)
    if labels.shape != (len(table),):
        raise ValueError(f"X has {len(table)} people and y the shape {labels.shape}; they must be as many.")
    unknown = sorted(set(map(str, np.unique(labels))) - set(map(str, view.model.classes_)))
    if unknown:
        known = shown(list(view.model.classes_))
        raise ValueError(f"y has the label {shown(unknown[0])}, which the model does not know: it has {known}.")
    return np.asarray(view.labels(table) == labels)


def _frames(
    costs: Array, accepted: Any, counted: Any, groups: pd.DataFrame, confidence: float, n_boot: int,
    n_permutations: int, seed: int,
) -> dict[str, RecourseFrame]:  # fmt: skip
    filled = np.where(np.isnan(costs), 0.0, costs)
    return {
        name: RecourseFrame(
            costs=filled[counted],
            rejected=~accepted[counted],
            sensitive_features=groups[[name]].iloc[counted],
            confidence=confidence,
            n_boot=n_boot,
            n_permutations=n_permutations,
            random_state=seed,
        )
        for name in groups.columns
    }


def _people(
    view: Any, table: pd.DataFrame, actions: ActionSet, accepted: Any, measured: Any, found: Recourse,
    groups: pd.DataFrame, right: Any, n_flipsets: int, k: int, seed: int, settings: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Rows of all people, and what those can do who were measured."""
    has = found.has_action & found.rejected
    before = table.iloc[measured[has]]
    after = found.counterfactuals[has].astype(before.dtypes.to_dict())
    changes = dict(zip(measured[has].tolist(), cheapest_changes(actions, found.norm, before, after), strict=True))
    place = {int(person): i for i, person in enumerate(measured)}
    labels, members = [str(label) for label in table.index], groups.to_numpy().tolist()
    rows = []
    for i in range(len(table)):
        j = place.get(i)
        status = "accepted" if accepted[i] else "not measured" if j is None else str(found.status[j])
        cost = 0.0 if accepted[i] else float("nan") if j is None else float(found.costs[j])
        exact = j is None or bool(found.exact[j])
        rows.append([labels[i], *members[i], status, cost, exact, None if right is None else bool(right[i])])
    sample = choose(measured[has], groups[groups.columns[0]], n_flipsets if has.any() else 0, seed)
    ways = {str(i): ways_of(view, table.iloc[[i]], actions, k, settings) for i in sample}
    for i, some in changes.items():
        if str(i) not in ways:
            cost = float(found.costs[place[i]])
            ways[str(i)] = [{"cost": cost, "exact": bool(found.exact[place[i]]), "changes": some}]
    return (
        {"columns": ["person", *groups.columns, "status", "cost", "exact", "right"], "rows": rows},
        {"sample": [int(i) for i in sample], "k": k, "by_person": ways},
    )


_WORDS = ("group", "name", "curve", "contributions")


def _as_number(value: Any) -> Any:
    return from_plain(value) if value is None or isinstance(value, str) else value


def _feature(feature: Any) -> dict[str, Any]:
    return {
        "name": feature.name, "kind": feature.kind, "change": feature.change, "low": feature.low,
        "high": feature.high, "step": feature.step, "cost": feature.cost,
    }  # fmt: skip


def _notes(found: Recourse, n_rejected: int, n_measured: int, ways: dict[str, Any], inferred: bool) -> list[str]:
    notes = list(found.notes)
    if n_measured < n_rejected:
        notes.append(f"{n_measured:,} of {n_rejected:,} rejected people were measured, drawn at random.")
    unknown = int((found.status == "unknown").sum())
    if unknown and found.method != "surrogate":
        notes.append(f"The recourse of {unknown:,} people is unknown: time ran out, or a search found nothing.")
    if inferred:
        notes.append(
            "What people can change was inferred from the data, which does not say what a person cannot change."
        )
    if ways["sample"]:
        notes.append(
            f"Up to {ways['k']} ways to a yes were looked for {len(ways['sample'])} people, drawn at random; for the "
            "others the cheapest one is shown."
        )
    return notes
