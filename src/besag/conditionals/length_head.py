"""How long a target is, given its source: a law p(n | s) over 1 … N tokens, special tokens not counted.

    p(n | s) = softmax_n (W h̄ + b),     h̄ the mean of the encoder's states over the source

W and b are learned beside the network and lie beside its weights. A probability of targets *of one length*, times
p(n | s), is one of targets of all lengths up to N. Knows states. Refuses to know texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from besag.errors import BesagError, quoted

FILE = "length_head.safetensors"
NAMES = ("weight", "bias")


class LengthHead(nn.Module):
    """`most` is N. A new one says that every length is as likely as any other."""

    def __init__(self, width: int, most: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, most)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    @property
    def most(self) -> int:
        return self.linear.out_features

    def forward(self, memory: Tensor, shown: Tensor | None = None) -> Tensor:  # (N, S, H), (N, S) -> (N, most)
        """log p(n | s), n = 1 … most, in float32; `shown`: which places of a source are not padding."""
        if shown is None:
            pooled = memory.float().mean(1)
        else:
            share = shown.float()[:, :, None]
            pooled = (memory.float() * share).sum(1) / share.sum(1)
        logits: Tensor = self.linear(pooled.to(self.linear.weight.dtype))
        return logits.float().log_softmax(-1)

    def save(self, folder: str | Path) -> None:
        from safetensors.torch import save_file

        kept = {name: getattr(self.linear, name).detach().float().cpu().contiguous() for name in NAMES}
        save_file(kept, Path(folder) / FILE)

    @classmethod
    def load(cls, folder: str | Path | None, title: str) -> LengthHead:
        """The head that lies beside a network; `title` is what errors call the network."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = None if folder is None else Path(folder) / FILE
        if file is None or not file.is_file():
            raise BesagError(
                f"{title} has no length head ({FILE} beside its weights), so it does not say how long a target is: "
                f"give the length, or train one (objective.length above 0)"
            )
        try:
            stored: dict[str, Any] = load_file(file)
            weight, bias = stored["weight"], stored["bias"]
            if weight.ndim != 2 or bias.shape != weight.shape[:1] or not weight.numel():
                raise BesagError(f"its weight is {tuple(weight.shape)} and its bias {tuple(bias.shape)}")
            head = cls(weight.shape[1], weight.shape[0])
            with torch.no_grad():
                head.linear.weight.copy_(weight)
                head.linear.bias.copy_(bias)
        except (OSError, ValueError, KeyError, SafetensorError) as problem:
            raise BesagError(f"the length head {quoted(str(file))} cannot be read: {problem}") from problem
        return head.eval()
