"""The application: who may come in, how much a body may hold, which status an error has, and what is logged.

| status | why |
|---|---|
| 400, 422 | what was asked makes no sense; the message says what would |
| 401 | no key, or a wrong one, on any route |
| 404 | no such model or route |
| 408 | a body that does not come |
| 421 | a Host under which the server does not know itself: `--host-name` names more |
| 413 | a body, or a request, larger than could ever be taken; a text longer than the model, asked about as a whole |
| 429 | the queue is full: `Retry-After` says for how long |
| 500 | a fault of the server, or a model that answers with NaN |
| 503 | the server is shutting down |
| 504 | the deadline has passed |
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

import besag
from besag.admission import Busy, Late, Stopped, TooLarge
from besag.batches import NotFinite
from besag.errors import BesagError, TooLong, out_of_memory, quoted
from besag.explorer import routes as explorer
from besag.service import native, openai
from besag.service.desk import Desk, log
from besag.service.shelf import UnknownModel

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

STATUS: tuple[tuple[type[BesagError], int], ...] = (
    (Busy, 429), (TooLarge, 413), (TooLong, 413), (Late, 504), (Stopped, 503), (UnknownModel, 404), (NotFinite, 500),
    (BesagError, 400),
)  # fmt: skip

AS_JSON = "the body is a JSON object, sent with Content-Type: application/json"
READING = 30.0  # seconds between two parts of a body
BODY = 120.0  # seconds for all of it
RETRY = 5  # seconds after which another server may have taken over from one that is shutting down
WILD = frozenset({"0.0.0.0", "::"})  # addresses that stand for all of a machine
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
DROPPED = 2**28  # bytes that are read of a body that is too large: its client reads no answer before it has sent them


def create(desk: Desk, cors: Sequence[str] = (), hosts: Collection[str] = LOCAL) -> FastAPI:
    """`cors`: origins of web pages that may ask, with a key as anybody. `hosts`: what a request may be sent to."""
    app = FastAPI(title="besag", version=besag.__version__, description="Masked language models as language models.")
    app.include_router(native.routes(desk))
    app.include_router(openai.routes(desk))
    app.include_router(explorer.routes(desk))

    @app.get("/health", tags=["running"])
    async def health(request: Request) -> JSONResponse:
        """A question through the network of the first model: healthy is what answers it with numbers."""
        began = time.perf_counter()
        await desk.answer(request, desk.shelf.default, 0, openai.one_forward)
        return JSONResponse({"status": "ok", "seconds": round(time.perf_counter() - began, 4)})

    @app.get("/metrics", tags=["running"])
    async def metrics() -> PlainTextResponse:
        """For Prometheus."""
        return PlainTextResponse(desk.metrics.text(desk.gauges()), media_type="text/plain; version=0.0.4")

    @app.exception_handler(BesagError)
    async def refused(_: Request, error: BesagError) -> JSONResponse:
        status = next(status for kind, status in STATUS if isinstance(error, kind))
        retry = getattr(error, "retry_after", RETRY if status == 503 else None)
        return told(status, str(error), type(error).__name__, retry=retry)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        what = f"{where}: {first['msg']}" if where else f"{first['msg']}: {AS_JSON}"
        return told(422, what, "BadRequest")

    @app.exception_handler(HTTPException)
    async def elsewhere(_: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400 and isinstance(error.__cause__, ValueError):  # JSON that no number is made of
            return told(422, f"the body cannot be read: {error.__cause__}", "BadRequest")
        return told(error.status_code, str(error.detail), "HTTPException", headers=error.headers)

    app.add_middleware(Door, desk=desk, hosts=hosts)
    if cors:  # before the door: a browser asks without a key whether it may ask
        app.add_middleware(CORSMiddleware, allow_origins=list(cors), allow_methods=["*"], allow_headers=["*"])
    return app


def told(status: int, message: str, kind: str, retry: int | None = None, headers: Any = None) -> JSONResponse:
    """An error as OpenAI's clients read it."""
    more = {"Retry-After": str(retry)} if retry is not None else {}
    return JSONResponse(
        {"error": {"message": message, "type": kind, "code": status}}, status, {**(headers or {}), **more}
    )


