"""Small problems for tree engines, and their answers by trying everything."""

import contextlib
import itertools

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from equirecourse.actions import ActionSet, Feature, Link, Percentiles, Rule, total_cost
from equirecourse.recourse._problem import Problem
from equirecourse.recourse._view import open_model

COLOURS = ("red", "green", "blue", "grey")
SIZES = ("small", "middle", "large")

MODELS = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "extra tree": lambda seed: ExtraTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(5, max_depth=3, random_state=seed),
    "pure forest": lambda seed: RandomForestClassifier(4, random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(6, max_depth=3, random_state=seed),
    "gradient boosting": lambda seed: GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=seed),
    "histogram boosting": lambda seed: HistGradientBoostingClassifier(
        max_iter=6, max_leaf_nodes=5, min_samples_leaf=3, random_state=seed, categorical_features=None
    ),
    "adaboost": lambda seed: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=seed),
    "bagging": lambda seed: BaggingClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=4, max_features=0.7, random_state=seed
    ),
}


def make_people(rng, n):
    """Two or three numbers, one of them coarse, and two labels."""
    return pd.DataFrame(
        {
            "income": np.round(rng.normal(size=n), rng.choice([1, 8])),
            "debt": rng.integers(-3, 4, n).astype(float),
            "rate": rng.choice([0.1, 0.2, 0.3, 0.7, 1.1], n),
            "colour": rng.choice(COLOURS, n),
            "size": rng.choice(SIZES, n),
        }
    )


def make_labels(rng, people):
    """Labels that depend on everything."""
    size = people["size"].map({name: place for place, name in enumerate(SIZES)})
    score = people["income"] - 0.4 * people["debt"] + people["rate"] + (people["colour"] == "red") + 0.5 * size
    return np.where(score + rng.normal(scale=0.8, size=len(people)) > np.median(score) + 0.3, "yes", "no")


def make_actions(rng, people, *, links=None, rules=True):
    """Random limits, directions, steps and costs.

    Links: "steps" joins numbers that all move by steps, "carried" carries a number that cannot move by itself along
    with one that moves continuously.
    """

    def percentiles(values):
        known, counts = np.unique(values, return_counts=True)
        return Percentiles(tuple(known), tuple((np.cumsum(counts) - counts / 2) / counts.sum()))

    def shares(values, labels):
        return Percentiles(tuple(range(len(labels))), tuple((values == label).mean() for label in labels))

    def change():
        return str(rng.choice(["any", "any", "any", "increase", "decrease", "no"]))

    limits = [(-np.inf, np.inf), (-1.0, 1.5), (-2.0, 2.0), (0.0, np.inf)]
    features = []
    for name, steps in (("income", [None, None, 0.1, 0.25]), ("debt", [None, 1.0]), ("rate", [None, 0.1, 0.2])):
        low, high = limits[rng.integers(len(limits)) if links != "steps" else rng.integers(1, 3)]
        step = steps[rng.integers(len(steps))] if links != "steps" else steps[-1]
        way = change()
        if links == "carried" and name != "rate":
            way, step = ("no", None) if name == "income" else ("any", None)
        features.append(
            Feature(
                name,
                change=way,
                low=low,
                high=high,
                step=step,
                cost=float(rng.choice([0.5, 1.0, 1.7])),
                percentiles=percentiles(people[name]),
            )
        )
    colours = COLOURS[: rng.integers(3, 5)]
    features.append(
        Feature(
            "colour",
            kind="labels",
            labels=colours,
            change=str(rng.choice(["any", "any", "no"])),
            allowed=[None, ("red", "blue"), ("green", "blue")][rng.integers(3)],
            cost=float(rng.choice([0.4, 1.3])),
            percentiles=shares(people["colour"], colours),
        )
    )
    codes = people["size"].map({name: place for place, name in enumerate(SIZES)})
    features.append(
        Feature("size", kind="ordered", labels=SIZES, change=change(), cost=0.6, percentiles=percentiles(codes))
    )
    made_rules, made_links = [], []
    if rules:
        some = [
            Rule("colour == 'blue'", "income >= 0.25"),
            Rule("income increases", "debt changes"),
            Rule("debt <= 1", "size != 'large'"),
            Rule("rate in [0.1, 0.3]", "income stays"),
            Rule("size changes", "rate > 0.2"),
            Rule("income != 0.5", "debt < 2"),
        ]
        made_rules = [some[i] for i in rng.permutation(len(some))[: rng.integers(0, 3)]]
    if links:
        made_links = [Link("debt", "income", float(rng.choice([-0.5, 0.25, 1.0])))]
    if links == "steps" and rng.random() < 0.5:
        made_links.append(Link("debt", "rate", 0.1))
    actions = ActionSet(features, links=made_links)
    for rule in made_rules:
        with contextlib.suppress(ValueError):  # rules that nobody can keep, as features happen to be, are refused
            actions = ActionSet(features, links=made_links, rules=[*actions.rules, rule])
    return actions


