"""Random command lines, made from what the commands say of themselves: a new command or option is covered at once.

Half of the values are as they should be, so that commands get to work; the others are hostile.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import typer
from hypothesis import strategies as st
from tests.fuzz.pool import FILES, MODELS

from besag.cli import app
from besag.cli.catalogue import entries

HOSTILE_NUMBERS = (
    "0", "-1", "1e9", "1000000000", str(10**20), str(10**30), "9" * 4301, "nan", "inf", "-inf", "1e-300", "1e400", "",
    "0x10", "1_0", "²", "1.5", "a", "-0.0", "true",
)  # fmt: skip
HOSTILE_TEXTS = (
    "", " ", "\n", "\0", "a\0b", "\x1b[31m", "[/b]", "[MASK]", "[CLS] [SEP]", "{}", "%s", "=1+1", "a" * 5000,
    "the " * 300,
    "ﷺ", "é", "\u200b", "\U0001f600", "\udc80", "\ud800", "-", "--", "../..", "a=b", "=", ".", "[[[[", "(" * 3000,
    "(a+)+$",
    "None", "9" * 5000, "0:5", "5:0", "-1", "x..y", "the" * 3000,
)  # fmt: skip
TEXTS = (
    "the cat sleeps.", "the [MASK] sleeps.", "the [MASK] [MASK] walked", "a {} walked", "[MASK] [MASK] [MASK]",
    "it rained",
)  # fmt: skip
OUTPUTS = ("out.tsv", "out.csv", "out.jsonl", "out.parquet", "out.svg", "out.png", "out", "no/such/out.tsv", "folder",
           ".",
           "x" * 300, "a\0b", "/dev/null", "out.tsv.gz", "")  # fmt: skip
TRAINING = ("schedule.steps=2", "schedule.steps=0", "schedule.steps=x", "masking.rate=nan", "masking.rate=2", "a.b=1",
            "a",
            "model.config={}", "optimizer.name=none", "objective.name=compatible", "masking.law=span", "run.seed=-1",
            "data.batch_tokens=0", f"run.seed={'9' * 30}", "data.train=[]", "tokenizer.size=1", "=")  # fmt: skip
TINY = {"chains": "2", "steps": "2", "length": "3", "budget": "5", "minors": "3", "candidates": "4", "copies": "1",
        "rounds": "1", "limit": "2", "k": "2", "beam": "2", "size": "280", "minutes": "0.01", "per_text": "1",
        "every": "1",
        "top_k": "5", "top": "2", "sample": "2", "batch_tokens": "64", "max_length": "8"}  # fmt: skip
SCORING = ("score", "choose", "eval")  # commands whose methods are scores


class Parameter(NamedTuple):
    """An argument or an option of a command."""

    name: str
    flags: tuple[str, ...]  # none: an argument
    kind: Any
    words: tuple[str, ...]
    several: bool
    needed: bool


class Command(NamedTuple):
    path: tuple[str, ...]
    parameters: tuple[Parameter, ...]


def commands(group: typer.Typer = app, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Return all commands except the servers, which only a signal ends: tests/service is hostile to them."""
    for one in group.registered_commands:
        run: Any = one.callback
        if run.__name__ in ("serve", "explore"):
            continue
        found = inspect.signature(run).parameters.values()
        yield Command((*path, one.name or run.__name__), tuple(_parameter(run, given) for given in found))
    for inner in group.registered_groups:
        instance: Any = inner.typer_instance
        yield from commands(instance, (*path, instance.info.name))


def _parameter(run: Any, given: inspect.Parameter) -> Parameter:
    hint = given.annotation
    kind, info = get_args(get_type_hints(run, include_extras=True)[given.name] if isinstance(hint, str) else hint)[:2]
    several, words = False, ()
    for part in (kind, *get_args(kind)):
        several |= get_origin(part) is list
        words = get_args(part) if get_origin(part) is Literal else words
    plain = next((one for one in (bool, int, float) if one in (kind, *get_args(kind))), str)
    said = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str) and one.startswith("-")]
    flags = tuple(flag for one in said for flag in one.split("/"))
    return Parameter(given.name, flags, plain, words, several, given.default is inspect.Parameter.empty)


NAMES = sorted({one.name for one in entries()})
SETTINGS = sorted({f"{option.name}={value}" for one in entries() for option in one.options
                   for value in (option.default, "0", "-1", "nan", "9" * 30, "x", "[1, 2]", "none")
                   if option.name not in ("steps", "rounds", "samples", "levels")})  # fmt: skip


class Values(NamedTuple):
    """What is written for a parameter: what suits, and what does not."""

    right: Sequence[str]
    wrong: Sequence[str]


