"""Targets written all at once and mended: a kernel on the places of targets, each given its own source.

    n places, all hidden      one canvas for many targets, whatever their sources, and (padded) of similar lengths
    the kernel                as in `sample`; `passes` is its own option where it has one (iterations, rounds, grid).
                              Where it has none, what is still hidden before the last pass is filled in it, all at once.
    a chain (`gibbs` …)       moves on from what one pass fills in
    early stop                a target that a step did not change is done: exact for `refine`, a guess for others
    stutter                   a token that repeats the one before is hidden, and predicted once more
    restart                   a random share of the places of what was found is hidden, and decoded anew

Told of each target is the sum of log p over all predictions on its way, each when it was made; what is predicted again
by a restart, or because it stuttered, counts again. It is the log-probability of nothing. Knows token ids alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Ints
from besag.conditionals.contract import Given
from besag.engine import Engine
from besag.errors import BesagError
from besag.noise import Sampling
from besag.samplers.kernel import Canvas, Kernel, Noise, State, hidden
from besag.samplers.kernels.mask_predict import MaskPredict
from besag.samplers.kernels.refine import Refine
from besag.samplers.kernels.stutter import repeated
from besag.samplers.run import rows_of, walk
from besag.samplers.sheet import Sheet, allowed_tokens, blank
from besag.translation.terms import Term, clamped

CHAINS = 2**10  # targets of a source and length, at most: they number the noise
OPTION = ("iterations", "rounds", "grid")  # how kernels call the number of their passes
TOGETHER = 2**17  # tokens of targets, and of their sources, that are written on at a time


class Draft(NamedTuple):
    """One target of one source."""

    source: int
    ids: tuple[int, ...]  # its tokens
    total: float | None  # Σ log p of the predictions on its way; None: the kernel tells none
    made: int  # how many predictions these were
    passes: int
    steps: tuple[tuple[int, tuple[int, ...]], ...] = ()  # (passes made, tokens) on the way, where wanted


@dataclass(frozen=True)
class Refinement:
    """How targets are written."""

    kernel: Kernel
    passes: int | None = None
    draws: int = 1
    restarts: int = 0
    noise: float = 0.3
    early_stop: bool = False
    mend_stutters: bool = False
    seed: int = 0
    traced: bool = False

    def kernel_for(self, places: int) -> tuple[Kernel, int | None]:
        """The kernel for targets of so many free places, and after how many steps what is left is filled at once."""
        kernel, passes = self.kernel, self.passes
        if isinstance(kernel, MaskPredict):  # which makes no more passes than there are places
            passes = kernel.iterations if passes is None else passes
            return replace(kernel, iterations=passes and min(passes, places)), None
        if passes is None:
            return kernel, None
        names = [field.name for field in fields(kernel)]
        changed: dict[str, Any] = {name: passes for name in OPTION if name in names}
        if "size" in names and kernel.ends:
            changed = {"size": -(-places // passes)}
        if not changed or getattr(kernel, "budget", None) is not None:
            return kernel, passes - 1
        return replace(kernel, **changed), None

    @property
    def once(self) -> MaskPredict:
        """One pass over all that is hidden."""
        draws = getattr(self.kernel, "pick", "argmax") == "sample"
        if not draws:
            return MaskPredict(iterations=1)
        own = {name: getattr(self.kernel, name) for name in ("temperature", "top_k", "top_p")}
        return MaskPredict(iterations=1, pick="sample", **own)


def refined(
    engine: Engine,
    sources: Sequence[Ints],
    lengths: Sequence[Sequence[int]],
    plan: Refinement,
    terms: Sequence[tuple[Term, ...]] | None = None,
    done: Callable[[int], None] = lambda _: None,
) -> list[list[Draft]]:
    """The targets of each source, of each of its lengths; `done` is told how many targets have been written."""
    if (written := plan.draws * (1 + plan.restarts)) > CHAINS:
        raise BesagError(
            f"draws={plan.draws} and restarts={plan.restarts} are {written:,} targets of a source and "
            f"length: at most {CHAINS:,}"
        )
    found: list[list[Draft]] = [[] for _ in sources]
    allowed = allowed_tokens(engine.conditionals)
    jobs = [Job(which, length) for which, own in enumerate(lengths) for length in own]
    sheets = {length: blank(engine.conditionals, length) for length in sorted({job.length for job in jobs})}
    padding = _padding(engine, sheets)
    for some in _pieces(jobs, sources, plan, padding is not None):
        own = None if terms is None else [terms[job.source] for job in some]
        for draft in _Writing(engine, plan, sheets, allowed, sources, some, padding).drafts(own):
            found[draft.source].append(draft)
        done(len(some))
    return found


class Job(NamedTuple):
    """A target to be written, `draws` times."""

    source: int
    length: int


def _padding(engine: Engine, sheets: Mapping[int, Sheet]) -> int | None:
    """The token by which targets of several lengths share a canvas; None where they cannot."""
    pad = engine.conditionals.vocabulary.pad_id
    if not engine.conditionals.pads or pad is None:
        return None
    return None if any((sheet.ids == pad).any() for sheet in sheets.values()) else pad


def _pieces(jobs: Sequence[Job], sources: Sequence[Ints], plan: Refinement, pads: bool) -> Iterator[list[Job]]:
    """Targets that are written together: by one kernel, of one length or (`pads`) up to half the longest."""
    groups: dict[object, list[Job]] = {}
    for job in jobs:
        kernel, cut = plan.kernel_for(job.length)
        groups.setdefault((kernel.label, cut) if pads else job.length, []).append(job)
    for members in groups.values():
        piece: list[Job] = []
        for job in sorted(members, key=lambda one: (-one.length, -len(sources[one.source]), one.source)):
            widest = max(len(sources[one.source]) for one in (*piece, job))
            tokens = (len(piece) + 1) * plan.draws * (widest + (piece[0] if piece else job).length)
            if piece and (2 * job.length < piece[0].length or tokens > TOGETHER):
                yield piece
                piece = []
            piece.append(job)
        yield piece


class _Writing:
    """Some targets, `draws` of each. Tensors are of their C chains."""

    def __init__(
        self,
        engine: Engine,
        plan: Refinement,
        sheets: Mapping[int, Sheet],
        allowed: Tensor | None,
        sources: Sequence[Ints],
        jobs: Sequence[Job],
        padding: int | None,
    ) -> None:
        several = len({job.length for job in jobs}) > 1
        self.engine, self.plan = engine.padded() if several else engine, plan
        chains = [job for job in jobs for _ in range(plan.draws)]
        self.which = np.array([job.source for job in chains])  # (C,) the source of each
        self.at = [np.array(sheets[job.length].at) for job in chains]  # (C,) the places of each
        numbers = self.which * CHAINS + np.tile(np.arange(plan.draws), len(jobs))
        self.noise = Noise(plan.seed, torch.from_numpy(numbers))
        longest = max((sheets[job.length] for job in jobs), key=lambda sheet: len(sheet.ids))
        canvas = longest.canvas(engine.conditionals, len(chains), allowed)
        if several:
            ids = np.full(canvas.ids.shape, padding)
            free = np.zeros(canvas.ids.shape, bool)
            for row, job in enumerate(chains):
                own = sheets[job.length]
                ids[row, : len(own.ids)], free[row, list(own.at)] = own.ids, True
            device = canvas.ids.device
            canvas = canvas._replace(ids=torch.from_numpy(ids).to(device), free=torch.from_numpy(free).to(device))
        distinct, place = np.unique(self.which, return_inverse=True)
        self.canvas = canvas._replace(given=Given(tuple(sources[one] for one in distinct), place))

    def drafts(self, terms: Sequence[tuple[Term, ...]] | None) -> Iterator[Draft]:
        canvas, spent = self.canvas, 0
        if terms is not None:
            each = [own for own in terms for _ in range(self.plan.draws)]
            canvas, spent = clamped(self.engine, canvas, each)
        first = _Path(self, canvas, self.noise, spent)
        first.decode()
        yield from first.drafts()
        for restart in range(self.plan.restarts):
            again = first.again(self.plan.draws * (restart + 1), self.plan.noise)
            again.decode()
            yield from again.drafts()

    def tokens(self, chain: int, row: Ints) -> tuple[int, ...]:
        return tuple(row[self.at[chain]].tolist())


class _Path:
    """The way of C targets from masks to text, and what is told of it; chains that have ended stay as they are."""

    def __init__(self, writing: _Writing, canvas: Canvas, noise: Noise, spent: int | Tensor = 0) -> None:
        self.writing, self.engine, self.plan = writing, writing.engine, writing.plan
        self.canvas, self.noise = canvas, noise
        count = len(canvas.ids)
        self.ids = canvas.ids.clone()  # (C, L)
        self.total = torch.zeros(count, dtype=torch.float64)  # Σ log p of what was predicted
        self.made = torch.zeros(count, dtype=torch.long)  # how many predictions
        self.passes = torch.zeros(count, dtype=torch.long) + spent
        self.told = True  # does the kernel say how likely its tokens were?
        self.kept: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(count)]

    def decode(self) -> None:
        plan, canvas = self.plan, self.canvas
        everyone = torch.arange(len(canvas.ids))
        kernel, cut = plan.kernel_for(int(canvas.free.sum(1).min()))
        if not kernel.ends:
            self._run(everyone, canvas, plan.once, None)
            cut = None if plan.passes is None else plan.passes - 1
            canvas = canvas._replace(ids=self.ids.clone())
        if cut is None or cut > 0:
            self._run(everyone, canvas, kernel, cut)
        self._once_more(hidden(State(self.ids, self.canvas, 0)))
        if plan.mend_stutters:
            self._once_more(repeated(self.ids, self.canvas.free))
        self.engine.check()

    def again(self, number: int, share: float) -> _Path:
        """The same targets with some places hidden, at least one, once more on the way; `number` is of the noise."""
        noise = self.noise._replace(chain=self.noise.chain + number)
        height = noise.grid(Sampling.START, 0, self.ids.shape[1]).masked_fill(~self.canvas.free.cpu(), 2.0)
        free = ((height < share) | (height == height.amin(1, keepdim=True))).to(self.ids.device) & self.canvas.free
        canvas = self.canvas._replace(ids=self.ids.masked_fill(free, self.canvas.mask_id), free=free)
        other = _Path(self.writing, canvas, noise, self.passes)
        other.total, other.made, other.told = self.total.clone(), self.made.clone(), self.told
        other.kept = [list(one) for one in self.kept]
        return other

    def drafts(self) -> Iterator[Draft]:
        ids, total, made = self.ids.numpy(force=True), self.total.tolist(), self.made.tolist()
        for chain, source in enumerate(self.writing.which.tolist()):
            told = total[chain] if self.told else None
            passes, kept = int(self.passes[chain]), tuple(self.kept[chain])
            yield Draft(source, self.writing.tokens(chain, ids[chain]), told, made[chain], passes, kept)

    def _once_more(self, where: Tensor) -> None:
        """Predict some places, (C, L), of those chains that have any, in one pass."""
        who = where.any(1).cpu().nonzero()[:, 0]
        if len(who):
            there = who.to(where.device)
            free = where[there]
            ids = self.ids[there].masked_fill(free, self.canvas.mask_id)
            self._run(who, self.canvas.rows(there)._replace(ids=ids, free=free), self.plan.once, None)

    def _run(self, who: Tensor, canvas: Canvas, kernel: Kernel, steps: int | None) -> None:
        """The steps of a kernel on some chains, (c,) numbers on the host, until all of them have ended."""
        noise = self.noise.rows(who)
        state: Any = None
        adds = not isinstance(kernel, MaskPredict | Refine)  # does a step tell what it adds, or the sum so far?
        certain = getattr(kernel, "top_k", None) == 1  # of the law that is cut to one token, which says nothing
        self.made[who] += canvas.free.sum(1).cpu()
        before = self.total[who]
        while True:
            gained: Tensor | None = None  # (c,) where the network is: to fetch it at every step would wait for each
            still = torch.zeros(len(who), dtype=torch.bool)  # (c,) those that go on after the others have ended
            for now, info in walk(self.engine, kernel, canvas, noise, steps, state):
                state = now
                if info is None:
                    continue
                self.passes[who] += info.passes.cpu()
                told = None if certain else info.more.get("log_prob" if adds else "score")
                self.told = self.told and told is not None
                if told is not None:
                    gained = told.double() if gained is None or not adds else gained + told.double()
                if "hidden_again" in info.more:
                    self.made[who] += info.more["hidden_again"].cpu()
                self._keep(who, state)
                if self.plan.early_stop:
                    moves = (info.changed.cpu() > 0) | hidden(state).any(1).cpu()
                    if not bool(moves.all()):
                        still = moves
                        break
            self.ids[who.to(self.ids.device)] = state.ids
            if gained is not None:
                self.total[who] = (self.total[who] if adds else before) + gained.cpu()
            if not bool(still.any()):
                return
            who, noise, state, before = who[still], noise.rows(still), rows_of(state, still), before[still]
            canvas = state.canvas

    def _keep(self, who: Tensor, state: Any) -> None:
        if self.plan.traced:
            for chain, row in zip(who.tolist(), state.ids.numpy(force=True), strict=True):
                self.kept[chain].append((int(self.passes[chain]), self.writing.tokens(chain, row)))
