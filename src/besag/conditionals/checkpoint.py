"""Where a saved network lies and what kind of network it is, found out before a weight is read.

Knows folders, the hub and file names. A hub name becomes the folder it is cached in, so that everything after is about
a folder. Refuses to know how a network is run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, NamedTuple

from besag.conditionals import families
from besag.conditionals.configuration import decoder_of, reason
from besag.conditionals.published import BOTH_SIDES
from besag.errors import BesagError, nearest, quoted
from besag.models import BEFORE, EMBEDDED

Kind = Literal["masked", "causal", "masked decoder", "causal decoder", "neither"]

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.*", "*.model")
SMALL_FILES = ("*.json", "*.txt", "*.model", "*.codes")
SCORER_FILE = "scorer.safetensors"  # what lies beside the weights of a model that was taught to score in one pass
COUNTS_FILE = "token_counts.safetensors"  # what masks/token_schedules.py puts there
WEIGHT_FILES = ("model.safetensors", "model-*.safetensors", "model.int8.safetensors")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model-*.bin")
NEAR = 0.8  # how alike a name without an owner and the embedded model's must be for it to be a slip


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars or advice from transformers in here; afterwards it is as talkative as before."""
    import huggingface_hub.utils
    import transformers.utils.logging

    hub: Any = huggingface_hub.utils
    logging: Any = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    no_downloads = hub.are_progress_bars_disabled()  # the switch of transformers turns the hub's as well
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
        if no_downloads:
            hub.disable_progress_bars()


def find_folder(model: str | Path, revision: str | None, *files: str) -> Path:
    """The folder named, or the one in which a hub name is cached, with these files of it fetched."""
    try:
        path = Path(model).expanduser()
    except RuntimeError:  # the home of somebody who is not known here
        path = Path(model)
    if os.path.isdir(path):  # unlike Path.is_dir, no error for a name that no folder could have
        return path
    if os.path.exists(path):
        raise BesagError(f"{quoted(str(model))} is a file; give the folder that holds it")
    beside = [other.name for other in path.parent.iterdir() if other.is_dir()] if os.path.isdir(path.parent) else []
    if isinstance(model, Path) or not _may_be_on_the_hub(model):
        raise BesagError(
            f"there is no folder {quoted(str(model))}, and it is no name of a model on the hub either (those read like "
            f"'bert-base-cased' or 'owner/name').{nearest(path.name, beside)}"
        )
    if model == BEFORE:
        raise BesagError(f"{model!r} is no longer embedded: {EMBEDDED!r} is. Where it was kept, give its folder")
    guess = nearest(model, [EMBEDDED, *beside])
    if "/" not in model and SequenceMatcher(None, model.lower(), EMBEDDED).ratio() >= NEAR:
        raise BesagError(f"there is no model {quoted(model)}, neither embedded nor as a folder.{guess}")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=[*SMALL_FILES, *files]))
    except Exception as problem:  # no network, no such name, a closed repository: for the user it is one and the same
        at = f" at revision {quoted(revision)}" if revision else ""
        raise BesagError(
            f"{quoted(model)}{at} is no folder here, and could not be fetched from the Hugging Face hub: "
            f"{reason(problem)}{guess}"
        ) from problem


def _may_be_on_the_hub(name: str) -> bool:
    import huggingface_hub.utils

    hub: Any = huggingface_hub.utils
    try:
        hub.validate_repo_id(name)
    except hub.HFValidationError:
        return False
    return True


def has_any(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(next(folder.glob(pattern), None) for pattern in patterns)


class Architecture(NamedTuple):
    """What kind of network a config describes; `why_not` says why it is neither masked nor causal."""

    name: str
    kind: Kind
    why_not: str = ""


def architecture(config: Any, built: str | None = None) -> Architecture:
    """The class built or saved decides; where it says nothing (BertModel), its family does: masked before causal."""
    masked, causal = families.masked(), families.causal()
    saved = built or next(iter(config.architectures or ()), None)
    family = config.model_type
    name = saved or f"a {family} model"
    if config.is_encoder_decoder:
        if family not in families.decoders() or saved not in (None, *families.decoders().values()):
            return Architecture(name, "neither", "it is an encoder-decoder without a head that writes text")
        return Architecture(name, "masked decoder" if decoder_of(config) == "masked" else "causal decoder")
    if family in masked and (saved in masked.values() or saved not in causal.values()):
        return Architecture(name, "masked")
    if family in causal and getattr(config, "is_causal", True) is False:
        remedy = f": set model_type to 'a2d-{family}' and leave out architectures" if family in BOTH_SIDES else ""
        why = f"its configuration says is_causal=false, and the family {quoted(family)} has no masked language model"
        return Architecture(name, "neither", why + remedy)
    if family in causal:
        return Architecture(name, "causal")
    return Architecture(name, "neither", f"the family {quoted(family)} has no masked or causal language model")
