"""Model files that run code where they can: when they are loaded, or when the model is asked.

Each entry of ``HOSTILE`` makes the bytes of a skops file from the path of a witness: a file that is there once code has
run. The files in ``LIVE`` do run it, with consent, in the newest skops that was read; the others are stopped by skops
itself, hang on a detail of an earlier version, or run only when a model is fitted.
"""

import cProfile
import functools
import io as streams
import json
import operator
import os
import pickle
import runpy
import subprocess
import timeit
import warnings
import zipfile

import joblib
import numpy as np
import pandas as pd
from numpy.testing import measure
from sklearn.compose import ColumnTransformer
from sklearn.datasets import dump_svmlight_file
from sklearn.decomposition import KernelPCA
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import LabelPropagation
from sklearn.svm import SVC
from skops import io

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
Y = np.array([0, 0, 1, 1])


def code(witness):
    return f"open({str(witness)!r}, 'w').close()"


def shell(witness):
    return f"touch '{witness}'"


def save(witness):
    """A function of NumPy that writes a file, whatever it is called with."""
    return functools.partial(np.save, str(witness))


class Pickled:
    """Text that a pickle evaluates."""

    def __init__(self, text):
        self.text = text

    def __reduce__(self):
        return eval, (self.text,)


def pickle_of(witness):
    """The path of a pickle that runs code."""
    path = witness.with_name("evil.pkl")
    path.write_bytes(pickle.dumps(Pickled(code(witness))))
    return str(path)


def script_of(witness):
    path = witness.with_name("evil.py")
    path.write_text(code(witness))
    return str(path)


# --- models as skops saves them --------------------------------------------------------------------------------------


def changed(model, **attributes):
    """A fitted model with other attributes."""
    model.fit(X, Y)
    vars(model).update(attributes)
    return io.dumps(model)


def before_a_model(step):
    """A fitted step in front of a model that takes anything."""
    return io.dumps(make_pipeline(step, DummyClassifier().fit(X, Y)))


def fitted(step, **attributes):
    step.fit(X, Y)
    vars(step).update(attributes)
    return step


def transformed(function, **arguments):
    return before_a_model(FunctionTransformer(function, kw_args=arguments))


def spoken(words, text):
    """A vectoriser that is given a text of the author's, whoever is to be predicted."""
    text_alone = FunctionTransformer(np.full_like, kw_args={"fill_value": text, "dtype": "O", "shape": (1,)})
    return io.dumps(make_pipeline(text_alone, words, DummyClassifier().fit(X, Y)))


# --- models that were edited -----------------------------------------------------------------------------------------


def node(loader, name, **content):
    module, _, name = name.rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": loader, **content}


def value(something):
    """The node of a plain value."""
    with zipfile.ZipFile(streams.BytesIO(io.dumps(something))) as archive:
        return strip_ids(json.loads(archive.read("schema.json")))


def strip_ids(schema):
    """Without ids, which would point to other nodes in another file."""
    if isinstance(schema, dict):
        return {key: strip_ids(inner) for key, inner in schema.items() if key != "__id__"}
    return [strip_ids(inner) for inner in schema] if isinstance(schema, list) else schema


def repacked(model, edit, **extra):
    """The file of a model whose JSON was edited, with further entries."""
    result = streams.BytesIO()
    with zipfile.ZipFile(streams.BytesIO(io.dumps(model))) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                content = json.dumps(edit(json.loads(content)))
            new.writestr(name, content)
        for name, content in extra.items():
            new.writestr(name, content)
    return result.getvalue()


def holding(*nodes, **extra):
    """A fitted model with attributes of which nobody makes use; they are built all the same."""

    def edit(schema):
        schema["content"]["content"] |= {f"attribute_{place}": one for place, one in enumerate(nodes)}
        schema["content"]["key_types"]["content"] += [value(str) for _ in nodes]
        return schema

    return repacked(DummyClassifier().fit(X, Y), edit, **extra)


def called_with(name, text, loader="FunctionNode"):
    """A dictionary whose key is of a "type" that is called with its text."""
    keys = node("ListNode", "builtins.list", content=[node(loader, name)])
    return holding(node("DictNode", "builtins.dict", key_types=keys, content={text: value(None)}))


def generator(kind, **ids):
    """A random generator that claims to be of some kind."""
    state = node("DictNode", "builtins.dict", key_types=value([str]), content={"bit_generator": kind}, **ids)
    made = {"bit_generator": state, "seed_seq": value({"entropy": 1})}
    return node("RandomGeneratorNode", "numpy.random._generator.Generator", content=made)


def array_file(array):
    buffer = streams.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def protocol_0(witness):
    """A function that is read from another place than the one where later versions write it."""

    def edit(schema):
        hidden = {"module_path": "os", "function": "system"}
        keys = node("ListNode", "builtins.list", content=[node("FunctionNode", "numpy.log1p", content=hidden)])
        inside = node("DictNode", "builtins.dict", key_types=keys, content={shell(witness): value(None)})
        schema["content"]["content"]["attribute"] = inside
        schema["content"]["key_types"]["content"].append(value(str))
        return schema | {"protocol": 0}

    return repacked(DummyClassifier().fit(X, Y), edit)


