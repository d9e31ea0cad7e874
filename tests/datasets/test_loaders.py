"""The embedded data: what is known of it, and scikit-learn's manners."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from equirecourse.datasets import _german, load_credit, load_german, make_ring_groups, make_tilted_groups
from equirecourse.datasets._bunch import embedded

LOADERS = [load_german, load_credit]


def counts(column):
    return pd.Series(column).value_counts().to_dict()


def test_german_has_700_good_credits_and_310_women():
    german = load_german()
    assert german.data.shape == (1000, 19)
    assert counts(german.target) == {1: 700, -1: 300}
    assert counts(german.sensitive_features["sex"]) == {"male": 690, "female": 310}
    assert counts(german.sensitive_features["age_group"]) == {"25 or over": 851, "under 25": 149}
    assert counts(german.sensitive_features["foreign_worker"]) == {"yes": 963, "no": 37}


def test_german_features_do_not_state_the_sex():
    german = load_german()
    assert "personal_status" not in german.data
    assert "personal_status" in german.sensitive_features
    for column in german.data.select_dtypes("category"):
        assert not german.data[column].astype(str).str.contains("male").any()


def test_german_words_are_ordered_where_they_have_an_order():
    data = load_german().data
    assert data["employment"].cat.ordered
    assert (data["employment"] >= "4-7 years").sum() == 427
    assert data["skill_level"].cat.ordered
    assert not data["purpose"].cat.ordered
    assert data.isna().sum().sum() == 0


def test_embedded_german_is_the_file_of_uci_byte_for_byte():
    assert (
        hashlib.sha256(embedded("german.data.xz")).hexdigest()
        == "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
    )
    assert list(_german._codes().columns)[-1] == "credit"


def test_credit_has_22_percent_defaults():
    credit = load_credit()
    assert credit.data.shape == (30000, 21)
    assert counts(credit.target) == {1: 23364, -1: 6636}
    assert round((credit.target == -1).mean(), 4) == 0.2212
    assert counts(credit.sensitive_features["married"]) == {"not married": 16341, "married": 13659}
    assert counts(credit.sensitive_features["sex"]) == {"female": 18112, "male": 11888}
    assert credit.data["bill_sep"].iloc[0] == 3913
    assert credit.data.filter(like="bill_").max().max() == 1664089  # the number in DESCR


def test_credit_undocumented_codes_are_a_group_of_their_own():
    groups = load_credit().sensitive_features
    assert (groups["marriage"] == "undocumented").sum() == 54
    assert (groups["education"] == "undocumented").sum() == 14 + 280 + 51
    assert groups.isna().sum().sum() == 0


def test_credit_education_grows_with_education():
    credit = load_credit()
    level = credit.data["education"].groupby(credit.sensitive_features["education"]).unique()
    assert {name: list(values) for name, values in level.items()} == {
        "graduate school": [3],
        "university": [2],
        "high school": [1],
        "other": [0],
        "undocumented": [0],
    }


def test_credit_features_leave_out_sex_and_marriage():
    names = load_credit().feature_names
    assert not {"sex", "marriage", "default"} & set(names)
    assert {"limit_balance", "age", "repayment_status_sep", "bill_apr", "paid_may"} <= set(names)


@pytest.mark.parametrize("name", ["german", "credit"])
def test_paper_coding_equals_the_papers_file_in_every_cell(name, read_shared):
    paper = read_shared(f"{name}/paper_{name}.csv.gz")
    ours = {"german": load_german, "credit": load_credit}[name](paper=True)
    assert ours.feature_names == list(paper.columns[2:])
    assert all(dtype.kind == "f" for dtype in ours.data.dtypes)
    np.testing.assert_array_equal(ours.data.to_numpy(), paper.iloc[:, 2:].to_numpy(dtype=float))
    np.testing.assert_array_equal(ours.target, paper.iloc[:, 0])
    np.testing.assert_array_equal(ours.sensitive_features["paper"], paper.iloc[:, 1])
    assert ours.favorable_label == 1


def test_german_words_equal_the_decoded_file(read_shared):
    decoded = read_shared("german/german_decoded.csv.gz")
    german = load_german()
    for column in german.data:
        assert list(german.data[column].astype(object)) == list(decoded[column].astype(object)), column
    assert list(german.sensitive_features["personal_status"]) == list(decoded["personal_status"])
    assert list(german.sensitive_features["sex"]) == list(decoded["sex"])
    np.testing.assert_array_equal(german.target == 1, decoded["credit"] == "good")


def test_credit_raw_equals_the_raw_file(read_shared):
    raw = read_shared("credit/credit_raw.csv.gz")
    credit = load_credit()
    same = credit.data.drop(columns="education")
    kept = raw.drop(columns=["ID", "SEX", "EDUCATION", "MARRIAGE", raw.columns[-1]])
    np.testing.assert_array_equal(same.to_numpy(), kept.to_numpy())


@pytest.mark.parametrize("paper", [False, True])
@pytest.mark.parametrize("load", LOADERS)
def test_bunch_has_scikit_learns_fields(load, paper):
    bunch = load(paper=paper)
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert list(bunch.frame.columns) == [*bunch.feature_names, bunch.target.name]
    assert len(bunch.sensitive_features) == len(bunch.data) == len(bunch.target)
    assert len(bunch.target_names) == 2
    assert set(bunch.target) == {-1, 1}
    assert bunch.target.dtype == np.int64
    assert "CC BY 4.0" in bunch.DESCR
    assert ("paper" in bunch.sensitive_features) == paper


@pytest.mark.parametrize("load", [*LOADERS, make_tilted_groups, make_ring_groups])
def test_as_frame_false_gives_arrays(load):
    bunch = load(as_frame=False)
    assert isinstance(bunch.data, np.ndarray)
    assert isinstance(bunch.target, np.ndarray)
    assert bunch.frame is None
    assert isinstance(bunch.sensitive_features, pd.DataFrame)
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))


def test_german_in_words_is_an_object_array_and_the_papers_is_float():
    assert load_german(as_frame=False).data.dtype == object
    assert load_german(as_frame=False, paper=True).data.dtype == np.float64


@pytest.mark.parametrize("load", LOADERS)
def test_return_X_y_gives_the_same_data(load):
    X, y = load(return_X_y=True)
    bunch = load()
    pd.testing.assert_frame_equal(X, bunch.data)
    pd.testing.assert_series_equal(y, bunch.target)


@pytest.mark.parametrize("load", LOADERS)
def test_changing_the_result_does_not_change_the_next_one(load):
    first = load()
    before = load().target.copy()
    first.target[:] = 0
    first.data.iloc[:, 0] = first.data.iloc[0, 0]
    pd.testing.assert_series_equal(load().target, before)


@pytest.mark.parametrize("load", LOADERS)
def test_groups_are_readable_words(load):
    groups = load().sensitive_features
    for column in groups:
        assert all(isinstance(value, str) for value in groups[column].unique())
