"""Small real runs of what papers say, on captions of Multi30k: figures in docs/training/ and docs/generation/.

    python benchmarks/field.py ramp runs/field --data MULTI30K         # Cramming's steps that grow, and full ones
    python benchmarks/field.py speculative                             # passes one after the other, embedded model

A run of the first takes less than a minute of one core: it shows that a thing works, not what it is worth at size.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}


def trained(
    train: str, valid: str, folder: Path, changes: dict[str, Any], schedule: dict[str, Any] | None = None
) -> Any:
    import besag

    recipe = {
        "data": {"train": [train], "valid": [valid], "unit": "documents", "max_length": 64, "batch_tokens": 1024},
        "tokenizer": {"size": 2000},
        "model": {"config": SMALL},
        "optimizer": {"lr": 2e-3},
        "schedule": schedule or {"steps": 100},
        "run": {"plot": False, "threads": 1, "log_every": 100, "checkpoint_every": 10_000},
        "evaluation": {"sentences": 100},
    }
    begun = time.monotonic()
    result = besag.train(recipe, changes, output=folder, quiet=True)
    told = {name: round(result.metrics[name], 4) for name in ("heldout_loss", "pseudo_perplexity")}
    told = {"run": folder.name, "steps": result.step, **told, "seconds": round(time.monotonic() - begun)}
    print(json.dumps(told), flush=True)
    return result


def ramp(folder: Path, data: Path) -> None:
    """The same tokens, the same full batch: steps that grow over 0.6 of the run, and full ones from the first on."""
    for share in (0.0, 0.6):
        schedule = {"tokens": 100_000, "ramp": share}
        trained(
            str(data / "train.en"), str(data / "val.en"), folder / f"ramp-{share:g}", {"run.accumulate": 8}, schedule
        )


def speculative() -> None:
    """Mean passes one after the other of a filling, over 50 chains; `ordered` has as many as there are places."""
    import numpy as np

    import besag

    lm = besag.load(progress=False)
    for temperature in (1.0, 0.5):
        for places in (4, 8, 16):
            text = "The old man " + " ".join(["[MASK]"] * places) + "."
            chains = lm.sample(text, "speculative", chains=50, seed=0, temperature=temperature)
            waits, passes = np.nansum(chains.numbers["sequential"], 1), chains.passes
            told = {"waits": round(float(waits.mean()), 2), "most": int(waits.max()), "passes": float(passes.mean())}
            print(json.dumps({"places": places, "temperature": temperature, **told}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ramp", "speculative"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "speculative":
        speculative()
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    ramp(chosen.folder, chosen.data)


if __name__ == "__main__":
    main()
