"""Block diffusion (BD3-LM): one block after the other, and within a block masked diffusion given the blocks before it.

    −log p(x | n) ≤ Σ_b E_t (1/t) Σ_{i ∈ b masked} −log p(x_i | x_b at time t, x_<b)     column c is of b = ⌊c / size⌋

All blocks learn in one pass, from two copies of the text: each block as it is at a time of its own, and as it is.

    reads →        noised j     clean j
    noised i         j = i       j < i         predicts what is masked in block i
    clean i            ·         j ≤ i

Every token has the number of its own place in both. The clean copy of the last block is read by nobody and left out,
so with one block for the whole text this is `mdlm`, token for token. With blocks of one token it is the chain rule from
left to right, and no bound but −log p itself. The finished network is asked as it learned (`conditionals/blocks.py`),
and the kernel `block_diffusion` writes with it: what a clean block comes to never hangs on what follows, so its keys
and values are computed once.

Times, masks, weights and SUBS are those of `mdlm`, for each block by itself. The usual way to hide is `counted`: in a
block of few tokens the weight 1/t spreads far. The paper meets that by times between β and ω alone, which are `floor`
and `ceiling` of `independent`. A number k of masks has the weight n/k, at most the size, and its mean is the bound.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.conditionals.configuration import BLOCK_KEY
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.network.patterns import require_patterns
from besag.training.network.places import require_numbered_places
from besag.training.objectives import draws
from besag.training.objectives.mdlm import Bound, bounded, counted, per_token, predictions, text_of, without
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy

RIGHT = "give how many tokens a block has, at least 1"


class Copies(NamedTuple):
    """Two copies of some texts of T tokens, U in all: the noised one, and the clean one without its last block."""

    source: Tensor  # (U,) which token of the text
    clean: Tensor  # (U,) bool: of the clean copy
    layout: Layout
    seen: Tensor  # (R, L, L)
    noised: Tensor  # (T,) where each token of the text stands in its noised copy


@OBJECTIVES.register
class BlockDiffusion(Objective):
    name = "block_diffusion"
    title = "masked diffusion block after block, given the blocks before (BD3-LM)"
    cite = ("arriola2025", "sahoo2024")
    aliases = ("bd3lm",)
    masks = False
    configures: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        size: Annotated[int, "tokens of a block"] = 16,
        hide: Annotated[Literal["counted", "independent"], "a number of tokens, or each by itself"] = "counted",
        floor: Annotated[float, "least time that is drawn, with hide = 'independent'"] = 1e-3,
        ceiling: Annotated[float, "greatest time that is drawn, with hide = 'independent'"] = 1.0,
        subs: Annotated[bool, "the mask is never an answer"] = True,
    ) -> None:
        super().__init__(encoder, seed=seed)
        self.size = whole_number(size, "size", right=RIGHT)
        if not 0 <= floor < ceiling <= 1:
            raise BesagError(f"floor={floor!r}, ceiling={ceiling!r}: times go from one to the other, within 0 and 1")
        self.hide, self.floor, self.ceiling, self.subs = hide, floor, ceiling, subs
        require_numbered_places(encoder, self.name)
        require_patterns(encoder, self.name)
        setattr(encoder.model.config, BLOCK_KEY, size)

    @property
    def purpose(self) -> str:
        return "blocks"

    def forward(self, batch: Batch) -> Loss:
        hidden, weight = self.corrupt(batch.free, batch.layout, batch.draw)
        target = batch.ids[hidden]
        losses, logits = answered(self.encoder, batch.ids, hidden, copied(batch.layout, self.size), subs=self.subs)
        total = per_token((losses * weight[hidden]).sum(), batch)
        logs = {"masked_loss": losses.detach().sum() / max(len(target), 1)}
        return Loss(total, logs, predictions(self.encoder, target, losses, logits))

    def corrupt(self, free: Tensor, layout: Layout, draw: Tensor) -> tuple[Tensor, Tensor]:
        """(T,) which tokens are masked, (T,) the weight of each that is. Every block has a time of its own."""
        blocks, first = blocked(layout, self.size)
        even = draws.spread(self.seed, Training.BLOCK_TIME, draw)[layout.row[first]]  # (B,)
        shift = draws.uniform(self.seed, Training.BLOCK_SHIFT, layout.column[first] // self.size)
        time = (even + shift) % 1  # for each number of a block evenly over consecutive texts
        noise = draws.uniform(self.seed, Training.BLOCK_HIDE, draw[layout.row], layout.column)  # (T,)
        if self.hide == "counted":
            return counted(time, noise, free, blocks)
        time = (self.floor + (self.ceiling - self.floor) * time)[blocks.row]
        return free & (noise < time), (1 / time).float()


def answered(encoder: Encoder, ids: Tensor, hidden: Tensor, copies: Copies, *, subs: bool) -> tuple[Tensor, Tensor]:
    """(M,) −log p of each hidden token of ids (T,), given its block and the blocks before it; (M, V) the logits."""
    shown = ids.masked_fill(hidden, encoder.mask_id)[copies.source]
    read = torch.where(copies.clean, ids[copies.source], shown)  # (U,)
    states = encoder.states(read, copies.layout, seen=copies.seen)
    logits = encoder.logits(states[copies.noised[hidden]])
    logits = without(logits, encoder.mask_id) if subs else logits
    return cross_entropy(logits, ids[hidden]), logits


def blocked(layout: Layout, length: int) -> tuple[Layout, Tensor]:
    """The blocks of all texts, each as a sequence of its own, and (B,) the first token of each."""
    begins = layout.column % length == 0
    first = begins.nonzero()[:, 0]
    return Layout.of_lengths(torch.diff(first, append=first.new_tensor([len(begins)])), longest=length), first


def copied(layout: Layout, length: int) -> Copies:
    """Both copies of each text, the noised one first, and who sees whom in them."""
    count, device = len(layout.row), layout.row.device
    ends = layout.bounds[1:].long()[layout.row] - layout.bounds[layout.row].long()  # (T,) how long its text is
    block, last = layout.column // length, (ends - 1) // length
    read = (block < last).nonzero()[:, 0]  # (K,) what is clean and read by somebody
    every = torch.arange(count, device=device)
    source, clean = torch.cat([every, read]), torch.arange(count + len(read), device=device) >= count
    line = torch.sort(layout.row[source] * 2 + clean, stable=True).indices  # texts, and in each its copies, in turn
    source, clean = source[line], clean[line]
    lengths = torch.bincount(layout.row[source], minlength=layout.rows)
    longer = Layout.of_lengths(lengths)._replace(position=layout.position[source])
    back = torch.empty_like(line).index_put((line,), torch.arange(len(line), device=device))
    return Copies(
        source, clean, longer, who_sees_whom(_table(clean, longer), _table(block[source], longer)), back[:count]
    )


def who_sees_whom(clean: Tensor, block: Tensor) -> Tensor:  # (R, L), (R, L) -> (R, L, L)
    """The table at the head of this file; −1 is padding, which nobody sees."""
    reads, read = clean[:, :, None], clean[:, None, :]
    own, other = block[:, :, None], block[:, None, :]
    noised = (read == 0) & (reads == 0) & (other == own)
    return noised | ((read == 1) & (other < own + (reads == 1)))


def _table(values: Tensor, layout: Layout) -> Tensor:  # (U,) -> (R, L)
    return values.new_full((layout.rows, layout.longest), -1, dtype=torch.long).index_put(
        (layout.row, layout.column), values.long()
    )


def nelbo(
    encoder: Encoder,
    ids: Tensor,
    layout: Layout,
    size: int,
    *,
    free: Tensor | None = None,
    samples: int = 16,
    seed: int = 0,
) -> Bound:
    """The bound of these sequences (T,) in blocks of `size` tokens, with SUBS, by `samples` passes over them.

    As `mdlm.nelbo`, with one count and one subset a block. With blocks of one token every pass says the same: −log p.
    """
    whole_number(size, "size", right=RIGHT)
    free = text_of(encoder, ids) if free is None else free
    blocks, first = blocked(layout, size)
    copies = copied(layout, size)

    def once(sample: int) -> Tensor:
        time = draws.uniform(seed, Training.BLOCK_BOUND_TIME, first, sample)
        noise = draws.uniform(seed, Training.BLOCK_BOUND_HIDE, layout.row, layout.column, sample)
        hidden, weight = counted(time, noise, free, blocks)
        losses, _ = answered(encoder, ids, hidden, copies, subs=True)
        return (losses.double() * weight[hidden]).sum()

    return bounded(encoder, int(free.sum()), samples, once)
