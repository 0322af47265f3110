"""A head in use: labels of texts, or of their words, with probabilities.

Knows batches of padded sequences, each with its attention mask. Refuses texts longer than the network sees: they have a
status and no label, since a label of their beginning would look like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from besag.arrays import Floats, Ints
from besag.checks import checked
from besag.conditionals.network import longest
from besag.errors import BesagError, quoted
from besag.heads.encoding import Batch, Read, read
from besag.results.status import Status
from besag.vocabulary import Vocabulary

BATCH_TOKENS = 8192


class Labelled(NamedTuple):
    """A text, or a word of one, and its label; the probability is the head's own, over all labels."""

    text: str
    label: str | None  # None where the status is not "ok"
    prob: float
    probs: Floats  # (C,) of all labels, in the order of `head.labels`
    status: Status = Status.OK


class Head:
    """What classifiers and taggers share. `model` is a network of transformers, `labels` what it says."""

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str) -> None:
        self.model, self.vocabulary, self.name = model.eval(), vocabulary, name
        self.device: torch.device = model.device
        self.labels = tuple(str(model.config.id2label[number]) for number in range(model.config.num_labels))
        self.max_length = longest(model, vocabulary.tokenizer)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.device}, {', '.join(self.labels)})"

    def batches(self, ids: Sequence[Ints]) -> Iterator[tuple[list[int], Any]]:
        """Which sequences, and their logits, (N, C) or (N, L, C); longest first, so that little is padded."""
        order = sorted(range(len(ids)), key=lambda one: -len(ids[one]))
        pad = self.vocabulary.pad_id
        assert pad is not None  # a head is refused without
        while order:
            room = max(1, BATCH_TOKENS // len(ids[order[0]]))
            rows, order = order[:room], order[room:]
            batch = Batch.of([ids[row] for row in rows], pad, self.device)
            with torch.inference_mode():
                yield rows, self.model(input_ids=batch.ids, attention_mask=batch.mask).logits.float().cpu().numpy()

    def _read(self, words: Sequence[Sequence[str]]) -> list[Read]:
        """With a status for those that have no label."""
        most = self.max_length
        return [
            one._replace(status=Status.LONG) if most is not None and len(one.ids) > most else one
            for one in read(self.vocabulary, words, None)
        ]

    def _unlabelled(self, text: str, status: Status) -> Labelled:
        return Labelled(text, None, np.nan, np.full(len(self.labels), np.nan), status)

    def _labelled(self, text: str, logits: Floats) -> Labelled:
        probs = _softmax(logits)
        best = int(probs.argmax())
        return Labelled(text, self.labels[best], float(probs[best]), probs)


class Classifier(Head):
    """Labels whole texts."""

    def logits(self, ids: Ints) -> Floats:
        """(N, L) token ids of one length, special tokens included, to (N, C): what `lm.explain` asks."""
        found = np.empty((len(ids), len(self.labels)))
        for rows, logits in self.batches(list(ids)):
            found[rows] = logits
        return found

    @checked
    def predict(self, texts: Sequence[str]) -> list[Labelled]:
        """The label of each text.

        Args:
            texts: any.

        Returns:
            A list with a `Labelled` for each, whose `status` says "empty" or "long" where there is no label.
        """
        reads = self._read([(text,) for text in texts])
        found = [self._unlabelled(text, one.status) for text, one in zip(texts, reads, strict=True)]
        known = [(number, one) for number, one in enumerate(reads) if one.status == "ok"]
        for rows, logits in self.batches([one.ids for _, one in known]):
            for row, said in zip(rows, logits, strict=True):
                number = known[row][0]
                found[number] = self._labelled(texts[number], said)
        return found


class Tagger(Head):
    """Labels every word of a text."""

    @checked
    def predict(self, texts: Sequence[str | Sequence[str]]) -> list[list[Labelled]]:
        """The tag of each word.

        Args:
            texts: lists of words; of a text the words are those between its spaces.

        Returns:
            For each text a list with a `Labelled` for each word.
        """
        words = [tuple(text.split()) if isinstance(text, str) else tuple(text) for text in texts]
        for own in words:
            if not all(isinstance(word, str) and word.strip() for word in own):
                raise BesagError(f"{quoted(own)} are no words: give a list of them, or a text")
        reads = self._read(words)
        found = [
            [self._unlabelled(word, Status.EMPTY if one.status == "ok" else one.status) for word in own]
            for own, one in zip(words, reads, strict=True)
        ]  # a word that is nothing to the tokenizer is empty
        known = [(number, one) for number, one in enumerate(reads) if one.status == "ok"]
        for rows, logits in self.batches([one.ids for _, one in known]):
            for row, said in zip(rows, logits, strict=True):
                number, one = known[row]
                for at, (word, token) in enumerate(zip(words[number], one.first.tolist(), strict=True)):
                    if token >= 0:
                        found[number][at] = self._labelled(word, said[token])
        return found


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(np.asarray(logits, np.float64) - logits.max())
    return np.asarray(weights / weights.sum())
