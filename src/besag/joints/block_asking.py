"""The conditionals of k places, asked of a model: c_i(x) = p(x_i | x_−i) over C_1 × … × C_k, renormalised over C_i.

Place i is hidden and the others show each combination of their candidates in turn: Σ_i Π_{j≠i} |C_j| sequences, of
which one row each passes through the head. The tables of log c_i are handed on one after the other, and not kept. The
candidates of a place are its likeliest tokens with all places hidden, or words that somebody gives.

Knows what is asked and what it costs, and says so before it begins. Refuses what would not fit.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals, Questions, require_both_sides
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError
from besag.joints.candidates import Candidates, Kind, checked_candidates, outcome_ids, read_words, shown
from besag.places.places import Places
from besag.reductions import Outcomes, Row

log = logging.getLogger(__name__)

MOST_CELLS = 2**24
MOST_SEQUENCES = 2**22
MOST_AT_ONCE = 2**16  # sequences written out at a time
TABLES = 6  # of the size of the joint, float64, while it is solved
TOKENS = {"cpu": 40_000, "mps": 200_000, "cuda": 4_000_000}  # through the network, when nobody says how many candidates
MOST_CANDIDATES, FEWEST_CANDIDATES = 64, 2  # of one place, then


class Cost(NamedTuple):
    sequences: int  # through the network
    cells: int  # of the joint
    bytes: int

    def __str__(self) -> str:
        size = f"{self.bytes / 2**20:,.0f} MiB" if self.bytes >= 2**20 else "less than 1 MiB"
        return f"{self.sequences:,} sequences, {self.cells:,} cells, {size}"


class Asked(NamedTuple):
    ids: tuple[Ints, ...]  # the candidates of each place
    hidden: NDArray[np.float64]  # (k,) how much of the mass of each place they hold, all places hidden
    forced: tuple[bool, ...]  # was the text's own token added from outside?
    log_held: tuple[Tensor, ...]  # of each place, how much of its mass C_i holds in every context


def cost(sizes: Sequence[int]) -> Cost:
    """What a joint over candidate sets of these sizes takes."""
    cells = math.prod(sizes)
    return Cost(sum(cells // size for size in sizes), cells, 8 * TABLES * cells)


def affordable(conditionals: Conditionals, places: Places) -> int:
    """How many candidates a place may have so that asking takes a few seconds."""
    most, count = TOKENS[conditionals.device.type] // len(places.ids), len(places.at)
    fits = [n for n in range(FEWEST_CANDIDATES, MOST_CANDIDATES + 1) if cost([n] * count).sequences <= most]
    fits = [n for n in fits if cost([n] * count).cells <= MOST_CELLS]
    return min(max(fits, default=FEWEST_CANDIDATES), len(outcome_ids(conditionals, "text")))


def ask(
    engine: Engine,
    places: Places,
    take: Callable[[int, Tensor], None],
    *,
    outcomes: Kind,
    candidates: Candidates | Literal["auto"],
) -> Asked:
    """Choose the candidates, say what it costs, ask, and hand on (i, log c_i), (|C_1|, …, |C_k|), of every place i."""
    model = engine.conditionals
    ids, held, forced = next(engine.run([_choose(model, places, outcomes, candidates)]))
    sizes = [len(part) for part in ids]
    price, by = cost(sizes), " × ".join(map(str, sizes))
    if price.cells > MOST_CELLS or price.sequences > MOST_SEQUENCES:
        fewer = affordable(model, places)
        raise BesagError(
            f"the joint of {places.title} over {by} candidates takes {price}; at most {MOST_SEQUENCES:,} sequences and "
            f"{MOST_CELLS:,} cells are taken on. Smaller sets need less: candidates={fewer} "
            f"{cost([fewer] * len(sizes)).sequences:,} sequences. fill(..., beam=16) searches instead of comparing all"
        )
    _announce(engine, f"{len(sizes)} places over {by} candidates: {price}")
    device = torch.device("cpu") if model.device.type == "mps" else model.device  # which has no float64
    log_held = []
    for i in range(len(sizes)):
        given, share = _given_others(engine, places, ids, i, device)  # (contexts, |C_i|), (contexts,)
        others = sizes[:i] + sizes[i + 1 :]
        take(i, given.view(*others, sizes[i]).movedim(-1, i))
        log_held.append(share.view(others))
    return Asked(tuple(ids), held, forced, tuple(log_held))


def _choose(
    model: Conditionals, places: Places, outcomes: Kind, candidates: Candidates | Literal["auto"]
) -> Plan[tuple[list[Ints], NDArray[np.float64], tuple[bool, ...]]]:
    require_both_sides(model, "a joint")
    allowed, count = outcome_ids(model, outcomes), len(places.at)
    if isinstance(candidates, str) and candidates == "auto":
        candidates = affordable(model, places)
    candidates = checked_candidates(candidates)
    if isinstance(candidates, str):  # all
        candidates = len(allowed)
    given = None if isinstance(candidates, int) else read_words(model.vocabulary, places, allowed, candidates)
    request = Request((Row(),), shown(model, places), np.zeros(count, np.int64), np.array(places.at))
    hidden = (yield request)["row"].astype(np.float64)  # (k, V)
    ids, forced = [], []
    for i in range(count):
        if isinstance(candidates, int):
            order = np.lexsort((allowed, -hidden[i, allowed]))[:candidates]
            possible = order[hidden[i, allowed[order]] > -np.inf]  # an exact law cannot be shown the others
            ids.append(allowed[possible])
        else:
            assert given is not None
            ids.append(given[i])
        own = -1 if places.gold is None else places.gold[i]
        forced.append(given is None and own in allowed and own not in ids[i])
        if forced[i]:  # in place of the last of the likeliest, so that sets keep their size
            ids[i] = np.append(ids[i][:-1], own)
    held = np.array([np.exp(hidden[i, part]).sum() for i, part in enumerate(ids)])
    return ids, held.clip(0, 1), tuple(forced)


def _given_others(
    engine: Engine, places: Places, ids: Sequence[Ints], i: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """log c_i in every context of the others, in the order of their product, and the log of the mass that C_i holds."""
    model = engine.conditionals
    others = [j for j in range(len(ids)) if j != i]
    sizes = [len(ids[j]) for j in others]
    contexts = math.prod(sizes)
    given = torch.empty(contexts, len(ids[i]), dtype=torch.float64, device=device)
    share = torch.empty(contexts, dtype=torch.float64, device=device)
    reduce = Outcomes(torch.from_numpy(ids[i]).to(model.device))
    for start in range(0, contexts, MOST_AT_ONCE):
        number = np.arange(start, min(start + MOST_AT_ONCE, contexts))
        sequences = np.repeat(shown(model, places), len(number), 0)
        for j, index in zip(others, np.unravel_index(number, sizes), strict=True):
            sequences[:, places.at[j]] = ids[j][index]

        def take(asks: slice, kept: dict[str, Tensor], start: int = start) -> None:
            where = slice(start + asks.start, start + asks.stop)
            given[where], share[where] = kept["outcomes"].to(given), kept["share"].to(share)

        row = torch.arange(len(number))
        engine.stream(Questions(torch.from_numpy(sequences), row, torch.full_like(row, places.at[i])), reduce, take)
    return torch.where(share.isfinite()[:, None], torch.log_softmax(given, 1), given), share  # in float64 from here on


def _announce(engine: Engine, message: str) -> None:
    """Where a progress bar would be seen, so is this; a log has it in any case."""
    log.info(message)
    if engine.progress or (engine.progress is None and sys.stderr.isatty()):
        print(message, file=sys.stderr)
