"""Partners among made paralogs: how often are they found by the masked loss, beside chance?

    BESAG_DATA=… PYTHONPATH=src python3 benchmarks/matching.py [--pairs 6000] [--steps 1500] [--out FILE]

A pair is a stretch of a heavy chain and one of a light chain of SAbDab. Half of the places of the second are
rewritten, with a chance (`strength`), by a code of the residue at the same place of the first, the same code in all
pairs: what coevolution leaves behind, made so that the truth is known. A small network learns pairs side by side;
others, in groups of 8 as the paralogs of a species, are matched. At strength 0 there is nothing to find.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import besag

RESULTS = Path(__file__).parent / "results"
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
LENGTH, GROUP, GROUPS = 12, 8, 30


def chains(data: Path) -> tuple[list[str], list[str]]:
    import pyarrow.parquet as parquet

    rows = parquet.read_table(data / "protein_antibody" / "sabdab_train.parquet").to_pylist()
    heavy = [row["sequence"] for row in rows if str(row["v_gene"]).startswith("IGH")]
    return heavy, [row["sequence"] for row in rows if not str(row["v_gene"]).startswith("IGH")]


def pairs(data: Path, count: int, strength: float, seed: int = 0) -> list[tuple[str, str]]:
    draw, (heavy, light) = np.random.default_rng(seed), chains(data)
    code = dict(zip(RESIDUES, np.random.default_rng(9).permutation(list(RESIDUES)), strict=True))
    found = []
    for _ in range(count):
        first, second = (list(_stretch(draw, own)) for own in (heavy, light))
        for place in range(0, LENGTH, 2):
            if draw.random() < strength:
                second[place] = code[first[place]]
        found.append((" ".join(first), " ".join(second)))
    return found


def _stretch(draw: Any, chains: list[str]) -> str:
    while True:
        chain = chains[draw.integers(len(chains))]
        start = draw.integers(len(chain) - LENGTH)
        if set(part := chain[start : start + LENGTH]) <= set(RESIDUES):
            return part


def tokenizer(folder: Path) -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend = Tokenizer(
        models.WordLevel({token: n for n, token in enumerate([*special, *RESIDUES])}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=backend, **names).save_pretrained(folder)
    return str(folder)


def trained(work: Path, some: list[tuple[str, str]], steps: int) -> Path:
    work.mkdir(parents=True)
    (work / "pairs.txt").write_text("\n\n".join(f"{a} {b}" for a, b in some) + "\n", encoding="utf-8")
    sizes = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 192}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    recipe = {
        "data": {"train": [str(work / "pairs.txt")], "unit": "documents", "max_length": 32, "batch_tokens": 2048},
        "tokenizer": {"path": tokenizer(work / "tokenizer")},
        "model": {"family": "bert", "config": sizes},
        "masking": {"rate": 0.2}, "optimizer": {"lr": 2e-3}, "schedule": {"steps": steps},
        "run": {"plot": False, "device": "cpu"}, "evaluation": {"sentences": 0},
    }  # fmt: skip
    return Path(besag.train(recipe, output=work / "run", quiet=True).model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--strengths", type=float, nargs="+", default=[0.0, 0.5, 0.9])
    parser.add_argument("--out", type=Path, default=RESULTS / "matching.json")
    given = parser.parse_args()
    data, told = Path(os.environ["BESAG_DATA"]), {}
    for strength in given.strengths:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as work:
            folder = trained(Path(work) / "work", pairs(data, given.pairs, strength), given.steps)
            lm = besag.load(folder, device="cpu", progress=False)
            held_out = pairs(data, GROUPS * GROUP, strength, seed=1)
            groups = [str(number // GROUP) for number in range(len(held_out))]
            found = lm.match([a for a, _ in held_out], [b for _, b in held_out], groups)
        told[str(strength)] = {
            "accuracy": round(found.accuracy, 4), "chance": round(found.chance, 4), "pairs": len(found.pairs),
            "mean_prob": round(float(np.mean([one.prob for one in found.pairs])), 4),
            "seconds": round(time.perf_counter() - began, 1),
        }  # fmt: skip
        print(strength, told[str(strength)], flush=True)
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
