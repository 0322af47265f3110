"""Translation by refinement against translation from the left: one command, resumable job by job.

    PYTHONPATH=src python benchmarks/translation.py --data ../data/multi30k --out runs/translation --beside 5
    PYTHONPATH=src python benchmarks/translation.py --toy --out /tmp/toy            # a minute or two on a CPU
    … --plan                                  # what would be done, beside what, and what it is expected to take
    … --stages train decode                   # some of them; others are skipped
    … --set schedule.minutes=1.5 masked:objective.name=glance      # of every recipe; of those whose name begins so
    … --models causal shallow masked-raw masked-own --set masked-own:model.family=bart --best masked-own

    … --stages train valid best decode        # --best found on the validation set (needs sacrebleu)

    train     a tokenizer for all; causal: the left-to-right baseline; shallow: 12 layers of encoder and 1 of decoder;
              masked-raw: on the pairs as they are; teacher-K: cross-fitted, each then writes its part of the distilled
              pairs; masked-distilled and causal-distilled: on those. --models names fewer, or more: causal… and
              shallow… write from the left, masked… refine, and whatever ends with distilled learns from teachers
    valid     the validation set by the masked models, at 4 and 10 passes, by mask_predict and by refine
    best      which of them is the best there: it is --best from here on
    decode    the test set by every model: greedy and beam 5; masked at 1, 2, 4, 8, 10 passes; and by the --best of
              the masked: kernels side by side at equal passes and one length (the bound of entropy_bound and the
              threshold are found on the validation set, so that they make as many on the mean); hypotheses chosen
              by themselves, by the baseline, by least risk; dependence: the mutual information of neighbours, both
              hidden, beside what one pass makes of the sentence
    listed    the test set by the masked models alone, at --passes, all five lengths kept …
    chosen    … and what the baseline chooses of them
    nbest     lists of a beam of 10, of the validation and the test set, to be rescored
    rescore   these lists by the best masked model, given the source, and by the embedded model (needs sacrebleu)
    speed     seconds a sentence, one at a time and many at once, all steps included: nothing may run beside it
    pack      all that was found, and some weights in bfloat16, in few small files
    unpack    the same again, below --out
    judge     BLEU and chrF with intervals, each against the baseline on the same draws; stutter (needs sacrebleu)
    figures   docs/img/translation.png, from results.json (needs matplotlib)

A stage is waves of jobs. The jobs of a wave know nothing of each other: with --beside they are processes that share the
device. Every job writes a file or folder below --out for each thing it does, and does nothing twice. All but the last
two stages need torch, transformers and accelerate alone.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import besag
import translation_decoded
import translation_judged
import translation_rescored
from besag.files.whole import write_whole
from besag.training.data import parallel
from besag.training.recipe import recipe_of
from besag.training.run.claim import begun
from besag.training.tokenizer import train_tokenizer
from besag.training.tokenizer.saving import save_whole

HERE = Path(__file__).parent
PARTS = 2  # of the pairs, and teachers
TEACHERS = tuple(f"teacher-{part}" for part in range(PARTS))
MODELS = ("causal", "shallow", "masked-raw", "masked-distilled", "causal-distilled")
KINDS = ("causal", "shallow", "masked")  # what the name of a model begins with
STAGES = (
    "train",
    "valid",
    "best",
    "decode",
    "listed",
    "chosen",
    "nbest",
    "rescore",
    "speed",
    "pack",
    "unpack",
    "judge",
    "figures",
)
EXPECTED = {  # minutes on one H200, of a training beyond its schedule.minutes: guessed, until a run has told
    "tokenizer": 0.3, "train": 0.6, "teacher": 0.5, "decode": 1.0, "decode-kernels": 2.0, "dependence": 0.5,
    "valid": 0.3, "best": 0.1, "nbest": 0.3, "rescore": 0.5, "speed": 3.0, "pack": 0.3, "judge": 0.5, "figures": 0.1,
}  # fmt: skip
APART = ".apart"  # how the name of packed weights ends
PIECE = 14 * 2**20  # bytes of a packed file
TOY = "ein zwei der die hund katze mann frau rot blau läuft schläft am im strand haus und mit kind ball"


def main() -> None:
    options = arguments()
    study = Study(options)
    if options.job:
        for job in options.job.split(","):
            study.do(job)
        return
    for stage in STAGES:
        if stage in options.stages:
            for wave in waves(stage, options.models):
                study.plan(stage, wave) if options.plan else study.carry_out(stage, wave)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="a folder with train, val and test_2016_flickr (or test), .de and .en"
    )
    parser.add_argument("--recipe", type=Path, default=HERE.parent / "recipes" / "multi30k-masked.toml")
    parser.add_argument("--out", type=Path, required=True)
    usual = ["train", "decode", "speed", "pack", "judge", "figures"]
    parser.add_argument("--stages", nargs="*", default=usual, choices=STAGES)
    parser.add_argument("--models", nargs="*", default=list(MODELS), help="that are trained and decoded")
    parser.add_argument("--best", default="masked-distilled", help="the masked model that is looked at closely")
    parser.add_argument("--against", help="a masked model that the others are compared with, as the baseline is")
    parser.add_argument("--plan", action="store_true", help="tell what would be done, and do nothing")
    parser.add_argument("--beside", type=int, default=1, help="processes at a time")
    parser.add_argument("--job", help=argparse.SUPPRESS)  # those that this process is to do, with commas
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="[NAME:]KEY=VALUE", help="of the recipes")
    parser.add_argument("--sentences", type=int, default=None, help="of the test set")
    parser.add_argument(
        "--passes", type=int, nargs="*", default=list(translation_decoded.PASSES), help="of listed and chosen"
    )
    parser.add_argument("--alone", type=int, default=60, help="sentences that are timed one at a time")
    parser.add_argument("--many", type=int, default=4000, help="sentences that are timed together")
    parser.add_argument("--dependent", type=int, default=300, help="sentences whose dependence is measured")
    parser.add_argument(
        "--weights",
        nargs="*",
        default=["causal", "masked-distilled"],
        help="that are packed, too: NAME, or NAME:BITS of each number's fraction, 7 in bfloat16",
    )
    parser.add_argument("--packed", type=Path, default=None, help="the folder of packed files")
    parser.add_argument("--results", type=Path, default=None, help="also write results.json here")
    parser.add_argument("--toy", action="store_true", help="a made-up language and tiny networks")
    options = parser.parse_args()
    if options.toy:
        options.data = toy(options.out / "data")
        options.alone, options.many, options.dependent = 3, 30, 6
    if options.data is None:
        parser.error("--data or --toy")
    if strange := [name for name in (*options.models, options.best) if not name.startswith(KINDS)]:
        parser.error(f"{', '.join(strange)}: a model's name begins with {', '.join(KINDS)}")
    return options


def waves(stage: str, models: Sequence[str]) -> list[tuple[str, ...]]:
    """Jobs that know nothing of each other, then those that need them."""
    if stage == "train":
        later = tuple(name for name in models if name.endswith("distilled"))
        first = (*(name for name in models if name not in later), *(TEACHERS if later else ()))
        return [wave for wave in (("tokenizer",), first, later) if wave]
    if stage in ("valid", "listed", "chosen"):
        return [tuple(f"{stage}-{name}" for name in models if name.startswith("masked"))]
    if stage == "nbest":
        return [tuple(f"nbest-{name}" for name in models if name.startswith("causal"))]
    if stage == "decode":
        return [("decode-kernels", *(f"decode-{name}" for name in models), "dependence")]
    return [(stage,)]


class Study:
    """The jobs; everything it knows lies below `out`."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.out, self.data = options, options.out, options.data
        test = next((name for name in ("test_2016_flickr", "test") if (self.data / f"{name}.de").exists()), "test")
        self.sources, self.references = (
            lines(self.data / f"{test}.{side}")[: options.sentences] for side in ("de", "en")
        )
        if len(self.sources) != len(self.references):
            raise SystemExit(f"{test}: {len(self.sources)} sources and {len(self.references)} references")
        self.valid, self.valid_references = (lines(self.data / f"val.{side}") for side in ("de", "en"))
        self._loaded: dict[str, Any] = {}

    @property
    def best(self) -> str:
        """The masked model that is looked at closely: the best on the validation set, if that was asked."""
        found = self.out / "best.json"
        return str(read(found)["best"] if found.exists() else self.options.best)

    # ---- waves

    def carry_out(self, stage: str, wave: Sequence[str]) -> None:
        began = time.perf_counter()
        self.out.mkdir(parents=True, exist_ok=True)
        if self.options.beside == 1 or len(wave) == 1:
            for job in wave:
                self.do(job)
        else:
            with ThreadPoolExecutor(self.options.beside) as pool:
                wrong = [job for job, code in zip(wave, pool.map(self.child, wave), strict=True) if code]
            if wrong:
                told = "\n".join((self.out / f"{job}.log").read_text()[-2000:] for job in wrong)
                raise SystemExit(f"{told}\n{', '.join(wrong)} failed")
        print(f"== {stage}: {', '.join(wave)}: {since(began) / 60:.1f} minutes", flush=True)

    def child(self, job: str) -> int:
        """A process of its own, with its share of the cores; what it says is in a file."""
        cores = str(max(1, (os.cpu_count() or 1) // self.options.beside))
        threads = {"OMP_NUM_THREADS": cores, "TORCHINDUCTOR_COMPILE_THREADS": cores}
        command = [sys.executable, __file__, *sys.argv[1:], "--job", job]
        with (self.out / f"{job}.log").open("a") as log:
            return subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=threads | os.environ).returncode

    def plan(self, stage: str, wave: Sequence[str]) -> None:
        times = [self.expected(job) for job in wave]
        beside = min(self.options.beside, len(wave))
        print(f"{stage:8} {max(max(times), sum(times) / beside):5.1f} minutes, {beside} beside: {', '.join(wave)}")

    def expected(self, job: str) -> float:
        if job.startswith((*KINDS, "teacher")):
            training = self.recipe(job, {}).schedule.minutes or 0.0
            return training + EXPECTED["train"] + (EXPECTED["teacher"] if job.startswith("teacher") else 0.0)
        return EXPECTED.get(job, EXPECTED["decode"])

    def do(self, job: str) -> None:
        kind, _, name = job.partition("-")
        if job == "tokenizer":
            self.tokenizer()
        elif kind == "teacher":
            self.teacher(int(name))
        elif job.startswith(KINDS):
            self.trained(job)
        elif job in ("pack", "unpack"):
            getattr(self, job)()
        elif job in ("judge", "figures", "best"):
            getattr(translation_judged, job)(self)
        elif job == "rescore":
            translation_rescored.rescore(self)
        elif job in ("speed", "dependence"):
            getattr(translation_decoded, job)(self)
        elif job == "decode-kernels":
            translation_decoded.kernels(self)
        elif kind in ("valid", "nbest", "listed", "chosen"):
            getattr(translation_decoded, kind)(self, name)
        else:
            translation_decoded.decode(self, name)

    # ---- train

    def tokenizer(self) -> None:
        if not (self.out / "tokenizer").is_dir():
            said = self.recipe("tokenizer", {})
            how = {name: value for name, value in vars(said.tokenizer).items() if name != "path"}
            texts = parallel.texts(said.data)
            save_whole(train_tokenizer(texts, **how, max_length=said.data.max_length), self.out / "tokenizer")

    def trained(self, name: str) -> None:
        folder = self.out / name
        if (folder / "model").is_dir():
            return
        began, changes = time.perf_counter(), dict[str, Any]()
        if not name.startswith("masked"):
            changes["model.decoder"] = "causal"
        if name.startswith("shallow"):
            changes |= {"model.config.encoder_layers": 3 if self.options.toy else 12, "model.config.decoder_layers": 1}
        if name.endswith("distilled"):
            changes |= {
                f"data.{side}": [str(self.out / "distilled" / f"train.{side}")] for side in ("source", "target")
            }
        result = besag.train(self.recipe(name, changes), output=folder, resume=begun(folder), quiet=True)
        told = {"seconds": since(began), "step": result.step, **result.metrics}
        write_whole(self.out / f"{name}.train.json", json.dumps(told, indent=1) + "\n")
        print(f"   {name}: {told['seconds']:.0f} s, {result.step} steps, {told['heldout_loss']:.3f}", flush=True)

    def teacher(self, part: int) -> None:
        said = self.recipe(f"teacher-{part}", {})
        done = besag.distil_translations(
            said, self.out / "distilled", parts=PARTS, part=part, device=self.options.device, quiet=True
        )
        if done is not None:
            told = {"pairs": done.pairs, "kept": done.kept, "changed": done.changed}
            write_whole(self.out / "distilled.json", json.dumps(told) + "\n")

    def recipe(self, name: str, changes: dict[str, Any]) -> Any:
        shared = {} if name == "tokenizer" else {"tokenizer.path": str(self.out / "tokenizer")}
        own = {"run.device": self.options.device, "run.plot": False}
        base = toy_recipe() if self.options.toy else self.options.recipe
        return recipe_of(base, {**files(self.data), **own, **shared, **changes, **settings(self.options.set, name)})

    # ---- pack

    def pack(self) -> None:
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w:xz", preset=1) as pack:
            for pattern in ("*.json", "*.log", "scores.*.jsonl", "**/log.jsonl", "distilled/train.*"):
                for path in sorted(self.out.glob(pattern)):
                    pack.add(path, path.relative_to(self.out))
            for named in self.options.weights:
                name, _, bits = named.partition(":")
                folder = self.out / (self.best if name == "best" else name) / "model"
                for path in sorted(folder.glob("*")):
                    weights = path.suffix == ".safetensors"
                    kept = apart(rounded(path, int(bits or 7))) if weights else path.read_bytes()
                    about = tarfile.TarInfo(str(path.relative_to(self.out)) + APART * weights)
                    about.size = len(kept)
                    pack.addfile(about, io.BytesIO(kept))
        into = self.options.packed or self.out / "packed"
        into.mkdir(parents=True, exist_ok=True)
        for at in range(0, whole.tell(), PIECE):
            path = into / f"study.tar.xz.{at // PIECE:02}"
            path.write_bytes(whole.getbuffer()[at : at + PIECE])
            print(f"   {path}: {path.stat().st_size / 2**20:.1f} MiB")

    def unpack(self) -> None:
        pieces = sorted((self.options.packed or self.out / "packed").glob("study.tar.xz.*"))
        with tarfile.open(fileobj=io.BytesIO(b"".join(path.read_bytes() for path in pieces))) as pack:
            pack.extractall(self.out, filter="data")
        for path in self.out.glob(f"**/*{APART}"):
            path.with_suffix("").write_bytes(together(path.read_bytes()))
            path.unlink()

    # ---- what all of them need

    def model(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = besag.load(
                self.out / name / "model", device=self.options.device, progress=False, name=name
            )
        return self._loaded[name]

    def once(self, name: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is in the file, or else what is found, which is then there."""
        path = self.out / name
        if not path.exists():
            began = time.perf_counter()
            write_whole(path, json.dumps(find(), ensure_ascii=False) + "\n")
            print(f"   {name}: {since(began):.1f} s", flush=True)
        return read(path)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def lines(path: Path) -> list[str]:
    path = path if path.exists() else path.with_name(path.name.replace("val.", "dev."))
    return path.read_text("utf-8").removesuffix("\n").split("\n")


def files(folder: Path) -> dict[str, Any]:
    """Where a recipe finds its pairs."""

    def file(*names: str) -> list[str]:
        return [str(next(folder / name for name in names if (folder / name).exists()))]

    return {
        f"data.{key}": file(*(f"{name}.{side}{packed}" for name in names for packed in ("", ".xz")))
        for key, names, side in (
            ("source", ("train",), "de"), ("target", ("train",), "en"),
            ("valid_source", ("val", "dev"), "de"), ("valid_target", ("val", "dev"), "en"),
        )
    }  # fmt: skip


def since(began: float) -> float:
    return time.perf_counter() - began


def settings(said: Sequence[str], name: str) -> dict[str, Any]:
    """[NAME:]KEY=VALUE of all, and of those whose name begins so; the value as JSON where it is any."""
    found = {}
    for one in said:
        key, _, value = one.partition("=")
        whose, _, key = key.rpartition(":")
        if name.startswith(whose):
            try:
                found[key] = json.loads(value)
            except ValueError:
                found[key] = value
    return found


def rounded(path: Path, bits: int = 7) -> bytes:
    """Weights in half the room, or less after packing: numbers of bfloat16 whose last bits are 0."""
    from safetensors import safe_open
    from safetensors.torch import load_file, save

    with safe_open(path, "pt") as kept:
        about = kept.metadata()
    low = 2 ** (23 - bits)  # of a float32, the last bit that is kept
    parts = {}
    for name, part in load_file(path).items():
        if part.is_floating_point():
            whole = part.float().contiguous().view(torch.int32)
            part = ((whole + low // 2) & -low).view(torch.float32).bfloat16()
        parts[name] = part
    return save(parts, about)


def apart(kept: bytes) -> bytes:
    """Every second byte, then the others: signs and exponents, which are much alike, beside each other."""
    return kept[0::2] + kept[1::2]


def together(kept: bytes) -> bytes:
    found = bytearray(len(kept))
    found[0::2], found[1::2] = kept[: (len(kept) + 1) // 2], kept[(len(kept) + 1) // 2 :]
    return bytes(found)


# ---- a toy


def toy(folder: Path) -> Path:
    """A language of twenty words, translated one by one into words that end otherwise."""
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True)
    draw = random.Random(0)
    for name, size in (("train", 400), ("val", 20), ("test", 30)):
        sources = [draw.choices(TOY.split(), k=draw.randint(2, 5)) for _ in range(size)]
        targets = [[f"{word}o" for word in source] for source in sources]
        for side, texts in (("de", sources), ("en", targets)):
            (folder / f"{name}.{side}").write_text("".join(f"{' '.join(text)}\n" for text in texts))
    (folder / "done").touch()
    return folder


def toy_recipe() -> dict[str, Any]:
    layers = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
              "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "dropout": 0.0}  # fmt: skip
    return {
        "data": {"max_length": 40, "batch_tokens": 1024}, "tokenizer": {"size": 300},
        "model": {"family": "bart", "decoder": "masked", "config": layers},
        "masking": {"rate_law": "uniform", "options": {"count": "up"}},
        "objective": {"name": "mlm", "length": 0.1}, "optimizer": {"lr": 5e-3}, "schedule": {"steps": 120},
        "run": {"threads": 1, "log_every": 50}, "evaluation": {"sentences": 20},
    }  # fmt: skip


if __name__ == "__main__":
    main()
