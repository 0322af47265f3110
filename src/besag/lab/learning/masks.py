"""Laws of which places to hide, as the theory takes them: of each set K its chance, or p(K | x) state by state.

    {(0,): 0.25, (1, 2): 0.75}                      K is drawn without a look at x
    {(0,): array of the law's shape, …}             p(K | x); for every x the chances sum to one

Any law of `besag.masks` becomes one by drawing from it (`masks_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.checks import array, checked, number, whole_number
from besag.errors import BesagError, quoted
from besag.lab.systems.system import CLOSE, System, subset
from besag.masks import LAWS, Passages, Statistics
from besag.masks.law import MaskLaw

Masks: TypeAlias = Mapping[tuple[int, ...], "float | Floats"]
Loss: TypeAlias = Literal["block", "token"]
LOSSES: tuple[Loss, ...] = ("block", "token")
MOST_TOKENS = 2**24  # drawn from a law of besag.masks
CORPUS = 10**6  # tokens that a law which counts is told of


@checked
def uniform_masks(places: int, size: int) -> dict[tuple[int, ...], float]:
    """Every set of so many places with the same chance: k-masking, Besag's pseudo-likelihood at k = 1.

    Args:
        places: N.
        size: k, from 1 to N.

    Returns:
        The chance of each set.

    Examples:
        >>> from besag.lab import uniform_masks
        >>> uniform_masks(3, 2)
        {(0, 1): 0.3333333333333333, (0, 2): 0.3333333333333333, (1, 2): 0.3333333333333333}
    """
    whole_number(places, "places", most=16)
    sets = list(combinations(range(places), whole_number(size, "size", most=places)))
    return {hidden: 1 / len(sets) for hidden in sets}


class Sets(list[tuple[tuple[int, ...], Floats]]):
    """Masks that were checked: each set, ascending, with its chances, which broadcast over the law."""


def checked_masks(masks: Masks | Sets, shape: tuple[int, ...]) -> Sets:
    """The same, or an error that says why not; sets that never occur are left out."""
    if isinstance(masks, Sets):
        return masks
    if not isinstance(masks, Mapping) or not masks:
        raise BesagError(f"masks={quoted(masks)}: give the chance of each set of places, {{(0,): 0.5, (1, 2): 0.5}}")
    found, total = Sets(), np.zeros((1,) * len(shape))
    for hidden, chance in masks.items():
        places = tuple(subset(hidden, len(shape), "masks"))
        chances = array(chance, f"the chance of {quoted(hidden)}")
        if not places:
            raise BesagError(f"masks hold {quoted(hidden)}: at least one place is hidden")
        if chances.shape not in ((), shape):
            raise BesagError(
                f"the chance of {quoted(hidden)} has the shape {chances.shape}: give a number, or p(K | x) as {shape}"
            )
        if not (chances >= 0).all():
            raise BesagError(f"the chance of {quoted(hidden)} is below 0 or missing")
        chances = chances.reshape(shape if chances.ndim else (1,) * len(shape))
        total = total + chances
        if chances.any():
            found.append((places, chances))
    if not (np.abs(total - 1) <= CLOSE).all():
        worst = float(total.ravel()[np.abs(total - 1).argmax()])
        raise BesagError(f"the chances of all sets sum to {worst:.9g} and not to 1")
    return found


@checked
def masks_of(
    law: MaskLaw | str, system: System, rate: float = 0.5, draws: int = 4096, seed: int = 0
) -> dict[tuple[int, ...], float | Floats]:
    """A law of `besag.masks`, by how often it hides which places of a system's sequences.

    Every place is a word of its own. All sequences see the same noise, so a law that does not look at the tokens hides
    the same places in all of them, and is given back as numbers; one that does, as p(K | x). Frequencies of `draws`
    draws: a chance p is known to about √(p(1 − p)/draws).

    Args:
        law: a law of `besag.masks`, or its name.
        system: whose sequences are masked.
        rate: the share of places to hide.
        draws: masks drawn for each sequence.
        seed: of the draws.

    Returns:
        The chance of each set of places.

    Examples:
        >>> from besag.lab import chain, ising, masks_of
        >>> sorted(masks_of("uniform", ising(chain(3)), rate=1 / 3))
        [(0,), (1,), (2,)]
    """
    number(rate, "rate", least=1e-9, most=1)
    states, count = system.states, whole_number(draws, "draws", most=MOST_TOKENS)
    if count * states.size > MOST_TOKENS:
        most = MOST_TOKENS // states.size
        raise BesagError(f"draws={draws} for {len(states):,} states are many: draw at most {most:,}")
    chooser = (LAWS.find(law)() if isinstance(law, str) else law).prepare(_statistics(system))
    hidden = _chosen(chooser, states, count, rate, seed)  # (S, draws, N)
    if not hidden.any(2).all():
        why = "it hides given spans, and a system has none" if chooser.spanned else "give a higher rate"
        raise BesagError(f"{quoted(law)} hides nothing in some draws at rate={rate:g}: {why}")
    weights = 2 ** np.arange(system.places)
    which = hidden @ weights  # (S, draws) the set as a number
    alike = bool((which == which[0]).all())
    masks: dict[tuple[int, ...], float | Floats] = {}
    for code in np.unique(which):
        places = tuple(np.flatnonzero(code & weights).tolist())
        share = (which == code).mean(1)
        masks[places] = float(share[0]) if alike else share.reshape(system.shape)
    return masks


def _chosen(law: MaskLaw, states: Ints, draws: int, rate: float, seed: int) -> Bools:
    size, places = states.shape
    rows = size * draws
    passages = Passages(
        ids=np.repeat(states, draws, 0).ravel(),
        row=np.repeat(np.arange(rows), places),
        free=np.ones(rows * places, dtype=np.bool_),
        word=np.tile(np.arange(places), rows),
        span=np.full(rows * places, -1),
        draw=np.tile(np.arange(draws), size),
    )
    return law.choose(passages, np.full(rows, rate), 0.5, seed).reshape(size, draws, places)


def _statistics(system: System) -> Statistics:
    """The system as a corpus, for laws that count: expected counts, and its states as often as they are expected."""
    width = max(system.shape)
    counts = np.zeros(width)
    for place in range(system.places):
        marginal = system.marginal([place])
        counts[: len(marginal)] += marginal * CORPUS / system.places
    documents = system.draw(min(10**4, CORPUS // system.places), seed=0)
    return Statistics(np.maximum(counts, 1).astype(np.int64), list(documents), frozenset(), tuple(system.symbols))
