"""What an actor does to a table; `test_pipeline.py` runs it on Ray."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import besag
from besag import bulk
from besag.bulk.datasets import Mapped
from besag.bulk.keeping import Keep
from besag.bulk.verbs import Score
from besag.bulk.working import Hand
from besag.errors import BesagError


def test_a_table_in_and_out(bert: Path) -> None:
    hand = Hand(Score({"model": str(bert)}), 512, Keep("tokens < 9"))
    texts = [
        "the cat sat",
        "the cat sat on a red mat and one dog ran by",
        None,
        "caf\udce9".encode(errors="replace").decode(),
    ]
    table = pa.table({"id": [1, 2, 3, 4], "status": ["a", "b", "c", "d"], "said": texts})
    found = Mapped(hand, "said")(table).to_pylist()
    assert [row["id"] for row in found] == [1, 3, 4]
    assert [row["input.status"] for row in found] == ["a", "c", "d"]
    assert found[1]["status"] == "empty"
    lm = besag.load(bert, device="cpu", progress=False)
    assert found[0]["pll"] == pytest.approx(lm.score("the cat sat").total, abs=1e-4)


def test_what_cannot_be_meant(bert: Path) -> None:
    with pytest.raises(BesagError, match="Did you mean 'said'"):
        Mapped(Hand(Score({"model": str(bert)}), 512), "sad")(pa.table({"said": ["a"]}))
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'besag[bulk]'")
    with pytest.raises(BesagError, match=r"give a Dataset of ray\.data"):
        bulk.score([{"text": "a"}])
    with pytest.raises(BesagError, match=r"actor=2: no such option\. Did you mean 'actors'"):
        bulk.entropy([], actor=2)
