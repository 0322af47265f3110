"""Random calls of everything public in Python, as source: `lm.fill('the [MASK] sleeps.', k=10**20)`.

The callables are those of docs/public.md and the methods of every result that tests/results/test_conformance.py makes,
with the names of their own signatures; values suit the name of an argument or do not suit anything.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st
from tests import networks
from tests.fuzz import watching
from tests.results.test_conformance import MAKERS
from tests.results.test_conformance import made as result

import besag

HOSTILE = (
    "None", "True", "0", "-1", "1.5", "10**9", "10**20", "10**30", "10**5000", "-10**20", "float('nan')",
    "float('inf')",
    "-1e-300", "1e308", "1j", "''", "'text'", "'\\0'", "'\\ud800'", "'a' * 10000", "b'bytes'", "[]", "()", "{}",
    "set()",
    "['a', None]", "[1, 'a']", "[None]", "[[]]", "[['a'], 1]", "{'a': None}", "{1: 2}", "object()", "object", "len",
    "...",
    "iter(())", "iter([None])", "(x for x in 'ab')", "range(3)", "slice(None)", "np.zeros(0)", "np.array(1.0)",
    "np.array([np.nan])", "np.array(['a'])", "np.float64('nan')", "np.int64(3)", "torch.zeros(2, 2)", "torch.tensor(3)",
    "lm", "table", "lm.engine", "besag", "NotImplemented", "1 << 64", "'[MASK]'", "'../../etc'", "Exception('x')",
)  # fmt: skip
RIGHT: dict[str, tuple[str, ...]] = {
    "text": ("'the [MASK] [MASK] sleeps'", "'the cat sleeps'", "'a {} walked'"),
    "texts": ("['the cat sleeps', 'a dog']", "'the cat sleeps'", "iter(['the cat'])", "['the cat', '']"),
    "options": ("['cat', 'dog']", "['cat', 'the dog', '']"),
    "method": ("'pll'", "'ag'", "'chain'", "'mlm'"),
    "kernel": ("'gibbs'", "'ordered'", "'mask_predict'"),
    "name": ("'x'", "'ag'", "'pll'", "'gibbs'", "'uniform'"),
    "positions": ("[1, 2]", "['cat']", "None", "[(0, 3), 2]"),
    "free": ("'all'", "[1]", "['cat']"),
    "keep": ("['cat']", "[1]", "()"),
    "candidates": ("5", "'all'", "['cat', 'dog']", "[['cat'], ['dog', 'the']]"),
    "constraints": ("[besag.Required('cat')]", "[besag.Forbidden('dog'), besag.Length(1, 9)]", "[]"),
    "changes": ("{'cat': 'dog'}", "{'cat': None}", "()"),
    "chains": ("2",), "steps": ("2",), "levels": ("2",), "minors": ("3",), "k": ("2",), "n": ("2",), "budget": ("5",),
    "copies": ("1",), "moves": ("1",), "burn_in": ("0", "1"), "at": ("1", "0"), "seed": ("0", "1"), "samples": ("2",),
    "places": ("2", "['a']"), "width": ("2",), "length": ("3",), "most": ("3", "None"), "size": ("280",),
    "limit": ("2", "None"),
    "tokens": ("'b'", "1"), "token": ("'b'",), "own": ("'b'",), "other": ("'c'", "lm"), "x": ("'b'", "0"),
    "y": ("'b'", "0"),
    "place": ("0", "1"), "shown": ("{0: 'b'}", "{}"), "per": ("'token'", "'paradigm'", "'word'", "'pair'"),
    "how": ("'sum'", "'mean'"), "reduction": ("'sum'", "'mean'"), "base": ("'e'", "2", "10"),
    "outcomes": ("'text'", "'all'"),
    "of": ("'sentence'", "'option'", "'words'"), "key": ("0", "'b'", "slice(0, 1)"), "index": ("0", "-1"),
    "rank": ("0", "True"),
    "chain": ("0",), "engine": ("lm.engine", "table.engine"), "model": ("table.conditionals", "lm", "folder"),
    "conditionals": ("table.conditionals",), "pairs": ("[('the cat', 'the dog')]", "'contiguous'", "'random'"),
    "corpus": ("['one two three four five'] * 3",), "scores": ("lm.score(['the cat', 'a dog'])",), "word": ("'cat'",),
    "regex": ("'[a-z ]+'",), "test": ("len", "str.islower"), "least": ("1",), "of_": ("'words'",), "path": ("scratch",),
    "tokenizer": ("lm.tokenizer",), "tokenizers": ("{'a': lm.tokenizer}",),
    "law": ("'whole_word'", "'uniform'", "'span'"),
    "rate": ("0.3",), "rate_law": ("'constant'", "'linear'"), "features": ("[{'input_ids': [2, 5, 6, 3]}]",),
    "joint": ("[[0.4, 0.1], [0.1, 0.4]]",), "symbols": ("['a', 'b']", "None"), "couplings": ("[[0, 1], [1, 0]]",),
    "fields": ("[0, 1]",), "lengths": ("[1, 2, 3]", "lm.length_model(['a cat', 'dog'])"), "height": ("0.5",),
    "level": ("0.95",), "constructions": ("['ag', 'mlm']", "None"), "metric": ("'pair_nll'",),
    "construction": ("'ag'",),
    "traces": ("np.random.default_rng(0).normal(size=(2, 30))",), "categories": ("[[0, 1, 1], [0, 0, 1]]",),
    "transition": ("[[0.5, 0.5], [0.2, 0.8]]",), "states": ("[[0, 1, 1], [0, 0, 1]]", "[0]"), "when": ("1", "[1]"),
    "epsilon": ("0.25",), "recipe": ("{}", "'no.toml'", "{'data': {'train': ['no.txt']}}"), "output": ("scratch",),
    "words": ("'tokenizer'", "'whitespace'"), "prefix": ("'a'", "''"), "suffix": ("'a'", "''"), "ax": ("None",),
    "within": ("None", "'the [MASK] sleeps'"), "watch": ("None",), "record": ("None",), "resume": ("False",),
    "device": ("'cpu'", "None"), "dtype": ("None", "'float32'"), "revision": ("None",), "similarity": ("0.5", "None"),
    "measure": ("None",), "judge": ("None",), "reference": ("None",), "rows": ("()",), "strength": ("0.5",),
    "depth": ("0.5",),
    "share": ("0.3",), "energy": ("'norm'", "'raw'"), "confidence": ("0.9",), "kind": ("'line'", "'text'", "'bpe'"),
    "distances": ("(1, 2)",), "per_text": ("1",), "max_distance": ("1", "None"), "gold": ("['cat', 'dog']", "None"),
    "lm": ("lm",), "separator": ("' '",), "strict": ("False",), "end": ("''", "'.'"), "every": ("1", "None"),
    "query": ("'a'",), "weight": ("0.5", "[0.5]", "None"), "casing": ("'lower'",),
    "nbest": ("[at('besag.rescoring.lists.NBest')('a-1', (at('besag.rescoring.lists.Hypothesis')('a', 1),), 'a')]",),
    "statistics": ("None",), "against": ("()", "['mlm']"), "number": ("None", "1"), "what": ("'thing'",),
    "first": ("['the cat', 'a dog']",), "second": ("['the cat', 'a dog']",), "groups": ("None", "['a', 'b']"),
    "target": ("'cat'", "['cat', 'dog']", "None"), "label": ("None",), "layer": ("1", "None"),
    "temperature": ("0.5",), "top_k": ("3",), "top_p": ("0.9",), "beam": ("2", "None"), "sample": ("False", "100"),
}  # fmt: skip
HANDED_ON = {  # who takes the **options of a verb
    "score": "besag.scores.scoring.score", "choose": "besag.scores.scoring.score", "fill": "besag.fills.fill.fill",
    "marginals": "besag.scores.marginals_asking.marginals", "joint": "besag.joints.ag.ArnoldGokhale",
    "pairs": "besag.study.pairs.study",
    "solve": "besag.constraints.solving.solve", "augment": "besag.samplers.editing.augment.augment",
    "edit": "besag.samplers.editing.edit.edit", "invert": "besag.samplers.editing.edit.invert",
    "normalise": "besag.samplers.normalising.normalise", "dependence": "besag.diagnostics.dependence.dependence",
    "rectangles": "besag.diagnostics.rectangle.rectangles", "explain": "besag.explanation.marginalise.Marginalise",
    "sample": "besag.samplers.drawing.Drawing",
    "minimal_pairs": "besag.scores.scoring.score", "measure": "besag.diagnostics.texts.measure",
}  # fmt: skip
TOOLS = (
    "besag.diagnostics.chains.diagnose", "besag.diagnostics.mixing.approach", "besag.diagnostics.mixing.exact_mixing",
    "besag.diagnostics.mixing.hitting", "besag.diagnostics.mixing.exact_hitting", "besag.diagnostics.texts.measure",
    "besag.diagnostics.compatibility.compatibility", "besag.evaluation.minimal_pairs.read_pairs",
    "besag.training.tokenizer.report.report", "besag.training.data.sentences.sentences", "besag.scores.method",
    "besag.joints.construction", "besag.samplers.kernel", "besag.masks.law", "besag.masks.rate_named",
)  # fmt: skip
MADE = (
    "Table",
    "Ising",
    "GivenTable",
    "Word",
    "Required",
    "Forbidden",
    "Pattern",
    "Predicate",
    "Length",
    "LanguageModel",
    "MaskingCollator",
)
BEGUN = {"Table": ("random",), "Ising": ("chain",), "LengthModel": ("fit", "load"), "Inversion": ("load",)}
SUBSCRIPTS = (IndexError, KeyError)  # what Python's own sequences answer, and loops rely on


class Door(NamedTuple):
    """Something that can be called."""

    source: str
    parameters: tuple[inspect.Parameter, ...]
    may_raise: tuple[type[Exception], ...] = ()


def _door(source: str, run: Any, bound: bool = False, options: str | None = None) -> Door:
    found = list(inspect.signature(run).parameters.values())[1 if bound else 0 :]
    if options is not None:
        module, _, name = options.rpartition(".")
        known = {one.name for one in found}
        own = inspect.signature(getattr(importlib.import_module(module), name)).parameters.values()
        found += [
            one.replace(kind=one.KEYWORD_ONLY) for one in own if one.name not in known and one.kind < one.VAR_KEYWORD
        ]
    taken = [one for one in found if one.kind is not one.VAR_KEYWORD and one.name != "self"]
    return Door(source, tuple(taken), SUBSCRIPTS if source.endswith("__getitem__") else ())


def methods(one: Any) -> Iterator[tuple[str, Any]]:
    """The public methods of an object that take something."""
    for name, run in inspect.getmembers(type(one), callable):
        if name != "__getitem__" and (name.startswith("_") or not isinstance(run, Callable)):
            continue
        own = getattr(inspect.unwrap(run), "__module__", "").startswith("besag") and not inspect.ismethod(run)
        if own and len(inspect.signature(run).parameters) > 1:
            yield name, run


@cache
def doors() -> tuple[Door, ...]:
    """All of them."""
    found = [_door(f"besag.{name}", getattr(besag, name)) for name in MADE]
    found += [
        _door(f"besag.{kind}.{name}", getattr(getattr(besag, kind), name))
        for kind, all in BEGUN.items()
        for name in all
    ]
    for name in ("load", "corpus", "minimal_pairs", "overlap", "rescore", "train", "train_tokenizer"):
        found.append(_door(f"besag.{name}", getattr(besag, name), options=HANDED_ON.get(name)))
    for path in TOOLS:
        module, _, name = path.rpartition(".")
        found.append(_door(f"at({path!r})", getattr(importlib.import_module(module), name)))
    for source in ("lm", "table"):
        found += [
            _door(f"{source}.{name}", run, True, HANDED_ON.get(name)) for name, run in methods(namespace()[source])
        ]
    for name in MAKERS:
        found += [_door(f"result({name!r}).{own}", run, True, HANDED_ON.get(own)) for own, run in methods(result(name))]
    more = {"lengths": "lm.length_model(['a cat', 'dog'])", "inversion": "lm.invert('the cat sleeps')"}
    found += [
        _door(f"{source}.{own}", run, True)
        for source in more.values()
        for own, run in methods(eval(source, namespace()))
    ]
    return tuple(one for one in found if one.parameters)


def at(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@cache
def namespace() -> dict[str, Any]:
    """What the source of a call may name."""
    lm = besag.load((networks.tiny("bert"), networks.vocabulary("bert").tokenizer), name="tiny", device="cpu")
    table = besag.load(besag.Table.random(3, 3))
    return {"besag": besag, "np": np, "torch": torch, "lm": lm, "table": table, "result": result, "at": at,
            "folder": "../pool/tiny", "scratch": "made"}  # fmt: skip


def _right(one: inspect.Parameter) -> Sequence[str]:
    if one.name in RIGHT:
        return RIGHT[one.name]
    hint = str(one.annotation)
    for word, values in (
        ("bool", ("True", "False")),
        ("int", ("1", "2")),
        ("float", ("0.5",)),
        ("str", ("'the cat'",)),
    ):
        if word in hint:
            return values
    return ("None",)


@st.composite
def drawn(draw: Any) -> str:
    """The source of a call."""
    door = draw(st.sampled_from(doors()))
    wild = draw(st.sampled_from((5, 20, 60)))
    given: list[tuple[str | None, str]] = []
    for one in door.parameters:
        needed = one.default is one.empty and (bool(door.may_raise) or draw(st.integers(0, 99)) >= wild // 10)
        if not needed and draw(st.integers(0, 2)):
            continue
        value = draw(st.sampled_from(HOSTILE if draw(st.integers(0, 99)) < wild else _right(one)))
        plain = one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY) or (needed and one.kind is not one.KEYWORD_ONLY)
        given.append((None if plain and all(name is None for name, _ in given) else one.name, value))
    if draw(st.integers(0, 99)) < wild // 5 and not door.may_raise:  # nobody names what stands in brackets
        name = draw(st.sampled_from(("nonsense", "see", "text")))
        given += [(name, "1")] * (name not in dict(given))
    return f"{door.source}({', '.join(value if name is None else f'{name}={value}' for name, value in given)})"


def made(source: str) -> tuple[str | None, Any]:
    """Make the call: what is wrong with what comes of it?"""
    may_raise = SUBSCRIPTS if ".__getitem__(" in source else ()
    wrong = watching.call(lambda: eval(source, namespace()), may_raise)
    if wrong == "not a number" and source.startswith(("result('a score without", "result('no ")):
        wrong = None  # what has no status ok has no numbers
    return wrong, "wrong" if wrong else "as it should be"
