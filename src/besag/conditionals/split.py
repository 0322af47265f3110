"""A Hugging Face language model cut in two: what reads the tokens, and the head that answers about one place.

A vocabulary of 250,000 makes the head the dearest part of a network, and its own forward runs it at every place. Here
the network's base model runs alone, the asked rows are picked, and the network's own forward, with a stand-in where its
base model was, turns just those rows into logits. Knows how a `PreTrainedModel` is put together, and no family by name.
"""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from besag.conditionals.contract import NOTHING


class Rows(tuple[Tensor]):
    """What a base model returns, with nothing in it but the hidden rows: attentions, caches and the like are None."""

    @property
    def last_hidden_state(self) -> Tensor:
        return self[0]

    def __getattr__(self, name: str) -> None:
        return None


class StandIn(nn.Module):
    """Stands where the base model stood, and returns the rows that it is given in place of token ids.

    Whatever else a head wants of the base model (some multiply by its embeddings) is the base model's own.
    """

    def __init__(self, base: nn.Module) -> None:
        super().__init__()
        self.__dict__["base"] = base  # known, but no part of this module: it is not to run, move or be saved with it

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["base"], name)

    def forward(self, input_ids: Tensor, *_: object, **__: object) -> Rows:
        return Rows((input_ids,))


class Head:
    """A network's own head, on rows alone. The network itself is untouched: the cut is made in a shallow copy.

    `precise` gives a network of low precision a head in float32: a logit near 20 in bfloat16 is off by up to 0.06, and
    on the asked rows alone float32 costs little.
    """

    def __init__(self, model: Any, precise: bool) -> None:
        self.model = copy.copy(model)
        prefix = model.base_model_prefix
        parts = {name: part for name, part in model._modules.items() if name != prefix}
        self.dtype = model.dtype
        if precise:
            parts, self.dtype = {name: copy.deepcopy(part).float() for name, part in parts.items()}, torch.float32
        self.model._modules = {**parts, prefix: StandIn(model._modules[prefix])}
        self.precise = precise

    def __call__(self, rows: Tensor) -> Tensor:  # (M, H) -> (M, V)
        with tensor_cores() if self.precise and rows.is_cuda else nullcontext():
            logits: Tensor = self.model(input_ids=rows[None].to(self.dtype))[0]  # (1, M, V)
        return logits[0]


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Float32 products with factors rounded to 11 bits, three more than bfloat16 keeps, at many times the speed."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Reader:
    """Runs a network on token ids, as its users run it on the text: every token of it is there to be seen.

    Some families derive from the pad id which places exist, where they are given no attention mask. A tokenizer gives
    one, of ones, even for a pad token that is written in a text, and so is one given here, unless the network is known
    to say the same without it: looking through an explicit mask stops the device in every batch. Where places stand is
    left to the network. RoBERTa and its kin do not count pad tokens: one in a text moves all that come after it.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.accepts = frozenset(inspect.signature(module.forward).parameters)
        self.mask = "attention_mask" in self.accepts  # give a mask of ones where nothing is padded?
        self.fixed: dict[str, bool] = {"use_cache": False} if "use_cache" in self.accepts else {}

    def __call__(self, ids: Tensor, context: Mapping[str, Tensor] = NOTHING) -> Tensor:  # (N, L) -> (N, L, H)
        inputs = {name: value for name, value in context.items() if name in self.accepts}
        if self.mask and "attention_mask" not in inputs:
            inputs["attention_mask"] = torch.ones_like(ids)
        with attention_for(ids.shape[1]) if ids.is_cuda else nullcontext():
            states: Tensor = self.module(input_ids=ids, **inputs, **self.fixed)[0]
        return states


PATIENCE = 8  # times that torch compiles one piece of code for other shapes, before it runs it as it is


def compile_layers(module: nn.Module, **options: Any) -> list[nn.Module]:
    """Compile each layer by itself: all of one kind share one compilation, which takes seconds and not minutes.

    torch gives up on code that was compiled eight times. Layers of several kinds (sums over all earlier layers, say)
    are given as many more.
    """
    from torch._dynamo import config  # slow to import, and needed by nobody else

    lists = [part for part in module.modules() if isinstance(part, nn.ModuleList)]
    layers = [layer for part in lists for layer in part]
    kinds: defaultdict[type, set[tuple[Any, ...]]] = defaultdict(set)
    for layer in layers:
        kinds[type(layer)].add(tuple((name, *weight.shape) for name, weight in layer.named_parameters()))
    times = max(map(len, kinds.values()), default=1) + PATIENCE - 1
    config.cache_size_limit = max(config.cache_size_limit, times)
    for layer in layers:
        layer.compile(**options)
    return layers


SHORT = 64  # tokens; on an H200 the memory-efficient kernel is twice as fast up to here and half as fast from 128 on


def attention_for(length: int) -> AbstractContextManager[None]:
    """The attention kernel for sequences of this length; never cuDNN's, which is planned anew for every shape."""
    kernels = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(kernels if length <= SHORT else [SDPBackend.FLASH_ATTENTION, *kernels])
