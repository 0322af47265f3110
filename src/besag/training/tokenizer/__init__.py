"""Learning a vocabulary from text: unigram, BPE or WordPiece, with the layout of the embedded model.

    [CLS] text [SEP];   [PAD] [UNK] [CLS] [SEP] [MASK] are ids 0 … 4;   [MASK] takes the space on its left with it

A text is brought to a normal form (NFC or NFKC; every white-space character is read as a space; lower case if wanted),
cut into words at spaces, around punctuation and, if wanted, around every digit, and words are cut into what was learnt.
What the pieces spell is the text again: decode(encode(x)) is the normal form of x without one space at its start.

| kind | what is learnt | how a word is cut |
|---|---|---|
| unigram | pieces v with p(v), by EM and pruning | the most probable cut, Σ log p(v) largest |
| bpe | merges, the most frequent pair of neighbours first | the merges in the order they were learnt |
| wordpiece | the same merges, inside of a word marked by ## | the longest piece first, from the left |

With byte fallback nothing is unknown. Unigram and BPE write a character that has no piece as its UTF-8 bytes, <0x00> …
<0xFF>; only frequent characters then have pieces. WordPiece knows no such thing, so bytes are its letters (as in
ModernBERT: Ġ is a space, and the first word of a text has none).

Knows text; refuses to know files and models. The same texts and options give the same vocabulary.
"""

from __future__ import annotations

import heapq
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from besag import noise
from besag.checks import checked, is_number, whole_number
from besag.errors import BesagError, nearest, quoted
from besag.noise import TokenizerTraining
from besag.training.tokenizer import unigram

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

KINDS = ("unigram", "bpe", "wordpiece")
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
SPACES = "\t\n\x0b\x0c\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # read as a space
QUOTES = {**dict.fromkeys("\u201c\u201d\u201e", '"'), **dict.fromkeys("\u2018\u2019\u201a", "'")}  # “ ” „ and single
INSIDE = 0xF0000  # private characters, which stand for letters inside of a word while WordPiece is learnt
DRAWN = 4096  # lines whose numbers are drawn at a time
LARGEST = 2**22  # tokens of a vocabulary
REPEATED = 10_000  # copies of a word handed to the trainer at a time


@dataclass(frozen=True)
class Layout:
    """Everything about a tokenizer but its vocabulary."""

    kind: Literal["unigram", "bpe", "wordpiece"] = "unigram"
    cased: bool = True
    digits: bool = True  # each digit is a word of its own
    byte_fallback: bool = True
    form: Literal["nfc", "nfkc"] = "nfc"
    plain_quotes: bool = False  # typographic quotes are read as " and '

    def __post_init__(self) -> None:
        for name, value, known in (("kind", self.kind, KINDS), ("form", self.form, ("nfc", "nfkc"))):
            if not isinstance(value, str) or value not in known:
                guess = nearest(value, known) if isinstance(value, str) else ""
                raise BesagError(f"{name}={quoted(value)}: one of {', '.join(known)}.{guess}")
        for name in ("cased", "digits", "byte_fallback", "plain_quotes"):
            if not isinstance(getattr(self, name), bool):
                raise BesagError(f"{name}={quoted(getattr(self, name))}: give True or False")

    @property
    def letters_are_bytes(self) -> bool:
        return self.kind == "wordpiece" and self.byte_fallback

    @property
    def fixed(self) -> tuple[str, ...]:
        """The tokens that are there whatever the text is."""
        return (*SPECIALS, *BYTES) if self.byte_fallback and not self.letters_are_bytes else SPECIALS

    def normalizer(self) -> Any:
        from tokenizers import Regex, normalizers

        return normalizers.Sequence(
            [
                normalizers.NFC() if self.form == "nfc" else normalizers.NFKC(),
                normalizers.Replace(Regex(f"[{SPACES}]"), " "),
                *(normalizers.Replace(fancy, plain) for fancy, plain in QUOTES.items() if self.plain_quotes),
                *([] if self.cased else [normalizers.Lowercase()]),
            ]
        )

    def pre_tokenizer(self) -> Any:
        from tokenizers import pre_tokenizers as cut

        words = [cut.Punctuation("isolated"), *([cut.Digits(individual_digits=True)] if self.digits else [])]
        if self.letters_are_bytes:
            letters = cut.ByteLevel(add_prefix_space=False, use_regex=False)
            return cut.Sequence([cut.Split(" ", "merged_with_next"), *words, letters])
        return cut.Sequence([cut.Metaspace(prepend_scheme="first"), *words])

    def decoder(self) -> Any:
        from tokenizers import Regex, decoders

        whole = decoders.Replace(Regex("^##"), "")
        if self.letters_are_bytes:
            return decoders.Sequence([whole, decoders.ByteLevel()])
        bytes_first = [decoders.ByteFallback()] if self.byte_fallback else []
        return decoders.Sequence(
            [*([whole] if self.kind == "wordpiece" else []), *bytes_first, decoders.Metaspace(prepend_scheme="first")]
        )


