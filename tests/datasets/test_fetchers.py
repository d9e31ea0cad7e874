"""The fetched data, read from EQUIRECOURSE_DATA, and what happens when it is missing or damaged."""

import gzip
import shutil

import numpy as np
import pandas as pd
import pytest

from equirecourse.datasets import _givemecredit, fetch_givemecredit, fetch_propublica
from equirecourse.datasets._registry import GIVEMECREDIT, PROPUBLICA

FETCHERS = {"givemecredit": fetch_givemecredit, "propublica": fetch_propublica}


@pytest.fixture
def need_shared(shared_data):
    for remote in (GIVEMECREDIT, PROPUBLICA):
        if not (shared_data / remote.shared_path).is_file():
            pytest.skip(f"EQUIRECOURSE_DATA has no {remote.shared_path}")
    return shared_data


@pytest.mark.parametrize("name", FETCHERS)
def test_paper_coding_equals_the_papers_file_in_every_cell(name, need_shared, read_shared):
    paper = read_shared(f"{name}/paper_{name}.csv.gz")
    ours = FETCHERS[name](paper=True, download_if_missing=False)
    assert ours.feature_names == list(paper.columns[2:])
    assert all(dtype.kind == "f" for dtype in ours.data.dtypes)
    np.testing.assert_array_equal(ours.data.to_numpy(), paper.iloc[:, 2:].to_numpy(dtype=float))
    np.testing.assert_array_equal(ours.target, paper.iloc[:, 0])
    np.testing.assert_array_equal(ours.sensitive_features["paper"], paper.iloc[:, 1])


def test_propublica_natural_target_has_the_opposite_sign_of_the_papers(need_shared):
    natural, paper = fetch_propublica(), fetch_propublica(paper=True)
    np.testing.assert_array_equal(natural.target, -paper.target)
    assert natural.favorable_label == 1
    assert paper.favorable_label == -1
    assert natural.target_names == ["reoffends", "does not reoffend"]
    assert paper.target_names == ["does not reoffend", "reoffends"]


def test_propublica_facts(need_shared):
    people = fetch_propublica()
    assert people.feature_names == [
        *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "felony")
    ]
    assert (people.target == 1).sum() == 3358
    groups = people.sensitive_features
    assert (groups["sex"] == "female").sum() == 1173
    assert (groups["african_american"] == "African-American").sum() == 3173
    assert (groups["age_group"] == "under 25").sum() == 1347
    assert groups["race"].nunique() == 6


def test_propublica_filter_equals_the_original_file(need_shared, read_shared):
    original = read_shared("propublica/propublica_original.csv.gz")
    people = fetch_propublica()
    columns = [name for name in people.feature_names if name != "felony"]
    np.testing.assert_array_equal(people.data[columns], original[columns])
    np.testing.assert_array_equal(people.data["felony"] == 1, original["c_charge_degree"] == "F")
    assert list(people.sensitive_features["race"]) == list(original["race"])


