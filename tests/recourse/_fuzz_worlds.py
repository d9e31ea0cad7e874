"""Small random worlds: a fitted model, an action set, a few people, and how to ask for their recourse.

A world is made from its seed alone. ``seed // WORLDS_PER_MODEL`` decides the data and the model, which takes longer
to make than the rest and is kept; ``seed % len(NORMS)`` decides the norm.
"""

import contextlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from xgboost import XGBClassifier, XGBRFClassifier

from equirecourse.actions import NORMS, ActionSet, Feature, Link, Percentiles, Rule

COLOURS = ("red", "green", "blue")
SIZES = ("small", "middle", "large")
WORLDS_PER_MODEL = 10


class Rounded(LogisticRegression):
    """Weights with one decimal, so that coarse numbers come to lie on the boundary itself, up to rounding."""

    def fit(self, X, y):
        super().fit(X, y)
        self.coef_, self.intercept_ = np.round(self.coef_, 1), np.round(self.intercept_, 1)
        return self


@dataclass(frozen=True)
class Kind:
    """A kind of model: how to make one, the engine that reads it, and whether it takes missing numbers."""

    make: object
    engine: str
    takes_missing: bool = False
    native: bool = False  # sees a pandas category as it is
    has_program: bool = True  # whether method="milp" reads it


KINDS = {
    "logistic": Kind(lambda s: LogisticRegression(), "linear"),
    "tree": Kind(lambda s: DecisionTreeClassifier(max_depth=4, random_state=s), "trees", takes_missing=True),
    "xgboost": Kind(lambda s: XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1), "trees", takes_missing=True),
    "forest": Kind(lambda s: RandomForestClassifier(4, max_depth=3, random_state=s), "trees", takes_missing=True),
    "svc poly 2": Kind(lambda s: SVC(kernel="poly", degree=2, coef0=1.0), "kernel"),
    "histogram boosting": Kind(
        lambda s: HistGradientBoostingClassifier(
            max_iter=4, max_leaf_nodes=4, min_samples_leaf=3, categorical_features=None, early_stopping=False
        ),
        "trees",
        takes_missing=True,
    ),
    "ridge": Kind(lambda s: RidgeClassifier(), "linear"),
    "rounded": Kind(lambda s: Rounded(), "linear"),
    "extra trees": Kind(lambda s: ExtraTreesClassifier(4, max_depth=3, random_state=s), "trees", takes_missing=True),
    "lightgbm": Kind(
        lambda s: LGBMClassifier(n_estimators=4, num_leaves=4, min_child_samples=3, n_jobs=1, verbose=-1),
        "trees",
        takes_missing=True,
    ),
    "gradient boosting": Kind(
        lambda s: GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=s), "trees"
    ),
    "linear svc": Kind(lambda s: LinearSVC(random_state=s), "linear"),
    "adaboost": Kind(
        lambda s: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3, random_state=s), "trees"
    ),
    "naive bayes": Kind(lambda s: GaussianNB(), "kernel"),
    "bagging": Kind(
        lambda s: BaggingClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=3, random_state=s), "trees"
    ),
    "xgboost native": Kind(
        lambda s: XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1, enable_categorical=True),
        "trees",
        takes_missing=True,
        native=True,
        has_program=False,
    ),
    "histogram boosting native": Kind(
        lambda s: HistGradientBoostingClassifier(
            max_iter=4, max_leaf_nodes=4, min_samples_leaf=3, categorical_features="from_dtype", early_stopping=False
        ),
        "trees",
        takes_missing=True,
        native=True,
    ),
    "svc rbf": Kind(lambda s: SVC(), "kernel"),
    "extra tree": Kind(lambda s: ExtraTreeClassifier(max_depth=4, random_state=s), "trees", takes_missing=True),
    "xgboost forest": Kind(
        lambda s: XGBRFClassifier(n_estimators=3, max_depth=3, n_jobs=1), "trees", takes_missing=True
    ),
    "perceptron": Kind(lambda s: Perceptron(random_state=s), "linear"),
    "lightgbm native": Kind(
        lambda s: LGBMClassifier(n_estimators=4, num_leaves=4, min_child_samples=3, n_jobs=1, verbose=-1),
        "trees",
        takes_missing=True,
        native=True,
        has_program=False,
    ),
    "neighbours": Kind(lambda s: KNeighborsClassifier(5), "search"),
    "quadratic": Kind(lambda s: QuadraticDiscriminantAnalysis(reg_param=0.1), "kernel"),
    "deep forest": Kind(lambda s: RandomForestClassifier(3, random_state=s), "trees", takes_missing=True),
    "svc linear": Kind(lambda s: SVC(kernel="linear"), "linear"),
}
# Engines that prove little and take long come up half as often.
SCHEDULE = [*KINDS, *(name for name, kind in KINDS.items() if kind.engine in ("linear", "trees"))]


