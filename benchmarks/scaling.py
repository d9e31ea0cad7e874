"""How the time of a fit grows: with people, features, groups and penalties; a table, and a figure of it.

python -m benchmarks scaling [--quick]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC, LinearSVC

from benchmarks._timing import seconds
from benchmarks.scale import crowd
from equirecourse import EqualRecourseLinear, EqualRecourseSVC
from equirecourse.exceptions import ConvergenceWarning

FIGURE = Path(__file__).with_name("scaling.png")
Times = dict[str, dict[float, float]]


def main(quick: bool = False) -> None:
    """Print the table; in its full size, draw the figure."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    panels: dict[str, tuple[str, Times]] = {
        "people, rbf kernel, 10 features": ("n", people_and_kernel(quick)),
        "people, linear, 10 features": ("n", people_and_line(quick)),
        "features, linear, 20,000 people": ("d", features(quick)),
        "groups, linear, 20,000 people": ("groups", groups(quick)),
        "penalties of a path, rbf, 1,000 people": ("penalties", penalties(quick)),
    }
    print("Seconds of one fit; equal recourse with all its rounds")
    for title, (axis, times) in panels.items():
        sizes = sorted({size for line in times.values() for size in line})
        print(f"\n{title:<42}" + "".join(f"{f'{axis}={size:,.0f}':>13}" for size in sizes))
        for name, line in times.items():
            print(f"  {name:<40}" + "".join(f"{line[size]:>12.3f}s" if size in line else " " * 13 for size in sizes))
    if not quick:
        draw(panels)
        print(f"\nthe figure is in benchmarks/{FIGURE.name}")


def _measure(sizes: tuple[int, ...], calls: Callable[[int], dict[str, Callable[[], Any]]]) -> Times:
    times: Times = {}
    for size in sizes:
        for name, took in seconds(calls(size), repeats=2).items():
            times.setdefault(name, {})[size] = took
    return times


def people_and_kernel(quick: bool) -> Times:
    """A kernel model against SVC, and an approximation past the sizes that a kernel matrix serves."""

    def calls(n: int) -> dict[str, Callable[[], Any]]:
        X, y, group = crowd(n, 10)
        ours, plain = EqualRecourseSVC(tol=1e-3), EqualRecourseSVC(tol=1e-3)
        few = EqualRecourseSVC(tol=1e-3, approximation="nystroem", random_state=0)
        return {
            "one SVC": lambda: SVC().fit(X, y),
            "ours, plain": lambda: plain.fit(X, y),
            "ours, equal recourse": lambda: ours.fit(X, y, sensitive_features=group),
            "ours, equal recourse, Nyström 100": lambda: few.fit(X, y, sensitive_features=group),
        }

    return _measure((300, 600) if quick else (500, 1000, 2000, 4000, 8000), calls)


def _linear(n: int, d: int) -> dict[str, Callable[[], Any]]:
    """A linear model with the hinge loss against LIBLINEAR."""
    X, y, group = crowd(n, d)
    learner = LinearSVC(loss="hinge", C=10.0 / n)
    return {
        "one LinearSVC": lambda: LinearSVC(loss="hinge", C=10.0 / n).fit(X, y),
        "ours, equal recourse": lambda: EqualRecourseLinear(learner, objective="paper").fit(
            X, y, sensitive_features=group
        ),
    }


def people_and_line(quick: bool) -> Times:
    """More people."""
    sizes = (1000, 2000) if quick else (1000, 10_000, 100_000, 1_000_000)
    return _measure(sizes, lambda n: _linear(n, 10))


def features(quick: bool) -> Times:
    """More features."""
    n = 2000 if quick else 20_000
    return _measure((5, 10) if quick else (5, 20, 80, 200), lambda d: _linear(n, d))


def groups(quick: bool) -> Times:
    """More groups: one more direction is taken out for each."""
    n = 2000 if quick else 20_000
    X, y, _ = crowd(n, 10)
    random = np.random.default_rng(0)

    def calls(k: int) -> dict[str, Callable[[], Any]]:
        group = random.integers(k, size=n)
        learner = LinearSVC(loss="hinge", C=10.0 / n)
        return {
            "ours, equal recourse": lambda: EqualRecourseLinear(learner, objective="paper").fit(
                X, y, sensitive_features=group
            )
        }

    return _measure((2, 3) if quick else (2, 4, 6, 8), calls)


def penalties(quick: bool) -> Times:
    """A path of penalties, each from the solution before, against as many fits by themselves."""
    X, y, group = crowd(300 if quick else 1000, 10)
    model = EqualRecourseSVC(tol=1e-3)

    def calls(k: int) -> dict[str, Callable[[], Any]]:
        path = np.geomspace(0.01, 10.0, k)
        return {
            "one fit after another": lambda: [
                EqualRecourseSVC(tol=1e-3, recourse_penalty=penalty).fit(X, y, sensitive_features=group)
                for penalty in path
            ],
            "fit_path": lambda: model.fit_path(X, y, sensitive_features=group, penalties=path),
        }

    return _measure((2, 3) if quick else (2, 5, 10, 20), calls)


def draw(panels: dict[str, tuple[str, Times]]) -> None:
    """One panel for each thing that grows, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    colours = {"one": "#888888", "ours, plain": "#7fb3d5", "ours, equal recourse": "#1f4e79", "fit_path": "#1f4e79"}
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for ax, (title, (axis, times)) in zip(axes.flat, panels.items(), strict=False):
        for name, line in times.items():
            key = next((start for start in sorted(colours, key=len, reverse=True) if name == start), "one")
            colour = "#c05a2e" if "Nyström" in name else colours[key]
            ax.plot(list(line), list(line.values()), "o-", color=colour, label=name, linewidth=2, markersize=5)
        ax.set_xscale("log")
        if len(times) > 1:
            ax.set_yscale("log")
            ax.set_ylim(top=ax.get_ylim()[1] * 4 ** (len(times) - 1))  # room for the legend
        else:
            ax.set_ylim(bottom=0.0, top=1.3 * ax.get_ylim()[1])
        sizes = sorted({size for line in times.values() for size in line})
        ax.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel({"n": "people", "d": "features"}.get(axis, axis))
        ax.set_ylabel("seconds")
        ax.grid(alpha=0.25, which="major")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9, loc="upper left")
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)
