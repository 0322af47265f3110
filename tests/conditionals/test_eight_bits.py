"""Weights in eight bits: how far from what they were, what a file of them holds, and which files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.torch import load_file, save_file
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.eight_bits import LARGEST, Rows, pack, rounded, rows_of, unpack
from besag.conditionals.loading import describe, load_conditionals
from besag.errors import BesagError

MATRICES = arrays(
    np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-1e6, 1e6, width=32)
).map(torch.from_numpy)


@given(MATRICES)
@settings(max_examples=200, deadline=None)
def test_an_entry_moves_by_half_a_step_at_most(matrix):
    found = rounded(matrix)
    step = found.scale[:, None].double()
    apart = (found.numbers.double() * step - matrix.double()).abs()
    assert bool((apart <= step * (0.5 + 1e-5)).all())
    assert found.numbers.dtype == torch.int8
    assert int(found.numbers.abs().max()) <= LARGEST
    assert bool((found.scale > 0).all())


@given(MATRICES)
@settings(max_examples=200, deadline=None)
def test_what_is_rounded_once_is_rounded_for_good(matrix):
    """No second rounding of a matrix that was restored: the same whole numbers again."""
    once = rounded(matrix)
    twice = rounded(once.matrix)
    normal = once.scale > 1e-30  # below, float32 has too few digits left to tell
    assert torch.equal(twice.numbers[normal], once.numbers[normal])


@given(arrays(np.int8, (3, 5), elements=st.integers(-127, 127)), st.integers(-20, 20))
@settings(deadline=None)
def test_representable_rows_are_exact(numbers, power):
    numbers[:, 0] = 127
    matrix = torch.from_numpy(numbers.astype(np.float32)) * 2.0**power
    found = rounded(matrix)
    assert torch.equal(found.numbers, torch.from_numpy(numbers))
    assert torch.equal(found.matrix, matrix)


def test_rows_of_zeros_and_one_huge_entry():
    found = rounded(torch.tensor([[0.0, 0.0, 0.0], [1e30, 1.0, -1e30], [1.0, 0.5, 0.0]]))
    assert found.numbers.tolist() == [[0, 0, 0], [127, 0, -127], [127, 64, 0]]  # 63.5 goes to the even one
    assert found.scale[0] == 1
    assert torch.equal(found.matrix[0], torch.zeros(3))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_broken_matrix_is_not_rounded(wrong):
    with pytest.raises(BesagError, match="its weights are broken"):
        rounded(torch.tensor([[1.0, wrong]]))


def test_vectors_and_all_else_stay_as_they_are():
    given = {"norm": torch.rand(4), "w": torch.rand(3, 4), "conv": torch.rand(2, 2, 2), "ids": torch.arange(3)}
    packed = pack(given)
    assert {key: weight.dtype for key, weight in packed.items()} == {
        "norm": torch.float32, "w": torch.int8, "w.scale": torch.float32, "conv": torch.float32, "ids": torch.int64,
    }  # fmt: skip
    back = unpack(packed, "it")
    assert set(back) == set(given)
    assert all(torch.equal(back[key], given[key]) for key in ("norm", "conv", "ids"))
    assert torch.allclose(back["w"], given["w"], atol=1 / 254)


def test_a_name_that_is_taken():
    with pytest.raises(BesagError, match=r"'w\.scale' is the name of another weight"):
        pack({"w": torch.rand(2, 2), "w.scale": torch.rand(2)})


# ---- files


@pytest.fixture
def folder(tmp_path) -> Path:
    """A tiny BERT whose weights lie there in eight bits; its output is tied to its embeddings."""
    model = tmp_path / "model"
    tiny("bert").save_pretrained(model)
    vocabulary("bert").tokenizer.save_pretrained(model)
    save_file(pack(load_file(model / "model.safetensors")), model / "model.int8.safetensors")
    (model / "model.safetensors").rename(tmp_path / "exact.safetensors")
    change(model, besag_weights="int8")
    return model


def change(folder: Path, **settings: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def put(folder: Path, **tensors: torch.Tensor | None) -> None:
    """The file of weights with some of them changed; None: without."""
    stored = {**load_file(folder / "model.int8.safetensors"), **tensors}
    save_file({key: one for key, one in stored.items() if one is not None}, folder / "model.int8.safetensors")


NAME = "bert.encoder.layer.0.attention.self.query.weight"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_a_folder_is_loaded_by_the_same_door(folder, dtype, monkeypatch):
    monkeypatch.setattr("besag.hardware.cpu_failure", lambda _: "")
    found = load_conditionals(folder, device="cpu", dtype=dtype).model
    exact = load_file(folder.parent / "exact.safetensors")
    weights = dict(found.named_parameters())
    assert torch.equal(weights[NAME], rounded(exact[NAME]).matrix.to(weights[NAME].dtype))
    assert torch.equal(weights[NAME.replace("weight", "bias")].float(), exact[NAME.replace("weight", "bias")]) or (
        dtype == "bfloat16"
    )
    assert found.get_output_embeddings().weight is found.get_input_embeddings().weight  # tied, as they were
    assert not hasattr(found.config, "besag_weights")  # a copy that is saved in float32 must not say otherwise


def test_what_it_is_said_to_be(folder):
    said = describe(folder)
    assert said["usable"]
    assert said["parameters"] == sum(
        weight.numel() for weight in load_file(folder.parent / "exact.safetensors").values()
    )


def test_plain_transformers_finds_no_weights_rather_than_wrong_ones(folder):
    from transformers import AutoModelForMaskedLM

    with pytest.raises(OSError, match=r"model\.safetensors"):
        AutoModelForMaskedLM.from_pretrained(folder)


def test_a_recipe_starts_from_it(folder):
    from besag.training.network.networks import network
    from besag.training.recipe import recipe_of

    recipe = recipe_of(
        {"data": {"train": ["x"], "max_length": 40}, "model": {"start": str(folder)}, "schedule": {"steps": 1}}
    )
    assert torch.equal(dict(network(recipe, vocabulary("bert")).named_parameters())[NAME], rows(folder)[NAME].matrix)


def rows(folder: Path) -> dict[str, Rows]:
    return rows_of(load_file(folder / "model.int8.safetensors"), "it")


@pytest.mark.parametrize(
    ("scale", "why"),
    [
        (None, "has no scales beside it"),
        (torch.full((32,), float("nan")), "not all of its scales are finite"),
        (torch.full((32,), float("inf")), "not all of its scales are finite"),
        (torch.zeros(32), "not all of its scales are finite and above 0"),
        (torch.full((32,), -1.0), "above 0"),
        (torch.ones(31), r"of the shape \(31,\), where 32 of float32 are needed"),
        (torch.ones(32, 1), r"\(32, 1\)"),
        (torch.ones(32, dtype=torch.float64), "float64"),
    ],
)
def test_wrong_scales_are_refused(folder, scale, why):
    put(folder, **{f"{NAME}.scale": scale})
    with pytest.raises(BesagError, match=why):
        load_conditionals(folder, device="cpu")


def test_whole_numbers_that_are_no_matrix_and_scales_of_no_matrix(folder):
    put(folder, odd=torch.ones(3, dtype=torch.int8))
    with pytest.raises(BesagError, match=r"'odd' is in eight bits, and has the shape \(3,\)"):
        load_conditionals(folder, device="cpu")
    put(folder, odd=None, **{NAME: torch.ones(32, 32)})
    with pytest.raises(BesagError, match="is the scale of no 8-bit matrix"):
        load_conditionals(folder, device="cpu")


@pytest.mark.parametrize("kind", ["int4", 8, ["int8"], {"kind": "int8"}])
def test_a_kind_of_weights_that_is_not_known(folder, kind):
    change(folder, besag_weights=kind)
    with pytest.raises(BesagError, match="besag_weights="):
        besag.load(folder)
    assert not describe(folder)["usable"]
