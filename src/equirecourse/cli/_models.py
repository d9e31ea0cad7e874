"""Models that the command line fits, saves and loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse._files import write_beside
from equirecourse.equalize import EqualRecourseLinear

__all__ = ["load_model", "logistic", "save_model"]


def logistic(X: pd.DataFrame, favorable: Any, **equalizer: Any) -> Pipeline:
    """Logistic regression with equal recourse behind what the columns need: filling in, encoding, scaling."""
    gaps = bool(X.isna().any().any())
    number = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()) if gaps else StandardScaler()
    label: Any = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    if gaps:
        label = make_pipeline(SimpleImputer(strategy="most_frequent"), label)
    columns = make_column_transformer(
        (label, make_column_selector(dtype_include="category")), (number, make_column_selector(dtype_include="number"))
    )
    # Newton steps in a few dozen columns get to the optimum in a tenth of the time of the default solver.
    learner = LogisticRegression(class_weight="balanced", solver="newton-cholesky", max_iter=1000)
    model = EqualRecourseLinear(learner, favorable_label=favorable, **equalizer)
    return Pipeline([("columns", columns), ("model", model)])


def save_model(model: Any, path: Path) -> None:
    """Save a model with skops, whole or not at all."""
    from skops import io

    write_beside(path, io.dumps(model))


def load_model(path: Path, trust: bool) -> Any:
    """Load a model; nothing is unpickled without consent."""
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    if path.suffix.lower() in (".pkl", ".pickle", ".joblib"):
        if not trust:
            raise ValueError(
                f"{path.name} is a pickle, which can run any code; load it with --trust if you know its author."
            )
        import joblib

        try:
            return joblib.load(path)
        except Exception as error:
            raise ValueError(f"{path.name} is not a model that joblib can load: {error}.") from None
    from skops import io

    try:
        unknown = io.get_untrusted_types(file=path)
    except Exception:
        raise ValueError(f"{path.name} is not a model saved with skops.") from None
    strangers = [name for name in unknown if not name.startswith(("equirecourse.", "sklearn.", "numpy.", "pandas."))]
    if strangers and not trust:
        raise ValueError(f"{path.name} holds the type {strangers[0]}, which nobody vouches for; load it with --trust.")
    return io.load(path, trusted=unknown)
