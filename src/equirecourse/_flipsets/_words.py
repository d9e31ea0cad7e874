"""Changes in plain words."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from equirecourse.actions import Feature

__all__ = ["sentence", "show"]


def show(value: Any) -> str:
    """A value as a person would write it: 1,200 rather than 1200.0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return str(value)
    number = float(value)
    return f"{int(number):,}" if number.is_integer() and abs(number) < 1e15 else f"{number:,.10g}"


def sentence(feature: Feature, before: Any, after: Any, *, carried: bool = False) -> str:
    """One change in words.

    Examples
    --------
    >>> from equirecourse.actions import Feature
    >>> from equirecourse._flipsets._words import sentence
    >>> sentence(Feature("credit_amount"), 5000, 4200)
    'Lower credit amount from 5,000 to 4,200'
    >>> sentence(Feature("housing", kind="labels", labels=("own", "rent")), "rent", "own")
    'Change housing from rent to own'
    """
    name = " ".join(feature.name.replace("_", " ").split())
    if feature.has_order:
        up = after > before if feature.is_number else feature.code(after) > feature.code(before)
        if carried:
            return (
                f"{name[:1].upper()}{name[1:]} {'rises' if up else 'falls'} along, from {show(before)} to {show(after)}"
            )
        verb = "Raise" if up else "Lower"
    else:
        verb = "Change"
    return f"{verb} {name} from {show(before)} to {show(after)}"
