"""Products of 8-bit numbers: against whole numbers in numpy, in any batch, and in a network from file to score."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.networks import tiny, vocabulary
from torch import nn

import besag
from besag import hardware
from besag.conditionals import network as networks
from besag.conditionals.eight_bit_linear import (
    EightBitLinear,
    peaked_layers,
    relative_time,
    replace_linear,
    rounded_input,
)
from besag.conditionals.eight_bits import Rows, rounded
from besag.errors import BesagError

TEXTS = ["the cat sat on the mat", "a dog", "the mat sat on a cat and the dog"]


@pytest.fixture
def as_float(monkeypatch):
    """No child process: the same whole numbers, multiplied as float32."""
    monkeypatch.setattr(networks, "eight_bit_failure", lambda: "not tried")
    monkeypatch.setattr(networks, "relative_time", lambda _: 0.5)


def layer(inner: int, outer: int, bias: bool = True, exact: bool = False) -> EightBitLinear:
    made = nn.Linear(inner, outer, bias=bias)
    return EightBitLinear(rounded(made.weight), made.bias, exact)


def reference(x: np.ndarray, rows: Rows, bias: np.ndarray) -> np.ndarray:
    """The formula by whole numbers of numpy and float64."""
    low = x.min(-1, keepdims=True).astype(np.float64)
    step = (x.max(-1, keepdims=True).astype(np.float32) - low.astype(np.float32)) / np.float32(255)
    step = np.where(step < 1e-30, np.float32(1), step)
    whole = np.rint((x - low.astype(np.float32)) / step).astype(np.int64)
    assert whole.min() >= 0
    assert whole.max() <= 255
    numbers, scale = rows.numbers.numpy().astype(np.int64), rows.scale.numpy().astype(np.float64)
    return step * scale * (whole @ numbers.T) + low * scale * numbers.sum(-1) + bias


@given(st.integers(1, 9), st.integers(1, 70), st.integers(1, 20), st.integers(0, 2**31), st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_the_products_are_those_of_whole_numbers(count, inner, outer, seed, size):
    torch.manual_seed(seed)
    x, made = size * torch.randn(count, inner), layer(inner, outer)
    expected = reference(x.numpy(), made.rows, made.bias.numpy())
    largest = np.abs(expected).max() + size * float(made.rows.scale.max()) * inner
    assert np.abs(made(x).detach().numpy() - expected).max() <= 1e-5 * largest


def test_the_processor_multiplies_as_numpy_does():
    """Numbers below 128 never overflow, whatever instructions there are; above, a trial has said that they do not."""
    failure = hardware.eight_bit_failure()
    if "Assertion" in failure or not failure:
        for count, inner, outer in ((1, 8, 8), (5, 40, 72), (64, 256, 64)):
            made = layer(inner, outer, exact=True)
            whole = torch.randint(0, 128 if failure else 256, (count, inner), dtype=torch.uint8)
            sums = whole.long() @ made.rows.numbers.long().T
            assert torch.allclose(made._products(whole).double(), sums * made.rows.scale.double(), rtol=1e-6, atol=0)
    else:
        pytest.skip(f"this processor has no 8-bit products: {failure}")


def test_peaks_are_kept_and_the_rest_is_finer():
    """A row with a few numbers far from the rest: exact there, and rounded in steps of the rest elsewhere."""
    torch.manual_seed(0)
    x, linear = torch.randn(20, 96), nn.Linear(96, 24)
    x[:, [3, 50]] += 200 * torch.randn(20, 2)
    rows = rounded(linear.weight)
    exact = nn.functional.linear(x, rows.matrix, linear.bias)
    plain, peaked = (EightBitLinear(rows, linear.bias, False, peaks)(x) for peaks in (False, True))
    assert (peaked - exact).std() < 0.05 * (plain - exact).std()
    assert torch.allclose(EightBitLinear(rows, linear.bias, False, True)(x[:4]), peaked[:4], atol=1e-5)
    few = torch.randn(5, 6)  # fewer numbers than are kept: nothing is rounded
    narrow = rounded(torch.randn(4, 6))
    assert torch.allclose(EightBitLinear(narrow, None, False, True)(few), few @ narrow.matrix.T, atol=1e-5)


def test_which_layers_have_peaks():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 8))
    x = torch.randn(30, 512)
    assert peaked_layers(body, lambda: body(x)) == set()
    x[:, 7] = 40
    assert peaked_layers(body, lambda: body(x)) == {body[0]}
    assert not body[0]._forward_pre_hooks
    [first, second] = replace_linear(body, {}, False, peaked={body[0]})
    assert (first[1].peaks, second[1].peaks) == (8, 0)


def test_an_input_is_rounded_by_half_a_step_at_most():
    x = torch.randn(50, 30) * torch.logspace(-6, 6, 50)[:, None]
    whole, low, step = rounded_input(x)
    assert bool(((low + step * whole - x).abs() <= step * 0.51).all())
    assert whole.amin() == 0
    assert whole.amax() == 255


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [3.5, 3.5, 3.5], [1e-38, 2e-38, 0.0], [-1e30, 0.0, 1e30]])
def test_rows_of_one_number_and_of_huge_ones(row):
    whole, low, step = rounded_input(torch.tensor([row]))
    spans = max(row) - min(row)
    assert np.abs((low + step * whole).numpy() - np.float32([row])).max() <= max(spans / 250, 1e-30)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_stays_none(wrong):
    x = torch.randn(3, 8)
    x[1, 2] = wrong
    y = layer(8, 4)(x)
    assert bool(y[[0, 2]].isfinite().all())
    assert not bool(y[1].isfinite().any())


def test_a_row_does_not_hang_on_its_neighbours():
    x, made = torch.randn(6, 48), layer(48, 20)
    beside = torch.cat([x, 1e4 * torch.randn(5, 48)])
    assert torch.allclose(made(beside)[:6], made(x), rtol=1e-5, atol=1e-5)
    assert torch.equal(rounded_input(beside)[0][:6], rounded_input(x)[0])
    assert made(x.view(2, 3, 48)).shape == (2, 3, 20)
    assert made(x[:0]).shape == (0, 20)


def test_stored_matrices_are_used_as_they_are():
    body = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4, bias=False))
    stored = Rows(torch.randint(-90, 90, (5, 6), dtype=torch.int8), torch.rand(5) + 0.1)  # no 127 in any row
    other = Rows(torch.zeros(4, 5, dtype=torch.int8), torch.ones(4))
    body[0].weight.data = stored.matrix
    exact = body[2].weight.clone()
    made = replace_linear(body, {"base.0.weight": stored, "base.2.weight": other}, False, prefix="base")
    assert torch.equal(body[0].rows.numbers, stored.numbers)
    assert torch.equal(body[0].rows.scale, stored.scale)
    assert torch.equal(body[2].rows.numbers, rounded(exact).numbers)  # what is stored is not what the layer holds
    assert len(made) == 2
    assert relative_time(made) > 0
    assert torch.equal(body[0].weight, stored.matrix)


# ---- in a network


def loaded(family: str, **options) -> besag.LanguageModel:
    return besag.load((tiny(family), vocabulary(family).tokenizer), progress=False, **options)


@pytest.mark.parametrize("family", ["bert", "modernbert", "distilbert", "deberta-v2", "albert", "electra"])
def test_scores_in_eight_bits(family, as_float):
    exact, rough = loaded(family), loaded(family, dtype="int8")
    assert rough.dtype == "int8"
    assert "int8" in repr(rough)
    assert exact.dtype == "float32"
    one, other = exact.score(TEXTS), rough.score(TEXTS)
    assert all(score.dtype == "int8" and "products of 8-bit numbers" in score.facts for score in other)
    apart = np.abs(np.concatenate([a.log_probs - b.log_probs for a, b in zip(one, other, strict=True)]))
    assert 0 < apart.mean() < 0.2  # weights of standard deviation 0.5, that is logits of tens: trained ones are tamer


def test_a_scorer_is_read_in_eight_bits_too(as_float):
    exact, rough = (besag.load(dtype=dtype, progress=False) for dtype in ("float32", "int8"))
    assert rough.conditionals.bears_twins
    one, other = (lm.score("The keys to the cabinet are here.", "maskless") for lm in (exact, rough))
    assert 0 < abs(one.total - other.total) < 0.1 * len(one.tokens)


def test_scores_do_not_hang_on_the_batch(as_float):
    rough = loaded("bert", dtype="int8")
    small = besag.LanguageModel(rough.conditionals, batch_tokens=8, progress=False)
    for one, other in zip(rough.score(TEXTS), small.score(TEXTS), strict=True):
        assert np.allclose(one.log_probs, other.log_probs, atol=2e-2)  # a sum that rounds otherwise may flip a step


def test_the_network_of_a_pair_is_left_alone(as_float):
    network = tiny("bert")
    lm = besag.load((network, vocabulary("bert").tokenizer), dtype="int8")
    assert not any(isinstance(part, EightBitLinear) for part in network.modules())
    layers = [part for part in lm.model.modules() if isinstance(part, EightBitLinear)]
    assert len(layers) == 12
    assert isinstance(lm.model.get_output_embeddings(), nn.Linear)


def test_what_is_slower_says_so(monkeypatch):
    monkeypatch.setattr(networks, "eight_bit_failure", lambda: "no such instruction")
    monkeypatch.setattr(networks, "relative_time", lambda _: 1.7)
    with pytest.warns(UserWarning, match=r"slower here than float32.* 1\.7 times as long .*\(no such instruction\)"):
        assert loaded("bert", dtype="int8").dtype == "int8"
    monkeypatch.setattr(networks, "relative_time", lambda _: 0.4)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert loaded("bert", dtype="int8").dtype == "int8"
    assert not [one for one in said if "slower" in str(one.message)]


def test_a_network_without_linear_layers_stays_in_float32(as_float):
    with pytest.warns(UserWarning, match="no linear layers"):
        assert loaded("gpt2", dtype="int8").dtype == "float32"  # its layers are convolutions by name


def test_not_on_another_device():
    with pytest.raises(BesagError, match="run on a CPU only"):
        hardware.choose_dtype("int8", "cuda")
