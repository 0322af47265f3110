"""Terms that a target must hold: each stands where a first pass finds it likeliest, and the rest is written around it.

    L(t, a) = Σ_j log p(x_{a+j} = t_j | all places hidden, s)          term t = t_1 … t_m beginning at place a
    the terms stand at those places, none over another, whose sum of L is largest: found exactly, by dynamic programming

A term is read as a word within a text. Its places are clamped: no kernel moves them. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Floats
from besag.conditionals.contract import Questions
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.reductions import Target
from besag.samplers.kernel import Canvas
from besag.vocabulary import Vocabulary

MOST = 8  # terms of one target: places are found for all their orders

Term = tuple[int, ...]  # its tokens


def read_terms(vocabulary: Vocabulary, terms: Sequence[str]) -> tuple[Term, ...]:
    """The tokens of each, as they stand within a text."""
    if len(terms) > MOST:
        raise BesagError(f"{len(terms)} terms for one target: give at most {MOST}")
    found = []
    for term in terms:
        if not isinstance(term, str) or not term.strip():
            raise BesagError(f"a term is a text, and {quoted(term)} is none")
        if vocabulary.mask_token and vocabulary.mask_token in term:
            raise BesagError(f"the term {quoted(term)} holds the mask token")
        [encoded] = vocabulary.encode([term], prefix=_before(vocabulary))
        if encoded.unknown or not len(encoded.places):
            raise BesagError(f"the term {quoted(term)} is unknown to the tokenizer, so that no target can hold it")
        found.append(tuple(encoded.ids[encoded.places].tolist()))
    return tuple(found)


def _before(vocabulary: Vocabulary) -> str:
    """A token before a term, so that it is read as what comes after a space."""
    return vocabulary.mask_token or "a"


def clamped(engine: Engine, canvas: Canvas, terms: Sequence[tuple[Term, ...]]) -> tuple[Canvas, Tensor]:
    """Return the canvas with the terms of each of its C chains written on it, and (C,) the passes that took: 0 or 1."""
    wanted = torch.tensor([bool(own) for own in terms])  # (C,)
    if not any(terms):
        return canvas, wanted.long()
    free = canvas.free.cpu() & wanted[:, None]  # (C, L)
    row, place = free.nonzero(as_tuple=True)  # (M,) each, sorted by chain
    tokens = [sorted({token for term in own for token in term}) for own in terms]
    width = max(map(len, tokens))
    padded = torch.tensor([[*own, *[0] * (width - len(own))] for own in tokens])  # (C, t)
    there = wanted.to(canvas.ids.device)
    number = wanted.cumsum(0) - 1  # (C,) of each chain among those that have terms
    questions = Questions(canvas.ids[there], number[row], place, padded[row], given=canvas.given_to(wanted))
    told = engine.ask(questions, Target())["target"].double().cpu().numpy()  # (M, t)
    engine.check()
    ids, still = canvas.ids.clone(), canvas.free.clone()
    for chain, own in enumerate(terms):
        mine = (row == chain).numpy()
        places, column = place.numpy()[mine], {token: at for at, token in enumerate(tokens[chain])}
        tables = [told[mine][:, [column[token] for token in term]] for term in own]  # (n, m) each
        for term, start in zip(own, best_places(tables), strict=True):
            at = torch.from_numpy(places[start : start + len(term)]).to(ids.device)
            ids[chain, at] = torch.tensor(term, device=ids.device)
            still[chain, at] = False
    return canvas._replace(ids=ids, free=still), wanted.long()


def best_places(tables: Sequence[Floats]) -> list[int]:
    """Where each term begins, from (n, m) log p of its m tokens at n places in a row: the likeliest of all ways.

    >>> import numpy as np
    >>> best_places([np.log([[0.1], [0.8], [0.1]]), np.log([[0.1], [0.7], [0.2]])])  # both want the second place
    [1, 2]
    """
    count = len(tables[0]) if tables else 0
    sums = [
        np.array([np.trace(table[start:]) for start in range(count - table.shape[1] + 1)]) for table in tables
    ]  # (n − m + 1,) each
    sizes = [table.shape[1] for table in tables]

    @cache
    def best(place: int, left: frozenset[int]) -> tuple[float, tuple[tuple[int, int], ...]]:
        """The largest sum over the terms that are left, from this place on, and where they stand."""
        if not left:
            return 0.0, ()
        if place >= count:
            return -np.inf, ()
        found = best(place + 1, left)
        for term in sorted(left):
            if place < len(sums[term]):
                total, others = best(place + sizes[term], left - {term})
                if sums[term][place] + total > found[0]:
                    found = float(sums[term][place] + total), ((term, place), *others)
        return found

    where = dict(best(0, frozenset(range(len(tables))))[1])
    return [where[term] for term in range(len(tables))]
