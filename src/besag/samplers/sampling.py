"""From a text or a length to chains: sheets are made, chains of one sheet run together, results put in order.

Noise belongs to a chain by its number, so neither the other chains nor their lengths change what it draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag import noise as counters
from besag.checks import MOST_CHAINS, MOST_LENGTH, MOST_STEPS, checked, whole_number
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.places.positions import Position, position_list
from besag.results.words import dtype_name
from besag.samplers.chain import Chain
from besag.samplers.kernel import Kernel, Noise
from besag.samplers.kernel import kernel as kernel_named
from besag.samplers.recording import Recording
from besag.samplers.run import Trace, walk
from besag.samplers.sheet import Sheet, allowed_tokens, blank, template
from besag.scores import LengthModel

MOST_TOKENS = 2**27  # of all chains together: a gigabyte of ids
Watch: TypeAlias = Callable[[int, list[int], Callable[[], list[str]]], None]  # the step, chains, and their texts
Allow: TypeAlias = Callable[[Conditionals, Sheet], Tensor]  # (L, V): which tokens may stand where


@checked
def sample(
    engine: Engine,
    text: str | None,
    kernel: str | Kernel = "gibbs",
    *,
    chains: int = 4,
    steps: int | None = None,
    length: int | LengthModel | None = None,
    end: str = "",
    free: Literal["all"] | Sequence[Position] | None = None,
    keep: Sequence[Position] = (),
    outcomes: Literal["text", "all"] = "text",
    constraints: Sequence[object] = (),
    allow: Allow | None = None,
    every: int | None = None,
    seed: int = 0,
    watch: Watch | None = None,
    record: str | Path | None = None,
    resume: bool = False,
    **options: Any,
) -> Chain:
    """Run chains on the free places of a text, or, without one, on `length` places from nothing.

    `allow` says what may stand where so that the `constraints` hold. `watch` is shown the
    texts after every step. `record` is a file for what they say on the way, from which `resume` goes on; the chain that
    is returned then tells of the steps made now. Further options belong to the kernel.
    """
    conditionals = engine.conditionals
    kernel = _kernel(kernel, options)
    require_both_sides(conditionals, "a kernel")
    _refuse_numbers(chains, steps, length, every, seed)
    _refuse_misfits(text, length, free, keep, end, constraints, outcomes, allow)
    of = lengths(0 if length is None else length, chains, seed)  # the sheet of each chain; a text is one for all
    sheets = {
        n: blank(conditionals, n, end=end, long=kernel.long)
        if text is None
        else template(conditionals, text, free=free, keep=keep, long=kernel.long)
        for n in np.unique(of).tolist()
    }
    _refuse_sheets(chains, list(sheets.values()), record)
    if resume and record is None:
        raise BesagError("resume=True goes on with a recorded run: say which file (record=…).")
    about = {
        "kernel": kernel.label, "text": text, "end": end, "chains": int(chains), "seed": int(seed),
        "model": conditionals.name, "free": list(next(iter(sheets.values())).at), "every": int(every or 1),
        "outcomes": outcomes, "constraints": list(map(str, constraints)),
        "source": None if engine.source is None else engine.source.tolist(),
    }  # fmt: skip
    parts = []
    with ExitStack() as stack:
        bar = stack.enter_context(closing(engine.bar(len(sheets) * steps if steps else None, "step")))
        file = stack.enter_context(Recording(record, about=about, every=every or 1, resume=resume)) if record else None
        for key, sheet in sheets.items():
            members = np.flatnonzero(of == key)
            allowed = allow(conditionals, sheet) if allow else allowed_tokens(conditionals, outcomes)
            run = _Run(engine, kernel, sheet, members, Noise(seed, torch.from_numpy(members)), allowed, Trace(every))
            for _ in run.walk(steps, file, watch):
                bar.update()
            parts.append(run)
    return _chain(engine, text, kernel, seed, parts, chains)


def _kernel(kernel: str | Kernel, options: dict[str, Any]) -> Kernel:
    if not isinstance(kernel, Kernel):
        return kernel_named(kernel, **options)
    if options:
        raise BesagError(f"{', '.join(options)}: a kernel that is made already has its options; give its name instead")
    return kernel


def _refuse_numbers(chains: object, steps: object, length: object, every: object, seed: object) -> None:
    whole_number(chains, "chains", right="run at least 1 chain.", most=MOST_CHAINS)
    if steps is not None:
        whole_number(steps, "steps", right="make at least 1 step.", most=MOST_STEPS)
    if length is not None and not isinstance(length, LengthModel):
        whole_number(length, "length", right="give the number of tokens to draw, at least 1.", most=MOST_LENGTH)
    if every is not None:
        right = "keep the text of every step (1), every second (2), …, or of none (None)."
        whole_number(every, "every", right=right, most=MOST_STEPS)
    if not isinstance(seed, int | np.integer):
        raise BesagError(f"seed={quoted(seed)}: give a whole number.")


def _refuse_sheets(chains: int, sheets: list[Sheet], record: object) -> None:
    """All chains are held in memory together, and recorded in one table."""
    if record is not None and len(sheets) > 1:
        raise BesagError("chains of several lengths cannot be recorded into one file: give one length.")
    longest = max(len(sheet.ids) for sheet in sheets)
    if chains * longest > MOST_TOKENS:
        raise BesagError(
            f"chains={chains} of {longest:,} tokens: all of them together may have {MOST_TOKENS:,} tokens, so run at "
            f"most {MOST_TOKENS // longest:,} chains at a time."
        )


def _refuse_misfits(
    text: object,
    length: object,
    free: object,
    keep: Sequence[Position],
    end: str,
    constraints: Sequence[object],
    outcomes: str,
    allow: Allow | None,
) -> None:
    """What is said of a text, and what of a length, do not go together; nor constraints that nothing keeps to."""
    if text is not None and not isinstance(text, str):
        raise BesagError(f"{quoted(text)} is no text: give one text; chains are what there may be many of.")
    if (text is None) == (length is None):
        given = "both were given" if text is not None else "neither was given"
        raise BesagError(f"give a text with masks, or a length to sample from nothing; {given}.")
    if not isinstance(end, str):
        raise BesagError(f"end={quoted(end)}: give the text that closes a sample, such as '.'.")
    keep = position_list("keep", keep)
    if text is None and (free is not None or len(keep)):
        raise BesagError("free and keep name places of a text; from nothing, all places are free.")
    if text is not None and end:
        raise BesagError(f"end={end!r} closes a text from nothing; write it into {quoted(text)}.")
    if constraints and outcomes != "text":
        raise BesagError(f"constraints are on text, and outcomes={outcomes!r} draws special tokens too: leave one out.")
    if constraints and allow is None:
        raise BesagError(
            f"constraints={quoted([*map(str, constraints)])}: without `allow`, which says what they leave at each "
            "position, nothing would keep to them. Call `lm.sample(..., constraints=...)`, or give "
            "allow=partial(besag.constraints.allowed, constraints=constraints)"
        )


@dataclass
class _Run:
    """The chains of one sheet, which move together."""

    engine: Engine
    kernel: Kernel
    sheet: Sheet
    members: NDArray[np.int64]  # the numbers of these chains among all
    noise: Noise
    allowed: Tensor | None
    trace: Trace
    ids: NDArray[np.int64] = field(init=False)  # (C, L) where they ended

    def walk(self, steps: int | None, file: Recording | None, watch: Watch | None) -> Iterator[None]:
        """Make the steps, and say when each is made."""
        numbers = self.members.tolist()
        canvas = self.sheet.canvas(self.engine.conditionals, len(numbers), self.allowed)
        begun = file.begin(lambda: self.kernel.init(self.engine, self.noise, canvas)) if file else None
        for state, info in walk(self.engine, self.kernel, canvas, self.noise, steps, begun):
            if file or watch is not None:
                self.engine.check()  # nobody is shown what came of NaN
            texts = partial(_texts, self.sheet, state.ids)
            self.trace.add(state, info)
            if file and state is not begun:
                file.add(state, info, texts, numbers)
            if watch is not None:
                watch(state.step, numbers, texts)
            if info is not None:
                yield
        self.ids = state.ids.numpy(force=True)


def _texts(sheet: Sheet, ids: Tensor) -> list[str]:
    return [sheet.write(row) for row in ids.numpy(force=True)]


def lengths(length: int | LengthModel, chains: int, seed: int) -> NDArray[np.int64]:
    """(C,) how many places each chain has."""
    if not isinstance(length, LengthModel):
        return np.full(chains, length)
    heights = counters.uniform(seed, Sampling.START, np.arange(chains))
    return np.array([length.quantile(height) for height in heights.tolist()])


def _chain(
    engine: Engine,
    text: str | None,
    kernel: Kernel,
    seed: int,
    parts: list[_Run],
    chains: int,
) -> Chain:
    steps = np.zeros(chains, dtype=np.int64)
    told = [(part.members, part.trace.numbers()) for part in parts]
    longest = max((values.shape[1] for _, named in told for values in named.values()), default=0)
    numbers: dict[str, NDArray[np.float64]] = {}
    for members, named in told:
        for name, values in named.items():
            steps[members] = values.shape[1]
            whole = numbers.setdefault(name, np.full((chains, longest), np.nan))
            whole[members, : values.shape[1]] = values
    found: dict[int, tuple[Any, ...]] = {}
    vocabulary = engine.conditionals.vocabulary
    for part in parts:
        sheet, count = part.sheet, len(part.members)
        kept = part.trace.sequences() if part.trace.ids else np.zeros((count, 0, 1), dtype=np.int64)
        for chain, row, own in zip(part.members.tolist(), part.ids, kept, strict=True):
            tokens, *kept_tokens = (tuple(vocabulary.token(one[at]) for at in sheet.at) for one in (row, *own))
            found[chain] = sheet.write(row), tokens, row, tuple(map(sheet.write, own)), tuple(kept_tokens)
    in_order: Any = list(zip(*(found[chain] for chain in range(chains)), strict=True))
    return Chain(
        texts=in_order[0],
        tokens=in_order[1],
        ids=in_order[2],
        unknown=max(part.sheet.encoded.unknown for part in parts),
        template=text,
        numbers=numbers or {"passes": np.zeros((chains, 0))},
        steps=steps,
        kept_steps=max((tuple(part.trace.steps) for part in parts), key=len),
        kept=in_order[3],
        kept_tokens=in_order[4],
        kernel=kernel.label,
        law=kernel.effective_law,
        seed=seed,
        model=engine.conditionals.name,
        dtype=dtype_name(engine.conditionals.dtype),
        mask=vocabulary.mask_token or "",
    )
