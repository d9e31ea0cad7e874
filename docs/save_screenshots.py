"""Photograph the report of the demo: python docs/save_screenshots.py report.html writes docs/images/report_*.png."""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    report = Path(sys.argv[1]).resolve()
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(viewport={"width": 1160, "height": 900})
        page.goto(report.as_uri())
        page.screenshot(path=IMAGES / "report_top.png")
        # Somebody for whom several ways were looked for.
        data = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
        name = data["people"]["rows"][data["flipsets"]["sample"][0]][0]
        page.locator("[data-test=search]").fill(name[:2])
        while page.get_by_label(f"Show person {name}", exact=True).count() == 0:
            page.locator("[data-test=next]").click()
        page.get_by_label(f"Show person {name}", exact=True).click()
        page.locator("#people").scroll_into_view_if_needed()
        page.evaluate("document.getElementById('people').scrollIntoView()")
        page.screenshot(path=IMAGES / "report_person.png", clip={"x": 0, "y": 0, "width": 1160, "height": 620})
        page.locator("[data-test=theme]").click()
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=IMAGES / "report_dark.png")
        browser.close()


if __name__ == "__main__":
    main()
