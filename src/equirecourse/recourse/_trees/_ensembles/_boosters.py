"""Readers of XGBoost's and LightGBM's classifiers, from the text in which they save themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse.recourse._trace import Opaque
from equirecourse.recourse._trees._ensembles._ensemble import Ensemble, Tree, join

__all__ = ["lightgbm", "lightgbm_categories", "xgboost", "xgboost_categories"]

Array = NDArray[np.float64]

_LIGHTGBM_ZERO = float(np.float32(1e-35))  # its kZeroThreshold: what is smaller does not reach the trees


def _one_score(values: Array, favours_second: bool) -> Array:
    return np.stack([np.zeros_like(values), values if favours_second else -values], axis=1)


def xgboost(model: Any, favours_second: bool) -> Ensemble:
    """Read XGBoost: inputs and sums are float32, ``<`` goes left, the second label needs more than zero."""
    booster = model.get_booster()
    learner = json.loads(bytes(booster.save_raw("json")).decode())["learner"]
    machine, objective = learner["gradient_booster"], learner["objective"]["name"]
    if machine["name"] != "gbtree":
        raise Opaque(f"XGBoost with booster={machine['name']!r}")
    if objective not in ("binary:logistic", "reg:logistic"):
        raise Opaque(f"XGBoost with objective={objective!r}")
    if not np.isnan(model.missing):
        raise Opaque(f"XGBoost that takes {model.missing!r} for a missing value")
    trees = machine["model"]["trees"]
    best = getattr(model, "best_iteration", None) if model.early_stopping_rounds is not None else None
    if best is not None:  # early stopping: prediction uses the trees up to the best round
        trees = trees[: machine["model"]["iteration_indptr"][best + 1]]
    share = np.float32(json.loads(str(learner["learner_model_param"]["base_score"]).strip("[]")))
    base = float(-np.log(np.float32(1.0) / share - np.float32(1.0)))
    return join(
        [_xgboost_tree(tree, favours_second) for tree in trees],
        wins_ties=not favours_second,
        base=base if favours_second else -base,
        below="<",
        single_inputs=True,
        single_sums=True,
    )


def _xgboost_tree(tree: dict[str, Any], favours_second: bool) -> Tree:
    left, right = (np.asarray(tree[side], dtype=np.intp) for side in ("left_children", "right_children"))
    missing_left = np.asarray(tree["default_left"], dtype=bool)
    # Leaves keep their value where other nodes keep their threshold.
    levels = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    votes = _one_score(np.where(left >= 0, 0.0, levels), favours_second)
    categories = {
        node: tuple(sorted(tree["categories"][first : first + size]))
        for node, first, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
    }
    # Categories that a node names go right here, and left in a Tree.
    swapped = np.isin(np.arange(len(left)), list(categories))
    return Tree(
        column=np.where(left >= 0, tree["split_indices"], -1).astype(np.intp),
        threshold=levels,
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=missing_left ^ swapped,
        votes=votes,
        categories=categories,
    )


def xgboost_categories(model: Any, is_category: Sequence[bool]) -> list[list[Any]]:
    """The categories of each column of categories, in the order in which XGBoost numbers them."""
    learner = json.loads(bytes(model.get_booster().save_raw("json")).decode())["learner"]
    named = learner["gradient_booster"]["model"].get("cats", {}).get("enc", ())
    if len(named) != len(is_category):
        raise Opaque("XGBoost that does not save the names of its categories, as it does from version 3.1 on")
    return [_xgboost_names(names) for names, category in zip(named, is_category, strict=True) if category]


def _xgboost_names(saved: dict[str, Any]) -> list[Any]:
    if "offsets" not in saved:
        return list(saved["values"])
    text = bytes(byte % 256 for byte in saved["values"])
    return [text[begin:end].decode() for begin, end in pairwise(saved["offsets"])]


def lightgbm(model: Any, favours_second: bool) -> Ensemble:
    """Read LightGBM: inputs as they are but for tiny ones, ``<=`` goes left, the second label needs more than zero."""
    booster = model.booster_
    saved = booster.dump_model(num_iteration=booster.best_iteration if booster.best_iteration > 0 else -1)
    objective = saved.get("objective", "one of its user's")
    if not objective.startswith(("binary", "cross_entropy ")) and objective != "cross_entropy":
        raise Opaque(f"LightGBM with objective={objective!r}")
    trees = [_lightgbm_tree(tree["tree_structure"], favours_second) for tree in saved["tree_info"]]
    return join(trees, wins_ties=not favours_second, zero_up_to=_LIGHTGBM_ZERO)


def lightgbm_categories(model: Any, is_category: Sequence[bool]) -> list[list[Any]]:
    """The categories of each column of categories, in the order in which LightGBM numbers them."""
    named = [list(names) for names in model.booster_.pandas_categorical or ()]
    if len(named) != sum(is_category):
        raise Opaque(f"LightGBM with {len(named)} columns of categories, asked about {sum(is_category)}")
    return named


def _lightgbm_tree(root: dict[str, Any], favours_second: bool) -> Tree:
    nodes = [root]
    left, right = [], []
    for node in nodes:  # grows while we walk through it
        if "leaf_value" in node:
            if "leaf_coeff" in node:
                raise Opaque("LightGBM with linear trees")
            left.append(-1)
            right.append(-1)
        else:
            left.append(len(nodes))
            right.append(len(nodes) + 1)
            nodes += [node["left_child"], node["right_child"]]
    asks = [_lightgbm_question(node) for node in nodes]
    return Tree(
        column=np.array([ask[0] for ask in asks], dtype=np.intp),
        threshold=np.array([ask[1] for ask in asks], dtype=np.float64),
        left=np.array(left, dtype=np.intp),
        right=np.array(right, dtype=np.intp),
        missing_left=np.array([ask[2] for ask in asks], dtype=bool),
        votes=_one_score(np.array([float(node.get("leaf_value", 0.0)) for node in nodes]), favours_second),
        categories={place: ask[3] for place, ask in enumerate(asks) if ask[3] is not None},
    )


def _lightgbm_question(node: dict[str, Any]) -> tuple[int, float, bool, tuple[int, ...] | None]:
    """Column, threshold, whether a missing input goes left, and the categories that do."""
    if "leaf_value" in node:
        return -1, 0.0, False, None
    if node["decision_type"] == "==":
        return node["split_feature"], 0.0, False, tuple(sorted(int(item) for item in node["threshold"].split("||")))
    if node["missing_type"] == "Zero":
        raise Opaque("LightGBM with zero_as_missing")
    threshold = float(node["threshold"])
    # A model that saw no missing inputs takes one for a zero.
    missing_left = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0
    return node["split_feature"], threshold, missing_left, None
