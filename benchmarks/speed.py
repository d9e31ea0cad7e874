"""What equal recourse costs in time: against scikit-learn's SVC, and against the paper's quadratic program.

python -m benchmarks speed [--quick]
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._timing import seconds
from equirecourse import EqualRecourseSVC, recourse_frontier
from equirecourse.datasets import load_credit
from equirecourse.exceptions import ConvergenceWarning, UndefinedRecourseWarning
from equirecourse.solvers import Balance, DualSolution, KernelDual, ReferenceDual, gram_matrix

KERNELS = {
    "rbf": {"kernel": "rbf"},
    "poly 2": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "poly 3": {"kernel": "poly", "degree": 3, "coef0": 1.0},
}
CACHE = 2000  # megabytes, for an SVC that never computes a row of the kernel twice
PENALTY = 10.0
ENOUGH = 1e-4  # violation at which the objective is within 1e-6 of its optimum, as the table shows
PENALTIES = (0.2, 0.5, 1.0, 2.0, 10.0, 50.0, 100.0)  # the paper's


def credit(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random sample of the paper's credit data: n × 12, standardised, with sex as the group."""
    data = load_credit(paper=True)
    rows = np.random.default_rng(0).permutation(len(data.target))[:n]
    X = StandardScaler().fit_transform(np.asarray(data.data, dtype=float)[rows])
    return X, np.asarray(data.target)[rows], np.asarray(data.sensitive_features["sex"])[rows]


def main(quick: bool = False) -> None:
    """Print the tables."""
    for category in (ConvergenceWarning, UndefinedRecourseWarning):
        warnings.simplefilter("ignore", category)
    X, y, sex = credit(300)
    EqualRecourseSVC().fit(X, y, sensitive_features=sex)  # compiles the solver once
    sizes = (300,) if quick else (1000, 4000, 10_000)
    _against_svc(sizes)
    for n in sizes[:2]:
        _all_rounds(n)
    _against_cvxopt(200 if quick else 4000)
    _cross_validation(*((200, 2) if quick else (4000, 10)))


def _cross_validation(n: int, folds: int) -> None:
    """The paper's grid in one call: 10 folds × 7 penalties × at most 10 rounds."""
    X, y, sex = credit(n)
    print(f"\nThe paper's cross-validation ({folds} folds × 7 penalties × at most 10 rounds), credit {n:,}, one call")
    print("of recourse_frontier, by itself and with n_jobs=2, against one SVC.fit of that size; target: at most 10")
    print(f"{'kernel':<8} {'C':>6} {'ours':>8} {'n_jobs=2':>9} {'SVC':>8} {'ours ÷ SVC':>11} {'n_jobs=2 ÷ SVC':>15}")
    for name in ("poly 2", "poly 3"):
        for C in (10 / n, 1.0, 10.0):
            model = EqualRecourseSVC(C=C, tol=1e-3, min_rejected=1, round_options={"on_cycle": "last"}, **KERNELS[name])
            grid = {"recourse_penalty": list(PENALTIES)}

            def ours(n_jobs: int, model=model, grid=grid) -> None:  # type: ignore[no-untyped-def]
                resamples = {"n_boot": 20, "n_permutations": 20}
                recourse_frontier(
                    model, X, y, sensitive_features=sex, param_grid=grid, cv=folds, n_jobs=n_jobs, **resamples
                )

            calls = {
                "ours": lambda ours=ours: ours(1),
                "n_jobs=2": lambda ours=ours: ours(2),
                "SVC": lambda C=C, name=name: SVC(C=C, **KERNELS[name]).fit(X, y),
            }
            try:
                times = seconds(calls, repeats=1 if folds < 10 else 2)
            except ValueError as error:  # nobody of a group is rejected: there is nothing to cross-validate
                if "no two groups to compare" not in str(error):
                    raise
                print(f"{name:<8} {C:>6g}   the plain model rejects nobody of a group", flush=True)
                continue
            ratios = times["ours"] / times["SVC"], times["n_jobs=2"] / times["SVC"]
            print(
                f"{name:<8} {C:>6g} {times['ours']:>7.2f}s {times['n_jobs=2']:>8.2f}s {times['SVC']:>7.2f}s "
                f"{ratios[0]:>11.1f} {ratios[1]:>15.1f}",
                flush=True,
            )