@dataclass(frozen=True)
class Setting:
    """A fitted model and the people it was fitted on; numbers come first among the columns."""

    kind: str
    people: pd.DataFrame
    numbers: tuple[str, ...]
    labels: tuple[str, ...]  # of "colour", "size", "block"
    model: object
    scaler: object
    as_array: bool

    def predict(self, table):
        """What the model says to people in the columns of the setting."""
        table = table[self.people.columns]
        return self.model.predict(table.to_numpy() if self.as_array else table)


@dataclass(frozen=True)
class World:
    """One question to ``find_recourse``."""

    seed: int
    setting: Setting
    actions: ActionSet
    norm: str
    people: pd.DataFrame
    favorable: object
    extra: str  # how to ask a second time: "milp", "search", "named", "alone", "hurried", "surrogate", "nothing"
    frozen: object = None

    def __repr__(self):
        features = "; ".join(
            f"{f.name} {f.change} {f.low:g}..{f.high:g} step {f.step} cost {f.cost:g}"
            if f.is_number
            else f"{f.name} {f.kind} {f.change} of {f.labels} to {f.allowed}"
            for f in self.actions
        )
        more = [*map(str, self.actions.links), *map(str, self.actions.rules)]
        return (
            f"world {self.seed}: {self.setting.kind} behind {type(self.setting.scaler).__name__}, {self.norm}, "
            f"{self.extra}{', frozen' if self.frozen is not None else ''} | {' | '.join([features, *more])}"
        )


# --- data and models -------------------------------------------------------------------------------------------------


def make_numbers(rng, n):
    """Numbers of one of several makes: whole, coarse, fine, and on or a hair beside values of float32."""
    make = rng.choice(["whole", "integers", "tenths", "fine", "single", "beside"])
    if make == "integers":
        return rng.integers(0, 7, n)
    if make == "whole":
        return rng.integers(-2, 5, n).astype(float)
    values = rng.normal(size=n)
    if make == "tenths":
        return np.round(values, 1)
    if make == "fine":
        return values
    values = rng.choice(values[:8], n).astype(np.float32)
    if make == "single":
        return values.astype(float)
    near = np.stack([np.nextafter(values, np.float32(way)) for way in (-np.inf, np.inf)] + [values] * 2).astype(float)
    near[3] = np.nextafter(near[2], rng.choice([-np.inf, np.inf]))
    return near[rng.integers(0, 4, n), np.arange(n)]


def make_people(rng, n, kind):
    """One to three numbers, some missing, and up to two columns of labels."""
    columns = {name: make_numbers(rng, n) for name in "abc"[: rng.choice([1, 2, 2, 3])]}
    numbers = tuple(columns)
    if rng.random() < 0.3:
        name = str(rng.choice(numbers))
        columns[name] = np.where(rng.random(n) < 0.25, np.nan, columns[name])
    # Labels need a column transformer, which takes longer than anything else about a world.
    labels = tuple(name for name in ("colour", "size") if rng.random() < (0.5 if kind.native else 0.25))
    if "colour" in labels and rng.random() < 0.4 and not kind.native:
        labels = tuple(name.replace("colour", "block") for name in labels)
    if "colour" in labels:
        colour = rng.choice(COLOURS, n).astype(object)
        colour[rng.random(n) < rng.choice([0.0, 0.1])] = np.nan if kind.native else "mauve"
        columns["colour"] = pd.Categorical(colour, categories=COLOURS) if kind.native else colour
    if "block" in labels:
        which = rng.integers(0, 3, n)
        columns |= {f"block_{name}": (which == place).astype(float) for place, name in enumerate(COLOURS)}
    if "size" in labels:
        columns["size"] = rng.choice(SIZES, n).astype(object)
        if kind.native:
            columns["size"] = pd.Categorical(columns["size"], categories=SIZES, ordered=True)
    return pd.DataFrame(columns), numbers, labels


