"""Numbers, limits and labels in words, for sentences and tables."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

__all__ = ["closest", "in_words", "limits_in_words", "one_line", "plain", "quoted"]


def plain(value: Any) -> Any:
    """Make a Python value of a NumPy one, so that it prints, compares and is written to a file as people expect."""
    return value.item() if isinstance(value, np.generic) else value


def one_line(text: str) -> str:
    """Text on one line, without the control characters that a name may hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def in_words(value: float) -> str:
    """Show a number: whole ones without a point, others with ten digits at most."""
    if np.isfinite(value) and value == round(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.10g}"


def limits_in_words(low: float, high: float) -> str:
    """Say "from 4 to 72", "at least 4", "at most 72", or "any number"."""
    if np.isinf(low) and np.isinf(high):
        return "any number"
    if np.isinf(high):
        return f"at least {in_words(low)}"
    if np.isinf(low):
        return f"at most {in_words(high)}"
    return f"from {in_words(low)} to {in_words(high)}"


def quoted(labels: Iterable[Hashable], *, most: int = 60) -> str:
    """List labels up to about ``most`` characters, and say how many are left."""
    texts = [repr(label) for label in labels]
    keep, length = 0, 0
    while keep < len(texts) and (keep == 0 or length + len(texts[keep]) <= most):
        length += len(texts[keep]) + 2
        keep += 1
    left = len(texts) - keep
    return ", ".join(texts[:keep]) + (f" and {left} more" if left else "")


def closest(name: Any, names: Iterable[str]) -> str:
    """Say "did you mean ...?" if a name is close to a known one, else what is known."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1) if isinstance(name, str) else []
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there is {quoted(names, most=100)}." if names else "there is none."
