"""Constraints for kernels: those that look at each place on its own, as a mask over places and tokens.

A chain that draws only allowed tokens samples exactly under them: its law is what it would be if the model gave the
others probability 0. That goes for a pattern or test of a place, a word of one token at a place, and forbidden words
token by token: no token may stand that writes the word alone. A word that several tokens spell, a word somewhere, a
length tie places together; for these there is `solve`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from besag.conditionals.contract import Conditionals
from besag.constraints.constraint import Constraint, refuse_strangers
from besag.constraints.page import Page
from besag.errors import BesagError
from besag.joints.candidates import outcome_ids
from besag.samplers.sheet import Sheet


def allowed(conditionals: Conditionals, sheet: Sheet, constraints: Sequence[Constraint]) -> Tensor:
    """(L, V) bool for `Canvas.allowed`; a constraint that ties places together is refused."""
    refuse_strangers(constraints)
    page = Page(sheet, conditionals.width, outcome_ids(conditionals, "text"))
    masks = np.zeros((page.size, page.width), dtype=bool)
    masks[:, page.outcomes] = True
    for constraint in constraints:
        constraint.check(page)
        own = constraint.allowed(page)
        if own is None:
            raise BesagError(
                f"{constraint}: this ties places together, so no place can be drawn under it alone; search for such "
                "texts with `solve`"
            )
        for place, keep in own.items():
            masks[place] &= keep
            if not masks[place].any():
                raise BesagError(f"{constraint}: nothing is left that may stand at place {place}")
    found = torch.ones(len(sheet.ids), page.width, dtype=torch.bool)
    found[torch.from_numpy(page.at)] = torch.from_numpy(masks)
    return found.to(conditionals.device)
