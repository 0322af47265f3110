"""One small whole run on the CPU, for tests that compare, kill and resume runs; as a module or as a program.

python a_run.py FOLDER '{"run": {"ema": 0.9}, …}' [--resume] [--kill STEP]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from besag import models, noise
from besag.training import recipe
from besag.training.recipe import Recipe

WORDS = ("the", "old", "young", "dog", "cat", "bird", "sees", "hears", "follows", "likes", "quickly", "now", "near")
MODEL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
    "embedding_dropout": 0.1, "mlp_dropout": 0.1, "attention_dropout": 0.1,
}  # fmt: skip


def corpus(folder: Path, documents: int = 60) -> Path:
    """Sentences of noise: a function of nothing."""
    path = folder / "corpus.txt"
    if not path.exists():
        lines = []
        for number in range(documents):
            draws = (noise.uniform(3, 5, number, np.arange(40)) * len(WORDS)).astype(int)
            words = [WORDS[index] for index in draws]
            lines += [" ".join(words[start : start + 8]).capitalize() + "." for start in range(0, 40, 8)]
            lines.append("")
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))
        os.utime(path, ns=(10**18, 10**18))
    return path


def small(folder: Path, changes: dict[str, dict[str, Any]] | None = None) -> Recipe:
    """A recipe for it, with some keys changed."""
    table: dict[str, dict[str, Any]] = {
        "data": {"train": [str(corpus(folder.parent))], "batch_tokens": 256, "max_length": 32, "held_out": 0.05},
        "tokenizer": {"path": str(models.path())},
        "model": {"config": MODEL},
        "optimizer": {"lr": 3e-3},
        "schedule": {"steps": 8},
        "run": {"output": str(folder), "device": "cpu", "log_every": 1, "checkpoint_every": 3, "plot": False},
        "evaluation": {"sentences": 0},
    }  # fmt: skip
    for section, keys in (changes or {}).items():
        table[section] = {**table.get(section, {}), **keys}
    if "tokens" in table["schedule"] or "minutes" in table["schedule"]:
        table["schedule"].pop("steps")
    return recipe.of_table(table, "a_run")


def attempt(folder: str, changes: dict[str, Any]) -> None:
    """Begin the run, or go on with it: what the command does, in a process of its own that may be killed."""
    import warnings

    from besag.train_model import train

    warnings.simplefilter("ignore")
    train(small(Path(folder), changes), resume=(Path(folder) / "recipe.toml").exists(), quiet=True)


def main(arguments: list[str]) -> None:
    from besag.training.run import train

    folder, changes, *rest = arguments
    kill = int(rest[rest.index("--kill") + 1]) if "--kill" in rest else -1
    steps = iter(range(10**9))

    def stop() -> bool:
        if next(steps) == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    train(small(Path(folder), json.loads(changes)), resume="--resume" in rest, stop=stop, quiet=True)
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in names if "gloo" in name], names  # a thread that outlives the run may abort its end


if __name__ == "__main__":
    main(sys.argv[1:])
