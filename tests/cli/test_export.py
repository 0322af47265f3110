"""`besag export`: a folder in eight bits, the cost on stdout, and what is refused."""

from __future__ import annotations

import pytest
from tests.networks import tiny, vocabulary


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


def test_a_folder_that_is_there(run, model):
    done = run("export", model, model.parent)
    assert done.exit_code == 2
    assert "--force" in done.stderr
