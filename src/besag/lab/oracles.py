"""Samplers against exact laws: all sequences of V symbols at n places, chains run on them, counts held against laws.

Whoever writes a kernel can check it: enumerate what a step should do on a small law, by plain loops or by `lab.chains`,
and let `check_kernel` run the kernel from every start. A sequence is numbered in base V, the first place most
significant, as the flat index of a table of shape (V, …, V).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from besag.arrays import Floats, Ints
from besag.checks import array, checked, whole_number
from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.table import Table
from besag.engine import Engine
from besag.errors import BesagError, require
from besag.lab.chains.transition import Transition, numbered, stationary
from besag.lab.systems.system import law_of
from besag.samplers.kernel import Canvas, Info, Kernel, Noise
from besag.vocabulary import Vocabulary

FALSE_ALARM = 1e-4  # the probability that a right sampler fails a chi-square test; by a fixed seed it never flickers
FEWEST = 5  # that a cell must expect
LONGEST = 10_000  # steps after which a decoder is said never to end


class Incompatible:
    """Conditionals of no joint law at all, for V symbols at n places, any of them hidden.

    Every (context, place) has logits of its own, drawn once.
    """

    name = "incompatible"
    sees: Literal["both", "left"] = "both"
    device = torch.device("cpu")
    dtype = torch.float64
    max_length = None
    pads = False

    def __init__(self, width: int, places: int, seed: int = 0, scale: float = 1.5) -> None:
        self.width, self.places = width, places
        self.vocabulary = Vocabulary.of_symbols([f"s{index}" for index in range(width)])
        size = (places, (width + 1) ** places, width)
        self.logits = torch.from_numpy(np.random.default_rng(seed).normal(scale=scale, size=size))

    def rows(self, questions: Questions) -> Tensor:
        powers = (self.width + 1) ** torch.arange(self.places).flip(0)
        return self.logits[questions.place, (questions.ids * powers).sum(1)[questions.row]]

    def head(self, rows: Tensor) -> Tensor:
        return rows


# ---- sequences and their numbers


def sequences(width: int, places: int) -> Ints:
    """(V^n, n) in the order of their numbers."""
    return np.array(list(product(range(width), repeat=places)))


def number(ids: Tensor | Ints, width: int) -> Ints:
    """(C,) the number of each sequence (C, n)."""
    ids = ids.numpy(force=True) if isinstance(ids, Tensor) else ids
    return np.asarray(ids @ width ** np.arange(ids.shape[1])[::-1])


def start_from(law: Floats, chains: int, seed: int = 0, places: int | None = None) -> Ints:
    """(C, n) sequences drawn from a table (V, …, V), or from a law (V^n,) of so many places."""
    flat = law.ravel() / law.sum()
    places = places or law.ndim
    width = round(len(flat) ** (1 / places))
    return np.asarray(sequences(width, places)[np.random.default_rng(seed).choice(len(flat), size=chains, p=flat)])


# ---- kernels run


def blank(law: Any, places: int, chains: int, start: ArrayLike | None = None, **more: Any) -> Canvas:
    """All places free, all hidden, or as `start` (n,) or (C, n) says."""
    mask = law.width
    ids = torch.full((chains, places), mask)
    if start is not None:
        ids = torch.as_tensor(np.array(start)).expand(chains, places).clone()
    return Canvas(ids, torch.ones(chains, places, dtype=torch.bool), mask, **more)


def run(
    kernel: Kernel, law: Conditionals, canvas: Canvas, steps: int | None = None, seed: int = 0, first: int = 0,
    engine: Engine | None = None,
) -> tuple[Any, list[Info]]:  # fmt: skip
    """The last state and what every step told: so many steps, or to the end of a decoder."""
    engine = engine or Engine(law, progress=False)
    noise = Noise(seed, torch.arange(first, first + len(canvas.ids)))
    kernel.check(canvas)
    told: list[Info] = []
    state = kernel.init(engine, noise, canvas)
    while not kernel.done(state) and (steps is None or len(told) < steps):
        state, info = kernel.step(engine, noise, state)
        told.append(info)
        if len(told) >= LONGEST:
            raise BesagError(f"{kernel.name} has not ended after {LONGEST:,} steps")
    engine.check()
    return state, told


def empirical(kernel: Kernel, law: Any, canvas: Canvas, steps: int | None = None, seed: int = 0) -> Ints:
    """(V^n,) how many chains ended at each sequence."""
    state, _ = run(kernel, law, canvas, steps, seed)
    if int(state.ids.max()) >= law.width:
        raise BesagError(f"{kernel.name} left a mask")
    return np.bincount(number(state.ids, law.width), minlength=law.width ** state.ids.shape[1])


# ---- counts and laws


def p_value(counts: Ints, law: Floats) -> float:
    """Of the chi-square test of counts against a law; cells that expect fewer than five are put together."""
    law = law.ravel() / law.sum()
    expected = counts.sum() * law
    if counts[law == 0].any():
        return 0.0
    large = expected >= FEWEST
    pairs = list(zip(counts[large], expected[large], strict=True))
    if expected[~large].sum() > 0:
        pairs.append((counts[~large].sum(), expected[~large].sum()))
    statistic = sum((seen - e) ** 2 / e for seen, e in pairs)
    chi2 = require("scipy.stats", extra="eval").chi2
    return float(chi2.sf(statistic, len(pairs) - 1)) if len(pairs) > 1 else 1.0


def follows(counts: Ints, law: Floats, false_alarm: float = FALSE_ALARM) -> bool:
    """Could the counts come from this law?"""
    return p_value(counts, law) > false_alarm


def total_variation(one: Floats | Ints, other: Floats | Ints) -> float:
    return float(0.5 * np.abs(one.ravel() / one.sum() - other.ravel() / other.sum()).sum())


# ---- what a kernel should do


def conditional(law: Any, sequence: Ints, hide: list[int], place: int) -> Floats:
    """(V,) p(x_place | what is shown when `hide` are hidden), asked of the law itself."""
    ids = torch.as_tensor(sequence.copy())[None]
    ids[0, hide] = law.width
    rows = law.rows(Questions(ids, torch.tensor([0]), torch.tensor([place])))
    return np.asarray(torch.softmax(law.head(rows), -1)[0].numpy())


def gibbs_matrix(law: Any, places: int, place: int) -> Floats:
    """(V^n, V^n) the transition that draws one place anew, for any conditionals, of a joint law or of none."""
    width = law.width
    every = sequences(width, places)
    matrix = np.zeros((len(every), len(every)))
    for at, sequence in enumerate(every):
        row = conditional(law, sequence, [place], place)
        for token in range(width):
            moved = sequence.copy()
            moved[place] = token
            matrix[at, number(moved[None], width)[0]] += row[token]
    return matrix


class Verdict(NamedTuple):
    """Did a kernel do what it should?"""

    holds: bool
    p_values: Floats  # of each start's chi-square test
    starts: Ints  # their numbers
    worst: int  # the start of the least p-value
    distance: float  # the largest total variation of what was seen from what should be


@checked
def check_kernel(
    kernel: Kernel, law: object, transition: object, steps: int = 1, chains: int = 2000,
    starts: Sequence[int] | None = None, seed: int = 0,
) -> Verdict:  # fmt: skip
    """Run a kernel from every sequence, and hold where it comes to against a transition matrix, by chi-square.

    Args:
        kernel: what is checked: `besag.samplers.kernel("gibbs")`.
        law: a system, an array (V, …, V) without zeros, or whoever answers (`Conditionals` with `width` and `places`).
        transition: what it should do, of `lab.chains` or a matrix (V^n, V^n).
        steps: of the kernel that one step of the transition stands for: n for a sweep.
        chains: from each start.
        starts: numbers of the sequences to begin from; all if left out.
        seed: of the kernel's draws.

    Returns:
        The verdict; a right kernel fails once in ten thousand seeds, over all starts together.

    Examples:
        >>> from besag.lab.chains import gibbs
        >>> from besag.lab.oracles import check_kernel
        >>> from besag.samplers import kernel
        >>> law = [[0.4, 0.1], [0.1, 0.4]]
        >>> check_kernel(kernel("gibbs"), law, gibbs(law)).holds
        True
        >>> check_kernel(kernel("gibbs", temperature=2.0), law, gibbs(law)).holds
        False
    """
    whole_number(steps, "steps", most=LONGEST)
    whole_number(chains, "chains", most=10**6)
    answers: Any = law if hasattr(law, "rows") and hasattr(law, "width") else Table(law_of(law, positive=True).copy())
    matrix = transition.matrix if isinstance(transition, Transition) else array(transition, "transition")
    every = sequences(answers.width, answers.places)
    if matrix.shape != (len(every), len(every)):
        raise BesagError(f"a transition of the shape {matrix.shape} is not one of {len(every):,} sequences")
    chosen = np.arange(len(every)) if starts is None else numbered(starts, len(every), "starts")
    canvas = blank(answers, answers.places, chains * len(chosen), np.repeat(every[chosen], chains, 0))
    state, _ = run(kernel, answers, canvas, steps, seed)
    ended = number(state.ids, answers.width).reshape(len(chosen), chains)
    counts = [np.bincount(row, minlength=len(every)) for row in ended]
    found = np.array([p_value(seen, matrix[start]) for seen, start in zip(counts, chosen, strict=True)])
    far = max(total_variation(seen, matrix[start]) for seen, start in zip(counts, chosen, strict=True))
    return Verdict(bool(found.min() > FALSE_ALARM / len(found)), found, chosen, int(chosen[found.argmin()]), far)


__all__ = [
    "FALSE_ALARM", "Incompatible", "Verdict", "blank", "check_kernel", "conditional", "empirical", "follows",
    "gibbs_matrix", "number", "p_value", "run", "sequences", "start_from", "stationary", "total_variation",
]  # fmt: skip
