"""What an action costs, whether it is allowed, and claims about the cheapest one, by trying everything.

Written from the user guide ("What people can change"), not from the engines. A witness is an action that is allowed,
accepted by the model and cheaper than somebody claims to be possible: one is enough to refute a proof.
"""

import contextlib
import traceback
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tests.recourse._fuzz_worlds import KINDS, WORLDS_PER_MODEL, thresholds

from equirecourse import find_recourse
from equirecourse.exceptions import NoRecourseWarning

COMBINATIONS = 20_000  # of values that are priced, for one person
TRIALS = 1_500  # of them that the model is asked about
STEPS = 10  # multiples of a step on either side of a person
PATIENCE = 5.0  # seconds for one person, hundreds of times what is needed
RELATIVE = 1e-6  # "no allowed action is cheaper by more than a millionth"
ABSOLUTE = 1e-9


@dataclass(frozen=True)
class Failure:
    """A claim that does not hold."""

    seed: int
    kind: str
    norm: str
    method: str
    what: str
    detail: str

    def __str__(self):
        return f"{self.what}: {self.method} | {self.detail}"


# --- the documented semantics ----------------------------------------------------------------------------------------


def moved(start, end):
    """Where a number or a code is another one."""
    return (start != end) & ~(np.isnan(start) & np.isnan(end))


def ends_of(actions, start, own):
    """Where people end up: each link moves its target by its rate for each unit that its source was moved."""
    end = own.copy()
    for link in actions.links:
        source, target = actions.index(link.source), actions.index(link.target)
        end[:, target] += link.rate * np.nan_to_num(own[:, source] - start[:, source])
    for j in {actions.index(link.target) for link in actions.links}:
        # A carried number that was moved back to where it was is there, whatever the last digit of the sum says.
        ulps = 4 * np.spacing(np.maximum(np.abs(start[:, j]), np.abs(own[:, j])))
        end[:, j] = np.where(np.abs(end[:, j] - start[:, j]) <= ulps, start[:, j], end[:, j])
    return end


@np.errstate(over="ignore")  # values to try may be as large as numbers are
def cost_of(feature, norm, start, end):
    """Cost of moving one feature, element by element."""
    if norm in ("l1", "l2", "linf"):
        distance = np.abs(end - start) if feature.has_order else 1.0
        return np.where(moved(start, end), feature.cost * distance, 0.0)
    values, ranks = np.array(feature.percentiles.values), np.array(feature.percentiles.ranks)
    if feature.has_order:
        before, after = np.interp(start, values, ranks), np.interp(end, values, ranks)
        price = np.abs(after - before) if norm == "max_shift" else np.abs(np.log((1 - after) / (1 - before)))
    else:
        share = ranks[np.maximum(end, 0).astype(int)]
        price = 1 - share if norm == "max_shift" else -np.log(share)
    return np.where(moved(start, end), price, 0.0)


@np.errstate(over="ignore")  # values to try may be as large as numbers are
def total_of(norm, parts):
    """Cost of a whole action; features in the last axis."""
    if norm == "l2":
        return np.sqrt((parts**2).sum(axis=-1))
    return parts.sum(axis=-1) if norm in ("l1", "log_shift") else parts.max(axis=-1)


def may_move_to(feature, start, own, slack=0.0):
    """Where a feature alone may go from where it is: staying is always allowed."""
    stays = ~moved(start, own)
    if feature.change == "no":
        return stays
    fine = {"any": own == own, "increase": own > start, "decrease": own < start}[feature.change] & (start == start)
    if feature.is_number:
        room = slack * np.maximum(1.0, np.abs(own))
        fine &= (own >= feature.low - room) & (own <= feature.high + room)
        if feature.step is not None:
            multiple = np.round(own / feature.step) * feature.step
            fine &= np.abs(own - multiple) <= 1e-9 * np.maximum(1.0, np.abs(own))
    else:
        allowed = feature.labels if feature.allowed is None else feature.allowed
        fine &= (start >= 0) & np.isin(own, [feature.labels.index(label) for label in allowed])
    return stays | fine


