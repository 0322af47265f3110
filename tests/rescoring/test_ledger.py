"""Scores that are kept: each text once, none twice, and a torn file goes on."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.laws import Arbitrary
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.temper import Tempered
from besag.errors import BesagError
from besag.rescoring.ledger import HEAD, Scorer, read, scores
from besag.rescoring.rescore import scorers_of
from besag.scores import distilling, regression

TEXTS = ["a a", "a b", "a a", "b b", ""]


@pytest.fixture
def scorers() -> list[Scorer]:
    return scorers_of(besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])), ["chain", "pll"])


def refuse(*_: object) -> None:
    raise AssertionError("a text was scored again")


def test_what_is_kept_is_what_score_says_and_is_not_made_again(scorers, tmp_path, monkeypatch) -> None:
    path = str(tmp_path / "scores.jsonl")
    told: list[str] = []
    found = scores(scorers, TEXTS, path, told.append)
    lm = besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"]))
    for one, method in zip(found, ("chain", "pll"), strict=True):
        assert list(one) == ["a a", "a b", "b b", ""]
        for text, kept in one.items():
            score = lm.score(text, method)
            assert (kept.tokens, kept.status) == (len(score), score.status)
            assert kept.total == pytest.approx(score.total, nan_ok=True)
    assert told[0] == "chain: 4 of 4 texts are still to be scored"
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 1 + 8
    before = (tmp_path / "scores.jsonl").read_bytes()
    monkeypatch.setattr("besag.rescoring.ledger.Scoring", refuse)
    again = scores(scorers, TEXTS, path)
    assert [{text: kept.total for text, kept in one.items() if text} for one in again] == [
        {text: kept.total for text, kept in one.items() if text} for one in found
    ]
    assert (tmp_path / "scores.jsonl").read_bytes() == before


@pytest.mark.parametrize("cut", [1, 20, 150, 10**6])
def test_a_torn_file_goes_on(cut, scorers, tmp_path) -> None:
    path = tmp_path / "scores.jsonl"
    whole = scores(scorers, [*TEXTS, "b a"], str(path))
    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - cut)])
    assert repr(scores(scorers, [*TEXTS, "b a"], str(path))) == repr(whole)
    assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())


def test_other_settings_are_other_scores(tmp_path) -> None:
    lm = besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"]))
    path = str(tmp_path / "scores.jsonl")
    from besag.scores import method

    for order in ("left-to-right", "right-to-left"):
        scores([Scorer("chain", lm.engine, method("chain", order=order))], ["a b"], path)
    assert len(read(path)[0]) == 2


@pytest.mark.parametrize(
    "content",
    [b"my notes\n", b"my notes", json.dumps({"a": 1}).encode(), json.dumps({"a": 1}).encode() + b"\n", b"{", b"\n",
     b"\xff\xfe\n", HEAD[:-3], json.dumps({"model": "m", "method": "pll", "dtype": "float32"}).encode()],
)  # fmt: skip
def test_a_file_of_something_else_is_refused_and_left_as_it_is(content, scorers, tmp_path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(BesagError, match=r"notes\.txt.*choose another --scores"):
        scores(scorers, TEXTS, str(path))
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("change", "said"),
    [({"status": "fine"}, "fine"), ({"tokens": "x"}, "tokens='x'"), ({"tokens": -1}, "tokens=-1"),
     ({"total": "x"}, "x"), ({"tokens": None}, "tokens=None"), ({"text": 1}, "kind"),
     ({"more": 1}, "fields"), ({"source": 1}, "kind")],
)  # fmt: skip
def test_a_line_that_is_no_score_is_named(change, said, scorers, tmp_path) -> None:
    path = tmp_path / "scores.jsonl"
    scores(scorers, TEXTS, str(path))
    rows = path.read_text().splitlines()
    rows[2] = json.dumps(json.loads(rows[2]) | change)
    path.write_text("\n".join(rows) + "\n")
    before = path.read_bytes()
    with pytest.raises(BesagError, match=r"scores\.jsonl, line 3") as refused:
        scores(scorers, TEXTS, str(path))
    assert said in str(refused.value)
    assert path.read_bytes() == before


def test_probability_zero_comes_back_as_it_went(tmp_path) -> None:
    lm = besag.load(besag.Table([[0.5, 0.0], [0.2, 0.3]], symbols=["a", "b"]))
    [scorer] = scorers_of(lm, "chain")
    path = str(tmp_path / "scores.jsonl")
    first = scores([scorer], ["a b", "a a", ""], path)[0]
    again = scores([scorer], ["a b", "a a", ""], path)[0]
    assert first["a b"].total == again["a b"].total == -math.inf
    assert first["a a"] == again["a a"]
    assert math.isnan(first[""].total)
    assert math.isnan(again[""].total)


def test_models_of_one_name_are_told_apart_by_their_numbers(scorers, tmp_path) -> None:
    path = str(tmp_path / "scores.jsonl")
    other = scorers_of(besag.load(besag.Table([[0.1, 0.4], [0.3, 0.2]], symbols=["a", "b"])), "chain")
    same = scorers_of(besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"], name="other")), "chain")
    apart = scores([scorers[0], *other, *same], ["a a"], path)
    assert apart[0]["a a"].total != apart[1]["a a"].total
    assert apart[0]["a a"] == apart[2]["a a"]
    assert len(Path(path).read_text().splitlines()) == 1 + 2


def key_of(folder: Path, method_name: str = "pll", **options: Any) -> Any:
    [scorer] = scorers_of(besag.load(folder, device="cpu", **options), method_name)
    return scorer.key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    tiny("bert").save_pretrained(place)
    vocabulary("bert").tokenizer.save_pretrained(place)
    return place


def test_a_model_that_was_trained_again_in_the_same_folder_is_scored_again(folder: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "scores.jsonl")
    before = scores(scorers_of(besag.load(folder, device="cpu"), "pll"), ["the cat"], path)[0]["the cat"]
    network = tiny("bert")
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1.01)
    network.save_pretrained(folder)
    lm = besag.load(folder, device="cpu")
    after = scores(scorers_of(lm, "pll"), ["the cat"], path)[0]["the cat"]
    assert after.total == lm.score("the cat", "pll").total != before.total


@pytest.mark.filterwarnings("ignore:8-bit products")
def test_what_scores_depend_on_is_in_the_key(folder: Path, tmp_path: Path) -> None:
    first = key_of(folder)
    assert key_of(folder) == first
    assert key_of(folder, name="another") == first
    assert key_of(folder, dtype="float64") != first
    assert key_of(folder, dtype="int8") != first
    assert key_of(folder, "unmasked") != first
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    assert key_of(moved) == first
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    assert key_of(folder) != first
    lm = besag.load(moved, device="cpu")
    with torch.no_grad():
        next(lm.model.parameters()).mul_(2.0)  # in memory alone
    assert scorers_of(lm, "pll")[0].key != first


@pytest.mark.filterwarnings("ignore:8-bit products")
def test_the_numbers_of_an_int8_network_are_in_its_key(folder: Path) -> None:
    before = key_of(folder, dtype="int8")
    network = tiny("bert")
    with torch.no_grad():
        network.bert.encoder.layer[0].output.dense.weight.mul_(1.5)
    network.save_pretrained(folder)
    assert key_of(folder, dtype="int8") != before


def test_the_scorer_of_maskless_is_in_its_key(folder: Path) -> None:
    keys = []
    for value in (0.0, 1.0):
        lm = besag.load(folder, device="cpu")
        size = regression.width(lm.conditionals) + regression.BESIDE
        distilling.use(lm.engine, regression.Regression(regression.view_of(lm.conditionals), np.full(size, value)))
        keys.append([scorers_of(lm, name)[0].key for name in ("maskless", "pll")])
    assert keys[0][0] != keys[1][0]
    assert keys[0][1] == keys[1][1]


def test_conditionals_made_of_others(folder: Path) -> None:
    lm = besag.load(folder, device="cpu")
    warm = [besag.load(Tempered(lm.conditionals, at)) for at in (0.5, 0.50000001, 0.5)]
    keys = [scorers_of(one, "pll")[0].key for one in warm]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


def test_a_model_of_which_no_change_would_be_seen_is_refused(tmp_path: Path) -> None:
    [scorer] = scorers_of(besag.load(Arbitrary(3)), "pll")
    path = tmp_path / "scores.jsonl"
    with pytest.raises(BesagError, match="without --scores"):
        scores([scorer], ["s0"], str(path))
    assert not path.exists()
