"""The scorer's file and its formula, by hand; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from tests.networks import tiny, vocabulary

import besag
from besag.errors import BesagError
from besag.reductions import Chunk
from besag.scores.regression import BESIDE, FILE, MOST, Evidence, Regression, fit, read, regression_of, view_of, width


def chunk(seed: int = 0) -> Chunk:
    made = torch.Generator().manual_seed(seed)
    logits, rows = torch.randn(3, 5, generator=made), torch.randn(3, 4, generator=made)
    which, target = torch.tensor([0, 1, 1, 2]), torch.tensor([4, 0, 3, 2])
    return Chunk(logits, logits.logsumexp(-1), which, target, None, rows)


def test_the_formula_by_hand():
    given, weight = chunk(), np.arange(1, 8) / 10
    found = Regression("plain", weight)(given)["regressed"]
    for m, (row, target) in enumerate(zip(given.which, given.target, strict=True)):
        q = given.logits[row].softmax(-1)
        said = float(q[target].log())
        z = (1 - float(q[target])) * np.array([*given.rows[row].tolist(), said, float(q.max().log()), 1.0])
        np.testing.assert_allclose(Evidence()(given)["evidence"][m], z, rtol=1e-5)
        assert float(found[m]) == pytest.approx(said + z @ weight, rel=1e-5)


def test_without_weights_it_is_what_the_network_says():
    given = chunk()
    said = given.target_logits() - given.normaliser[given.which]
    torch.testing.assert_close(Regression("plain", np.zeros(7))(given)["regressed"], said)


def test_saved_and_read(tmp_path):
    weight = np.linspace(-1, 1, 9)
    Regression("twins", weight, "somebody").save(tmp_path)
    found = read(tmp_path)
    assert (found.view, found.teacher) == ("twins", "somebody")
    np.testing.assert_allclose(found.weight, weight, atol=1e-7)
    assert read(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"weight": np.zeros((3, 3), np.float32)}, {"view": "plain"}),
        ({"weight": np.zeros(MOST + 1, np.float32)}, {"view": "plain"}),
        ({"weight": np.zeros(BESIDE, np.float32)}, {"view": "plain"}),
        ({"weight": np.full(9, np.nan, np.float32)}, {"view": "plain"}),
        ({"weight": np.zeros(9, np.float32)}, {"view": "both"}),
        ({"weight": np.zeros(9, np.float32)}, {}),
        ({"other": np.zeros(9, np.float32)}, {"view": "plain"}),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path, tensors, said):
    save_file(tensors, tmp_path / FILE, metadata=said)
    with pytest.raises(BesagError, match=FILE):
        read(tmp_path)


def test_a_torn_file_is_refused(tmp_path):
    (tmp_path / FILE).write_bytes(b"\x08\0\0\0\0\0\0\0{")
    with pytest.raises(BesagError, match=FILE):
        read(tmp_path)


def test_a_model_without_a_scorer_is_told_what_to_do():
    lm = besag.load((tiny("bert"), vocabulary("bert").tokenizer), name="mine")
    with pytest.raises(BesagError, match=r"besag distil-scorer TEXTS --teacher mine -o FOLDER.*method='pll'"):
        lm.score("the cat", "maskless")


def test_a_scorer_of_another_network_is_refused():
    lm = besag.load((tiny("bert"), vocabulary("bert").tokenizer))
    assert (view_of(lm.conditionals), width(lm.conditionals)) == ("twins", 32)
    fit(lm.conditionals, Regression("twins", np.zeros(32 + BESIDE)))
    with pytest.raises(BesagError, match="another network"):
        fit(lm.conditionals, Regression("twins", np.zeros(16 + BESIDE)))
    esm = besag.load((tiny("esm"), vocabulary("esm").tokenizer))
    with pytest.raises(BesagError, match="another network"):
        fit(esm.conditionals, Regression("twins", np.zeros(32 + BESIDE)))


def test_an_exact_law_has_no_hidden_states():
    coins = besag.load(besag.Table([[0.4, 0.1], [0.1, 0.4]], symbols=["h", "t"]))
    with pytest.raises(BesagError, match="no scorer"):
        regression_of(coins.conditionals)
    with pytest.raises(BesagError, match="cannot have a scorer"):
        view_of(coins.conditionals)
