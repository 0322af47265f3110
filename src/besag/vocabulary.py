"""Text and token ids: character offsets, words, and special tokens.

Knows tokenizers, fast (Rust, with offsets) and slow (Python, aligned to the text here). Refuses to know models, masks
and scores, never truncates, and never tokenises a part of a text alone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.alignment import align
from besag.characters import is_text, shown
from besag.errors import BesagError, nearest, quoted
from besag.spans import Page, first_overlap, flat, given_spans, scored_tokens, word_numbers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Context = str | Sequence[str]
Words = Sequence[str] | Sequence[tuple[int, int]]  # of a text, or their spans
WordPolicy = str | Words | Sequence[Words]
TRIED = 200  # tokens
MOST_IDS = 2**31  # what any tokenizer can number
POLICIES = ("tokenizer", "whitespace")
_SETTING = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A text as token ids, with the way back to its characters and words. Special tokens are counted in L."""

    text: str  # prefix, scored text and suffix as one string
    span: tuple[int, int]  # where the scored text stands in `text`
    ids: np.ndarray  # (L,) int64
    tokens: tuple[str, ...]  # (L,) as the tokenizer writes them
    offsets: np.ndarray  # (L, 2) characters of `text`, white space trimmed off; (0, 0) for added special tokens
    words: np.ndarray  # (L,) word numbers 0, 1, 2, ...; -1 for added special tokens
    special: np.ndarray  # (L,) bool: added by the tokenizer's template, not written in the text
    places: np.ndarray  # (n,) the positions that are scored: see `spans.scored_tokens`
    unknown: int  # scored tokens that are the unknown token
    word_policy: str  # "tokenizer", "whitespace" or "given": what was really used
    decodable: bool = True  # no: it was no text, see `characters.py`; then `text` is how it is shown, without a token


class _Batch(NamedTuple):
    """What a tokenizer says of B texts: their T tokens, one text after the other."""

    row: np.ndarray  # (T,) which text
    ids: np.ndarray  # (T,)
    tokens: list[str]  # (T,)
    offsets: np.ndarray  # (T, 2) characters of the text, as the tokenizer gives them
    special: np.ndarray  # (T,) bool
    words: np.ndarray | None  # (T,) nan where a token has none; None when the tokenizer has no idea of words


