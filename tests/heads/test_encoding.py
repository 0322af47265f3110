"""Which token answers for which word, and what is cut."""

import numpy as np
import pytest
import torch
from tests import networks

from besag.heads.encoding import Batch, read


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "xlm-roberta"])
def test_the_first_token_of_each_word_answers_for_it(family):
    words = networks.vocabulary(family)
    own = ("The", "traveller", "sleep", "casino")
    [one] = read(words, [own], None)
    [encoded] = words.encode([" ".join(own)])
    assert not one.cut
    assert (one.ids == encoded.ids).all()
    for word, first in zip(own, one.first.tolist(), strict=True):
        start, end = encoded.offsets[first].tolist()
        before = " ".join(own).index(word)
        assert start == before
        assert end <= before + len(word)
    assert len(set(one.first.tolist())) == 4


def test_what_is_too_long_loses_its_last_tokens_and_keeps_the_special_ones():
    words = networks.vocabulary("bert")
    [one] = read(words, [("the", "cat", "cat", "cat", "dogs")], 5)
    assert one.cut
    assert len(one.ids) == 5
    assert one.ids[-1] == words.tokenizer.sep_token_id
    assert (one.first >= 0).tolist() == [True, True, True, False, False]


def test_a_text_of_nothing_says_so():
    words = networks.vocabulary("bert")
    assert [one.status for one in read(words, [(" ",), ("\ud800",), ("cat",)], None)] == ["empty", "undecodable", "ok"]
    assert read(words, [], None) == []


def test_batches_are_padded_on_the_right():
    batch = Batch.of([np.array([5, 6, 7]), np.array([8])], 0, torch.device("cpu"))
    assert batch.ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch.mask.tolist() == [[1, 1, 1], [1, 0, 0]]
