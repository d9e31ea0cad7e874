"""The kernel matrix of one data set, and sums over the kernel with another, a strip of rows at a time.

Benchmark rows: the plain fits of ``benchmarks/speed.py``. scikit-learn's ``pairwise_kernels`` goes over the whole
matrix once for each operation, in both halves, and raises to a power one number at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["KERNELS", "gram_matrix", "kernel_sums", "polynomial"]

Array = NDArray[np.float64]

KERNELS = ("linear", "poly", "rbf")
_STRIP_NUMBERS = 2**16  # in a strip of inner products: half a megabyte, which stays in the cache


def polynomial(products: Array, *, gamma: float, degree: int, coef0: float) -> Array:
    """``(gamma products + coef0)**degree``, in place."""
    products *= gamma
    products += coef0
    return _power(products, degree)


def _power(base: Array, degree: int) -> Array:
    """``base**degree`` in place; by multiplication, as numpy raises one number at a time."""
    if degree == 0:
        base[...] = 1.0
    elif degree == 2:
        base *= base
    elif degree > 2:
        factor = base.copy()
        for _ in range(degree - 1):
            base *= factor
    return base


def _factors(X: Array, Y: Array, kernel: str, gamma: float, coef0: float) -> tuple[Array, Array]:
    """Two matrices whose product is what the kernel is a function of: −γ‖x − y‖², or γ x·y + coef0.

    A product of two more columns saves several passes over what it makes.
    """
    if kernel == "linear":
        return X, Y
    one, other = np.ones((len(X), 1)), np.ones((len(Y), 1))
    if kernel == "poly":
        return np.hstack([gamma * X, coef0 * one]), np.hstack([Y, other])
    own, others = (np.einsum("ij,ij->i", Z, Z)[:, None] for Z in (X, Y))
    return np.hstack([2.0 * gamma * X, -gamma * own, -gamma * one]), np.hstack([Y, other, others])


def _kernel(left: Array, right: Array, kernel: str, degree: int, out: Array) -> Array:
    """The kernel of some people with others, from their factors."""
    values = np.matmul(left, right.T, out=out[: len(left) * len(right)].reshape(len(left), len(right)))
    if kernel == "poly":
        return _power(values, degree)
    if kernel == "rbf":
        np.minimum(values, 0.0, out=values)
        np.exp(values, out=values)
    return values


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
    n = len(X)
    # Distances do not change, and far from the origin they would lose their digits; one outlier does not matter.
    X = X - np.median(X, axis=0) if kernel == "rbf" else X
    left, right = _factors(X, X, kernel, gamma, coef0)
    K, start = np.empty((n, n), dtype=dtype), 0
    buffer = np.empty(_most_numbers(n))
    while start < n:
        # The part at and right of the diagonal; what is below it is written from there.
        stop = min(n, start + len(buffer) // (n - start))
        strip = _kernel(left[start:stop], right[start:], kernel, degree, buffer)
        K[start:stop, start:] = strip
        K[stop:, start:stop] = strip[:, stop - start :].T
        corner = strip[:, : stop - start]
        K[start:stop, start:stop] = 0.5 * (corner + corner.T)  # BLAS may round the two halves differently
        start = stop
    if kernel == "rbf":
        np.fill_diagonal(K, 1.0)  # a person is at no distance from themselves, whatever the rounding
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
    if kernel == "linear":
        return np.asarray(X @ (coefficients @ Y))
    if kernel == "rbf" and len(Y):
        centre = np.median(Y, axis=0)
        X, Y = X - centre, Y - centre
    left, right = _factors(X, Y, kernel, gamma, coef0)
    buffer, sums = np.empty(_most_numbers(len(Y))), np.empty(len(X))
    rows = len(buffer) // max(len(Y), 1)
    for start in range(0, len(X), rows):
        at = slice(start, start + rows)
        sums[at] = _kernel(left[at], right, kernel, degree, buffer) @ coefficients
    return sums


def _most_numbers(width: int) -> int:
    """Of a strip: at least sixteen rows, as a product of fewer leaves BLAS nothing to gain."""
    return max(_STRIP_NUMBERS, 16 * width)
