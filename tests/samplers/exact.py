"""Samplers against exact laws: all sequences of V symbols at n places, chains run on them, counts held against laws.

Import it as `tests.samplers.exact`. A sequence is numbered in base V, the first place most significant, as the flat
index of a table of shape (V, …, V).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

import numpy as np
import torch
from scipy.stats import chi2
from tests.laws import Arbitrary
from torch import Tensor

from besag.conditionals.contract import Conditionals, Given, Questions
from besag.conditionals.given_table import GivenTable
from besag.engine import Engine
from besag.samplers.kernel import Canvas, Info, Kernel, Noise
from besag.vocabulary import Vocabulary

FALSE_ALARM = (
    1e-4  # the probability that one right sampler fails one chi-square test; seeds are fixed, so it never flickers
)


class Incompatible:
    """Every (context, place) has logits of its own, as `tests.laws.Arbitrary`, but in a table, so that it is fast.

    Conditionals of no joint law at all, for V symbols at n places, any of them hidden.
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


class GivenLaws(GivenTable):
    """Any laws, each given a source of its own: the first one of one token, the second one of two …"""

    name = "given laws"

    def __init__(self, laws: Sequence[Conditionals]) -> None:
        self.vocabulary, self.width = laws[0].vocabulary, laws[0].width
        self.laws = {(0,) * (1 + number): law for number, law in enumerate(laws)}

    def given(self, which: Sequence[int]) -> Given:
        return Given(tuple(np.array(source) for source in self.laws), np.array(which))


class Hashed(Arbitrary):
    """Answers for text of any length, each distinct question once."""

    def __init__(self, width=2):
        super().__init__(width)
        self.known = {}

    def logits(self, context, place):
        key = (place, *context)
        if key not in self.known:
            self.known[key] = super().logits(context, place)
        return self.known[key]


def sequences(width: int, places: int) -> np.ndarray:
    """(V^n, n) in the order of their numbers."""
    return np.array(list(product(range(width), repeat=places)))


def number(ids: Tensor | np.ndarray, width: int) -> np.ndarray:
    """(C,) the number of each sequence (C, n)."""
    ids = ids.numpy(force=True) if isinstance(ids, Tensor) else ids
    return np.asarray(ids @ width ** np.arange(ids.shape[1])[::-1])


def blank(law: Conditionals, places: int, chains: int, start: np.ndarray | None = None, **more: object) -> Canvas:
    """All places free, all hidden, or as `start` (n,) or (C, n) says."""
    mask = law.width
    ids = torch.full((chains, places), mask)
    if start is not None:
        ids = torch.as_tensor(np.array(start)).expand(chains, places).clone()
    return Canvas(ids, torch.ones(chains, places, dtype=torch.bool), mask, **more)  # type: ignore[arg-type]


def run(
    kernel: Kernel,
    law: Conditionals,
    canvas: Canvas,
    steps: int | None = None,
    seed: int = 0,
    first: int = 0,
    engine: Engine | None = None,
) -> tuple[object, list[Info]]:
    """The last state and what every step told: so many steps, or to the end of a decoder."""
    engine = engine or Engine(law, progress=False)
    noise = Noise(seed, torch.arange(first, first + len(canvas.ids)))
    kernel.check(canvas)
    state, told = kernel.init(engine, noise, canvas), []
    while not kernel.done(state) and (steps is None or len(told) < steps):
        state, info = kernel.step(engine, noise, state)
        told.append(info)
        assert len(told) < 10_000, "it never ends"
    engine.check()
    return state, told


def empirical(kernel: Kernel, law: Conditionals, canvas: Canvas, steps: int | None = None, seed: int = 0) -> np.ndarray:
    """(V^n,) how many chains ended at each sequence."""
    state, _ = run(kernel, law, canvas, steps, seed)
    ids = state.ids  # type: ignore[attr-defined]
    assert int(ids.max()) < law.width, "a mask was left"
    return np.bincount(number(ids, law.width), minlength=law.width ** ids.shape[1])


def follows(counts: np.ndarray, law: np.ndarray, false_alarm: float = FALSE_ALARM) -> bool:
    """Chi-square: could the counts come from this law? Cells that expect fewer than five are put together."""
    law = law.ravel() / law.sum()
    expected = counts.sum() * law
    if counts[law == 0].any():
        return False
    large = expected >= 5
    pairs = list(zip(counts[large], expected[large], strict=True))
    if expected[~large].sum() > 0:
        pairs.append((counts[~large].sum(), expected[~large].sum()))
    statistic = sum((seen - e) ** 2 / e for seen, e in pairs)
    return bool(statistic < chi2.ppf(1 - false_alarm, len(pairs) - 1)) if len(pairs) > 1 else True


def total_variation(one: np.ndarray, other: np.ndarray) -> float:
    return float(0.5 * np.abs(one.ravel() / one.sum() - other.ravel() / other.sum()).sum())


def stationary(transition: np.ndarray) -> np.ndarray:
    """The left eigenvector of eigenvalue 1 of a row-stochastic matrix."""
    size = len(transition)
    system = np.vstack([transition.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]


def conditional(law: Conditionals, sequence: np.ndarray, hide: list[int], place: int) -> np.ndarray:
    """(V,) p(x_place | what is shown when `hide` are hidden), asked of the law itself."""
    ids = torch.as_tensor(sequence.copy())[None]
    ids[0, hide] = law.width
    rows = law.rows(Questions(ids, torch.tensor([0]), torch.tensor([place])))
    return torch.softmax(law.head(rows), -1)[0].numpy()


def gibbs_matrix(law: Conditionals, places: int, place: int) -> np.ndarray:
    """(V^n, V^n) the transition that draws one place anew."""
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


def start_from(law: np.ndarray, chains: int, seed: int = 0, places: int | None = None) -> np.ndarray:
    """(C, n) sequences drawn from a table (V, …, V), or from a law (V^n,) of so many places."""
    flat = law.ravel() / law.sum()
    places = places or law.ndim
    width = round(len(flat) ** (1 / places))
    return sequences(width, places)[np.random.default_rng(seed).choice(len(flat), size=chains, p=flat)]


def text_canvas(network, text: str, chains: int) -> Canvas:
    """Its masks are free; special tokens stand nowhere."""
    words = network.vocabulary
    ids = torch.as_tensor(words.encode([text])[0].ids).expand(chains, -1).clone()
    allowed = torch.ones(network.width, dtype=torch.bool)
    allowed[words.tokenizer.all_special_ids] = False
    return Canvas(ids, ids == words.mask_id, words.mask_id, allowed)
