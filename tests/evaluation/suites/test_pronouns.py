"""Shares of two pronouns at a gap, by hand on an exact law; capitals; what is no prompt."""

import math

import numpy as np
import pytest

import besag
from besag.errors import BesagError

WORDS = ["He", "She", "he", "she", "is", "kind", "said"]
WEIGHTS = np.random.default_rng(8).gamma(0.5, size=(7, 7, 7)) + 0.01


@pytest.fixture(scope="module")
def lm():
    return besag.load(besag.Table(WEIGHTS, symbols=WORDS))


def test_by_hand(lm, tmp_path):
    file = tmp_path / "prompts.tsv"
    file.write_text("prompt\tfield\n[MASK] is kind\tcare\nkind said [MASK]\tart\n")
    found = besag.evaluate(lm, "pronouns", data=file)
    first, second = WEIGHTS[:, 4, 5], WEIGHTS[5, 6]
    shares = [first[0] / (first[0] + first[1]), second[2] / (second[2] + second[3])]  # with a capital, and without
    assert [row["share"] for row in found.parts[0].rows] == pytest.approx(shares)
    gaps = [math.log(one / (1 - one)) for one in shares]
    assert found["share"].value == pytest.approx(100 * np.mean(shares))
    assert found["gap"].value == pytest.approx(np.mean(gaps))
    assert found["share/care"].value == pytest.approx(100 * shares[0])
    assert found["prefers"].value == pytest.approx(100 * np.mean([one > 0.5 for one in shares]))
    other = besag.evaluate(lm, "pronouns", data=file, one="she", other="he")
    assert other["share"].value == pytest.approx(100 - found["share"].value)


def test_without_a_field_the_file_is_one(lm, tmp_path):
    (tmp_path / "jobs.jsonl").write_text('{"sentence": "<mask> is kind"}\n')
    assert besag.evaluate(lm, "pronouns", data=tmp_path)["share/jobs"].n == 1


@pytest.mark.parametrize("prompt", ["He is kind", "[MASK] is [MASK]"])
def test_what_is_no_prompt(lm, tmp_path, prompt):
    (tmp_path / "jobs.tsv").write_text(f"prompt\tfield\n{prompt}\tx\n")
    with pytest.raises(BesagError, match=r"needs one \[MASK\] where the pronoun stands"):
        besag.evaluate(lm, "pronouns", data=tmp_path)
