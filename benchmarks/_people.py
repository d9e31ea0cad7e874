"""People whose groups have a gap, as several benchmarks read them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equirecourse.datasets import fetch_givemecredit, fetch_propublica, load_credit


def credit(group: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    data = load_credit(paper=True)
    return data.data, np.asarray(data.target), np.asarray(data.sensitive_features[group])


def givemecredit() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    data = fetch_givemecredit(paper=True)
    return data.data, np.asarray(data.target), np.asarray(data.sensitive_features["age_group"])


def propublica(group: str, without: list[str]) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    data = fetch_propublica()
    X = data.data.assign(male=(data.sensitive_features["sex"] == "male").astype(float)).drop(columns=without)
    return X, np.asarray(data.target), np.asarray(data.sensitive_features[group])
