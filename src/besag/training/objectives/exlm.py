"""ExLM: a mask becomes k states, and which of them say the hidden tokens is summed over.

    a hidden token stands as k masks at its own place, told apart by a learned vector for each of the k
    states of a passage are u = 1 … S, place by place: S = k · m for m hidden tokens x_1 … x_m, in their order

    E_u(v)   = softmax(head(h_u))[v]                                     what a state says
    T(u → w) = Σ_g gate_g(u) · softmax_w(query_g(u) · key_g(w) / √d)     which later state w > u is next, or the end
    p(x_1 … x_m) = Σ_{u_1 < … < u_m} T(start → u_1) E_{u_1}(x_1) T(u_1 → u_2) … E_{u_m}(x_m) T(u_m → end)

m hidden tokens find room for k · m meanings, and a state knows what the one before it said: `mlm` would have the tokens
of K independent. All paths are summed by the forward recursion

    α_i(w) = E_w(x_i) Σ_{u < w} α_{i−1}(u) T(u → w),      p(x_i | x_1 … x_{i−1}) = Σ_w α_i(w) / Σ_u α_{i−1}(u),

so that each hidden token has a loss and a weight of its own; that of the end is the last one's. Over texts of all
lengths up to S this is one distribution: that there are m tokens is learned, too.

A token that is asked is expanded whatever the replacement policy put there. Transitions and vectors are thrown away.
What is left has never met a single mask, so its `purpose` is "encode"; with `mlm_share` > 0 that share of the passages
(by noise) is plain masked modelling in the same pass, and the network can be scored.

Needs a network that besag can run layer by layer (besag.training.network.layers).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import torch
from torch import Tensor, nn

from besag.checks import whole_number
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.decoder import by_heads
from besag.training.network.encoder import Encoder
from besag.training.network.layers import Layered
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, Predicted, cross_entropy
from besag.training.objectives.sharing import check_share, generator_for, plain_rows

NEVER = -1e9  # a log probability that no sum notices, and that has a gradient where −∞ has none


class Expanded(NamedTuple):
    """The longer sequences, U tokens."""

    ids: Tensor  # (U,) what is read
    layout: Layout
    state: Tensor  # (U,) from 1: which of the k states of its place; 0 where a token stands for itself
    first: Tensor  # (T,) where each token of the batch begins in them


@OBJECTIVES.register
class ExLM(Objective):
    name = "exlm"
    title = "a mask becomes several states, and the paths through them are summed (ExLM)"
    cite = ("zheng2025exlm",)

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        states: Annotated[int, "k, of each hidden token"] = 4,
        mlm_share: Annotated[float, "of the passages that are plain masked modelling"] = 0.0,
    ) -> None:
        super().__init__(encoder, seed=seed)
        self.states = whole_number(states, "states of the objective 'exlm'", most=100)
        self.mlm_share = check_share(self.name, mlm_share)
        self.layered = Layered(encoder)
        config, generator = encoder.model.config, generator_for(seed, Training.EXLM_WEIGHTS)
        links = Links(config.hidden_size, config.num_attention_heads, generator)
        vectors = torch.empty(states, config.hidden_size).normal_(std=0.02, generator=generator)
        self.links = links.to(device=encoder.model.device, dtype=encoder.model.dtype)
        self.vectors = nn.Parameter(vectors.to(device=encoder.model.device, dtype=encoder.model.dtype))

    @property
    def purpose(self) -> str:
        return "score" if self.mlm_share > 0 else "encode"

    def forward(self, batch: Batch) -> Loss:
        real = batch.weight > 0
        asked, order = batch.asked[real].sort()  # (M,) in the order of the text
        weight, target, row = batch.weight[real][order], batch.ids[asked], batch.layout.row[asked]
        whole = ~plain_rows(batch, self.mlm_share, self.seed, Training.EXLM_SHARE)[row]  # (M,)
        longer = expand(batch, asked[whole], self.states, self.encoder.mask_id)
        embedded = self.layered.embed(longer.ids, longer.layout.position)  # (U, H)
        told = nn.functional.pad(self.vectors, (0, 0, 1, 0))[longer.state]  # nothing is added to a plain token
        found = self.layered.run(embedded + told.to(embedded.dtype), longer.layout)
        losses, correct = weight.new_zeros(len(asked)), torch.zeros_like(whole)
        logits = self.encoder.logits(found[longer.first[asked[~whole]]])
        losses[~whole], correct[~whole] = cross_entropy(logits, target[~whole]), logits.argmax(-1) == target[~whole]
        places = longer.first[asked[whole]][:, None] + torch.arange(self.states, device=row.device)  # (A, k)
        if len(places):
            losses[whole], correct[whole] = self._by_paths(found[places], row[whole], target[whole])
        else:  # every process must still give every weight a gradient
            losses = losses + 0.0 * sum(part.sum() for part in (*self.links.parameters(), self.vectors))
        logs = {"expanded_loss": losses.detach()[whole].mean()} if len(places) else {}
        guesses = Predicted(target, losses.detach(), correct) if self.encoder.watched else None
        return Loss((losses * weight).sum(), logs, guesses)

    def _by_paths(self, states: Tensor, row: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Of hidden tokens (A,), each with k states (A, k, H) and its passage: its loss, and was it guessed?"""
        line, row = torch.unique_consecutive(row, return_inverse=True)  # passages with hidden tokens alone
        count = torch.bincount(row)  # (R,) m
        turn = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[row]  # (A,)
        shape = (len(line), int(count.max()) * self.states)  # (R, S)
        at = (row[:, None], turn[:, None] * self.states + torch.arange(self.states, device=row.device))  # (A, k) each
        wanted = target.new_zeros(len(line), int(count.max())).index_put((row, turn), target)  # (R, m)
        logits = self.encoder.logits(states.flatten(0, 1)).float()  # (A·k, V)
        said = logits.gather(1, wanted[row].repeat_interleave(self.states, 0)) - logits.logsumexp(1, keepdim=True)
        emission = said.new_full((*shape, wanted.shape[1]), NEVER).index_put(at, said.view(*at[1].shape, -1))
        table = states.new_zeros(*shape, states.shape[-1]).index_put(at, states)
        losses, likeliest = by_paths(emission, self.links(table, count * self.states), count)  # (R, m) each
        guess = target.new_zeros(shape).index_put(at, logits.argmax(-1).view(at[1].shape))
        return losses[row, turn], guess[row, likeliest[row, turn]] == target


