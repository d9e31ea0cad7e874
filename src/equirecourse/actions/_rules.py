"""How features hang together: links, and if-then rules."""

from __future__ import annotations

import ast
import math
import numbers
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import shown
from equirecourse.actions._feature import Feature
from equirecourse.actions._words import plain

__all__ = ["Condition", "Link", "Rule"]

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">", "in")
MOVES = ("changes", "stays", "increases", "decreases")

# A name in quotes, as Python writes it, or a bare one that ends where the first operator begins.
_NAME = r"""(?:(?P<quoted>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(?P<bare>.+?))"""
_CONDITION = re.compile(rf"^\s*{_NAME}\s*(?P<op>==|!=|<=|>=|<|>|\bin\b(?<=\sin)(?=[\s\[\(\{{]))\s*(?P<value>.+?)\s*$")
_MOVE = re.compile(rf"^\s*{_NAME}\s+(?P<op>{'|'.join(MOVES)})\s*$")


@dataclass(frozen=True)
class Link:
    """A change of one number carries another number along: the target moves by ``rate`` for each unit of the source.

    The target moves as a consequence, so that part of its movement costs nothing and may happen to a feature that
    cannot be changed directly: twelve more months of employment make a person a year older.

    Parameters
    ----------
    source, target : str
        Names of two numbers.
    rate : float
        Units of the target per unit of the source.

    Examples
    --------
    >>> from equirecourse.actions import Link
    >>> print(Link("employment_months", "age", 1 / 12))
    when employment_months moves by 1, age moves by 0.08333333333
    """

    source: str
    target: str
    rate: float

    def __post_init__(self) -> None:
        names: tuple[Any, Any] = (self.source, self.target)
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"A link joins two features by name, got {shown(name)}.")
        if self.source == self.target:
            raise ValueError(f"A link carries one feature along with another, got {self.source!r} for both.")
        rate: Any = self.rate
        is_number = isinstance(rate, numbers.Real) and not isinstance(rate, bool | np.bool_)
        if not (is_number and np.isfinite(float(rate))):
            raise ValueError(
                f"The link from {self.source!r} to {self.target!r}: rate must be a finite number, got {shown(rate)}."
            )
        object.__setattr__(self, "rate", float(rate))

    def __str__(self) -> str:
        return f"when {self.source} moves by 1, {self.target} moves by {self.rate:.10g}"


