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
_STRIP_NUMBERS = 2**17  # in a strip of inner products: 1 MB, which stays in the processor's cache


def polynomial(products: Array, *, gamma: float, degree: int, coef0: float) -> Array:
    """``(gamma products + coef0)**degree`` in place; by multiplication, as numpy raises one number at a time."""
    products *= gamma
    products += coef0
    if degree == 0:
        products[...] = 1.0
    base = products.copy() if degree > 1 else products
    for _ in range(degree - 1):
        products *= base
    return products


def _kernel(X: Array, Y: Array, squares: tuple[Array, Array], kernel: str, **parameters: Any) -> Array:
    """The kernel between two sets of people, with their squared lengths."""
    products = X @ Y.T
    if kernel == "poly":
        return polynomial(products, **parameters)
    if kernel == "rbf":
        products *= -2.0
        products += squares[0][:, None]
        products += squares[1]
        np.maximum(products, 0.0, out=products)
        products *= -parameters["gamma"]
        np.exp(products, out=products)
    return np.asarray(products)


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
    squares = np.einsum("ij,ij->i", X, X)
    K = np.empty((n, n), dtype=dtype)
    start = 0
    while start < n:
        # The part at and right of the diagonal; what is below it is written from there.
        stop = min(n, start + max(16, _STRIP_NUMBERS // (n - start)))
        near, right = slice(start, stop), slice(start, n)
        strip = _kernel(
            X[near], X[right], (squares[near], squares[right]), kernel, gamma=gamma, degree=degree, coef0=coef0
        )
        K[near, right] = strip
        K[stop:, near] = strip[:, stop - start :].T
        corner = K[near, near]
        lower = np.tril_indices(stop - start, -1)
        corner[lower] = corner.T[lower]  # BLAS may round the two halves differently
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
    own, others = (np.einsum("ij,ij->i", Z, Z) for Z in (X, Y))
    rows = max(1, _STRIP_NUMBERS // max(len(Y), 1))
    sums = np.empty(len(X))
    for start in range(0, len(X), rows):
        at = slice(start, start + rows)
        strip = _kernel(X[at], Y, (own[at], others), kernel, gamma=gamma, degree=degree, coef0=coef0)
        sums[at] = strip @ coefficients
    return sums