def make_target(rng, people):
    """Labels that depend on everything, by random weights."""
    score = rng.normal(scale=0.4, size=len(people))
    for name in people:
        column = people[name]
        values = column.to_numpy() if column.dtype.kind in "fi" else pd.factorize(column)[0]
        values = np.nan_to_num(values.astype(float))
        score += rng.normal() * (values - values.mean()) / (values.std() or 1.0)
    return np.where(score > np.quantile(score, rng.choice([0.4, 0.6])), 1, 0)


def make_model(rng, kind, people, numbers, labels, seed):
    """The estimator, bare or behind scalers, imputers and encoders; also the scaler."""
    scaler = [None] * 5 + [StandardScaler(), MinMaxScaler(), RobustScaler()]
    scaler = scaler[rng.integers(len(scaler))]
    impute = bool(people[list(numbers)].isna().any(axis=None)) and not kind.takes_missing
    bare = scaler is None and not impute and (kind.native or not set(labels) - {"block"})
    if bare:
        return kind.make(seed), None
    steps = [step for step in (scaler, SimpleImputer() if impute else None) if step is not None]
    parts = [(make_pipeline(*steps) if steps else "passthrough", list(numbers))]
    if "block" in labels:
        parts.append(("passthrough", [name for name in people if name.startswith("block")]))
    if "colour" in labels:
        sparse = bool(rng.random() < 0.5)
        parts.append((OneHotEncoder(handle_unknown="ignore", sparse_output=sparse), ["colour"]))
    if "size" in labels:
        parts.append((OrdinalEncoder(categories=[list(SIZES)]), ["size"]))
    # Naive Bayes and the like take no sparse matrices.
    dense = 0.0 if kind.engine == "kernel" else 0.3
    return make_pipeline(make_column_transformer(*parts, sparse_threshold=dense), kind.make(seed)), scaler


@lru_cache(maxsize=8)
def make_setting(seed):
    """Data and a fitted model."""
    rng = np.random.default_rng([7, seed])
    name = SCHEDULE[seed % len(SCHEDULE)]
    kind = KINDS[name]
    people, numbers, labels = make_people(rng, 50, kind)
    model, scaler = make_model(rng, kind, people, numbers, labels, seed)
    as_array = not hasattr(model, "steps") and not labels and bool(rng.random() < 0.4)
    model.fit(people.to_numpy() if as_array else people, make_target(rng, people))
    return Setting(name, people, numbers, labels, model, scaler, as_array)


@lru_cache(maxsize=64)
def thresholds(seed, name):
    """Where the trees of a setting cut a number, taken back through the scaler; nothing for other models."""
    setting = make_setting(seed)
    place = setting.numbers.index(name)
    final = setting.model[-1] if hasattr(setting.model, "steps") else setting.model
    levels = np.unique(raw_thresholds(final, place))
    levels = levels[np.isfinite(levels)]  # a node that asks only whether the number is missing has no end
    if setting.scaler is None or len(levels) == 0:
        return levels
    block = np.zeros((len(levels), len(setting.numbers)))
    block[:, place] = levels
    scaler = setting.model[0].transformers_[0][1][0]
    return scaler.inverse_transform(block)[:, place]


