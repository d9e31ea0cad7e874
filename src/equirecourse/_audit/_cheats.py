"""Four ways in which a gap can shrink without anybody being better off, beside every before and after."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._audit._document import Cheats, Gaps, Selection
from equirecourse.metrics import transport_gap

__all__ = ["cheats", "cheats_in_words", "least_shrunk", "median_costs"]

Array = NDArray[np.float64]

_FEW = 0.01  # of the rejected: those whose costs are the farthest
_CARRIED = 0.5  # of a reduction, from which on a few people carry it
_APART = 0.1  # of the median, by which a gap of medians may grow while that of the means shrinks
_SHRUNK = 0.7  # of each group's own median cost, below which everybody's cost has shrunk
_ENOUGH = 10  # people with a cost, for a median to say something about a group
_LOST = 0.01  # more of the rejected than before are without recourse
_DRIFT = 0.03  # of the acceptance rate, of everybody or of a group, beyond which other people are rejected
_CHANCE = 2.0  # standard errors of a change of a group's acceptance, within which it may be chance
_ISLAND = 0.1  # more of the counterfactuals than before lie far from any accepted person


def cheats(before: Array, after: Array, groups: NDArray[Any], islands: tuple[float, float] | None) -> Cheats:
    """What a before and after looks like from the side of each cheat.

    Parameters
    ----------
    before, after : ndarray of shape (n_people,)
        Costs under each model, NaN for people who are accepted, or were not measured.
    groups : ndarray of shape (n_people,)
        Group of each person.
    islands : (float, float) or None
        Share of counterfactuals that are far from any accepted person, before and after, if known.

    Returns
    -------
    Cheats
        With ``warnings``: a sentence for each cheat that seems to be at work.
    """
    sides = {"before": before, "after": after}
    gaps = {side: _gaps(costs, groups) for side, costs in sides.items()}
    reduction = gaps["before"].relative_gap - gaps["after"].relative_gap
    capped = gaps["before"].capped_gap - gaps["after"].capped_gap
    turned_down, down_after = (~np.isnan(costs) for costs in sides.values())
    members = {str(label): groups == label for label in np.unique(groups)}  # groups are text here
    found = Cheats(
        before=gaps["before"],
        after=gaps["after"],
        carried_by_few=float(np.clip(1.0 - capped / reduction, 0.0, 1.0)) if reduction > 0 else float("nan"),
        selection=[
            Selection(
                name=label,
                acceptance_before=float(1.0 - turned_down[own].mean()),
                acceptance_after=float(1.0 - down_after[own].mean()),
                yes_to_no=int((~turned_down & down_after & own).sum()),
                no_to_yes=int((turned_down & ~down_after & own).sum()),
            )
            for label, own in members.items()
        ],
        islands_before=float("nan") if islands is None else islands[0],
        islands_after=float("nan") if islands is None else islands[1],
        least_shrunk=least_shrunk(*(median_costs(costs, groups) for costs in sides.values())),
        without_recourse_before=_share_without(before),
        without_recourse_after=_share_without(after),
        warnings=[],
    )
    drift = float(turned_down.mean() - down_after.mean())
    return replace(found, warnings=_warnings(found, reduction, drift))


def _share_without(costs: Array) -> float:
    rejected = ~np.isnan(costs)
    return float(np.isinf(costs[rejected]).mean()) if rejected.any() else 0.0


def _gaps(costs: Array, groups: NDArray[Any]) -> Gaps:
    """Mean cost, and gaps of means, of capped costs, of medians and of distributions, each relative to its centre."""
    rejected = ~np.isnan(costs)
    values, members = costs[rejected], groups[rejected]
    known = np.isfinite(values)
    if not known.any():
        return Gaps(**dict.fromkeys((one.name for one in fields(Gaps)), float("nan")))
    capped = np.minimum(values[known], np.quantile(values[known], 1.0 - _FEW))
    transport = transport_gap(values, sensitive_features=members)
    return Gaps(
        mean_cost=float(values[known].mean()),
        relative_gap=_relative_gap(values[known], members[known], np.mean),
        capped_gap=_relative_gap(capped, members[known], np.mean),
        median_gap=_relative_gap(values[known], members[known], np.median),
        transport_gap=transport.gap,
        transport_floor=transport.noise_floor,
    )


def median_costs(costs: Array, groups: NDArray[Any]) -> dict[Any, float]:
    """Median of the known costs of each group that has enough of them."""
    known = np.isfinite(costs)
    own = {label: costs[known & (groups == label)] for label in np.unique(groups)}
    return {label: float(np.median(values)) for label, values in own.items() if len(values) >= _ENOUGH}


def least_shrunk(before: dict[Any, float], after: dict[Any, float]) -> float:
    """The largest share of its own median cost that a group still has; NaN if no group can be compared.

    A group that is brought closer to another makes the mean smaller, and that is no cheat; all coming closer is one.
    """
    shares = [after[label] / before[label] for label in before.keys() & after.keys() if before[label] > 0.0]
    return max(shares, default=float("nan"))


def _relative_gap(values: Array, groups: NDArray[Any], centre: Any) -> float:
    """Difference between the groups' centres, divided by that of everybody."""
    centres, whole = [centre(values[groups == label]) for label in np.unique(groups)], float(centre(values))
    return float(max(centres) - min(centres)) / whole if len(centres) > 1 and whole > 0 else float("nan")


