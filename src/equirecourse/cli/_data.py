"""People from a file or by the name of a data set, ready for a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._validation import shown
from equirecourse.actions import ActionSet
from equirecourse.actions._words import closest
from equirecourse.cli._options import PeopleOptions
from equirecourse.datasets import fetch_givemecredit, fetch_propublica, load_credit, load_german

__all__ = ["LOADERS", "CsvFormat", "People", "frozen", "load_people", "read_actions", "refuse_twice"]

_MANY_LABELS = 20  # of a column of text, beyond which it may be one of names

LOADERS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "credit": (load_credit, ["sex"]),
    "german": (load_german, ["sex"]),
    "givemecredit": (fetch_givemecredit, ["age_group"]),
    "propublica": (fetch_propublica, ["african_american"]),
}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV is written.

    Attributes
    ----------
    sep : str
        What separates its columns.
    encoding : str
        Of its text.
    na_values : tuple of str
        What means missing, beside what pandas knows.
    """

    sep: str = ","
    encoding: str = "utf-8"
    na_values: tuple[str, ...] = ()

    def hint(self, table: pd.DataFrame) -> str:
        """What is probably wrong with a table of one column: another separator."""
        name = str(table.columns[0])
        others = [sep for sep in (";", "\t", "|", ",") if sep in name and sep != self.sep]
        if len(table.columns) > 1 or not others:
            return ""
        return f"its columns seem to be separated by {others[0]!r}, so read it with --sep {others[0]!r}."


@dataclass(frozen=True)
class People:
    """Features, outcome and groups, row by row; what can change; what there is to say about the reading."""

    X: pd.DataFrame
    y: NDArray[Any]
    groups: pd.DataFrame
    actions: ActionSet
    inferred: bool
    favorable: Any
    name: str
    notes: tuple[str, ...]
    unit: str = "standard deviations"
    taken: str = ""  # the sentence about the value that is taken for a yes, if nobody said which

    def take(self, rows: Any) -> People:
        """Some of them."""
        return replace(self, X=self.X.iloc[rows], y=self.y[rows], groups=self.groups.iloc[rows])

    def as_known_to(self, model: Any) -> People:
        """With the yes of a model that has one of its own, if nobody said which value it is."""
        own = [label for label in set(self.y.tolist()) if label == getattr(model, "favorable_label_", None)]
        if not self.taken or not own:
            return self
        taken = f"{own[0]} is a yes, as the model has it; say otherwise with --favorable."
        notes = tuple(taken if note == self.taken else note for note in self.notes)
        return replace(self, favorable=own[0], notes=notes, taken=taken)


def load_people(options: PeopleOptions) -> People:
    """Read people as the options say; one sentence if they contradict each other or the file."""
    group, ignore = options.group or [], options.ignore or []
    refuse_twice(group)
    if options.data is not None and options.dataset is not None:
        raise ValueError("--data and --dataset are two sources of people; give one of them.")
    if options.data is None:
        people = _known(options.dataset or "credit", options.target, group, options.favorable)
    else:
        csv = CsvFormat(options.sep, options.encoding, tuple(options.na_values or ()))
        people = _file(options.data, options.target, group, options.favorable, csv)
    unknown = [name for name in ignore if name not in people.X.columns]
    if unknown:
        raise ValueError(f"--ignore {unknown[0]!r} is not a feature; {_nearest(unknown[0], people.X)}")
    if ignore:
        X = people.X.drop(columns=ignore)
        kept = people.actions if people.inferred else people.actions.only(X.columns)
        people = replace(people, X=X, actions=kept)
    people = _without_gaps(_with_numbers_and_categories(people), options.missing)
    _refuse_too_few(people)
    return _with_actions(people, options.actions, options.immutable or [])


def refuse_twice(group: Sequence[str]) -> None:
    """Refuse a group that is named twice."""
    twice = [name for place, name in enumerate(group) if name in group[:place]]
    if twice:
        raise ValueError(f"--group {twice[0]!r} is given twice; once is enough.")


