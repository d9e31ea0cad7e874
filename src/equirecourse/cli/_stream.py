"""The audit of a folder of Parquet files, which need not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equirecourse._audit import StreamedAudit, audit_partitions
from equirecourse._partitions import open_partitions
from equirecourse._validation import shown
from equirecourse.actions import ActionSet
from equirecourse.cli._data import read_actions

__all__ = ["audit_folder", "is_folder"]

_ROWS = 100_000


def is_folder(data: Path | None) -> bool:
    """Whether people come in several files: a folder, or a glob."""
    return data is not None and not data.is_file() and (data.is_dir() or any(sign in str(data) for sign in "*?["))


def audit_folder(
    model: Any,
    data: Path,
    *,
    target: str | None,
    group: Sequence[str] | None,
    favorable: str | None,
    actions: Path | None,
    immutable: Sequence[str] | None,
    ignore: Sequence[str] | None,
    seed: int,
    jobs: int | None,
) -> StreamedAudit:
    """Audit a model on people who are read a part at a time.

    Parameters
    ----------
    model : fitted classifier
        As loaded.
    data : path
        A folder or a glob.
    target, group, favorable, actions, immutable, ignore, seed, jobs
        The options of the command.

    Returns
    -------
    StreamedAudit
        Of everybody.
    """
    if target is None or not group:
        raise ValueError("--data needs --target COLUMN and at least one --group COLUMN.")
    if len(set(group)) < len(group):
        raise ValueError(f"--group is given twice for a column of {shown(list(group))}; once is enough.")
    # Columns of the first rows are those of all.
    first = open_partitions(data, _ROWS).first()
    features = [str(name) for name in getattr(model, "feature_names_in_", ())] or [
        name for name in first.columns if name not in {target, *group, *(ignore or ())}
    ]
    absent = [name for name in features if name not in first.columns]
    if absent:
        raise ValueError(f"The model needs the column {absent[0]!r}; {data.name} has {shown(list(first.columns))}.")
    unknown = [name for name in immutable or () if name not in features]
    if unknown:
        raise ValueError(f"--immutable {unknown[0]!r} is not a column; there are {shown(features)}.")
    if actions is None:
        chosen = ActionSet.from_frame(first[features], immutable=list(immutable or ()))
    else:
        chosen = read_actions(actions)
        for name in immutable or ():
            chosen = chosen.replace(name, change="no")
    return audit_partitions(
        model, data, sensitive_features=list(group), target=target, features=features, actions=chosen,
        unit="standard deviations" if actions is None else "units of cost", favorable_label=_label(model, favorable),
        time_limit=10.0, batch_size=_ROWS, n_jobs=jobs, random_state=seed, title=f"Recourse audit: {data.stem}",
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
