"""The figures of docs/generation: augment and edit, the cost of constraints, intervals of log Z, mixing of blocks.

    PYTHONPATH=src python benchmarks/generation.py                                # all of it, four CPU minutes
    PYTHONPATH=src python benchmarks/generation.py --what similarity depth        # some of it

    similarity    cosines of mean states, of the embedded model and the sentences of examples/sentences.txt: unrelated
                  sentences, sentences augmented without a guard, and sentences that say the opposite
    depth         `lm.edit` on the embedded model: 16 sentences with a word replaced, 4 seeds: what stays, and what the
                  pseudo-log-likelihood gains over the sentence with nothing but the word replaced
    constraints   CPU seconds: what each token writes, constraints made ready, and a token tried at one of twenty places
    log_z         does the 95 % interval of annealed importance sampling hold log Z? On exact tables, where it is known
    blocks        relaxation times of block Gibbs on four spins in a row, from exact transition matrices

Seeds are fixed, so all but the seconds are the same on every run up to rounding. Intervals are 95 %: bootstrap over
sentences, binomial for shares. Each part that is measured replaces its part of results/generation.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import besag
from besag.arrays import Floats
from besag.conditionals.ising import Ising
from besag.conditionals.table import Table
from besag.constraints import Constraint, Forbidden, Length, Pattern, Required, Word
from besag.constraints.conflicts import begin
from besag.constraints.constraint import Contradiction, everything, narrowed
from besag.constraints.page import Page
from besag.constraints.pieces import pieces
from besag.constraints.problem import Problem
from besag.diagnostics.mixing import exact_mixing
from besag.engine import Engine, Plan
from besag.joints.candidates import outcome_ids
from besag.samplers.annealed import anneal, summary
from besag.samplers.drawing import Drawing
from besag.samplers.editing.states import WithStates, ask_mean, common, cosine
from besag.samplers.kernel import Canvas, Noise
from besag.samplers.kernels.energy import EnergyName, energies, text_places
from besag.samplers.kernels.proposals import Proposals
from besag.samplers.sheet import blank

ROOT = Path(__file__).parent.parent
DRAWS = 1000  # of the bootstrap
QUANTILES = (0.05, 0.5, 0.95)
GUARDS = (0.9, 0.97)

NEGATED = [
    ("The door was open.", "The door was not open."),
    ("The train was late again.", "The train was not late again."),
    ("The old bridge is closed today.", "The old bridge is not closed today."),
    ("She is happy with the result.", "She is not happy with the result."),
    ("The answer is simple.", "The answer is not simple."),
    ("I would read this book again.", "I would not read this book again."),
    ("The film was good and the music was good too.", "The film was not good and the music was not good either."),
    ("He always tells the truth.", "He never tells the truth."),
    ("Everybody liked the food in this hotel.", "Nobody liked the food in this hotel."),
    ("They had enough money to buy the house.", "They had no money to buy the house."),
]

EDITS = [
    ("She is a doctor and her mother is very proud of her.", "She", "He"),
    ("He was born in Paris and speaks French at home.", "Paris", "Berlin"),
    ("The old man walked slowly to the church with his dog.", "man", "woman"),
    ("The king sent his son to the war, and he never came back.", "king", "queen"),
    ("The boy lost his shoes in the river.", "boy", "girl"),
    ("The dog barked at the stranger until he went away.", "dog", "cat"),
    ("In winter the lake is covered with ice.", "winter", "summer"),
    ("The bird built its nest in the old tree.", "bird", "fish"),
    ("My father works in a bank and drives his car to the office.", "father", "mother"),
    ("The teacher wrote the answer on the board.", "teacher", "student"),
    ("The children play football in the garden after school.", "football", "music"),
    ("The soldiers crossed the river at night and attacked the city.", "soldiers", "tourists"),
    ("I drink a cup of coffee every morning.", "morning", "night"),
    ("The train to London leaves at nine.", "train", "plane"),
    ("The cook put too much salt into the soup.", "salt", "sugar"),
    ("The actor was nominated for his role in the film.", "actor", "actress"),
]
SEEDS = 4
DEPTHS = (0.01, 0.2, 0.5, 1.0)

PLACES, WALKS = 20, 20  # of a page, and how often it is filled with each constraint
DEMANDS: list[Constraint] = [
    Required("garden"),
    Forbidden("garden"),
    Word("garden", number=3),
    Pattern(r"[A-Z][a-z ]*\."),
    Length(60, 90),
    Length(10, 15, of="words"),
]

GROUPS = 400  # intervals of each kind
WIDTH, LENGTH = 3, 4  # of the tables
EFFORTS = ((40, 1), (40, 4), (40, 16), (64, 50))  # chains of an interval and levels; the last are the defaults
LAWS: list[tuple[float, EnergyName]] = [(1.0, "norm"), (0.3, "norm"), (1.0, "raw")]


def bootstrap(values: Sequence[Any], read: Callable[[list[Any]], float]) -> list[float]:
    """What is read from all values, and its interval: the values (one a sentence) drawn with repetition."""
    rng = np.random.default_rng(0)
    drawn = [read([values[at] for at in rng.integers(0, len(values), len(values))]) for _ in range(DRAWS)]
    return [read(list(values)), *(float(value) for value in np.percentile(drawn, [2.5, 97.5]))]


def mean(values: Sequence[Any] | NDArray[Any]) -> float:
    return float(np.mean(values))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(head)} |\n|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print(f"| {' | '.join(row)} |")


def spread(numbers: Sequence[float], form: str) -> str:
    """A number with its interval."""
    value, low, high = numbers
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


# ---- augment


def similarity() -> dict[str, Any]:
    lm = besag.load(progress=False)
    texts = (ROOT / "examples" / "sentences.txt").read_text("utf-8").splitlines()
    work = Engine(WithStates(lm.conditionals), progress=False)
    centre = common(work)

    def states(of: Sequence[str]) -> Floats:
        def plan(encoded: Any) -> Plan[Floats]:
            return (yield from ask_mean(encoded.ids[None], encoded.places))

        return np.stack(list(work.run([plan(one) for one in lm.vocabulary.encode(list(of))])))  # (N, H)

    def square(vectors: Floats) -> Floats:
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(unit @ unit.T)

    own = states(texts)
    rng, found = np.random.default_rng(0), dict[str, Any]()
    for name, cosines in (("unrelated, plain", square(own)), ("unrelated", square(own - centre))):
        every = cosines[np.triu_indices(len(texts), 1)]
        drawn = []
        for _ in range(DRAWS):  # over sentences: pairs that share one are not independent
            which = rng.integers(0, len(texts), len(texts))
            first, second = (which[at] for at in np.triu_indices(len(texts), 1))
            drawn.append(told(cosines[first[first != second], second[first != second]]))
        found[name] = {
            "pairs": len(every),
            **{key: [value, *interval(drawn, key)] for key, value in told(every).items()},
        }
    for name, share, copies in (("30 % of the words", 0.3, 2), ("all words", 1.0, 1)):
        rows = lm.augment(texts, copies=copies, share=share, similarity=None).rows
        near = [[row.similarity for row in rows if row.number == at] for at in range(len(texts))]
        moves, accepted = (sum(getattr(row, count) for row in rows) for count in ("moves", "accepted"))
        found[f"augmented, {name}"] = by_sentence(near) | {"moves": moves, "accepted": accepted}
    one, other = (states(side) - centre for side in zip(*NEGATED, strict=True))
    found["the opposite said"] = by_sentence([[cosine(a, b)] for a, b in zip(one, other, strict=True)])
    head = ["texts", "number", *(f"{q:.0%}" for q in QUANTILES), *(f"at least {guard}" for guard in GUARDS)]
    table(
        head,
        [
            [name, f"{numbers['pairs']:,}"]
            + [spread(numbers[f"{q}"], ".2f") for q in QUANTILES]
            + [spread(numbers[f"at least {guard}"], ".0%") for guard in GUARDS]
            for name, numbers in found.items()
        ],
    )
    return found


def told(cosines: Any) -> dict[str, float]:
    quantiles = {f"{q}": float(np.quantile(cosines, q)) for q in QUANTILES}
    return quantiles | {f"at least {guard}": mean(np.asarray(cosines) >= guard) for guard in GUARDS}


def interval(drawn: Sequence[dict[str, float]], key: str) -> list[float]:
    return [float(value) for value in np.percentile([one[key] for one in drawn], [2.5, 97.5])]


def by_sentence(near: list[list[float]]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    drawn = [told(np.concatenate([near[at] for at in rng.integers(0, len(near), len(near))])) for _ in range(DRAWS)]
    every = np.concatenate(near)
    return {"pairs": len(every), **{key: [value, *interval(drawn, key)] for key, value in told(every).items()}}


# ---- edit


def depth() -> dict[str, Any]:
    lm = besag.load(progress=False)
    swapped = [text.replace(old, new, 1) for text, old, new in EDITS]
    before = [one.total for one in lm.score(swapped, "pll")]
    found: dict[str, Any] = {"only the word replaced": {"log_likelihood": mean(before)}}
    for share in DEPTHS:
        stayed, gained, unread = [], [], 0
        for (text, old, new), level in zip(EDITS, before, strict=True):
            edits = [lm.edit(text, {old: new}, depth=share, seed=seed) for seed in range(SEEDS)]
            scores = lm.score([one.text for one in edits], "pll")
            stayed.append(mean([1 - len(one.flips) / one.free for one in edits]))
            gained.append(mean([score.total for score in scores]) - level)
            unread += sum(not one.reads_back for one in edits)
        found[f"{share:g}"] = {
            "stayed": bootstrap(stayed, mean),
            "gain": bootstrap(gained, mean),
            "log_likelihood": mean(before) + mean(gained),
            "reads_as_other_tokens": unread,
            "edits": len(EDITS) * SEEDS,
        }
    table(
        ["depth", "tokens that stayed", "pseudo-log-likelihood", "more than with the word alone replaced"],
        [
            [name, spread(one["stayed"], ".0%"), f"{one['log_likelihood']:.1f}", spread(one["gain"], "+.1f")]
            if "gain" in one
            else [name, "100%", f"{one['log_likelihood']:.1f}", "0"]
            for name, one in found.items()
        ],
    )
    return found


# ---- constraints


def seconds(act: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        start = time.process_time()
        act()
        found.append(time.process_time() - start)
    return found


def constraints() -> dict[str, Any]:
    lm = besag.load(progress=False)
    model = lm.conditionals
    outcomes = outcome_ids(model, "text")
    named = "".join(one.letters for one in DEMANDS)

    def write() -> object:
        pieces.cache_clear()
        return pieces(lm.vocabulary, model.width, tuple(outcomes.tolist()))

    def page() -> Page:
        made = Page(blank(model, PLACES), model.width, outcomes, named)
        made.strings(True), made.strings(False)  # what all constraints of a call share
        return made

    encoded = lm.vocabulary.encode([" ".join(["[MASK]"] * PLACES)])[0]
    canvas = Canvas(
        torch.from_numpy(encoded.ids)[None], torch.from_numpy(~encoded.special)[None], lm.vocabulary.mask_id or 0
    )
    found: dict[str, Any] = {
        "tokens": len(outcomes),
        "what each token writes": quartiles(seconds(write, 5)),
        "shared by the constraints of a call": quartiles(seconds(page, 5)),
        "a pass": quartiles(one_pass(lm, canvas)),
    }
    rng = np.random.default_rng(0)
    for demand in DEMANDS:
        ready, tried = [], []
        for _ in range(3):
            shared = page()
            ready += seconds(lambda: demand.on(shared).propagate(everything(shared)), 1)  # noqa: B023
        for _ in range(WALKS):
            propagator, domains = demand.on(shared), everything(shared)
            domains = propagator.propagate(domains)
            for place in rng.permutation(PLACES).tolist():
                token = rng.choice(domains[place])
                domains = narrowed(domains, place, domains[place] == token)
                start = time.process_time()
                try:
                    domains = propagator.propagate(domains)
                except Contradiction:
                    break  # bounds on counts, and letters that depend on neighbours, may show late
                finally:
                    tried.append(time.process_time() - start)
        found[str(demand)] = {"ready": quartiles(ready), "tried": quartiles(tried), "tries": len(tried)}
    demands = [one for one in DEMANDS if not isinstance(one, Forbidden)]  # it contradicts the first
    together = []
    for _ in range(3):
        problem = Problem(shared, demands, [one.on(shared) for one in demands])
        for each in problem.propagators:
            each.propagate(everything(shared))  # ready, so that what follows is the pairs, and little else
        spent = seconds(lambda: begin(problem), 1)  # noqa: B023
        together += [one / math.comb(len(demands), 2) for one in spent]
    found["two constraints held against each other"] = quartiles(together)
    for name in [name for name, one in found.items() if isinstance(one, list)]:
        print(f"\n{name}: {milliseconds(found[name])} ms", end="")
    print()
    table(
        ["constraint", "made ready, ms", "a token tried, ms"],
        [
            [name, milliseconds(one["ready"]), milliseconds(one["tried"])]
            for name, one in found.items()
            if isinstance(one, dict)
        ],
    )
    return found


def one_pass(lm: besag.LanguageModel, canvas: Canvas) -> list[float]:
    """One sequence, one place asked, all of the vocabulary kept, as a node of a search does."""
    from besag.conditionals.contract import Questions

    asked = Questions(canvas.ids, torch.tensor([0]), torch.tensor([1]))
    run = lm.conditionals
    with torch.inference_mode():
        return seconds(lambda: run.head(run.rows(asked)), 60)[10:]


def quartiles(values: Sequence[float]) -> list[float]:
    """The median, and the first and third quartile."""
    if len(values) < 4:
        return [statistics.median(values), min(values), max(values)]
    low, middle, high = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    return [middle, low, high]


def milliseconds(numbers: Sequence[float]) -> str:
    return spread([1000 * one for one in numbers], ".2f" if numbers[0] < 0.01 else ".0f")


# ---- log Z


def log_z() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, (concentration, energy) in enumerate(LAWS):
        law = Table.random(WIDTH, LENGTH, seed=number, concentration=concentration)
        engine = Engine(law, progress=False)
        every = torch.cartesian_prod(*[torch.arange(WIDTH)] * LENGTH)  # (V^n, n)
        whole = Canvas(every, torch.ones_like(every, dtype=torch.bool), WIDTH)
        truth = float(torch.logsumexp(-energies(engine, whole, every, text_places(engine, whole), energy), 0))
        for chains, levels in EFFORTS:
            ids = torch.full((GROUPS * chains, LENGTH), WIDTH)
            canvas = Canvas(ids, torch.ones_like(ids, dtype=torch.bool), WIDTH)
            noise, proposals = Noise(0, torch.arange(len(ids))), Proposals("single", None, Drawing())
            weights, _ = anneal(engine, noise, canvas, proposals, energy, 1.0, levels, 1)
            groups = [summary(group) for group in weights.view(GROUPS, chains)]
            error = np.array([estimate - truth for estimate, _, _ in groups])
            reach = statistics.NormalDist().inv_cdf(0.975) * np.array([se for _, se, _ in groups])
            found[f"concentration {concentration:g}, {energy}, {chains} chains, levels={levels}"] = {
                "log_z": truth,
                "chains": chains,
                "intervals": GROUPS,
                "ess": mean([ess for _, _, ess in groups]),
                "held": share(np.abs(error) < reach),
                "above": share(error <= -reach),
                "below": share(error >= reach),
                "bias": mean(error),
                "half_se_squared": mean([se**2 / 2 for _, se, _ in groups]),
            }
    table(
        ["law", "effective chains", "intervals that held log Z", "log Z above", "log Z below", "bias", "−se²/2"],
        [
            [
                name,
                f"{one['ess']:.1f}",
                spread(one["held"], ".1%"),
                f"{one['above'][0]:.1%}",
                f"{one['below'][0]:.1%}",
                f"{one['bias']:+.3f}",
                f"{-one['half_se_squared']:+.3f}",
            ]
            for name, one in found.items()
        ],
    )
    return found


def share(happened: NDArray[np.bool_]) -> list[float]:
    """A share of trials with its interval, by Wilson's formula."""
    p, n, z = float(happened.mean()), len(happened), 1.959964
    middle, reach = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [p, (middle - reach) / (1 + z * z / n), (middle + reach) / (1 + z * z / n)]


