"""A head from the folder that `besag train head` wrote, or any that transformers saved: safetensors alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from besag.checks import checked
from besag.conditionals import checkpoint as saved
from besag.conditionals import loading, weights
from besag.conditionals.configuration import read_config, read_json, reason
from besag.errors import BesagError, quoted
from besag.hardware import choose_device
from besag.heads.head import Classifier, Tagger
from besag.heads.network import family, name_labels

HEADS: dict[str, Any] = {"ForSequenceClassification": Classifier, "ForTokenClassification": Tagger}
MOST_LABELS = 100_000
KINDS: dict[str, Any] = {"ForSequenceClassification": "classify", "ForTokenClassification": "tag"}


@checked
def load_head(
    model: str | Path, *, device: str | torch.device | None = None, revision: str | None = None
) -> Classifier | Tagger:
    """A classifier or a tagger, from a folder or a hub name.

    Args:
        model: a folder that `besag train head` or transformers wrote, or a name on the hub.
        device: "cpu", "cuda" …; if not given, the fastest there is.
        revision: of a head on the hub.

    Returns:
        A `Classifier` or a `Tagger`, by what was saved. Weights that are missing are refused, never made up.

    Examples:
        >>> besag.load_head("no such head")
        Traceback (most recent call last):
            ...
        besag.errors.BesagError: there is no folder 'no such head', and it is no name of a model on the hub either (those read like 'bert-base-cased' or 'owner/name').
    """  # noqa: E501 (an error message)
    name = str(model)
    folder = saved.find_folder(model, revision, *saved.WEIGHT_FILES)
    with saved.quiet():
        config = read_config(folder, name)
        written = next(iter(config.architectures or ()), "nothing")
        ending = next((one for one in HEADS if str(written).endswith(one)), None)
        if ending is None:
            raise BesagError(
                f"{quoted(name)} was saved from {quoted(written)}, which gives no labels: give the folder of a "
                "classifier or a tagger (besag train head writes them)"
            )
        name_labels(config, _labels(folder, name))
        stored = weights.read_weights(weights.weight_files(folder, name, allow_pickle=False), name)
        kind = family(config, KINDS[ending], name)
        try:
            network, info = kind.from_pretrained(
                None, config=config, state_dict=stored, dtype=torch.float32, output_loading_info=True
            )
        except Exception as problem:
            raise BesagError(f"the weights of {quoted(name)} cannot be read: {reason(problem)}") from problem
        if info["missing_keys"]:
            raise BesagError(f"{quoted(name)} lacks the weights {sorted(info['missing_keys'])[:3]}: it is not whole")
        vocabulary = loading.read_vocabulary(folder, name, config)
    if vocabulary.pad_id is None:
        raise BesagError(f"the tokenizer of {quoted(name)} has no padding token, which batches of texts need")
    network = network.to(choose_device(device))
    return HEADS[ending](network, vocabulary, Path(name).name)  # type: ignore[no-any-return]


def _labels(folder: Path, name: str) -> list[str]:
    """What the numbers of the labels are called; transformers writes nothing where there are two without names."""
    unnamed = {"0": "LABEL_0", "1": "LABEL_1"}
    said = read_json(folder / "config.json", f"the config.json of {quoted(name)}").get("id2label", unnamed)
    numbers = [str(number) for number in range(len(said))] if isinstance(said, dict) else []
    if not 2 <= len(numbers) <= MOST_LABELS or set(said) != set(numbers):
        raise BesagError(f"the config.json of {quoted(name)} names no labels: id2label is {quoted(said)}")
    return [str(said[number]) for number in numbers]
