"""Replaced-token detection (ELECTRA) that leaves a masked model behind.

A generator G, a smaller network of the same family, learns masked modelling on the law's masks. Its draws
x̃_i ~ p_G(· | x_∖K), i ∈ K, take the hidden places, and the network D says of every token whether it is the original:

    L = Σ_{i ∈ K} −log p_G(x_i | x_∖K)
      + weight · Σ_passages |K| · mean_i BCE(D(x̃)_i, x̃_i ≠ x_i)     over the tokens that are not special
      + mlm_weight · Σ_{i ∈ K} −log p_D(x_i | x_∖K)

(Each sum counts with the asked tokens' weights, as everywhere; a passage's detection counts as its asked tokens do, so
that the loss does not depend on what shares its batch.) No gradient goes through the draws. A draw that happens to be
right is an original. Special tokens are never drawn: they never stand in a text.

The last term is ours. The published objective is mlm_weight = 0; its network has a head that was never trained, so it
encodes and cannot be scored: `purpose` is "encode". It costs a second pass of D.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from besag.conditionals.checkpoint import quiet
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, Predicted, predict
from besag.training.objectives.sharing import generator_for

CHUNK = 1 << 24  # logits that are turned into distribution functions at a time


@OBJECTIVES.register
class Electra(Objective):
    name = "electra"
    title = "replaced-token detection that leaves a masked model behind (ELECTRA)"
    cite = ("clark2020",)

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        weight: Annotated[float, "of detection"] = 50.0,
        mlm_weight: Annotated[float, "of masked modelling by the network itself"] = 1.0,
        generator_width: Annotated[float, "share of the network's own width"] = 1 / 3,
        generator_layers: Annotated[float, "share of the network's own layers"] = 1.0,
        share: Annotated[bool, "one table of token embeddings for both, where widths agree"] = True,
        save_generator: Annotated[bool, "hand the generator out, too"] = False,
    ) -> None:
        """`generator_width`, `generator_layers`: shares of the network's own. `share`: one table of token embeddings
        for both, where their widths agree. `save_generator`: hand it out in `extras`."""
        super().__init__(encoder, seed=seed)
        for option, value in (("weight", weight), ("mlm_weight", mlm_weight)):
            if not (math.isfinite(value) and value >= 0):
                raise BesagError(f"{option} = {value!r} of the objective 'electra' must be a number, 0 or more")
        self.weight, self.mlm_weight, self.save_generator = weight, mlm_weight, save_generator
        random = generator_for(seed, Training.ELECTRA_WEIGHTS)
        model = smaller(
            encoder.model, generator_width, generator_layers, int(torch.randint(2**62, (), generator=random))
        )
        self.shares = share and shares_embeddings(encoder.model, model)
        self.generator = Encoder(
            model, mask_id=encoder.mask_id, pad_id=encoder.pad_id, special_ids=encoder.special_ids,
            ragged=encoder.ragged,
        )  # fmt: skip
        width = encoder.model.config.hidden_size
        self.detector = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))
        for name, parameter in self.detector.named_parameters():
            nn.init.zeros_(parameter) if name.endswith("bias") else nn.init.normal_(parameter, 0.0, 0.02, random)
        self.detector.to(device=encoder.model.device, dtype=encoder.model.dtype)
        if mlm_weight == 0:  # a head that is never used must not be waited for by other processes
            body = {id(parameter) for parameter in encoder.body.parameters()}
            for parameter in encoder.model.parameters():
                parameter.requires_grad_(id(parameter) in body)

    @property
    def purpose(self) -> str:
        return "score" if self.mlm_weight > 0 else "encode"

    def extras(self) -> dict[str, Any]:
        """What else may be saved: name of a folder → a Hugging Face network."""
        return {"generator": self.generator.model} if self.save_generator else {}

    def save_extras(self, folder: str | Path) -> None:
        """Each of `extras` in a folder of its own beside the finished network; the tokenizer is the network's."""
        for name, model in self.extras().items():
            with quiet():
                model.save_pretrained(Path(folder) / name)

    def forward(self, batch: Batch) -> Loss:
        guessed, guesses, replaced = self.replace(batch)
        states = self.encoder.states(replaced, batch.layout)  # (T, H)
        judged = self.detector(states[batch.free])[:, 0].float()  # (F,) logit of "replaced"
        truth = (replaced != batch.ids)[batch.free]
        doubt = F.binary_cross_entropy_with_logits(judged, truth.float(), reduction="none")
        detection = by_passage(doubt, batch)
        total = (guessed * batch.weight).sum() + self.weight * detection
        with torch.no_grad():
            count = batch.weight.sum().clamp_min(1e-9)
            logs = {
                "generator": (guessed * batch.weight).sum() / count,
                "detection": detection / count,
                "detected": ((judged > 0) == truth).float().mean(),
                "replaced": truth.float().mean(),
            }
        if self.mlm_weight > 0:
            losses, guesses = predict(self.encoder, self.encoder.states(batch.inputs, batch.layout), batch)
            own = (losses * batch.weight).sum()
            total = total + self.mlm_weight * own
            logs["mlm"] = own.detach() / count
        return Loss(total, logs, guesses)

    def replace(self, batch: Batch) -> tuple[Tensor, Predicted | None, Tensor]:
        """The generator's loss at each asked token (M,), how it was predicted, the text with its draws (T,)."""
        states = self.generator.states(batch.inputs, batch.layout)  # (T, H)
        self.generator.watched = self.encoder.watched
        losses, guesses = predict(self.generator, states, batch)
        hidden = (batch.inputs == self.encoder.mask_id) & batch.free
        hidden[batch.asked[batch.weight > 0]] = True
        places = hidden.nonzero()[:, 0]
        row, place = batch.layout.row[places], batch.layout.position[places]
        height = draws.uniform(self.seed, Training.ELECTRA_DRAW, batch.draw[row], place)
        with torch.no_grad():
            drawn = draw(self.generator, states.detach()[places], height)
        return losses, guesses, batch.inputs.index_put((places,), drawn)


