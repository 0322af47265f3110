"""How long texts are: a distribution p(n) over the number of scored tokens, n >= 1.

A probability of token sequences *of this length*, times p(n), is a probability of token sequences of any length. Knows
counts. Refuses to know texts or tokenizers: it only remembers the name of the one it was fitted with.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from besag.checks import checked, number, whole_number
from besag.errors import BesagError
from besag.files.lines import small_file
from besag.files.whole import write_whole
from besag.results.words import counted

KIND = "besag length model"
MOST = 100_000  # tokens of a drawn length: where rounding keeps the sum of p(n) below a height, a draw must end
MOST_SAVED = 2**53  # of a count or a number in a file: beyond it floats have gaps, and sums of logarithms no digits
MOST_SHAPE = 1e4  # beyond it a negative binomial is a Poisson distribution, and lgamma loses its digits


@dataclass(frozen=True, slots=True)
class LengthModel:
    """p(n) = (c_n + α g(n)) / (N + α),   n = 1, 2, …

    c_n of the N texts it was fitted on had n tokens; g is a negative binomial distribution of n − 1,

        g(n) = Γ(r + n − 1) / (Γ(r) (n − 1)!) · (r / (r + μ))^r · (μ / (r + μ))^(n − 1),

    with mean μ and variance μ + μ² / r. Counts and g both sum to what they should, so Σ p(n) = 1, and g(n) > 0 makes
    every length possible: this is the mean of a Dirichlet posterior whose prior has mean g and weight α.

    Fitting matches r and μ to the moments of n − 1, one text of 2 tokens added so that μ > 0. Where the variance does
    not exceed the mean no negative binomial fits, and r = 1: the geometric distribution, of all with that mean the one
    that assumes least. α maximises the leave-one-out likelihood Σ_n c_n log[(c_n − 1 + α g(n)) / (N − 1 + α)] on a
    grid; of equally good ones the largest, which smooths most.
    """

    counts: Mapping[int, int]  # n -> how many texts had n tokens
    alpha: float
    shape: float  # r
    mean: float  # μ, of n − 1
    fitted_with: str  # the vocabulary whose tokens were counted

    @classmethod
    @checked
    def fit(cls, lengths: Iterable[int], fitted_with: str = "") -> LengthModel:
        """Fit to the token counts of many texts, read once."""
        counts: Counter[int] = Counter()
        for n in lengths:
            counts[_checked(n)] += 1
        if not counts:
            raise BesagError("a length model needs the token counts of at least one text, and there was none")
        seen = np.array(sorted(counts), dtype=np.int64)  # (k,)
        c = np.array([counts[i] for i in seen.tolist()], dtype=np.float64)  # (k,)
        mean, shape = _moments(seen, c)
        log_g = np.array([_log_negative_binomial(i, shape, mean) for i in seen.tolist()])  # (k,)
        return cls(dict(sorted(counts.items())), _best_alpha(c, log_g), shape, mean, fitted_with)

    @property
    def n_texts(self) -> int:
        return sum(self.counts.values())

    @checked
    def log_prob(self, n: int) -> float:
        """log p(n) in nats: finite for every n >= 1."""
        n = _checked(n)
        smoothed = math.log(self.alpha) + _log_negative_binomial(n, self.shape, self.mean)
        if n in self.counts:  # else stay in the logarithm: far in the tail g(n) is no float
            smoothed = math.log(self.counts[n] + math.exp(smoothed))
        return smoothed - math.log(self.n_texts + self.alpha)

    @checked
    def quantile(self, height: float) -> int:
        """The smallest n with P(at most n tokens) ≥ height, for a height in (0, 1): a draw, where height is noise."""
        height = number(height, "height", least=0.0, most=1.0)
        n, below = 1, math.exp(self.log_prob(1))
        while below < height and n < MOST:
            n += 1
            below += math.exp(self.log_prob(n))
        return n

    @checked
    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        content = {
            "kind": KIND,
            "fitted_with": self.fitted_with,
            "n_texts": self.n_texts,
            "alpha": self.alpha,
            "shape": self.shape,
            "mean": self.mean,
            "counts": {str(n): count for n, count in self.counts.items()},
        }
        write_whole(path, json.dumps(content, indent=1) + "\n")

    @classmethod
    @checked
    def load(cls, path: str | Path) -> LengthModel:
        """Read what `save` wrote."""
        try:
            written = small_file(str(path))
        except BesagError as problem:
            raise BesagError(f"no length model can be read: {problem}") from problem
        try:
            content = json.loads(written)
        except (ValueError, RecursionError) as problem:
            raise BesagError(f"{str(path)!r} is not a length model, which is a JSON file: {problem}") from problem
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise BesagError(f'{str(path)!r} is JSON, but not a length model: it does not say "kind": {KIND!r}')
        try:
            return cls._from_json(content)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise BesagError(f"the length model in {str(path)!r} is damaged: {problem!r}; fit it again") from problem

    @classmethod
    def _from_json(cls, content: dict[str, Any]) -> LengthModel:
        counts = {
            whole_number(int(n), "n", most=MOST_SAVED): whole_number(count, "count", most=MOST_SAVED)
            for n, count in content["counts"].items()
        }
        numbers = {name: number(content[name], name) for name in ("alpha", "shape", "mean")}
        for name, value in numbers.items():
            if not (1 / MOST_SAVED < value < MOST_SAVED):
                raise ValueError(f"{name} is {value}, not a positive number that a fit can give")
        if not counts or sum(counts.values()) != content["n_texts"]:
            raise ValueError("the counts do not add up to n_texts")
        return cls(counts, fitted_with=str(content["fitted_with"]), **numbers)

    def __str__(self) -> str:
        tokens = sum(n * count for n, count in self.counts.items())
        texts = counted(self.n_texts, "text")
        alpha = f"{self.alpha:,.0f}" if self.alpha >= 100 else f"{self.alpha:.3g}"
        return (
            f"p(n) from {texts}{f' in tokens of {self.fitted_with}' if self.fitted_with else ''}: "
            f"{min(self.counts)} to {max(self.counts)} tokens, {tokens / self.n_texts:.1f} on average; "
            f"smoothed with weight α = {alpha} towards a negative binomial of shape {self.shape:.3g}"
        )


def _checked(n: int) -> int:
    return whole_number(n, "n", right="a length is a whole number of tokens, at least 1", most=2**62)


def _log_negative_binomial(n: int, shape: float, mean: float) -> float:
    """log g(n)."""
    return (
        math.lgamma(shape + n - 1)
        - math.lgamma(shape)
        - math.lgamma(n)
        - shape * math.log1p(mean / shape)
        + (n - 1) * (math.log(mean) - math.log(shape + mean))
    )


def _moments(n: NDArray[np.int64], c: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and shape of the base measure from the lengths n (k,), seen c (k,) times."""
    m, texts = n - 1.0, c.sum() + 1.0
    mean = float((c @ m + 1.0) / texts)
    variance = float((c @ (m - mean) ** 2 + (1.0 - mean) ** 2) / texts)
    return mean, min(mean**2 / (variance - mean), MOST_SHAPE) if variance > mean else 1.0


def _best_alpha(c: NDArray[np.float64], log_g: NDArray[np.float64]) -> float:
    """The α of the best leave-one-out likelihood, where c (k,) texts have lengths of log-probability log_g (k,)."""
    texts = float(c.sum())
    grid = np.geomspace(0.01, 100.0 * max(texts, 10.0), 97)  # (A,)
    with np.errstate(divide="ignore"):
        others = np.log(c - 1.0)  # (k,), −inf where a length was seen once
    held_out = np.logaddexp(others, np.log(grid)[:, None] + log_g) @ c - texts * np.log(texts - 1.0 + grid)  # (A,)
    good = held_out >= held_out.max() - 1e-9 * max(1.0, abs(float(held_out.max())))
    return float(grid[good].max())
