"""What turns one pass over a text into its pseudo-log-likelihood: a linear correction of what the network says.

    f_i = log q_i(x_i) + w · z_i,    z_i = (1 − q_i(x_i)) · (h_i, log q_i(x_i), max_v log q_i(v), 1)

q_i is what the network says at place i in that pass, h_i the hidden state it says it from: a twin's where the network
bears twins (`conditionals/twins.py`), else the shown place's own. What it is sure of stays as it is. w lies in
scorer.safetensors in the folder of the model, beside weights in which it changes nothing. Knows that file, and how it
is applied; refuses to know how it was learned (`distilling.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Floats
from besag.conditionals.checkpoint import SCORER_FILE as FILE
from besag.conditionals.configuration import reason
from besag.conditionals.contract import Conditionals
from besag.conditionals.twins import TWINS
from besag.errors import BesagError, quoted
from besag.reductions import Chunk

KEY = "weight"
MOST = 2**16  # numbers in w: eight times the widest state there is
BESIDE = 3  # features beside the state
View = Literal["twins", "plain"]
VIEWS: tuple[View, ...] = ("twins", "plain")


def evidence(chunk: Chunk) -> tuple[Tensor, Tensor]:  # (m,), (m, H + 3)
    """log q_i(x_i) and z_i of each ask, in float32 at least."""
    assert chunk.rows is not None  # the engine gives them
    said = chunk.target_logits() - chunk.normaliser[chunk.which]
    surest = chunk.per_ask(chunk.logits.amax(-1) - chunk.normaliser)
    beside = torch.stack([said, surest, torch.ones_like(said)], -1)  # (m, 3)
    state = chunk.per_ask(chunk.rows.to(said.dtype))
    return said, torch.cat([state, beside], -1) * -torch.expm1(said)[:, None]


@dataclass(frozen=True)
class Evidence:
    """The reduction that keeps z itself, from which w is learned."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {"evidence": evidence(chunk)[1]}


@dataclass(frozen=True, eq=False)  # holds arrays, so it is only the same as itself
class Regression:
    """w, as a reduction: the estimate of log p(x_i | x_∖i) at each ask."""

    view: View
    weight: Floats  # (H + 3,)
    teacher: str = ""  # whose pll it learned

    def __post_init__(self) -> None:
        weight = np.asarray(self.weight, np.float64)
        if self.view not in VIEWS:
            raise BesagError(f"a scorer looks at 'twins' or 'plain', not at {quoted(self.view)}")
        if weight.ndim != 1 or not BESIDE < len(weight) <= MOST or not np.isfinite(weight).all():
            raise BesagError(f"a scorer has one finite weight a feature, and at most {MOST:,}")
        object.__setattr__(self, "weight", weight)

    @property
    def wish(self) -> str:
        """How the network is to be asked."""
        return TWINS if self.view == "twins" else ""

    @cached_property
    def _tensor(self) -> Tensor:
        return torch.from_numpy(self.weight)

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        said, found = evidence(chunk)
        return {"regressed": said + found @ self._tensor.to(found.device, found.dtype)}

    def save(self, folder: Path) -> None:
        from safetensors.numpy import save_file

        said = {"view": self.view, "teacher": self.teacher}
        save_file({KEY: self.weight.astype(np.float32)}, folder / FILE, metadata=said)


def read(folder: Path) -> Regression | None:
    """What `save` wrote there, checked; None where there is nothing."""
    from safetensors import safe_open

    file = folder / FILE
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="numpy") as stored:
            shape = tuple(stored.get_slice(KEY).get_shape())
            if len(shape) != 1 or shape[0] > MOST:
                raise BesagError(f"its weight has the shape {shape}")
            weight, said = stored.get_tensor(KEY), stored.metadata() or {}
        return Regression(said.get("view", ""), weight, said.get("teacher", "")[:200])
    except Exception as problem:  # torn, something else, or without a tensor
        raise BesagError(f"{quoted(str(file))} cannot be read: {reason(problem)}") from problem


def view_of(conditionals: Conditionals) -> View:
    """How this network can be asked in one pass; refused where that is no masked network with a head of its own."""
    if not getattr(conditionals, "split", False) or conditionals.sees != "both":
        raise BesagError(
            f"{quoted(conditionals.name)} cannot have a scorer for 'maskless', which reads the hidden states of a "
            "masked network whose head can be run apart from its body"
        )
    return "twins" if getattr(conditionals, "bears_twins", False) else "plain"


def regression_of(conditionals: Any) -> Regression:
    """The scorer that lies with a model, read once; where it has none, what to do is said."""
    found: Regression | None = getattr(conditionals, "regression", None)
    if found is not None:
        return found
    folder, name = getattr(conditionals, "folder", None), conditionals.name
    found = None if folder is None else read(folder)
    if found is None:
        raise BesagError(
            f"{quoted(name)} has no scorer ({FILE}), which the method 'maskless' needs: make one with `besag "
            f"distil-scorer TEXTS --teacher {name} -o FOLDER` and score with that folder as the model, or use "
            "method='pll', which it estimates"
        )
    if hasattr(conditionals, "tilt"):
        raise BesagError(f"the scorer of {quoted(name)} was learned from its own answers: use it without untilt")
    fit(conditionals, found)
    conditionals.regression = found
    return found


def fit(conditionals: Conditionals, found: Regression) -> None:
    """Refuse a scorer that was made for another network."""
    view, own = view_of(conditionals), width(conditionals)
    if len(found.weight) != own + BESIDE or (found.view == "twins" and view == "plain"):
        raise BesagError(
            f"the {FILE} of {quoted(conditionals.name)} was made for another network: for states of "
            f"{len(found.weight) - BESIDE} numbers asked by {found.view!r}, where this one has {own} and bears {view!r}"
        )


def width(conditionals: Any) -> int:
    """H, of the rows that the head reads."""
    from besag.conditionals.contract import Questions, takes_source

    if takes_source(conditionals):
        raise BesagError(f"{conditionals.name!r} answers about a text given its source: no scorer reads the text alone")

    zero = torch.zeros(1, dtype=torch.long, device=conditionals.device)
    with torch.inference_mode():
        return int(conditionals.rows(Questions(ids=zero.expand(1, 4), row=zero, place=zero)).shape[-1])
