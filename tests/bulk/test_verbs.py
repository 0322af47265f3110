"""Every verb maps records to rows, in order, whatever stands in a block."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.bulk.conftest import sentences

import besag
from besag.bulk.verbs import Augment, Entropy, Fill, Sample, Score, Verb
from besag.files.inputs import Record
from besag.hardware import MKL_MODE

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


BY_THREADS = """
import sys, torch
from besag.bulk.verbs import Score
from besag.cli.groups import ModelOptions
folder, door = sys.argv[1:]
lm = Score({"model": folder, "device": "cpu"}).model() if door == "bulk" else ModelOptions(folder, "cpu").load(False)
words = "the cat sat on a mat and one red".split()
for threads in (1, 2):
    torch.set_num_threads(threads)
    print([next(lm.score(iter([" ".join(words[:count])]), "unmasked")).log_probs.tolist() for count in range(3, 10)])
"""


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="other libraries have roundings of their own")
@pytest.mark.parametrize("door", ["bulk", "command line"])
def test_a_lone_short_text_has_the_same_bits_by_any_threads(bert: Path, door: str) -> None:
    """MKL settles this once a process, so this is one of its own. A text has 5 to 11 tokens, with the special ones."""
    paths = os.pathsep.join([str(Path(besag.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in os.environ.items() if name != MKL_MODE} | {
        "PYTHONPATH": paths,
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    command = [sys.executable, "-c", BY_THREADS, str(bert), door]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == 2
    assert said[0] == said[1]
