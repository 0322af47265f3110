from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests import tokenizers

from besag import masks
from besag.arrays import Bools, Floats
from besag.errors import BesagError
from besag.masks.law import MaskLaw
from besag.masks.passages import Passages
from besag.training.data.assembly import MULTIPLE, Maker, Parts, Template
from besag.training.data.sources import Document
from besag.training.data.tokens import tokenise
from besag.vocabulary import Vocabulary


@dataclass(frozen=True)
class Nothing(MaskLaw):
    """Hides no token at all."""

    name = "nothing"

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        return np.zeros(len(passages.ids), np.bool_)


def masking(vocabulary: Vocabulary, law: str = "uniform", rate: float = 0.3) -> masks.Masking:
    assert vocabulary.mask_id is not None
    chosen = masks.law(law)
    return masks.Masking(chosen, masks.rate_named("constant", rate, None, 0.0), masks.Replacement(vocabulary.mask_id))


def whole(vocabulary: Vocabulary, texts: list[str]) -> Passages:
    """Each text as a passage."""
    found = tokenise([Document(text, None, "") for text in texts], vocabulary)
    bounds = found.documents
    draw = np.arange(len(texts)) + 100
    return Template(vocabulary).passages(found.tokens, found.marks, bounds[:-1], np.diff(bounds), draw)


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_a_whole_text_is_what_the_vocabulary_makes_of_it(family: str) -> None:
    vocabulary = Vocabulary(tokenizers.build(family))
    texts = list(tokenizers.SENTENCES)
    if family == "character-slow":
        texts = ["MKT", "LAG"]
    passages = whole(vocabulary, texts)
    for number, encoded in enumerate(vocabulary.encode(texts)):
        at = passages.row == number
        assert passages.ids[at].tolist() == encoded.ids.tolist()
        assert passages.word[at].tolist() == encoded.words.tolist()
        assert passages.free[at].tolist() == (~encoded.special).tolist()  # an unknown token is text
    assert passages.draw.tolist() == list(range(100, 100 + len(texts)))
    assert set(passages.span) == {-1}


def test_specials_written_in_the_text_are_not_free() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    passages = whole(vocabulary, ["The [MASK] sleeps [SEP] on zzz."])
    tokens = [vocabulary.token(id) for id in passages.ids]
    assert [token for token, free in zip(tokens, passages.free, strict=True) if not free] == [
        "[CLS]", "[MASK]", "[SEP]", "[SEP]",
    ]  # fmt: skip
    assert np.all((passages.word == -1) == ~passages.free)


def test_a_run_in_the_middle_counts_words_and_spans_anew() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    text = "The traveller's souvenir on the casino."
    found = tokenise([Document(text, [(0, 23), (31, 37)], "")], vocabulary)
    tokens = [vocabulary.token(id) for id in found.tokens]
    assert tokens == ["The", "tra", "##veller", "'", "s", "sou", "##venir", "on", "the", "cas", "##ino", "."]
    start, length = np.array([2, 0, 9]), np.array([6, 2, 3])
    passages = Template(vocabulary).passages(found.tokens, found.marks, start, length, np.arange(3))
    words = [passages.word[passages.row == row].tolist() for row in range(3)]
    spans = [passages.span[passages.row == row].tolist() for row in range(3)]
    assert words == [[-1, 0, 1, 2, 3, 3, 4, -1], [-1, 0, 1, -1], [-1, 0, 0, 1, -1]]
    assert spans == [[-1, 0, 0, 0, 0, 0, -1, -1], [-1, 0, 0, -1], [-1, 0, 0, -1, -1]]


def test_tags_come_with_their_tokens_and_into_the_batch() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    text = "The traveller's souvenir on the casino."
    given = [(4, 13, "NOUN"), (16, 24, "NOUN"), (25, 27, "ADP"), (32, 38, "NOUN")]
    found = tokenise([Document(text, None, "", given)], vocabulary)
    start, length = np.array([2, 0, 9]), np.array([6, 2, 3])
    passages = Template(vocabulary).passages(found.tokens, found.marks, start, length, np.arange(3))
    tags = [passages.tag[passages.row == row].tolist() for row in range(3)]
    assert found.tags == ("NOUN", "ADP")
    assert tags == [[-1, 0, -1, -1, 0, 0, 1, -1], [-1, -1, 0, -1], [-1, 0, 0, -1, -1]]
    rule = masking(vocabulary)
    maker = Maker(Template(vocabulary), rule, seed=7, unpadded=True, longest=16, copies=2)
    batch = maker.mask(Parts(passages, 0, 0.0))
    assert batch.tag is not None
    assert batch.tag.tolist() == passages.tag.tolist() * 2
    maker.fix(64, 3)
    filled = maker.mask(Parts(passages, 0, 0.0)).tag
    assert filled is not None
    assert filled.tolist() == passages.tag.tolist() * 2 + [-1] * (64 - 2 * len(passages.tag))
    plain = tokenise([Document(text, None, "")], vocabulary)
    passages = Template(vocabulary).passages(plain.tokens, plain.marks, start, length, np.arange(3))
    assert maker.mask(Parts(passages, 0, 0.0)).tag is None


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(tokenizers.build("wordpiece-cased"))


