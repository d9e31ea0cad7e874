"""The report in a real browser: opened from a file, searched, read aloud, printed, attacked."""

import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.report.conftest import CLOSING, HOSTILE, INHERITED

from equirecourse.report import render
from equirecourse.report._page import _count, _number, _percent

FORMATS = {"num": _number, "percent": _percent, "count": _count}


def test_it_opens_from_a_file_without_errors_and_without_a_network(open_page, credit_report):
    page = open_page(credit_report)
    assert page.requests == [credit_report.as_uri()]
    assert page.problems == []
    assert credit_report.stat().st_size < 3_000_000
    assert page.locator("[data-test=verdict]").count() == 2
    assert page.locator("figure svg").first.is_visible()


def test_every_number_on_the_page_is_that_of_the_document(open_page, credit_report, credit_audit):
    page = open_page(credit_report)
    shown = page.eval_on_selector_all(
        "[data-json]", "all => all.map(one => [one.dataset.json, one.dataset.format, one.textContent])"
    )
    assert len(shown) > 100
    for path, form, text in shown:
        value = credit_audit.document
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        assert text == FORMATS[form](value), path
    # Outside of these, of notes and of sentences the verdict has made, the page has no numbers of its own.
    assert page.evaluate("JSON.parse(document.getElementById('data').textContent)") == credit_audit.document


def test_searching_and_choosing_with_the_mouse(open_page, credit_report, credit_audit):
    page = open_page(credit_report)
    rejected = credit_audit.document["counts"]["rejected"]
    assert page.locator("[data-test=found]").inner_text() == f"{rejected:,} of 10,000 people"
    page.locator("[data-test=search]").fill("female graduate")
    expected = credit_audit.people
    expected = expected[
        (expected.status != "accepted")
        & (expected.group_sex == "female")
        & (expected.group_graduate == "graduate school")
    ]
    assert page.locator("[data-test=found]").inner_text() == f"{len(expected):,} of 10,000 people"
    page.locator("[data-test=choose]").nth(3).click()
    name = expected.index[3]
    assert page.locator("#person-title").inner_text() == f"Person {name}"
    ways = page.locator("[data-test=ways] li ul li").all_inner_texts()
    place = credit_audit.people.index.get_loc(name)
    document = credit_audit.document["flipsets"]["by_person"][str(place)]
    assert ways == [change["sentence"] for way in document for change in way["changes"]]
    page.locator("[data-test=next]").click()
    assert "page 2" in page.locator("#page").inner_text()
    page.locator("[data-test=search]").fill("nobody is called that")
    assert page.locator("[data-test=found]").inner_text() == "0 of 10,000 people"
    page.locator("[data-test=search]").fill("")
    page.locator("[data-test=rejected-only]").uncheck()
    assert page.locator("[data-test=found]").inner_text() == "10,000 of 10,000 people"
    assert page.problems == []


def test_searching_and_choosing_with_the_keyboard(open_page, credit_report):
    page = open_page(credit_report)
    page.locator("[data-test=search]").focus()
    page.keyboard.type("male")
    page.keyboard.press("Tab")  # rejected only
    page.keyboard.press("Tab")  # the table's scroll region
    page.keyboard.press("Tab")  # the first person
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.textContent")
    assert first != second
    page.keyboard.press("Enter")
    assert page.locator("#person-title").inner_text() == f"Person {second}"
    assert page.evaluate("document.activeElement.id") == "person"


def test_a_search_among_ten_thousand_people_takes_less_than_a_fifth_of_a_second(open_page, credit_report):
    page = open_page(credit_report)
    took = page.evaluate(
        """() => ["f", "fe", "female", "female gra", ""].map((text) => {
            const box = document.getElementById("search");
            const start = performance.now();
            box.value = text;
            box.dispatchEvent(new Event("input"));
            document.body.getBoundingClientRect();  // the layout is part of the answer
            return performance.now() - start;
        })"""
    )
    assert max(took) < 200


