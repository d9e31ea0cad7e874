"""A streamed audit needs as much memory for twenty million people as for two; time per person, against the audit of
everybody at once. Each size runs in a process of its own, whose largest resident set is measured."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import ActionSet, audit, audit_partitions

FEATURES = ["income", "savings", "debt", "age"]
PART = 200_000


def people_of(part: int, n: int = PART) -> pd.DataFrame:
    """One part of the people, always the same; women are further from a yes."""
    rng = np.random.default_rng([11, part])
    people = pd.DataFrame({
        "income": rng.normal(30, 8, n), "savings": rng.gamma(2, 4, n), "debt": rng.gamma(2, 3, n),
        "age": rng.normal(40, 9, n), "sex": pd.Categorical.from_codes(rng.integers(2, size=n), ["f", "m"]),
    })  # fmt: skip
    people["income"] -= 1.5 * (people.sex == "f")
    score = people.income / 8 + people.savings / 6 - people.debt / 4
    people["granted"] = (score + rng.normal(size=n) > 3.3).astype(int)
    return people


def parts(n: int) -> Iterator[pd.DataFrame]:
    for part in range(-(-n // PART)):
        yield people_of(part, min(PART, n - part * PART))


def _setting() -> tuple[Any, ActionSet]:
    some = people_of(10**6, 20_000)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(some[FEATURES], some["granted"])
    return model, ActionSet.from_frame(some[FEATURES], immutable=["age"])


def run(way: str, n: int) -> dict[str, float]:
    """One audit; what it took, and what it said."""
    model, actions = _setting()
    # Compiled code and caches are there before the clock runs.
    audit_partitions(model, parts(2000), sensitive_features="sex", target="granted", actions=actions)
    everybody = pd.concat(list(parts(n)), ignore_index=True) if way == "in memory" else None
    start = time.perf_counter()
    if way == "streamed":
        found = audit_partitions(model, parts(n), sensitive_features="sex", target="granted", actions=actions)
    else:
        assert everybody is not None
        found = audit(
            model, everybody[FEATURES], everybody["granted"], sensitive_features=everybody[["sex"]], actions=actions,
            n_flipsets=0,
        )  # fmt: skip
    took = time.perf_counter() - start
    section = found.document["attributes"][0]
    return {
        "seconds": took,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "rejected": found.document["counts"]["rejected"],
        "gap": section["gap"],
        "noise_floor": section["noise_floor"],
    }


def main(quick: bool = False) -> None:
    sizes = [("streamed", 200_000), ("streamed", 800_000), ("in memory", 20_000)] if quick else [
        ("streamed", 1_000_000), ("streamed", 2_000_000), ("streamed", 20_000_000), ("in memory", 1_000_000),
    ]  # fmt: skip
    print("A streamed audit: time, and the largest resident set of its process")
    print(
        f"{'':<10} {'people':>12} {'rejected':>12} {'seconds':>9} {'µs a person':>12} {'MB':>7} {'gap':>8} {'floor':>8}"
    )
    for way, n in sizes:
        code = f"import json; from benchmarks.streaming import run; print(json.dumps(run({way!r}, {n})))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{way:<10} {n:>12,} {found['rejected']:>12,} {found['seconds']:>9.1f} {1e6 * found['seconds'] / n:>12.2f} "
            f"{found['megabytes']:>7.0f} {found['gap']:>8.4f} {found['noise_floor']:>8.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
