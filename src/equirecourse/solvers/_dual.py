r"""The recourse-regularised SVM in its dual, for a fixed set of rejected people.

    minimise ½‖w‖² + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ)) + penalty(u),    f(x) = w·Φ(x) + b,    u = Zᵀw + sums · b

Notation
--------
K        ⟨Φ(xᵢ), Φ(xⱼ)⟩, n × n
Z        r balance directions in feature space, ``z_q = Σ_j S_jq Φ(C x_j)``
cross    ⟨Φ(xᵢ), z_q⟩, n × r
inner    ⟨z_q, z_s⟩, r × r
sums     Σ_j S_jq, the weight of the intercept in u; zero when each group's weights sum to one
β        label × γ of the paper; t its γ_{n+1}, one per direction; w = Σ βᵢ Φ(xᵢ) + Σ t_q z_q
κ        stiffness: the penalty is ½κ‖u‖²; ``inf`` is the constraint u = 0

A direction whose sum is zero leaves the problem by elimination: it is deflated from the kernel (a rank-one change).
After a rotation at most one direction has a sum that is not zero; it becomes one more point of the dual, with
target 0 and no bounds, because its coefficient takes part in Σβ + sums·t = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.solvers._polish import intercept_from, polish
from equirecourse.solvers._smo import solve_pairs, times_rows

__all__ = ["Balance", "DualSolution", "KernelDual", "penalised", "stiffness_matrix"]

Array = NDArray[np.float64]

_ZERO_SUM = 1e-12  # sums below this are the rounding of group weights that add up to +1 and −1
_ROUGHLY = 0.1  # violation of a solution that is only to tell a side
_CHEAP = 100  # free coefficients up to which a solution within the tolerance is made exact
_STEPS_A_ROUND = 800  # pair steps that take as long as one system of so many
_MOST_ROUNDS = 200


@dataclass(frozen=True)
class Balance:
    """Inner products that describe the balance directions (see the notation above)."""

    cross: Array
    inner: Array
    sums: Array
    directions: Array | None = None  # Z itself, features × r, where the feature space is the input space

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def sums_to_zero(self) -> bool:
        """Whether the intercept drops out of every difference."""
        return bool(np.all(np.abs(self.sums) <= _ZERO_SUM))

    def rotate(self, rotation: Array) -> Balance:
        """The same span of directions in another orthonormal basis; ‖u‖ does not change."""
        return Balance(self.cross @ rotation, rotation.T @ self.inner @ rotation, self.sums @ rotation)


@dataclass(frozen=True)
class DualSolution:
    """A solution of the dual: coefficients, multipliers, intercept, and how exact they are."""

    beta: Array
    gram_beta: Array  # K β, the dearest product there is, and needed again
    multiplier: Array
    intercept: float
    violation: float
    n_iter: int

    def scores(self, balance: Balance | None) -> Array:
        """The score of every training point."""
        scores = self.gram_beta + self.intercept
        if balance is not None:
            scores = scores + balance.cross @ self.multiplier
        return np.asarray(scores)

    def squared_norm(self, balance: Balance | None) -> float:
        """‖w‖²."""
        value = self.beta @ self.gram_beta
        if balance is not None:
            t = self.multiplier
            value = value + 2 * t @ (balance.cross.T @ self.beta) + t @ balance.inner @ t
        return max(float(value), 0.0)

    def differences(self, balance: Balance) -> Array:
        """The balance differences u of the penalty, in units of the score."""
        u = balance.cross.T @ self.beta + balance.inner @ self.multiplier + balance.sums * self.intercept
        return np.asarray(u)


def stiffness_matrix(inner: Array, stiffness: float) -> Array:
    """(κ⁻¹ I + inner)⁺, the matrix of the deflation; directions of length zero are left alone."""
    if stiffness == 0 or len(inner) == 0:
        return np.zeros_like(inner)
    values, vectors = np.linalg.eigh(inner)
    scale = np.abs(values).max(initial=0.0)
    significant = np.abs(values) > 1e-12 * scale
    softened = values + (0.0 if np.isinf(stiffness) else 1.0 / stiffness)
    inverse = np.where(significant, 1.0 / np.where(significant, softened, 1.0), 0.0)
    return np.asarray((vectors * inverse) @ vectors.T)


def _sum_to_last(sums: Array) -> Array:
    """An orthogonal matrix Q such that only the last entry of ``sums @ Q`` differs from zero."""
    r = len(sums)
    target = np.zeros(r)
    target[-1] = np.linalg.norm(sums)
    v = sums - target
    if np.linalg.norm(v) <= 1e-15:
        return np.eye(r)
    return np.asarray(np.eye(r) - 2.0 * np.outer(v, v) / (v @ v))


@dataclass(frozen=True)
class _Pairs:
    """What the pair steps found, over all points of a dual."""

    beta: Array
    gram_beta: Array
    intercept: float
    violation: float
    n_iter: int

    @property
    def ending(self) -> tuple[float, float, int]:
        return self.intercept, self.violation, self.n_iter


class KernelDual:
    """One training set, solved again and again for other directions and penalties, each from the last solution.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        Kernel matrix, in double or single precision. Coefficients and gradients are in double precision.
    y : ndarray, shape (n,)
        Labels ±1.
    C : ndarray, shape (n,)
        Bound of each γ, the weight of a person's hinge loss.
    tol : float
        Largest violation of the optimality conditions.
    max_iter : int
        Largest number of pair steps per solve.
    """

    def __init__(self, K: Array, y: Array, C: Array, *, tol: float = 1e-4, max_iter: int = 10_000_000) -> None:
        self.K: Any = np.ascontiguousarray(K, dtype=np.float32 if K.dtype == np.float32 else np.float64)
        self.y = y.astype(np.float64)
        self.lower, self.upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        self.tol, self.max_iter = tol, max_iter
        self._beta, self._gram_beta = np.zeros(len(y)), np.zeros(len(y))
        self._extended: Any = None
        self._inside = False  # whether the multiplier of the last penalty was inside its bounds

    def start_from(self, solution: DualSolution) -> None:
        """Begin the next solve at a solution that was found elsewhere."""
        self._beta, self._gram_beta = solution.beta, solution.gram_beta

    def solve(
        self, balance: Balance | None = None, *, stiffness: float = np.inf, multiplier: Array | None = None
    ) -> DualSolution:
        """Solve with the penalty ½κ‖u‖², or with the multipliers held at given values.

        Parameters
        ----------
        balance : Balance or None
            The directions; None is the plain SVM.
        stiffness : float
            κ; 0 is the plain SVM and ``inf`` hard equality.
        multiplier : ndarray or None
            Fixed t: the penalty is then linear, ``−t·u``, and nothing is deflated. Only for sums of zero.
        """
        r = 0 if balance is None else len(balance)
        if balance is None or stiffness == 0:
            nothing = np.empty((0, len(self.y)))
            found = self._pairs(self.K, nothing, nothing, self.y, self.lower, self.upper, self._beta, self._gram_beta)
            solution = DualSolution(found.beta, found.gram_beta, np.zeros(r), *found.ending)
        elif multiplier is not None:
            nothing = np.empty((0, len(self.y)))
            linear = self.y - balance.cross @ multiplier
            found = self._pairs(self.K, nothing, nothing, linear, self.lower, self.upper, self._beta, self._gram_beta)
            solution = DualSolution(found.beta, found.gram_beta, multiplier, *found.ending)
        elif balance.sums_to_zero:
            M = stiffness_matrix(balance.inner, stiffness)
            A, B = np.ascontiguousarray((balance.cross @ M).T), np.ascontiguousarray(balance.cross.T)
            found = self._pairs(self.K, A, B, self.y, self.lower, self.upper, self._beta, self._gram_beta)
            solution = DualSolution(found.beta, found.gram_beta, -(B @ found.beta) @ M, *found.ending)
        else:
            solution = self._solve_with_pseudo_point(balance, stiffness)
        self._beta, self._gram_beta = solution.beta, solution.gram_beta
        return solution

    def solve_penalty(self, balance: Balance, penalty: float) -> DualSolution:
        """Solve with the paper's penalty λ|u| for one direction."""
        if balance.sums_to_zero:
            if not self._beta.any():
                self._begin_roughly()
            solution = penalised(self.solve, balance, penalty, self._beta, self._inside)
            self._inside = bool(abs(solution.multiplier[0]) < penalty)
            return solution
        hard = self.solve(balance)
        if abs(float(hard.multiplier[0])) <= penalty:
            return hard
        return self._solve_with_pseudo_point(balance, np.inf, bound=penalty)

    def _begin_roughly(self) -> None:
        """A rough plain solution: from nothing nobody can tell which bound a multiplier will be at."""
        nothing, zero = np.empty((0, len(self.y))), np.zeros(len(self.y))
        bounds = self.lower, self.upper
        self._beta, _, self._gram_beta = solve_pairs(
            self.K, nothing, nothing, self.y, *bounds, zero, zero, tol=_ROUGHLY, max_iter=self.max_iter
        )

    def _solve_with_pseudo_point(self, balance: Balance, stiffness: float, bound: float = np.inf) -> DualSolution:
        """The form where one direction carries the intercept: that direction is point n + 1 of the dual."""
        n = len(self.y)
        Q = _sum_to_last(balance.sums)
        rotated = balance.rotate(Q)
        c = rotated.sums[-1]
        if self._extended is None:
            self._extended = np.empty((n + 1, n + 1), dtype=self.K.dtype)
            self._extended[:n, :n] = self.K
        G = self._extended
        G[:n, n] = G[n, :n] = rotated.cross[:, -1] / c
        softening = 0.0 if np.isinf(stiffness) else 1.0 / stiffness
        G[n, n] = (rotated.inner[-1, -1] + softening) / c**2
        M = stiffness_matrix(rotated.inner[:-1, :-1], stiffness)
        cross = np.vstack([rotated.cross[:, :-1], rotated.inner[-1:, :-1] / c])
        A, B = np.ascontiguousarray((cross @ M).T), np.ascontiguousarray(cross.T)
        reach = bound * abs(c)
        lower, upper = np.append(self.lower, -reach), np.append(self.upper, reach)
        # A start that satisfies Σβ = 0: the pseudo point takes what the others leave.
        pseudo = float(np.clip(-self._beta.sum(), -reach, reach))
        start = np.append(self._beta if pseudo == -self._beta.sum() else np.zeros(n), 0.0)
        start[n] = -start[:n].sum()
        found = self._pairs(G, A, B, np.append(self.y, 0.0), lower, upper, start, times_rows(G, start))
        at_pseudo = float(found.beta[n])
        t = np.append(-(B @ found.beta) @ M, at_pseudo / c)
        return DualSolution(found.beta[:n], found.gram_beta[:n] - G[:n, n] * at_pseudo, Q @ t, *found.ending)

    def _pairs(
        self, K: Any, A: Array, B: Array, p: Array, lower: Array, upper: Array, start: Array, gram_start: Array
    ) -> _Pairs:
        if abs(start.sum()) > 1e-9 * max(1.0, np.abs(start).max(initial=0.0)):
            start, gram_start = np.zeros_like(start), np.zeros_like(start)
        beta, steps, gram_beta = solve_pairs(
            K, A, B, p, lower, upper, start, gram_start, tol=self.tol, max_iter=self.max_iter
        )
        free = int(((beta > lower) & (beta < upper)).sum())

        # Only few coefficients move: their rows tell how the product with the kernel matrix changes.
        def gradient(moved: Array) -> Array:
            return np.asarray(gram_beta + times_rows(K, moved - beta) - A.T @ (B @ moved) - p)

        exact, g, violation = polish(
            lambda rows: K[np.ix_(rows, rows)] - A[:, rows].T @ B[:, rows],
            gradient,
            lower,
            upper,
            beta,
            rounds=min(max(steps // _STEPS_A_ROUND, 1), _MOST_ROUNDS) if free <= _CHEAP else 0,
        )
        gram_exact = g + p + A.T @ (B @ exact)
        return _Pairs(exact, gram_exact, intercept_from(g, exact, lower, upper), violation, steps)


def penalised(
    solve: Callable[..., DualSolution], balance: Balance, penalty: float, beta: Array, inside: bool
) -> DualSolution:
    """The optimum under λ|u| for one direction without the intercept: one solve as a rule, three at most.

    The dual is convex in t, which lies within [−λ, λ]. So t is ±λ exactly if u pulls it beyond that bound, and is
    otherwise that of hard equality.

    Parameters
    ----------
    solve : callable
        The ``solve`` of a dual, which takes a balance and a ``multiplier``.
    balance : Balance
        One direction.
    penalty : float
        λ.
    beta : ndarray
        The last coefficients, from which to guess the bound that t may be at.
    inside : bool
        Whether t was inside its bounds the last time. Hard equality may be far from where we are, and then takes many
        times as long to solve as a bound that turns out to be the wrong one.
    """

    def at(side: float) -> tuple[DualSolution, bool]:
        solution = solve(balance, multiplier=np.array([np.copysign(penalty, side)]))
        pull = float(solution.differences(balance)[0])
        return solution, pull * np.copysign(1.0, side) <= 0

    guess = -float(balance.cross[:, 0] @ beta) / max(float(balance.inner[0, 0]), 1e-300)
    if not inside or abs(guess) >= penalty:
        solution, right = at(guess)
        if right:
            return solution
    hard = solve(balance)
    t = float(hard.multiplier[0])
    return hard if abs(t) <= penalty else at(t)[0]
