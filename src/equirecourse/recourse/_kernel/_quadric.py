r"""The nearest point of a quadric: numbers only, except for reading the quadric off a model.

Notation
--------
u    a move, in units of its cost: the cost of the move is ‖u‖
A    symmetric matrix, b vector, c < 0: the move is accepted if uᵀAu + b·u + c ≥ 0
λ    eigenvalues of A, β the vector b in its eigenvectors
μ    multiplier of the constraint

The constraint is one quadratic, so there is no duality gap (S-lemma): a move is the cheapest one exactly if
(I − μA) u = μb/2 with I − μA positive semidefinite, and the constraint is an equality. In the eigenvectors
uᵢ = μβᵢ / 2Dᵢ with Dᵢ = 1 − μλᵢ ≥ 0, and what is left is one equation in one unknown, the secular equation

    c + Σ βᵢ² μ(1 + Dᵢ) / 4Dᵢ² = 0,

whose left side rises with μ. If A has a positive eigenvalue, μ ends at 1/λmax. The hard case: b has no part in the
eigenspace of λmax, and the equation has no root up to there; then the rest of the way is made in that eigenspace, in
either direction. If A has none, μ has no end, and the left side may stay below 0: there is no accepted point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

__all__ = ["Nearest", "Quadric", "nearest_on_quadric", "quadric_of"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Relative error that sums of products of floats may leave in an eigenvalue or a coefficient.
_ROUNDING = 16 * np.finfo(float).eps
# Roots are bracketed from here on by geometric means: 80 of them leave no digit of a float undecided.
_NEAR = 1e-300
_HALVINGS = 80


@dataclass(frozen=True)
class Nearest:
    """Nearest accepted points, one row per person.

    Attributes
    ----------
    moves : ndarray of shape (n_people, n_features)
        The cheapest move; NaN where there is none.
    mirrored : ndarray of shape (n_people, n_features)
        Another move of the same cost in the hard case; elsewhere the same move again.
    exists : ndarray of bool
        Whether there is an accepted point at all.
    """

    moves: Array
    mirrored: Array
    exists: Mask

    @property
    def costs(self) -> Array:
        """‖u‖, infinite where there is no accepted point."""
        return np.where(self.exists, np.linalg.norm(np.nan_to_num(self.moves), axis=1), np.inf)


def nearest_on_quadric(A: Array, b: Array, c: Array, *, noise: float = 0.0) -> Nearest:
    """Solve min ‖u‖ subject to uᵀAu + b·u + c ≥ 0 for many b and c at once.

    Parameters
    ----------
    A : ndarray of shape (n_features, n_features)
        Symmetric, the same for everybody.
    b : ndarray of shape (n_people, n_features)
        Linear parts.
    c : ndarray of shape (n_people,)
        Constant parts: the score at no move. People whose c is not negative need no move.
    noise : float, default=0.0
        Size of the rounding error in an entry of b; a smaller part of b in the null space of A counts as none.

    Returns
    -------
    Nearest
        The cheapest moves.

    Examples
    --------
    From the centre of the circle u₁² + u₂² = 4 every direction is as good, which is a hard case:

    >>> import numpy as np
    >>> from equirecourse.recourse._kernel._quadric import nearest_on_quadric
    >>> nearest_on_quadric(np.eye(2), np.zeros((1, 2)), np.array([-4.0])).costs
    array([2.])
    """
    eigenvalues, axes = np.linalg.eigh(A)
    scale = float(np.abs(eigenvalues).max(initial=0.0))
    eigenvalues = np.where(np.abs(eigenvalues) <= len(A) * _ROUNDING * scale, 0.0, eigenvalues)
    beta = b @ axes
    needs_move = c < 0
    if not np.any(eigenvalues > 0):
        # Along an axis without curvature any slope leads there in the end, so that noise must not count as a slope.
        beta = np.where((eigenvalues == 0) & (np.abs(beta) <= max(noise, 0.0)), 0.0, beta)
    moves = np.zeros_like(beta)
    mirrored = moves.copy()
    exists = ~needs_move
    solve = _with_ascent if np.any(eigenvalues > 0) else _without_ascent
    if needs_move.any():
        solved = solve(eigenvalues, beta[needs_move], c[needs_move])
        moves[needs_move], mirrored[needs_move], exists[needs_move] = solved.moves, solved.mirrored, solved.exists
    return Nearest(moves @ axes.T, mirrored @ axes.T, exists)


def _with_ascent(eigenvalues: Array, beta: Array, c: Array) -> Nearest:
    """Nearest points where A has a positive eigenvalue: there always is one."""
    top = eigenvalues.max()
    share = eigenvalues / top
    gap = (top - eigenvalues) / top
    first_half = _left_side(beta, c, 0.5 / top, 1.0 - 0.5 * share) >= 0

    def at(x: Array) -> tuple[Array, Array]:
        """μ and D, where x is μλmax in the first half of the range, and in the second, for its digits, 1 − μλmax."""
        x = x[:, None]
        half = first_half[:, None]
        return np.where(half, x, 1.0 - x) / top, np.where(half, 1.0 - x * share, gap + x * share)

    # In the first half the left side rises with x, in the second it falls.
    rising = np.where(first_half, 1.0, -1.0)
    low, high = _root(lambda x: rising * _left_side(beta, c, *at(x)), len(c), 0.5)
    mu, D = at(np.where(first_half, high, low))
    moves = mu * beta / (2.0 * D)
    mirrored = moves.copy()
    is_top = gap == 0.0
    hard = ~np.any(beta[:, is_top] != 0.0, axis=1) & ~first_half
    if hard.any():
        axis = int(np.flatnonzero(is_top)[-1])
        rest = beta[hard] / (2.0 * top * np.where(is_top, 1.0, gap))
        rest[:, is_top] = 0.0
        missing = -((rest**2) @ eigenvalues + (beta[hard] * rest).sum(axis=1) + c[hard])
        # Where nothing is missing the root lies before the end, and the bisection has found it.
        way = np.flatnonzero(hard)[missing >= 0]
        for found, sign in ((moves, 1.0), (mirrored, -1.0)):
            found[way] = rest[missing >= 0]
            found[way, axis] = sign * np.sqrt(missing[missing >= 0] / top)
    return Nearest(moves, mirrored, np.ones(len(c), dtype=bool))


def _without_ascent(eigenvalues: Array, beta: Array, c: Array) -> Nearest:
    """Nearest points where A is negative semidefinite or zero: there may be none."""
    scale = float(np.abs(eigenvalues).max(initial=0.0)) or 1.0
    down = -eigenvalues / scale
    flat = eigenvalues == 0
    slope = np.any(beta[:, flat] != 0.0, axis=1)
    ceiling = c + (beta[:, ~flat] ** 2 / (-4.0 * eigenvalues[~flat])).sum(axis=1)
    exists = slope | (ceiling >= 0)
    # x = μ · scale has no end. A person at the very top of the hill needs μ = ∞, which the far end stands for.
    _, high = _root(lambda x: _left_side(beta, c, x[:, None] / scale, 1.0 + x[:, None] * down), len(c), 1.0 / _NEAR)
    x = high[:, None]
    moves = x / scale * beta / (2.0 * (1.0 + x * down))
    moves[~exists] = np.nan
    return Nearest(moves, moves.copy(), exists)


def _root(rising: Callable[[Array], Array], n: int, end: float) -> tuple[Array, Array]:
    """Bracket of the root of rising functions, one per person; both ends at ``end`` if the root is not before it."""
    low, high = np.full(n, _NEAR), np.full(n, end)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low) * np.sqrt(high)
        beyond = rising(middle) >= 0
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low, high


def _left_side(beta: Array, c: Array, mu: Any, D: Array) -> Array:
    """Score after the move that belongs to μ. A part of b that is zero adds nothing, even where D is."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        parts = (beta / D) ** 2 * (mu * (1.0 + D)) / 4.0
    return np.asarray(c + np.where(beta == 0.0, 0.0, parts).sum(axis=1))


