"""Masked marginals, asked of a model: every place is hidden in a copy of its own, and its whole row is kept.

Of a row only the wanted columns leave the device, with the own token's value, its rank and the row's entropy, all from
one pass. Texts longer than the model are read in windows, as by `pll`. Knows candidates and what is asked. Refuses
causal models, and words that are not one token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Bools, Ints
from besag.batches import NotFinite
from besag.checks import checked, is_whole
from besag.conditionals.contract import Conditionals, gives_zeros, require_both_sides
from besag.engine import Engine, Idle, Plan
from besag.errors import BesagError, quoted
from besag.joints.candidates import Kind, outcome_ids
from besag.places.places import find
from besag.places.positions import Position
from besag.places.reading import MASK
from besag.places.tokens import token_ids
from besag.reductions import Chunk, Entropy
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.scores.beside import Beside, Contexts, contexts
from besag.scores.marginals import WHOLE, Marginals
from besag.scores.passage import BLOCK, Passage, status_of
from besag.scores.score import parse_base
from besag.scores.scoring import batches
from besag.vocabulary import Encoded, Vocabulary

Named: TypeAlias = Sequence[str | int]  # words of one token, or token ids

NUMBERS = 2**24  # of rows in one request: what is fetched at a time


@checked
def marginals(
    engine: Engine,
    texts: str | Iterable[str | Idle],
    candidates: Named | None = None,
    positions: Sequence[Position] | None = None,
    *,
    outcomes: Kind = "all",
    prefix: Contexts = "",
    suffix: Contexts = "",
    separator: str = " ",
    base: str | float = "e",
) -> Marginals | list[Marginals] | Iterator[Marginals]:
    """`Marginals` of a text, a list for a list, and for any other iterable an iterator that streams, in order."""
    conditionals = engine.conditionals
    require_both_sides(conditionals, "a table of masked marginals")
    if positions is not None and not isinstance(texts, str):
        raise BesagError(f"positions={positions!r} name places of one text, and here are several: ask for them in turn")
    asking = _Asking(conditionals, _named(candidates), positions, outcomes, parse_base(base))
    total = 1 if isinstance(texts, str) else len(texts) if isinstance(texts, list | tuple) else None
    around = Beside("prefix", prefix, total), Beside("suffix", suffix, total)
    found = asking.run(engine, [texts] if isinstance(texts, str) else texts, around, separator, total)
    if isinstance(texts, str):
        [one] = found
        return one
    return list(found) if isinstance(texts, list | tuple) else found


@dataclass(frozen=True, eq=False)  # the same only as itself: all texts of a call share one, and are pooled by it
class Columns:
    """Of a row: log p of some tokens (all: None; those that each ask names: "named"), and the own token's log p, rank.

    The own token is the first that an ask names.
    """

    ids: Tensor | str | None

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        logits = chunk.target_logits()  # (m, 1 + k)
        normaliser = chunk.normaliser[chunk.which]
        rank = 1 + (chunk.per_ask(chunk.logits) > logits[:, :1]).sum(-1)
        kept = {"own": logits[:, 0] - normaliser, "rank": rank}
        if isinstance(self.ids, str):
            return {**kept, "columns": logits[:, 1:] - normaliser[:, None]}
        rows = chunk.logits if self.ids is None else chunk.logits.index_select(-1, self.ids)
        return {**kept, "columns": chunk.per_ask(rows - chunk.normaliser[:, None])}


@dataclass(frozen=True)
class _Asking:
    """What one call asks of every text."""

    conditionals: Conditionals
    candidates: tuple[str | int, ...] | None
    positions: Sequence[Position] | None
    outcomes: Kind
    base: float

    def run(
        self, engine: Engine, texts: Iterable[str | Idle], around: Sequence[Beside], separator: str, total: int | None
    ) -> Iterator[Marginals]:
        yield from engine.run(self._plans(texts, around, separator), total)
        for beside in around:
            beside.finish()

    def _plans(
        self, texts: Iterable[str | Idle], around: Sequence[Beside], separator: str
    ) -> Iterator[Plan[Marginals] | Idle]:
        vocabulary = self.conditionals.vocabulary
        allowed = outcome_ids(self.conditionals, self.outcomes)
        kept: Tensor | str | None = None
        if self.candidates is not None:
            kept = "named"
        elif len(allowed) < self.conditionals.width:
            kept = torch.from_numpy(allowed).to(self.conditionals.device)
        columns = Columns(kept)
        for batch in batches(texts):
            if isinstance(batch, Idle):
                yield batch
                continue
            masked = [text.replace(MASK, vocabulary.mask_token or MASK) for text in batch]
            (prefix, suffix), lacking = contexts(around, len(batch))
            read = vocabulary.encode(masked, prefix=prefix, suffix=suffix, separator=separator, lenient=True)
            for place, encoded in enumerate(read):
                yield self._plan(encoded, allowed, columns, Status.NO_CONTEXT if place in lacking else None)

    def _plan(self, encoded: Encoded, allowed: Ints, columns: Columns, status: Status | None = None) -> Plan[Marginals]:
        places, status = self._places(encoded), status or status_of(encoded, self.conditionals.vocabulary)
        if status != "ok":
            places = places[:0]
        own = encoded.ids[places]  # (n,)
        if self.candidates is None:
            named, outcomes = own[:, None], np.broadcast_to(allowed, (len(places), len(allowed)))
        else:
            outcomes = _read(self.conditionals.vocabulary, encoded, places, self.candidates, allowed)
            named = np.column_stack([own, outcomes])  # (n, 1 + k)
        hidden = own == self.conditionals.vocabulary.mask_id
        named[:, 0] = np.where(hidden, 0, own)  # the mask may stand outside the head
        passage, answers = None, _nothing(outcomes.shape[1])
        if len(places):
            passage = Passage([replace(encoded, places=places)], self.conditionals, (columns, Entropy()))
            try:
                answers = yield from _each(passage, named, outcomes.shape[1])
            except NotFinite:
                status = Status.NOT_FINITE
        if len(places) and (status != "ok" or not self._finite(answers, hidden)):
            return (yield from self._plan(encoded, allowed, columns, Status.NOT_FINITE))
        scale = 1 / np.log(self.base)
        return Marginals(
            encoded=encoded,
            places=places,
            log_probs=answers["columns"] if self.base == np.e else answers["columns"] * scale,
            outcomes=outcomes,
            own=np.where(hidden, np.nan, answers["own"].astype(np.float64) * scale),
            rank=np.where(hidden, 0, answers["rank"]),
            entropy=answers["entropy"].astype(np.float64) * scale,
            candidates=None if self.candidates is None else tuple(map(self._name, self.candidates)),
            normalised=WHOLE,
            vocabulary=self.conditionals.vocabulary,
            base=self.base,
            specials=passage.specials if passage else self.conditionals.vocabulary.special_text,
            model=self.conditionals.name,
            dtype=dtype_name(self.conditionals.dtype),
            status=status,
        )

    def _name(self, candidate: str | int) -> str:
        return candidate if isinstance(candidate, str) else self.conditionals.vocabulary.token(int(candidate))

    def _places(self, encoded: Encoded) -> Ints:
        """(n,) in the order of the text."""
        if self.positions is None or not encoded.decodable:
            return encoded.places
        found = find(self.conditionals.vocabulary, encoded.text, self.positions, needs_context=False)
        return np.array(sorted(found.positions), np.int64)

    def _finite(self, answers: Mapping[str, Any], hidden: Bools) -> bool:
        """Has the text's own token a probability, and each that was named? Of the others some may be masked."""
        if gives_zeros(self.conditionals):
            return True
        asked = [answers["own"][~hidden], *([] if self.candidates is None else [answers["columns"]])]
        return all(bool(np.isfinite(one).all()) for one in asked)


