"""What equal recourse costs in time: against one scikit-learn SVC, and against the paper's quadratic program.

python -m benchmarks speed [--quick]
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._timing import seconds
from equirecourse import EqualRecourseSVC
from equirecourse.datasets import load_credit
from equirecourse.exceptions import ConvergenceWarning

KERNELS = {"rbf": {"kernel": "rbf"}, "poly 2": {"kernel": "poly", "degree": 2}, "linear": {"kernel": "linear"}}


def credit(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random sample of the paper's credit data: n × 12, standardised, with sex as the group."""
    data = load_credit(paper=True)
    rows = np.random.default_rng(0).permutation(len(data.target))[:n]
    X = StandardScaler().fit_transform(np.asarray(data.data, dtype=float)[rows])
    return X, np.asarray(data.target)[rows], np.asarray(data.sensitive_features["sex"])[rows]


def main(quick: bool = False) -> None:
    """Print the two tables."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    n = 1000 if quick else 4000
    X, y, sex = credit(n)
    EqualRecourseSVC().fit(X[:300], y[:300], sensitive_features=sex[:300])  # compiles the solver once

    print(f"One fit with all its rounds, credit {n:,} × {X.shape[1]}, against one SVC.fit (C = 1, tol = 1e-3)")
    print(f"{'kernel':<8} {'rounds':>6} {'ours':>9} {'SVC':>9} {'ours ÷ SVC':>11}   target: at most 5")
    for name, kernel in KERNELS.items():
        ours, theirs = EqualRecourseSVC(tol=1e-3, **kernel), SVC(coef0=1.0, **kernel)
        times = seconds(
            {
                "ours": lambda model=ours: model.fit(X, y, sensitive_features=sex),
                "SVC": lambda model=theirs: model.fit(X, y),
            }
        )
        ratio = times["ours"] / times["SVC"]
        rounds = len(ours.rounds_) - 1
        print(f"{name:<8} {rounds:>6} {times['ours']:>8.2f}s {times['SVC']:>8.2f}s {ratio:>11.2f}", flush=True)

    print(f"\nThe same rounds through CVXOPT's sparse-constraint QP (rbf, hard equality, {n:,} people)")
    settings = {"kernel": "rbf", "on_cycle": "stop", "max_rounds": 2 if quick else 4}
    fast, slow = EqualRecourseSVC(tol=1e-3, **settings), EqualRecourseSVC(solver="qp", tol=1e-3, **settings)
    times = {
        **seconds({"ours": lambda: fast.fit(X, y, sensitive_features=sex)}),
        **seconds({"CVXOPT": lambda: slow.fit(X, y, sensitive_features=sex)}, repeats=1),
    }
    same = len(fast.rounds_) == len(slow.rounds_) and bool((fast.predict(X) == slow.predict(X)).mean() > 0.999)
    print(f"rounds: {len(fast.rounds_) - 1}; same decisions: {same}")
    print(
        f"ours {times['ours']:.2f}s, CVXOPT {times['CVXOPT']:.1f}s, "
        f"CVXOPT ÷ ours {times['CVXOPT'] / times['ours']:.0f}   target: at least 50"
    )
