"""The likeliest fillings of all masks of a text together, and how sure one can be that they are.

| masks | what is compared | exact |
|---|---|---|
| 1 | the model's own row | yes |
| 2 | the joint of the pair over all tokens of text, or over candidate sets where that would take long | over those |
| 3 or more | the block joint over candidate sets of ten tokens or more, where that takes seconds | over those |
| too many for that | what a beam search over the chain of pair blocks meets (`beam.py`) | no |

Filling each mask by its own likeliest token compares nothing: the tokens need not go together. Knows which of these is
affordable and says which was used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag import noise
from besag.checks import checked, whole_number
from besag.conditionals.contract import require_both_sides
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError, quoted
from besag.fills.beam import beam_search
from besag.joints import fillings
from besag.joints.acceleration import warning
from besag.joints.block import BLOCK_OPTIONS, block_joint
from besag.joints.block_asking import affordable
from besag.joints.candidates import Candidates, Kind, checked_candidates, outcome_ids, read_words, shown
from besag.joints.joint import pair_joint, refuse_method
from besag.joints.pair_show import precision
from besag.joints.registry import CONSTRUCTIONS
from besag.places.filling import Filling, filled
from besag.places.places import Places, find
from besag.places.tokens import Token
from besag.reductions import Row
from besag.registry import refuse_unknown
from besag.results.data import json_ready
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import dtype_name, unseen
from besag.scores.ag_chain import JOINTS, AgChain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

ENOUGH = 10  # candidates of each mask below which a block is worth less than a search
WIDTH = 16  # of a beam
MOST_WIDTH = 10_000
MOST_BOXED = 1024  # candidates of a place in a pair block, whose law is a table
BEAM_OPTIONS = ("weights",)
OWN = ("k", "method", "candidates", "outcomes", "beam", "sample", "seed")  # what `lm.fill` takes beside other options


class Found(NamedTuple):
    """Token ids and log-probabilities, likeliest first, and what they are."""

    ids: Sequence[tuple[int, ...]]
    log_probs: Sequence[float]
    how: str
    lost: tuple[float, ...] | None
    status: Status = Status.OK
    details: Mapping[str, float | int | str] = {}  # nobody writes to the default
    said: Sequence[str] = ()  # of its precision


@dataclass(frozen=True, eq=False, repr=False)
class Fill(Presented):
    """The likeliest fillings of the masks of a text, likeliest first; iterate over it, or index it."""

    text: str  # as it was given
    rows: tuple[Filling, ...]
    how: str  # over what they are the likeliest, and whether that is certain
    lost: tuple[float, ...] | None  # the mass of each place that was not looked at; None where a beam searched
    method: str | None  # the construction of the joint; None for one mask, which needs no joint
    status: Status  # "ok", or "not converged"
    model: str
    dtype: str
    details: Mapping[str, float | int | str] = field(default_factory=dict)  # of the joint: iterations, residual …
    said: tuple[str, ...] = ()  # of what the model did not see, and of what can be trusted

    @property
    def best(self) -> str:
        """The text with its likeliest filling."""
        return self.rows[0].text

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        unfinished = warning(self.status, self.details)
        method = "the model's own distribution" if self.method is None else f"method {self.method}"
        return [*unfinished, *self.said, self.how, method, self.model, self.dtype]

    def __len__(self) -> int:
        return len(self.rows)

    @checked
    def __getitem__(self, rank: int) -> Filling:
        return self.rows[rank]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("text", "how", "lost", "method", "details", "unit", "model", "dtype")
        about = {name: getattr(self, name) for name in names}
        return dict(json_ready({**self._answers(), **about, "fillings": [fillings.record(row) for row in self.rows]}))

    def to_pandas(self) -> DataFrame:
        """One row a filling; `frame.attrs` says what the numbers are."""
        return fillings.frame(self, self.rows)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The probabilities of the fillings as bars, the likeliest on top."""
        return fillings.plot_fillings(ax, self.rows, [quoted(self.text), *self.facts])

    def _title(self) -> list[str]:
        return [quoted(self.text)]

    def _grids(self) -> list[Grid]:
        return [fillings.grid([(str(rank), row) for rank, row in enumerate(self.rows, 1)])]


