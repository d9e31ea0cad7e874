"""Numbers in, numbers out: the dual solvers, without scikit-learn.

``KernelDual`` is the fast path (pairwise steps on a deflated kernel), ``ReferenceDual`` the paper's dense quadratic
program. Both solve the same problems and return a ``DualSolution``. ``minimise_linear`` is an interior point for the
plain linear SVM, which serves recourse once the balance was taken out of the features.
"""

from equirecourse.solvers._dual import Balance, DualSolution, KernelDual, intercept_from, polish, stiffness_matrix
from equirecourse.solvers._gram import KERNELS, gram_matrix
from equirecourse.solvers._interior_point import minimise_linear
from equirecourse.solvers._qp import ReferenceDual
from equirecourse.solvers._smo import times_rows

__all__ = [
    "KERNELS",
    "Balance",
    "DualSolution",
    "KernelDual",
    "ReferenceDual",
    "gram_matrix",
    "intercept_from",
    "minimise_linear",
    "polish",
    "stiffness_matrix",
    "times_rows",
]
