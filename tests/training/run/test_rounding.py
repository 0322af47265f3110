"""Export in other numbers: the cost that is measured, what is written, and what is refused with nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.eight_bits import rounded
from besag.errors import BesagError
from besag.training.run.rounding import KINDS, export

TEXTS = ["the cat sat on the mat", "a dog", ""]
PAIRS = [("the cat sat", "cat the sat"), ("a dog", "dog a"), ("", "the dog")]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "model"
    tiny("bert").save_pretrained(folder)
    vocabulary("bert").tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text("# A network\n\nOf nobody.\n")
    (folder / "tf_model.h5").write_text("weights of another kind")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_measured_and_loaded(source, tmp_path, kind):
    cost = export(source, tmp_path / "out", kind, texts=TEXTS, pairs=PAIRS, most=100)
    file = tmp_path / "out" / ("model.int8.safetensors" if kind == "int8" else "model.safetensors")
    stored = load_file(file)
    assert {weight.dtype for weight in stored.values() if weight.dim() == 2} == {getattr(torch, kind)}
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json", ".md", ".safetensors"}
    one, other = (
        besag.load(folder, device="cpu", dtype="float32").score(TEXTS) for folder in (source, tmp_path / "out")
    )
    apart = [abs(a.log_probs - b.log_probs) for a, b in zip(one, other, strict=True) if a.status == "ok"]
    # two texts, and five sentences of pairs
    assert (cost.texts, cost.pairs) == (7, 2)
    assert cost.largest >= np.concatenate(apart).max() - 1e-6
    assert (cost.mean == 0) == (kind == "float32")
    assert cost.bytes_after == file.stat().st_size
    assert cost.bytes_before == (source / "model.safetensors").stat().st_size
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config.get("besag_weights") == ("int8" if kind == "int8" else None)
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("# A network\n\nOf nobody.\n\n")
    assert f"## Weights as {kind}" in card
    assert cost.words in card


def test_eight_bits_and_back(source, tmp_path):
    """The weights that others read are those that besag ran; a second rounding changes nothing."""
    export(source, tmp_path / "small", "int8", texts=TEXTS, most=100)
    back = export(tmp_path / "small", tmp_path / "back", "float32", texts=TEXTS)
    again = export(tmp_path / "back", tmp_path / "again", "int8", texts=TEXTS)
    assert back.mean == 0
    assert again.mean < 1e-4
    small, large = load_file(tmp_path / "small/model.int8.safetensors"), load_file(tmp_path / "back/model.safetensors")
    name = "bert.encoder.layer.1.output.dense.weight"
    assert torch.equal(large[name], rounded(load_file(source / "model.safetensors")[name]).matrix)
    assert torch.equal(load_file(tmp_path / "again/model.int8.safetensors")[name], small[name])


def test_decisions_that_change_are_counted(source, tmp_path, monkeypatch):
    from besag.training.run import rounding

    class Fixed:
        status = "ok"

        def __init__(self, total):
            self.total, self.log_probs = total, np.array([total])

    runs = iter([[0, -1, -2, -3, -4], [0.5, -2, -1, -3, -4]])  # one text, and two pairs, of which one turns
    monkeypatch.setattr(rounding, "_scores", lambda *_: [Fixed(total) for total in next(runs)])
    cost = export(source, tmp_path / "out", "int8", texts=["a"], pairs=[("b", "c"), ("d", "e")], most=1)
    assert (cost.pairs, cost.changed, cost.mean, cost.largest) == (2, 1, 0.5, 1.0)
    assert "1 decision of 2 minimal pairs changed" in cost.words


def test_what_costs_too_much_is_not_written(source, tmp_path):
    with pytest.raises(BesagError, match="nats a token, and at most 1e-06 were allowed"):
        export(source, tmp_path / "out", "int8", texts=TEXTS, most=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_an_overflow_is_not_written(tmp_path):
    network = tiny("bert")
    network.bert.encoder.layer[0].output.dense.weight.data[0, 0] = 1e6
    network.save_pretrained(tmp_path / "in")
    vocabulary("bert").tokenizer.save_pretrained(tmp_path / "in")
    with pytest.raises(BesagError, match="would hold NaN or infinite numbers"):
        export(tmp_path / "in", tmp_path / "out", "float16", texts=TEXTS)
    assert not (tmp_path / "out").exists()


def test_texts_that_tell_nothing(source, tmp_path):
    with pytest.raises(BesagError, match="none of the texts could be scored"):
        export(source, tmp_path / "out", "int8", texts=["", " "])
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments(source, tmp_path):
    with pytest.raises(BesagError, match=r"'int9'.* Did you mean 'int8'"):
        export(source, tmp_path / "out", "int9")
    for most in (-1, float("nan")):
        with pytest.raises(BesagError, match="must be 0 or more"):
            export(source, tmp_path / "out", "int8", most=most)
    with pytest.raises(BesagError, match="exists already"):
        export(source, tmp_path, "int8")
    with pytest.raises(BesagError, match="is the model itself"):
        export(source, source, "int8", force=True)
    with pytest.raises(BesagError, match="there is no folder"):
        export(tmp_path / "nowhere", tmp_path / "out", "int8")
    with pytest.raises(BesagError, match="minimal pairs have no sources"):
        export(source, tmp_path / "out", "int8", texts=["a"], sources=["b"], pairs=[("a", "b")])