def test_givemecredit_facts(need_shared):
    complete = fetch_givemecredit()
    assert complete.data.shape == (120269, 10)
    assert (complete.target == -1).sum() == 8357
    assert (complete.sensitive_features["age_group"] == "under 35").sum() == 16464
    everybody = fetch_givemecredit(handle_missing="keep")
    assert everybody.data.shape == (150000, 10)
    assert round((everybody.target == -1).mean(), 5) == 0.06684
    assert set(everybody.data.columns[everybody.data.isna().any()]) == {"monthly_income", "dependents"}
    X, y = fetch_givemecredit(return_X_y=True, as_frame=False)
    assert X.dtype == np.float64
    assert len(X) == len(y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"handle_missing": "impute"}, "handle_missing='impute' is unknown; pass 'drop' or 'keep'"),
        ({"handle_missing": "keep", "paper": True}, "does not go with paper=True"),
    ],
)
def test_givemecredit_refuses_what_it_cannot_do(arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch_givemecredit(**arguments)


def test_givemecredit_reads_openmls_arff_like_kaggles_csv(need_shared, cache):
    raw = pd.read_csv(need_shared / GIVEMECREDIT.shared_path)
    cache.mkdir()
    with (cache / "GiveMeSomeCredit.arff").open("w") as file:
        file.write("@RELATION GiveMeSomeCredit\n\n")
        file.writelines(f"@ATTRIBUTE {name} REAL\n" for name in _givemecredit.COLUMNS)
        file.write("@ATTRIBUTE FinancialDistressNextTwoYears {No, Yes}\n\n@DATA\n")
        rows = raw[list(_givemecredit.COLUMNS)].assign(y=np.where(raw["SeriousDlqin2yrs"] == 1, "Yes", "No"))
        rows.to_csv(file, index=False, header=False, na_rep="?")
    ours = fetch_givemecredit(paper=True, download_if_missing=False)
    complete = raw.dropna()
    np.testing.assert_array_equal(ours.data, complete[ours.feature_names])
    np.testing.assert_array_equal(ours.target, 1 - 2 * complete["SeriousDlqin2yrs"])
    assert (cache / "GiveMeSomeCredit.arff.sha256").is_file()


def test_a_file_put_into_the_cache_by_hand_is_recognised(need_shared, cache):
    cache.mkdir()
    with (
        gzip.open(need_shared / PROPUBLICA.shared_path) as source,
        (cache / "compas-scores-two-years.csv").open("wb") as copy,
    ):
        shutil.copyfileobj(source, copy)
    assert len(fetch_propublica(download_if_missing=False).data) == 6167


@pytest.mark.parametrize("name", FETCHERS)
def test_missing_data_is_one_sentence_with_the_way_out(name, cache):
    with pytest.raises(FileNotFoundError) as caught:
        FETCHERS[name](download_if_missing=False)
    message = str(caught.value)
    assert str(cache) in message
    assert "EQUIRECOURSE_DATA" in message
    assert "data_home" in message
    assert "https://" in message
    assert "\n" not in message
    assert not cache.exists()  # looking is not writing


@pytest.mark.parametrize("name", FETCHERS)
def test_a_damaged_file_in_the_shared_folder_is_refused(name, cache, tmp_path, monkeypatch):
    remote = {"givemecredit": GIVEMECREDIT, "propublica": PROPUBLICA}[name]
    path = tmp_path / remote.shared_path
    path.parent.mkdir()
    path.write_bytes(b"not the data")
    monkeypatch.setenv("EQUIRECOURSE_DATA", str(tmp_path))
    with pytest.raises(OSError, match="is expected, so it is damaged or another version") as caught:
        FETCHERS[name]()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "filename", "content", "reason"),
    [
        ("givemecredit", "cs-training.csv", "a,b\n1,2\n", "it has no column 'SeriousDlqin2yrs'"),
        ("givemecredit", "cs-training.csv.gz", "not gzip", "Not a gzipped file"),
        ("givemecredit", "GiveMeSomeCredit.arff", "", "is not the file it should be"),
        ("propublica", "compas-scores-two-years.csv", "", "No columns to parse"),
        ("propublica", "compas-scores-two-years.csv", "sex,age\nMale,3\n", "it has no column 'age_cat'"),
    ],
)
def test_a_wrong_file_in_the_cache_is_one_sentence(name, filename, content, reason, cache):
    cache.mkdir()
    (cache / filename).write_text(content)
    with pytest.raises(OSError, match=reason) as caught:
        FETCHERS[name]()
    assert filename in str(caught.value)
    assert "delete it" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (cache / f"{filename}.sha256").exists()


def test_rows_that_do_not_fit_the_known_facts_are_refused(cache):
    cache.mkdir()
    columns = ["SeriousDlqin2yrs", *_givemecredit.COLUMNS]
    pd.DataFrame(np.ones((5, len(columns))), columns=columns).to_csv(cache / "cs-training.csv", index=False)
    with pytest.raises(OSError, match="it has 5 rows, not 150,000"):
        fetch_givemecredit()
