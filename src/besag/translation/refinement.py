"""Targets decoded in parallel: a sampler on the positions of targets, each given its own source.

    n positions, all masked   one canvas for many targets, whatever their sources, and (padded) of similar lengths
    the sampler               as in `sample`. `passes` is spread by its own options where it has such (`budget.py`);
                              what is still masked before the last pass is filled in that pass: drawn where the sampler
                              draws, most probable tokens where it is greedy
    a chain (`gibbs` …)       starts from one such pass
    early stop                a target that a step did not change is done: exact for `refine`, a guess for others
    repeats                   a token that repeats the one before is masked, and predicted again
    restart                   a random share of the positions of a target is masked, and decoded again

A target depends on its own source, length, terms and number in the call, and on no other target of the call.

The score of a target is the sum of log p over all predictions that led to it, each when it was made; what is predicted
again by a restart, or because it repeats, counts again. It is not a log-probability of the target. Works on token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Ints
from besag.conditionals.contract import Given
from besag.engine import Engine
from besag.errors import BesagError
from besag.noise import Sampling
from besag.samplers.drawing import AS_IT_IS, Drawing
from besag.samplers.kernel import SWEEPS, AnyState, Canvas, Kernel, Noise, State, hidden
from besag.samplers.kernels.block_diffusion import BlockDiffusion
from besag.samplers.kernels.decoding import Pick, drawn_at
from besag.samplers.kernels.mask_predict import USUAL, MaskPredict
from besag.samplers.kernels.refine import Refine
from besag.samplers.kernels.semi_ar import SemiAr
from besag.samplers.kernels.sequential import Sequential
from besag.samplers.kernels.stutter import repeated
from besag.samplers.run import rows_of, walk
from besag.samplers.sheet import Sheet, allowed_tokens, blank
from besag.translation.budget import Fitted, MaskPredictAtMost, fitted, step_passes
from besag.translation.terms import Term, clamped

CHAINS = 2**10  # targets of a source and length, at most: they number the noise
# Steps that number the noise of what is done beside the steps of a sampler, which never makes as many.
BEGIN, FILL, REPEAT, RESTART = range(2**31, 2**31 + 4)
BY_THEIR_ENDS = (BlockDiffusion, SemiAr, Sequential)  # they look for special tokens in the same columns of all chains
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

    @property
    def drawing(self) -> tuple[Pick, Drawing]:
        """How the sampler takes its tokens, for the passes that are made beside its own."""
        own = {name: getattr(self.kernel, name, None) for name in ("temperature", "top_k", "top_p")}
        if getattr(self.kernel, "pick", "sample") == "argmax" or own["top_k"] == 1:
            return "argmax", AS_IT_IS
        return "sample", Drawing(own["temperature"] or 1.0, own["top_k"], own["top_p"])


def refined(
    engine: Engine,
    sources: Sequence[Ints],
    lengths: Sequence[Sequence[int]],
    plan: Refinement,
    terms: Sequence[tuple[Term, ...]] | None = None,
    done: Callable[[int], None] = lambda _: None,
    numbers: Sequence[int] | None = None,
) -> list[list[Draft]]:
    """Return the targets of each source, of each of its lengths.

    `done` is called with the number of targets that were written; `numbers` are those of the sources in the call,
    which number the noise.
    """
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
    columns = {length: np.array(sheet.at) for length, sheet in sheets.items()}
    ways = {length: fitted(engine, plan.kernel, plan.passes, own) for length, own in columns.items()}
    for some in _pieces(jobs, sources, plan, ways, padding is not None):
        own = None if terms is None else [terms[job.source] for job in some]
        for draft in _Writing(engine, plan, sheets, allowed, sources, some, padding, numbers).drafts(own):
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


def _pieces(
    jobs: Sequence[Job], sources: Sequence[Ints], plan: Refinement, ways: Mapping[int, Fitted], pads: bool
) -> Iterator[list[Job]]:
    """Targets that are written together: by one sampler, of one length or (`pads`) up to half the longest."""
    groups: dict[object, list[Job]] = {}
    pads = pads and not isinstance(plan.kernel, BY_THEIR_ENDS)
    for job in jobs:
        groups.setdefault(_key(ways[job.length]) if pads else job.length, []).append(job)
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


def _key(way: Fitted) -> tuple[str, bool]:
    """What chains that run together have in common."""
    return way.kernel.label, way.keeps_last


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
        numbers: Sequence[int] | None,
    ) -> None:
        several = len({job.length for job in jobs}) > 1
        self.engine, self.plan = engine.padded() if several else engine, plan
        chains = [job for job in jobs for _ in range(plan.draws)]
        self.which = np.array([job.source for job in chains])  # (C,) the source of each
        self.at = [np.array(sheets[job.length].at) for job in chains]  # (C,) the places of each
        number = self.which if numbers is None else np.array(numbers)[self.which]
        self.noise = Noise(plan.seed, torch.from_numpy(number * CHAINS + np.tile(np.arange(plan.draws), len(jobs))))
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
        canvas, spent = self.canvas, torch.zeros(len(self.which), dtype=torch.long)
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
    """C targets on the way from masks to text; chains that have ended stay as they are."""

    def __init__(self, writing: _Writing, canvas: Canvas, noise: Noise, spent: Tensor) -> None:
        self.writing, self.engine, self.plan = writing, writing.engine, writing.plan
        self.canvas, self.noise = canvas, noise
        count = len(canvas.ids)
        self.ids = canvas.ids.clone()  # (C, L)
        self.total = torch.zeros(count, dtype=torch.float64)  # Σ log p of what was predicted
        self.score = torch.zeros(count, dtype=torch.float64)  # of it, the score of the sampler that runs
        self.made = torch.zeros(count, dtype=torch.long)  # how many predictions
        self.passes = spent.clone()
        self.before = spent  # (C,) passes that were made before the masks are decoded
        self.told = torch.ones(count, dtype=torch.bool)  # does the sampler report log p of its tokens?
        self.kept: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(count)]

    def decode(self) -> None:
        canvas = self.canvas
        if not self.plan.kernel.ends:
            self._fill(canvas.free, BEGIN)
            canvas = canvas._replace(ids=self.ids.clone())
        free = canvas.free.cpu()
        for way, who in self._ways(free):
            self._run(who, canvas.rows(who.to(canvas.ids.device)), way, free[who].sum(1))
        self._fill(hidden(State(self.ids, self.canvas, 0)), FILL)
        if self.plan.mend_stutters:
            self._fill(repeated(self.ids, self.canvas.free), REPEAT)
        self.engine.check()

    def _ways(self, free: Tensor) -> Iterator[tuple[Fitted, Tensor]]:
        """How each chain is decoded, by its own positions in free (C, L) alone, and the chains of each way."""
        ways: dict[bytes, Fitted] = {}
        groups: dict[object, tuple[Fitted, list[int]]] = {}
        for chain, row in enumerate(free.numpy()):
            known = row.tobytes()
            if known not in ways:
                ways[known] = fitted(self.engine, self.plan.kernel, self.plan.passes, row.nonzero()[0])
            way = ways[known]
            groups.setdefault(_key(way), (way, []))[1].append(chain)
        for way, chains in groups.values():
            yield way, torch.tensor(chains)

    def again(self, number: int, share: float) -> _Path:
        """The same targets with some places hidden, at least one, once more on the way; `number` is of the noise."""
        noise = self.noise._replace(chain=self.noise.chain + number)
        height = noise.grid(Sampling.START, RESTART, self.ids.shape[1]).masked_fill(~self.canvas.free.cpu(), 2.0)
        free = ((height < share) | (height == height.amin(1, keepdim=True))).to(self.ids.device) & self.canvas.free
        canvas = self.canvas._replace(ids=self.ids.masked_fill(free, self.canvas.mask_id), free=free)
        other = _Path(self.writing, canvas, noise, self.passes)
        other.total, other.made, other.told = self.total.clone(), self.made.clone(), self.told.clone()
        other.kept = [list(one) for one in self.kept]
        return other

    def drafts(self) -> Iterator[Draft]:
        ids, total, made = self.ids.numpy(force=True), self.total.tolist(), self.made.tolist()
        for chain, source in enumerate(self.writing.which.tolist()):
            told = total[chain] if self.told[chain] else None
            passes, kept = int(self.passes[chain]), tuple(self.kept[chain])
            yield Draft(source, self.writing.tokens(chain, ids[chain]), told, made[chain], passes, kept)

    def _fill(self, where: Tensor, step: int) -> None:
        """Predict positions, (C, L), in one pass over the chains that have any; `step` is of the noise."""
        chosen = where.cpu()
        who = chosen.any(1).nonzero()[:, 0]
        if not len(who):
            return
        there, chosen = who.to(where.device), chosen[who]
        shown = self.ids[there].masked_fill(where[there], self.canvas.mask_id)
        pick, drawing = self.plan.drawing
        ids, log_prob = drawn_at(
            self.engine, self.noise.rows(who), shown, self.canvas.rows(there), chosen, step, drawing, pick
        )
        self.ids[there] = ids
        self.total[who] += log_prob.sum(1).double().cpu()
        self.made[who] += chosen.sum(1)
        self.passes[who] += 1
        self._keep(who, ids)

    def _run(self, who: Tensor, canvas: Canvas, way: Fitted, places: Tensor) -> None:
        """The steps of a sampler on some chains, (c,) numbers on the host, until each has ended or spent its passes."""
        noise, state = self.noise.rows(who), None
        stays = self._may_go_on(who, way.kernel, State(canvas.ids, canvas, 0), way.keeps_last, places)
        while bool(stays.any()):
            if not bool(stays.all()):
                who, noise, places = who[stays], noise.rows(stays), places[stays]
                canvas = canvas.rows(stays.to(canvas.ids.device))
                state = None if state is None else rows_of(state, stays)
            state, stays = self._steps(who, canvas, noise, way, state, places)

    def _steps(
        self, who: Tensor, canvas: Canvas, noise: Noise, way: Fitted, state: Any, places: Tensor
    ) -> tuple[Any, Tensor]:
        """Make steps until some chain must stop. Return the state, and (c,) which chains have not ended then."""
        kernel, begins = way.kernel, state is None
        adds = not isinstance(kernel, MaskPredict | Refine)  # does a step report what it adds, or the sum so far?
        certain = getattr(kernel, "top_k", None) == 1  # of the law that is cut to one token, which says nothing
        gained: Tensor | None = None  # (c,) where the network is: to fetch it at every step would wait for each
        masked = hidden(State(canvas.ids, canvas, 0) if begins else state).sum(1)
        stays = torch.zeros(len(who), dtype=torch.bool)
        for now, info in walk(self.engine, kernel, canvas, noise, self._most_steps(kernel, places), state):
            state = now
            if info is None:
                continue
            self.passes[who] += info.passes.cpu()
            told = None if certain else info.more.get("log_prob" if adds else "score")
            if told is None:
                self.told[who] = False
            else:
                gained = told.double() if gained is None or not adds else gained + told.double()
            if "hidden_again" in info.more:
                self.made[who] += info.more["hidden_again"].cpu()
            self._keep(who, state.ids)
            going = self._may_go_on(who, kernel, state, way.keeps_last, places)
            if self.plan.early_stop:
                going &= (info.changed.cpu() > 0) | hidden(state).any(1).cpu()
            if not bool(going.all()):
                stays = going
                break
        self.ids[who.to(self.ids.device)] = state.ids
        if adds and kernel.ends:
            self.made[who] += (masked - hidden(state).sum(1)).cpu()
        elif begins:
            self.made[who] += places
        if gained is not None:
            self.total[who] += gained.cpu() if adds else gained.cpu() - self.score[who]
            self.score[who] = gained.cpu()
        return state, stays

    def _may_go_on(self, who: Tensor, kernel: Kernel, state: AnyState, keeps_last: bool, places: Tensor) -> Tensor:
        """(c,) on the host: the chains that have passes left for one more step."""
        if self.plan.passes is not None:
            spent = self.passes[who] - self.before[who]
            return spent + step_passes(self.engine, kernel, state) + keeps_last <= self.plan.passes
        if not kernel.ends:
            return places * SWEEPS > state.step
        return torch.ones(len(who), dtype=torch.bool)

    def _most_steps(self, kernel: Kernel, places: Tensor) -> int | None:
        """Return how many steps the chains with the most positions make; None if they end by themselves."""
        most = int(places.max())
        if isinstance(kernel, MaskPredictAtMost):
            return min(kernel.iterations or USUAL, most)
        return None if kernel.ends else self.plan.passes or SWEEPS * most

    def _keep(self, who: Tensor, ids: Tensor) -> None:
        if self.plan.traced:
            for chain, row in zip(who.tolist(), ids.numpy(force=True), strict=True):
                self.kept[chain].append((int(self.passes[chain]), self.writing.tokens(chain, row)))
