"""Editing by inversion: the noise that would have made a text, recorded, and played again in another context.

Masked diffusion makes a text from masks in steps: at each step some hidden places are revealed, each token drawn given
what is shown, x_i = argmax_v (log p(v | shown) + g_i(v)). To invert a text is to draw a path (which places are hidden,
and revealed when) and, at every step, the noise g_i *given* that its own token comes out (`gumbel.py`). The contexts of
a known text are all known, so this is one batch of passes. Then

- played again unchanged, the noise gives exactly the text;
- with a word replaced, or hidden and drawn anew, every other place is drawn again in its new context with its own
  noise: what the change does not touch stays, what no longer fits changes.

`depth` is the share of the free places that is hidden at a time. At 1 the whole text goes through masks, and if it was
a draw of the model, the edited one is a draw of the model in its new context (with one place a step: of the chain rule
along the path; with more, of a parallel decoder). But one token that flips early changes the context of all that come
after it, so little stays. Below 1 the places are cut into random groups, which go through masks one after the other
while the rest is shown (what is to be drawn anew goes first). With fresh noise that is one sweep of block Gibbs from
the old text; with recorded noise the result has the law of neither text: it changes what the new context asks for and
little else.

`strength` takes the noise a part of the way to fresh noise: 0 only what must change changes, 1 draws all that is free
anew. The idea is DICE's (He et al. 2024), who record residuals along the reverse path; here the noise is the exact
posterior of Gumbel-max, as in Oberst and Sontag's counterfactuals. With the same logits reconstruction is exact.
A network that rounds differently (another device, another batch) moves logits in their last digits, and a token can
flip with about that probability.

There is no top_k or top_p: a text may hold any token, and what a truncated law cannot draw has no noise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from besag import noise
from besag.arrays import Floats, Ints
from besag.checks import MOST_STEPS, checked, is_number, whole_number
from besag.conditionals.contract import Conditionals
from besag.engine import Engine, Plan, Request
from besag.errors import BesagError, quoted
from besag.files.whole import write_arrays
from besag.noise import Sampling
from besag.places.filling import filled
from besag.places.positions import Position, position_list
from besag.reductions import Chunk
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.tables import raw, wrapped
from besag.results.words import counted, passes
from besag.samplers.drawing import Drawing, law_of
from besag.samplers.editing.gumbel import gumbel, hindsight, mixed
from besag.samplers.editing.rewrite import Changes, Rewrite, encode, free_places
from besag.samplers.sheet import allowed_tokens
from besag.vocabulary import Encoded

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_NUMBERS = 2**27  # of noise: a gigabyte


class Flip(NamedTuple):
    """A token that is another one now."""

    position: int  # in the new text, special tokens counted
    old: str
    new: str


@dataclass(frozen=True, eq=False, repr=False)
class Edited(Presented):
    original: str
    text: str
    asked: tuple[tuple[str, str | None], ...]  # what was replaced by what, as it was asked for
    flips: tuple[Flip, ...]  # tokens that changed because of it
    free: int  # tokens that could have
    reads_back: bool  # does the text read as the tokens that were drawn?
    strength: float
    passes: int
    seed: int
    model: str

    @property
    def status(self) -> Status:
        return Status.OK if self.reads_back else Status.MISREAD

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        asked = [f"{old!r} → {'hidden' if new is None else repr(new)}" for old, new in self.asked]
        flips = [f"{raw(flip.old).strip('␣')} → {raw(flip.new).strip('␣')}" for flip in self.flips]
        return [
            f"asked: {', '.join(asked) or 'nothing'}",
            f"{self.free - len(self.flips)} of {counted(self.free, 'free token')} stayed",
            *([f"changed with it: {', '.join(flips)}"] if flips else []),
            *([] if self.reads_back else [f"{self.status.sentence.upper()}"]),
            f"strength {self.strength:g}",
            passes(self.passes),
            f"seed {self.seed}",
            self.model,
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("original", "text", "asked", "flips", "free", "reads_back", "strength", "passes", "seed", "model")
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}}))

    def to_pandas(self) -> DataFrame:
        """One row: the text before and after, and what changed in it."""
        flips = ", ".join(f"{flip.old} → {flip.new}" for flip in self.flips)
        names = ("original", "text", "free", "reads_back", "strength", "passes")
        return data.frame(self, [{**{name: getattr(self, name) for name in names}, "flips": flips}])

    def _grids(self) -> list[Grid]:
        return [Grid((), [Line(("", self.original)), Line(("→", self.text), strong=True)], left=(0, 1))]


@dataclass(frozen=True, eq=False, repr=False)
class Inversion:
    """A text as a path and its noise."""

    text: str
    ids: Ints  # (L,) special tokens included
    places: Ints  # (n,) the free places, in the order of the text
    group: Ints  # (n,) those of one group are hidden together, one group after the other, from 0
    step: Ints  # (n,) at which each is revealed, from 0, counted over all groups
    noise: Floats  # (n, V)
    temperature: float
    seed: int
    model: str

    @property
    def steps(self) -> int:
        return int(self.step.max()) + 1

    @checked
    def replay(self, engine: Engine, changes: Changes | None = None, *, strength: float = 0.0, seed: int = 0) -> Edited:
        """The text that this noise gives with some of it replaced, or hidden and drawn anew with fresh noise.

        A key is the position of one place (a word or phrase that stands in the text once, the number of a token,
        characters); a value the new words, of any number of tokens, or None. `seed` is that of fresh noise.
        """
        conditionals = engine.conditionals
        if conditionals.width != self.noise.shape[1] or conditionals.name != self.model:
            raise BesagError(
                f"this noise was recorded with {self.model!r} ({self.noise.shape[1]:,} tokens); "
                f"{conditionals.name!r} ({conditionals.width:,}) would read it wrongly"
            )
        if not is_number(strength) or not 0 <= strength <= 1:
            raise BesagError(f"strength={strength!r}: 0 plays the recorded noise, 1 draws all of it anew")
        own = encode(conditionals, self.text)
        change = Rewrite.of(conditionals, own, changes or {})
        fixed = np.setdiff1d(change.hidden, self.places)
        if len(fixed):
            raise BesagError(
                f"{own.tokens[fixed[0]]!r} (token {fixed[0]}) was shown all the time when {quoted(self.text)} was "
                "inverted, so it cannot be drawn anew: invert without keeping it"
            )
        plan = self._plan(conditionals, own, change, strength, seed)
        return next(engine.run([plan]))

    def _plan(
        self, conditionals: Conditionals, own: Encoded, change: Rewrite, strength: float, seed: int
    ) -> Plan[Edited]:
        kept = np.flatnonzero(~np.isin(self.places, change.replaced))  # (f,) rows of what is still free
        at = change.moved[self.places[kept]]  # (f,) where they stand now
        group, step, hidden = self.group[kept], self.step[kept], np.isin(self.places[kept], change.hidden)
        if self.group.max() > 0:  # what is drawn anew goes first, so that all the rest sees it
            group, step = np.where(hidden, -1, group), np.where(hidden, step - self.steps, step)
        values = self.noise[kept]  # (f, V)
        if strength > 0 or hidden.any():
            fresh = gumbel(
                noise.uniform(seed, Sampling.EXTRA, 0, self.places[kept][:, None], np.arange(values.shape[1]))
            )
            values = np.where(hidden[:, None], fresh, mixed(values, fresh, strength))
        mask, law = int(conditionals.vocabulary.mask_id or 0), _Law(self.temperature, allowed_tokens(conditionals))
        ids, steps = change.encoded.ids.copy(), np.unique(step).tolist()
        for number in steps:
            rows = np.flatnonzero(step == number)
            together = np.flatnonzero((group == group[rows[0]]) & (step >= number))
            ids[at[together]] = mask
            answers = yield Request((law,), ids[None].copy(), np.zeros_like(rows), at[rows])
            ids[at[rows]] = (answers["law"].astype(np.float64) + values[rows]).argmax(1)
        was, token = own.ids[self.places[kept]], conditionals.vocabulary.token
        flips = [
            Flip(int(place), token(int(old)), token(int(ids[place])))
            for place, old, drawn in zip(at, was, hidden, strict=True)
            if ids[place] != old and not drawn
        ]
        drawn = np.flatnonzero(ids != change.encoded.ids)
        text = filled(conditionals.vocabulary, change.encoded, drawn.tolist(), ids[drawn].tolist())
        [read] = conditionals.vocabulary.encode([text])
        return Edited(
            original=self.text,
            text=text,
            asked=change.asked,
            flips=tuple(sorted(flips)),
            free=int((~hidden).sum()),
            reads_back=bool(np.array_equal(read.ids, ids)),
            strength=strength,
            passes=len(steps),
            seed=seed,
            model=self.model,
        )

    @checked
    def save(self, path: str | Path) -> Path:
        """Write it as npz; `Inversion.load` reads it back bit by bit."""
        about = {name: getattr(self, name) for name in ("text", "temperature", "seed", "model")}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("ids", "places", "group", "step", "noise")}
        file = Path(path)
        write_arrays(file, about, arrays)
        return file

    @classmethod
    @checked
    def load(cls, path: str | Path) -> Inversion:
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                return cls(**about, **{name: stored[name] for name in ("ids", "places", "group", "step", "noise")})
        except (OSError, KeyError, TypeError, ValueError) as problem:
            raise BesagError(f"{str(path)!r} holds no recorded noise: {problem}") from problem

    def __repr__(self) -> str:
        facts = [
            quoted(self.text),
            f"{counted(len(self.places), 'free token')} of {len(self.ids)}",
            f"hidden in {counted(int(self.group.max()) + 1, 'group')}, revealed in {counted(self.steps, 'step')}",
            f"{self.noise.nbytes / 2**20:,.1f} MiB of noise",
            f"seed {self.seed}",
            self.model,
        ]
        return wrapped(facts, shutil.get_terminal_size().columns)


@checked
def invert(
    engine: Engine,
    text: str,
    *,
    keep: Sequence[Position] = (),
    depth: float = 0.2,
    steps: int | None = None,
    temperature: float = 1.0,
    seed: int = 0,
) -> Inversion:
    """Recording a path and the noise that makes the text along it.

    `keep` stays shown all the time, and so do tokens the tokenizer does not know. `depth` is the share of the others
    that is hidden at a time. `steps` None reveals one place at a time, in random order; otherwise each place of a group
    has one of so many steps, drawn uniformly, and those of one step are drawn together.
    """
    return next(engine.run([_invert(engine.conditionals, text, keep, depth, steps, temperature, seed)]))


@checked
def edit(
    engine: Engine,
    text: str,
    changes: Changes,
    *,
    strength: float = 0.0,
    keep: Sequence[Position] = (),
    depth: float = 0.2,
    steps: int | None = None,
    temperature: float = 1.0,
    seed: int = 0,
) -> Edited:
    """Replace or hide some of a text, and let the rest follow: `invert` and `replay` in one.

    What is replaced is shown while inverting, so that without a real change nothing changes.
    """
    if not isinstance(changes, Mapping):
        raise BesagError(f"changes={changes!r}: say what becomes of what, as {{'old': 'new'}}")
    own = encode(engine.conditionals, text)
    shown = [*position_list("keep", keep), *Rewrite.of(engine.conditionals, own, changes).replaced.tolist()]
    inversion = invert(engine, text, keep=shown, depth=depth, steps=steps, temperature=temperature, seed=seed)
    edited = inversion.replay(engine, changes, strength=strength, seed=seed)
    return replace(edited, passes=inversion.steps + edited.passes)


def _invert(
    conditionals: Conditionals,
    text: str,
    keep: Sequence[Position],
    depth: float,
    steps: int | None,
    temperature: float,
    seed: int,
) -> Plan[Inversion]:
    keep = position_list("keep", keep)
    if not is_number(depth) or not 0 < depth <= 1:
        raise BesagError(f"depth={depth!r}: the share of places hidden at a time is above 0 and at most 1")
    if steps is not None:
        whole_number(
            steps, "steps", right="reveal in at least 1 step, or None for one place at a time", most=MOST_STEPS
        )
    Drawing(temperature)
    encoded = encode(conditionals, text)
    places = free_places(conditionals, encoded, keep)
    if len(places) * conditionals.width > MOST_NUMBERS:
        raise BesagError(
            f"{quoted(text)} has {len(places)} free tokens, and noise over {conditionals.width:,} tokens for each of "
            "them is more than a gigabyte: keep some of them, or edit a part of the text"
        )
    group, step = _path(places, depth, steps, seed)
    hides = np.zeros((int(step.max()) + 1, len(encoded.ids)), bool)  # (T, L)
    now = np.arange(len(hides))[:, None]
    of = np.zeros(len(hides), np.int64)
    of[step] = group  # (T,) the group of each step
    hides[:, places] = (group == of[:, None]) & (step >= now)
    ids = np.where(hides, int(conditionals.vocabulary.mask_id or 0), encoded.ids)
    answers = yield Request((_Law(temperature, allowed_tokens(conditionals)),), ids, step, places)
    law, token = answers["law"].astype(np.float64), encoded.ids[places]  # (n, V), (n,)
    impossible = np.flatnonzero(~np.isfinite(law[np.arange(len(places)), token]))
    if len(impossible):
        at = int(places[impossible[0]])
        raise BesagError(
            f"{conditionals.name!r} cannot draw {encoded.tokens[at]!r} (token {at} of {quoted(text)}), so no noise "
            "gives it: keep it"
        )
    top = noise.uniform(seed, Sampling.TIME, 0, places)
    uniform = noise.uniform(seed, Sampling.DRAW, 0, places[:, None], np.arange(law.shape[1]))
    recorded = hindsight(law, token, top, uniform)
    return Inversion(encoded.text, encoded.ids, places, group, step, recorded, temperature, seed, conditionals.name)


def _path(places: Ints, depth: float, steps: int | None, seed: int) -> tuple[Ints, Ints]:
    """(n,), (n,) the group and the step of each place: equal groups by lot, and in each a random order, or steps."""
    turn = noise.uniform(seed, Sampling.WHERE, 0, places).argsort(kind="stable").argsort()
    size = max(1, round(depth * len(places)))
    group = turn // size
    within = turn % size if steps is None else (noise.uniform(seed, Sampling.WHERE, 1, places) * steps).astype(np.int64)
    _, step = np.unique(group * max(size, steps or 1) + within, return_inverse=True)  # steps without a place left out
    return group, step.astype(np.int64)


@dataclass(frozen=True)
class _Law:
    """The whole law over tokens of text, (m, V)."""

    temperature: float
    allowed: Tensor | None = field(compare=False)  # (V,) the same for all plans of an engine, so that they pool

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"law": law_of(chunk, Drawing(self.temperature), self.allowed)}
