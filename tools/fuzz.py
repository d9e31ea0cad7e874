"""Attack the proofs of ``find_recourse`` with many small random worlds, each tried out in full.

Run as ``python tools/fuzz.py --worlds 20000 --seed 0 --jobs 2``: prints how many worlds of each kind of model and norm
were tried, and every failure with the seed that makes it again (``--seed 123 --worlds 1``).
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LOT = 50  # worlds that a process gets at a time


def run(seeds: range) -> tuple[Counter, list]:
    """Count worlds by kind and norm, and collect failures."""
    from tests.recourse._brute_force import check
    from tests.recourse._fuzz_worlds import make_world

    counts: Counter = Counter()
    failures = []
    for seed in seeds:
        world = make_world(seed)
        counts[world.setting.kind, world.norm] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # what overflows is a crash in the making
            failures += check(world)
    return counts, failures


def main() -> int:
    """Run the worlds that the command line asks for; 1 if a claim was refuted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first world; the others follow")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    begin = time.perf_counter()
    last = asked.seed + asked.worlds
    lots = [range(first, min(first + LOT, last)) for first in range(asked.seed, last, LOT)]
    counts: Counter = Counter()
    failures: Counter = Counter()
    with ProcessPoolExecutor(asked.jobs) as pool:
        asked_for = {pool.submit(run, lot): lot for lot in lots}
        for done in as_completed(asked_for):
            try:
                some, wrong = done.result()
            except Exception as error:  # a process that died takes its lot along
                some, wrong = Counter(), []
                print(f"{asked_for[done]}: {type(error).__name__}: {error}", flush=True)
                failures["died"] += 1
            counts += some
            for failure in wrong:
                failures[failure.what, failure.method] += 1
                print(failure, flush=True)
    table = pd.Series(counts, dtype=int)
    if len(table):
        print(table.unstack(fill_value=0).to_string())
    print(f"{sum(counts.values())} worlds in {time.perf_counter() - begin:.0f} s, {sum(failures.values())} failures")
    for what, number in failures.most_common():
        print(f"  {number} {what}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
