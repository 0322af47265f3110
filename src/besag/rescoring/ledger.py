"""Scores of hypotheses, each distinct text once for each model and method, kept in a file and read from it later.

    {"kind": "besag scores"}                                                     the first line
    {"model", "weights", "dtype", "method", "text", "total", "tokens", "status"}  one a text, appended as they come

`weights` is a SHA-256 of everything in the model that scores depend on: its weights, configuration and tokenizer, and
for `maskless` the scorer. With `dtype` and `method` (the method with its options) it is the key of a score, together
with the text and, for a model that is given a source, "source". So a model that was trained again in the same folder,
or is loaded in another precision, is scored again. The text is the one that was scored, after casing and full stop.
A total of −∞ is written "-Infinity", and none at all null.

A killed run leaves at most a torn last line, which is cut off, and the missing texts are scored. A file that does not
begin with the first line above is rejected and left as it is.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from besag.conditionals.adapters import digest
from besag.conditionals.contract import takes_source
from besag.conditionals.given_table import GivenTable
from besag.conditionals.network import Wrapped
from besag.conditionals.table import Exact
from besag.conditionals.wrapping import Wrapping
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
from besag.scores.regression import regression_of
from besag.scores.scoring import Scoring
from besag.training.data.cache import tokenizer_digest
from besag.vocabulary import Vocabulary

HEAD = b'{"kind": "besag scores"}\n'
FIELDS = ("model", "weights", "dtype", "method", "text", "total", "tokens", "status")
SOURCE = "source"
ABOUT_FILES = ("_name_or_path", "transformers_version")  # of a configuration: where it lies, and who wrote it
TOGETHER = 64  # rows that wait until they are written


Text: TypeAlias = str | tuple[str, str]  # what is scored, or that and its source


Key: TypeAlias = tuple[str, str, str]  # weights, dtype, method


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
    def key(self) -> Key:
        """What scores depend on besides the text. Reads every weight of the model."""
        conditionals = self.engine.conditionals
        return fingerprint(conditionals, self.method), dtype_name(conditionals.dtype), repr(self.method)

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
    check_output(path, True, "--scores")
    keys = [scorer.key for scorer in scorers]
    with ExitStack() as stack:
        stack.enter_context(Claim(path, "choose another --scores"))
        known, size = read(path)
        file = Appended(path)
        file.keep(size)
        stack.callback(file.close)
        if not size:
            file.append(HEAD)
        found = []
        for scorer, key, own in zip(scorers, keys, asked, strict=True):
            mine = known.setdefault(key, {})
            missing = [text for text in own if text not in mine]
            if note is not None:
                note(f"{scorer.name}: {len(missing):,} of {len(own):,} texts are still to be scored")
            for number, (text, kept) in enumerate(_made(scorer, missing), 1):
                file.append(_line(scorer.engine.conditionals.name, key, text, kept))
                mine[text] = kept
                if number % TOGETHER == 0:
                    file.flush()
            found.append({text: mine[scorer.reads(text)] for text in wanted})
        return found


def read(path: str) -> tuple[dict[Key, dict[Text, Kept]], int]:
    """Return what is kept, by weights, dtype and method, and how many bytes of the file are whole lines."""
    if not os.path.exists(path):
        return {}, 0
    with open(path, "rb") as file:
        content = file.read()
    if content and not content.startswith(HEAD):
        raise BesagError(
            f"{quoted(path)} holds no scores that this version of besag has kept, and is left as it is: choose another "
            "--scores"
        )
    size = content.rfind(b"\n") + 1  # what kill -9 has torn comes after it
    known: dict[Key, dict[Text, Kept]] = {}
    for place, line in enumerate(_lines(content[len(HEAD) : size], path), 2):
        key, text, kept = _row(line, f"{path}, line {place}")
        known.setdefault(key, {})[text] = kept
    return known, size


def _row(line: str, where: str) -> tuple[Key, Text, Kept]:
    row = parsed(line, where)
    try:
        if set(row) - {SOURCE} != set(FIELDS):
            raise ValueError("its fields are others")
        strings = [row[name] for name in ("weights", "dtype", "method", "text", *({SOURCE} & set(row)))]
        total = from_json(row["total"])
        if not all(isinstance(one, str) for one in strings) or not isinstance(total, float | int):
            raise ValueError("a value is of another kind")
        if not isinstance(row["tokens"], int) or row["tokens"] < 0:
            raise ValueError(f"tokens={quoted(row['tokens'])} is no number of tokens")
        kept = Kept(float(total), row["tokens"], Status(row["status"]), row["dtype"])
    except (TypeError, ValueError) as problem:
        raise BesagError(
            f"{where}: {quoted(line)} is no score of a text ({problem}): remove the line, or choose another --scores"
        ) from problem
    text = (row["text"], row[SOURCE]) if SOURCE in row else row["text"]
    return (row["weights"], row["dtype"], row["method"]), text, kept


def fingerprint(conditionals: Any, method: Method) -> str:
    """Return a SHA-256 of everything in a model that its scores by this method depend on."""
    found = hashlib.sha256(_state(conditionals, conditionals.name).encode())
    if method.name == "maskless":
        scorer = regression_of(conditionals)
        found.update(scorer.view.encode() + scorer.weight.tobytes())
    return found.hexdigest()


def _state(value: Any, name: str) -> str:
    """A value that a model consists of, as text: of tensors and networks a digest."""
    if isinstance(value, torch.nn.Module):
        tensors = dict(value.state_dict())
        for path, layer in value.named_modules():  # int8 layers hold theirs as plain attributes
            held = {f"{path}.{key}": getattr(layer, key, None) for key in ("weight", "bias")}
            tensors |= {key: tensor for key, tensor in held.items() if isinstance(tensor, torch.Tensor)}
        whole: Any = value.config
        config = {key: one for key, one in whole.to_dict().items() if key not in ABOUT_FILES}
        return f"{digest(tensors)}{json.dumps(config, sort_keys=True, default=str)}"
    if isinstance(value, torch.Tensor):
        return digest({"": value})
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Vocabulary):
        return tokenizer_digest(value)
    if value is None or isinstance(value, str | int | float | torch.device | torch.dtype):
        return repr(value)
    if isinstance(value, Mapping):
        return repr([(_state(key, name), _state(one, name)) for key, one in value.items()])
    if isinstance(value, list | tuple):
        return repr([_state(one, name) for one in value])
    if isinstance(value, Wrapped):  # a network: all else follows from these
        return _state([value.model, value.vocabulary, getattr(value, "adapter", None)], name)
    if isinstance(value, Exact | GivenTable | Wrapping):
        own = {key: one for key, one in vars(value).items() if key not in ("name", "device")}
        return type(value).__name__ + _state(own, name)
    raise BesagError(
        f"the scores of {quoted(name)} cannot be kept: no fingerprint of a {type(value).__name__} is known, so that a "
        "change of the model would go unnoticed. Rescore it without --scores"
    )


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


def _line(model: str, key: Key, text: Text, kept: Kept) -> bytes:
    weights, dtype, method = key
    plain, source = (text, {}) if isinstance(text, str) else (text[0], {SOURCE: text[1]})
    values = (model, weights, dtype, method, plain, kept.total, kept.tokens, kept.status)
    return json_line({**dict(zip(FIELDS, values, strict=True)), **source}).encode("utf-8")
