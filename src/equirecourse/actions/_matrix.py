"""People as numbers and codes: what engines see of an action set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._validation import shown
from equirecourse.actions._costs import check_norm
from equirecourse.actions._feature import Feature
from equirecourse.actions._rules import Link
from equirecourse.actions._table import as_table, decode, encode
from equirecourse.actions._words import closest

__all__ = ["Matrix"]

Array = NDArray[np.float64]


class Matrix:
    """The part of an action set that turns people into a matrix and back, and prices moves in it.

    A base of :class:`ActionSet`, for the sake of short files only.
    """

    if TYPE_CHECKING:

        @property
        def features(self) -> tuple[Feature, ...]:
            """The features."""

        @property
        def links(self) -> tuple[Link, ...]:
            """Numbers that carry other numbers along."""

    def index(self, name: str) -> int:
        """Position of a feature.

        Parameters
        ----------
        name : str
            The feature; an unknown one is refused.

        Returns
        -------
        int
            Its place among the features, and its column in a matrix of :meth:`encode`.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature
        >>> ActionSet([Feature("income"), Feature("age", change="no")]).index("age")
        1
        """
        for j, feature in enumerate(self.features):
            if feature.name == name:
                return j
        raise ValueError(
            f"The action set has no feature {shown(name)}; {closest(name, [feature.name for feature in self.features])}"
        )

    @property
    def columns(self) -> list[str]:
        """The columns of a table that the features speak of; an array has them in this order."""
        return [name for feature in self.features for name in feature.table_columns]

    def table(self, X: Any) -> pd.DataFrame:
        """People as a pandas frame with the names of this action set.

        Parameters
        ----------
        X : table of shape (n_people, n_columns)
            A pandas frame is returned as it is. An array has its columns in the order of ``columns``; if it has more or
            fewer, they are called x0, x1, ...

        Returns
        -------
        DataFrame
            The people.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature
        >>> list(ActionSet([Feature("income"), Feature("age")]).table([[10, 30]]).columns)
        ['income', 'age']
        """
        return as_table(X, self.columns)

    def encode(self, X: Any) -> Array:
        """People as a matrix, a column per feature: numbers as they are, labels as places in their list.

        Parameters
        ----------
        X : table of shape (n_people, n_columns)
            People.

        Returns
        -------
        ndarray of shape (n_people, n_features)
            A label that is not listed is −1, a missing number NaN: neither is changed.

        Examples
        --------
        >>> import pandas as pd
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("income"), Feature("housing", kind="labels", labels=("rent", "own"))])
        >>> actions.encode(pd.DataFrame({"income": [10, 20], "housing": ["own", "tent"]})).tolist()
        [[10.0, 1.0], [20.0, -1.0]]
        """
        return encode(self.table(X), self.features)

    def decode(self, table: pd.DataFrame, start: Array, own: Array) -> pd.DataFrame:
        """The table after everybody moved from ``start`` to ``own``, and links carried the rest along.

        Parameters
        ----------
        table : DataFrame
            The people before.
        start, own : ndarray of shape (n_people, n_features)
            Where they are (:meth:`encode`), and where they move each feature, before links.

        Returns
        -------
        DataFrame
            The people after; what has not moved is left exactly as it was.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("housing", kind="labels", labels=("rent", "own"))])
        >>> table = pd.DataFrame({"housing": ["rent", "own"]})
        >>> actions.decode(table, actions.encode(table), np.array([[1.0], [1.0]]))["housing"].tolist()
        ['own', 'own']
        """
        return decode(table, self.features, start, self.carry(start, own))

    def carry(self, start: Array, own: Array) -> Array:
        """Where people end up: their own changes, and what links carry along.

        Parameters
        ----------
        start, own : ndarray of shape (n_people, n_features)
            Where people are, and where they move each feature themselves.

        Returns
        -------
        ndarray of shape (n_people, n_features)
            Where they are in the end.

        Examples
        --------
        >>> import numpy as np
        >>> from equirecourse.actions import ActionSet, Feature, Link
        >>> actions = ActionSet([Feature("years_in_job"), Feature("age")], links=[Link("years_in_job", "age", 1)])
        >>> actions.carry(np.array([[2.0, 30.0]]), np.array([[5.0, 30.0]])).tolist()
        [[5.0, 33.0]]
        """
        if not self.links:
            return own
        end = own.copy()
        for link in self.links:
            source, target = self.index(link.source), self.index(link.target)
            move = own[:, source] - start[:, source]
            end[:, target] += np.where(np.isnan(move), 0.0, link.rate * move)
        return end

    @property
    def linked_groups(self) -> tuple[tuple[int, ...], ...]:
        """Places of the features that links join, group by group; a feature without links is in none."""
        groups: list[set[int]] = []
        for link in self.links:
            joined = {self.index(link.source), self.index(link.target)}
            for group in [group for group in groups if group & joined]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
        return tuple(tuple(sorted(group)) for group in groups)

    def reach(self, start: Array) -> tuple[Array, Array]:
        """Lowest and highest value that a person may move each feature to, before links.

        Parameters
        ----------
        start : ndarray of shape (n_people, n_features)
            Where people are.

        Returns
        -------
        low, high : ndarray of shape (n_people, n_features)
            Numbers: by limits and direction, not yet by the step. Ordered labels: by direction. Other labels: all
            codes. low > high where a feature cannot move.

        Examples
        --------
        >>> import numpy as np
        >>> from equirecourse.actions import ActionSet, Feature
        >>> low, high = ActionSet([Feature("income", change="increase", high=50)]).reach(np.array([[10.0], [np.nan]]))
        >>> low.tolist(), high.tolist()
        ([[10.0], [inf]], [[50.0], [-inf]])
        """
        low = np.empty_like(start)
        high = np.empty_like(start)
        for j, feature in enumerate(self.features):
            now = start[:, j]
            last = len(feature.labels) - 1.0
            low[:, j], high[:, j] = (feature.low, feature.high) if feature.is_number else (0.0, last)
            if feature.change == "increase":
                low[:, j] = np.maximum(low[:, j], now)
            elif feature.change == "decrease":
                high[:, j] = np.minimum(high[:, j], now)
            # A missing number stays missing. Of a label that is not listed nobody knows what leaving it would cost.
            stuck = np.isnan(now) | ((now < 0) & (not feature.is_number)) | (not feature.mutable)
            low[stuck, j], high[stuck, j] = np.inf, -np.inf
        return low, high

    def costs(self, norm: str, start: Array, own: Array) -> Array:
        """Cost of each feature's own change.

        Parameters
        ----------
        norm : {"l1", "l2", "linf", "max_shift", "log_shift"}
            The price list; :func:`total_cost` adds up.
        start, own : ndarray of shape (n_people, n_features)
            Where people are, and where they move each feature themselves.

        Returns
        -------
        ndarray of shape (n_people, n_features)
            Costs; what links carry along costs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("income", cost=0.5), Feature("debts", cost=2)])
        >>> actions.costs("l1", np.array([[10.0, 5.0]]), np.array([[14.0, 4.0]])).tolist()
        [[2.0, 2.0]]
        """
        check_norm(norm)
        parts = [feature.move_cost(norm, start[:, j], own[:, j]) for j, feature in enumerate(self.features)]
        return np.stack(parts, axis=1) if parts else np.zeros((len(start), 0))
