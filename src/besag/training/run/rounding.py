"""The weights of a saved model written in another kind of numbers, and what that costs, measured before it is kept.

    cost = mean over tokens of |log p̂(x_i | rest) − log p(x_i | rest)|     by `pll`, both networks run in float32

So the cost is that of the stored numbers alone. It stands on the card; where it is above a bound nothing is written.
Knows folders and scores. Refuses to know how a network is trained.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file

from besag.conditionals import checkpoint as saved
from besag.conditionals import eight_bits, weights
from besag.conditionals.configuration import WEIGHTS_KEY, read_json
from besag.conditionals.contract import takes_source
from besag.conditionals.loading import load_conditionals
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted
from besag.files.folders import whole_folder
from besag.files.whole import write_whole
from besag.hardware import DTYPES
from besag.results.words import counted
from besag.scores.scoring import score

KINDS = ("float32", "bfloat16", "float16", "int8")
MOST = 0.05  # nats a token
CARD = "README.md"
OTHER_WEIGHTS = (
    *saved.WEIGHT_FILES,
    *saved.PICKLE_FILES,
    "*.index.json",
    "*.bin",
    "*.h5",
    "*.msgpack",
    "*.onnx",
    "*.gguf",
)

SENTENCES = (  # where none are given; of several registers, since a rounding may hurt some words more than others
    "The keys to the cabinet are on the table.",
    "Two young children are playing with a ball in the park.",
    "She was born in a small town near the coast and moved to the city at the age of nine.",
    "I don't know what you want me to say.",
    "The court held that the contract had been broken by both parties.",
    "Prices rose by three percent in the second quarter, more than analysts had expected.",
    "Who did the teacher say that the students had invited?",
    "It rained all night, and in the morning the streets were under water.",
    "No student who had read the book was surprised by the question.",
    "In 1905 he published four papers that changed physics.",
    "Could you pass me the salt, please?",
    "The old man looked at himself in the mirror and laughed.",
    "Most of the water that falls on these mountains flows into the sea.",
    "There seem to be two mistakes in the last line of the letter.",
    "He has never been to Paris, but his sister has lived there for years.",
    "A woman in a red coat is walking her dog along the river.",
)


class Cost(NamedTuple):
    """What the new numbers change."""

    kind: str
    texts: int
    tokens: int
    mean: float  # nats a token
    largest: float
    pairs: int  # decided, that is with both sentences scored
    changed: int  # of them, decided otherwise
    bytes_before: int  # of the weights
    bytes_after: int

    @property
    def words(self) -> str:
        """In one line."""
        decisions = f"; {counted(self.changed, 'decision')} of {counted(self.pairs, 'minimal pair')} changed"
        return (
            f"{self.kind}: {self.mean:.4f} nats a token on average, {self.largest:.3f} at most "
            f"({counted(self.tokens, 'token')} of {counted(self.texts, 'text')}){decisions if self.pairs else ''}; "
            f"{self.bytes_before / 1e6:.1f} MB became {self.bytes_after / 1e6:.1f} MB"
        )


def export(
    model: str | Path,
    output: str | Path,
    kind: str,
    *,
    texts: Sequence[str] = SENTENCES,
    sources: Sequence[str] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    most: float = MOST,
    revision: str | None = None,
    force: bool = False,
) -> Cost:
    """A copy of a saved model with its weights in another kind of numbers; none where that costs too much.

    `sources`: of a translator, what each of the texts is given.
    """
    output = Path(output)
    check(kind, most)
    if output.exists() and not force:
        raise BesagError(f"{quoted(str(output))} exists already: name another folder, or insist with --force")
    source = saved.find_folder(model, revision, *saved.WEIGHT_FILES)
    weights.weight_files(source, str(model), allow_pickle=False)
    if source.resolve() == output.resolve():
        raise BesagError(f"{quoted(str(output))} is the model itself: name another folder")
    try:
        with whole_folder(output) as draft:
            _copy(source, draft)
            return round_folder(draft, kind, str(model), texts=texts, sources=sources, pairs=pairs, most=most)
    except OSError as problem:
        raise BesagError(f"{quoted(str(output))} could not be written: {problem.strerror or problem}") from problem


def check(kind: str, most: float) -> None:
    """Refuse a kind that nobody knows, and a bound that is none."""
    if kind not in KINDS:
        raise BesagError(f"weights {quoted(kind)}: besag writes {', '.join(KINDS)}.{nearest(kind, KINDS)}")
    if not most >= 0:
        raise BesagError(f"at most {most} nats a token: the bound must be 0 or more")


def round_folder(
    folder: Path,
    kind: str,
    name: str,
    *,
    texts: Sequence[str] = SENTENCES,
    sources: Sequence[str] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    most: float = MOST,
) -> Cost:
    """The same in a folder that is not in use yet, and is to be dropped where an error says that it costs too much."""
    sentences = [sentence for pair in pairs for sentence in pair]
    if sources is not None and sentences:
        raise BesagError("minimal pairs have no sources, so a translator cannot be asked about them: leave them out")
    before = _scores(folder, name, [*texts, *sentences], sources)
    old = weights.weight_files(folder, name, allow_pickle=False)
    size = sum(file.stat().st_size for file in old)
    new = _write(folder, weights.read_weights(old, name), kind, name)
    for file in {*old, folder / (weights.SAFE + weights.INDEX)} - {new}:
        file.unlink(missing_ok=True)
    after = _scores(folder, name, [*texts, *sentences], sources)
    cost = _cost(before, after, len(texts), kind, size, new.stat().st_size, name)
    if not cost.mean <= most:
        raise BesagError(
            f"{quoted(name)} is not written as {kind}: that changes it by {cost.mean:.4f} nats a token, and at most "
            f"{most:g} were allowed"
        )
    _write_card(folder, cost)
    return cost


def _copy(source: Path, draft: Path) -> None:
    """Everything but weights in another form, of which there would be two kinds; and the weights that are read."""
    used = {file.name for file in weights.weight_files(source, source.name, allow_pickle=False)}
    for file in sorted(source.iterdir()):
        other = any(file.match(pattern) for pattern in OTHER_WEIGHTS) and file.name != weights.SAFE + weights.INDEX
        if file.is_file() and (file.name in used or not other):
            shutil.copyfile(file, draft / file.name)


def _write(folder: Path, stored: dict[str, torch.Tensor], kind: str, name: str) -> Path:
    if kind == "int8":
        file, found = folder / weights.EIGHT_BITS, eight_bits.pack(stored)
    else:
        file, dtype = folder / weights.SAFE, DTYPES[kind]
        found = {
            key: (weight.to(dtype) if weight.is_floating_point() else weight).contiguous()
            for key, weight in stored.items()
        }
    for key, weight in found.items():
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise BesagError(
                f"{quoted(name)} is not written as {kind}: {quoted(key)} would hold NaN or infinite numbers"
            )
    draft = file.with_name(f".{file.name}.draft")  # the old file may have the same name, and is read from the disk
    save_file({key: weight.clone() for key, weight in found.items()}, draft, metadata={"format": "pt"})
    draft.replace(file)
    config: dict[str, Any] = read_json(folder / "config.json", f"the config.json of {quoted(name)}")
    config = {key: value for key, value in config.items() if key not in (WEIGHTS_KEY, "torch_dtype")}
    config["dtype"] = "float32" if kind == "int8" else kind
    if kind == "int8":
        config[WEIGHTS_KEY] = kind
    write_whole(folder / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
    return file


def _scores(folder: Path, name: str, texts: Sequence[str], sources: Sequence[str] | None) -> list[Any]:
    network = load_conditionals(folder, device="cpu", dtype="float32", name=name)
    if takes_source(network) and sources is None:
        raise BesagError(
            f"{quoted(name)} is a translator: what other numbers cost it is measured on targets given sources. "
            "Name a table of both: --texts pairs.tsv --column en --source-column de"
        )
    if sources is not None and not takes_source(network):
        raise BesagError(f"{quoted(name)} is no translator: it is given no sources")
    engine, how = Engine(network, progress=False), "pll" if network.sees == "both" else "causal"
    given = {} if sources is None else {"sources": list(sources)}
    found: list[Any] = score(engine, list(texts), how, **given)
    return found


def _cost(
    before: Sequence[Any], after: Sequence[Any], texts: int, kind: str, bytes_before: int, bytes_after: int, name: str
) -> Cost:
    both = [(one, other) for one, other in zip(before, after, strict=True) if one.status == other.status == "ok"]
    if not both:
        raise BesagError(f"none of the texts could be scored by {quoted(name)}, so what {kind} costs is not known")
    apart = np.abs(np.concatenate([one.log_probs - other.log_probs for one, other in both]))
    totals = [[float("nan") if one.status != "ok" else one.total for one in found[texts:]] for found in (before, after)]
    first, second = (np.sign(np.subtract(found[::2], found[1::2])) for found in totals)  # (P,) 1: the good one wins
    decided = ~np.isnan(first + second)
    changed = int((first != second)[decided].sum())
    return Cost(
        kind, len(both), len(apart), float(apart.mean()), float(apart.max()), int(decided.sum()), changed,
        bytes_before, bytes_after,
    )  # fmt: skip


def _write_card(folder: Path, cost: Cost) -> None:
    file = folder / CARD
    before = file.read_text(encoding="utf-8").rstrip() + "\n\n" if file.is_file() else "# A model in other numbers\n\n"
    lines = [
        f"- {cost.words}; measured by besag before this was written (`pll`, of a causal network `causal`; both kinds "
        "of weights run in float32).",
    ]
    if cost.kind == "int8":
        lines.append(
            f"- Every matrix by rows: whole numbers −127 … 127 under its name, and one float32 scale a row under its "
            f"name with `{weights.SCALE}` at the end, in {weights.EIGHT_BITS}. All else is as it was. "
            f"`besag.load(FOLDER)` reads it; others read what `besag export FOLDER OUT --weights float32` writes."
        )
    write_whole(file, f"{before}## Weights as {cost.kind}\n\n" + "\n".join(lines) + "\n")