@dataclass(frozen=True)
class Condition:
    """Something that is true or false of a person after the change.

    Parameters
    ----------
    feature : str
        The name of a feature.
    op : str
        A comparison (``==``, ``!=``, ``<=``, ``>=``, ``<``, ``>``, ``in``) or one of ``changes``, ``stays``,
        ``increases``, ``decreases``, which look at the value before the change too.
    value : optional
        What a comparison compares with; a tuple for ``in``.

    Examples
    --------
    >>> from equirecourse.actions import Condition
    >>> Condition.parse("housing in ['own', 'rent']")
    Condition(feature='housing', op='in', value=('own', 'rent'))
    >>> str(Condition.parse("age >= 18"))
    'age >= 18'
    """

    feature: str
    op: str
    value: Any = None

    def __post_init__(self) -> None:
        name, op, value = self._parts()
        if not isinstance(name, str):
            raise ValueError(f"A condition speaks of a feature by name, got {shown(name)}.")
        if op not in COMPARISONS + MOVES:
            raise ValueError(
                f"A condition on {name!r} must use one of {', '.join(COMPARISONS + MOVES)}, got {shown(op)}."
            )
        if op in MOVES:
            if value is not None:
                raise ValueError(f"'{name} {op}' takes no value, got {shown(value)}.")
        elif op == "in":
            if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset) or not value:
                raise ValueError(f"'{name} in' needs a list of values such as ['a', 'b'], got {shown(value)}.")
            # A set has no order of its own, and texts are to be the same in every run.
            value = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            object.__setattr__(self, "value", tuple(plain(one) for one in value))
        elif value is None or isinstance(value, list | tuple | set | frozenset | dict):
            raise ValueError(f"'{name} {op}' needs one value to compare with, got {shown(value)}.")
        else:
            object.__setattr__(self, "value", plain(value))

    def _parts(self) -> tuple[Any, Any, Any]:
        return self.feature, self.op, self.value

    @classmethod
    def parse(cls, text: str | Condition) -> Condition:
        """Read a condition.

        Parameters
        ----------
        text : str or Condition
            Such as ``"age >= 18"``, ``"housing == 'own'"`` or ``"job changes"``. A name that could be mistaken for
            something else stands in quotes: ``"'times in arrears' <= 2"``. A value that is no number and stands
            without quotes is a label.

        Returns
        -------
        Condition
            What the text says; a condition is returned as it is.

        Examples
        --------
        >>> from equirecourse.actions import Condition
        >>> Condition.parse("'times in arrears' <= 2").feature
        'times in arrears'
        """
        if isinstance(text, Condition):
            return text
        given: Any = text
        found = (_MOVE.match(given) or _CONDITION.match(given)) if isinstance(given, str) else None
        if not found:
            raise ValueError(
                f'A condition reads like "age >= 18", "housing == \'own\'" or "job changes", got {shown(text)}.'
            )
        name = found["bare"] if found["quoted"] is None else _literal(found["quoted"])
        return cls(name, found["op"], None if found["op"] in MOVES else _literal(found["value"]))

    def __str__(self) -> str:
        bare = self._spelled(self.feature)
        try:
            if Condition.parse(bare) == self:
                return bare
        except ValueError:
            pass
        return self._spelled(repr(self.feature))

    def _spelled(self, name: str) -> str:
        if self.op in MOVES:
            return f"{name} {self.op}"
        return f"{name} {self.op} {list(self.value) if self.op == 'in' else repr(self.value)}"

    def check(self, feature: Feature) -> None:
        """Refuse what cannot be asked of the feature.

        Parameters
        ----------
        feature : Feature
            The feature that the condition names.

        Raises
        ------
        ValueError
            If the feature has no order, or no such label, or is a number and the value is none.
        """
        if self.op in ("<=", ">=", "<", ">", "increases", "decreases") and not feature.has_order:
            raise ValueError(f"The condition '{self}' needs an order, and {feature.name!r} has none; use == or in.")
        for value in self._values():
            if feature.is_number:
                if not (isinstance(value, numbers.Real) and np.isfinite(float(value))):
                    raise ValueError(
                        f"The condition '{self}' compares a number with {shown(value)}; write a number instead."
                    )
            elif feature.code(value) < 0:
                raise ValueError(
                    f"The condition '{self}' names {value!r}, which is not one of the labels "
                    f"{shown(list(feature.labels))} of {feature.name!r}."
                )

    def _values(self) -> tuple[Any, ...]:
        if self.op in MOVES:
            return ()
        return self.value if self.op == "in" else (self.value,)

    def holds(self, feature: Feature, start: Any, end: Any) -> NDArray[np.bool_]:
        """Whether the condition is true.

        A missing number and a label that is not listed are neither above nor below anything, and equal to nothing.

        Parameters
        ----------
        feature : Feature
            The feature that the condition names.
        start, end : float or array
            Numbers, or codes of labels, before and after the change.

        Returns
        -------
        ndarray of bool
            Truth, element by element.

        Examples
        --------
        >>> from equirecourse.actions import Condition, Feature
        >>> Condition.parse("income increases").holds(Feature("income"), [10, 10], [12, 8]).tolist()
        [True, False]
        """
        start, end = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        if self.op in MOVES:
            moved = (start != end) & ~(np.isnan(start) & np.isnan(end))
            return np.asarray(
                {"changes": moved, "stays": ~moved, "increases": end > start, "decreases": end < start}[self.op]
            )
        values = np.array([v if feature.is_number else feature.code(v) for v in self._values()], dtype=np.float64)
        if self.op == "in":
            return np.isin(end, values)
        compare = {
            "==": np.equal, "!=": np.not_equal, "<=": np.less_equal,
            ">=": np.greater_equal, "<": np.less, ">": np.greater,
        }[self.op]  # fmt: skip
        true = np.asarray(compare(end, values[0]))
        if not feature.is_number and self.op in ("<", "<="):
            true = true & (end >= 0)  # −1 stands for a label outside the order, not for the lowest
        return true

    def cuts(self, feature: Feature, start: float) -> list[float]:  # noqa: ARG002
        """Numbers at which the condition may turn from true to false or back.

        Parameters
        ----------
        feature : Feature
            The number that the condition names.
        start : float
            Its value before the change.

        Returns
        -------
        list of float
            Each is the first number of its piece.

        Examples
        --------
        >>> from equirecourse.actions import Condition, Feature
        >>> Condition.parse("income >= 10").cuts(Feature("income"), 5.0)
        [10.0]
        """
        if self.op in MOVES:
            return [start, math.nextafter(start, math.inf)]
        cuts: list[float] = []
        for value in self._values():
            if self.op not in ("<=", ">"):
                cuts.append(float(value))
            if self.op not in ("<", ">="):
                cuts.append(math.nextafter(float(value), math.inf))
        return cuts


@dataclass(frozen=True)
class Rule:
    """If one condition holds after the change, so must another.

    Parameters
    ----------
    when, then : Condition or str
        Conditions, or their text.

    Examples
    --------
    >>> from equirecourse.actions import Rule
    >>> print(Rule("housing == 'own'", "residence_since >= 1"))
    if housing == 'own' then residence_since >= 1
    """

    when: Condition
    then: Condition

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", Condition.parse(self.when))
        object.__setattr__(self, "then", Condition.parse(self.then))

    def __str__(self) -> str:
        return f"if {self.when} then {self.then}"


def _literal(text: str) -> Any:
    """Read a value as Python writes it; a bare word is a label."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in a label such as '\d', which is none of our business
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
