"""Out of core equals in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from equirecourse import EqualRecourseLinear
from equirecourse.equalizers import PartitionedEqualRecourse
from equirecourse.exceptions import ConvergenceWarning, SmallGroupWarning

EXACT = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cholesky"}


def people(n=1500, d=4, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, d))
    X[:, 0] -= 0.6 * group
    X[:, 1] += 0.3 * group
    y = np.where(X @ np.linspace(1.0, 0.2, d) - 0.2 + rng.normal(size=n) * (1 + group) > 0, "yes", "no")
    return X, y, np.array(["a", "b", "c"])[group]


def parts_of(X, y, group, n_parts=4):
    return [(X[i::n_parts], y[i::n_parts], group[i::n_parts]) for i in range(n_parts)]


@pytest.mark.parametrize(
    ("n_groups", "seed", "favorable"), [(2, 0, None), (2, 1, "no"), (2, 4, "yes"), (3, 2, None), (3, 3, "no")]
)
@pytest.mark.parametrize(("C", "kappa"), [(0.01, 3.0), (1.0, 3.0), (1.0, 30.0)])
def test_it_is_the_model_in_memory(n_groups, seed, favorable, C, kappa):
    X, y, group = people(n_groups=n_groups, seed=seed)
    settings = {"kappa": kappa, "favorable_label": favorable}
    found = PartitionedEqualRecourse(C=C, **settings).fit_partitions(parts_of(X, y, group))
    expected = EqualRecourseLinear(LogisticRegression(C=C, **EXACT), **settings).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    assert (found.predict(X) == expected.predict(X)).all()
    assert found.converged_ == expected.converged_
    assert found.rounds_["kind"].tolist() == ["plain", "distribution"]
    for column in ("kind", "changed", "chosen"):
        assert found.rounds_[column].tolist() == expected.rounds_[column].tolist()
    for column in ("gap", "mean_distance", "relative_gap", "accuracy", "acceptance"):
        np.testing.assert_allclose(found.rounds_[column], expected.rounds_[column], atol=1e-6)


def test_it_does_not_matter_how_the_people_are_split():
    X, y, group = people()
    models = [PartitionedEqualRecourse().fit_partitions(parts_of(X, y, group, n)) for n in (1, 3, 50)]
    models.append(PartitionedEqualRecourse().fit(X, y, sensitive_features=group))
    for model in models[1:]:
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-8)


def test_tables_by_the_names_of_their_columns_in_a_list_a_function_and_files(tmp_path):
    X, y, group = people()
    table = pd.DataFrame(X, columns=["p", "q", "r", "s"]).assign(group=group, outcome=y)
    names = {"target": "outcome", "sensitive_features": "group"}
    expected = PartitionedEqualRecourse().fit_partitions(parts_of(X, y, group))
    tables = [table.iloc[:400], table.iloc[400:]]
    listed = PartitionedEqualRecourse().fit_partitions(tables, **names)
    opened = PartitionedEqualRecourse(n_jobs=2).fit_partitions(lambda: iter(tables), **names)
    found = [listed, opened]
    pytest.importorskip("pyarrow.parquet")
    for k, part in enumerate(tables):
        part.to_parquet(tmp_path / f"part-{k}.parquet", index=False)
    places = (str(tmp_path), str(tmp_path / "part-*.parquet"), sorted(tmp_path.iterdir()))
    found += [PartitionedEqualRecourse().fit_partitions(place, **names) for place in places]
    for model in found:
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)
        assert model.feature_names_in_.tolist() == ["p", "q", "r", "s"]
    fewer = PartitionedEqualRecourse(kappa=0).fit_partitions(tables, features=["p", "q"], **names)
    assert fewer.coef_.shape == (1, 2)


def test_a_dask_frame():
    dask = pytest.importorskip("dask.dataframe")
    X, y, group = people(n=600)
    table = pd.DataFrame(X, columns=list("pqrs")).assign(group=group, outcome=y)
    expected = PartitionedEqualRecourse().fit(X, y, sensitive_features=group)
    frame = dask.from_pandas(table, npartitions=3)
    found = PartitionedEqualRecourse().fit_partitions(frame, target="outcome", sensitive_features="group")
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


def test_a_partition_without_one_of_the_groups_or_labels_is_fine():
    X, y, group = people()
    order = np.lexsort((y, group))
    parts = [(X[rows], y[rows], group[rows]) for rows in np.array_split(order, 8)]
    found = PartitionedEqualRecourse().fit_partitions(parts)
    expected = PartitionedEqualRecourse().fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


def test_what_cannot_be_fitted_is_refused_in_a_sentence():
    X, y, group = people(n=200)
    parts = parts_of(X, y, group, 2)
    model = PartitionedEqualRecourse()
    with pytest.raises(ValueError, match="an iterator, which can be read once"):
        model.fit_partitions(iter(parts))
    with pytest.raises(ValueError, match="There is no partition"):
        model.fit_partitions([])
    with pytest.raises(ValueError, match="Partition 1 has 3 features and partition 0 4"):
        model.fit_partitions([parts[0], (X[:, :3], y, group)])
    with pytest.raises(ValueError, match=r"must be \(X, y, sensitive_features\), got DataFrame"):
        model.fit_partitions([pd.DataFrame(X)])
    with pytest.raises(ValueError, match="has no column 'outcome'"):
        model.fit_partitions([pd.DataFrame(X)], target="outcome", sensitive_features="group")
    with pytest.raises(ValueError, match="name those of the groups"):
        model.fit_partitions([pd.DataFrame(X)], target="outcome")
    with pytest.raises(ValueError, match="one group 'a'"):
        model.fit_partitions([(X, y, np.repeat("a", 200))])
    with pytest.raises(ValueError, match="holds NaN"):
        model.fit_partitions([(np.where(X > 2, np.nan, X), y, group)])
    with pytest.raises(ValueError, match="no two groups to compare"):
        PartitionedEqualRecourse(min_rejected=190).fit_partitions(parts)


def test_small_groups_are_named_and_without_kappa_it_is_logistic_regression():
    X, y, group = people()
    group[:4] = "z"
    with pytest.warns(SmallGroupWarning, match="group 'z' has . rejected people"):
        PartitionedEqualRecourse().fit(X, y, sensitive_features=group)
    X, y, group = people()
    plain = PartitionedEqualRecourse(kappa=0).fit(X, y, sensitive_features=group)
    reference = LogisticRegression(**EXACT).fit(X, y)
    np.testing.assert_allclose(plain.coef_, reference.coef_, atol=1e-7)
    assert plain.n_people_ == len(y)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 steps"):
        PartitionedEqualRecourse(kappa=0, max_iter=1).fit(X, y, sensitive_features=group)
