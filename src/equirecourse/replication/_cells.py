"""The cells of the replication: each is one run that can be computed by itself, in any order, on any machine."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from equirecourse.replication._paper import CLASSIFIERS, DATASETS, DEGREES, KERNELS, PENALTIES, ROUNDS, RUNS

__all__ = ["BOUNDS", "FULL", "PROTOCOLS", "QUICK", "Cell", "Scale", "table1_cells", "table2_cells"]

PROTOCOLS = ("printed", "honest")
BOUNDS = ("10", "10/n")  # ν: as printed, and divided by the number of people


@dataclass(frozen=True)
class Scale:
    """How much is computed: the paper's sizes, or small ones that show that everything runs.

    Attributes
    ----------
    name : str
        Part of every cell's name, so that small runs are never taken for the paper's.
    datasets, penalties, degrees : tuple
        What is gone through.
    runs, rounds : int
        How often.
    folds, honest_folds : int
        Of the cross-validation, as printed and under the honest protocol.
    share : float
        Share of the paper's sample sizes.
    samples : int
        Samples in a set of surrogates.
    people : int
        Most rejected people per group whose true distance is computed.
    searched : int
        The same for a curved boundary, where each of them takes a search.
    seconds : float
        The longest such a search, or one over trees, may take.
    looked_at : int
        People by whom sample sets are compared; people of each group, and accepted people, whose surrogates are judged.
    resamples : int
        Permutations behind a noise floor.
    real_gaps : int
        Most groups with a gap on which all methods are tried.
    trees, stumps, boosted : int
        Of a forest, of AdaBoost, and of the boosting with equal recourse.
    """

    name: str = "full"
    datasets: tuple[str, ...] = DATASETS
    penalties: tuple[float, ...] = PENALTIES
    degrees: tuple[int, ...] = DEGREES
    runs: int = RUNS
    folds: int = 10
    honest_folds: int = 5
    rounds: int = ROUNDS
    share: float = 1.0
    samples: int = 500
    people: int = 100
    searched: int = 6
    seconds: float = 0.5
    looked_at: int = 60
    resamples: int = 200
    real_gaps: int = 100
    trees: int = 100
    stumps: int = 50
    boosted: int = 60


FULL = Scale()
QUICK = replace(
    FULL,
    name="quick",
    datasets=("german", "credit"),
    penalties=(0.5, 100.0),
    degrees=(2,),
    runs=2,
    folds=3,
    honest_folds=2,
    share=0.2,
    samples=100,
    people=4,
    searched=1,
    seconds=0.1,
    looked_at=8,
    resamples=20,
    real_gaps=1,
    trees=10,
    stumps=5,
    boosted=10,
)


@dataclass(frozen=True)
class Cell:
    """One run.

    Attributes
    ----------
    table : str
        "table1", "table2" or "real-gaps".
    dataset, model : str
        The data set, and the kernel, classifier or method.
    protocol : str
        "printed" or "honest".
    bound : str
        ν of an SVM, "" for others.
    group : str
        The sensitive feature, where it is not the paper's.
    run : int
        Number of the run, its seed.
    """

    table: str
    dataset: str
    model: str
    protocol: str
    bound: str = ""
    group: str = ""
    run: int = 0

    def key(self, scale: Scale) -> str:
        """A name for its file: no two cells have the same, and it sorts by run."""
        parts = [self.table, self.dataset, self.group, self.model, self.protocol]
        parts += [self.bound and "nu" + self.bound.replace("/", "over"), scale.name, f"{self.run:02d}"]
        return "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part) for part in parts if part)

    def columns(self) -> dict[str, Any]:
        """The cell as the first columns of its row."""
        return asdict(self)


def table1_cells(scale: Scale) -> list[Cell]:
    """Every run of Table 1: data set × kernel × protocol × ν × run."""
    return [
        Cell("table1", dataset, kernel, protocol, bound, run=run)
        for run in range(scale.runs)
        for dataset in scale.datasets
        for kernel in KERNELS
        for protocol in PROTOCOLS
        for bound in BOUNDS
    ]


def table2_cells(scale: Scale) -> list[Cell]:
    """Every run of Table 2: data set × classifier × protocol × run."""
    return [
        Cell("table2", dataset, classifier, protocol, run=run)
        for run in range(scale.runs)
        for dataset in scale.datasets
        for classifier in CLASSIFIERS
        for protocol in PROTOCOLS
    ]
