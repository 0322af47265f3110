"""Causal networks: the answer about a place comes from the place before it."""

from __future__ import annotations

import pytest
import torch
from tests.networks import tiny, vocabulary

from besag.conditionals.causal import Causal
from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.network import gap
from besag.errors import BesagError


@pytest.fixture(scope="module")
def gpt2() -> Causal:
    return Causal(tiny("gpt2"), vocabulary("gpt2"))


def asked(width: int, length: int = 8) -> Questions:
    ids = torch.randint(width, (3, length), generator=torch.Generator().manual_seed(0))
    return Questions(ids, torch.tensor([0, 2, 1, 2, 0]), torch.tensor([1, 7, 3, 1, 5]))


@torch.no_grad()
def answers(who: Causal, questions: Questions) -> torch.Tensor:
    return who.head(who.rows(questions))


def test_what_it_is(gpt2):
    assert isinstance(gpt2, Conditionals)
    assert (gpt2.sees, gpt2.split, gpt2.pads, gpt2.max_length) == ("left", True, True, 40)
    assert gpt2.width == gpt2.vocabulary.size
    assert gpt2.bos_id == gpt2.vocabulary.id("<|endoftext|>")


@torch.no_grad()
def test_each_place_is_answered_by_its_prefix_alone(gpt2):
    questions = asked(gpt2.width)
    said = answers(gpt2, questions)
    for index, (row, place) in enumerate(zip(questions.row, questions.place, strict=True)):
        prefix = questions.ids[row : row + 1, :place]
        assert gap(said[index], gpt2.model(prefix).logits[0, -1]) < 1e-4


def test_what_stands_at_a_place_or_after_it_changes_nothing(gpt2):
    questions = asked(gpt2.width)
    other = questions.ids.clone()
    other[0, 5:], other[1, 3:], other[2, 7:] = 1, 2, 3
    kept = torch.tensor([1, 2, 4])  # the last place asked in each row
    assert gap(answers(gpt2, questions._replace(ids=other))[kept], answers(gpt2, questions)[kept]) < 1e-5


def test_padding_on_the_right_changes_nothing(gpt2):
    questions = asked(gpt2.width)
    mask = torch.cat([torch.ones(3, 8), torch.zeros(3, 5)], dim=1).long()
    padded = torch.cat([questions.ids, torch.zeros(3, 5, dtype=torch.long)], dim=1)
    said = answers(gpt2, questions._replace(ids=padded, context={"attention_mask": mask}))
    assert gap(said, answers(gpt2, questions)) < 1e-5


def test_the_first_place_is_refused(gpt2):
    questions = asked(gpt2.width)
    with pytest.raises(BesagError, match="nothing stands before it"):
        gpt2.rows(questions._replace(place=questions.place - 1))


@pytest.mark.parametrize("family", ["bert", "roberta"])
@torch.no_grad()
def test_a_bert_that_is_a_decoder(family):
    from transformers import AutoModelForCausalLM

    config = tiny(family, is_decoder=True).config
    who = Causal(AutoModelForCausalLM.from_config(config), vocabulary(family))
    questions = asked(who.width)
    said = answers(who, questions)
    for index, (row, place) in enumerate(zip(questions.row, questions.place, strict=True)):
        prefix = questions.ids[row : row + 1, :place]
        assert gap(said[index], who.model(prefix).logits[0, -1]) < 1e-4
    tokenizer = who.vocabulary.tokenizer
    assert who.bos_id == (tokenizer.cls_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id)


def test_refused_when_it_sees_what_comes_after():
    with pytest.raises(BesagError, match="is no causal model"):
        Causal(tiny("bert"), vocabulary("bert"))
