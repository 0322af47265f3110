"""Correction: the likeliest token of one plain forward pass, where it beats the written one by the margin."""

from __future__ import annotations

import pytest
import torch
from tests import networks

import besag
from besag.errors import BesagError
from besag.samplers.editing.correct import Correcting, correct

TEXT = "The cat sat on the mat!"


def model(family: str = "bert") -> besag.LanguageModel:
    return besag.load((networks.tiny(family), networks.vocabulary(family).tokenizer), device="cpu")


def by_hand(lm: besag.LanguageModel, text: str) -> list[tuple[int, int, float]]:
    """(place, token, log odds) wherever another ordinary token is likelier, and both can be judged alone."""
    [encoded] = lm.vocabulary.encode([text])
    with torch.no_grad():
        rows = lm.model(input_ids=torch.from_numpy(encoded.ids)[None]).logits[0].double().log_softmax(-1)
    whole = rows.clone()
    rows[:, sorted(lm.vocabulary.special_ids)] = -torch.inf
    found = []
    for place in encoded.places.tolist():
        best = int(rows[place].argmax())
        odds = float(rows[place, best] - whole[place, int(encoded.ids[place])])
        part_of_a_letter = "\ufffd" in lm.tokenizer.convert_tokens_to_string([lm.vocabulary.token(best)])
        a_space = not encoded.tokens[place].strip("▁Ġ")
        unknown = int(encoded.ids[place]) == lm.vocabulary.unknown_id
        if odds > 0 and not (part_of_a_letter or a_space or unknown):
            found.append((place, best, odds))
    return found


@pytest.mark.parametrize("family", ["bert", "modernbert", "xlm-roberta"])
def test_edits_are_those_of_a_plain_pass(family: str) -> None:
    lm = model(family)
    expected = by_hand(lm, TEXT)
    [row] = lm.correct(TEXT)
    assert expected
    assert [edit.log_odds for edit in row.edits] == pytest.approx([odds for _, _, odds in expected], abs=1e-4)
    [encoded] = lm.vocabulary.encode([TEXT])
    assert [(edit.start, edit.end) for edit in row.edits] == [
        tuple(encoded.offsets[place].tolist()) for place, _, _ in expected
    ]
    assert all(TEXT[edit.start : edit.end] == edit.old for edit in row.edits)


def test_a_margin_leaves_what_is_not_sure() -> None:
    lm = model()
    odds = sorted(edit.log_odds for edit in lm.correct(TEXT)[0].edits)
    middle = odds[len(odds) // 2]
    kept = [edit.log_odds for edit in lm.correct(TEXT, margin=middle)[0].edits]
    assert sorted(kept) == pytest.approx([one for one in odds if one > middle])
    untouched = lm.correct(TEXT, margin=1e6)[0]
    assert untouched.text == TEXT
    assert untouched.edits == ()


def test_what_stays_is_written_as_it_was() -> None:
    lm = model()
    [edit, *_] = sorted(lm.correct(TEXT)[0].edits, key=lambda one: -one.log_odds)
    row = lm.correct(TEXT, margin=edit.log_odds - 1e-6)[0]
    assert row.text == TEXT[: edit.start] + edit.new.removeprefix("##") + TEXT[edit.end :]


def test_texts_that_cannot_be_asked_say_so() -> None:
    found = model().correct(["", "the [MASK] sat", "the cat\udc80"])
    assert [row.status for row in found] == ["empty", "mask", "undecodable"]
    assert found.status == "partly"
    assert found.texts[1] == "the [MASK] sat"


def test_what_cannot_be_judged_alone_stays() -> None:
    lm = model()
    assert "unk" in str(lm.tokenizer.unk_token).lower()
    text = "The cat ☃ sat on the mat!"  # a token that stands for any stranger
    assert "☃" not in [edit.old for edit in lm.correct(text)[0].edits]
    bytewise = model("modernbert")
    assert len(bytewise.tokenizer.tokenize("☃")) > 1  # a letter of several tokens
    [row] = bytewise.correct(text)
    assert "☃" in row.text
    assert "\ufffd" not in row.text
    assert row.edits


def test_the_first_letter_behind_a_mere_space_can_be_wrong() -> None:
    text = "我跟朋友去玩"
    letters = besag.train_tokenizer([text] * 9, kind="bpe", size=12, byte_fallback=False)
    assert letters.tokenize(text) == ["▁", *text]  # the space is not written, and shares the place of the first
    lm = besag.load((networks.tiny("bert", len(letters)), letters), device="cpu")
    [row] = lm.correct(text)
    assert row.edits[0].start == 0
    assert all(edit.end - edit.start == len(edit.old) == 1 for edit in row.edits)
    assert len(row.text) == len(text)


def test_a_stream_is_answered_in_order() -> None:
    lm = model()
    texts = [TEXT, "the mat", TEXT + " the dogs"]
    assert [row.original for row in Correcting().run(lm.engine, iter(texts))] == texts


@pytest.mark.parametrize("margin", [-1.0, float("nan")])
def test_a_margin_is_a_number_of_nats(margin: float) -> None:
    with pytest.raises(BesagError, match="margin"):
        correct(model().engine, TEXT, margin=margin)
