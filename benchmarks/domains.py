"""Going on with the embedded model in fields it has not read, and other small real runs: figures in docs/training/.

    python benchmarks/domains.py prepare FOLDER --data DATA --corpus CORPUS     # cuts what the jobs read, about 10 MB
    python benchmarks/domains.py list
    python benchmarks/domains.py JOB FOLDER -o OUT [--seeds 0 1] [--size core]  # a line of JSON for each run

Each job is a process of its own and needs none of the others; a GPU takes them side by side. `--size core` cuts a job
to minutes of one core, in bfloat16; `--size small` runs two steps of each, to see that nothing is in the way. Fields:

    speech    talk, hearings and speeches: part 07 of the corpus; whole chunks held out
    german    German captions of Multi30k; its validation captions held out
    chinese   corrected sentences of SIGHAN's training sets; those of its test of 2015 held out
    antibody  heavy chains of SAbDab, to go on from AntiBERTy (--start); a CPU is enough

General text, by which forgetting is measured, is the embedded model's own held-out text; of antibodies, light chains.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ASKED = 200  # sentences of an evaluation
CHAINED = 150  # texts whose code length is reckoned


RECIPE = Path(__file__).parent.parent / "recipes" / "continue.toml"
SETTINGS = {  # what is other than in the recipe, which is for a minute of a laptop
    "data.held_out": 0.002, "data.max_length": 128, "data.batch_tokens": 8192,
    "masking.law": "uniform", "optimizer.lr": 5e-4, "schedule.steps": 300, "schedule.warmup": 0.1,
    "run.plot": False, "run.threads": 1, "run.log_every": 50, "run.checkpoint_every": 100_000,
    "evaluation.every": 0, "evaluation.sentences": ASKED,
}  # fmt: skip


class Job(NamedTuple):
    """What is asked of a job: its files, its results, and how long it may take."""

    data: Path
    out: Path
    seed: int
    size: str  # "full", "core": minutes of a core; "small": two steps
    device: str
    start: str

    @property
    def small(self) -> bool:
        return self.size == "small"

    def by_size(self, full: Any, core: Any, small: Any) -> Any:
        return {"full": full, "core": core, "small": small}[self.size]

    def tell(self, **said: Any) -> None:
        line = json.dumps(said, ensure_ascii=False)
        with (self.out / "results.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(line + "\n")
        print(line, flush=True)

    def sets(self, **core: Any) -> dict[str, Any]:
        """What a size changes; `core`, its settings other than here, with __ for a point."""
        minutes = {
            "schedule.steps": 80,
            "data.batch_tokens": 512,
            "evaluation.sentences": 20,
            "run.precision": "bfloat16",
        }
        minutes |= {key.replace("__", "."): value for key, value in core.items()}
        few = {"schedule.steps": 2, "data.batch_tokens": 256, "evaluation.sentences": 4}
        return {"run.seed": self.seed, "run.device": self.device, **self.by_size({}, minutes, few)}


# ---- data


def prepare(folder: Path, data: Path, corpus: Path) -> None:
    """Everything that the jobs read, cut to size, each part in one file."""
    folder.mkdir(parents=True, exist_ok=True)
    speech = chunks(corpus / "part-07.txt.xz")
    write(folder / "speech.valid.txt", [next(speech) for _ in range(60)])
    write(folder / "speech.train.txt.xz", upto(speech, 10_000_000))
    write(folder / "english.txt.xz", upto(chunks(corpus / "part-00.txt.xz"), 4_000_000))
    (folder / "general.txt.xz").write_bytes((corpus / "valid.txt.xz").read_bytes())
    for part, name in (("train", "train"), ("valid", "val")):
        write(folder / f"german.{part}.txt", [(data / "multi30k" / f"{name}.de").read_text(encoding="utf-8")])
    sighan = data / "spelling_sighan"
    held = lines_of(sighan / "test15_correct.txt")
    read = [line for year in (13, 14, 15) for line in lines_of(sighan / f"train{year}_correct.txt")]
    write(folder / "chinese.valid.txt", ["\n".join(held)])
    write(folder / "chinese.train.txt", ["\n".join(dict.fromkeys(line for line in read if line not in set(held)))])
    snli(folder, data / "snli" / "validation.tsv")
    antibodies(folder, data / "protein_antibody")


def antibodies(folder: Path, data: Path) -> None:
    """Heavy and light chains apart, a chain a line, as AntiBERTy reads them: spaces between residues. And paratopes."""
    import pandas

    seen = set[str]()
    for part, name in (("train", "train"), ("valid", "val")):
        rows = pandas.read_parquet(data / f"sabdab_{name}.parquet").drop_duplicates("sequence")
        rows = rows[~rows["sequence"].isin(seen)]
        seen.update(rows["sequence"])
        told = [{"text": [*row.sequence], "label": [*row.paratope_labels]} for row in rows.itertuples()]
        write(folder / f"paratope.{part}.jsonl", ["\n".join(map(json.dumps, told))])
        heavy = rows["v_gene"].str.startswith("IGH")
        for kind, kept in (("heavy", heavy), ("light", ~heavy)):
            write(folder / f"{kind}.{part}.txt", ["\n".join(" ".join(one) for one in rows["sequence"][kept])])


def snli(folder: Path, file: Path) -> None:
    """Premise and hypothesis as one text, and the label; every tenth premise is held out, with all its hypotheses."""
    words = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    rows = [line.split("\t") for line in lines_of(file)[1:]]
    premises = {premise: at for at, premise in enumerate(dict.fromkeys(row[0] for row in rows))}
    for part in ("train", "valid"):
        kept = [row for row in rows if row[2] in words and (premises[row[0]] % 10 == 0) == (part == "valid")]
        said = [f"{premise} / {hypothesis}\t{words[label]}" for premise, hypothesis, label in kept]
        write(folder / f"snli.{part}.tsv", ["\n".join(["text\tlabel", *said])])


def chunks(file: Path) -> Iterator[str]:
    """The runs of lines between empty ones."""
    held: list[str] = []
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                held.append(line.rstrip("\n"))
            elif held:
                yield "\n".join(held)
                held = []
    if held:
        yield "\n".join(held)


def upto(texts: Iterable[str], characters: int) -> Iterator[str]:
    for text in texts:
        yield text
        characters -= len(text)
        if characters <= 0:
            return


def lines_of(file: Path) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def write(file: Path, texts: Iterable[str]) -> None:
    whole = ("\n\n".join(texts).rstrip("\n") + "\n").encode()
    file.write_bytes(lzma.compress(whole, preset=9) if file.suffix == ".xz" else whole)


# ---- fields


def adapted(job: Job, name: str, field: str, changes: dict[str, Any], chained: int = CHAINED) -> Any:
    """One run that goes on from a model, its numbers before and after, and the code length of held-out sentences."""
    import besag

    files = {"speech": "speech.train.txt.xz"}.get(field, f"{field}.train.txt")
    read = {"data.train": [str(job.data / files)], "data.valid": [str(job.data / f"{field}.valid.txt")]}
    read |= {"data.unit": "sentences" if field == "speech" else "documents", "model.start": job.start}
    read |= {"evaluation.general": [str(job.data / "general.txt.xz")]}
    begun = time.monotonic()
    folder = job.out / f"{name}-{job.seed}"
    result = besag.train(RECIPE, {**SETTINGS, **read, **changes, **job.sets()}, output=folder, quiet=True)
    if not result.finished:  # stopped by a signal: what was measured is the start alone
        raise SystemExit(f"{name} was stopped after step {result.step}")
    seconds = round(time.monotonic() - begun)
    before, after = ({key: round(value, 4) for key, value in one.items()} for one in (result.before, result.metrics))
    tokens = after.get("tokens")
    told = {"before": before, "after": {key: after[key] for key in before if key in after}}
    job.tell(run=name, seed=job.seed, steps=result.step, tokens=tokens, seconds=seconds, **told)
    if chained:
        lines = lines_of(job.data / f"{field}.valid.txt")
        texts = [line for line in lines if 10 <= len(line) <= 200] or lines
        texts = texts[: job.by_size(chained, 20, 2)]
        told = {"before": bits(job, job.start, texts), "after": bits(job, str(folder / "model"), texts)}
        job.tell(run=name, seed=job.seed, chain_bits=told)
    return result


def bits(job: Job, model: str, texts: list[str]) -> float:
    """Bits a character by the chain rule: a code length, unlike −PLL."""
    import numpy as np

    import besag

    lm = besag.load(model, device=None if job.device == "auto" else job.device, dtype="float32", progress=False)
    total = sum(score.total for score in lm.score(texts, "chain"))
    return round(float(-total / np.log(2) / sum(map(len, texts))), 4)


def replay(job: Job, field: str) -> dict[str, Any]:
    """General text among that of the field: about as much of it."""
    return {"data.train": [str(job.data / f"{field}.train.txt"), str(job.data / "english.txt.xz")]}


def speech(job: Job) -> None:
    adapted(job, "speech", "speech", {})


def german(job: Job) -> None:
    adapted(job, "german", "german", {})


def german_replay(job: Job) -> None:
    adapted(job, "german-replay", "german", {**replay(job, "german"), "schedule.steps": 450}, chained=0)


def adapter(method: str, rank: int, lr: float) -> Callable[[Job], None]:
    """As many weights of either kind, the same batches; a learning rate each."""
    changes = {"adapt.method": method, "adapt.rank": rank, "adapt.keep": "apart", "optimizer.lr": lr}
    changes["optimizer.weight_decay"] = 0.0
    return lambda job: adapted(job, f"german-{method}-{lr:g}", "german", changes, chained=0)


def bitfit(job: Job) -> None:
    """Bias terms alone, which are few in the embedded model's family."""
    changes = {"adapt.method": "bitfit", "optimizer.lr": 3e-3, "optimizer.weight_decay": 0.0}
    adapted(job, "german-bitfit", "german", changes, chained=0)


