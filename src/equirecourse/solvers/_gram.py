# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""The kernel matrix of one data set, and sums over the kernel with another, a strip of rows at a time.

A strip of inner products comes from BLAS and stays in the processor's cache while the kernel's formula is applied and
the result written to both halves of the matrix, or summed up. scikit-learn's ``pairwise_kernels`` goes over the whole
matrix once for each operation, and raises to a power and to e one number at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from equirecourse._numba import njit
from equirecourse.solvers._threads import in_parts, one_blas_thread, side_by_side

__all__ = ["KERNELS", "gram_matrix", "kernel_sums"]

Array = NDArray[np.float64]

KERNELS = ("linear", "poly", "rbf")
_STRIP = 128  # rows at a time: a strip fits into the cache, and its columns are written a kilobyte at a time
_STRIP_NUMBERS = 2**16  # of a strip that is summed up and forgotten: half a megabyte
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: added to a number, it leaves the nearest integer in the lowest bits
_LOWEST = -708.0  # e to less than this is not a normal number; the kernel is zero there for all purposes
_FLOATS = {"nnan", "nsz", "contract"}


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _exp(x, shifted):
    """Replace x ≤ 0 by eˣ: 2ⁿ eʳ with |r| ≤ ½ log 2, by a polynomial, to the last digit or two. ``shifted`` is scratch.

    The function of the mathematics library is not vectorised, and would take most of the time of a matrix.
    """
    exponents = shifted.view(np.int64)
    bits = x.view(np.int64)
    for k in range(x.shape[0]):
        at = x[k] if x[k] > _LOWEST else _LOWEST
        raised = at * _LOG2_E + _ROUND
        shifted[k] = raised
        n = raised - _ROUND
        r = at - n * _LN2_HIGH - n * _LN2_LOW
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        x[k] = p * r + 1.0
    for k in range(x.shape[0]):
        bits[k] += exponents[k] << 52


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _apply(strip, own, others, rbf, gamma, degree, coef0, scratch):
    """Replace the inner products of one person with others by the kernel."""
    width = strip.shape[0]
    if rbf:
        for k in range(width):
            squared = own + others[k] - 2.0 * strip[k]
            strip[k] = -gamma * (squared if squared > 0.0 else 0.0)
        _exp(strip, scratch)
    elif degree != 1 or gamma != 1.0 or coef0 != 0.0:
        for k in range(width):
            base = gamma * strip[k] + coef0
            scratch[k] = base
            strip[k] = base if degree > 0 else 1.0
        for _ in range(degree - 1):
            for k in range(width):
                strip[k] *= scratch[k]


@njit(cache=True, nogil=True, fastmath=_FLOATS | {"reassoc"})
def _sum_up(products, own, others, rbf, gamma, degree, coef0, coefficients, sums):
    """Sums of the kernel times the coefficients of the others, for a strip of inner products."""
    scratch = np.empty(products.shape[1])
    for a in range(products.shape[0]):
        strip = products[a]
        _apply(strip, own[a], others, rbf, gamma, degree, coef0, scratch)
        total = 0.0
        for k in range(strip.shape[0]):
            total += strip[k] * coefficients[k]
        sums[a] = total


@njit(cache=True, nogil=True, fastmath=_FLOATS)
def _fill(products, squares, first, rbf, gamma, degree, coef0, K):
    """Apply the kernel's formula to a strip of inner products; write it to rows and columns from ``first`` on."""
    m, width = products.shape
    scratch = np.empty(width)
    others = squares[first:]
    for a in range(m):
        strip = products[a]
        _apply(strip, squares[first + a], others, rbf, gamma, degree, coef0, scratch)
        if rbf:
            strip[a] = 1.0  # a person is at no distance from themselves, whatever the rounding
        target = K[first + a, first:]
        for k in range(width):
            target[k] = strip[k]
    for k in range(m, width):
        column = K[first + k, first : first + m]
        for a in range(m):
            column[a] = products[a, k]


def gram_matrix(
    X: Array, *, kernel: str, gamma: float, degree: int = 3, coef0: float = 0.0, dtype: DTypeLike = np.float64
) -> Any:
    """The kernel matrix of the rows of X.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Features.
    kernel : {"linear", "poly", "rbf"}
        ``x·x'``, ``(gamma x·x' + coef0)**degree`` or ``exp(−gamma ‖x − x'‖²)``.
    gamma, degree, coef0 : float, int, float
        Parameters of the kernel.
    dtype : dtype
        float64, or float32 for half the memory. The computation is in double precision in either case.

    Returns
    -------
    ndarray, shape (n, n)
        A symmetric matrix, row-major.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}.")
    X = np.ascontiguousarray(X, dtype=np.float64)
    n = len(X)
    K = np.empty((n, n), dtype=dtype)
    rbf = kernel == "rbf"
    if rbf:
        # Distances do not change, and far from the origin they would lose their digits; one outlier does not matter.
        X = X - np.median(X, axis=0)
    squares = np.einsum("ij,ij->i", X, X) if rbf else np.zeros(n)
    if kernel == "linear":
        gamma, degree, coef0 = 1.0, 1, 0.0
    strips = range(0, n, _STRIP)

    def one(at: slice) -> None:
        # One for all of them: memory that is given back and asked for again is zeroed again.
        strip = np.empty(min(_STRIP, n) * n)
        for first in strips[at]:
            rows = X[first : first + _STRIP]
            products = strip[: len(rows) * (n - first)].reshape(len(rows), n - first)
            np.matmul(rows, X[first:].T, out=products)
            _fill(products, squares, first, rbf, float(gamma), int(degree), float(coef0), K)

    # Strips get shorter: every fourth one, so that the parts take as long as each other.
    parts = len(in_parts(n, n))
    with one_blas_thread() as threads:
        side_by_side(one, [slice(part, None, parts) for part in range(parts)], threads)
    return K


def kernel_sums(
    X: Array, Y: Array, coefficients: Array, *, kernel: str, gamma: float, degree: int = 3, coef0: float = 0.0
) -> Array:
    """The kernel of the rows of X with those of Y, times a coefficient for each of the latter.

    The matrix is never there as a whole, so that any number of people can be scored.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        People.
    Y : ndarray, shape (m, d)
        Points of the expansion.
    coefficients : ndarray, shape (m,)
        Their coefficients.
    kernel, gamma, degree, coef0
        As of ``gram_matrix``.

    Returns
    -------
    ndarray, shape (n,)
        One sum for each person.
    """
    X, Y = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(Y, dtype=np.float64)
    if kernel == "linear":
        return np.asarray(X @ (coefficients @ Y))
    rbf, n, m = kernel == "rbf", len(X), len(Y)
    if rbf and m:
        centre = np.median(Y, axis=0)
        X, Y = X - centre, Y - centre
    own, others = (np.einsum("ij,ij->i", Z, Z) if rbf else np.zeros(len(Z)) for Z in (X, Y))
    coefficients, sums = np.ascontiguousarray(coefficients, dtype=np.float64), np.empty(n)
    rows = max(1, min(n, _STRIP_NUMBERS // max(m, 1)))

    def one(at: slice) -> None:
        buffer = np.empty((rows, m))
        for start in range(at.start, at.stop, rows):
            here = slice(start, min(start + rows, at.stop))
            products = np.matmul(X[here], Y.T, out=buffer[: here.stop - here.start])
            _sum_up(products, own[here], others, rbf, float(gamma), int(degree), float(coef0), coefficients, sums[here])

    with one_blas_thread() as threads:
        side_by_side(one, in_parts(n, m), threads)
    return sums