def test_dark_and_light(open_page, credit_report):
    page = open_page(credit_report, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    dark = page.evaluate(background)
    assert page.locator("svg[data-scheme=dark]").first.is_visible()
    assert not page.locator("svg[data-scheme=light]").first.is_visible()
    page.locator("[data-test=theme]").click()
    assert page.evaluate(background) != dark
    assert page.locator("svg[data-scheme=light]").first.is_visible()


def test_print_is_light_and_has_no_controls(open_page, credit_report):
    page = open_page(credit_report, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#theme").is_visible()
    assert not page.locator("[data-test=search]").is_visible()
    assert page.locator("svg[data-scheme=light]").first.is_visible()
    assert page.locator("[data-test=verdict]").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf()[:4] == b"%PDF"


def test_hostile_names_stay_text(open_page, hostile_report):
    page = open_page(hostile_report)
    assert page.problems == []
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.title() == HOSTILE
    assert page.locator("h1").inner_text() == HOSTILE
    assert CLOSING in page.locator("[data-test=verdict] h3").inner_text()
    page.locator("[data-test=choose]").first.click()
    assert HOSTILE.replace("_", " ") in page.locator("[data-test=person]").inner_text()
    page.locator("[data-test=search]").fill(HOSTILE)
    assert int(re.match(r"\d+", page.locator("[data-test=found]").inner_text())[0]) > 0
    assert page.problems == []
    assert page.requests == [hostile_report.as_uri()]


def test_names_that_objects_of_javascript_have_are_names(open_page, inherited_audit, tmp_path):
    inherited_audit.to_html(tmp_path / "report.html")
    page = open_page(tmp_path / "report.html")
    assert page.problems == []
    people = inherited_audit.people
    place = int(np.flatnonzero(people["status"] != "accepted")[0])
    row = people.iloc[place]
    attributes = list(inherited_audit.verdicts)
    cells = page.locator("[data-test=people] tbody tr").first.locator("th, td").all_inner_texts()
    assert cells[:-1] == [people.index[place], *(row[f"group_{name}"] for name in attributes), row["status"]]
    page.locator("[data-test=choose]").first.click()
    shown = page.locator("[data-test=person]").inner_text()
    assert " · ".join(f"{name}: {row[f'group_{name}']}" for name in attributes) in shown
    drawn = page.locator("figure svg[data-scheme=light]").nth(0).locator("text").all_text_contents()
    assert set(INHERITED) <= set(drawn)
    features = page.locator("figure svg[data-scheme=light]").nth(2).locator("text").all_text_contents()
    assert set(features) & set(INHERITED)
    assert page.problems == []


def test_what_nobody_can_tell_looks_neither_like_a_gap_nor_like_none(open_page, tmp_path, credit_audit):
    document = {**credit_audit.document, "counts": {**credit_audit.document["counts"], "unknown": 98}}
    sections = [{**section} for section in document["attributes"]]
    sections[0]["state"], sections[0]["verdict"] = "cannot tell", "cannot tell: the recourse of 98 people is unknown"
    (tmp_path / "report.html").write_text(render({**document, "attributes": sections}), encoding="utf-8")
    page = open_page(tmp_path / "report.html")
    verdict = page.locator("[data-test=verdict]").first
    assert verdict.get_attribute("data-state") == "cannot tell"
    border = "one => getComputedStyle(one).borderLeftColor"
    colours = {name: page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')")
               for name in ("gap", "fine", "soft")}  # fmt: skip
    wanted = page.evaluate(
        "colour => { const one = document.createElement('i'); one.style.color = colour; return one.style.color; }",
        colours["soft"],
    )
    assert verdict.evaluate(border) == wanted
    assert "Of 98 rejected people nobody knows" in page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["credit_report", "hostile_report"])
def test_axe_finds_nothing_serious(open_page, request, which, scheme):
    page = open_page(request.getfixturevalue(which), color_scheme=scheme)
    page.locator("[data-test=choose]").first.click()
    found = Axe().run(page).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []


def test_a_narrow_screen_does_not_scroll_sideways(open_page, credit_report):
    page = open_page(credit_report, viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
