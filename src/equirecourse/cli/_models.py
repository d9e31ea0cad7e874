"""Models that the command line fits, saves and loads."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from equirecourse._files import write_beside
from equirecourse.cli._trusted import UntrustedError, check_loaded, check_schema

__all__ = ["learner", "load_model", "save_model"]

_MANY_PEOPLE = 100_000  # as in EqualRecourseBoosting
_MOST_RATIO, _MOST_UNPACKED = 100, 100_000_000  # no archive of a fitted model comes near either


def learner(kind: str, X: pd.DataFrame) -> Pipeline:
    """A learner behind what the columns need: filling in, encoding, scaling.

    Parameters
    ----------
    kind : {"logistic", "boosting", "svm"}
        Logistic regression, LightGBM or a linear support vector machine.
    X : DataFrame
        People, with labels as categories.

    Returns
    -------
    Pipeline
        Not fitted.
    """
    gaps = bool(X.isna().any().any())
    number: Any = StandardScaler()
    label: Any = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    if kind == "boosting":  # trees need no scale, and know what to do where a number is missing
        number = "passthrough"
    elif gaps:
        number = make_pipeline(SimpleImputer(strategy="median"), number)
    if gaps:
        label = make_pipeline(SimpleImputer(strategy="most_frequent"), label)
    columns = make_column_transformer(
        (label, make_column_selector(dtype_include="category")), (number, make_column_selector(dtype_include="number"))
    )
    return Pipeline([("columns", columns), ("model", _last(kind, len(X)))])


def _last(kind: str, n_people: int) -> Any:
    if kind == "logistic":
        # Newton steps in a few dozen columns get to the optimum in a tenth of the time of the default solver.
        return LogisticRegression(class_weight="balanced", solver="newton-cholesky", max_iter=1000)
    if kind == "svm":
        return LinearSVC(class_weight="balanced", dual=False, max_iter=10_000)
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise ValueError('--learner boosting needs LightGBM; run pip install "equirecourse[boost]".') from None
    # Threads that share a busy machine wait for each other; few people do not need them.
    threads = 1 if n_people < _MANY_PEOPLE else None
    return LGBMClassifier(n_estimators=100, max_depth=4, class_weight="balanced", verbose=-1, n_jobs=threads)


def save_model(model: Any, path: Path) -> None:
    """Save a model with skops, whole or not at all."""
    from skops import io

    write_beside(path, io.dumps(model))


def load_model(path: Path, trust: bool) -> Any:
    """Load a model; without consent only from a file that runs no code.

    Parameters
    ----------
    path : Path
        A file of skops, or with consent a pickle.
    trust : bool
        The consent: whatever the file holds may run.

    Returns
    -------
    object
        The model.

    Raises
    ------
    ValueError
        One sentence on what the file holds.
    """
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    if path.suffix.lower() in (".pkl", ".pickle", ".joblib"):
        if not trust:
            raise ValueError(
                f"{path.name} is a pickle, which can run any code; load it with --trust if you know its author."
            )
        import joblib

        try:
            model = joblib.load(path)
        except Exception as error:
            raise ValueError(f"{path.name} is not a model that joblib can load: {error}.") from None
    else:
        model = _load_skops(path, trust)
    if not callable(getattr(model, "predict", None)):
        raise ValueError(f"{path.name} holds a {type(model).__name__}, which does not predict; save a fitted model.")
    return model


def _load_skops(path: Path, trust: bool) -> Any:
    from skops import io

    # Read once: what is checked is what is loaded, even if somebody writes to the file meanwhile.
    content = path.read_bytes()
    try:
        with ZipFile(BytesIO(content)) as archive:
            _check_size(archive, len(content))
            schema = json.loads(archive.read("schema.json"))
        if not trust:
            check_schema(schema)
        model = io.loads(content, trusted=io.get_untrusted_types(data=content))
        if not trust:
            check_loaded(model)
    except UntrustedError as error:
        raise ValueError(
            f"{path.name} holds {error}, which is not on the list of what runs no code; load it with --trust if you "
            "know its author."
        ) from None
    except (BadZipFile, KeyError):
        raise ValueError(f"{path.name} is not a model saved with skops.") from None
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ValueError(f"{path.name} is not a model that skops can load: {reason}.") from None
    return model


def _check_size(archive: ZipFile, size: int) -> None:
    """Refuse an archive that unpacks to far more than it is: skops does not compress, and others do so tenfold."""
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > max(_MOST_UNPACKED, _MOST_RATIO * size):
        raise UntrustedError(f"{unpacked:,} bytes in an archive of {size:,}")