@checked
def fill(
    engine: Engine,
    text: str,
    k: int = 5,
    *,
    method: str = "ag",
    candidates: Candidates | Literal["auto"] = "auto",
    outcomes: Kind = "text",
    beam: int | None = None,
    sample: bool = False,
    seed: int = 0,
    **options: Any,
) -> Fill:
    """The k likeliest fillings of all masks of the text, taken together, or (`sample`) k independent draws of them.

    `method` is a construction of joints; of two masks any, of more "ag" or "loglinear". `candidates` limits what may
    stand at each mask: how many of the likeliest tokens, "all", or a list of words for each mask. `beam` searches with
    so many hypotheses instead of comparing all. Further options belong to the construction, or to `ag_chain` for a
    beam.
    """
    model = engine.conditionals
    k = whole_number(k, "k", most=fillings.MOST_ROWS)
    noise.whole_seed(seed)
    if not isinstance(candidates, str) or candidates != "auto":
        candidates = checked_candidates(candidates)
    if beam is not None:
        beam = whole_number(beam, "beam", most=MOST_WIDTH)
        if candidates != "auto" and not isinstance(candidates, int):
            raise BesagError(
                f"beam={beam} and candidates={quoted(candidates)}: a beam takes a number of candidates for each mask"
            )
    if beam is not None and sample:
        raise BesagError(f"beam={beam} searches for the likeliest fillings and draws none: leave out beam or sample")
    require_both_sides(model, "filling")
    CONSTRUCTIONS.find(method)
    places = find(model.vocabulary, text, max_length=model.max_length)
    masks = _Masks(engine, places, k, method, candidates, outcomes, seed if sample else None, options)
    found = masks.compare() if beam is None or len(places.at) == 1 else masks.search(beam)
    rows = tuple(
        Filling(
            tuple(Token.of(model.vocabulary, id) for id in ids),
            filled(model.vocabulary, places.encoded, places.positions, ids),
            log_prob,
            float(np.exp(log_prob)),
        )
        for ids, log_prob in zip(found.ids, found.log_probs, strict=True)
    )
    said = (*unseen(places.unknown), *found.said)
    joint = None if len(places.at) == 1 else method
    return Fill(text, rows, found.how, found.lost, joint, found.status, model.name, masks.dtype, found.details, said)


