"""FrontierDisplay: what each degree of equality costs in accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pandas as pd

from equirecourse.plotting._style import PALETTE, check_axes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.legend import Legend
    from matplotlib.text import Annotation

__all__ = ["FrontierDisplay"]

_NEEDED = ("gap", "gap_low", "gap_high", "noise_floor", "accuracy", "converged")
_PATH, _PLAIN, _PICKED = "0.45", PALETTE[0], PALETTE[1]


class _Frontier(Protocol):
    """What this module asks of an :class:`equirecourse.equalizers.Frontier`, which plotting does not import."""

    @property
    def table(self) -> pd.DataFrame: ...

    @property
    def space(self) -> str: ...

    def pick(self, accuracy_budget: float = ...) -> int: ...


class FrontierDisplay:
    r"""Held-out gap against held-out accuracy for each setting of an equalizer.

    It is recommended to use :meth:`from_frontier`; the data it reads are attributes.

    Parameters
    ----------
    table : DataFrame
        One row per setting, the first one the plain model, with the columns ``gap``, ``gap_low``, ``gap_high``,
        ``noise_floor``, ``accuracy`` and ``converged``.
    picked : int
        Row of the picked setting.
    accuracy_budget : float
        Largest loss of accuracy against the plain model, as a share.
    space : {"input", "transformed", "feature"}
        Space in which costs are measured.

    Attributes
    ----------
    table, picked, accuracy_budget, space
        As given; the table is a copy.
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        Figure of the last plot.
    points_ : Artist
        Markers of the settings with a defined gap, in the order of the table.
    labels_ : tuple of Annotation
        Labels of the plain and of the picked model.
    legend_ : Legend
        The legend.

    See Also
    --------
    equirecourse.recourse_frontier : Makes the frontier.

    Examples
    --------
    >>> import pandas as pd
    >>> from equirecourse.plotting import FrontierDisplay
    >>> table = pd.DataFrame(
    ...     {
    ...         "gap": [0.30, 0.12, 0.02],
    ...         "gap_low": [0.25, 0.06, 0.0],
    ...         "gap_high": [0.35, 0.18, 0.07],
    ...         "noise_floor": [0.03, 0.03, 0.03],
    ...         "accuracy": [0.800, 0.797, 0.795],
    ...         "converged": [1.0, 1.0, 1.0],
    ...     }
    ... )
    >>> display = FrontierDisplay(table=table, picked=2, accuracy_budget=0.01).plot()
    >>> [label.get_text() for label in display.labels_]
    ['plain model\ngap 0.3, accuracy 0.800', 'picked\ngap 0.02, accuracy 0.795']
    """

    ax_: Axes
    figure_: Figure | SubFigure
    points_: Artist
    labels_: tuple[Annotation, ...]
    legend_: Legend

    def __init__(self, *, table: pd.DataFrame, picked: int, accuracy_budget: float, space: str = "input") -> None:
        missing = [name for name in _NEEDED if name not in table.columns]
        if missing:
            raise ValueError(f"table has no column {missing[0]!r}; pass the table of recourse_frontier.")
        if not (0 <= picked < len(table)):
            raise ValueError(f"picked must be a row of the table, 0 to {len(table) - 1}, got {picked!r}.")
        self.table = table.reset_index(drop=True).copy()
        self.picked = int(picked)
        self.accuracy_budget = float(accuracy_budget)
        self.space = space

    @classmethod
    def from_frontier(
        cls, frontier: _Frontier, accuracy_budget: float = 0.01, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a frontier, with the setting that is picked within the accuracy budget.

        Parameters
        ----------
        frontier : Frontier
            From :func:`equirecourse.recourse_frontier`.
        accuracy_budget : float, default=0.01
            Largest loss of accuracy against the plain model: 0.01 is one point.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the markers of the settings (:meth:`matplotlib.axes.Axes.scatter`).

        Returns
        -------
        FrontierDisplay
            The display, drawn.
        """
        if not (hasattr(frontier, "table") and hasattr(frontier, "pick")):
            raise ValueError(f"frontier must be the result of recourse_frontier, got {type(frontier).__name__}.")
        display = cls(
            table=frontier.table,
            picked=frontier.pick(accuracy_budget),
            accuracy_budget=accuracy_budget,
            space=frontier.space,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Settings are joined in the order of the table, from the plain model to the strongest penalty. A hollow marker is
        a setting whose rounds did not converge in every fold. Settings with an undefined gap are counted in the legend.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the markers of the settings (:meth:`matplotlib.axes.Axes.scatter`).

        Returns
        -------
        FrontierDisplay
            The display itself.
        """
        defined = self.table[self.table["gap"].notna()]
        if len(defined) == 0:
            raise ValueError(
                f"None of the {len(self.table)} settings has a defined gap, so there is nothing to draw; a group has "
                "no rejected people."
            )
        ax = check_axes(ax, (7.5, 5.0))
        accuracy, gap = defined["accuracy"].to_numpy(dtype=float), defined["gap"].to_numpy(dtype=float)
        plain_accuracy = float(self.table["accuracy"].iloc[0])
        least = plain_accuracy - self.accuracy_budget

        span = max(accuracy.max(), plain_accuracy) - min(accuracy.min(), least)
        left, right = min(accuracy.min(), least) - 0.12 * span, max(accuracy.max(), plain_accuracy) + 0.12 * span
        if span == 0:
            left, right = left - 0.01, right + 0.01
        top = 1.12 * float(np.nanmax([*defined["gap_high"], *gap, *defined["noise_floor"]]))

        floor = self._draw_floor(ax, defined, left, right)
        beyond = ax.axvspan(left, least, facecolor="0.5", alpha=0.12, hatch="//", edgecolor="0.6", linewidth=0)
        beyond.set_label(f"beyond the budget of {_points(self.accuracy_budget)} of accuracy")
        bars = ax.vlines(
            accuracy,
            defined["gap_low"],
            defined["gap_high"],
            color=_PATH,
            linewidth=1.6,
            alpha=0.7,
            label="interval of the gap",
        )
        ax.plot(accuracy, gap, color=_PATH, linewidth=1, linestyle="--", alpha=0.6, zorder=2)
        faces = np.where(defined["converged"] >= 1, _PATH, "white").tolist()
        style = {"s": 55, "facecolors": faces, "edgecolors": _PATH, "linewidths": 1.8, "zorder": 3, **kwargs}
        self.points_ = ax.scatter(accuracy, gap, **style)
        # The plain and the picked model once more, on top of whatever lies near them.
        for row, color in ((self.picked, _PICKED), (0, _PLAIN)):
            if row in defined.index:
                x, y, converged = (float(self.table[name].iloc[row]) for name in ("accuracy", "gap", "converged"))
                ax.scatter(x, y, s=130, facecolors=color if converged >= 1 else "white", edgecolors=color, zorder=4)

        ax.set_xlim(left, right)
        ax.set_ylim(0, top if top > 0 else 1.0)
        ax.set_xlabel("held-out accuracy")
        where = ", in the kernel's feature space" if self.space == "feature" else ""
        ax.set_ylabel(f"held-out gap between the groups' mean costs{where}")
        self.labels_ = tuple(self._label(ax, row) for row in dict.fromkeys([0, self.picked]) if row in defined.index)
        self.legend_ = self._draw_legend(ax, [bars, floor, beyond], defined)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _draw_floor(ax: Axes, defined: pd.DataFrame, left: float, right: float) -> Artist:
        """Shade what chance alone would make: each setting has a floor of its own, joined by straight lines."""
        ordered = defined.sort_values("accuracy", kind="stable")
        x = np.concatenate([[left], ordered["accuracy"], [right]])
        floors = ordered["noise_floor"].to_numpy(dtype=float)
        y = np.concatenate([floors[:1], floors, floors[-1:]])
        ax.plot(x, y, color=PALETTE[2], linewidth=1.2)
        return ax.fill_between(
            x, 0, y, color=PALETTE[2], alpha=0.18, linewidth=0, label="noise floor: the gap that chance makes"
        )

    def _label(self, ax: Axes, row: int) -> Annotation:
        """Name a point, on the side of it where there is room."""
        point = self.table.iloc[row]
        x, y = float(point["accuracy"]), float(point["gap"])
        name = "plain model" if row == 0 else "picked"
        if row == 0 and self.picked == 0:
            name = "plain model (nothing within the budget is better)"
        (left, right), top = ax.get_xlim(), ax.get_ylim()[1]
        to_left = x > (left + right) / 2
        return ax.annotate(
            f"{name}\ngap {y:.2g}, accuracy {x:.3f}",
            (x, y),
            xytext=(-12 if to_left else 12, -8 if y > 0.85 * top else 10),
            textcoords="offset points",
            ha="right" if to_left else "left",
            va="top" if y > 0.85 * top else "bottom",
            color=_PLAIN if row == 0 else _PICKED,
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
            zorder=5,
        )

    def _draw_legend(self, ax: Axes, handles: list[Any], defined: pd.DataFrame) -> Legend:
        from matplotlib.lines import Line2D
        from matplotlib.transforms import ScaledTranslation

        if (defined["converged"] < 1).any():
            hollow = Line2D([], [], marker="o", markersize=8, linestyle="", color=_PATH, markerfacecolor="white")
            hollow.set_label("rounds did not converge in every fold")
            handles.append(hollow)
        undefined = len(self.table) - len(defined)
        if undefined:
            label = f"not drawn: {undefined} setting{'s' * (undefined > 1)} with an undefined gap"
            handles.append(Line2D([], [], linestyle="", label=label))
        # Below the axes, where no point, label or title can be; half an inch, whatever the size of the axes.
        figure = ax.get_figure(root=True)
        below = ax.transAxes + ScaledTranslation(0, -0.5, figure.dpi_scale_trans)  # type: ignore[union-attr]
        columns = 2 if ax.get_window_extent().width > 5.5 * figure.dpi else 1  # type: ignore[union-attr]
        return ax.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            bbox_transform=below,
            ncols=columns,
            frameon=False,
        )


def _points(share: float) -> str:
    return f"{100 * share:g} point{'s' * (share != 0.01)}"
