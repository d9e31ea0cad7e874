"""The report's charts: Vega-Lite drawn to SVG by vl-convert, once in light and once in dark.

An SVG needs no script and no network, prints as it is, and scales. Text from the data is text of the SVG, escaped by
Vega itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["Chart", "charts_of", "comparison_chart", "frontier_chart"]

Chart = dict[str, str]

_GROUPS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000"]
_BRIGHT = ["#4DA6E0", "#FF8A3D", "#3CC99E", "#E3A3C6", "#FFFFFF"]
_INK = {"light": ("#1b1f24", "#57606a", "#d0d7de"), "dark": ("#e6edf3", "#a3adb8", "#3d444d")}
_WIDTH, _LABEL = 430, 150
_MOST = 12  # groups in a chart


def _svg(chart: Any, title: str) -> Chart:
    """A chart in both colour schemes, named for those who do not see it."""
    import vl_convert

    drawn = {}
    for scheme, (ink, soft, grid) in _INK.items():
        spec = chart.configure(
            background="transparent", font="system-ui, sans-serif"
        ).configure_axis(
            labelColor=soft, titleColor=ink, gridColor=grid, domainColor=grid, tickColor=grid, labelFontSize=12,
            titleFontSize=12, titleFontWeight="normal", labelLimit=_LABEL,
        ).configure_legend(
            labelColor=ink, titleColor=ink, labelFontSize=12, orient="top", title=None, labelLimit=_LABEL,
        ).configure_view(stroke=None).to_dict()  # fmt: skip
        if scheme == "dark":
            spec = _brighter(spec)
        svg = vl_convert.vegalite_to_svg(spec)
        # The page labels the figure as a whole; its marks would be read out one by one.
        svg = re.sub(r' (aria-[a-z]+|role)="[^"]*"', "", svg)
        drawn[scheme] = svg.replace("<svg ", f'<svg aria-hidden="true" focusable="false" data-scheme="{scheme}" ', 1)
    return {"title": title, **drawn}


def _brighter(value: Any) -> Any:
    """The same specification with colours that stand out from black."""
    swap = dict(zip(["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"], _BRIGHT, strict=True))
    if isinstance(value, dict):
        return {key: _brighter(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_brighter(item) for item in value]
    return swap.get(value, value) if isinstance(value, str) else value


def _keys(names: Sequence[str]) -> list[str]:
    """What stands for names inside a chart: Vega looks values up in objects, which know "constructor" already."""
    return [str(place) for place in range(len(names))]


def _labels(names: Sequence[str]) -> str:
    """The expression that shows a key as its name. JSON is the literal of a text, and keeps it one.

    Vega also looks up the literals of an expression, so each has a space in front, which no object has as a key.
    """
    return f"substring({json.dumps([f' {name}' for name in names])}[toNumber(datum.value)], 1)"


def charts_of(section: dict[str, Any], unit: str) -> list[Chart]:
    """Distributions by group, means with their intervals, and the features that make the difference."""
    import altair as alt
    import pandas as pd

    # More than a dozen lines tell nobody anything; the table has all groups.
    largest = sorted(section["by_group"], key=lambda row: -row["rejected"])[:_MOST]
    rows = [row for row in section["by_group"] if row in largest]
    groups = [row["name"] for row in rows]
    keys, shown = _keys(groups), _labels(groups)
    colours = alt.Scale(domain=keys, range=(_GROUPS * (1 + len(groups) // len(_GROUPS)))[: len(groups)])
    curves = pd.DataFrame(
        [
            {"group": key, "cost": cost, "share": place / 100}
            for key, row in zip(keys, rows, strict=True)
            for place, cost in enumerate(row["curve"])
        ]
    )
    found: list[Chart] = []
    if len(curves):
        cut = float(curves["cost"].quantile(0.98)) or 1.0
        lines = (
            alt.Chart(curves)
            .mark_line(interpolate="linear", strokeWidth=2.5, clip=True)
            .encode(
                x=alt.X("cost:Q", title=f"cost of a yes ({unit})", scale=alt.Scale(domain=[0, cut], nice=False)),
                y=alt.Y("share:Q", title="share of the rejected within it", axis=alt.Axis(format="%")),
                color=alt.Color("group:N", scale=colours, legend=alt.Legend(labelExpr=shown)),
                order="share:Q",
            )
            .properties(width=_WIDTH, height=240)
        )
        found.append(_svg(lines, "Share of the rejected who are within a given cost of a yes, by group"))
    means = pd.DataFrame(
        [
            {"group": key, "mean": row["mean"], "low": row["mean_low"], "high": row["mean_high"]}
            for key, row in zip(keys, rows, strict=True)
            if row["mean"] is not None
        ]
    )
    if len(means):
        base = alt.Chart(means).encode(
            y=alt.Y("group:N", title=None, sort=keys, axis=alt.Axis(labelExpr=shown)),
            color=alt.Color("group:N", scale=colours, legend=None),
        )
        bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=f"mean cost ({unit})"), x2="high:Q")
        dots = base.mark_point(filled=True, size=110, opacity=1).encode(x="mean:Q")
        drawn = (bars + dots).properties(width=_WIDTH, height=max(44, 34 * len(means)))
        found.append(_svg(drawn, "Mean cost of a yes by group, with its interval"))
    parts = pd.DataFrame(section["contributions"][:8])
    if len(parts) and len(groups) > 1:
        features = parts["feature"].tolist()
        words = (section["furthest"] or "the further group", section["nearest"] or "the nearer one")
        sides = alt.Scale(domain=["more", "less"], range=["#D55E00", "#0072B2"])
        bars = (
            alt.Chart(
                parts.assign(
                    feature=_keys(features), side=["more" if value > 0 else "less" for value in parts["difference"]]
                )
            )
            .mark_bar(height=16)
            .encode(
                x=alt.X("difference:Q", title=f"adds to the mean cost of {words[0]} against {words[1]}"),
                y=alt.Y("feature:N", title=None, sort=_keys(features), axis=alt.Axis(labelExpr=_labels(features))),
                color=alt.Color("side:N", scale=sides, legend=None),
            )
            .properties(width=_WIDTH, height=max(44, 24 * len(parts)))
        )
        found.append(_svg(bars, "What each feature adds to the difference in mean cost"))
    return found


def comparison_chart(row: dict[str, Any], unit: str) -> Chart:
    """The gap before, after and under a placebo, with interval and noise floor."""
    import altair as alt
    import pandas as pd

    order = [side for side in ("before", "placebo", "after") if side in row]
    table = pd.DataFrame(
        [
            {
                "model": side,
                "gap": row[side]["gap"],
                "low": row[side]["interval"][0],
                "high": row[side]["interval"][1],
                "floor": row[side]["noise_floor"],
            }
            for side in order
        ]
    )
    base = alt.Chart(table).encode(y=alt.Y("model:N", title=None, sort=order))
    bars = base.mark_rule(strokeWidth=3, color="#0072B2").encode(
        x=alt.X("low:Q", title=f"gap ({unit}); the bar is the noise floor"), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=110, opacity=1, color="#0072B2").encode(x="gap:Q")
    floors = base.mark_tick(thickness=3, size=22, color="#E69F00").encode(x="floor:Q")
    drawn = (bars + dots + floors).properties(width=_WIDTH, height=40 * len(order))
    return _svg(drawn, "The gap before and after, with interval and noise floor")


def frontier_chart(rows: list[dict[str, Any]], unit: str) -> Chart:
    """Accuracy against the held-out gap, with the chosen point."""
    import altair as alt
    import pandas as pd

    table = pd.DataFrame(rows)
    table["what"] = ["chosen" if row["chosen"] else "plain model" if row["plain"] else "tried" for row in rows]
    kinds = alt.Scale(domain=["plain model", "tried", "chosen"], range=["#D55E00", "#7F7F7F", "#009E73"])
    base = alt.Chart(table).encode(
        x=alt.X("gap:Q", title=f"gap of people held out ({unit})"),
        y=alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(zero=False), axis=alt.Axis(format=".1%")),
    )
    line = base.mark_line(color="#7F7F7F", strokeDash=[3, 3], strokeWidth=1).encode(order="gap:Q")
    shapes = alt.Scale(domain=["plain model", "tried", "chosen"], range=["square", "circle", "diamond"])
    dots = base.mark_point(filled=True, size=120, opacity=1).encode(
        color=alt.Color("what:N", scale=kinds), shape=alt.Shape("what:N", scale=shapes)
    )
    return _svg((line + dots).properties(width=_WIDTH, height=240), "Accuracy against the gap, over all settings tried")
