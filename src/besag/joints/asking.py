"""The conditionals of two places, asked of a model: A[x, y] = p(a = x | b = y) and B[x, y] = p(b = y | a = x).

a is hidden and b shows each y in turn, then the other way round, and once both are hidden; only the asked row of each
sequence passes through the head. Over a whole vocabulary the rows stream into log A and log B on the device where they
are computed, and nothing else of that size is made; candidate sets are a plan, so that the engine pools many pairs.
Tables of up to 1,024 × 1,024 are kept in float64, larger ones in the precision of the answers, float32.

Knows what is asked, what is kept of it and how much memory that takes. Refuses to know constructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals, Questions
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError
from besag.hardware import memory_available
from besag.joints.candidates import (
    MODEST,
    Candidates,
    Kind,
    Side,
    Words,
    checked_candidates,
    choose,
    outcome_ids,
    shown,
)
from besag.joints.unaries import Lost, Unaries
from besag.places.places import Places
from besag.reductions import Energy, Outcomes, Target

__all__ = ["Candidates", "needed_bytes", "outcome_ids", "plan", "unaries"]

HEADROOM = 0.85  # share of the free memory that log A and log B may take
POOLED = 1024  # the largest sets whose targets are sent token by token
PRECISE = POOLED**2  # cells of a pair that are solved in float64
HOSTED = 2**16  # of those, as many as a host takes no longer for than a device


class _Given(NamedTuple):
    """One place given each value of the other, restricted to its outcomes."""

    energy: Tensor  # (k,) log Σ exp logit over the outcomes
    share: Tensor  # (k,) log of the probability that they hold together


def unaries(engine: Engine, places: Places, *, outcomes: Kind = "text", candidates: Candidates = "all") -> Unaries:
    """Ask now. Small candidate sets are asked as a plan; more streams into place on the model's device."""
    model, candidates = engine.conditionals, checked_candidates(candidates)
    if not isinstance(candidates, str) and (not isinstance(candidates, int) or candidates <= POOLED):
        return next(engine.run([plan(model, places, outcomes=outcomes, candidates=candidates)]))
    a, b = next(engine.run([choose(model, places, outcomes, candidates)]))
    dtype = torch.float64 if model.dtype == torch.float64 else torch.float32
    _refuse_too_large(places, len(a.ids), len(b.ids), dtype, model.device)
    log_a, log_b = (torch.empty(len(a.ids), len(b.ids), dtype=dtype, device=model.device) for _ in range(2))
    given_b = _stream(engine, places, 0, a.ids, b.ids, into=log_a.T)  # a row of answers is a column of A
    given_a = _stream(engine, places, 1, b.ids, a.ids, into=log_b)
    if log_a.numel() <= PRECISE:
        kept = _kept(log_a.numel(), model.device)
        log_a, log_b = (torch.log_softmax(table.to(**kept), axis) for axis, table in enumerate((log_a, log_b)))
        given_b, given_a = (_Given(*(part.to(**kept) for part in given)) for given in (given_b, given_a))
    return _unaries(model, places, a, b, log_a, log_b, given_b, given_a)


def plan(
    conditionals: Conditionals, places: Places, *, outcomes: Kind = "text", candidates: int | Words
) -> Plan[Unaries]:
    """The same as a plan, which asks nothing again that was asked to choose the sets."""
    sides = yield from choose(conditionals, places, outcomes, candidates)
    width = max(len(side.ids) for side in sides)
    new = [np.setdiff1d(sides[1 - i].ids, sides[i].asked.given) for i in (0, 1)]  # to show to place i
    ids = np.concatenate([shown(conditionals, places, 1 - i, new[i]) for i in (0, 1)])
    asked = np.repeat([0, 1], [len(new[0]), len(new[1])])
    targets = np.stack([np.resize(side.ids, width) for side in sides])  # the shorter repeated, and cut off below
    request = Request((Target(), Energy()), ids, np.arange(len(ids)), np.array(places.at)[asked], targets[asked])
    answers = (yield request) if len(ids) else {}
    tables, given = [], []
    kept = _kept(len(sides[0].ids) * len(sides[1].ids), conditionals.device)
    for i, side in enumerate(sides):
        log_probs, energy = side.asked.log_probs, side.asked.energy
        if len(new[i]):
            log_probs = np.concatenate([log_probs, answers["target"][asked == i, : len(side.ids)]])
            energy = np.concatenate([energy, answers["energy"][asked == i]])
        row = {token: number for number, token in enumerate([*side.asked.given.tolist(), *new[i].tolist()])}
        order = [row[token] for token in sides[1 - i].ids.tolist()]
        rows = torch.from_numpy(log_probs[order]).to(**kept)  # (k, m)
        share = torch.logsumexp(rows, 1)
        tables.append(rows - share[:, None])
        given.append(_Given(torch.from_numpy(energy[order]).to(**kept) + share, share))
    return _unaries(conditionals, places, *sides, tables[0].T.contiguous(), tables[1], *given)