def two_schemas(witness):
    """The JSON of a harmless model, and behind it in the archive another one of the same name."""
    result = streams.BytesIO()
    evil, good = called_with("builtins.eval", code(witness)), io.dumps(DummyClassifier().fit(X, Y))
    with zipfile.ZipFile(result, "w") as archive, warnings.catch_warnings(action="ignore"):
        for content in (good, evil):
            with zipfile.ZipFile(streams.BytesIO(content)) as one:
                for name in one.namelist():
                    archive.writestr(name, one.read(name))
    return result.getvalue()


def touched(witness):
    return value((["touch", str(witness)],))


LIVE = {
    # functions that a step calls
    "FunctionTransformer(partial(np.save))": lambda w: transformed(save(w)),
    "FunctionTransformer(joblib.dump)": lambda w: transformed(joblib.dump, filename=str(w)),
    "FunctionTransformer(pd.to_pickle)": lambda w: transformed(pd.to_pickle, filepath_or_buffer=str(w)),
    "FunctionTransformer(dump_svmlight_file)": lambda w: transformed(dump_svmlight_file, y=[0, 0, 1, 1], f=str(w)),
    "FunctionTransformer(methodcaller)": lambda w: transformed(operator.methodcaller("tofile", str(w))),
    "CountVectorizer(analyzer=measure)": lambda w: spoken(
        CountVectorizer(analyzer=measure, vocabulary={"a": 0}), code(w)
    ),
    "CountVectorizer(tokenizer=measure)": lambda w: spoken(
        CountVectorizer(tokenizer=measure, lowercase=False, vocabulary={"a": 0}), code(w)
    ),
    "CountVectorizer(preprocessor=measure)": lambda w: spoken(
        CountVectorizer(preprocessor=measure, vocabulary={"a": 0}), code(w)
    ),
    "TfidfVectorizer(analyzer=exec)": lambda w: spoken(
        changed_idf(TfidfVectorizer(analyzer=exec, vocabulary={"a": 0})), code(w)
    ),
    "HashingVectorizer(analyzer=os.system)": lambda w: spoken(HashingVectorizer(analyzer=os.system), shell(w)),
    "SelectFromModel(importance_getter=partial)": lambda w: before_a_model(
        fitted(SelectFromModel(LogisticRegression()), importance_getter=save(w))
    ),
    "SVC(kernel=partial)": lambda w: changed(SVC(kernel=RBF()), kernel=save(w)),
    "KNeighbors(weights=partial)": lambda w: changed(
        KNeighborsClassifier(n_neighbors=1, algorithm="brute"), weights=save(w)
    ),
    "KNeighbors(metric=partial)": lambda w: changed(
        KNeighborsClassifier(n_neighbors=1, algorithm="brute"), effective_metric_=save(w), metric=save(w)
    ),
    "KernelPCA(kernel=partial)": lambda w: before_a_model(fitted(KernelPCA(kernel="rbf"), kernel=save(w))),
    "Nystroem(kernel=partial)": lambda w: before_a_model(fitted(Nystroem(n_components=2), kernel=save(w))),
    "LabelPropagation(kernel=partial)": lambda w: changed(LabelPropagation(), kernel=save(w)),
    # functions in the place of methods
    "predict": lambda w: changed(DummyClassifier(), predict=save(w)),
    "predict_proba": lambda w: changed(LogisticRegression(), predict_proba=save(w)),
    "decision_function": lambda w: changed(SVC(), decision_function=save(w)),
    "transform": lambda w: before_a_model(fitted(StandardScaler(), transform=save(w))),
    "__sklearn_tags__": lambda w: changed(LogisticRegression(), __sklearn_tags__=functools.partial(np.save, str(w), X)),
    "get_params": lambda w: changed(LogisticRegression(), get_params=functools.partial(np.save, str(w), X)),
    # nodes whose name is called when the file is loaded
    "key: eval": lambda w: called_with("builtins.eval", code(w), "TypeNode"),
    "key: exec": lambda w: called_with("builtins.exec", code(w), "TypeNode"),
    "key: os.system": lambda w: called_with("os.system", shell(w)),
    "key: posix.system": lambda w: called_with("posix.system", shell(w), "TypeNode"),
    "key: os.makedirs": lambda w: called_with("os.makedirs", str(w)),
    "key: subprocess.getoutput": lambda w: called_with("subprocess.getoutput", shell(w)),
    "key: timeit": lambda w: called_with("timeit.timeit", f"{code(w)}; raise SystemError"),
    "key: cProfile.run": lambda w: called_with("cProfile.run", code(w)),
    "key: numpy.testing.measure": lambda w: called_with("numpy.testing._private.utils.measure", code(w)),
    "key: numpy.testing alias": lambda w: called_with("numpy.testing.measure", code(w)),
    "key: pandas.read_pickle": lambda w: called_with("pandas.read_pickle", pickle_of(w)),
    "key: joblib.load": lambda w: called_with("joblib.load", pickle_of(w)),
    "key: joblib.numpy_pickle.load": lambda w: called_with("joblib.numpy_pickle.load", pickle_of(w)),
    "ListNode of Popen": lambda w: holding(
        node("ListNode", "subprocess.Popen", content=[value("touch"), value(str(w))])
    ),
    "NdArrayNode of Popen": lambda w: holding(
        node("NdArrayNode", "subprocess.Popen", type="numpy", file="words.npy"),
        **{"words.npy": array_file(np.array(["touch", str(w)]))},
    ),
    "LossNode of Popen": lambda w: holding(
        node("LossNode", "subprocess.Popen", content=value({}), __reduce__={"args": touched(w)})
    ),
    "OperatorFuncNode: call": lambda w: holding(
        node("OperatorFuncNode", "operator.call", attrs=node(
            "TupleNode", "builtins.tuple", content=[node("FunctionNode", "os.system"), value(shell(w))]
        ))
    ),
    "two schemas": two_schemas,
}  # fmt: skip


