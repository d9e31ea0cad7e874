"""A streamed audit says what the audit of the same people says, however they are divided, wherever they come from."""

import json

import dask.dataframe as dd
import joblib
import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse import ActionSet, audit, audit_partitions, audit_schema, read_audit
from equirecourse.exceptions import UndefinedRecourseWarning
from equirecourse.metrics import RELATIVE_ERROR

# Some of these people have no recourse, which every audit of them warns of; tests/audit/test_audit.py is about that.
pytestmark = pytest.mark.filterwarnings("ignore:Of .* have no recourse:equirecourse.exceptions.NoRecourseWarning")

FEATURES = ["income", "debts", "age", "job"]
SKETCHED = ["median", "q10", "q25", "q75", "q90"]
DRAWN = ["mean_low", "mean_high"]
QUICK = {"n_boot": 50, "n_permutations": 50}


def make_people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"income": rng.normal(30, 8, n), "debts": rng.integers(0, 8, n), "age": rng.normal(40, 9, n)})
    people["job"] = rng.choice(["clerk", "nurse", "smith"], n)
    people["sex"] = rng.choice(["f", "m"], n)
    people["region"] = rng.choice(["north", "south", "west"], n)
    people.loc[::29, "region"] = "unknown"
    score = people.income / 8 - people.debts / 2 + (people.job == "nurse") - 0.8 * (people.sex == "f")
    people["decision"] = np.where(score + rng.normal(size=n) > score.median(), "yes", "no")
    return people


@pytest.fixture(scope="module")
def people():
    return make_people()


@pytest.fixture(scope="module")
def model(people):
    steps = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    return make_pipeline(steps, LogisticRegression()).fit(people[FEATURES], people["decision"])


@pytest.fixture(scope="module")
def actions(people):
    # Income that can hardly rise: some people have no way to a yes.
    return ActionSet.from_frame(people[FEATURES], immutable=["age", "job", "debts"], bounds={"income": (0, 45)})


@pytest.fixture(scope="module")
def whole(people, model, actions):
    return audit(
        model, people[FEATURES], people["decision"], sensitive_features=people[["sex", "region"]], actions=actions,
        intersections=True, n_flipsets=0, **QUICK,
    )  # fmt: skip


@pytest.fixture(scope="module")
def streamed(people, model, actions):
    def stream(partitions, **settings):
        given = {"sensitive_features": ["sex", "region"], "target": "decision", "actions": actions,
                 **QUICK, **settings}  # fmt: skip
        return audit_partitions(model, partitions, **given)

    return stream


@pytest.fixture(scope="module")
def together(streamed, people):
    return streamed([people])


def cut(people, size):
    return (people[i : i + size] for i in range(0, len(people), size))


def test_a_streamed_audit_says_what_the_audit_of_everybody_says(whole, streamed, people):
    found = streamed(cut(people, 130), intersections=True)
    assert found.document["counts"] == whole.document["counts"]
    assert found.document["counts"]["without_recourse"] > 0
    assert found.document["model"] == pytest.approx(whole.document["model"])
    expected, table = whole.by_group, found.by_group
    assert table.index.tolist() == expected.index.tolist()
    assert table.columns.tolist() == expected.columns.tolist()
    exact = [column for column in expected.columns if column not in [*SKETCHED, *DRAWN]]
    np.testing.assert_allclose(table[exact].astype(float), expected[exact].astype(float), rtol=1e-9)
    np.testing.assert_allclose(table[SKETCHED], expected[SKETCHED], rtol=RELATIVE_ERROR + 1e-12)
    for ours, theirs in zip(found.document["attributes"], whole.document["attributes"], strict=True):
        assert ours["gap"] == pytest.approx(theirs["gap"], rel=1e-9)
        assert ours["state"] == theirs["state"]
        assert ours["furthest"] == theirs["furthest"]
        parts = [{part["feature"]: part["difference"] for part in one["contributions"]} for one in (ours, theirs)]
        assert parts[0] == pytest.approx(parts[1], rel=1e-9)
        assert set(ours) == set(theirs)
        for mine, other in zip(ours["by_group"], theirs["by_group"], strict=True):
            np.testing.assert_allclose(mine["curve"], other["curve"], rtol=RELATIVE_ERROR + 1e-12)
            assert mine["contributions"] == pytest.approx(other["contributions"], rel=1e-9)


