"""Models in files: ordinary ones load as they were saved, and no file runs code unless --trust is given."""

import contextlib
import io as streams
import json
import time
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from skops import io
from tests.cli._hostile_files import HOSTILE, LIVE, holding, node

from equirecourse import ActionSet
from equirecourse.cli import main
from equirecourse.cli._models import learner, load_model, save_model
from equirecourse.equalizers import (
    EqualRecourseBoosting,
    EqualRecourseLinear,
    EqualRecourseSVC,
    RecourseReweighting,
)


@pytest.fixture
def witness(tmp_path):
    """A file that is there once code has run."""
    return tmp_path / "ran.npy"


def written(content, folder):
    path = folder / "model.skops"
    path.write_bytes(content)
    return path


def ask(model):
    """Do with a model what a command does."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    for method in ("get_params", "__sklearn_tags__"):
        getattr(model, method)()
    repr(model)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            getattr(model, method)(X)


def test_at_least_forty_files_are_hostile():
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_refused_and_runs_nothing(name, witness, tmp_path):
    path = written(HOSTILE[name](witness), tmp_path)
    before = set(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"^model\.skops holds .*load it with --trust if you know its author\.$"):
        load_model(path, trust=False)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIVE)
def test_hostile_file_is_hostile(name, witness, tmp_path):
    """The same files with consent: they run code, so that the test above says something."""
    path = written(LIVE[name](witness), tmp_path)
    with contextlib.suppress(Exception):  # it has run by then
        ask(load_model(path, trust=True))
    end = time.monotonic() + 10
    while not witness.exists() and time.monotonic() < end:
        time.sleep(0.01)  # a process of its own takes a moment
    assert witness.exists()


@pytest.mark.parametrize("command", ["audit", "flipset"])
def test_command_refuses_a_hostile_file_in_one_sentence(command, witness, tmp_path, capsys, monkeypatch):
    path = written(HOSTILE["CountVectorizer(analyzer=measure)"](witness), tmp_path)
    person = ["--person", "4"] if command == "flipset" else []
    monkeypatch.setattr("sys.argv", ["equirecourse", command, "--dataset", "german", *person, "--model", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("equirecourse: model.skops holds ")
    assert error.count("\n") == 1
    assert not witness.exists()


# --- files that are damaged ------------------------------------------------------------------------------------------


def people(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=["income", "debts", "age"])
    frame["housing"] = pd.Categorical(rng.choice(["rent", "own", "free"], n))
    outcome = frame.income - frame.debts + (frame.housing == "own") + rng.normal(size=n) / 2 > 0.3
    return frame, np.where(outcome, "yes", "no"), rng.choice(["a", "b"], n)


def wild_tree(model, **fields):
    """The file of a model with a tree whose nodes were overwritten."""
    content = io.dumps(model)
    result = streams.BytesIO()
    with zipfile.ZipFile(streams.BytesIO(content)) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if name.endswith(".npy"):
                array = np.load(streams.BytesIO(raw))
                if array.dtype.names and set(fields) <= set(array.dtype.names):
                    for field, wild in fields.items():
                        array[field][0] = wild
                    buffer = streams.BytesIO()
                    np.save(buffer, array)
                    raw = buffer.getvalue()
            new.writestr(name, raw)
    return result.getvalue()


def wild_matrix():
    """A model with a sparse matrix whose columns lie far outside."""
    buffer = streams.BytesIO()
    parts = {"indices": [10**6], "indptr": [0, 1], "data": [1.0], "shape": [1, 2], "format": b"csr"}
    np.savez(buffer, **{name: np.array(part) for name, part in parts.items()})
    matrix = node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="wild.npz")
    return holding(matrix, **{"wild.npz": buffer.getvalue()})


def wild_vectors(**attributes):
    model = SVC().fit(NUMBERS, OUTCOME)
    vars(model).update(attributes)
    return io.dumps(model)


def deep():
    """JSON deeper than Python's stack."""
    return '{"content":' * 100_000 + "1" + "}" * 100_000


