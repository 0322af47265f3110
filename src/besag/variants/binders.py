"""Peptides that may bind a protein: ranked, and proposed, by a masked model that is shown the target.

    pseudo-perplexity of the peptide b given the target t = exp(−(1/n) Σ_i log p(b_i | t, b_∖i))      lower is better

After PepMLM (Chen et al. 2025): the target stands first and is always shown, the peptide stands at its end. A model
learns it with the whole peptide hidden and asked (`data.pairs = "line"`, `masking.rate = 1`); a peptide is proposed by
so many masks at the end of the target, drawn at once from the three likeliest residues of each, as published, or by any
other kernel; and peptides are ranked by their pseudo-perplexity, of which the target's residues are no part.

Knows targets, peptides and what is told of them. Refuses to know how a text is scored or drawn, and what binds: the
numbers are a model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.checks import MOST_CHAINS, MOST_LENGTH, checked, whole_number
from besag.conditionals.contract import Conditionals
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.plots import bars
from besag.results.result import Presented
from besag.results.status import Status, together
from besag.results.words import counted, dtype_name, number
from besag.samplers.sampling import sample
from besag.samplers.sheet import Sheet
from besag.scores.registry import method as scoring
from besag.scores.scoring import score
from besag.variants.protein import Protein, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

SHOWN = 20  # peptides in a table
LIKELIEST = 3  # as published: all residues at once, each among the three likeliest


class Binder(NamedTuple):
    peptide: str
    perplexity: float  # of its residues given the target; nan where there is none
    score: float  # nats, of the whole peptide
    proposed: bool  # drawn from the model, and not given
    status: Status


@dataclass(frozen=True, eq=False, repr=False)
class Binders(Presented):
    """Peptides by their perplexity given a target, lowest first; those without a number come last."""

    target: str
    binders: tuple[Binder, ...]
    method: str
    normalised: str  # the sample space that the probability of a score sums to one over; "": it is a pseudo one
    kernel: str  # by which peptides were proposed, if any were
    seed: int
    model: str
    dtype: str

    def __len__(self) -> int:
        return len(self.binders)

    @property
    def best(self) -> str:
        return self.binders[0].peptide

    @property
    def status(self) -> Status:
        return together(one.status for one in self.binders)

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        unscored = sum(not np.isfinite(one.perplexity) for one in self.binders)
        name = "perplexity" if self.normalised else "pseudo-perplexity"
        drawn = sum(one.proposed for one in self.binders)
        return [
            *([f"{counted(unscored, 'PEPTIDE').upper()} WITHOUT A NUMBER"] if unscored else []),
            f"{name} of a peptide's residues at the end of the target, by {self.method}: lower is better",
            f"{counted(len(self), 'peptide')} for a target of {counted(len(self.target), 'residue')}",
            *([f"{drawn} proposed by {self.kernel}, seed {self.seed}"] if drawn else []),
            self.model,
            self.dtype,
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("target", "method", "normalised", "kernel", "seed", "model", "dtype")
        rows = [one._asdict() for one in self.binders]
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}, "binders": rows}))

    def to_pandas(self) -> DataFrame:
        """One row a peptide, best first."""
        return data.frame(self, self.binders, Binder._fields, target=self.target, method=self.method)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The perplexities of the first few."""
        some = [one for one in self.binders[:SHOWN] if np.isfinite(one.perplexity)]
        if not some:
            raise BesagError("there is nothing to draw: no peptide has a perplexity")
        return bars(ax, [one.peptide for one in some], [one.perplexity for one in some], "perplexity", self.facts)

    def _title(self) -> list[str]:
        return [quoted(self.target)]

    def _grids(self) -> list[Grid]:
        lines = [
            Line((one.peptide, *(number(part) if np.isfinite(part) else "–" for part in (one.perplexity, one.score)),
                  "proposed" if one.proposed else "given"))
            for one in self.binders[:SHOWN]
        ]  # fmt: skip
        left = len(self) - SHOWN
        note = f"… and {left:,} more" if left > 0 else ""
        return [Grid(("peptide", "perplexity", "score", "from"), lines, left=(0, 3), note=note)]


@checked
def binders(
    engine: Engine,
    target: str,
    peptides: Sequence[str] = (),
    *,
    length: int | None = None,
    number: int = 8,
    method: str = "pll",
    kernel: str = "grouped",
    seed: int = 0,
    **options: Any,
) -> Binders:
    """Peptides that are given, and `number` of `length` residues that are proposed, ranked; `options` of the kernel."""
    if not peptides and length is None:
        raise BesagError("there is no peptide to rank: give some, or the length of those to propose")
    if length is None and options:
        raise BesagError(f"{quoted(options)} is of peptides that are proposed: say how long they are (length)")
    how = scoring(method)
    protein = Protein.of(engine.conditionals, target)
    given = [Protein.of(engine.conditionals, one).sequence for one in peptides]
    drawn: list[str] = []
    if length is not None:
        whole_number(length, "length", least=1, right="give how many residues a peptide has", most=MOST_LENGTH)
        whole_number(number, "number", least=1, right="give how many peptides to propose", most=MOST_CHAINS)
        usual = {"size": length, "top_k": LIKELIEST} if kernel == "grouped" else {}
        drawn = _proposed(engine, protein, length, number, kernel, seed, {**usual, **options})
    every = list(dict.fromkeys([*given, *drawn]))
    texts = [protein.written(one) for one in every]
    shown = protein.written(protein.sequence)
    scores = score(engine, texts, how, prefix=shown, separator=protein.between)
    known = {*given}
    found = [
        Binder(peptide, float(np.exp(-one.mean)) if one.status == "ok" else np.nan,
               float(one.total) if one.status == "ok" else np.nan, peptide not in known, one.status)
        for peptide, one in zip(every, scores, strict=True)
    ]  # fmt: skip
    found.sort(key=lambda one: (not np.isfinite(one.perplexity), one.perplexity if np.isfinite(one.perplexity) else 0))
    conditionals = engine.conditionals
    return Binders(
        protein.sequence, tuple(found), how.label, how.normalised, kernel, seed, conditionals.name,
        dtype_name(conditionals.dtype),
    )  # fmt: skip


def _proposed(
    engine: Engine, protein: Protein, length: int, number: int, kernel: str, seed: int, options: dict[str, Any]
) -> list[str]:
    """Peptides drawn at the end of the target; nothing but the 20 residues may stand there."""
    mask = engine.conditionals.vocabulary.mask_token
    if mask is None:
        raise BesagError(f"{engine.conditionals.name!r} has no mask token, so it cannot propose a peptide")
    text = protein.between.join([protein.written(protein.sequence), *[mask] * length])

    def residues(conditionals: Conditionals, sheet: Sheet) -> Tensor:
        allowed = torch.zeros(conditionals.width, dtype=torch.bool)
        allowed[torch.from_numpy(protein.ids)] = True
        return allowed.to(conditionals.device)  # (V,): the same at every free place

    chain = sample(engine, text, kernel, chains=number, seed=seed, allow=residues, **options)
    if chain.hidden:
        raise BesagError(f"the kernel {kernel!r} left {counted(chain.hidden, 'residue')} hidden: give it more steps")
    return [plain("".join(token.strip("▁Ġ") for token in tokens)) for tokens in chain.tokens]
