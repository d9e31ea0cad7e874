"""The document of an audit as one self-contained HTML page."""

from equirecourse.report._page import render

__all__ = ["render"]
