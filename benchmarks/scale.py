"""A million people: linear SVMs with equal recourse, audits, data out of core, and the time to import.

python -m benchmarks scale [--quick]
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks._timing import seconds
from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.equalizers import PartitionedEqualRecourse
from equirecourse.exceptions import ConvergenceWarning


def crowd(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two groups of people with correlated features and noisy labels, noisier and further from a yes in one of them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    mixing = 0.7 * np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d)
    X = rng.normal(size=(n, d)) @ mixing
    X[:, 0] -= 0.7 * group
    X[:, 1] += 0.4 * group
    weights = rng.normal(size=d) / np.sqrt(d)
    weights[0] = abs(weights[0]) + 0.5
    y = np.where(X @ weights - 0.2 + 0.8 * rng.normal(size=n) * (1 + group) > 0, 1, -1)
    return X, y, group


def objective(model: LinearSVC, X: np.ndarray, y: np.ndarray) -> float:
    """Of a LinearSVC with the hinge loss, the penalty of its intercept included."""
    hinge = np.maximum(0.0, 1.0 - y * (X @ model.coef_[0] + model.intercept_[0])).sum()
    return float(0.5 * ((model.coef_**2).sum() + model.intercept_[0] ** 2) + model.C * hinge)


def strong_ridge(n: int) -> None:
    """C = 10 / n, where LIBLINEAR is at its best."""
    X, y, group = crowd(n, 50)
    C = 10.0 / n
    ours = EqualRecourseLinear(LinearSVC(loss="hinge", C=C), objective="paper")
    kernel = EqualRecourseSVC(kernel="linear", C=C, gamma="auto")
    times = seconds(
        {
            "ours": lambda: ours.fit(X, y, sensitive_features=group),
            "one LinearSVC (hinge)": lambda: LinearSVC(loss="hinge", C=C).fit(X, y),
        },
        repeats=3,
    )
    times |= seconds(
        {
            "EqualRecourseSVC(kernel='linear')": lambda: kernel.fit(X, y, sensitive_features=group),
            "one LinearSVC (squared hinge, default)": lambda: LinearSVC(C=C).fit(X, y),
        },
        repeats=1,
    )
    rounds, gap = len(ours.rounds_) - 1, ours.rounds_["relative_gap"]
    chosen = gap[ours.rounds_["chosen"]].item()
    print(f"{n:,} × 50, C = 10/n: equal recourse in {rounds} rounds, relative gap {gap.iloc[0]:.3f} → {chosen:.1e}")
    for name, took in times.items():
        print(f"  {name:<42} {took:>8.2f}s")
    ratio = times["one LinearSVC (hinge)"] / times["ours"]
    print(f"  one LinearSVC ÷ all our rounds {ratio:.2f}   target: more than 1; duality gap {ours.dual_gap_:.1e}")


def weak_ridge(n: int) -> None:
    """C = 1, where LIBLINEAR does not converge."""
    X, y, group = crowd(n, 10)
    learner = LinearSVC(loss="hinge", C=1.0)
    plain, fair = EqualRecourseLinear(learner, objective="paper"), EqualRecourseLinear(learner, objective="paper")
    times = seconds(
        {"plain": lambda: plain.fit(X, y), "fair": lambda: fair.fit(X, y, sensitive_features=group)}, repeats=3
    )
    theirs = LinearSVC(loss="hinge", C=1.0)
    times |= seconds({"LinearSVC": lambda: theirs.fit(X, y)}, repeats=1)
    best = objective(plain.estimator_, X, y)
    worse = objective(theirs, X, y) / best - 1
    print(
        f"\n{n:,} × 10, C = 1: one fit {times['plain']:.2f}s, all {len(fair.rounds_) - 1} rounds {times['fair']:.2f}s"
    )
    print(f"  LinearSVC (hinge) {times['LinearSVC']:.1f}s, {theirs.n_iter_} passes, {worse:.1e} above our objective")
    print(f"  LinearSVC ÷ one fit {times['LinearSVC'] / times['plain']:.0f}   target: at least 20")
    print(f"  LinearSVC ÷ all rounds {times['LinearSVC'] / times['fair']:.1f}")
    print(f"  relative duality gap {plain.dual_gap_ / best:.1e}   target: at most 1e-6")


def approximation(n: int) -> None:
    """A kernel through a hundred features of Nyström's."""
    X, y, group = crowd(n, 10)
    model = EqualRecourseSVC(approximation="nystroem", n_components=100, tol=1e-3, random_state=0)
    took = seconds({"ours": lambda: model.fit(X, y, sensitive_features=group)})["ours"]
    gap = model.rounds_["relative_gap"]
    chosen = gap[model.rounds_["chosen"]].item()
    print(f"\nrbf through 100 features of Nyström's, {n:,} people: {took:.2f}s   target: under 3")
    print(f"  {len(gap) - 1} rounds, relative gap {gap.iloc[0]:.3f} → {chosen:.1e}, duality gap {model.dual_gap_:.1e}")


