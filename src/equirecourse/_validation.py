"""Labels, groups, weights and costs: the one place where input is checked and errors are worded.

Every function either returns clean NumPy data or raises a ``ValueError`` of one sentence that names the value,
the limit and the way out.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "Groups",
    "as_frame",
    "check_choice",
    "check_costs",
    "check_feature_costs",
    "check_finite",
    "check_generator",
    "check_groups",
    "check_jobs",
    "check_labels",
    "check_mask",
    "check_number",
    "favorable_index",
    "refuse_masked",
    "refuse_missing_groups",
    "shown",
    "split_features",
]


@dataclass(frozen=True)
class Groups:
    """Who belongs to which group.

    Attributes
    ----------
    codes : ndarray of int, shape (n_people,)
        The position in ``labels`` of each person's group.
    labels : tuple
        The groups, sorted. A value for one sensitive feature, a tuple of values for several.
    names : tuple of str
        The names of the sensitive features.
    """

    codes: NDArray[np.intp]
    labels: tuple[Hashable, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def index(self) -> pd.Index:
        """The groups as a pandas index, a MultiIndex for several sensitive features."""
        if len(self.names) > 1:
            return pd.MultiIndex.from_tuples(list(self.labels), names=self.names)  # type: ignore[arg-type]
        return pd.Index(list(self.labels), name=self.names[0])

    def members(self, position: int) -> NDArray[np.bool_]:
        """Mask of the people in the group at ``position``."""
        return np.asarray(self.codes == position)


def as_frame(sensitive_features: Any) -> pd.DataFrame:
    """Any table or column a user may hold its groups in, as a pandas frame with string column names."""
    if isinstance(sensitive_features, Mapping):
        for name, column in sensitive_features.items():
            refuse_masked(column, name=f"sensitive_features[{name!r}]")
        frame = pd.DataFrame({name: np.asarray(column) for name, column in sensitive_features.items()})
    elif isinstance(sensitive_features, pd.DataFrame):
        frame = sensitive_features.copy()
    else:
        native = nw.from_native(sensitive_features, allow_series=True, pass_through=True)
        # Through lists, because to_pandas() on a polars column needs pyarrow, which is not a dependency.
        if isinstance(native, nw.DataFrame):
            frame = pd.DataFrame({name: native[name].to_list() for name in native.columns})
        elif isinstance(native, nw.Series):
            frame = pd.DataFrame({native.name or "sensitive_feature": native.to_list()})
        else:
            refuse_masked(sensitive_features, name="sensitive_features")
            values = np.asarray(sensitive_features)
            if values.ndim == 0:
                raise ValueError(
                    f"sensitive_features must hold one group per person, got the single value {sensitive_features!r}."
                )
            if values.ndim == 1:
                values = values[:, None]
            if values.ndim != 2:
                raise ValueError(
                    f"sensitive_features must have one or two dimensions, got shape {values.shape}; "
                    "pass one column per sensitive feature."
                )
            names = (
                ["sensitive_feature"]
                if values.shape[1] == 1
                else [f"sensitive_feature_{j}" for j in range(values.shape[1])]
            )
            frame = pd.DataFrame(values, columns=names)
    frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if frame.shape[1] == 0:
        raise ValueError("sensitive_features has no column; pass at least one.")
    return frame


def split_features(sensitive_features: Any) -> list[pd.DataFrame]:
    """One frame of one column per sensitive feature."""
    frame = as_frame(sensitive_features)
    return [frame.iloc[:, [j]] for j in range(frame.shape[1])]


def check_groups(
    sensitive_features: Any, n_people: int, *, at_least: int = 1, among: NDArray[np.intp] | None = None
) -> Groups:
    """Check the sensitive features and cross their columns into groups.

    Parameters
    ----------
    sensitive_features : array-like, Series, DataFrame (pandas, polars, ...) or mapping of columns
        One row per person. Several columns are crossed: each combination that occurs is a group.
    n_people : int
        The number of people the groups must speak of.
    at_least : int
        The number of groups below which the input is refused.
    among : ndarray of int, optional
        Rows of the people who count; the others are as if they were absent. Everybody by default.

    Returns
    -------
    Groups
        Codes, labels and names; with ``among``, one code for each of its rows.
    """
    frame = as_frame(sensitive_features)
    if len(frame) != n_people:
        raise ValueError(
            f"sensitive_features has {len(frame)} rows for {n_people} people; "
            "pass one row per person, in the same order."
        )
    if among is not None:
        frame, n_people = frame.iloc[among], len(among)
    refuse_missing_groups(int(frame.isna().any(axis=1).sum()), n_people)
    columns = [frame.iloc[:, j].astype(object) for j in range(frame.shape[1])]
    if not all(isinstance(column.iloc[0], Hashable) for column in columns if len(column)):
        raise ValueError("sensitive_features must hold one value per cell, such as a name, and holds lists.")
    rows: Any = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
    first, occurring = pd.factorize(_as_objects(rows))
    try:
        labels = sorted(occurring)
    except TypeError:  # values that do not compare, such as 1 and "a"
        labels = sorted(occurring, key=repr)
    if len(labels) < at_least:
        raise ValueError(
            f"sensitive_features has {len(labels)} group{'s' * (len(labels) != 1)} "
            f"({', '.join(map(repr, labels[:3]))}) and a comparison needs at least {at_least}; "
            "pass a column with several values."
        )
    position = {label: k for k, label in enumerate(labels)}
    codes = np.array([position[label] for label in occurring], dtype=np.intp)[first]
    return Groups(codes=codes, labels=tuple(labels), names=tuple(frame.columns))


def refuse_missing_groups(missing: int, n_people: int) -> None:
    """Refuse people without a group: whether they are a group of their own is not ours to decide."""
    if missing:
        raise ValueError(
            f"sensitive_features is missing for {missing} of {n_people} people; drop them, "
            "or give them a group of their own such as 'unknown'."
        )


def _as_objects(rows: Any) -> NDArray[Any]:
    """A column of labels as an array of objects; tuples stay what they are."""
    values = np.empty(len(rows), dtype=object)
    values[:] = rows if isinstance(rows, list) else rows.to_numpy()
    return values


def check_labels(y: NDArray[Any]) -> NDArray[Any]:
    """The two sorted labels of ``y``; any other number of labels is refused."""
    try:
        classes = np.unique(y)
    except TypeError:  # values that do not compare, such as 1 and "a"
        kinds = sorted({type(label).__name__ for label in np.ravel(y)})
        raise ValueError(
            f"y mixes labels of the kinds {', '.join(kinds)}, which cannot be sorted; use two labels of one kind."
        ) from None
    if len(classes) == 2:
        return classes
    if len(classes) == 0:
        raise ValueError("y is empty and a classifier needs people of two classes; check the target column.")
    if len(classes) == 1:
        # scikit-learn's estimator checks look for the words "class" in this sentence.
        raise ValueError(
            f"y has the one class {classes.tolist()[0]!r} and a classifier needs two classes; check the target column."
        )
    shown = ", ".join(repr(label) for label in classes[:4].tolist()) + (", ..." if len(classes) > 4 else "")
    raise ValueError(
        f"Only binary classification is supported: y has {len(classes)} labels ({shown}) and recourse needs "
        "two, a favourable one and an unfavourable one; merge the others first."
    )


def favorable_index(classes: NDArray[Any], favorable_label: Any) -> int:
    """Position (0 or 1) of the favourable label in ``classes``; the larger label unless told otherwise."""
    if favorable_label is None:
        return 1
    hits = np.flatnonzero(classes == favorable_label)
    if len(hits) == 0:
        raise ValueError(
            f"favorable_label={favorable_label!r} is not one of the labels {classes.tolist()!r} of y; pass one of them."
        )
    return int(hits[0])


def check_costs(costs: Any, *, name: str = "costs") -> NDArray[np.float64]:
    """Costs of recourse, one per person: non-negative, infinite where there is no recourse, never NaN."""
    refuse_masked(costs, name=name)
    try:
        values = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one cost per person, got {shown(costs)}.") from None
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, one cost per person, got shape {values.shape}.")
    if np.isnan(values).any():
        raise ValueError(
            f"{name} is NaN for {int(np.isnan(values).sum())} of {len(values)} people; "
            "use inf for people without recourse and 0 for accepted people."
        )
    if (values < 0).any():
        raise ValueError(
            f"{name} must not be negative, got {values.min():g}; a cost is a distance, "
            "so take the absolute value of a signed score first."
        )
    return values


def shown(value: Any) -> str:
    """Show a value in an error: on one line, and never longer than a sentence bears."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def check_number(value: Any, *, name: str, low: float, high: float = np.inf, integer: bool = False) -> float:
    """Check that ``value`` is a finite number of ``[low, high]``, and return it as a float."""
    kind = numbers.Integral if integer else numbers.Real
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not (fits and low <= float(value) <= high and np.isfinite(float(value))):
        wanted = "a whole number" if integer else "a finite number"
        limits = f"of at least {low:g}" if np.isinf(high) else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} must be {wanted} {limits}, got {shown(value)}.")
    return float(value)


