"""The replication as one HTML page that needs no network."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from equirecourse.replication._markdown import Table

__all__ = ["render_page", "versions"]

LEAD = (
    "Each cell of the paper's tables beside ours: under the protocol it prints, and under one that cannot fool itself "
    "(split before scaling, one yardstick before and after, parameters chosen on held-out people within one point of "
    "accuracy, runs without a difference counted, a placebo)."
)


def versions() -> str:
    """What this was computed with."""
    packages = ("equirecourse", "scikit-learn", "numpy", "scipy")
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)])


def render_page(
    title: str, command: str, tables: Sequence[Table], sentences: Sequence[str], figures: Mapping[str, bytes]
) -> str:
    """Tables, sentences and figures (title → PNG) as HTML. Everything is escaped, and nothing is loaded."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("equirecourse.replication", "templates"), autoescape=True)
    drawn = [{"title": name, "data": base64.b64encode(data).decode()} for name, data in figures.items()]
    return environment.get_template("replication.html").render(
        title=title,
        lead=LEAD,
        command=command,
        versions=versions(),
        tables=tables,
        sentences=sentences,
        figures=drawn,
    )
