"""Translation by refinement against translation from the left: one command, resumable stage by stage.

    PYTHONPATH=src python3 benchmarks/translation.py --data ../data/multi30k --out runs/translation
    PYTHONPATH=src python3 benchmarks/translation.py --toy --out /tmp/toy            # minutes on a CPU
    … --stages train decode                   # some of them; others are skipped
    … --stages speed --device cpu             # speed is kept for each device
    … --set schedule.minutes=1.5 --masked objective.name=glance

    train        causal: the left-to-right baseline; shallow: 12 encoder layers and 1 of decoder; distilled: targets of
                 two cross-fitted teachers; masked: on the pairs as they are; and causal and masked on distilled pairs.
                 All share the tokenizer of the first.
    decode       the test set by every model: greedy and beam 5; masked at 1, 2, 4, 8, 10 passes; kernels side by side
                 at equal passes (the bound of entropy_bound and the threshold are found on the validation set, so that
                 they make as many on the mean); hypotheses chosen by themselves, by the baseline, by least risk
    speed        seconds a sentence, one at a time and many at once, all steps included, the best of three runs
    dependence   the mutual information of neighbours, both hidden, beside what one pass makes of the sentence
    evaluate     BLEU and chrF with intervals, each against the baseline on the same draws; stutter (needs sacrebleu)
    figures      docs/img/translation-*.png, from results.json (needs matplotlib)

Every stage writes a file or folder below --out for each thing it does, and does nothing twice. Training, decoding and
speed need torch and transformers alone.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import besag
from besag.conditionals.contract import Given
from besag.files.whole import write_whole
from besag.samplers.kernels.pair_law import pair_laws
from besag.samplers.kernels.stutter import count
from besag.samplers.sheet import allowed_tokens, blank
from besag.scores.source_length import SourceLengths

HERE = Path(__file__).parent
STAGES = ("train", "decode", "speed", "dependence", "evaluate", "figures")
PASSES = (1, 2, 4, 8, 10)
EQUAL = (2, 4, 8)  # passes at which kernels are compared
LENGTHS = 5  # tried side by side, where quality is asked for
TOY = "ein zwei der die hund katze mann frau rot blau läuft schläft am im strand haus und mit kind ball"


def main() -> None:
    study = Study(arguments())
    for stage in STAGES:
        if stage in study.options.stages:
            print(f"== {stage}", flush=True)
            getattr(study, stage)()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="a folder with train, val and test_2016_flickr (or test), .de and .en"
    )
    parser.add_argument("--recipe", type=Path, default=HERE.parent / "recipes" / "multi30k-masked.toml")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stages", nargs="*", default=list(STAGES), choices=STAGES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="of every recipe")
    parser.add_argument("--masked", nargs="*", default=[], metavar="KEY=VALUE", help="of the masked models alone")
    parser.add_argument("--sentences", type=int, default=None, help="of the test set")
    parser.add_argument("--alone", type=int, default=100, help="sentences that are timed one at a time")
    parser.add_argument("--many", type=int, default=4000, help="sentences that are timed together")
    parser.add_argument("--dependent", type=int, default=300, help="sentences whose dependence is measured")
    parser.add_argument("--results", type=Path, default=None, help="also write results.json here")
    parser.add_argument("--toy", action="store_true", help="a made-up language and tiny networks")
    options = parser.parse_args()
    if options.toy:
        options.data = toy(options.out / "data")
        options.alone, options.many, options.dependent = 5, 60, 12
    if options.data is None:
        parser.error("--data or --toy")
    return options


class Study:
    """The stages; everything it knows lies below `out`."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.out, self.data = options, options.out, options.data
        test = next((name for name in ("test_2016_flickr", "test") if (self.data / f"{name}.de").exists()), "test")
        self.sources, self.references = (
            lines(self.data / f"{test}.{side}")[: options.sentences] for side in ("de", "en")
        )
        if len(self.sources) != len(self.references):
            raise SystemExit(f"{test}: {len(self.sources)} sources and {len(self.references)} references")
        self.valid = lines(self.data / "val.de")[:200]
        self._loaded: dict[str, Any] = {}

    # ---- train

    def train(self) -> None:
        raw = self.files(self.data)
        causal = {"model.decoder": "causal"}
        self.trained("causal", {**raw, **causal})
        shared = {"tokenizer.path": str(self.out / "causal" / "model")}
        layers = {"model.config.encoder_layers": 3 if self.options.toy else 12, "model.config.decoder_layers": 1}
        self.trained("shallow", {**raw, **causal, **shared, **layers})
        self.trained("masked-raw", {**raw, **shared, **settings(self.options.masked)})
        began = time.perf_counter()
        done = besag.distil_translations(
            self.recipe({**raw, **shared}), self.out / "distilled", device=self.options.device, quiet=True
        )
        self.once("distilled.json", lambda: {**done._asdict(), "source": "", "target": "", "seconds": since(began)})
        new = {**raw, "data.source": [str(done.source)], "data.target": [str(done.target)]}
        self.trained("masked-distilled", {**new, **shared, **settings(self.options.masked)})
        self.trained("causal-distilled", {**new, **causal, **shared})

    def trained(self, name: str, changes: dict[str, Any]) -> None:
        folder = self.out / name
        if (folder / "model").is_dir():
            return
        began = time.perf_counter()
        begun = (folder / "checkpoints").is_dir()
        result = besag.train(self.recipe(changes), {"run.output": str(folder)}, resume=begun, quiet=True)
        told = {"seconds": since(began), "step": result.step, **result.metrics}
        write_whole(self.out / f"{name}.train.json", json.dumps(told, indent=1))
        print(
            f"   {name}: {told['seconds']:.0f} s, heldout_loss {result.metrics.get('heldout_loss', float('nan')):.3f}",
            flush=True,
        )

    def recipe(self, changes: dict[str, Any]) -> Any:
        from besag.training.recipe import recipe_of

        own = {**changes, **settings(self.options.set)}
        return recipe_of(toy_recipe() if self.options.toy else self.options.recipe, own)

    @staticmethod
    def files(folder: Path) -> dict[str, Any]:
        def file(name: str) -> list[str]:
            return [str(next(path for path in (folder / name, folder / f"{name}.xz") if path.exists()))]

        valid = "val" if (folder / "val.de").exists() else "dev"
        return {
            "data.source": file("train.de"), "data.target": file("train.en"),
            "data.valid_source": file(f"{valid}.de"), "data.valid_target": file(f"{valid}.en"),
        }  # fmt: skip

    # ---- decode

    def decode(self) -> None:
        for name in ("causal", "shallow", "causal-distilled"):
            for beam in (1, 5):
                self.decoded(f"{name}.beam{beam}", name, beam=beam)
        for name in ("masked-raw", "masked-distilled"):
            for passes in PASSES:
                self.decoded(f"{name}.mask_predict.{passes}", name, passes=passes, lengths=LENGTHS, choose="length")
        name, judge = "masked-distilled", self.model("causal")
        for passes in (1, 4, 10):
            common: dict[str, Any] = {"passes": passes, "lengths": LENGTHS}
            self.decoded(f"{name}.own.{passes}", name, **common, choose="own")
            self.decoded(f"{name}.mbr.{passes}", name, **common, choose="mbr")
            self.decoded(f"{name}.judge.{passes}", name, **common, judge=judge)
            self.decoded(f"{name}.one-length.{passes}", name, passes=passes)
            self.decoded(f"{name}.mended.{passes}", name, **common, choose="length", mend_stutters=True)
        for passes in EQUAL:
            common = {"lengths": LENGTHS, "choose": "length"}
            for kernel in ("adaptive", "grouped", "refine"):
                self.decoded(f"{name}.{kernel}.{passes}", name, kernel=kernel, passes=passes, **common)
            for kernel, option, range_ in (("entropy_bound", "bound", (0.0, 30.0)), ("threshold", "least", (1.0, 0.0))):
                value = self.calibrated(kernel, option, range_, passes)
                self.decoded(f"{name}.{kernel}.{passes}", name, kernel=kernel, **{option: value}, **common)

    def calibrated(self, kernel: str, option: str, ends: tuple[float, float], passes: int) -> float:
        """The option with which a kernel makes so many passes a target on the mean, on the validation set."""

        def find() -> dict[str, Any]:
            lm, (many, few) = self.model("masked-distilled"), ends
            for _ in range(12):
                middle = (many + few) / 2
                found = lm.translate(self.valid, kernel, lengths=LENGTHS, choose="length", **{option: middle})
                mean = found.passes / sum(row.tried for row in found)
                many, few = (middle, few) if mean > passes else (many, middle)
            return {option: middle, "passes": mean}

        return float(self.once(f"calibrated.{kernel}.{passes}.json", find)[option])

    def decoded(self, called: str, name: str, **options: Any) -> dict[str, Any]:
        def find() -> dict[str, Any]:
            found = self.model(name).translate(self.sources, **options)
            tried = sum(row.tried for row in found)
            return {
                "model": name, "how": found.how, "scores": found.chosen.split("/")[0], "seconds": found.seconds,
                "passes": found.passes / max(1, tried), "tried": tried / len(found), "texts": found.texts,
                "statuses": [str(row.status) for row in found],
            }  # fmt: skip

        return self.once(f"decoded.{called}.json", find)

    # ---- speed

    def speed(self) -> None:
        runs: list[tuple[str, dict[str, Any]]] = [
            *((name, {"beam": beam}) for name in ("causal", "shallow") for beam in (1, 5)),
            *(("masked-distilled", {"passes": passes}) for passes in PASSES),
            *(("masked-distilled", {"passes": passes, "lengths": LENGTHS, "choose": "length"}) for passes in (1, 4)),
        ]
        for name, options in runs:
            called = "-".join([name, *(f"{key}{value}" for key, value in options.items())])
            self.once(f"speed.{self.options.device}.{called}.json", lambda n=name, o=options: self.timed(n, o))

    def timed(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        lm = self.model(name)
        alone = self.sources[: self.options.alone]
        many = (self.sources * (1 + self.options.many // len(self.sources)))[: self.options.many]

        def one_by_one() -> None:
            for source in alone:
                lm.translate([source], **options)

        def together() -> None:
            lm.translate(many, **options)

        return {
            "model": name, "options": options, "device": self.device_name(),
            "alone_ms": 1000 * self.best(lm, one_by_one) / len(alone), "sentences_alone": len(alone),
            "together_ms": 1000 * self.best(lm, together) / len(many), "sentences_together": len(many),
        }  # fmt: skip

    def best(self, lm: Any, work: Callable[[], None]) -> float:
        """The least seconds of three runs after one to warm up; what was made of sources is forgotten before each."""
        found = []
        for _ in range(4):
            lm.engine.sources.forget()
            synchronise(self.options.device)
            began = time.perf_counter()
            work()
            synchronise(self.options.device)
            found.append(since(began))
        return min(found[1:])

    # ---- dependence

    def dependence(self) -> None:
        self.once("dependence.json", self.measured)

    def measured(self) -> dict[str, Any]:
        """For each sentence: one pass at the likeliest length, and the mutual information of its neighbours there."""
        lm = self.model("masked-distilled")
        lengths, rows = SourceLengths(lm.engine), []
        allowed = allowed_tokens(lm.conditionals)
        for number in range(min(self.options.dependent, len(self.sources))):
            [ids] = lm.conditionals.source_ids([self.sources[number]])
            [n] = lengths.likeliest(1, ids)
            sheet = blank(lm.conditionals, n)
            canvas = sheet.canvas(lm.conditionals, 1, allowed)
            text = lm.translate(self.sources[number], length=n, passes=1).texts[0]
            nats: list[float] = []
            if n > 1:
                at = torch.tensor(sheet.at)
                laws = pair_laws(
                    lm.engine, canvas.ids, torch.zeros(n - 1, dtype=torch.long), at[:-1], at[1:], candidates=20,
                    allowed=allowed, given=Given.one(ids, 1),
                )  # fmt: skip
                nats = laws.mutual_information().tolist()
            rows.append({"number": number, "text": text, "nats": nats, "mean": float(np.mean(nats)) if nats else 0.0})
        return {"rows": rows}

    # ---- evaluate

    def evaluate(self) -> None:
        from besag.rescoring.metrics import Translation
        from besag.rescoring.significance import paired_bootstrap

        metrics = {name: Translation(name) for name in ("bleu", "chrf")}  # type: ignore[arg-type]
        files = sorted(self.out.glob("decoded.*.json"))
        decoded = {file.name.removeprefix("decoded.").removesuffix(".json"): read(file) for file in files}
        counts = {
            name: {of: metric.statistics(self.references, one["texts"]) for of, metric in metrics.items()}
            for name, one in decoded.items()
        }
        bleu = {name: metrics["bleu"].value(own["bleu"].sum(0)) for name, own in counts.items()}
        baseline = max(
            (one for one in bleu if one.startswith("causal") and one.endswith("beam5")), key=bleu.__getitem__
        )
        rows = []
        for name, one in decoded.items():
            row = {key: one[key] for key in ("model", "how", "scores", "passes", "tried", "seconds")}
            for of, metric in metrics.items():
                mine = counts[name][of]
                low, high = interval(metric, mine)
                against = paired_bootstrap(metric, mine, counts[baseline][of])
                row |= {of: metric.value(mine.sum(0)), f"{of}_low": low, f"{of}_high": high,
                        f"{of}_against_baseline": against._asdict()}  # fmt: skip
            rows.append(
                {
                    "name": name,
                    **row,
                    "stutter": stutter(one["texts"]),
                    "left_out": len(one["statuses"]) - one["statuses"].count("ok"),
                }
            )
        equal = []
        for passes, kernel in product(EQUAL, ("adaptive", "entropy_bound", "threshold", "grouped", "refine")):
            names = [f"masked-distilled.{one}.{passes}" for one in (kernel, "mask_predict")]
            if all(one in counts for one in names):
                mine, plain = (counts[one]["bleu"] for one in names)
                more = paired_bootstrap(metrics["bleu"], mine, plain)._asdict()
                equal.append({"passes": passes, "kernel": kernel, **more})
        told = {
            "besag": besag.__version__, "python": platform.python_version(), "torch": torch.__version__,
            "sentences": len(self.sources), "signatures": {of: metric.signature for of, metric in metrics.items()},
            "baseline": baseline, "rows": rows, "kernels_against_mask_predict": equal,
            "references": {"stutter": stutter(self.references)},
            "trained": {file.name.split(".")[0]: read(file) for file in sorted(self.out.glob("*.train.json"))},
            "speed": [read(file) for file in sorted(self.out.glob("speed.*.json"))],
            "dependence": self.by_dependence(metrics["bleu"]),
        }  # fmt: skip
        for path in filter(None, (self.out / "results.json", self.options.results)):
            write_whole(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
        for row in sorted(rows, key=lambda one: -one["bleu"]):
            about = f"[{row['bleu_low']:.2f}, {row['bleu_high']:.2f}]  {row['passes']:5.2f} passes"
            print(f"   {row['bleu']:6.2f} {about}  {row['name']}")

    def by_dependence(self, metric: Any, bins: int = 4) -> list[dict[str, Any]]:
        """Stutter and BLEU of one pass, for sentences whose neighbours depend less and more."""
        if not (self.out / "dependence.json").exists():
            return []
        rows = sorted(read(self.out / "dependence.json")["rows"], key=lambda row: row["mean"])
        found = []
        for some in np.array_split(np.arange(len(rows)), min(bins, len(rows))):
            own = [rows[at] for at in some]
            counts = metric.statistics([self.references[row["number"]] for row in own], [row["text"] for row in own])
            low, high = interval(metric, counts)
            told = {"bleu": metric.value(counts.sum(0)), "bleu_low": low, "bleu_high": high}
            nats = float(np.mean([row["mean"] for row in own]))
            found.append(
                {"sentences": len(own), "nats": nats, **told, "stutter": stutter([row["text"] for row in own])}
            )
        return found

    # ---- figures

    def figures(self) -> None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        told = read(self.out / "results.json")
        folder = self.out if self.options.toy else HERE.parent / "docs" / "img"
        _, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
        self.draw_passes(axes[0], told)
        self.draw_speed(axes[1], told)
        bins = told["dependence"]
        nats, low, high = ([one[key] for one in bins] for key in ("nats", "bleu_low", "bleu_high"))
        axes[2].plot(nats, [one["stutter"] for one in bins], "o-", color="tab:red", ms=4)
        axes[2].set(xlabel="mutual information of neighbours (nats)", title="one pass")
        axes[2].set_ylabel("words said twice (‰)", color="tab:red")
        beside = axes[2].twinx()
        beside.fill_between(nats, low, high, color="tab:blue", alpha=0.2, lw=0)
        beside.plot(nats, [one["bleu"] for one in bins], "o-", color="tab:blue", ms=4)
        beside.set_ylabel("BLEU", color="tab:blue")
        axes[2].locator_params(axis="x", nbins=4)
        pyplot.savefig(folder / "translation.png", dpi=150)
        print(f"   {folder / 'translation.png'}")

    @staticmethod
    def draw_passes(axis: Any, told: dict[str, Any]) -> None:
        rows = {row["name"]: row for row in told["rows"]}
        for start, label in (
            ("masked-raw.mask_predict", "pairs as they are"),
            ("masked-distilled.mask_predict", "distilled"),
            ("masked-distilled.adaptive", "distilled, adaptive"),
            ("masked-distilled.entropy_bound", "distilled, entropy_bound"),
        ):
            own = sorted((row["passes"], row["bleu"]) for name, row in rows.items() if name.startswith(f"{start}."))
            axis.plot(*zip(*own, strict=True), "o-", ms=3, label=label)
        axis.axhline(rows[told["baseline"]]["bleu"], color="grey", ls="--", label="left to right, beam 5")
        axis.set(xlabel="passes a target", ylabel="BLEU", title="quality by passes", xticks=PASSES)
        axis.legend(fontsize=7)

    @staticmethod
    def draw_speed(axis: Any, told: dict[str, Any]) -> None:
        device = told["speed"][0]["device"]
        own = [one for one in told["speed"] if one["device"] == device]
        names = [
            " ".join([one["model"].split("-")[0], *(f"{k} {v}" for k, v in one["options"].items())]) for one in own
        ]
        height = np.arange(len(own))
        axis.barh(height - 0.2, [one["alone_ms"] for one in own], 0.4, label="one at a time")
        axis.barh(height + 0.2, [one["together_ms"] for one in own], 0.4, label="many at once")
        axis.set(xscale="log", xlabel="ms a sentence", title=device)
        axis.set_yticks(height, names, fontsize=6)
        axis.legend(fontsize=7)

    # ---- what all of them need

    def model(self, name: str) -> Any:
        if name not in self._loaded:
            if len(self._loaded) > 2:
                self._loaded.clear()
            self._loaded[name] = besag.load(
                self.out / name / "model", device=self.options.device, progress=False, name=name
            )
        return self._loaded[name]

    def once(self, name: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is in the file, or else what is found, which is then there."""
        path = self.out / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(find(), ensure_ascii=False) + "\n")
            print(f"   {name}", flush=True)
        return read(path)

    def device_name(self) -> str:
        return torch.cuda.get_device_name() if self.options.device.startswith("cuda") else platform.machine()


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def lines(path: Path) -> list[str]:
    path = path if path.exists() else path.with_name(path.name.replace("val.", "dev."))
    return path.read_text("utf-8").splitlines()


def since(began: float) -> float:
    return time.perf_counter() - began


def synchronise(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def settings(said: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE, the value as JSON where it is any."""
    found = {}
    for one in said:
        key, _, value = one.partition("=")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def interval(metric: Any, counts: Any, draws: int = 1000) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    found = [metric.value(counts[generator.integers(len(counts), size=len(counts))].sum(0)) for _ in range(draws)]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def stutter(texts: Sequence[str]) -> float:
    """Words that repeat the one before, a thousand words that have one."""
    counts = np.array([count(text) for text in texts], float).reshape(-1, 2).sum(0)
    return float(1000 * counts[0] / max(1, counts[1]))


# ---- a toy


def toy(folder: Path) -> Path:
    """A language of twenty words, translated one by one into words that end otherwise, adjectives after nouns."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(0)
    for name, size in (("train", 600), ("val", 40), ("test", 40)):
        sources = [draw.choices(TOY.split(), k=draw.randint(2, 6)) for _ in range(size)]
        targets = [[f"{word}o" for word in reversed(source)] for source in sources]
        for side, texts in (("de", sources), ("en", targets)):
            (folder / f"{name}.{side}").write_text("".join(f"{' '.join(text)}\n" for text in texts))
    return folder


def toy_recipe() -> dict[str, Any]:
    layers = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
              "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "dropout": 0.0}  # fmt: skip
    return {
        "data": {"max_length": 40, "batch_tokens": 1024}, "tokenizer": {"size": 300},
        "model": {"family": "bart", "decoder": "masked", "config": layers},
        "masking": {"rate_law": "uniform", "options": {"count": "up"}},
        "objective": {"name": "mlm", "length": 0.1}, "optimizer": {"lr": 5e-3}, "schedule": {"steps": 150},
        "run": {"plot": False, "threads": 1, "log_every": 50}, "evaluation": {"sentences": 30},
    }  # fmt: skip


if __name__ == "__main__":
    main()
