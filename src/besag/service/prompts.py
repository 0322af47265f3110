"""Prompts as a harness sends them, texts or token ids, and what a method says of each of their tokens.

Ids come without the special tokens that a model reads around a text; these are put there. The token that a harness sets
before an empty context ([CLS], or the end token where that has the id 0) stands for the beginning of the text: it is
shown as every text shows it, is not scored, and its entry is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals
from besag.engine import Plan
from besag.errors import BesagError, quoted
from besag.reductions import Target, Top
from besag.results.status import Status
from besag.scores import Method
from besag.scores.passage import Passage, status_of
from besag.vocabulary import Encoded, Vocabulary

LEAST = -1e9  # stands for −∞, which JSON cannot write and no harness can add up


@dataclass(frozen=True)
class Scored:
    """A prompt of n tokens, and a number for each; None where nothing was asked."""

    ids: list[int]
    tokens: list[str]
    starts: list[int]  # where each token begins in `text`
    text: str
    log_probs: list[float | None]
    tops: list[dict[str, float] | None]


@dataclass(frozen=True)
class Prompt:
    """`lead` tokens stand for the beginning; the rest is `encoded` and scored."""

    lead: list[int]
    encoded: Encoded


def beginnings(vocabulary: Vocabulary) -> tuple[list[int], list[int], frozenset[int]]:
    """The special tokens before and after a text, and those that stand for its beginning in a prompt."""
    [example] = vocabulary.encode([vocabulary.mask_token or "a"])
    inside = np.flatnonzero(~example.special)
    before, after = example.ids[: inside[0]].tolist(), example.ids[inside[-1] + 1 :].tolist()
    tokenizer = vocabulary.tokenizer
    named = (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id, tokenizer.sep_token_id)
    return before, after, frozenset(one for one in named if one is not None) - {vocabulary.mask_id}


def read(conditionals: Conditionals, prompt: str | Sequence[int]) -> Prompt:
    """A text as its tokenizer reads it, or ids as they are."""
    vocabulary = conditionals.vocabulary
    before, after, begin = beginnings(vocabulary)
    if isinstance(prompt, str):
        for token in begin:
            written = vocabulary.token(token)
            if prompt.startswith(written):
                [encoded] = vocabulary.encode([prompt.removeprefix(written).lstrip()])
                return Prompt([token], encoded)
        return Prompt([], vocabulary.encode([prompt])[0])
    for one in prompt:
        if not 0 <= one < conditionals.width:
            raise BesagError(f"{quoted(one)} is no token id of {conditionals.name!r}: they go from 0 to "
                             f"{conditionals.width - 1:,}")  # fmt: skip
    lead = [*prompt[:1]] if prompt and prompt[0] in begin else []
    return Prompt(lead, _encoded(vocabulary, before, list(prompt[len(lead) :]), after))


def _encoded(vocabulary: Vocabulary, before: list[int], ids: list[int], after: list[int]) -> Encoded:
    """Ids as a text: each token written by itself, one after the other."""
    tokens = [vocabulary.token(one) for one in ids]
    ends = np.cumsum([0, *map(len, tokens)])
    offsets = np.stack([ends[:-1], ends[1:]], 1)
    around = [np.zeros((len(part), 2), np.int64) for part in (before, after)]
    whole = np.array([*before, *ids, *after], np.int64)
    special = np.r_[np.ones(len(before), bool), np.zeros(len(ids), bool), np.ones(len(after), bool)]
    names = [*map(vocabulary.token, before), *tokens, *map(vocabulary.token, after)]
    return Encoded(
        text="".join(tokens),
        span=(0, int(ends[-1])),
        ids=whole,
        tokens=tuple(names),
        offsets=np.concatenate([around[0], offsets, around[1]]),
        words=np.where(special, -1, np.cumsum(~special) - 1),
        special=special,
        places=np.flatnonzero(~special),
        unknown=sum(one == vocabulary.unknown_id for one in ids),
        word_policy="given",
    )


def plan(conditionals: Conditionals, method: Method, prompt: Prompt, k: int) -> Plan[Scored]:
    """Score every token of a prompt, with the k likeliest at its place where the method asks each place once."""
    encoded, vocabulary = prompt.encoded, conditionals.vocabulary
    if not len(encoded.places):
        return _folded(vocabulary, prompt, np.empty(0), None, k)
    if status_of(encoded, vocabulary) is Status.UNDECODABLE:
        raise BesagError(f"{quoted(encoded.text)} cannot be scored: {Status.UNDECODABLE.sentence}")
    if vocabulary.mask_id in encoded.ids[encoded.places].tolist():
        raise BesagError(f"{quoted(encoded.text)} cannot be scored: {Status.MASK.sentence}")
    wanted = (Target(), Top(k)) if k and method.ranks else (Target(),)
    parts = yield from method.plan(Passage([encoded], conditionals, wanted).started())
    top = None if parts.top is None else (parts.top[0][0], parts.top[1][0])
    return _folded(vocabulary, prompt, parts.log_probs[0], top, k)


def _folded(
    vocabulary: Vocabulary, prompt: Prompt, log_probs: np.ndarray, top: tuple[Ints, np.ndarray] | None, k: int
) -> Scored:
    encoded, places = prompt.encoded, prompt.encoded.places
    lead = [vocabulary.token(one) for one in prompt.lead]
    tokens = [encoded.tokens[place] for place in places]
    numbers = [max(float(one), LEAST) for one in log_probs]
    tops: list[dict[str, float] | None] = []
    for place, (token, number) in enumerate(zip(tokens, numbers, strict=True)):
        likeliest = [] if top is None else zip(top[0][place].tolist(), top[1][place].tolist(), strict=True)
        found = {vocabulary.token(one): max(float(value), LEAST) for one, value in likeliest}
        tops.append({**found, token: number} if k else None)
    shift = sum(map(len, lead))
    return Scored(
        ids=[*prompt.lead, *(int(encoded.ids[place]) for place in places)],
        tokens=[*lead, *tokens],
        starts=[0] * len(lead) + [shift + int(encoded.offsets[place, 0]) for place in places],
        text="".join(lead) + encoded.text,
        log_probs=[*[None] * len(lead), *numbers],
        tops=[*[None] * len(lead), *tops],
    )
