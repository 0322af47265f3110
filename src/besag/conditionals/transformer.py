"""Any Hugging Face masked language model, as one who answers.

Knows that a masked network answers about a place from both sides, and one of blocks as `blocks.py` asks it. How it is
run is `network.py`'s knowledge.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from besag.conditionals import twins
from besag.conditionals.adapters import Base
from besag.conditionals.configuration import block_length_of
from besag.conditionals.contract import Questions
from besag.conditionals.eight_bits import Rows
from besag.conditionals.network import CLOSE, NOTHING_STORED, Network, first_position
from besag.conditionals.published import shift_of
from besag.conditionals.replay import Replay
from besag.errors import BesagError
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from besag.conditionals.blocks import Blocks

NO_MASK = (
    "the tokenizer of {} has no mask token, so it cannot be asked about a hidden place; a causal model can be asked "
    "from the left only, a masked one needs the tokenizer it was trained with"
)


class Transformer(Network):
    """p(x_i ∣ what is shown on both sides), from a `*ForMaskedLM` and its vocabulary. The network is set to eval.

    Where its configuration declares the shift (`besag_shift`), the output at position i − 1 is the prediction for i.
    """

    sees: Literal["both", "left"] = "both"

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        super().__init__(model, vocabulary, name)
        self.base: Base | None = None  # the network without its adapter, where that was asked for
        self.adapter: str | None = None  # the digest of the adapter's weights, where it has one
        self.replay = Replay(self._read)
        self.shift = shift_of(model.config)  # the output at position i − 1 predicts position i
        self.blocks: Blocks | None = None  # how it is asked, where it was trained block after block
        if vocabulary.mask_id is None:
            raise BesagError(NO_MASK.format(self.title))
        self._refuse_causal()
        length = block_length_of(model.config)
        if length is not None:
            from besag.conditionals.blocks import Blocks  # knows transformers, which takes its time

            self.pads = False  # a block sees no mask but its own
            probe = self._probe()[:2].repeat(2, 1)  # no pad token: some families count their places without it
            probe[2, 1] = probe[3, -1] = self._mask_id
            with torch.no_grad():
                self.blocks = Blocks(model, self._read, length, probe.to(self.device), self.title)

    def compile(self, **options: Any) -> None:
        if self.blocks is not None:
            warnings.warn(f"{self.title} runs as it is, not compiled: its blocks are kept as it runs", stacklevel=2)
            return
        super().compile(**options)
        self._try_sides()

    def round_to_eight_bits(self, stored: Mapping[str, Rows] = NOTHING_STORED) -> None:
        super().round_to_eight_bits(stored)
        self._try_sides()

    def _try_sides(self) -> None:
        """Probe again from which sides the network, as it is run now, sees a position."""
        with torch.inference_mode():  # as compiled layers are run: for another mode they would be compiled again
            probe = self._probe().to(self.device)
            self._from_left, self._from_right = self._influences(probe, self._read(probe))
        self._refuse_causal()

    def _refuse_causal(self) -> None:
        if self._from_right == 0 < self._from_left:
            raise BesagError(
                f"{self.title} is a causal model: what comes after a place changes nothing in its answer, so it cannot "
                f"be asked as a masked model; {self._other_use}"
            )

    @cached_property
    def bears_twins(self) -> bool:
        """Can each place be asked in one pass, by a hidden twin beside it? Tried when it is first wanted."""
        if self.blocks is not None or self.shift:  # a query token would have to copy the token before
            return False
        with torch.no_grad():
            probe = self._probe().to(self.device)
            return twins.borne(self._read, self.model, probe, self._mask_id, CLOSE[self.dtype])

    @property
    def _other_use(self) -> str:
        if getattr(self.model.config, "is_causal", True):
            return "it can be scored from left to right"
        return (
            "its configuration says is_causal=false, which its attention layers do not follow: without an attention "
            "mask each needs is_causal=False itself"
        )

    @property
    def _mask_id(self) -> int:
        assert self.vocabulary.mask_id is not None  # __init__ has seen to it
        return self.vocabulary.mask_id

    def rows(self, questions: Questions) -> Tensor:
        questions = questions._replace(place=predicted_from(questions.place, self.shift))
        if self.blocks is not None:
            return self.blocks.rows(questions)
        if twins.TWINS in questions.context:
            return twins.states(self._read, questions, self._mask_id, first_position(self.model))
        states = self.replay(questions.ids, questions.context)  # (N, L, H)
        return states[questions.row, questions.place]  # (M, H)


def predicted_from(place: Tensor, shift: bool) -> Tensor:
    """Return the positions whose outputs predict these; with the shift the ones before, and position 0 its own."""
    return (place - 1).clamp(min=0) if shift else place
