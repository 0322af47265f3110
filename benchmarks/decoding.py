"""Parallel decoding at equal passes: how much does it matter which places are drawn together?

    PYTHONPATH=src python3 benchmarks/decoding.py --judge FOLDER [--text FILE] [--samples 500] [--out FILE]
    PYTHONPATH=src python3 benchmarks/decoding.py --judge FOLDER --variants      # what the parts of `adaptive` buy
    PYTHONPATH=src python3 benchmarks/decoding.py --signals FILE [--texts 30]    # do signals rank pairs alike?

Blank canvases of `--lengths` tokens before a full stop are decoded in `--passes` passes by

    plain           the same number of random places each pass (`grouped`, random order)
    confident       the places whose likeliest token is likeliest (`grouped`, confidence)
    entropy_bound   as many as a bound allows; the bound is set, for each length, by runs of its own, so that passes
                    are on the mean as many as for the others
    adaptive        places that depend little on one another, by distance: no pass but those that draw

each at several temperatures. Samples are judged by another model: its chain score, in nats a token of ours. Low-entropy
text would score well whatever it says, so methods are compared where their samples have the same entropy, and where
they have the same self-BLEU: the curve of each baseline over temperatures is read there. Intervals are 95 % bootstrap
intervals over samples, the whole comparison computed anew in each.

`--text` is a file of real text (plain, .gz, .xz, .bz2), for the same numbers of real sentences of these lengths.

`--signals` asks how well `change`, `attention` and `distance` rank the pairs of hidden places of real sentences, held
against the mutual information of their Arnold-Gokhale joint; and, on exact tables, against the exact one.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

import besag
from besag.arrays import Floats, Ints
from besag.conditionals.table import Table
from besag.diagnostics.grams import Grams
from besag.diagnostics.texts import lines
from besag.engine import Engine
from besag.samplers import kernel
from besag.samplers.kernel import Kernel
from besag.samplers.kernels import signals, stutter

RESULTS = Path(__file__).parent / "results"
TEMPERATURES = (0.7, 0.8, 0.9, 1.0)
MATCHED = 0.9  # the temperature of `adaptive` at whose entropy, and self-BLEU, the others are read
DRAWS = 2000  # of the bootstrap
PILOT = 20  # samples of each run that sets a bound
RATES = (0.3, 0.6)  # of tokens hidden, for signals


class Sampled:
    """Texts of one way to decode, and their numbers a text."""

    def __init__(self, texts: list[str], tokens: list[list[int]], passes: Ints) -> None:
        self.texts, self.tokens, self.passes = texts, tokens, passes
        self.words = np.array([stutter.count(text) for text in texts], np.float64)  # (N, 2)
        same = [sum(a == b for a, b in pairwise(one)) for one in tokens]
        self.pieces = np.array([(one, len(ids) - 1) for one, ids in zip(same, tokens, strict=True)], np.float64)
        self.size = np.array([len(one) for one in tokens], np.float64)
        self.of = np.repeat(np.arange(len(tokens)), self.size.astype(int))  # (T,) whose token
        self.kind = np.unique(np.concatenate(tokens), return_inverse=True)[1]  # (T,)
        self.characters = np.array([len(text) for text in texts], np.float64)
        self.bleu = Grams(tokens, 4).bleu()  # (N,)
        self.nats = np.full(len(texts), np.nan)

    def save(self, file: Path) -> None:
        told = {"texts": self.texts, "tokens": self.tokens, "passes": self.passes.tolist(), "nats": self.nats.tolist()}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(told), "utf-8")

    @classmethod
    def read(cls, file: Path) -> Sampled:
        told = json.loads(file.read_text("utf-8"))
        sampled = cls(told["texts"], told["tokens"], np.array(told["passes"]))
        sampled.nats = np.array(told["nats"])
        return sampled

    def entropy(self, which: Ints | None = None) -> float:
        """Of the frequencies of tokens, in nats; `which` texts, with repetition."""
        weight = np.ones(len(self.texts)) if which is None else np.bincount(which, minlength=len(self.texts))
        counts = np.bincount(self.kind, weight[self.of])
        share = counts[counts > 0] / counts.sum()
        return float(-(share * np.log(share)).sum())

    def loss(self, which: Ints | slice = slice(None)) -> float:
        """Nats a token of ours, the full stop among them."""
        return float(self.nats[which].sum() / (self.size[which] + 1).sum())

    def numbers(self, rng: np.random.Generator) -> dict[str, Any]:
        grams = Grams(self.tokens, 3)
        rate = {"words": self.words, "tokens": self.pieces}
        told: dict[str, Any] = {
            "samples": len(self.texts),
            "passes": float(self.passes.mean()),
            "entropy": self.entropy(),
            "distinct": grams.distinct(),
            "self_bleu": float(self.bleu.mean()),
            "self_bleu_error": float(self.bleu.std(ddof=1) / len(self.bleu) ** 0.5),
            "loss": self.loss(),
            "nats_per_character": float(self.nats.sum() / self.characters.sum()),
            "stutters": {name: [int(pair[:, 0].sum()), int(pair[:, 1].sum())] for name, pair in rate.items()},
            "stutter": {name: float(pair[:, 0].sum() / pair[:, 1].sum()) for name, pair in rate.items()},
        }
        draws = rng.integers(0, len(self.texts), (DRAWS, len(self.texts)))
        told["loss_interval"] = interval([self.loss(which) for which in draws])
        told["stutter_interval"] = {
            name: interval(pair[draws, 0].sum(1) / pair[draws, 1].sum(1)) for name, pair in rate.items()
        }
        return told


def interval(values: Any) -> list[float]:
    return [float(value) for value in np.nanpercentile(np.asarray(values), [2.5, 97.5])]


def load(folder: str | None, tells_attention: bool) -> besag.LanguageModel:
    lm = besag.load(folder, dtype="float32", progress=False)
    if tells_attention:
        lm.model.set_attn_implementation("eager")
    return lm


# ---- decoding


def decode(
    lm: besag.LanguageModel, lengths: list[int], samples: int, how: Callable[[int], Kernel], seed: int
) -> Sampled:
    """So many samples, the same number of each length, as `how` decodes a length."""
    texts, tokens, passes = [], [], []
    for length in lengths:
        chain = lm.sample(None, how(length), chains=samples // len(lengths), length=length, end=".", seed=seed)
        texts += list(chain.texts)
        tokens += [ids[1 : 1 + length].tolist() for ids in chain.ids]
        passes.append(chain.passes)
    return Sampled(texts, tokens, np.concatenate(passes))


def find_bound(lm: besag.LanguageModel, length: int, passes: int, temperature: float) -> float:
    """The bound at which `entropy_bound` makes so many passes on the mean, by halving an interval of logarithms."""
    low, high, tried = length / 4, 8.0 * length, {}
    for _ in range(5):
        bound = (low * high) ** 0.5
        decoder = kernel("entropy_bound", bound=bound, temperature=temperature)
        mean = lm.sample(None, decoder, chains=PILOT, length=length, end=".", seed=10_000).passes.mean()
        tried[bound] = abs(mean - passes)
        low, high = (bound, high) if mean > passes else (low, bound)
    return float(min(tried, key=tried.__getitem__))


def methods(lm: besag.LanguageModel, passes: int, temperature: float) -> dict[str, Callable[[int], Kernel]]:
    t = {"temperature": temperature}
    return {
        "plain": lambda n: kernel("grouped", size=n // passes, order="random", **t),
        "confident": lambda n: kernel("grouped", size=n // passes, order="confidence", **t),
        "entropy_bound": lambda n: kernel("entropy_bound", bound=find_bound(lm, n, passes, temperature), **t),
        "adaptive": lambda n: kernel("adaptive", rounds=passes, **t),
    }


def variants(passes: int) -> dict[str, Callable[[int], Kernel]]:
    t = {"temperature": MATCHED}
    return {
        "look_ahead=False": lambda n: kernel("adaptive", rounds=passes, look_ahead=False, **t),
        "entropy_weight=0": lambda n: kernel("adaptive", rounds=passes, entropy_weight=0.0, **t),
        "refine=1": lambda n: kernel("adaptive", rounds=passes, refine=1, **t),
        'signal="change"': lambda n: kernel("adaptive", rounds=passes, signal="change", **t),
        'signal="attention"': lambda n: kernel("adaptive", rounds=passes, signal="attention", **t),
        "one by one, random order": lambda n: kernel("ordered", order="random", **t),
        "one by one, surest first": lambda n: kernel("ordered", order="entropy", **t),
    }


def compare(cells: dict[str, dict[float, Sampled]], rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Each other way and `adaptive`, where their samples have one entropy, and where they have one self-BLEU.

    Baselines are read along their curve where `adaptive` is at one temperature; variants, which have one temperature,
    are held against the curve of `adaptive`. What `adaptive` has less, or more; and the ratio of the rates of words
    said twice, over the temperatures there are.
    """
    compared: dict[str, dict[str, Any]] = {}
    for name, curve in cells.items():
        if name == "adaptive":
            continue
        drawn = [against(cells["adaptive"], curve, None if draw == 0 else rng) for draw in range(DRAWS + 1)]
        compared[name] = {}
        for key in drawn[0]:
            values = [one[key] for one in drawn]
            compared[name][key] = values[0]
            compared[name][f"{key}_interval"] = interval(values[1:])
    return compared


