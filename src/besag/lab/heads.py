"""A head that draws a block in one pass without being a product: a mixture of r products, normalised.

    q(x_K | x_−K) = Σ_c π_c ∏_{i ∈ K} p_c(x_i),      c = 1 … r, all of it a function of what is shown

One draw of c, then every place on its own: as parallel as a product, r times as wide at the head. r = 1 is the product
that a parallel pass is limited to; its best is the product of the marginals, at the total correlation. Here π and p_c
are fitted to exact laws by EM, so what is left is what the form cannot say, not what a network did not learn.

Fits many distributions of one shape at once. EM finds a local optimum: several starts are taken, the best kept. One
more start has a component for each filling of some positions, those (of at most r fillings) given which the others
depend least on each other: EM keeps it as it is. With 2^⌊k/2⌋ components it is exact on k neighbouring spins of a
chain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats, Ints
from besag.checks import checked, whole_number
from besag.errors import BesagError
from besag.lab.systems.system import all_states, law_of, subset

STARTS = 8
STEPS, STILL = 1000, 1e-10  # of EM, and the gain in nats a step that ends it
NOTHING = 1e-300  # stands for a probability of 0 under a logarithm
MOST_COMPONENTS = 256
STUTTER = ("quietly", "walking", "along")


@dataclass(frozen=True, eq=False)
class MixtureHead:
    """Mixtures of r products for B laws of one shape. Made by `mixture_head` and `mixture_heads`.

    Attributes:
        weights: (B, r) π.
        factors: one array a place, (B, r, V_i), p_c.
        divergence: (B,) KL(p ‖ q) in nats.
    """

    weights: Floats
    factors: tuple[Floats, ...]
    divergence: Floats

    @property
    def laws(self) -> Floats:
        """(B, V_1, …, V_N) q."""
        shape = tuple(factor.shape[-1] for factor in self.factors)
        parts = _log_parts(self.weights, self.factors, all_states(shape))  # (B, r, S)
        return np.asarray(np.exp(parts).sum(1).reshape(-1, *shape))

    def draw(self, count: int, seed: int = 0, law: int = 0) -> Ints:
        """(count, N) sequences: one component each, then all places at once."""
        generator = np.random.default_rng(seed)
        chosen = generator.choice(len(self.weights[law]), size=count, p=self.weights[law])
        heights = generator.random((len(self.factors), count, 1))
        return np.stack(
            [(heights[place] > np.cumsum(factor[law][chosen], 1)[:, :-1]).sum(1)
             for place, factor in enumerate(self.factors)], 1
        )  # fmt: skip


@checked
def mixture_head(law: ArrayLike, components: int, starts: int = STARTS, seed: int = 0) -> MixtureHead:
    """The mixture of so many products that is nearest to a law, KL(p ‖ q), by EM.

    Args:
        law: p, (V_1, …, V_N).
        components: r.
        starts: how many random starts the best is taken of.
        seed: of the starts.

    Returns:
        The head, of one law.

    Examples:
        >>> from besag.lab import mixture_head, stutter
        >>> [round(float(mixture_head(stutter(), r).divergence[0]), 4) for r in (1, 2)]  # log 2, and nothing
        [0.6931, 0.0]
    """
    return mixture_heads(law_of(law)[None], components, starts, seed)


def mixture_heads(laws: Floats, components: int, starts: int = STARTS, seed: int = 0) -> MixtureHead:
    """The same for (B, V_1, …, V_N) laws at once."""
    whole_number(components, "components", most=MOST_COMPONENTS)
    whole_number(starts, "starts", most=10_000)
    shape = laws.shape[1:]
    if not shape:
        raise BesagError("a head is of one place or more")
    p, states = laws.reshape(len(laws), -1), all_states(shape)
    starts = starts if components > 1 else 1
    generator = np.random.default_rng(seed)
    share = generator.dirichlet(np.ones(components), (len(laws), starts, p.shape[1])).swapaxes(2, 3)  # (B, T, r, S)
    if components > 1:
        share = np.concatenate([share, _by_fillings(p, components, states, shape)], 1)
    score = np.full(share.shape[:2], -np.inf)
    for _ in range(STEPS):
        weights, factors = _maximise(p, share, states, shape)
        parts = _log_parts(weights, factors, states)  # (B, T, r, S)
        total = np.logaddexp.reduce(parts, 2)
        before, score = score, (p[:, None] * total).sum(2)
        if float((score - before).max()) < STILL:
            break
        share = np.exp(parts - total[:, :, None])
    best = score.argmax(1)
    each = np.arange(len(laws))
    entropy = -np.where(p > 0, p * np.log(np.maximum(p, NOTHING)), 0.0).sum(1)
    return MixtureHead(
        weights[each, best], tuple(factor[each, best] for factor in factors), -entropy - score[each, best]
    )


def stutter() -> Floats:
    """Two places of STUTTER, ½ "walking along", ½ "quietly walking": each marginal right, "walking walking" impossible.

    Drawn as a product of its marginals, a quarter of the draws say a word twice, and a quarter leave it out.

    Returns:
        (3, 3) the law.

    Examples:
        >>> from besag.lab import stutter
        >>> stutter().tolist()
        [[0.0, 0.5, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """
    law = np.zeros((3, 3))
    law[1, 2] = law[0, 1] = 0.5
    return law


def _by_fillings(p: Floats, components: int, states: Ints, shape: tuple[int, ...]) -> Floats:
    """(B, 0 or 1, r, S) a component for each filling of the positions that leave the least KL(p ‖ q), summed over B."""
    best, kept = -np.inf, np.empty((len(p), 0, components, p.shape[1]))
    for size in range(1, len(shape) + 1):
        for some in combinations(range(len(shape)), size):
            widths = [shape[place] for place in some]
            if math.prod(widths) > components:
                continue
            filling = np.ravel_multi_index(states[:, some].T, widths)  # (S,)
            share = np.broadcast_to(np.eye(components)[:, filling], (len(p), 1, components, p.shape[1]))
            total = np.logaddexp.reduce(_log_parts(*_maximise(p, share, states, shape), states), 2)  # (B, 1, S)
            score = float((p[:, None] * total).sum())
            if score > best + STILL:
                best, kept = score, share
    return kept


def _maximise(p: Floats, share: Floats, states: Ints, shape: tuple[int, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """π (B, T, r) and p_c (B, T, r, V_i) of components that own these shares of every state."""
    mass = p[:, None, None] * share
    weights = mass.sum(3)
    factors = tuple(
        mass @ np.eye(width)[states[:, place]] / np.maximum(weights, NOTHING)[..., None]
        for place, width in enumerate(shape)
    )
    return weights, factors


def _log_parts(weights: Floats, factors: tuple[Floats, ...], states: Ints) -> Floats:
    """log π_c ∏ p_c(x_i), (…, r, S)."""
    parts = np.log(np.maximum(weights, NOTHING))[..., None]
    for place, factor in enumerate(factors):
        parts = parts + np.log(np.maximum(factor, NOTHING))[..., states[:, place]]
    return np.asarray(parts)


def block_conditionals(law: Floats, block: Sequence[int]) -> tuple[Floats, Ints]:
    """p(x_K | x_−K) of every context, (contexts, V_k, …), and which state each cell is, (contexts, cells)."""
    shown = [place for place in range(law.ndim) if place not in block]
    moved = law.transpose(*shown, *block).reshape(-1, *(law.shape[place] for place in block))
    number = np.arange(law.size).reshape(law.shape).transpose(*shown, *block).reshape(len(moved), -1)
    axes = tuple(range(1, moved.ndim))
    return moved / moved.sum(axes, keepdims=True), number


@checked
def one_pass_step(
    law: ArrayLike, blocks: Sequence[Sequence[int]], components: int | None, starts: int = STARTS, seed: int = 0
) -> Floats:
    """The transition matrix that draws a block, chosen evenly, in one pass by the best head of r products.

    Args:
        law: p, (V_1, …, V_N), without zeros.
        blocks: K, of which each step takes one.
        components: r; None draws from p(x_K | x_−K) itself.
        starts: of every fit.
        seed: of the starts.

    Returns:
        (S, S), rows summing to one.

    Examples:
        >>> import numpy as np
        >>> from besag.lab import chain, ising, one_pass_step
        >>> one_pass_step(ising(chain(2), 0.5).law, [[0, 1]], 1).round(2)[0].tolist()  # a product knows no coupling
        [0.25, 0.25, 0.25, 0.25]
    """
    given = law_of(law, positive=True)
    steps = np.zeros((given.size, given.size))
    for block in blocks:
        exact, number = block_conditionals(given, subset(block, given.ndim, "blocks"))
        drawn = exact
        if components is not None:
            few, which = np.unique(exact.round(12), axis=0, return_inverse=True)  # far places often do not matter
            drawn = mixture_heads(few, components, starts, seed).laws[which.ravel()]
        steps[number[:, :, None], number[:, None]] += drawn.reshape(len(drawn), 1, -1) / len(blocks)
    return steps


def settled(steps: Floats) -> Floats:
    """(S,) the law that a transition matrix leaves as it is."""
    size = len(steps)
    system = np.concatenate([steps.T - np.eye(size), np.ones((1, size))])
    found = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0].clip(0)
    return np.asarray(found / found.sum())