def holds(condition, feature, start, end):
    """Whether a condition of a rule is true after the change."""
    changes = {"changes": moved(start, end), "stays": ~moved(start, end)}
    changes |= {"increases": end > start, "decreases": end < start}
    if condition.op in changes:
        return changes[condition.op]
    values = condition.value if condition.op == "in" else (condition.value,)
    if not feature.is_number:
        values = [feature.labels.index(label) for label in values]
    known = end >= 0 if not feature.is_number else end == end
    compared = {
        "==": end == values[0], "!=": end != values[0], "in": np.isin(end, values), "<=": known & (end <= values[0]),
        "<": known & (end < values[0]), ">=": end >= values[0], ">": end > values[0],
    }  # fmt: skip
    return compared[condition.op]


def is_allowed(world, person, start, own, slack=0.0):
    """Whether changes of one person keep to the action set, and to what the person leaves alone."""
    actions = world.actions
    end = ends_of(actions, start, own)
    fine = np.ones(len(own), dtype=bool)
    for j in {actions.index(link.target) for link in actions.links}:
        # Nobody could tell so small a move from the rounding of what carries the number along.
        size = np.maximum(1.0, np.maximum(np.abs(start[:, j]), np.abs(end[:, j])))
        fine &= ~moved(start[:, j], own[:, j]) | ~(np.abs(own[:, j] - start[:, j]) <= 1e-9 * size)
    for j, feature in enumerate(actions):
        fine &= may_move_to(feature, start[:, j], own[:, j], slack)
        if feature.is_number:
            room = slack * np.maximum(1.0, np.abs(end[:, j]))
            inside = (end[:, j] >= feature.low - room) & (end[:, j] <= feature.high + room)
            fine &= inside | ~moved(start[:, j], end[:, j])
        if world.frozen is not None and world.frozen[person, j]:
            fine &= ~moved(start[:, j], own[:, j])
    for rule in actions.rules:
        when, then = (
            holds(
                part, actions[part.feature], start[:, actions.index(part.feature)], end[:, actions.index(part.feature)]
            )
            for part in (rule.when, rule.then)
        )
        fine &= ~when | then
    return fine


def tables_after(world, person, own):
    """One person after several changes, as rows of the model's table."""
    start = world.actions.encode(world.people.iloc[[person]])
    end = ends_of(world.actions, start, own)
    columns = {}
    for j, feature in enumerate(world.actions):
        if feature.is_number:
            columns[feature.name] = end[:, j]
        elif feature.kind == "one_hot":
            columns |= {name: (own[:, j] == place) * 1.0 for place, name in enumerate(feature.columns)}
        else:
            labels = np.array([*feature.labels, world.people[feature.name].iloc[person]], dtype=object)
            column = labels[own[:, j].astype(int)]  # −1, a label that is not listed, is the last: it stays
            dtype = world.people[feature.name].dtype
            columns[feature.name] = pd.Series(column, dtype=dtype) if dtype == "category" else column
    return pd.DataFrame(columns)


# --- trying everything -----------------------------------------------------------------------------------------------


def around(values):
    """Each number, the float32 it rounds to and the neighbours of that, and one float64 to either side of them all."""
    values = np.asarray(values, dtype=float)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    near = [single, np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))]
    near = np.concatenate([values, *(part.astype(float) for part in near)])
    return np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)])


def rule_values(actions, name):
    """Numbers that rules compare a feature with."""
    conditions = [part for rule in actions.rules for part in (rule.when, rule.then)]
    return [part.value for part in conditions if part.feature == name and isinstance(part.value, float)]


def values_to_try(world, j, start, below, rng):
    """Values of one feature among which a cheapest one may be, if it costs less than ``below``."""
    feature, now = world.actions.features[j], start[j]
    if not feature.is_number:
        return np.arange(len(feature.labels), dtype=float)
    if np.isnan(now):
        return np.zeros(0)
    if feature.step is not None:
        centre = np.clip(now, feature.low, feature.high)
        return (np.round(centre / feature.step) + np.arange(-STEPS, STEPS + 1)) * feature.step
    seed = world.seed // WORLDS_PER_MODEL
    cuts = [*thresholds(seed, feature.name), *rule_values(world.actions, feature.name)]
    tried = [around(cuts), around([now])]
    for link in world.actions.links:
        if link.source == feature.name:  # where what it carries along crosses something
            other = world.actions.index(link.target)
            target = world.actions.features[other]
            there = [*thresholds(seed, link.target), *rule_values(world.actions, link.target), target.low, target.high]
            back = now + (np.array([end for end in there if np.isfinite(end)]) - start[other]) / link.rate
            tried += [back, back * (1 - 1e-9) - 1e-12, back * (1 + 1e-9) + 1e-12]
    observed = world.setting.people[feature.name].to_numpy(dtype=float)
    known = np.array(feature.percentiles.values)
    tried += [rng.choice(observed, 3), rng.choice(known, 3), rng.uniform(known[0] - 1, known[-1] + 1, 4)]
    tried.append([end for end in (feature.low, feature.high) if np.isfinite(end)])
    if np.isfinite(below) and world.norm in ("l1", "l2", "linf"):
        tried.append(now + rng.uniform(-1, 1, 6) * below / feature.cost)
    values = np.concatenate(tried)
    return values[np.isfinite(values)]


