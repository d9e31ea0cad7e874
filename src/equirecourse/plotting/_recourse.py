"""RecourseDisplay: how the costs of the rejected people are spread in each group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import check_costs, check_number
from equirecourse.actions import EUCLIDEAN_NORM, NORMS
from equirecourse.metrics._rejected import mean_cost, split_rejected
from equirecourse.plotting._style import MEAN_COLOR, MEDIAN_COLOR, as_name, as_text, check_axes, line_style
from equirecourse.recourse import boundary_costs

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.legend import Legend

__all__ = ["RecourseDisplay"]

Costs = NDArray[np.float64]
Kind = Literal["ecdf", "hist", "box"]

_KINDS = ("ecdf", "hist", "box")
_LONG_LEGEND = 6  # more groups than this, and the legend stands beside the axes


class RecourseDisplay:
    """Cost of recourse of the rejected people, by group.

    It is recommended to use :meth:`from_estimator` or :meth:`from_costs`; the data they compute are attributes.

    Parameters
    ----------
    costs : sequence of array-like
        Costs of each group's rejected people, infinite for people without recourse.
    labels : sequence
        The groups.
    people : sequence of int
        Number of people in each group, rejected or not.
    names : sequence of str
        Names of the sensitive features.
    cost_name : str
        What a cost is, for the axis.

    Attributes
    ----------
    costs : tuple of ndarray
        Sorted costs of each group's rejected people.
    labels : tuple
        The groups.
    people, rejected, without_recourse : ndarray of int
        How many people, how many of them rejected, how many of those without recourse, per group.
    means : ndarray of float
        Mean cost of each group over its rejected people with recourse; NaN where there are none.
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        Figure of the last plot.
    artists_ : tuple of Artist
        Curve or box of each group that has costs, in the order of ``labels``.
    mean_markers_ : tuple of Artist
        Marker of the mean of each group that has one, in the order of ``labels``.
    legend_ : Legend
        The legend.

    See Also
    --------
    equirecourse.RecourseFrame : The same groups in numbers, with their uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.plotting import RecourseDisplay
    >>> sex = np.repeat(["female", "male"], 100)
    >>> costs = np.tile([0.0, 0.5, 1.0, 1.5], 50) * np.where(sex == "female", 1.6, 1.0)
    >>> display = RecourseDisplay.from_costs(costs, sensitive_features={"sex": sex})
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['female: mean 1.6 (75 rejected)', 'male: mean 1 (75 rejected)']
    """

    ax_: Axes
    figure_: Figure | SubFigure
    artists_: tuple[Artist, ...]
    mean_markers_: tuple[Artist, ...]
    legend_: Legend

    def __init__(
        self,
        *,
        costs: Sequence[Any],
        labels: Sequence[Hashable],
        people: Sequence[int] | NDArray[np.intp],
        names: Sequence[str] = (),
        cost_name: str = "cost of recourse",
    ) -> None:
        if not len(costs) == len(labels) == len(people):
            raise ValueError(
                f"costs, labels and people must speak of the same groups, got {len(costs)}, {len(labels)} and "
                f"{len(people)} of them."
            )
        self.costs: tuple[Costs, ...] = tuple(np.sort(check_costs(group)) for group in costs)
        self.labels = tuple(labels)
        self.people = np.array(people, dtype=np.intp)
        self.names = tuple(names)
        self.cost_name = cost_name

    @property
    def rejected(self) -> NDArray[np.intp]:
        """Number of rejected people in each group."""
        return np.array([len(group) for group in self.costs], dtype=np.intp)

    @property
    def without_recourse(self) -> NDArray[np.intp]:
        """Number of rejected people in each group whom no action gets accepted."""
        return np.array([np.isinf(group).sum() for group in self.costs], dtype=np.intp)

    @property
    def means(self) -> Costs:
        """Mean cost of each group, over its rejected people with recourse."""
        return np.array([mean_cost(group) for group in self.costs])

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        sensitive_features: Any,
        norm: str = EUCLIDEAN_NORM,
        feature_costs: Any = None,
        favorable_label: Any = None,
        cost_name: str | None = None,
        ax: Axes | None = None,
        kind: Kind = "ecdf",
        max_cost: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Measure the distance of the rejected people to the model's boundary, and draw it by group.

        Parameters
        ----------
        model : fitted classifier or Pipeline
            Linear, or a support vector machine; see :func:`equirecourse.recourse.boundary_costs`.
        X : array-like of shape (n_people, n_features)
            People, best those the model has not seen.
        sensitive_features : array-like, Series, DataFrame or mapping of columns
            Group of each person. Several columns are crossed.
        norm : {"l1", "l2", "linf"}, default="l2"
            Norm of the cost; see :func:`equirecourse.recourse.boundary_costs`.
        feature_costs : array-like of shape (n_features,), optional
            Cost of a unit of change of each feature the model sees.
        favorable_label : label, optional
            The label that means yes.
        cost_name : str, optional
            What a cost is, for the axis; by default the norm, and the space if it is a kernel's.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"ecdf", "hist", "box"}
            See :meth:`plot`.
        max_cost : float, optional
            See :meth:`plot`.
        **kwargs
            For the curves or boxes.

        Returns
        -------
        RecourseDisplay
            The display, drawn.
        """
        found = boundary_costs(model, X, norm=norm, feature_costs=feature_costs, favorable_label=favorable_label)
        if cost_name is None:
            where = ", in the kernel's feature space" if found.space == "feature" else ""
            cost_name = f"cost of recourse ({NORMS[found.norm].description} to a yes{where})"
        return cls.from_costs(
            found.costs,
            rejected=found.rejected,
            sensitive_features=sensitive_features,
            cost_name=cost_name,
            ax=ax,
            kind=kind,
            max_cost=max_cost,
            **kwargs,
        )

    @classmethod
    def from_costs(
        cls,
        costs: Any,
        *,
        sensitive_features: Any,
        rejected: Any = None,
        cost_name: str = "cost of recourse",
        ax: Axes | None = None,
        kind: Kind = "ecdf",
        max_cost: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw given costs by group. The arguments are those of :class:`equirecourse.RecourseFrame`.

        Parameters
        ----------
        costs : array-like of shape (n_people,)
            Cost of recourse: infinite for people without recourse, not read for accepted people.
        sensitive_features : array-like, Series, DataFrame or mapping of columns
            Group of each person. Several columns are crossed.
        rejected : array-like of bool of shape (n_people,), optional
            Who was predicted unfavourable; people with a positive cost unless given.
        cost_name : str
            What a cost is, for the axis.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"ecdf", "hist", "box"}
            See :meth:`plot`.
        max_cost : float, optional
            See :meth:`plot`.
        **kwargs
            For the curves or boxes.

        Returns
        -------
        RecourseDisplay
            The display, drawn.
        """
        split = split_rejected(costs, sensitive_features=sensitive_features, rejected=rejected)
        display = cls(
            costs=split.costs,
            labels=split.groups.labels,
            people=split.people,
            names=split.groups.names,
            cost_name=cost_name,
        )
        return display.plot(ax, kind=kind, max_cost=max_cost, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, kind: Kind = "ecdf", max_cost: float | None = None, **kwargs: Any
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"ecdf", "hist", "box"}
            "ecdf": which share of the rejected is within each cost; a curve further right is a group further from a
            yes, and a curve that ends below 1 leaves people without recourse. "hist": overlaid histograms. "box": boxes
            from quartile to quartile with whiskers of at most 1.5 times that length, as in the paper: the mean a yellow
            circle, the median an orange line, people beyond the whiskers not drawn but counted.
        max_cost : float, optional
            Right end of the axis of "ecdf" and "hist"; what lies beyond is counted below it. By default the 99 %
            quantile if the largest cost is far off, else the largest cost. Give it to compare two plots.
        **kwargs
            For the curves (:meth:`matplotlib.axes.Axes.step`, :meth:`~matplotlib.axes.Axes.stairs`) or boxes
            (:meth:`~matplotlib.axes.Axes.barh`).

        Returns
        -------
        RecourseDisplay
            The display itself.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}.")
        if max_cost is not None and check_number(max_cost, name="max_cost", low=0) == 0:
            raise ValueError("max_cost must be positive, got 0; leave it out for the whole axis.")
        n_groups = len(self.labels)
        width = 6.4 if n_groups <= _LONG_LEGEND else 10.0
        ax = check_axes(ax, (7.0, 1.6 + 0.65 * n_groups) if kind == "box" else (width, 4.8))
        if kind == "box":
            drawn = self._draw_boxes(ax, kwargs)
        else:
            drawn = self._draw_curves(ax, kind, self._right_end() if max_cost is None else float(max_cost), kwargs)
        self.artists_, self.mean_markers_, self.legend_ = drawn
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _right_end(self) -> float:
        """Of the axis: the largest cost, or the 99 % quantile where a few costs would squeeze all others."""
        finite = np.concatenate([np.zeros(0), *(group[np.isfinite(group)] for group in self.costs)])
        if len(finite) == 0 or finite.max() == 0:
            return 1.0
        usual = float(np.quantile(finite, 0.99))
        return float(finite.max()) if finite.max() <= 1.25 * usual else usual

    def _legend_label(self, position: int) -> str:
        name, rejected = as_name(self.labels[position]), int(self.rejected[position])
        if rejected == 0:
            return f"{name}: 0 rejected of {self.people[position]:,}"
        mean, without = self.means[position], int(self.without_recourse[position])
        first = "nobody has recourse" if np.isnan(mean) else f"mean {mean:.3g}"
        more = f", {without:,} without recourse" if without else ""
        return f"{name}: {first} ({rejected:,} rejected{more})"

    def _draw_curves(self, ax: Axes, kind: str, right: float, kwargs: dict[str, Any]) -> Any:
        from matplotlib.lines import Line2D

        finite = [group[np.isfinite(group)] for group in self.costs]
        shown = np.concatenate([np.zeros(0), *finite])
        edges = np.histogram_bin_edges(shown[shown <= right], bins=_bin_count(len(shown)), range=(0.0, right))
        curves: list[Artist] = []
        markers: list[Artist] = []
        handles = []
        for k, costs in enumerate(finite):
            color, dashes = line_style(k)
            style = {"color": color, "linestyle": dashes, "linewidth": 2.0, **kwargs}
            handles.append(
                Line2D([], [], label=self._legend_label(k), **{"marker": "o" if len(costs) else "", **style})
            )
            if len(costs) == 0:
                continue
            n_rejected, mean = len(self.costs[k]), float(costs.mean())
            if kind == "ecdf":
                shares = np.arange(len(costs) + 1) / n_rejected
                curves += ax.step(np.concatenate([[0.0], costs]), shares, where="post", **style)
                height = float((costs <= mean).sum() / n_rejected)
            else:
                counts, _ = np.histogram(costs, bins=edges)
                if len(finite) <= 3:
                    ax.stairs(counts / n_rejected, edges, fill=True, color=style["color"], alpha=0.2)
                curves.append(ax.stairs(counts / n_rejected, edges, **style))
                inside = int(np.searchsorted(edges, mean, side="right")) - 1
                height = float(counts[min(inside, len(counts) - 1)] / n_rejected)
            if len(finite) <= 3:
                ax.vlines(mean, 0, height, color=style["color"], linestyle=(0, (1, 2)), linewidth=1.2)
            markers += ax.plot(
                mean, height, marker="o", markersize=9, color=style["color"], markeredgecolor="white", zorder=4
            )
        ax.set_xlim(0, right)
        ax.set_ylim(0, 1.0 if kind == "ecdf" else None)
        beyond = int((shown > right).sum())
        note = f"\n{beyond:,} of {len(shown):,} costs lie beyond {right:.3g}" if beyond else ""
        ax.set_xlabel(as_text(self.cost_name) + note)
        what = "within this cost" if kind == "ecdf" else "per bin of cost"
        ax.set_ylabel(f"share of the group's rejected {what}")
        ax.grid(alpha=0.25)
        place: dict[str, Any] = {"loc": "lower right" if kind == "ecdf" else "upper right"}
        if len(finite) > _LONG_LEGEND:
            place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        size = "medium" if len(finite) <= 3 else "small"
        legend = ax.legend(handles=handles, title=self._legend_title(), fontsize=size, **place)
        return tuple(curves), tuple(markers), legend

    def _legend_title(self) -> str | None:
        names = ", ".join(name for name in self.names if name != "sensitive_feature")
        return as_text(names) or None

    def _draw_boxes(self, ax: Axes, kwargs: dict[str, Any]) -> Any:
        from matplotlib.cbook import boxplot_stats
        from matplotlib.lines import Line2D

        boxes: list[Artist] = []
        markers: list[Artist] = []
        names = []
        for k, group in enumerate(self.costs):
            costs = group[np.isfinite(group)]
            name, rejected, without = as_name(self.labels[k]), len(group), int(self.without_recourse[k])
            notes = [f"{rejected:,} rejected" if rejected else f"0 rejected of {self.people[k]:,}"]
            notes += [f"{without:,} without recourse"] * bool(without)
            if len(costs):
                stats = boxplot_stats(costs)[0]
                low, high = stats["whislo"], stats["whishi"]
                notes += [f"{len(stats['fliers']):,} beyond the whiskers"] * bool(len(stats["fliers"]))
                color, _ = line_style(k)
                style = {"facecolor": (color, 0.25), "edgecolor": color, "linewidth": 1.5, "height": 0.5, **kwargs}
                boxes += ax.barh(k, stats["q3"] - stats["q1"], left=stats["q1"], **style)
                ax.hlines([k, k], [low, stats["q3"]], [stats["q1"], high], color=color, linewidth=1.5)
                ax.vlines([low, high], k - 0.12, k + 0.12, color=color, linewidth=1.5)
                ax.vlines(stats["med"], k - 0.25, k + 0.25, color=MEDIAN_COLOR, linewidth=3)
                markers += ax.plot(
                    stats["mean"], k, marker="o", markersize=9, color=MEAN_COLOR, markeredgecolor="black", zorder=4
                )
            names.append(f"{name}\n{', '.join(notes)}")
        ax.set_yticks(np.arange(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)  # the first group on top
        ax.set_xlim(left=0)
        ax.set_xlabel(as_text(self.cost_name))
        ax.grid(axis="x", alpha=0.25)
        ax.set_axisbelow(True)
        if title := self._legend_title():
            ax.set_ylabel(title)
        mean = Line2D([], [], label="mean", linestyle="", marker="o", markersize=9, color=MEAN_COLOR)
        mean.set_markeredgecolor("black")
        median = Line2D([], [], label="median", color=MEDIAN_COLOR, linewidth=3)
        return (
            tuple(boxes),
            tuple(markers),
            ax.legend(handles=[mean, median], loc="upper left", bbox_to_anchor=(1.01, 1.0)),
        )


def _bin_count(n_people: int) -> int:
    """Enough bins for a shape, few enough for a smooth one: the cube root of Rice's rule."""
    return int(np.clip(2 * n_people ** (1 / 3), 8, 40))
