"""The audit of a folder of Parquet files, which need not fit into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equirecourse._audit import StreamedAudit, audit_partitions
from equirecourse._partitions import open_partitions
from equirecourse._validation import shown
from equirecourse.actions import ActionSet
from equirecourse.cli._data import frozen, read_actions, refuse_twice
from equirecourse.cli._options import PeopleOptions

__all__ = ["audit_folder", "is_folder"]


def is_folder(data: Path | None) -> bool:
    """Whether people come in several files: a folder, or a glob."""
    return data is not None and not data.is_file() and (data.is_dir() or any(sign in str(data) for sign in "*?["))


def audit_folder(model: Any, options: PeopleOptions, *, seed: int, jobs: int | None) -> StreamedAudit:
    """Audit a model on people who are read a part at a time."""
    data, target, group, immutable = options.data, options.target, options.group, options.immutable or []
    if data is None or target is None or not group:
        raise ValueError("--data needs --target COLUMN and at least one --group COLUMN.")
    refuse_twice(group)
    # Columns of the first rows are those of all.
    first = open_partitions(data).first()
    features = [str(name) for name in getattr(model, "feature_names_in_", ())] or [
        name for name in first.columns if name not in {target, *group, *(options.ignore or ())}
    ]
    absent = [name for name in features if name not in first.columns]
    if absent:
        raise ValueError(f"The model needs the column {absent[0]!r}; {data.name} has {shown(list(first.columns))}.")
    unknown = [name for name in immutable if name not in features]
    if unknown:
        raise ValueError(f"--immutable {unknown[0]!r} is not a column; there are {shown(features)}.")
    if options.actions is None:
        chosen = ActionSet.from_frame(first[features], immutable=immutable)
    else:
        chosen = frozen(read_actions(options.actions), immutable)
    return audit_partitions(
        model, data, sensitive_features=list(group), target=target, features=features, actions=chosen,
        unit="standard deviations" if options.actions is None else "units of cost",
        favorable_label=_label(model, options.favorable), time_limit=10.0, n_jobs=jobs, random_state=seed,
        title=f"Recourse audit: {data.stem}",
    )  # fmt: skip


def _label(model: Any, favorable: str | None) -> Any:
    """The label of the model that reads as the option says."""
    if favorable is None:
        return None
    labels = list(getattr(model, "classes_", ()))
    for label in labels:
        if str(label) == favorable:
            return label
    raise ValueError(f"--favorable {favorable!r} is not a label of the model; it has {shown([*map(str, labels)])}.")
