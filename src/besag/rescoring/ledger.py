"""Scores of hypotheses, each distinct text once for each model and method, kept in a file so that none is made twice.

A row of the file is {"model", "method", "dtype", "text", "total", "tokens", "status"}, one JSON object a line, appended
as scores come; of a model that is given a source, with that "source" too. Whoever was killed leaves at most a torn last
line, which is cut off, and what is missing is scored: so a run goes on by being started again, and weights are tuned
again without a model being asked. The text is the one that was scored, after casing and full stop. Knows engines and
methods; refuses to know lists.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple, TypeAlias

from besag.conditionals.contract import takes_source
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.files.appending import Appended
from besag.files.cells import json_line
from besag.files.claim import Claim
from besag.files.rows import parsed
from besag.files.writing import check_output
from besag.results.data import from_json
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.scores import Method
from besag.scores.scoring import Scoring

FIELDS = ("model", "method", "dtype", "text", "total", "tokens", "status")
SOURCE = "source"
TOGETHER = 64  # rows that wait until they are written


Text: TypeAlias = str | tuple[str, str]  # what is scored, or that and its source


class Kept(NamedTuple):
    total: float  # nan where there is none
    tokens: int
    status: Status
    dtype: str


class Scorer(NamedTuple):
    """A model with a method, and what both are called in a table."""

    name: str
    engine: Engine
    method: Method

    @property
    def key(self) -> tuple[str, str]:
        """Which model and method: the method with its options, as it writes itself."""
        return self.engine.conditionals.name, repr(self.method)

    def reads(self, text: Text) -> Text:
        """What of it changes the score: the source only where the model is given one."""
        return text if isinstance(text, str) or takes_source(self.engine.conditionals) else text[0]


def scores(
    scorers: Sequence[Scorer], texts: Sequence[Text], path: str | None = None, note: Callable[[str], None] | None = None
) -> list[dict[Text, Kept]]:
    """Of each scorer, text → score; those that `path` holds are read, the others are made and added to it."""
    wanted = list(dict.fromkeys(texts))
    asked = [list(dict.fromkeys(map(scorer.reads, wanted))) for scorer in scorers]
    if path is None:
        made = [dict(_made(scorer, own)) for scorer, own in zip(scorers, asked, strict=True)]
        return [{text: one[scorer.reads(text)] for text in wanted} for scorer, one in zip(scorers, made, strict=True)]
    keys = [scorer.key for scorer in scorers]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise BesagError(
            f"two models are called {quoted(twice[0])}: in one --scores their scores could not be told apart"
        )
    check_output(path, True, "--scores")
    with ExitStack() as stack:
        stack.enter_context(Claim(path, "choose another --scores"))
        known, size = read(path)
        file = Appended(path)
        file.keep(size)
        stack.callback(file.close)
        found = []
        for scorer, own in zip(scorers, asked, strict=True):
            mine = known.setdefault(scorer.key, {})
            missing = [text for text in own if text not in mine]
            if note is not None:
                note(f"{scorer.name}: {len(missing):,} of {len(own):,} texts are still to be scored")
            for number, (text, kept) in enumerate(_made(scorer, missing), 1):
                file.append(_line(scorer, text, kept))
                mine[text] = kept
                if number % TOGETHER == 0:
                    file.flush()
            found.append({text: mine[scorer.reads(text)] for text in wanted})
        return found


def read(path: str) -> tuple[dict[tuple[str, str], dict[Text, Kept]], int]:
    """What is kept, by model and method, and how many bytes of the file are whole lines."""
    if not os.path.exists(path):
        return {}, 0
    with open(path, "rb") as file:
        content = file.read()
    size = content.rfind(b"\n") + 1  # what kill -9 has torn comes after it
    known: dict[tuple[str, str], dict[Text, Kept]] = {}
    for place, line in enumerate(_lines(content[:size], path), 1):
        row = parsed(line, f"{path}, line {place}")
        if not isinstance(row, dict) or set(row) - {SOURCE} != set(FIELDS):
            raise BesagError(f"{path}, line {place}: {quoted(line)} is no score of a text: choose another --scores")
        kept = Kept(float(from_json(row["total"])), int(row["tokens"]), Status(row["status"]), row["dtype"])
        text = (row["text"], row[SOURCE]) if SOURCE in row else row["text"]
        known.setdefault((row["model"], row["method"]), {})[text] = kept
    return known, size


def _lines(content: bytes, path: str) -> list[str]:
    try:
        return content.decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError:
        raise BesagError(f"{path} is not UTF-8, and so no file of scores: choose another --scores") from None


def _made(scorer: Scorer, texts: Sequence[Text]) -> Iterator[tuple[Text, Kept]]:
    if not texts:
        return
    engine, conditionals = scorer.engine, scorer.engine.conditionals
    sources = [text[1] for text in texts if not isinstance(text, str)] or None
    how = Scoring(
        conditionals, scorer.method, "tokenizer", "", "", " ", math.e, False, False, None, False, sources=sources
    )
    dtype = dtype_name(conditionals.dtype)
    plain = [text if isinstance(text, str) else text[0] for text in texts]
    for text, score in zip(texts, how.run(engine, plain, len(texts)), strict=True):
        yield text, Kept(score.total, len(score), score.status, dtype)


def _line(scorer: Scorer, text: Text, kept: Kept) -> bytes:
    model, method = scorer.key
    total = kept.total if math.isfinite(kept.total) else None
    plain, source = (text, {}) if isinstance(text, str) else (text[0], {SOURCE: text[1]})
    values = (model, method, kept.dtype, plain, total, kept.tokens, kept.status)
    return json_line({**dict(zip(FIELDS, values, strict=True)), **source}).encode("utf-8")