def _host(header: str) -> str:
    """Return the host of a Host header without its port, in small letters; an IPv6 address without its brackets."""
    named = header.strip().lower()
    if named.startswith("["):
        return named[1:].partition("]")[0]
    return named.rpartition(":")[0] if named.count(":") == 1 else named


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Door:
    """In front of every route: keys, sizes, counts, a log. What fails behind it unforeseen is a 500 with no details."""

    def __init__(self, app: Any, desk: Desk, hosts: Collection[str] = LOCAL) -> None:
        self.app, self.desk, self.hosts = app, desk, {host.lower() for host in hosts}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        self.desk.open += 1

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._admitted(scope, receive, sent)
        except Exception as failure:
            log.exception("a fault of besag, in %s", scope["path"])
            refusal = told(500, "a fault of the server; its log says more", "Fault")
            if out_of_memory(failure):
                refusal = told(503, "there is not enough memory for this: ask for less at a time", "OutOfMemory")
            if not status:
                await refusal(scope, receive, sent)
        finally:
            self.desk.open -= 1
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self.desk.metrics.add(route, status, seconds)
            log.info("%s %s %d %.3f s", scope["method"], route, status, seconds)

    async def _admitted(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        host = _host(headers.get(b"host", b"").decode("latin-1"))
        if not self._is_ours(host, scope["path"]):
            what = f"this server is not {quoted(host)}: ask it by its address, or start it with --host-name {host}"
            await told(421, what, "Misdirected")(scope, receive, send)
            return
        if self.desk.draining:
            refusal = told(503, "the server is shutting down", "Stopped", retry=RETRY)
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)
            return
        if not self.desk.keys.admit(headers.get(b"authorization", b"").decode("latin-1")):
            refusal = told(401, "a key is needed: Authorization: Bearer …", "Unauthorized")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, send)
            return
        try:
            body = await self._body(headers, receive)
        except TimeoutError:
            what = f"nothing more of the body came in {READING:g} s, or not all of it in {BODY:g} s"
            refusal = told(408, what, "Slow")
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)
            return
        if body is None:
            most = self.desk.limits.body
            refusal = told(413, f"a body of more than {most:,} bytes: send less at a time", "TooLarge")
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)
            return
        if self.desk.shows_texts and body:
            log.info("%s %s", scope["path"], json.dumps(body.decode("utf-8", "replace"))[:2000])
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, again, send)

    def _is_ours(self, host: str, path: str) -> bool:
        """Return whether a request may be sent to this host.

        A web page of another site reaches a server of this machine by a name that it lets point there, and so never by
        an address. A request without a host does not come from a browser; probes of /health come to any address.
        """
        wild = not self.hosts.isdisjoint(WILD)
        return not host or host in self.hosts or ((wild or path == "/health") and _is_address(host))

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """All of it, or None where it is longer than may be; no more than that is ever held."""
        most, said = self.desk.limits.body, headers.get(b"content-length", b"0")
        told = int(said) if said.isdigit() else 0
        if told > most and (told > DROPPED or b"expect" in headers):  # who expects leave to send is given none
            return None
        parts: list[bytes] = []
        began = time.monotonic()
        length, end = 0, began + READING
        while length <= most or (length <= DROPPED and time.monotonic() < end):
            left = began + BODY - time.monotonic()
            message = await asyncio.wait_for(receive(), max(0.0, min(READING, left)))
            if message["type"] == "http.disconnect":
                return b""
            part = message.get("body", b"")
            length += len(part)
            if max(told, length) > most:
                parts.clear()
            else:
                parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts) if length <= most else None
        return None