def _each(passage: Passage, named: Ints, width: int) -> Plan[dict[str, Any]]:
    """Every place in a copy of its own, as many at a time as are worth fetching, written into one table."""
    block = max(1, min(BLOCK // passage.ids.size, NUMBERS // max(1, width)))
    everywhere, found = np.arange(passage.size), dict[str, Any]()
    for start in range(0, passage.size, block):
        index = everywhere[start : start + block]
        answers = yield from passage.ask(index[:, None] == everywhere, index - start, index, target=named[index][None])
        for key, values in answers.items():  # (1, b, …)
            if len(index) == passage.size:
                found[key] = values[0]
            else:
                whole = found.setdefault(key, np.empty((passage.size, *values.shape[2:]), values.dtype))
                whole[index] = values[0]
    return found


def _nothing(width: int) -> dict[str, Any]:
    return {"columns": np.empty((0, width)), "own": np.empty(0), "rank": np.empty(0, int), "entropy": np.empty(0)}


def _named(candidates: Named | None) -> tuple[str | int, ...] | None:
    if candidates is None:
        return None
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Sequence | np.ndarray) or not len(candidates):
        right = "give a list of words or token ids, or None for the vocabulary"
        raise BesagError(f"candidates={quoted(candidates)}: {right}")
    for one in candidates:
        if not isinstance(one, str) and not (is_whole(one, 0) and one < 2**31):
            raise BesagError(f"candidates={quoted(candidates)}: {quoted(one)} is neither a word nor the id of a token")
    return tuple(candidates)


def _read(
    vocabulary: Vocabulary, encoded: Encoded, places: Ints, candidates: tuple[str | int, ...], allowed: Ints
) -> Ints:
    """(n, k) the one token that each candidate is at each place."""
    read = np.empty((len(places), len(candidates)), np.int64)
    words = [one for one in candidates if isinstance(one, str)]
    found = _words(vocabulary, encoded, places, words)  # (n, words)
    named = np.array([isinstance(one, str) for one in candidates])
    read[:, named] = found
    read[:, ~named] = [one for one in candidates if not isinstance(one, str)]
    for row, ids in enumerate(read.tolist()):
        for column, token in enumerate(ids):
            if token in ids[:column]:
                raise BesagError(
                    f"the candidates {candidates[ids.index(token)]!r} and {candidates[column]!r} are the same token at "
                    f"token {places[row]} of the text, {vocabulary.token(token)!r}: name each once"
                )
    strange = np.argwhere(~np.isin(read, allowed))
    if len(strange):
        raise BesagError(
            f"the candidate {candidates[strange[0, 1]]!r} may not stand in a text: the model has no such token, or it "
            "is a special one, which outcomes='all' allows"
        )
    return read


def _words(vocabulary: Vocabulary, encoded: Encoded, places: Ints, words: list[str]) -> Ints:
    """(n, words) each word as it reads at each place; where that is several tokens, as it reads at the others.

    "dog" in place of a full stop would be glued to the word before, and is "▁dog" there as everywhere.
    """
    read = np.full((len(places), len(words)), -1)
    refusals: dict[int, BesagError] = {}
    for row, place in enumerate(places.tolist()):
        try:
            read[row] = token_ids(vocabulary, encoded, place, words)
        except BesagError:  # one of them, so each for itself
            for column, word in enumerate(words):
                try:
                    [read[row, column]] = token_ids(vocabulary, encoded, place, [word])
                except BesagError as refusal:
                    refusals.setdefault(column, refusal)
    for column, why in refusals.items():
        known = read[read[:, column] >= 0, column]
        if not len(known):
            raise why
        tokens, counts = np.unique(known, return_counts=True)
        read[read[:, column] < 0, column] = tokens[counts.argmax()]
    return read