@checked
def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: Literal["unigram", "bpe", "wordpiece"] = "unigram",
    size: int = 8192,
    cased: bool = True,
    digits: bool = True,
    byte_fallback: bool = True,
    form: Literal["nfc", "nfkc"] = "nfc",
    plain_quotes: bool = False,
    coverage: float = 0.9995,
    sample: int | None = 100_000_000,
    seed: int = 0,
    max_length: int | None = None,
) -> PreTrainedTokenizerFast:
    """A tokenizer of exactly `size` tokens, special tokens counted (a warning says so where the text has too few).

    Args:
        texts: any iterable.
        kind: "unigram", "bpe" or "wordpiece".
        size: of the vocabulary.
        cased: tell upper from lower case.
        digits: each digit is a token of its own.
        byte_fallback: what has no piece is written in bytes, so that nothing is unknown.
        form: of Unicode: "nfc" or "nfkc".
        plain_quotes: read typographic quotes as plain ones.
        coverage: with byte fallback, the share of the text's characters whose kinds have pieces of their own.
        sample: learn from about so many bytes, lines drawn by `seed` (None: from all).
        seed: of that draw.
        max_length: written down as the model's.

    Returns:
        A fast tokenizer of transformers, laid out as that of the embedded model.

    Examples:
        >>> tokenizer = besag.train_tokenizer(["the cat sleeps, the cats sleep. "] * 9, size=36, byte_fallback=False)
        >>> tokenizer.tokenize("the cats")
        ['▁the', '▁cats']
    """
    layout = Layout(kind, cased, digits, byte_fallback, form, plain_quotes)
    if not is_number(coverage) or not 0 < coverage <= 1:
        raise BesagError(f"coverage={quoted(coverage)}: a share of the text's characters, above 0 and at most 1")
    whole_number(size, "size", most=LARGEST)
    whole_number(seed, "seed", least=-(2**63), most=2**63)
    if max_length is not None:
        whole_number(max_length, "max_length", most=2**31)
    if sample is not None:
        whole_number(sample, "sample", right="how many bytes of text to learn from, at least 1", most=2**40)
    words = count_words(_sampled(texts, sample, seed) if sample is not None else _lines(texts), layout)
    if not any(word.strip("▁Ġ") for word in words):
        raise BesagError("there is no text to learn a vocabulary from")
    learnable = size - len(layout.fixed)
    words = _limited(words, layout, size, coverage)
    model, found = _LEARN[kind](words, layout, learnable)
    if found < learnable:
        warnings.warn(
            f"the vocabulary has {len(layout.fixed) + found:,} tokens, not {size:,}: the text has no more pieces",
            stacklevel=2,
        )
    return _assembled(model, layout, max_length)


# ---- from text to words


def _lines(texts: Iterable[str]) -> Iterator[str]:
    if isinstance(texts, str):
        raise BesagError(f"expected texts, got one text: write [{texts[:40]!r}]")
    if not isinstance(texts, Iterable):
        raise BesagError(f"texts={quoted(texts)}: give a list of texts, or any iterable")
    for text in texts:
        if not isinstance(text, str):
            raise BesagError(f"texts has {quoted(text)}, which is no text")
        yield from text.splitlines()


