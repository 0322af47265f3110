"""Left-to-right translation: a beam of targets that grow token by token until they end. A beam of one is greedy.

    score(x) = log p(x, end | s) / n^α,     n the tokens of x, its end counted

The beam holds the K likeliest beginnings that have not ended; what ends among the K likeliest continuations is kept.
The search of a source is over when K targets have ended, or at the longest length, where all that is left is ended. So
it is exact where K is no less than the number of beginnings. Tokens that no text holds (padding, mask, start) are never
written. Keys and values of earlier tokens are cached by transformers, but for one source or few on CUDA: there a pass
over all tokens that is replayed as a graph takes less than launching one over the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from besag.arrays import Ints
from besag.checks import number, whole_number
from besag.conditionals.decoder import CausalDecoder
from besag.errors import BesagError, quoted
from besag.sources import read_source

BATCH_TOKENS = {"cpu": 2**13, "mps": 2**13, "cuda": 2**16}  # of sources in a batch, times the beam
TIMES, MORE = 2, 10  # a target has at most twice as many tokens as its source, and ten more


class Hypothesis(NamedTuple):
    text: str
    ids: tuple[int, ...]  # its tokens, without the end
    log_prob: float  # log p(ids, end | source), nats
    score: float  # by which hypotheses are ranked


def translate(
    conditionals: Any,
    sources: Sequence[str],
    *,
    beam: int = 1,
    alpha: float = 1.0,
    most: int | None = None,
    batch_tokens: int | None = None,
    in_turn: Callable[[Callable[[], list[list[Hypothesis]]]], list[list[Hypothesis]]] = lambda batch: batch(),
    check: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """The targets that a beam found for each source, best first: at most `beam`, at least one.

    `most`: tokens of a target, its end counted. `in_turn` runs the search of a batch when the network is free.
    `check` is called before each token, and may raise.
    """
    if not isinstance(conditionals, CausalDecoder):
        name = getattr(conditionals, "name", type(conditionals).__name__)
        raise BesagError(f"{quoted(name)} has no left-to-right decoder: it cannot be decoded token by token")
    whole_number(beam, "beam", most=2**16)
    number(alpha, "alpha", least=0.0, most=100.0)
    room = BATCH_TOKENS[conditionals.device.type] if batch_tokens is None else batch_tokens
    whole_number(room, "batch_tokens", most=2**28)
    if most is not None:
        whole_number(most, "most", most=_room(conditionals))
    ids = [read_source(conditionals, text) for text in sources]
    found: dict[int, list[Hypothesis]] = {}
    for group in _batches([len(one) for one in ids], max(1, room // beam)):
        some = [ids[index] for index in group]
        limits = [most or min(TIMES * len(one) + MORE, _room(conditionals)) for one in some]
        found.update(zip(group, in_turn(_Search(conditionals, some, beam, alpha, limits, check).run), strict=True))
    return [found[index] for index in range(len(sources))]


@torch.inference_mode()
def forced(
    who: CausalDecoder, sources: Sequence[str], targets: Sequence[str], *, batch_tokens: int | None = None
) -> list[float | None]:
    """log p(x, end | s) / (n + 1) of each target, n its tokens; None where it is longer than the decoder writes."""
    end, room = int(who.model.config.eos_token_id), _room(who)
    given = [read_source(who, text) for text in sources]
    written = [one.ids[one.places].tolist() for one in who.vocabulary.encode(list(targets))]
    found: list[float | None] = [None] * len(targets)
    short = [at for at, ids in enumerate(written) if len(ids) < room]
    widths = [len(given[at]) + len(written[at]) for at in short]
    for group in _batches(widths, batch_tokens or BATCH_TOKENS[who.device.type]):
        some = [short[index] for index in group]
        rows = sorted(some, key=lambda at: -len(given[at]))
        ids, shown = _table([given[at] for at in rows], who.vocabulary.pad_id or 0, who.device)
        longest = max(len(written[at]) for at in rows)
        answers = torch.tensor([[*written[at], *[end] * (longest + 1 - len(written[at]))] for at in rows])  # (B, n + 1)
        answers = answers.to(who.device)
        begins = torch.tensor(who.begins, device=who.device).repeat(len(rows), 1)
        states, _ = who.core.step(torch.cat([begins, answers[:, :-1]], 1), who.core.read(ids, shown), shown)
        asked = states[:, len(who.begins) - 1 :]  # (B, n + 1, H)
        log_probs = who.head(asked.flatten(0, 1)).float().log_softmax(-1).view(len(rows), longest + 1, -1)
        each = log_probs.gather(2, answers[..., None])[..., 0].double()  # (B, n + 1)
        for at, row in zip(rows, each.tolist(), strict=True):
            found[at] = sum(row[: len(written[at]) + 1]) / (len(written[at]) + 1)
    return found


def _room(who: CausalDecoder) -> int:
    """Tokens that fit after those that a target begins with."""
    return max(1, (who.max_length or 2**20) - len(who.begins))


def _batches(lengths: list[int], tokens: int) -> Iterator[list[int]]:
    """Sources of similar length together, longest first: count × longest is at most `tokens`, or one source alone."""
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda one: -lengths[one]):
        if group and (len(group) + 1) * lengths[group[0]] > tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


class _Search:
    """One batch of B sources, K beginnings each."""

    def __init__(
        self,
        who: CausalDecoder,
        sources: list[Ints],
        beam: int,
        alpha: float,
        most: list[int],
        check: Callable[[], None],
    ) -> None:
        self.who, self.beam, self.alpha, self.check = who, beam, alpha, check
        self.most = torch.tensor(most, device=who.device).repeat_interleave(beam)  # (B K,) tokens, their end counted
        self.count = len(sources)
        config, vocabulary = who.model.config, who.vocabulary
        self.end = int(config.eos_token_id)
        never = vocabulary.special_ids - {self.end, vocabulary.unknown_id}
        self.never = torch.tensor([*sorted(never), *range(vocabulary.size, who.width)], device=who.device)
        self.ended: list[list[Hypothesis]] = [[] for _ in sources]
        self.ids, self.shown = _table(sources, vocabulary.pad_id or 0, who.device)  # (B, S)

    @torch.inference_mode()
    def run(self) -> list[list[Hypothesis]]:
        who, beam = self.who, self.beam
        memory = who.encode(self.ids, self.shown).repeat_interleave(beam, 0)  # (B K, S, H)
        shown = self.shown.repeat_interleave(beam, 0)
        begins = torch.tensor(who.begins, device=who.device).repeat(self.count * beam, 1)  # (B K, L)
        rereads = who.rereads(self.count * beam, int(self.most.max()) + len(who.begins))
        last, written = begins, begins[:, :0]  # (B K, t)
        total = torch.full((self.count, beam), -inf, device=who.device)  # (B, K) log p of each beginning
        total[:, 0] = 0.0
        cache: Any = None
        not_the_end = torch.arange(who.width, device=who.device) != self.end
        for size in range(1, int(self.most.max()) + 1):
            self.check()
            if rereads:
                state = who.reread(torch.cat([begins, written], dim=1), memory, shown)  # (B K, H)
            else:
                states, cache = who.core.step(last, memory, shown, cache)
                state = states[:, -1]
            log_probs = who.head(state).float().log_softmax(-1)  # (B K, V)
            log_probs[:, self.never] = -inf
            log_probs.masked_fill_((self.most == size)[:, None] & not_the_end, -inf)
            parent, token, total = self._grow(total, log_probs, written, size)
            if all(len(one) >= beam for one in self.ended):
                break
            written = torch.cat([written[parent], token[:, None]], dim=1)
            last = token[:, None]
            if cache is not None:
                cache.self_attention_cache.reorder_cache(parent)  # sources are the same for all that share one
        return [sorted(one, key=lambda each: -each.score)[:beam] for one in self.ended]

    def _grow(
        self, total: Tensor, log_probs: Tensor, written: Tensor, size: int
    ) -> tuple[Tensor, Tensor, Tensor]:  # (B K,) row of the parent, (B K,) token, (B, K) log p
        beam, width = self.beam, log_probs.shape[-1]
        all_of = (total.view(-1, 1) + log_probs).view(self.count, beam * width)
        score, place = all_of.topk(min(2 * beam, beam * width))  # (B, 2 K): as many again, for those that end
        ends = place % width == self.end
        self._keep(score[:, :beam], place[:, :beam] // width, ends[:, :beam], written, size)
        order = torch.where(ends, -inf, score)
        best, at = order.topk(beam)
        place = place.gather(1, at)
        parent = place // width + torch.arange(self.count, device=place.device)[:, None] * beam
        return parent.flatten(), (place % width).flatten(), best

    def _keep(self, score: Tensor, parent: Tensor, ends: Tensor, written: Tensor, size: int) -> None:
        """What ends now, among the K likeliest continuations of each source."""
        row, slot = (ends & score.isfinite()).nonzero(as_tuple=True)
        ids = written[row * self.beam + parent[row, slot]].tolist()  # fetched at once: each fetch waits for the device
        for source, own, log_prob in zip(row.tolist(), ids, score[row, slot].tolist(), strict=True):
            if len(self.ended[source]) < self.beam:
                text = str(self.who.vocabulary.tokenizer.decode(own, skip_special_tokens=True)).strip()
                self.ended[source].append(Hypothesis(text, tuple(own), log_prob, log_prob / size**self.alpha))


def _table(sources: list[Ints], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(B, S) the sources below each other, padded; (B, S) bool, what is no padding."""
    table = torch.full((len(sources), len(sources[0])), pad_id)
    for row, source in enumerate(sources):
        table[row, : len(source)] = torch.from_numpy(source)
    lengths = torch.tensor([len(source) for source in sources])
    shown = torch.arange(table.shape[1]) < lengths[:, None]
    return table.to(device), shown.to(device)
