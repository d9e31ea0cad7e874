"""The second look at a model: at what was built, whatever the file said."""

import functools
import os

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import f_classif
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Bunch, check_array

from equirecourse.cli._trusted import UntrustedError, check_loaded

HELD = {
    "a function": os.system,
    "a built-in function": eval,
    "a function of NumPy": np.save,
    "a ufunc": np.add,
    "a ufunc of one's own": np.frompyfunc(os.system, 1, 1),
    "a lambda": lambda: None,
    "a method": StandardScaler().fit,
    "a partial": functools.partial(np.save, "a.npy"),
    "an argument of a partial": functools.partial(check_array, estimator=os.system),
    "a class": os._wrap_close,
    "a list": [[os.system]],
    "a key": {os.system: 1},
    "a value": {"a": (os.system,)},
    "a set": {os.system},
    "an array": np.array([[os.system, 1]], dtype=object),
    "a Bunch": Bunch(a=os.system),
    "a step": make_pipeline(StandardScaler(), FunctionTransformer(os.system)),
}


@pytest.mark.parametrize("name", HELD)
def test_function_is_found_wherever_it_is(name):
    model = DummyClassifier()
    model.attribute = HELD[name]
    with pytest.raises(UntrustedError):
        check_loaded(model)


def test_listed_functions_and_circles_are_fine():
    model = DummyClassifier()
    model.attribute = [np.log1p, np.float64, str, f_classif, functools.partial(check_array, ensure_2d=False), model]
    check_loaded(model)
