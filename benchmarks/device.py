"""How much of an accelerator pseudo-log-likelihood uses: sentences a second, and the share of the matrix rate.

    PYTHONPATH=src python3 benchmarks/device.py                       # one CUDA device, bfloat16
    PYTHONPATH=src python3 benchmarks/device.py --device cpu --tiny   # does the script itself work?

Published shapes with random weights score pseudo-English (see shapes.py and sentences.py) through `lm.score`, tokenizer
and result objects included in the time. The work counted is what the mathematics needs and nothing more: for a sentence
of L positions and n scored tokens, n passes over L positions through the matrix products of the encoder and of its
attention, and the head on n rows. Padding, recomputation, normalisation, softmax and embeddings count for nothing. The
share is that work a second over the rate of one large square matrix product in the same dtype on the same device. The
error of the dtype is that of each token's log-probability against float32 (on a CPU, of float32 against float64).
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import besag
import sentences
import shapes

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    arguments = _arguments()
    on_gpu = arguments.device.startswith("cuda")
    dtype, reference = ("bfloat16", "float32") if on_gpu else ("float32", "float64")
    size = 8192 if on_gpu else 1024
    rate = matmul_rate(size, getattr(torch, dtype), arguments.device)
    texts = {
        f"{arguments.count} SNLI-like": sentences.draw("snli", arguments.count),
        f"{arguments.spread_count} spread over 5–400 words": sentences.draw("spread", arguments.spread_count),
    }
    machine = {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "dtype": dtype,
        "matmul_tflops": round(rate / 1e12, 2),
        "matmul_size": size,
        "date": time.strftime("%Y-%m-%d"),
    }
    report: dict[str, Any] = {"machine": machine, "speed": [], "error": []}
    for shape in arguments.shapes.split(","):
        model, tokenizer = shapes.build(shape, tiny=arguments.tiny)
        how = {"device": arguments.device, "dtype": dtype, "compile": arguments.compile, "progress": False}
        lm = besag.load((copy.deepcopy(model), tokenizer), **how)
        for name, chosen in texts.items():
            speed = _speed(lm, chosen, arguments.rounds, work(model.config, _lengths(tokenizer, chosen)), rate)
            report["speed"].append({"shape": shape, "sentences": name, **speed})
        report["error"].append({"shape": shape, **_error(lm, model, tokenizer, arguments, reference)})
    model, tokenizer = shapes.build("embedded")
    lm = besag.load((copy.deepcopy(model), tokenizer), **how)
    report["error"].append({"shape": "embedded (trained)", **_error(lm, model, tokenizer, arguments, reference)})
    arguments.output.parent.mkdir(exist_ok=True, parents=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))


def work(config: Any, lengths: Sequence[int]) -> float:
    """FLOPs of the matrix products that pseudo-log-likelihood needs for texts of these lengths, two specials each."""
    H, inner, V = config.hidden_size, config.intermediate_size, config.vocab_size
    gated = isinstance(config, transformers.ModernBertConfig)
    kinds = config.layer_types if gated else ["full_attention"] * config.num_hidden_layers
    total = 0.0
    for length in lengths:
        position = 0.0  # FLOPs of one position in all layers
        for kind in kinds:
            seen = length if kind == "full_attention" else min(length, config.local_attention + 1)
            position += 8 * H * H + (6 if gated else 4) * H * inner + 4 * H * seen
        total += (length - 2) * (length * position + 2 * H * H + 2 * H * V)
    return total


def matmul_rate(size: int, dtype: torch.dtype, device: str) -> float:
    """FLOP/s of a square matrix product of random numbers: the mean of ten after three to warm up."""
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    for _ in range(3):
        left @ right
    _wait(device)
    start = time.perf_counter()
    for _ in range(10):
        left @ right
    _wait(device)
    return 10 * 2 * size**3 / (time.perf_counter() - start)


def table(report: dict[str, Any]) -> str:
    machine = report["machine"]
    lines = [
        f"{machine['device']}, {machine['dtype']}, torch {machine['torch']}, transformers {machine['transformers']}, "
        f"{machine['date']}; {machine['matmul_size']}³ matrix product at {machine['matmul_tflops']} TFLOP/s.",
        "",
        "| shape | sentences | seconds | sentences/s | scored tokens/s | positions/s | TFLOP/s | share | peak GiB |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['shape']} | {row['sentences']} | {row['seconds']:.3f} | {row['sentences_per_second']:.0f} "
        f"| {row['tokens_per_second']:.0f} | {row['positions_per_second']:.0f} | {row['tflops']:.2f} "
        f"| {row['share']:.1%} | {row['peak_gib']:.2f} |"
        for row in report["speed"]
    ]
    lines += [
        "",
        "| shape | tokens | mean error, nats | largest error, nats | mean error of a total |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['shape']} | {row['tokens']} | {row['mean']:.2e} | {row['largest']:.2e} | {row['total']:.2e} |"
        for row in report["error"]
    ]
    return "\n".join(lines)


def _speed(lm: Any, texts: list[str], rounds: int, flops: float, rate: float) -> dict[str, Any]:
    lm.score(texts, method="pll")  # compiles, allocates, and finds the batch size
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        lm.score(texts, method="pll")
        seconds.append(time.perf_counter() - start)
    lengths = np.array(_lengths(lm.tokenizer, texts))
    median = float(np.median(seconds))
    return {
        "runs": [round(each, 4) for each in seconds],
        "seconds": median,
        "sentences_per_second": len(texts) / median,
        "tokens_per_second": float((lengths - 2).sum()) / median,
        "positions_per_second": float(((lengths - 2) * lengths).sum()) / median,
        "tflops": flops / median / 1e12,
        "share": flops / median / rate,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0,
    }


def _error(lm: Any, model: Any, tokenizer: Any, arguments: argparse.Namespace, reference: str) -> dict[str, Any]:
    texts = sentences.draw("snli", 100 if not arguments.tiny else 10, seed=1)
    exact = besag.load((model, tokenizer), device=arguments.device, dtype=reference, progress=False)
    pairs = zip(lm.score(texts, method="pll"), exact.score(texts, method="pll"), strict=True)
    errors = [low.log_probs - high.log_probs for low, high in pairs]
    each = np.abs(np.concatenate(errors))
    return {
        "tokens": each.size,
        "mean": float(each.mean()),
        "largest": float(each.max()),
        "total": float(np.mean([abs(error.sum()) for error in errors])),
    }


def _lengths(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    return [len(ids) for ids in tokenizer(list(texts))["input_ids"]]


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How much of an accelerator besag uses.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="two small layers and few sentences: a test of this script")
    parser.add_argument("--shapes", default="bert-base,modernbert-base")
    parser.add_argument("--count", type=int, help="sentences of SNLI-like length (10000)")
    parser.add_argument("--spread-count", type=int, help="sentences of lengths even on a logarithmic scale (500)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="with compiled layers")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    small = (20, 3) if arguments.tiny else (10_000, 500)
    arguments.count = arguments.count or small[0]
    arguments.spread_count = arguments.spread_count or small[1]
    arguments.output = (
        arguments.output or RESULTS / f"device{'-tiny' * arguments.tiny}{'-compiled' * arguments.compile}.json"
    )
    return arguments


if __name__ == "__main__":
    main()
