"""What stands in a passage: headers, partners and separators, token by token; what is hidden of it and what is seen."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from tests.training.data.test_contexts import WORDS, prepared, rows

from besag import masks
from besag.errors import BesagError
from besag.training.data import context_batches
from besag.training.data.clock import Clock
from besag.training.data.context_batches import ContextBatches, held_out
from besag.training.network.encoder import Encoder
from besag.training.objectives import OBJECTIVES
from besag.training.recipe.contexts import KINDS

CLUSTERS = [
    {"text": "cat sleep", "date": "night", "topic": "x", "id": "a", "links": ["b"]},
    {"text": "dogs bark", "date": "cafe", "topic": "y", "id": "c", "links": ["d"]},
    {"text": "cats sleep on mat", "date": "night", "topic": "x", "id": "b", "links": []},
    {"text": "man with dogs", "date": "car", "topic": "y", "id": "d", "links": []},
    {"text": "she", "date": "night", "topic": None, "id": "e", "links": []},
]


def made(
    folder: Path, rows_: Any = CLUSTERS, *, rate: float = 0.3, law: str = "uniform", copies: int = 1, **data: Any
) -> ContextBatches:
    said = rows(folder, rows_, **{"unit": "documents", "max_length": 30, "batch_tokens": 120, **data})
    masking = masks.Masking(masks.law(law), masks.rate_named("constant", rate), masks.Replacement(WORDS.mask_id))
    found = prepared(folder, said)
    return context_batches.batches(found, said, WORDS, masking, Clock(steps=10), seed=3, copies=copies)


def texts(batches: ContextBatches, epoch: int = 0) -> list[str]:
    """All passages of an epoch, decoded."""
    found = []
    index = next(number for number in range(1000) if batches.plan.epoch_of(number) == epoch)
    while batches.plan.epoch_of(index) == epoch:
        passages = batches.clean(index)
        for row in range(len(passages.draw)):
            found.append(WORDS.tokenizer.decode(passages.ids[passages.row == row]))
        index += 1
    return found


def inside(text: str) -> list[str]:
    return text.removeprefix("[CLS] ").removesuffix(" [SEP]").split(" [SEP] ")


def test_a_header_stands_before_every_part_of_its_document(tmp_path: Path) -> None:
    content = [{"text": "cat dogs mat man " * 4, "date": "night"}, {"text": "she sleep", "date": "the car"}]
    batches = made(tmp_path, content, header="on {date}:", max_length=13, batch_tokens=26)
    found = sorted(texts(batches))
    assert "[CLS] on the car : she sleep [SEP]" in found
    assert len(found) == 4
    assert all(text.startswith("[CLS] on night : ") for text in found if "she" not in text)
    assert Counter(" ".join(found).split())["mat"] == 4  # every token of the text once


def test_documents_of_a_group_stand_together_with_separators_in_another_order_each_epoch(tmp_path: Path) -> None:
    batches, orders = made(tmp_path, group="topic", context="together"), set()
    for epoch in range(6):
        found = {tuple(inside(text)) for text in texts(batches, epoch)}
        assert {frozenset(one) for one in found} == {
            frozenset({"cat sleep", "cats sleep on mat"}), frozenset({"dogs bark", "man with dogs"}),
            frozenset({"she"}),
        }  # fmt: skip
        orders |= found
    assert len(orders) == 5  # each pair in both orders


def test_linked_documents_stand_together_as_those_of_a_group_do(tmp_path: Path) -> None:
    by_links = made(tmp_path, links="links", context="together")
    assert {frozenset(inside(text)) for text in texts(by_links)} == {
        frozenset({"cat sleep", "cats sleep on mat"}), frozenset({"dogs bark", "man with dogs"}), frozenset({"she"}),
    }  # fmt: skip


def test_what_does_not_fit_makes_another_passage_and_nothing_is_lost(tmp_path: Path) -> None:
    content = [{"text": f"{word} " * 9, "topic": "x"} for word in ("cat", "dogs", "mat", "man", "she")]
    batches = made(tmp_path, content, group="topic", context="together", max_length=24, batch_tokens=48)
    found = texts(batches)
    assert Counter(" ".join(found).split())["mat"] == 9
    assert sorted(len(set(inside(text))) for text in found) == [1, 2, 2]
    assert max(len(text.split()) for text in found) <= 24


def test_a_long_document_beside_nothing_goes_on_without_a_separator(tmp_path: Path) -> None:
    content = [{"text": "cat dogs mat man she", "topic": "x"}]
    batches = made(tmp_path, content, group="topic", context="together", max_length=9, batch_tokens=18)
    assert texts(batches) == ["[CLS] cat dogs mat man she [SEP]"]


LONG = [
    {"text": "cat dogs mat man she sleep", "id": "a", "links": "b"},
    {"text": "on at with the", "id": "b", "links": ""},
    {"text": "cafe car table", "id": "c", "links": ""},
]
PIECES = {"cat dogs mat": "man she sleep", "man she sleep": None, "on at": "with the", "with the": None}


def test_pairs_are_contiguous_linked_or_random_and_labelled_so(tmp_path: Path) -> None:
    batches, seen = made(tmp_path, LONG, links="links", context="pairs", max_length=9, batch_tokens=60), set()
    document = {piece: name for name, row in zip("abc", LONG, strict=True)
                for piece in (*PIECES, "cafe car table") if piece in row["text"]}  # fmt: skip
    for index in range(30):
        batch = batches[index]
        assert batch.relation is not None
        for row, kind in enumerate(batch.relation.tolist()):
            one, other = inside(WORDS.tokenizer.decode(batch.ids[batch.layout.row == row]))
            related = {document[one], document[other]}
            if document[one] == document[other]:
                assert (KINDS[kind], other) == ("contiguous", PIECES[one])
            else:
                assert KINDS[kind] == ("linked" if related == {"a", "b"} else "random")
            seen.add((one, KINDS[kind]))
    last, whole = {("man she sleep", "random"), ("man she sleep", "linked")}, {("cafe car table", "random")}
    assert last | whole <= seen  # an end has nothing that follows it, and a document without links none that is linked
    assert len(seen) == 3 + 2 + 3 + 2 + 1


def test_kinds_are_equally_often_where_all_three_are_there(tmp_path: Path) -> None:
    plan = made(tmp_path, LONG, links="links", context="pairs", max_length=9).plan
    kinds = []
    for number in range(400):
        plan._passages(number)
        kinds.append(plan.joined(number).relation)
    shares = np.array([(np.array(kinds) == kind).mean(0) for kind in range(3)])  # (3, Q)
    halves = [0, 0.5, 0.5]
    expected = np.transpose([[1 / 3] * 3, halves, [1 / 3] * 3, halves, [0, 1, 0]])
    assert shares == pytest.approx(expected, abs=0.08)


def test_only_the_partners_that_are_named(tmp_path: Path) -> None:
    batches = made(tmp_path, LONG, links="links", context="pairs", partners=("linked",), max_length=9, batch_tokens=18)
    found = texts(batches)
    assert "[CLS] cafe car table [SEP]" in found  # linked to nothing
    assert all(set(inside(text)) & {"on at", "with the"} for text in found if "cafe" not in text)


def test_every_document_of_a_passage_can_be_hidden_and_no_separator_is(tmp_path: Path) -> None:
    batches, separator = made(tmp_path, group="topic", context="together", rate=1.0), WORDS.tokenizer.sep_token_id
    batch = batches[0]
    special = torch.tensor([id in WORDS.special_ids for id in batch.ids.tolist()])
    assert int((batch.ids == separator).sum()) > batch.layout.rows  # those between documents are among them
    assert ((batch.inputs == WORDS.mask_id) == ~special).all()


def shares(batches: ContextBatches, word: str, count: int = 10) -> tuple[float, float]:
    """How often this token is hidden, and asked, over many batches."""
    id, seen, hidden, asked = WORDS.tokenizer.convert_tokens_to_ids(word), 0, 0, 0
    for index in range(count):
        batch = batches[index]
        at = batch.ids == id
        seen += int(at.sum())
        hidden += int((batch.inputs[at] == WORDS.mask_id).sum())
        asked += int(torch.isin(batch.asked, torch.nonzero(at).flatten()).sum())
    return hidden / seen, asked / seen


DATED = [{"text": "cat dogs mat man she sleep on at", "date": "night car"}] * 300


@pytest.mark.parametrize("chance", [0.0, 0.75, 1.0])
def test_a_field_with_a_chance_is_hidden_and_asked_as_often(tmp_path: Path, chance: float) -> None:
    """Time masking (Rosin et al. 2022): another rate for the time than for the text, whose own rate is left alone."""
    batches = made(tmp_path, DATED, header="{date} :", hide={"date": chance}, rate=0.25, batch_tokens=1400)
    for word in ("night", "car"):
        assert shares(batches, word) == pytest.approx((chance, chance), abs=0.04)
    assert shares(batches, "mat")[0] == pytest.approx(0.25, abs=0.04)


def test_a_field_is_hidden_whole_in_all_documents_of_a_passage(tmp_path: Path) -> None:
    content = [{"text": "cat dogs", "date": "night car", "topic": "x"}, {"text": "mat", "date": "cafe", "topic": "x"}]
    batches = made(tmp_path, content, header="{date}", hide={"date": 0.5}, group="topic", context="together", rate=0.01)
    dates, seen = WORDS.tokenizer.convert_tokens_to_ids(["night", "car", "cafe"]), set()
    for index in range(60):
        batch = batches[index]
        mask = (batch.inputs == WORDS.mask_id)[torch.isin(batch.ids, torch.tensor(dates))]
        seen.add(tuple(mask.tolist()))
    assert seen == {(True,) * 3, (False,) * 3}


def test_a_field_without_a_chance_is_hidden_as_the_text_is(tmp_path: Path) -> None:
    batches = made(tmp_path, DATED, header="{date} :", rate=0.25, batch_tokens=1400)
    hidden, _ = shares(batches, "night")
    assert hidden == pytest.approx(0.25, abs=0.05)


def test_of_several_copies_one_hides_a_field(tmp_path: Path) -> None:
    batches = made(tmp_path, DATED, header="{date} :", hide={"date": 1.0}, rate=0.25, copies=2)
    hidden, asked = shares(batches, "night")
    assert hidden == asked == 0.5


@pytest.mark.parametrize("context", ["together", "pairs"])
def test_the_other_document_is_in_sight_of_a_prediction(tmp_path: Path, context: str) -> None:
    """Change one token of the partner, and what is predicted in the first document changes."""
    assert WORDS.mask_id is not None
    assert WORDS.pad_id is not None
    network = networks.tiny("bert").eval()
    encoder = Encoder(network, mask_id=WORDS.mask_id, pad_id=WORDS.pad_id, special_ids=WORDS.special_ids, ragged=False)
    batches = made(tmp_path, links="links", context=context, rate=0.01, max_length=14)
    batch = batches[0]
    row = next(row for row in range(batch.layout.rows) if (batch.ids[batch.layout.row == row] == 3).sum() > 1)
    own = torch.nonzero(batch.layout.row == row).flatten()
    inputs, changed = batch.ids.clone(), batch.ids.clone()
    inputs[own[1]] = changed[own[1]] = WORDS.mask_id
    last = own[-2]  # of the last document
    changed[last] = WORDS.tokenizer.convert_tokens_to_ids("table")
    with torch.no_grad():
        before, after = (encoder.logits(encoder.states(ids, batch.layout)[own[1:2]]) for ids in (inputs, changed))
    assert (before - after).abs().max() > 1e-3


def answers(batches: ContextBatches, steps: int) -> float:
    """Train on text in which the answer stands in the linked document alone; how often it is right at the end."""
    torch.manual_seed(0)
    assert WORDS.mask_id is not None
    assert WORDS.pad_id is not None
    network = networks.tiny("bert", initializer_range=0.1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    encoder = Encoder(network, mask_id=WORDS.mask_id, pad_id=WORDS.pad_id, special_ids=WORDS.special_ids, ragged=False)
    encoder.watched = True
    objective = OBJECTIVES.find("mlm")(encoder)
    optimizer = torch.optim.Adam(objective.parameters(), lr=1e-2)
    right: list[torch.Tensor] = []
    for index in range(steps):
        batch = batches[index]
        loss = objective(batch)
        optimizer.zero_grad()
        (loss.total / batch.weight.sum()).backward()
        optimizer.step()
        right.append(loss.predicted.correct.float())
    return float(torch.cat(right[-20:]).mean())


def test_what_only_the_linked_document_says_is_learned(tmp_path: Path) -> None:
    """Each document is one of eight words, and the one it is linked to is the same word: nothing else tells it."""
    words = ("cat", "dogs", "mat", "man", "she", "sleep", "cafe", "car")
    content = [{"text": words[number % 8], "id": number, "links": [number ^ 8]} for number in range(1600)]
    options: Any = {"links": "links", "context": "pairs", "rate": 0.5, "max_length": 8, "batch_tokens": 100}
    linked = answers(made(tmp_path / "linked", content, partners=("linked",), **options), 90)
    random = answers(made(tmp_path / "random", content, partners=("random",), **options), 90)
    assert linked > 0.9
    assert random < 0.4


def test_batches_are_functions_of_their_number(tmp_path: Path) -> None:
    batches = made(tmp_path, links="links", context="pairs", header="{date}", hide={"date": 0.5})
    again = pickle.loads(pickle.dumps(batches.plan))  # as a process has it that was begun anew
    for index in (7, 3, 12):
        planned, number = batches.planned(index), batches.plan.epoch_of(index)
        one, other = (plan.passages(planned, number) for plan in (batches.plan, again))
        assert one.ids.tolist() == other.ids.tolist() == batches[index].ids.tolist()
        assert one.always.tolist() == other.always.tolist()
        assert again.joined(number).relation[planned.start].tolist() == batches[index].relation.tolist()


def test_held_out_passages_stand_in_contexts_too(tmp_path: Path) -> None:
    batches = made(tmp_path, group="topic", context="together")
    passages = held_out(batches.plan.contexts, batches.plan.data, WORDS, 1000, seed=0)
    found = [WORDS.tokenizer.decode(passages.ids[passages.row == row]) for row in range(len(passages.draw))]
    assert {frozenset(inside(text)) for text in found} == {frozenset(inside(text)) for text in texts(batches)}
    for tokens in (0, 1):
        few = held_out(batches.plan.contexts, batches.plan.data, WORDS, tokens, seed=0)
        assert len(few.draw) == tokens


def test_a_piece_begins_a_word_wherever_it_is_cut(tmp_path: Path) -> None:
    """The word numbers of the second document go on, and a law of whole words may hide it."""
    passages = made(tmp_path, group="topic", context="together").clean(0)
    words = passages.word[passages.row == 0]
    ordinary = words[words >= 0]
    assert (np.diff(ordinary) >= 0).all()
    assert len(set(ordinary.tolist())) == len(ordinary)


def test_too_long_a_header_is_told_with_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match=r"leaves 2 tokens .* \('night car night car'\): give it at least 10"):
        made(tmp_path, [{"text": "cat", "date": "night car night car"}], header="{date}", max_length=8)
    made(tmp_path, [{"text": "cat", "date": "night car night car"}], header="{date}", max_length=10)
    with pytest.raises(BesagError, match="give it at least 19"):
        made(tmp_path, [{"text": "cat", "date": "night car night car", "topic": "x"}], header="{date}", max_length=8,
             group="topic", context="together")  # fmt: skip


def test_another_context_plans_another_order(tmp_path: Path) -> None:
    one, other = (made(tmp_path, LONG, links="links", context=context) for context in ("together", "pairs"))
    assert one.plan._memo != other.plan._memo
    kept = replace(one.plan.data, partners=("linked",))
    assert context_batches.ContextPlan(one.plan.contexts, kept, WORDS, seed=3)._memo != one.plan._memo
