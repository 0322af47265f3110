"""`besag export`: a folder in eight bits, the cost on stdout, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.networks import tiny, tiny_decoder, vocabulary

import besag
from besag.conditionals.encoder_decoder import lift


@pytest.fixture
def model(tmp_path):
    tiny("bert").save_pretrained(tmp_path / "model")
    vocabulary("bert").tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_is_exported(run, model, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sat\n\na dog\n")
    (tmp_path / "pairs.tsv").write_text("good\tbad\nthe cat\tcat the\n")
    out = tmp_path / "small"
    done = run(
        "export", model, out, "--texts", tmp_path / "texts.txt", "--pairs", tmp_path / "pairs.tsv", "--most", "9"
    )
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("int8: 0.")
    assert "of 1 minimal pair changed" in done.stdout
    assert f"written to {out}" in done.stderr
    scored = run("score", "the cat sat", "--model", out, "--format", "tsv", "--device", "cpu")
    assert scored.exit_code == 0, scored.stderr
    assert run("models", out).exit_code == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--weights", "int4"], "besag writes float32, bfloat16, float16, int8"),
        (["--most", "-1"], "0 or more"),
        (["--most", "0.000001"], "were allowed"),
        (["--texts", "no.txt"], "no.txt"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(run, model, tmp_path, options, why):
    done = run("export", model, tmp_path / "out", *options)
    assert done.exit_code in (1, 2)
    assert why in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("decoder", ["masked", "causal"])
def test_a_translator_is_exported_by_what_it_says_given_sources(run, tmp_path, decoder):
    model, out = tmp_path / "translator", tmp_path / "small"
    network = tiny_decoder("bart")
    (lift(network) if decoder == "masked" else network).save_pretrained(model)
    vocabulary("bert").tokenizer.save_pretrained(model)
    (tmp_path / "pairs.tsv").write_text("de\ten\nthe cat\ta man\ncats\tthe dog\n")
    done = run("export", model, out)
    assert done.exit_code == 2
    assert "is a translator" in done.stderr
    assert "--source-column" in done.stderr
    assert not out.exists()
    options = ["--texts", tmp_path / "pairs.tsv", "--column", "en", "--most", "9"]
    done = run("export", model, out, *options, "--source-column", "de")
    assert done.exit_code == 0, done.stderr
    assert "of 2 texts" in done.stdout
    before, after = (
        besag.load(folder, device="cpu", dtype="float32", progress=False).score(
            ["a man", "the dog"], "pll" if decoder == "masked" else "causal", sources=["the cat", "cats"]
        )
        for folder in (model, out)
    )
    apart = np.concatenate([abs(a.log_probs - b.log_probs) for a, b in zip(before, after, strict=True)])
    assert f"{apart.mean():.4f} nats a token on average" in done.stdout


def test_sources_are_for_translators_and_in_a_table(run, model, tmp_path):
    (tmp_path / "pairs.tsv").write_text("de\ten\nthe cat\ta man\n")
    done = run(
        "export", model, tmp_path / "out", "--texts", tmp_path / "pairs.tsv", "--column", "en", "--source-column", "de"
    )
    assert "is no translator" in done.stderr
    done = run("export", model, tmp_path / "out", "--source-column", "de")
    assert "that --texts names" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there(run, model):
    done = run("export", model, model.parent)
    assert done.exit_code == 2
    assert "--force" in done.stderr