def speech_task(job: Job) -> None:
    """UDALM: SNLI's labels with the masked loss of spoken English."""
    adapted(job, "speech-task", "speech", {"adapt.task": str(job.data / "snli.train.tsv")}, chained=0)


def german_extended(job: Job) -> None:
    """With 2,000 German words more in the vocabulary, each begun as the mean of its pieces."""
    import besag
    from besag.training.tokenizer.extending import extended

    folder = job.out / f"tokenizer-{job.seed}"
    lm = besag.load(job.start, device="cpu", progress=False)
    extended(lm.vocabulary.tokenizer, lines_of(job.data / "german.train.txt"), 2000).save_pretrained(folder)
    adapted(job, "german-extended", "german", {"tokenizer.path": str(folder), "model.vocabulary": "extended"})


def chinese_bytes(job: Job) -> None:
    """With the tokenizer of the English model, which spells Chinese in bytes: three tokens a character."""
    adapted(job, "chinese-bytes", "chinese", {"data.max_length": 256})


def exchanged(job: Job) -> dict[str, Any]:
    """Another vocabulary, learned from Chinese and English: tokens that the old one has keep their rows."""
    import besag

    folder = job.out / f"tokenizer-{job.seed}"
    if not folder.exists():
        texts = [*lines_of(job.data / "chinese.train.txt"), *upto(chunks(job.data / "english.txt.xz"), 2_000_000)]
        besag.train_tokenizer(texts, kind="unigram", size=12_288).save_pretrained(folder)
    return {"tokenizer.path": str(folder), "model.vocabulary": "exchanged", "optimizer.lr": 1e-3}


