"""What a command may say for a place of a text, and that every option says it alike."""

import json
from collections.abc import Callable

import pytest

from besag.cli.positions import position, positions

CATS = "The cat saw the cat in 1999."


def test_numbers_are_tokens_and_a_colon_makes_characters() -> None:
    written = ["3", "-2", "4:7", "man", "3rd", "1:b", "-1:4", "the man"]
    assert positions(written) == [3, -2, (4, 7), "man", "3rd", "1:b", "-1:4", "the man"]
    assert positions(None) is positions([]) is None


def test_a_word_that_looks_like_a_number_can_be_named() -> None:
    assert [position(one) for one in ("word:1999", "word:4:7", "word:word:", "word")] == [
        "1999",
        "4:7",
        "word:",
        "word",
    ]


@pytest.mark.parametrize("kept", ["cat", "2", "-12", "4:7"])
def test_edit_and_sample_keep_the_same_place(run: Callable, kept: str) -> None:
    edited = run("edit", CATS, "saw=heard", "--keep", kept, "--strength", 1, "--depth", 1, "--format", "jsonl")
    row = json.loads(edited.stdout)
    assert edited.exit_code == (0 if row["status"] == "ok" else 3), edited.stderr
    assert row["text"].split()[1] == "cat"
    drawn = run("sample", CATS, "--free-all", "--keep", kept, "--steps", 20, "-c", 1, "--format", "jsonl")
    assert drawn.exit_code == 0, drawn.stderr
    assert json.loads(drawn.stdout)["text"].split()[1] == "cat"
    copied = run("augment", CATS, "--text", "--keep", kept, "--share", 1, "--similarity", -1, "--format", "jsonl")
    assert json.loads(copied.stdout)["text"].split()[1] == "cat"


def test_a_number_may_be_a_word_of_the_text(run: Callable) -> None:
    wrong = run("edit", CATS, "1999=2000")
    assert wrong.exit_code == 2
    assert "there is no token 1999" in wrong.stderr
    assert "The word is '1999', in a command word:1999." in wrong.stderr
    right = run("edit", CATS, "word:1999=2000", "--format", "jsonl")
    assert right.exit_code == 0, right.stderr
    assert "2000" in json.loads(right.stdout)["text"]
    assert run("edit", CATS, "2=dog", "--format", "jsonl").stdout.count("The dog saw") == 1