def needed_bytes(m: int, k: int, dtype: torch.dtype) -> int:
    """What log A and log B take."""
    return 2 * m * k * dtype.itemsize


def _kept(cells: int, device: torch.device) -> dict[str, Any]:
    """Where tables of so many cells are solved, and how precisely."""
    if cells > PRECISE:
        return {"device": device}
    hosted = cells <= HOSTED or device.type == "mps"  # which has no float64
    return {"device": torch.device("cpu") if hosted else device, "dtype": torch.float64}


def _stream(engine: Engine, places: Places, asked: int, ids: Ints, values: Ints, into: Tensor) -> _Given:
    """Place number `asked` given each value of the other, written into the rows of `into`, (|values|, |ids|)."""
    model = engine.conditionals
    sequence = torch.from_numpy(shown(model, places)).to(model.device)  # (1, L)
    sequences = sequence.repeat(len(values), 1)
    sequences[:, places.at[1 - asked]] = torch.from_numpy(values).to(model.device)
    everything = np.array_equal(ids, np.arange(model.width))
    reduce = Outcomes(None if everything else torch.from_numpy(ids).to(model.device))
    energy, share = (into.new_empty(len(values)) for _ in range(2))

    def take(asks: slice, kept: dict[str, Tensor]) -> None:
        into[asks], energy[asks], share[asks] = kept["outcomes"], kept["outcome_energy"], kept["share"]

    row = torch.arange(len(values))
    engine.stream(Questions(sequences, row, torch.full_like(row, places.at[asked])), reduce, take)
    return _Given(energy, share)


def _unaries(
    model: Conditionals,
    places: Places,
    a: Side,
    b: Side,
    log_a: Tensor,
    log_b: Tensor,
    given_b: _Given,
    given_a: _Given,
) -> Unaries:
    hidden = [torch.from_numpy(side.hidden).double() for side in (a, b)]
    for place, other, given in ((0, b, given_b), (1, a, given_a)):
        impossible = torch.nonzero(~given.share.isfinite())
        if len(impossible) or not bool((hidden[place] > -torch.inf).any()):
            token = (
                f"given {model.vocabulary.token(int(other.ids[int(impossible[0, 0])]))!r}" if len(impossible) else ""
            )
            raise BesagError(
                f"{token or 'with both places hidden'}, the model leaves all outcomes of token "
                f"{places.positions[place]} probability 0: they cannot be normalised."
            )
    laws = [torch.softmax(log_probs, 0) for log_probs in hidden]
    outside = [(-torch.expm1(given.share.double().cpu())).clamp_min(0) for given in (given_b, given_a)]
    return Unaries(
        log_a=log_a,
        log_b=log_b,
        energy_a=given_b.energy,
        energy_b=given_a.energy,
        hidden_a=torch.log_softmax(hidden[0], 0).to(log_a),
        hidden_b=torch.log_softmax(hidden[1], 0).to(log_a),
        ids_a=a.ids,
        ids_b=b.ids,
        gold=None if a.gold is None or b.gold is None else (a.gold, b.gold),
        lost=Lost(
            hidden_a=max(0.0, 1 - float(hidden[0].exp().sum())),
            hidden_b=max(0.0, 1 - float(hidden[1].exp().sum())),
            given_b=float(laws[1] @ outside[0]),
            given_a=float(laws[0] @ outside[1]),
        ),
        forced=(a.forced, b.forced),
    )


def _refuse_too_large(places: Places, m: int, k: int, dtype: torch.dtype, device: torch.device) -> None:
    needed, free = needed_bytes(m, k, dtype), memory_available(device)
    if free is not None and needed > HEADROOM * free:
        raise BesagError(
            f"the joint of {places.title} over {m:,} × {k:,} outcomes needs {_size(needed)} for its two tables, and "
            f"{_size(free)} are free on {device}: candidate sets need less, candidates={MODEST} "
            f"{_size(needed_bytes(MODEST, MODEST, dtype))}."
        )


def _size(count: int) -> str:
    unit, power = next((part for part in (("GB", 9), ("MB", 6), ("kB", 3)) if count >= 10 ** part[1]), ("bytes", 0))
    return f"{count / 10**power:.1f} {unit}"
