"""Whole sentences by pairs: the chain rule over blocks of two tokens, each with the joint of its own conditionals.

    log p(x | n) = Σ_blocks log p(x_a, x_b | x_revealed),   the rest hidden; an odd last token is a block of its own

In a block, X and Y are the `candidates` likeliest tokens of a and b with both hidden. The a→b chain gives a pair the
probability c(x, y) = p(a = x) p(b = y | a = x), and the box X × Y the mass M = Σ c. Inside the box the law is
M·q(x, y), where q is the `ag` (or `stationary`) joint of the conditionals between X and Y, each renormalised inside the
box; outside it is c(x, y).

A probability: candidates and order depend on revealed tokens alone, so the values of all token sequences of one length
sum to one, whether or not the model's conditionals are compatible. Where zeros of an exact law leave q open, c stands.

A block's log-probability is shared as by the chain rule: its first token has the block law's own marginal, the second
the rest. Not to be confused with `chain`, which asks b once, after a; here a and b are asked in each other's light.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag import checks, noise
from besag.arrays import Bools, Floats, Ints
from besag.engine import Answers, Request
from besag.errors import BesagError
from besag.joints.small_tables import arnold_gokhale, stationary
from besag.reductions import Top
from besag.scores.chain import Order, times
from besag.scores.passage import BLOCK, Parts, Passage, ScorePlan
from besag.scores.registry import FIXED_LENGTH, Method, register, windows

JOINTS = ("ag", "stationary")
LARGEST_BOX = 256


class Block(NamedTuple):
    """The law of g blocks in each of B texts: c × c pairs of likely tokens have a joint, the others the chain's law."""

    tokens: Ints  # (B, g, 2, c) X and Y
    log_law: Tensor  # (B, g, c, c) of the pairs in the box: log M + log q, or log c where there is no q
    log_escape: Tensor  # (B, g, c) of x in X with any y that is not in Y
    joined: Tensor  # (B, g) is there a q?
    log_given: Tensor  # (B, g) of the text's own b given its own a


