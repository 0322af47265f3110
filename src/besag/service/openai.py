"""Routes that other people's clients speak: OpenAI's completions with `echo`, tokenizers, Hugging Face's fill-mask.

A masked model answers completions by `chain`, the chain rule from left to right, or by the method in the model's name
("small-en:pll"). Nothing is generated: a client that asks for one more token, as harnesses do, is given the end token,
without a number.
"""

from __future__ import annotations

import time
import uuid
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from besag.arrays import Floats, Ints
from besag.engine import Plan
from besag.engine import Request as Asked
from besag.errors import BesagError, TooLong, quoted
from besag.language_model import LanguageModel
from besag.places.filling import filled
from besag.places.reading import read as read_text
from besag.places.tokens import token_ids
from besag.reductions import Target, Top
from besag.results.words import meaning
from besag.scores import Method
from besag.scores import method as method_named
from besag.service import prompts, weighing
from besag.service.bodies import CompletionsBody, DetokenizeBody, FillMaskBody, FillMaskParameters, TokenizeBody
from besag.service.desk import Desk
from besag.service.sources import any_source, given, weighed
from besag.vocabulary import Encoded

ONE_PASS = 16  # tokens that a request about a tokenizer counts for: it runs none

NO_GENERATION = (
    "a masked model continues nothing: completions are scored, with echo=true and max_tokens of 0 or 1. POST /fill "
    "fills masks, and /sample writes"
)


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["other people's"])
    for part in (_completing, _tokenizing, _filling):
        part(router, desk)
    return router


def _completing(router: APIRouter, desk: Desk) -> None:
    @router.post("/v1/completions")
    async def completions(request: Request, body: CompletionsBody) -> JSONResponse:
        """Scores of the tokens of prompts, texts or token ids, as `echo` and `logprobs` ask for."""
        if not body.echo or (body.max_tokens or 0) > 1 or body.stream or body.n not in (None, 1):
            raise BesagError(NO_GENERATION)
        model, named = desk.shelf.known(body.model)
        asked = method_named(named or "chain")
        sent = _prompts(body.prompt)
        lengths = [weighing.tokens(one) if isinstance(one, str) else 2 + len(one) for one in sent]
        weight = partial(weighing.scores, lengths, asked)  # a causal model takes fewer

        def answer(lm: LanguageModel) -> dict[str, Any]:
            lm, network = given(lm, body.source), lm.conditionals
            method = asked if named or network.sees == "both" else method_named("causal")
            _refuse_misfit(method, lm)
            read = [prompts.read(network, one) for one in sent]
            plans = (prompts.plan(network, method, one, body.logprobs or 0) for one in read)
            return _completion(lm, body, method, list(lm.engine.run(plans)), model)

        return JSONResponse(await desk.answer(request, model, weighed(weight, body.source), answer))

    @router.get("/v1/models")
    async def models() -> JSONResponse:
        """Which models are served; any of them may be asked as NAME:METHOD."""
        names = [{"id": name, "object": "model", "created": 0, "owned_by": "besag"} for name in desk.shelf.names]
        return JSONResponse({"object": "list", "data": names})


def _tokenizing(router: APIRouter, desk: Desk) -> None:
    @router.post("/tokenize")
    async def tokenize(request: Request, body: TokenizeBody) -> JSONResponse:
        """A text as token ids."""
        model, _ = desk.shelf.known(body.model)

        def answer(lm: LanguageModel) -> dict[str, Any]:
            [read] = lm.vocabulary.encode([body.prompt])
            ids = read.ids if body.add_special_tokens else read.ids[~read.special]
            return {"tokens": ids.tolist(), "count": len(ids), "max_model_len": lm.conditionals.max_length}

        return JSONResponse(await desk.answer(request, model, ONE_PASS, answer))

    @router.post("/detokenize")
    async def detokenize(request: Request, body: DetokenizeBody) -> JSONResponse:
        """Token ids as a text."""
        model, _ = desk.shelf.known(body.model)

        def answer(lm: LanguageModel) -> dict[str, Any]:
            for one in body.tokens:
                if one >= lm.vocabulary.size:
                    raise BesagError(f"{quoted(one)} is no token id of {lm.name!r}, which has {lm.vocabulary.size:,}")
            return {"prompt": str(lm.tokenizer.decode(body.tokens))}

        return JSONResponse(await desk.answer(request, model, ONE_PASS, answer))

    @router.get("/tokenizer_info")
    async def tokenizer_info(request: Request, model: str | None = None) -> JSONResponse:
        """What a client must know of the tokenizer; `bos_token` is what stands at the beginning of a text."""
        name, _ = desk.shelf.known(model)
        return JSONResponse(await desk.answer(request, name, ONE_PASS, _tokenizer))


def _filling(router: APIRouter, desk: Desk) -> None:
    @router.post("/fill-mask")
    async def fill_mask(request: Request, body: FillMaskBody) -> JSONResponse:
        """Hugging Face's answer: for each mask the likeliest tokens, the others hidden. /fill fills them together."""
        model, _ = desk.shelf.known(body.model)
        said = body.parameters or FillMaskParameters()
        weight = weighed(lambda sight: sight.tokens(weighing.tokens(body.inputs)), body.source)

        def answer(lm: LanguageModel) -> Any:
            return _filled(given(lm, body.source), body.inputs, said.top_k or 5, said.targets)

        return JSONResponse(await desk.answer(request, model, weight, answer))