def make_pipeline_for(rng, model):
    """The model behind encoders and, perhaps, scalers of the numbers."""
    scalers = ["passthrough", StandardScaler(), MinMaxScaler()]
    steps = make_column_transformer(
        (scalers[rng.integers(3)], ["income", "debt", "rate"]),
        (OneHotEncoder(sparse_output=False), ["colour"]),
        (OrdinalEncoder(categories=[list(SIZES)]), ["size"]),
    )
    return make_pipeline(steps, model)


def make_world(kind, norm, seed, **options):
    """A fitted pipeline and a few rejected people; None if nobody is rejected."""
    rng = np.random.default_rng(seed)
    people = make_people(rng, 60)
    model = make_pipeline_for(rng, MODELS[kind](seed)).fit(people, make_labels(rng, people))
    view = open_model(model, str(rng.choice(["yes", "no"])))
    table = people[~view.accepts(people)].head(3)
    if len(table) == 0:
        return None
    return Problem(view, make_actions(rng, people, **options), norm, table, people)


# --- trying everything -----------------------------------------------------------------------------------------------


def thresholds_of(final, n_inputs):
    """For each input, the thresholds that the library's own trees hold."""
    levels = [[] for _ in range(n_inputs)]
    if isinstance(final, HistGradientBoostingClassifier):
        for (part,) in final._predictors:
            for node in part.nodes[part.nodes["is_leaf"] == 0]:
                levels[node["feature_idx"]].append(float(node["num_threshold"]))
    else:
        trees = np.ravel(getattr(final, "estimators_", [final]))
        seen_by = getattr(final, "estimators_features_", [np.arange(n_inputs)] * len(trees))
        for tree, columns in zip(trees, seen_by, strict=True):
            for column, level in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
                if column >= 0:
                    levels[columns[column]].append(float(level))
    return [np.unique(some) for some in levels]


def around(values):
    """Each number, where it rounds to in float32 and what else rounds there, and the neighbours of them all."""
    near = []
    for value in values:
        single = np.float32(value)
        below, above = np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))
        for centre in (value, float(single), (float(below) + float(single)) / 2, (float(single) + float(above)) / 2):
            up = down = centre
            near.append(centre)
            for _ in range(3):
                up, down = float(np.nextafter(up, np.inf)), float(np.nextafter(down, -np.inf))
                near += [up, down]
    return near