def against(
    mine: dict[float, Sampled], other: dict[float, Sampled], rng: np.random.Generator | None
) -> dict[str, float]:
    """The comparison of two curves over temperatures: of all texts, or of as many drawn with repetition."""

    def points(curve: dict[float, Sampled]) -> tuple[Floats, float]:
        """(temperatures, 3) entropy, self-BLEU and loss; and the rate of words said twice."""
        found, words = [], np.zeros(2)
        for one in curve.values():
            count = len(one.texts)
            which = np.arange(count) if rng is None else rng.integers(0, count, count)
            found.append((one.entropy(which), float(one.bleu[which].mean()), one.loss(which)))
            words += one.words[which].sum(0)
        return np.array(found), float(words[0] / words[1])

    (my_points, my_rate), (their_points, rate) = points(mine), points(other)
    sign = 1 if len(other) > 1 else -1  # whose curve is it?
    at, along = (my_points[list(mine).index(MATCHED)], their_points) if sign > 0 else (their_points[0], my_points)
    (entropy, bleu, loss), by_entropy, by_bleu = at, along[along[:, 0].argsort()].T, along[along[:, 1].argsort()].T
    return {
        "loss_less": sign * float(np.interp(entropy, by_entropy[0], by_entropy[2]) - loss),
        "self_bleu_more": sign * float(bleu - np.interp(entropy, by_entropy[0], by_entropy[1])),
        "entropy_on_the_curve": float(by_entropy[0, 0] <= entropy <= by_entropy[0, -1]),
        "loss_less_at_self_bleu": sign * float(np.interp(bleu, by_bleu[1], by_bleu[2]) - loss),
        "self_bleu_on_the_curve": float(by_bleu[1, 0] <= bleu <= by_bleu[1, -1]),
        "stutter_ratio": my_rate / rate if rate else np.nan,
    }


