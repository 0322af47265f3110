"""Every verb maps records to rows, in order, whatever stands in a block."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tests.bulk.conftest import sentences

import besag
from besag.bulk.verbs import Augment, Entropy, Fill, Sample, Score, Verb
from besag.files.inputs import Record

TEXTS = [*sentences(9), "", "caf\udce9", "the [MASK] sat on the [MASK]"]


def records(texts: list[str]) -> list[Record | None]:
    found: list[Record | None] = [Record(at, f"line {at}", text, {"id": at}) for at, text in enumerate(texts, 1)]
    return [*found[:5], None, *found[5:], None]


def verbs(folder: Path) -> list[Verb]:
    load = {"model": str(folder), "device": "cpu"}
    return [
        Score(load, methods={"pll": {}, "unmasked": {}}), Entropy(load), Fill(load, k=2),
        Sample(load, kernel="ordered", chains=2, seed=3), Augment(load, options={"copies": 2, "similarity": -1.0}),
    ]  # fmt: skip


@pytest.mark.parametrize("place", range(5))
def test_verbs(bert: Path, place: int) -> None:
    verb = pickle.loads(pickle.dumps(verbs(bert)[place]))
    found = list(verb.open().rows(records(TEXTS)))
    assert [record.number for record, _ in found] == list(range(1, len(TEXTS) + 1))
    for record, rows in found:
        assert rows
        assert all(row["row"] == record.number and list(row) == list(found[0][1][0]) for row in rows)
        assert {"row", "text", verb.number, "status"} <= rows[0].keys()
        assert set(verb.added) <= record.others.keys()
    statuses = [str(rows[0]["status"]) for _, rows in found]
    assert statuses[-3:-1] != ["ok", "ok"]
    again = list(verb.open().rows(records(TEXTS)))
    assert str(again) == str(found)  # nan ≠ nan
    assert list(verb.open().rows(records([verb.trial])))


def test_a_score_is_that_of_the_model(bert: Path) -> None:
    lm = besag.load(bert, device="cpu", progress=False)
    texts = sentences(6)
    rows = [row for _, [row] in Score({"model": str(bert)}).open().rows(records(texts))]
    assert [row["pll"] for row in rows] == pytest.approx([score.total for score in lm.score(texts)], abs=1e-4)
    means = [row["entropy"] for _, [row] in Entropy({"model": str(bert)}).open().rows(records(texts))]
    hand = [score.entropy.mean() for score in lm.score(texts, entropy=True) if score.entropy is not None]
    assert means == pytest.approx(hand, abs=1e-4)


def test_draws_belong_to_the_row(bert: Path) -> None:
    verb = Sample({"model": str(bert)}, kernel="ordered", chains=1, seed=1)
    text = "the [MASK] [MASK] [MASK] [MASK] mat"
    every = [rows[0]["sampled"] for _, rows in verb.open().rows(records([text] * 8))]
    assert len(set(every)) > 1
    [(_, [last])] = verb.open().rows([Record(8, "line 8", text, {})])
    assert last["sampled"] == every[-1]
