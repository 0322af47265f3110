"""Another vocabulary for a trained network: whatever it holds a row a token of, table, head and bias, gets new rows.

    row of v  =  mean of the old rows of the pieces that the old tokenizer cuts v's text into
                 (one piece, where the old vocabulary has v itself: its row is kept)

So an extended vocabulary leaves the logits of all old tokens as they were, and a new token begins with the mean of its
pieces' logits. An exchanged one keeps the rows of tokens that both have, special tokens by what they are for, and the
body as it is. A network whose places are numbered from its padding id (RoBERTa's) must keep that id. Knows rows and
pieces; how a vocabulary is extended is a tokenizer's affair (`tokenizer/extending.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from besag.errors import BesagError, quoted
from besag.training.data.tokens import width
from besag.training.network.encoder import first_position
from besag.vocabulary import Vocabulary

ROLES = ("mask", "pad", "cls", "sep", "bos", "eos", "unk")


def unlike(old: Vocabulary, new: Vocabulary) -> tuple[int, str, str] | None:
    """The first id at which the new vocabulary says another token than the old one; None where all old ones stay."""
    known = {number: token for token, number in new.tokenizer.get_vocab().items()}
    for token, number in sorted(old.tokenizer.get_vocab().items(), key=lambda item: item[1]):
        if known.get(number) != token:
            return number, token, known.get(number, "nothing")
    return None


def pieces(old: Vocabulary, new: Vocabulary) -> list[list[int]]:
    """For each id of the new vocabulary, the old tokens whose mean it begins with; [] where there are none."""
    known, found = old.tokenizer.get_vocab(), [list[int]() for _ in range(width(new))]
    roles: dict[int, int] = {}  # new → old
    for role in ROLES:
        here, there = (getattr(one.tokenizer, f"{role}_token_id", None) for one in (new, old))
        if here is not None and there is not None:
            roles.setdefault(here, there)
    strange = dict[int, str]()  # tokens that the old one does not have, as text
    for token, number in new.tokenizer.get_vocab().items():
        if number in roles:
            found[number] = [roles[number]]
        elif token in known:
            found[number] = [known[token]]
        else:
            strange[number] = str(new.tokenizer.convert_tokens_to_string([token])).removeprefix("##")
    for number, encoded in zip(strange, old.encode([*strange.values()], lenient=True), strict=True):
        found[number] = [int(one) for one in encoded.ids[~encoded.special] if int(one) != old.unknown_id]
    return found


def rows(old: Tensor, made_of: Sequence[Sequence[int]]) -> Tensor:  # (V, …) -> (V', …)
    """Each new row the mean of its old ones; of none, the mean of all."""
    middle = old.mean(0)
    return torch.stack([old[list(parts)].mean(0) if parts else middle for parts in made_of])


@torch.no_grad()
def give(model: Any, old: Vocabulary, new: Vocabulary, *, extended: bool) -> Any:
    """The same network, for another vocabulary; what cannot be done is refused, and nothing is changed then."""
    table = model.get_input_embeddings()
    size = table.weight.shape[0]
    made_of = pieces(old, new)
    if extended:
        other = unlike(old, new)
        if other is not None:
            number, token, now = other
            raise BesagError(
                f"model.vocabulary = 'extended' keeps all old tokens, but token {number}, {quoted(token)}, is "
                f"{quoted(now)} now: extend the old tokenizer (`besag tokenizer extend`), or say 'exchanged'"
            )
        kept = width(old)
        made_of = [[at] for at in range(kept)] + made_of[kept:] + [[at] for at in range(len(made_of), size)]
    if first_position(model) and new.pad_id != old.pad_id:
        raise BesagError(
            f"this network numbers its places from the id of padding on, {old.pad_id}, and the new tokenizer's is "
            f"{new.pad_id}: its places would be others. Take a tokenizer whose padding has the same id"
        )
    _refuse_otherwise_wide(model, size)
    replaced: dict[int, nn.Parameter] = {}  # by the old weight: one that is tied has two names
    for module in model.modules():
        for name, weight in list(module.named_parameters(recurse=False)):
            if weight.shape[:1] == (size,) and _of_tokens(model, module, name):
                if id(weight) not in replaced:
                    replaced[id(weight)] = nn.Parameter(rows(weight, made_of), requires_grad=weight.requires_grad)
                setattr(module, name, replaced[id(weight)])
    for module in model.modules():  # what they say of themselves
        if isinstance(module, nn.Embedding) and module.weight.shape[0] != module.num_embeddings:
            module.num_embeddings = len(made_of)
            module.padding_idx = new.pad_id if module.padding_idx is not None else None
        elif isinstance(module, nn.Linear) and module.weight.shape[0] != module.out_features:
            module.out_features = len(made_of)
        if isinstance(getattr(module, "mask_token_id", None), int):  # ESM's embeddings look for masks
            module.mask_token_id = new.mask_id
    model.config.vocab_size = len(made_of)
    for role in ROLES:
        if getattr(model.config, f"{role}_token_id", None) is not None:
            setattr(model.config, f"{role}_token_id", getattr(new.tokenizer, f"{role}_token_id", None))
    model.tie_weights()
    return model


def _of_tokens(model: Any, module: nn.Module, name: str) -> bool:
    """Is it a row a token? The table, and all of the head that is as long: nothing else of the body happens to be."""
    if module is model.get_input_embeddings():
        return name == "weight"
    return module is model.get_output_embeddings() or (
        name == "bias" and all(module is not own for own in model.base_model.modules())
    )


def _refuse_otherwise_wide(model: Any, size: int) -> None:
    head = model.get_output_embeddings()
    if head is None or head.weight.shape[0] != size:
        raise BesagError(
            f"the head of {type(model).__name__} is no matrix of a row a token, so its vocabulary cannot be changed"
        )