def real_text(lm: besag.LanguageModel, file: str, lengths: list[int], samples: int) -> Sampled:
    """Sentences of these many tokens before a full stop."""
    stop = lm.vocabulary.id(".")
    found: dict[int, list[tuple[str, list[int]]]] = {length: [] for length in lengths}
    for line in lines(file):
        for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", line.strip()):
            if not 20 < len(sentence) < 400:
                continue
            ids = lm.tokenizer(sentence, add_special_tokens=False)["input_ids"]
            if len(ids) - 1 in found and ids[-1] == stop and len(found[len(ids) - 1]) < samples // len(lengths):
                found[len(ids) - 1].append((sentence, ids[:-1]))
    every = [one for length in lengths for one in found[length]]
    return Sampled([text for text, _ in every], [ids for _, ids in every], np.zeros(len(every), np.int64))


def judged(folder: Path | None, name: str, make: Callable[[], Sampled], judge: besag.LanguageModel) -> Sampled:
    """Texts as they are made and judged, or read from the folder if they were made before."""
    file = folder and folder / f"{name}.json"
    if file and file.exists():
        return Sampled.read(file)
    sampled = make()
    sampled.nats = np.array([-score.total for score in judge.score(sampled.texts, "chain")])
    if file:
        sampled.save(file)
    return sampled