def _against_svc(sizes: tuple[int, ...]) -> None:
    print("One plain fit (no groups, kernel matrix included, tol = 1e-3) against SVC.fit, as it comes and with a")
    print(f"cache of {CACHE} MB; target: SVC ÷ ours at least 2")
    print(
        f"{'n':>6} {'kernel':<7} {'C':>6} {'ours':>8} {'SVC':>8} {'cached':>8} {'SVC ÷ ours':>11} {'cached ÷ ours':>14}"
    )
    smallest: dict[int, float] = {}
    for n in sizes:
        X, y, _ = credit(n)
        for name, kernel in KERNELS.items():
            for C in (10 / n, 1.0, 10.0):
                ours = EqualRecourseSVC(C=C, tol=1e-3, **kernel)
                plain, cached = SVC(C=C, **kernel), SVC(C=C, cache_size=CACHE, **kernel)
                times = seconds(
                    {
                        "ours": lambda model=ours, X=X, y=y: model.fit(X, y),
                        "SVC": lambda model=plain, X=X, y=y: model.fit(X, y),
                        "cached": lambda model=cached, X=X, y=y: model.fit(X, y),
                    },
                    repeats=5 if n <= 1000 else 3 if n * C < 50_000 else 1,  # which takes minutes
                )
                ratios = times["SVC"] / times["ours"], times["cached"] / times["ours"]
                smallest[n] = min(smallest.get(n, np.inf), *ratios)
                print(
                    f"{n:>6} {name:<7} {C:>6g} {times['ours']:>7.3f}s {times['SVC']:>7.3f}s {times['cached']:>7.3f}s "
                    f"{ratios[0]:>11.1f} {ratios[1]:>14.1f}",
                    flush=True,
                )
    print("smallest ratio: " + ", ".join(f"{ratio:.1f} at n = {n:,}" for n, ratio in smallest.items()))


def _all_rounds(n: int) -> None:
    X, y, sex = credit(n)
    print(
        f"\nOne fit with all its rounds (hard equality), credit {n:,} × {X.shape[1]}, against one SVC.fit (tol = 1e-3)"
    )
    print(f"{'kernel':<8} {'C':>4} {'rounds':>6} {'ours':>9} {'SVC':>9} {'ours ÷ SVC':>11}   target: at most 1")
    for name, kernel in {**KERNELS, "linear": {"kernel": "linear"}}.items():
        for C in (1.0, 10.0):
            ours, theirs = EqualRecourseSVC(C=C, tol=1e-3, **kernel), SVC(C=C, **kernel)
            times = seconds(
                {
                    "ours": lambda model=ours: model.fit(X, y, sensitive_features=sex),
                    "SVC": lambda model=theirs: model.fit(X, y),
                },
                repeats=1 if name == "linear" else 10 if n <= 1000 else 3,
            )
            rounds, ratio = len(ours.rounds_) - 1, times["ours"] / times["SVC"]
            print(
                f"{name:<8} {C:>4g} {rounds:>6} {times['ours']:>8.3f}s {times['SVC']:>8.3f}s {ratio:>11.2f}", flush=True
            )


def _against_cvxopt(n: int) -> None:
    """One dual with λ|u|, at the people with y = −1; CVXOPT with sparse constraints and tolerances of 1e-6."""
    X, y, sex = credit(n)
    signed = np.where(y == np.unique(y)[1], 1.0, -1.0)
    first = sex == np.unique(sex)[0]
    weights = np.where(first, 1.0 / (first & (signed < 0)).sum(), -1.0 / (~first & (signed < 0)).sum())
    S = np.where(signed < 0, weights, 0.0)[:, None]
    print(f"\nThe full dual (λ = {PENALTY:g}, one rejected set), credit {n:,}, against CVXOPT with sparse constraints")
    print(f"(ours at tol = {ENOUGH:g}, CVXOPT at 1e-6; errors of the dual objective are relative to ours at 1e-8)")
    print(
        f"{'kernel':<8} {'C':>6} {'ours':>8} {'error':>8} {'CVXOPT':>8} {'error':>8} {'CVXOPT ÷ ours':>14}  target: 100"
    )
    for name, kernel in KERNELS.items():
        gamma = 1.0 / (X.shape[1] * X.var())
        K = gram_matrix(X, gamma=gamma, **kernel)
        balance = Balance(K @ S, S.T @ K @ S, np.zeros(1))
        for C in (10 / n, 1.0, 10.0):
            bounds = np.full(n, C)
            found: dict[str, DualSolution] = {}

            def ours(K=K, bounds=bounds, balance=balance, found=found):  # type: ignore[no-untyped-def]
                found["ours"] = KernelDual(K, signed, bounds, tol=ENOUGH).solve_penalty(balance, PENALTY)

            def theirs(K=K, bounds=bounds, balance=balance, found=found):  # type: ignore[no-untyped-def]
                found["CVXOPT"] = ReferenceDual(K, signed, bounds, tol=1e-6).solve_penalty(balance, PENALTY)

            times = {**seconds({"ours": ours}), **seconds({"CVXOPT": theirs}, repeats=1)}
            exact = KernelDual(K, signed, bounds, tol=1e-8, max_iter=10**8).solve_penalty(balance, PENALTY)
            best = _dual_value(exact, signed, balance)
            errors = {key: abs(_dual_value(one, signed, balance) / best - 1.0) for key, one in found.items()}
            print(
                f"{name:<8} {C:>6g} {times['ours']:>7.3f}s {errors['ours']:>8.0e} {times['CVXOPT']:>7.1f}s "
                f"{errors['CVXOPT']:>8.0e} {times['CVXOPT'] / times['ours']:>14.0f}",
                flush=True,
            )


def _dual_value(solution: DualSolution, y: NDArray[np.float64], balance: Balance) -> float:
    return float(y @ solution.beta) - 0.5 * solution.squared_norm(balance)
