"""Looking through pipelines: what a trace says about a column is what moving the column does to the model's inputs."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from equirecourse.recourse._trace import Column, Opaque, trace

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=80),
        "ab": RNG.exponential(size=80),
        "b": RNG.integers(0, 9, 80).astype(float),
        "c": RNG.choice(["x", "y", "z"], 80),
        "c_x": RNG.choice(["u", "v"], 80),
    }
)
Y = (FRAME["a"] + FRAME["b"] / 4 > 1).astype(int)
NUMBERS = ["a", "ab", "b"]
WORDS = ["c", "c_x"]

STEPS = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "maxabs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "clipped": MinMaxScaler(clip=True),
    "imputer": SimpleImputer(),
    "power": PowerTransformer(),
    "quantile": QuantileTransformer(n_quantiles=20),
    "bins": KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "one-hot bins": KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    "spline": SplineTransformer(4),
    "identity": FunctionTransformer(),
    "best": SelectKBest(k=2),
    "variance": VarianceThreshold(),
    "pca": PCA(2),
    "chain": make_pipeline(StandardScaler(), RobustScaler()),
    "union": FeatureUnion([("one", StandardScaler()), ("two", PowerTransformer())]),
}


def dense(values):
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)


def moved_inputs(step, frame, name, values):
    """What the step makes of the first person with one column set to each of the values."""
    rows = pd.concat([frame.head(1)] * len(values), ignore_index=True)
    rows[name] = values
    return dense(step.transform(rows))


def check(step, frame):
    columns = trace(step, [Column(frozenset([name])) for name in frame.columns], list(frame.columns))
    assert len(columns) == dense(step.transform(frame)).shape[1]
    for name in frame.columns:
        values = np.sort(frame[name].unique())
        seen = moved_inputs(step, frame, name, values)
        for place, column in enumerate(columns):
            if name not in column.sources:
                assert np.ptp(seen[:, place]) == 0, f"{name} moves input {place}"
            elif column.shape in ("same", "affine"):
                slope, shift = np.polyfit(values, seen[:, place], 1)
                np.testing.assert_allclose(seen[:, place], slope * values + shift, atol=1e-8)
                if column.shape == "same":
                    np.testing.assert_allclose(seen[:, place], values)
            elif column.shape == "monotone":
                assert (np.diff(seen[:, place]) >= -1e-12).all() or (np.diff(seen[:, place]) <= 1e-12).all()
    return columns


@pytest.mark.parametrize("name", STEPS)
def test_numbers(name):
    frame = FRAME[NUMBERS]
    columns = check(STEPS[name].fit(frame, Y), frame)
    assert set().union(*(column.sources for column in columns)) <= set(NUMBERS)


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first"),
        OneHotEncoder(min_frequency=30),
        OrdinalEncoder(),
        TargetEncoder(target_type="binary", random_state=0),
    ],
    ids=["one-hot", "drop first", "infrequent", "ordinal", "target"],
)
def test_labels_even_where_one_name_begins_like_another(step):
    check(step.fit(FRAME[WORDS], Y), FRAME[WORDS])


@pytest.mark.parametrize(
    "step",
    [
        make_column_transformer((OneHotEncoder(), WORDS), remainder=StandardScaler()),
        make_column_transformer((RobustScaler(), make_column_selector(dtype_include=float)), (OneHotEncoder(), WORDS)),
        make_column_transformer((StandardScaler(), [2, 0]), ("passthrough", slice(1, 2)), remainder="drop"),
        ColumnTransformer([("n", make_pipeline(SimpleImputer(), PCA(2)), NUMBERS), ("w", OneHotEncoder(), ["c"])]),
        make_pipeline(make_column_transformer((OneHotEncoder(), WORDS), remainder="passthrough"), MaxAbsScaler()),
    ],
    ids=["remainder", "selector", "places", "nested", "scaled after"],
)  # fmt: skip
def test_column_transformers(step):
    check(step.fit(FRAME, Y), FRAME)


@pytest.mark.parametrize(
    "step",
    [Normalizer(), PolynomialFeatures(), FunctionTransformer(np.log1p)],
    ids=["normalizer", "products", "function"],
)
def test_other_steps_say_that_they_cannot_be_looked_through(step):
    frame = FRAME[["ab", "b"]]
    with pytest.raises(Opaque, match=f"{type(step).__name__} cannot be looked through"):
        trace(step.fit(frame), [Column(frozenset([name])) for name in frame.columns], list(frame.columns))