def _warnings(found: Cheats, reduction: float, drift: float) -> list[str]:
    sentences = []
    before, after = found.before, found.after
    if found.carried_by_few > _CARRIED:
        share = 100 * found.carried_by_few
        sentences.append(
            f"A few people carry it: {share:.0f} % of the reduction is gone once the farthest 1 % of costs are capped."
        )
    elif reduction > 0 and after.transport_gap > before.transport_gap:
        sentences.append(
            f"The means came closer and the distributions did not: the transport gap went from "
            f"{before.transport_gap:.3f} to {after.transport_gap:.3f}."
        )
    if reduction > 0 and after.median_gap > before.median_gap + _APART:
        sentences.append(
            f"The medians moved apart, from {before.median_gap:.3f} to {after.median_gap:.3f} of the median: "
            "costs come in few sizes, or the means were balanced by their tails."
        )
    if found.least_shrunk < _SHRUNK:
        sentences.append(
            f"Everybody's cost shrank: the median of each group is at most {found.least_shrunk:.2f} of what it was, "
            "which makes every gap smaller; look at the gap ÷ mean cost, and at how robust a yes is."
        )
    lost = found.without_recourse_after - found.without_recourse_before
    if lost > _LOST:
        sentences.append(f"People lost their recourse: {100 * lost:.1f} % more of the rejected are without any.")
    if found.islands_after - found.islands_before > _ISLAND:
        sentences.append(
            f"Islands: {100 * found.islands_after:.0f} % of the counterfactuals are far from any accepted person "
            f"({100 * found.islands_before:.0f} % before)."
        )
    if abs(drift) > _DRIFT:
        sentences.append(
            f"Other people are rejected: acceptance went {'up' if drift > 0 else 'down'} by {100 * abs(drift):.1f} "
            "points."
        )
    moved = [
        f"{row.name} from {100 * row.acceptance_before:.1f} to {100 * row.acceptance_after:.1f} %"
        for row in found.selection
        if abs(row.acceptance_after - row.acceptance_before) > _DRIFT
        and abs(row.no_to_yes - row.yes_to_no) > _CHANCE * np.sqrt(row.no_to_yes + row.yes_to_no)
    ]
    if moved:
        sentences.append(f"The groups' acceptance moved: {', '.join(moved)}.")
    return sentences


def cheats_in_words(found: dict[str, Any]) -> list[str]:
    """One line for each cheat, in plain words.

    Parameters
    ----------
    found : dict
        The section of a document: ``document["comparison"]["attributes"][0]["cheats"]``.

    Returns
    -------
    list of str
        Four lines.
    """
    before, after = found["before"], found["after"]
    moved = ", ".join(
        f"{row['name']} {100 * _value(row['acceptance_before']):.1f} → {100 * _value(row['acceptance_after']):.1f} % "
        f"({row['yes_to_no']} from yes to no)"
        for row in found["selection"]
    )
    islands = "not looked for"
    if not np.isnan(_value(found["islands_after"])):
        islands = f"{100 * found['islands_before']:.0f} → {100 * found['islands_after']:.0f} %"
    carried = _value(found["carried_by_few"])
    return [
        f"carried by a few? gap of medians {_value(before['median_gap']):.3f} → {_value(after['median_gap']):.3f}, "
        f"transport gap {_value(before['transport_gap']):.3f} → {_value(after['transport_gap']):.3f}"
        + ("" if np.isnan(carried) else f", {100 * carried:.0f} % of the reduction due to the farthest 1 %"),
        f"everybody cheaper? mean cost {_value(before['mean_cost']):.3g} → {_value(after['mean_cost']):.3g}",
        f"islands? counterfactuals far from any accepted person: {islands}",
        f"others rejected? acceptance {moved}",
    ]


def _value(number: Any) -> float:
    return float("nan") if number is None else float(number)
