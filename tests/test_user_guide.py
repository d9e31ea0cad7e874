"""The code in the documentation runs, and the numbers printed there are the numbers it prints."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import pytest
from tests._printed import assert_prints

import equirecourse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

# The page, and how many of its outputs are compared.
PAGES = {
    "README.md": 2,
    "docs/index.md": 0,
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
    assert guide - {"docs/user_guide/index.md"} <= set(PAGES)


def test_pictures_of_the_pages_exist():
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        if "_build" in page.parts:
            continue
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name} shows {target}"
