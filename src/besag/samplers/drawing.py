"""Which token: the law that a token is drawn from, given the model's logits at a place, and the draw itself.

    law(v) ∝ exp(logit_v / temperature) over the tokens that are allowed there,
             cut to the top_k likeliest, then to the fewest whose probabilities reach top_p

A draw inverts the distribution function in float64 at a given number in (0, 1). (Adding Gumbel noise in float32 draws
from a law of lower entropy than it says.) Everything runs where the logits are, chunk by chunk, and only what is asked
for is kept. Knows no chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from besag.checks import is_number, whole_number
from besag.conditionals.contract import Given, Questions
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.hardware import send
from besag.reductions import Chunk, Reduction, invert

COLDEST = 1e-30  # and its inverse the hottest: beyond, single precision divides by nothing


@dataclass(frozen=True)
class Drawing:
    """Options that a kernel offers beside its own, as fields with these names."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not COLDEST <= self.temperature <= 1 / COLDEST:
            raise BesagError(
                f"temperature={quoted(self.temperature)}: give a number above 0; 1 draws from the model's own law, and "
                "the nearer to 0, the more surely the likeliest token is taken"
            )
        if self.top_k is not None:
            whole_number(self.top_k, "top_k", right="keep at least 1 token, or None to keep all")
        if self.top_p is not None and (not is_number(self.top_p) or not 0 < self.top_p <= 1):
            raise BesagError(f"top_p={quoted(self.top_p)}: the share of probability to keep is above 0 and at most 1")

    @property
    def plain(self) -> bool:
        """Is the law the model's own, as far as tokens are allowed?"""
        return self.temperature == 1 and self.top_k is None and self.top_p in (None, 1)

    def law(self, logits: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Log-probabilities, (m, V), from logits (m, V); `allowed` is (V,) or (m, V) bool."""
        if allowed is not None:
            logits = logits.masked_fill(~allowed, -torch.inf)
        if self.temperature != 1:
            logits = (logits - logits.amax(-1, keepdim=True)) / self.temperature  # from the top: nothing overflows
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = logits.topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)  # equals of the last one stay
        log_probs = torch.log_softmax(logits, -1)
        if self.top_p is not None and self.top_p < 1:
            values, order = log_probs.sort(descending=True, stable=True)
            before = values.exp().cumsum(-1) - values.exp()  # (m, V) what the likelier ones hold together
            fits = before < self.top_p
            fits[:, 0] = True  # the likeliest always does, also where single precision takes the share for 0
            kept = torch.zeros_like(fits).scatter(1, order, fits)
            log_probs = torch.log_softmax(log_probs.masked_fill(~kept, -torch.inf), -1)
        return log_probs


AS_IT_IS = Drawing()  # the model's own law


class Drawn(NamedTuple):
    """What came of M asks. Fields that were not wanted are None."""

    token: Tensor  # (M,) drawn, or the likeliest
    log_prob: Tensor  # (M,) of the token, under the law that it was drawn from
    entropy: Tensor | None = None  # (M,) of that law, in nats
    best: Tensor | None = None  # (M,) the log-probability of its likeliest token: "confidence"
    margin: Tensor | None = None  # (M,) p(likeliest) − p(second)
    target: Tensor | None = None  # (M,) the log-probability of the target asked about, under that law
    row: Tensor | None = None  # (M, V) the law itself


def draw(
    engine: Engine,
    ids: Tensor,
    row: Tensor,
    place: Tensor,
    uniform: Tensor | None,
    *,
    drawing: Drawing = AS_IT_IS,
    allowed: Tensor | None = None,
    target: Tensor | None = None,
    want: tuple[str, ...] = (),
    given: Given | None = None,
) -> Drawn:
    """Ask about (sequence, place) pairs, sorted by sequence, of ids (N, L), and draw a token at each.

    `uniform` (M,) is the noise of the draws; None takes the likeliest token instead. `allowed` is the canvas's. `want`
    names further fields of `Drawn` ("entropy", "best", "margin", "row"); `target` (M,) asks for its log-probability.
    `given` is the canvas's, of the sequences (N,). One pass through the network for each sequence that is asked about.
    """
    questions = Questions(ids, row, place, given=given)
    kept = answered(engine, questions, _Draw(drawing, place, uniform, allowed, target, want))
    return Drawn(**{name: kept.get(name) for name in Drawn._fields})  # type: ignore[arg-type]


def answered(engine: Engine, questions: Questions, reduce: Reduction | Sequence[Reduction]) -> dict[str, Tensor]:
    """How every kernel asks. An answer that is no law is refused here, at once where that waits for no device.

    On a device `Engine.check` tells of it some steps later; until then tokens are drawn that every network knows.
    """
    kept = engine.ask(questions, reduce)
    if engine.conditionals.device.type == "cpu":
        try:
            engine.check()
        except BesagError as problem:
            raise type(problem)(
                f"{problem}. It was asked about token {_unsound(questions, kept)}, and a draw needs an answer without "
                "NaN and +inf that gives some token that may stand there a probability."
            ) from problem
    return kept


def _unsound(questions: Questions, kept: dict[str, Tensor]) -> int:
    """The first place whose answer is NaN."""
    values = [value.reshape(len(value), -1) for value in kept.values() if value.is_floating_point()]
    strange = torch.stack([value.isnan().any(1) for value in values]).any(0)  # (M,)
    return int(questions.place[int(strange.long().argmax())])


def law_of(chunk: Chunk, drawing: Drawing, allowed: Tensor | None, heat: Tensor | None = None) -> Tensor:
    """(m, V) the laws that a chunk's asks are drawn from; a row of NaN where the model's answer is none.

    No law is an answer with NaN or +inf in it, or one that gives no probability to any token of `allowed`, (V,) or
    (m, V). `heat` (m,) divides the logits.
    """
    logits = chunk.per_ask(chunk.logits)
    law = drawing.law(logits if heat is None else logits / heat.to(logits)[:, None], allowed)
    return law.masked_fill_(chunk.per_ask(chunk.normaliser == torch.inf)[:, None], torch.nan)


def allowed_at(allowed: Tensor | None, place: Tensor, device: torch.device) -> Tensor | None:
    """(V,) or (m, V): what a canvas allows, at the places (m,) that are asked about."""
    if allowed is None or allowed.ndim == 1:
        return allowed
    return allowed[send(place, device)]


def sample(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """(m,) one token from each law (m, V), by inverting its distribution function at `uniform` (m,), in float64."""
    return invert(log_probs.exp(), uniform)


@dataclass(frozen=True, eq=False)
class _Draw:
    """The reduction: holds something for each ask, so it serves one call of `Engine.ask`."""

    drawing: Drawing
    place: Tensor
    uniform: Tensor | None
    allowed: Tensor | None
    target: Tensor | None
    want: tuple[str, ...]

    def __call__(self, chunk: Chunk) -> dict[str, Tensor]:
        device, asks = chunk.logits.device, chunk.asks
        law = law_of(chunk, self.drawing, allowed_at(self.allowed, self.place[asks], device))  # (m, V)
        token = law.argmax(-1) if self.uniform is None else sample(law, self.uniform[asks])
        kept: dict[str, Any] = {"token": token, "log_prob": law.gather(1, token[:, None])[:, 0]}
        if "best" in self.want:
            kept["best"] = law.amax(-1)
        if "entropy" in self.want:
            kept["entropy"] = torch.special.entr(law.exp()).sum(-1)
        if "margin" in self.want:
            two = law.topk(min(2, law.shape[1])).values.exp()
            kept["margin"] = two[:, 0] - (two[:, 1] if two.shape[1] > 1 else 0)
        if "row" in self.want:
            kept["row"] = law
        if self.target is not None:
            kept["target"] = law.gather(1, send(self.target[asks], device)[:, None])[:, 0]
        return kept