def chinese(job: Job) -> None:
    adapted(job, "chinese", "chinese", exchanged(job))


def chinese_replay(job: Job) -> None:
    changes = {**exchanged(job), **replay(job, "chinese"), "schedule.steps": 450}
    adapted(job, "chinese-replay", "chinese", changes)


def antibody(job: Job) -> None:
    """AntiBERTy on heavy chains of known structure, a token a residue; what is forgotten is told by light ones."""
    changes = {
        "data.max_length": 160, "data.batch_tokens": 1024, "optimizer.lr": 5e-5, "schedule.steps": 60,
        "evaluation.sentences": 90, "evaluation.general": [str(job.data / "light.valid.txt")],
    }  # fmt: skip
    adapted(job, "antibody", "heavy", changes, chained=5)


# ---- heads, sub-tokens, sizes


def file(job: Job, part: str) -> str:
    """The labelled examples; of a shorter run the first of them."""
    whole = job.data / f"snli.{part}.tsv"
    if job.size == "full":
        return str(whole)
    count = job.by_size(None, {"train": 3000, "valid": 400}[part], 12)
    write(job.out / whole.name, ["\n".join(lines_of(whole)[: count + 1])])
    return str(job.out / whole.name)


def heads(job: Job, masked: bool = False) -> None:
    """SNLI: accuracy, and the faithfulness of explanations of what the head says."""
    import torch

    import besag

    torch.set_float32_matmul_precision("high")  # TF32 on a GPU

    task = {"train": file(job, "train"), "valid": file(job, "valid"), "max_length": 128}
    tuning = {"epochs": job.by_size(4, 1, 1), "masked": masked, "batch": job.by_size(64, 16, 64), "lr": 2e-4}
    tuning["frozen"] = job.by_size(0, 6, 0)  # layers
    recipe = {"task": task, "model": {"start": job.start}, "tuning": tuning}
    seeded = {**recipe, "run": {"seed": job.seed, "device": job.device}}
    folder = job.out / f"head-{job.seed}"
    if not folder.exists():
        result = besag.train_head(seeded, output=folder, tell=lambda line: print(line, flush=True))
        job.tell(run="heads", masked=masked, seed=job.seed, **dict(result.metrics))
    faithfulness(job, folder, masked)


