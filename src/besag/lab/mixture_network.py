"""A small network whose head is a mixture of r products, trained on draws of a law; r = 1 is the usual masked model.

    loss = −log Σ_c π_c(x_−K) ∏_{i ∈ K} p_c(x_i | x_−K)

With r = 1 this is the token loss, Σ_{i ∈ K} −log p(x_i | x_−K); with more components it is the block loss of a model
that can say some of the dependence, at one pass all the same. Knows laws small enough to enumerate, so that what it
learned is compared with the truth, context by context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from besag.arrays import Floats
from besag.checks import checked, whole_number
from besag.errors import BesagError
from besag.lab.heads import MOST_COMPONENTS, block_conditionals
from besag.lab.systems.system import System, all_states, subset

HIDDEN = 128  # units of each of the two layers
BATCH = 512
RATE = 3e-3


class MixtureNetwork(nn.Module):
    """Two hidden layers over one-hot symbols, the last of them "hidden"; π and all p_c from one pass."""

    def __init__(self, places: int, width: int, components: int) -> None:
        super().__init__()
        self.places, self.width, self.components = places, width, components
        outputs = components * (1 + places * width)
        self.layers = nn.Sequential(
            nn.Linear(places * (width + 1), HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(),
            nn.Linear(HIDDEN, outputs),
        )  # fmt: skip

    def forward(self, shown: Tensor) -> tuple[Tensor, Tensor]:
        """log π (M, r) and log p_c (M, r, N, V) for sequences (M, N), `width` standing where a place is hidden."""
        seen = nn.functional.one_hot(shown, self.width + 1).flatten(1).to(torch.float32)
        weights, factors = self.layers(seen).split([self.components, self.components * self.places * self.width], 1)
        factors = factors.view(-1, self.components, self.places, self.width)
        return weights.log_softmax(1), factors.log_softmax(3)

    def log_prob(self, states: Tensor, hidden: Tensor) -> Tensor:
        """log q(x_K | x_−K), (M,), for sequences (M, N) and what is hidden of each."""
        weights, factors = self(states.masked_fill(hidden, self.width))
        own = factors.gather(3, states[:, None, :, None].expand(-1, self.components, -1, 1))[..., 0]  # (M, r, N)
        return torch.logsumexp(weights + (own * hidden[:, None]).sum(2), 1)


class Learned(NamedTuple):
    network: MixtureNetwork
    divergence: float  # mean over blocks and contexts of KL(p(x_K | x_−K) ‖ q), in nats


@checked
def train_mixture_network(
    system: System, blocks: Sequence[Sequence[int]], components: int, steps: int = 1500, seed: int = 0
) -> Learned:
    """Train on fresh draws, a block hidden of each, and compare with the truth.

    Args:
        system: whose draws are learned; all places have as many symbols.
        blocks: K, each as often.
        components: r.
        steps: of AdamW, 512 draws each, the rate falling to nothing.
        seed: of the network, the draws and the blocks.

    Returns:
        The network, and how far it is from the truth.
    """
    whole_number(components, "components", most=MOST_COMPONENTS)
    whole_number(steps, "steps", most=10**6)
    if len(set(system.shape)) != 1:
        raise BesagError(f"a network has one vocabulary, and the places have {system.shape} symbols")
    hides = torch.zeros(len(blocks), system.places, dtype=torch.bool)
    for at, block in enumerate(blocks):
        hides[at, subset(block, system.places, "blocks")] = True
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MixtureNetwork(system.places, system.shape[0], components)
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
        states, law = torch.from_numpy(all_states(system.shape)), torch.tensor(system.law.ravel())
        for _ in range(steps):
            batch = states[torch.multinomial(law, BATCH, replacement=True)]
            loss = -network.log_prob(batch, hides[torch.randint(len(blocks), (BATCH,))]).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return Learned(network, _divergence(network, system.law, blocks))


@torch.no_grad()
def _divergence(network: MixtureNetwork, law: Floats, blocks: Sequence[Sequence[int]]) -> float:
    """E_K E_{x_−K} KL(p(x_K | x_−K) ‖ q)."""
    states = torch.from_numpy(all_states(law.shape))
    total = 0.0
    for block in blocks:
        kept = sorted(block)
        hidden = torch.zeros_like(states, dtype=torch.bool)
        hidden[:, kept] = True
        exact, number = block_conditionals(law, kept)
        log_q = network.log_prob(states, hidden).double().numpy()[number.ravel()]
        p = law.ravel()[number.ravel()]
        total += float((p * (np.log(np.maximum(exact.ravel(), 1e-300)) - log_q)).sum())
    return total / len(blocks)