@dataclass(frozen=True)
class _Masks:
    """The masks of one text, and what is wanted of them."""

    engine: Engine
    places: Places
    k: int
    method: str
    candidates: Candidates | Literal["auto"]
    outcomes: Kind
    seed: int | None  # of draws; None: the likeliest
    options: dict[str, Any]

    @property
    def dtype(self) -> str:
        return dtype_name(self.engine.conditionals.dtype)

    def compare(self) -> Found:
        model, masks = self.engine.conditionals, len(self.places.at)
        if masks <= 2:
            return self.one() if masks == 1 else self.two()
        few = affordable(model, self.places) < min(ENOUGH, model.width)
        if self.candidates == "auto" and few and self.seed is not None:
            raise BesagError(
                f"{masks} masks are too many for one joint to draw from: say fewer candidates than {ENOUGH}, or draw "
                "them one after the other (lm.sample, besag sample)"
            )
        return self.search(WIDTH) if self.candidates == "auto" and few else self.several()

    def one(self) -> Found:
        model, places = self.engine.conditionals, self.places
        self.refuse_unknown("fill() of one mask, which needs no joint,")
        allowed = outcome_ids(model, self.outcomes)
        what = f"all {len(allowed):,} {self.tokens}"
        if not isinstance(self.candidates, int | str):  # the likeliest of a row are among all of it
            [allowed] = read_words(model.vocabulary, places, allowed, self.candidates)
            what = f"{len(allowed):,} candidates"

        def plan() -> Plan[NDArray[np.float64]]:
            answers = yield Request((Row(),), shown(model, places), np.zeros(1, np.int64), np.array(places.at))
            return np.asarray(answers["row"][0, allowed], np.float64)

        log_probs = next(self.engine.run([plan()]))
        total = np.logaddexp.reduce(log_probs)
        if total == -np.inf:
            raise BesagError(f"the model gives each of {what} probability 0 at {places.title}: give other candidates")
        best = np.lexsort((allowed, -log_probs))[: self.k]
        if self.seed is not None:
            heights = noise.uniform(self.seed, noise.Measuring.DRAW, np.arange(self.k))
            cumulated = np.cumsum(np.exp(log_probs - total))  # its last is 1 up to rounding
            best = np.searchsorted(cumulated, heights * cumulated[-1], side="right")
        lost = (-float(np.expm1(min(total, 0.0))),)
        log_probs = (log_probs - total)[best]
        return Found([(int(allowed[x]),) for x in best], log_probs.tolist(), self.exact(what, lost), lost)

    def two(self) -> Found:
        CONSTRUCTIONS.refuse_unknown("fill", OWN, self.method, self.options)
        joint = pair_joint(
            self.engine, self.places, self.method, outcomes=self.outcomes, candidates=self.candidates, **self.options
        )
        pair = joint.unaries
        lost = pair.lost.hidden_a, pair.lost.hidden_b
        if self.seed is None:
            found = [(best.tokens, best.log_prob) for best in joint.top(self.k)]
        else:
            found = [(tokens, joint.log_prob(*tokens)) for tokens in joint.sample(self.k, self.seed)]
        everything = len(outcome_ids(self.engine.conditionals, self.outcomes))
        whole = pair.shape == (everything, everything)
        what = f"all pairs of {everything:,} {self.tokens}" if whole else _sets(pair.shape)
        ids, how = [tuple(token.id for token in tokens) for tokens, _ in found], self.exact(what, lost)
        log_probs, said = [log_prob for _, log_prob in found], precision(joint)
        return Found(ids, log_probs, how, lost, joint.status, joint.details, said)

    def several(self) -> Found:
        refuse_method(self.places, self.method)
        self.refuse_unknown(f"fill() of {len(self.places.at)} masks", *BLOCK_OPTIONS[self.method])
        joint = block_joint(
            self.engine, self.places, self.method, outcomes=self.outcomes, candidates=self.candidates, **self.options
        )
        if self.seed is None:
            found = [(best.tokens, best.log_prob) for best in joint.top(self.k)]
        else:
            found = [(tokens, joint.log_prob(*tokens)) for tokens in joint.sample(self.k, self.seed)]
        ids, lost = [tuple(token.id for token in tokens) for tokens, _ in found], joint.lost.hidden
        how = self.exact(_sets([len(part) for part in joint.ids]), lost)
        return Found(ids, [log_prob for _, log_prob in found], how, lost, joint.status, joint.details)

    def search(self, width: int) -> Found:
        if self.method not in JOINTS:
            raise BesagError(f"a beam goes over blocks by {' or '.join(JOINTS)}, not by {self.method!r}")
        self.refuse_unknown("fill() with a beam", *BEAM_OPTIONS)
        given = self.options
        if isinstance(self.candidates, int):
            given = {**given, "candidates": whole_number(self.candidates, "candidates", most=MOST_BOXED)}
        chain, width = AgChain(joint=self.method, **given), max(width, self.k)  # type: ignore[arg-type]
        plan = beam_search(self.engine.conditionals, self.places, chain, width, self.outcomes)
        ids, log_probs = next(self.engine.run([plan]))
        blocks = "AG" if self.method == "ag" else self.method
        how = f"beam search over the chain of {blocks} pair blocks: not guaranteed to be the best ({width} hypotheses)"
        return Found([tuple(row) for row in ids[: self.k].tolist()], log_probs[: self.k].tolist(), how, None)

    def refuse_unknown(self, what: str, *others: str) -> None:
        refuse_unknown(what, [*OWN, *others], self.options)

    @property
    def tokens(self) -> str:
        return "text tokens" if self.outcomes == "text" else "tokens"

    def exact(self, what: str, lost: tuple[float, ...]) -> str:
        drawn = "exact" if self.seed is None else f"drawn, seed {self.seed}, from the joint"
        return f"{drawn} over {what}{fillings.covered(lost)}"


def _sets(sizes: Sequence[int]) -> str:
    return f"candidate sets of {' × '.join(f'{size:,}' for size in sizes)}"
