"""besag beside its peers: same model object, same sentences, same dtype, one process, alternating runs.

    python benchmarks/scoring.py                  # minutes: two shapes, few sentences
    python benchmarks/scoring.py --full           # hours on two cores: what the documentation quotes
    python benchmarks/scoring.py --shapes xlmr-base --sets snli --count 16 --rounds 3

For each shape and set of sentences one child process builds the model in float32, checks that every contender gives the
same number for every token to 1e-4 (`original` and `within_word_l2r` on the shortest sentences before the clock starts,
`original` on all of them in the timed runs), tunes each peer's batch size (see contenders.py), then lets the contenders
take turns. The ratio is the median over rounds of peer's seconds ÷ besag's seconds. Peak memory is the high-water mark
(ru_maxrss) of one more child process for each contender while it scores, beside that of a child that only holds the
model; this parent never imports torch, so its children start small.

A markdown table goes to stdout, everything measured to benchmarks/results/. Sentences are described in sentences.py,
shapes in shapes.py. A contender whose logits alone would pass the limit of contenders.py is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOLERANCE = 1e-4
RESULTS = Path(__file__).parent / "results"
NAMES = ("besag", "lm-pub-quiz", "lm-pub-quiz, one by one", "minicons")
QUICK = {
    "shapes": "embedded,bert-base",
    "count": 8,
    "mixed_count": 4,
    "longest": 40,
    "rounds": 3,
    "minutes": 1.0,
}
FULL = {
    "shapes": "embedded,bert-base,roberta-base,xlmr-base",
    "count": 48,
    "mixed_count": 32,
    "longest": 400,
    "rounds": 5,
    "minutes": 20.0,
}


def main() -> None:
    arguments = _arguments()
    if arguments.child:
        print(json.dumps(_CHILDREN[arguments.child](arguments)))
        return
    report: dict[str, Any] = {"settings": {k: v for k, v in vars(arguments).items() if k not in ("child", "output")}}
    report["cases"] = []
    busy = os.getloadavg()[0]  # well above 0: others were at work too, and the seconds say little
    for shape in arguments.shapes.split(","):
        for kind in arguments.sets.split(","):
            case = _spawn("race", arguments, shape, kind)
            report["machine"] = case.pop("machine") | {"load_before": busy}
            memory = {"model alone": _spawn("memory", arguments, shape, kind, "")}
            for name, runs in case["contenders"].items():
                if "seconds" in runs:
                    memory[name] = _spawn("memory", arguments, shape, kind, name, runs["batch_size"])
            report["cases"].append({"shape": shape, "sentences": kind, **case, "peak_mib": memory})
            arguments.output.parent.mkdir(exist_ok=True)
            arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            print(f"{shape}, {kind}: done", file=sys.stderr)
    print(table(report))


def race(arguments: argparse.Namespace) -> dict[str, Any]:
    """One case: check the numbers, tune, then time the contenders turn by turn."""
    import contenders

    model, tokenizer, texts = _build(arguments)
    scorers, outcome = {}, {}
    for name in arguments.contenders.split(";"):
        size = contenders.tuned(name, model, tokenizer, texts)
        if size is None:
            outcome[name] = {"left_out": "its logits alone pass the limit"}
            continue
        scorers[name] = contenders.CONTENDERS[name](model, tokenizer, size)
        outcome[name] = {"batch_size": size or "its own", "seconds": [], "cpu_seconds": []}
    shortest = sorted(texts, key=len)[:4]
    difference = {metric: _check(scorers, shortest, metric) for metric in ("original", "within_word_l2r")}
    begun = time.perf_counter()
    for done in range(arguments.rounds):
        if done and time.perf_counter() - begun > 60 * arguments.minutes:
            break
        found = {}
        for name, score in scorers.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            found[name] = score(texts, "original")
            outcome[name]["seconds"].append(round(time.perf_counter() - start, 4))
            outcome[name]["cpu_seconds"].append(round(time.process_time() - start_cpu, 4))
        difference["original"] = max(difference["original"], _difference(found))
    tokens = [len(ids) - 2 for ids in tokenizer(texts)["input_ids"]]
    lengths = {"count": len(texts), "mean": round(sum(tokens) / len(texts), 1), "max": max(tokens)}
    return {"machine": _machine(), "tokens": lengths, "largest_difference": difference, "contenders": outcome}


def memory(arguments: argparse.Namespace) -> int:
    """The high-water mark in MiB of this process while one contender (or none) scores once."""
    model, tokenizer, texts = _build(arguments)
    mark = Path("/proc/self/clear_refs")
    if (
        mark.exists()
    ):  # Linux: the mark starts again from here, since building a random model peaks higher than it stays
        mark.write_text("5")
    if arguments.contenders:
        import contenders

        size = int(arguments.batch_size) if arguments.batch_size.isdigit() else 0
        contenders.CONTENDERS[arguments.contenders](model, tokenizer, size)(texts, "original")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10))  # Linux counts KiB, macOS bytes


def table(report: dict[str, Any]) -> str:
    """One row for each contender of each case."""
    machine = report["machine"]
    lines = [
        f"{machine['cores']} cores, {machine['threads']} threads, torch {machine['torch']}, transformers "
        f"{machine['transformers']}, float32, {machine['date']}.",
        "×: how many times longer than besag a contender takes, by the clock and in processor time (median of rounds).",
        "",
        "| model | sentences | contender | batch | seconds | × | × CPU | peak MiB | of which model |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for case in report["cases"]:
        runs, texts, peak = case["contenders"], case["tokens"], case["peak_mib"]
        tokens = f"{texts['count']}, mean {texts['mean']}, max {texts['max']} tokens"
        what = f"{case['shape']} | {case['sentences']}: {tokens}"
        first = next(name for name in runs if name in peak)  # besag, unless it was not asked to run
        for name, run in runs.items():
            if name not in peak:
                lines.append(f"| {what} | {name} | | {run['left_out']} | | | | |")
                continue
            clock, cpu = (_ratio(run[key], runs[first][key]) for key in ("seconds", "cpu_seconds"))
            lines.append(
                f"| {what} | {name} | {run['batch_size']} | {statistics.median(run['seconds']):.2f} | {clock:.2f} "
                f"| {cpu:.2f} | {peak[name]} | {peak['model alone']} |"
            )
    worst = max(value for case in report["cases"] for value in case["largest_difference"].values())
    return "\n".join([*lines, "", f"Largest difference of a contender to the first on any token: {worst:.1e} nats."])


def _ratio(theirs: list[float], ours: list[float]) -> float:
    """The median over rounds: each round's runs stood side by side."""
    return statistics.median(peer / own for peer, own in zip(theirs, ours, strict=True))


