"""Joints of two places: besag's seconds a pair, step by step, beside the published way of doing it.

    PYTHONPATH=src python3 benchmarks/joints.py --shape bert-base --device cuda
    PYTHONPATH=src python3 benchmarks/joints.py --shape embedded --no-naive
    PYTHONPATH=src python3 benchmarks/joints.py --shape tiny          # seconds: does the script itself work?

`bert-base` is the published shape with random weights (V = 28,996, 20 tokens), `embedded` the embedded model (15
tokens), `candidates` the same on the 200 likeliest tokens of each place. A step's seconds are the median over pairs,
after one pair that compiles, allocates and finds the batch size. Outcomes are the whole width of the head, as
published.

Random weights are run twice (joint_shapes.py). As drawn, all tokens are nearly equally likely whatever stands
elsewhere, and the fixed points are found at once. Sharpened, conditionals have the entropy of a trained model's and
places depend on each other; those seconds are the realistic ones.

The published way (naive_joints.py) runs in float32, as it did. Before anything is printed, its numbers must be besag's
in float32: for each construction that both have, the negative log-likelihoods of the text's own tokens and the forward
divergences at them and over all contexts.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers

import besag
import joint_shapes
import naive_joints
from besag.joints import CONSTRUCTIONS, Construction, asking, construction, metrics, passes
from besag.places import places
from joint_shapes import SHAPES, Pair, Shape

T = TypeVar("T")

RESULTS = Path(__file__).parent / "results"
CHECKED = ("pair_nll", "unary_nll", "gold_forward", "all_forward")
TOLERANCE = 1e-3  # nats, or of the number where it is above 1
MARK = Path("/proc/self/clear_refs")  # Linux: writing 5 to it starts the high-water mark of memory again


PAPER = "ag, 40 plain steps"
FURTHER: dict[str, Construction] = {  # timed too, but no part of the total
    PAPER: construction("ag", paper=True),
    "ag, marginal weights": construction("ag", weights="marginal"),
}


class Clock:
    """Runs steps and adds up the seconds of each name."""

    def __init__(self, device: str) -> None:
        self.device, self.seconds = device, {}

    def __call__(self, name: str, step: Callable[[], T]) -> T:
        self._wait()
        start = time.perf_counter()
        result = step()
        self._wait()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result

    def _wait(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()


def main() -> None:
    arguments = _arguments()
    shape = SHAPES[arguments.shape]
    report: dict[str, Any] = {"machine": _machine(arguments), "shape": arguments.shape, "tokens": shape.tokens}
    report["runs"] = [run(*case, shape, arguments) for case in joint_shapes.build(arguments.shape, arguments.pairs + 1)]
    arguments.json.parent.mkdir(exist_ok=True, parents=True)
    arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))


def run(
    name: str, model: Any, tokenizer: Any, pairs: list[Pair], shape: Shape, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Everything measured on one model: besag on all pairs but the first, the published way on the second."""
    lm = besag.load((copy.deepcopy(model), tokenizer), device=arguments.device, dtype=arguments.dtype, progress=False)
    ask(lm, pairs[0], shape.candidates)
    _start_peak(arguments.device)
    timed = [ask(lm, pair, shape.candidates) for pair in pairs[1:]]
    found: dict[str, Any] = {
        "weights": name,
        "dtype": lm.dtype,
        "width": lm.conditionals.width,
        "seconds": {step: statistics.median(seconds[step] for seconds, _ in timed) for step in timed[0][0]},
        "pairs": [facts for _, facts in timed],
        "peak_gib": _peak(arguments.device),
    }
    if arguments.naive and name != "random" and shape.candidates == "all":
        found["naive"] = compare(model, tokenizer, pairs[1], arguments.device)
    return found


def ask(lm: Any, pair: Pair, candidates: asking.Candidates) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Seconds of each step for one pair, and what the steps say of themselves."""
    clock = Clock(lm.conditionals.device.type)
    where = places.find(lm.vocabulary, pair.text, pair.positions)
    unaries = clock("conditionals", lambda: asking.unaries(lm.engine, where, outcomes="all", candidates=candidates))
    some = unaries.log_b[:: max(1, len(unaries.log_b) // 256)]
    facts: dict[str, dict[str, Any]] = {"conditionals": {"entropy": float(-(some.exp() * some).sum(1).mean())}}
    facts["compatibility"] = {"mean_square": clock("compatibility", lambda: passes.incompatibility(unaries))}
    for name, chosen in ({name: kind() for name, kind in CONSTRUCTIONS.items()} | FURTHER).items():
        built = clock(name, lambda chosen=chosen: chosen.build(unaries))
        measured = clock(f"metrics of {name}", lambda built=built: metrics.measure(unaries, built))
        facts[name] = {"status": built.status, **built.details, **measured._asdict()}
    return clock.seconds, facts


def compare(model: Any, tokenizer: Any, pair: Pair, device: str) -> dict[str, Any]:
    """The published way on one pair, after one batch to warm up; ends the run where its numbers are not besag's."""
    lm = besag.load((copy.deepcopy(model), tokenizer), device=device, dtype="float32", progress=False)
    _, ours = ask(lm, pair, "all")
    where = places.find(lm.vocabulary, pair.text, pair.positions)
    assert where.gold is not None
    del lm
    network = copy.deepcopy(model).to(device)
    with torch.inference_mode():
        network(torch.from_numpy(where.ids).to(device)[None].repeat(naive_joints.BATCH, 1))
    _start_peak(device)
    clock = Clock(device)
    theirs, compatibility = naive_joints.study(network, where.ids, where.at, where.gold, tokenizer.mask_token_id, clock)
    pairs = [("compatibility", ours["compatibility"]["mean_square"], compatibility)]
    for name, measured in theirs.items():
        mine = ours[PAPER if name == "ag" else name]
        pairs += [(f"{key} of {name}", mine[key], getattr(measured, key)) for key in CHECKED]
    for what, one, other in pairs:
        if not abs(one - other) <= TOLERANCE * max(1.0, abs(other)):
            sys.exit(f"{what} is {one} here and {other} in the naive implementation: nothing is timed")
    return {
        "seconds": clock.seconds,
        "peak_gib": _peak(device),
        "largest_difference": max(abs(one - other) for _, one, other in pairs),
    }


