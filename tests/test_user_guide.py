"""The code in the documentation runs, and the numbers printed there are the numbers it prints."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
import typer
from tests._printed import assert_prints

import equirecourse
from equirecourse.cli._app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

# The page, and how many of its outputs are compared.
PAGES = {
    "README.md": 2,
    "docs/user_guide/actions.md": 12,
    "docs/user_guide/recourse.md": 7,
    "docs/user_guide/datasets.md": 0,
    "docs/user_guide/metrics.md": 5,
    "docs/user_guide/audit.md": 3,
    "docs/user_guide/equalize.md": 3,
    "docs/user_guide/equalizers.md": 11,
    "docs/user_guide/black_boxes.md": 4,
    "docs/user_guide/scale.md": 5,
    "docs/user_guide/engines.md": 2,
    "docs/user_guide/torch.md": 2,
}
NEEDS = {"docs/user_guide/torch.md": "torch"}


@pytest.fixture
def few_clients(monkeypatch):
    """`equalize` with every fifteenth of the people it is given."""
    whole = equirecourse.equalize

    def of_few(learner, X, y, *, sensitive_features, **options):
        return whole(learner, X[::15], y[::15], sensitive_features=sensitive_features[::15], **options)

    monkeypatch.setattr(equirecourse, "equalize", of_few)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_prints_what_it_says(page, request):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    if page == "README.md":  # what it says of equalize for everybody is printed by the demo: see test_examples.py
        request.getfixturevalue("few_clients")
    mpl.use("Agg")
    names: dict[str, object] = {}
    printed, compared, ran = "", 0, 0
    text = (ROOT / page).read_text(encoding="utf-8")
    for kind, body in re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(body, names)
            printed, ran = out.getvalue(), ran + 1
        elif printed:
            assert_prints(printed, body)
            printed, compared = "", compared + 1
    assert ran > 0
    assert compared == PAGES[page]


def test_every_page_of_the_guide_is_run():
    guide = {f"docs/user_guide/{path.name}" for path in (DOCS / "user_guide").glob("*.md")}
    assert guide <= set(PAGES)


def test_every_page_of_the_guide_is_under_one_heading():
    sections = [DOCS / f"{name}.md" for name in ("tutorials", "how_to", "reference", "explanation")]
    lists = "\n".join(page.read_text(encoding="utf-8").partition("{toctree}")[2] for page in sections)
    listed = re.findall(r"^user_guide/\w+$", lists, re.MULTILINE)
    assert sorted(listed) == sorted(f"user_guide/{path.stem}" for path in (DOCS / "user_guide").glob("*.md"))


def test_the_page_of_the_command_line_has_every_option():
    page = runpy.run_path(str(DOCS / "conf.py"))["describe_commands"]()
    sections = dict(re.findall(r"^## equirecourse (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    options = {
        name: {option for parameter in command.load().params for option in parameter.opts if option.startswith("--")}
        for name, command in typer.main.get_command(app).commands.items()
    }
    assert {name: options[name] - set(re.findall(r"--[a-z-]+", text)) for name, text in sections.items()} == {
        name: set() for name in options
    }


def test_pictures_of_the_pages_exist():
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        if "_build" in page.parts:
            continue
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name} shows {target}"
