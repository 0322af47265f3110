"""What the first seconds cost: `besag score` of one sentence, beside a plain transformers load and one forward.

    PYTHONPATH=src python3 benchmarks/start.py --rounds 7
    PYTHONPATH=src python3 benchmarks/start.py --base ../older/src      # and an older besag, in turn with this one

Every run is a process of its own, started cold, on torch's own number of threads. The contenders take turns, so that
what else the machine does disturbs them alike. CPU seconds (user and system, of all threads) are what counts: threads
that wait for one another at full speed are paid for, too. The plain load is in float32, as besag's is, of the embedded
model as `besag export` writes it in float32.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
SENTENCE = "The keys to the cabinet are here."
PLAIN = """
import sys, torch
import besag.family
from transformers import AutoModelForMaskedLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForMaskedLM.from_pretrained(sys.argv[1], dtype=torch.float32)
with torch.no_grad():
    logits = model(**tokenizer(sys.argv[2], return_tensors="pt")).logits
print(logits.logsumexp(-1).sum().item())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--base", type=Path, help="the src folder of another besag, to be measured as well")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "start.json")
    chosen = parser.parse_args()
    score = [sys.executable, "-m", "besag", "score", SENTENCE]
    plain = Path(tempfile.mkdtemp()) / "float32"
    run([sys.executable, "-m", "besag", "export", "small-en", str(plain), "--weights", "float32"], ROOT / "src")
    contenders = {
        "plain": ([sys.executable, "-c", PLAIN, str(plain), SENTENCE], ROOT / "src"),
        "besag": (score, ROOT / "src"),
    }
    if chosen.base:
        contenders["besag before"] = (score, chosen.base)
    for command, source in contenders.values():
        run(command, source)  # from here on files are in memory and byte code is written
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(chosen.rounds):
        for name, (command, source) in contenders.items():
            runs[name].append(run(command, source))
    report = {
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "torch": version("torch"),
            "transformers": version("transformers"),
            "date": time.strftime("%Y-%m-%d"),
        },
        "rounds": chosen.rounds,
        **{name: summary(runs[name], runs["plain"]) for name in contenders},
    }
    chosen.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"{'':14}CPU s   wall s   CPU to plain")
    for name in contenders:
        one = report[name]
        print(f"{name:12}{one['cpu_seconds']:7.2f}{one['wall_seconds']:9.2f}{one['cpu_ratio']:12.2f}")


def run(command: list[str], source: Path) -> tuple[float, float]:
    """CPU seconds and wall seconds of one child."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def summary(runs: list[tuple[float, float]], plain: list[tuple[float, float]]) -> dict[str, object]:
    """Medians. The ratio is that of each round to the plain load of the same round."""
    return {
        "cpu_seconds": round(statistics.median(cpu for cpu, _ in runs), 2),
        "wall_seconds": round(statistics.median(wall for _, wall in runs), 2),
        "cpu_ratio": round(statistics.median(own[0] / other[0] for own, other in zip(runs, plain, strict=True)), 3),
        "runs": [{"cpu": round(cpu, 2), "wall": round(wall, 2)} for cpu, wall in runs],
    }


if __name__ == "__main__":
    main()
