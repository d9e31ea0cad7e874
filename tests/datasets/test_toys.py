"""The toy sets show what the paper's first figure shows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from equirecourse.datasets import make_ring_groups, make_tilted_groups

TOYS = [make_tilted_groups, make_ring_groups]


def gaps(scores, near):
    """Mean distance to the boundary of the rejected, near and far, in units of the score."""
    rejected = scores < 0
    return -scores[rejected & near].mean(), -scores[rejected & ~near].mean()


@pytest.mark.parametrize("make", TOYS)
def test_same_seed_same_data(make):
    first, second, other = make(random_state=3), make(random_state=3), make(random_state=4)
    pd.testing.assert_frame_equal(first.frame, second.frame)
    pd.testing.assert_frame_equal(first.sensitive_features, second.sensitive_features)
    assert not first.data.equals(other.data)


@pytest.mark.parametrize("make", TOYS)
@pytest.mark.parametrize("n_samples", [8, 9, 301])
def test_sizes(make, n_samples):
    toy = make(n_samples, far_fraction=0.01, random_state=0)
    assert toy.data.shape == (n_samples, 2)
    assert (toy.target == 1).sum() == n_samples // 2
    rejected = toy.sensitive_features["group"][toy.target == -1]
    assert (rejected == "far").sum() >= 1
    assert (rejected == "near").sum() >= 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("make", "kernel"), [(make_tilted_groups, {"kernel": "linear"}), (make_ring_groups, {"gamma": 0.3})]
)
def test_plain_svm_is_accurate_and_farther_from_the_far_group(make, kernel, seed):
    toy = make(random_state=seed)
    model = SVC(C=10, **kernel).fit(toy.data, toy.target)
    assert model.score(toy.data, toy.target) > 0.98
    near, far = gaps(model.decision_function(toy.data), (toy.sensitive_features["group"] == "near").to_numpy())
    assert far > 1.2 * near


@pytest.mark.parametrize("seed", range(3))
def test_equal_distances_tilt_the_linear_boundary(seed):
    toy = make_tilted_groups(random_state=seed)
    X, y = toy.data.to_numpy(), toy.target.to_numpy()
    near = (toy.sensitive_features["group"] == "near").to_numpy()
    plain = SVC(C=10, kernel="linear").fit(X, y).coef_[0]
    between = X[near & (y < 0)].mean(axis=0) - X[~near & (y < 0)].mean(axis=0)
    projection = np.eye(2) - np.outer(between, between) / (between @ between)
    fair_model = SVC(C=10, kernel="linear").fit(X @ projection, y)
    fair = projection @ fair_model.coef_[0]
    cosine = plain @ fair / np.linalg.norm(plain) / np.linalg.norm(fair)
    assert 20 < np.degrees(np.arccos(cosine)) < 50
    assert fair_model.score(X @ projection, y) > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_equal_distances_give_the_ring_a_second_margin(seed):
    toy = make_ring_groups(random_state=seed)
    X, y = toy.data.to_numpy(), toy.target.to_numpy()
    near = (toy.sensitive_features["group"] == "near").to_numpy()
    balance = np.where(near, 1 / (near & (y < 0)).sum(), -1 / (~near & (y < 0)).sum()) * (y < 0)
    radius, angle = np.meshgrid(np.linspace(0, 5, 51), np.linspace(0, 2 * np.pi, 60, endpoint=False))
    grid = np.column_stack([(radius * np.cos(angle)).ravel(), (radius * np.sin(angle)).ravel()])
    K, K_grid = rbf_kernel(X, gamma=0.1), rbf_kernel(grid, X, gamma=0.1)
    direction = K @ balance
    norm = balance @ direction

    def margins(K, K_grid):
        """How often the score, averaged over angles, crosses −1 on the way out."""
        scores = SVC(C=10, kernel="precomputed").fit(K, y).decision_function(K_grid)
        return int(np.diff(scores.reshape(radius.shape).mean(axis=0) < -1).sum())

    assert margins(K, K_grid) == 1
    fair = margins(K - np.outer(direction, direction) / norm, K_grid - np.outer(K_grid @ balance, direction) / norm)
    assert fair == 2


@pytest.mark.parametrize("make", TOYS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 3}, "n_samples must be a whole number of at least 8, got 3"),
        ({"n_samples": 10.5}, "n_samples must be a whole number"),
        ({"n_samples": True}, "n_samples must be a whole number"),
        ({"far_fraction": 0}, "far_fraction must lie strictly between 0 and 1, got 0"),
        ({"far_fraction": float("nan")}, "far_fraction must lie strictly between 0 and 1"),
        ({"noise": -1.0}, "noise must be a finite standard deviation of at least 0"),
        ({"noise": float("inf")}, "noise must be a finite"),
        ({"noise": "loud"}, "noise must be a finite"),
    ],
)
def test_bad_parameters_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
