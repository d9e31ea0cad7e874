"""What a person can change, and what it costs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._validation import shown
from equirecourse.actions import _changes, _file, _infer, _plain, _view
from equirecourse.actions._contradictions import check_rules
from equirecourse.actions._costs import cost_named
from equirecourse.actions._feature import Feature
from equirecourse.actions._rules import Link, Rule
from equirecourse.actions._table import as_table, decode, encode
from equirecourse.actions._words import closest

__all__ = ["ActionSet", "check_actions"]

Array = NDArray[np.float64]

_ULPS = 4  # that a sum of two numbers and its difference leave


@dataclass(frozen=True, repr=False)
class ActionSet:
    """What a person can change, and what it costs.

    A column of a table that no feature speaks of cannot be changed.

    Parameters
    ----------
    features : iterable of Feature
        The features.
    links : iterable of Link, optional
        Numbers that carry other numbers along. A linked number carries nothing along itself.
    rules : iterable of Rule, optional
        If-then rules that hold after the change. A person who breaks one now has to mend that with the change.
    notes : iterable of str, optional
        What was inferred from data, one sentence each.

    See Also
    --------
    ActionSet.from_frame : infer an action set from data.
    ActionSet.read : read one from a file.

    Examples
    --------
    >>> from equirecourse.actions import ActionSet, Feature
    >>> actions = ActionSet([Feature("income", low=0, change="increase"), Feature("age", change="no")])
    >>> actions["age"].mutable
    False
    >>> actions
    ActionSet: 2 features, 1 can change
    <BLANKLINE>
    feature  kind    change    values      step  cost
    income   number  increase  at least 0        1
    age      number  no        any number        1
    """

    features: tuple[Feature, ...]
    links: tuple[Link, ...] = ()
    rules: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for name, kind in (("features", Feature), ("links", Link), ("rules", Rule), ("notes", str)):
            given = getattr(self, name)
            if isinstance(given, kind) or not isinstance(given, Iterable):
                raise ValueError(f"{name} must be a list of {kind.__name__}, got {shown(given)}.")
            items = tuple(given)
            for item in items:
                if not isinstance(item, kind):
                    raise ValueError(f"{name} must be a list of {kind.__name__}, and holds {shown(item)}.")
            object.__setattr__(self, name, items)
        for names in ([feature.name for feature in self.features], self.columns):
            if len(set(names)) < len(names):
                twice = sorted({name for name in names if names.count(name) > 1})
                raise ValueError(f"The action set speaks of {twice[0]!r} more than once; keep one of them.")
        self._check_links()
        self._check_rules()

    def _check_links(self) -> None:
        targets = {link.target for link in self.links}
        seen = set()
        for link in self.links:
            for name in (link.source, link.target):
                if not self[name].is_number:
                    raise ValueError(f"A link joins two numbers, and {name!r} has labels.")
            if link.source in targets:
                raise ValueError(
                    f"{link.source!r} carries {link.target!r} along and is carried along itself; "
                    "link the first feature of the chain with each of the others instead."
                )
            if (link.source, link.target) in seen:
                raise ValueError(f"{link.source!r} is linked with {link.target!r} twice; add up the two rates.")
            seen.add((link.source, link.target))

    def _check_rules(self) -> None:
        for place, rule in enumerate(self.rules):
            if rule in self.rules[:place]:
                raise ValueError(f"The rule '{rule}' is listed twice; keep one of them.")
            for condition in (rule.when, rule.then):
                condition.check(self[condition.feature])
        check_rules({feature.name: feature for feature in self.features}, self.links, self.rules)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __contains__(self, feature: object) -> bool:
        return any(feature in (known, known.name) for known in self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def __repr__(self) -> str:
        return _view.as_text(self)

    def _repr_html_(self) -> str:
        return _view.as_html(self)

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

    # --- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def free(cls, X: Any, *, costs: str = "std") -> ActionSet:
        """Let every column change, without limits: distances, not advice.

        Parameters
        ----------
        X : table of shape (n_people, n_columns)
            People.
        costs : {"std", "unit"}, default="std"
            What a cost of 1 is: one standard deviation, or one unit. A change of a label costs 1.

        Returns
        -------
        ActionSet
            One feature per column.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet
        >>> actions = ActionSet.free([[1.0, 10.0], [2.0, 30.0], [3.0, 50.0]])
        >>> [feature.cost for feature in actions]
        [1.0, 0.05]
        """
        inferred = cls.from_frame(X, costs=costs, one_hot=None)
        return cls(
            tuple(
                Feature(feature.name, cost=feature.cost, percentiles=feature.percentiles)
                if feature.is_number
                else feature
                for feature in inferred
            )
        )

    @classmethod
    def from_frame(
        cls,
        X: Any,
        *,
        immutable: Iterable[str] = (),
        increase_only: Iterable[str] = (),
        decrease_only: Iterable[str] = (),
        bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
        steps: Mapping[str, float | None] | None = None,
        ordered: Mapping[str, Iterable[Hashable]] | None = None,
        one_hot: str | bool | Mapping[str, Iterable[str]] | None = "infer",
        costs: str | Mapping[str, float] = "std",
        links: Iterable[Link] = (),
        rules: Iterable[Rule] = (),
        max_percentiles: int = 101,
    ) -> ActionSet:
        r"""Infer an action set from people.

        Whole numbers stay whole, numbers stay within the smallest and the largest that anybody has, text is a label,
        0/1 columns that share a prefix and of which exactly one is 1 are a one-hot block. ``notes`` says what was made
        of each column. Nothing tells from data what a person cannot change: say it.

        Parameters
        ----------
        X : table of shape (n_people, n_columns)
            A pandas or polars frame, or an array, whose columns are then called x0, x1, ... Missing values are not
            counted, and never changed.
        immutable, increase_only, decrease_only : iterable of str
            Features that cannot change, can only rise, can only fall. Name a one-hot block, not its columns.
        bounds : mapping, optional
            Limits ``(low, high)`` of numbers, ``None`` for an open side, instead of the observed ones.
        steps : mapping, optional
            Steps of numbers, ``None`` for any number; by default 1 where all values are whole.
        ordered : mapping, optional
            For columns of labels that have an order, all their labels from the lowest to the highest. An ordered pandas
            categorical needs no mention.
        one_hot : "infer", mapping or None, default="infer"
            One-hot blocks: found by their prefix before ``_`` or ``=``, or given as block name → columns, or none.
        costs : {"std", "unit"} or mapping, default="std"
            "std": a cost of 1 is one standard deviation (for ordered labels, of their places; other labels: any change
            costs 1). "unit": a cost of 1 is one unit. A mapping gives the cost of one unit; others are as "std".
        links : iterable of Link, optional
            Numbers that carry other numbers along.
        rules : iterable of Rule, optional
            If-then rules that hold after the change.
        max_percentiles : int, default=101
            How many values per number are kept to say where people stand.

        Returns
        -------
        ActionSet
            One feature per column or one-hot block, in the order of the columns.

        Examples
        --------
        >>> import pandas as pd
        >>> from equirecourse.actions import ActionSet
        >>> people = pd.DataFrame({"age": [25, 40, 61], "income": [1.5, 2.5, 3.5], "housing": ["own", "rent", "rent"]})
        >>> actions = ActionSet.from_frame(people, immutable=["age"], increase_only=["income"])
        >>> print(*actions.notes, sep="\n")
        age: whole numbers from 25 to 61, as observed; cannot change
        income: numbers from 1.5 to 3.5, as observed; can only rise; a cost of 1 is one standard deviation (1)
        housing: 2 labels without an order; any change costs 1
        """
        features, notes = _infer.infer(
            X,
            directions={"immutable": immutable, "increase_only": increase_only, "decrease_only": decrease_only},
            bounds=bounds,
            steps=steps,
            ordered=ordered,
            one_hot=one_hot,
            costs=costs,
            max_percentiles=max_percentiles,
        )
        return cls(tuple(features), links=links, rules=rules, notes=tuple(notes))  # type: ignore[arg-type]

    def replace(self, name: str, **changes: Any) -> ActionSet:
        """Make an action set in which one feature is different.

        Parameters
        ----------
        name : str
            The feature.
        **changes
            Parameters of :class:`Feature` to set anew.

        Returns
        -------
        ActionSet
            A new action set, whose notes say what was set by hand; this one is left as it is.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature
        >>> ActionSet([Feature("income")]).replace("income", change="increase")["income"].change
        'increase'
        """
        place = self.index(name)
        keys = [key.name for key in dataclasses.fields(Feature)]
        for key in changes:
            if key not in keys:
                raise ValueError(f"A feature has no {key!r}; {closest(key, keys)}")
        features = list(self.features)
        features[place] = dataclasses.replace(features[place], **changes)
        # What a note says of data may be true no longer.
        by_hand = f"; set by hand: {', '.join(changes)}"
        notes = [note + by_hand if changes and note.startswith(f"{name}: ") else note for note in self.notes]
        return dataclasses.replace(self, features=tuple(features), notes=tuple(notes))

    def only(self, names: Iterable[str]) -> ActionSet:
        """Make an action set of some of the features, with the links and rules among them.

        Parameters
        ----------
        names : iterable of str
            The features to keep, such as the columns a model uses.

        Returns
        -------
        ActionSet
            In the order of the names.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature
        >>> len(ActionSet([Feature("income"), Feature("age")]).only(["age"]))
        1
        """
        kept = tuple(self[name] for name in names)
        known = {feature.name for feature in kept}
        return ActionSet(
            kept,
            links=tuple(link for link in self.links if {link.source, link.target} <= known),
            rules=tuple(rule for rule in self.rules if {rule.when.feature, rule.then.feature} <= known),
            notes=self.notes,
        )

    # --- keeping and showing it ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Put everything but the notes into plain Python values.

        Returns
        -------
        dict
            What :meth:`from_dict` reads; it can be written as JSON if labels are texts, numbers or booleans.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature
        >>> ActionSet([Feature("income", low=0), Feature("age", change="no")]).to_dict()
        {'features': {'income': {'low': 0}, 'age': {'change': 'no'}}}
        """
        return _plain.to_dict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ActionSet:
        """Make an action set of plain Python values.

        Parameters
        ----------
        content : mapping
            ``features``: name → parameters of :class:`Feature`, what is left out being the default; ``links``: a list
            of ``source``, ``target``, ``rate``; ``rules``: a list of ``if``, ``then``; ``percentiles``: name →
            ``values``, ``ranks``.

        Returns
        -------
        ActionSet
            The action set, without notes.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet
        >>> ActionSet.from_dict({"features": {"age": {"change": "no"}}})["age"].mutable
        False
        """
        features, links, rules = _plain.from_dict(content)
        return cls(tuple(features), links=tuple(links), rules=tuple(rules))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that can be read, edited and reviewed by hand.

        The file is written beside and then renamed, so that an old one is replaced whole or not at all.

        Parameters
        ----------
        path : path
            Ends in ``.toml``, ``.yaml`` or ``.yml``. Notes become comments in TOML; they are not read back.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("age", change="no")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     actions.write(Path(folder) / "actions.toml")
        ...     ActionSet.read(Path(folder) / "actions.toml") == actions
        True
        """
        _file.write(self, path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ActionSet:
        """Read an action set from a file.

        Parameters
        ----------
        path : path
            Ends in ``.toml``, ``.yaml`` or ``.yml``.

        Returns
        -------
        ActionSet
            Equal to the one that was written.

        Raises
        ------
        ValueError
            One sentence that names the file, the feature, the key, and what is allowed.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet
        >>> actions = ActionSet.read("actions.toml")  # doctest: +SKIP
        """
        content = _file.read(path)
        try:
            actions = cls.from_dict(content)
            _file.check_labels(actions)
            return actions
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row per feature.

        Returns
        -------
        DataFrame
            ``feature``, ``kind``, ``change``, ``low``, ``high``, ``step`` (missing for labels), ``labels``, ``allowed``
            (tuples; None for numbers, and where every label is allowed), ``cost``.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature
        >>> ActionSet([Feature("income", low=0)]).to_frame()[["feature", "low", "high", "cost"]]
          feature  low  high  cost
        0  income  0.0   inf   1.0
        """
        return _view.to_frame(self)

    # --- people as numbers and codes, which is what engines see --------------------------------------------------

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

        A carried number that is moved back to where it was is there, and not in the last digit next to it.

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
        for target in {self.index(link.target) for link in self.links}:
            ulp = np.spacing(np.maximum(np.abs(start[:, target]), np.abs(own[:, target])))
            back = np.abs(end[:, target] - start[:, target]) <= _ULPS * ulp
            end[back, target] = start[back, target]
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
        cost = cost_named(norm)
        parts = [cost.of_move(feature, start[:, j], own[:, j]) for j, feature in enumerate(self.features)]
        return np.stack(parts, axis=1) if parts else np.zeros((len(start), 0))

    # --- is a change allowed? --------------------------------------------------------------------------------------

    def own(self, X: Any, X_new: Any) -> Array:
        """What people changed themselves, without what links carried along.

        Parameters
        ----------
        X, X_new : table of shape (n_people, n_columns)
            The same people before and after.

        Returns
        -------
        ndarray of shape (n_people, n_features)
            Where they moved each feature, as :meth:`costs` and :meth:`respected` take it.

        Examples
        --------
        >>> from equirecourse.actions import ActionSet, Feature, Link
        >>> actions = ActionSet([Feature("years_in_job"), Feature("age")], links=[Link("years_in_job", "age", 1)])
        >>> actions.own([[2.0, 30.0]], [[5.0, 33.0]]).tolist()
        [[5.0, 30.0]]
        """
        return _changes.own_changes(self, self.encode(X), self.encode(X_new))

    def respected(self, start: Array, own: Array) -> NDArray[np.bool_]:
        """Whether each person's change keeps to the action set.

        Parameters
        ----------
        start, own : ndarray of shape (n_people, n_features)
            Where people are, and where they move each feature themselves.

        Returns
        -------
        ndarray of bool, shape (n_people,)
            True where :meth:`violations` has nothing to say.

        Examples
        --------
        >>> import numpy as np
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("income", change="increase", step=1)])
        >>> actions.respected(np.array([[10.0], [10.0], [10.0]]), np.array([[10.0], [12.0], [9.5]])).tolist()
        [True, True, False]
        """
        return _changes.respected(self, start, own)

    def violations(self, X: Any, X_new: Any) -> pd.DataFrame:
        """Everything in ``X_new`` that a person who starts at ``X`` cannot do.

        Parameters
        ----------
        X, X_new : table of shape (n_people, n_columns)
            The same people before and after.

        Returns
        -------
        DataFrame
            One row per violation: ``person`` (the row), ``problem`` (a sentence). Empty if all is in order.

        Examples
        --------
        >>> import pandas as pd
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("age", change="no")])
        >>> actions.violations(pd.DataFrame({"age": [30]}), pd.DataFrame({"age": [20]})).problem.item()
        'age cannot change, and went from 30 to 20'
        """
        return _changes.violations(self, self.table(X), self.table(X_new))

    def starts_outside(self, X: Any) -> pd.DataFrame:
        """Numbers outside their limits before anything has changed.

        That is allowed: such a person may stay there, or move inside. Features that cannot move are left out.

        Parameters
        ----------
        X : table of shape (n_people, n_columns)
            People.

        Returns
        -------
        DataFrame
            One row per person and feature: ``person`` (the row), ``feature``, ``value``, ``low``, ``high``.

        Examples
        --------
        >>> import pandas as pd
        >>> from equirecourse.actions import ActionSet, Feature
        >>> actions = ActionSet([Feature("income", low=0, high=10)])
        >>> actions.starts_outside(pd.DataFrame({"income": [3, 12]}))
           person feature  value  low  high
        0       1  income   12.0  0.0  10.0
        """
        return _changes.starts_outside(self, self.table(X))


def check_actions(actions: Any) -> ActionSet:
    """Check that what a caller calls an action set is one."""
    if not isinstance(actions, ActionSet):
        raise ValueError(
            f"actions must be an ActionSet, got {shown(actions)}; make one with ActionSet.from_frame, or read one with "
            "ActionSet.read."
        )
    return actions
