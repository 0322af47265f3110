"""LERT: tags of words beside hidden tokens, the shallow kinds first (Cui et al. 2022).

    total = Σ_{i ∈ K} −log p(x_i | x_∖K)
          + Σ_kinds λ(t) Σ_passages |K| · mean_{j ∈ J} −log softmax(head_kind(h_j))[the tag of j's word]
    λ(t)  = min(1, t / full),     t from 0 to 1 over the run

Each passage brings one tagged text, by the noise of its draw. A share J of its tokens is hidden, and the tags of these
are asked, of every kind (parts of speech, entities, dependencies): from what stands around them, as the tokens of K
are. Kinds stand in the order of the file, from shallow to deep; the first has its `full` weight after a share `first`
of the run, the last after `last`, those between at equal steps. So what is easily learned is learned soon, and deeper
ones join when it is there: the linguistically-informed schedule. (A passage's tags count as its asked tokens do.)

There a tagger tags all training text, and tokens and tags of one text are asked together. besag has no tagger: tagged
text is given, and may be little. Heads are thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from besag.errors import BesagError, quoted
from besag.files import columns, rows
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.mdlm import lowest, sizes
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy, predict
from besag.training.objectives.sharing import generator_for
from besag.vocabulary import Encoded, Vocabulary

WORDS, TAGS, TEXT = "words", "tags", "text"


class Tagged(NamedTuple):
    """Texts whose words have tags, of one or more kinds."""

    texts: tuple[str, ...]  # (N,)
    spans: tuple[tuple[tuple[int, int], ...], ...]  # (N, W) the characters of each word
    tags: Mapping[str, tuple[tuple[str, ...], ...]]  # kind → (N, W)

    @classmethod
    def read(cls, path: str | Path) -> Tagged:
        """From JSON Lines: {"words": [...], "tags": {"pos": [...], ...}}, and "text" where it is not the words with
        spaces between them."""
        texts, spans = [], []
        kinds: dict[str, list[tuple[str, ...]]] = {}
        for row in rows.read(str(path), "jsonl"):
            words, tags, text = _words(row)
            kinds = kinds or {kind: [] for kind in tags}
            if set(tags) != set(kinds):
                here, first = columns.listed(tags), columns.listed(kinds)
                raise BesagError(f"{row.where} has tags of {here}, and the first row those of {first}")
            texts.append(text)
            spans.append(_spans(words, text, row.where))
            for kind, own in tags.items():
                kinds[kind].append(tuple(own))
        for kind, given in kinds.items():
            if len({tag for line in given for tag in line}) < 2:
                raise BesagError(
                    f"{str(path)!r}: all words have one tag of the kind {kind!r}, so there is nothing to learn"
                )
        if not texts:
            raise BesagError(f"{str(path)!r} has no rows: give JSON Lines with {WORDS!r} and {TAGS!r}")
        return cls(tuple(texts), tuple(spans), {kind: tuple(given) for kind, given in kinds.items()})


def _words(row: rows.Row) -> tuple[list[str], dict[str, list[str]], str]:
    """The words of a row, their tags by kind, and the text that they stand in."""
    values = row.values if isinstance(row.values, Mapping) else {}
    words, tags = (columns.value(values, name, row.where) for name in (WORDS, TAGS))
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise BesagError(f"{row.where}: {WORDS!r} is {quoted(words)}: give a list of words, none of them empty")
    if not isinstance(tags, Mapping) or not tags:
        raise BesagError(f'{row.where}: {TAGS!r} is {quoted(tags)}: give kinds and their tags, as in {{"pos": […]}}')
    for kind, given in tags.items():
        if not isinstance(given, list) or len(given) != len(words) or not all(isinstance(tag, str) for tag in given):
            raise BesagError(
                f"{row.where}: the tags {kind!r} are {quoted(given)}: give one for each of {len(words)} words"
            )
    text = values.get(TEXT, " ".join(words))
    if not isinstance(text, str):
        raise BesagError(f"{row.where}: the text is {quoted(text)}: give a text, or leave it out")
    return words, dict(tags), text


def _spans(words: list[str], text: str, where: str) -> tuple[tuple[int, int], ...]:
    """Where words that follow each other stand in a text."""
    found, end = [], 0
    for word in words:
        start = text.find(word, end)
        if start < 0:
            raise BesagError(f"{where}: the word {word!r} does not follow in the text {quoted(text)}")
        end = start + len(word)
        found.append((start, end))
    return tuple(found)


@OBJECTIVES.register
class LERT(Objective):
    name = "lert"
    title = "tags of words beside hidden tokens, the shallow kinds first (LERT)"
    cite = ("cui2022",)

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        tags: Annotated[Any, "JSON Lines of words and their tags (in Python also Tagged)"],
        rate: Annotated[float, "share of the tokens of a tagged text that is hidden, and whose tags are asked"] = 0.15,
        first: Annotated[float, "share of the run after which the first kind has its full weight"] = 1 / 6,
        last: Annotated[float, "the same of the last kind"] = 1 / 2,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 < rate <= 1:
            raise BesagError(f"rate={rate!r}: a share of the tokens, above 0 and at most 1")
        if not 0 < first <= last <= 1:
            raise BesagError(f"first={first!r} and last={last!r}: shares of the run, 0 < first ≤ last ≤ 1")
        self.tagged = tags if isinstance(tags, Tagged) else Tagged.read(tags)
        self.rate, self.kinds = rate, tuple(self.tagged.tags)
        self.full: dict[str, float] = dict(
            zip(self.kinds, np.linspace(first, last, len(self.kinds)).tolist(), strict=True)
        )
        self.names = {kind: sorted({tag for line in given for tag in line}) for kind, given in self.tagged.tags.items()}
        self.texts: list[tuple[Tensor, Tensor]] | None = None  # ids (L,), numbers of tags (L, kinds), −1 for none
        model, generator = encoder.model, generator_for(seed, Training.LERT_WEIGHTS)
        heads = [nn.Linear(model.config.hidden_size, len(self.names[kind])) for kind in self.kinds]
        for head in heads:
            nn.init.normal_(head.weight, std=0.02, generator=generator)
            nn.init.zeros_(head.bias)
        self.heads = nn.ModuleList(heads).to(device=model.device, dtype=model.dtype)

    def meet(self, vocabulary: Vocabulary) -> None:
        """Cut the tagged texts into tokens; each has the tags of the word in which it begins."""
        numbers = [{name: number for number, name in enumerate(self.names[kind])} for kind in self.kinds]
        room = getattr(self.encoder.model.config, "max_position_embeddings", None)
        self.texts = []
        for index, encoded in enumerate(vocabulary.encode(list(self.tagged.texts))):
            if room is not None and len(encoded.ids) + self.encoder.offset > room:
                raise BesagError(f"the tagged text {quoted(encoded.text)} has {len(encoded.ids)} tokens: cut it")
            word = _word_of(encoded, self.tagged.spans[index])  # (L,)
            own = np.full((len(word), len(self.kinds)), -1)
            for place, kind in enumerate(self.kinds):
                given = [numbers[place][tag] for tag in self.tagged.tags[kind][index]]
                own[word >= 0, place] = np.array(given)[word[word >= 0]]
            if not (word >= 0).any():
                raise BesagError(f"the tagged text {quoted(encoded.text)} has no token in any of its words")
            self.texts.append((torch.from_numpy(encoded.ids), torch.from_numpy(own)))

    def forward(self, batch: Batch) -> Loss:
        losses, guesses = predict(self.encoder, self.encoder.states(batch.inputs, batch.layout), batch)
        masked = (losses * batch.weight).sum()
        ids, tags, layout, hidden = self.beside(batch)
        at = hidden.nonzero()[:, 0]  # (J,) like all that is counted, on the host: no step waits for the device
        count = torch.bincount(layout.row[at], minlength=layout.rows).clamp(min=1)
        inputs, row, tags, at, count = (
            part.to(batch.ids.device, non_blocking=True)
            for part in (ids.masked_fill(hidden, self.encoder.mask_id), layout.row[at], tags[at], at, count)
        )
        states = self.encoder.states(inputs, layout.to(inputs.device))[at]  # (J, H)
        asked = torch.zeros(layout.rows, device=inputs.device).index_add(0, batch.layout.row[batch.asked], batch.weight)
        weight = (asked / count)[row]  # (J,)
        total, logs = masked, {"masked_loss": masked.detach() / batch.weight.sum().clamp_min(1e-9)}
        for place, kind in enumerate(self.kinds):
            logits, target = self.heads[place](states), tags[:, place]
            summed = (cross_entropy(logits, target) * weight).sum()
            total = total + self.share(kind, batch.progress) * summed
            logs[f"{kind}_loss"] = summed.detach() / batch.weight.sum().clamp_min(1e-9)
            logs[f"{kind}_accuracy"] = (logits.argmax(-1) == target).float().mean()
        return Loss(total, logs, guesses)

    def share(self, kind: str, progress: float) -> float:
        """λ: what a kind counts at this progress."""
        return min(1.0, progress / self.full[kind])

    def beside(self, batch: Batch) -> tuple[Tensor, Tensor, Layout, Tensor]:
        """A tagged text for each passage: ids (T',), tags (T', kinds), how they lie, and which are hidden (T',); all of
        it on the host."""
        if self.texts is None:
            raise BesagError("lert must know the vocabulary: call meet(vocabulary)")
        draw = batch.draw_on_host
        which = (draws.uniform(self.seed, Training.LERT_TEXT, draw) * len(self.texts)).long()  # (R,)
        chosen = [self.texts[index] for index in which.tolist()]
        ids, tags = (torch.cat(parts) for parts in zip(*chosen, strict=True))
        layout = Layout.of_lengths(torch.tensor([len(text) for text, _ in chosen]))
        able = tags[:, 0] >= 0
        noise = draws.uniform(self.seed, Training.LERT_HIDE, draw[layout.row], layout.column)
        wanted = self.rate * sizes(able, layout)
        up = draws.uniform(self.seed, Training.LERT_ROUNDING, draw) < wanted - wanted.floor()
        return ids, tags, layout, lowest(noise, able, layout, (wanted.floor() + up).clamp(min=1))


def _word_of(encoded: Encoded, spans: tuple[tuple[int, int], ...]) -> np.ndarray:  # (L,)
    """The word in which each token begins, −1 where it begins in none."""
    starts, ends = np.array(spans).T
    begins = encoded.offsets[:, 0]
    word = np.searchsorted(starts, begins, side="right") - 1
    inside = (word >= 0) & (begins < ends[word]) & ~encoded.special & (encoded.offsets[:, 1] > begins)
    return np.where(inside, word, -1)