def study(arguments: argparse.Namespace) -> dict[str, Any]:
    lm = load(arguments.model, tells_attention=arguments.variants)
    judge = besag.load(arguments.judge, dtype="float32", progress=False)
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {"model": lm.name, "judge": str(Path(arguments.judge).name), "cells": [], "compared": {}}
    print(f"{lm!r}, judged by {found['judge']}; {arguments.samples} samples of {arguments.lengths} tokens\n")
    if arguments.text:
        make = partial(real_text, lm, arguments.text, arguments.lengths, arguments.samples)
        real = judged(arguments.cells, "real", make, judge)
        found["real"] = real.numbers(rng)
        print(HEAD + row("real text", "", found["real"]), flush=True)
    for passes in arguments.passes:
        cells: dict[str, dict[float, Sampled]] = {}
        print(f"\n{passes} passes\n\n{HEAD}", end="")
        for temperature in TEMPERATURES:
            ways = methods(lm, passes, temperature)
            if arguments.variants:
                ways = {"adaptive": ways["adaptive"], **(variants(passes) if temperature == MATCHED else {})}
            for name, how in ways.items():
                make = partial(decode, lm, arguments.lengths, arguments.samples, how, arguments.seed)
                sampled = judged(arguments.cells, f"{name}-{passes}-{temperature}", make, judge)
                cells.setdefault(name, {})[temperature] = sampled
                told = {"method": name, "rounds": passes, "temperature": temperature, **sampled.numbers(rng)}
                told |= {"texts": sampled.texts[:20]}
                found["cells"].append(told)
                print(row(name, f"{temperature}", told), end="", flush=True)
        found["compared"][passes] = compare(cells, rng)
        print(f"\n`adaptive` against the others\n\n{AGAINST}", end="")
        for name, told in found["compared"][passes].items():
            columns = [
                f"{told[key]:{form}} {span(told[f'{key}_interval'], form)}"
                for key, form in [
                    ("loss_less", "+.3f"),
                    ("self_bleu_more", "+.4f"),
                    ("loss_less_at_self_bleu", "+.3f"),
                    ("stutter_ratio", ".2f"),
                ]
            ]
            print(f"| {name} | " + " | ".join(columns) + " |", flush=True)
    return found


HEAD = (
    "| method | temperature | passes | loss | entropy | distinct-2 | self-BLEU | words twice | tokens twice |\n"
    "|---|---:|---:|---|---:|---:|---:|---|---:|\n"
)
AGAINST = (
    "| against | loss less, at equal entropy | self-BLEU more, there | loss less, at equal self-BLEU "
    "| words twice, times |\n|---|---|---|---|---|\n"
)


def span(bounds: list[float], form: str) -> str:
    return f"[{bounds[0]:{form}}, {bounds[1]:{form}}]"


def row(name: str, temperature: str, told: dict[str, Any]) -> str:
    low, high = told["stutter_interval"]["words"]
    return (
        f"| {name} | {temperature} | {told['passes']:.2f} | {told['loss']:.3f} {span(told['loss_interval'], '.3f')} "
        f"| {told['entropy']:.3f} | {told['distinct'][1]:.3f} | {told['self_bleu']:.4f} "
        f"| {told['stutter']['words']:.2%} [{low:.2%}, {high:.2%}] | {told['stutter']['tokens']:.2%} |\n"
    )


# ---- signals


def ranks(values: Floats) -> Floats:
    """Mean ranks: equals share theirs."""
    order = np.argsort(values, kind="stable")
    _, which, counts = np.unique(values[order], return_inverse=True, return_counts=True)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    found = np.empty(len(values))
    found[order] = (first + (counts - 1) / 2)[which]
    return found


def spearman(one: Floats, other: Floats) -> float:
    a, b = ranks(one), ranks(other)
    return float(np.corrcoef(a, b)[0, 1]) if a.std() and b.std() else float("nan")


def on_tables(seed: int = 0) -> dict[str, list[float]]:
    """Rank correlation of the pairs of random tables with the exact mutual information, given what is shown."""
    found: dict[str, list[float]] = {}
    rng = np.random.default_rng(seed)
    for number in range(40):
        table = Table.random(3, 6, seed=number, concentration=[0.05, 0.1, 0.3, 1.0][number % 4])
        engine = Engine(table, progress=False)
        ids = torch.full((1, 6), 3)
        if number % 2:
            ids[0, number % 6] = number % 3
        hides = ids == 3
        exact = signals.information(engine, ids, hides, candidates=3)
        uniform = torch.from_numpy(rng.uniform(size=(1, 6)))
        tried = {
            "change, KL": signals.change(engine, ids, hides),
            "change, total variation": signals.change(engine, ids, hides, measure="tv"),
            "change, KL, a drawn token": signals.change(engine, ids, hides, uniform=uniform),
        }
        for name, signal in tried.items():
            found.setdefault(name, []).append(spearman(upper(exact, hides), upper(signal, hides)))
    return found