def _known(name: str, target: str | None, group: list[str], favorable: str | None) -> People:
    if name not in LOADERS:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(LOADERS)}.")
    if target is not None or favorable is not None:
        raise ValueError("--target and --favorable are for --data; a data set by name has its own.")
    load, default = LOADERS[name]
    bunch = load()
    chosen = group or default
    absent = [column for column in chosen if column not in bunch.sensitive_features]
    if absent:
        there = ", ".join(map(str, bunch.sensitive_features.columns))
        raise ValueError(f"The data set {name!r} has no group {absent[0]!r}; it has {there}.")
    y = np.asarray(bunch.target)
    return People(
        bunch.data, y, bunch.sensitive_features[chosen], bunch.actions, False, bunch.favorable_label, name, ()
    )


def _file(path: Path, target: str | None, group: list[str], favorable: str | None, csv: CsvFormat) -> People:
    if target is None or not group:
        raise ValueError("--data needs --target COLUMN and at least one --group COLUMN.")
    table = _read(path, csv)
    for option, column in [("--target", target), *(("--group", name) for name in group)]:
        if column not in table.columns:
            hint = csv.hint(table) or _nearest(column, table)
            raise ValueError(f"{path.name} has no column {column!r} ({option}); {hint}")
    if target in group:
        raise ValueError(f"{target!r} is the target and cannot be a group as well.")
    known = table[[target, *group]].notna().all(axis=1)
    notes = []
    if not known.all():
        notes.append(f"{int((~known).sum()):,} people without {target} or group were left out.")
        table = table[known]
    labels = table[target].unique()
    if len(labels) != 2:
        raise ValueError(
            f"The target {target!r} has {len(labels)} values, {shown(sorted(map(str, labels)))}; it needs two."
        )
    y, yes = _outcome(table[target], favorable)
    taken = "" if favorable is not None else f"{target} = {yes} is taken for a yes; say otherwise with --favorable."
    if taken:
        notes.append(taken)
    X = table.drop(columns=[target, *group])
    if X.shape[1] == 0:
        raise ValueError(f"{path.name} has no columns besides target and groups; a model needs features.")
    return People(X, y, table[group], ActionSet(()), True, yes, path.stem, tuple(notes), taken=taken)


def _nearest(name: str, table: pd.DataFrame) -> str:
    return closest(name, [str(column) for column in table.columns])


def _read(path: Path, csv: CsvFormat) -> pd.DataFrame:
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    is_csv = path.suffix.lower() not in (".parquet", ".pq")
    try:
        if is_csv:
            table, names = _read_csv(path, csv)
        else:
            table = pd.read_parquet(path)
            names = [str(column) for column in table.columns]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name} is not written in {csv.encoding} (byte {error.start:,}); say what it is in with --encoding, "
            "such as latin-1 or cp1252."
        ) from None
    except Exception as error:
        first = " ".join(str(error).split())
        way_out = "; --sep, --encoding and --na-values say how it is written" if is_csv else ""
        kind = "CSV" if is_csv else "Parquet"
        raise ValueError(f"{path.name} cannot be read as {kind}: {first.rstrip('.')}{way_out}.") from None
    if len(table) == 0:
        raise ValueError(f"{path.name} has no rows.")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"{path.name} has more than one column {twice[0]!r}; give every column a name of its own.")
    return table.set_axis([str(column) for column in table.columns], axis=1)


def _read_csv(path: Path, csv: CsvFormat) -> tuple[pd.DataFrame, list[str]]:
    """A CSV, and its names as written: pandas calls the second of two equal ones "income.1"."""
    form: Any = {"sep": csv.sep, "encoding": csv.encoding, "index_col": False}
    table: pd.DataFrame = pd.read_csv(path, na_values=list(csv.na_values), **form)
    first: pd.DataFrame = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **form)
    return table, [name for name in first.iloc[0] if name]


