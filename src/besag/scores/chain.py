"""The chain rule in any order: log p(x | n) = Σ_k log p(x_{σ(k)} | x_{σ(1)} … x_{σ(k−1)}), everything else hidden.

A probability: for a fixed order, or one chosen from what is already revealed, the values of all token sequences of one
length sum to one, whether or not the model's conditionals are compatible. Different orders give different laws, and how
much they differ shows how incompatible the conditionals are.

Orders: `left-to-right` (also `sentence_l2r`), `right-to-left`, `random` (drawn from the seed and the length alone), and
`confident` (next comes the place whose likeliest token is most probable; never looking at the true token, else the
values would not sum to one). With `orders=k` random orders the score is the log of their mean probability, which is
again a probability; the tokens then carry the mean over orders, and `extra["mixture"]` what the mixture adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from besag import checks, noise
from besag.arrays import Ints
from besag.errors import BesagError
from besag.reductions import Top
from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import FIXED_LENGTH, Method, register, windows

MOST_ORDERS = 10_000  # each takes as many passes as a text has tokens
Order = Literal["left-to-right", "right-to-left", "random", "confident"]


@register
@dataclass(frozen=True)
class Chain(Method):
    name = "chain"
    title = "chain rule over the tokens in any order: a true probability"
    formula = "Σ_k log p(x_σ(k) | x_σ(1) … x_σ(k−1))"
    passes = "n for each order"
    normalised = FIXED_LENGTH
    cite = ("uria2014", "kauf2023")
    aliases = ("sentence_l2r", "global_l2r")

    order: Annotated[Order, "in which tokens are revealed"] = "left-to-right"
    orders: Annotated[int, "how many random orders are averaged"] = 1
    seed: Annotated[int, "of random orders"] = 0

    def __post_init__(self) -> None:
        noise.whole_seed(self.seed)
        if checks.whole_number(self.orders, "orders", most=MOST_ORDERS) > 1 and self.order != "random":
            raise BesagError(f"orders={self.orders} with order={self.order!r}: only random orders can be averaged")

    @property
    def ranks(self) -> bool:
        return self.orders == 1

    def cost(self, n: int, length: int) -> int:
        asked = windows(n, length) if self.order == "confident" else 1  # every masked token is asked in each turn
        return self.orders * n * asked * length

    def plan(self, passage: Passage) -> ScorePlan:
        if self.order == "confident":
            return (yield from _most_confident_first(passage))
        everything = []
        for number in range(self.orders):
            time = self._times(passage.size, number)
            answers = yield from passage.ask_each(lambda index, time=time: time[index, None] <= time)  # type: ignore[misc]
            everything.append(Parts.of(answers))
        if self.orders == 1:
            return everything[0]
        log_probs = np.stack([parts.log_probs for parts in everything])  # (orders, B, n)
        totals = log_probs.sum(-1)
        possible = ~np.isneginf(totals).all(0)  # (B,) in any order; where it is not, there is nothing to add to −∞
        mean = np.where(possible, totals.mean(0), 0.0)
        mixture = np.where(possible, np.logaddexp.reduce(totals) - np.log(self.orders), 0.0) - mean  # ≥ 0 by Jensen
        return Parts(log_probs.mean(0), extra={"mixture": mixture})

    def _times(self, size: int, number: int) -> Ints:
        return times(self.order, size, self.seed, number)


def times(order: str, size: int, seed: int, number: int = 0) -> Ints:
    """(n,) when each place is revealed; `number` counts random orders of one seed."""
    places = np.arange(size)
    if order == "left-to-right":
        return places
    if order == "right-to-left":
        return places[::-1]
    return noise.uniform(seed, noise.Measuring.ORDER, number, places).argsort().argsort()


def _most_confident_first(passage: Passage) -> ScorePlan:
    texts, size = len(passage.texts), passage.size
    hidden, every = np.ones((texts, size), bool), np.arange(texts)
    found: dict[str, NDArray[Any]] = {}
    for left in range(size, 0, -1):
        index = np.nonzero(hidden)[1].reshape(texts, left)
        answers = yield from passage.ask(hidden[:, None], np.zeros_like(index), index, Top(1))
        best = np.argmax(answers["top_log_probs"][..., 0], 1)  # (B,) the leftmost, where several are equally sure
        place = index[every, best]
        for key, values in answers.items():
            found.setdefault(key, np.empty((texts, size, *values.shape[2:]), values.dtype))[every, place] = values[
                every, best
            ]
        hidden[every, place] = False
    return Parts.of(found)
