"""A masked network from a left-to-right checkpoint: causal language modelling first, then masked (Gisserot-Boukhlef et
al. 2025).

Every weight is kept and none is added, but for a mask and a padding token that the tokenizer lacks; only the causal
mask is lifted, so each place sees both sides from the first step on. What was the answer about the *next* place is then
trained to be the one about its own. The result is an ordinary network of the family that has the same layers without a
causal mask: Llama's is EuroBERT, Qwen2's and Qwen3's are `a2d-qwen2` and `a2d-qwen3`; BERT, RoBERTa and others are
their own. `conditionals/published.py` knows which; `networks.py` reads the weights.
"""

from __future__ import annotations

from typing import Any

from besag.conditionals import families
from besag.conditionals.checkpoint import architecture, find_folder
from besag.conditionals.configuration import read_config
from besag.conditionals.published import BOTH_SIDES
from besag.errors import BesagError, quoted
from besag.vocabulary import Vocabulary

PAD, MASK = "<pad>", "<mask>"


def is_causal(source: str, name: str) -> bool:
    """Is this checkpoint a left-to-right model?"""
    return architecture(read_config(find_folder(source, None), name)).kind == "causal"


def twin(config: Any, name: str) -> Any:
    """The configuration of the same network without its causal mask."""
    family, masked = config.model_type, families.masked()
    other = family if family in masked else BOTH_SIDES.get(family)
    if other is None:
        raise BesagError(
            f"model.start = {quoted(name)} is a left-to-right {family}, and no family has its layers with attention to "
            f"both sides. {', '.join(sorted(BOTH_SIDES))} and families with a *ForMaskedLM of their own (bert, "
            "roberta …) have one"
        )
    kind = families.configuration(other)
    own = set(kind().to_dict()) - {"model_type", "architectures", "transformers_version"}
    settings = {key: value for key, value in config.to_dict().items() if key in own}
    if "is_decoder" in settings:
        settings["is_decoder"] = False
    return kind(**settings, architectures=[masked[other]])


def with_mask(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary, with the padding and the mask that a left-to-right one may lack; the mask is its last token."""
    added = {"pad_token": PAD} if vocabulary.pad_id is None else {}
    added |= {"mask_token": MASK} if vocabulary.mask_id is None else {}
    if not added:
        return vocabulary
    vocabulary.tokenizer.add_special_tokens(added)
    return Vocabulary(vocabulary.tokenizer)
