"""The page at `/`, the files it is made of, and the four questions that its views ask beside those of the server.

Nothing of the page comes from another host, and its Content-Security-Policy has browsers hold it to that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictInt
from starlette.exceptions import HTTPException

from besag.explorer import views
from besag.joints.registry import construction
from besag.language_model import LanguageModel
from besag.samplers.kernel import kernel
from besag.scores import method
from besag.service import bodies, weighing
from besag.service.bodies import said
from besag.service.desk import Desk
from besag.service.sources import Weighed, given, weighed
from besag.service.streaming import Tell, streamed

FILES = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class PlacesBody(bodies.Body):
    text: bodies.Text
    k: Annotated[StrictInt, Field(ge=1, le=50)] = 20


class SentenceBody(bodies.Body):
    text: bodies.Text
    method: bodies.Name = "pll"


class PairBody(bodies.Body):
    text: bodies.Text
    candidates: Annotated[StrictInt, Field(ge=2, le=40)] = 10


class WriteBody(bodies.Body):
    text: bodies.Text | None = None
    length: Annotated[StrictInt, Field(ge=1, le=64)] | None = None
    kernel: bodies.Name = "gibbs"
    chains: Annotated[StrictInt, Field(ge=1, le=8)] = 1
    steps: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    seed: bodies.Seed = 0
    options: bodies.Options = Field({})


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["explorer"])
    for part in (_files, _asking, _writing):
        part(router, desk)
    return router


def _files(router: APIRouter, _: Desk) -> None:
    held = {file.name: file.read_bytes() for file in FILES.iterdir() if file.suffix in TYPES}

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        return await file("index.html")

    @router.get("/explorer/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in held:
            raise HTTPException(404, "the page has no such file")
        kind = TYPES[Path(name).suffix]
        return Response(held[name], headers=HEADERS, media_type=f"{kind}; charset=utf-8")


def _asking(router: APIRouter, desk: Desk) -> None:
    async def answer(request: Request, body: bodies.Body, weight: Weighed, verb: Callable[..., Any]) -> Response:
        def written(lm: LanguageModel) -> bytes:
            return json.dumps(verb(given(lm, body.source))).encode()

        model = desk.shelf.plain(body.model)
        found = await desk.answer(request, model, weighed(weight, body.source), written)
        return Response(found, media_type="application/json")

    @router.post("/explorer/score")
    async def score(request: Request, body: SentenceBody) -> Response:
        """A text by one method, in bits; or why this model cannot be asked by it."""
        weight = partial(weighing.scores, [weighing.tokens(body.text)], method(body.method))
        return await answer(request, body, weight, lambda lm: views.score(lm, body.text, body.method))

    @router.post("/explorer/places")
    async def places(request: Request, body: PlacesBody) -> Response:
        """What else could stand at each place of a text, and the text with it."""
        weight = partial(weighing.scores, [weighing.tokens(body.text)], method("pll"))
        return await answer(request, body, weight, lambda lm: {"result": views.places(lm, body.text, body.k)})

    @router.post("/explorer/pair")
    async def pair(request: Request, body: PairBody) -> Response:
        """The joint of two masks by every construction, as tables."""
        weight = partial(weighing.joint, body.text, None, body.candidates, construction("ag"))
        return await answer(request, body, weight, lambda lm: {"result": views.pair(lm, body.text, body.candidates)})


def _writing(router: APIRouter, desk: Desk) -> None:
    @router.post("/explorer/write")
    async def write(request: Request, body: WriteBody) -> Response:
        """Chains while they run: server-sent events, one a step with its numbers, then the `result`."""
        made = kernel(body.kernel, **body.options)
        weight = partial(weighing.sample, body.text, body.length, body.chains, body.steps, made)
        chosen = said(body, "text", "length", "chains", "steps", "seed")

        def run(lm: LanguageModel, tell: Tell) -> Any:
            return views.write(given(lm, body.source), made, lambda row: tell(lambda: row), **chosen)

        weighs = weighed(weight, body.source)
        return await streamed(desk, request, desk.shelf.plain(body.model), weighs, run, skip=False)
