"""How long a target is by its source: log p(n | s) of a model with a length head, for a score of all lengths.

    log P(x | s) = log p(n | s) + log P(x | n, s)

Each source is read once by the engine, for this as for everything else, and its law is kept. Knows sources as token
ids. `conditionals/length_head.py` knows the law.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from besag.arrays import Floats, Ints
from besag.conditionals.contract import takes_source
from besag.engine import Engine
from besag.errors import BesagError, quoted

PREDICTED = "predicted"  # as `lengths=` of a score
KEPT = 4096  # laws


class SourceLengths:
    """p(n | s), n = 1 … most, of the model that an engine asks."""

    def __init__(self, engine: Engine) -> None:
        conditionals = engine.conditionals
        if not takes_source(conditionals) or not hasattr(conditionals, "lengths"):
            raise BesagError(
                f"{quoted(conditionals.name)} predicts no length from a source: lengths='predicted' is for translators "
                f"with a length head; lm.length_model(texts) fits a law of lengths to texts"
            )
        self.engine, self.head = engine, conditionals.lengths
        self._laws: dict[bytes, Floats] = {}

    @property
    def most(self) -> int:
        """The longest target that has a probability."""
        return int(self.head.most)

    def law(self, source: Ints | None) -> Floats:
        """(most,) log p(n | s) in nats of n = 1, 2, …; without a source, that of the engine's own."""
        source = self.engine.source if source is None else source
        if source is None:
            raise BesagError("a length is predicted from a source, and none was given: lm.given(source) takes one")
        return self.laws([source])[0]

    def laws(self, sources: Sequence[Ints]) -> list[Floats]:
        """The same of many sources, read together."""
        keys = [np.ascontiguousarray(source, np.int64).tobytes() for source in sources]
        new = {key: source for key, source in zip(keys, sources, strict=True) if key not in self._laws}
        if len(self._laws) + len(new) > KEPT:
            self._laws.clear()
            new = dict(zip(keys, sources, strict=True))
        if new:
            states = self.engine.encoded(list(new.values()))  # (T, H) each
            shown = pad_sequence([torch.ones(len(one), dtype=torch.bool) for one in states], batch_first=True)
            with torch.inference_mode():
                memory = pad_sequence(states, batch_first=True)  # (N, T, H)
                laws = self.head(memory, shown.to(memory.device)).double().cpu().numpy()
            self._laws.update(zip(new, laws, strict=True))
        return [self._laws[key] for key in keys]

    def log_prob(self, n: int, source: Ints | None = None) -> float:
        """log p(n | s): −∞ beyond `most`."""
        return float(self.law(source)[n - 1]) if n <= self.most else -np.inf

    def likeliest(self, count: int, source: Ints | None = None) -> list[int]:
        """The lengths to try first."""
        order = np.argsort(-self.law(source), kind="stable")
        return [int(one) + 1 for one in order[:count]]