def heads_masked(job: Job) -> None:
    """The same with masked tuning."""
    heads(job, masked=True)


def faithfulness(job: Job, folder: Path, masked: bool) -> None:
    """Of explanations of a head's labels of held-out texts: means with standard errors, a method each; as it goes."""
    import numpy as np

    import besag

    device = None if job.device == "auto" else job.device
    lm = besag.load(job.start, device=device, progress=False)
    head = besag.load_head(folder, device=device)
    asked = [line.split("\t")[0] for line in lines_of(Path(file(job, "valid")))[1:]]
    asked = asked[:: max(1, len(asked) // job.by_size(60, 24, 4))]
    for method in job.by_size(("mask", "delete"), ("mask",), ("mask", "delete")):
        curves = []
        for one in asked:
            explained = lm.explain(one, classifier=head, method=method, curve=True, orders=job.by_size(10, 5, 10))
            curves.append(explained.curve)
            if len(curves) % 12 and len(curves) < len(asked):
                continue
            areas = np.array([curve.area for curve in curves])
            best = np.array([np.trapezoid(curve.random - curve.probs[-1], curve.shares) for curve in curves])
            about = {"masked": masked, "seed": job.seed, "method": method, "texts": len(curves)}
            # of all texts together, as published: of one text the best area may be next to nothing
            told = {"relative": ratio(areas, best), "area": ratio(areas, 0 * areas + 1), "fall": int((best > 0).sum())}
            job.tell(run="faithfulness", **about, **told, areas=areas.round(4).tolist(), best=best.round(4).tolist())


def ratio(some: Any, of: Any) -> list[float]:
    """Σ some / Σ of, and its standard error over texts."""
    whole = some.sum() / of.sum()
    return [round(float(one), 4) for one in (whole, ((some - whole * of) ** 2).sum() ** 0.5 / abs(of.sum()))]


def paratope(job: Job) -> None:
    """Which residues of an antibody touch its antigen: a tagger on AntiBERTy (--start), of 240 chains."""
    import besag

    few = job.out / "paratope.train.jsonl"
    write(few, ["\n".join(lines_of(job.data / "paratope.train.jsonl")[: 4 if job.small else 240])])
    task = {"kind": "tag", "train": str(few), "valid": str(job.data / "paratope.valid.jsonl"), "max_length": 160}
    recipe = {"task": task, "model": {"start": job.start}, "tuning": {"epochs": 2, "batch": 8, "lr": 1e-4}}
    seeded = {**recipe, "run": {"seed": job.seed, "device": job.device}}
    result = besag.train_head(seeded, output=job.out / f"tagger-{job.seed}", tell=lambda line: print(line, flush=True))
    job.tell(run="paratope", seed=job.seed, **dict(result.metrics))


SMALL = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}


def scratch(job: Job, name: str, changes: dict[str, Any]) -> None:
    """A small network from nothing, on German captions."""
    import besag

    recipe = {
        "data": {
            "train": [str(job.data / "german.train.txt")], "valid": [str(job.data / "german.valid.txt")],
            "unit": "documents", "max_length": 64, "batch_tokens": 8192,
        },
        "tokenizer": {"size": 4000},
        "model": {"config": SMALL},
        "optimizer": {"lr": 1e-3},
        "schedule": {"steps": 500},
        "run": {"plot": False, "threads": 1, "log_every": 100, "checkpoint_every": 100_000},
        "evaluation": {"sentences": ASKED},
    }  # fmt: skip
    result = besag.train(recipe, {**changes, **job.sets()}, output=job.out / f"{name}-{job.seed}", quiet=True)
    if not result.finished:
        raise SystemExit(f"{name} was stopped after step {result.step}")
    job.tell(run=name, seed=job.seed, steps=result.step, **{key: round(v, 4) for key, v in result.metrics.items()})


def subtokens(job: Job) -> None:
    """German word forms, with vectors of runs of three characters and without: the same batches."""
    for width in (0, 3):
        scratch(job, f"subtokens-{width}", {"model.subtokens": width})


def scaling(job: Job, scaled: bool = False) -> None:
    """Held-out loss over weights: four widths, the same steps of the same text, one learning rate, or one a width."""
    import besag

    keys = "model.config.hidden_size:model.config.intermediate_size:optimizer.lr"
    widths = job.by_size((64, 128, 256, 384), (32, 64, 128, 192), (64, 128, 256))
    sizes = {keys: [[w, 2 * w, 0.256 / w if scaled else 2e-3] for w in widths]}
    text = {"train": [str(job.data / "speech.train.txt.xz")], "valid": [str(job.data / "speech.valid.txt")]}
    few = job.sets(schedule__steps=200, data__batch_tokens=1024, evaluation__sentences=40)
    recipe = {
        "data": {
            **text, "unit": "sentences", "max_length": 128, "batch_tokens": few.get("data.batch_tokens", 8192),
            "cache": str(job.out / "cache"),
        },
        "tokenizer": {"path": str(Path(besag.__file__).parent / "models" / "small-en")},
        "model": {"config": SMALL},
        "schedule": {"steps": few.get("schedule.steps", 400)},
        "run": {"plot": False, "log_every": 100, "checkpoint_every": 100_000, "device": job.device},
        "evaluation": {"sentences": few.get("evaluation.sentences", ASKED)},
    }  # fmt: skip
    name = "scaling-scaled" if scaled else "scaling"
    found = besag.sweep(
        [recipe], {**sizes, "run.seed": [0, 1]}, output=job.out / name, jobs=job.by_size(4, 1, 1), quiet=True
    )
    job.tell(run=name, rows=found.means)
    job.tell(run=name, curve=found.curve("parameters", "heldout_loss").words)


def scaling_scaled(job: Job) -> None:
    """The learning rate falls as 1 / width."""
    scaling(job, scaled=True)


JOBS: dict[str, Callable[[Job], None]] = {
    "speech": speech, "german": german, "german-replay": german_replay, "chinese": chinese,
    "chinese-replay": chinese_replay, "chinese-bytes": chinese_bytes, "antibody": antibody,
    "lora": adapter("lora", 4, 1e-3), "lora-3e-3": adapter("lora", 4, 3e-3),
    "bottleneck": adapter("bottleneck", 30, 1e-3), "bottleneck-3e-3": adapter("bottleneck", 30, 3e-3),
    "bitfit": bitfit, "speech-task": speech_task, "german-extended": german_extended,
    "heads": heads, "heads-masked": heads_masked, "paratope": paratope, "subtokens": subtokens,
    "scaling": scaling, "scaling-scaled": scaling_scaled,
}  # fmt: skip


def carry_out(
    about: str | None, jobs: dict[str, Callable[[Job], None]], cut: Callable[[Path, Path, Path], None], output: str
) -> None:
    """The command line of a file of jobs: `cut` makes what they read, into a folder, of data and a corpus."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "list", *jobs])
    parser.add_argument("folder", nargs="?", type=Path, help="of what the jobs read")
    parser.add_argument("-o", "--output", type=Path, default=Path(output))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--start", default="small-en", help="the model to go on from")
    parser.add_argument("--size", choices=["full", "core", "small"], default="full", help="of every job")
    chosen = parser.parse_args()
    if chosen.what == "list":
        print(*jobs, sep="\n")
        return
    if chosen.folder is None or (chosen.what == "prepare" and None in (chosen.data, chosen.corpus)):
        parser.error(f"{chosen.what} needs a folder{', --data and --corpus' if chosen.what == 'prepare' else ''}")
    if chosen.what == "prepare":
        cut(chosen.folder, chosen.data, chosen.corpus)
        return
    out = chosen.output / chosen.what
    out.mkdir(parents=True, exist_ok=True)
    for seed in chosen.seeds:
        jobs[chosen.what](Job(chosen.folder, out, seed, chosen.size, chosen.device, chosen.start))


if __name__ == "__main__":
    carry_out(__doc__, JOBS, prepare, "runs/domains")
