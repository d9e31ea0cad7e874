"""Document in, page out."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from equirecourse.report._charts import charts_of, comparison_chart, frontier_chart

__all__ = ["render"]


def render(document: dict[str, Any]) -> str:
    """Draw the document of an audit as one HTML page.

    The page needs no network: styles, script, charts and data are in it. Every value that came with the data is
    escaped, and the page forbids itself to load anything.

    Parameters
    ----------
    document : dict
        Of ``RecourseAudit.document``, or read from its JSON.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equirecourse import audit
    >>> from equirecourse.datasets import make_tilted_groups
    >>> from equirecourse.report import render
    >>> toy = make_tilted_groups(random_state=0)
    >>> model = LogisticRegression().fit(toy.data, toy.target)
    >>> page = render(audit(model, toy.data, toy.target, sensitive_features=toy.sensitive_features).document)
    >>> page.startswith("<!doctype html>")
    True
    """
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("equirecourse.report", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(num=_number, percent=_percent, count=_count)
    environment.globals["value"] = _look_up(document)
    unit = document["settings"]["unit"]
    drawn = [charts_of(section, unit) for section in document["attributes"]]
    compared = [comparison_chart(row, unit) for row in document.get("comparison", {}).get("attributes", [])]
    frontier = frontier_chart(document["frontier"], unit) if "frontier" in document else None
    files = resources.files("equirecourse.report") / "templates"
    return environment.get_template("report.html").render(
        document=document,
        charts=[[_safe(chart) for chart in some] for some in drawn],
        compared=[_safe(chart) for chart in compared],
        frontier=None if frontier is None else _safe(frontier),
        data=Markup(_embedded(document)),
        style=Markup((files / "report.css").read_text(encoding="utf-8")),
        script=Markup((files / "report.js").read_text(encoding="utf-8")),
    )


def _safe(chart: dict[str, str]) -> dict[str, Any]:
    """A chart whose drawings go in as they are: they are SVG that Vega has made."""
    from markupsafe import Markup

    return {"title": chart["title"], "light": Markup(chart["light"]), "dark": Markup(chart["dark"])}


def _embedded(document: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _look_up(document: dict[str, Any]) -> Any:
    """Follow a path such as "attributes.0.gap"; the page says by which one it got each number."""

    def value(path: str) -> Any:
        found: Any = document
        for part in path.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found

    return value


def _number(value: Any) -> str:
    if value is None:
        return "undefined"
    return "infinite" if value == "inf" else f"{float(value):.3g}"


def _percent(value: Any) -> str:
    return "undefined" if value is None else f"{100 * float(value):.1f} %"


def _count(value: Any) -> str:
    return "undefined" if value is None else f"{int(value):,}"
