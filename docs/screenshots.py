"""The pictures of the explorer, taken in a Chromium of the system into docs/img/.

python docs/screenshots.py [NAME ...]

Needs the extras `serve` and `browser`. Colours are reduced to a palette, so that each file stays small.
"""

from __future__ import annotations

import io
import shutil
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import besag
from besag.service.app import create
from besag.service.desk import Desk
from besag.service.run import listening
from besag.service.shelf import Shelf

HERE = Path(__file__).parent
RESULT = ".view:not([hidden]) .result:not([hidden])"
MOST = 150_000  # bytes of a picture
WRITTEN = "She [MASK] the [MASK] with her [MASK]."
SHOTS = {  # name: (view, colours, height, what is looked at)
    "explorer-sentence": ("sentence", "light", 860, {}),
    "explorer-masks": ("masks", "dark", 1180, {}),
    "explorer-dependence": ("dependence", "light", 900, {}),
    "explorer-write": ("write", "dark", 900, {"text": WRITTEN, "kernel": "metropolis", "steps": 30, "step": 18}),
}


def served() -> str:
    lm = besag.load(progress=False)
    socket = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create(Desk(Shelf({"small-en": lambda: lm}))), log_config=None))
    threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return f"http://127.0.0.1:{socket.getsockname()[1]}"


def take(page: Page, name: str) -> bytes:
    """A picture of the page as it stands, in as many colours as fit."""
    whole = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for colours in (256, 128, 64, 32):
        file = io.BytesIO()
        whole.quantize(colours, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
        if file.tell() <= MOST:
            return file.getvalue()
    raise SystemExit(f"{name} is larger than {MOST:,} bytes")


def main(names: list[str]) -> None:
    address = served()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in names or SHOTS:
            view, scheme, height, params = SHOTS[name]
            context = browser.new_context(
                viewport={"width": 1180, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
            )
            page = context.new_page()
            page.goto(f"{address}/#{view}" + (f"?{urlencode(params)}" if params else ""))
            page.wait_for_selector(RESULT, timeout=300_000)
            page.wait_for_selector(".guesses li" if view == "sentence" else RESULT)
            page.wait_for_timeout(1500)
            page.wait_for_selector("#notice:empty", state="attached", timeout=300_000)  # all of it has come
            (HERE / "img" / f"{name}.png").write_bytes(take(page, name))
            context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
