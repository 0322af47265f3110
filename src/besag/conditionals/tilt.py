"""Taking out of a network's answers what its law of masks put in.

A law that hides token v with chance π(v) where it stands (frequent tokens less, hard ones more) shows the network
hidden places in which v is π(v) times as common as in text. For one hidden place, or places that are independent given
what is shown, the network learns

    q(v | shown) = p(v | shown) π(v) / Z,   so   p(v | shown) ∝ exp(logit(v) − log π(v)).

With several dependent hidden places it is their joint that is tilted, by Π π, and one place after the other is
corrected only about. Special tokens were never hidden; their logits stay as they are.

A training run saves log π beside the weights, `besag.load(folder, untilt=True)` takes it out, and the name of the model
in every result then says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from besag.conditionals import checkpoint as saved
from besag.conditionals.configuration import reason
from besag.conditionals.contract import Conditionals
from besag.conditionals.wrapping import Wrapping
from besag.errors import BesagError, quoted

FILE, KEY = "tilt.safetensors", "log_pi"


class Tilt(NamedTuple):
    log_pi: np.ndarray  # (V,) float64
    law: str


class Untilted(Wrapping):
    """The same conditionals with −log π(v) added to the logit of every token that is not special."""

    def __init__(self, conditionals: Conditionals, tilt: Tilt) -> None:
        super().__init__(conditionals, f"{conditionals.name} (untilted: {tilt.law})")
        self.tilt = tilt
        log_pi = _checked(tilt.log_pi, f"the tilt of {conditionals.name!r}")
        if len(log_pi) != self.width and not self.vocabulary.size <= len(log_pi) < self.width:
            raise BesagError(
                f"the tilt of {conditionals.name!r} is about {len(log_pi)} tokens, but its vocabulary has "
                f"{self.vocabulary.size}: they do not belong together"
            )
        shift = torch.zeros(self.width, dtype=torch.float64)  # heads may be wider than their tokenizer
        shift[: len(log_pi)] = torch.from_numpy(log_pi)
        shift[[id for id in self.vocabulary.special_ids if id < self.width]] = 0.0
        self._shift = shift.to(self.device, torch.float64 if self.dtype == torch.float64 else torch.float32)

    def head(self, rows: Tensor) -> Tensor:
        return self.inner.head(rows) - self._shift


def save_tilt(folder: str | Path, log_pi: ArrayLike, law: str) -> Path:
    """Write log π (V,) into the folder of a model, with the name of the law."""
    from safetensors.numpy import save_file

    file = Path(folder) / FILE
    checked = _checked(log_pi, f"the tilt of the law {law!r}")
    save_file({KEY: np.ascontiguousarray(checked)}, file, metadata={"law": law})
    return file


def load_tilt(folder: str | Path) -> Tilt | None:
    """What `save_tilt` wrote there; None where there is nothing."""
    from safetensors import safe_open

    file = Path(folder) / FILE
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="numpy") as stored:
            log_pi, law = stored.get_tensor(KEY), (stored.metadata() or {}).get("law", "?")
    except Exception as problem:  # torn, something else, or without the tensor
        raise BesagError(f"{quoted(str(file))} cannot be read: {reason(problem)}") from problem
    return Tilt(_checked(log_pi, quoted(str(file))), law)


def untilted(conditionals: Conditionals, model: object, revision: str | None = None) -> Untilted:
    """The conditionals of a folder or hub name without the tilt that is saved there."""
    if not isinstance(model, str | Path):
        raise BesagError(
            "untilt=True reads log π from the folder of a model, and this model has none: wrap it yourself in "
            "besag.conditionals.tilt.Untilted"
        )
    tilt = load_tilt(saved.find_folder(model, revision, FILE))
    if tilt is None:
        raise BesagError(
            f"{conditionals.name!r} has no {FILE}: it was not trained with a law of masks that looks at tokens "
            f"(or not by besag), so there is no tilt to take out"
        )
    return Untilted(conditionals, tilt)


def _checked(log_pi: ArrayLike, what: str) -> np.ndarray:
    table = np.asarray(log_pi, dtype=np.float64)
    if table.ndim != 1 or not np.isfinite(table).all():
        raise BesagError(f"{what} must be one finite number for each token (log π; what is never hidden has none)")
    return table
