"""What came of a run: where every chain ended, what its steps told, and what must be known about it.

Knows texts and tables. How the numbers came about is the kernels' knowledge.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from besag.errors import BesagError, nearest, require
from besag.results.data import json_number
from besag.results.tables import aligned, wrapped
from besag.results.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from besag.diagnostics.chains import Diagnosis
    from besag.diagnostics.texts import TextReport

COUNTED = ("changed", "passes", "revealed")
SUMMED = (*COUNTED, "log_prob")  # over steps; of other numbers a chain's mean is told


@dataclass(frozen=True, eq=False, repr=False)
class Chain:
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
    def told(self) -> list[str]:
        """What a reader must know, most important first."""
        passes = self.passes
        spent = f"{passes.min():,}" if passes.min() == passes.max() else f"{passes.min():,} to {passes.max():,}"
        hidden = sum(token == self.mask for tokens in self.tokens for token in tokens)
        return [
            self.kernel, self.law,
            *([f"{counted(self.unknown, 'SHOWN TOKEN').upper()} UNKNOWN TO THE MODEL"] if self.unknown else []),
            *([f"{counted(hidden, 'place')} still hidden: make more steps"] if hidden else []),
            counted(int(self.steps.max()), "step"),
            f"{spent} forward passes a chain", f"seed {self.seed}", self.model, self.dtype,
        ]  # fmt: skip

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, chain: int) -> str:
        return self.texts[chain]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def summary(self, chain: int) -> dict[str, float]:
        """The numbers of one chain over its steps: sums of what is counted, means of what is measured."""
        found = {}
        for name, values in self.numbers.items():
            own = values[chain, : int(self.steps[chain])]
            total = float(own.sum() if name in SUMMED else own.mean()) if len(own) else 0.0
            found[name] = int(total) if name in COUNTED else total
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "template": self.template,
            "chains": [
                {
                    "text": text,
                    "tokens": list(self.tokens[at]),
                    "steps": int(self.steps[at]),
                    **{name: json_number(value) for name, value in self.summary(at).items()},
                }
                for at, text in enumerate(self.texts)
            ],
            "kernel": self.kernel,
            "law": self.law,
            "seed": self.seed,
            "model": self.model,
            "dtype": self.dtype,
        }

    def to_pandas(self) -> DataFrame:
        """One row a chain; `frame.attrs` says what was run."""
        pandas = require("pandas", extra="eval")
        rows = [{"chain": at, "text": text, **self.summary(at)} for at, text in enumerate(self.texts)]
        frame: DataFrame = pandas.DataFrame(rows)
        frame.attrs.update({name: getattr(self, name) for name in ("kernel", "law", "seed", "model", "dtype")})
        return frame

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

    def measure(self, **options: Any) -> TextReport:
        """Self-BLEU, distinct-n and stutters; with a `reference` how new the texts are, with a `judge` how likely."""
        from besag.diagnostics.texts import measure

        return measure(self.texts, **options)

    def plot(self, chain: int = 0) -> Figure:
        """Traces, changes a step and the autocorrelation; and how one chain's tokens changed, where they were kept."""
        from besag.diagnostics.chain_plots import plot_chain

        if not 0 <= chain < len(self):
            raise BesagError(f"there is no chain {chain!r}: there are 0 … {len(self) - 1}")
        tokens = self.kept_tokens[chain]
        kept = {"tokens": tokens, "steps": self.kept_steps[: len(tokens)]} if tokens else {}
        return plot_chain(self.numbers, title=self.kernel, **kept)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        rows = [[str(at), text] for at, text in enumerate(self.texts)]
        return f"{aligned(rows, left=(1,))}\n\n{wrapped(self.told, width)}"