def _prompts(prompt: str | list[int] | list[str | list[int]]) -> list[str | list[int]]:
    if isinstance(prompt, str):
        return [prompt]
    ids = [one for one in prompt if isinstance(one, int)]
    return [ids] if ids else [one for one in prompt if not isinstance(one, int)]  # the schema lets no mixture through


def _refuse_misfit(method: Method, lm: LanguageModel) -> None:
    if method.sees != lm.conditionals.sees:
        raise BesagError(f"the method {method.name!r} does not go with {lm.name!r}, which sees {lm.conditionals.sees}")


def _completion(
    lm: LanguageModel, body: CompletionsBody, method: Method, scored: list[prompts.Scored], model: str
) -> dict[str, Any]:
    more = min(1, body.max_tokens or 0)
    end = lm.tokenizer.eos_token or lm.tokenizer.sep_token or ""
    choices = []
    for index, one in enumerate(scored):
        logprobs = None
        if body.logprobs is not None:
            logprobs = {
                "tokens": one.tokens + [end] * more,
                "token_logprobs": one.log_probs + [None] * more,
                "top_logprobs": (one.tops + [None] * more) if body.logprobs else None,
                "text_offset": one.starts + [len(one.text)] * more,
            }
        choices.append({"index": index, "text": one.text, "logprobs": logprobs, "finish_reason": "length"})
    count = sum(len(one.ids) for one in scored)
    return {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": {"prompt_tokens": count, "completion_tokens": 0, "total_tokens": count},
        "besag": {
            "method": method.label,
            "title": method.title,
            "normalised": method.normalised,
            "meaning": meaning(method.normalised),
            "unit": "nats",
            "dtype": lm.dtype,
        },
    }


def _tokenizer(lm: LanguageModel) -> dict[str, Any]:
    tokenizer = lm.tokenizer
    return {
        "tokenizer_class": type(tokenizer).__name__,
        "bos_token": tokenizer.cls_token or tokenizer.bos_token,
        "eos_token": tokenizer.eos_token or tokenizer.sep_token,
        "pad_token": tokenizer.pad_token,
        "unk_token": tokenizer.unk_token,
        "mask_token": tokenizer.mask_token,
        "vocab_size": lm.vocabulary.size,
        "chat_template": None,
    }


def _filled(lm: LanguageModel, text: str, k: int, targets: list[str] | None) -> Any:
    vocabulary, limit = lm.vocabulary, lm.conditionals.max_length
    encoded = read_text(vocabulary, text)
    masks = np.flatnonzero(encoded.ids == vocabulary.mask_id)
    if not len(masks):
        raise BesagError(
            f"{quoted(text)} holds no mask: write {vocabulary.mask_token or '[MASK]'} where a token is asked"
        )
    if limit is not None and len(encoded.ids) > limit:
        raise TooLong(f"{len(encoded.ids):,} tokens were sent, and {lm.name!r} sees {limit:,} at a time")
    named = None  # (M, t) the tokens that the targets are at each mask
    if targets is not None:
        named = np.array([token_ids(vocabulary, encoded, int(place), targets) for place in masks])

    def plan() -> Plan[list[list[dict[str, Any]]]]:
        wanted = (Top(k),) if named is None else (Target(),)
        answers = yield Asked(wanted, encoded.ids[None], np.zeros_like(masks), masks, named)
        ids = answers["top_ids"] if named is None else named
        values = answers["top_log_probs" if named is None else "target"]
        return [_rows(lm, encoded, int(at), of, log, k) for at, of, log in zip(masks, ids, values, strict=True)]

    [found] = lm.engine.run([plan()])
    return found[0] if len(found) == 1 else found


def _rows(lm: LanguageModel, encoded: Encoded, place: int, ids: Ints, values: Floats, k: int) -> list[dict[str, Any]]:
    """The k likeliest of some tokens, each once."""
    likeliest = sorted(dict(zip(ids.tolist(), values.tolist(), strict=True)).items(), key=lambda one: -one[1])
    return [
        {
            "score": float(np.exp(value)),
            "token": one,
            "token_str": str(lm.tokenizer.decode([one])),
            "sequence": filled(lm.vocabulary, encoded, [place], [one]),
        }
        for one, value in likeliest[:k]
    ]


def one_forward(lm: LanguageModel) -> None:
    """A question through the network; NotFinite, or whatever else is wrong, where it is not answered with numbers."""
    tables = getattr(lm.conditionals, "places", 1)  # an exact law answers about texts of one length alone
    encoded = read_text(lm.vocabulary, " ".join([lm.vocabulary.mask_token or lm.vocabulary.token(0)] * tables))

    def plan() -> Plan[None]:
        place = np.array([len(encoded.ids) - 1 if lm.conditionals.sees == "left" else len(encoded.ids) // 2])
        yield Asked((Top(1),), encoded.ids[None], np.zeros_like(place), place)

    list(any_source(lm).engine.run([plan()]))
