"""Where a saved network lies and what its files hold, found out before a weight is read.

Knows folders, the hub and file names. A hub name becomes the folder it is cached in, so that everything after is about
a folder. Refuses to know how a network is run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

from besag.errors import BesagError, nearest

Kind = Literal["masked", "causal", "neither"]

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.*", "*.model")
SMALL_FILES = ("*.json", "*.txt", "*.model", "*.codes")
WEIGHT_FILES = ("model.safetensors", "model-*.safetensors")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model-*.bin")
PICKLE_DANGER = (
    "a pickle can run any program on this machine while it is read. If you trust whoever made it, insist with "
    "allow_pickle=True"
)


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
    path = Path(model).expanduser()
    if os.path.isdir(path):  # unlike Path.is_dir, no error for a name that no folder could have
        return path
    if os.path.exists(path):
        raise BesagError(f"{str(model)!r} is a file; give the folder that holds it")
    if isinstance(model, Path) or not _may_be_on_the_hub(model):
        beside = [other.name for other in path.parent.iterdir() if other.is_dir()] if os.path.isdir(path.parent) else []
        raise BesagError(
            f"there is no folder {str(model)!r}, and it is no name of a model on the hub either (those read like "
            f"'bert-base-cased' or 'owner/name').{nearest(path.name, beside)}"
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=[*SMALL_FILES, *files]))
    except Exception as problem:  # no network, no such name, a closed repository: for the user it is one and the same
        at = f" at revision {revision!r}" if revision else ""
        raise BesagError(
            f"{model!r}{at} is no folder here, and could not be fetched from the Hugging Face hub: "
            f"{first_line(problem)}"
        ) from problem


def _may_be_on_the_hub(name: str) -> bool:
    import huggingface_hub.utils

    hub: Any = huggingface_hub.utils
    try:
        hub.validate_repo_id(name)
    except hub.HFValidationError:
        return False
    return True


def first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def has_any(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(next(folder.glob(pattern), None) for pattern in patterns)


def read_config(folder: Path, name: str) -> Any:
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        inside = sorted(file.parent.name for file in folder.glob("*/config.json"))
        hint = f"; its folder {inside[0]!r} has one" if inside else ""
        raise BesagError(f"{name!r} holds no config.json, so it is no saved Hugging Face model{hint}")
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as problem:
        raise BesagError(
            f"the config.json of {name!r} cannot be used: {first_line(problem)} (besag never runs code that comes "
            f"with a model)"
        ) from problem


class Architecture(NamedTuple):
    """What kind of network a config describes; `why_not` says why it is neither masked nor causal."""

    name: str
    kind: Kind
    why_not: str = ""


def architecture(config: Any, built: str | None = None) -> Architecture:
    """The class built or saved decides; where it says nothing (BertModel), its family does: masked before causal."""
    from transformers.models.auto import modeling_auto

    masked, causal = modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    saved = built or next(iter(config.architectures or ()), None)
    family = config.model_type
    name = saved or f"a {family} model"
    if config.is_encoder_decoder:
        return Architecture(name, "neither", "it is an encoder-decoder, which reads one text and writes another")
    if family in masked and (saved in masked.values() or saved not in causal.values()):
        return Architecture(name, "masked")
    if family in causal:
        return Architecture(name, "causal")
    return Architecture(name, "neither", f"the family {family!r} has no masked or causal language model")


def check_weights(folder: Path, name: str, allow_pickle: bool) -> bool:
    """True if the weights are safetensors, False if a pickle that is allowed; otherwise refused."""
    if has_any(folder, WEIGHTS):
        return True
    pickled = has_any(folder, PICKLES)
    if pickled and allow_pickle:
        return False
    if pickled:
        raise BesagError(f"{name!r} has its weights only as a pickle (pytorch_model.bin), and {PICKLE_DANGER}")
    raise BesagError(
        f"{name!r} has no weights as safetensors (no {WEIGHTS[0]})"
        + ("" if allow_pickle else f"; should it have them as a pickle only: {PICKLE_DANGER}")
    )


def stored_shapes(folder: Path, model: str | Path, revision: str | None) -> dict[str, tuple[int, ...]]:
    """Name and shape of every stored tensor, from the headers of the safetensors files: no weight is read."""
    files = sorted(file for pattern in WEIGHT_FILES for file in folder.glob(pattern))
    if not files and not Path(model).expanduser().is_dir():  # on the hub: the headers alone are fetched
        from huggingface_hub import get_safetensors_metadata
        from huggingface_hub.errors import NotASafetensorsRepoError

        try:
            stored = get_safetensors_metadata(str(model), revision=revision).files_metadata.values()
        except NotASafetensorsRepoError:
            return {}
        except Exception as problem:
            raise BesagError(f"what weights {str(model)!r} has could not be asked: {first_line(problem)}") from problem
        return {name: tuple(tensor.shape) for file in stored for name, tensor in file.tensors.items()}
    from safetensors import SafetensorError, safe_open

    shapes = {}
    for file in files:
        try:
            with safe_open(file, framework="numpy") as weights:
                names = weights.keys()
                shapes.update({name: tuple(weights.get_slice(name).get_shape()) for name in names})
        except SafetensorError as problem:
            raise BesagError(f"the weights of {str(model)!r} cannot be read: {first_line(problem)}") from problem
    return shapes


def size(shapes: dict[str, tuple[int, ...]]) -> int:
    return sum(prod(shape) for shape in shapes.values())
