"""The people of a run: a sample of a data set, split and scaled as the protocol says."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from equirecourse.datasets import fetch_givemecredit, fetch_propublica, load_credit, load_german

__all__ = ["People", "Split", "balanced_weights", "draw", "load", "seed_of"]

Array = NDArray[np.float64]

_LOADERS: dict[str, Any] = {
    "german": load_german,
    "credit": load_credit,
    "propublica": fetch_propublica,
    "givemecredit": fetch_givemecredit,
}


_HEAVY_TAILS = ("givemecredit",)  # a utilisation of 50,708: a standard deviation means nothing before it is clipped
_RARE = 0.1  # share of unfavourable outcomes below which an SVM rejects nobody, and there is no recourse to speak of


@dataclass(frozen=True)
class People:
    """Features, outcome and group; +1 is what the protocol counts as a yes."""

    X: Array
    y: Array
    groups: NDArray[Any]

    def take(self, rows: NDArray[np.intp]) -> People:
        """Some of them."""
        return People(self.X[rows], self.y[rows], self.groups[rows])


@dataclass(frozen=True)
class Split:
    """People to fit to and people to judge by."""

    train: People
    test: People

    @property
    def parts(self) -> dict[str, People]:
        """Both by name."""
        return {"train": self.train, "test": self.test}


def seed_of(*parts: object) -> int:
    """A seed that depends on the parts alone, not on the order in which runs are made."""
    return zlib.crc32("|".join(map(str, parts)).encode())


@lru_cache(maxsize=4)
def load(name: str, *, as_printed: bool) -> People:
    """The paper's table of a data set.

    The published coding of propublica calls *reoffends* +1. ``as_printed`` leaves it so; otherwise the favourable
    outcome is +1, as in the other data sets.
    """
    data = _LOADERS[name](paper=True)
    y = np.asarray(data.target, dtype=np.float64)
    if not as_printed:
        y = np.where(np.asarray(data.target) == data.favorable_label, 1.0, -1.0)
    return People(np.asarray(data.data, dtype=np.float64), y, np.asarray(data.sensitive_features["paper"]))


def draw(name: str, size: int, run: int, *, as_printed: bool, test_share: float = 0.2) -> Split:
    """A random sample, split.

    As printed, everybody is scaled together and then split; the honest way is to split first and scale by what is known
    of the training people, after clipping columns with heavy tails to their central 98 %. Both draw the same people for
    the same run.
    """
    everybody = load(name, as_printed=as_printed)
    rng = np.random.default_rng(seed_of(name, run))
    rows = rng.permutation(len(everybody.y))[:size]
    people = everybody.take(rows)
    held_out = round(test_share * len(rows))
    if as_printed:
        people = People(StandardScaler().fit_transform(people.X), people.y, people.groups)
    order = np.arange(len(rows))
    test, train = people.take(order[:held_out]), people.take(order[held_out:])
    if not as_printed:
        low, high = np.quantile(train.X, [0.01, 0.99], axis=0) if name in _HEAVY_TAILS else (-np.inf, np.inf)
        scaler = StandardScaler().fit(np.clip(train.X, low, high))
        train = People(scaler.transform(np.clip(train.X, low, high)), train.y, train.groups)
        test = People(scaler.transform(np.clip(test.X, low, high)), test.y, test.groups)
    return Split(train, test)


def balanced_weights(y: Array, *, as_printed: bool) -> Array:
    """Weights of the people: all one as printed; balanced classes where next to nobody would be rejected otherwise."""
    if as_printed or (y < 0).mean() >= _RARE:
        return np.ones(len(y))
    return np.asarray(compute_sample_weight("balanced", y), dtype=np.float64)
