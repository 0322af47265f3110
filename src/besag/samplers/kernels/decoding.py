"""What decoders share: drawing at many places of many chains from one pass, taking the foremost, what they refuse.

Knows no order and no schedule: which places are drawn when is each kernel's own matter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from besag.engine import Engine
from besag.errors import BesagError, nearest
from besag.hardware import send
from besag.noise import Sampling
from besag.samplers.chain import EVERY_TIME
from besag.samplers.drawing import Drawing, draw
from besag.samplers.kernel import AnyState, Canvas, Info, Kernel, Noise, State, changes, hidden, made, refuse_no_places

Pick = Literal["sample", "argmax"]
PICKS = ("sample", "argmax")
MEASURES = {"entropy": "entropy", "margin": "margin", "confidence": "best"}  # the field of `Drawn` that each looks at


SEARCH = f"no law: a search for likely text, {EVERY_TIME}"  # what comes of the likeliest tokens alone


@dataclass(frozen=True, kw_only=True)
class Decoder(Kernel):
    """A kernel that fills what is hidden, with tokens that are drawn, or with the likeliest."""

    pick: Annotated[Pick, "draw tokens, or take the likeliest"] = "sample"
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    @property
    def effective_law(self) -> str:
        return SEARCH if self.pick == "argmax" else self.law

    @property
    def how(self) -> Drawing:
        """How tokens are drawn; the likeliest one is not drawn at all, so nothing about drawing may be said with it."""
        refuse_unknown("pick", self.pick, PICKS)
        how = Drawing(self.temperature, self.top_k, self.top_p)
        if self.pick == "argmax" and not how.plain:
            raise BesagError(
                f"pick='argmax' takes the likeliest token, so there is nothing for temperature={self.temperature!r}, "
                f"top_k={self.top_k!r}, top_p={self.top_p!r} to act on: leave them out, or give pick='sample'"
            )
        return how

    def __post_init__(self) -> None:
        _ = self.how

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> Any:
        return State(canvas.ids.clone(), never_the_mask(canvas, engine.conditionals.width), 0)


@dataclass(frozen=True, kw_only=True)
class Chooser(Decoder):
    """A decoder that asks about hidden places in one pass a step, and chooses which of them to reveal."""

    measure: ClassVar[str]  # of MEASURES: by which it chooses

    def asked(self, state: State) -> Tensor:
        """(C, L) the places that may be revealed now."""
        return hidden(state)

    @abstractmethod
    def choose(self, state: State, asked: Tensor, turn: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """(C, L) those that are, where the model is the surer of a place the less its turn; and what is to be told."""

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        asked = self.asked(state)  # (C, L)
        answers = fill(engine, noise, state, state.ids, asked, self.pick, self.how, measure=self.measure)
        assert answers.turn is not None
        chosen, more = self.choose(state, asked, answers.turn)
        ids = torch.where(chosen, answers.token, state.ids)
        log_prob = answers.log_prob.masked_fill(~chosen, 0).sum(1)
        told = {"revealed": chosen.sum(1), **more, "log_prob": log_prob}
        return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), answers.passes, told)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(n, steps) * (length + source)

    def steps(self, canvas: Canvas) -> int:
        return most_hidden(canvas)


def foremost(turn: Tensor, among: Tensor, size: int | Tensor) -> Tensor:
    """(C, L) the `size` (one number, or (C,)) places of each chain whose turn is least; of equals, the first place."""
    # An answer that is NaN is reported by `Engine.check`; it must not keep a place from ever being taken.
    turn = torch.where(among, turn.nan_to_num(), torch.inf)
    rank = turn.argsort(dim=1, stable=True).argsort(1)
    within: Tensor = rank < (size[:, None] if isinstance(size, Tensor) else size)
    return among & within


class Answers(NamedTuple):
    """What came of asking about some places of each chain. Numbers at places that were not asked mean nothing."""

    token: Tensor  # (C, L)
    log_prob: Tensor  # (C, L) of the token, under the law that it was drawn from
    turn: Tensor | None  # (C, L) the surer the model is of a place, in the wanted measure, the less
    passes: Tensor  # (C,) on the host


def fill(
    engine: Engine,
    noise: Noise,
    state: AnyState,
    shown: Tensor,
    where: Tensor,
    pick: Pick,
    how: Drawing,
    *,
    measure: str | None = None,
    alone: bool = False,
) -> Answers:
    """A token at each place of `where` (C, L), given `shown` (C, L): one pass a chain, none where nothing is asked.

    `measure` is an order that looks at the rows: `turn` then says in which order it takes the places. With `alone` each
    place is asked in a copy of its chain where it is hidden too: one pass a place.
    """
    device, asks = shown.device, where.cpu()
    row, place = asks.nonzero(as_tuple=True)  # (M,) each, sorted by chain
    if not len(row):
        nothing = torch.zeros(shown.shape, device=device)
        return Answers(shown, nothing, nothing, torch.zeros(len(shown), dtype=torch.long))
    at = send(row, device), send(place, device)
    if alone:
        every = torch.arange(len(row))
        mask = torch.tensor(state.canvas.mask_id, device=device)
        sequences, sequence, given = shown[at[0]].index_put((every.to(device), at[1]), mask), every, row
    else:
        asked = asks.any(1)  # (C,)
        some = shown if bool(asked.all()) else shown[send(asked.nonzero()[:, 0], device)]
        sequences, sequence, given = some, (asked.cumsum(0) - 1)[row], asked
    drawn = draw(
        engine,
        sequences,
        sequence,
        place,
        noise.asks(Sampling.DRAW, state.step, row, place) if pick == "sample" else None,
        drawing=how,
        allowed=state.canvas.allowed,
        want=(MEASURES[measure],) if measure else (),
        given=state.canvas.given_to(given),
    )

    def spread(values: Tensor) -> Tensor:
        return values.new_zeros(shown.shape).index_put(at, values)

    turn = None
    if measure:
        value = getattr(drawn, MEASURES[measure])
        turn = spread(value if measure == "entropy" else -value)
    return Answers(spread(drawn.token), spread(drawn.log_prob), turn, asks.sum(1) if alone else asks.any(1).long())


def hidden_at_first(canvas: Canvas) -> Tensor:
    """(C, L) on the host: the places to be filled. A free place that shows a token keeps it."""
    return ((canvas.ids == canvas.mask_id) & canvas.free).cpu()


def never_the_mask(canvas: Canvas, width: int) -> Canvas:
    """The canvas, with the mask itself among what may not be written: else a place could be revealed as hidden."""
    if canvas.mask_id >= width:
        return canvas
    words = torch.arange(width, device=canvas.ids.device) != canvas.mask_id  # (V,)
    return canvas._replace(allowed=words if canvas.allowed is None else canvas.allowed & words)


def drawn_at(
    engine: Engine,
    noise: Noise,
    ids: Tensor,
    canvas: Canvas,
    chosen: Tensor,
    step: int,
    drawing: Drawing,
    pick: Pick = "sample",
) -> tuple[Tensor, Tensor]:
    """Draw the `chosen` places (C, L; on the host) of ids (C, L), all from one pass for each chain that has any.

    Returns ids with the tokens in place, and (C, L) the log-probability of each, 0 elsewhere. `step` is the noise's.
    """
    row, place = chosen.nonzero(as_tuple=True)  # (M,) each
    if not len(row):
        return ids, torch.zeros(ids.shape, device=ids.device)
    asked = chosen.any(1)  # (C,)
    among = asked.cumsum(0) - 1  # (C,) of each chain that is asked about, its number among them
    uniform = noise.asks(Sampling.DRAW, step, row, place) if pick == "sample" else None
    shown = ids[asked.to(ids.device)] if not bool(asked.all()) else ids
    given = canvas.given_to(asked)
    drawn = draw(engine, shown, among[row], place, uniform, drawing=drawing, allowed=canvas.allowed, given=given)
    at = row.to(ids.device), place.to(ids.device)
    log_prob = torch.zeros(ids.shape, dtype=drawn.log_prob.dtype, device=ids.device)
    return ids.index_put(at, drawn.token), log_prob.index_put(at, drawn.log_prob)


# ---- what the decoders refuse, each in the same words


def refuse_unknown(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise BesagError(f"{option}={value!r}: give one of {', '.join(known)}.{nearest(str(value), known)}")


def refuse_nothing_hidden(canvas: Canvas) -> None:
    refuse_no_places(canvas)
    if not most_hidden(canvas):
        raise BesagError(
            "no free place is hidden, and this kernel fills hidden places only: give a text with a mask, or a length"
        )


def most_hidden(canvas: Canvas) -> int:
    """How many places are hidden in the chain that has most of them."""
    return int(hidden(State(canvas.ids, canvas, 0)).sum(1).max())
