"""A tokenizer with more tokens: words of a corpus that it cuts into pieces, whole; the old tokens keep their ids.

Chosen are the words that save most tokens, count · (pieces − 1). They are put where the tokenizer's own algorithm finds
them, so words that do not contain them are cut as before, and what is decoded keeps its spaces:

    wordpiece   the word is in the table: the longest match finds it
    bpe         one more merge at the end joins its two pieces; a word of more pieces is joined from the left, a token
                each time
    unigram     the word is a little likelier than its pieces together

Knows the tokenizers of Rust; refuses others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from besag.checks import whole_number
from besag.conditionals import loading
from besag.errors import BesagError, quoted
from besag.vocabulary import Vocabulary

LAYOUT = "tokenizer.json"  # in the folder of every tokenizer of Rust's
LEAST = 2  # how often a word must stand in the text
LIKELIER = 0.01  # nats by which a word of a unigram vocabulary beats its pieces


def extended(tokenizer: Any, texts: Iterable[str], size: int) -> Any:
    """A copy of the tokenizer with up to `size` more tokens."""
    whole_number(size, "size", most=10**6)
    if not tokenizer.is_fast or not Vocabulary(tokenizer).has_words:
        raise BesagError("this tokenizer cannot be extended: it is not one of Rust's that cuts text into words first")
    backend = tokenizer.backend_tokenizer
    layout = json.loads(backend.to_str())
    add = _Adding(layout, backend)
    for word in _worth(backend, texts):
        if add.count >= size:
            break
        add(word, [piece.value for piece in backend.model.tokenize(word)], size)
    if not add.count:
        raise BesagError("no word of this text is cut into pieces: there is nothing to add to the tokenizer")
    return _with_layout(tokenizer, layout)


def _with_layout(tokenizer: Any, layout: dict[str, Any]) -> Any:
    """The tokenizer with another layout, through a folder: so what is made can be saved and read."""
    with TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        (Path(folder) / LAYOUT).write_text(json.dumps(layout), encoding="utf-8")
        return loading.read_vocabulary(Path(folder), "the extended tokenizer").tokenizer


def _worth(backend: Any, texts: Iterable[str]) -> list[str]:
    """The words that are cut, by the tokens that they would save."""
    counts: Counter[str] = Counter()
    for text in texts:
        plain = backend.normalizer.normalize_str(text) if backend.normalizer is not None else text
        counts.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(plain))
    saved = {
        word: count * (len(backend.model.tokenize(word)) - 1)
        for word, count in counts.items()
        if count >= LEAST and any(letter.isalpha() for letter in word)
    }
    return [word for word, _ in sorted(saved.items(), key=lambda item: (-item[1], item[0])) if saved[word] > 0]


class _Adding:
    """Puts words into a tokenizer's layout, each in the way of its algorithm."""

    def __init__(self, layout: dict[str, Any], backend: Any) -> None:
        self.model, self.count = layout["model"], 0
        self.kind = self.model.get("type")
        self.next = max(backend.get_vocab(with_added_tokens=True).values()) + 1
        if self.kind not in ("WordPiece", "BPE", "Unigram") or self.model.get("end_of_word_suffix"):
            raise BesagError(f"a tokenizer of the kind {quoted(self.kind)} cannot be extended: WordPiece, BPE, Unigram")
        if self.kind == "Unigram" and self.next != len(self.model["vocab"]):
            raise BesagError(
                "this tokenizer has tokens beyond its table, whose ids new ones would take: it cannot be extended"
            )
        self.scores = dict(self.model["vocab"]) if self.kind == "Unigram" else {}
        self.least = min(self.scores.values(), default=0.0)  # of a piece that is unknown
        self.joined = set[tuple[str, str]]()

    def __call__(self, word: str, parts: list[str], size: int) -> None:
        if self.kind == "Unigram":
            self.model["vocab"].append([word, sum(self.scores.get(part, self.least) for part in parts) + LIKELIER])
            self._counted()
            return
        if self.kind == "WordPiece":
            self._put(word)
            return
        if self.count + len(parts) - 1 > size:
            return
        prefix = self.model.get("continuing_subword_prefix") or ""
        written = self.model["merges"]
        joined = parts[0]
        for part in parts[1:]:
            if (joined, part) not in self.joined:
                written.append([joined, part] if not written or isinstance(written[0], list) else f"{joined} {part}")
            self.joined.add((joined, part))
            joined += part.removeprefix(prefix)
            if joined not in self.model["vocab"]:
                self._put(joined)

    def _put(self, token: str) -> None:
        self.model["vocab"][token] = self.next
        self._counted()

    def _counted(self) -> None:
        self.next, self.count = self.next + 1, self.count + 1
