"""Perplexities of an exact law, per every unit, against `besag.corpus`; which of them is one."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from tests.laws import Arbitrary

import besag

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "lm_heldout"
TEXTS = ["s0 s1", "s2 s2 s0", "s1 s0 s0 s2"]


@pytest.mark.parametrize("method", ["pll", "chain"])
def test_every_unit_agrees_with_the_corpus(tmp_path: Path, method: str) -> None:
    (tmp_path / "t.txt").write_text("s0 s1\n\n  s2 s2 s0 \ns1 s0 s0 s2\n")
    lm = besag.load(Arbitrary(3))
    found = besag.evaluate(lm, "perplexity", data=tmp_path, method=method)
    same = besag.corpus(lm.score(TEXTS, method))
    kind = "pseudo-" if method == "pll" else ""
    token = found[f"{kind}perplexity per token"]
    assert token.value == pytest.approx(same.perplexity)
    assert token.se == pytest.approx(same.perplexity * same.standard_error)
    assert token.interval == pytest.approx(same.perplexity_interval)
    assert found[f"{kind}perplexity per word"].value == pytest.approx(same.word_perplexity)
    assert found[f"{kind}bits per character"].value == pytest.approx(same.bits_per_character)
    assert found[f"{kind}bits per byte"].value == pytest.approx(same.bits_per_byte)
    assert found[f"{kind}bits per token"].value == pytest.approx(math.log2(same.perplexity))
    for figure in found.figures:
        assert figure.low <= figure.value <= figure.high


def test_what_a_number_is_depends_on_its_method(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("s0 s1\ns1\n")
    (tmp_path / "b.txt").write_text("s2 s2\n")
    found = besag.evaluate(besag.load(Arbitrary(3)), "perplexity", data=tmp_path)
    assert [part.method for part in found.parts] == ["pll", "chain"]
    pll, chain = (part.figures[0] for part in found.parts)
    assert (pll.name, chain.name) == ("pseudo-perplexity per token", "perplexity per token")
    assert "no probability" in pll.meaning
    assert "token sequences of this length" in chain.meaning
    assert {figure.group for figure in found.figures} == {"", "a", "b"}
    bound = besag.evaluate(besag.load(Arbitrary(3)), "perplexity", data=tmp_path, method="elbo")
    assert "an upper bound" in bound.figures[0].meaning


@pytest.mark.skipif(not DATA.exists(), reason="held-out text is not there: set BESAG_DATA")
def test_held_out_text() -> None:
    found = besag.evaluate(besag.load(), "perplexity", data=DATA, method="unmasked", limit=3)
    assert found.figures[0].n == 6
