"""audit: recourse by group, whose it is, and what it is made of."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._attributes import corrected_p_values, describe
from equirecourse._audit._contributions import shares_of_cost
from equirecourse._audit._document import SCHEMA_VERSION, plain
from equirecourse._audit._people import (
    cheapest_changes,
    choose,
    is_unknown,
    notes_on_unknown,
    outcomes,
    people_table,
    warn_of_missing,
    ways_of,
)
from equirecourse._audit._result import RecourseAudit
from equirecourse._validation import as_frame, check_groups, check_number, refuse_masked, refuse_missing_groups, shown
from equirecourse.actions import ActionSet, check_actions, check_norm
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.metrics import RecourseFrame
from equirecourse.recourse import Recourse, find_recourse, open_model

__all__ = ["audit"]

Array = NDArray[np.float64]

_AT_ONCE = 50_000  # people whose changes are split by feature at a time
_MANY_PEOPLE = 20_000  # beyond which the rows of people are put together only when they are asked for


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

    Warns
    -----
    NoRecourseWarning
        If rejected people have no recourse, or theirs is unknown: they are in no mean, and every verdict counts them.

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
    n_flipsets = int(check_number(n_flipsets, name="n_flipsets", low=0, integer=True))
    check_number(k, name="k", low=1, integer=True)
    check_norm(norm)
    refuse_masked(X, name="X")
    view = open_model(model, favorable_label, X)
    groups = _attributes(sensitive_features, intersections)
    inferred = actions is None
    if actions is None:
        names = set(groups.columns)
        columns = [str(name) for name in getattr(X, "columns", [])]
        actions = ActionSet.from_frame(X, immutable=[name for name in columns if name in names])
    table = check_actions(actions).table(X)
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
    after, acting = found.counterfactuals, np.flatnonzero(found.has_action)
    for start in range(0, len(acting), _AT_ONCE):  # a million people's copies would be most of the memory
        some = acting[start : start + _AT_ONCE]
        before = table.iloc[measured[some]]
        moved = after.iloc[some].astype(before.dtypes.to_dict())
        shares[measured[some]] = shares_of_cost(actions, norm, before, moved)
    looked_for, unknown = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
    looked_for[measured], unknown[measured] = True, is_unknown(found)
    frames = {
        name: RecourseFrame(
            costs=np.where(np.isnan(costs), 0.0, costs), rejected=~accepted, measured=looked_for, unknown=unknown,
            sensitive_features=groups[[name]], confidence=confidence, n_boot=n_boot, n_permutations=n_permutations,
            random_state=seed,
        )
        for name in groups.columns
    }  # fmt: skip
    corrected = corrected_p_values(frames)
    features = [feature.name for feature in actions]
    sections = [
        describe(name, frame, p, unit, groups[name], costs, shares, features, right)
        for (name, frame), p in zip(frames.items(), corrected, strict=True)
    ]

    def details() -> dict[str, Any]:
        rows, ways = _people(
            view, table, actions, accepted, measured, found, groups, right, n_flipsets, k, seed, settings
        )
        notes = _notes(found, len(rejected), len(measured), ways, inferred)
        return dict(plain({"people": rows, "flipsets": ways, "notes": notes}))

    counts = {"people": len(table), "rejected": len(rejected), "measured": len(measured), **outcomes(found)}
    summary = {
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
        "counts": counts,
        "actions": {"features": [_feature(feature) for feature in actions], "notes": list(actions.notes)},
        "attributes": sections,
    }  # fmt: skip
    warn_of_missing(counts)
    result = RecourseAudit(plain(summary), frames, found, costs, groups, cache(details))
    if len(table) <= _MANY_PEOPLE:
        _ = result.document  # now, while the model is what it was
    return result


def _attributes(sensitive_features: Any, intersections: bool) -> pd.DataFrame:
    """Groups as text, a column per attribute."""
    frame = as_frame(sensitive_features)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"sensitive_features has more than one column {twice!r}; give every column a name of its own.")
    refuse_missing_groups(int(frame.isna().any(axis=1).sum()), len(frame))
    groups = pd.DataFrame({str(name): _as_text(frame[name]) for name in frame.columns}).reset_index(drop=True)
    if intersections and len(groups.columns) > 1:
        groups[" × ".join(groups.columns)] = groups.agg(", ".join, axis=1)
    return groups


def _as_text(column: pd.Series) -> pd.Series:
    """Groups as text: each label is turned into words once, not once for each person."""
    codes, labels = pd.factorize(column.astype(object))
    words = np.array([str(label) for label in labels], dtype=object)
    return pd.Series(words[codes], index=column.index, dtype=pd.Series(["text"]).dtype)


def _right(view: Any, table: pd.DataFrame, y: Any) -> NDArray[np.bool_]:
    labels = np.asarray(y)
    if labels.shape != (len(table),):
        raise ValueError(f"X has {len(table)} people and y the shape {labels.shape}; they must be as many.")
    unknown = sorted(set(map(str, np.unique(labels))) - set(map(str, view.model.classes_)))
    if unknown:
        known = shown(list(view.model.classes_))
        raise ValueError(f"y has the label {shown(unknown[0])}, which the model does not know: it has {known}.")
    return np.asarray(view.labels(table) == labels)


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
        rows.append([labels[i], members[i], status, cost, exact, None if right is None else bool(right[i])])
    sample = choose(measured[has], groups[groups.columns[0]], n_flipsets if has.any() else 0, seed)
    ways = dict(zip(map(str, sample), ways_of(view, table.iloc[sample], actions, k, settings), strict=True))
    for i, some in changes.items():
        if str(i) not in ways:
            cost = float(found.costs[place[i]])
            ways[str(i)] = [{"cost": cost, "exact": bool(found.exact[place[i]]), "changes": some}]
    return (
        people_table(list(groups.columns), rows),
        {"sample": [int(i) for i in sample], "k": k, "by_person": ways},
    )


def _feature(feature: Any) -> dict[str, Any]:
    return {
        "name": feature.name, "kind": feature.kind, "change": feature.change, "low": feature.low,
        "high": feature.high, "step": feature.step, "cost": feature.cost,
    }  # fmt: skip


def _notes(found: Recourse, n_rejected: int, n_measured: int, ways: dict[str, Any], inferred: bool) -> list[str]:
    notes = list(found.notes)
    if n_measured < n_rejected:
        notes.append(f"{n_measured:,} of {n_rejected:,} rejected people were measured, drawn at random.")
    notes += notes_on_unknown(int(is_unknown(found).sum()))
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
