"""A toy language pair, and recipes that learn it in seconds. Import it as `tests.translation.pairs`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests import networks

TRANSLATED = {"the": "cats", "cat": "dogs", "table": "sleep", "dogs": "mat", "night": "man"}


def translated(source: str) -> str:
    """Word by word."""
    return " ".join(TRANSLATED[word] for word in source.split())


def sources(count: int, seed: int = 0, longest: int = 6) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(list(TRANSLATED), k=draw.randint(1, longest))) for _ in range(count)]


def write(folder: Path, count: int = 600) -> None:
    """train.s and train.t, line by line, and the tokenizer in tok/."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = sources(count)
    (folder / "train.s").write_text("\n".join(rows) + "\n")
    (folder / "train.t").write_text("\n".join(map(translated, rows)) + "\n")
    networks.vocabulary("bert").tokenizer.save_pretrained(folder / "tok")


def recipe(folder: Path, family: str = "bart", decoder: str = "masked", **objective: Any) -> dict[str, Any]:
    """A run of one layer on each side; call `write(folder)` first."""
    layers = {
        "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "dropout": 0.0,
    }  # fmt: skip
    t5 = {"d_model": 32, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "d_kv": 16, "d_ff": 64}
    return {
        "data": {
            "source": [str(folder / "train.s")], "target": [str(folder / "train.t")], "held_out": 0.05,
            "max_length": 12, "batch_tokens": 512,
        },
        "tokenizer": {"path": str(folder / "tok")},
        "model": {
            "family": family, "decoder": decoder, "config": {**t5, "dropout_rate": 0.0} if family == "t5" else layers,
        },
        "masking": {"rate_law": "uniform", "options": {"count": "up"}},
        "objective": {"length": 1.0, **objective},
        "optimizer": {"lr": 1e-2, "weight_decay": 0.0},
        "schedule": {"steps": 120},
        "run": {"output": str(folder / f"{family}-{decoder}"), "log_every": 50, "plot": False, "threads": 1},
        "evaluation": {"sentences": 30},
    }  # fmt: skip
