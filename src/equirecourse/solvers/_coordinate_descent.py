# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"
"""The linear SVM with many features, dense or sparse: coordinate descent on the dual, as LIBLINEAR does it.

    minimise ½‖w̃‖² + Σ Cᵢ loss(1 − yᵢ f(xᵢ)),    f(x) = w·x + b,    w = A w̃,    loss(s) = max(0, s) or max(0, s)²

Notation
--------
A       I − Q diag(1 − f) Qᵀ, the projection that takes the balance out of the features: a few directions Q, and the
        factor f that is left of each
α       yβ, the dual coefficients: 0 ≤ α ≤ C for the hinge, 0 ≤ α with a ridge α²/4C for its square
v       Xᵀβ, of the features as they are
L, s    a low rank beside the features, n × r, and its signs: x·A²x′ + scaling² = x·x′ + Σ s L L′; a direction counts
        −(1 − f²) for each feature's share in it, and the constant feature of the intercept is one more column
c       Lᵀβ

Projected features are dense where the features are sparse, so they are never made: a step moves one person's α with
their own features and the r numbers of L. Another balance changes L alone: the next solve starts from the last α.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from equirecourse.solvers._linear_svm import LinearSolution
from equirecourse.solvers._threads import one_blas_thread

__all__ = ["CoordinateDescentSVM", "by_rows", "squares_of", "through", "violation_of"]

Array = NDArray[np.float64]

_FLAT = 1e-12  # a curvature relative to a person's own square that is rounding error: all of it lies along Q
_SMALLEST_STEP = 1e-12  # gradients below which a step is not worth the axpy
_STRICTER = 0.5  # the passes' own tolerance, when they ended before everybody's gradient was small enough
_FLOATS = {"reassoc", "contract", "nsz", "nnan"}  # what LLVM may assume of sums, so that it adds four at once


class CoordinateDescentSVM:
    """One training set, solved again and again for other balances.

    Parameters
    ----------
    X : {ndarray, CSR matrix}, shape (n, d)
        Features.
    y : ndarray, shape (n,)
        Labels ±1.
    C : ndarray, shape (n,)
        Weights of the losses, at least 0.
    loss : {"hinge", "squared_hinge"}
        The loss.
    tol : float
        Largest difference between two entries of the projected gradient, in units of the margin: LIBLINEAR's rule.
    max_iter : int
        Most passes over the people of one solve.
    intercept_scaling : float
        The intercept is the coefficient of a constant feature of this value.
    fit_intercept : bool
        Whether there is an intercept at all.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        C: Array,
        *,
        loss: str = "hinge",
        tol: float = 1e-4,
        max_iter: int = 1000,
        intercept_scaling: float = 1.0,
        fit_intercept: bool = True,
    ) -> None:
        self.X, self.y, self.C = by_rows(X), y, C
        self.squared = loss == "squared_hinge"
        self.tol, self.max_iter = tol, max_iter
        self.scaling = float(intercept_scaling) if fit_intercept else 0.0
        if self.squared:
            self.upper = np.where(C > 0, np.inf, 0.0)
            self.ridge = np.divide(0.5, C, out=np.zeros(len(C)), where=C > 0)
        else:
            self.upper, self.ridge = C, np.zeros(len(C))
        self._squares = squares_of(self.X)
        self._alpha = np.zeros(len(y))

    def solve(self, basis: Array | None = None, factors: Array | None = None) -> LinearSolution:
        """Solve for the projection with these orthonormal directions and factors; none is the identity."""
        if basis is None or factors is None:
            basis, factors = np.empty((self.X.shape[1], 0)), np.empty(0)
        with one_blas_thread():
            return self._solve(basis, factors)

    def _solve(self, basis: Array, factors: Array) -> LinearSolution:
        y, alpha = self.y, self._alpha
        low_rank, signs = np.asarray(self.X @ basis), factors**2 - 1.0
        if self.scaling:
            low_rank = np.column_stack([low_rank, np.full(len(y), self.scaling)])
            signs = np.append(signs, 1.0)
        low_rank = np.ascontiguousarray(low_rank)
        squares = self._squares + self.scaling**2
        flat = np.maximum(_FLAT * squares, np.finfo(float).tiny)
        curvature = np.maximum(self._squares + low_rank**2 @ signs, flat) + self.ridge
        rows, generator = _as_rows(self.X), np.array([1], dtype=np.uint64)
        n_iter, turns, inner_tol = 0, 0, self.tol
        while True:
            # What the steps add up drifts by rounding: look, and go on, from fresh sums.
            v, c = np.asarray(self.X.T @ (y * alpha)), (y * alpha) @ low_rank
            gradient = y * (np.asarray(self.X @ v) + low_rank @ (signs * c)) - 1.0 + self.ridge * alpha
            violation = violation_of(gradient, alpha, self.upper)
            rounding = np.finfo(float).eps * float(np.sqrt(squares.max()) * (np.sqrt(squares) @ alpha))
            enough = max(self.tol, rounding)
            if (violation <= enough and alpha.any()) or n_iter >= self.max_iter:
                break
            n_iter += _descend(
                *rows,
                low_rank,
                signs,
                y,
                self.upper,
                self.ridge,
                curvature,
                alpha,
                v,
                c,
                max(inner_tol, rounding),
                self.max_iter - n_iter,
                generator,
            )
            turns += 1
            inner_tol *= _STRICTER
        return self._solution(basis, factors, v, violation, n_iter, turns)

    def _solution(
        self, basis: Array, factors: Array, v: Array, violation: float, n_iter: int, turns: int
    ) -> LinearSolution:
        beta = self.y * self._alpha
        w = through(basis, factors, v)
        coef = through(basis, factors, w)
        last = self.scaling * float(beta.sum())
        direction = np.append(w, last) if self.scaling else w
        constant = self.scaling * last
        scores = np.asarray(self.X @ coef) + constant
        slack = np.maximum(0.0, 1.0 - self.y * scores)
        square = 0.5 * float(direction @ direction)
        primal = square + float(self.C @ (slack**2 if self.squared else slack))
        dual = float(self._alpha.sum()) - square - 0.5 * float(self.ridge @ self._alpha**2)
        return LinearSolution(
            beta, coef, constant, scores, direction, 0.0, primal, primal - dual, violation, n_iter, turns
        )


