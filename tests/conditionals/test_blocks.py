"""Blocks: who sees whom, that keeping changes nothing and spares what it says, and which networks are refused."""

from __future__ import annotations

import json

import pytest
import torch
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals import blocks
from besag.conditionals.contract import Questions
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError

FAMILIES = ("besag", "bert", "roberta", "modernbert", "electra", "albert", "distilbert")
LENGTH = 3


def network(family: str = "besag", length: int | None = LENGTH) -> Transformer:
    model = tiny(family)
    if length is not None:
        model.config.besag_block_length = length
    return Transformer(model, vocabulary(family))


def texts(count: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(5, 25, (count, length), generator=torch.Generator().manual_seed(seed))


def ask(asked: Transformer, ids: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """(N, H) one place of each sequence."""
    with torch.inference_mode():
        return asked.rows(Questions(ids=ids, row=torch.arange(len(ids)), place=place))


def by_the_family_itself(asked: Transformer, ids: torch.Tensor, family: str) -> torch.Tensor:
    """(N, L, H) with a mask of four dimensions, as transformers adds it to the scores."""
    column = torch.arange(ids.shape[1])
    hidden = column[None, :] // LENGTH > column[:, None] // LENGTH
    low = torch.finfo(torch.float32).min
    mask = torch.zeros(hidden.shape).masked_fill(hidden, low).expand(len(ids), 1, -1, -1)
    if family == "modernbert":
        far = (column[None, :] - column[:, None]).abs() > asked.model.config.sliding_window
        mask = {"full_attention": mask, "sliding_attention": mask.masked_fill(far, low)}
    with torch.no_grad():
        return asked.model.base_model(input_ids=ids, attention_mask=mask)[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_place_sees_its_own_block_and_those_before(family):
    """Against transformers' own attention, at every place, kept and not."""
    asked, ids = network(family), texts(2, 11)
    expected = by_the_family_itself(asked, ids, family)
    for place in range(11):
        for _ in range(2):
            found = ask(asked, ids, torch.full((2,), place))
            torch.testing.assert_close(found, expected[:, place], rtol=1e-5, atol=1e-5)
    assert (ask(network(family, None), ids, torch.full((2,), 4)) - expected[:, 4]).abs().max() > 1e-2


def test_what_follows_a_block_changes_nothing_and_what_it_holds_does():
    asked, ids = network(), texts(1, 9)
    for changed in range(9):
        other = ids.clone()
        other[0, changed] = 4
        for place in range(9):
            moved = (ask(asked, ids, torch.tensor([place])) - ask(asked, other, torch.tensor([place]))).abs().max()
            assert (moved > 1e-4) == (changed // LENGTH <= place // LENGTH), (changed, place)


@pytest.fixture
def columns(monkeypatch):
    """How many columns each pass ran, and with how many given."""
    passes = []
    plain = blocks.Blocks._run

    def run(self, ids, start, stop, given, length):
        passes.append((ids.shape[1], start))
        return plain(self, ids, start, stop, given, length)

    monkeypatch.setattr(blocks.Blocks, "_run", run)
    return passes


def test_a_text_that_grows_is_read_once(columns):
    asked, ids = network(), texts(4, 12)
    columns.clear()
    for place in range(12):
        ask(asked, ids, torch.full((4,), place))
    assert columns == [(3, 0)] * 3 + [(6, 0), (3, 3), (3, 3), (6, 3), (3, 6), (3, 6), (6, 6), (3, 9), (3, 9)]


def test_what_was_kept_belongs_to_what_stood_there(columns):
    """Another token before it, another block; rows in another order, or a part of them, find their own."""
    asked, ids = network(), texts(3, 9)
    place = torch.tensor([7, 8, 6])
    columns.clear()
    first = ask(asked, ids, place)
    turned = ask(asked, ids[[2, 0]], place[[2, 0]])
    torch.testing.assert_close(turned, first[[2, 0]], rtol=1e-5, atol=1e-5)
    other = ids.clone()
    other[1, 4] = 4
    mixed = ask(asked, other, place)
    assert columns == [(9, 0), (3, 6), (6, 3)]  # the second block of one text is new, so that of all is run
    torch.testing.assert_close(mixed[[0, 2]], first[[0, 2]], rtol=1e-5, atol=1e-5)
    assert (mixed[1] - first[1]).abs().max() > 1e-4
    torch.testing.assert_close(mixed, ask(network(), other, place), rtol=1e-5, atol=1e-5)


def test_no_more_is_kept_than_there_is_room_for(columns):
    asked, ids = network(), texts(4, 9)
    ask(asked, ids, torch.full((4,), 8))
    one = next(iter(asked.blocks.kept.blocks.values())).nbytes
    assert len(asked.blocks.kept.blocks) == 8
    asked.blocks.kept = blocks.Kept(LENGTH, room=5 * one)
    first = ask(asked, ids, torch.full((4,), 8))
    assert len(asked.blocks.kept.blocks) == 5
    torch.testing.assert_close(ask(asked, ids, torch.full((4,), 8)), first, rtol=1e-5, atol=1e-5)
    asked.blocks.kept = blocks.Kept(LENGTH, room=0)
    columns.clear()
    torch.testing.assert_close(ask(asked, ids, torch.full((4,), 8)), first, rtol=1e-5, atol=1e-5)
    assert (columns, len(asked.blocks.kept.blocks)) == ([(9, 0)], 0)


@pytest.mark.parametrize("family", ["esm", "deberta-v2", "mpnet"])
def test_a_network_that_cannot_be_asked_so_is_refused(family):
    with pytest.raises(BesagError, match="was trained in blocks of 3 tokens, and cannot be asked so"):
        network(family)


def test_the_attention_of_the_network_is_its_own_again_afterwards():
    asked = network()
    before = asked.model.config._attn_implementation
    ask(asked, texts(1, 5), torch.tensor([4]))
    assert asked.model.config._attn_implementation == before != blocks.NAME
    assert (asked.pads, asked.bears_twins) == (False, False)
    with pytest.warns(UserWarning, match="runs as it is, not compiled"):
        asked.compile()


@pytest.mark.parametrize("family", ["besag", "modernbert"])
def test_a_folder_says_in_which_blocks(family, tmp_path):
    made = network(family)
    made.model.save_pretrained(tmp_path)
    made.vocabulary.tokenizer.save_pretrained(tmp_path)
    lm = besag.load(tmp_path)
    assert lm.conditionals.blocks.length == LENGTH
    ids, place = texts(2, 8), torch.tensor([7, 6])
    torch.testing.assert_close(ask(lm.conditionals, ids, place), ask(made, ids, place))
    config = json.loads((tmp_path / "config.json").read_text())
    for wrong in (0, "3", True):
        (tmp_path / "config.json").write_text(json.dumps(config | {"besag_block_length": wrong}))
        with pytest.raises(BesagError, match=r"besag_block_length=.*, where a number of tokens must stand"):
            besag.load(tmp_path)