def test_the_document_keeps_to_the_schema_and_the_report_is_drawn(together, tmp_path):
    found = together
    jsonschema.validate(found.document, audit_schema())
    found.to_json(tmp_path / "audit.json")
    assert read_audit(tmp_path / "audit.json") == found.document
    assert json.loads(json.dumps(found.document)) == found.document
    found.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert found.verdicts["sex"] in page
    assert "nobody was kept" in page


def test_nobody_is_kept_and_that_is_said(together, whole):
    found = together
    assert found.document["people"]["rows"] == []
    with pytest.raises(ValueError, match="no table of people; use audit on a sample"):
        _ = found.people
    with pytest.raises(ValueError, match="no comparison of the same people"):
        found.compared_with(whole)
    assert repr(found).startswith("sex: ")


def write(people, folder, files=2, rows=200):
    folder.mkdir()
    for i, some in enumerate(np.array_split(np.arange(len(people)), files)):
        people.iloc[some].to_parquet(folder / f"part-{i}.parquet", row_group_size=rows)
    return folder


@pytest.mark.parametrize("kind", ["folder", "glob", "list", "dataset", "dask", "polars", "arrow", "two threads"])
def test_wherever_people_come_from(streamed, together, people, tmp_path, kind):
    settings = {"batch_size": 120} if kind in ("folder", "glob", "list", "dataset", "two threads") else {}
    folder = write(people, tmp_path / "people")
    source = {
        "folder": folder,
        "glob": str(tmp_path / "people" / "part-*.parquet"),
        "list": sorted(folder.iterdir()),
        "dataset": pyarrow.dataset.dataset(folder),
        "dask": dd.from_pandas(people, npartitions=4, sort=False),
        "polars": (pl.from_pandas(some) for some in cut(people, 250)),
        "arrow": (pa.Table.from_pandas(some) for some in cut(people, 250)),
        "two threads": folder,
    }[kind]
    with joblib.parallel_config("threading", n_jobs=2 if kind == "two threads" else 1):
        found = streamed(source, **settings)
    assert found.document["counts"] == together.document["counts"]
    np.testing.assert_allclose(found.by_group.astype(float), together.by_group.astype(float), rtol=1e-9)
    for ours, theirs in zip(found.document["attributes"], together.document["attributes"], strict=True):
        assert ours["p_value"] == theirs["p_value"]
        assert ours["noise_floor"] == pytest.approx(theirs["noise_floor"], rel=1e-9)
        assert ours["interval"] == pytest.approx(theirs["interval"], rel=1e-9)


def test_columns_that_folders_are_named_after(streamed, people, tmp_path):
    table = pa.Table.from_pandas(people.dropna(), preserve_index=False)
    pyarrow.dataset.write_dataset(table, tmp_path, format="parquet", partitioning=["sex"], partitioning_flavor="hive")
    found = streamed(tmp_path)
    expected = streamed([people.dropna()])
    np.testing.assert_allclose(found.by_group.astype(float), expected.by_group.astype(float), rtol=1e-9)


def test_parts_without_people_and_parts_without_rejected(streamed, together, people, model):
    accepted = model.predict(people[FEATURES]) == "yes"
    found = streamed([people[:0], people[accepted], people[:0], people[~accepted]])
    np.testing.assert_allclose(found.by_group.astype(float), together.by_group.astype(float), rtol=1e-9)
    assert found.document["settings"]["partitions"] == 3  # those before the first person are not counted


def test_the_same_seed_gives_the_same_document(streamed, people):
    first, second = (streamed(cut(people, 300), random_state=5).document for _ in range(2))
    assert first == second


