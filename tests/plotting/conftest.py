"""People, a frontier and toy models for the tests of the figures, which are drawn without a screen."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def people():
    """Costs, rejections and groups of 400 people; eight of the rejected have no recourse."""
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b", "c"], size=400, p=[0.5, 0.3, 0.2])
    rejected = rng.random(400) < 0.5
    costs = np.where(rejected, rng.gamma(2.0, np.where(group == "a", 1.0, 0.6)), 0.0)
    costs[np.flatnonzero(rejected & (group == "b"))[:8]] = np.inf
    return SimpleNamespace(costs=costs, rejected=rejected, group=group)


@pytest.fixture
def frontier_table():
    return pd.DataFrame(
        {
            "recourse_penalty": [0.0, 1.0, 10.0, np.inf],
            "gap": [0.30, 0.15, 0.05, 0.01],
            "gap_low": [0.25, 0.1, 0.01, 0.0],
            "gap_high": [0.35, 0.2, 0.09, 0.05],
            "noise_floor": [0.03, 0.03, 0.025, 0.02],
            "accuracy": [0.80, 0.797, 0.792, 0.78],
            "converged": [1.0, 1.0, 0.8, 1.0],
        }
    )
