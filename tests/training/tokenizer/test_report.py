"""Reports on tokenizers, by hand on small vocabularies."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from besag.errors import BesagError
from besag.training.tokenizer.report import _guessed, renyi, report, to_pandas


def pieces(*known: str) -> PreTrainedTokenizerFast:
    """Word pieces, and nothing around a text."""
    letters = [f"{mark}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz." for mark in ("", "##")]
    table = {token: number for number, token in enumerate(dict.fromkeys(["[UNK]", *known, *letters]))}
    backend = Tokenizer(models.WordPiece(table, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")


def test_the_numbers_by_hand() -> None:
    tokenizer = pieces("the", "cat", "##s", "walk", "##ing")
    text = "the cats walking. é the"
    [one] = report({"small": tokenizer}, [text, " \n"])
    # the | cat ##s | walk ##ing | . | [UNK] | the
    assert (one.texts, one.words, one.tokens) == (1, 5, 8)
    assert one.fertility == 8 / 5
    assert one.characters == len(text) / 8
    assert one.bytes == (len(text) + 1) / 8
    assert one.unknown == 1 / 8
    assert one.fallback == 0
    assert one.whole_words == 3 / 5  # the, é, the
    assert one.used == 7 / len(tokenizer)
    p = np.array([2, 1, 1, 1, 1, 1, 1]) / 8
    assert one.renyi == pytest.approx(math.log((p**2.5).sum()) / (1 - 2.5) / math.log(len(tokenizer)))


def test_boundaries_against_given_morphemes() -> None:
    tokenizer = pieces("un", "##happ", "##iness", "walk", "##ing", "read", "##er")
    given = {"unhappiness": "un happi ness", "walking": "walk ing", "reader": "read er"}
    [one] = report({"small": tokenizer}, ["unhappiness Walking reader reader it"], segmentation=given)
    # found: un|happ|iness (2), Walking is w-less: [UNK] has none, read|er twice (2), i|t (1); true: 2 + 1 + 1 + 1
    found, true, both = 2 + 0 + 2 + 1, 2 + 1 + 2, 1 + 0 + 2
    assert one.boundary_precision == pytest.approx(both / found)
    assert one.boundary_recall == pytest.approx(both / true)
    assert one.boundary_f1 == pytest.approx(2 * both / (found + true))
    with pytest.raises(BesagError, match="'walk in' do not spell 'walking'"):
        report({"small": tokenizer}, ["walking"], segmentation={"walking": "walk in"})


def test_morphemes_are_guessed_from_the_words_of_the_text() -> None:
    text = "Happy unhappy people make and run. He was making, running, happiness; unhappiness class news rains rain."
    cuts = _guessed([text])
    words = ("making", "running", "Happiness", "unhappiness", "class", "people", "rains")
    found = {word: sorted(cuts(word)) for word in words}
    assert found == {
        "making": [3], "running": [4], "Happiness": [5], "unhappiness": [2, 7], "class": [], "people": [], "rains": [4],
    }  # fmt: skip


def test_evenness() -> None:
    assert renyi([5] * 16, 16) == pytest.approx(1)
    assert renyi([7], 16) == pytest.approx(0)
    assert 0 < renyi([100, 1, 1, 1], 4) < renyi([2, 1, 1, 1], 4) < 1


def test_bytes_are_counted_and_a_character_of_several_is_not_cut() -> None:
    from besag.training.tokenizer import train_tokenizer

    learnt = train_tokenizer(["a cat and a hat"] * 9, kind="bpe", size=275)
    [one] = report({"bytes": learnt}, ["a cat 漢"])
    assert one.fallback == 3 / one.tokens
    assert one.unknown == 0
    assert one.whole_words == 1.0


@pytest.mark.parametrize("family", ["wordpiece-uncased", "bytelevel-trimmed", "unigram", "character-slow"])
def test_every_family_can_be_reported_on(family: str) -> None:
    [one] = report({family: tokenizers.build(family)}, ["The cats sleep on the mat.", "A dog!"])
    assert one.words == 8
    assert one.tokens >= 8
    assert 0 <= one.whole_words <= 1
    json.dumps(one.to_dict(), allow_nan=False)


def test_several_stand_side_by_side_on_the_same_text() -> None:
    both = report({"whole": pieces("cats", "sleep"), "letters": pieces()}, ["cats sleep"])
    assert [one.tokens for one in both] == [2, 9]
    assert [one.whole_words for one in both] == [1.0, 0.0]
    assert to_pandas(both)["name"].tolist() == ["whole", "letters"]
    assert both[0].to_dict()["boundary_precision"] is None  # no cut was made, so none was right or wrong
    with pytest.raises(BesagError, match="no text"):
        report({"whole": pieces()}, [" "])