def raw_thresholds(final, place):
    """Thresholds of one input in the trees of any of the libraries."""
    if isinstance(final, XGBClassifier):
        trees = final.get_booster().trees_to_dataframe()
        names = final.get_booster().feature_names or [f"f{j}" for j in range(final.n_features_in_)]
        return trees["Split"][trees["Feature"] == names[place]].dropna().to_numpy(np.float32).astype(float)
    if isinstance(final, LGBMClassifier):
        trees = final.booster_.trees_to_dataframe()
        mine = (trees["split_feature"] == final.feature_name_[place]) & (trees["decision_type"] == "<=")
        return trees["threshold"][mine].to_numpy(dtype=float)
    if isinstance(final, HistGradientBoostingClassifier):
        nodes = np.concatenate([part.nodes for (part,) in final._predictors])
        mine = (nodes["is_leaf"] == 0) & (nodes["feature_idx"] == place) & (nodes["is_categorical"] == 0)
        return nodes["num_threshold"][mine]
    trees = [final] if hasattr(final, "tree_") else np.ravel(getattr(final, "estimators_", []))
    seen = getattr(final, "estimators_features_", None)
    found = [np.zeros(0)]
    for i, tree in enumerate(trees):
        column = place if seen is None else np.append(np.flatnonzero(seen[i] == place), -5)[0]
        found.append(tree.tree_.threshold[tree.tree_.feature == column])
    return np.concatenate(found)


# --- action sets -----------------------------------------------------------------------------------------------------