def test_what_people_can_change_is_inferred_from_the_first_part(people, model):
    found = audit_partitions(model, cut(people, 300), sensitive_features="sex", **QUICK)
    expected = ActionSet.from_frame(people[FEATURES][:300])
    assert [row["cost"] for row in found.document["actions"]["features"]] == [feature.cost for feature in expected]
    assert any("inferred from the first part" in note for note in found.document["notes"])
    assert found.document["model"]["accuracy"] is None
    assert found.document["settings"]["unit"] == "standard deviations"


def test_a_search_starts_from_the_background(people):
    features = ["income", "debts", "age"]
    model = KNeighborsClassifier(15).fit(people[features], people["decision"])
    pool = people[features][:100]
    given = {"actions": ActionSet.free(people[features], costs="unit"), "background": pool, **QUICK}
    found = audit_partitions(
        model, cut(people[:60], 30), sensitive_features=["sex"], target="decision", features=features, **given
    )
    assert found.document["settings"]["method"] == "search"
    assert found.document["counts"]["exact"] == 0
    assert 0 < found.frames["sex"].by_group["mean"].min() < np.inf


def test_notes_with_numbers_are_told_once(people, model):
    actions = ActionSet.from_frame(people[FEATURES], immutable=["age"], bounds={"income": (25.0, 60.0)})
    found = audit_partitions(model, cut(people[:120], 40), sensitive_features="sex", actions=actions, **QUICK)
    notes = [note for note in found.document["notes"] if "start outside the limits" in note]
    assert len(notes) == 1
    assert notes[0].startswith("In 3 of the parts, first as follows: ")


def test_a_group_without_rejected_people_is_undefined(people, model):
    accepted = model.predict(people[FEATURES]) == "yes"
    some = people[(people["sex"] == "f") | accepted]
    with pytest.warns(UndefinedRecourseWarning, match="group 'm' has 0 rejected people"):
        found = audit_partitions(model, cut(some, 300), sensitive_features="sex", **QUICK)
    assert np.isnan(found.frames["sex"].gap)
    assert found.document["attributes"][0]["state"] == "cannot tell"
    jsonschema.validate(found.document, audit_schema())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"partitions": []}, "no people"),
        ({"partitions": 7}, "must be a Dask DataFrame, a folder or glob of Parquet files"),
        ({"partitions": [np.zeros((3, 2))]}, "Each partition must be a frame with named columns"),
        ({"partitions": "nowhere/*.parquet"}, "There is no file 'nowhere/\\*.parquet'"),
        ({"sensitive_features": "gender"}, "no column 'gender'"),
        ({"target": "outcome"}, "no column 'outcome'"),
        ({"target": "job"}, "The column 'job' has the label 'clerk', which the model does not know"),
        ({"features": ["income", "wage"]}, "no column 'wage'"),
        ({"sensitive_features": "person"}, "more than 1000 groups"),
        ({"sensitive_features": "country"}, "1 group \\('here'\\) in the column 'country'"),
        ({"sensitive_features": ["sex", "sex"]}, "names a column twice: \\['sex', 'sex'\\]; name each once"),
        ({"sensitive_features": "club"}, "sensitive_features is missing for 9 of 1200 people; drop them"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
    ],
)
def test_bad_input_gets_one_sentence(people, model, actions, change, sentence):
    table = pd.concat([people] * 2).assign(person=np.arange(2 * len(people)), country="here", club="golf")
    table.iloc[:9, table.columns.get_loc("club")] = None
    given = {"partitions": [table], "sensitive_features": "sex", "actions": actions, **QUICK, **change}
    with pytest.raises(ValueError, match=sentence):
        audit_partitions(model, given.pop("partitions"), **given)


def test_a_folder_without_parquet(model, tmp_path):
    with pytest.raises(ValueError, match="has no Parquet files"):
        audit_partitions(model, tmp_path, sensitive_features="sex")


def test_a_later_part_with_other_columns(people, model, actions):
    with pytest.raises(ValueError, match="A partition has no column 'age'"):
        audit_partitions(model, [people, people.drop(columns="age")], sensitive_features="sex", actions=actions)
