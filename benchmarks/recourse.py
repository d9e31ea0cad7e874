"""What one person's recourse costs in time: closed forms, knapsacks against HiGHS, forests against Veritas.

python -m benchmarks recourse [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._timing import seconds
from benchmarks._veritas import reaches, read_trees
from equirecourse import ActionSet, find_recourse
from equirecourse.datasets import load_credit


def main(quick: bool = False) -> None:
    """Print the three tables."""
    closed_form(quick)
    print()
    percentile_costs(quick)
    print()
    forests(quick)


def closed_form(quick: bool) -> None:
    n = 10_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    print(f"Linear model without limits, {n:,} people, one core: find_recourse ÷ decision_function   target: under 2")
    for d in (10, 20, 50):
        X = rng.normal(size=(n, d))
        y = X[:2000] @ rng.normal(size=d) > 0
        model = LogisticRegression().fit(X[:2000], y)
        times = seconds(
            {
                "ours": lambda model=model, X=X: find_recourse(model, X, norm="l2"),
                "scores": lambda model=model, X=X: model.decision_function(X),
            },
            repeats=9,
        )
        print(f"{d:>3} features: {times['ours'] * 1e3:.1f} ms ÷ {times['scores'] * 1e3:.1f} ms = "
              f"{times['ours'] / times['scores']:.2f}", flush=True)  # fmt: skip


def credit_people() -> tuple[pd.DataFrame, np.ndarray]:
    """The credit data with marriage as a feature: 22 columns."""
    data = load_credit()
    return data.data.assign(married=(data.sensitive_features["married"] == "married").astype(int)), data.target


def percentile_costs(quick: bool) -> None:
    X, y = credit_people()
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    actions = ActionSet.from_frame(X, immutable=["age", "married"])
    people = X[model.predict(X) == -1]
    some = people.head(2 if quick else 40)
    many = people.head(10 if quick else 1000)
    find_recourse(model, some, actions=actions, norm="log_shift")  # compiles once
    print(f"Credit, {X.shape[1]} features, age and marriage immutable: time a person against one HiGHS program each")
    for norm, target in (("max_shift", 50), ("log_shift", 5)):
        find_recourse(model, some, actions=actions, norm=norm)
        begun = time.perf_counter()
        found = find_recourse(model, many, actions=actions, norm=norm)
        ours = (time.perf_counter() - begun) / len(many)
        begun = time.perf_counter()
        by_milp = [one_program(model, actions, some.iloc[[i]], norm) for i in range(len(some))]
        theirs = (time.perf_counter() - begun) / len(some)
        ratio, bounds = found.costs[: len(some)] / by_milp, found.lower_bounds / found.costs
        print(
            f"{norm:<9} ours {ours * 1e3:7.3f} ms ({found.exact.mean():.0%} proven, bounds from {bounds.min():.0%} of "
            f"the cost on), HiGHS {theirs * 1e3:6.1f} ms, HiGHS ÷ ours {theirs / ours:6.0f}   "
            f"target: at least {target}; our cost ÷ its {ratio.min():.3f} to {ratio.max():.3f}",
            flush=True,
        )


def one_program(model: Any, actions: ActionSet, person: pd.DataFrame, norm: str) -> float:
    """A program with a binary variable per value that somebody has, as tight and as small as we could make it.

    All allowed values would be hundreds of thousands; ours may therefore be cheaper.
    """
    slopes = model[-1].coef_[0] / model[0].scale_
    costs, gains, owners = [], [], []
    for j, name in enumerate(person.columns):
        feature = actions[name]
        if not feature.mutable:
            continue
        assert feature.percentiles is not None
        values = np.array(feature.percentiles.values)
        now = float(person[name].iloc[0])
        gain = slopes[j] * (values - now)
        useful = gain > 0  # a change for the worse helps nobody
        costs.append(feature.move_cost(norm, now, values[useful]))
        gains.append(gain[useful])
        owners.append(np.full(useful.sum(), j))
    cost, gain, owner = map(np.concatenate, (costs, gains, owners))
    need = -model.decision_function(person)[0]
    n = len(cost)
    names, rows = np.unique(owner, return_inverse=True)
    shape = (len(names), n)
    one_each = sparse.csr_array((np.ones(n), (rows, np.arange(n))), shape=shape)
    options = {"mip_rel_gap": 1e-6}
    if norm == "log_shift":
        limits = [LinearConstraint(one_each, -np.inf, 1), LinearConstraint(gain[None], need, np.inf)]
        return float(milp(cost, constraints=limits, integrality=np.ones(n), bounds=Bounds(0, 1), options=options).fun)
    largest = sparse.hstack([sparse.csr_array((cost, (rows, np.arange(n))), shape=shape), -np.ones((len(names), 1))])
    limits = [
        LinearConstraint(sparse.hstack([one_each, sparse.csr_array((len(names), 1))]), -np.inf, 1),
        LinearConstraint(largest, -np.inf, 0),
        LinearConstraint(np.r_[gain, 0.0][None], need, np.inf),
    ]
    bounds = Bounds(np.zeros(n + 1), np.r_[np.ones(n), np.inf])
    integral = np.r_[np.ones(n), 0]
    return float(
        milp(np.r_[np.zeros(n), 1.0], constraints=limits, integrality=integral, bounds=bounds, options=options).fun
    )


def forests(quick: bool) -> None:
    data = load_credit()
    X, y = data.data, data.target
    rows = np.random.default_rng(0).permutation(len(X))
    train, rest = rows[:5000], rows[5000:]
    n_trees = 20 if quick else 100
    models = {
        f"random forest {n_trees} × 4": RandomForestClassifier(n_trees, max_depth=4, random_state=0),
        f"gradient boosting {n_trees} × 3": GradientBoostingClassifier(n_estimators=n_trees, random_state=0),
        f"hist boosting {n_trees} × 4": HistGradientBoostingClassifier(max_iter=n_trees, max_depth=4, random_state=0),
    }
    print("Tree ensembles on credit, 21 features, exact, one core: seconds a person   target: median under 0.3")
    actions = ActionSet.from_frame(X, immutable=["age", "education"])
    for name, model in models.items():
        model.fit(X.iloc[train], y.iloc[train])
        people = X.iloc[rest][model.predict(X.iloc[rest]) == -1].head(2 if quick else 40)
        for norm in ("l1", "l2", "linf"):
            find = one_by_one(lambda person, m=model, n=norm: find_recourse(m, person, actions=actions, norm=n))
            times = [find(people.iloc[[i]]) for i in range(len(people))]
            print(f"{name:<26} {norm:<5} median {np.median(times):.3f}, 90 % {np.quantile(times, 0.9):.3f}, "
                  f"max {max(times):.3f}", flush=True)  # fmt: skip

    against_veritas(X, y, train, rest, n_trees, 2 if quick else 20)


def against_veritas(X: pd.DataFrame, y: Any, train: Any, rest: Any, n_trees: int, n_people: int) -> None:
    try:
        import veritas  # noqa: F401
    except ImportError:
        print("Veritas is not installed (pip install dtai-veritas)")
        return
    # From a wide box its search takes minutes, so it is only asked whether our distance is right.
    print(
        "The same in standard deviations, every feature free, L∞; Veritas confirms that a box 1e-4 wider has a yes and"
    )
    print("one 1e-4 narrower has none (seconds for these two questions, at most 10 each)")
    scaler = StandardScaler().fit(X.iloc[train])
    # Veritas reads 32-bit numbers.
    seen, unseen = (scaler.transform(X.iloc[rows]).astype(np.float32).astype(float) for rows in (train, rest))
    for name, model in {
        f"random forest {n_trees} × 4": RandomForestClassifier(n_trees, max_depth=4, random_state=0),
        f"gradient boosting {n_trees} × 3": GradientBoostingClassifier(n_estimators=n_trees, random_state=0),
    }.items():
        model.fit(seen, y.iloc[train])
        people = unseen[model.predict(unseen) == -1][:n_people]
        trees, threshold = read_trees(model, seen)
        ours, theirs, confirmed, late = [], [], 0, 0
        find_recourse(model, people[:1], norm="linf")
        for person in people:
            begun = time.perf_counter()
            cost = find_recourse(model, person[None], norm="linf").costs[0]
            middle = time.perf_counter()
            told = [reaches(trees, threshold, person, width) for width in (cost + 1e-4, cost - 1e-4) if width > 0]
            ours.append(middle - begun)
            theirs.append(time.perf_counter() - middle)
            confirmed += told in ([True, False], [True])
            late += None in told
        begun = time.perf_counter()
        find_recourse(model, people, norm="linf")
        together = (time.perf_counter() - begun) / len(people)
        print(
            f"{name:<26} ours median {np.median(ours):.3f} ({together:.3f} together), Veritas {np.median(theirs):.3f}; "
            f"{confirmed} of {len(people)} confirmed, {late} not answered in time",
            flush=True,
        )


def one_by_one(call: Callable[[pd.DataFrame], Any]) -> Callable[[pd.DataFrame], float]:
    def timed(person: pd.DataFrame) -> float:
        begun = time.perf_counter()
        call(person)
        return time.perf_counter() - begun

    return timed
