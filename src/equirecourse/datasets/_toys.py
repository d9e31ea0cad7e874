"""The two toy sets of the paper's first figure: people in the plane, one rejected group farther off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from equirecourse.datasets._actions import toy_actions
from equirecourse.datasets._bunch import make_bunch

__all__ = ["make_ring_groups", "make_tilted_groups"]

DESCR = """\
{title} {underline} People in the plane. Target: +1 accepted, -1 rejected. Groups
(sensitive_features["group"]): "near" and "far", named after where their rejected members lie; the accepted
members of both groups come from one cloud. Made by equirecourse after the example in section "An example"
of the paper.
"""


def _check(n_samples: Any, far_fraction: Any, noise: Any) -> None:
    if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 8:
        raise ValueError(f"n_samples must be a whole number of at least 8, got {n_samples!r}.")
    if not isinstance(far_fraction, (int, float, np.number)) or not 0 < far_fraction < 1:
        raise ValueError(f"far_fraction must lie strictly between 0 and 1, got {far_fraction!r}.")
    if not isinstance(noise, (int, float, np.number)) or not 0 <= noise < np.inf:
        raise ValueError(f"noise must be a finite standard deviation of at least 0, got {noise!r}.")


def _sizes(n_samples: int, far_fraction: float) -> tuple[int, int, int]:
    """Count the accepted, the near and the far: half are accepted, and no part is empty."""
    n_accepted = n_samples // 2
    n_rejected = n_samples - n_accepted
    n_far = min(max(round(far_fraction * n_rejected), 1), n_rejected - 1)
    return n_accepted, n_rejected - n_far, n_far


def _toy(
    accepted: NDArray[np.float64],
    near: NDArray[np.float64],
    far: NDArray[np.float64],
    *,
    title: str,
    random_state: np.random.RandomState,
    return_X_y: bool,
    as_frame: bool,
) -> Bunch | tuple[Any, Any]:
    """Put three clouds together in random order; the accepted are of both groups, like the rejected."""
    n_far = round(len(accepted) * len(far) / (len(near) + len(far)))
    points = np.concatenate([accepted, near, far])
    target = np.repeat([1, -1, -1], [len(accepted), len(near), len(far)])
    group = np.repeat(["near", "far", "near", "far"], [len(accepted) - n_far, n_far, len(near), len(far)])
    order = random_state.permutation(len(points))
    return make_bunch(
        features=pd.DataFrame(points[order], columns=["x0", "x1"]),
        target=target[order].astype(np.int64),
        target_name="accepted",
        target_names=("rejected", "accepted"),
        sensitive_features=pd.DataFrame({"group": group[order].astype(object)}),
        favorable_label=1,
        actions=toy_actions,
        descr=DESCR.format(title=title, underline="-" * len(title)),
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def make_tilted_groups(
    n_samples: int = 300,
    *,
    far_fraction: float = 0.2,
    noise: float = 0.45,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Make two rejected groups below a cloud of accepted people, the smaller one farther off and to the side.

    Three normal clouds: accepted around (0, 3), the near group around (0.5, 0), the far group around
    (3.5, −2). A linear model that looks at labels alone puts its boundary across the way from accepted to
    near. A boundary that is tilted by 30 to 45 degrees, parallel to the line through the two rejected clouds,
    is equally far from both and still accepts the right people: the linear case of the paper's first figure.

    Parameters
    ----------
    n_samples : int, default=300
        The number of people, half of them accepted.
    far_fraction : float, default=0.2
        The share of the far group.
    noise : float, default=0.45
        The standard deviation of the clouds.
    random_state : int, RandomState instance or None, default=None
        The seed.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return pandas objects; arrays if False.

    Returns
    -------
    Bunch
        ``data`` (``x0``, ``x1``), ``target`` (+1 accepted, −1 rejected), ``frame``, ``sensitive_features``
        (``group``: "near" or "far"), ``feature_names``, ``target_names``, ``favorable_label``,
        ``actions`` (moves in the plane; the cost is the length), ``DESCR``.

    Examples
    --------
    >>> from equirecourse.datasets import make_tilted_groups
    >>> toy = make_tilted_groups(n_samples=100, random_state=0)
    >>> toy.data.shape
    (100, 2)
    >>> toy.sensitive_features["group"].value_counts().to_dict()
    {'near': 80, 'far': 20}
    """
    _check(n_samples, far_fraction, noise)
    rng = check_random_state(random_state)
    centers = ((0.0, 3.0), (0.5, 0.0), (3.5, -2.0))
    clouds = [
        np.asarray(center) + noise * rng.standard_normal((size, 2))
        for center, size in zip(centers, _sizes(n_samples, far_fraction), strict=True)
    ]
    return _toy(*clouds, title="Tilted groups", random_state=rng, return_X_y=return_X_y, as_frame=as_frame)


def make_ring_groups(
    n_samples: int = 300,
    *,
    far_fraction: float = 0.3,
    noise: float = 0.2,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Make a disc of accepted people, a ring of rejected ones around it, and a farther ring around both.

    The accepted fill the disc of radius 1, the near group lies around the circle of radius 2.2, the far
    group around the circle of radius 4. No line separates them; an SVM with an rbf kernel puts its boundary
    around the disc. With a wide kernel (``gamma=0.1``) its margin at −1 is one closed line around the disc;
    equal distances add a second one around the far ring, so that both rejected groups lie between the two:
    the non-linear case of the paper's first figure.

    Parameters
    ----------
    n_samples : int, default=300
        The number of people, half of them accepted.
    far_fraction : float, default=0.3
        The share of the far group.
    noise : float, default=0.2
        The standard deviation of the distance from the centre.
    random_state : int, RandomState instance or None, default=None
        The seed.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return pandas objects; arrays if False.

    Returns
    -------
    Bunch
        ``data`` (``x0``, ``x1``), ``target`` (+1 accepted, −1 rejected), ``frame``, ``sensitive_features``
        (``group``: "near" or "far"), ``feature_names``, ``target_names``, ``favorable_label``,
        ``actions`` (moves in the plane; the cost is the length), ``DESCR``.

    Examples
    --------
    >>> from equirecourse.datasets import make_ring_groups
    >>> toy = make_ring_groups(n_samples=100, random_state=0)
    >>> toy.data.shape
    (100, 2)
    >>> int((toy.target == 1).sum())
    50
    """
    _check(n_samples, far_fraction, noise)
    rng = check_random_state(random_state)
    n_accepted, n_near, n_far = _sizes(n_samples, far_fraction)
    # The square root makes the disc evenly filled.
    radii = (np.sqrt(rng.uniform(size=n_accepted)), np.full(n_near, 2.2), np.full(n_far, 4.0))
    clouds = []
    for radius in radii:
        angle = rng.uniform(0, 2 * np.pi, size=len(radius))
        distance = radius + noise * rng.standard_normal(len(radius))
        clouds.append(distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
    return _toy(*clouds, title="Ring groups", random_state=rng, return_X_y=return_X_y, as_frame=as_frame)