def changed_idf(vectorizer):
    vectorizer.idf_ = np.ones(1)
    return vectorizer


HOSTILE = LIVE | {
    "ConstructorFromReduceNode of Popen": lambda w: holding(
        node("ConstructorFromReduceNode", "subprocess.Popen", content=touched(w))
    ),
    "key: runpy": lambda w: called_with("runpy.run_path", script_of(w)),
    "protocol 0": protocol_0,
    "protocol true": lambda w: repacked(DummyClassifier().fit(X, Y), lambda schema: schema | {"protocol": True}),
    "generator: test": lambda w: holding(generator(value("test"))),
    "generator by id": lambda w: holding(
        node("DictNode", "builtins.dict", key_types=value([str]), content={"bit_generator": value("test")}, __id__=7),
        generator(value("PCG64"), __id__=7.0),
    ),
    "generator: a text of NumPy": lambda w: holding(
        generator(node("NdArrayNode", "numpy.str_", type="numpy", file="kind.npy", content='"PCG64"')),
        **{"kind.npy": array_file(np.array("test"))},
    ),
    "MethodNode": lambda w: transformed(make_pipeline(StandardScaler()).fit),
    "MethodNode: subclasses": lambda w: holding(
        node("MethodNode", "sklearn.dummy.DummyClassifier",
             content={"obj": value(DummyClassifier()), "func": "__class__.__base__.__subclasses__"})
    ),
    "attrgetter": lambda w: transformed(operator.attrgetter("__class__")),
    "CachedNode": lambda w: holding(node("CachedNode", "builtins.dict", __id__=1)),
    "QuantileForestNode": lambda w: holding(node("QuantileForestNode", "quantile_forest.QuantileForest")),
    "a loader of tomorrow": lambda w: holding(node("PickleNode", "builtins.dict")),
    "a loader that is a list": lambda w: holding(
        {"__loader__": ["DictNode"], "__module__": "os", "__class__": "system"}
    ),
    "an import alone": lambda w: holding(node("TypeNode", "antigravity.fly")),
    "a private module": lambda w: holding(node("TypeNode", "sklearn.conftest.pytest")),
    "ObjectNode of a frame": lambda w: holding(node("ObjectNode", "pandas.core.frame.DataFrame", content=value({}))),
    "ObjectNode of a path": lambda w: holding(node("ObjectNode", "pathlib.PosixPath")),
    "TreeNode of Popen": lambda w: holding(
        node("TreeNode", "subprocess.Popen", content=value({}), __reduce__={"args": touched(w)})
    ),
    "default_factory": lambda w: holding(
        node("DefaultDictNode", "collections.defaultdict",
             content={"main": value({}), "default_factory": value(functools.partial(os.system, shell(w)))})
    ),
    "memory": lambda w: io.dumps(
        make_pipeline(StandardScaler(), DummyClassifier(), memory=joblib.Memory(w.parent))
    ),
    "scorer": lambda w: changed(GridSearchCV(DummyClassifier(), {}, cv=2), scorer_=make_scorer(save(w))),
    "SelectKBest": lambda w: before_a_model(fitted(SelectKBest(k=1), score_func=save(w))),
    "ColumnTransformer": lambda w: before_a_model(
        fitted(ColumnTransformer([("a", StandardScaler(), [0])]), transformers=[("a", StandardScaler(), save(w))])
    ),
    "PairwiseKernel": lambda w: changed(GaussianProcessClassifier(), kernel=PairwiseKernel(metric=save(w))),
    "array of functions": lambda w: changed(DummyClassifier(), class_prior_=np.array([save(w)], dtype=object)),
    "set of functions": lambda w: changed(DummyClassifier(), names_={np.save}),
    "a ufunc made from a function": lambda w: transformed(np.frompyfunc),
    "subprocess": lambda w: transformed(subprocess.run),
    "timeit": lambda w: transformed(timeit.timeit),
    "cProfile": lambda w: transformed(cProfile.run),
    "runpy": lambda w: transformed(runpy.run_path),
    "numpy.load": lambda w: transformed(np.load, allow_pickle=True),
    "pandas.eval": lambda w: transformed(pd.eval),
}  # fmt: skip