def candidates(problem, person, j, levels):
    """Values of a feature among which that of a cheapest action must be, up to rounding."""
    feature, start = problem.actions.features[j], problem.start[person, j]
    if not feature.is_number:
        return [start, *range(len(feature.labels))]
    if feature.step is not None:
        return [start, *(np.arange(-60, 61) * feature.step)]
    values = around(levels[j])
    scaler = problem.view.before[0].transformers_[0][1]
    if hasattr(scaler, "inverse_transform") and values:
        block = np.zeros((len(values), 3))
        block[:, j] = values
        values = [near for value in scaler.inverse_transform(block)[:, j] for near in around([value])[:7]]
    for rule in problem.actions.rules:
        for condition in (rule.when, rule.then):
            if condition.feature == feature.name and condition.value is not None:
                values += around(condition.value if isinstance(condition.value, tuple) else [condition.value])
    limits = [limit for limit in (feature.low, feature.high) if np.isfinite(limit)]
    for link in problem.actions.links:
        if link.source == feature.name:  # where what it carries along crosses something
            other = problem.actions.index(link.target)
            carried = problem.actions.features[other]
            ends = [*candidates(problem, person, other, levels), carried.low, carried.high]
            back = [start + (end - problem.start[person, other]) / link.rate for end in ends if np.isfinite(end)]
            # Rounding on the way back is larger than the neighbours: also a hair to either side.
            values += [near for value in back for near in (value, value - 1e-9, value + 1e-9)]
    return [start, *around([start])[:3], *limits, *values]


def distinct(problem, person, j, levels):
    """The cheapest of the candidates that neither the trees nor the rules can tell apart."""
    feature, start = problem.actions.features[j], problem.start[person, j]
    values = np.unique(candidates(problem, person, j, levels))
    own = np.repeat(problem.start[[person]], len(values), axis=0)
    own[:, j] = values
    alone = ActionSet(problem.actions.features)  # without links and rules, which several features have a part in
    fine = alone.respected(np.repeat(problem.start[[person]], len(own), axis=0), own)
    if feature.is_number and feature.step is None:  # the action set forgives rounding, which is no reason to aim there
        fine &= ((values >= feature.low) & (values <= feature.high)) | (values == start)
    own = own[fine]
    linked = {name for link in problem.actions.links for name in (link.source, link.target)}
    if feature.name in linked and feature.step is not None:
        return own[:, j].tolist()  # where it stands within a cell matters to what it carries along
    seen = problem.view.inputs(problem.after(np.full(len(own), person), own))
    if not isinstance(problem.view.final, HistGradientBoostingClassifier):
        seen = seen.astype(np.float32).astype(np.float64)
    sides = [np.searchsorted(some, seen[:, column]) for column, some in enumerate(levels)]
    conditions = [condition for rule in problem.actions.rules for condition in (rule.when, rule.then)]
    end = problem.actions.carry(np.repeat(problem.start[[person]], len(own), axis=0), own)
    for condition in conditions:
        k = problem.actions.index(condition.feature)
        sides.append(condition.holds(problem.actions.features[k], problem.start[person, k], end[:, k]))
    for link in problem.actions.links:
        k = problem.actions.index(link.target)
        carried = problem.actions.features[k]
        sides += [end[:, k] < carried.low, end[:, k] > carried.high, end[:, k] == problem.start[person, k]]
    costs = feature.move_cost(problem.norm, start, own[:, j])
    first = {}
    for i in np.argsort(costs, kind="stable"):
        first.setdefault(tuple(int(side[i]) for side in sides), own[i, j])
    return list(first.values())


def best_by_trial(problem, person):
    """Least cost over the product of all candidates; infinite if none is accepted and allowed."""
    levels = thresholds_of(problem.view.final, problem.view.inputs(problem.table).shape[1])
    lists = [distinct(problem, person, j, levels) for j in range(len(problem.actions))]
    combos = np.array(list(itertools.product(*lists)))
    before = np.repeat(problem.start[[person]], len(combos), axis=0)
    combos = combos[problem.actions.respected(before, combos)]
    if len(combos) == 0:
        return np.inf
    costs = total_cost(problem.norm, problem.actions.costs(problem.norm, before[: len(combos)], combos))
    order = np.argsort(costs, kind="stable")
    for some in np.array_split(order, max(1, len(order) // 2000)):  # the cheapest first
        yes = problem.accepted(np.full(len(some), person), combos[some])
        if yes.any():
            return float(costs[some][yes].min())
    return np.inf
