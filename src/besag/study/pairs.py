"""The study: pairs of places drawn from texts, every construction of their joint, every metric.

One `PairRow` a pair, in the order of the texts, as soon as it is done; `report.py` turns many of them into tables. With
the whole vocabulary one pair runs at a time and its two tables are given back before the next; candidate sets of many
pairs run together, those of a block and no others. Which pairs are drawn does not depend on the model's answers, so a
study that was cut off goes on with `skip` whole blocks, and the rows are the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from besag.checks import checked
from besag.conditionals.contract import Conditionals
from besag.engine import IDLE, Engine, Idle, Plan
from besag.errors import BesagError
from besag.joints import asking, metrics, passes
from besag.joints.comparison import usual
from besag.joints.registry import Construction, construction
from besag.joints.unaries import Unaries
from besag.places.places import Places, of_tokens
from besag.results.data import from_json, json_ready
from besag.results.status import Status
from besag.study.pair_sampling import DISTANCES, Pair, Scheme, sample_pairs, schemes
from besag.vocabulary import Encoded

TEXTS = 256  # encoded at a time
PAIRS = ("random", "contiguous")  # as in the paper

Value = float | int | str


@dataclass(frozen=True)
class PairRow:
    """All numbers of one pair, in nats. Where `status` is not "ok" there is no pair, and `status` says why."""

    text: int  # its number, counted from 1
    pairs: str  # how the pair was drawn: "random", "contiguous", "distance 4"
    status: Status = Status.OK
    a: int = -1  # positions, special tokens counted
    b: int = -1
    tokens: tuple[str, ...] = ()  # the text's own two tokens
    length: int = 0  # of the text in tokens, special tokens counted
    lost: tuple[float, ...] = ()  # see `Lost`
    forced: tuple[bool, ...] = ()  # was the text's own token put into the candidate set from outside it?
    incompatibility: float = math.nan  # Arnold-Press; nan where a conditional is 0
    own_unary_nll: float = math.nan  # of the model's own conditionals
    joints: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)  # construction → metric, detail, status

    @property
    def distance(self) -> int:
        return abs(self.a - self.b)

    def to_dict(self) -> dict[str, Any]:
        """For one line of JSON."""
        return dict(json_ready(vars(self)))

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> PairRow:
        joints = {
            name: {key: Status(one) if key == "status" else from_json(one) for key, one in numbers.items()}
            for name, numbers in found["joints"].items()
        }
        sequences = {name: tuple(found[name]) for name in ("tokens", "lost", "forced")}
        numbers = {name: from_json(found[name]) for name in ("incompatibility", "own_unary_nll")}
        return cls(**{**found, **sequences, **numbers, "status": Status(found["status"]), "joints": joints})


@checked
def study(
    engine: Engine,
    texts: Iterable[str],
    *,
    pairs: str | Sequence[str] = PAIRS,
    distances: Sequence[int] = DISTANCES,
    per_text: int = 1,
    seed: int = 0,
    outcomes: Literal["text", "all"] = "text",
    candidates: int | Literal["all"] = "all",
    constructions: Iterable[str | Construction] | None = None,
    skip: int = 0,
    block: int | None = None,
) -> Iterator[PairRow]:
    """Rows in the order of the texts: `per_text` of each kind of `pairs` for every text; the first `skip` passed over.

    What is asked for `block` pairs runs together, and for all of them if it is None.

    `outcomes="all"` lets special tokens stand at a place, as in the paper; `candidates` is the size of candidate sets.
    """
    if per_text < 1:
        raise BesagError(f"per_text={per_text}: a study needs at least 1 pair a text")
    if candidates != "all" and (not isinstance(candidates, int) or candidates < 2):
        raise BesagError(f"candidates={candidates!r}: the size of the sets, at least 2, or 'all' for the vocabulary")
    kinds = schemes(pairs, distances)
    chosen = [construction(one) if isinstance(one, str) else one for one in constructions or usual()]
    drawn = islice(_drawn(engine.conditionals, texts, kinds, per_text, seed), skip, None)
    if candidates == "all":
        return (_whole(engine, pair, encoded, outcomes, chosen) for pair, encoded in drawn)
    plans = (_plan(engine.conditionals, pair, encoded, outcomes, candidates, chosen) for pair, encoded in drawn)
    return engine.run(plans if block is None else _in_blocks(plans, block))


def _in_blocks(plans: Iterable[Plan[PairRow]], size: int) -> Iterator[Plan[PairRow] | Idle]:
    for number, plan in enumerate(plans, 1):
        yield plan
        if number % size == 0:
            yield IDLE


def _drawn(
    conditionals: Conditionals, texts: Iterable[str], kinds: Sequence[Scheme], per_text: int, seed: int
) -> Iterator[tuple[Pair, Encoded]]:
    vocabulary = conditionals.vocabulary
    ordinary = asking.outcome_ids(conditionals, "text")
    number, remaining = 0, iter(texts)
    while batch := list(islice(remaining, TEXTS)):
        for encoded in vocabulary.encode(batch, lenient=True):
            number += 1
            for pair in sample_pairs(
                encoded, number, kinds, per_text=per_text, seed=seed, ordinary=ordinary,
                mask_id=vocabulary.mask_id, max_length=conditionals.max_length,
            ):  # fmt: skip
                yield pair, encoded


def _whole(
    engine: Engine, pair: Pair, encoded: Encoded, outcomes: Literal["text", "all"], chosen: Sequence[Construction]
) -> PairRow:
    if pair.status != "ok":
        return _row(pair, encoded)
    places = _places(engine.conditionals, pair, encoded)
    return _row(pair, encoded, asking.unaries(engine, places, outcomes=outcomes, candidates="all"), chosen)


def _plan(
    conditionals: Conditionals, pair: Pair, encoded: Encoded, outcomes: Literal["text", "all"], candidates: int,
    chosen: Sequence[Construction],
) -> Plan[PairRow]:  # fmt: skip
    if pair.status != "ok":
        return _row(pair, encoded)
    places = _places(conditionals, pair, encoded)
    unaries = yield from asking.plan(conditionals, places, outcomes=outcomes, candidates=candidates)
    return _row(pair, encoded, unaries, chosen)


def _places(conditionals: Conditionals, pair: Pair, encoded: Encoded) -> Places:
    return of_tokens(conditionals.vocabulary, encoded, (pair.a, pair.b), conditionals.max_length)


def _row(pair: Pair, encoded: Encoded, unaries: Unaries | None = None, chosen: Sequence[Construction] = ()) -> PairRow:
    if unaries is None:
        return PairRow(pair.text, str(pair.scheme), pair.status, length=len(encoded.ids))
    return PairRow(
        text=pair.text,
        pairs=str(pair.scheme),
        a=pair.a,
        b=pair.b,
        tokens=(encoded.tokens[pair.a], encoded.tokens[pair.b]),
        length=len(encoded.ids),
        lost=tuple(unaries.lost),
        forced=unaries.forced,
        incompatibility=_incompatibility(unaries),
        own_unary_nll=metrics.own_unary_nll(unaries),
        joints={one.label: _measured(unaries, one) for one in chosen},
    )


def _measured(unaries: Unaries, how: Construction) -> dict[str, Value]:
    built = how.build(unaries)
    return {**metrics.measure(unaries, built)._asdict(), **built.details, "status": built.status}


def _incompatibility(unaries: Unaries) -> float:
    try:
        return passes.incompatibility(unaries)
    except BesagError:  # a conditional is 0, so it has none
        return math.nan
