"""BoundaryDisplay: whom a model of two features accepts, and how far the others are; the paper's first figure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from equirecourse._validation import check_groups, check_number, favorable_index
from equirecourse.metrics._rejected import split_rejected
from equirecourse.plotting._style import PALETTE, as_name, as_text, check_axes
from equirecourse.recourse import boundary_costs

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["BoundaryDisplay", "plot_boundaries"]

Array = NDArray[np.float64]

# The colours of the paper's figure. The markers differ too, for those who do not tell red from brown.
_REGION, _ACCEPTED = "#FDCB8A", "#D7191C"
_GROUP_COLORS = ("#7A4419", "#6E6E6E", PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[4], PALETTE[6])
_GROUP_MARKERS = ("s", "^", "D", "v", "P", "<", ">")


class BoundaryDisplay:
    """Decision boundary of a model of two features, with the people on both sides.

    The favourable region is orange, the boundary a solid line, the scores ±1 (the margins of a support vector machine)
    dashed. Accepted people are red; rejected people have the colour and the marker of their group, brown for the
    nearest group and grey for the next. Crosses mark decisions that differ from the label.

    It is recommended to use :meth:`from_estimator`; the data it computes are attributes.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n_rows, n_columns)
        Grid of the two features.
    scores : ndarray of shape (n_rows, n_columns)
        Score of each point of the grid, positive in the favourable region.
    points : ndarray of shape (n_people, 2)
        People.
    rejected : ndarray of bool of shape (n_people,)
        Who is rejected.
    group : ndarray of int of shape (n_people,)
        Position in ``labels`` of each person's group.
    labels : sequence
        The groups.
    means : ndarray of float of shape (n_groups,)
        Mean cost of recourse of each group, NaN where it is undefined.
    wrong : ndarray of bool of shape (n_people,), optional
        Whose decision differs from the label.
    penalty : float, optional
        The model's ``recourse_penalty``, for the title.
    space : {"input", "transformed", "feature"}
        Space in which the means are measured.
    feature_names : sequence of str
        Names of the two features.

    Attributes
    ----------
    gap : float
        Largest difference between two of ``means``, NaN if one is undefined.
    accuracy : float
        Share of the decisions that agree with the labels, NaN without labels.
    ax_ : matplotlib Axes
        Axes of the last plot.
    figure_ : matplotlib Figure
        Figure of the last plot.
    artists_ : dict of str to Artist
        The markers drawn, by what the legend says of them.

    See Also
    --------
    plot_boundaries : A row of models.

    Examples
    --------
    >>> from equirecourse import EqualRecourseSVC
    >>> from equirecourse.datasets import make_tilted_groups
    >>> from equirecourse.plotting import BoundaryDisplay
    >>> toy = make_tilted_groups(random_state=0)
    >>> model = EqualRecourseSVC(kernel="linear", recourse_penalty=0)
    >>> model = model.fit(toy.data, toy.target, sensitive_features=toy.sensitive_features)
    >>> display = BoundaryDisplay.from_estimator(
    ...     model, toy.data, toy.target, sensitive_features=toy.sensitive_features
    ... )
    >>> print(display.ax_.get_title())
    λ = 0, accuracy 1.00
    gap 2.29
    """

    ax_: Axes
    figure_: Figure | SubFigure
    artists_: dict[str, Artist]

    def __init__(
        self,
        *,
        xx0: Array,
        xx1: Array,
        scores: Array,
        points: Array,
        rejected: NDArray[np.bool_],
        group: NDArray[np.intp],
        labels: Sequence[Hashable],
        means: Array,
        wrong: NDArray[np.bool_] | None = None,
        penalty: float | None = None,
        space: str = "input",
        feature_names: Sequence[str] = ("", ""),
    ) -> None:
        self.xx0, self.xx1, self.scores = xx0, xx1, scores
        self.points, self.rejected, self.group = points, rejected, group
        self.labels, self.means, self.wrong = tuple(labels), means, wrong
        self.penalty, self.space, self.feature_names = penalty, space, tuple(feature_names)

    @property
    def gap(self) -> float:
        """Largest difference between the groups' mean costs."""
        return float(np.max(self.means) - np.min(self.means))

    @property
    def accuracy(self) -> float:
        """Share of the decisions that agree with the labels."""
        return float("nan") if self.wrong is None else float(1 - self.wrong.mean())

    @property
    def title(self) -> str:
        """Penalty, gap and accuracy in two lines."""
        kind = "feature-space gap" if self.space == "feature" else "gap"
        gap = f"{kind} undefined" if np.isnan(self.gap) else f"{kind} {self.gap:.2f}"
        first = []
        if self.penalty is not None:
            first.append("λ = ∞" if np.isinf(self.penalty) else f"λ = {self.penalty:g}")
        if self.wrong is not None:
            first.append(f"accuracy {self.accuracy:.2f}")
        return "\n".join(filter(None, [", ".join(first), gap]))

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        grid_resolution: int = 200,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the scores on a grid and the distances of the people, and draw both.

        Parameters
        ----------
        model : fitted classifier or Pipeline of two features
            Linear, or a support vector machine; see :func:`equirecourse.recourse.boundary_costs`.
        X : array-like of shape (n_people, 2)
            People.
        y : array-like of shape (n_people,), optional
            Their labels, for the accuracy and the crosses.
        sensitive_features : array-like, Series, DataFrame or mapping of columns
            Group of each person.
        grid_resolution : int, default=200
            Number of grid points along each feature.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the markers (:meth:`matplotlib.axes.Axes.scatter`).

        Returns
        -------
        BoundaryDisplay
            The display, drawn.
        """
        display = cls._computed(model, X, y, sensitive_features=sensitive_features, grid_resolution=grid_resolution)
        return display.plot(ax, **kwargs)

    @classmethod
    def _computed(cls, model: Any, X: Any, y: Any, *, sensitive_features: Any, grid_resolution: int = 200) -> Self:
        size = int(check_number(grid_resolution, name="grid_resolution", low=2, integer=True))
        points = check_array(X, dtype=np.float64)
        if points.shape[1] != 2:
            raise ValueError(
                f"A boundary is drawn in the plane and X has {points.shape[1]} features; fit the model on two of them."
            )
        groups = check_groups(sensitive_features, len(points), at_least=2)
        found = boundary_costs(model, X)
        split = split_rejected(found.costs, sensitive_features=sensitive_features, rejected=found.rejected)

        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.12 * np.maximum(high - low, 1e-9)
        xx0, xx1 = np.meshgrid(*(np.linspace(a, b, size) for a, b in zip(low - margin, high + margin, strict=True)))
        grid: Any = np.column_stack([xx0.ravel(), xx1.ravel()])
        names: tuple[str, ...] = ("", "")
        if hasattr(X, "columns"):
            names = tuple(str(name) for name in X.columns)
            if hasattr(model, "feature_names_in_"):
                grid = type(X)(dict(zip(X.columns, grid.T, strict=True)))
        last = model[-1] if hasattr(model, "steps") else model
        yes = favorable_index(last.classes_, getattr(last, "favorable_label_", None))
        scores = np.asarray(model.decision_function(grid)).reshape(xx0.shape) * (1.0 if yes == 1 else -1.0)
        wrong = None
        if y is not None:
            y = np.asarray(y)
            if y.shape != (len(points),):
                raise ValueError(f"y has shape {y.shape} for {len(points)} people; pass one label per person.")
            wrong = found.rejected == (y == last.classes_[yes])
        return cls(
            xx0=xx0,
            xx1=xx1,
            scores=scores,
            points=points,
            rejected=found.rejected,
            group=groups.codes,
            labels=groups.labels,
            means=split.means,
            wrong=wrong,
            penalty=getattr(last, "recourse_penalty", None),
            space=found.space,
            feature_names=names,
        )

    @property
    def order(self) -> tuple[int, ...]:
        """Positions of the groups from the nearest to the farthest; those without a mean come last."""
        return tuple(int(k) for k in np.argsort(self.means, kind="stable"))

    def plot(
        self,
        ax: Axes | None = None,
        *,
        order: Sequence[int] | None = None,
        legend: bool = True,
        title: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        order : sequence of int, optional
            Positions of the groups in the order of the colours (brown, grey, ...); by default :attr:`order`. Give one
            order to several plots that are to be compared.
        legend : bool, default=True
            Whether to draw a legend.
        title : str, optional
            Instead of :attr:`title`.
        **kwargs
            For the markers (:meth:`matplotlib.axes.Axes.scatter`).

        Returns
        -------
        BoundaryDisplay
            The display itself.
        """
        order = self.order if order is None else tuple(order)
        if sorted(order) != list(range(len(self.labels))):
            raise ValueError(f"order must name each of the {len(self.labels)} groups once, by position, got {order!r}.")
        ax = check_axes(ax)
        self._draw_region(ax)
        people = [("accepted", ~self.rejected, _ACCEPTED, "o")]
        for rank, k in enumerate(order):
            color = _GROUP_COLORS[rank % len(_GROUP_COLORS)]
            marker = _GROUP_MARKERS[rank % len(_GROUP_MARKERS)]
            people.append((f"rejected, {as_name(self.labels[k])}", self.rejected & (self.group == k), color, marker))
        self.artists_ = {}
        for label, mask, color, marker in people:
            style = {"color": color, "marker": marker, "s": 26, "alpha": 0.65, "linewidths": 0, **kwargs}
            x, y = self.points[mask].T
            self.artists_[label] = ax.scatter(x, y, label=label, **style)
        if self.wrong is not None and self.wrong.any():
            label = "decision differs from the label"
            x, y = self.points[self.wrong].T
            self.artists_[label] = ax.scatter(x, y, marker="x", s=30, color="black", linewidths=1, label=label)
        ax.set_aspect("equal")
        ax.set_xlabel(as_text(self.feature_names[0]))
        ax.set_ylabel(as_text(self.feature_names[1]))
        ax.set_title(self.title if title is None else title)
        if legend:
            ax.legend(handles=list(self.artists_.values()), loc="best", framealpha=0.9)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_region(self, ax: Axes) -> None:
        low, high = float(self.scores.min()), float(self.scores.max())
        ax.set_facecolor("white")
        if high > 0:
            ax.contourf(self.xx0, self.xx1, self.scores, levels=[0.0, max(high, 1e-12)], colors=[_REGION])
        # A level outside the range of the scores has no line, and matplotlib would complain.
        for level, dashes, width in ((0.0, "solid", 2.2), (-1.0, "dashed", 1.3), (1.0, "dashed", 1.3)):
            if low < level < high:
                ax.contour(
                    self.xx0, self.xx1, self.scores, levels=[level], colors="black", linestyles=dashes, linewidths=width
                )


