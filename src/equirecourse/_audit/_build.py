"""From costs by group to the summary of an audit, for people in memory and for people who came in parts."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._contributions import shares_of_cost
from equirecourse._audit._document import (
    ActionFeature,
    Actions,
    Attribute,
    Contribution,
    Counts,
    Distance,
    Group,
    Model,
    Settings,
    Summary,
)
from equirecourse._validation import check_number, shown
from equirecourse.actions import ActionSet, check_norm
from equirecourse.exceptions import NoRecourseWarning
from equirecourse.metrics import RecourseFrame, State
from equirecourse.metrics._text import values
from equirecourse.recourse import Recourse, View, find_recourse

__all__ = [
    "LEVELS",
    "Members",
    "Options",
    "ask",
    "infer_actions",
    "is_right",
    "is_unknown",
    "outcomes",
    "shares_of",
    "summary_of",
]

Array = NDArray[np.float64]

LEVELS = np.linspace(0.0, 1.0, 101)  # of the curve of each group: percentiles of its costs
_AT_ONCE = 50_000  # people whose changes are split by feature at a time


@dataclass(frozen=True)
class Options:
    """What :func:`audit` and :func:`audit_partitions` are asked for in the same words."""

    norm: str
    method: str
    unit: str | None
    favorable_label: Any
    confidence: float
    n_boot: int
    n_permutations: int
    time_limit: float | None
    random_state: int
    title: str | None

    def __post_init__(self) -> None:
        check_number(self.random_state, name="random_state", low=0, integer=True)
        check_norm(self.norm)

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""
        return int(self.random_state)

    def recourse(self, background: Any) -> dict[str, Any]:
        """The settings of ``find_recourse``."""
        return {"norm": self.norm, "method": self.method, "favorable_label": self.favorable_label,
                "time_limit": self.time_limit, "background": background, "random_state": self.seed}  # fmt: skip

    @property
    def frames(self) -> dict[str, Any]:
        """The settings of a RecourseFrame."""
        return {"confidence": self.confidence, "n_boot": self.n_boot, "n_permutations": self.n_permutations,
                "random_state": self.seed}  # fmt: skip


@dataclass(frozen=True)
class Members:
    """What is known of the groups of an attribute beside their costs, in the order of its frame.

    Attributes
    ----------
    accuracy : sequence of float
        Of the model, NaN where nobody said what the labels are.
    curves : list of ndarray
        Percentiles of the finite costs, empty where there are none.
    shares : ndarray of shape (n_groups, n_features)
        What each feature adds to the mean cost.
    """

    accuracy: Sequence[float]
    curves: list[Array]
    shares: Array


def ask(view: View, people: pd.DataFrame, actions: ActionSet, settings: Mapping[str, Any], **more: Any) -> Recourse:
    """Find recourse; people without are counted, in numbers that everybody sees, and not warned of here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)
        return find_recourse(view, people, actions=actions, **more, **settings)


def shares_of(actions: ActionSet, people: pd.DataFrame, found: Recourse) -> Array:
    """What each feature adds to the cost of each person; 0 for those without an action."""
    shares = np.zeros((len(people), len(actions)))
    acting = np.flatnonzero(found.has_action)
    for start in range(0, len(acting), _AT_ONCE):  # a million people's copies would be most of the memory
        some = acting[start : start + _AT_ONCE]
        before = people.iloc[some]
        after = found.counterfactuals.iloc[some].astype(before.dtypes.to_dict())
        shares[some] = shares_of_cost(actions, found.norm, before, after)
    return shares


def infer_actions(X: Any, attributes: Collection[str]) -> ActionSet:
    """What people can change, inferred from a table; columns that are attributes themselves are left alone."""
    columns = [str(name) for name in getattr(X, "columns", [])]
    return ActionSet.from_frame(X, immutable=[name for name in columns if name in attributes])


def is_right(predicted: Any, labels: NDArray[Any], known: Sequence[Any], whose: str) -> NDArray[np.bool_]:
    """Who has the label that the model predicts."""
    unknown = sorted(set(map(str, pd.unique(labels))) - set(map(str, known)))
    if unknown:
        raise ValueError(
            f"{whose} has the label {shown(unknown[0])}, which the model does not know: it has {shown(list(known))}."
        )
    return np.asarray(predicted == labels, dtype=bool)


def is_unknown(found: Recourse) -> NDArray[np.bool_]:
    """For whom no cost was found, and nobody has proven that there is none."""
    return np.asarray(np.isinf(found.costs) & (found.status == "unknown"))


