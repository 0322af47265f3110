"""Distilled parallel text: targets as a left-to-right teacher writes them, each teacher asked about what it never saw.

    the pairs are dealt into K parts, pair i into part i mod K
    teacher k learns from all parts but k, by the recipe with decoder = "causal"
    part k's sources are translated by teacher k; every pair keeps its source and its line

A teacher on its own training pairs gives back what it has memorised; cross-fitted, no target was seen by whoever writes
it. A source that the teacher cannot translate keeps its own target, and that is counted. Every stage leaves a file or
folder, and is skipped where that is there: a run that was stopped is resumed by the same call.

    settings.json, recipe.toml   what the folder was begun with; a call with another recipe or setting is rejected
    teacher-k/                   the training run of a teacher
    part-k.json                  its targets so far, and the batches they were written in, so that a resumed part has
                                 the same bytes; one process works on a part at a time
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from besag.checks import checked, number, whole_number
from besag.errors import BesagError, quoted
from besag.files.claim import Claim
from besag.files.progress import differences
from besag.files.whole import write_whole
from besag.load_model import load
from besag.train_model import train
from besag.training import recipe as recipes
from besag.training.data.parallel import Pair, fingerprint, pairs
from besag.training.recipe import Changes, Recipe, recipe_of
from besag.training.run.claim import RECIPE, begun

BLOCK = 4096  # sources between two writings
FILES = ("train.source", "train.target")
# keys that change neither a teacher nor its targets; steps may change in a run that is resumed, but not here
FREE = {key for key in recipes.MAY_CHANGE if key.startswith(("run.", "data."))} - {"run.weights"}


class Distilled(NamedTuple):
    """What was written."""

    source: Path
    target: Path
    pairs: int
    kept: int  # pairs whose own target stands, since the teacher had none
    changed: int  # pairs whose target is another one now


@checked
def distil_translations(
    recipe: Recipe | str | Path | Mapping[str, Any],
    output: str | Path,
    changes: Changes = (),
    *,
    parts: int = 2,
    beam: int = 5,
    alpha: float = 1.0,
    part: int | None = None,
    device: str | None = None,
    quiet: bool = False,
) -> Distilled | None:
    """Parallel text with targets written by left-to-right teachers, none of which has seen the pair that it writes.

    Args:
        recipe: of a translator, as of `besag.train`; the teachers are trained as it says, but with a causal decoder.
        output: a folder for the teachers and for train.source and train.target; another call goes on with it.
        changes: keys of the recipe to change, for the teachers alone.
        parts: of the pairs, and teachers; each learns from all other parts. 1: one teacher, which echoes its own pairs.
        beam: of the teachers.
        alpha: their scores are log p / n^alpha.
        part: do this one alone, 0 … parts − 1, so that several processes or machines with one folder share the work.
        device: that the teachers translate on; if not given, the fastest there is.
        quiet: show no progress bar.

    Returns:
        The two files, line by line, in the order of the pairs that the recipe trains on, and what was changed. None
        where parts that others do are not there yet: who ends last writes the files.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("train.de").write_text("der Hund\\nzwei Katzen\\nein Haus\\ndie See\\n" * 5)
        >>> _ = Path("train.en").write_text("the dog\\ntwo cats\\na house\\nthe sea\\n" * 5)
        >>> small = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "decoder_attention_heads": 1}
        >>> sides = {"source": ["train.de"], "target": ["train.en"], "max_length": 24}
        >>> data = {**sides, "valid_source": ["train.de"], "valid_target": ["train.en"]}
        >>> model = {"family": "bart", "decoder": "masked", "config": {**small, "encoder_attention_heads": 1}}
        >>> recipe = {"data": data, "tokenizer": {"size": 280}, "model": model, "schedule": {"steps": 2}}
        >>> besag.distil_translations(recipe, "distilled", quiet=True).pairs
        20
    """
    whole_number(parts, "parts", most=64)
    whole_number(beam, "beam", most=2**16)
    number(alpha, "alpha", 0.0, 100.0)
    if part is not None:
        whole_number(part, "part", 0, most=parts - 1)
    folder = Path(output)
    wanted = recipe_of(recipe_of(recipe, changes), {"model.decoder": "causal"})
    if wanted.data.source_field is None and not wanted.data.source:
        raise BesagError("the recipe names no parallel text (data.source and data.target, or data.source_field)")
    folder.mkdir(parents=True, exist_ok=True)
    _same(folder, wanted, {"data": fingerprint(wanted.data), "parts": parts, "beam": beam, "alpha": alpha})
    found = list(pairs(wanted.data))
    if len(found) < 2 * parts:
        raise BesagError(f"{len(found)} pairs cannot be dealt into {parts} parts of two at least")
    for own in range(parts) if part is None else (part,):
        with Claim(_file(folder, own), "work on another part"):
            teacher = _teacher(folder, wanted, found, own, parts, quiet)
            _translate(_file(folder, own), teacher, found[own::parts], beam, alpha, device, quiet)
    return _written(folder, found, parts)


def _same(folder: Path, recipe: Recipe, settings: dict[str, Any]) -> None:
    """Reject a folder that was begun with other settings or another recipe: its teachers and targets are of those."""
    note, written, now = folder / "settings.json", folder / RECIPE, json.loads(json.dumps(settings))
    if not note.exists():
        write_whole(written, recipes.to_toml(recipe, beside=folder))
        write_whole(note, json.dumps(now, indent=1) + "\n")
        return
    differ = differences(json.loads(note.read_text()), now)
    if written.exists():
        changed = recipes.differences(recipes.read(written), recipe, by=_name)
        differ += [str(one) for one in changed if one.key not in FREE and not one.key.startswith(recipes.MAY_CHANGE_IN)]
    else:
        differ.append(f"there is no {RECIPE} that says which recipe its teachers are of")
    if differ:
        raise BesagError(f"{str(folder)!r} was begun otherwise: {'; '.join(differ)}. Take another folder")


def _name(path: str) -> str:
    """Files may lie in another folder, as they do on another machine."""
    return os.path.basename(os.path.normpath(path))


def _teacher(folder: Path, recipe: Recipe, found: list[Pair], part: int, parts: int, quiet: bool) -> Path:
    """The finished model of a teacher that has not seen its part, trained where it is not there."""
    output = folder / f"teacher-{part}"
    if (output / "model").is_dir():
        return output / "model"
    files = [folder / f"teacher-{part}.{side}" for side in ("source", "target")]
    seen = [pair for at, pair in enumerate(found) if parts == 1 or at % parts != part]
    for file, texts in zip(files, ([one.source.text for one in seen], [one.target.text for one in seen]), strict=True):
        write_whole(file, "".join(f"{text}\n" for text in texts))
    changes = {"data.train": [], "data.source_field": None, "data.source": [str(files[0])],
               "data.target": [str(files[1])]}  # fmt: skip
    own = recipe_of(recipe, changes, output=output)
    result = train(own, resume=begun(output), quiet=quiet)
    if not result.finished:
        raise BesagError(f"the teacher in {str(output)!r} was stopped before its end: the same call goes on with it")
    return Path(result.model)


def _translate(
    file: Path, teacher: Path, own: list[Pair], beam: int, alpha: float, device: str | None, quiet: bool
) -> None:
    """The teacher's targets of a part; None where it has none. Those of an earlier call stay."""
    done, batches = _read(file)
    if len(done) < len(own):
        lm = load(teacher, device=device, progress=False if quiet else None)
        lm.engine.repeat(batches)
        for start in range(len(done), len(own), BLOCK):
            sources = [pair.source.text for pair in own[start : start + BLOCK]]
            found = lm.translate(sources, beam=beam, alpha=alpha)
            done += [row.text if row.status == "ok" and row.text.strip() else None for row in found]
            write_whole(file, json.dumps({"batches": lm.engine.found, "targets": done}, ensure_ascii=False) + "\n")


