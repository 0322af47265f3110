"""Where words begin, from token ids alone: for tokens whose text is no longer at hand.

Words are the tokenizer's own: what its pre-tokenizer cuts a text into. Tokens are asked what text they spell, and the
pre-tokenizer cuts that text again. This is exact for every fast tokenizer, byte-level ones with and without trimmed
offsets among them, as long as the tokens spell text that comes out as the same characters; the unknown token spells a
letter. Where it does not (the ids were cut within a character), and for slow tokenizers, the marks on the tokens
decide: "##" continues a word, "▁" and "Ġ" begin one, "</w>" ends one. Without any such marks each token is a word.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import accumulate, chain, takewhile
from typing import Any

import numpy as np

from besag.arrays import Bools, Ints
from besag.vocabulary import Vocabulary

BEGINS = ("▁", "Ġ")
CONTINUES = "##"
BYTE = re.compile("<0x[0-9A-F]{2}>")


class Words:
    """The words of one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.backend: Any = tokenizer.backend_tokenizer if tokenizer.is_fast else None
        self.splits: bool = tokenizer.is_fast and Vocabulary(tokenizer).has_words  # into words, before the model does

    def begins(self, ids: Ints, special: Bools) -> Bools:
        """(n,) does a word begin at each token? Special tokens stand between words."""
        tokens: list[str] = self.tokenizer.convert_ids_to_tokens(ids.tolist())
        begins = np.append(True, special[:-1])[: len(ids)] & ~special
        apart = special | np.isin(ids, self._added)  # a token that was added to the vocabulary is a word of its own
        edges = np.flatnonzero(np.diff(apart.astype(np.int8), prepend=1, append=1))
        for first, last in edges.reshape(-1, 2).tolist():
            begins[first:last] = self._stretch(tokens[first:last])
        return begins | (apart & ~special)

    def numbers(self, ids: Ints, special: Bools) -> Ints:
        """(n,) 0, 1, 2, … a word; −1 at special tokens."""
        return np.where(special, -1, np.cumsum(self.begins(ids, special)) - 1)

    def _stretch(self, tokens: list[str]) -> Bools:
        if not self._continues and self.splits:
            spelled = self._spelled(tokens)
            if spelled is not None:
                return spelled
        if self._continues:
            new = [not token.startswith(self._continues) for token in tokens]
        elif self._ends:
            new = [True, *(token.endswith(self._ends) for token in tokens[:-1])]
        else:
            new = [not self._marked or token.startswith(BEGINS) for token in tokens]
        new[0] = True
        return np.array(new)

    def _spelled(self, tokens: list[str]) -> Bools | None:
        """The pre-tokenizer's cuts of the text these tokens spell; None if it does not come out as the same letters."""
        parts = self._letters(tokens)
        decoder = self.backend.decoder
        text = decoder.decode(parts) if decoder is not None else " ".join(parts)
        pieces = [piece for piece, _ in self.backend.pre_tokenizer.pre_tokenize_str(text)]
        written, cut = "".join(parts), "".join(pieces)
        # the mark of a first word: given to a stretch that begins within a word, or lost where a space came first
        shift = len(cut) - len(written)
        if not -1 <= shift <= 1 or cut[max(shift, 0) :] != written[max(-shift, 0) :]:
            return None
        edges = {0, *accumulate(map(len, pieces))}
        starts = accumulate(map(len, parts[:-1]), initial=shift)
        begins = np.array([bool(part) and start in edges for part, start in zip(parts, starts, strict=True)])
        begins[0] = True
        return begins

    def _letters(self, tokens: list[str]) -> list[str]:
        """What each token adds to the text. Of the bytes of one character the first has it, and the others nothing."""
        unknown = self.tokenizer.unk_token
        parts = ["x" if token == unknown else token for token in tokens]
        if self.backend.token_to_id("<0xFF>") is None:  # no tokens that stand for bytes
            return parts
        codes = [int(token[3:5], 16) if BYTE.fullmatch(token) else None for token in tokens]
        for at, code in enumerate(codes):
            if code is None:
                continue
            parts[at] = ""
            if at == 0 or code & 0xC0 != 0x80:  # the first byte of a character
                rest = takewhile(lambda byte: byte is not None and byte & 0xC0 == 0x80, codes[at + 1 :])
                parts[at] = bytes([code, *(byte for byte in rest if byte is not None)]).decode(errors="replace")[:1]
        return parts

    @cached_property
    def _added(self) -> Ints:
        unknown = self.tokenizer.unk_token_id  # this one stands for letters of a word
        ids = (id for id in self.tokenizer.get_added_vocab().values() if id != unknown)
        return np.fromiter(ids, dtype=np.int64)

    @cached_property
    def _continues(self) -> str:
        if self.backend is not None:
            return getattr(self.backend.model, "continuing_subword_prefix", None) or ""
        return CONTINUES if any(token.startswith(CONTINUES) for token in self._written) else ""

    @cached_property
    def _ends(self) -> str:
        return getattr(self.backend.model, "end_of_word_suffix", None) or "" if self.backend is not None else ""

    @cached_property
    def _marked(self) -> bool:
        return any(token.startswith(BEGINS) for token in self._written)

    @cached_property
    def _written(self) -> list[str]:
        return list(chain(self.tokenizer.get_vocab()))
