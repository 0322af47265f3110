"""A small transformer trained by a recipe on draws from a system, and how far its answers are from the truth.

The network sees text like any other: one word a symbol, one sequence a document. What it learnt is asked of it exactly,
over all contexts, so that no distance here is an estimate; only the training is random.

    answers     q(x_i | x_−K), over the system's symbols alone and renormalised over them
    by_size     for k hidden places: E_x E_K mean_{i ∈ K} KL(p(x_i | x_−K) ‖ q(x_i | x_−K)), nats a token
    settled     what Gibbs sampling with q(x_i | x_−i) makes of the truth after many sweeps
    order gap   TV between what left-to-right and right-to-left sweeps settle to: 0 for conditionals of one joint
    relaxation  sweeps until what the chain began with fades by e, in the end: 1/(1 − |λ₂|); of small systems alone
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from besag.arrays import Floats, Ints
from besag.checks import whole_number
from besag.conditionals.contract import Questions
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.experiment import Experiment
from besag.lab.systems.system import System, all_states
from besag.load_model import load
from besag.reductions import Outcomes
from besag.train_model import train
from besag.training.data.children import begun_deaf, turn_deaf
from besag.training.data.tokens import cores

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MASK, CLS, SEP = SPECIAL.index("[MASK]"), SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")
FIRST = len(SPECIAL)  # the id of the first symbol
SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.15,  # so narrow a network hardly begins to learn from the usual 0.02
}  # fmt: skip
SWEEPS = 200
WHOLE = 2**10  # states of a system whose sweep is written down as a matrix
PROCESSES = 8  # that train at once, at most: each holds a few hundred megabytes


@dataclass(frozen=True, eq=False)
class Learnt:
    """A trained network, asked about the system it was trained on. Made by `train_on`."""

    system: System
    engine: Engine

    def answers(self, contexts: Ints, places: Ints) -> Floats:
        """(M, V) q of every symbol at one hidden place of each context (M, N); −1 stands at hidden places."""
        shown = torch.from_numpy(np.where(contexts < 0, MASK, contexts + FIRST))
        ends = [torch.full((len(shown), 1), end) for end in (CLS, SEP)]
        ids = torch.cat([ends[0], shown, ends[1]], 1)
        symbols = torch.arange(FIRST, FIRST + max(self.system.shape))
        asks = Questions(ids, torch.arange(len(ids)), torch.from_numpy(places + 1))
        answered = self.engine.answer(asks, Outcomes(symbols))
        share = np.exp(np.asarray(answered["outcomes"], dtype=np.float64))
        return np.asarray(share / share.sum(1, keepdims=True))  # again: what float32 sums to one drifts over sweeps

    @cached_property
    def by_size(self) -> Floats:
        """(N,) the distance of its answers from the truth, by how many places are hidden; nats a token."""
        count = self.system.places
        sets = [hidden for size in range(1, count + 1) for hidden in combinations(range(count), size)]
        asks = [ask for hidden in sets for ask in self._asks(hidden)]
        contexts, places, joints = (np.concatenate(parts) for parts in zip(*asks, strict=True))
        truth = joints / joints.sum(1, keepdims=True)  # (M, V)
        answer = self.answers(contexts, places)
        apart = np.where(truth > 0, truth * np.log(np.where(truth > 0, truth, 1) / answer), 0.0).sum(1)
        size = (contexts < 0).sum(1)  # (M,) k; each of k places counts 1/k, each of C(N, k) sets alike
        share = 1 / (size * np.array([comb(count, int(one)) for one in size]))
        return np.asarray(np.bincount(size - 1, joints.sum(1) * apart * share, minlength=count), np.float64)

    def _asks(self, hidden: tuple[int, ...]) -> Iterator[tuple[Ints, Ints, Floats]]:
        """For each hidden place: all contexts that occur (C, N), the place (C,), and p(x_i, x_−K) there (C, V)."""
        law, count = self.system.law, self.system.places
        shown = [place for place in range(count) if place not in hidden]
        weight = self.system.marginal(shown)  # (V, …) one axis a shown place
        values = np.argwhere(weight > 0) if shown else np.zeros((1, 0), dtype=np.int64)
        contexts = np.full((len(values), count), -1)
        contexts[:, shown] = values
        for place in hidden:
            rest = tuple(other for other in hidden if other != place)
            joint = np.moveaxis(law.sum(rest, keepdims=True), place, -1).reshape(-1, law.shape[place])
            yield contexts, np.full(len(contexts), place), joint[np.ravel(weight) > 0]

    @cached_property
    def single_sites(self) -> list[Floats]:
        """q(x_i | x_−i) at every x, in the shape of the law, place by place."""
        shape, found = self.system.shape, []
        for place, width in enumerate(shape):
            others = (*shape[:place], *shape[place + 1 :])
            contexts = np.insert(all_states(others), place, -1, axis=1)
            answer = self.answers(contexts, np.full(len(contexts), place))[:, :width]
            found.append(np.moveaxis(answer.reshape(*others, width), -1, place))
        return found

    def settled(self, order: Iterable[int] | None = None, sweeps: int = SWEEPS) -> Floats:
        """The law that many sweeps of Gibbs sampling, in this order of places, make of the truth."""
        law, places = self.system.law, list(range(self.system.places) if order is None else order)
        for _ in range(sweeps):
            for place in places:
                law = law.sum(place, keepdims=True) * self.single_sites[place]
        return np.asarray(law)

    @cached_property
    def measures(self) -> dict[str, float]:
        """The distances that an experiment tells."""
        forth, back = self.settled(), self.settled(reversed(range(self.system.places)))
        small = self.system.size <= WHOLE
        return {
            "one hidden": float(self.by_size[0]),
            "any number hidden": float(self.by_size.mean()),
            "Gibbs law": total_variation(forth, self.system.law),
            "order gap": total_variation(forth, back),
            **({"relaxation": sweep_relaxation(self.single_sites)} if small else {}),
        }


def sweep_relaxation(single_sites: Sequence[Floats]) -> float:
    """1/(1 − |λ₂|) of the sweep that draws each place in turn from q(x_i | x_−i), given at every x."""
    size = single_sites[0].size
    laws = np.eye(size).reshape(size, *single_sites[0].shape)  # a row for each start
    for place, answer in enumerate(single_sites):
        laws = laws.sum(place + 1, keepdims=True) * answer
    second = float(np.sort(np.abs(np.linalg.eigvals(laws.reshape(size, size))))[-2])
    return 1 / (1 - second) if second < 1 else float("inf")


def total_variation(one: ArrayLike, other: ArrayLike) -> float:
    return float(0.5 * np.abs(np.asarray(one) - np.asarray(other)).sum())


def train_on(
    system: System,
    masking: Mapping[str, Any],
    sequences: int = 2000,
    steps: int = 300,
    seed: int = 0,
    threads: int = 1,
    **sizes: int,
) -> Learnt:
    """Draw sequences, write a recipe, train, and ask; everything is a function of the arguments."""
    if len(set(system.shape)) > 1:
        raise BesagError(f"{system.name} has places of {system.shape} symbols: a network needs the same at all places")
    whole_number(sequences, "sequences", most=10**7)
    words = [f"w{symbol}" for symbol in range(system.shape[0])]
    with tempfile.TemporaryDirectory(prefix="besag-lab-") as name:
        folder = Path(name)
        _tokenizer(words).save_pretrained(folder / "tokenizer")
        _write(folder / "train.txt", system.draw(sequences, seed=seed), words)
        _write(folder / "valid.txt", system.draw(16, seed=seed + 1), words)
        recipe = {
            "data": {"train": [str(folder / "train.txt")], "valid": [str(folder / "valid.txt")], "unit": "documents",
                     "max_length": system.places + 2, "batch_tokens": 64 * (system.places + 2)},
            "tokenizer": {"path": str(folder / "tokenizer")},
            "model": {"family": "bert",
                      "config": {**SIZES, "max_position_embeddings": system.places + 2, **sizes}},
            "masking": dict(masking),
            "optimizer": {"lr": 5e-3},
            "schedule": {"steps": steps},
            "run": {"output": str(folder / "run"), "seed": seed, "device": "cpu", "precision": "float32",
                    "threads": threads, "plot": False, "log_every": max(1, steps // 2), "checkpoint_every": 10**6},
            "evaluation": {"sentences": 0},
        }  # fmt: skip
        result = train(recipe, quiet=True)
        if not result.finished:  # a run takes Ctrl-C as a wish to go on later
            raise KeyboardInterrupt
        learnt = Learnt(system, load(result.model, device="cpu").engine)
        _ = learnt.measures  # asked while the folder is there
    return learnt


Kind = tuple[System, Mapping[str, Any], int]  # trained on what, with which masking, on how many sequences
Cells = dict[tuple[str, str], Floats]  # the names of a kind → (seeds, measures)


@dataclass(frozen=True)
class TrainedExperiment(Experiment):
    """Networks of several kinds at equal compute, several of each, so that kinds are compared seed by seed."""

    steps: Annotated[int, "of training; three times as many with --full"] = 150
    seeds: Annotated[int, "networks of each kind; twice as many with --full"] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.steps, "steps", least=2, most=10**5)
        whole_number(self.seeds, "seeds", least=2, most=100)

    def size(self, full: bool) -> tuple[int, int]:
        """How many steps, and how many networks of each kind."""
        return (3 * self.steps, 2 * self.seeds) if full else (self.steps, self.seeds)

    def networks(self, kinds: Mapping[tuple[str, str], Kind], names: Sequence[str], full: bool) -> Cells:
        """What these measures are of every kind and seed."""
        steps, seeds = self.size(full)
        runs = [(*kind, steps, 100 * self.seed + one) for kind in kinds.values() for one in range(seeds)]
        rows = [[found[name] for name in names] for found in measured(runs)]
        return dict(zip(kinds, np.array(rows).reshape(len(kinds), seeds, -1), strict=True))


def measured(runs: Sequence[tuple[Any, ...]]) -> list[dict[str, float]]:
    """The measures of `train_on(*run)`, run by run; as many are trained at once as there are cores.

    A network has one thread and its own noise, so that the numbers are those of one after the other.
    """
    processes = min(cores(), len(runs), PROCESSES)
    if processes < 2 or sys.platform != "linux":  # where no process begins as a copy of this one
        return [_measures(run) for run in runs]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), initializer=_alone) as pool:
        try:
            with begun_deaf():  # a pool begins its processes when it is given work
                waiting = [pool.submit(_measures, run) for run in runs]
            return [one.result() for one in waiting]
        except BrokenProcessPool:
            raise BesagError("a process that trained died (killed, or out of memory)") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _measures(run: tuple[Any, ...]) -> dict[str, float]:
    return train_on(*run).measures


def _alone() -> None:
    """A process that trains is one thread: those of the process it was copied from are not there."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    turn_deaf()


def _tokenizer(words: Sequence[str]) -> Any:
    """A word a token, between [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: number for number, word in enumerate((*SPECIAL, *words))}
    backend = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    made: Any = PreTrainedTokenizerFast  # which has no types
    return made(tokenizer_object=backend, **names)


def _write(path: Path, drawn: Ints, words: Sequence[str]) -> None:
    """One sequence a document: a line, and an empty one."""
    path.write_text("\n\n".join(" ".join(words[symbol] for symbol in row) for row in drawn), encoding="utf-8")