def product(lists):
    """All combinations, one per row."""
    return np.stack([grid.ravel() for grid in np.meshgrid(*lists, indexing="ij")], axis=1)


def combinations(world, person, start, below, rng):
    """Allowed changes that cost less than ``below``, the product of values to try, thinned out if there are many."""
    lists = []
    for j, feature in enumerate(world.actions):
        values = np.unique(values_to_try(world, j, start, below, rng))
        here = np.full(len(values), start[j])
        values = values[may_move_to(feature, here, values) & moved(here, values)]
        if world.frozen is not None and world.frozen[person, j]:
            values = values[:0]
        cheap = cost_of(feature, world.norm, np.full(len(values), start[j]), values) < below
        lists.append(np.append(start[j], values[cheap]))
    while np.prod([len(values) for values in lists]) > COMBINATIONS:
        longest = max(range(len(lists)), key=lambda j: len(lists[j]))
        values = lists[longest]
        lists[longest] = np.append(values[0], rng.permutation(values[1:])[: len(values) * 2 // 3])
    own = product(lists)
    own = own[priced(world, start, own) < below]
    own = own[is_allowed(world, person, np.tile(start, (len(own), 1)), own)]
    return own if len(own) <= TRIALS else own[rng.permutation(len(own))[:TRIALS]]


def priced(world, start, own):
    """Costs of changes from one start."""
    parts = [cost_of(f, world.norm, np.full(len(own), start[j]), own[:, j]) for j, f in enumerate(world.actions)]
    return total_of(world.norm, np.stack(parts, axis=1))


def on_the_boundary(world, person, start, own, rng):
    """For a linear model: changes made so that a continuous number takes them just over the boundary."""
    free = [
        j
        for j, feature in enumerate(world.actions)
        if feature.is_number and feature.step is None and feature.change != "no" and not np.isnan(start[j])
    ]
    if KINDS[world.setting.kind].engine != "linear" or not free or len(own) == 0:
        return own[:0]
    own = own[rng.permutation(len(own))[:150]]
    made = []
    for j in free:
        pair = []
        for value in (start[j], start[j] + 1.0):
            own[:, j] = value
            table = tables_after(world, person, own)[world.setting.people.columns]
            pair.append(world.setting.model.decision_function(table.to_numpy() if world.setting.as_array else table))
        slope = pair[1] - pair[0]
        if np.abs(slope).max() < 1e-9:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            value = start[j] - pair[0] / slope
        for hair in (-1e-9, 0.0, 1e-9):
            over = own.copy()
            over[:, j] = value + hair * np.maximum(1.0, np.abs(value))
            made.append(over[np.isfinite(value)])
    own = np.concatenate([own[:0], *made])
    return own[is_allowed(world, person, np.tile(start, (len(own), 1)), own)]


# --- claims ----------------------------------------------------------------------------------------------------------


def ask(world, method="auto", only=None, time_limit=PATIENCE, **options):
    """What ``find_recourse`` says, of everybody or of one person alone."""
    rows = slice(None) if only is None else slice(only, only + 1)
    people, background = world.people.iloc[rows], world.setting.people
    if world.setting.as_array:
        people, background = people.to_numpy(), background.to_numpy()
    if world.frozen is not None and method != "surrogate":
        options["frozen"] = world.frozen[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRecourseWarning)
        return find_recourse(
            world.setting.model,
            people,
            actions=world.actions,
            norm=world.norm,
            favorable_label=world.favorable,
            background=background,
            method=method,
            time_limit=time_limit,
            **options,
        )


def second_answers(world):
    """The other way to ask that the world wants, as name → answer of everybody."""
    if world.extra == "milp":
        return {"milp": ask(world, "milp")}
    if world.extra == "search":
        return {"search": ask(world, "search")}
    if world.extra == "hurried":
        return {"hurried": ask(world, time_limit=1e-9)}
    if world.extra == "surrogate":
        with contextlib.suppress(ValueError):  # no number that can change
            return {"surrogate": ask(world, "surrogate")}
    return {}


def check(world):
    """Everything that is wrong with the answers to a world."""

    def failure(method, what, detail):
        return Failure(world.seed, world.setting.kind, world.norm, method, what, f"{detail} | {world!r}")

    failures, answers = [], {}
    try:
        answers["auto"] = ask(world)
        answers |= second_answers(world)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rsplit('/', 2)[-2]}/{place.name}"
        return [failure(world.extra, "crash", f"{type(error).__name__}: {error} ({where})")]
    for method, answer in answers.items():
        failures += [failure(method, what, detail) for what, detail in invalid(world, answer)]
        if method == "auto" and is_provable(world, answer) and not answer.exact.all():
            failures.append(failure(method, "gave up", f"{answer.status} {answer.costs} ≥ {answer.lower_bounds}"))
    failures += [failure(method, what, detail) for method, what, detail in refuted(world, answers)]
    if world.extra == "alone":
        failures += [failure("auto", "depends on others", detail) for detail in differs_alone(world, answers["auto"])]
    if world.extra == "named" and answers["auto"].method != "search":
        again = ask(world, answers["auto"].method)
        if not np.array_equal(again.costs, answers["auto"].costs):
            failures.append(failure("named", "inconsistent", f"{again.costs} by name, {answers['auto'].costs} by auto"))
    return failures


def is_provable(world, answer):
    """Whether the guide promises a proof: not for links, nor for percentile costs or rules before linear models."""
    if answer.method == "trees":
        return not world.actions.links
    distances = world.norm in ("l1", "l2", "linf")
    return answer.method == "linear" and distances and not world.actions.links and not world.actions.rules


def frame_of(world, answer):
    """Counterfactuals in the columns and types of the people."""
    after = answer.counterfactuals
    return after if hasattr(after, "columns") else pd.DataFrame(after, columns=world.people.columns)


def invalid(world, answer):
    """Answers that contradict themselves, the model or the action set."""
    people, actions = world.people, world.actions
    rejected = world.setting.predict(people) != world.favorable
    has = np.isfinite(answer.costs) & (answer.has_action | (answer.method != "surrogate"))
    status = answer.status
    wrong = {
        "accepted people": (answer.rejected != rejected) | (~rejected & (answer.costs != 0)),
        "infeasible without proof": (status == "infeasible") & ~(answer.exact & ~has),
        "exact but unknown": (status == "unknown") & answer.exact,
        "found nothing": (status == "found") & ~has,
        "lower bound above the cost": answer.lower_bounds > answer.costs * (1 + 1e-9),
        "lower bound below an exact cost": answer.exact & (answer.lower_bounds < answer.costs * (1 - 1e-6)),
    }
    for what, who in wrong.items():
        if who.any():
            yield "inconsistent", f"{what}: person {np.flatnonzero(who)}, {status}, {answer.costs}"
    after = frame_of(world, answer)
    if not after[~has].isna().all(axis=None):
        yield "inconsistent", "a counterfactual of somebody without an action"
    for person in np.flatnonzero(has & rejected):
        one = people.iloc[[person]]
        there = after.iloc[[person]].astype(
            {name: dtype for name, dtype in people.dtypes.items() if dtype.kind not in "iuf"}
        )
        shown = f"person {one.to_dict('records')[0]} → {there.to_dict('records')[0]}"
        if world.setting.predict(there)[0] != world.favorable:
            yield "not accepted", shown
        broken = actions.violations(one, there)["problem"].tolist()
        start, end = actions.encode(one), actions.encode(there)
        own = own_of(actions, start, end)
        if broken or not is_allowed(world, person, start, own, slack=1e-8)[0]:
            yield "not allowed", f"{shown} {broken}"
        # A number that was carried along is known to a rounding error only, and ranks may be steep.
        carried = [feature.name in {link.target for link in actions.links} for feature in actions]
        hair = 1e-15 * np.maximum(1.0, np.abs(end)) * carried
        costs = np.concatenate([priced(world, start[0], own + more) for more in (-hair, 0.0 * hair, hair)])
        least, most = costs.min() * (1 - RELATIVE) - ABSOLUTE, costs.max() * (1 + RELATIVE) + ABSOLUTE
        if not least <= answer.costs[person] <= most:
            yield "wrong cost", f"{shown} costs {costs[1]}, said {answer.costs[person]}"


def own_of(actions, start, end):
    """What somebody moved: where they are less what links carried along."""
    own = end.copy()
    for link in actions.links:
        source, target = actions.index(link.source), actions.index(link.target)
        own[:, target] -= link.rate * np.nan_to_num(end[:, source] - start[:, source])
    for target in {actions.index(link.target) for link in actions.links}:
        size = np.maximum(1.0, np.maximum(np.abs(start[:, target]), np.abs(end[:, target])))
        near = np.abs(own[:, target] - start[:, target]) <= 1e-9 * size
        own[near, target] = start[near, target]
    return own


def claimed(answer):
    """Below which costs a witness would refute each person's answer."""
    proven = np.where(answer.exact, answer.costs, answer.lower_bounds)
    proven = np.where(answer.status == "infeasible", np.inf, proven)
    return np.where(answer.rejected, proven * (1 - RELATIVE) - ABSOLUTE, -np.inf)


def refuted(world, answers):
    """Claims for which there is a witness: the answer to another way of asking, or one found by trying everything."""
    rng = np.random.default_rng(world.seed)
    claims = {method: claimed(answer) for method, answer in answers.items()}
    below = np.max(list(claims.values()), axis=0)
    start = world.actions.encode(world.people)
    lots = []
    for person in np.flatnonzero(below > 0):
        own = combinations(world, person, start[person], below[person], rng)
        beyond = on_the_boundary(world, person, start[person], own.copy(), rng)
        own = np.concatenate([own, beyond[priced(world, start[person], beyond) < below[person]]])
        fine = world.actions.respected(np.tile(start[person], (len(own), 1)), own)
        if not fine.all():
            one = own[~fine][0]
            yield "actions", "two readings of the action set", f"person {start[person].tolist()} → {one.tolist()}"
        lots.append((person, own[fine]))
    tables = [tables_after(world, person, own) for person, own in lots if len(own)]
    if not tables:
        return
    yes = world.setting.predict(pd.concat(tables, ignore_index=True)) == world.favorable
    for person, own in lots:
        accepted, yes = own[yes[: len(own)]], yes[len(own) :]
        costs = priced(world, start[person], accepted)
        # Rows of a long table may be rounded to the other side of the boundary: a witness is asked about alone.
        order = (k for k in np.argsort(costs, kind="stable") if costs[k] < below[person])
        witness = next((k for k in order if is_accepted(world, person, accepted[[k]])), None)
        if witness is None:
            continue
        best, cost = accepted[witness], costs[witness]
        for method, claim in claims.items():
            if cost < claim[person]:
                answer = answers[method]
                what = "false infeasible" if answer.status[person] == "infeasible" else "false lower bound"
                what = "beaten" if answer.exact[person] and np.isfinite(answer.costs[person]) else what
                yield (
                    method,
                    what,
                    (
                        f"{answer.method} said {answer.costs[person]:.9g} (≥ {answer.lower_bounds[person]:.9g}), "
                        f"{start[person].tolist()} → {best.tolist()} costs {cost:.9g}"
                    ),
                )


def is_accepted(world, person, own):
    """Whether the model says yes to one person, asked about alone, after a change."""
    return world.setting.predict(tables_after(world, person, own))[0] == world.favorable


def differs_alone(world, answer):
    """People with a proven answer who get another one when nobody else is asked about."""
    for person in range(len(world.people)):
        alone = ask(world, only=person)
        same = alone.status[0] == answer.status[person] and (
            alone.costs[0] == answer.costs[person] or np.isclose(alone.costs[0], answer.costs[person], rtol=RELATIVE)
        )
        if (answer.exact[person] or alone.exact[0]) and not same:
            said = f"{answer.status[person]} {answer.costs[person]} with others"
            yield f"person {person}: {alone.status[0]} {alone.costs[0]} alone, {said}"
