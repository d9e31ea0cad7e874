"""audit_partitions: the audit of more people than memory holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from equirecourse._audit._build import LEVELS, Members, Options, infer_actions, summary_of
from equirecourse._audit._document import Counts, Details, Ways
from equirecourse._audit._part import PartSummary, Question, summarise
from equirecourse._audit._people import notes_of, people_table
from equirecourse._audit._result import RecourseAudit
from equirecourse._partitions import as_pandas, chosen, open_partitions
from equirecourse._validation import check_jobs, check_number, shown
from equirecourse.actions import DEFAULT_NORM, ActionSet, check_actions
from equirecourse.metrics import RELATIVE_ERROR, CostSummary, SummaryFrame
from equirecourse.recourse import open_model

__all__ = ["StreamedAudit", "audit_partitions"]

_BACKGROUND = 10_000  # people among whom searches start


@dataclass(frozen=True, repr=False)
class StreamedAudit(RecourseAudit):
    """What a model's recourse is like, group by group, for people of whom none is kept.

    Verdicts, tables, the document and the report are those of a :class:`RecourseAudit`, without a table of people and
    without ways to a yes: audit a sample of them for these.

    Attributes
    ----------
    frames : mapping of str to SummaryFrame
        The numbers behind each attribute.
    sums : PartSummary
        What is left of the people. Sums of other people merge with it.
    """

    recourse: Any = None
    _costs: Any = field(default=None, repr=False)
    _groups: Any = field(default=None, repr=False)
    _details: Any = field(default=None, repr=False)
    sums: PartSummary | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """Everything in plain values: the document."""
        return self.document

    @property
    def people(self) -> pd.DataFrame:
        """Not there: a streamed audit keeps sums, not people."""
        self._nobody("table of people")

    def compared_with(self, before: RecourseAudit, **_: Any) -> RecourseAudit:
        """Not there: a comparison draws the same people under both models, and nobody is kept."""
        del before
        self._nobody("comparison of the same people")

    def _nobody(self, what: str) -> NoReturn:
        raise ValueError(f"A streamed audit keeps sums and no person, so it has no {what}; use audit on a sample.")


def audit_partitions(
    model: Any,
    partitions: Any,
    *,
    sensitive_features: str | Sequence[str],
    target: str | None = None,
    features: Sequence[str] | None = None,
    actions: ActionSet | None = None,
    norm: str = DEFAULT_NORM,
    method: str = "auto",
    unit: str | None = None,
    favorable_label: Any = None,
    background: Any = None,
    intersections: bool = False,
    confidence: float = 0.95,
    n_boot: int = 1000,
    n_permutations: int = 1000,
    time_limit: float | None = None,
    batch_size: int = 100_000,
    n_jobs: int | None = None,
    random_state: int = 0,
    title: str | None = None,
) -> StreamedAudit:
    r"""Audit a model on people who come in parts: more of them than memory holds, on one machine or many.

    Each part is reduced to a summary of a few thousand numbers, and summaries add up. Counts, shares, means, the gap
    and what features contribute are exact. Quantiles are within 0.1 % of those of the costs, with certainty. The
    interval, the noise floor and the p-value come from the schemes of :func:`audit`, a bootstrap within the groups and
    shuffles of the labels, carried out on numbers of people of about the same cost: expectation and variance of
    every resampled mean are exact, and the price does not grow with the people. Nothing depends on which worker
    reduced which part or in which order they finished; how people are divided changes rounding errors alone, as long as
    ``actions`` and ``background`` are given.

    Parameters
    ----------
    model : fitted classifier
        As in :func:`audit`.
    partitions : Dask DataFrame, path, pyarrow Dataset or iterable of frames
        People, never held all at once:

        * a Dask DataFrame is reduced by its scheduler, so by a cluster if there is a ``dask.distributed.Client``;
        * a folder, a glob or a list of Parquet files, or a pyarrow dataset, is read row group by row group by joblib's
          workers (``n_jobs``), or by a cluster within ``joblib.parallel_config("dask")``;
        * any other iterable gives frames of pandas, polars or pyarrow, one after the other.
    sensitive_features : str or list of str
        Columns that hold the attributes; each is audited by itself.
    target : str, optional
        Column of the labels, for the model's accuracy.
    features : list of str, optional
        Columns that the model sees. By default those it was fitted to, if it knows their names, else all others.
    actions : ActionSet, optional
        What people can change, and what it costs; by default inferred from the first partition.
    norm, method, unit, favorable_label, intersections, confidence, n_boot, n_permutations, time_limit, title
        As in :func:`audit`.
    background : table, optional
        People among whom a search looks for accepted ones to start from; by default the first 10,000 of the first
        partition.
    batch_size : int, default=100_000
        Rows of Parquet that are held at once by each worker.
    n_jobs : int, optional
        Partitions that are reduced at once, as in joblib. A Dask DataFrame's scheduler decides for itself.
    random_state : int, default=0
        Of everything that is drawn.

    Returns
    -------
    StreamedAudit
        Verdicts and tables; ``to_html`` and ``to_json`` write it.

    Warns
    -----
    NoRecourseWarning
        As :func:`audit` does.

    See Also
    --------
    audit : The same for people who fit into memory, with a table of them and their ways to a yes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse import audit_partitions
    >>> from equirecourse.datasets import load_credit
    >>> credit = load_credit(paper=True)
    >>> columns = ["EducationLevel", "MaxBillAmountOverLast6Months", "TotalMonthsOverdue"]
    >>> model = LogisticRegression(class_weight="balanced").fit(credit.data[columns], credit.target)
    >>> people = credit.data[columns].assign(sex=credit.sensitive_features["sex"])
    >>> parts = (people[i : i + 5000] for i in range(0, len(people), 5000))
    >>> found = audit_partitions(model, parts, sensitive_features="sex")
    >>> found.document["counts"]["people"] == len(people)
    True
    """
    options = Options(
        norm=norm, method=method, unit=unit, favorable_label=favorable_label, confidence=confidence, n_boot=n_boot,
        n_permutations=n_permutations, time_limit=time_limit, random_state=random_state, title=title,
    )  # fmt: skip
    rows = int(check_number(batch_size, name="batch_size", low=1, integer=True))
    attributes = _names(sensitive_features, "sensitive_features")
    if target is not None and not isinstance(target, str):
        raise ValueError(f"target must be the name of a column, got {shown(target)}.")
    check_jobs(n_jobs)
    if len(set(attributes)) < len(attributes):
        raise ValueError(f"sensitive_features names a column twice: {shown(attributes)}; name each once.")
    source = open_partitions(partitions, rows)
    first = as_pandas(source.first())
    seen = _features(model, first, attributes, target, features)
    chosen(first, [*attributes, *([target] if target else [])])
    inferred = actions is None
    if actions is None:
        actions = infer_actions(first[seen], attributes)
    pool = check_actions(actions).table(first[seen].head(_BACKGROUND) if background is None else background)
    view = open_model(model, favorable_label, first)
    question = Question(view, actions, seen, target, attributes, intersections, options.recourse(pool))
    sums, n_parts = source.reduce(summarise, question, question.columns, n_jobs)
    frames = {name: SummaryFrame(costs, name=name, **options.frames) for name, costs in sums.attributes.items()}
    counts = {**sums.counts, "measured": sums.counts["rejected"]}
    right, people = counts.pop("right"), counts["people"]
    summary = summary_of(
        options, view, actions, inferred=inferred, frames=frames,
        members={name: _members(costs, labelled=target is not None) for name, costs in sums.attributes.items()},
        counts=Counts(**counts), accuracy=float("nan") if target is None else right / people,
        acceptance=1 - counts["rejected"] / people, method=sums.method or method, partitions=n_parts,
        relative_error=RELATIVE_ERROR,
    )  # fmt: skip
    nobody = Details(
        people=people_table(list(frames), []),
        flipsets=Ways(sample=[], k=0, by_person={}),
        notes=_notes(sums, n_parts, inferred),
    )
    return StreamedAudit(summary, frames, _details=partial(replace, nobody), sums=sums)


def _names(given: Any, name: str) -> list[str]:
    """One name of a column, or several of them."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be the name of a column or a list of names, got {shown(given)}.")
    return [str(name) for name in given]


