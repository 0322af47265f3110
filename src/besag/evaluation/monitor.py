"""How a network is doing while it is trained: the same few questions at every visit, and nothing of the run changed.

| number | what it is |
|---|---|
| heldout_loss | −log p of hidden tokens of held-out passages, nats a token; `evaluation.rate` of each is hidden |
| pseudo_perplexity | exp of −PLL per token, over held-out sentences, from four places of each |
| pseudo_bits_per_character | −PLL in bits per character of the same sentences: comparable between tokenizers |
| rectangle_deviation | mean ∣D∣ of 2 × 2 minors at neighbours (`diagnostics/rectangle.py`): 0 where there is a joint |
| rectangle_dependence | mean ½ (∣ω_A∣ + ∣ω_B∣) of the same minors: what the deviation is to be measured against |
| mutual_information | of these neighbours given the rest, nats: a network that ignores them is compatible and useless |
| minimal_pairs | share of pairs won, mean over paradigms |
| general_loss, general_bits_per_character | the first and the third, of the text in `evaluation.general` |

Passages, masks, sentences, places and minors are drawn once, from noise that no recipe changes: two visits, and two
runs on the same held-out text with the same tokenizer, are asked the same. Knows networks only as masked models; the
network is set to eval, asked without gradients, and left as it was.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from besag import masks, noise
from besag.arrays import Ints
from besag.conditionals.contract import Questions
from besag.conditionals.transformer import Transformer
from besag.diagnostics import rectangle
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError
from besag.evaluation.minimal_pairs import MinimalPair, minimal_pairs, read_pairs
from besag.joints import asking, metrics
from besag.joints.registry import construction
from besag.noise import Monitoring
from besag.places.places import Places, find
from besag.places.reading import read, text_places
from besag.reductions import Target
from besag.training.data import cuts, sources
from besag.training.data.assembly import Template
from besag.training.data.context_batches import held_out
from besag.training.data.contexts import Contexts
from besag.training.data.sources import Document
from besag.training.data.tokens import tokenise
from besag.training.network import attention
from besag.training.network.encoder import Encoder
from besag.training.recipe import Data, Recipe
from besag.vocabulary import Vocabulary

SEED = 0  # of all of it, whatever the recipe's is
TOKENS = 64  # of held-out passages, for each of `evaluation.sentences`: that number decides how precise all this is
SHORTEST, LONGEST = 4, 48  # tokens of a sentence
PLACES = 4  # of a sentence that are asked: all of them would cost the square of its length
MINORS, CANDIDATES = 4, 10  # at each pair of neighbours
ONE_IN = 10  # sentences has a pair of neighbours looked at …
LETTERS = 16  # of general text that are read for a token that is wanted: longer ones are rare in any vocabulary
SHORT = 24  # … and no more tokens than this


class Tokenised(Protocol):
    """Held-out text: a cache, or what `tokenise` returns."""

    @property
    def tokens(self) -> Any: ...  # (N,)
    @property
    def marks(self) -> Any: ...  # (N,)
    @property
    def documents(self) -> Ints: ...  # (D + 1,)


class Question(NamedTuple):
    """A sequence with places hidden, and what stood there."""

    ids: Ints  # (K, L)
    row: Ints  # (M,)
    place: Ints  # (M,)
    target: Ints  # (M,)


class Monitor:
    """Made before a run, called during it: `monitor(network, step)` is a number for each name.

    `valid` is the held-out text, tokenised or as texts; without any (None) only minimal pairs are looked at. `contexts`
    is the same with what stands beside it in training, for the held-out loss; sentences are asked alone. `tokens`
    is how many of its tokens the held-out loss runs over. A network that only encodes (`purpose`, of its objective) is
    asked nothing: what it answers at hidden places means nothing.
    """

    def __init__(
        self,
        recipe: Recipe,
        vocabulary: Vocabulary,
        valid: Tokenised | Sequence[str] | None = None,
        *,
        contexts: Contexts | None = None,
        purpose: str = "score",
        tokens: int | None = None,
        progress: bool | None = False,
    ) -> None:
        self.recipe, self.vocabulary, self.progress = recipe, vocabulary, progress
        self.template, self.contexts = Template(vocabulary), contexts
        self.room = recipe.data.max_length - self.template.size
        self.pairs = self._minimal_pairs()
        self.passages: list[Question] = []
        self.sentences: list[Question] = []
        self.neighbours: list[Places] = []
        self.shares: list[float] = []  # tokens of each sentence for one that is asked
        self.characters = 0  # of all sentences
        self.general: Monitor | None = None
        if purpose == "encode":
            self.pairs = []
        elif recipe.evaluation.general:
            self.general = self._of_general_text(tokens)
        if valid is None or purpose == "encode":
            return
        held = self._tokenised(valid) if isinstance(valid, Sequence) else valid
        if len(held.tokens):
            self.passages = self._passages(held, tokens or TOKENS * recipe.evaluation.sentences)
            runs = self._sentences(held)
            self.sentences = [self._hidden_in_turn(number, run) for number, run in enumerate(runs)]
            self.shares = [len(run) / len(one.target) for run, one in zip(runs, self.sentences, strict=True)]
            texts = [str(vocabulary.tokenizer.decode(run)).strip() for run in runs]
            self.characters = sum(map(len, texts))
            short = [text for text, run in zip(texts, runs, strict=True) if len(run) <= SHORT]
            looked_at = enumerate(short[: -(-len(runs) // ONE_IN)])
            self.neighbours = [one for number, text in looked_at if (one := self._pair(number, text))]

    def __call__(self, model: Any, step: int = 0) -> dict[str, float]:
        """`model` is a `*ForMaskedLM`, or the encoder around one."""
        with visiting(model, self.vocabulary, step, self.progress) as engine:
            return {
                **self._held_out(engine),
                **self._pseudo(engine),
                **self._compatibility(engine),
                **self._preferences(engine),
                **({} if self.general is None else self._forgetting(self.general, engine)),
            }

    # ---- what is asked

    def _held_out(self, engine: Engine) -> dict[str, float]:
        if not self.passages:
            return {}
        found = np.concatenate(list(engine.run(map(_answered, self.passages))))
        return {"heldout_loss": -float(found.mean())}

    def _pseudo(self, engine: Engine) -> dict[str, float]:
        if not self.sentences:
            return {}
        found = list(engine.run(map(_answered, self.sentences)))
        total = -sum(share * float(one.sum()) for share, one in zip(self.shares, found, strict=True))
        loss = total / sum(share * len(one) for share, one in zip(self.shares, found, strict=True))
        bits = total / math.log(2) / max(self.characters, 1)
        return {"pseudo_perplexity": math.exp(min(loss, 700.0)), "pseudo_bits_per_character": bits}

    def _compatibility(self, engine: Engine) -> dict[str, float]:
        if not self.neighbours:
            return {}
        model = engine.conditionals
        tests = [
            rectangle.plan(model, one, minors=MINORS, seed=SEED + number, outcomes="text")
            for number, one in enumerate(self.neighbours)
        ]
        minors = list(engine.run(tests))
        odds_a, odds_b = (np.concatenate([getattr(one, f"log_odds_{side}") for one in minors]) for side in "ab")
        shared = list(engine.run(_information(engine, one) for one in self.neighbours))
        return {
            "rectangle_deviation": float(np.abs(odds_a - odds_b).mean()),
            "rectangle_dependence": float((np.abs(odds_a) + np.abs(odds_b)).mean() / 2),
            "mutual_information": float(np.mean(shared)),
        }

    def _preferences(self, engine: Engine) -> dict[str, float]:
        if not self.pairs:
            return {}
        return {"minimal_pairs": minimal_pairs(engine, self.pairs).accuracy}

    def _forgetting(self, general: Monitor, engine: Engine) -> dict[str, float]:
        found = {**general._held_out(engine), **general._pseudo(engine)}
        names = {"heldout_loss": "general_loss", "pseudo_bits_per_character": "general_bits_per_character"}
        return {names[name]: number for name, number in found.items() if name in names}

    # ---- what is drawn, once

    def _of_general_text(self, tokens: int | None) -> Monitor:
        """One that reads the beginnings of the files in `evaluation.general`, as much of each as could be asked."""
        said, texts = self.recipe.evaluation, []
        room = LETTERS * (tokens or TOKENS * max(said.sentences, 1))
        for name in sources.files(said.general):
            read_on = room
            for document in sources.documents(Data(train=(name,), held_out=0.0, field=self.recipe.data.field)):
                texts.append(document.text)
                read_on -= len(document.text)
                if read_on <= 0:
                    break
        alone = replace(self.recipe, evaluation=replace(said, general=(), minimal_pairs=()))
        return Monitor(alone, self.vocabulary, texts, tokens=tokens)

    def _minimal_pairs(self) -> list[MinimalPair]:
        said = self.recipe.evaluation
        files: list[str] = []
        for name in said.minimal_pairs:
            found = sorted(glob.glob(name)) if glob.has_magic(name) else [name]
            if not found:
                raise BesagError(f"evaluation.minimal_pairs: no file matches {name!r}.")
            files += found
        return [one for file in files for one in read_pairs(file, said.pairs_each)]

    def _tokenised(self, texts: Sequence[str]) -> Tokenised:
        documents = [Document(text, None, f"held-out text {number}") for number, text in enumerate(texts, 1)]
        return tokenise(documents, self.vocabulary, alone=self.recipe.data.unit == "sentences")

    def _passages(self, held: Tokenised, tokens: int) -> list[Question]:
        """Passages cut as in training, with the same places hidden at every visit."""
        if self.contexts is not None:
            passages = held_out(self.contexts, self.recipe.data, self.vocabulary, tokens, SEED)
        else:
            start, length = self._cut(held)
            order = np.argsort(noise.uniform(SEED, Monitoring.PASSAGES, np.arange(len(start))), kind="stable")
            before = np.cumsum(length[order]) - length[order]
            kept = order[before < tokens]
            passages = self.template.passages(held.tokens, held.marks, start[kept], length[kept], np.arange(len(kept)))
        assert self.vocabulary.mask_id is not None
        rate = masks.rate_named("constant", self.recipe.evaluation.rate, None, 0.0)
        ordinary = masks.ordinary_ids(self.vocabulary.size, self.vocabulary.special_ids)
        masking = masks.Masking(
            masks.law("uniform"), rate, masks.Replacement(self.vocabulary.mask_id, ordinary=ordinary)
        )
        corrupted = masking(passages, 0.0, SEED)
        bounds = np.searchsorted(passages.row, np.arange(len(passages.draw) + 1))
        questions = []
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            place = np.flatnonzero(corrupted.asked[first:last])
            if len(place):
                target = passages.ids[first:last][place]
                row = np.zeros(len(place), np.int64)
                questions.append(Question(corrupted.inputs[None, first:last], row, place, target))
        return questions

    def _cut(self, held: Tokenised) -> tuple[Ints, Ints]:
        unit, documents = self.recipe.data.unit, held.documents
        if unit == "documents":
            return cuts.even(documents, self.room)
        if unit == "windows":
            return cuts.windows(documents, self.room)
        pieces = cuts.pieces(held.marks, documents, self.room)
        if unit == "sentences":
            return pieces[:-1], np.diff(pieces)
        drawn = noise.uniform(SEED, Monitoring.LENGTHS, np.arange(len(pieces) - 1))
        return cuts.segments(pieces, documents, cuts.targets(drawn, self.recipe.data.max_length, self.template.size))

    def _sentences(self, held: Tokenised) -> list[Ints]:
        """Whole sentences, without special tokens; where all are long, as chains of residues are, the long ones."""
        pieces = cuts.pieces(held.marks, held.documents, self.room)
        length = np.diff(pieces)
        enough = length >= min(SHORTEST, self.room)
        short = enough & (length <= LONGEST)
        usual = np.flatnonzero(short if short.any() else enough)
        order = np.argsort(noise.uniform(SEED, Monitoring.SENTENCES, usual), kind="stable")
        chosen = usual[order[: self.recipe.evaluation.sentences]]
        return [np.asarray(held.tokens[pieces[one] : pieces[one + 1]], np.int64) for one in chosen.tolist()]

    def _hidden_in_turn(self, number: int, run: Ints) -> Question:
        """The sentence with one token hidden, for each of some places drawn from it."""
        turns = noise.uniform(SEED, Monitoring.ASKED, number, np.arange(len(run)))
        asked = np.sort(np.argsort(turns, kind="stable")[:PLACES])
        whole = np.concatenate([self.template.head, run, self.template.tail])
        ids, row, place = np.tile(whole, (len(asked), 1)), np.arange(len(asked)), len(self.template.head) + asked
        ids[row, place] = self.vocabulary.mask_id
        return Question(ids, row, place, run[asked])

    def _pair(self, number: int, text: str) -> Places | None:
        """Two neighbours in a sentence; none where it has no two."""
        places = text_places(self.vocabulary, read(self.vocabulary, text))
        near = [(a, b) for a, b in pairwise(places) if b - a == 1]
        if not near:
            return None
        chosen = near[int(float(noise.uniform(SEED, Monitoring.NEIGHBOURS, number)) * len(near))]
        return find(self.vocabulary, text, chosen, needs_context=False)


def _answered(question: Question) -> Plan[np.ndarray]:
    answers = yield Request((Target(),), question.ids, question.row, question.place, question.target)
    return answers["target"].astype(np.float64)


def _information(engine: Engine, places: Places) -> Plan[float]:
    unaries = yield from asking.plan(engine.conditionals, places, outcomes="text", candidates=CANDIDATES)
    return metrics.measure(unaries, construction("ag", weights="marginal").build(unaries)).mutual_information


class _Visited(Transformer):
    """A network that goes on training afterwards: what it may cache must not be made in inference mode."""

    def rows(self, questions: Questions) -> Tensor:
        with torch.inference_mode(False), torch.no_grad():
            return super().rows(questions)

    def head(self, rows: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.no_grad():
            return super().head(rows)


@contextmanager
def visiting(model: Any, vocabulary: Vocabulary, step: int, progress: bool | None = False) -> Iterator[Engine]:
    """An engine for a network that is being trained, or for the encoder around one, which is left as it was."""
    network = model.model if isinstance(model, Encoder) else model
    with _undisturbed(network):
        yield Engine(_Visited(network, vocabulary, f"step {step}"), progress=progress)


@contextmanager
def _undisturbed(network: nn.Module) -> Iterator[None]:
    """In here the network is an ordinary one, in eval; afterwards every part of it is as it was."""
    config: Any = network.config
    training = {module: module.training for module in network.modules()}
    ragged = config._attn_implementation == attention.NAME
    try:
        if ragged:
            config._attn_implementation = "sdpa"
        yield
    finally:
        if ragged:
            config._attn_implementation = attention.NAME
        for module, before in training.items():
            module.training = before
