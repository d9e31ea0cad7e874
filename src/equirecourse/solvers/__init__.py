"""Numbers in, numbers out: the dual solvers, without scikit-learn.

Every solver holds one training set and has ``solve(balance)``, which returns a solution with its scores and how exact
it is; it may be called again for another balance, and then starts from the last solution.

============================  =========================================================================
``KernelDual``                kernels: pairwise steps on a deflated kernel matrix
``ReferenceDual``             the same problems as the paper's dense quadratic program, for reference
``LinearSVM``                 the hinge with few features, any number of people: interior point
``SquaredHingeSVM``           the squared hinge, few features or many, dense or sparse: Newton's method
``CoordinateDescentSVM``      the hinge with many features, dense or sparse
============================  =========================================================================

The first two take a ``Balance``, the others a projection of the features, and return a ``DualSolution`` or a
``LinearSolution``.
"""

from equirecourse.solvers._coordinate_descent import CoordinateDescentSVM
from equirecourse.solvers._dual import Balance, DualSolution, KernelDual, penalised, stiffness_matrix
from equirecourse.solvers._gram import KERNELS, gram_matrix, kernel_sums, polynomial
from equirecourse.solvers._interior_point import minimise_linear
from equirecourse.solvers._linear_svm import LinearSVM
from equirecourse.solvers._polish import intercept_from, polish
from equirecourse.solvers._qp import ReferenceDual
from equirecourse.solvers._smo import times_rows
from equirecourse.solvers._solution import LinearSolution, LinearSolver
from equirecourse.solvers._squared_hinge import SquaredHingeSVM
from equirecourse.solvers._threads import one_blas_thread

__all__ = [
    "KERNELS",
    "Balance",
    "CoordinateDescentSVM",
    "DualSolution",
    "KernelDual",
    "LinearSVM",
    "LinearSolution",
    "LinearSolver",
    "ReferenceDual",
    "SquaredHingeSVM",
    "gram_matrix",
    "intercept_from",
    "kernel_sums",
    "minimise_linear",
    "one_blas_thread",
    "penalised",
    "polish",
    "polynomial",
    "stiffness_matrix",
    "times_rows",
]