def _features(
    model: Any, first: pd.DataFrame, attributes: list[str], target: str | None, features: Sequence[str] | None
) -> list[str]:
    """Columns that the model sees."""
    if features is None:
        features = getattr(model, "feature_names_in_", None)
    if features is None:
        features = [name for name in first.columns if name not in attributes and name != target]
    names = _names(features, "features")
    if not names:
        raise ValueError(f"The partitions have no columns besides target and groups: {shown(list(first.columns))}.")
    chosen(first, names)
    return names


def _members(summary: CostSummary, *, labelled: bool) -> Members:
    """What is known of the groups of an attribute beside their costs."""
    right = summary.totals["right"] if labelled else np.full(len(summary.labels), np.nan)
    return Members(
        accuracy=(right / summary.people).tolist(),
        curves=[cells.quantiles(LEVELS) if cells.n else np.empty(0) for cells in summary.groups],
        shares=summary.totals["shares"] / np.maximum(summary.averaged, 1)[:, None],
    )


def _notes(summary: PartSummary, n_parts: int, inferred: bool) -> list[str]:
    notes = [
        words if (times == 1 and n_parts == 1) or not any(letter.isdigit() for letter in words)
        else f"In {times:,} of the parts, first as follows: {words}"
        for words, times in summary.notes.values()
    ]  # fmt: skip
    notes += notes_of(summary.counts["unknown"], "the first part of the data" if inferred else None)
    notes.append(
        f"People came in {n_parts:,} parts and nobody was kept: counts and means are exact, quantiles within "
        f"{100 * RELATIVE_ERROR:g} %, resamples drawn from numbers of people of about the same cost."
    )
    return notes
