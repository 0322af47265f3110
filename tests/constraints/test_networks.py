"""Constraints on networks with every kind of tokenizer, and constraints that kernels can keep by themselves."""

import re

import numpy as np
import pytest
import torch
from tests.laws import Counting
from tests.networks import tiny, vocabulary

from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.constraints import Forbidden, Length, Pattern, Predicate, Required, Word, allowed, solve
from besag.constraints.page import words
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import follows, number, run
from besag.samplers.kernel import Noise, kernel
from besag.samplers.sheet import blank, template

FAMILIES = ["bert", "roberta", "xlm-roberta", "modernbert"]


def network(family):
    return Transformer(tiny(family), vocabulary(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_words_of_several_tokens_patterns_and_lengths_on_a_network(family):
    engine = Engine(network(family), progress=False)
    demands = [
        Required("man"),
        Forbidden("the"),
        Word("A", place=0, ignore_case=True),
        *(Pattern("[^\ufffd]*", place=place) for place in range(6)),  # no bytes of unfinished letters
        Length(10, 40),
        Predicate(lambda word: len(word) > 1, number=-1, name="long"),
    ]
    found = solve(engine, "[MASK][MASK][MASK][MASK][MASK][MASK].", demands, sample=True, solutions=3, budget=300)
    assert found.status == "solved", found.facts
    for text in found.texts:
        assert re.search(r"(?<!\w)man(?!\w)", text)
        assert not re.search(r"(?<!\w)the(?!\w)", text)
        assert re.match(r"[aA](?!\w)", text)
        assert 10 <= len(text) <= 40
        assert len(words(text)[-1]) > 1
        assert "\ufffd" not in text
        assert text.endswith(".")
    assert found.passes >= 3 * 6
    assert all(own <= left + 1e-6 for own, left in zip(found.model_log_probs, found.log_probs, strict=True))


def test_a_word_of_two_pieces_is_written_by_both():
    engine = Engine(network("bert"), progress=False)
    found = solve(engine, "the [MASK] [MASK] [MASK] sleep.", [Required("casino")], solutions=2)
    assert all("casino" in text for text in found.texts)
    pairs = [" ".join(tokens) for tokens in found.tokens]
    assert all("cas ##ino" in pair for pair in pairs)
    assert found.passes <= 4


def test_one_pass_a_node_and_the_model_is_shown_what_is_set():
    conditionals = Counting(network("bert"))
    words_ = vocabulary("bert")
    found = solve(Engine(conditionals, progress=False), "the [MASK] [MASK].", [], order="left")
    first, second = conditionals.sequences
    masks = [position for position, id in enumerate(first) if id == words_.mask_id]
    assert len(masks) == 2
    assert [position for position, id in enumerate(second) if id == words_.mask_id] == masks[1:]
    assert second[masks[0]] == found.ids[0][0]
    assert found.passes == 2


def test_a_sheet_with_named_places_may_be_given():
    conditionals = network("bert")
    sheet = template(conditionals, "the dogs sleep at night.", free=["night", "dogs"])
    found = solve(Engine(conditionals, progress=False), sheet, [Word("cats", place=0), Pattern("m.*", place=1)])
    assert re.fullmatch(r"the cats sleep at m\w*\.", found.texts[0])


# ---- what kernels can keep


@pytest.mark.slow
def test_a_kernel_under_constraints_of_places_samples_the_joint_cut_to_them():
    table = Table.random(4, 3, seed=1)
    demands = [Forbidden("s3"), Pattern("s[01]", place=1), Predicate(lambda text: text != "s0", place=-1)]
    sheet = blank(table, 3)
    mask = allowed(table, sheet, demands)
    assert mask.tolist() == [[True, True, True, False], [True, True, False, False], [False, True, True, False]]
    canvas = sheet.canvas(table, 8_000, mask)
    state, _ = run(kernel("gibbs", scan="systematic"), table, canvas, steps=30)
    joint = table.log_probs.exp().numpy().copy()
    for place in range(3):
        joint[tuple(~mask[place].numpy() if axis == place else slice(None) for axis in range(3))] = 0
    assert follows(np.bincount(number(state.ids, 4), minlength=64), joint)


def test_given_places_are_not_cut():
    conditionals = network("bert")
    sheet = template(conditionals, "the [MASK] sleep [MASK].")
    mask = allowed(conditionals, sheet, [Forbidden("the"), Word("cats", place=0)])
    assert mask.shape == (len(sheet.ids), conditionals.width)
    assert mask[0].all()
    assert mask[sheet.at[0]].nonzero().flatten().tolist() == [vocabulary("bert").id("cats")]
    last = mask[sheet.at[1]]
    assert not last[vocabulary("bert").id("the")]
    assert not last[sorted(vocabulary("bert").special_ids)].any()
    canvas = sheet.canvas(conditionals, 4, mask)
    engine, how = Engine(conditionals, progress=False), kernel("gibbs")
    state = how.init(engine, Noise(0, torch.arange(4)), canvas)
    for _ in range(6):
        state, _ = how.step(engine, Noise(0, torch.arange(4)), state)
    texts = [sheet.write(row.numpy()) for row in state.ids]
    assert all(text.startswith("the cats sleep") for text in texts)


@pytest.mark.parametrize(
    ("demand", "told"),
    [
        (Required("man"), "the word 'man' is required: this ties places together"),
        (Length(most=20), "ties places together"),
        (Pattern("[a-z ]*"), "ties places together"),
        (Word("casino", place=0), "ties places together"),
        (Forbidden("casino"), "ties places together"),
        (Pattern("xyz", place=1), "place 1 matches 'xyz': nothing is left that may stand at place 1"),
        (Pattern("a", place=7), "there is no place 7, the text has 2 free places, 0 to 1"),
    ],
)
def test_what_a_kernel_cannot_keep_is_refused(demand, told):
    conditionals = network("bert")
    with pytest.raises(BesagError, match=re.escape(told)):
        allowed(conditionals, template(conditionals, "the [MASK] [MASK]."), [demand])