def many_features(n: int) -> None:
    """More features than small systems serve, dense and sparse: one fit, and all rounds, against one LinearSVC."""
    print(f"\n{n:,} people with many features (hinge; LinearSVC as it comes)")
    print(f"{'':<22} {'C':>6} {'one fit':>8} {'all rounds':>11} {'LinearSVC':>10} {'÷ one fit':>10} {'÷ rounds':>9}")
    dense, y, group = crowd(n, 300)
    rng = np.random.default_rng(0)
    wide = sparse.random_array((n, 5000), density=0.01, format="csr", rng=rng, data_sampler=rng.normal)
    weights = rng.normal(size=5000)
    bought = np.where(wide @ weights - 0.5 * group + 2.0 * rng.normal(size=n) > 0, 1, -1)
    for name, X, labels in (("300, dense", dense, y), ("5,000, 1 % not zero", wide, bought)):
        for C in (10 / n, 0.1):
            learner = LinearSVC(loss="hinge", C=C)
            plain, fair = (
                EqualRecourseLinear(learner, objective="paper"),
                EqualRecourseLinear(learner, objective="paper"),
            )
            calls = {
                "one fit": lambda X=X, labels=labels, plain=plain: plain.fit(X, labels),
                "LinearSVC": lambda X=X, labels=labels, C=C: LinearSVC(loss="hinge", C=C).fit(X, labels),
                "rounds": lambda X=X, labels=labels, fair=fair: fair.fit(X, labels, sensitive_features=group),
            }
            times = seconds(calls, repeats=2)
            ratios = times["LinearSVC"] / times["one fit"], times["LinearSVC"] / times["rounds"]
            print(
                f"{name:<22} {C:>6g} {times['one fit']:>7.2f}s {times['rounds']:>10.2f}s {times['LinearSVC']:>9.2f}s "
                f"{ratios[0]:>10.1f} {ratios[1]:>9.2f}",
                flush=True,
            )


_AUDIT = r"""
import re, time
from pathlib import Path
import numpy as np
from sklearn.linear_model import LogisticRegression
from benchmarks.scale import crowd
from equirecourse import ActionSet, audit
X, y, group = crowd({n}, 10)
model = LogisticRegression().fit(X[:20000], y[:20000])
actions = ActionSet.free(X[:1000])
audit(model, X[:2000], y[:2000], sensitive_features=group[:2000], actions=actions)
def peak():  # of this program alone: what getrusage says may be that of the one which started it
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
before = peak()
start = time.perf_counter()
found = audit(model, X, y, sensitive_features=group, actions=actions)
took = time.perf_counter() - start
print(f"{{took:.2f}} {{peak():.0f}} {{before:.0f}}")
"""


def audits(n: int) -> None:
    """An audit of a linear model in a process of its own, for the memory."""
    command = [sys.executable, "-W", "ignore", "-c", _AUDIT.format(n=n)]
    took, peak, before = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    print(f"\naudit() of {n:,} × 10, free actions: {took}s   target: under 5")
    print(f"  peak {peak} MB, of which {before} before the audit   target: under 1024")


def out_of_core(n: int) -> None:
    """Partitions against memory."""
    X, y, group = crowd(n, 10)
    parts = [(X[rows], y[rows], group[rows]) for rows in np.array_split(np.arange(n), 20)]
    learner = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)
    apart, together = PartitionedEqualRecourse(), EqualRecourseLinear(learner)
    times = seconds(
        {
            "partitions": lambda: apart.fit_partitions(parts),
            "memory": lambda: together.fit(X, y, sensitive_features=group),
        },
        repeats=1,
    )
    difference = float(np.abs(apart.coef_ - together.coef_).max())
    print(
        f"\n{n:,} × 10 in 20 partitions, {apart.n_readings_} readings: {times['partitions']:.1f}s, in memory", end=" "
    )
    print(f"{times['memory']:.1f}s; largest difference of coefficients {difference:.1e}   target: at most 1e-6")


def imports(repeats: int = 5) -> None:
    """Time to import, in fresh processes."""
    best = {}
    for statement in ("import sklearn.svm", "import equirecourse", "from equirecourse import audit, EqualRecourseSVC"):
        code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
        runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(repeats)]
        best[statement] = min(float(run.stdout) for run in runs)
    base = best["import sklearn.svm"]
    print("\nTime to import, smallest of several fresh processes   target: at most 1.5 × sklearn.svm")
    for statement, took in best.items():
        print(f"  {statement:<50} {took:.2f}s  {took / base:.2f}")


def main(quick: bool = False) -> None:
    """Print the tables."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    n = 50_000 if quick else 1_000_000
    start = time.perf_counter()
    for table in (strong_ridge, weak_ridge, audits, out_of_core):
        table(n)
        sys.stdout.flush()
    approximation(n // 10)
    many_features(n // 50)
    imports(2 if quick else 5)
    print(f"\n{time.perf_counter() - start:.0f}s in all")
