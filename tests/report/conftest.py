"""A real browser, and reports to look at in it."""

import os
import shutil

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import ActionSet, audit, recourse_frontier
from equirecourse.datasets import load_credit
from equirecourse.equalizers import EqualRecourseLinear
from equirecourse.exceptions import NoRecourseWarning

HOSTILE = "<img src=x onerror=alert(1)>"
CLOSING = "</script><script>alert(2)</script>"
# Every object of JavaScript knows these already; a map that is an object takes them for its own.
INHERITED = ["constructor", "toString", "__proto__", "hasOwnProperty", "valueOf"]


@pytest.fixture(scope="session")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        # As root there is no sandbox to be had; the page is our own.
        arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        running = playwright.chromium.launch(executable_path=path, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="session")
def credit_audit():
    """Ten thousand people of the credit data, before and after, with the frontier."""
    credit = load_credit(paper=True)
    train, judged = np.arange(6000), np.arange(10_000, 20_000)
    X, y, groups = credit.data, np.asarray(credit.target), credit.sensitive_features[["sex", "graduate"]]
    model = make_pipeline(
        StandardScaler(), EqualRecourseLinear(LogisticRegression(class_weight="balanced"), objective="paper")
    )
    sex = groups["sex"].iloc[train]
    name = "equalrecourselinear__sensitive_features"
    audits = []
    for penalty in (0.0, np.inf):
        model.set_params(equalrecourselinear__recourse_penalty=penalty).fit(X.iloc[train], y[train], **{name: sex})
        audits.append(
            audit(
                model, X.iloc[judged], y[judged], sensitive_features=groups.iloc[judged], n_flipsets=3,
                actions=ActionSet.from_frame(X.iloc[train]), n_boot=200, n_permutations=200,
            )
        )  # fmt: skip
    frontier = recourse_frontier(
        model, X.iloc[train], y[train], sensitive_features=sex, cv=2, n_boot=20, n_permutations=20, random_state=0
    )
    return audits[1].compared_with(audits[0]).with_frontier(frontier, frontier.pick())


@pytest.fixture(scope="session")
def credit_report(credit_audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "credit.html"
    credit_audit.to_html(path)
    return path


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory):
    """Columns, groups, labels and titles that would like to be markup."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({HOSTILE: rng.normal(size=200), "b": rng.normal(size=200)})
    y = np.where(X[HOSTILE] + X.b + rng.normal(size=200) > 0, CLOSING, HOSTILE)
    groups = pd.DataFrame({CLOSING: rng.choice([HOSTILE, "plain"], 200)})
    model = LogisticRegression().fit(X, y)
    with pytest.warns(NoRecourseWarning):
        found = audit(
            model, X, y, sensitive_features=groups, title=HOSTILE, n_flipsets=2, favorable_label=CLOSING,
            actions=ActionSet.from_frame(X, immutable=["b"]),
        )  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "hostile.html"
    found.to_html(path)
    return path


@pytest.fixture(scope="session")
def inherited_audit():
    """Columns that are called like those of the people table, and names that every object of JavaScript has."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, len(INHERITED))), columns=INHERITED)
    y = (X.sum(axis=1) + rng.normal(size=300) > 0).astype(int)
    columns = ["status", "cost", "person", "__proto__", "constructor"]
    groups = pd.DataFrame({name: rng.choice(INHERITED, 300) for name in columns})
    return audit(
        LogisticRegression().fit(X, y), X, y, sensitive_features=groups, n_flipsets=2,
        actions=ActionSet.from_frame(X), n_boot=50, n_permutations=50,
    )  # fmt: skip


@pytest.fixture
def open_page(browser):
    """Open a file; errors of the console, of the page and every request are written down."""
    contexts = []

    def opened(path, **context):
        page = browser.new_context(**context)
        contexts.append(page)
        tab = page.new_page()
        tab.problems, tab.requests = [], []
        tab.on(
            "console",
            lambda message: tab.problems.append(message.text) if message.type in ("error", "warning") else None,
        )
        tab.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.on("dialog", lambda dialog: (tab.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