@dataclass(frozen=True)
class Quadric:
    """The score zᵀQz + q·z + r of a model's inputs z; more is better.

    Attributes
    ----------
    curvature : ndarray of shape (n_inputs, n_inputs)
        Q, symmetric.
    slope : ndarray of shape (n_inputs,)
        q.
    level : float
        r.
    """

    curvature: Array
    slope: Array
    level: float

    def values(self, inputs: Array) -> Array:
        """Score of each row."""
        return np.asarray(((inputs @ self.curvature) * inputs).sum(axis=1) + inputs @ self.slope + self.level)

    def gradients(self, inputs: Array) -> Array:
        """Gradient of the score at each row."""
        return np.asarray(2.0 * inputs @ self.curvature + self.slope)


def quadric_of(model: Any, sign: float) -> Quadric | None:
    """Read the quadratic score of a model, times ``sign``; None for a model whose score is not known to be quadratic.

    Support vector machines with a polynomial kernel of degree 2 or less, quadratic discriminant analysis and
    Gaussian naive Bayes have one.
    """
    if isinstance(model, QuadraticDiscriminantAnalysis | GaussianNB):
        return _of_gaussians(model, sign)
    kernel = getattr(model, "kernel", None)
    if not isinstance(kernel, str) or not hasattr(model, "dual_coef_") or not hasattr(model, "support_vectors_"):
        return None
    if not (kernel == "linear" or (kernel == "poly" and model.degree in (1, 2))):
        return None
    coef, points = sign * np.ravel(dense(model.dual_coef_)), dense(model.support_vectors_)
    level = sign * float(np.ravel(model.intercept_)[0])
    nothing = np.zeros((points.shape[1], points.shape[1]))
    if kernel == "linear":
        return Quadric(nothing, coef @ points, level)
    gamma, shift = float(model._gamma), float(model.coef0)
    if model.degree == 1:
        return Quadric(nothing, gamma * (coef @ points), level + shift * float(coef.sum()))
    curvature = gamma**2 * (points.T * coef) @ points
    return Quadric(
        0.5 * (curvature + curvature.T), 2.0 * gamma * shift * (coef @ points), level + shift**2 * float(coef.sum())
    )


def _of_gaussians(model: Any, sign: float) -> Quadric:
    """The difference of two log densities."""
    quadrics = []
    for k in (0, 1):
        if isinstance(model, GaussianNB):
            mean, variances, axes = model.theta_[k], model.var_[k], np.eye(len(model.theta_[k]))
            prior = model.class_prior_[k]
        else:
            mean, variances, axes, prior = model.means_[k], model.scalings_[k], model.rotations_[k], model.priors_[k]
        precision = (axes / variances) @ axes.T
        constant = np.log(prior) - 0.5 * (np.log(variances).sum() + mean @ precision @ mean)
        quadrics.append((-0.5 * precision, precision @ mean, float(constant)))
    no, yes = quadrics
    return Quadric(sign * (yes[0] - no[0]), sign * (yes[1] - no[1]), sign * (yes[2] - no[2]))


def dense(matrix: Any) -> Array:
    """A matrix of a model, which may be sparse, as an array of floats."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