def mid_ranks(rng, values):
    """Percentiles of a number, of everybody or of some; there are values nobody has between and beyond."""
    values = values[~np.isnan(values)]
    known, counts = np.unique(values, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / counts.sum()
    some = slice(None)
    if len(known) > 3:
        some = [slice(None), slice(0, None, 3), slice(0, len(known) // 2), slice(len(known) // 3, None)][
            rng.integers(4)
        ]
    return Percentiles(tuple(known[some]), tuple(ranks[some]))


def make_number(rng, name, values, cuts):
    """A number with random limits, direction, step and cost."""
    known = values[~np.isnan(values)]
    ends = [*np.quantile(known, [0.0, 0.2, 0.5, 0.8, 1.0]), *cuts, *np.round(known[:2], 1)]
    low, high = sorted(rng.choice(ends, 2))
    low, high = (low if rng.random() < 0.5 else -np.inf), (high if rng.random() < 0.5 else np.inf)
    whole = (known == np.round(known)).all()
    return Feature(
        name,
        change=str(rng.choice(["any", "any", "increase", "decrease", "no"], p=[0.4, 0.15, 0.18, 0.15, 0.12])),
        low=low,
        high=high,
        step=[None, 1.0, 2.0, 0.5][rng.integers(4)] if whole else [None, None, 0.1, 0.25][rng.integers(4)],
        cost=float(rng.choice([0.5, 1.0, 1.7])),
        percentiles=mid_ranks(rng, values),
    )


def make_labels(rng, name, setting):
    """A feature of labels: some of them, or all, and some to move to."""
    if name == "size":
        counts = setting.people["size"].value_counts().reindex(SIZES).fillna(0).to_numpy() + 0.5
        ranks = Percentiles((0, 1, 2), tuple((np.cumsum(counts) - counts / 2) / counts.sum()))
        change = str(rng.choice(["any", "any", "increase", "decrease", "no"]))
        return Feature("size", kind="ordered", labels=SIZES, change=change, cost=0.6, percentiles=ranks)
    listed = COLOURS if name == "block" else COLOURS[: rng.integers(2, 4)]
    parts = {"labels": listed, "cost": float(rng.choice([0.4, 1.3])), "change": str(rng.choice(["any", "any", "no"]))}
    if rng.random() < 0.3:
        parts["allowed"] = listed[:2]
    parts["percentiles"] = Percentiles(tuple(range(len(listed))), tuple(rng.uniform(0.1, 0.9, len(listed))))
    if name == "block":
        return Feature("block", kind="one_hot", columns=tuple(f"block_{one}" for one in listed), **parts)
    return Feature(name, kind="labels", **parts)


def make_condition(rng, feature, values, cuts):
    """A condition on one feature."""
    if feature.has_order and rng.random() < 0.4:
        return f"{feature.name} {rng.choice(['changes', 'stays', 'increases', 'decreases'])}"
    if not feature.is_number:
        op = rng.choice(["==", "!=", "in"] + ["<=", ">"] * feature.has_order)
        label = str(rng.choice(feature.labels))
        return f"{feature.name} {op} {[label] if op == 'in' else repr(label)}"
    known = values[~np.isnan(values)]
    value = float(rng.choice([*cuts, known[0], np.round(known[1], 1), np.median(known)]))
    return f"{feature.name} {rng.choice(['<=', '>=', '<', '>', '!=', '=='])} {value!r}"


def make_actions(rng, seed, setting):
    """Features in random limits, perhaps with links and rules."""
    values = {name: setting.people[name].to_numpy(dtype=float) for name in setting.numbers}
    cuts = {name: thresholds(seed, name)[:3] for name in setting.numbers}
    features = [make_number(rng, name, values[name], cuts[name]) for name in setting.numbers]
    features += [make_labels(rng, name, setting) for name in setting.labels]
    links = []
    if len(setting.numbers) > 1 and rng.random() < 0.5:
        source, *targets = rng.permutation(setting.numbers)[: rng.integers(2, 4)]
        links = [Link(str(source), str(t), float(rng.choice([-0.5, 0.5, 1.0, 0.1, 1 / 3]))) for t in targets]
    actions = ActionSet(features, links=links)
    for _ in range(rng.choice([0, 0, 1, 2])):
        when, then = (
            make_condition(rng, feature, values.get(feature.name), cuts.get(feature.name, ()))
            for feature in rng.choice(np.array(features, dtype=object), 2)
        )
        with contextlib.suppress(ValueError):  # rules that nobody can keep are refused
            actions = ActionSet(features, links=links, rules=[*actions.rules, Rule(when, then)])
    return actions


# --- worlds ----------------------------------------------------------------------------------------------------------


def displaced(rng, seed, people, setting):
    """The people, one of whom has a number on a threshold, a hair beside one, or far away."""
    name = str(rng.choice(setting.numbers))
    cuts = thresholds(seed, name)
    value = float(rng.choice([*cuts, -9.0, 9.0, 0.3]))
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    near = [value, single, np.nextafter(value, np.inf), np.nextafter(value, -np.inf)][rng.integers(4)]
    value = near if np.isfinite(near) else value
    if people[name].dtype.kind == "i":
        value = int(np.round(value))
    column = people[name].to_numpy().copy()
    column[rng.integers(len(column))] = value
    return people.assign(**{name: column})


def make_world(seed):
    """The world of a seed."""
    of_model = seed // WORLDS_PER_MODEL
    setting = make_setting(of_model)
    rng = np.random.default_rng([11, seed])
    actions = make_actions(rng, of_model, setting)
    favorable = setting.model.classes_[rng.integers(2)]
    rejected = setting.people[setting.predict(setting.people) != favorable]
    source = rejected if len(rejected) else setting.people
    kind = KINDS[setting.kind]
    slow = kind.engine in ("kernel", "search")
    people = source.sample(min(1 if slow else 2, len(source)), random_state=seed).reset_index(drop=True)
    if rng.random() < 0.4:
        people = displaced(rng, of_model, people, setting)
    norm = sorted(NORMS)[seed % len(NORMS)]
    extras = ["nothing", "alone", "alone", "hurried", "named"]
    extras += ["milp"] * 6 + ["nothing"] * 2 if kind.has_program and not slow else ["nothing"] * 8
    extras += ["search"] * (rng.random() < 0.2)
    extras += ["surrogate"] * (rng.random() < 0.1 and not people.isna().any(axis=None))
    frozen = rng.random((len(people), len(actions))) < 0.3 if rng.random() < 0.1 else None
    return World(seed, setting, actions, norm, people, favorable, str(rng.choice(extras)), frozen)
