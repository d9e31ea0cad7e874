"""Compile the functions that numba compiles, once, so that test processes which start together only load them.

Run as ``python tools/compile.py``. The parts run side by side. What is compiled is decided by real calls on a few
people; functions that were compiled before are loaded, and that is quick.
"""

import subprocess
import sys

import numpy as np
import pandas as pd


def knapsacks() -> None:
    """Recourse of linear models: costs that add up, and largest costs."""
    from sklearn.linear_model import LogisticRegression

    from equirecourse import ActionSet, find_recourse
    from equirecourse.recourse._linear import _compiled

    _compiled._steps_left.update(additive=0, bottleneck=0)  # a few people are served without compilation
    X, y = people()
    actions = ActionSet.from_frame(X)
    model = LogisticRegression().fit(X, y)
    for norm in ("l1", "linf"):
        find_recourse(model, X.head(5), actions=actions, norm=norm)


def solvers() -> None:
    """Pair steps in double and in single precision, working sets, the interior point, coordinate descent."""
    from equirecourse import EqualRecourseSVC
    from equirecourse.solvers import CoordinateDescentSVM, KernelDual, gram_matrix

    X, y = people(300)  # enough for working sets
    for kernel in ("rbf", "poly", "linear"):
        EqualRecourseSVC(kernel=kernel).fit(X, y, sensitive_features=X["a"] > 0).predict(X)
    K = gram_matrix(X.to_numpy(), kernel="rbf", gamma=1.0, dtype=np.float32)
    KernelDual(K, y, np.full(len(y), 1e3)).solve()
    CoordinateDescentSVM(X.to_numpy(), y.astype(float), np.ones(len(y))).solve()


def trees() -> None:
    """The search over trees."""
    from sklearn.tree import DecisionTreeClassifier

    from equirecourse import find_recourse

    X, y = people()
    find_recourse(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y), X.head(5))


def people(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Some people with three features, about half of them accepted."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return X, np.where(X.sum(axis=1) > 0, 1, -1)


PARTS = {"knapsacks": knapsacks, "solvers": solvers, "trees": trees}

if __name__ == "__main__":
    if named := sys.argv[1:]:
        for name in named:
            PARTS[name]()
    else:
        running = [subprocess.Popen([sys.executable, __file__, name]) for name in PARTS]
        sys.exit(max([process.wait() for process in running]))