def table(report: dict[str, Any]) -> str:
    machine, lines = report["machine"], []
    for run in report["runs"]:
        seconds, facts, first = run["seconds"], run["pairs"], run["pairs"][0]
        built = [name for name in first if f"metrics of {name}" in seconds]
        lines += [
            f"{report['shape']}, {run['weights']} weights, V = {run['width']:,}, {report['tokens']} tokens; "
            f"{run['dtype']}, {machine['device']}, torch {machine['torch']}, {machine['date']}. Pairs: {len(facts)}.",
            f"A conditional has {_mean(facts, 'conditionals', 'entropy'):.1f} nats; the two places share "
            f"{_mean(facts, 'ag', 'mutual_information'):.2g} nats under ag. Peak {run['peak_gib']:.1f} GiB.",
            "",
            "| step | median seconds | its metrics | readings | residual | log q of the text's own tokens |",
            "|---|--:|--:|--:|--:|--:|",
            *(f"| {name} | {seconds[name]:.4f} | | | | |" for name in ("conditionals", "compatibility")),
        ]
        for name in built:
            median = {key: _median(facts, name, key) for key in ("iterations", "residual")}
            readings = f"{median['iterations']:.0f}" if median["iterations"] is not None else ""
            residual = f"{median['residual']:.1e}" if median["residual"] is not None else ""
            log_q = -2 * _mean(facts, name, "pair_nll")
            lines.append(
                f"| {name} | {seconds[name]:.4f} | {seconds[f'metrics of {name}']:.4f} | {readings} | {residual} "
                f"| {log_q:.3f} |"
            )
        own = ["conditionals", "compatibility", *CONSTRUCTIONS, *(f"metrics of {name}" for name in CONSTRUCTIONS)]
        lines += [f"| **a pair, the seven constructions** | **{sum(seconds[name] for name in own):.3f}** | | | | |", ""]
        unsettled = {name for pair in facts for name in built if pair[name]["status"] != "ok"}
        lines += [f"Not converged on some pair: {', '.join(sorted(unsettled))}.", ""] if unsettled else []
        if "naive" in run:
            lines += _beside(run["naive"], seconds, run["peak_gib"])
    return "\n".join(lines)


def _beside(naive: dict[str, Any], seconds: dict[str, float], peak: float) -> Iterator[str]:
    """The steps that both have; Arnold-Gokhale by 40 plain steps in both."""
    ours = {"conditionals": seconds["conditionals"], "compatibility": seconds["compatibility"], "metrics": 0.0}
    for name in naive_joints.CONSTRUCTIONS:
        same = PAPER if name == "ag" else name
        ours[name] = seconds[same]
        ours["metrics"] += seconds[f"metrics of {same}"]
    yield f"Beside the published way, float32; largest difference {naive['largest_difference']:.1e} nats."
    yield from ("", "| step | naive | besag | × |", "|---|--:|--:|--:|")
    for name in ("conditionals", "compatibility", *naive_joints.CONSTRUCTIONS, "metrics"):
        theirs = naive["seconds"][name]
        yield f"| {name} | {theirs:.4f} | {ours[name]:.4f} | {theirs / ours[name]:.1f} |"
    whole, own = sum(naive["seconds"].values()), sum(ours.values())
    yield f"| **a pair** | **{whole:.3f}** | **{own:.3f}** | **{whole / own:.1f}** |"
    yield f"| peak GiB | {naive['peak_gib']:.1f} | {peak:.1f} | |"
    yield ""


def _mean(facts: list[dict[str, Any]], step: str, key: str) -> float:
    return statistics.fmean(pair[step][key] for pair in facts)


def _median(facts: list[dict[str, Any]], step: str, key: str) -> float | None:
    values = [pair[step][key] for pair in facts if key in pair[step]]
    return statistics.median(values) if values else None


def _start_peak(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    elif MARK.exists():
        MARK.write_text("5")


def _peak(device: str) -> float:
    """GiB: of tensors on CUDA, of the whole process on a CPU."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def _machine(arguments: argparse.Namespace) -> dict[str, Any]:
    on_gpu = arguments.device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name() if on_gpu else f"cpu, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Joints of two places: seconds a pair, and beside the published way.")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="embedded")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", help="of the network; besag's own choice for the device by default")
    parser.add_argument("--pairs", type=int, default=5, help="timed, after one to warm up")
    parser.add_argument(
        "--naive", action=argparse.BooleanOptionalAction, default=True, help="run the published way too"
    )
    parser.add_argument("--json", type=Path, help="where everything measured goes (benchmarks/results/)")
    arguments = parser.parse_args()
    arguments.json = arguments.json or RESULTS / f"joints-{arguments.shape}.json"
    return arguments


if __name__ == "__main__":
    main()
