"""Sentences under an energy as a law: log p(x) = −E(x)/T − log Z, with log Z estimated by `annealed.py`.

Z is over all token sequences of the text's length, or over the fillings of a template; texts of one length share one
estimate. A probability of token sequences, given the length, as that of the score `chain`, but of another law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from besag.engine import Engine
from besag.errors import BesagError
from besag.results.words import quoted
from besag.samplers.annealed import LogZ, log_partition, log_probability
from besag.samplers.sheet import allowed_tokens, template


class Normalised(NamedTuple):
    text: str
    log_prob: float  # nats
    low: float  # of the interval, which is log Z's
    high: float
    log_z: LogZ


def normalise(engine: Engine, texts: Sequence[str], within: str | None = None, **options: Any) -> list[Normalised]:
    """The log-probability of each text under exp(−E/T), among texts of its length or among the fillings of `within`."""
    if isinstance(texts, str):
        raise BesagError(f"expected a list of texts, got the text {texts!r}: write [{texts!r}].")
    model = engine.conditionals
    allowed = allowed_tokens(model)
    partitions: dict[int, LogZ] = {}
    found = []
    for text in texts:
        sheet = template(model, text, free="all") if within is None else template(model, within)
        canvas = sheet.canvas(model, 1, allowed)
        [encoded] = model.vocabulary.encode([text])
        if model.vocabulary.mask_id in encoded.ids:
            raise BesagError(f"{quoted(text)} holds a mask, and has no probability: give it as `within`.")
        ids = torch.from_numpy(encoded.ids)[None].to(canvas.ids.device)
        if ids.shape != canvas.ids.shape or bool((ids != canvas.ids)[~canvas.free].any()):
            raise BesagError(f"{quoted(text)} is no filling of {quoted(within or text)}, token by token.")
        length = canvas.ids.shape[1]
        if length not in partitions:
            partitions[length] = log_partition(engine, canvas, **options)
        estimate, low, high = (float(part[0]) for part in log_probability(engine, canvas, ids, partitions[length]))
        found.append(Normalised(text, estimate, low, high, partitions[length]))
    return found
