"""`besag.load`: who is taken as he is, and whose law of masks is taken out. Folders: tests/conditionals."""

import numpy as np
from tests import networks
from tests.conditionals.test_adapters import made, stored
from tests.laws import Arbitrary

import besag
from besag.conditionals import tilt


def test_whoever_answers_already_is_taken_as_he_is():
    law = Arbitrary(4)
    assert besag.load(law).conditionals is law


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