def _sampled(texts: Iterable[str], sample: int, seed: int) -> list[str]:
    """Lines with the smallest numbers of all, drawn from noise, until they are `sample` bytes; in their order.

    One pass, in memory of the order of `sample`; a line's number does not depend on the others.
    """
    kept: list[tuple[float, int, str]] = []  # a heap, the largest number first
    total = 0
    lines = enumerate(_lines(texts))
    while batch := list(islice(lines, DRAWN)):
        drawn = noise.uniform(seed, TokenizerTraining.SAMPLE, [number & 0xFFFFFFFF for number, _ in batch])
        for (number, line), turn in zip(batch, drawn.tolist(), strict=True):
            if total >= sample and -kept[0][0] <= turn:
                continue
            heapq.heappush(kept, (-turn, number, line))
            total += _size(line)
            while total - (last := _size(kept[0][2])) >= sample:
                total -= last
                heapq.heappop(kept)
    return [line for _, _, line in sorted(kept, key=lambda one: one[1])]


def _size(line: str) -> int:
    return len(line.encode("utf-8", "surrogatepass"))


def count_words(lines: Iterable[str], layout: Layout) -> Counter[str]:
    """How often each word occurs, as the tokenizer cuts and writes it ("▁the", ",", "7").

    Distinct strings between spaces are cut once, so the time does not grow with the text as it repeats itself.
    """
    normalizer, pre_tokenizer = layout.normalizer(), layout.pre_tokenizer()
    runs: Counter[str] = Counter()
    for line in lines:
        try:
            first, *others = normalizer.normalize_str(line).split(" ")
        except UnicodeEncodeError:
            raise BesagError(f"{line[:60]!r} holds half of a surrogate pair, which is no character") from None
        runs[first] += 1  # no space before it, which is seen where bytes are letters
        runs.update([f" {run}" for run in others])
    words: Counter[str] = Counter()
    for run, count in runs.items():
        for word, _ in pre_tokenizer.pre_tokenize_str(run):
            words[word] += count
    if layout.kind == "wordpiece":
        for word in [word for word in words if max(word) >= chr(INSIDE)]:
            del words[word]  # private characters, which have no meaning of their own
    return words


