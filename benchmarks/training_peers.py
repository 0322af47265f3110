"""Training on a CPU: besag beside the loop of transformers' own run_mlm example, on the same windows of the same text.

    python benchmarks/training_peers.py                       # the embedded shape, and the same with V = 50,000
    python benchmarks/training_peers.py --steps 6 --rounds 2

run_mlm's loop is Trainer + DataCollatorForLanguageModeling over texts grouped into blocks of 128 tokens, AdamW, 15 % of
tokens masked: what a user gets who follows the documentation. besag runs its recipe with the same network, windows of
the same length, the same number of tokens a step, rate and optimiser. Both are timed from the fourth step on, in turns.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

LENGTH, ROWS = 128, 32
SHAPE: dict[str, Any] = {"hidden_size": 384, "num_hidden_layers": 10, "num_attention_heads": 6,
                         "intermediate_size": 768, "hidden_activation": "silu", "global_attn_every_n_layers": 1,
                         "max_position_embeddings": 512}  # fmt: skip
SKIPPED = 2


def tokenizer(size: int, folder: Path) -> Any:
    """The embedded tokenizer, filled up with pieces that never occur: what costs time is the width."""
    from transformers import AutoTokenizer

    from besag import models

    made = AutoTokenizer.from_pretrained(models.path())
    made.add_tokens([f"⟨{number}⟩" for number in range(size - len(made))])
    made.save_pretrained(folder)
    return made


def corpus(file: Path, seed: int = 0) -> None:
    """Documents of pseudo-English: what they say costs nothing."""
    import sentences

    texts = sentences.pseudo_english(np.full(400, 300), seed)
    file.write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def ours(size: int, steps: int, folder: Path) -> float:
    """Seconds a step."""
    from besag.training import recipe as recipes
    from besag.training.run import train

    told = {
        "data": {"train": [str(folder / "corpus.txt")], "held_out": 0.0, "unit": "windows", "max_length": LENGTH,
                 "batch_tokens": LENGTH * ROWS, "cache": str(folder / "cache")},
        "tokenizer": {"path": str(folder / "tokenizer")},
        "model": {"config": {**SHAPE, "vocab_size": size}},
        "masking": {"rate": 0.15, "mask": 0.8, "random": 0.1, "keep": 0.1},
        "schedule": {"steps": steps},
        "evaluation": {"sentences": 0},
        "run": {"output": str(folder / f"run-{time.time_ns()}"), "device": "cpu", "log_every": 1, "plot": False,
                "checkpoint_every": 10**6},
    }  # fmt: skip
    result = train(recipes.of_table(told, "benchmark"), quiet=True)
    lines = (result.folder / "log.jsonl").read_text().splitlines()
    seconds = [json.loads(line)["seconds"] for line in lines if "loss" in json.loads(line)]
    return statistics.median(np.diff(seconds)[SKIPPED:])


def theirs(size: int, steps: int, folder: Path) -> float:
    """Seconds a step."""
    from transformers import (
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        ModernBertConfig,
        ModernBertForMaskedLM,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    words = AutoTokenizer.from_pretrained(folder / "tokenizer")
    lines = [line for line in (folder / "corpus.txt").read_text().splitlines() if line]
    ids = [id for text in words(lines, return_special_tokens_mask=True)["input_ids"] for id in text]
    blocks = [ids[start : start + LENGTH] for start in range(0, len(ids) - LENGTH, LENGTH)]
    data = [{"input_ids": block, "attention_mask": [1] * LENGTH} for block in blocks]
    torch.manual_seed(0)
    ends = {f"{name}_token_id": getattr(words, f"{name}_token_id") for name in ("pad", "cls", "sep")}
    ends |= {"bos_token_id": words.cls_token_id, "eos_token_id": words.sep_token_id}
    model = ModernBertForMaskedLM(ModernBertConfig(**SHAPE, vocab_size=size, **ends))
    ticks: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ticks.append(time.perf_counter())

    arguments = TrainingArguments(
        output_dir=str(folder / "theirs"), max_steps=steps, per_device_train_batch_size=ROWS, use_cpu=True,
        save_strategy="no", report_to=[], disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(words, mlm_probability=0.15)
    Trainer(model=model, args=arguments, train_dataset=data, data_collator=collator, callbacks=[Clock()]).train()
    return statistics.median(np.diff(ticks)[SKIPPED:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="*", default=[12_288, 50_000])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found = []
    for size in chosen.size:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            corpus(folder / "corpus.txt")
            tokenizer(size, folder / "tokenizer")
            times: dict[str, list[float]] = {"besag": [], "run_mlm": []}
            for _ in range(chosen.rounds):
                times["besag"].append(ours(size, chosen.steps, folder))
                times["run_mlm"].append(theirs(size, chosen.steps, folder))
        best = {who: LENGTH * ROWS / statistics.median(each) for who, each in times.items()}
        found.append({"vocabulary": size, "tokens_per_second": best, "ratio": best["besag"] / best["run_mlm"],
                      "seconds_per_step": times, "threads": torch.get_num_threads()})  # fmt: skip
        print(json.dumps(found[-1]), flush=True)
    if chosen.output:
        Path(chosen.output).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
