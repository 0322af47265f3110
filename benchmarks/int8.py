"""Eight bits on a CPU: how fast 8-bit products score beside float32, bfloat16 and lm-pub-quiz, and what they cost.

    PYTHONPATH=src python3 benchmarks/int8.py                # speed, about two minutes; one JSON object on stdout
    PYTHONPATH=src python3 benchmarks/int8.py --pairs DIR    # error of the embedded model on files of minimal pairs

Speed: `pll` of SNLI-like sentences at a published shape with random weights (shapes.py, sentences.py), in one process,
contenders by turns for as many rounds as fit into --seconds. The ratio is the median over rounds of a contender's
seconds ÷ those of 8-bit products. Precisions that this processor cannot run are left out, and said so. Where
lm-pub-quiz is not installed, its way stands in for it: every masked copy through the whole network, the head at every
place, in batches of the size that is fastest here, and kinder than it is, each batch padded by itself.

A processor whose AMX may not be used (a sandbox) kills the process: then the script starts itself again without it.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import besag
from besag import hardware

FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16")
PEERS, STAND_IN = ("lm-pub-quiz", "lm-pub-quiz, one by one"), "lm-pub-quiz's way"
DTYPES = ("float32", "int8")  # of the embedded model's error
SIZES = (8, 32, 128)  # of a batch of the peer
Scorer = Callable[[Sequence[str]], list[np.ndarray]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="bert-base")
    parser.add_argument("--count", type=int, default=24, help="sentences")
    parser.add_argument("--seconds", type=float, default=90, help="for all rounds together; one round is always run")
    parser.add_argument("--pairs", type=Path, help="a folder of minimal pairs: measure the error instead of the speed")
    parser.add_argument("--each", type=int, default=100, help="pairs of each file")
    parser.add_argument("--output", type=Path, help="with --pairs: also write what is known so far, after each file")
    arguments = parser.parse_args()
    why = hardware.eight_bit_failure()
    if hardware.CPU_ISA in why:
        os.environ[hardware.CPU_ISA] = hardware.WITHOUT_AMX
        os.execv(sys.executable, [sys.executable, *sys.argv])
    found = error(arguments.pairs, arguments.each, arguments.output) if arguments.pairs else speed(arguments)
    print(json.dumps({"machine": machine(why), **found}, indent=1, ensure_ascii=False))


def machine(why: str) -> dict[str, Any]:
    told = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
    values = {key.strip(): value.strip() for key, _, value in reversed(told)}
    return {
        "processor": values.get("model name", ""),
        "flags": [flag for flag in FLAGS if flag in values.get("flags", "").split()],
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),  # well above 0 at the start: others were at work too
        "torch": torch.__version__,
        hardware.CPU_ISA: os.environ.get(hardware.CPU_ISA, ""),
        "8-bit products": why or "exact",
    }


# ---- speed


def speed(arguments: argparse.Namespace) -> dict[str, Any]:
    import sentences
    import shapes

    model, tokenizer = shapes.build(arguments.shape)
    texts = sentences.draw("snli", arguments.count)
    scorers, said = contenders(model, tokenizer, texts)
    seconds: dict[str, list[float]] = {name: [] for name in scorers}
    answers: dict[str, np.ndarray] = {}
    begun = time.perf_counter()
    while True:
        round_begun = time.perf_counter()
        for name, score in scorers.items():
            start = time.perf_counter()
            answers[name] = np.concatenate(score(texts))
            seconds[name].append(time.perf_counter() - start)
        now = time.perf_counter()
        if now - begun + (now - round_begun) > arguments.seconds:
            break
    ours = seconds["int8"]
    return {
        "shape": arguments.shape,
        "sentences": len(texts),
        "tokens": sum(len(ids) - 2 for ids in tokenizer(texts)["input_ids"]),
        "rounds": len(ours),
        "left out": said,
        "seconds": {name: round(statistics.median(taken), 3) for name, taken in seconds.items()},
        "times as long as int8": {
            name: round(statistics.median(np.divide(taken, ours)), 2) for name, taken in seconds.items()
        },
        "mean |difference| from float32, nats a token, random weights": {
            name: float(f"{np.abs(answers[name] - answers['float32']).mean():.2g}") for name in scorers
        },
    }


def contenders(model: Any, tokenizer: Any, texts: Sequence[str]) -> tuple[dict[str, Scorer], dict[str, str]]:
    """Who scores; and who does not, and why."""
    scorers: dict[str, Scorer] = {}
    said: dict[str, str] = {}
    for dtype in ("float32", "bfloat16", "int8"):
        if dtype == "bfloat16" and (why := hardware.cpu_failure(torch.bfloat16) or _slow_bfloat16()):
            said[dtype] = why
            continue
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            lm = besag.load((copy.deepcopy(model), tokenizer), dtype=dtype, progress=False)
        if dtype == "int8" and warned:
            said[dtype] = f"runs, but {warned[-1].message}"
        scorers[dtype] = lambda texts, lm=lm: [one.log_probs for one in lm.score(list(texts))]
    try:
        import lm_pub_quiz  # noqa: F401 (is it there?)

        import contenders as peers

        for name in PEERS:
            peer = peers.CONTENDERS[name](model, tokenizer, peers.tuned(name, model, tokenizer, texts))
            scorers[name] = lambda texts, peer=peer: peer(texts, "original")
    except ImportError as problem:
        said[PEERS[0]] = f"not installed ({problem}): {STAND_IN} stands in for it"
        middle = sorted(texts, key=len)[len(texts) // 3 :][:6]
        best = min(SIZES, key=lambda size: _taken(lambda: in_its_way(model, tokenizer, middle, size)))
        scorers[STAND_IN] = lambda texts: in_its_way(model, tokenizer, texts, best)
    return scorers, said


def _slow_bfloat16() -> str:
    """A precision may run without being any faster than float32."""
    whole = torch.randn(512, 768)
    half = whole.bfloat16()
    both = [min(_taken(lambda one=one: one @ one.T) for _ in range(5)) for one in (whole, half)]
    return "" if both[1] < both[0] else f"products in bfloat16 take {both[1] / both[0]:.1f} times as long as in float32"


def _taken(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


@torch.no_grad()
def in_its_way(model: Any, tokenizer: Any, texts: Sequence[str], size: int) -> list[np.ndarray]:
    """Every token of every text masked in a copy of its own; copies in their order, padded in batches, whole logits."""
    encoded = tokenizer(list(texts), return_special_tokens_mask=True)
    copies = []
    for ids, special in zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True):
        for place in [place for place, one in enumerate(special) if not one]:
            masked = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
            copies.append((masked, place, ids[place]))
    found = []
    for start in range(0, len(copies), size):
        part = copies[start : start + size]
        batch = tokenizer.pad({"input_ids": [ids for ids, _, _ in part]}, return_tensors="pt")
        logits = model(**batch).logits
        row, place, target = torch.arange(len(part)), *(torch.tensor([one[k] for one in part]) for k in (1, 2))
        found.append(logits[row, place].log_softmax(-1)[row, target])
    lengths = [special.count(0) for special in encoded["special_tokens_mask"]]
    return [part.numpy() for part in torch.cat(found).split(lengths)]


# ---- error


def error(folder: Path, each: int, output: Path | None) -> dict[str, Any]:
    """Decisions and tokens of the embedded model, in float32 and in 8-bit products of 8-bit weights."""
    from besag.evaluation.pair_files import read_pairs

    precise, rough = (besag.load(dtype=dtype, progress=False) for dtype in DTYPES)
    apart: list[np.ndarray] = []
    rows: dict[str, Any] = {}
    result: dict[str, Any] = {}
    for file in sorted(folder.glob("*.jsonl")):
        pairs = read_pairs(str(file), each)
        sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
        scores = [lm.score(sentences) for lm in (precise, rough)]
        apart.append(np.concatenate([a.log_probs - b.log_probs for a, b in zip(*scores, strict=True)]))
        wins = [[good.total > bad.total for good, bad in zip(of[::2], of[1::2], strict=True)] for of in scores]
        changed = int(np.sum(np.array(wins[0]) != np.array(wins[1])))
        rows[file.stem] = {"pairs": len(pairs), "changed": changed, "float32": sum(wins[0]), "int8": sum(wins[1])}
        whole = np.abs(np.concatenate(apart))
        count = sum(row["pairs"] for row in rows.values())
        result = {
            "paradigms": len(rows),
            "pairs": count,
            "decisions unchanged": round(1 - sum(row["changed"] for row in rows.values()) / count, 4),
            "accuracy": {dtype: round(sum(row[dtype] for row in rows.values()) / count, 4) for dtype in DTYPES},
            "tokens": len(whole),
            "nats a token": {
                "mean": round(float(whole.mean()), 4),
                "99 % below": round(float(np.quantile(whole, 0.99)), 3),
                "largest": round(float(whole.max()), 3),
            },
            "rows": rows,
        }
        if output is not None:
            output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


if __name__ == "__main__":
    main()
