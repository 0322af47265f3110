"""A folder of files that commands are given: some as they should be, most hostile.

Everything is written by `write`, which says where; names are relative to the folder beside it in which commands run.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests import networks

MODEL = "tiny"
RECIPE = """
data = { train = ["../pool/texts.txt"], unit = "sentences", batch_tokens = 256, held_out = 0.2 }
tokenizer = { size = 280 }
model.config = { hidden_size = 8, num_hidden_layers = 1, num_attention_heads = 1, intermediate_size = 8 }
schedule = { steps = 1 }
evaluation = { sentences = 2 }
run = { threads = 1, plot = false, device = "cpu" }
"""
SENTENCES = ["the cat sleeps.", "the dog ran into the house!", "a man walked", "it rained", "cats and dogs", "two 2"]
GOOD: dict[str, bytes] = {
    "texts.txt": "\n".join(SENTENCES).encode(),
    "texts.tsv": ("id\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(SENTENCES))).encode(),
    "texts.csv": ("id,sentence\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(SENTENCES))).encode(),
    "texts.jsonl": "".join(json.dumps({"text": text, "n": 1}) + "\n" for text in SENTENCES).encode(),
    "pairs.jsonl": b'{"sentence_good": "the cat sleeps.", "sentence_bad": "the cat sleep.", "UID": "a"}\n' * 3,
    "pairs.tsv": b"good\tbad\nthe cat sleeps\tthe cat sleep\na man walked\ta man walk\n",
    "recipe.toml": RECIPE.encode(),
    "options.toml": b'format = "jsonl"\nlimit = 2\n',
}
HOSTILE: dict[str, bytes] = {
    "empty.txt": b"",
    "empty.jsonl": b"",
    "blank.txt": b"\n\n \n\t\n",
    "bom.txt": b"\xef\xbb\xbfthe cat\n",
    "bom.csv": b"\xef\xbb\xbftext\nthe cat\n",
    "utf16.txt": "the cat\n".encode("utf-16"),
    "broken.txt": b"the cat\n\xff\xfe\x80 dog\nthe dog\n",
    "broken.tsv": b"id\ttext\n1\t\xc3\x28\n2\tthe dog\n",
    "broken.jsonl": b'{"text": "the cat"}\n{"text": \n',
    "surrogate.jsonl": b'{"text": "a \\ud800 b", "UID": "\\udfff"}\n{"text": "the cat", "UID": "x"}\n',
    "surrogate_pairs.jsonl": b'{"sentence_good": "a \\ud800", "sentence_bad": "b", "UID": "\\udfff"}\n',
    "nul.txt": b"the \x00 cat\nthe dog\n",
    "nul.csv": b"text\nthe \x00 cat\n",
    "long.txt": b"the " * 50_000,
    "long.csv": b"text\n" + b"a" * 140_000 + b"\nthe cat\n",
    "bare_cr.csv": b"text\rthe cat\rthe dog\r",
    "bare_cr_quoted.csv": b'text,b\n"the\rcat",1\n"open,2\n',
    "ragged.csv": b"text,b\nthe cat\nthe dog,1,2,3\n",
    "ragged.tsv": b"text\tb\nthe cat\nthe dog\t1\t2\t3\n",
    "twice.csv": b"text,text\nthe cat,the dog\n",
    "deep.json": b"[" * 3000 + b"]" * 3000,
    "deep.jsonl": b'{"text": ' + b"[" * 3000 + b"]" * 3000 + b"}\n",
    "deep.toml": b"a = " + b"[" * 3000 + b"]" * 3000 + b"\n",
    "numbers.jsonl": b'{"text": 5}\n{"text": null}\n{"text": NaN}\n{"text": ' + b"9" * 5000 + b"}\n5\nnull\n[]\n",
    "huge_number.toml": b"limit = " + b"9" * 5000 + b"\n",
    "wrong.toml": b'schedule = 5\nmodel = "a"\n\n[data]\ntrain = 7\n',
    "strange.toml": b"format = [1]\nlimit = nan\nskip = 1979-05-27\n",
    "zeros.gz": gzip.compress(bytes(2_000_000)),
    "zeros.txt.gz": gzip.compress(bytes(200_000)),
    "torn.txt.gz": gzip.compress(b"the cat\n" * 100)[:40],
    "no.gz": b"this is no gzip",
    "garbage.parquet": b"PAR1 this is no parquet PAR1",
    "garbage.zst": b"\x28\xb5\x2f\xfd garbage",
    "garbage.xz": b"\xfd7zXZ\x00 garbage",
    "garbage.bz2": b"BZh9 garbage",
    "formulas.csv": b"text\n=1+1\n@SUM(A1)\n+1\n-1\n",
    "escapes.txt": b"\x1b[31mred\x1b[0m [/b] [bold]\n\x1b]0;title\x07\n\x9b31m\n",
    "odd.txt": "ﷺ e\u0301 \u200b\u202e \U0001f468\u200d\U0001f469 \u2028 x \x85 y \x0c z\n".encode(),
    "masks.txt": b"[MASK]\n[MASK] [MASK]\n[CLS] [SEP] [PAD] [UNK]\n",
    "tensor.safetensors": b"\xff" * 64,
    "study.json": b'{"torn": ',
}  # fmt: skip
ODD_MODELS: dict[str, dict[str, str]] = {  # folders: file → content
    "no_model": {},
    "empty_config": {"config.json": ""},
    "number_config": {"config.json": "5"},
    "five": {"config.json": '{"architectures": 5}'},
    "deep_config": {"config.json": "[" * 3000 + "]" * 3000},
    "no_weights": {"config.json": '{"model_type": "bert", "architectures": ["BertForMaskedLM"]}'},
    "huge_config": {"config.json": '{"model_type": "bert", "architectures": ["BertForMaskedLM"], "num_hidden_layers": '
                                   '20000, "vocab_size": 100000000000}'},
    "pickled": {"config.json": '{"model_type": "bert", "architectures": ["BertForMaskedLM"]}',
                "pytorch_model.bin": "no pickle"},
    "kernel": {"config.json": '{"model_type": "bert", "architectures": ["BertForMaskedLM"], "_attn_implementation": '
                              '"owner/kernel"}'},
}  # fmt: skip
BAD_TOKENIZERS = {"a": '{"model_max_length": "a"}', "one": '{"model_max_length": 1}', "list": "[]"}


def write(root: Path) -> Path:
    """The pool, in `root/pool`; commands run in a folder beside it, and call it ../pool."""
    pool = root / "pool"
    pool.mkdir(parents=True)
    for name, content in {**GOOD, **HOSTILE}.items():
        (pool / name).write_bytes(content)
    (pool / "folder.txt").mkdir()
    for name, files in ODD_MODELS.items():
        (pool / name).mkdir()
        for file, text in files.items():
            (pool / name / file).write_text(text)
    network, tokenizer = networks.tiny("bert"), networks.vocabulary("bert").tokenizer
    for name, changed in {MODEL: None, **BAD_TOKENIZERS}.items():
        network.save_pretrained(pool / name)
        tokenizer.save_pretrained(pool / name)
        if changed is not None:
            (pool / name / "tokenizer_config.json").write_text(changed)
    return pool


FILES = [f"../pool/{name}" for name in [*GOOD, *HOSTILE, "folder.txt", "missing.txt"]] + ["/dev/null", ".", "a\0b", "-"]
MODELS = [f"../pool/{name}" for name in [*ODD_MODELS, *BAD_TOKENIZERS, "texts.txt", "missing"]] + ["no/such", "", "\0"]
