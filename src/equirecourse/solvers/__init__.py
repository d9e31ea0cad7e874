"""Numbers in, numbers out: the dual solvers, without scikit-learn.

``KernelDual`` is the fast path (pairwise steps on a deflated kernel), ``ReferenceDual`` the paper's dense quadratic
program. Both solve the same problems and return a ``DualSolution``. ``LinearSVM`` solves the plain linear SVM on any
number of people, which serves recourse once the balance was taken out of the features; ``minimise_linear`` is the
interior point behind it, and ``SquaredHingeSVM`` the same with the squared hinge loss. ``CoordinateDescentSVM`` serves
both losses with many features, dense or sparse, and ``TruncatedNewtonSVM`` the squared hinge of more people than that.
"""

from equirecourse.solvers._coordinate_descent import CoordinateDescentSVM
from equirecourse.solvers._dual import Balance, DualSolution, KernelDual, penalised, stiffness_matrix
from equirecourse.solvers._gram import KERNELS, gram_matrix, kernel_sums
from equirecourse.solvers._interior_point import minimise_linear
from equirecourse.solvers._linear_svm import LinearSolution, LinearSVM, one_in_eight
from equirecourse.solvers._polish import intercept_from, polish
from equirecourse.solvers._qp import ReferenceDual
from equirecourse.solvers._smo import times_rows
from equirecourse.solvers._squared_hinge import SquaredHingeSVM
from equirecourse.solvers._threads import one_blas_thread
from equirecourse.solvers._truncated_newton import TruncatedNewtonSVM

__all__ = [
    "KERNELS",
    "Balance",
    "CoordinateDescentSVM",
    "DualSolution",
    "KernelDual",
    "LinearSVM",
    "LinearSolution",
    "ReferenceDual",
    "SquaredHingeSVM",
    "TruncatedNewtonSVM",
    "gram_matrix",
    "intercept_from",
    "kernel_sums",
    "minimise_linear",
    "one_blas_thread",
    "one_in_eight",
    "penalised",
    "polish",
    "stiffness_matrix",
    "times_rows",
]
