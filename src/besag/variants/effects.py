"""What a variant does to a protein by the lights of a masked model: log odds of the mutant against the wild type.

With T the mutated places, x the wild type, x' the variant:

    wt_marginals             Σ_{t∈T} log p(x'_t | x) − log p(x_t | x)            one pass, nothing hidden
    masked_marginals         Σ_{t∈T} log p(x'_t | x_∖T) − log p(x_t | x_∖T)      the mutated places hidden together
    masked_marginals_alone   Σ_{t∈T} log p(x'_t | x_∖t) − log p(x_t | x_∖t)      each hidden alone, the others wild
    pseudo_ppl               PLL(x') − PLL(x)                                    every place of both hidden in turn
    ag, mrf, hcb …           log q(x'_T) − log q(x_T)                            q: a joint of two places

The second is the formula of Meier et al. (2021), the third what their published script computes; they differ where a
variant has several mutations. Only a joint lets two mutations depend on each other, and has an epistasis,

    ε = log q(ab) q(AB) / (q(aB) q(Ab)) = effect(ab) − effect(aB) − effect(Ab)     capitals: wild type

The law of a place is over all tokens of the model; differences are the same over the 20 residues. Knows plans, refuses
to know results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Floats
from besag.batches import NotFinite
from besag.conditionals.contract import require_both_sides
from besag.engine import Engine, Plan
from besag.errors import BesagError, nearest, quoted
from besag.joints import asking
from besag.joints.registry import CONSTRUCTIONS, Construction, construction
from besag.places.places import of_tokens
from besag.results.status import Status
from besag.scores.passage import BLOCK, Passage
from besag.scores.scoring import score
from besag.variants.mutations import RESIDUES, Variant
from besag.variants.protein import Protein

WILD_TYPE, TOGETHER, ALONE, PSEUDO = "wt_marginals", "masked_marginals", "masked_marginals_alone", "pseudo_ppl"
FORMULAS = (WILD_TYPE, TOGETHER, ALONE, PSEUDO)
Hidden: TypeAlias = tuple[int, ...]  # places of the sequence, from 0


class Effect(NamedTuple):
    effect: float  # nats; below 0 where the model likes the variant less than the wild type; nan without a number
    epistasis: float  # nats; nan where the method or the variant has none
    status: Status


def named(method: str, **options: object) -> str | Construction:
    """The formula of that name, or a construction of joints with its options."""
    if method in FORMULAS:
        if options:
            raise BesagError(f"{method!r} has no options, and {quoted(options)} were given")
        return method
    known = [*FORMULAS, *CONSTRUCTIONS]
    if method not in CONSTRUCTIONS:
        raise BesagError(
            f"no method of scoring variants is called {quoted(method)}: {', '.join(known)}.{nearest(method, known)}"
        )
    return construction(method, **options)


def effects(engine: Engine, protein: Protein, variants: Sequence[Variant], method: str | Construction) -> list[Effect]:
    """Of each variant, in their order. Places that several variants share are asked once."""
    require_both_sides(engine.conditionals, "the effect of a variant")
    if isinstance(method, Construction):
        return _joint(engine, protein, variants, method)
    if method == PSEUDO:
        texts = [protein.written(one) for one in (protein.sequence, *(one.of(protein.sequence) for one in variants))]
        wild, *others = score(engine, texts, "pll")
        return [_effect(one.total - wild.total) for one in others]
    hidden = [_hidden(one, method) for one in variants]
    tables = rows(engine, protein, list(dict.fromkeys(one for sets in hidden for one in sets)))
    return [_effect(_sum(protein, one, sets, tables)) for one, sets in zip(variants, hidden, strict=True)]


def rows(engine: Engine, protein: Protein, hidden: Sequence[Hidden]) -> dict[Hidden, Floats]:
    """log p of the own residue and of the 20, (|T|, 21), at each place of a hidden set, and at all of an empty one."""
    size, length = len(hidden), len(protein.encoded.ids)
    step = max(1, min(BLOCK // length, engine.batch_tokens // length))
    parts = [hidden[start : start + step] for start in range(0, size, step)]
    found: dict[Hidden, Floats] = {}
    for part in engine.run((_rows(engine, protein, part) for part in parts), size, size=len):
        found.update(part)
    return found


def _rows(engine: Engine, protein: Protein, hidden: Sequence[Hidden]) -> Plan[dict[Hidden, Floats]]:
    passage = Passage([protein.encoded], engine.conditionals)
    asked = [one or tuple(range(passage.size)) for one in hidden]
    index = np.concatenate([np.array(one, np.int64) for one in asked])  # (M,)
    row = np.repeat(np.arange(len(hidden)), [len(one) for one in asked])
    hide = np.zeros((len(hidden), passage.size), bool)
    for number, one in enumerate(hidden):
        hide[number, list(one)] = True
    own = protein.encoded.ids[passage.places][index]
    target = np.column_stack([own, np.broadcast_to(protein.ids, (len(index), len(RESIDUES)))])  # (M, 21)
    try:
        answers = yield from passage.ask(hide, row, index, target=target[None])
    except NotFinite:
        return {one: np.full((len(places), target.shape[1]), np.nan) for one, places in zip(hidden, asked, strict=True)}
    whole = answers["target"][0].astype(np.float64)
    return {one: whole[row == number] for number, one in enumerate(hidden)}


def _hidden(variant: Variant, method: str) -> list[Hidden]:
    """The sets that are hidden to score it, each in a copy of its own."""
    if method == WILD_TYPE:
        return [()]
    return [variant.places] if method == TOGETHER else [(place,) for place in variant.places]


def _sum(protein: Protein, variant: Variant, hidden: Sequence[Hidden], tables: Mapping[Hidden, Floats]) -> float:
    total = 0.0
    for place, residue in zip(variant.places, variant.mutant, strict=True):
        [within] = [one for one in hidden if place in one or not one]
        row = tables[within][within.index(place) if within else place]  # (21,)
        total += float(row[1 + protein.column(residue)] - row[0])
    return total


def _effect(value: float, epistasis: float = np.nan, status: Status = Status.OK) -> Effect:
    return Effect(value, epistasis, status if np.isfinite(value) else Status.NOT_FINITE)


def _joint(engine: Engine, protein: Protein, variants: Sequence[Variant], how: Construction) -> list[Effect]:
    """A double mutant by the joint of its two places; a single one, where no joint is needed, by its own law."""
    for one in variants:
        if len(one.places) > 2:
            raise BesagError(
                f"the variant {quoted(one.name)} has {len(one.places)} mutations, and {how.name!r} is a joint of two: "
                f"use {TOGETHER!r}, {ALONE!r} or {PSEUDO!r}"
            )
        if not set(one.wild) <= set(RESIDUES):
            raise BesagError(f"the variant {quoted(one.name)} replaces a residue that is none of the 20 {RESIDUES}")
    sets = list(dict.fromkeys(one.places for one in variants))
    alone = rows(engine, protein, [one for one in sets if len(one) == 1])
    pairs = [one for one in sets if len(one) == 2]
    tables: dict[Hidden, tuple[Floats, Status]] = dict(
        zip(pairs, engine.run(_pairs(engine, protein, pairs, how), len(pairs)), strict=True)
    )
    found = []
    for one in variants:
        if len(one.places) == 1:
            found.append(_effect(_sum(protein, one, [one.places], alone)))
            continue
        log_q, status = tables[one.places]
        (a, b), (A, B) = ([protein.column(residue) for residue in side] for side in (one.mutant, one.wild))
        ratio = float(log_q[a, b] + log_q[A, B] - log_q[a, B] - log_q[A, b])
        found.append(_effect(float(log_q[a, b] - log_q[A, B]), ratio, status))
    return found


def _pairs(
    engine: Engine, protein: Protein, pairs: Sequence[Hidden], how: Construction
) -> Iterator[Plan[tuple[Floats, Status]]]:
    conditionals = engine.conditionals
    residues = protein.ids.tolist()

    def pair(places: Hidden) -> Plan[tuple[Floats, Status]]:
        tokens = tuple(protein.encoded.places[list(places)].tolist())
        asked = of_tokens(conditionals.vocabulary, protein.encoded, tokens, conditionals.max_length)
        try:
            unaries = yield from asking.plan(conditionals, asked, candidates=[residues, residues])
        except NotFinite:
            return np.full((len(residues), len(residues)), np.nan), Status.NOT_FINITE
        built = how.build(unaries)
        cells: Any = built.law.cells(unaries).cpu().numpy()
        order = [np.argsort(ids)[np.searchsorted(np.sort(ids), residues)] for ids in (unaries.ids_a, unaries.ids_b)]
        return cells[np.ix_(*order)].astype(np.float64), built.status

    return (pair(one) for one in pairs)
