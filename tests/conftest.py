"""People and rounds that several folders of tests share."""

import gc
import os
import pkgutil
import warnings
from dataclasses import dataclass
from importlib import import_module

import hypothesis
import numpy as np
import pytest
from sklearn.base import clone

import equirecourse
from equirecourse.equalizers._rounds import look
from equirecourse.exceptions import ConvergenceWarning

# A test that failed fails again: the same examples in every run. HYPOTHESIS_PROFILE=explore looks for new ones.
hypothesis.settings.register_profile("repeat", derandomize=True)
hypothesis.settings.register_profile("explore", derandomize=False, max_examples=300)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# Long tests come first. One process begins with them; when the other has done its own half, it takes short ones off
# this one's end, so that neither waits for a long test that the other began last.
LONG = ("tests/test_packaging.py", "tests/test_examples.py", "tests/test_user_guide.py")


def pytest_report_header():
    return f"equirecourse: {equirecourse.__path__[0]}"


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish():
    # Hypothesis also tries the numbers it finds in our modules, in those that are loaded at the time: load them all.
    for module in pkgutil.walk_packages(equirecourse.__path__, "equirecourse."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    # Half a million objects of modules and tests stay to the end: the garbage collector need not look at them again.
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class People:
    """Features, labels ±1 and groups."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray

    def __iter__(self):
        return iter((self.X, self.y, self.group))

    def take(self, rows):
        return People(self.X[rows], self.y[rows], self.group[rows])


@pytest.fixture(scope="session")
def make_people():
    """n people of k groups, each group farther from a yes than the one before; about half are rejected."""

    def make(n=100, *, n_features=3, n_groups=2, seed=0):
        rng = np.random.default_rng(seed)
        group = np.arange(n) % n_groups
        X = rng.normal(size=(n, n_features))
        X[:, 0] -= 0.6 * group
        score = X.sum(axis=1) + 0.4 * group.mean() + rng.normal(scale=0.7, size=n)
        return People(X, np.where(score > np.median(score), 1, -1), group)

    return make


@dataclass(frozen=True)
class FirstRound:
    """The plain model, the people it rejects, and fits for those people."""

    model: object
    problem: object
    plain: object

    @property
    def contrasts(self):
        return self.plain.own

    @property
    def rejected(self):
        return self.plain.rejected

    def fit(self, **parameters):
        """The fit under the model's penalty, or another one, at the plain model's rejected set."""
        self.problem.model.set_params(**parameters)
        return self.problem.fit(self.plain.own)


@pytest.fixture(scope="session")
def first_round():
    """Everything about the first round of an unfitted model, where the set of the rejected is fixed."""

    def open_round(model, X, y, group, sample_weight=None):
        model = clone(model)
        problem = model._open(X, y, group, sample_weight)
        plain = look(model._setting(problem.data), 0, "plain", problem.fit_at(None, 0.0), None, None)
        return FirstRound(model, problem, plain)

    return open_round


@pytest.fixture(scope="session")
def quietly():
    """Fit where convergence of the rounds is not the claim."""

    def fit(model, *args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=ConvergenceWarning)
            return model.fit(*args, **kwargs)

    return fit
