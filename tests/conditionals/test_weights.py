"""Which files are read as weights: safetensors of one folder, a pickle by permission only; and headers that lie."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.networks import tiny, vocabulary

from besag.conditionals.loading import describe, load_conditionals
from besag.conditionals.weights import shapes_on_the_hub, stored_shapes, weight_files
from besag.errors import BesagError


class Trap:
    """A pickle of this makes a file when it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.fixture
def trap(tmp_path) -> Path:
    """The file that is there once a trap was sprung."""
    return tmp_path / "sprung"


@pytest.fixture
def folder(tmp_path) -> Path:
    model = tmp_path / "model"
    tiny("bert").save_pretrained(model)
    vocabulary("bert").tokenizer.save_pretrained(model)
    return model


def refusals(folder: Path, **options) -> str:
    """What loading says; describing must refuse it as well."""
    with pytest.raises(BesagError) as caught:
        load_conditionals(folder, device="cpu", **options)
    assert not describe(folder)["usable"]
    return str(caught.value)


def indexed(folder: Path, *names: object) -> Path:
    """The weights under an index that names other files; the weights themselves lie in the first of them."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    where = {key: names[place % len(names)] for place, key in enumerate(weights)}
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_the_trap_works(trap):
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.exists()


@pytest.mark.parametrize("name", ["weights.bin", "weights.pt", "weights.safetensors.bin", "weights.pkl"])
def test_an_index_of_safetensors_names_no_pickle(folder, trap, name):
    (folder / name).write_bytes(pickle.dumps(Trap(trap)))
    assert f"names '{name}', where it may name only safetensors files of its own folder" in refusals(
        indexed(folder, name)
    )
    assert not trap.exists()


@pytest.mark.parametrize("name", ["../w.safetensors", "/w.safetensors", "in/w.safetensors", "..\\w.safetensors", 5, ""])
def test_an_index_names_no_file_elsewhere(folder, name):
    weights = load_file(folder / "model.safetensors")
    (folder / "in").mkdir()
    for elsewhere in (folder.parent, folder / "in"):
        save_file(weights, elsewhere / "w.safetensors", metadata={"format": "pt"})
    assert "files of its own folder" in refusals(indexed(folder, name))


@pytest.mark.parametrize("content", ["[]", "{", "{}", '{"weight_map": 5}', '{"weight_map": {}}', "[" * 3000, ""])
def test_an_index_that_is_none(folder, content):
    indexed(folder, "x.safetensors")
    (folder / "model.safetensors.index.json").write_text(content)
    assert "the model.safetensors.index.json of" in refusals(folder)


def test_an_index_that_names_what_is_not_there(folder):
    assert "'gone.safetensors', which is not there" in refusals(indexed(folder, "gone.safetensors"))


def test_links_are_followed_as_the_hub_caches_files(folder, tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(blobs / f"{number:040x}")  # as in the cache, the blob's name says nothing of what it is
        (snapshot / file.name).symlink_to(f"../../blobs/{number:040x}")
    assert load_conditionals(snapshot, device="cpu").sees == "both"
    assert describe(snapshot)["usable"]


def test_a_pickle_that_was_allowed_holds_tensors_and_nothing_else(folder, trap):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({**weights, "trap": Trap(trap)}, folder / "pytorch_model.bin")
    assert "the weights of" in refusals(folder, allow_pickle=True)
    torch.save([1, 2], folder / "pytorch_model.bin")
    assert "something else than named tensors" in refusals(folder, allow_pickle=True)
    assert not trap.exists()


def test_pickles_in_parts(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model-00001-of-00001.bin")
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(weights, "pytorch_model-00001-of-00001.bin")}))
    assert "only as a pickle" in refusals(folder)
    assert load_conditionals(folder, device="cpu", allow_pickle=True).sees == "both"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(weights, "../x.bin")}))
    assert "it may name only bin files of its own folder" in refusals(folder, allow_pickle=True)


def test_other_weights_in_the_folder_are_not_read(folder, trap):
    """Adapters with a base of their own, weights of other programs, a generation or a processor: none is opened."""
    for name in ("adapter_model.bin", "training_args.bin", "optimizer.pt", "tf_model.h5", "preprocessor.pkl"):
        (folder / name).write_bytes(pickle.dumps(Trap(trap)))
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "owner/other", "peft_type": "LORA"}')
    (folder / "generation_config.json").write_text("[")
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text("raise SystemExit('this was run')")
    assert load_conditionals(folder, device="cpu").sees == "both"
    assert describe(folder)["usable"]
    assert not trap.exists()


def lie(folder: Path, header: object, data: bytes = b"") -> Path:
    written = json.dumps(header).encode() if not isinstance(header, bytes) else header
    (folder / "model.safetensors").write_bytes(len(written).to_bytes(8, "little") + written + data)
    return folder


@pytest.mark.parametrize(
    "header",
    [
        {"w": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4]}},
        {"w": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 0]}},
        {"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 10**15]}},
        {"w": {"dtype": "X99", "shape": [1], "data_offsets": [0, 4]}},
        {"w": {"dtype": "F32", "shape": "many", "data_offsets": [0, 4]}},
        [1],
        b"{" * 3000,
        b"\xff\xfe",
    ],
)
def test_headers_that_lie(folder, header):
    assert "the weights of" in refusals(lie(folder, header, bytes(4)))


@pytest.mark.parametrize("cut", [0, 4, 8, 100, -1])
def test_a_torn_file_of_weights(folder, cut):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:cut])
    assert "the weights of" in refusals(folder)


def test_weights_of_other_kinds_of_numbers(folder):
    weights = load_file(folder / "model.safetensors")
    save_file({key: (weight * 100).to(torch.int64) for key, weight in weights.items()}, folder / "model.safetensors")
    assert load_conditionals(folder, device="cpu").dtype == torch.float32  # whole numbers are numbers, too


@pytest.mark.parametrize("shape", [[-1], [2**62], ["many"], None, [1] * 9])
def test_headers_on_the_hub_that_lie(monkeypatch, shape):
    file = SimpleNamespace(tensors={"w": SimpleNamespace(shape=shape)})
    headers = SimpleNamespace(files_metadata={"model.safetensors": file})
    monkeypatch.setattr(huggingface_hub, "get_safetensors_metadata", lambda *_, **__: headers)
    with pytest.raises(BesagError, match="weights"):
        shapes_on_the_hub("owner/model", None)


def test_shapes_come_from_the_headers(folder):
    shapes = stored_shapes(weight_files(folder, "it", allow_pickle=False), "it")
    assert shapes == {key: tuple(weight.shape) for key, weight in load_file(folder / "model.safetensors").items()}
