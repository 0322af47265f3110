"""besag's own routes: one for each verb, its arguments as JSON, its result as `to_dict` gives it.

Options of a method are checked against the method, so that no body can name what only Python may say (a file to record
to, a function that watches).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from besag.errors import BesagError
from besag.joints.registry import CONSTRUCTIONS, construction
from besag.language_model import LanguageModel
from besag.registry import Registry, options, refuse_unknown
from besag.samplers import KERNELS, kernel
from besag.scores import METHODS
from besag.scores import method as method_named
from besag.scores.choice import DEFAULTS
from besag.service import bodies, tokenizers, weighing, wire
from besag.service.bodies import said
from besag.service.desk import Desk, Weight
from besag.service.sources import Weighed, given, weighed
from besag.service.streaming import Tell, streamed
from besag.translation.translating import USUAL, wish

TRANSLATING = (  # what may be said of a translation beside its kernel; a judge is a model, and stays in Python
    "length", "draws", "restarts", "noise", "utility", "early_stop", "mend_stutters", "beam", "alpha",
)  # fmt: skip


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["besag"])
    for part in (_scoring, _several_places, _writing, _translating, _listing):
        part(router, desk)
    return router


async def _told(
    desk: Desk, request: Request, body: bodies.Body, weight: Weighed, verb: Callable[[LanguageModel], Any]
) -> Response:
    model = desk.shelf.plain(body.model)
    weigh = weighed(weight, body.source)
    return await _written(desk, request, model, weigh, lambda lm: verb(given(lm, body.source)))


async def _written(
    desk: Desk, request: Request, model: str, weight: Weight, verb: Callable[[LanguageModel], Any]
) -> Response:
    tell = _teller(request)

    def written(lm: LanguageModel) -> bytes:
        found = verb(lm)
        several = isinstance(found, list)
        shown = [tell(one) for one in found] if several else tell(found)
        return json.dumps({"model": model, "results" if several else "result": shown}).encode()

    return Response(await desk.answer(request, model, weight, written), media_type="application/json")


def _scoring(router: APIRouter, desk: Desk) -> None:
    @router.post("/score")
    async def score(request: Request, body: bodies.ScoreBody) -> Response:
        """One score a text, in the order of the texts."""
        method = method_named(body.method, **body.options)
        around = weighing.tokens(body.prefix + body.suffix) - 2
        texts = [body.texts] if isinstance(body.texts, str) else body.texts
        lengths = [weighing.tokens(text) + around for text in texts]
        chosen = said(body, "words", "prefix", "suffix", "separator", "base", "rank", "entropy")
        weight = partial(weighing.scores, lengths, method)
        return await _told(desk, request, body, weight, lambda lm: lm.score(body.texts, method, **chosen))

    @router.post("/choose")
    async def choose(request: Request, body: bodies.ChooseBody) -> Response:
        """Which choice fits the slot of the text best."""
        method = method_named(body.method or DEFAULTS[body.of], **body.options)
        lengths = [weighing.tokens(body.text + choice) for choice in body.choices]
        weight = partial(weighing.scores, lengths, method)
        chosen = said(body, "of", "reduction")
        return await _told(desk, request, body, weight, lambda lm: lm.choose(body.text, body.choices, method, **chosen))


def _several_places(router: APIRouter, desk: Desk) -> None:
    @router.post("/joint")
    async def joint(request: Request, body: bodies.JointBody) -> Response:
        """The law of the tokens at two places or more, and its likeliest outcomes."""
        how = construction(body.method, **body.options)
        places = None if body.positions is None else len(body.positions)
        weight = partial(weighing.joint, body.text, places, body.candidates, how)
        chosen = said(body, "outcomes", "candidates") | body.options
        return await _told(
            desk, request, body, weight,
            lambda lm: lm.joint(body.text, body.positions, body.method, **chosen),
        )  # fmt: skip

    @router.post("/fill")
    async def fill(request: Request, body: bodies.FillBody) -> Response:
        """The likeliest fillings of all masks together."""
        how = construction(body.method, **body.options)
        weight = partial(weighing.fill, body.text, body.k, body.candidates, body.beam, how)
        chosen = said(body, "outcomes", "candidates", "beam") | body.options
        return await _told(desk, request, body, weight, lambda lm: lm.fill(body.text, body.k, body.method, **chosen))

    @router.post("/dependence")
    async def dependence(request: Request, body: bodies.DependenceBody) -> Response:
        """The mutual information between every two tokens."""
        how = construction(body.method)
        weight = partial(weighing.dependence, body.text, body.candidates, body.max_distance, how)
        chosen = said(body, "candidates", "max_distance", "method")
        return await _told(desk, request, body, weight, lambda lm: lm.dependence(body.text, **chosen))


def _writing(router: APIRouter, desk: Desk) -> None:
    @router.post("/sample")
    async def sample(request: Request, body: bodies.SampleBody) -> Response:
        """Text by one of the kernels; with `stream`, what the chains say while they run."""
        made = kernel(body.kernel, **body.options)
        weight = partial(weighing.sample, body.text, body.length, body.chains, body.steps, made)
        chosen = said(body, "chains", "steps", "length", "end", "outcomes", "seed")

        def draw(lm: LanguageModel, **more: Any) -> Any:
            return lm.sample(body.text, made, **chosen, **more)

        if not body.stream:
            return await _told(desk, request, body, weight, draw)

        def run(lm: LanguageModel, tell: Tell) -> Any:
            def watch(step: int, chains: list[int], texts: Callable[[], list[str]]) -> None:
                tell(lambda: {"step": step, "chains": chains, "texts": texts()})

            return _teller(request)(draw(given(lm, body.source), watch=watch))

        return await streamed(desk, request, desk.shelf.plain(body.model), weighed(weight, body.source), run)


def _translating(router: APIRouter, desk: Desk) -> None:
    @router.post("/translate")
    async def translate(request: Request, body: bodies.TranslateBody) -> Response:
        """The targets of sources, by a model that translates."""
        if body.source is not None:
            raise BesagError("a translator is given `sources`: leave `source` out")
        named = KERNELS.known(body.kernel or USUAL)
        refuse_unknown(f"a translation by {named!r}", {*KERNELS.options(named), *TRANSLATING}, body.options)
        sources = [body.sources] if isinstance(body.sources, str) else body.sources
        chosen = said(body, "passes", "lengths", "choose", "nbest", "trace", "seed", "terms") | body.options
        weight = partial(weighing.translation, sources, wish(body.kernel, **chosen))
        verb: Callable[[LanguageModel], Any] = lambda lm: lm.translate(body.sources, body.kernel, **chosen)  # noqa: E731
        return await _written(desk, request, desk.shelf.plain(body.model), weighed(weight, None), verb)


def _listing(router: APIRouter, desk: Desk) -> None:
    @router.get("/methods")
    async def methods() -> JSONResponse:
        """Scores, constructions of joints and kernels, with their options."""
        kinds: dict[str, Registry[Any]] = {"scores": METHODS, "joints": CONSTRUCTIONS, "kernels": KERNELS}
        return JSONResponse({kind: [_about(registry, name) for name in registry] for kind, registry in kinds.items()})

    @router.get("/models")
    async def models() -> JSONResponse:
        """Which models are served, and which of them are in memory."""
        return JSONResponse({"models": [_model(desk, name) for name in desk.shelf.names]})

    @router.get("/tokenizer")
    async def tokenizer(request: Request, model: str | None = None) -> JSONResponse:
        """The tokenizer of a model, for clients that read tokens."""
        name, _ = desk.shelf.known(model)
        return JSONResponse(await desk.answer(request, name, 1, lambda lm: tokenizers.written(lm.vocabulary)))


def _teller(request: Request) -> Callable[[Any], Any]:
    """Results as `to_dict` shows them, or whole, for a client that makes the same objects of them."""
    return wire.pack if request.headers.get("accept", "") == wire.TYPE else lambda result: result.to_dict()


def _about(registry: Registry[Any], name: str) -> dict[str, Any]:
    kind = registry[name]
    return {"name": name, "title": kind.title, "options": {one.name: str(one) for one in options(kind)}}


def _model(desk: Desk, name: str) -> dict[str, Any]:
    lm = desk.shelf.loaded(name)
    about: dict[str, Any] = {"name": name, "loaded": lm is not None}
    if lm is not None:
        length = lm.conditionals.max_length
        about |= {"device": str(lm.conditionals.device), "dtype": lm.dtype, "width": lm.conditionals.width}
        about |= {"max_length": length, "sees": lm.conditionals.sees}
    return about
