"""One server and one browser for all tests of the page. Where no browser is found they are skipped, and say so."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.service.serving import bert, desk, served

import besag
from besag.language_model import LanguageModel

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RESULT = ".view:not([hidden]) .result:not([hidden])"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 60_000  # milliseconds: a busy machine is no fault


@pytest.fixture(scope="session")
def lm() -> LanguageModel:
    return besag.load(progress=False)


@pytest.fixture(scope="session")
def address(lm: LanguageModel) -> Iterator[str]:
    with served(desk(models={"small-en": lambda: lm, "bert": bert})) as where:
        yield where


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="no Playwright here: `make browser` installs it")
    found = os.environ.get("BESAG_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: `make browser` installs it, BESAG_BROWSER=PATH says where one is")
    with driver.sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield one
        one.close()


class Seen:
    """A page, what it asked for, and what its console said."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda one: one.url.startswith("data:") or self.requests.append(one.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text))

    def open(self, view: str = "", wait: str = RESULT, **params: object) -> Any:
        query = f"?{urlencode(params)}" if params else ""
        self.page.goto("about:blank")  # a change of the hash alone is no new page
        self.page.goto(f"{self.address}/#{view}{query}" if view else f"{self.address}/")
        if wait:
            self.page.wait_for_selector(wait)
        return self.page

    def numbers(self, selector: str, name: str) -> list[float]:
        found = self.page.eval_on_selector_all(selector, f"all => all.map(one => one.getAttribute('{name}'))")
        return [float(one) for one in found]

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()  # type: ignore[no-any-return]

    def settled(self, condition: str) -> None:
        """Until a condition in JavaScript holds; asked from outside, since the page may not run strings."""
        end = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(30)


def strangers(requests: list[str], address: str) -> list[str]:
    return [url for url in requests if not url.startswith((f"{address}/", "data:", "blob:", "about:"))]


@pytest.fixture
def seen(browser: Any, address: str) -> Iterator[Seen]:
    """A fresh page. At the end: nothing was asked of another host, and the console is empty."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
    one = Seen(context.new_page(), address)
    yield one
    context.close()
    assert strangers(one.requests, address) == []
    assert one.errors == []