def expand(batch: Batch, hidden: Tensor, states: int, mask_id: int) -> Expanded:
    """Each hidden token (A,) as so many masks, all with the number of its place."""
    layout, repeats = batch.layout, torch.ones_like(batch.ids).index_fill(0, hidden, states)
    source = torch.repeat_interleave(repeats)  # (U,) which token of the batch
    first = repeats.cumsum(0) - repeats
    here = torch.zeros_like(batch.free).index_fill(0, hidden, True)[source]
    state = torch.where(here, torch.arange(len(source), device=source.device) - first[source] + 1, 0)
    lengths = torch.bincount(layout.row[source], minlength=layout.rows)
    longer = Layout.of_lengths(lengths)._replace(position=layout.position[source])
    return Expanded(torch.where(here, mask_id, batch.inputs[source]), longer, state, first)


class Links(nn.Module):
    """From each state to the later ones of its passage, or to the end: a mixture of as many heads as attention has."""

    def __init__(self, width: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.gate = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, heads)
        self.start, self.end = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        for name, parameter in self.named_parameters():
            nn.init.zeros_(parameter) if name.endswith("bias") else nn.init.normal_(parameter, 0.0, 0.02, generator)

    def forward(self, states: Tensor, size: Tensor) -> Tensor:  # (R, S, H), (R,) -> (R, S + 1, S + 1)
        """log T: from the start and from each state, to each state and to the end."""
        start, end = (one.to(states.dtype).expand(len(states), 1, -1) for one in (self.start, self.end))
        asks, reads = torch.cat([start, states], 1), torch.cat([states, end], 1)
        query, key = (
            by_heads(self.query(asks), self.heads),
            by_heads(self.key(reads), self.heads),
        )  # (R, heads, S + 1, D)
        scores = (query @ key.transpose(-1, -2)).float() / query.shape[-1] ** 0.5
        number = torch.arange(scores.shape[-1], device=size.device)  # row u + 1 is that of state u
        later = (number >= number[:, None]) & (number < size[:, None, None])  # (R, S + 1, S + 1)
        ends = (number == number[-1]) & (number[:, None] > 0)  # every path says something first
        ways = scores.masked_fill(~(later | ends)[:, None], NEVER).log_softmax(-1)
        gates = self.gate(asks).float().log_softmax(-1).transpose(1, 2)[..., None]  # (R, heads, S + 1, 1)
        links: Tensor = (ways + gates).logsumexp(1)
        return links


def by_paths(emission: Tensor, transition: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """−log p(x_i | those before it), summed over all paths, and the state that is likeliest to say x_i, (R, m) each.

    Args:
        emission: (R, S, m) log E_u(x_i).
        transition: (R, S + 1, S + 1) log T, from the start and the states to the states and the end.
        count: (R,) how many of the m tokens a passage has, 1 or more; the last one's loss has the end in it.
    """
    onward, end = transition[:, 1:, :-1], transition[:, 1:, -1]
    ahead = transition[:, 0, :-1]  # (R, S) that the next token is said here, with all said before
    known = ahead.new_zeros(len(ahead))  # (R,) log p of what was said before
    losses, likeliest = [], []
    for turn in range(emission.shape[-1]):
        here = ahead + emission[:, :, turn]  # log α
        said = here.logsumexp(1)
        closing = said - (here + end).logsumexp(1)
        losses.append(known - said + torch.where(count == turn + 1, closing, 0.0))
        likeliest.append(ahead.argmax(1))
        ahead, known = (here[:, :, None] + onward).logsumexp(1), said
    return torch.stack(losses, 1), torch.stack(likeliest, 1)