@register
@dataclass(frozen=True)
class AgChain(Method):
    name = "ag_chain"
    title = "chain rule over pairs of tokens with their Arnold-Gokhale joints: a true probability"
    formula = "Σ_(a,b) log p(x_a, x_b | x_revealed)"
    passes = "n/2 · (2·candidates + 2)"
    normalised = FIXED_LENGTH
    cite = ("torroba2023", "arnold1998", "uria2014")

    candidates: Annotated[int, "likeliest tokens of each place of a pair, 1 to 256; 1 is the plain chain"] = 16
    joint: Annotated[Literal["ag", "stationary"], "of a pair"] = "ag"
    weights: Annotated[Literal["uniform", "marginal"], "of contexts in the ag joint"] = "uniform"
    order: Annotated[Order, "in which tokens are revealed"] = "left-to-right"
    seed: Annotated[int, "of a random order"] = 0

    def __post_init__(self) -> None:
        if self.joint == "stationary" and self.weights != "uniform":
            raise BesagError(
                f"weights={self.weights!r} is for joint='ag': the stationary law weighs contexts by itself"
            )
        right = f"give a number from 1 to {LARGEST_BOX}"
        checks.whole_number(self.candidates, "candidates", right=right, most=LARGEST_BOX)
        noise.whole_seed(self.seed)

    @property
    def ranks(self) -> bool:
        return False

    def cost(self, n: int, length: int) -> int:
        both = windows(n, length) if self.order == "confident" else min(2, windows(n, length))
        return (n // 2 * (both + 2 * self.candidates + 1) + n % 2) * length

    def plan(self, passage: Passage) -> ScorePlan:
        numbers = (2 * self.candidates + 1) * max(
            passage.ids.shape[1], self.candidates + 1
        )  # asked about one block of one text
        together = max(1, BLOCK // numbers)
        if len(passage.texts) > together:
            parts = []
            for start in range(0, len(passage.texts), together):
                few = replace(passage, texts=passage.texts[start : start + together])
                parts.append((yield from self.plan(few)).log_probs)
            return Parts(np.concatenate(parts))
        if self.order == "confident":
            return Parts((yield from self._most_confident_first(passage)))
        time = times(self.order, passage.size, self.seed)  # (n,)
        order, log_probs = time.argsort(), np.empty((len(passage.texts), passage.size))
        pairs = order[: passage.size // 2 * 2].reshape(-1, 2)
        group = max(1, together // len(passage.texts))
        for start in range(0, len(pairs), group):
            block = pairs[start : start + group]  # (g, 2)
            hide = time >= time[block[:, :1]]  # (g, n)
            row = np.arange(len(block)).repeat(2)
            answers = yield from passage.ask(hide, row, block.ravel(), Top(self.candidates))
            log_probs[:, block] = yield from self._score(passage, hide[None], block[None], answers)
        if passage.size % 2:
            answers = yield from passage.ask((time == time.max())[None], np.zeros(1, np.int64), order[-1:])
            log_probs[:, order[-1:]] = answers["target"]
        return Parts(log_probs)

    def _most_confident_first(self, passage: Passage) -> Generator[Request, Answers, Floats]:
        """a is the place whose likeliest token is most probable and b the next one, leftmost where equal."""
        texts, size = len(passage.texts), passage.size
        hidden, every, log_probs = np.ones((texts, size), bool), np.arange(texts)[:, None], np.empty((texts, size))
        for left in range(size, 0, -2):
            index = np.nonzero(hidden)[1].reshape(texts, left)
            answers = yield from passage.ask(hidden[:, None], np.zeros_like(index), index, Top(self.candidates))
            sure = np.argsort(-answers["top_log_probs"][..., 0], 1, kind="stable")[:, :2]  # (B, 2), or (B, 1)
            block, chosen = index[every, sure], {key: values[every, sure] for key, values in answers.items()}
            if left == 1:
                log_probs[every, block] = chosen["target"]
            else:
                scores = yield from self._score(passage, hidden[:, None], block[:, None], chosen)
                log_probs[every, block] = scores[:, 0]
            hidden[every, block] = False
        return log_probs

    def _score(
        self, passage: Passage, hide: Bools, pairs: Ints, answers: Answers
    ) -> Generator[Request, Answers, Floats]:
        """(B, g, 2) log-probabilities of the text's own tokens, from the answers about both places, (B, 2g, …)."""
        texts, count = len(passage.texts), pairs.shape[1]
        pairs = np.broadcast_to(pairs, (texts, count, 2))
        own = np.take_along_axis(passage.ids[:, passage.places], pairs.reshape(texts, -1), 1).reshape(pairs.shape)
        block = yield from self.ask_block(passage, hide, pairs, answers, own)
        alone = torch.from_numpy(answers["target"].reshape(texts, count, 2)[..., 0]).to(
            block.log_law
        )  # (B, g) log p(a)
        found = torch.from_numpy(block.tokens == own[..., None]).to(block.joined.device)  # (B, g, 2, c)
        inside, (x, y) = found.any(-1), found.long().argmax(-1).unbind(-1)
        row = block.log_law.take_along_dim(x[..., None, None], 2)[:, :, 0]  # (B, g, c)
        escape = block.log_escape.take_along_dim(x[..., None], 2)[..., 0]
        first = torch.where(inside[..., 0] & block.joined, torch.logaddexp(row.logsumexp(-1), escape), alone)
        boxed = row.take_along_dim(y[..., None], 2)[..., 0]
        both = torch.where(inside.all(-1) & block.joined, boxed, alone + block.log_given)
        impossible = first == -torch.inf  # then so is the pair, and the second token has nothing to explain
        second = torch.where(impossible, 0.0, both - first)
        return torch.stack([first, second], -1).cpu().numpy()

    def ask_block(
        self, passage: Passage, hide: Bools, pairs: Ints, answers: Answers, own: Ints | None = None
    ) -> Generator[Request, Answers, Block]:
        """What the likely tokens of a and b make of each other, places `pairs` (B, g, 2) of texts that hide (B, g, n).

        `answers` (B, 2g, …) are those about a and b with both hidden. `own` (B, g, 2) are the tokens of the text, if
        they are to be asked about.
        """
        texts, count, size = len(passage.texts), pairs.shape[1], passage.size
        tokens = answers["top_ids"].reshape(texts, count, 2, -1)  # (B, g, 2, c)
        log_probs = answers["top_log_probs"].reshape(tokens.shape).astype(np.float64)
        possible = ~np.isneginf(log_probs)
        shown = np.where(possible, tokens, tokens[..., :1])  # an exact law cannot be shown what has probability 0
        c, extra = tokens.shape[-1], 0 if own is None else 1
        wanted = tokens if own is None else np.concatenate([tokens, own[..., None]], -1)  # (B, g, 2, c + extra)
        # the copies of a block show a = x for each x, then b = y for each y, then the text's own a
        side = np.repeat([0, 1, 0], [c, c, extra])  # (K,) which of the two is shown; the other is asked
        values = np.concatenate([shown[:, :, 0], shown[:, :, 1], wanted[:, :, 0, c:]], -1)  # (B, g, K)
        opened = pairs[:, :, side][..., None]  # (B, g, K, 1)
        copies = np.broadcast_to(passage.ids[:, None, None, passage.places], (texts, count, len(side), size)).copy()
        np.put_along_axis(copies, opened, values[..., None], 3)
        hidden = np.broadcast_to(hide[:, :, None], copies.shape).copy()
        np.put_along_axis(hidden, opened, False, 3)
        said = yield from passage.ask(
            hidden.reshape(texts, -1, size),
            np.arange(count * len(side)),
            pairs[:, :, 1 - side].reshape(texts, -1),
            shown=copies.reshape(texts, -1, size),
            target=wanted[:, :, 1 - side].reshape(texts, count * len(side), -1),
        )
        device = passage.conditionals.device if passage.conditionals.device.type == "cuda" else torch.device("cpu")
        given = torch.from_numpy(said["target"]).to(device, torch.float64).view(texts, count, len(side), -1)
        log_a, log_b = given[:, :, c : 2 * c, :c].mT, given[:, :, :c, :c]  # (B, g, c, c) both [x, y]
        law = self._law(log_a, log_b, *torch.from_numpy(log_probs).to(device).unbind(2))
        return Block(tokens, *law, given[:, :, -1, -1])

    def _law(self, log_a: Tensor, log_b: Tensor, alone_a: Tensor, alone_b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log_law, log_escape and joined of a Block; from p(a|b) and p(b|a), (B, g, c, c), p(a) and p(b), (B, g, c)."""
        chain = alone_a[..., None] + log_b
        held_a, held_b = (
            log_a.logsumexp(2),
            log_b.logsumexp(3),
        )  # (B, g, c) how much of a column and a row is in the box
        sound = (held_a.isfinite() & held_b.isfinite() & alone_a.isfinite() & alone_b.isfinite()).all(-1)  # (B, g)
        if not bool(sound.any()):
            return chain, alone_a + _log_1m_exp(held_b), sound
        a, b = (log_a - held_a[:, :, None])[sound], (log_b - held_b[..., None])[sound]  # (N, c, c)
        if self.joint == "stationary":
            q = stationary(a, b)
        else:
            start = chain[sound].logsumexp(2), chain[sound].logsumexp(1)
            q = arnold_gokhale(a, b, *start, (alone_a[sound], alone_b[sound]) if self.weights == "marginal" else None)
        joined = sound.clone()
        joined[sound] = ~q.isnan().any((1, 2))
        law = chain.clone()
        law[joined] = q[joined[sound]] + chain[joined].logsumexp((1, 2), keepdim=True)
        return law, alone_a + _log_1m_exp(held_b), joined


def _log_1m_exp(x: Tensor) -> Tensor:
    """log(1 − eˣ) of x ≤ 0, to rounding."""
    return torch.log(-torch.expm1(x.clamp_max(0.0)))
