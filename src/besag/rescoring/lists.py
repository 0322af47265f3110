"""What is rescored: an utterance, its hypotheses with the scores of whoever made them, its reference.

A score is a log-score, the higher the better. Knows what a list must be, whoever wrote it; refuses to know files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from besag.errors import BesagError, nearest, quoted

MissingScores = Literal["refuse", "zero", "rank"]


@dataclass(frozen=True)
class Hypothesis:
    text: str
    score: float | None  # of the first pass; None where its file tells none
    carried: Mapping[str, Any] = field(default_factory=dict)  # what its format says besides, written back as it is


@dataclass(frozen=True)
class NBest:
    """One utterance (or source sentence); its hypotheses in the order of their file."""

    utt: str
    hypotheses: tuple[Hypothesis, ...]
    reference: str | None = None
    carried: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None  # what the hypotheses are translations of, for a model that is given it


def sound(lists: Iterable[NBest], name: str) -> list[NBest]:
    """The lists, or what is wrong with them: none at all, an id twice, no hypotheses, a score that is no number."""
    found = list(lists)
    if not all(isinstance(one, NBest) for one in found):
        raise BesagError(f"{name}={quoted(lists)}: give a file, a folder, or NBest lists")
    if not found:
        raise BesagError(f"{name} is empty: there is nothing to rescore")
    seen: set[str] = set()
    for one in found:
        if one.utt in seen:
            raise BesagError(f"{name} has two lists of the id {quoted(one.utt)}: an id names one utterance")
        seen.add(one.utt)
        if not one.hypotheses:
            raise BesagError(f"{name}: {quoted(one.utt)} has no hypotheses: give at least one, or leave it out")
        for hypothesis in one.hypotheses:
            if hypothesis.score is not None and not math.isfinite(hypothesis.score):
                said = f"{quoted(hypothesis.text)} of {quoted(one.utt)} has the score {hypothesis.score}"
                raise BesagError(f"{name}: {said}, which is no finite number")
    return found


def scored(lists: Sequence[NBest], missing: MissingScores, name: str) -> list[NBest]:
    """Every hypothesis with a score: where a file tells none, they are refused, 0, or −ln of the rank."""
    return [replace(one, hypotheses=tuple(_scored(one, missing, name))) for one in lists]


def _scored(one: NBest, missing: MissingScores, name: str) -> Iterable[Hypothesis]:
    for rank, hypothesis in enumerate(one.hypotheses, 1):
        if hypothesis.score is not None:
            yield hypothesis
            continue
        if missing == "refuse":
            raise BesagError(
                f"{name}: {quoted(hypothesis.text)} of {quoted(one.utt)} has no score, and rescoring adds to one: give "
                "scores, or say --missing-scores rank (−ln rank) or zero (the language model alone decides)"
            )
        yield replace(hypothesis, score=-math.log(rank) if missing == "rank" else 0.0)


Beside = Literal["reference", "source"]


def referred(
    lists: Sequence[NBest], texts: Mapping[str, str], name: str, where: str, what: Beside = "reference"
) -> list[NBest]:
    """The lists with the references, or sources, of a file of their own; the two must name the same utterances."""
    ids = {one.utt for one in lists}
    extra = next((utt for utt in texts if utt not in ids), None)
    if extra is not None:
        raise BesagError(f"{where} has a {what} of {quoted(extra)}, and {name} no hypotheses.{nearest(extra, ids)}")
    lacking = next((utt for utt in ids if utt not in texts), None)
    if lacking is not None:
        told = f"{name} has hypotheses of {quoted(lacking)}, and {where} no {what}."
        raise BesagError(told + nearest(lacking, texts))
    if what == "source":
        return [replace(one, source=texts[one.utt]) for one in lists]
    return [replace(one, reference=texts[one.utt]) for one in lists]


def need_references(lists: Sequence[NBest], name: str) -> None:
    lacking = [one.utt for one in lists if one.reference is None]
    if lacking:
        several = f" (and {len(lacking) - 1:,} others)" if len(lacking) > 1 else ""
        raise BesagError(f"{name}: {quoted(lacking[0])}{several} has no reference to judge by: give --ref FILE")
