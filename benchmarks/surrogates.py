"""Surrogates of black boxes: against lime in time, and against true distances.

python -m benchmarks surrogates [--quick]
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from equirecourse import find_recourse
from equirecourse.datasets import load_credit, load_german
from equirecourse.recourse import SurrogateRecourse


def main(quick: bool = False) -> None:
    """Print both tables."""
    against_lime(quick)
    print()
    against_the_truth(quick)


def against_lime(quick: bool) -> None:
    try:
        from lime.lime_tabular import LimeTabularExplainer
    except ImportError:
        print("lime is not installed; make bench installs it")
        return
    data = load_credit()
    X, y = data.data.to_numpy(dtype=float), np.asarray(data.target)
    n_people, n_lime, n_samples = (50, 2, 500) if quick else (5000, 20, 5000)
    forest = RandomForestClassifier(100, max_depth=4, random_state=0).fit(X[:5000], y[:5000])
    explainer = LimeTabularExplainer(X, discretize_continuous=False, random_state=0)
    start = time.perf_counter()
    for row in X[:n_lime]:
        explainer.explain_instance(row, forest.predict_proba, num_features=10, num_samples=n_samples)
    theirs = (time.perf_counter() - start) / n_lime
    ours = SurrogateRecourse(n_sets=1, n_best=1, n_samples=n_samples, selection="weights").fit(forest, X[:100])
    ours.explain(forest, X[:10])
    start = time.perf_counter()
    ours.explain(forest, X[:n_people])
    mine = (time.perf_counter() - start) / n_people
    print(
        f"Surrogates of a random forest on credit, {X.shape[1]} features, {n_samples:,} samples, ten features chosen: "
        f"time a person\nours {mine * 1e3:.2f} ms, lime {theirs * 1e3:.0f} ms, lime ÷ ours {theirs / mine:.0f}   "
        "target: at least 100",
        flush=True,
    )


def against_the_truth(quick: bool) -> None:
    print("Spearman of surrogate and true distances of rejected people (in brackets: surrogates that say yes)")
    for name, data in (("german", load_german(paper=True)), ("credit", load_credit(paper=True))):
        X, y = data.data.astype(float).head(4000), np.asarray(data.target)[:4000]
        X = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)
        for kind, model in (
            ("logistic regression", LogisticRegression(class_weight="balanced", max_iter=2000)),
            ("random forest", RandomForestClassifier(100, max_depth=4, class_weight="balanced", random_state=0)),
        ):
            model.fit(X, y)
            people = X[model.predict(X) == -1].head(20 if quick else 300)
            true = find_recourse(model, people, norm="l2").costs
            line = f"{name:<7} {X.shape[1]:>3} features  {kind:<20}"
            for selection in ("none", "weights", "forward"):
                samples = 500 if quick else 5000
                surrogates = SurrogateRecourse(n_samples=samples, selection=selection).fit(model, X.head(samples))
                found = surrogates.explain(model, people)
                line += f"  {selection}: {spearmanr(true, found.distances())[0]:.3f} ({found.disagrees.mean():.0%})"
            print(line, flush=True)