SPECIAL: dict[str, Values] = {
    "model": Values(["../pool/tiny"], MODELS),
    "folders": Values(["../pool/tiny"], MODELS),
    "name": Values([*NAMES, "../pool/tiny"], MODELS),
    "names": Values(NAMES, HOSTILE_TEXTS),
    "device": Values(["cpu"], ("cuda", "cuda:99", "x", "")),
    "dtype": Values(["float32", "bfloat16"], ("float16", "int8", "x", "")),
    "output": Values(OUTPUTS[:4], OUTPUTS),
    "plot": Values(OUTPUTS[4:6], OUTPUTS),
    "record": Values(OUTPUTS[2:3], OUTPUTS),
    "report": Values(OUTPUTS[:3], OUTPUTS),
    "path": Values(["new.toml"], OUTPUTS),
    "config": Values(["../pool/options.toml"], [one for one in FILES if one.endswith("toml")]),
    "recipe": Values(["../pool/recipe.toml"], FILES),
    "column": Values(["text", "1"], ("2", "0", "a.0.b", "id", *HOSTILE_TEXTS)),
    "field": Values(["text"], ("2", "0", "a.0.b", "id", *HOSTILE_TEXTS)),
    "good": Values(["good", "sentence_good"], HOSTILE_TEXTS),
    "bad": Values(["bad", "sentence_bad"], HOSTILE_TEXTS),
    "candidates": Values(["4", "all", "the,cat"], HOSTILE_NUMBERS),
    "pairs": Values(["random", "contiguous", "distance"], HOSTILE_TEXTS),
    "distances": Values(["1", "1,2", "1-2"], HOSTILE_NUMBERS),
    "position": Values(["1", "2", "cat", "the"], HOSTILE_TEXTS),
    "free": Values(["1", "2", "cat", "the"], HOSTILE_TEXTS),
    "keep": Values(["1", "2", "cat", "the"], HOSTILE_TEXTS),
    "changes": Values(["cat=dog", "the=a", "cat="], HOSTILE_TEXTS),
    "characters": Values(["1-50", "5"], HOSTILE_NUMBERS),
    "revision": Values(["main"], ("", "\0")),
    "file": Values(FILES[:4], FILES),
    "files": Values(FILES[:6], FILES),
    "input": Values((*FILES[:4], *TEXTS), (*FILES, *HOSTILE_TEXTS)),
    "train": Values(FILES[:4], FILES),
    "against": Values(FILES[:4], FILES),
    "lengths": Values(FILES[:2], FILES),
    "runs": Values(["../pool"], FILES),
    "morphemes": Values(FILES[:2], FILES),
}


def _values(command: Command, one: Parameter) -> Values:
    if one.words:
        return Values(one.words, ("", "nonsense", "\udc80"))
    if one.kind in (int, float):
        return Values([TINY[one.name]] if one.name in TINY else ["1", "2"], HOSTILE_NUMBERS)
    if one.name in ("method", "kernel", "law"):
        kinds = {
            "method": ("score",) if command.path[0] in SCORING else ("joint",),
            "kernel": ("kernel",),
            "law": ("mask",),
        }
        return Values([entry.name for entry in entries() if entry.kind in kinds[one.name]], [*NAMES, *HOSTILE_TEXTS])
    if command.path[0] == "lab" and one.name == "names":  # others take seconds each
        return Values(["stutter", "star_order"], HOSTILE_TEXTS)
    if one.name == "set_":
        return Values(TRAINING[:2], TRAINING) if command.path[0] == "train" else Values(SETTINGS, HOSTILE_TEXTS)
    if one.name == "text" and one.several:
        return Values(FILES[:4], FILES)
    return SPECIAL.get(one.name, Values(TEXTS, HOSTILE_TEXTS))


@st.composite
def lines(draw: Any) -> list[str]:
    """The words after `besag`."""
    command = draw(st.sampled_from(ALL))
    wild = draw(st.sampled_from((2, 10, 40)))  # how much of it is hostile, in percent
    given: list[str] = []
    arguments: list[str] = []
    for one in command.parameters:
        # without a model the embedded one would answer, and without steps a chain would take its time
        if not (one.needed or not one.flags or one.name in ("model", "steps")) and draw(st.integers(0, 5)):
            continue
        if one.kind is bool:
            given.append(draw(st.sampled_from(one.flags)))
            continue
        for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3))) if one.several else 1):
            values = _values(command, one)
            value = draw(st.sampled_from(values.wrong if draw(st.integers(0, 99)) < wild else values.right))
            if one.flags:
                given += [one.flags[0], value]
            else:
                arguments.append(value)
    if draw(st.integers(0, 99)) < wild // 10:
        given.append(draw(st.sampled_from(("--nonsense", "--help", "-", "--", "\udc80", "--limit"))))
    return [*command.path, *given, *(["--"] if any(one.startswith("-") for one in arguments) else []), *arguments]


ALL = tuple(commands())