def bomb():
    result = streams.BytesIO()
    with zipfile.ZipFile(result, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", json.dumps({"protocol": 2}) + " " * 150_000_000)
    return result.getvalue()


def zipped(**entries):
    result = streams.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return result.getvalue()


NUMBERS = people()[0][["income", "debts", "age"]].to_numpy()
OUTCOME = people()[1]
DAMAGED = {
    "no archive": lambda: b"PK, but no more",
    "empty": lambda: b"",
    "no schema": lambda: zipped(other="{}"),
    "no JSON": lambda: zipped(**{"schema.json": "{"}),
    "a list": lambda: zipped(**{"schema.json": "[]"}),
    "deep": lambda: zipped(**{"schema.json": deep()}),
    "bomb": bomb,
    "array from elsewhere": lambda: holding(
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="../../../../etc/passwd")
    ),
    "pickled array": lambda: holding(
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="a.npy"), **{"a.npy": b"\x80\x04N."}
    ),
    "child beyond the tree": lambda: wild_tree(DecisionTreeClassifier().fit(NUMBERS, OUTCOME), left_child=10**6),
    "child before its parent": lambda: wild_tree(DecisionTreeClassifier().fit(NUMBERS, OUTCOME), right_child=0),
    "column beyond the people": lambda: wild_tree(RandomForestClassifier(2).fit(NUMBERS, OUTCOME), feature=10**6),
    "column of boosting": lambda: wild_tree(
        GradientBoostingClassifier(n_estimators=2).fit(NUMBERS, OUTCOME), feature=10**6
    ),
    "child of a histogram tree": lambda: wild_tree(
        HistGradientBoostingClassifier(max_iter=2).fit(NUMBERS, OUTCOME), left=10**6
    ),
    "column of a histogram tree": lambda: wild_tree(
        HistGradientBoostingClassifier(max_iter=2).fit(NUMBERS, OUTCOME), feature_idx=10**6
    ),
    "category of a histogram tree": lambda: wild_tree(
        HistGradientBoostingClassifier(max_iter=2).fit(NUMBERS, OUTCOME), is_categorical=1, bitset_idx=10**6
    ),
    "sparse matrix": wild_matrix,
    "negative numbers of support vectors": lambda: wild_vectors(_n_support=np.array([-(10**8), 10**8], dtype=np.int32)),
    "more classes than there are": lambda: wild_vectors(_n_support=np.zeros(5000, dtype=np.int32)),
    "too few coefficients": lambda: wild_vectors(_dual_coef_=np.zeros((1, 1))),
    "no intercept": lambda: wild_vectors(_intercept_=np.zeros(0)),
    "vectors of a kernel matrix": lambda: wild_vectors(kernel="precomputed", support_=np.array([10**8])),
    "no model": lambda: io.dumps([1, 2]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_file_is_one_sentence(name, tmp_path):
    path = written(DAMAGED[name](), tmp_path)
    with pytest.raises(ValueError, match=r"^model\.skops (is not a model|holds) .*\.$"):
        load_model(path, trust=False)


def test_entries_of_an_archive_are_never_unpacked(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    path = written(holding(**{"../escaped.txt": "x", "/absolute.txt": "x"}), inner)
    load_model(path, trust=False)
    assert {entry.name for entry in tmp_path.rglob("*")} == {"inner", "model.skops"}


# --- ordinary models -------------------------------------------------------------------------------------------------


def columns():
    labels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_column_transformer(
        (labels, make_column_selector(dtype_include="category")),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["income", "debts"]),
        remainder="passthrough",
        sparse_threshold=0,
    )


ORDINARY = {
    "logistic": LogisticRegression(),
    "SVC": SVC(),
    "SVC with probabilities by calibration": CalibratedClassifierCV(SVC(), cv=2),
    "LinearSVC, isotonic": CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2),
    "SGD": SGDClassifier(random_state=0),
    "naive Bayes": GaussianNB(),
    "neighbours by brute force": KNeighborsClassifier(algorithm="brute"),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "AdaBoost": AdaBoostClassifier(n_estimators=3, random_state=0),
    "neural net": MLPClassifier([3], max_iter=2000, random_state=0),
    "Gaussian process": GaussianProcessClassifier(random_state=0),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier(random_state=0))]),
    "stacking": StackingClassifier([("a", LogisticRegression()), ("b", SVC())], cv=2),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, scoring="roc_auc", cv=StratifiedKFold(2)),
    "threshold": TunedThresholdClassifierCV(LogisticRegression(), cv=2),
    "logarithms": make_pipeline(FunctionTransformer(np.abs), FunctionTransformer(np.log1p), LogisticRegression()),
    "best columns": make_pipeline(SelectKBest(k=2), LogisticRegression()),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_model_loads_without_consent(name, tmp_path):
    X, y, _ = people()
    model = make_pipeline(columns(), ORDINARY[name]).fit(X, y)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trust=False)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_histogram_boosting_with_categories_loads_without_consent(tmp_path):
    X, y, _ = people()
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(X, y)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trust=False)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("kernel", "sparse"), [("rbf", False), ("rbf", True), ("precomputed", False)])
def test_support_vectors_of_any_kind_load_without_consent(kernel, sparse, tmp_path):
    X = NUMBERS @ NUMBERS.T if kernel == "precomputed" else NUMBERS
    X = sp.csr_matrix(X) if sparse else X
    model = SVC(kernel=kernel).fit(X, np.where(NUMBERS[:, 1] > 1, "perhaps", OUTCOME))
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trust=False)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def boosters():
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    return LGBMClassifier(n_estimators=5, verbose=-1), XGBClassifier(n_estimators=5)


EQUAL = {
    "linear": lambda: EqualRecourseLinear(LogisticRegression()),
    "SVC": lambda: EqualRecourseSVC(),
    "LightGBM": lambda: EqualRecourseBoosting(boosters()[0]),
    "XGBoost": lambda: EqualRecourseBoosting(boosters()[1]),
    "reweighting": lambda: RecourseReweighting(LogisticRegression(), actions=ActionSet.free(NUMBERS)),
    "reweighting by surrogates": lambda: RecourseReweighting(LogisticRegression(), distance="surrogate"),
}


@pytest.mark.filterwarnings("ignore::equirecourse.exceptions.SmallGroupWarning")
@pytest.mark.parametrize("name", EQUAL)
def test_equalizer_loads_without_consent(name, tmp_path):
    model = EQUAL[name]().fit(NUMBERS, OUTCOME, sensitive_features=people()[2])
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trust=False)
    np.testing.assert_array_equal(again.predict(NUMBERS), model.predict(NUMBERS))


def test_what_is_not_listed_loads_with_consent(tmp_path):
    model = KNeighborsClassifier(algorithm="kd_tree").fit(NUMBERS, OUTCOME)
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"holds sklearn\.neighbors\._kd_tree\.KDTree"):
        load_model(tmp_path / "model.skops", trust=False)
    again = load_model(tmp_path / "model.skops", trust=True)
    np.testing.assert_array_equal(again.predict(NUMBERS), model.predict(NUMBERS))


def test_boosting_takes_labels_and_missing_numbers_as_they_come():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(size=200), "housing": pd.Categorical(rng.choice(["own", "rent"], 200))})
    X.loc[:20, "income"] = np.nan
    y = np.where(X["housing"] == "own", "yes", "no")
    model = learner("boosting", X).fit(X, y)
    assert (model.predict(X) == y).all()
    assert np.isnan(model[:-1].transform(X)).any()
