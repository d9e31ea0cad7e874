"""Boosted trees that minimise the log-loss and the distance between the groups' costs, stage by stage."""

from __future__ import annotations

import copy
import json
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_sample_weight

from equirecourse.equalizers._experience import Experience, Experienced, Paths
from equirecourse.equalizers._objective import HOLD, STAGES, CostObjective, Prices, Term, softened
from equirecourse.equalizers._weighted import take_feature_names
from equirecourse.exceptions import SmallGroupWarning

__all__ = ["SOFTNESS", "BoostingProblem", "default_booster", "library_of", "loss_weights", "neutral"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

_DEFAULT_TREES = 100  # of both libraries
_RATES = {"lightgbm": 0.1, "xgboost": 0.3}  # at which they learn by default
_MANY_PEOPLE = 100_000  # from which on threads pay; at 30,000 people and 60 columns two threads take 0.9 of the time
_FEWEST_STAGES, _MOST_STAGES = 4, 16  # before each of which prices are renewed
_STRONGEST = 3.0  # pull of equality on a person, in units of the most that their label pulls
_LONGEST = 30.0  # step that it would make of a score by itself, before the learning rate
_NEAR = 0.002  # by which the acceptance rate may differ in the end
# Weight of the score that people lack in the change of a cost; the rest is that of their way. One half left smaller
# gaps than either of them alone, on clouds with outliers and on three draws of a mixture.
_OWN = 0.5
_SHORTEST = 0.02  # of a cost after its change, in units of the cost before: no cost is zero
_LEAST_LACK = 1e-3  # of a score, in units of τ
_ROUNDING = 1e-9  # relative difference of two values of one objective that is none
SOFTNESS = STAGES[0]  # of decisions: trees make steps, and follow a sharper boundary into corners where nobody lives


@dataclass(frozen=True)
class BoostingFit:
    """A booster as it came out of a stage, its scores of the training people, and a row of the table."""

    booster: Any
    scores: Array
    row: dict[str, Any]
    prices: Prices | None = None
    shift: float = 0.0  # that is to be added to the booster's own scores


@dataclass(frozen=True)
class BoostingProblem:
    """Training people as the booster sees them; ``y`` is 1 for the second label, ``sign`` says whether that is a yes.

    ``people`` are their weights, and ``weights`` those of their losses, with class weights.
    """

    booster: Any
    library: str
    step: str | None
    steps: Any
    X: Any
    y: Array
    people: Array
    weights: Array
    costs: CostObjective | None
    classes: NDArray[Any]
    sign: float
    warm_up: float
    experience: Experience | None

    @property
    def n_trees(self) -> int:
        """How many trees there are to be; XGBoost's parameters do not say unless the user does."""
        asked = self.booster.get_params()["n_estimators"]
        return _DEFAULT_TREES if asked is None else int(asked)

    def plain(self) -> BoostingFit:
        """The booster with the log-loss alone."""
        return self._looked_at("plain", self._grow(self.n_trees, BoostingObjective(self), None), None)

    def fit(self, plain: BoostingFit, kappa: float) -> tuple[BoostingFit, list[dict[str, Any]]]:
        """The stage that is chosen, and the rows of all of them."""
        if self.costs is None or kappa == 0.0:
            return plain, [plain.row]
        self._warn_of_small_groups(plain.scores)
        n_trees = self.n_trees
        warm = min(round(self.warm_up * n_trees), n_trees - 1)
        costs = self.costs.comparing(self.sign * plain.scores)
        held = costs.rejection(self.sign * plain.scores)
        now: BoostingFit | None = None
        if warm:
            now = self._looked_at("warm-up", self._grow(warm, BoostingObjective(self), None), None)
        sizes = self._stages(warm, n_trees)
        stages: list[tuple[float, BoostingFit]] = []  # with their objectives, at what they really cost people
        for stage, size in enumerate(sizes):
            experienced = self._experienced(now, stage)
            if experienced is not None and stages:
                stages[-1] = self._valued(self._held(stages[-1][1], plain), stage, experienced, costs, kappa, held)
            prices, passed = self._seen(now, experienced, stage)
            objective = BoostingObjective(self, costs, kappa, prices, held, passed)
            now = self._looked_at("distribution", self._grow(int(size), objective, now), prices)
            stages.append((np.nan, now))
        assert now is not None
        if self.experience is not None:
            stages[-1] = self._valued(self._held(now, plain), len(sizes), None, costs, kappa, held)
            # Stages go back and forth about an equal model. Those of the first half are on their way to it.
            now = min(stages[len(stages) // 2 :], key=lambda pair: pair[0])[1]
        else:
            stages[-1] = (np.nan, now := self._held(now, plain))
        return now, [plain.row, *(fit.row for _, fit in stages)]

    def _experienced(self, now: BoostingFit | None, stage: int) -> Experienced | None:
        """What a yes costs people now, if that is to be known."""
        if self.experience is None or now is None:
            return None
        assert self.costs is not None
        codes = self.costs.partitions[0].codes
        model = self._whole(self._ordinary(now.booster, now.shift))
        turn = self._turn(stage)
        return turn.ask(model, self.sign * now.scores, self.people, codes, SOFTNESS)

    def _turn(self, stage: int) -> Experience:
        """Other people, and other places on their ways, in each stage, so that everybody has a turn."""
        assert self.experience is not None
        return replace(self.experience, seed=self.experience.seed + stage)

    def _valued(
        self,
        fit: BoostingFit,
        stage: int,
        experienced: Experienced | None,
        costs: CostObjective,
        kappa: float,
        held: Array,
    ) -> tuple[float, BoostingFit]:
        """The objective at what a fit costs people, and the fit with that in its row.

        ``experienced`` is what it costs them before its scores are shifted; after that it is another model.
        """
        if experienced is None or fit.shift:
            experienced = self._experienced(fit, stage)
            assert experienced is not None
        prices = experienced.prices
        scores = self.sign * fit.scores
        distance, drift = (term.value for term in costs.terms(scores, prices, held))
        row = {**fit.row, "distance": distance}
        return fit.row["loss"] + kappa * (distance + HOLD * drift), replace(fit, row=row)

    def _seen(
        self, now: BoostingFit | None, experienced: Experienced | None, stage: int
    ) -> tuple[Prices | None, Passed | None]:
        """Prices, and what the booster sees of the places that people would pass, with its scores of them."""
        if now is None or experienced is None:
            return None, None
        if len(experienced.people) == 0:
            return experienced.prices, None
        assert self.costs is not None
        paths = self._turn(stage).paths(experienced)
        seen = paths.table if self.steps is None else self.steps.transform(paths.table)
        accepted = self.sign * self._scores(now.booster, seen) > 0.0
        tau = self.costs.unit(self.sign * now.scores)
        lacked = tau * softened(self.sign * now.scores[paths.people], tau)[1]
        return experienced.prices, Passed(paths, seen, accepted, np.maximum(lacked, _LEAST_LACK * tau), tau)

    def _stages(self, warm: int, n_trees: int) -> list[int]:
        """How many trees each stage adds: so many that a score has made one whole step of Newton's method.

        By then the pull has closed the gap as far as the prices of the stage can tell; what further trees do to costs,
        these prices do not see.
        """
        given = self.booster.get_params().get("learning_rate")
        rate = _RATES[self.library] if given is None else float(given)
        wanted = int(np.clip(round(rate * (n_trees - warm)), _FEWEST_STAGES, _MOST_STAGES))
        ends = np.linspace(warm, n_trees, min(wanted, n_trees - warm) + 1).round().astype(int)
        return [int(size) for size in np.diff(ends)]

    def _held(self, now: BoostingFit, plain: BoostingFit) -> BoostingFit:
        """A stage with a constant added to its scores, so that as many people are accepted as by the plain one.

        The soft rate that the objective holds is not quite that of decisions. A constant that is next to nothing for
        scores may carry the boundary far across a region where nobody lives: it is as small as it can be.
        """
        before, after = self.sign * plain.scores, self.sign * now.scores
        if abs(now.row["acceptance"] - plain.row["acceptance"]) <= _NEAR:
            return now
        values, which = np.unique(after, return_inverse=True)
        if len(values) < 2:
            return now
        below = np.cumsum(np.bincount(which, weights=self.people))[:-1] / self.people.sum()
        away = np.abs(below - np.average(before <= 0.0, weights=self.people))
        borders = 0.5 * (values[:-1] + values[1:])[away <= away.min() + _NEAR]
        border = float(borders[np.argmin(np.abs(borders))])
        return self._looked_at(now.row["kind"], now.booster, now.prices, -self.sign * border)

    def _grow(self, n_trees: int, objective: BoostingObjective, before: BoostingFit | None) -> Any:
        """More trees after those that there are."""
        booster = clone(self.booster).set_params(n_estimators=n_trees, objective=objective)
        key = "xgb_model" if self.library == "xgboost" else "init_model"
        known = None if before is None else before.booster
        if known is not None:
            known = known.get_booster() if self.library == "xgboost" else known.booster_
        X, y = self.X, self.y.astype(int)
        if objective.passed is not None:
            X, y = _stacked(X, objective.passed.X), np.append(y, y[objective.passed.rows])
        return booster.fit(X, y, **({} if known is None else {key: known}))

    def _scores(self, booster: Any, X: Any) -> Array:
        raw = {"output_margin": True} if self.library == "xgboost" else {"raw_score": True}
        return np.asarray(booster.predict(X, **raw), dtype=np.float64)

    def _looked_at(self, kind: str, booster: Any, prices: Prices | None, shift: float = 0.0) -> BoostingFit:
        scores = self._scores(booster, self.X) + shift
        rejected = scores <= 0 if self.sign > 0 else scores > 0
        loss = float(self.weights @ (np.logaddexp(0.0, scores) - self.y * scores)) / float(self.weights.sum())
        row: dict[str, Any] = {
            "kind": kind,
            "trees": _n_trees(booster, self.library),
            "distance": self._distance(scores, prices),
            "loss": loss,
            "accuracy": float(np.average((scores > 0) == (self.y > 0), weights=self.people)),
            "acceptance": float(np.average(~rejected, weights=self.people)),
        }
        partitions = () if self.costs is None else self.costs.partitions
        for groups in partitions:
            counts = np.bincount(groups.codes[rejected], minlength=len(groups))
            feature = f"{groups.names[0]}=" if len(partitions) > 1 else ""
            for label, count in zip(groups.labels, counts, strict=True):
                name = " & ".join(map(str, label)) if isinstance(label, tuple) else str(label)
                row[f"rejected ({feature}{name})"] = int(count)
        return BoostingFit(booster, scores, row, prices, shift)

    def _distance(self, scores: Array, prices: Prices | None) -> float:
        """D, if it is known what a score costs."""
        if self.costs is None or (prices is None and self.experience is not None):
            return np.nan
        return self.costs.distance(self.sign * scores, prices).value

    def _ordinary(self, booster: Any, shift: float = 0.0) -> Any:
        return (_plain_xgboost if self.library == "xgboost" else _plain_lightgbm)(booster, shift)

    def _whole(self, booster: Any) -> Any:
        """The booster behind the steps before it, deciding between the labels of the user."""
        model = booster if self.steps is None else Pipeline([*self.steps.steps, (self.step, booster)])
        return _Labelled(model, self.classes)

    def _warn_of_small_groups(self, scores: Array) -> None:
        assert self.costs is not None
        rejected = scores <= 0 if self.sign > 0 else scores > 0
        for groups in self.costs.partitions:
            counts = np.bincount(groups.codes[rejected], minlength=len(groups))
            small = [repr(groups.labels[k]) for k in np.flatnonzero(counts < self.costs.min_rejected)]
            if small:
                warnings.warn(
                    f"group {', '.join(small)} has fewer than min_rejected={self.costs.min_rejected:g} rejected people "
                    "under the plain booster, and is left out of the comparison.",
                    SmallGroupWarning,
                    stacklevel=5,
                )

    def store(self, model: Any, chosen: BoostingFit, rows: list[dict[str, Any]]) -> None:
        """Set the fitted attributes of a model."""
        booster = self._ordinary(chosen.booster, chosen.shift)
        model.estimator_ = booster if self.steps is None else Pipeline([*self.steps.steps, (self.step, booster)])
        model.classes_ = self.classes
        model.favorable_label_ = self.classes[1] if self.sign > 0 else self.classes[0]
        model.rounds_ = pd.DataFrame(rows).assign(chosen=[row is chosen.row for row in rows])
        model.converged_ = True
        take_feature_names(model, self.steps if self.steps is not None else chosen.booster)


class _Labelled:
    """A fitted booster of labels 0 and 1 that says the labels of the user."""

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self._recourse_model, self.classes_ = model, classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each person."""
        return np.asarray(self.classes_[np.asarray(self._recourse_model.predict(X)).astype(int)])


@dataclass(frozen=True)
class Passed:
    """Places that rejected people would pass, as the booster sees them; which of them it accepted before the stage.

    ``lacked`` is the score that these people lacked then, and ``tau`` the softness of decisions.
    """

    paths: Paths
    X: Any
    accepted: Mask
    lacked: Array
    tau: float

    @property
    def rows(self) -> Ints:
        """The person whose way each place is on, among the training people."""
        return self.paths.people[self.paths.owners]


class BoostingObjective:
    """Gradient of the loss with κ·(D + the drift of the groups' acceptance), and the curvature of the loss.

    Without an action set, costs are missing scores. With one, what a yes costs a person is followed from the exact cost
    C before the stage in two ways, and the mean of both is used: with the score that the person lacks, as if boundary
    and score moved together; and with the length of the rejected part of their way,
    c = C · (1 + share of the way that is rejected now, less that before the stage).
    The first has many people and knows little of boundaries, the second sees boundaries in few places. Places on the
    way are rows of their own, without a label: trees change the score of one place and not of the next, so that a
    boundary moves only where there are rows for it to move across. Whether a place is rejected is a step; its
    derivative is taken from a soft one, while D sees the step itself. With soft costs, trees overshoot: a boundary
    moves farther than soft decisions tell.

    The curvature of the distance is left out: it is that of moving a whole group at once, and with it in every leaf the
    trees hardly learn any more. A κ that is too large for such steps shows on held-out people.
    """

    def __init__(
        self,
        problem: BoostingProblem,
        costs: CostObjective | None = None,
        kappa: float = 0.0,
        prices: Prices | None = None,
        held: Array | None = None,
        passed: Passed | None = None,
    ) -> None:
        self.problem, self.costs, self.kappa = problem, costs, kappa
        self.prices, self.held, self.passed = prices, held, passed
        self.caution, self._last = 1.0, np.inf

    def __deepcopy__(self, memo: Any) -> BoostingObjective:
        return self  # a booster that copies its parameters still has to speak to this one

    def _cautious(self, value: float) -> float:
        """A factor of the pull: halved where the last tree went too far, and raised again tree by tree."""
        too_far = value > self._last * (1.0 + _ROUNDING)
        self.caution = 0.5 * self.caution if too_far else min(1.0, 1.1 * self.caution)
        self._last = value
        return self.caution

    def __call__(self, y_true: Any, scores: Any) -> tuple[Array, Array]:  # noqa: ARG002 - the libraries pass labels
        problem, n = self.problem, len(self.problem.y)
        scores = np.asarray(scores, dtype=np.float64)
        weights = problem.weights * (n / problem.weights.sum())
        chance = expit(scores)
        gradient = np.zeros(len(scores))
        gradient[:n] = weights * (chance[:n] - problem.y)
        if self.passed is not None:  # all places of a person count as one person
            rows = self.passed.rows
            weights = np.append(weights, weights[rows] * len(self.passed.paths.people) / len(rows))
        curvature = weights * chance * (1.0 - chance)
        if self.costs is not None:
            distance = self.distance(problem.sign * scores)
            assert self.held is not None
            drift = self.costs.drift(problem.sign * scores[:n], self.held)
            kappa = self.kappa * self._cautious(distance.value + HOLD * drift.value)
            pull = distance.gradient
            pull[:n] += HOLD * drift.gradient
            most = np.minimum(_STRONGEST * weights, _LONGEST * curvature)
            gradient += np.clip(problem.sign * kappa * n * pull, -most, most)
        return gradient, np.maximum(curvature, 1e-6)

    def distance(self, scores: Array) -> Term:
        """D, and its derivative by the scores of people and of the places that they pass."""
        assert self.costs is not None
        n = len(self.problem.y)
        if self.passed is None or self.prices is None:
            return self.costs.distance(scores[:n], self.prices)
        passed, paths, tau = self.passed, self.passed.paths, self.passed.tau
        rejected, missing = softened(scores[:n], tau)
        costs = self.prices.values * tau * missing
        changed = passed.accepted.astype(float) - (scores[n:] > 0.0)
        length = 1.0 + paths.weight * np.bincount(paths.owners, changed, minlength=len(paths.people))
        lacking = tau * missing[paths.people] / passed.lacked
        costs[paths.people] = paths.costs * np.maximum(_OWN * lacking + (1.0 - _OWN) * length, _SHORTEST)
        value, by_cost, by_rejected = self.costs.of_costs(costs, rejected, self.prices.counted)
        by_change = by_cost[paths.people] * paths.costs
        by_lacking = by_cost * self.prices.values  # the derivative by the missing score, of those without a way
        by_lacking[paths.people] = _OWN * by_change / passed.lacked
        soft = softened(scores[n:], tau)[0]
        by_score = -by_rejected * rejected * (1.0 - rejected) / tau - by_lacking * rejected
        by_place = -(1.0 - _OWN) * by_change[paths.owners] * paths.weight * soft * (1.0 - soft) / tau
        return Term(value, np.append(by_score, by_place))


def _stacked(X: Any, more: Any) -> Any:
    """Some rows below others, in the kind of table that the first are in."""
    if isinstance(X, pd.DataFrame):
        return pd.concat([X, more], ignore_index=True)
    return sparse.vstack([X, more], format="csr") if sparse.issparse(X) else np.vstack([X, more])


def loss_weights(booster: Any, upper: Mask, weights: Array) -> Array:
    """Weights of the losses: those of people, and what the booster's own parameters make of classes."""
    given = booster.get_params()
    weights = weights * compute_sample_weight(given.get("class_weight"), upper.astype(int))
    factor = given.get("scale_pos_weight")
    if given.get("is_unbalance"):
        factor = float((~upper).sum() / max(upper.sum(), 1))
    return weights * np.where(upper, 1.0 if factor is None else float(factor), 1.0)


def neutral(booster: Any, library: str, n_people: int) -> Any:
    """The booster without weights of its own, which are in the objective, and beginning at even odds.

    With few people it has one thread unless it was given a number of them: more bring nothing there, and on a machine
    with other work they wait for each other, up to two hundred times as long as one needs.
    """
    booster = clone(booster)
    known = booster.get_params()
    if known["n_jobs"] is None and n_people < _MANY_PEOPLE:
        booster.set_params(n_jobs=1)
    neutral = {"class_weight": None, "scale_pos_weight": None, "is_unbalance": False}
    booster.set_params(**{name: value for name, value in neutral.items() if name in known})
    if library == "xgboost":
        booster.set_params(base_score=0.5)
    return booster


def _n_trees(booster: Any, library: str) -> int:
    return int(booster.get_booster().num_boosted_rounds() if library == "xgboost" else booster.booster_.num_trees())


def default_booster() -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise ImportError(
            'EqualRecourseBoosting needs LightGBM or XGBoost; run pip install "equirecourse[boost]".'
        ) from None
    return LGBMClassifier(n_estimators=100, max_depth=4, verbose=-1)


def library_of(booster: Any) -> str:
    name = type(booster).__name__
    library = type(booster).__module__.split(".")[0]
    if (library, name) not in (("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")):
        raise ValueError(f"EqualRecourseBoosting trains an XGBClassifier or an LGBMClassifier, got {name}.")
    return str(library)


def _plain_xgboost(booster: Any, shift: float) -> Any:
    """The same trees under the library's own log-loss, so that probabilities are probabilities."""
    saved = json.loads(bytes(booster.get_booster().save_raw("json")).decode())
    learner = saved["learner"]
    learner["objective"] = {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}
    learner["learner_model_param"]["base_score"] = "5E-1"
    first = learner["gradient_booster"]["model"]["trees"][0]
    for node, left in enumerate(first["left_children"]):
        if left == -1:  # a leaf, whose value is kept where other nodes have their threshold
            first["split_conditions"][node] += shift
    plain = clone(booster).set_params(objective="binary:logistic", base_score=0.5)
    plain.load_model(bytearray(json.dumps(saved).encode()))
    return plain


def _plain_lightgbm(booster: Any, shift: float) -> Any:
    """The same trees under the library's own log-loss, so that probabilities are probabilities."""
    from lightgbm import Booster

    plain = copy.copy(booster)
    text = booster.booster_.model_to_string()
    plain._Booster = Booster(
        model_str=text.replace("\nfeature_names=", "\nobjective=binary sigmoid:1\nfeature_names=", 1)
    )
    trees = plain._Booster
    for leaf in range(trees.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"] if shift else 0):
        trees.set_leaf_output(0, leaf, trees.get_leaf_output(0, leaf) + shift)
    plain.set_params(objective="binary")
    plain._objective = "binary"
    return plain