def _file(folder: Path, part: int) -> Path:
    return folder / f"part-{part}.json"


def _read(file: Path) -> tuple[list[str | None], list[int] | None]:
    """The targets of a part so far, and the batches that they were written in."""
    if not file.exists():
        return [], None
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        return list(said["targets"]), list(said["batches"])
    except (ValueError, TypeError, KeyError) as problem:
        raise BesagError(
            f"{quoted(str(file))} holds no targets that this version of besag has written: remove it, and its sources "
            "are translated again"
        ) from problem


def _written(folder: Path, found: list[Pair], parts: int) -> Distilled | None:
    written: list[str | None] = [None] * len(found)
    for part in range(parts):
        own, _ = _read(_file(folder, part))
        if len(own) < len(found[part::parts]):
            return None
        written[part::parts] = own
    targets = [pair.target.text if text is None else text for pair, text in zip(found, written, strict=True)]
    for name, texts in zip(FILES, ([pair.source.text for pair in found], targets), strict=True):
        write_whole(folder / name, "".join(f"{text}\n" for text in texts))
    kept = sum(text is None for text in written)
    changed = sum(pair.target.text != text for pair, text in zip(found, targets, strict=True))
    return Distilled(folder / FILES[0], folder / FILES[1], len(found), kept, changed)
