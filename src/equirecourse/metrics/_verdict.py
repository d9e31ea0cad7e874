"""The verdict on a gap: three states, and people without a cost are part of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from equirecourse.metrics._rejected import RejectedCosts

__all__ = ["State", "Verdict", "judge"]


class State(StrEnum):
    """What can be said about a gap."""

    GAP = "gap"
    NO_DETECTABLE_GAP = "no detectable gap"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """Whether there is a gap between groups.

    Attributes
    ----------
    state : State
        The answer.
    sentence : str
        The answer in words, with the numbers of people whose cost is not in the means.
    in_shares : bool
        Whether the groups differ detectably in the share of the rejected without any recourse.
    """

    state: State
    sentence: str
    in_shares: bool = False


def judge(
    people: RejectedCosts, *, detectable: bool, interval_low: float, share_p_value: float, level: float, means: str
) -> Verdict:
    """Put the comparison of the means together with the people whom the means leave out.

    A mean is over people with a known finite cost. Whoever has no recourse makes a gap if their share differs between
    the groups. Whoever's recourse is unknown may cost anything from 0 upwards, or have none: no upper bound of a
    difference survives them, so the absence of a gap is never concluded. A gap is, if it does not depend on them.

    Parameters
    ----------
    people : RejectedCosts
        Counts and means by group.
    detectable : bool
        Whether the means of the known costs differ detectably.
    interval_low : float
        Lower end of the interval of that difference.
    share_p_value : float
        Of the difference in shares without recourse, whatever the unknown are; NaN if everybody has recourse.
    level : float
        Of the tests.
    means : str
        The comparison of the means in words.

    Returns
    -------
    Verdict
        State and sentence.
    """
    unknown = people.unknown_in_words()
    in_shares = bool(share_p_value <= level)
    if in_shares:
        parts = [f"gap: {_shares(people, share_p_value)}", f"among the others, {means}", unknown]
        return Verdict(State.GAP, _joined(parts), in_shares=True)
    if unknown:
        kept = _kept_by_the_unknown(people, interval_low) if detectable else 0.0
        if kept > 0:
            return Verdict(State.GAP, _joined([means, f"{unknown}, which leaves a gap of at least {kept:.3g}"]))
        return Verdict(
            State.CANNOT_TELL, _joined([f"cannot tell: {unknown}", f"among the others, {means}", *people.left_out()])
        )
    if people.undefined():
        return Verdict(State.CANNOT_TELL, means)
    return Verdict(State.GAP if detectable else State.NO_DETECTABLE_GAP, _joined([means, *people.left_out()]))


def _kept_by_the_unknown(people: RejectedCosts, interval_low: float) -> float:
    """What is left of the lower end of the interval if all the unknown of the further group cost nothing.

    Those of the nearer group may cost anything, and leave nothing.
    """
    far, near = int(np.argmax(people.means)), int(np.argmin(people.means))
    if people.unknown[near]:
        return 0.0
    unknown, known = people.unknown[far], people.n_averaged[far]
    return float(interval_low - people.means[far] * unknown / (known + unknown))


def _shares(people: RejectedCosts, p_value: float) -> str:
    """The two shares furthest apart for certain."""
    low, high = people.share_bounds()
    far, near = int(np.argmax(low)), int(np.argmin(high))
    at_least, at_most = ("at least ", "at most ") if people.unknown.any() else ("", "")
    labels = people.groups.labels
    return (
        f"{at_least}{100 * low[far]:.3g} % of the rejected people of group {labels[far]!r} have no recourse and "
        f"{at_most}{100 * high[near]:.3g} % of group {labels[near]!r} (p = {p_value:.2g})"
    )


def _joined(parts: list[str]) -> str:
    return "; ".join(part for part in parts if part)
