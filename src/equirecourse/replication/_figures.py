"""The paper's figures: box-and-whisker plots before and after, and the toy sets with λ rising."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from equirecourse.datasets import make_ring_groups, make_tilted_groups
from equirecourse.equalizers import EqualRecourseSVC
from equirecourse.plotting import plot_boundaries
from equirecourse.plotting._style import MEAN_COLOR, MEDIAN_COLOR, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["box_figure", "png", "toy_figures"]

_SIDES = {"before": "#BBBBBB", "after": PALETTE[4]}


def box_figure(runs: pd.DataFrame, title: str, gap: str = "gap") -> Figure:
    """Recourse difference and accuracy, before and after, train and test: a column per data set, two rows per model.

    The mean is a yellow circle, the median an orange line. Outliers are not drawn, as in the paper, but counted; runs
    without a difference are counted, too.
    """
    import matplotlib.pyplot as plt

    datasets, models = list(dict.fromkeys(runs["dataset"])), list(dict.fromkeys(runs["model"]))
    size = (3.1 * len(datasets) + 0.6, 2.35 * 2 * len(models) + 0.7)
    figure, axes = plt.subplots(2 * len(models), len(datasets), figsize=size, layout="constrained", squeeze=False)
    for row, model in enumerate(models):
        for column, dataset in enumerate(datasets):
            some = runs[(runs["dataset"] == dataset) & (runs["model"] == model)]
            for offset, (name, label) in enumerate(((gap, "recourse difference"), ("accuracy", "accuracy"))):
                ax = axes[2 * row + offset, column]
                _boxes(ax, some, name, counted=offset == 0)
                if column == 0:
                    ax.set_ylabel(f"{model}\n{label}")
                if row == 0 and offset == 0:
                    ax.set_title(dataset)
    figure.suptitle(title)
    _legend(figure)
    return figure


def _boxes(ax: Axes, runs: pd.DataFrame, name: str, *, counted: bool) -> None:
    values, positions, colors = [], [], []
    for p, part in enumerate(("train", "test")):
        for s, side in enumerate(_SIDES):
            column = runs[f"{side}_{part}_{name}"].to_numpy(dtype=float)
            values.append(column[np.isfinite(column)])
            positions.append(3 * p + s)
            colors.append(_SIDES[side])
    ax.set_xticks([0.5, 3.5], ["train", "test"])
    ax.set_xlim(-0.7, 4.7)
    ax.margins(y=0.08)
    ax.tick_params(axis="x", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#EEEEEE")
    ax.set_axisbelow(True)
    drawn = [(v, p, c) for v, p, c in zip(values, positions, colors, strict=True) if len(v)]
    if not drawn:
        ax.text(0.5, 0.5, "no run has a\ndifference", transform=ax.transAxes, ha="center", va="center", color="#666666")
        ax.set_yticks([])
        return
    boxes = ax.boxplot(
        [v for v, _, _ in drawn],
        positions=[p for _, p, _ in drawn],
        widths=0.75,
        showfliers=False,
        manage_ticks=False,
        showmeans=True,
        patch_artist=True,
        medianprops={"color": MEDIAN_COLOR, "linewidth": 2},
        meanprops={"marker": "o", "markerfacecolor": MEAN_COLOR, "markeredgecolor": "#333333", "markersize": 6},
        boxprops={"linewidth": 0.8},
        whiskerprops={"linewidth": 0.8},
        capprops={"linewidth": 0.8},
    )
    for box, (_, _, color) in zip(boxes["boxes"], drawn, strict=True):
        box.set_facecolor(color)
    if counted:
        hidden = sum(_outliers(v) for v, _, _ in drawn)
        missing = int(runs["degenerate"].sum())
        words = [f"{hidden} outlier{'s' * (hidden != 1)} hidden"] if hidden else []
        words += [f"{missing} of {len(runs)} runs without"] if missing else []
        ax.set_xlabel(", ".join(words), fontsize=8, color="#555555")


def _outliers(values: Any) -> int:
    low, high = np.quantile(values, [0.25, 0.75])
    reach = 1.5 * (high - low)
    return int(((values < low - reach) | (values > high + reach)).sum())


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(facecolor=c, edgecolor="black", linewidth=0.8, label=s) for s, c in _SIDES.items()]
    handles.append(Line2D([], [], marker="o", linestyle="", markerfacecolor=MEAN_COLOR, markeredgecolor="#333333"))
    handles[-1].set_label("mean")
    handles.append(Line2D([], [], color=MEDIAN_COLOR, linewidth=2, label="median"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def toy_figures() -> dict[str, Figure]:
    """The paper's first figure: a straight and a curved boundary as λ rises."""
    figures: dict[str, Any] = {}
    tilted: Any = make_tilted_groups(random_state=0)
    ring: Any = make_ring_groups(random_state=0)
    for name, toy, penalties, kernel in (
        ("linear", tilted, (0.0, 1.0, 2.0, np.inf), {"kernel": "linear"}),
        ("rbf", ring, (0.0, 10.0, 30.0, np.inf), {"kernel": "rbf", "gamma": 0.1}),
    ):
        settings: dict[str, Any] = kernel
        model = EqualRecourseSVC(**settings)
        path = model.fit_path(toy.data, toy.target, sensitive_features=toy.sensitive_features, penalties=penalties)
        displays = plot_boundaries(path, toy.data, toy.target, sensitive_features=toy.sensitive_features)
        figures[f"toy_{name}"] = displays[0].figure_
    return figures


def png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG; the figure is closed."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    # Without the version of matplotlib and the date in it, the same figure has the same bytes.
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    plt.close(figure)
    return buffer.getvalue()