def draw(generator: Encoder, rows: Tensor, height: Tensor) -> Tensor:  # (K, H), (K,) -> (K,)
    """One ordinary token a row, where its distribution function passes the height."""
    never = torch.tensor(sorted(generator.special_ids), dtype=torch.long, device=rows.device)
    # a height that rounds to the whole would fall off the end, or on a special token there
    last = max(token for token in range(generator.width) if token not in generator.special_ids)
    drawn = [torch.zeros(0, dtype=torch.long, device=rows.device)]
    step = max(1, CHUNK // generator.width)
    for begin in range(0, len(rows), step):
        logits = generator.logits(rows[begin : begin + step]).to(height.dtype).index_fill(1, never, -torch.inf)
        rising = logits.softmax(-1).cumsum(-1)
        reach = height[begin : begin + step] * rising[:, -1]
        drawn.append(torch.searchsorted(rising, reach[:, None], right=True)[:, 0].clamp_max(last))
    return torch.cat(drawn)


def by_passage(doubt: Tensor, batch: Batch) -> Tensor:
    """Σ over passages of (weights of its asked tokens) × (mean over its free tokens of doubt (F,))."""
    row = batch.layout.row
    asked = torch.zeros(batch.layout.rows, device=doubt.device).index_add(0, row[batch.asked], batch.weight)
    free = row[batch.free]
    sums = torch.zeros_like(asked).index_add(0, free, doubt)
    counts = torch.bincount(free, minlength=batch.layout.rows).clamp_min(1)
    return (asked * sums / counts).sum()


def smaller(model: Any, width: float, layers: float, seed: int) -> Any:
    """A new network of the same family, with these shares of its heads (and so of its width) and of its layers."""
    for option, share in (("generator_width", width), ("generator_layers", layers)):
        if not 0 < share <= 1:
            raise BesagError(f"{option} = {share!r} of the objective 'electra' is a share, more than 0 and at most 1")
    config = model.config
    depth = max(1, round(config.num_hidden_layers * layers))
    heads = max(1, round(config.num_attention_heads * width))
    hidden = config.hidden_size // config.num_attention_heads * heads
    inner = next(name for name in ("intermediate_size", "hidden_dim") if hasattr(config, name))
    sizes = {"num_hidden_layers": depth, "num_attention_heads": heads, "hidden_size": hidden,
             inner: max(1, round(getattr(config, inner) * hidden / config.hidden_size))}  # fmt: skip
    if getattr(config, "layer_types", None):
        sizes["layer_types"] = config.layer_types[:depth]
    known = config.to_dict()
    for name, value in sizes.items():
        known[config.attribute_map.get(name, name)] = value
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        small = type(model)(type(config).from_dict(known))
    return small.to(device=model.device, dtype=model.dtype).train(model.training)


def shares_embeddings(model: Any, small: Any) -> bool:
    """Give the small network the large one's table of token embeddings, if it has the same width."""
    table = model.get_input_embeddings()
    if small.get_input_embeddings().weight.shape != table.weight.shape:
        return False
    small.set_input_embeddings(table)
    small.tie_weights()
    return True
