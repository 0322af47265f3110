"""The any-order bound, as masked diffusion models are evaluated (MDLM, LLaDA): a lower bound on log p(x | n).

    E_σ log p_σ(x) = Σ_{k=1}^{n} E_{|S|=k} (1/k) Σ_{i∈S} log p(x_i | x_∖S)  ≤  log E_σ p_σ(x)

The left side averages the chain rule over all n! orders; the right side is a probability over token sequences of the
length, so this bounds a log-probability from below. On an exact table it *is* log p(x).

It is estimated by stratified draws: the mask counts 1 … n are cut into strata, each with at least two draws (a count of
the stratum, then a subset of that size), so the standard error is estimated too. `samples="all"` enumerates all 2^n − 1
subsets. Masks depend on seed and length alone: sentences of one length are compared on the same masks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from besag import checks, noise
from besag.arrays import Bools, Floats, Ints
from besag.errors import BesagError
from besag.masks import uniform_subsets
from besag.scores.passage import BLOCK, Parts, Passage, ScorePlan
from besag.scores.registry import FIXED_LENGTH, Method, register, windows

MOST_SAMPLES = 100_000  # of which each hides places of its own in a copy of the text
MOST_ENUMERATED = 16  # 2^16 subsets


@register
@dataclass(frozen=True)
class AnyOrderBound(Method):
    name = "elbo"
    title = "any-order bound (masked diffusion): a lower bound on a true log-probability, with its standard error"
    formula = "Σ_k E_{|S|=k} (1/k) Σ_{i∈S} log p(x_i | x_∖S)"
    passes = "samples"
    normalised = FIXED_LENGTH
    bound = True
    cite = ("sahoo2024", "nie2025", "hoogeboom2022")
    aliases = ("mdlm", "any_order")

    samples: Annotated[int | Literal["all"], "how many subsets are drawn; all of them on short texts"] = 64
    seed: Annotated[int, "of the draws"] = 0

    def __post_init__(self) -> None:
        noise.whole_seed(self.seed)
        if self.samples != "all":
            right = "give a number of draws, at least 2, or 'all' to enumerate"
            checks.whole_number(self.samples, "samples", least=2, right=right, most=MOST_SAMPLES)

    @property
    def ranks(self) -> bool:
        return False

    def cost(self, n: int, length: int) -> int:
        subsets = 2 ** min(n, MOST_ENUMERATED) - 1 if self.samples == "all" else self.samples
        return subsets * windows(n, length) * length

    def plan(self, passage: Passage) -> ScorePlan:
        subsets, stratum, weight = self._design(passage.size)  # (D, n), (D,), (D,)
        inner = np.zeros((len(passage.texts), *subsets.shape))  # (B, D, n): log p(x_i | x_∖S) / |S| where i ∈ S
        block = max(1, BLOCK // passage.ids.size)
        for start in range(0, len(subsets), block):
            part = subsets[start : start + block]
            row, index = np.nonzero(part)
            answers = yield from passage.ask(part, row, index)
            inner[:, start + row, index] = answers["target"]
        inner /= subsets.sum(1, keepdims=True)
        error = None if self.samples == "all" else _standard_error(inner.sum(2), stratum, weight)
        return Parts(np.einsum("d,bdn->bn", weight, inner), standard_error=error)

    def _design(self, size: int) -> tuple[Bools, Ints, Floats]:
        """Which subsets to hide, with stratum and weight: Σ_d weight_d f(S_d) estimates Σ_k E_{|S|=k} f(S)."""
        if self.samples == "all":
            if size > MOST_ENUMERATED:
                raise BesagError(
                    f"samples='all' would enumerate 2^{size} subsets; at most {MOST_ENUMERATED} tokens, or draw"
                )
            subsets = (np.arange(1, 2**size)[:, None] >> np.arange(size) & 1).astype(bool)
            counts = subsets.sum(1)
            return subsets, counts, 1.0 / np.bincount(counts)[counts]
        strata = min(size, self.samples // 2)
        edges = (
            np.linspace(0, size, strata + 1).round().astype(int)
        )  # stratum s holds the counts edges[s]+1 … edges[s+1]
        draw = np.arange(self.samples)
        stratum = draw * strata // self.samples  # sorted; at least two draws each
        width = np.diff(edges)[stratum]
        counts = 1 + edges[stratum] + np.floor(noise.uniform(self.seed, noise.Measuring.DRAW, draw) * width).astype(int)
        weight = width / np.bincount(stratum)[stratum]
        return uniform_subsets(size, counts, draw, self.seed), stratum, weight


def _standard_error(values: Floats, stratum: Ints, weight: Floats) -> Floats:
    """(B,) of the stratified sums of values (B, D): a stratum of m draws adds weight² · m · s², s² their variance."""
    variance = np.zeros(len(values))
    for number in range(int(stratum.max()) + 1):
        inside = stratum == number
        with np.errstate(invalid="ignore"):  # of a text of probability 0, nan: its −∞ is no estimate
            variance += weight[inside][0] ** 2 * inside.sum() * values[:, inside].var(1, ddof=1)
    return np.sqrt(variance)
