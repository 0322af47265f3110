"""What a network of besag's family is made of: sizes, and which of its three additions it has.

Knows which sizes go together. Refuses to know how many weights a machine can hold. Annotations are types here and not
their names, since `strict` holds every setting to its own.
"""

from typing import ClassVar

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "max_position_embeddings", "mix_every",
)  # fmt: skip


@strict
class BesagConfig(PreTrainedConfig):
    """Any depth and width. A head has hidden_size / num_attention_heads numbers, an even count, which turn in pairs.

    Examples:
        >>> from besag.family import BesagConfig, BesagForMaskedLM
        >>> config = BesagConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, intermediate_size=64)
        >>> BesagForMaskedLM(config).num_parameters()
        427334
    """

    model_type: ClassVar[str] = "besag"

    vocab_size: int = 12_288
    hidden_size: int = 512
    intermediate_size: int = 1024  # of the gated layers, which have it twice
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    max_position_embeddings: int = 512  # tokens at most; positions are turned by, so no weight depends on it
    gate: bool = True  # each head's answer times 2 sigmoid(w x + b)
    layer_weights: bool = True  # a block of layers reads a learned sum over the embeddings and all earlier blocks
    mix_every: int = 2  # layers of a block
    qk_norm: bool = True  # queries and keys have length sqrt(head size)
    hidden_activation: str = "silu"
    head_activation: str = "gelu"
    rope_theta: float = 160_000.0
    norm_eps: float = 1e-5
    initializer_range: float = 0.02
    tie_word_embeddings: bool = True
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    cls_token_id: int | None = None
    sep_token_id: int | None = None
    mask_token_id: int | None = None

    def validate_architecture(self) -> None:
        for name in SIZES:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: 1 or more is needed")
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ValueError(
                f"hidden_size = {self.hidden_size} does not give {self.num_attention_heads} heads an even number each: "
                f"a multiple of {2 * self.num_attention_heads} is needed"
            )
