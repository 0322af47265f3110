"""What a law is in the lab: probabilities with one axis a place, and what is refused as one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats
from besag.checks import array
from besag.errors import BesagError

ROUNDING = 1e-9
LARGEST = 2**16  # states that are enumerated
DENSE = 2**12  # … of a matrix that is written down: 128 MiB


def as_law(given: ArrayLike, name: str = "law") -> Floats:
    """(V_1, …, V_N) the array as float64; refused where it is no law, or too large to enumerate."""
    law = array(given, name)
    if law.ndim == 0 or not law.size:
        raise BesagError(f"{name}: a law has an axis for each place, with an entry for each symbol; got {law.shape}")
    if not np.isfinite(law).all() or (law < 0).any():
        wrong = law[~(np.isfinite(law) & (law >= 0))][0]
        raise BesagError(f"{name}: a law has finite probabilities, none below 0; got {wrong:g}")
    refuse_large(law.shape, LARGEST, "enumerated")
    if not abs((total := float(law.sum())) - 1) <= ROUNDING:
        raise BesagError(f"{name}: the probabilities sum to {total:.10g}, not to 1; divide by their sum")
    return law


def positive_law(given: ArrayLike, name: str = "law") -> Floats:
    """A law without a zero: of others a conditional may not exist, and a chain may never leave a part of its states."""
    law = as_law(given, name)
    if zeros := int((law == 0).sum()):
        first = tuple(map(int, np.argwhere(law == 0)[0]))
        raise BesagError(
            f"{name}: {zeros:,} of {law.size:,} states have probability 0, the first {first}: what is conditioned on "
            "them does not exist. Give a law that is positive everywhere"
        )
    return law


def refuse_large(shape: tuple[int, ...], most: int, done: str) -> None:
    """Are there more states than `most`? The error names the largest system of this width that would work."""
    if math.prod(shape) > most:
        widest = max(shape)
        places = int(math.log(most, widest) + 1e-9) if widest > 1 else 0
        fits = f"{places} places of {widest} symbols" if places else f"{most:,} symbols"
        raise BesagError(
            f"a system of {len(shape)} places and {math.prod(shape):,} states is too large to be {done}: the largest "
            f"has {most:,} states, {fits}"
        )