def upper(found: signals.Dependence, hides: torch.Tensor) -> Floats:
    """The strengths of the pairs of the one chain."""
    places = hides[0].nonzero()[:, 0]
    square = found.strength[0][places][:, places].double().numpy(force=True)
    return np.asarray(square[np.triu_indices(len(places), 1)])


def signal_study(arguments: argparse.Namespace) -> dict[str, Any]:
    lm = load(arguments.model, tells_attention=True)
    rng = np.random.default_rng(arguments.seed)
    real = real_text(lm, arguments.signals, arguments.lengths, 100 * arguments.texts)
    chosen = rng.choice(len(real.texts), arguments.texts, replace=False)
    found: dict[str, Any] = {"tables": on_tables(), "texts": {}}
    from besag.samplers.sheet import allowed_tokens

    allowed, mask = allowed_tokens(lm.conditionals), lm.vocabulary.mask_id
    assert mask is not None
    for rate in RATES:
        told: dict[str, list[float]] = {}
        for at in chosen.tolist():
            whole = torch.tensor(lm.tokenizer(real.texts[at])["input_ids"])[None]
            count = len(real.tokens[at])
            ids = whole.clone()
            ids[0, 1 + rng.choice(count, max(4, round(rate * count)), replace=False)] = mask
            hides = ids == mask
            wanted = upper(signals.information(lm.engine, ids, hides, candidates=10, allowed=allowed), hides)
            tried = {
                "change, KL": signals.change(lm.engine, ids, hides, allowed=allowed),
                "change, total variation": signals.change(lm.engine, ids, hides, measure="tv", allowed=allowed),
                "attention": signals.attention(lm.engine, ids, hides),
                "distance": signals.distance(hides),
            }
            for name, signal in tried.items():
                told.setdefault(name, []).append(spearman(wanted, upper(signal, hides)))
        found["texts"][rate] = told
    print("\n| signal | exact tables | " + " | ".join(f"text, {rate:.0%} hidden" for rate in RATES) + " |")
    print("|---|---:|" + "---:|" * len(RATES))
    for name in dict.fromkeys([*found["tables"], *found["texts"][RATES[0]]]):
        columns = [found["tables"].get(name), *(found["texts"][rate].get(name) for rate in RATES)]
        print(f"| {name} | " + " | ".join(mean_and_error(one) for one in columns) + " |")
    return found


def mean_and_error(values: list[float] | None) -> str:
    if values is None:
        return ""
    array = np.array(values)[~np.isnan(values)]
    return f"{array.mean():.2f} ± {array.std(ddof=1) / len(array) ** 0.5:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a folder; the embedded model if none is given")
    parser.add_argument("--judge", help="the folder of the model that judges")
    parser.add_argument("--text", help="a file of real text, for comparison")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 24])
    parser.add_argument("--passes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--variants", action="store_true", help="what the parts of adaptive buy")
    parser.add_argument("--signals", metavar="FILE", help="compare signals of dependence on sentences of this file")
    parser.add_argument("--texts", type=int, default=30, help="sentences for --signals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cells", type=Path, help="a folder for finished samples, from which a run goes on")
    parser.add_argument("--out", type=Path, help="of the result; beside the others if not given")
    arguments = parser.parse_args()
    name = "signals" if arguments.signals else "decoding-variants" if arguments.variants else "decoding"
    arguments.out = arguments.out or RESULTS / f"{name}.json"
    if not arguments.signals:
        if not arguments.judge:
            parser.error("--judge FOLDER: another model must judge the samples")
        uneven = [(n, t) for n in arguments.lengths for t in arguments.passes if n % t]
        if uneven:
            parser.error(f"passes must divide lengths, so that all methods make as many; these do not: {uneven}")
    torch.set_num_threads(arguments.threads)
    found = signal_study(arguments) if arguments.signals else study(arguments)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "besag": besag.__version__}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"versions": versions, **found}, indent=1, default=str) + "\n", "utf-8")
    print(f"\nwritten to {arguments.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
