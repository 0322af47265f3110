"""Linear layers of 8-bit products: y = x Wᵀ + b with weights rounded by rows, and inputs rounded as they come.

Weights are Ŵ = s Q (`eight_bits.py`). Each row of the input is rounded by itself, so that no answer hangs on what else
is in a batch: from its least to its largest number in 255 equal steps,

    t_m = (max_k x_mk − l_m) / 255      l_m = min_k x_mk      U_mk = round((x_mk − l_m) / t_m)      in 0 … 255

    ŷ_mn = t_m s_n Σ_k U_mk Q_nk + l_m s_n Σ_k Q_nk + b_n

Where rows have peaks (a few numbers far from the rest, which would make the steps of all others coarse), the PEAKS
largest of each are left out of the steps, and what rounding did to them is added: ŷ_mn += Σ_k (x_mk − x̂_mk) Ŵ_nk.

The sum over k is one of whole numbers, and exact. oneDNN computes it, by way of torch, where this processor can
(`hardware.eight_bit_failure`); elsewhere the same whole numbers are multiplied as float32. Knows layers. Refuses to
know which network they are in, and what its head does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping

import torch
from torch import Tensor, nn

from besag.conditionals.eight_bits import Rows, rounded

STEPS = 255
LEAST_STEP = 1e-30  # a row whose numbers differ by less is one number
PEAKS, WIDE = 8, 7.5  # numbers of a row; standard deviations that it spans: of 3,072 normal numbers it would be 7.1
TIMED_ROWS, TIMES = 256, 3


class EightBitLinear(nn.Module):
    """Stands where a linear layer stood, in float32 on a CPU.

    `exact`: by this processor's own 8-bit products. `peaked`: with the largest numbers of each row apart.
    """

    def __init__(self, rows: Rows, bias: Tensor | None, exact: bool, peaked: bool = False) -> None:
        super().__init__()
        self.rows, self.exact = rows, exact
        self.out_features, self.in_features = rows.numbers.shape
        self.bias = torch.zeros(self.out_features) if bias is None else bias.detach()
        self.total = (rows.scale.double() * rows.numbers.sum(-1)).float()  # (N,) s_n Σ_k Q_nk
        self.whole: Tensor = rows.numbers.float() if not exact else torch.ops.onednn.qlinear_prepack(rows.numbers, None)
        self.peaks = min(PEAKS, self.in_features) if peaked else 0
        self.columns = rows.matrix.T.contiguous() if peaked else None  # (K, N)
        self.zeros = torch.zeros(self.out_features, dtype=torch.int64)

    @property
    def weight(self) -> Tensor:
        """(N, K) in float32, for whoever looks at a layer's weights."""
        return self.rows.matrix

    def forward(self, x: Tensor) -> Tensor:  # (…, K) -> (…, N)
        flat = x.reshape(-1, self.in_features)
        if not len(flat):
            return x.new_zeros(*x.shape[:-1], self.out_features)
        if self.columns is None:
            whole, low, step = rounded_input(flat)
        else:
            place = flat.abs().topk(self.peaks, sorted=False).indices  # (M, P)
            whole, low, step = rounded_input(flat.scatter(-1, place, 0.0))
        y = torch.addcmul(self.bias, low, self.total).addcmul_(self._products(whole), step)
        if self.columns is not None:
            missing = flat.gather(-1, place) - (low + step * whole.gather(-1, place))  # (M, P)
            y += nn.functional.embedding_bag(place, self.columns, per_sample_weights=missing, mode="sum")
        return y.view(*x.shape[:-1], self.out_features)

    def _products(self, whole: Tensor) -> Tensor:  # (M, K) uint8 -> (M, N) s_n Σ_k U_mk Q_nk
        if not self.exact:
            return nn.functional.linear(whole.float(), self.whole).mul_(self.rows.scale)
        products: Tensor = torch.ops.onednn.qlinear_pointwise(
            whole, 1.0, 0, self.whole, self.rows.scale, self.zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return products


def rounded_input(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # (M, K) -> (M, K) uint8, (M, 1), (M, 1)
    """U, l and t: x ≈ l + t U. What is no number stays none, by way of l."""
    low = x.amin(-1, keepdim=True)
    step = x.amax(-1, keepdim=True).sub_(low).div_(STEPS)
    step.masked_fill_(step < LEAST_STEP, 1.0)
    return (x - low).div_(step).round_().to(torch.uint8), low, step


def peaked_layers(module: nn.Module, run: Callable[[], object]) -> set[nn.Module]:
    """The linear layers whose inputs span over WIDE standard deviations, a row on average, when `run` runs them."""
    spans: dict[nn.Module, float] = {}

    def look(layer: nn.Module, given: tuple[Tensor, ...]) -> None:
        x = given[0].detach()
        spans[layer] = float(((x.amax(-1) - x.amin(-1)) / x.std(-1).clamp(min=LEAST_STEP)).mean())

    hooks = [layer.register_forward_pre_hook(look) for *_, layer, _ in _linear_layers(module, "")]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return {layer for layer, span in spans.items() if span > WIDE}


def replace_linear(
    module: nn.Module, stored: Mapping[str, Rows], exact: bool, prefix: str = "", peaked: Container[nn.Module] = ()
) -> list[tuple[nn.Linear, EightBitLinear]]:
    """Put 8-bit layers in the places of all linear ones; which stood there, and what stands there now.

    `stored` are matrices that are in eight bits already, by their names with `prefix` before them: they are used as
    they are, if they are what the layer holds. All others are rounded.
    """
    replaced = []
    for parent, name, layer, path in list(_linear_layers(module, prefix)):
        rows = stored.get(f"{path}.weight")
        if rows is None or not torch.equal(rows.matrix, layer.weight):
            rows = rounded(layer.weight)
        new = EightBitLinear(rows, layer.bias, exact, layer in peaked)
        setattr(parent, name, new)
        replaced.append((layer, new))
    return replaced


def _linear_layers(module: nn.Module, prefix: str) -> Iterator[tuple[nn.Module, str, nn.Linear, str]]:
    for path, parent in module.named_modules(prefix=prefix):
        for name, part in parent.named_children():
            if type(part) is nn.Linear:
                yield parent, name, part, f"{path}.{name}" if path else name


def relative_time(replaced: list[tuple[nn.Linear, EightBitLinear]]) -> float:
    """Seconds of all 8-bit layers over those of the layers that they replace; one of each shape is timed."""
    counts = Counter(tuple(layer.weight.shape) for layer, _ in replaced)
    one_each = {tuple(layer.weight.shape): (layer, new) for layer, new in replaced}
    before = after = 0.0
    for shape, (layer, new) in one_each.items():
        x = torch.linspace(-1, 1, TIMED_ROWS * shape[1]).view(TIMED_ROWS, shape[1])
        before += counts[shape] * _seconds(lambda layer=layer, x=x: layer(x))  # type: ignore[misc]
        after += counts[shape] * _seconds(lambda new=new, x=x: new(x))  # type: ignore[misc]
    return after / before


def _seconds(run: Callable[[], Tensor]) -> float:
    run()
    taken = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begun)
    return min(taken)
