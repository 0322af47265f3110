"""A finished run as a Hugging Face folder: network, tokenizer, card, and what the law of masks tilted; or its adapter.

Written under a temporary name and renamed when whole. Whoever calls it has put the weights in that are to be saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from besag.conditionals import adapters, tilt
from besag.conditionals import checkpoint as saved
from besag.conditionals.published import shift_of
from besag.errors import BesagError, quoted
from besag.files.folders import whole_folder
from besag.masks.rates import LEAST
from besag.training.data.cache import Cache, tokenizer_digest
from besag.training.network import adapt, networks, subtokens
from besag.training.recipe import is_apart
from besag.training.run import card, rounding
from besag.training.run.build import Built
from besag.training.run.schedule import Progress
from besag.training.run.sittings import Sitting
from besag.training.tokenizer.saving import save_whole

HELD_OUT_TEXTS, HELD_OUT_TOKENS = 100, 30  # documents, and how much of each


def export(
    folder: Path,
    built: Built,
    progress: Progress,
    metrics: Mapping[str, float],
    *,
    before: Mapping[str, float] | None = None,
    sittings: Sequence[Sitting] = (),
    processes: int = 1,
    command: str = "",
    curves: Path | None = None,
) -> None:
    try:
        with whole_folder(folder) as draft:
            _write(draft, built, progress, metrics, before or {}, sittings, processes, command, curves)
    except (OSError, SafetensorError, BesagError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise BesagError(
            f"the model could not be written to {str(folder)!r}: {why}. The last checkpoint is whole: make room "
            "and go on with --resume (with run.weights=as-trained where it is their rounding that is refused)"
        ) from problem


def _write(
    draft: Path,
    built: Built,
    progress: Progress,
    metrics: Mapping[str, float],
    before: Mapping[str, float],
    sittings: Sequence[Sitting],
    processes: int,
    command: str,
    curves: Path | None,
) -> None:
    trained, total = _counted(built.model)
    apart = is_apart(built.recipe.adapt)
    if apart:
        model, added = built.model, _write_adapter(draft, built)
        total -= added
    else:
        model, added = adapt.finish(subtokens.fold(built.model)), 0
        with saved.quiet():
            model.save_pretrained(draft)
            save_whole(built.vocabulary.tokenizer, draft)
    objective: Any = built.objective
    rate = built.mean_rate(progress.share) * built.recipe.masking.copies  # over all copies of a passage
    rate = max(min(1.0, rate), LEAST)  # at a rate that falls to 0 nothing is hidden, and π is its limit
    law = built.masking.law
    if (log_pi := law.tilt(rate) if objective.masks else None) is not None:
        tilt.save_tilt(draft, log_pi, law.name)
    objective.save_extras(draft)
    facts = card.Facts(
        architecture=type(model).__name__,
        parameters=model.num_parameters() - added,
        trained=trained if trained < total else None,
        vocabulary=built.vocabulary.size,
        tokenizer_sha256=tokenizer_digest(built.vocabulary),
        sources=_sources(built.train),
        held_out=_sources(built.valid),
        train_tokens=None if built.train is None else len(built.train.tokens),
        train_sha256=_digest(built.train),
        held_out_sha256=_digest(built.valid),
        steps=progress.step,
        tokens=progress.tokens,
        batches=progress.batches_of(processes),
        unmasked=progress.unmasked,
        seconds=progress.seconds,
        sittings=[str(sitting) for sitting in sittings],
        purpose=objective.purpose,
        shift=shift_of(model.config),
        masks=objective.masks,
        tilted=log_pi is not None,
        tilt_file=None if log_pi is None else tilt.FILE,
        tilt_rate=None if log_pi is None else rate,
        hardware=card.hardware_words(str(built.device), processes),
        command=command or None,
        metrics=metrics,
        before=before,
    )
    card.write(draft, built.recipe, facts, curves=curves)
    if (weights := built.recipe.run.weights) != "as-trained":
        with saved.quiet():
            rounding.round_folder(draft, weights, "the trained model", texts=_held_out_texts(built))


def _write_adapter(draft: Path, built: Built) -> int:
    """The adapter alone, beside a base that the run has left as it is; how many weights it has."""
    start, how = str(built.recipe.model.start), built.recipe.adapt
    began = dict(networks.network(built.recipe, built.vocabulary).named_parameters())
    for name, weight in adapt.own_weights(built.model).items():
        if name not in began or not torch.equal(weight.cpu(), began[name].detach().to(weight.dtype)):
            raise BesagError(f"model.start = {quoted(start)} is not what it was when the run began: its {name} differs")
    folder = saved.find_folder(networks.found(start), None, *saved.WEIGHT_FILES)
    added = adapt.apart(built.model)
    about = adapters.Adapter(
        "lora" if how.method == "lora" else "bottleneck", how.rank, how.alpha, card.shown(start),
        adapters.digest_of(folder, start),
    )  # fmt: skip
    adapters.save(draft, about, added)
    return sum(weight.numel() for weight in added.values())


def _counted(model: Any) -> tuple[int, int]:
    """How many weights were trained, and how many there are."""
    sizes = [(weight.requires_grad, weight.numel()) for weight in model.parameters()]
    return sum(size for trained, size in sizes if trained), sum(size for _, size in sizes)


def _held_out_texts(built: Built) -> list[str]:
    """The beginnings of documents that were held out, on which is measured what a rounding costs."""
    cache = built.valid
    if cache is None:
        return list(rounding.SENTENCES)
    tokenizer = built.vocabulary.tokenizer
    starts = [int(start) for start in cache.documents[:-1][:HELD_OUT_TEXTS]]
    ends = [int(end) for end in cache.documents[1:][:HELD_OUT_TEXTS]]
    cut = [
        cache.tokens[start : min(end, start + HELD_OUT_TOKENS)].tolist()
        for start, end in zip(starts, ends, strict=True)
    ]
    return [tokenizer.decode(ids, skip_special_tokens=True) for ids in cut]


def _digest(cache: Cache | None) -> str | None:
    """The checksum of the tokens of a cache."""
    return None if cache is None else cache.meta["arrays"]["tokens"]["sha256"]


def _sources(cache: Cache | None) -> list[card.Source]:
    """The files that a cache was made from; how many documents came from each is not kept, unless it was one."""
    if cache is None:
        return []
    made_from = cache.meta.get("made_from", {}).get("sources", {})
    names = [Path(name).name for name, *_ in made_from.get("files", ())]
    names += [name for name in (made_from.get("dataset") or ())[:1] if name]
    if len(names) == 1:
        return [card.Source(names[0], documents=len(cache.documents) - 1, tokens=len(cache.tokens))]
    return [card.Source(name) for name in names]
