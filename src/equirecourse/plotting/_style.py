"""Colours, and names that come with the data written as plain text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MEAN_COLOR", "MEDIAN_COLOR", "PALETTE", "as_name", "as_text", "check_axes", "line_style"]

# Okabe and Ito's colours, told apart with any kind of colour vision. Their yellow is left out: too pale for a line on
# white, and the colour of the means in the paper's box plots.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ("-", "--", ":", "-.")
MEAN_COLOR = "#FFD92F"
MEDIAN_COLOR = "#E66100"

_LONGEST_NAME = 36


def line_style(position: int) -> tuple[str, str]:
    """Colour and dashes of the group at ``position``; the first 28 differ."""
    return PALETTE[position % len(PALETTE)], _DASHES[position // len(PALETTE) % len(_DASHES)]


def as_text(value: Any) -> str:
    """A value that came with the data, so that matplotlib shows it as it is: on one line, dollars and all."""
    text = " ".join(str(value).split())
    return text.replace("$", r"\$")


def as_name(label: Hashable) -> str:
    """The name of a group; parts of an intersection are joined, and the middle of a long name is left out."""
    parts: Sequence[Any] = label if isinstance(label, tuple) else (label,)
    name = ", ".join(str(part) for part in parts)
    if len(name) > _LONGEST_NAME:
        half = _LONGEST_NAME // 2
        name = f"{name[:half]}…{name[-half:]}"
    return as_text(name)


def check_axes(ax: Any, figsize: tuple[float, float] | None = None) -> Axes:
    """The axes to draw on: those given, or those of a new figure of the given size."""
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    if ax is None:
        return plt.subplots(figsize=figsize, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise ValueError(f"ax must be a matplotlib Axes or None, got {type(ax).__name__}; pass one of several axes.")
    return ax