# ---- blocks


def blocks() -> dict[str, Any]:
    places, found = 4, dict[str, Any]()
    for coupling in (1.0, 0.3):
        law = Ising.chain(places, coupling).table().log_probs.exp().numpy().ravel()  # (2^n,)
        spins = np.array(np.unravel_index(np.arange(len(law)), (2,) * places)).T  # (2^n, n)
        for where in ("random", "adjacent"):
            times = []
            for size in range(1, places + 1):
                chosen = list(combinations(range(places), size))
                if where == "adjacent":
                    chosen = [block for block in chosen if block[-1] - block[0] == size - 1]
                steps = []
                for block in chosen:
                    rest = np.delete(spins, block, axis=1)
                    weight = (rest[:, None] == rest[None]).all(2) * law  # (2^n, 2^n) what a step may lead to
                    steps.append(weight / weight.sum(1, keepdims=True))
                times.append(exact_mixing(np.mean(steps, 0)).relaxation)
            found[f"coupling {coupling:g}, {where}"] = times
    table(["", *map(str, range(1, places + 1))], [[name, *(f"{t:.1f}" for t in ts)] for name, ts in found.items()])
    return found


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "similarity": similarity, "depth": depth, "constraints": constraints, "log_z": log_z, "blocks": blocks,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "generation.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "besag": besag.__version__}
    results = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    for name in arguments.what:
        start = time.perf_counter()
        print(f"\n## {name}")
        results[name] = {"versions": versions, "threads": arguments.threads, **PARTS[name]()}
        print(f"\n{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