def by_rows(X: Any) -> Any:
    """Features whose rows are contiguous, each entry once."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _as_rows(X: Any) -> tuple[Any, ...]:
    """Dense rows; or none, and the three arrays of sparse ones."""
    if sparse.issparse(X):
        # Without a sign: numba asks of every signed index whether it counts from the end.
        return np.empty((0, 0)), X.data, X.indices.view(f"u{X.indices.itemsize}"), X.indptr
    return X, np.empty(0), np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int32)


def squares_of(X: Any) -> Array:
    """‖x‖² of everybody."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def through(basis: Array, factors: Array, vector: Array) -> Array:
    """A times a vector."""
    return np.asarray(vector - basis @ ((1.0 - factors) * (basis.T @ vector)))


def violation_of(gradient: Array, alpha: Array, upper: Array) -> float:
    """The largest minus the smallest entry of the projected gradient, or of zero."""
    falls, rises = gradient[alpha > 0], gradient[alpha < upper]
    return float(falls.max(initial=0.0) - rises.min(initial=0.0))


@njit(nogil=True, cache=True, fastmath=_FLOATS)
def _dot(X, i, v):
    total = 0.0
    for k in range(v.shape[0]):
        total += X[i, k] * v[k]
    return total


@njit(nogil=True, cache=True, fastmath=_FLOATS)
def _add(move, X, i, v):
    for k in range(v.shape[0]):
        v[k] += move * X[i, k]


@njit(nogil=True, cache=True)
def _sparse_dot(values, columns, begin, end, v):
    """Four sums at a time by hand: what a compiler makes of scattered numbers, gathers, is slower."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    paired = end - (end - begin) % 4
    for k in range(begin, paired, 4):
        a += values[k] * v[columns[k]]
        b += values[k + 1] * v[columns[k + 1]]
        c += values[k + 2] * v[columns[k + 2]]
        d += values[k + 3] * v[columns[k + 3]]
    for k in range(paired, end):
        a += values[k] * v[columns[k]]
    return (a + b) + (c + d)


@njit(nogil=True, cache=True)
def _random_below(generator, bound):
    """A number of 0 ... bound − 1 (xorshift; bound is far below 2³²)."""
    state = generator[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    generator[0] = state
    return np.int64(((state >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@njit(nogil=True, cache=True)
def _descend(
    X,
    values,
    columns,
    starts,
    low_rank,
    signs,
    y,
    upper,
    ridge,
    curvature,
    alpha,
    v,
    c,
    tol,
    max_iter,
    generator,
):
    """Passes in random order, in place, until no step of one over everybody was longer than ``tol``; their number.

    People at a bound whose gradient holds them there, by more than anybody violated optimality in the pass before, are
    left out of the next ones.
    """
    n = y.shape[0]
    dense = X.shape[0] > 0
    order = np.arange(n)
    active = n
    highest, lowest = np.inf, -np.inf
    for n_iter in range(1, max_iter + 1):
        for k in range(active - 1):
            other = k + _random_below(generator, active - k)
            order[k], order[other] = order[other], order[k]
        top, bottom = 0.0, 0.0
        k = 0
        while k < active:
            i = order[k]
            label, a = y[i], alpha[i]
            if dense:
                score = _dot(X, i, v)
            else:
                score = _sparse_dot(values, columns, starts[i], starts[i + 1], v)
            for q in range(signs.shape[0]):
                score += signs[q] * low_rank[i, q] * c[q]
            g = label * score - 1.0 + ridge[i] * a
            if (a == 0.0 and g > highest) or (a == upper[i] and g < lowest):
                active -= 1
                order[k], order[active] = order[active], order[k]
                continue
            k += 1
            if (a == 0.0 and g > 0.0) or (a == upper[i] and g < 0.0):
                continue
            top, bottom = max(top, g), min(bottom, g)
            if abs(g) <= _SMALLEST_STEP:
                continue
            alpha[i] = min(max(a - g / curvature[i], 0.0), upper[i])
            move = label * (alpha[i] - a)
            for q in range(signs.shape[0]):
                c[q] += move * low_rank[i, q]
            if dense:
                _add(move, X, i, v)
            else:
                for e in range(starts[i], starts[i + 1]):
                    v[columns[e]] += move * values[e]
        if top - bottom <= tol:
            if active == n:
                return n_iter
            active, highest, lowest = n, np.inf, -np.inf
            continue
        highest = top if top > 0.0 else np.inf
        lowest = bottom if bottom < 0.0 else -np.inf
    return max_iter