def _outcome(column: pd.Series, favorable: str | None) -> tuple[NDArray[Any], Any]:
    """The target's values, and the one that means yes."""
    y = column.to_numpy()
    if y.dtype == object or not isinstance(y, np.ndarray):
        y = np.asarray(column.astype(str), dtype=object).astype(str)
    labels = sorted(set(y.tolist()))
    if favorable is None:
        return y, labels[-1]
    for label in labels:
        if str(label) == favorable or (
            isinstance(label, float) and _is_number(favorable) and label == float(favorable)
        ):
            return y, label
    raise ValueError(
        f"--favorable {favorable!r} is not a value of the target; it has {shown([str(x) for x in labels])}."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_numbers_and_categories(people: People) -> People:
    """The same people, text as categories and truth as numbers; a note for each column that is like a name."""
    X, notes = people.X, []
    for name in X.columns:
        if X[name].dtype == object or pd.api.types.is_string_dtype(X[name].dtype):
            X = X.assign(**{name: X[name].astype("category")})
            different = len(X[name].cat.categories)
            if different > max(_MANY_LABELS, len(X) // 2):
                notes.append(
                    f"{name!r} has {different:,} different values in {len(X):,} rows, like a name; leave it out with "
                    f"--ignore {name}."
                )
        elif X[name].dtype == bool:
            X = X.assign(**{name: X[name].astype(int)})
        elif not (pd.api.types.is_numeric_dtype(X[name].dtype) or isinstance(X[name].dtype, pd.CategoricalDtype)):
            raise ValueError(f"The column {name!r} holds {X[name].dtype}; make numbers or text of it, or leave it out.")
    return replace(people, X=X, notes=(*people.notes, *notes))


def _without_gaps(people: People, missing: str) -> People:
    """The people whom --missing keeps, and a note of the others."""
    gaps = people.X.isna().any(axis=1).to_numpy()
    if not gaps.any():
        return people
    count = f"{int(gaps.sum()):,} of {len(gaps):,} people"
    if missing == "drop":
        note = f"{count} with missing values were dropped (--missing drop)."
        return replace(people.take(~gaps), notes=(*people.notes, note))
    note = (
        f"{count} have missing values, which the model fills in (--missing impute); a missing number is never changed."
    )
    return replace(people, notes=(*people.notes, note))


def _refuse_too_few(people: People) -> None:
    """Refuse people of whom nobody can be compared, or no model be fitted."""
    if len(np.unique(people.y)) < 2:
        raise ValueError("The target has one value only among the people that are left; a model needs both.")
    for name in people.groups.columns:
        sizes = people.groups[name].value_counts()
        if len(sizes) < 2:
            raise ValueError(
                f"The group {name!r} has one value only, {shown(str(sizes.index[0]))}; there is nobody to compare."
            )
        if sizes.min() < 2:
            raise ValueError(
                f"The group {name!r} has a single member with the value {shown(str(sizes.index[-1]))}; leave that "
                "person out, or put the value together with another."
            )


def _with_actions(people: People, actions: Path | None, immutable: list[str]) -> People:
    """The same people with what they can change: read, inferred, or that of the data set."""
    if actions is not None:
        return replace(people, actions=read_actions(actions), inferred=False, unit="units of cost")
    if people.inferred:
        unknown = [name for name in immutable if name not in people.X.columns]
        if unknown:
            raise ValueError(f"--immutable {unknown[0]!r} is not a column; {_nearest(unknown[0], people.X)}")
        return replace(people, actions=ActionSet.from_frame(people.X, immutable=immutable))
    return replace(people, actions=frozen(people.actions, immutable))


def frozen(actions: ActionSet, immutable: Sequence[str]) -> ActionSet:
    """The same actions, with columns that nobody can change."""
    for name in immutable:
        actions = actions.replace(name, change="no")
    return actions


def read_actions(path: Path) -> ActionSet:
    """What people can change, from a file."""
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    return ActionSet.read(path)
