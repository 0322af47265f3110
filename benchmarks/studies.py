"""The studies of docs/training/studies.md: many short runs of one recipe, one thing changed at a time, side by side.

    python benchmarks/studies.py masking rates compatible --corpus part-00.txt.xz --valid valid.txt.xz \
        --pairs blimp/*.jsonl --output studies --jobs 5
    python benchmarks/studies.py network schedules --corpus …
    python benchmarks/studies.py --report studies         # the tables of what is there
    python benchmarks/studies.py --report studies --judge another/model     # with its opinion of the samples

Every run is `besag train recipes/study.toml` with a few keys set, in a process of its own, and is then measured: bits a
character by pseudo-log-likelihood, minimal pairs, compatibility and dependence, the perplexity of pairs of tokens under
the model's joints, and for the study of compatible training also samples. One JSON file a run; a run that is there
already is not made again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECIPE = Path(__file__).parent.parent / "recipes" / "study.toml"
LAWS: dict[str, list[str]] = {
    "uniform": [],
    "whole_word": [],
    "span": [],
    "ngram": [],
    "frequency": [],
    "importance": [],
    "adaptive": [],
    "loss_weighted": [],
}
RATES = (0.15, 0.30, 0.50)
DEARER = 1.8  # what a step of `compatible` costs beside a plain one, at most


def runs(study: str, chosen: argparse.Namespace) -> dict[str, list[str]]:
    """Name → keys of the recipe, as --set takes them."""
    if study == "masking":
        return {law: [f"masking.law={law}", *more] for law, more in LAWS.items()}
    if study == "rates":
        shares = {"half": ["masking.predict=0.5"], "all": [], "twice": ["masking.copies=2"]}
        return {
            f"hide {rate:.0%}, predict {share}": [f"masking.rate={rate}", *more]
            for rate in RATES
            for share, more in shares.items()
        }
    if study == "compatible":
        kinds = {
            "mlm": [],
            "mlm, as much compute": [f"schedule.steps={round(chosen.steps * DEARER)}"],
            "compatible, weight 0.1": ["objective.name=compatible", "objective.options.weight=0.1"],
            "compatible, weight 1": ["objective.name=compatible", "objective.options.weight=1.0"],
        }
        return {f"{name}, seed {seed}": [*more, f"run.seed={seed}"] for name, more in kinds.items() for seed in (0, 1)}
    if study == "network":
        return networks()
    if study == "schedules":
        return schedules(chosen)
    raise SystemExit(f"no study is called {study!r}: masking, rates, compatible, network, schedules")


def networks() -> dict[str, list[str]]:
    """Depth, places, factorised embeddings and vocabularies, each beside what it is to be compared with."""
    size = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}

    def of(family: str, **config: Any) -> list[str]:
        settings = ", ".join(f"{key} = {json.dumps(value)}" for key, value in {**size, **config}.items())
        return [f"model.family={family}", f"model.config={{{settings}}}"]

    def shape(layers: int, width: int) -> list[str]:
        sizes = (("num_hidden_layers", layers), ("hidden_size", width), ("intermediate_size", 2 * width))
        return [f"model.config.{key}={value}" for key, value in sizes]

    relative = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
    return {
        "ModernBERT, 6 × 256, seed 0": [],
        "ModernBERT, 6 × 256, seed 1": ["run.seed=1"],
        "besag's family": of("besag"),
        "12 × 176": shape(12, 176),
        "3 × 368": shape(3, 368),
        "DeBERTa, places absolute": of("deberta-v2"),
        "DeBERTa, places relative": of("deberta-v2", **relative),
        "ELECTRA, table of 256": of("electra", embedding_size=256),
        "ELECTRA, table of 64": of("electra", embedding_size=64),
        **{f"{pieces:,} pieces": trained_vocabulary(pieces) for pieces in (8192, 16384, 24576)},
    }


def trained_vocabulary(pieces: int) -> list[str]:
    """Trained by the run itself, on its text."""
    return ["tokenizer.path=", f"tokenizer.size={pieces}", f"model.config.vocab_size={pieces}", "data.cache="]


def schedules(chosen: argparse.Namespace) -> dict[str, list[str]]:
    """What changes over a run: rates, lengths, batches, causal steps; and averages of weights at its end."""
    from besag.training import recipe as recipes

    causal, batch = "objective.options.causal", recipes.read(RECIPE, settings(chosen)).data.batch_tokens
    grown = round(chosen.steps * 4 / 3)  # steps that read as much: 1, 2 and 3 quarters in their first half, then 4
    return {
        "30 %, seed 0": [],
        "30 %, seed 1": ["run.seed=1"],
        "30 % to 15 %": ["masking.rate_law=linear", "masking.end_rate=0.15"],
        "40 % to 10 %": ["masking.rate=0.4", "masking.rate_law=linear", "masking.end_rate=0.1"],
        "at most 64 tokens": ["data.max_length=64"],
        "single sentences": ["data.unit=sentences"],
        "batches from a quarter": [
            f"data.batch_tokens={batch // 4}", "run.accumulate=4", "schedule.ramp=0.5", f"schedule.steps={grown}",
        ],
        "a causal step in 8": ["objective.name=alternate", "objective.options.steps=8", f"{causal}=0.125"],
        "a causal step in 16": ["objective.name=alternate", "objective.options.steps=16", f"{causal}=0.0625"],
        "causal first, for half": ["objective.name=alternate", "objective.options.pattern=phases", f"{causal}=0.5"],
        "moving average, 0.99": ["run.ema=0.99"],
    }  # fmt: skip


# ---- one run


def carry_out(study: str, name: str, sets: list[str], chosen: argparse.Namespace) -> None:
    """Train, measure, write one JSON file. Called in a process of its own."""
    import torch

    from besag.training import recipe as recipes
    from besag.training.run import train

    folder = chosen.output / "runs" / study / _slug(name)
    changes = sets
    here = [] if torch.cuda.is_available() else ["run.precision=bfloat16", "run.compile=false", "run.workers=0"]
    sets = [*here, *settings(chosen), f'run.output="{folder}"', *changes]
    begun = time.time()
    result = train(recipes.read(RECIPE, sets), quiet=True)
    trained = time.time()
    told = {
        "study": study, "run": name, "set": changes, "steps": result.step, "seconds": trained - begun,
        "train_loss": result.metrics.get("loss"),
    }  # fmt: skip
    for measured in measure(folder / "model", study, chosen):  # the dearest last: whatever is known is written
        told |= {**measured, "measuring_seconds": time.time() - trained}
        draft = chosen.output / f"{study}-{_slug(name)}.unfinished"
        draft.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        draft.rename(draft.with_suffix(".json"))


def prepare(chosen: argparse.Namespace) -> None:
    """Tokenise the text once, for all runs."""
    from besag.conditionals.loading import read_vocabulary
    from besag.training import recipe as recipes
    from besag.training.data.cache import prepare as tokenise

    recipe = recipes.read(RECIPE, settings(chosen))
    assert recipe.tokenizer.path is not None
    vocabulary = read_vocabulary(recipe.tokenizer.path, recipe.tokenizer.path)
    for which in ("train", "valid"):
        tokenise(recipe.data, vocabulary, chosen.output / "cache", which)


def settings(chosen: argparse.Namespace) -> list[str]:
    """What is set in every run."""
    sets = [
        f"data.train={json.dumps(chosen.corpus)}", f"data.valid={json.dumps(chosen.valid)}",
        f'data.cache="{chosen.output / "cache"}"', f"schedule.steps={chosen.steps}",
    ]  # fmt: skip
    return [*sets, *([f'tokenizer.path="{chosen.tokenizer}"'] if chosen.tokenizer else []), *chosen.set]


def measure(model: Path, study: str, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    import besag
    from besag.evaluation.minimal_pairs import minimal_pairs, read_pairs

    lm = besag.load(str(model), dtype="float32", progress=False)
    texts = sentences(chosen.valid, chosen.sentences)
    yield {"pll_bits_per_character": besag.corpus(lm.score(texts)).bits_per_character}
    if study in ("network", "schedules"):  # vocabularies, and models that end with other rates, compare by it
        chains = lm.score(texts[: chosen.chains], "chain")
        yield {"chain_bits_per_character": besag.corpus(chains).bits_per_character}
    pairs = [pair for file in chosen.pairs for pair in read_pairs(file, chosen.limit)]
    if pairs:
        [macro, *_] = minimal_pairs(lm, pairs).table("overall")
        yield {"minimal_pairs": macro["accuracy"], "minimal_pairs_se": macro["se"]}
    some = [lm.rectangles(text, minors=4, seed=0) for text in texts[:40]]
    yield {
        "incompatibility": statistics.fmean(one.mean for one in some),
        "dependence": statistics.fmean(one.dependence for one in some),
    }
    if study == "compatible":
        yield {"samples": gibbs(lm, chains=chosen.chains, length=12, sweeps=20, seed=0)}
        report = lm.pairs(texts[:60], pairs=["contiguous"], per_text=1, candidates=100, seed=0)
        found: dict[str, float] = {}
        for row in report.table():
            if row["construction"] in ("mlm", "ag", "order"):
                found[f"{row['construction']}_pair_perplexity"] = row["pair_ppl"]
            if row["construction"] == "ag":
                found["mutual_information"] = row["mutual_information"]
        yield found


def sentences(files: list[str], count: int) -> list[str]:
    from besag.training.data.sentences import sentences as spans
    from besag.training.data.sources import documents
    from besag.training.recipe import Data

    found = []
    for document in documents(Data(train=tuple(files)), "train"):
        whole = (document.text[start:end] for start, end in spans(document.text))
        found += [next(text for text in [*whole, ""] if 40 <= len(text) <= 200 or not text)]  # one a document
        if len(found) == 2 * count:
            break
    return [text for text in found if text][:count]


def gibbs(lm: Any, *, chains: int, length: int, sweeps: int, seed: int) -> list[str]:
    """Sentences from all masks, one place at a time, places in random order."""
    import torch

    from besag.conditionals.contract import Questions

    words, device = lm.vocabulary, lm.conditionals.device
    chance = torch.Generator(device).manual_seed(seed)
    ids = torch.full((chains, length + 2), words.mask_id, device=device)
    ids[:, 0], ids[:, -1] = words.tokenizer.cls_token_id, words.tokenizer.sep_token_id
    row = torch.arange(chains, device=device)
    for _ in range(sweeps):
        order = torch.rand(chains, length, generator=chance, device=device).argsort(1) + 1
        for place in order.unbind(1):
            ids[row, place] = words.mask_id
            with torch.no_grad():
                logits = lm.conditionals.head(lm.conditionals.rows(Questions(ids, row, place))).float()
            logits[:, sorted(words.special_ids)] = -torch.inf
            ids[row, place] = torch.multinomial(logits.softmax(1), 1, generator=chance)[:, 0]
    return [words.tokenizer.decode(line[1:-1]) for line in ids.tolist()]


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")


# ---- all of them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="*")
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--valid", nargs="+", default=[])
    parser.add_argument("--pairs", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=100, help="minimal pairs of each file")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--chains", type=int, default=100, help="samples of each run, or texts that `chain` scores")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--set", nargs="*", default=[], help="keys of the recipe, in every run: data.batch_tokens=8192")
    parser.add_argument("--output", type=Path, default=Path("studies"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--judge", help="--report: a model whose chain score judges the samples")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.output = chosen.output.absolute()
    if chosen.report:
        if chosen.judge:
            judge(chosen.report, chosen.judge)
        report(chosen.report)
        return
    if chosen.one:
        [study] = chosen.study
        carry_out(study, chosen.one, runs(study, chosen)[chosen.one], chosen)
        return
    waiting = [(study, name) for study in chosen.study for name in runs(study, chosen)]
    waiting = [(s, n) for s, n in waiting if not (chosen.output / f"{s}-{_slug(n)}.json").exists()]
    chosen.output.mkdir(parents=True, exist_ok=True)
    prepare(chosen)
    going: dict[subprocess.Popen[bytes], str] = {}
    arguments = [word for word in sys.argv[1:] if word not in chosen.study]
    while waiting or going:
        while waiting and len(going) < chosen.jobs:
            study, name = waiting.pop(0)
            log = open(chosen.output / f"{study}-{_slug(name)}.log", "wb")  # noqa: SIM115
            command = [sys.executable, __file__, study, *arguments, "--one", name]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
            going[subprocess.Popen(command, stdout=log, stderr=log, env=environment)] = f"{study}: {name}"
        time.sleep(0.5)
        for process in [one for one in going if one.poll() is not None]:
            print(f"{going.pop(process)}: {'done' if process.returncode == 0 else 'FAILED, see its log'}", flush=True)


def judge(folder: Path, model: str) -> None:
    """Write beside the samples how another model likes them, in bits a character, and how much they vary."""
    import besag

    lm = besag.load(model, dtype="float32", progress=False)
    for file in sorted(folder.glob("*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        texts = [text for text in told.get("samples", []) if text.strip()]
        if not texts or "samples_bits_per_character" in told:
            continue
        total = -sum(one.total for one in lm.score(texts, "chain"))
        words = [tuple(text.split()) for text in texts]
        pairs = [pair for line in words for pair in itertools.pairwise(line)]
        told |= {
            "samples_bits_per_character": total / sum(map(len, texts)) / math.log(2),
            "samples_distinct_pairs": len(set(pairs)) / len(pairs),
            "samples_stutter": sum(one == other for one, other in pairs) / len(pairs),
        }
        file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def report(folder: Path) -> None:
    """Markdown tables of what is there."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    for study in dict.fromkeys(one["study"] for one in found):
        rows = [one for one in found if one["study"] == study]
        names = [n for n in rows[0] if isinstance(rows[0][n], float) and n not in ("seconds", "measuring_seconds")]
        print(f"\n### {study}\n\n| run | steps | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
        for one in rows:
            print(f"| {one['run']} | {one['steps']} | {' | '.join(f'{one.get(n, math.nan):.4g}' for n in names)} |")


if __name__ == "__main__":
    main()
