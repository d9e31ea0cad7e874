"""L∞ distances of tree ensembles equal those of Veritas, an exact search that was not written here."""

import numpy as np
import pytest
from benchmarks._veritas import read_trees, smallest_box
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from equirecourse import find_recourse

pytest.importorskip("veritas")


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(25, max_depth=4, random_state=0),
        GradientBoostingClassifier(n_estimators=30, max_depth=3, random_state=0),
    ],
    ids=["forest", "boosting"],
)
def test_largest_change_equals_veritas(model):
    X, y = make_classification(400, 8, n_informative=5, random_state=0)
    X = X.astype(np.float32).astype(np.float64)
    model.fit(X, y)
    trees, threshold = read_trees(model, X)
    people = X[model.predict(X) == 0][:15]
    found = find_recourse(model, people, norm="linf")
    assert found.method == "trees"
    assert found.exact.all()
    theirs = [smallest_box(trees, threshold, person, 20.0) for person in people]
    np.testing.assert_allclose(found.costs, theirs, atol=5e-6)