def check_choice(value: Any, choices: Iterable[str], *, name: str) -> str:
    """Check that ``value`` is one of the words ``choices``."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}.")


def check_jobs(n_jobs: Any) -> int | None:
    """Check a number of parallel jobs: None, or a whole number other than 0, where -1 is all processors."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool) and 0 < abs(int(n_jobs)) < 2**31:
        return int(n_jobs)
    raise ValueError(f"n_jobs must be None or a whole number other than 0 (-1 is all processors), got {shown(n_jobs)}.")


def refuse_masked(values: Any, *, name: str) -> None:
    """Refuse a masked array that hides entries: as an array it would show what it hides."""
    if np.ma.is_masked(values):
        hidden = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array with {hidden} masked entr{'y' if hidden == 1 else 'ies'}; drop them, or fill "
            "them in first (numpy.ma.filled)."
        )


def check_generator(random_state: Any) -> np.random.Generator:
    """Make a NumPy generator from None, a seed, a ``Generator`` or a ``RandomState``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a whole number from 0 or a generator, got {shown(random_state)}."
        ) from None


def check_mask(mask: Any, n_people: int, *, name: str) -> NDArray[np.bool_]:
    """A boolean mask with one entry per person."""
    refuse_masked(mask, name=name)
    values = np.asarray(mask)
    if values.shape != (n_people,):
        raise ValueError(f"{name} has shape {values.shape} for {n_people} people; pass one entry per person.")
    if values.dtype != bool:
        strange = [v for v in values.tolist() if not (isinstance(v, bool | int | float) and v in (0, 1))]
        if strange:
            raise ValueError(
                f"{name} must be True or False for each person, got {strange[0]!r}; "
                "compare predictions with the favourable label first."
            )
        values = values.astype(bool)
    return values


def check_finite(X: Any, feature_names: Any = None) -> None:
    """Refuse missing and infinite features, dense or sparse, and name the first feature that has them."""
    values = X.data if sparse.issparse(X) else X
    if np.isfinite(values).all():
        return
    bad = ~np.isfinite(X.toarray() if sparse.issparse(X) else X)
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    name = repr(str(feature_names[column])) if feature_names is not None else f"number {column}"
    kind = "NaN" if np.isnan(values).any() else "infinity (inf)"
    raise ValueError(
        f"X holds {kind} for {int(bad.any(axis=1).sum())} of {bad.shape[0]} people, first in feature {name}; "
        "drop those people, or impute the feature in a pipeline before the model."
    )


def check_feature_costs(feature_costs: Any, n_features: int) -> NDArray[np.float64] | None:
    """Positive finite cost per feature (the diagonal of the paper's C), or None for costs of 1."""
    if feature_costs is None:
        return None
    try:
        values = np.asarray(feature_costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"feature_costs must be numbers, one per feature, got {shown(feature_costs)}.") from None
    if values.shape != (n_features,):
        raise ValueError(
            f"feature_costs has shape {values.shape} for {n_features} features; pass one cost per feature."
        )
    if not (np.isfinite(values).all() and (values > 0).all()):
        bad = values[~(np.isfinite(values) & (values > 0))][0]
        raise ValueError(
            f"feature_costs must be positive and finite, got {bad:g}; leave a feature out of the model "
            "rather than giving it a cost of 0 or infinity."
        )
    return values
