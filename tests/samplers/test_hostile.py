"""Whatever is said of an option of a verb that writes or diagnoses: an answer, or a refusal in words; never a hang."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.laws import Arbitrary

import besag
from besag.diagnostics.chains import diagnose
from besag.diagnostics.compatibility import compatibility
from besag.diagnostics.mixing import exact_mixing
from besag.diagnostics.texts import measure
from besag.errors import BesagError

HOSTILE = [0, -1, 10**9, 10**30, 10**400, math.nan, math.inf, 1e-300, -0.5, "x", None, True, [], {}]
TEXT = "s0 s1 s2"
FEW = {"chains": 2, "levels": 2}

VERBS: dict[str, tuple[Any, list[str]]] = {
    "sample": (
        lambda lm, **said: lm.sample(**{"length": 3, "chains": 2, "steps": 2, **said}),
        ["chains", "steps", "length", "end", "free", "keep", "outcomes", "every", "seed"],
    ),
    "augment": (
        lambda lm, **said: lm.augment(TEXT, **said),
        ["copies", "share", "rounds", "together", "keep", "similarity", "measure", "temperature", "top_k", "top_p",
         "seed"],
    ),
    "edit": (
        lambda lm, **said: lm.edit(TEXT, {"s0": "s1"}, **said),
        ["strength", "keep", "depth", "steps", "temperature", "seed"],
    ),
    "normalise": (
        lambda lm, **said: lm.normalise([TEXT], **{**FEW, **said}),
        ["energy", "energy_temperature", "chains", "levels", "moves", "move", "size", "seed", "confidence"],
    ),
    "dependence": (lambda lm, **said: lm.dependence(TEXT, **said), ["candidates", "max_distance", "outcomes"]),
    "rectangles": (
        lambda lm, **said: lm.rectangles(TEXT, **{"minors": 2, **said}), ["minors", "seed", "outcomes", "positions"],
    ),
    "compatibility": (
        lambda lm, **said: compatibility(lm.engine, TEXT, **{"positions": [0, 1], **said}), ["positions", "candidates"],
    ),
    "diagnose": (lambda lm, **said: diagnose([[1.0, 2.0] * 8] * 2, **said), ["warmup"]),
    "mixing": (lambda lm, **said: exact_mixing([[0.5, 0.5], [0.1, 0.9]], **said), ["epsilon"]),
    "measure": (lambda lm, **said: measure(["a b", "a c", "b c"], **said), ["n", "most", "seed"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def lm():
    return besag.load(Arbitrary(3), progress=False)


@pytest.mark.parametrize(("verb", "option"), [(verb, option) for verb, (_, names) in VERBS.items() for option in names])
def test_every_option_is_taken_or_refused_in_words_whatever_is_said(lm, verb, option):
    run, _ = VERBS[verb]
    for value in HOSTILE:
        try:
            run(lm, **{option: value})
        except BesagError as refused:
            told = str(refused)
        else:
            told = ""
        assert len(told) < 1000


@pytest.mark.parametrize(
    ("verb", "options", "told"),
    [
        ("augment", {"copies": 10**9}, "copies=1000000000: give at most 65,536"),
        ("augment", {"rounds": 10**9}, "rounds=1000000000: give at most 1,000"),
        ("edit", {"steps": 10**30}, "steps=1000000000000000000000000000000: give a whole number of at most"),
        ("normalise", {"chains": 10**9}, "chains=1000000000: give at most 1,048,576"),
        ("normalise", {"levels": 10**9}, "levels=1000000000: give at most"),
        ("rectangles", {"minors": 10**9}, "minors=1000000000: give at most 100,000"),
        ("measure", {"n": 10**9}, "n=1000000000: give at most 100"),
    ],
)
def test_counts_have_bounds_that_are_told(lm, verb, options, told):
    with pytest.raises(BesagError, match=told):
        VERBS[verb][0](lm, **options)
