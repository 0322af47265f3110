"""Pairs on one line: the source is never hidden, whatever the law, the rate and the objective; the target is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import networks
from tests.training.data.test_parallel import two_files

from besag import masks
from besag.errors import BesagError
from besag.training.data import one_line
from besag.training.data.clock import Clock
from besag.training.data.one_line import LineBatches, line
from besag.training.network.encoder import Encoder
from besag.training.objectives import OBJECTIVES

WORDS = networks.vocabulary("bert")
SOURCES = ["the cat the mat", "dogs the table", "the the cat"] * 5
TARGETS = ["dogs table", "cat", "mat mat table"] * 5


def made(folder: Path, law: str = "uniform", rate: float = 1.0, **data: Any) -> LineBatches:
    folder.mkdir(exist_ok=True)
    said = two_files(folder, SOURCES, TARGETS, **{"max_length": 20, "batch_tokens": 80, "held_out": 0.0, **data})
    cache = one_line.prepare(said, WORDS, folder / "cache")
    masking = masks.Masking(masks.law(law), masks.rate_named("constant", rate), masks.Replacement(WORDS.mask_id))
    return one_line.batches(cache, said, WORDS, masking, Clock(steps=10), seed=3)


def test_all_of_the_target_and_nothing_else_is_hidden_at_rate_one(tmp_path: Path) -> None:
    batches, seen = made(tmp_path, template="the {source} cat {target} ."), set()
    for index in range(3):
        batch = batches[index]
        for row in range(batch.layout.rows):
            shown = WORDS.tokenizer.decode(batch.inputs[batch.layout.row == row])
            text = WORDS.tokenizer.decode(batch.ids[batch.layout.row == row])
            seen.add((shown, text))
    expected = {
        (f"[CLS] the {source} cat {' '.join(['[MASK]'] * len(target.split()))}. [SEP]",
         f"[CLS] the {source} cat {target}. [SEP]")
        for source, target in zip(SOURCES, TARGETS, strict=True)
    }  # fmt: skip
    assert {(" ".join(a.split()), " ".join(b.split())) for a, b in seen} == expected


@pytest.mark.parametrize("law", ["uniform", "whole_word", "span"])
def test_no_law_hides_the_source(tmp_path: Path, law: str) -> None:
    batches = made(tmp_path, law, 0.6, template="{target} the {source}")
    hidden = 0
    for index in range(6):
        batch = batches[index]
        length = np.array([len(target.split()) for target in ("dogs table", "cat", "mat mat table")])
        mask = (batch.inputs == WORDS.mask_id).numpy()
        assert (batch.layout.column.numpy()[mask] <= length.max()).all()
        assert not mask[~batch.free.numpy()].any()
        hidden += mask.sum()
    assert hidden > 10


@pytest.mark.parametrize("name", ["mdlm", "unroll"])
def test_an_objective_that_hides_by_itself_leaves_the_source_in_sight(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WORDS.mask_id is not None
    assert WORDS.pad_id is not None
    encoder = Encoder(
        networks.tiny("bert"), mask_id=WORDS.mask_id, pad_id=WORDS.pad_id, special_ids=WORDS.special_ids, ragged=False
    )
    objective, batch, seen = OBJECTIVES.find(name)(encoder, seed=1), made(tmp_path)[0], []
    plain = encoder.states
    monkeypatch.setattr(encoder, "states", lambda ids, *rest, **more: (seen.append(ids), plain(ids, *rest, **more))[1])
    objective(batch)
    assert seen
    assert all((ids[~batch.free] == batch.ids[~batch.free]).all() for ids in seen)
    assert any((ids != batch.ids).any() for ids in seen)


def test_braces_in_a_source_are_text() -> None:
    assert line("{source}: {target}!", "a {target}", "b") == ("a {target}: b!", (12, 13))
    assert line("{target} {source} {source}", "s", "t") == ("t s s", (0, 1))


def test_a_line_that_is_too_long_is_left_out_and_told(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="10 of 15 pairs have more than data.max_length = 7 tokens"):
        batches = made(tmp_path, max_length=7)
    assert len(batches.plan.epoch(0).start) == 5
    with pytest.raises(BesagError, match=r"of all 15 pairs each has more than data\.max_length = 4"):
        made(tmp_path / "none", max_length=4)


def test_another_template_has_a_cache_of_its_own(tmp_path: Path) -> None:
    said = two_files(tmp_path, SOURCES, TARGETS, held_out=0.0)
    first = one_line.prepare(said, WORDS, tmp_path / "cache")
    again = one_line.prepare(said, WORDS, tmp_path / "cache")
    other = one_line.prepare(replace(said, template="{target} {source}"), WORDS, tmp_path / "cache")
    assert first.folder == again.folder != other.folder
