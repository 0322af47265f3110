"""Whatever is said in a body is answered, refused or scheduled, and never a fault of the server."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.service.serving import asked, desk

from besag.joints.registry import CONSTRUCTIONS
from besag.registry import options
from besag.samplers import KERNELS
from besag.scores import METHODS
from besag.service.desk import Limits

PIECES = [
    "the",
    "cat",
    "[MASK]",
    "[CLS]",
    "[SEP]",
    "sat",
    " ",
    "",
    ".",
    "é",
    "\ud800",
    "\0",
    "s0",
    "🐈",
    "##s",
    "x" * 300,
]
texts = st.lists(st.sampled_from(PIECES), max_size=7).map(" ".join)
odd = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 40), st.just(2**70), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "random", "all", "text"]), st.lists(st.integers(-2, 9), max_size=3),
)  # fmt: skip
models = st.sampled_from(["bert", "bert", "table", "bert:pll", "none"])
small = st.integers(1, 4)
places = st.lists(
    st.one_of(st.integers(-2, 9), st.sampled_from(["cat", "the", "?"]), st.tuples(small, small)), max_size=4
)


def named(registry: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A method of a registry with some of its options set to anything."""

    def one(name: str) -> st.SearchStrategy[dict[str, Any]]:
        known = [option.name for option in options(registry[name])] or ["nothing"]
        return st.dictionaries(st.sampled_from([*known, "record"]), odd, max_size=2).map(
            lambda said: {"method": name, "options": said}
        )

    return st.sampled_from(sorted(registry)).flatmap(one)


def body(fields: dict[str, Any], method: Any = None, **may: Any) -> st.SearchStrategy[dict[str, Any]]:
    plain = st.fixed_dictionaries(fields, optional={"model": models, "source": texts, **may})
    return plain if method is None else st.tuples(plain, named(method)).map(lambda two: {**two[0], **two[1]})


kernels = named(KERNELS).map(lambda said: {"kernel": said["method"], "options": said["options"]})
prompts = st.one_of(texts, st.lists(st.integers(-1, 2000), max_size=5))
BODIES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "/score": body({"texts": st.one_of(texts, st.lists(texts, max_size=3))}, METHODS, prefix=texts, rank=st.booleans()),
    "/choose": body({"text": texts, "choices": st.lists(texts, max_size=3)}, METHODS),
    "/joint": body({"text": texts, "candidates": small}, CONSTRUCTIONS, positions=places),
    "/fill": body({"text": texts, "candidates": small, "k": small}, CONSTRUCTIONS, beam=small),
    "/dependence": body({"text": texts, "candidates": st.integers(2, 3)}, max_distance=small),
    "/sample": st.tuples(
        body({"chains": small, "steps": small}, text=texts, length=small, stream=st.booleans(), end=texts), kernels
    ).map(lambda two: {**two[0], **two[1]}),
    "/translate": body({"sources": texts}, passes=small, lengths=small, nbest=small, trace=st.booleans()),
    "/v1/completions": body(
        {"prompt": st.one_of(prompts, st.lists(prompts, max_size=3)), "echo": st.just(True)},
        max_tokens=st.integers(0, 2), logprobs=st.integers(0, 5),
    ),
    "/tokenize": body({"prompt": texts}),
    "/detokenize": body({"tokens": st.lists(st.integers(-1, 2000), max_size=5)}),
    "/explorer/score": body({"text": texts, "method": st.sampled_from(sorted(METHODS))}),
    "/explorer/places": body({"text": texts}, k=small),
    "/explorer/pair": body({"text": texts, "candidates": st.integers(2, 4)}),
    "/explorer/write": st.tuples(body({"chains": small, "steps": small}, text=texts, length=small), kernels).map(
        lambda two: {**two[0], **two[1]}
    ),
    "/fill-mask": body({"inputs": texts}, parameters=st.fixed_dictionaries({"top_k": st.integers(0, 2000)})),
}  # fmt: skip
asking = st.sampled_from(sorted(BODIES)).flatmap(lambda route: st.tuples(st.just(route), BODIES[route]))
KNOWN = {200, 400, 404, 413, 422}


@pytest.fixture(scope="module")
def client():
    with asked(desk(limits=Limits(seconds=20))) as one:
        yield one


def check(client: Any, route: str, said: dict[str, Any]) -> None:
    answer = client.post(route, content=json.dumps(said).encode(), headers={"Content-Type": "application/json"})
    assert answer.status_code in KNOWN, (route, said, answer.text)
    if answer.status_code != 200:
        assert answer.json()["error"]["message"]
    elif route == "/v1/completions":
        for choice in answer.json()["choices"]:
            numbers = (choice["logprobs"] or {"token_logprobs": []})["token_logprobs"]
            assert all(one is None or math.isfinite(one) for one in numbers)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(asking)
def test_no_body_is_a_fault(client, asked):
    check(client, *asked)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=5000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(asking)
def test_no_body_of_thousands_is_a_fault(client, asked):
    check(client, *asked)
