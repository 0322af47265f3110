"""`besag serve`: models over HTTP, for many callers at once."""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Annotated

from besag.cli import options as o
from besag.cli.exits import guarded, say
from besag.cli.groups import ModelsOptions, grouped
from besag.errors import BesagError, require

_KEYS = "A file of bearer keys, one a line: without one of them nothing is answered."
_QUEUE = "How many tokens may be accepted and not answered; beyond, callers are told to come again (429)."
_MEMORY = "GB of weights in memory at a time; what nobody asks is put away first. All, if not given."
_NAMES = "A name or address that requests may be sent to, in addition to localhost and --host. Repeat."
_CORS = "A web page's origin that may ask, as https://example.org; none if not given. Repeat."

Host = Annotated[str, o.of_run("--host", help="Whom to listen to: 127.0.0.1 is this machine, 0.0.0.0 everybody.")]
Port = Annotated[int, o.of_run("--port", min=0, max=65535, help="0 takes any that is free.")]
KeyFile = Annotated[str | None, o.of_run("--keys", metavar="FILE", help=_KEYS, show_default=False)]
QueueTokens = Annotated[int, o.of_run("--queue-tokens", min=1, help=_QUEUE)]
Deadline = Annotated[float, o.of_run("--deadline", min=0.1, max=3600, help="Seconds for a request that sets none.")]
Body = Annotated[float, o.of_run("--max-body", min=0.001, max=1024, help="MB that a request may hold.")]
Memory = Annotated[float | None, o.of_run("--memory", min=0.001, help=_MEMORY, show_default=False)]
Drain = Annotated[float, o.of_run("--drain", min=0, max=3600, help="Seconds to answer what was accepted, at the end.")]
Cors = Annotated[list[str] | None, o.of_run("--cors", metavar="ORIGIN", help=_CORS, show_default=False)]
HostNames = Annotated[list[str] | None, o.of_run("--host-name", metavar="NAME", help=_NAMES, show_default=False)]
LogTexts = Annotated[bool, o.of_run("--log-texts", help="Also log what is asked. Texts may be private.")]
Lazy = Annotated[bool, o.of_run("--lazy", help="Load the first model with the first request, not before.")]


@guarded
@grouped
def serve(
    model: ModelsOptions,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    keys: KeyFile = None,
    queue_tokens: QueueTokens = 2**20,
    deadline: Deadline = 300.0,
    max_body: Body = 8.0,
    memory: Memory = None,
    drain: Drain = 30.0,
    cors: Cors = None,
    host_name: HostNames = None,
    log_texts: LogTexts = False,
    lazy: Lazy = False,
) -> int:
    """Serve models over HTTP.

    Offers besag's operations, and OpenAI-compatible completions for evaluation harnesses. Requests select one of
    several models by name. On SIGTERM the server finishes accepted requests, then exits.

    Example:
        besag serve --model small-en --port 8000
    """
    wait_without_spinning()
    require("fastapi", extra="serve")
    require("uvicorn", extra="serve")
    from besag.service.desk import Desk, Limits
    from besag.service.keys import Keys
    from besag.service.run import address, listening, log_to_stderr, serve
    from besag.service.shelf import Shelf

    model.check()
    admitted = Keys(keys)
    from besag.models import EMBEDDED

    named = [(name or (one or EMBEDDED).rstrip("/").split("/")[-1], one) for name, one in model.named]
    if len({name for name, _ in named}) < len(named):
        raise BesagError("two models have one name: say --model NAME=MODEL")
    loaders = {name: partial(model.load_one, one) for name, one in named}
    shelf = Shelf(loaders, math.inf if memory is None else memory * 1e9, queue_tokens)
    with listening(host, port) as one:
        if not lazy:
            with shelf.borrowed(shelf.default):
                pass  # what cannot be loaded is told now
        desk = Desk(shelf, Limits(int(max_body * 2**20), deadline), admitted, log_texts)
        log_to_stderr()
        if host not in ("127.0.0.1", "localhost", "::1") and keys is None:
            say(f"warning: anybody who reaches {host} may ask: --keys FILE says who may")
        say(f"serving {', '.join(shelf.names)} on {address(one)}")
        serve(desk, one, drain=drain, cors=cors or (), names=[host, *(host_name or ())])
    return 0


def wait_without_spinning() -> None:
    """Threads of many callers run here, and one that waits by spinning takes a core from the rest: two questions at
    once took 0.7 s where they take 0.3. OpenMP reads this when torch is imported, so it is said before.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