def outcomes(found: Recourse) -> dict[str, int]:
    """How many rejected people have recourse, have none, and nobody knows: together they are all of them."""
    with_recourse = found.rejected & np.isfinite(found.costs)
    return {
        "with_recourse": int(with_recourse.sum()),
        "without_recourse": int((found.status == "infeasible").sum()),
        "unknown": int(is_unknown(found).sum()),
        "exact": int((found.exact & with_recourse).sum()),
    }


def summary_of(
    options: Options, view: View, actions: ActionSet, *, inferred: bool, frames: Mapping[str, RecourseFrame],
    members: Mapping[str, Members], counts: Counts, accuracy: float, acceptance: float, method: str, **parts: Any,
) -> Summary:  # fmt: skip
    """The summary of an audit, after a warning of rejected people who are in no mean.

    Parameters
    ----------
    options : Options
        What was asked.
    view : View
        The model.
    actions : ActionSet
        What people can change.
    inferred : bool
        Whether that was inferred from the data.
    frames, members : mapping of attributes
        Costs by group, and the rest.
    counts : Counts
        Of all people.
    accuracy, acceptance : float
        Of the model; NaN for an accuracy that nobody knows.
    method : str
        The engine that answered.
    **parts
        Settings of people who came in parts.

    Returns
    -------
    Summary
        The document without its people.
    """
    unit = options.unit or ("standard deviations" if inferred else "units of cost")
    keys = ("name", "kind", "change", "low", "high", "step", "cost")
    features = [ActionFeature(**{key: getattr(feature, key) for key in keys}) for feature in actions]
    p_values = [frame.p_value for frame in frames.values()] + [frame.share_p_value for frame in frames.values()]
    corrected = holm(p_values)
    attributes = [
        _attribute(name, frame, members[name], (p, share_p), unit, [feature.name for feature in features])
        for (name, frame), p, share_p in zip(frames.items(), corrected, corrected[len(frames) :], strict=False)
    ]
    _warn_of_missing(counts)
    return Summary(
        title=options.title or "Recourse audit",
        model=Model(
            kind=type(view.final).__name__,
            favorable_label=view.favorable,
            accuracy=accuracy,
            acceptance=acceptance,
        ),
        settings=Settings(unit=unit, norm=options.norm, method=method, **options.frames, **parts),
        counts=counts,
        actions=Actions(features=features, notes=list(actions.notes)),
        attributes=attributes,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values for as many comparisons, by Holm's step-down rule; undefined ones are not counted.

    Examples
    --------
    >>> from equirecourse._audit._build import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = [(p, place) for place, p in enumerate(p_values) if not np.isnan(p)]
    corrected = [float("nan")] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        corrected[place] = round(highest, 12)
    return corrected


def _attribute(
    name: str, frame: RecourseFrame, members: Members, corrected: tuple[float, float], unit: str, features: list[str]
) -> Attribute:
    """Everything about one attribute."""
    found = frame.judge(p_value=corrected[0], share_p_value=corrected[1], unit=unit)
    known, shares = values(frame, frame._people), members.shares
    labels = [str(label) for label in frame.by_group.index]
    means = frame.by_group["mean"].to_numpy()
    far, near = (int(pick(means)) if not np.isnan(means).any() else 0 for pick in (np.argmax, np.argmin))
    in_means = found.state == State.GAP and not found.in_shares
    order = np.argsort(-np.abs(shares[far] - shares[near]), kind="stable")
    groups = [
        Group(
            **row,
            name=label,
            accuracy=accuracy,
            curve=curve.tolist(),
            contributions={features[j]: float(own[j]) for j in order},
        )
        for row, label, accuracy, curve, own in zip(
            known["by_group"], labels, members.accuracy, members.curves, shares, strict=True
        )
    ]
    return Attribute(
        **known
        | {
            "name": name,
            "state": found.state,
            "verdict": found.sentence,
            "by_group": groups,
            "distances": [Distance(**row) for row in known["distances"]],
        },
        gap_in_shares=found.in_shares,
        p_corrected=corrected[0],
        share_p_corrected=corrected[1],
        furthest=labels[far] if in_means else None,
        nearest=labels[near] if in_means else None,
        contributions=[
            Contribution(feature=features[j], difference=float(shares[far, j] - shares[near, j]))
            for j in order
            if shares[:, j].any()
        ],
    )


def _warn_of_missing(counts: Counts) -> None:
    """Warn of rejected people who are in no mean."""
    missing = [(counts.without_recourse, "have no recourse"), (counts.unknown, "have a recourse that is unknown")]
    told = " and ".join(f"{count:,} {words}" for count, words in missing if count)
    if told:
        warnings.warn(
            f"Of {counts.measured:,} rejected people {told}; mean costs are over the other "
            f"{counts.with_recourse:,}, and the verdict says what that leaves open.",
            NoRecourseWarning,
            stacklevel=4,
        )
