"""What find_recourse returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["STATUSES", "Recourse"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STATUSES = ("accepted", "found", "infeasible", "unknown")


@dataclass(frozen=True)
class Recourse:
    """The cheapest accepted action of each person.

    Attributes
    ----------
    costs : ndarray of shape (n_people,)
        What the action costs. 0 for accepted people; infinite for those without an action.
    method : str
        The engine: "linear", "trees", "kernel", "search", one that was registered, or "surrogate".
    exact : ndarray of bool, shape (n_people,)
        Whether it is proven that no action costs less. Where it is not, the cost is an upper bound.
    lower_bounds : ndarray of shape (n_people,)
        No action costs less; equal to the cost where that is exact, 0 where nothing is known.
    norm : str
        How the cost is measured.
    notes : tuple of str
        What a reader should know: a fallback to search, people who start outside the limits.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse import find_recourse
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1])
    >>> found = find_recourse(model, [[0.5], [2.5]])
    >>> found.status.tolist()
    ['found', 'accepted']
    >>> found.counterfactuals.round(3)
    array([[1.5],
           [2.5]])
    >>> found
    Recourse(1 accepted, 1 found; method='linear', norm='l1', mean cost 1 of 1 exact)
    """

    costs: Array
    method: str
    exact: Mask
    lower_bounds: Array
    norm: str
    notes: tuple[str, ...] = ()
    # Places in STATUSES: for a million people the words would take longer than the costs.
    _codes: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8), repr=False)
    _people: Callable[[], Any] = field(default=lambda: None, repr=False, compare=False)

    @cached_property
    def status(self) -> NDArray[np.str_]:
        """How each person stands.

        "accepted": the model says yes already. "found": here is an action that it accepts. "infeasible": proven that
        there is none. "unknown": time ran out, or a search that proves nothing found nothing; ``costs`` holds the
        cost of the best action found, if any. Surrogates estimate a cost and look for no action: "unknown" as well.
        """
        return np.array(STATUSES)[self._codes]

    @property
    def rejected(self) -> Mask:
        """Who is predicted unfavourable."""
        return np.asarray(self._codes != STATUSES.index("accepted"))

    @property
    def has_action(self) -> Mask:
        """For whom there is a row in ``counterfactuals``: accepted people, who need none, and those with an action."""
        return ~self.rejected if self.method == "surrogate" else np.isfinite(self.costs)

    @cached_property
    def counterfactuals(self) -> Any:
        """People after their action: a frame for a frame, an array for an array.

        Accepted people are as they were; people without an action are a row of missing values. Each row with an action
        has been through the model, and was accepted.
        """
        return self._people()

    def to_frame(self) -> pd.DataFrame:
        """One row per person: status, cost, lower bound, and whether the cost is exact."""
        return pd.DataFrame(
            {"status": self.status, "cost": self.costs, "lower_bound": self.lower_bounds, "exact": self.exact}
        )

    def __getstate__(self) -> dict[str, Any]:
        # What makes the counterfactuals holds the model and all people; a copy has what was made.
        return vars(self) | {"_people": partial(_as_it_is, self.counterfactuals)}

    def __repr__(self) -> str:
        return f"Recourse({self._summary()})"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p><b>Recourse</b>: {escape(self._summary())}</p><ul>{notes}</ul>"

    def _summary(self) -> str:
        numbers = np.bincount(self._codes, minlength=len(STATUSES))
        counts = [f"{number} {name}" for name, number in zip(STATUSES, numbers, strict=True) if number]
        found = self.rejected & np.isfinite(self.costs)
        cost = f", mean cost {self.costs[found].mean():.4g} of {int(found.sum())}" if found.any() else ""
        kind = " exact" if found.any() and self.exact[found].all() else ""
        if found.any() and not kind:
            kind = f", {int(self.exact[found].sum())} of them exact" if self.method != "surrogate" else ", estimated"
        return f"{', '.join(counts) or 'nobody'}; method={self.method!r}, norm={self.norm!r}{cost}{kind}"


def _as_it_is(people: Any) -> Any:
    return people
