"""What came of a run: where every chain ended, what its steps told, and what must be known about it.

Knows texts and tables. How the numbers came about is the kernels' knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from besag.checks import checked
from besag.errors import BesagError, nearest
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted, unseen

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from besag.diagnostics.chains import Diagnosis
    from besag.diagnostics.texts import TextReport

COUNTED = ("changed", "passes", "revealed", "sequential")
EVERY_TIME = "the same every time"  # how the law of a kernel ends that draws nothing
SUMMED = (*COUNTED, "log_prob")  # over steps; of other numbers a chain's mean is told


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Presented):
    """C chains of one kernel. Iterate over it, or index it, for the texts."""

    texts: tuple[str, ...]  # (C,) where they are now
    tokens: tuple[tuple[str, ...], ...]  # (C,) of the free places, as the tokenizer writes them
    ids: tuple[NDArray[np.int64], ...]  # (C,) whole sequences, special tokens included
    template: str | None  # what was given to write on; None: nothing
    unknown: int  # tokens of it that the tokenizer does not know, and the model therefore did not see
    numbers: Mapping[str, NDArray[np.float64]]  # (C, S) of every step; nan after a chain's own end
    steps: NDArray[np.int64]  # (C,) made
    kept_steps: tuple[int, ...]  # the steps whose sequences are kept, of the longest chain
    kept: tuple[tuple[str, ...], ...]  # (C, K) the texts at those steps, as far as each chain went
    kept_tokens: tuple[tuple[tuple[str, ...], ...], ...]  # (C, K, n) the tokens of their free places
    kernel: str  # name and options that are not the usual ones
    law: str  # what it samples from, and when exactly so
    seed: int
    model: str
    dtype: str
    mask: str  # how a place that is still hidden is written

    @property
    def passes(self) -> NDArray[np.int64]:
        """(C,) forward passes spent on each chain."""
        return np.asarray(np.nansum(self.numbers["passes"], 1), np.int64)

    @property
    def hidden(self) -> int:
        """Places that are still hidden, in all chains together."""
        return sum(token == self.mask for tokens in self.tokens for token in tokens)

    @property
    def statuses(self) -> tuple[Status, ...]:
        """(C,) whether the text of each chain is whole."""
        return tuple(Status.HIDDEN if self.mask in tokens else Status.OK for tokens in self.tokens)

    @property
    def status(self) -> Status:
        return Status.HIDDEN if self.hidden else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        passes, hidden = self.passes, self.hidden
        spent = counted(int(passes.max()), "forward pass")
        if passes.min() < passes.max():
            spent = f"{passes.min():,} to {spent}"
        return [
            self.kernel, self.law, *self._repeated(),
            *unseen(self.unknown),
            *([f"{counted(hidden, 'place')} still hidden: make more steps"] if hidden else []),
            counted(int(self.steps.max()), "step"),
            f"{spent} a chain", f"seed {self.seed}", self.model, self.dtype,
        ]  # fmt: skip

    def _repeated(self) -> list[str]:
        """That chains say the same, where some do: chains are asked for to have several texts."""
        different = len(set(self.texts))
        if different == len(self.texts):
            return []
        told = f"{counted(different, 'DIFFERENT TEXT')} IN {len(self.texts):,} CHAINS".upper()
        alike = self.law.endswith(EVERY_TIME)
        return [f"{told}: one chain is enough, or draw tokens (pick='sample')" if alike else told]

    def __len__(self) -> int:
        return len(self.texts)

    @checked
    def __getitem__(self, chain: int) -> str:
        return self.texts[chain]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    @checked
    def summary(self, chain: int) -> dict[str, float]:
        """The numbers of one chain over its steps: sums of what is counted, means of what is measured."""
        found = {}
        for name, values in self.numbers.items():
            own = values[chain, : int(self.steps[chain])]
            total = float(own.sum() if name in SUMMED else own.mean()) if len(own) else 0.0
            found[name] = int(total) if name in COUNTED else total
        return found

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON but the steps in between."""
        parts = zip(self.texts, self.tokens, self.steps, self.statuses, strict=True)
        chains = [
            {"text": text, "tokens": tokens, "steps": steps, **self.summary(at), "status": status}
            for at, (text, tokens, steps, status) in enumerate(parts)
        ]
        about = {name: getattr(self, name) for name in ("template", "kernel", "law", "seed", "model", "dtype")}
        return dict(json_ready({**self._answers(), **about, "chains": chains}))

    def to_pandas(self) -> DataFrame:
        """One row a chain; `frame.attrs` says what was run."""
        rows = [
            {"chain": at, "text": text, **self.summary(at), "status": self.statuses[at]}
            for at, text in enumerate(self.texts)
        ]
        return data.frame(self, rows)

    @checked
    def diagnose(self, number: str | None = None, burn_in: int = 0) -> Diagnosis:
        """Effective sample size, split R-hat and autocorrelation of one of `numbers`; of the energy if there is one.

        Where the texts of all steps were kept (`every=1`), also of each place: is its commonest token there?
        """
        from besag.diagnostics.chains import diagnose

        name = number or next(one for one in ("energy", "log_prob", "changed") if one in self.numbers)
        if name not in self.numbers:
            guess = nearest(name, self.numbers)
            raise BesagError(f"these chains have no number {name!r}: there are {', '.join(self.numbers)}.{guess}")
        every_step = {len(kept) - 1 for kept in self.kept_tokens} == {self.numbers[name].shape[1]}
        kept = np.array(self.kept_tokens)[:, 1:] if every_step else None  # (C, S, n) after each step
        ids = None if kept is None else np.unique(kept, return_inverse=True)[1].reshape(kept.shape)
        return diagnose(self.numbers[name], ids, name=name, warmup=burn_in)

    @checked
    def measure(self, **options: Any) -> TextReport:
        """Self-BLEU, distinct-n and stutters; with a `reference` how new the texts are, with a `judge` how likely."""
        from besag.diagnostics.texts import measure

        return measure(self.texts, **options)

    @checked
    def plot(self, chain: int = 0) -> Figure:
        """Traces, changes a step and the autocorrelation; and how one chain's tokens changed, where they were kept."""
        from besag.diagnostics.chain_plots import plot_chain

        if not 0 <= chain < len(self):
            raise BesagError(f"there is no chain {chain!r}: there are 0 … {len(self) - 1}")
        tokens = self.kept_tokens[chain]
        kept = {"tokens": tokens, "steps": self.kept_steps[: len(tokens)]} if tokens else {}
        return plot_chain(self.numbers, title=self.kernel, **kept)  # type: ignore[arg-type]

    def _grids(self) -> list[Grid]:
        return [Grid((), lines([(str(at), text) for at, text in enumerate(self.texts)]), left=(1,))]
