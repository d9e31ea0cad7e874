"""Readers of scikit-learn's tree models.

Trees compare inputs rounded to float32 by ``<=``; histogram boosting compares them as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._trees._ensembles._ensemble import Ensemble, Tree, join

__all__ = ["adaboost", "bagging", "forest", "gradient_boosting", "histogram_boosting", "single_tree"]

Array = NDArray[np.float64]


def _tree(tree: Any, votes: Array, columns: Any = None) -> Tree:
    """Take over the arrays of a fitted ``sklearn.tree._tree.Tree``."""
    inner = tree.children_left >= 0
    column = np.where(inner, tree.feature, -1).astype(np.intp)
    if columns is not None:  # a tree that was shown some of the inputs
        column = np.where(inner, np.asarray(columns)[column], -1).astype(np.intp)
    return Tree(
        column=column,
        threshold=np.asarray(tree.threshold, dtype=np.float64),
        left=np.where(inner, tree.children_left, -1).astype(np.intp),
        right=np.where(inner, tree.children_right, -1).astype(np.intp),
        missing_left=np.asarray(tree.missing_go_to_left, dtype=bool),
        votes=votes,
        categories={},
    )


def _shares(tree: Any, favours_second: bool) -> Array:
    """Shares of the unfavourable and of the favourable label at each node."""
    shares = np.asarray(tree.value[:, 0, :2], dtype=np.float64)
    return shares if favours_second else shares[:, ::-1].copy()


def _one_score(values: Array, favours_second: bool) -> Array:
    return np.stack([np.zeros_like(values), values if favours_second else -values], axis=1)


def single_tree(model: Any, favours_second: bool) -> Ensemble:
    """Read a decision tree: the label with the larger share in the leaf, the first if they are equal."""
    tree = _tree(model.tree_, _shares(model.tree_, favours_second))
    return join([tree], wins_ties=not favours_second, single_inputs=True)


def forest(model: Any, favours_second: bool) -> Ensemble:
    """Read a forest: the label with the larger mean share, the first if they are equal."""
    trees = [_tree(part.tree_, _shares(part.tree_, favours_second)) for part in model.estimators_]
    return join(trees, wins_ties=not favours_second, divisor=float(len(trees)), single_inputs=True)


def bagging(model: Any, favours_second: bool) -> Ensemble:
    """Read bagged trees, each of which may have seen some of the inputs, and perhaps one label only."""
    trees = []
    for part, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        if not isinstance(part, DecisionTreeClassifier):
            raise Opaque(f"BaggingClassifier over {type(part).__name__}")
        shares = np.zeros((part.tree_.node_count, 2))
        shares[:, part.classes_.astype(int)] = part.tree_.value[:, 0, : len(part.classes_)]
        trees.append(_tree(part.tree_, shares if favours_second else shares[:, ::-1].copy(), columns))
    return join(trees, wins_ties=not favours_second, divisor=float(model.n_estimators), single_inputs=True)


def adaboost(model: Any, favours_second: bool) -> Ensemble:
    """Read AdaBoost over trees: each tree's decision, times its weight; the second label needs a positive sum."""
    trees = []
    for part, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        if not isinstance(part, DecisionTreeClassifier):
            raise Opaque(f"AdaBoostClassifier over {type(part).__name__}")
        decisions = part.classes_[np.argmax(part.tree_.value[:, 0, : len(part.classes_)], axis=1)]
        signed = np.where(decisions == model.classes_[1], float(weight), -float(weight))
        trees.append(_tree(part.tree_, _one_score(signed, favours_second)))
    divisor = float(model.estimator_weights_.sum()) / 2.0  # both labels' sums enter the score, with opposite signs
    return join(trees, wins_ties=not favours_second, divisor=divisor, single_inputs=True)


def gradient_boosting(model: Any, favours_second: bool) -> Ensemble:
    """Read gradient boosting: a sum of trees on top of a constant; zero means the second label."""
    base = 0.0
    if isinstance(model.init_, DummyClassifier) and model.init_.strategy in ("prior", "most_frequent", "constant"):
        base = float(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0, 0])
    elif model.init_ != "zero":
        raise Opaque(f"GradientBoostingClassifier that begins with {type(model.init_).__name__}")
    trees = [
        _tree(part.tree_, _one_score(model.learning_rate * part.tree_.value[:, 0, 0], favours_second))
        for part in model.estimators_[:, 0]
    ]
    return join(trees, wins_ties=favours_second, base=base if favours_second else -base, single_inputs=True)


def histogram_boosting(model: Any, favours_second: bool) -> Ensemble:
    """Read histogram boosting: a sum of trees on top of a constant; the second label needs more than zero."""
    trees = []
    for (part,) in model._predictors:
        nodes = part.nodes
        inner = nodes["is_leaf"] == 0
        sets = {
            int(node): _bits(part.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(inner & (nodes["is_categorical"] == 1))
        }
        trees.append(
            Tree(
                column=np.where(inner, nodes["feature_idx"], -1).astype(np.intp),
                threshold=nodes["num_threshold"].astype(np.float64),
                left=np.where(inner, nodes["left"].astype(np.intp), -1),
                right=np.where(inner, nodes["right"].astype(np.intp), -1),
                missing_left=nodes["missing_go_to_left"].astype(bool),
                votes=_one_score(nodes["value"].astype(np.float64), favours_second),
                categories=sets,
            )
        )
    base = float(np.ravel(model._baseline_prediction)[0])
    return join(trees, wins_ties=not favours_second, base=base if favours_second else -base)


def _bits(words: Any) -> tuple[int, ...]:
    return tuple(32 * place + bit for place, word in enumerate(words) for bit in range(32) if int(word) >> bit & 1)