def plot_boundaries(
    models: Sequence[Any],
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    axes: Any = None,
    grid_resolution: int = 200,
    **kwargs: Any,
) -> list[BoundaryDisplay]:
    """Draw the boundaries of several models of the same two features in a row.

    With models from λ = 0 to a large λ this is the paper's first figure. The groups keep the colours they have by their
    distances in the first model.

    Parameters
    ----------
    models : sequence of fitted classifiers
        Models of two features.
    X : array-like of shape (n_people, 2)
        People.
    y : array-like of shape (n_people,), optional
        Their labels.
    sensitive_features : array-like, Series, DataFrame or mapping of columns
        Group of each person.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each model; a new figure by default.
    grid_resolution : int, default=200
        Number of grid points along each feature.
    **kwargs
        For the markers (:meth:`matplotlib.axes.Axes.scatter`).

    Returns
    -------
    list of BoundaryDisplay
        The displays, drawn; the first one's panel has the legend if ``axes`` were given, else the figure has.

    Examples
    --------
    >>> from equirecourse import EqualRecourseSVC
    >>> from equirecourse.datasets import make_tilted_groups
    >>> from equirecourse.plotting import plot_boundaries
    >>> toy = make_tilted_groups(random_state=0)
    >>> models = [
    ...     EqualRecourseSVC(kernel="linear", recourse_penalty=penalty).fit(
    ...         toy.data, toy.target, sensitive_features=toy.sensitive_features
    ...     )
    ...     for penalty in (0, 2, float("inf"))
    ... ]
    >>> displays = plot_boundaries(models, toy.data, toy.target, sensitive_features=toy.sensitive_features)
    >>> [round(display.gap, 2) for display in displays]
    [2.29, 0.47, 0.0]
    """
    import matplotlib.pyplot as plt

    models = list(models)
    if not models:
        raise ValueError("models is empty; pass at least one fitted model.")
    displays = [
        BoundaryDisplay._computed(model, X, y, sensitive_features=sensitive_features, grid_resolution=grid_resolution)
        for model in models
    ]
    figure = None
    if axes is None:
        tall = float(np.ptp(displays[0].xx1) / np.ptp(displays[0].xx0))
        size = (3.2 * len(models), float(np.clip(3.0 * tall, 1.5, 4.5)) + 1.4)
        figure, axes = plt.subplots(
            1, len(models), figsize=size, squeeze=False, sharex=True, sharey=True, layout="compressed"
        )
    panels = [check_axes(ax) for ax in np.ravel(axes)]
    if len(panels) != len(models):
        raise ValueError(f"axes has {len(panels)} panels for {len(models)} models; pass one for each model.")
    for display, ax in zip(displays, panels, strict=True):
        display.plot(ax, order=displays[0].order, legend=figure is None and ax is panels[0], **kwargs)
        ax.label_outer()
    if figure is not None:
        handles = {label: artist for display in displays for label, artist in display.artists_.items()}
        figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=len(handles), frameon=False)
    return displays
