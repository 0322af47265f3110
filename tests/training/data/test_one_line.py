"""Pairs on one line: the source is never hidden, whatever the law, the rate and the objective; the target is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from tests.training.data.test_parallel import two_files

from besag import masks
from besag.errors import BesagError
from besag.training.data import one_line
from besag.training.data.clock import Clock
from besag.training.data.one_line import LineBatches, line
from besag.training.network.encoder import Encoder
from besag.training.objectives import OBJECTIVES
from besag.training.objectives.mdlm import nelbo
from besag.training.recipe import Data

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
    assert line("{source}: {target}!", {"source": "a {target}"}, "b") == ("a {target}: b!", (12, 13))
    assert line("{target} {source} {source}", {"source": "s"}, "t") == ("t s s", (0, 1))
    assert line("{a}, {b}? {target}", {"a": "{b}", "b": "x"}, "y") == ("{b}, x? y", (8, 9))


ROWS = [("the cat", "on the mat", 0), ("dogs", "the {premise}", 1), ("a table", "the cat sleeps", 0)]


def of_rows(folder: Path, **data: Any) -> Data:
    file = folder / "rows.jsonl"
    names = ("premise", "hypothesis", "label")
    file.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in ROWS), encoding="utf-8")
    said: dict[str, Any] = {
        "template": "{premise} and {hypothesis}? {target}.",
        "answers": {"0": "cat", "1": "dogs mat"},
    }
    return Data(train=(str(file),), field="label", pairs="line", held_out=0.0, **{**said, **data})


def test_a_template_of_several_columns_and_what_is_written_for_a_label(tmp_path: Path) -> None:
    found = [(document.text, document.spans) for document in one_line.documents(of_rows(tmp_path))]
    assert found == [
        ("the cat and on the mat? cat.", [(24, 27)]),
        ("dogs and the {premise}? dogs mat.", [(24, 32)]),
        ("a table and the cat sleeps? cat.", [(28, 31)]),
    ]
    as_they_are = [document.text for document in one_line.documents(of_rows(tmp_path, answers={}))]
    assert as_they_are[1] == "dogs and the {premise}? 1."
    with pytest.raises(BesagError, match=r"rows.jsonl, line 2: the target is '1', and data.answers has '0', 'one'"):
        list(one_line.documents(of_rows(tmp_path, answers={"0": "no", "one": "yes"})))
    with pytest.raises(BesagError, match=r"hypotesis.*Did you mean 'hypothesis'"):
        list(one_line.documents(of_rows(tmp_path, template="{hypotesis} {target}")))
    one, other = (one_line.prepare(of_rows(tmp_path, answers=said), WORDS, tmp_path / "cache")
                  for said in ({"0": "cat", "1": "mat"}, {"0": "cat", "1": "dogs"}))  # fmt: skip
    assert one.folder != other.folder


def test_of_plain_lines_some_of_all_tokens_are_asked_and_of_others_the_answer(tmp_path: Path) -> None:
    """Against the definition: which lines are plain, and how much of them is hidden; the answer is hidden in no line as
    a whole but in those that are not plain."""
    said = two_files(tmp_path, SOURCES * 40, TARGETS * 40, max_length=20, batch_tokens=2000, held_out=0.0)
    cache = one_line.prepare(said, WORDS, tmp_path / "cache")
    masking = masks.Masking(masks.law("uniform"), masks.rate_named("constant", 1.0), masks.Replacement(WORDS.mask_id))
    batches = one_line.batches(cache, said, WORDS, masking, Clock(steps=10), seed=3, plain=0.25)
    judged = one_line.batches(cache, said, WORDS, masking, Clock(steps=10), seed=3)
    plain, hidden, tokens = 0, 0, 0
    for index in range(4):
        batch, answers = batches[index], judged[index]
        assert (batch.ids == answers.ids).all()
        mask, of_answer = batch.inputs == WORDS.mask_id, answers.inputs == WORDS.mask_id
        text = torch.from_numpy(~np.isin(batch.ids, list(WORDS.special_ids)))
        for row in range(batch.layout.rows):
            here = batch.layout.row == row
            if (mask[here] == of_answer[here]).all():
                continue
            plain += 1
            hidden, tokens = hidden + int(mask[here].sum()), tokens + int(text[here].sum())
        assert not mask[~text].any()
    lines = sum(judged[index].layout.rows for index in range(4))
    assert abs(plain / lines - 0.25) < 4 * (0.25 * 0.75 / lines) ** 0.5 + 0.02  # a few plain ones hide the answer
    assert abs(hidden / tokens - 0.3) < 4 * (0.3 * 0.7 / tokens) ** 0.5 + 0.02


def test_diffusion_bounds_the_answer_given_the_prompt(tmp_path: Path) -> None:
    """Diffusive adaptation: the mean loss is −log p(target | source) by the chain rule, averaged over all orders of the
    target alone, with the source shown in every pass."""
    assert WORDS.mask_id is not None
    assert WORDS.pad_id is not None
    network = networks.tiny("bert").eval()
    encoder = Encoder(
        network, mask_id=WORDS.mask_id, pad_id=WORDS.pad_id, special_ids=WORDS.special_ids, ragged=False
    ).eval()
    said = two_files(tmp_path, ["the cat the mat"] * 300, ["dogs table"] * 300, max_length=20, batch_tokens=4000,
                     held_out=0.0)  # fmt: skip
    cache = one_line.prepare(said, WORDS, tmp_path / "cache")
    masking = masks.Masking(masks.law("uniform"), masks.rate_named("constant", 1.0), masks.Replacement(WORDS.mask_id))
    batch = one_line.batches(cache, said, WORDS, masking, Clock(steps=10), seed=3)[0]
    ids, free = batch.ids[batch.layout.row == 0], batch.free[batch.layout.row == 0]
    one, other = free.nonzero()[:, 0].tolist()

    def lost(place: int, *hidden: int) -> float:
        shown = ids.clone()
        shown[list(hidden)] = WORDS.mask_id
        with torch.no_grad():
            logits = network(input_ids=shown[None]).logits[0, place]
        logits[WORDS.mask_id] = -torch.inf
        return -float(logits.log_softmax(-1)[ids[place]])

    orders = [lost(a, a, b) + lost(b, b) for a, b in ((one, other), (other, one))]
    bound = nelbo(encoder, batch.ids, batch.layout, free=batch.free, samples=16, seed=1)
    assert bound.tokens == 2 * batch.layout.rows
    assert abs(2 * bound.nats - sum(orders) / 2) < 5 * 2 * bound.error + 1e-4
    objective = OBJECTIVES.find("mdlm")(encoder, seed=1, hide="counted")
    with torch.no_grad():
        mean = float(objective(batch).total) / batch.layout.rows
    assert abs(mean - sum(orders) / 2) < 0.1 * abs(orders[0])


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
