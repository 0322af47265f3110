"""`besag.load`: who is taken as he is, and whose law of masks is taken out. Folders: tests/conditionals."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests import networks
from tests.conditionals.test_adapters import made, stored
from tests.laws import Arbitrary

import besag
from besag import models
from besag.bulk.models import about_model
from besag.conditionals import tilt
from besag.conditionals.checkpoint import find_folder
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.training.network.networks import found


def test_whoever_answers_already_is_taken_as_he_is():
    law = Arbitrary(4)
    assert besag.load(law).conditionals is law


LAW = besag.Table([[0.4, 0.1], [0.1, 0.4]], symbols=["h", "t"])


def test_a_built_model_takes_a_name_and_stays_what_it_was():
    named = besag.load(LAW, name="coins", device="cpu", dtype="float64")
    assert (named.name, LAW.name) == ("coins", "table")
    assert named.score("h h", "chain").total == besag.load(LAW).score("h h", "chain").total
    assert named.score("h h", "chain").model == "coins"
    network = Transformer(networks.tiny("bert"), networks.vocabulary("bert"), "tiny")
    assert besag.load(network, name="mine", dtype="fp32").name == "mine"
    with pytest.warns(UserWarning, match="not compiled"):
        besag.load(network, compile=True)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("device", "cuda:7", "cuda:7"), ("dtype", "float16", "float16"), ("dtype", torch.float32, "float32"),
        ("device", "cpuu", "cpuu"), ("compile", True, "compile=True"), ("tokenizer", "bert", "bert"),
        ("revision", "main", "main"), ("allow_pickle", True, "allow_pickle"), ("adapter", Path("some"), "some"),
    ],
)  # fmt: skip
def test_what_a_built_model_cannot_take_is_refused(option, value, told):
    with pytest.raises(BesagError, match=told):
        besag.load(LAW, **{option: value})


def test_the_tilt_of_an_adapter_is_that_of_its_own_training(tmp_path):
    base = stored(tmp_path / "base")
    adapter = made(tmp_path / "adapter", base)
    width = networks.vocabulary("bert").size
    tables = {folder: np.random.default_rng(seed).normal(size=width) for seed, folder in enumerate((base, adapter))}
    for folder, table in tables.items():
        tilt.save_tilt(folder, table, "frequency")
    plain = besag.load(base, device="cpu", adapter=adapter)
    found = besag.load(base, device="cpu", adapter=adapter, untilt=True)
    by_hand = {folder: besag.load(tilt.Untilted(plain.conditionals, tilt.load_tilt(folder))) for folder in tables}
    text = "the dog saw a cat"
    assert found.score(text).total == by_hand[adapter].score(text).total != by_hand[base].score(text).total


@pytest.mark.parametrize("name", [None, *models.NAMES])
def test_a_name_of_the_bundled_model_is_the_same_model_everywhere(tmp_path, monkeypatch, name):
    stored(tmp_path / "bundled")
    stored(tmp_path / "embedded")
    monkeypatch.chdir(tmp_path)  # where a folder of that name is another model
    monkeypatch.setattr(models, "path", lambda: tmp_path / "bundled")
    lm = besag.load(name, device="cpu")
    assert (lm.name, lm.conditionals.folder) == (models.EMBEDDED, tmp_path / "bundled")
    assert about_model(name, None) == about_model(None, None)
    if name is not None:
        assert find_folder(found(name), None) == tmp_path / "bundled"  # of a recipe
