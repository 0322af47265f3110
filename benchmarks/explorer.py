"""How soon the explorer answers: its first view after the server is up, and a click that needs no network.

    PYTHONPATH=src python3 benchmarks/explorer.py --repeats 9

The server is `besag explore`, a process of its own on the embedded model; the browser a Chromium of the system, driven
by Playwright, with an empty cache each time. A view has come when its words and guesses are drawn; a click is
from the event to the frame that shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
CLICK = """selector => new Promise(done => {
    const all = document.querySelectorAll(selector);
    const before = performance.now();
    all[Math.floor(Math.random() * all.length)].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - before)));
})"""
CLICKS = {  # what needs no network: a word, a cell of a table, an arc
    "sentence": ".word",
    "masks": ".cell",
    "dependence": ".strongest button",
    "write": ".transport button",
}


def first_view(browser: Browser, address: str) -> tuple[float, float]:
    """Seconds from the address to coloured words, and to the guesses beside them."""
    context = browser.new_context()
    page, began = context.new_page(), time.perf_counter()
    page.goto(address)
    page.wait_for_selector(".word")
    words = time.perf_counter() - began
    page.wait_for_selector(".guesses li")
    guesses = time.perf_counter() - began
    context.close()  # what it went on to ask is given up
    page = browser.new_page()
    page.wait_for_timeout(3000)
    page.close()
    return words, guesses


def clicks(page: Page, address: str, view: str, repeats: int) -> list[float]:
    """Milliseconds of each."""
    page.goto(f"{address}/#{view}")
    page.reload()
    page.wait_for_selector(".view:not([hidden]) .result:not([hidden])", timeout=120_000)
    page.wait_for_selector(f".view:not([hidden]) {CLICKS[view]}")
    return [page.evaluate(CLICK, f".view:not([hidden]) {CLICKS[view]}") for _ in range(repeats)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--output", type=Path, help="a JSON file")
    given = parser.parse_args()
    command = [sys.executable, "-m", "besag", "explore", "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr
        address = next(line for line in server.stderr if "http" in line).split(" on ")[1].split()[0]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            words, views = zip(*(first_view(browser, address) for _ in range(given.repeats)), strict=True)
            page = browser.new_page()
            found = {view: clicks(page, address, view, given.repeats) for view in CLICKS}
            browser.close()
        server.terminate()
    rows = {"first view of a fresh server (s)": [views[0]], "words (s)": words, "words and guesses (s)": views}
    rows |= {f"a click in {view} (ms)": values for view, values in found.items()}
    for name, values in rows.items():
        print(f"{name:34} median {statistics.median(values):8.3f}   worst {max(values):8.3f}")
    if given.output:
        about = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "rows": rows}
        given.output.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
