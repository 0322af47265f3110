"""The energy of a sentence, as a masked model implies it: one term for each of its tokens, hidden alone.

    norm   E(x) = −Σ_i log p(x_i | x_∖i)          = −PLL(x)
    raw    E(x) = −Σ_i logit_i(x_i | x_∖i)        the same before each row is normalised

An energy defines a law, p(x) ∝ exp(−E(x)), for any model, whether or not its conditionals fit together (Goyal, Dyer and
Berg-Kirkpatrick 2022). It is a law of its own. On conditionals of a true joint law P, `norm` gives Π_i P(x_i | x_∖i),
which is not P. The logits of an exact law are log joints, so there `raw` gives P(x)^n. The raw logits of a network are
defined up to a constant for each row, which training leaves to chance, so they mean what the network makes of them.

i runs over all places that hold text: the free ones, and the clamped ones too, except special tokens ([CLS], [SEP] …).
Clamped tokens do not move, but how likely they are depends on those that do: a word that makes its fixed neighbours
likely is a better word. So with some places clamped, exp(−E) is the law of whole sentences, given those words. Where
nothing is clamped, E is minus the score `pll` of the sentence.

An energy costs n passes, one for each place. It is held in float64 on the host. A token that the model excludes has the
term +inf, also where its whole row is excluded: never NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from besag.checks import is_number
from besag.conditionals.contract import Questions
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted
from besag.reductions import Chunk
from besag.samplers.drawing import COLDEST, answered
from besag.samplers.kernel import Canvas

EnergyName: TypeAlias = Literal["norm", "raw"]
ENERGIES = ("norm", "raw")


def refuse_unknown(energy: str) -> None:
    if energy not in ENERGIES:
        raise BesagError(f"energy={energy!r}: give one of {', '.join(ENERGIES)}.{nearest(str(energy), ENERGIES)}")


def refuse_cold(name: str, temperature: float) -> None:
    if not is_number(temperature) or not COLDEST <= temperature <= 1 / COLDEST:
        raise BesagError(
            f"{name}: an energy temperature is a number above 0, not {quoted(temperature)}; 1 gives the law exp(−E), "
            "and the nearer to 0, the more of it the sentences of lowest energy hold"
        )


def text_places(engine: Engine, canvas: Canvas) -> Tensor:
    """(C, L) bool, on the host: the places whose terms make up the energy."""
    vocabulary = engine.conditionals.vocabulary
    outside = sorted({*vocabulary.special_ids, canvas.mask_id} - {vocabulary.unknown_id})  # an unknown word is text
    clamped = ~torch.isin(canvas.ids, torch.tensor(outside, device=canvas.ids.device))
    return (canvas.free | clamped).cpu()


def energies(engine: Engine, canvas: Canvas, ids: Tensor, places: Tensor, energy: EnergyName) -> Tensor:
    """(C,) of ids (C, L): the sum of the terms at places (C, L, bool, on the host); a pass for each.

    +inf for a sequence that the canvas does not allow, so that exp(−E) is the law of those that it does.
    """
    row, place = places.nonzero(as_tuple=True)  # (M,) each
    number, at = torch.arange(len(row)), (row.to(ids.device), place.to(ids.device))
    mask = torch.tensor(canvas.mask_id, device=ids.device)
    copies = ids[at[0]].index_put((number.to(ids.device), at[1]), mask)  # (M, L)
    total = torch.zeros(len(ids), dtype=torch.float64)
    if len(row):
        questions = Questions(copies, number, place, target=ids[at], given=canvas.given_to(row))
        kept = answered(engine, questions, _Term(energy))
        total = total.index_add(0, row, -kept["term"].cpu().double())
    return torch.where(forbidden(canvas, ids).cpu(), torch.inf, total)


def term(logit: Tensor, normaliser: Tensor, energy: EnergyName) -> Tensor:
    """What a token adds to −E, from its logit and that of its row; −inf where excluded, NaN in a row with +inf."""
    found = logit if energy == "raw" else torch.where(logit == -torch.inf, logit, logit - normaliser)
    return found.masked_fill(normaliser == torch.inf, torch.nan)


def forbidden(canvas: Canvas, ids: Tensor) -> Tensor:
    """(C,) bool: does a token stand at a free place of ids (C, L) that the canvas does not allow there?"""
    if canvas.allowed is None:
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    allowed = canvas.allowed.to(ids.device)
    if allowed.ndim == 1:
        allowed = allowed.expand(ids.shape[1], -1)  # (L, V)
    known = ids.clamp(max=allowed.shape[1] - 1)  # the mask may lie beyond the width
    fits = allowed[torch.arange(ids.shape[1], device=ids.device), known] & (known == ids)  # (C, L)
    return (canvas.free & ~fits).any(1)


@dataclass(frozen=True)
class _Term:
    energy: EnergyName

    def __call__(self, chunk: Chunk) -> dict[str, Tensor]:
        return {"term": term(chunk.target_logits(), chunk.normaliser[chunk.which], self.energy)}
