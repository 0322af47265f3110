"""What `translation.py` found, beside references: BLEU and chrF with intervals, each against the baseline; a figure.

Needs sacrebleu and matplotlib, and no model: it can be done where nothing was trained.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

import besag
from besag.files.whole import write_whole
from besag.rescoring.metrics import Translation
from besag.rescoring.significance import paired_bootstrap
from besag.samplers.kernels.stutter import count
from translation_decoded import EQUAL, KERNELS, PASSES

METRICS = ("bleu", "chrf")
COLUMNS = ("model", "how", "scores", "passes", "tried", "seconds")
ACROSS = 3  # panels of the figure
BINS = 4  # of sentences, by how strongly neighbours depend


def judge(study: Any) -> None:
    metrics = {name: Translation(name) for name in METRICS}  # type: ignore[arg-type]
    decoded = {path.name[len("decoded.") : -len(".json")]: read(path) for path in sorted(study.out.glob("decoded.*"))}
    for one in decoded.values():
        one["texts"] = one["texts"][: len(study.references)]  # --sentences may be fewer than were decoded
    counts = {
        name: {of: metric.statistics(study.references, one["texts"]) for of, metric in metrics.items()}
        for name, one in decoded.items()
    }
    bleu = {name: metrics["bleu"].value(own["bleu"].sum(0)) for name, own in counts.items()}
    beams = [name for name in bleu if name.startswith("causal") and name.endswith("beam5")]
    baseline, best = max(beams, key=bleu.__getitem__), study.best
    rows = []
    for name, one in decoded.items():
        row = {key: one[key] for key in COLUMNS}
        for of, metric in metrics.items():
            mine = counts[name][of]
            low, high = interval(metric, mine)
            against = paired_bootstrap(metric, mine, counts[baseline][of])._asdict()
            row |= {
                of: metric.value(mine.sum(0)),
                f"{of}_low": low,
                f"{of}_high": high,
                f"{of}_against_baseline": against,
            }
        row["bleu_against"] = {
            beam: paired_bootstrap(metrics["bleu"], counts[name]["bleu"], counts[beam]["bleu"])._asdict()
            for beam in beams
            if beam not in (name, baseline)
        }
        control = name.replace(one["model"], study.options.against or "", 1)
        if control != name and control in counts:
            more = paired_bootstrap(metrics["bleu"], counts[name]["bleu"], counts[control]["bleu"])
            row["bleu_against_control"] = {"control": control, **more._asdict()}
        left_out = sum(status != "ok" for status in one["statuses"])
        rows.append({"name": name, **row, "stutter": stutter(one["texts"]), "left_out": left_out})
    told = {
        "besag": besag.__version__, "python": platform.python_version(), "torch": torch.__version__,
        "sentences": len(study.sources), "signatures": {of: metric.signature for of, metric in metrics.items()},
        "baseline": baseline, "best": best, "rows": rows,
        "kernels_against_mask_predict": equal(metrics["bleu"], counts, best),
        "references": {"stutter": stutter(study.references)},
        "distilled": [read(path) for path in study.out.glob("distilled.json")],
        "calibrated": {path.name.split(".", 1)[1][:-5]: read(path) for path in sorted(study.out.glob("calibrated.*"))},
        "trained": {path.name.split(".")[0]: read(path) for path in sorted(study.out.glob("*.train.json"))},
        "speed": [read(path) for path in sorted(study.out.glob("speed.*.json"))],
        "dependence": by_dependence(study, metrics["bleu"]), "pairs": by_pair(study),
    }  # fmt: skip
    for path in filter(None, (study.out / "results.json", study.options.results)):
        write_whole(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    for row in sorted(rows, key=lambda one: -one["bleu"]):
        about = f"[{row['bleu_low']:.2f}, {row['bleu_high']:.2f}]  {row['passes']:5.2f} passes"
        print(f"   {row['bleu']:6.2f} {about}  {row['stutter']:5.1f} ‰  {row['name']}")


def best(study: Any) -> None:
    """The masked model with the largest mean of its two BLEU on the validation set, by whichever way is the better."""
    metric, found = Translation("bleu"), dict[str, float]()
    for path in sorted(study.out.glob("valid.*.json")):
        one = read(path)
        found[path.name[len("valid.") : -len(".json")]] = metric.value(
            metric.statistics(study.valid_references, one["texts"]).sum(0)
        )
    ways = sorted({name.rpartition(".")[0] for name in found})
    means = {
        way: float(np.mean([value for name, value in found.items() if name.startswith(f"{way}.")])) for way in ways
    }
    chosen = max(means, key=means.__getitem__)
    told = {"best": chosen.partition(".")[0], "way": chosen.partition(".")[2], "bleu": found, "means": means}
    write_whole(study.out / "best.json", json.dumps(told, indent=1) + "\n")
    print(f"   {json.dumps(found, indent=1)}\n   the best on the validation set: {chosen}")


def equal(metric: Any, counts: dict[str, Any], best: str) -> list[dict[str, Any]]:
    """Kernels against mask_predict at as many passes, one length each, on the same draws."""
    found = []
    for passes, kernel in product(EQUAL, KERNELS):
        mine, plain = (counts.get(f"{best}.{one}.{passes}") for one in (kernel, "one-length"))
        if mine and plain:
            more = paired_bootstrap(metric, mine["bleu"], plain["bleu"])._asdict()
            found.append({"passes": passes, "kernel": kernel, **more})
    return found


def by_dependence(study: Any, metric: Any) -> list[dict[str, Any]]:
    """Stutter and BLEU of one pass, for sentences whose neighbours depend less and more."""
    if not (study.out / "dependence.json").exists():
        return []
    rows = sorted(read(study.out / "dependence.json")["rows"], key=lambda row: row["mean"])
    found = []
    for some in np.array_split(np.arange(len(rows)), min(BINS, len(rows))):
        own = [rows[at] for at in some]
        texts = [row["text"] for row in own]
        counts = metric.statistics([study.references[row["number"]] for row in own], texts)
        low, high = interval(metric, counts)
        found.append({
            "sentences": len(own), "words": float(np.mean([len(text.split()) for text in texts])),
            "nats": float(np.mean([row["mean"] for row in own])), "stutter": stutter(texts),
            "bleu": metric.value(counts.sum(0)), "bleu_low": low, "bleu_high": high,
        })  # fmt: skip
    return found


def by_pair(study: Any) -> list[dict[str, Any]]:
    """How often the second of two neighbours repeats the first, by how strongly these two depend, in any sentence.

    Of targets that their own tokenizer reads as they were written, so that it is known who was whose neighbour.
    """
    folder = study.out / study.best / "model"
    if not ((study.out / "dependence.json").exists() and (folder / "tokenizer.json").exists()):
        return []
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    nats, twice = list[float](), list[bool]()
    for row in read(study.out / "dependence.json")["rows"]:
        ids = tokenizer.encode(row["text"], add_special_tokens=False).ids
        if len(ids) == len(row["nats"]) + 1 > 1:
            nats += row["nats"]
            twice += [one == other for one, other in pairwise(ids)]
    order = np.argsort(nats)
    parts = np.array_split(order, BINS) if len(order) >= BINS else []
    return [
        {"pairs": len(own), "nats": float(np.mean(np.array(nats)[own])), "twice": float(np.mean(np.array(twice)[own]))}
        for own in parts
    ]


def interval(metric: Any, counts: Any, draws: int = 1000) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    found = [metric.value(counts[generator.integers(len(counts), size=len(counts))].sum(0)) for _ in range(draws)]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def stutter(texts: Sequence[str]) -> float:
    """Words that repeat the one before, a thousand words that have one."""
    counts = np.array([count(text) for text in texts], float).reshape(-1, 2).sum(0)
    return float(1000 * counts[0] / max(1, counts[1]))


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


# ---- the figure


def figures(study: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    told = read(study.out / "results.json")
    folder = study.out if study.options.toy else Path(__file__).parent.parent / "docs" / "img"
    devices = sorted({one["device"] for one in told["speed"]})
    panels: list[Callable[[Any], None]] = [
        lambda axis: draw_passes(axis, told),
        *(lambda axis, own=device: draw_speed(axis, told, own) for device in devices),
        *([lambda axis: draw_dependence(axis, told["dependence"])] if told["dependence"] else []),
        *([lambda axis: draw_pairs(axis, told["pairs"])] if told["pairs"] else []),
    ]
    rows = 1 if len(panels) <= ACROSS else 2
    across = -(-len(panels) // rows)
    size = (4.4 * across, 3.6 * rows)
    _, axes = pyplot.subplots(rows, across, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for draw, axis in zip(panels, axes.flat, strict=False):
        draw(axis)
    pyplot.savefig(folder / "translation.png", dpi=130)
    print(f"   {folder / 'translation.png'}")


def draw_passes(axis: Any, told: dict[str, Any]) -> None:
    best = told["best"]
    masked = sorted({row["model"] for row in told["rows"] if row["model"].startswith("masked")})
    several = [(f"{name}.mask_predict", name, "o-") for name in masked]
    ways = {"judge": "s:", "one-length": "o--", "adaptive": "^--", "entropy_bound": "^--"}
    others = [(f"{best}.{way}", f"{best}, {way}", style) for way, style in ways.items()]
    for start, label, style in (*several, *others):
        own = sorted((row["passes"], row["bleu"]) for row in told["rows"] if row["name"].startswith(f"{start}."))
        if own:
            axis.plot(*zip(*own, strict=True), style, ms=3, lw=1, label=label)
    height = next(row["bleu"] for row in told["rows"] if row["name"] == told["baseline"])
    axis.axhline(height, color="grey", ls="--", lw=1, label=f"{told['baseline']}")
    axis.set(xlabel="passes a target", ylabel="BLEU", title="quality by passes", xticks=PASSES)
    axis.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def draw_speed(axis: Any, told: dict[str, Any], device: str) -> None:
    own = sorted((one for one in told["speed"] if one["device"] == device), key=lambda one: -one["alone_ms"])
    names = [" ".join([one["model"], *(f"{k} {v}" for k, v in one["options"].items() if k != "choose")]) for one in own]
    height = np.arange(len(own))
    axis.barh(height + 0.2, [one["alone_ms"] for one in own], 0.4, label="one at a time")
    axis.barh(height - 0.2, [one["together_ms"] for one in own], 0.4, label="many at once")
    room = 1.5 if len(own) > 5 else 0.6  # above, for the legend
    axis.set(xscale="log", xlabel="ms a sentence", title=device, ylim=(-0.6, len(own) - 1 + room))
    axis.set_yticks(height, names, fontsize=6)
    axis.legend(fontsize=6)


def draw_pairs(axis: Any, bins: list[dict[str, Any]]) -> None:
    axis.plot([one["nats"] for one in bins], [100 * one["twice"] for one in bins], "o-", color="tab:red", ms=4)
    axis.set(xlabel="mutual information of two neighbours (nats)", title="one pass, pair by pair", ylim=(0, None))
    axis.set_ylabel("token repeats the one before (%)")


def draw_dependence(axis: Any, bins: list[dict[str, Any]]) -> None:
    nats, low, high = ([one[key] for one in bins] for key in ("nats", "bleu_low", "bleu_high"))
    axis.plot(nats, [one["stutter"] for one in bins], "o-", color="tab:red", ms=4)
    axis.set(xlabel="mutual information of neighbours (nats)", title="one pass, sentence by sentence")
    axis.set_ylabel("words said twice (‰)", color="tab:red")
    beside = axis.twinx()
    beside.fill_between(nats, low, high, color="tab:blue", alpha=0.2, lw=0)
    beside.plot(nats, [one["bleu"] for one in bins], "o-", color="tab:blue", ms=4)
    beside.set_ylabel("BLEU", color="tab:blue")
    axis.locator_params(axis="x", nbins=4)
