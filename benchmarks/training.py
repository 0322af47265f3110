"""How fast besag trains: useful tokens a second, and what share of the machine's own matrix rate that is.

    python benchmarks/training.py                    # the embedded shape and BERT-base, on this machine
    python benchmarks/training.py --shape embedded --tokens 65536 --no-compile
    python benchmarks/training.py --shape embedded --profile    # where a step's time goes

Synthetic sequences with the lengths of real segments (log-uniform, 8 to 128 tokens), 30 % of them predicted; no padding
is counted. Operations: 6 for each weight of a hidden matrix and token, 12 · hidden · (tokens seen) for attention, 6 for
each weight of the head and predicted token. The matrix rate is measured beside it: the best of three shapes of plain
products in the same precision.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
import torch
from torch.profiler import profile as torch_profile
from torch.profiler import record_function

import besag.family  # noqa: F401 (which makes it known to transformers)
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.network.tiles import best_order, cut
from besag.training.objectives.mlm import MLM
from besag.training.optimizers import make
from besag.training.recipe import Optimizer

SHAPES: dict[str, dict[str, Any]] = {
    "embedded": {"family": "modernbert", "vocab_size": 12288, "hidden_size": 384, "num_hidden_layers": 10,
                 "num_attention_heads": 6, "intermediate_size": 768, "hidden_activation": "silu"},
    "wide": {"family": "modernbert", "vocab_size": 12288, "hidden_size": 512, "num_hidden_layers": 12,
             "num_attention_heads": 8, "intermediate_size": 1024, "hidden_activation": "silu"},
    "besag": {"family": "besag", "vocab_size": 12288, "hidden_size": 512, "num_hidden_layers": 12,
              "num_attention_heads": 8, "intermediate_size": 1024},
    "bert-base": {"family": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
                  "num_attention_heads": 12, "intermediate_size": 3072},
    "small": {"family": "modernbert", "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 2, "intermediate_size": 128},
}  # fmt: skip


def network(shape: str, **changes: Any) -> Any:
    from transformers import CONFIG_MAPPING, AutoModelForMaskedLM

    settings = {**SHAPES[shape], **changes}
    family = settings.pop("family")
    if family == "modernbert":
        settings |= {
            "layer_types": ["full_attention"] * settings["num_hidden_layers"],
            "attention_dropout": 0.0,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "cls_token_id": 1,
            "sep_token_id": 2,
        }
    elif family == "bert":
        settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return AutoModelForMaskedLM.from_config(CONFIG_MAPPING[family](**settings))


def batch(tokens: int, width: int, rate: float, seed: int, rows: int, longest: int = 128) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    lengths: list[int] = []
    while tokens - sum(lengths) > longest:
        lengths.append(int(8 * (longest / 8) ** float(torch.rand((), generator=draw))))
    lengths.append(tokens - sum(lengths))
    order = best_order(np.array(lengths))
    ends = cut(np.array(lengths)[order])
    layout = Layout.of_lengths(torch.tensor(lengths)[order], longest)
    bounds, tiles = (torch.full((rows + 1,), tokens, dtype=torch.int32) for _ in range(2))
    bounds[: len(lengths) + 1], tiles[: len(ends)] = layout.bounds, torch.from_numpy(ends)
    ids = torch.randint(5, width, (tokens,), generator=draw)
    asked = torch.randperm(tokens, generator=draw)[: int(rate * tokens) // 256 * 256].sort().values
    inputs = ids.clone()
    inputs[asked] = 4
    zeros = torch.zeros(rows)
    layout = layout._replace(bounds=bounds, tiles=tiles[: tokens // 110])
    return Batch(ids, inputs, torch.ones(tokens, dtype=torch.bool), layout, asked,
                 torch.ones(len(asked)), zeros, zeros.long(), 0, 0.0)  # fmt: skip


def operations(model: Any, one: Batch) -> float:
    """Of one step, forward and backward, without anything recomputed or padded."""
    config = model.config
    hidden = sum(w.numel() for name, w in model.named_parameters()
                 if w.ndim == 2 and "embed" not in name and "decoder" not in name and ".head." not in name
                 and "predictions" not in name and "pooler" not in name)  # fmt: skip
    lengths = one.layout.bounds.diff().double()
    attention = 12.0 * config.hidden_size * config.num_hidden_layers * float((lengths**2).sum())
    head = config.hidden_size * (config.hidden_size + config.vocab_size)
    return 6.0 * hidden * len(one.ids) + attention + 6.0 * head * len(one.asked)


def matrix_rate(device: str, dtype: torch.dtype) -> float:
    best = 0.0
    for size in (4096, 8192) if device == "cuda" else (1024, 2048):
        left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        for _ in range(3):
            left @ right
        seconds = timed(lambda a=left, b=right: a @ b, 10, device)
        best = max(best, 2.0 * size**3 / seconds)
    return best


def timed(work: Any, times: int, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        work()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def measure(
    shape: str,
    tokens: int,
    *,
    device: str,
    compile: bool,
    optimizer: str,
    steps: int,
    profiled: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    torch.manual_seed(0)
    model = network(shape, **changes).to(device, dtype)
    encoder = Encoder(model, mask_id=4, pad_id=0, special_ids=frozenset(range(5)), ragged=device == "cuda")
    if compile:
        encoder.compile_layers()
    objective = MLM(encoder).train()
    moves = make(objective, Optimizer(name=optimizer))
    rows = tokens // 16
    some = [batch(tokens, model.config.vocab_size, 0.3, seed, rows).to(device) for seed in range(4)]

    losses: list[torch.Tensor] = []

    def forward(number: int) -> None:
        one = some[number % len(some)]
        losses.append(objective(one).total / len(one.asked))

    def backward(number: int) -> None:
        losses.pop().backward()

    def clip(number: int) -> None:
        torch.nn.utils.clip_grad_norm_(objective.parameters(), 1.0, foreach=True)

    def move(number: int) -> None:
        moves.step()
        moves.zero_grad(set_to_none=True)

    parts = {"forward": forward, "backward": backward, "clip": clip, "optimizer": move}

    def step(number: int) -> None:
        for name, work in parts.items():
            with record_function(name):
                work(number)

    start = time.perf_counter()
    for number in range(3):
        step(number)
    if device == "cuda":
        torch.cuda.synchronize()
    warm = time.perf_counter() - start
    counter = iter(range(10**9))
    seconds = timed(lambda: step(next(counter)), steps, device)
    done = sum(operations(model, one) for one in some) / len(some)
    return {"shape": shape, "tokens": tokens, "compile": compile, "optimizer": optimizer, **changes, "seconds": seconds,
            "tokens_per_second": tokens / seconds, "tflops": done / seconds / 1e12,
            "first_steps_seconds": warm, **(profile(step, parts, device) if profiled else {})}  # fmt: skip


KERNELS = {  # what a kernel does, by what its name begins with or holds
    "fused by the compiler": ("triton",),
    "products": ("gemm", "nvjet", "cutlass", "xmma", "::mm", "addmm", "bmm"),
    "attention": ("flash", "fmha", "attention", "_forward", "_backward"),  # the last two: besag's own
    "optimizer": ("multi_tensor", "foreach"),
    "copies": ("memcpy", "memset", "copy"),
}


def profile(step: Any, parts: Any, device: str, steps: int = 5) -> dict[str, Any]:
    """Milliseconds a step: on the device by kinds of kernels, and how long the host took to ask for each part.

    Where the host takes as long as the whole step, it sets the pace; where the kernels do, the device does.
    """
    counter = iter(range(steps))
    with torch_profile() as found:
        seconds = timed(lambda: step(next(counter)), steps, device)
    host: dict[str, float] = {}
    for one in found.key_averages():  # a part is there twice: as the host asked for it, and as the device did it
        if one.key in parts:
            host[one.key] = max(host.get(one.key, 0.0), one.cpu_time_total / 1e3 / steps)
    kinds: dict[str, float] = {}
    longest: dict[str, float] = {}
    for event in found.events():
        if device == "cuda" and str(event.device_type).endswith("CUDA") and event.name not in parts:
            spent = event.device_time / 1e3 / steps
            name = event.name.lower()
            kind = next((kind for kind, marks in KERNELS.items() if any(one in name for one in marks)), "others")
            kinds[kind] = kinds.get(kind, 0.0) + spent
            longest[event.name[:80]] = longest.get(event.name[:80], 0.0) + spent
    top = dict(sorted(longest.items(), key=lambda one: -one[1])[:15])
    return {"step_ms": 1e3 * seconds, "host_ms": host, "device_ms": kinds, "busy_ms": sum(kinds.values()), "top": top}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", nargs="*", default=["embedded", "bert-base"])
    parser.add_argument("--tokens", type=int, nargs="*", default=[65536])
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--optimizer", default="muon")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--profile", action="store_true", help="say where the time of a step goes")
    parser.add_argument("--output")
    chosen = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rate = matrix_rate(device, torch.bfloat16 if device == "cuda" else torch.float32)
    results = []
    for shape in chosen.shape:
        for tokens in chosen.tokens:
            how = {
                "compile": chosen.compile,
                "optimizer": chosen.optimizer,
                "steps": chosen.steps,
                "profiled": chosen.profile,
            }
            one = measure(shape, tokens, device=device, **how)
            one |= {"matrix_tflops": rate / 1e12, "share": one["tflops"] * 1e12 / rate}
            print(json.dumps(one), file=sys.stderr)
            results.append(one)
    text = json.dumps(results, indent=2)
    print(text)
    if chosen.output:
        with open(chosen.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
