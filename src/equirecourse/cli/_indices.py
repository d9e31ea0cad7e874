"""Whether compiled code can follow the indices that a model came with.

scikit-learn goes along trees, support vectors and sparse matrices without checking where their indices lead. A made-up
file can lead them outside, where they read memory that is not theirs, or the process dies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["is_sound"]


def is_sound(value: Any) -> bool:
    """Whether the indices of a tree, an ensemble, a support vector machine or a sparse matrix stay inside it.

    Parameters
    ----------
    value : object
        Anything; what has no such indices is sound.

    Returns
    -------
    bool
        False if compiled code would leave the arrays.
    """
    if sp.issparse(value):
        return _is_sound_matrix(value)
    kind = type(value).__module__
    if kind == "sklearn.svm._classes" and hasattr(value, "_dual_coef_") and hasattr(value, "classes_"):
        return _are_sound_vectors(value)
    if not kind.startswith(("sklearn.ensemble.", "sklearn.tree.")):
        return True
    if hasattr(value, "tree_"):
        return _is_sound_tree(value.tree_, value)
    if hasattr(value, "_predictors"):
        return _are_sound_predictors(value)
    if kind in ("sklearn.ensemble._forest", "sklearn.ensemble._gb") and hasattr(value, "estimators_"):
        # These go along the trees of their members themselves, with people of as many columns as they have.
        return all(_is_sound_tree(member.tree_, value) for member in np.ravel(value.estimators_))
    return True


def _is_sound_matrix(matrix: Any) -> bool:
    try:
        matrix.check_format(full_check=True)
    except ValueError:
        return False
    return True


def _is_sound_tree(tree: Any, owner: Any) -> bool:
    n_features = int(owner.n_features_in_)
    return (
        tree.node_count <= tree.capacity
        and tree.n_features == n_features
        and _leads_down(tree.children_left, tree.children_right, tree.feature, tree.children_left == -1, n_features)
    )


def _are_sound_predictors(owner: Any) -> bool:
    n_features = int(owner.n_features_in_)
    categorical = np.asarray(owner._bin_mapper.is_categorical_, dtype=bool)
    if len(categorical) != n_features:
        return False
    for predictor in (one for several in owner._predictors for one in several):
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        if not _leads_down(left, right, nodes["feature_idx"], leaf, n_features):
            return False
        asks = nodes[nodes["is_categorical"].astype(bool) & ~leaf]
        if (
            not categorical[asks["feature_idx"]].all()
            or (asks["bitset_idx"] >= len(predictor.raw_left_cat_bitsets)).any()
        ):
            return False
    return True


def _are_sound_vectors(model: Any) -> bool:
    n, n_classes = len(model.support_), len(model.classes_)
    pairs = n_classes * (n_classes - 1) // 2
    coefficients, shares = model._dual_coef_, np.asarray(model._n_support)
    stored = coefficients.data.size if sp.issparse(coefficients) else coefficients.size
    return bool(
        shares.shape == (n_classes,)
        and (shares >= 0).all()
        and shares.sum() == n
        and coefficients.shape == (n_classes - 1, n)
        and stored == coefficients.shape[0] * n
        and (model.support_ >= 0).all()
        and (model.support_ < model.shape_fit_[0]).all()
        # A kernel that is not libsvm's own goes by the places of the vectors alone.
        and (model.support_vectors_.shape == (n, model.n_features_in_) or model.kernel == "precomputed")
        and model._intercept_.size == pairs
        and all(getattr(model, name, np.empty(0)).size in (0, pairs) for name in ("_probA", "_probB"))
    )


def _leads_down(left: Any, right: Any, feature: Any, leaf: Any, n_features: int) -> bool:
    """Whether children come after their parents, inside the tree, and columns exist."""
    inner = np.flatnonzero(~leaf)
    children = np.stack([left[inner], right[inner]])
    columns = feature[inner]
    return bool(
        len(left) > 0
        and (children > inner).all()
        and (children < len(left)).all()
        and (columns >= 0).all()
        and (columns < n_features).all()
    )