def _limited(words: Counter[str], layout: Layout, size: int, coverage: float) -> Counter[str]:
    """The words spelt with letters that have tokens of their own; refuses a vocabulary too small for them."""
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
        inside.update(word[1:])
    room = size - len(layout.fixed)
    alphabet = len(counts)
    letters = f"{alphabet:,} characters"
    if layout.letters_are_bytes:
        needed, letters = 2 * 256, "256 bytes"  # each byte at the start of a word, and inside
    elif layout.byte_fallback:
        needed, letters = 2, "the space, one letter"  # what has no token of its own is written in bytes
    else:
        needed = alphabet + (len(inside) if layout.kind == "wordpiece" else 0)
    if room < needed:
        fewer = (
            "" if layout.byte_fallback else ", or byte_fallback=True, which needs 263" * (layout.kind != "wordpiece")
        )
        raise BesagError(
            f"size={size} is smaller than the alphabet: {letters} and {len(layout.fixed)} fixed tokens need at least "
            f"size={len(layout.fixed) + needed}{fewer}"
        )
    if not layout.byte_fallback or layout.letters_are_bytes:
        return words
    # the most frequent letters, until they cover enough of the text; at most half of a large room is theirs
    kept: set[str] = set()
    wanted, covered = coverage * counts.total(), 0
    for letter, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if covered >= wanted or len(kept) >= max(room // 2, min(room, 256)):
            break
        kept.add(letter)
        covered += count
    spelt = Counter({word: count for word, count in words.items() if kept.issuperset(word)})
    return Counter({**dict.fromkeys(sorted(kept), 0), **spelt})  # a letter is there even if no word of it is


# ---- from words to a model


def _fed(words: Counter[str]) -> Iterator[str]:
    """The words as text, each as often as it occurs, in one order."""
    for word in sorted(words):
        count = words[word]
        while count > 0:
            yield " ".join([word] * min(count, REPEATED))
            count -= REPEATED


def _unigram(words: Counter[str], layout: Layout, room: int) -> tuple[Any, int]:
    from tokenizers import models

    pieces = unigram.learn(words, room)
    lowest = min(pieces.values())
    fixed = [(token, 0.0 if token in SPECIALS else lowest) for token in layout.fixed]
    table = [*fixed, *((piece, round(score, 8)) for piece, score in pieces.items())]
    model = models.Unigram(table, unk_id=SPECIALS.index("[UNK]"), byte_fallback=layout.byte_fallback)
    return model, len(pieces)


def _merges(words: Counter[str], alphabet: Sequence[str], room: int) -> list[tuple[str, str]]:
    """At most `room` − |alphabet| merges of neighbours, the most frequent first."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    trainer = trainers.BpeTrainer(
        vocab_size=room, special_tokens=[], initial_alphabet=list(alphabet), max_token_length=unigram.LONGEST_PIECE,
        show_progress=False,
    )  # fmt: skip
    backend: Any = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.train_from_iterator(_fed(words), trainer)
    return [(left, right) for left, right in json.loads(backend.to_str())["model"]["merges"]]


def _bpe(words: Counter[str], layout: Layout, room: int) -> tuple[Any, int]:
    from tokenizers import models

    alphabet = sorted({letter for word in words for letter in word})
    merges = _merges(words, alphabet, room)
    learnt = list(dict.fromkeys([*alphabet, *(left + right for left, right in merges)]))
    table = {token: index for index, token in enumerate([*layout.fixed, *learnt])}
    return models.BPE(table, merges, unk_token="[UNK]", byte_fallback=layout.byte_fallback), len(learnt)


def _wordpiece(words: Counter[str], layout: Layout, room: int) -> tuple[Any, int]:
    from tokenizers import models, pre_tokenizers

    if layout.letters_are_bytes:
        letters = sorted(pre_tokenizers.ByteLevel.alphabet())
        within = set(letters)
    else:
        letters = sorted({letter for word in words for letter in word})
        within = {letter for word in words for letter in word[1:]}
    # a letter inside of a word is learnt as a letter of its own, for then the order of the alphabet is fixed
    inside = {letter: chr(INSIDE + place) for place, letter in enumerate(letters) if letter in within}
    outside = {ord(mark): letter for letter, mark in inside.items()}
    spelt = Counter({word[0] + "".join(inside[letter] for letter in word[1:]): n for word, n in words.items()})
    alphabet = [*letters, *(inside[letter] for letter in letters if letter in within)]
    tokens = [*alphabet, *(left + right for left, right in _merges(spelt, alphabet, room))]
    marked = [f"##{token}" if ord(token[0]) in outside else token for token in tokens]
    learnt = list(dict.fromkeys(token.translate(outside) for token in marked))
    table = {token: index for index, token in enumerate([*layout.fixed, *learnt])}
    return models.WordPiece(table, unk_token="[UNK]", max_input_chars_per_word=1000), len(learnt)


_LEARN = {"unigram": _unigram, "bpe": _bpe, "wordpiece": _wordpiece}


# ---- the whole


def _assembled(model: Any, layout: Layout, max_length: int | None) -> PreTrainedTokenizerFast:
    from tokenizers import AddedToken, Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    backend: Any = Tokenizer(model)
    backend.normalizer, backend.pre_tokenizer = layout.normalizer(), layout.pre_tokenizer()
    backend.decoder = layout.decoder()
    backend.add_special_tokens(
        [AddedToken(token, lstrip=token == "[MASK]", special=True, normalized=False) for token in SPECIALS]
    )
    ends = [(token, SPECIALS.index(token)) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ends)
    build: Any = PreTrainedTokenizerFast  # its constructor has no types
    tokenizer: PreTrainedTokenizerFast = build(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=AddedToken("[MASK]", lstrip=True, special=True, normalized=False),
        clean_up_tokenization_spaces=False,
        **({} if max_length is None else {"model_max_length": max_length}),
    )
    return tokenizer
