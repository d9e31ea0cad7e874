"""Configuration of Sphinx: `make docs` writes docs/_build/html."""

from typer.main import get_command

import equirecourse
from equirecourse.cli._app import app

project = "equirecourse"
author = "The equirecourse developers"
copyright = "the equirecourse developers"
version = release = equirecourse.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/*.ipynb"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types, in words
numpydoc_show_class_members = False  # the class template lists the methods
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"equirecourse {version}"
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False

COLUMNS_OF_A_PAGE = 72  # of a code block between both sidebars; longer lines need scrolling


def describe_commands() -> str:
    """The help of each command, as it is printed, under a heading of its own."""
    sections = []
    for name, command in get_command(app).commands.items():
        context = command.make_context(
            f"equirecourse {name}", [], resilient_parsing=True, terminal_width=COLUMNS_OF_A_PAGE
        )
        sections.append(f"## equirecourse {name}\n\n```text\n{context.get_help()}\n```\n")
    return "\n".join(sections)


def complete_cli_page(sphinx, docname, source):
    if docname == "cli":
        sphinx.env.note_reread()  # in each build: the commands may have changed
        source[0] += "\n" + describe_commands()


def setup(sphinx):
    sphinx.connect("source-read", complete_cli_page)
