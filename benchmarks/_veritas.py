"""The same question to Veritas, an exact search over tree ensembles that was not written here."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_trees(model: Any, X: np.ndarray) -> tuple[Any, float]:
    """Veritas' form of a model, and the output above which the model says yes."""
    import veritas

    trees = veritas.get_addtree(model, silent=True)
    # Veritas sums leaves in its own units; a yes is where the probability passes one half.
    outputs = np.ravel(trees.eval(X.astype(np.float32)))
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1] - 0.5
    slope, shift = np.polyfit(outputs, scores, 1)
    np.testing.assert_allclose(slope * outputs + shift, scores, atol=1e-5)
    return trees, float(-shift / slope)


def reaches(trees: Any, threshold: float, person: np.ndarray, width: float, seconds: float = 10.0) -> bool | None:
    """Whether the output passes the threshold within a box around a person; None if time ran out."""
    import veritas

    config = veritas.Config(veritas.HeuristicType.MAX_OUTPUT)
    config.ignore_state_when_worse_than = threshold
    config.stop_when_num_solutions_exceeds = 1
    box = [veritas.Interval(float(value - width), float(value + width)) for value in person]
    search = config.get_search(trees, box)
    reason = search.step_for(seconds, 100)
    if search.num_solutions() > 0 and search.get_solution(0).output > threshold:
        return True
    return None if reason == veritas.StopReason.NONE else False


def smallest_box(trees: Any, threshold: float, person: np.ndarray, high: float, close: float = 1e-6) -> float:
    """Half the width of the smallest box around a person in which the output passes the threshold, by bisection."""
    if not reaches(trees, threshold, person, high):
        return np.inf
    low = 0.0
    while high - low > close:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reaches(trees, threshold, person, middle) else (middle, high)
    return high