def _check(scorers: dict[str, Any], texts: list[str], metric: str) -> float:
    return _difference({name: score(texts, metric) for name, score in scorers.items()})


def _difference(found: dict[str, Any]) -> float:
    """The largest difference of any contender to the first on any token; ends the run when it is too large."""
    first, *others = found
    largest = 0.0
    for name in others:
        for ours, theirs in zip(found[first], found[name], strict=True):
            if ours.shape != theirs.shape:
                sys.exit(f"{first} scored {len(ours)} tokens where {name} scored {len(theirs)}")
            largest = max(largest, float(abs(ours - theirs).max()))
        if not largest <= TOLERANCE:
            sys.exit(f"{first} and {name} differ by {largest} on a token: nothing is timed")
    return largest


def _build(arguments: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    import torch

    import sentences
    import shapes

    torch.set_num_threads(arguments.threads)
    count = arguments.count if arguments.sets == "snli" else arguments.mixed_count
    return *shapes.build(arguments.shapes), sentences.draw(arguments.sets, count, longest=arguments.longest)


def _machine() -> dict[str, Any]:
    import platform

    import torch
    import transformers

    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "dtype": "float32",
        "date": time.strftime("%Y-%m-%d"),
    }


def _spawn(
    child: str, arguments: argparse.Namespace, shape: str, kind: str, name: str | None = None, size: object = ""
) -> Any:
    numbers = ("count", "mixed_count", "longest", "rounds", "minutes", "threads")
    command = [sys.executable, __file__, "--child", child, "--shapes", shape, "--sets", kind, "--batch-size", str(size)]
    command += ["--contenders", arguments.contenders if name is None else name]
    command += [part for key in numbers for part in (f"--{key.replace('_', '-')}", str(getattr(arguments, key)))]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=False)
    if done.returncode:
        sys.exit(f"{child} of {shape}, {kind} {name or ''} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="besag beside its peers.")
    parser.add_argument("--full", action="store_true", help="the setting the documentation quotes")
    parser.add_argument(
        "--shapes", help="comma-separated: embedded, bert-base, roberta-base, xlmr-base, modernbert-base"
    )
    parser.add_argument("--sets", default="snli,mixed", help="comma-separated: snli, mixed, spread")
    parser.add_argument("--contenders", default=";".join(NAMES), help="semicolon-separated")
    parser.add_argument("--count", type=int, help="sentences in the set snli")
    parser.add_argument("--mixed-count", type=int, help="sentences in the set mixed")
    parser.add_argument("--longest", type=int, help="words in the longest sentence of the set mixed")
    parser.add_argument("--rounds", type=int, help="turns each contender takes")
    parser.add_argument("--minutes", type=float, help="no new round of a case begins after so many")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of torch, within one operation")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    parser.add_argument("--child", choices=sorted(_CHILDREN), help=argparse.SUPPRESS)
    parser.add_argument("--batch-size", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name, value in (FULL if arguments.full else QUICK).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    arguments.output = arguments.output or RESULTS / f"scoring-{'full' if arguments.full else 'quick'}.json"
    return arguments


_CHILDREN = {"race": race, "memory": memory}

if __name__ == "__main__":
    main()