class Vocabulary:
    """A tokenizer, as the map between text and ids."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer: Any = tokenizer
        self.mask_token: str | None = self.tokenizer.mask_token
        self.mask_id: int | None = self.tokenizer.mask_token_id
        self.unknown_id: int | None = self.tokenizer.unk_token_id
        self.pad_id: int | None = self.tokenizer.pad_token_id
        self.size: int = len(tokenizer)
        self.special_ids: frozenset[int] = frozenset(self.tokenizer.all_special_ids)
        self._symbols: Mapping[str, int] | None = None  # all there is to write, where there is no unknown token

    @classmethod
    def of_symbols(cls, symbols: Sequence[str]) -> Vocabulary:
        """Ids 0..V-1 in the given order, V for "[MASK]"; a text is symbols separated by white space, and nothing else.

        >>> Vocabulary.of_symbols(["a", "b"]).encode(["b a [MASK]"])[0].ids.tolist()
        [1, 0, 2]
        """
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        for symbol in symbols:
            if not isinstance(symbol, str) or symbol.split() != [symbol] or "[MASK]" in symbol:
                raise BesagError(
                    f"{quoted(symbol)} cannot be a symbol: it must be text without white space and [MASK]."
                )
        table = {symbol: index for index, symbol in enumerate([*symbols, "[MASK]"])}
        if len(table) <= len(symbols):
            raise BesagError(f"the symbols {list(symbols)} must differ from one another.")
        backend = Tokenizer(models.WordLevel(table))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer: Any = PreTrainedTokenizerFast  # its constructor has no types
        vocabulary = cls(tokenizer(tokenizer_object=backend, mask_token="[MASK]"))
        vocabulary._symbols = table
        return vocabulary

    @cached_property
    def special_text(self) -> str:
        """What is added around a text, for results: "[CLS] … [SEP] shown, not scored", or "none added"."""
        [example] = self.encode([self.mask_token or "a"])
        if not example.special.any():
            return "none added"
        inside = np.flatnonzero(~example.special)
        first, last = (inside[0], inside[-1] + 1) if len(inside) else (len(example.ids), len(example.ids))
        return " ".join([*example.tokens[:first], "…", *example.tokens[last:]]) + " shown, not scored"

    @cached_property
    def spaced(self) -> bool:
        """Are words set apart by spaces? Not if they are residues, atoms or Chinese, read as they are side by side.

        Tried on neighbours among tokens from all over the vocabulary that are words of their own, no parts of words.
        """
        if self._symbols is not None:
            return True
        ordinary = sorted({*range(self.size)} - self.special_ids)
        some = [self.token(id) for id in ordinary[:: max(1, len(ordinary) // TRIED)]]
        after = [self._string(*pair).removeprefix(self._string(pair[0])) for pair in pairwise(some)]
        words = [token for token, written in zip(some[1:], after, strict=True) if written[:1].isspace()]
        pairs = list(pairwise(words))
        alike = [self._read("".join(self._string(token).strip() for token in pair)) == list(pair) for pair in pairs]
        return 2 * sum(alike) <= len(pairs)

    def _string(self, *tokens: str) -> str:
        return str(self.tokenizer.convert_tokens_to_string(list(tokens)))

    def _read(self, text: str) -> list[str]:
        try:
            return list(self.tokenizer.tokenize(text))
        except Exception:  # some have no token for what they do not know
            return []

    def blank(self, token: str) -> bool:
        """Is it white space and nothing else, as a lone '▁' is?"""
        return not token.strip("▁Ġ") and not self._string(token).strip()

    def token(self, id: int) -> str:
        """How the tokenizer writes `id`; heads may be wider than their tokenizer, so an id beyond it says so."""
        token = self.tokenizer.convert_ids_to_tokens(int(id)) if 0 <= id < MOST_IDS else None
        if token is None or (token == self.tokenizer.unk_token and id != self.unknown_id):
            return f"<no token {int(id)}>"
        return str(token)

    def id(self, token: str) -> int:
        """The id of a token, written as the tokenizer writes it."""
        found = self.tokenizer.convert_tokens_to_ids(token)
        if found is None or (found == self.unknown_id and token != self.tokenizer.unk_token):
            guess = nearest(token, self.tokenizer.get_vocab())
            raise BesagError(f"{token!r} is not a token of this vocabulary of {self.size}.{guess}")
        return int(found)

    def encode(
        self,
        texts: Sequence[str],
        *,
        words: WordPolicy = "tokenizer",
        prefix: Context = "",
        suffix: Context = "",
        separator: str = " ",
        lenient: bool = False,
    ) -> list[Encoded]:
        """Each text between `prefix` and `suffix`, as one string with `separator` between parts that are not empty.

        A prefix or suffix is one for all texts, or a list with one for each.

        `words` says what a word is: "tokenizer" (the pre-tokenizer's words; white space when the tokenizer has none),
        "whitespace" (a token belongs to the run of characters in which it starts), or one list per text of words or
        (start, end) spans, in the order of the text; a token outside all given words is a word of its own.

        `lenient`: a text that no encoding can write is not refused but read as an empty one, and is not `decodable`.
        """
        if isinstance(texts, str):
            raise BesagError(f"expected a list of texts, got the text {quoted(texts)}: write [{quoted(texts)}].")
        texts = list(texts)
        before, after = (each_with(texts, context) for context in (prefix, suffix))
        _refuse_no_text([*texts, *before, *after, separator])
        if isinstance(words, str) and words not in POLICIES:
            raise BesagError(
                f"no word policy is called {quoted(words)}: {', '.join(POLICIES)}.{nearest(words, POLICIES)}"
            )
        if not texts:
            return []
        if lenient and not all(map(is_text, [*texts, *before, *after])):
            for context in (prefix, suffix):  # what is said once, of all texts, is a mistake and no row's affair
                Page([context] if isinstance(context, str) else [])
            return self._of_texts_alone(texts, words, before, after, separator)
        joined = [separator.join(filter(None, parts)) for parts in zip(before, texts, after, strict=True)]
        starts = [len(p) + len(separator) * bool(text) if p else 0 for p, text in zip(before, texts, strict=True)]
        page = Page(joined)
        if self._symbols is not None:
            _refuse_strangers(joined, self._symbols)
        batch = self._fast(joined) if self.tokenizer.is_fast else self._slow(joined)
        start, end = page.trim(batch.row, batch.offsets, batch.tokens)
        if not isinstance(words, str):
            policy, key = "given", first_overlap(start, end, page.place(given_spans(words, texts), starts))
        elif words == "tokenizer" and batch.words is not None:
            policy, key = words, batch.words
        else:
            policy, key = "whitespace", first_overlap(start, end, page.runs)
        spans = [(first, first + len(text)) for first, text in zip(starts, texts, strict=True)]
        return self._texts(joined, spans, page, batch, start, end, word_numbers(batch.row, key, batch.special), policy)

    def _of_texts_alone(
        self, texts: list[str], words: WordPolicy, before: Sequence[str], after: Sequence[str], separator: str
    ) -> list[Encoded]:
        """What `encode` says where some cannot be decoded: those are read as empty."""
        good = [all(map(is_text, parts)) for parts in zip(texts, before, after, strict=True)]

        def kept(parts: Sequence[Any], otherwise: Any = "") -> list[Any]:
            return [one if ok else otherwise for one, ok in zip(parts, good, strict=True)]

        if not isinstance(words, str) and len(words) == len(texts):
            words = kept(words, [])
        read = self.encode(kept(texts), words=words, prefix=kept(before), suffix=kept(after), separator=separator)
        return [
            one if ok else replace(one, text=shown(text), span=(0, len(shown(text))), decodable=False)
            for one, text, ok in zip(read, texts, good, strict=True)
        ]

    def _texts(
        self,
        joined: list[str],
        spans: list[tuple[int, int]],  # of what is scored
        page: Page,
        batch: _Batch,
        start: np.ndarray,  # (T,) in the page
        end: np.ndarray,  # (T,)
        numbers: np.ndarray,  # (T,) words
        policy: str,
    ) -> list[Encoded]:
        """The tokens of a batch, given back to their texts."""
        row, ids, tokens, special = batch.row, batch.ids, batch.tokens, batch.special
        offsets = np.where(special[:, None], 0, np.stack([start, end], axis=1) - page.base[row][:, None])
        bounds = np.searchsorted(row, np.arange(len(joined) + 1)).tolist()
        parts = [slice(low, high) for low, high in pairwise(bounds)]
        strange = ~special & (ids == (-1 if self.unknown_id is None else self.unknown_id))
        for position in np.flatnonzero(strange):
            tokens[position] = self.tokenizer.unk_token  # some tokenizers write the piece they do not know
        scored = scored_tokens(page, np.array(spans), row, start, end) & ~special
        unknown = np.bincount(row[strange & scored], minlength=len(joined)).tolist()
        place = np.arange(len(row)) - np.array(bounds)[row]  # (T,) position of each token in its text
        places = np.split(place[scored], np.cumsum(np.bincount(row[scored], minlength=len(joined)))[:-1])
        return [
            Encoded(text, span, ids[at], tuple(tokens[at]), offsets[at], numbers[at], special[at], asked, count, policy)
            for text, span, at, asked, count in zip(joined, spans, parts, places, unknown, strict=True)
        ]

    @cached_property
    def has_words(self) -> bool:
        """Does this fast tokenizer split text into words at all? Some keep a sentence whole ("▁" is only a letter)."""
        backend, example = self.tokenizer.backend_tokenizer, "a a"
        if backend.normalizer is not None:
            example = backend.normalizer.normalize_str(example)
        return backend.pre_tokenizer is not None and len(backend.pre_tokenizer.pre_tokenize_str(example)) > 1

    def _fast(self, texts: list[str]) -> _Batch:
        backend = self.tokenizer.backend_tokenizer  # itself: the wrapper copies every encoding into lists again
        with _SETTING:  # what is set is set for all threads, and cannot be while one of them encodes
            if backend.truncation is not None:
                backend.no_truncation()  # a text longer than the model is no mistake: it is read in windows
            if backend.padding is not None:
                backend.no_padding()  # (the wrapper sets both anew at each of its own calls)
            encodings = backend.encode_batch(texts)
        words = None
        if self.has_words:
            words = np.array([*chain.from_iterable(encoding.word_ids for encoding in encodings)], dtype=np.float64)
        return _Batch(
            np.repeat(np.arange(len(texts)), [len(encoding) for encoding in encodings]),
            flat(encoding.ids for encoding in encodings),
            [*chain.from_iterable(encoding.tokens for encoding in encodings)],
            flat(chain.from_iterable(encoding.offsets for encoding in encodings)).reshape(-1, 2),
            flat(encoding.special_tokens_mask for encoding in encodings) > 0,  # 0 for "[SEP]" written in the text
            words,  # a None of the tokenizer has become nan
        )

    def _slow(self, texts: list[str]) -> _Batch:
        around = self.tokenizer.build_inputs_with_special_tokens([-1])
        head, tail = around[: around.index(-1)], around[around.index(-1) + 1 :]
        row, ids, offsets, special = [], [], [], []
        for index, text in enumerate(texts):
            pieces = self.tokenizer.tokenize(text)
            ids += [*head, *self.tokenizer.convert_tokens_to_ids(pieces), *tail]
            offsets += [(0, 0)] * len(head) + align(text, pieces, self.tokenizer.unk_token) + [(0, 0)] * len(tail)
            special += [True] * len(head) + [False] * len(pieces) + [True] * len(tail)
            row += [index] * (len(head) + len(pieces) + len(tail))
        tokens = self.tokenizer.convert_ids_to_tokens(ids)
        whole = flat(offsets).reshape(-1, 2)
        return _Batch(np.array(row, np.int64), np.array(ids, np.int64), tokens, whole, np.array(special, bool), None)


def each_with(texts: Sequence[str], context: Context) -> Sequence[str]:
    """The context of each text, from one for all or one for each."""
    if isinstance(context, str | bytes) or not isinstance(context, Sequence):  # all but the first are refused later
        return [context] * len(texts)
    if len(context) != len(texts):
        raise BesagError(
            f"{len(context)} prefixes or suffixes were given for {len(texts)} texts: give one, or one for each."
        )
    return context


def _refuse_no_text(parts: Sequence[object]) -> None:
    for part in parts:
        if not isinstance(part, str):
            raise BesagError(f"expected text, got {quoted(part)} of type {type(part).__name__}.")


def _refuse_strangers(texts: list[str], symbols: Mapping[str, int]) -> None:
    for text in texts:
        for symbol in text.split():
            if symbol not in symbols:
                known = " ".join(symbols) if len(symbols) <= 40 else f"{' '.join([*symbols][:40])} …"
                raise BesagError(
                    f"{quoted(symbol)} in {quoted(text)} is not one of the symbols {known}.{nearest(symbol, symbols)}"
                )
