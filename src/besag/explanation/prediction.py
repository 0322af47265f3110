"""What is explained: a prediction y, and how likely it is given what is shown. A filling of masks, or a label.

Both are told as log p(y | …) and log (1 − p(y | …)), so that log-odds keep their digits where p is nearly 1. Refuses to
know what was left out, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from besag.arrays import Floats, Ints
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError, nearest, quoted
from besag.explanation.removal import mask_of
from besag.places.places import Places
from besag.places.tokens import token_ids
from besag.reductions import Target, Top
from besag.vocabulary import Vocabulary


class Said(NamedTuple):
    """Of N sequences."""

    log_p: Floats  # (N,) of the prediction
    log_not: Floats  # (N,) of anything else

    @property
    def log_odds(self) -> Floats:
        return self.log_p - self.log_not

    def mean(self, which: Ints, weight: Floats, count: int) -> Said:
        """(count,) Σ of the sequences of each, by their weights: of probabilities, not of their logarithms."""
        found = np.full((2, count), -np.inf)
        with np.errstate(divide="ignore"):
            for whole, part in zip(found, self, strict=True):
                np.logaddexp.at(whole, which, np.log(weight) + part)
        return Said(*found)


class Prediction(Protocol):
    @property
    def title(self) -> str:
        """In a sentence: "p('Paris' at token 5)"."""

    def ask(self, ids: Ints, targets: Ints) -> Said:
        """Of N sequences (N, L), in which what is predicted stands at `targets` (N, m)."""


# ---- a filling


@dataclass(frozen=True)
class Filling:
    """The tokens y_1 … y_m at m places: p(y | shown) = Π_j p(y_j | shown, y_1 … y_{j−1}), those after j hidden."""

    engine: Engine
    tokens: tuple[int, ...]  # (m,)
    title: str

    def ask(self, ids: Ints, targets: Ints) -> Said:
        rows, total = np.arange(len(ids)), np.zeros(len(ids))
        least = 0.0
        for j, token in enumerate(self.tokens):
            asked = ids.copy()
            asked[rows[:, None], targets[:, j:]] = mask_of(self.engine)
            asked[rows[:, None], targets[:, :j]] = self.tokens[:j]

            def plan(asked: Ints = asked, place: Ints = targets[:, j], token: int = token) -> Plan[np.ndarray]:
                answers = yield Request((Target(),), asked, rows, place, np.full(len(rows), token))
                return answers["target"]

            found = next(self.engine.run([plan()]))
            least = float(np.finfo(found.dtype).eps) / 2  # nearer to 1 no probability is told apart from it
            total += found
        return Said(total, np.log(-np.expm1(np.minimum(total, -least))))


def filling(engine: Engine, places: Places, target: str | list[str] | None) -> Filling:
    """The tokens named, or those that stand there, or else the likeliest one after the other."""
    vocabulary = engine.conditionals.vocabulary
    if target is not None:
        words = [target] if isinstance(target, str) else target
        if len(words) != len(places.at):
            raise BesagError(f"target={quoted(target)}: name a token for each of the {len(places.at)} places")
        named = zip(places.positions, words, strict=True)
        tokens = tuple(token_ids(vocabulary, places.encoded, position, [word])[0] for position, word in named)
    else:
        tokens = places.gold or _likeliest(engine, places)
    return Filling(engine, tokens, _title(vocabulary, places, tokens))


def _likeliest(engine: Engine, places: Places) -> tuple[int, ...]:
    """What a greedy reader writes from the left; special tokens are no fillings."""
    vocabulary, ids = engine.conditionals.vocabulary, places.ids.copy()
    ids[list(places.at)] = mask_of(engine)
    for at in places.at:

        def plan(at: int = at) -> Plan[np.ndarray]:
            top = Top(len(vocabulary.special_ids) + 1)
            answers = yield Request((top,), ids[None], np.zeros(1, np.int64), np.array([at]))
            return np.asarray(answers["top_ids"][0])

        ids[at] = next(one for one in next(engine.run([plan()])).tolist() if one not in vocabulary.special_ids)
    return tuple(ids[list(places.at)].tolist())


def _title(vocabulary: Vocabulary, places: Places, tokens: tuple[int, ...]) -> str:
    named = zip(tokens, places.positions, strict=True)
    said = [f"{vocabulary.token(token).strip('▁Ġ ')!r} at token {position}" for token, position in named]
    return f"p({', '.join(said)})"


# ---- a label


@runtime_checkable
class Labelling(Protocol):
    """Who labels whole texts: a classifier, of whatever make."""

    name: str
    labels: tuple[str, ...]  # (C,)
    vocabulary: Vocabulary
    max_length: int | None

    def logits(self, ids: Ints) -> Floats:
        """(N, L) token ids, special ones included, to (N, C)."""


@dataclass(frozen=True)
class Label:
    """The label of a text."""

    classifier: Labelling
    label: int
    title: str

    def ask(self, ids: Ints, targets: Ints) -> Said:
        logits = np.asarray(self.classifier.logits(ids), np.float64)  # (N, C)
        logits -= np.logaddexp.reduce(logits, 1, keepdims=True)
        return Said(logits[:, self.label], np.logaddexp.reduce(np.delete(logits, self.label, 1), 1))


def labelled(classifier: Labelling, ids: Ints, named: str | None) -> Label:
    """The label of that name, or the one that the classifier gives the text (L,)."""
    labels = list(classifier.labels)
    if named is None:
        number = int(classifier.logits(ids[None])[0].argmax())
    elif named not in labels:
        raise BesagError(
            f"label={quoted(named)}: {classifier.name!r} knows {', '.join(labels)}.{nearest(named, labels)}"
        )
    else:
        number = labels.index(named)
    return Label(classifier, number, f"p({labels[number]!r})")


def same_tokens(vocabulary: Vocabulary, classifier: Labelling) -> None:
    """A replacement must mean the same to whoever draws it and to whoever labels the text with it."""
    if vocabulary.tokenizer.get_vocab() != classifier.vocabulary.tokenizer.get_vocab():
        raise BesagError(
            f"{classifier.name!r} reads other tokens than the masked model, so that it cannot label its replacements: "
            "load the masked model that the classifier was tuned from."
        )
