"""Any Hugging Face causal language model, as one who answers from the left only.

Knows that such a network answers about a place one place earlier. How it is run is `network.py`'s knowledge.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from besag.conditionals.contract import Questions
from besag.conditionals.network import SAME, Network
from besag.errors import BesagError
from besag.vocabulary import Vocabulary


class Causal(Network):
    """p(x_i ∣ x_0 … x_{i−1}), from a `*ForCausalLM` and its vocabulary, whatever stands at i or after it.

    `bos_id` is the token to put before a text whose tokenizer puts none: GPT-2 was trained with its end of text there.
    """

    sees: Literal["both", "left"] = "left"

    def __init__(self, model: Any, vocabulary: Vocabulary, name: str | None = None) -> None:
        super().__init__(model, vocabulary, name)
        if self._from_right > SAME[self.dtype]:
            raise BesagError(
                f"{self.title} is no causal model: its answer about a place changes with what comes after it, so it "
                f"gives no left-to-right probabilities; some are causal only with is_decoder=True in the config"
            )
        tokenizer = vocabulary.tokenizer
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.cls_token_id)
        self.bos_id: int | None = next((start for start in starts if start is not None), None)

    def rows(self, questions: Questions) -> Tensor:
        if bool((questions.place == 0).any()):
            raise BesagError(
                f"place 0 was asked of {self.title}, but nothing stands before it to answer from: put a first token, "
                f"such as the beginning-of-text token, before the text"
            )
        states = self._read(questions.ids, questions.context)  # (N, L, H)
        return states[questions.row, questions.place - 1]  # (M, H)
