"""`besag distil-scorer`: a folder that scores in one pass and is still the teacher; stopped, gone on, refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.cli.conftest import Run
from tests.networks import tiny, vocabulary

import besag
from besag.scores.regression import FILE

WORDS = ["the", "cat", "man", "on", "mat"]
TEXTS = [" ".join(words) for words in itertools.permutations(WORDS, 3)]  # 60


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teacher") / "bert"
    tiny("bert").save_pretrained(folder)
    vocabulary("bert").tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join([*TEXTS, TEXTS[0], " ".join(["cat"] * 70)]) + "\n", encoding="utf-8")
    return file


def test_one_command_makes_a_model_that_scores_in_one_pass(
    run: Run, teacher: Path, texts: Path, tmp_path: Path
) -> None:
    into = tmp_path / "scorer"
    result = run("distil-scorer", texts, "--teacher", teacher, "-o", into, "--held-out", 20)
    assert result.exit_code == 0, result.stderr
    for word in ("maskless", "unmasked", "length", "times as fast as pll"):
        assert word in result.stdout
        assert word in (into / "README.md").read_text(encoding="utf-8")
    assert "40 texts" in (into / "README.md").read_text(encoding="utf-8")  # the same once, what is too long not at all
    lm, before = besag.load(into), besag.load(teacher)
    assert lm.score("the cat", "pll").total == before.score("the cat", "pll").total  # still the teacher
    assert lm.score("the cat", "maskless").total < 0
    shown = run("score", "the cat", "--model", into, "--method", "maskless", "--format", "tsv")
    assert f"{lm.score('the cat', 'maskless').total:.4f}"[:6] in shown.stdout
    kept = [json.loads(line) for line in (tmp_path / "scorer.terms.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in kept[1:]] == TEXTS


def test_terms_that_are_there_are_not_asked_again(
    run: Run, teacher: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "scorer"
    options = ["distil-scorer", texts, "--teacher", teacher, "-o", into, "--held-out", 20]
    assert run(*options).exit_code == 0
    file, weights = tmp_path / "scorer.terms.jsonl", load_file(into / FILE)
    assert run(*options, "--force").exit_code == 0  # learns from the file
    assert load_file(into / FILE)["weight"].tobytes() == weights["weight"].tobytes()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])  # killed, in the middle of a line
    again = run(*options, "--force")
    assert again.exit_code == 0, again.stderr
    now, before = ([json.loads(line) for line in one.splitlines()[1:]] for one in (file.read_bytes(), whole))
    assert [row["text"] for row in now] == [row["text"] for row in before]
    for one, other in zip(now, before, strict=True):
        assert one["terms"] == pytest.approx(other["terms"], abs=1e-3)  # in other batches
    np.testing.assert_allclose(load_file(into / FILE)["weight"], weights["weight"], atol=1e-2)
    monkeypatch.setattr("besag.scores.terms.Kept.add", lambda *_: pytest.fail("asked again"))
    assert run(*options, "--force").exit_code == 0


def test_wrong_input_leaves_nothing_behind(run: Run, teacher: Path, texts: Path, tmp_path: Path) -> None:
    into = tmp_path / "scorer"
    before = sorted(tmp_path.iterdir())
    for few in (["the cat", "--text"], [texts, "--held-out", 41]):  # 60 texts are there, and 61 are needed
        rejected = run("distil-scorer", *few, "--teacher", teacher, "-o", into)
        assert rejected.exit_code == 2
        assert f"{1 if '--text' in few else 60} distinct texts" in rejected.stderr
        assert sorted(tmp_path.iterdir()) == before
    taken = run("distil-scorer", texts, "--teacher", teacher, "-o", tmp_path)
    assert taken.exit_code == 2
    assert "--force" in taken.stderr
    file = run("distil-scorer", texts, "--teacher", teacher, "-o", texts)
    assert file.exit_code == 2
    assert "is a file" in file.stderr
    without = run("score", "the cat", "--model", teacher, "--method", "maskless")
    assert without.exit_code == 2
    assert "besag distil-scorer TEXTS" in without.stderr