def test_a_batch_holds_what_the_masking_says(vocabulary: Vocabulary) -> None:
    passages = whole(vocabulary, list(tokenizers.SENTENCES))
    rule = masking(vocabulary, "whole_word")
    said = rule(passages, 0.5, 7)
    for unpadded in (True, False):
        batch = Maker(Template(vocabulary), rule, seed=7, unpadded=unpadded, longest=64).mask(Parts(passages, 3, 0.5))
        real = batch.asked[batch.weight > 0]
        assert real.tolist() == np.flatnonzero(said.asked).tolist()
        assert batch.inputs.tolist() == said.inputs.tolist()
        assert batch.ids.tolist() == passages.ids.tolist()
        assert batch.free.tolist() == passages.free.tolist()
        assert batch.layout.row.tolist() == passages.row.tolist()
        assert batch.layout.position.tolist() == passages.place.tolist()
        assert batch.layout.longest == (64 if unpadded else np.bincount(passages.row).max())
        assert batch.draw.tolist() == passages.draw.tolist()
        assert batch.rate.tolist() == pytest.approx(said.rate.tolist())
        assert (batch.step, batch.progress) == (3, 0.5)
        if unpadded:
            assert len(batch.asked) % MULTIPLE == 0
            assert set(batch.asked[batch.weight == 0].tolist()) <= {int(real[-1])}
        else:
            assert batch.weight.min() == 1


def test_a_batch_that_asks_nothing_still_has_a_shape(vocabulary: Vocabulary) -> None:
    passages = whole(vocabulary, ["The cat."])
    rule = masks.Masking(Nothing(), masks.rate_named("constant", 0.3, None, 0.0), masks.Replacement(vocabulary.mask_id))
    batch = Maker(Template(vocabulary), rule, seed=0, unpadded=True, longest=8).mask(Parts(passages, 0, 0.0))
    assert len(batch.asked) == MULTIPLE
    assert batch.weight.sum() == 0
    assert bool(batch.free[batch.asked].all())


def test_static_batches_have_one_shape_and_the_same_content(vocabulary: Vocabulary) -> None:
    rule = masking(vocabulary)
    loose = Maker(Template(vocabulary), rule, seed=1, unpadded=True, longest=16)
    fixed = Maker(Template(vocabulary), rule, seed=1, unpadded=True, longest=16)
    fixed.fix(100, 5)
    shapes = set()
    for texts in (["The cats sleep on the mat."], ["A man is at the casino."] * 5, ["Dogs bark."] * 2):
        parts = Parts(whole(vocabulary, texts), 0, 0.0)
        want, got = loose.mask(parts), fixed.mask(parts)
        size, rows = len(want.ids), want.layout.rows
        shapes.add((len(got.ids), got.layout.rows, len(got.rate), len(got.draw), got.layout.longest))
        assert got.ids[:size].tolist() == want.ids.tolist()
        assert got.inputs[:size].tolist() == want.inputs.tolist()
        assert got.asked.tolist() == want.asked.tolist()
        assert got.layout.bounds[: rows + 1].tolist() == want.layout.bounds.tolist()
        assert set(got.ids[size:].tolist()) == set(got.inputs[size:].tolist()) == {vocabulary.pad_id}
        assert not got.free[size:].any()
        lengths = got.layout.bounds.diff()
        assert lengths.sum() == 100
        assert lengths.max() <= 16
        assert lengths[rows:].count_nonzero() == -(-(100 - size) // 16)
        assert got.rate[rows:].tolist() == [1.0] * (got.layout.rows - rows)  # nothing that is divided by is zero
    assert shapes == {(100, 5 + 7 + 1, 13, 13, 16)}
    with pytest.raises(BesagError, match="does not fit its static shape"):
        fixed.mask(Parts(whole(vocabulary, ["Dogs bark at cats; cats sleep at night."] * 9), 0, 0.0))


def test_copies_hide_other_tokens(vocabulary: Vocabulary) -> None:
    passages = whole(vocabulary, list(tokenizers.SENTENCES))
    maker = Maker(Template(vocabulary), masking(vocabulary), seed=1, unpadded=False, longest=64, copies=3)
    batch = maker.mask(Parts(passages, 0, 0.0))
    size, rows = len(passages.ids), len(passages.draw)
    assert batch.ids.tolist() == passages.ids.tolist() * 3
    assert batch.layout.rows == 3 * rows
    hidden = (batch.inputs == vocabulary.mask_id).reshape(3, size)
    assert hidden.sum(0).max() == 1
    assert hidden.sum(1).min() > 0


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    from tests.networks import end_of_text_tokenizer

    with pytest.raises(BesagError, match="has no mask token"):
        Template(Vocabulary(end_of_text_tokenizer()))
