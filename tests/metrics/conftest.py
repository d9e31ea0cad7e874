"""People for the tests of the metrics."""

import numpy as np
import pytest


@pytest.fixture
def people():
    """Costs, groups and rejections of 300 people of three unequal groups; no two costs are tied."""
    rng = np.random.default_rng(7)
    group = rng.choice(["a", "b", "c"], size=300, p=[0.5, 0.3, 0.2])
    rejected = rng.random(300) < 0.6
    costs = np.where(rejected, rng.gamma(2.0, np.where(group == "a", 1.0, 0.7)), 0.0)
    return costs, group, rejected
