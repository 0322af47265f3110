"""`besag explore`: the page, on a model of one's own machine."""

from __future__ import annotations

import threading
from functools import partial
from typing import Annotated

from besag.cli import options as o
from besag.cli.exits import guarded, say
from besag.cli.groups import ModelOptions, grouped
from besag.cli.serve import wait_without_spinning
from besag.errors import require

Port = Annotated[int, o.of_run("--port", min=0, max=65535, help="0 takes any that is free.")]
Browser = Annotated[bool, o.of_run("--browser/--no-browser", help="Open the page, or only say where it is.")]


@guarded
@grouped
def explore(model: ModelOptions, port: Port = 0, browser: Browser = True) -> int:
    """Open the browser explorer.

    Shows surprisal, joint distributions, dependence and sampling chains. The page is served to this machine only, until
    Ctrl-C.

    Example:
        besag explore
    """
    wait_without_spinning()
    require("fastapi", extra="serve")
    require("uvicorn", extra="serve")
    from besag.models import EMBEDDED
    from besag.service.desk import Desk
    from besag.service.run import address, listening, serve
    from besag.service.shelf import Shelf

    name = (model.model or EMBEDDED).rstrip("/").split("/")[-1]
    shelf = Shelf({name: partial(model.load, False)})
    with listening("127.0.0.1", port) as one:
        with shelf.borrowed(name):
            pass  # what cannot be loaded is told now
        at = address(one)
        say(f"exploring {name} on {at} (Ctrl-C ends it)")
        if browser:
            threading.Thread(target=_open, args=(at,), daemon=True).start()  # some browsers keep who opens them
        serve(Desk(shelf), one, drain=2.0)
    return 0


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        say(f"no browser was found here: open {address} in one")
