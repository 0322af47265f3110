"""AntiBERTy (Ruffolo, Gray and Sulam 2021; MIT) from its wheel into a folder that besag loads.

    pip download --no-deps antiberty==0.1.3
    python3 benchmarks/antiberty.py antiberty-0.1.3-py3-none-any.whl FOLDER

The heads of species, chain and graft are left out; what is asked at masks stays as it is. The weights are a pickle, and
are read as weights alone: nothing in it is run.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

MODEL = "antiberty/trained_models/AntiBERTy_md_smooth"
OTHER_HEADS = ("cls.species.", "cls.chain.", "cls.graft.", "bert.pooler.")
BUFFERS = {"bert.embeddings.position_ids"}  # which transformers made its own since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    with zipfile.ZipFile(chosen.wheel) as wheel:
        config = json.loads(wheel.read(f"{MODEL}/config.json"))
        weights = torch.load(
            io.BytesIO(wheel.read(f"{MODEL}/pytorch_model.bin")), map_location="cpu", weights_only=True
        )
        tokens = wheel.read("antiberty/trained_models/vocab.txt").decode()
    model = BertForMaskedLM(BertConfig(**{key: value for key, value in config.items() if not key.startswith("_")}))
    kept = {name: part for name, part in weights.items() if not name.startswith(OTHER_HEADS) and name not in BUFFERS}
    missing, unexpected = model.load_state_dict(kept, strict=False)
    if unexpected or {name for name in missing if not name.startswith("cls.predictions.decoder")}:
        raise SystemExit(f"the weights do not fit: missing {missing}, unexpected {unexpected}")
    model.eval().save_pretrained(chosen.folder)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder, "vocab.txt")
        vocabulary.write_text("\n".join(tokens.split()) + "\n", encoding="utf-8")
        BertTokenizerFast(str(vocabulary), do_lower_case=False).save_pretrained(chosen.folder)
    print(f"{chosen.folder}: {sum(part.numel() for part in model.parameters()):,} weights")


if __name__ == "__main__":
    main()
