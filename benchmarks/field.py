"""Small real runs of what papers say, on captions of Multi30k: figures in docs/training/ and docs/generation/.

    python benchmarks/field.py ramp runs/field --data MULTI30K         # Cramming's steps that grow, and full ones
    python benchmarks/field.py blocks runs/field --data MULTI30K       # block diffusion by the size of a block
    python benchmarks/field.py kept runs/field --data MULTI30K         # … and tokens a second, blocks kept and run anew
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


BLOCKS = (1, 4, 16, 64)  # tokens of a block; the last one holds every caption
BLOCK_STEPS = 400


def block_model(folder: Path, data: Path, size: int) -> Path:
    """A network trained in blocks of so many tokens, unless it is there."""
    if not (folder / f"block-{size}" / "model").exists():
        changes = {
            "objective.name": "block_diffusion",
            "objective.options": {"size": size},
            "model.family": "besag",
            "model.config.max_position_embeddings": 300,
        }
        files = str(data / "train.en"), str(data / "val.en")
        trained(*files, folder / f"block-{size}", changes, {"steps": BLOCK_STEPS})
    return folder / f"block-{size}" / "model"


def blocks(folder: Path, data: Path) -> None:
    """The bound on −log p of held-out captions, in nats a token, by the size of a block."""
    import torch

    import besag
    from besag.training.network.batch import Layout
    from besag.training.network.encoder import Encoder
    from besag.training.objectives.block_diffusion import nelbo

    texts = (data / "val.en").read_text("utf-8").splitlines()[:300]
    for size in BLOCKS:
        lm = besag.load(block_model(folder, data, size), progress=False)
        words = lm.vocabulary
        encoder = Encoder(
            lm.model, mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=False
        )
        encoded = [torch.from_numpy(text.ids) for text in words.encode(texts)]
        layout = Layout.of_lengths(torch.tensor([len(ids) for ids in encoded]))
        bound = nelbo(encoder, torch.cat(encoded), layout, size, samples=16)
        told = {"nats": round(bound.nats, 3), "error": round(bound.error, 3), "tokens": bound.tokens}
        print(json.dumps({"size": size, **told}), flush=True)


def kept(folder: Path, data: Path) -> None:
    """Tokens a second of one core, finished blocks kept and run anew: the networks above, and a wider untrained one."""
    import besag
    from besag.family import BesagConfig, BesagForMaskedLM

    for size in (4, 16):
        lm = besag.load(block_model(folder, data, size), progress=False)
        lm.conditionals.max_length = 300  # positions are turned by: longer than any caption, for the time it takes
        for tokens in (64, 256):
            told_of_kept({"size": size, "width": SMALL["hidden_size"]}, lm, tokens, 8)
    wide = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}
    tokenizer = lm.vocabulary.tokenizer
    config = BesagConfig(vocab_size=len(tokenizer), **wide)
    config.besag_block_length = 16
    lm = besag.load((BesagForMaskedLM(config), tokenizer), progress=False)
    lm.conditionals.max_length = 300
    told_of_kept({"size": 16, "width": 256}, lm, 256, 2)


def told_of_kept(about: dict[str, Any], lm: Any, tokens: int, chains: int) -> None:
    """One place at a time, twice: the texts must be the same."""
    from besag.conditionals.blocks import KEPT_BYTES, Kept

    rates, texts = {}, []
    for name, room in (("warm-up", 0), ("kept", KEPT_BYTES["cpu"]), ("anew", 0)):
        lm.conditionals.blocks.kept = Kept(about["size"], room)
        count = 8 if name == "warm-up" else tokens
        begun = time.process_time()  # of one core, whoever else uses it
        drawn = lm.sample(length=count, kernel="block_diffusion", chains=chains, seed=0)
        rates[name] = round(chains * count / (time.process_time() - begun))
        texts.append(drawn.texts)
    del rates["warm-up"]
    same = sum(map(str.__eq__, texts[1], texts[2]))
    told = {**about, "tokens": tokens, "chains": chains, "tokens_per_second": rates, "same_texts": same}
    print(json.dumps(told), flush=True)


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
    parser.add_argument("what", choices=["ramp", "blocks", "kept", "speculative"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "speculative":
        speculative()
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    {"ramp": ramp, "blocks": blocks, "kept": kept}[chosen.what](chosen.folder, chosen.data)


if __name__ == "__main__":
    main()
